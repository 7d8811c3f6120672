"""Spans of one batch: its own, one a call, and one for each end that comes after its call's outcome."""

import time
import traceback
from contextlib import suppress
from contextvars import Context
from typing import TYPE_CHECKING, Final

from opentelemetry import context as current
from opentelemetry import propagate, trace
from opentelemetry.trace import Link, Span, Status, StatusCode, Tracer

from toolbatch.core import Settlement, Snapshot, ToolCall, cut, encode
from toolbatch.ports import (
    ApprovalRequested,
    BatchClosed,
    BatchEvent,
    BatchOpened,
    BatchWatcher,
    CallAdmitted,
    CallProgress,
    CallSettled,
    ExecutionOutcome,
    StaleResult,
    trace_carrier,
)

from ._otel_metrics import Meters, error_type, type_name

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

__all__ = ["BatchSpans", "tracer"]

_MAX_TEXT: Final = 1024  # bytes of a name, an id, a code

Attributes = dict[str, str | int | float | bool]


def tracer(provider: "TracerProvider | None") -> Tracer:
    """Return what makes all spans."""
    return trace.get_tracer("toolbatch", tracer_provider=provider)


class _Call:
    """A call's span and what has become of it."""

    __slots__ = ("began_at", "ended_at", "is_pending", "is_told_late", "span")

    def __init__(self, span: Span, began_at: int) -> None:
        self.span = span
        self.began_at = began_at  # nanoseconds since the epoch, here as below
        self.ended_at: int | None = None
        self.is_pending = False  # it was answered with a placeholder, and is counted at its end (O6)
        self.is_told_late = False


class BatchSpans(BatchWatcher):
    """Traces and measures one batch.

    Args:
        opened: The batch.
        tracer: Makes its spans.
        meters: Count its calls.
        content_bytes: How much of each argument object, result and message is recorded; 0 for nothing of them.
    """

    def __init__(self, opened: BatchOpened, tracer: Tracer, meters: Meters, content_bytes: int) -> None:
        self._tracer = tracer
        self._meters = meters
        self._content_bytes = content_bytes
        self._announced = {call.id: call for call in opened.calls}
        self._common: Attributes = {"toolbatch.generation": opened.generation}
        if opened.run_id is not None:
            self._common["toolbatch.run.id"] = _text(opened.run_id)
        count = len(opened.calls)
        self._batch = tracer.start_span("tool_batch", attributes={**self._common, "toolbatch.call.count": count})
        self._below = trace.set_span_in_context(self._batch)
        self._calls: dict[str, _Call] = {}  # by execution id

    def prepare(self, admitted: CallAdmitted, context: Context, /) -> None:
        """Begin the call's span, and make it current in the call's context."""
        call = self._begin(admitted.call, admitted.execution_id, admitted.description)
        context.run(_make_current, call.span)

    def event(self, event: BatchEvent, /) -> None:
        """Note on the spans what happens; end them."""
        match event:
            case CallSettled():
                self._settle(event.outcome, event.settlement)
            case BatchClosed():
                self._close(event.snapshot)
            case CallProgress():
                self._note(event.execution_id, "toolbatch.progress", event.content)
            case ApprovalRequested():
                self._note(event.request.execution_id, "toolbatch.approval_requested", event.request.reason)
            case _:
                pass  # the outcome says when the tool was entered

    def ended(self, outcome: ExecutionOutcome, /) -> None:
        """The code of a call has ended after its outcome: by the request to stop, or late, of which `late` has told."""
        call = self._calls.get(outcome.execution_id)
        if call is None or call.ended_at is None:
            return
        if call.is_pending:
            call.is_pending = False
            self._meters.finished(outcome, error_type(outcome, None))
        if not call.is_told_late:
            self._end_late(outcome.tool_name, call, call.ended_at, time.time_ns(), _facts(outcome))

    def late(self, stale: StaleResult, /, *, kept: bool) -> None:
        """A late result came: of a call that has its outcome, or of an attempt that its policies have given up."""
        self._meters.late(stale, kept=kept)
        call = self._calls.get(stale.execution_id)
        if call is None:
            return
        call.is_told_late = call.ended_at is not None
        facts: Attributes = {
            "toolbatch.observed_status": stale.observed_status,
            "toolbatch.answered_as": _text(stale.answered_as),
            "toolbatch.late_by": stale.late_by,
            "toolbatch.rejection.reason": stale.reason,
            "toolbatch.audit.kept": kept,
        }
        if stale.exception_type is not None:
            facts["exception.type"] = _text(stale.exception_type)
        self._end_late(stale.name, call, _ns(stale.closed_at), _ns(stale.settled_at), facts)

    # -- the spans ---------------------------------------------------------------------------------------------------

    def _begin(self, call: ToolCall, execution_id: str, description: str | None) -> _Call:
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": _text(call.name),
            "gen_ai.tool.call.id": _text(call.wire_id or call.id),  # as the model's own spans have it
            "gen_ai.tool.type": "function",
            "toolbatch.call.id": _text(call.id),
            "toolbatch.execution.id": execution_id,
            **self._common,
        }
        if description:
            attributes["gen_ai.tool.description"] = _text(description)
        if self._content_bytes:
            attributes["gen_ai.tool.call.arguments"] = cut(_arguments(call), self._content_bytes)
        now = time.time_ns()
        name = f"execute_tool {_text(call.name)}"
        span = self._tracer.start_span(name, context=self._below, attributes=attributes, start_time=now)
        self._calls[execution_id] = made = _Call(span, now)
        return made

    def _settle(self, outcome: ExecutionOutcome, settlement: Settlement) -> None:
        call = self._calls.get(outcome.execution_id)
        if call is None:  # it was never handed over: answered on entering, or by the close
            call = self._begin(self._announced[outcome.call_id], outcome.execution_id, None)
        call.ended_at, call.is_pending = time.time_ns(), outcome.status == "pending"
        if call.span.is_recording():
            self._describe(call, outcome, settlement)
        call.span.end(call.ended_at)
        self._meters.settled(outcome, settlement)

    def _describe(self, call: _Call, outcome: ExecutionOutcome, settlement: Settlement) -> None:
        span, error = call.span, error_type(outcome, settlement)
        span.set_attributes(_facts(outcome))
        if settlement.code is not None:
            span.set_attribute("toolbatch.code", _text(settlement.code))
        if outcome.started_at is not None:
            entered_at = max(call.began_at, _ns(outcome.started_at))
            span.set_attribute("toolbatch.queue.duration", (entered_at - call.began_at) / 1e9)
            span.add_event("toolbatch.started", timestamp=entered_at)
        if self._content_bytes:
            self._show(span, outcome, settlement)
        if error is not None:
            span.set_attribute("error.type", _text(error))
            said = cut(settlement.message or "", self._content_bytes) if self._content_bytes else ""
            span.set_status(Status(StatusCode.ERROR, said or _text(error)))

    def _show(self, span: Span, outcome: ExecutionOutcome, settlement: Settlement) -> None:
        if settlement.content is not None:
            span.set_attribute("gen_ai.tool.call.result", cut(settlement.content, self._content_bytes))
        if outcome.exception is not None:
            span.add_event("exception", _exception(outcome.exception, self._content_bytes))

    def _end_late(self, name: str, call: _Call, start: int, end: int, facts: Attributes) -> None:
        start = max(start, call.began_at)
        span = self._tracer.start_span(
            f"late_end {_text(name)}",
            context=trace.set_span_in_context(call.span),
            links=[Link(call.span.get_span_context())],
            attributes={"gen_ai.tool.name": _text(name), **self._common, **facts},
            start_time=start,
        )
        span.end(max(start, end))

    def _note(self, execution_id: str, what: str, content: str | None) -> None:
        call = self._calls.get(execution_id)
        if call is not None:
            shown = {f"{what}.content": cut(content, self._content_bytes)} if content and self._content_bytes else {}
            call.span.add_event(what, shown)

    def _close(self, snapshot: Snapshot) -> None:
        reason = snapshot.close_reason
        if reason is not None:
            self._batch.set_attribute("toolbatch.close.status", reason.status)
            if reason.code is not None:
                self._batch.set_attribute("toolbatch.code", _text(reason.code))
            if reason.status == "error":
                self._batch.set_attribute("error.type", _text(reason.code or "error"))
                self._batch.set_status(Status(StatusCode.ERROR, reason.code))
        self._batch.end()


def _make_current(span: Span) -> None:
    inside = trace.set_span_in_context(span)  # with the baggage that its starter has
    current.attach(inside)  # for as long as this context lives
    headers: dict[str, str] = {}
    propagate.inject(headers, context=inside)
    trace_carrier.set(headers)


def _facts(outcome: ExecutionOutcome) -> Attributes:
    facts: Attributes = {
        "toolbatch.status": outcome.status,
        "toolbatch.completion": outcome.completion,
    }
    if outcome.cancellation != "none" or outcome.completion != "unknown":
        # Else it still runs, and is asked to stop right after this.
        facts["toolbatch.cancellation"] = outcome.cancellation
    numbers = {
        "toolbatch.execution.duration": outcome.duration,
        "toolbatch.timeout": outcome.timeout,
        "toolbatch.deadline.late_by": outcome.deadline_late_by,
        "toolbatch.repeats": outcome.repeats or None,
    }
    facts.update({name: number for name, number in numbers.items() if number is not None})
    return facts


def _exception(error: BaseException, max_bytes: int) -> Attributes:
    shown: Attributes = {"exception.type": type_name(error)}
    with suppress(Exception):  # its own methods may raise anything
        shown["exception.message"] = cut(str(error), max_bytes)
    with suppress(Exception):
        shown["exception.stacktrace"] = cut("".join(traceback.format_exception(error)), max_bytes)
    return shown


def _arguments(call: ToolCall) -> str:
    if call.raw_arguments is not None:
        return call.raw_arguments
    try:
        return encode(call.arguments)
    except (TypeError, ValueError):  # arguments that the host itself made of something else than JSON
        return "(not JSON)"


def _text(value: str) -> str:
    # This also replaces lone surrogates: one of them would cost the exporter all its spans.
    return cut(value, _MAX_TEXT)


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)
