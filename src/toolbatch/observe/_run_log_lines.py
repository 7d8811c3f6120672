"""The run log's lines: one JSON object each, all of one form, whoever writes them. docs/report.md has them as a table."""

from collections.abc import Container, Mapping
from dataclasses import fields
from typing import Any, Final

from toolbatch.core import CallSnapshot, Settlement, Snapshot, ToolCall, cut, encode, preview, sound
from toolbatch.ports import (
    ApprovalRequest,
    BatchOpened,
    CallAdmitted,
    CallProgress,
    CallSettled,
    CallStarted,
    ExecutionOutcome,
    StaleResult,
)

__all__ = [
    "FORMAT",
    "admitted_entry",
    "begun_entry",
    "call_entry",
    "closed_entry",
    "ended_entry",
    "line",
    "progress_entry",
    "settled_entry",
    "stale_entry",
]

FORMAT: Final = 1
"""The form's version, in every line under `toolbatch`. A reader skips lines of a later one, and keys that it does not know."""

Entry = dict[str, Any]

_NAME_BYTES: Final = 512
_OUTCOME_FIELDS: Final = tuple(field.name for field in fields(ExecutionOutcome) if field.name != "exception")
_STALE_FIELDS: Final = tuple(field.name for field in fields(StaleResult))


def line(event: str, at: float, source: Mapping[str, str], entry: Mapping[str, Any]) -> bytes:
    """Return one whole line.

    Args:
        event: What happened.
        at: When, in seconds since the epoch.
        source: Which log writes, and of which batch, as far as that is known.
        entry: The event's own members.
    """
    text = encode({"toolbatch": FORMAT, "event": event, "at": at, **source, **entry})
    return f"{sound(text)}\n".encode()  # the name that a host gave its run may be no sound text


def begun_entry(opened: BatchOpened, content_bytes: int) -> Entry:
    """Return what a batch consists of; arguments only where content is kept."""
    calls = [_announced(call, content_bytes) for call in opened.calls]
    return {"generation": opened.generation, "run_id": opened.run_id, "calls": calls}


def admitted_entry(admitted: CallAdmitted) -> Entry:
    """Return what is said of a call that was handed over to be run."""
    return {"call_id": admitted.call.id, "tool_name": admitted.call.name, "execution_id": admitted.execution_id}


def call_entry(event: CallStarted | CallProgress | ApprovalRequest) -> Entry:
    """Return which call it is that something is said of."""
    return {"call_id": event.call_id, "tool_name": event.tool_name, "execution_id": event.execution_id}


def progress_entry(event: CallProgress, content_bytes: int) -> Entry:
    """Return what is said of a progress report; its text only where content is kept."""
    entry = call_entry(event)
    if content_bytes:
        entry["content"] = cut(event.content, content_bytes)
    return entry


def settled_entry(event: CallSettled, content_bytes: int) -> Entry:
    """Return a call's outcome; its result or message only where content is kept."""
    return {**ended_entry(event.outcome), **_settlement(event.settlement, content_bytes)}


def ended_entry(outcome: ExecutionOutcome) -> Entry:
    """Return what is known of an execution; of what the tool raised only the type."""
    known = ((name, getattr(outcome, name)) for name in _OUTCOME_FIELDS)
    entry = {name: value for name, value in known if value is not None}
    if outcome.exception is not None:
        entry["exception_type"] = cut(type(outcome.exception).__name__, _NAME_BYTES)
    return entry


def stale_entry(stale: StaleResult, *, kept: bool = True) -> Entry:
    """Return a late result, its content only where the session kept it; `kept` is whether the audit channel had room for it."""
    known = ((name, getattr(stale, name)) for name in _STALE_FIELDS)
    return {**{name: value for name, value in known if value is not None}, "kept": kept}


def closed_entry(snapshot: Snapshot, told: Container[str], content_bytes: int) -> Entry:
    """Return how a batch ended, and how each call did that no other line tells of: those that a resumed batch took over."""
    reason = snapshot.close_reason
    return {
        "generation": snapshot.generation,
        "status": None if reason is None else reason.status,
        "code": None if reason is None else reason.code,
        "calls": [_taken_over(call, content_bytes) for call in snapshot.calls if call.id not in told],
    }


def _taken_over(call: CallSnapshot, content_bytes: int) -> Entry:
    ended = {} if call.settlement is None else _settlement(call.settlement, content_bytes)
    return {"id": call.id, "name": call.name, "state": call.state, **ended}


def _settlement(end: Settlement, content_bytes: int) -> Entry:
    entry: Entry = {} if end.code is None else {"code": end.code}
    if end.side_effect_state is not None:
        entry["side_effect_state"] = end.side_effect_state
    if content_bytes:
        entry["content"] = cut(end.message if end.content is None else end.content, content_bytes)
    return entry


def _announced(call: ToolCall, content_bytes: int) -> Entry:
    entry: Entry = {"id": call.id, "name": call.name}
    if content_bytes:
        try:
            text = encode(call.arguments) if call.raw_arguments is None else call.raw_arguments
        except Exception:  # noqa: BLE001  a host's own arguments may hold anything
            text = preview(call.arguments, content_bytes)
        entry["arguments"] = cut(text, content_bytes)
    return entry
