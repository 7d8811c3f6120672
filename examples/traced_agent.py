"""An agent whose every tool call can be seen: one trace a run, with what ran, failed, timed out, was denied, and came late.

Run it with `python examples/traced_agent.py`: it prints the tree of spans and the metrics. The model is a script, played by a local provider. With
`OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:6006` it sends the trace to a viewer too, such as Phoenix: `pip install arize-phoenix; phoenix serve`.
"""

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that a script finds its neighbours

from anthropic import AsyncAnthropic
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolbatch import ToolBatch, ToolCall, ToolCatalog, ToolSession, tool
from toolbatch.observe import OpenTelemetry
from toolbatch.ports import Deny
from toolbatch.providers import anthropic
from toolbatch.testing import FakeProvider, Reply, ScriptedCall
from toolbatch.tools import FixedApprovals

tracer = trace.get_tracer("traced_agent")


@tool
def search(query: str) -> str:
    """Search flights. A plain function: it runs in a thread, and its own span is below its call's all the same."""
    with tracer.start_as_current_span("GET /flights", attributes={"url.query": query}):
        time.sleep(0.02)
    return f"3 flights to {query}"


@tool
async def convert(amount: float, to: str) -> str:
    """Convert euros."""
    raise ValueError(f"there is no currency {to!r}, and {amount} of it is nothing")


@tool(timeout=0.1)
async def scrape(url: str) -> str:
    """Read a page. It does not stop when it is asked to."""
    for _ in range(3):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.1)
    return f"the text of {url}"


@tool(needs_approval=True)
async def book(flight: str) -> str:
    """Book a flight."""
    return f"{flight} is booked"


@tool
async def research(topic: str) -> str:
    """Ask a second agent, which runs tools of its own."""
    calls = [ToolCall("sub_1", "search", {"query": topic})]
    async with ToolBatch(calls, tools=ToolCatalog([search]), observers=[telemetry]) as batch:
        batch.start_all()
    return "it is nice there"


SCRIPT = [
    Reply(
        "I look around.",
        [
            ScriptedCall("c1", "search", {"query": "Oslo"}),
            ScriptedCall("c2", "convert", {"amount": 100, "to": "XYZ"}),
            ScriptedCall("c3", "scrape", {"url": "https://slow.example"}),
            ScriptedCall("c4", "research", {"topic": "Oslo in May"}),
        ],
    ),
    Reply("I book.", [ScriptedCall("c5", "book", {"flight": "SK 204"})]),
    Reply("You did not want it."),
]


async def run(client: AsyncAnthropic, question: str) -> None:
    """Answer one question, in one trace."""
    catalog = ToolCatalog([search, convert, scrape, book, research])
    messages: list[Any] = [{"role": "user", "content": question}]
    with tracer.start_as_current_span("invoke_agent travel", attributes={"gen_ai.operation.name": "invoke_agent"}):
        async with ToolSession(
            tools=catalog, approvals=FixedApprovals(Deny("not today")), observers=[telemetry], run_id="trip 1"
        ) as session:
            while True:
                with tracer.start_as_current_span("chat fake", attributes={"gen_ai.operation.name": "chat"}):
                    response = await client.messages.create(model="fake", max_tokens=1000, messages=messages)
                async with session.batch(anthropic.calls(response)) as batch:
                    batch.start_all()
                    snapshot = await batch.snapshot()
                if not snapshot.calls:
                    return
                anthropic.extend(messages, response, snapshot)


def tree(spans: Sequence[ReadableSpan], parent: int | None = None, indent: str = "") -> Iterator[str]:
    """One line a span, below its parent."""
    below = [span for span in spans if (span.parent.span_id if span.parent else None) == parent]
    for span in sorted(below, key=lambda span: span.start_time or 0):
        facts = span.attributes or {}
        names = ("toolbatch.status", "error.type", "toolbatch.observed_status")
        said = dict.fromkeys(str(facts[name]) for name in names if name in facts)
        yield f"{indent}{span.name}" + (f"  [{', '.join(said)}]" if said else "")
        if span.context is not None:
            yield from tree(spans, span.context.span_id, f"{indent}  ")


def counted(reader: InMemoryMetricReader) -> Iterator[str]:
    """One line a series of each counter."""
    data = reader.get_metrics_data()
    for resource in data.resource_metrics if data else []:
        for metric in [metric for scope in resource.scope_metrics for metric in scope.metrics]:
            for point in metric.data.data_points:
                shown = " ".join(str(value) for value in (point.attributes or {}).values())
                yield f"{metric.name}: {getattr(point, 'value', None) or getattr(point, 'count', 0)} {shown}"


async def main() -> None:
    """Run the agent, and show its trace."""
    async with (
        FakeProvider(SCRIPT) as provider,
        AsyncAnthropic(base_url=provider.anthropic_base_url, api_key="example", max_retries=0) as client,
    ):
        await run(client, "Book a flight to Oslo for me.")


if __name__ == "__main__":
    os.environ["no_proxy"] = "127.0.0.1"  # where a proxy is set, the client must not look for the provider behind it
    spans, metrics = InMemorySpanExporter(), InMemoryMetricReader()
    traces = TracerProvider(resource=Resource.create({"service.name": "traced_agent"}))
    traces.add_span_processor(SimpleSpanProcessor(spans))
    if endpoint := os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
    trace.set_tracer_provider(traces)
    meters = MeterProvider([metrics])
    telemetry = OpenTelemetry(meter_provider=meters, content=True)
    asyncio.run(main())
    print("\n".join(tree(spans.get_finished_spans())))
    print("\n".join(counted(metrics)))
    traces.shutdown()
    meters.shutdown()
