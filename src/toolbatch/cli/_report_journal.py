"""A journal as a report sees it: the same records that a run log gives, as far as a journal knows them."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Final

from toolbatch.core import Settlement, ToolCall, cut, encode
from toolbatch.observe import BatchRecord, CallRecord, RunRecord
from toolbatch.operations._journal_rows import JournalRow, batch_of
from toolbatch.ports import JournaledBatch, OperationStoreError
from toolbatch.tools import NOT_EXECUTED

from ._files import FileError

__all__ = ["is_database", "read_journal"]

_TEXT_BYTES: Final = 1 << 16


def is_database(head: bytes) -> bool:
    """Whether a file that begins like this is one of SQLite's."""
    return head.startswith(b"SQLite format 3\0")


def read_journal(path: str, *, content: bool) -> RunRecord:
    """Read a SQLite journal, and change nothing in it; its process may go on meanwhile.

    Args:
        path: The file.
        content: Whether arguments and results, which a journal always has, are to be seen.

    Raises:
        FileError: It can't be read, or holds no journal.
    """
    try:
        connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        with closing(connection):
            rows = connection.execute(_READ)
            found = [_batch_or_none(list(own), content) for _, own in groupby(map(JournalRow._make, rows), _name)]
    except (sqlite3.Error, UnicodeDecodeError) as error:  # its complaint may quote what is no text
        raise FileError(f"{path}: holds no journal that can be read: {error}") from None
    batches = tuple(batch for batch in found if batch is not None)
    return RunRecord(
        batches=batches,
        lines=len(found),
        unreadable=len(found) - len(batches),
        unknown=0,
        dropped=0,
        cut_off=sum(batch.closed_at is None for batch in batches),
    )


_READ: Final = (
    "SELECT record.batch, kind, at, CASE kind WHEN 'announced' THEN run ELSE '' END, body FROM record "
    "JOIN batch ON batch.id = record.batch ORDER BY announced_at, batch.id, number"
)


def _name(row: JournalRow) -> str:
    return row.batch


def _batch_or_none(rows: Sequence[JournalRow], content: bool) -> BatchRecord | None:  # noqa: FBT001  handed down
    try:
        batch = batch_of(rows)
    except OperationStoreError:
        return None
    return None if batch is None else _batch(batch, content)


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
