"""OpenTelemetry over the wire: what a real collector decodes, from this process and from a tool's own."""

import asyncio
import os
from collections.abc import Iterator

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from tests.batch.kit import boom, instant
from tests.observe.collector import Collector, attributes, collector
from tests.observe.worker_tools import trace_here
from toolbatch import ToolBatch, ToolCall, ToolCatalog, tool
from toolbatch.backends import ProcessBackend
from toolbatch.observe import OpenTelemetry
from toolbatch.ports import trace_carrier


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector, and no proxy before it."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with collector() as found:
        yield found


class Sent:
    """Telemetry that goes to a collector."""

    def __init__(self, url: str) -> None:
        self._provider = TracerProvider(shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{url}/v1/metrics"), 3_600_000)
        self._meters = MeterProvider([reader], shutdown_on_exit=False)
        self.observer = OpenTelemetry(tracer_provider=self._provider, meter_provider=self._meters, content=True)

    def finish(self) -> None:
        """Send all that was not sent yet."""
        self._provider.shutdown()
        self._meters.shutdown()


async def test_what_a_collector_reads(served: Collector) -> None:
    """Spans arrive whole: names, kinds, parents, status, attributes of their types; the metrics too."""
    sent = Sent(served.url)
    announced = [ToolCall("a", "look", '{"where": "\\ud800"}'), ToolCall("b\x07", "brøken"), ToolCall("c", "slow")]
    async with ToolBatch(announced, run_id="run 1", observers=[sent.observer]) as batch:
        batch.start("a", instant)
        batch.start("b\x07", boom, "no \ud800 text")
        batch.start("c", asyncio.sleep, 60, timeout=0.01)
    await asyncio.to_thread(sent.finish)
    above, first, second = (
        served.span("tool_batch"),
        served.span("execute_tool look"),
        served.span("execute_tool brøken"),
    )
    assert first.kind == Span.SPAN_KIND_INTERNAL
    assert first.parent_span_id == second.parent_span_id == above.span_id
    assert first.trace_id == above.trace_id
    assert above.parent_span_id == b""
    assert attributes(above)["toolbatch.call.count"] == 3
    given = attributes(first)
    assert given["gen_ai.tool.call.result"] == "done"
    assert given["gen_ai.tool.call.arguments"] == '{"where": "\\ud800"}'
    assert given["toolbatch.run.id"] == "run 1"
    assert isinstance(given["toolbatch.queue.duration"], float)
    assert second.status == Status(code=Status.STATUS_CODE_ERROR, message="no \ufffd text")
    assert attributes(second)["gen_ai.tool.call.id"] == "b\x07"
    end = served.span("late_end slow")
    assert [link.span_id for link in end.links] == [served.span("execute_tool slow").span_id]
    assert served.metrics == {"gen_ai.execute_tool.duration", "toolbatch.calls"}


async def test_a_tool_in_a_process_of_its_own(served: Collector) -> None:
    """What such a tool does is below its call's span, though another SDK in another process has sent it (B11, X2)."""
    sent = Sent(served.url)
    async with ProcessBackend(1, context_vars=[trace_carrier]) as backend:
        work = tool(backend=backend)(trace_here)
        announced = [ToolCall("a", "trace_here", {"url": served.url})]
        async with ToolBatch(announced, tools=ToolCatalog([work]), observers=[sent.observer]) as batch:
            batch.start_all()
    assert batch.outcomes["a"].status == "succeeded", batch.outcomes["a"].exception
    await asyncio.to_thread(sent.finish)
    elsewhere, call = served.span("elsewhere"), served.span("execute_tool trace_here")
    assert (elsewhere.parent_span_id, elsewhere.trace_id) == (call.span_id, call.trace_id)
    assert int(attributes(call)["gen_ai.tool.call.result"]) != os.getpid()
