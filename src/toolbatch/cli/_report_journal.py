"""A journal as a report sees it: the same records that a run log gives, as far as a journal knows them."""

from typing import Final

from toolbatch.core import Settlement, ToolCall, cut, encode
from toolbatch.observe import BatchRecord, CallRecord, RunRecord
from toolbatch.operations.kit import batches_on_file
from toolbatch.ports import JournaledBatch, OperationStoreError
from toolbatch.tools import NOT_EXECUTED

from ._files import FileError

__all__ = ["read_journal"]

_TEXT_BYTES: Final = 1 << 16


def read_journal(path: str, *, content: bool) -> RunRecord:
    """Read a SQLite journal, and change nothing in it; its process may go on meanwhile.

    Args:
        path: The file.
        content: Whether arguments and results, which a journal always has, are to be seen.

    Raises:
        FileError: It can't be read, or holds no journal.
    """
    try:
        found = batches_on_file(path)
    except OperationStoreError as error:
        raise FileError(str(error)) from None
    batches = tuple(_batch(batch, content) for batch in found if batch is not None)
    return RunRecord(
        batches=batches,
        lines=len(found),
        unreadable=len(found) - len(batches),
        unknown=0,
        dropped=0,
        cut_off=sum(batch.closed_at is None for batch in batches),
    )


def _batch(batch: JournaledBatch, content: bool) -> BatchRecord:  # noqa: FBT001  handed down
    closed = batch.closed
    return BatchRecord(
        log=None,
        generation=batch.announced.generation,
        run_id=batch.run_id,
        begun_at=batch.announced.at,
        closed_at=None if closed is None else closed.at,
        status=None if closed is None else closed.reason.status,
        code=None if closed is None else closed.reason.code,
        calls=tuple(_call(batch, call, content) for call in batch.calls),
    )


def _call(batch: JournaledBatch, call: ToolCall, content: bool) -> CallRecord:  # noqa: FBT001  handed down
    started, settled = batch.started.get(call.id), batch.settled.get(call.id)
    end = None if settled is None else settled.settlement
    both = started is not None and settled is not None
    # A synthetic end says nothing of the code; a reported one is the code's own.
    has_ended = end is not None and end.provenance == "reported"
    raw = call.raw_arguments if call.raw_arguments is not None else encode(call.arguments)
    return CallRecord(
        call_id=call.id,
        tool_name=call.name,
        status=None if end is None else _status(end),
        code=None if end is None else end.code,
        side_effect_state=None if end is None else end.side_effect_state,
        started_at=None if started is None else started.at,
        settled_at=None if settled is None else settled.at,
        ended_at=settled.at if has_ended and settled is not None else None,
        duration=max(0.0, settled.at - started.at) if both and started is not None and settled is not None else None,
        completion="not_started" if started is None else "settled" if has_ended else "unknown",
        arguments=cut(raw, _TEXT_BYTES) if content else None,
        content=cut(end.content if end.content is not None else end.message, _TEXT_BYTES) if content and end else None,
    )


def _status(end: Settlement) -> str:
    """Return how a call ended for the caller, as `ExecutionOutcome.status` says it."""
    if end.status == "success":
        return "succeeded"
    if end.provenance == "reported":
        return "failed" if end.status == "error" else "cancelled"
    if end.code in ("not_started", "timeout"):
        return "not_started" if end.code == "not_started" else "timed_out"
    if end.status == "error" and end.side_effect_state == "not_started":
        return "denied" if end.message.startswith(NOT_EXECUTED) else "failed"
    return "cancelled"
