"""A collector: a real HTTP server that takes OTLP, decodes it, and keeps what it was sent."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

__all__ = ["Collector", "attributes", "collector"]


class Collector:
    """What has arrived.

    Attributes:
        url: Where it listens.
        spans: All spans, in the order of their arrival.
        metrics: The names of all metrics.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[Span] = []
        self.metrics: set[str] = set()

    def span(self, name: str) -> Span:
        """The one span of that name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found


def attributes(span: Span) -> dict[str, Any]:
    """A span's attributes as plain values."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value") for pair in span.attributes}


@contextmanager
def collector() -> Iterator[Collector]:
    """Serve on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            answer = take(self.path, body)
            self.send_response(200 if answer is not None else 404)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer or b"")))
            self.end_headers()
            self.wfile.write(answer or b"")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    def take(path: str, body: bytes) -> bytes | None:
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    found.spans += scope.spans
            return ExportTraceServiceResponse().SerializeToString()
        if path == "/v1/metrics":
            for measured in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for metered in measured.scope_metrics:
                    found.metrics |= {metric.name for metric in metered.metrics}
            return ExportMetricsServiceResponse().SerializeToString()
        return None

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Collector(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
