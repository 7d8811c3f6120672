"""A journal in an SQLite file: its own, or that of an operation store, whose thread and syncs it then shares (D4)."""

import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, cast, final

from toolbatch.ports import JournalRecord

from ._database import Database
from ._journal import BaseJournal
from ._journal_rows import COLUMNS, JournalRow, rows_of
from ._sqlite import SqliteOperationStore, nothing, writer_of

if TYPE_CHECKING:
    from ._writer import Writer

__all__ = ["SqliteJournal"]

_READ: Final = (
    f"SELECT {COLUMNS} FROM record JOIN batch ON batch.id = record.batch WHERE record.batch = ? ORDER BY number"  # noqa: S608
)
_NAMES: Final = (
    "SELECT id FROM batch WHERE run = ? ORDER BY "
    "(SELECT min(number) FROM record WHERE record.batch = batch.id) DESC LIMIT ?"  # by no time: clocks are set back
)
_UNFINISHED: Final = (
    "SELECT run FROM batch WHERE closed_at IS NULL GROUP BY run ORDER BY min(announced_at), min(id) LIMIT ?"
)


@final
class SqliteJournal(BaseJournal):
    """Keeps the journal of batches in an SQLite file, synced to the disk before it is told.

    What `SqliteOperationStore` says of its file holds for this one too: a local disk, no opening beside it, no fork.

    Args:
        place: The file, made if it is missing. Or an `SqliteOperationStore`: the journal is then in its file, written by its
            thread, and synced together with its claims; the store has to be closed by itself, after the journal.
        exclusive: As for `SqliteOperationStore`; of a file only.
        lock_timeout: Likewise.

    Raises:
        InvalidTypeError: `place` is no path and no store, or `lock_timeout` no number.
        InvalidInputError: `place` is empty or `:memory:`, or `lock_timeout` is negative or not finite.
    """

    def __init__(
        self,
        place: str | os.PathLike[str] | SqliteOperationStore,
        *,
        exclusive: bool = False,
        lock_timeout: float = 5.0,
    ) -> None:
        self._owns_writer = not isinstance(place, SqliteOperationStore)
        self._writer: Writer = writer_of(place, exclusive=exclusive, lock_timeout=lock_timeout)

    async def aclose(self) -> None:
        """Write what was asked for; close the file, if it is this journal's own. Cancelled, that goes on without the caller."""
        if self._owns_writer:
            await self._writer.aclose()

    async def __aenter__(self) -> Self:
        """Open the file, and make or migrate its tables; a journal that can't be opened is closed."""
        try:
            await self._writer.ask(nothing)
        except BaseException:
            if self._owns_writer:
                self._writer.close()
            raise
        return self

    async def _append(self, records: Sequence[JournalRecord]) -> None:
        await self._writer.ask(partial(_append, records=records))

    async def _rows(self, batch_id: str) -> Sequence[JournalRow]:
        found = await self._writer.ask(lambda database: database.execute(_READ, (batch_id,)))
        return [JournalRow(*row) for row in found]

    async def _names(self, run_id: str, most: int | None) -> Sequence[str]:
        limit = -1 if most is None else most
        found = await self._writer.ask(lambda database: database.execute(_NAMES, (run_id, limit)))
        return [name for (name,) in found]

    async def _unfinished(self, limit: int) -> Sequence[str]:
        found = await self._writer.ask(lambda database: database.execute(_UNFINISHED, (limit,)))
        return [name for (name,) in found]

    async def _purge(self, before: float, most: int) -> int:
        return cast("int", await self._writer.ask(partial(_purge, before=before, most=most)))

    def __del__(self) -> None:
        writer: Writer | None = getattr(self, "_writer", None)  # None where the constructor raised
        if writer is not None and self._owns_writer and writer.is_running and not sys.is_finalizing():
            writer.close()  # first, since a warning may be an error
            warnings.warn(f"{self!r} was never closed; use `async with` or aclose()", ResourceWarning, stacklevel=2)

    def __repr__(self) -> str:
        return f"<SqliteJournal in {self._writer.path!r}>"


def _append(database: Database, records: Sequence[JournalRecord]) -> None:
    def is_known(name: str) -> bool:
        return bool(database.execute("SELECT 1 FROM batch WHERE id = ?", (name,)))

    rows = rows_of(records, is_known)  # all of it is looked at before anything is written
    for row in rows:
        if row.kind == "announced":
            values: tuple[Any, ...] = (row.batch, row.run, row.at)
            database.execute("INSERT INTO batch (id, run, announced_at) VALUES (?, ?, ?)", values)
        elif row.kind in ("closed", "resumed"):
            closed_at = row.at if row.kind == "closed" else None
            database.execute("UPDATE batch SET closed_at = ? WHERE id = ?", (closed_at, row.batch))
    database.execute_many(
        "INSERT INTO record (batch, kind, at, body) VALUES (?, ?, ?, ?)",
        [(row.batch, row.kind, row.at, row.body) for row in rows],
    )


def _purge(database: Database, before: float, most: int) -> int:
    found = database.execute("SELECT id FROM batch WHERE closed_at < ? LIMIT ?", (before, most))
    database.execute_many("DELETE FROM record WHERE batch = ?", found)
    database.execute_many("DELETE FROM batch WHERE id = ?", found)
    return len(found)
