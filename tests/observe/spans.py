"""Telemetry in memory, and ways to look at it: trees of spans, sums of counters."""

from collections.abc import Iterator, Mapping
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    Histogram,
    HistogramDataPoint,
    InMemoryMetricReader,
    Metric,
    NumberDataPoint,
    Sum,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolbatch.observe import OpenTelemetry

__all__ = ["Memory"]


class Memory:
    """Providers that keep everything here.

    Attributes:
        observer: An `OpenTelemetry` that writes to them.
        meter_provider: Where its metrics go.
        tracer: For spans of the host and of tools.
    """

    def __init__(self, **options: Any) -> None:
        self._spans = InMemorySpanExporter()
        self._metrics = InMemoryMetricReader()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self.meter_provider = MeterProvider([self._metrics], shutdown_on_exit=False)
        self.observer = OpenTelemetry(tracer_provider=provider, meter_provider=self.meter_provider, **options)
        self.tracer = provider.get_tracer("test")

    @property
    def spans(self) -> list[ReadableSpan]:
        """All spans that have ended, in the order of their ends."""
        return list(self._spans.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        """The one span of that name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def call(self, call_id: str) -> ReadableSpan:
        """The one span of that call."""
        (found,) = [span for span in self.spans if facts(span).get("toolbatch.call.id") == call_id]
        return found

    def tree(self) -> list[str]:
        """One line a span, below its parent, brothers in the order of their beginnings."""
        return list(self._lines(None, ""))

    def _lines(self, parent: int | None, indent: str) -> Iterator[str]:
        below = [span for span in self.spans if (span.parent.span_id if span.parent else None) == parent]
        for span in sorted(below, key=lambda span: span.start_time or 0):
            status = facts(span).get("toolbatch.status")
            yield f"{indent}{span.name}" + (f" {status}" if status else "")
            assert span.context is not None
            yield from self._lines(span.context.span_id, f"{indent}  ")

    def points(self, name: str) -> list[tuple[dict[str, Any], float]]:
        """Each series of a metric: its attributes, with the sum of a counter or the count of a histogram."""
        found: list[tuple[dict[str, Any], float]] = []
        for metric in self.metrics(name):
            assert isinstance(metric.data, Sum | Histogram)
            found += [(dict(point.attributes or {}), _number(point)) for point in metric.data.data_points]
        return found

    def metrics(self, name: str) -> list[Metric]:
        """A metric's data, whole; nothing where it was never recorded."""
        data = self._metrics.get_metrics_data()
        resources = data.resource_metrics if data else []
        scopes = [scope for resource in resources for scope in resource.scope_metrics]
        return [metric for scope in scopes for metric in scope.metrics if metric.name == name]


def _number(point: NumberDataPoint | HistogramDataPoint) -> float:
    return point.count if isinstance(point, HistogramDataPoint) else point.value


def facts(span: ReadableSpan) -> Mapping[str, Any]:
    """A span's attributes."""
    return span.attributes or {}
