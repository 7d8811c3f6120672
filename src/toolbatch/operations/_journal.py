"""What every journal does before and after its own work, and the one in memory."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import final

from toolbatch.core import InvalidInputError, preview, require_text
from toolbatch.ports import (
    MAX_OPERATION_ID_BYTES,
    JournaledBatch,
    JournalRecord,
)

from ._guard import Guard
from ._journal_rows import JournalRow, batch_of, rows_of
from ._store import Kept, seconds_since_epoch

__all__ = ["BaseJournal", "MemoryJournal"]

_PURGED_AT_ONCE = 200
"""Batches that one step of a purge deletes, so that others wait for no longer than that takes."""


class BaseJournal(Kept):
    """The methods of a `Journal`, over what a kind of journal has to do by itself: see its docstring for promises."""

    async def append(self, records: Sequence[JournalRecord]) -> None:
        """Write records in their order, all or none; see `ports.Journal`, as for the other methods."""
        if records:
            await self._append(tuple(records))

    async def read(self, batch_id: str) -> JournaledBatch | None:
        """Return a batch."""
        return batch_of(await self._rows(_name(batch_id, "batch_id")))

    async def last(self, run_id: str) -> JournaledBatch | None:
        """Return the latest batch of a run."""
        names = await self._names(_name(run_id, "run_id"), 1)
        return await self.read(names[0]) if names else None

    async def batches(self, run_id: str) -> tuple[JournaledBatch, ...]:
        """Return all batches of a run, oldest first."""
        names = await self._names(_name(run_id, "run_id"), None)
        found = [await self.read(name) for name in reversed(names)]
        return tuple(batch for batch in found if batch is not None)  # one may be purged meanwhile

    async def unfinished(self, *, limit: int = 1000) -> tuple[str, ...]:
        """Return the names of runs that have an open batch, oldest first."""
        if type(limit) is not int or limit < 1:
            raise InvalidInputError(f"limit must be a positive int, not {preview(limit)}")
        return tuple(await self._unfinished(limit))

    async def purge(self, closed_before: float) -> int:
        """Forget batches that were closed before a time, and return how many."""
        before = seconds_since_epoch(closed_before, "closed_before")
        purged = 0
        while count := await self._purge(before, _PURGED_AT_ONCE):
            purged += count
        return purged

    @abstractmethod
    async def _append(self, records: Sequence[JournalRecord]) -> None:
        """Write records, durable when this returns, even if the caller is cancelled."""

    @abstractmethod
    async def _rows(self, batch_id: str) -> Sequence[JournalRow]:
        """Return a batch's rows, in their order."""

    @abstractmethod
    async def _names(self, run_id: str, most: int | None) -> Sequence[str]:
        """Return the names of a run's batches, latest first."""

    @abstractmethod
    async def _unfinished(self, limit: int) -> Sequence[str]:
        """Return the names of runs that have an open batch, oldest first."""

    @abstractmethod
    async def _purge(self, before: float, most: int) -> int:
        """Delete some of the batches that were closed before a time, and return how many."""


@final
class MemoryJournal(BaseJournal):
    """Keeps records in lists: for tests, and for runs that need no more than their own process.

    It may be used from several event loops and threads. A forked child can't use it.
    """

    def __init__(self) -> None:
        self._batches: dict[str, list[JournalRow]] = {}
        self._guard = Guard("this journal in memory")

    async def aclose(self) -> None:
        """Refuse everything from now on."""
        self._guard.close()

    async def _append(self, records: Sequence[JournalRecord]) -> None:
        with self._guard.lock():
            for row in rows_of(records, self._batches.__contains__):
                self._batches.setdefault(row.batch, []).append(row)

    async def _rows(self, batch_id: str) -> Sequence[JournalRow]:
        with self._guard.lock():
            return tuple(self._batches.get(batch_id, ()))

    async def _names(self, run_id: str, most: int | None) -> Sequence[str]:
        with self._guard.lock():
            return [name for name, rows in reversed(self._batches.items()) if rows[0].run == run_id][:most]

    async def _unfinished(self, limit: int) -> Sequence[str]:
        with self._guard.lock():
            runs = [rows[0].run for rows in self._batches.values() if _closed_at(rows) is None]
        return list(dict.fromkeys(runs))[:limit]

    async def _purge(self, before: float, most: int) -> int:
        with self._guard.lock():
            old = [name for name, rows in self._batches.items() if (at := _closed_at(rows)) is not None and at < before]
            for name in old[:most]:
                del self._batches[name]
        return len(old[:most])


def _closed_at(rows: Sequence[JournalRow]) -> float | None:
    ends = [row for row in rows if row.kind in ("closed", "resumed")]
    return ends[-1].at if ends and ends[-1].kind == "closed" else None


def _name(value: object, what: str) -> str:
    return require_text(value, what, MAX_OPERATION_ID_BYTES)
