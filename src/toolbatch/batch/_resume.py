"""Going on with a batch that was closed: what had an outcome keeps it, what never started may run (T7, D4)."""

from collections.abc import Mapping
from typing import Any

from toolbatch.core import (
    Accepted,
    BatchHandle,
    Cancelled,
    Closed,
    Failed,
    InvalidInputError,
    InvalidTypeError,
    Rejected,
    RichSucceeded,
    Settlement,
    Snapshot,
    Succeeded,
    ToolCall,
    ToolCallClosure,
    from_plain,
    preview,
)

__all__ = ["Saved", "read_saved", "restore"]

Saved = Mapping[str, Settlement]
"""The outcomes that stand, by call id."""


def read_saved(previous: Snapshot | Mapping[str, Any], calls: tuple[ToolCall, ...]) -> Saved:
    """Return what a closed batch has left: every outcome but those of calls that were cut off by its close and surely never ran.

    What was answered while it was open stands, though nothing was run: a person's refusal, or a tool that there is not.

    Args:
        previous: The closed snapshot, or what its `to_dict()` returned, perhaps in another process.
        calls: The calls of the batch that goes on.

    Raises:
        InvalidInputError: It is open, is none, or is of other calls.
        InvalidTypeError: Likewise.
    """
    if isinstance(previous, Snapshot):
        why = previous.close_reason
        if why is None:
            raise InvalidInputError(f"{previous!r} is open; leave its batch first, or pause it")
        rows = [(call.id, call.name, call.settlement) for call in previous.calls]
        reason: tuple[object, object] = (why.status, why.code)
    elif isinstance(previous, Mapping):
        rows, reason = _rows(previous)
    else:
        raise InvalidTypeError(f"resume must be a closed Snapshot or its to_dict(), not {preview(previous)}")
    announced = [(call.id, call.name) for call in calls]
    if [(call_id, name) for call_id, name, _ in rows] != announced:
        raise InvalidInputError(
            f"resume is of other calls: {preview([row[:2] for row in rows], 300)}, and not of {preview(announced, 300)}"
        )
    return {call_id: end for call_id, _, end in rows if end is not None and not _was_cut_off(end, reason)}


def _was_cut_off(end: Settlement, reason: tuple[object, object]) -> bool:
    return isinstance(end, Closed) and end.side_effect_state == "not_started" and (end.status, end.code) == reason


def _rows(data: Mapping[str, Any]) -> tuple[list[tuple[str, str, Settlement | None]], tuple[object, object]]:
    try:
        if data["closed"] is not True:
            raise InvalidInputError("resume is an open snapshot's to_dict(); leave its batch first, or pause it")
        reason = data["close_reason"]["status"], data["close_reason"].get("code")
        return [(call["id"], call["name"], _settlement(call["settlement"])) for call in data["calls"]], reason
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"resume is no closed snapshot's to_dict(): {preview(data)} ({type(error).__name__}: {error})"
        ) from error


def _settlement(data: Mapping[str, Any]) -> Settlement:
    if data["provenance"] == "synthetic":
        effects = data["side_effect_state"]
        return Closed(data["status"], data["code"], data["message"], effects, data.get("partial"))
    if data["status"] == "success":
        if "parts" not in data:
            return Succeeded(data["content"])
        return RichSucceeded(tuple(map(from_plain, data["parts"])), data["content"])
    kind = Failed if data["status"] == "error" else Cancelled
    return kind(data["code"], data["message"])


def restore(closure: ToolCallClosure, handle: BatchHandle, call_id: str, end: Settlement) -> Accepted | Rejected:
    """Give a call the outcome that it had.

    Raises:
        InvalidInputError: It is over this closure's limits. The call is still pending.
        InvalidTypeError: It is of a wrong type. The call is still pending.
    """
    match end:
        case Succeeded():
            return closure.succeed(handle, call_id, end.content)
        case RichSucceeded():
            return closure.succeed(handle, call_id, list(end.parts))
        case Failed():
            return closure.fail(handle, call_id, end.message, end.code)
        case Cancelled():
            return closure.cancel(handle, call_id, end.message, end.code)
        case Closed():
            if end.side_effect_state == "unknown":
                closure.start(handle, call_id)
            if end.partial is not None:
                closure.progress(handle, call_id, end.partial)
            return closure.close_call(handle, call_id, end.status, end.code, end.message, end.side_effect_state)
