"""Going on with a batch that was closed: what had an outcome keeps it, what never started may run (T7, D4)."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

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
    preview,
)
from toolbatch.operations import settlement_of
from toolbatch.ports import JournaledBatch, was_cut_off

from ._claimed import unknown_text
from ._durable import DurableOperations
from ._execution import OUTCOME_UNKNOWN

__all__ = ["Saved", "begun_before", "rehearse", "restore"]

_Row: TypeAlias = tuple[str, str, Settlement | None]
_Reason: TypeAlias = tuple[str | None, str | None]

Saved = Mapping[str, Settlement]
"""The outcomes that stand, by call id."""


def rehearse(
    closure: ToolCallClosure, calls: Iterable[object], previous: object, durable: DurableOperations | None
) -> tuple[tuple[ToolCall, ...], Saved]:
    """Try all that a resumed batch will be told first, and return its calls and `Saved`: what can't be used changes nothing.

    Args:
        closure: An unused one.
        calls: The calls of the batch that goes on, as its caller gave them.
        previous: The closed snapshot, or what its `to_dict()` returned, perhaps in another process; or what the journal has.
        durable: What decides on calls that were claimed.

    Raises:
        InvalidInputError: A call can't be used, or `previous` is an open snapshot, is none, or is of other calls, or of
            other arguments of one whose outcome stands.
        InvalidTypeError: Likewise.
    """
    begun = closure.begin(calls)
    saved = _read_saved(previous, begun.announced, durable)
    for call_id, end in saved.items():
        restore(closure, begun.handle, call_id, end)
    return begun.announced, saved


def _read_saved(previous: object, calls: tuple[ToolCall, ...], durable: DurableOperations | None) -> Saved:
    """Return what a closed batch has left: every outcome but those of calls that were cut off by its close and surely never ran.

    What was answered while it was open stands, though nothing was run: a person's refusal, or a tool that there is not. A call that a
    crash has cut off after its start is closed as unknown, unless its claim or its policy says more.
    """
    if isinstance(previous, Snapshot):
        why = previous.close_reason
        if why is None:
            raise InvalidInputError(f"{previous!r} is open; leave its batch first, or pause it")
        rows = [(row.id, row.name, row.settlement) for row in previous.calls]
        reason: _Reason = (why.status, why.code)
        known = [row.call for row in previous.calls]
    elif isinstance(previous, JournaledBatch):
        rows, reason = _journaled(previous, durable)
        known = list(previous.calls)
    elif isinstance(previous, Mapping):
        rows, reason = _rows(previous)
        known = []  # it has no arguments
    else:
        raise InvalidTypeError(
            f"resume must be a closed Snapshot, its to_dict() or a JournaledBatch, not {preview(previous)}"
        )
    announced = [(call.id, call.name) for call in calls]
    if [(call_id, name) for call_id, name, _ in rows] != announced:
        raise InvalidInputError(
            f"resume is of other calls: {preview([row[:2] for row in rows], 300)}, and not of {preview(announced, 300)}"
        )
    saved = {call_id: end for call_id, _, end in rows if end is not None and not was_cut_off(end, *reason)}
    for old, new in zip(known, calls, strict=False):
        if old.id in saved and _differ(old, new):  # one that is still to run may have been corrected by a person
            raise InvalidInputError(
                f"resume is of other calls: {old.id!r} had the arguments {preview(old.arguments)}, and not {preview(new.arguments)}"
            )
    return saved


def _differ(old: ToolCall, new: ToolCall) -> bool:
    """Whether two calls of one id have other arguments: gateways give the same ids in every turn.

    Only text tells: a dict may have been changed by the tool that was handed it.
    """
    texts = (old.raw_arguments, new.raw_arguments)
    if None in texts or texts[0] == texts[1]:
        return False
    return ToolCall("old", "", texts[0]).arguments != ToolCall("new", "", texts[1]).arguments


def begun_before(previous: object, saved: Saved, durable: DurableOperations | None) -> list[tuple[str, str]]:
    """Return the ids of calls that a process that died had begun, and that go on here, with what is known of each for now (D4).

    Args:
        previous: As in `rehearse`.
        saved: What that has returned.
        durable: As in `rehearse`.
    """
    if not isinstance(previous, JournaledBatch) or durable is None:
        return []
    going = [call for call in previous.calls if call.id in previous.started and call.id not in saved]
    return [(call.id, unknown_text()) for call in going if not durable.is_read_only(call)]


def _journaled(previous: JournaledBatch, durable: DurableOperations | None) -> tuple[list[_Row], _Reason]:
    rows: list[_Row] = []
    for call in previous.calls:
        settled, started = previous.settled.get(call.id), previous.started.get(call.id)
        end = None if settled is None else settled.settlement
        if end is None and started is not None:
            may_go_on = durable is not None and durable.may_go_on(call, previous.run_id, started.operation_id)
            end = None if may_go_on else Closed("error", OUTCOME_UNKNOWN, unknown_text(), "unknown")
        rows.append((call.id, call.name, end))
    why = None if previous.closed is None else previous.closed.reason
    return rows, (None, None) if why is None else (why.status, why.code)


def _rows(data: Mapping[str, Any]) -> tuple[list[_Row], _Reason]:
    try:
        if data["closed"] is not True:
            raise InvalidInputError("resume is an open snapshot's to_dict(); leave its batch first, or pause it")
        reason = data["close_reason"]["status"], data["close_reason"].get("code")
        return [(call["id"], call["name"], settlement_of(call["settlement"])) for call in data["calls"]], reason
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"resume is no closed snapshot's to_dict(): {preview(data)} ({type(error).__name__}: {error})"
        ) from error


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
