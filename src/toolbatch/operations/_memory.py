"""A store in memory: for tests, and for runs that need no more than their own process."""

import time
from collections.abc import Callable
from typing import TypeVar, final

from toolbatch.ports import OperationRecord

from ._guard import Guard
from ._rules import Row
from ._store import Step, Store

__all__ = ["MemoryOperationStore"]

T = TypeVar("T")


@final
class MemoryOperationStore(Store):
    """Keeps claims in a dict: they end with the process, and nothing else is different from a durable store.

    It may be used from several event loops and threads. A forked child can't use it: its copy would guard nothing.

    Args:
        now: The host's clock, in seconds since the epoch.
        owner: What claims say of their claimant; `None` for this process's name.
    """

    def __init__(self, *, now: Callable[[], float] = time.time, owner: str | None = None) -> None:
        super().__init__(now=now, owner=owner)
        self._rows = _DictRows({})
        self._guard = Guard("this store in memory")

    async def aclose(self) -> None:
        """Refuse everything from now on."""
        self._guard.close()

    async def _apply(self, operation_id: str, step: Step[T], *, undo: Step[None] | None = None) -> T:
        del operation_id, undo  # nothing is awaited, so nobody can leave before the answer
        with self._guard.lock():
            return step(self._rows)

    async def _unresolved(self, prefix: str, claimed_before: float | None, limit: int) -> tuple[OperationRecord, ...]:
        with self._guard.lock():
            found = [
                row
                for row in self._rows.kept.values()
                if row.completed_at is None
                and row.id.startswith(prefix)
                and (claimed_before is None or row.claimed_at < claimed_before)
            ]
        found.sort(key=lambda row: (row.claimed_at, row.id))
        return tuple(row.record() for row in found[:limit])

    async def _purge(self, after: str, completed: float, unknown: float, most: int) -> tuple[int, str | None]:
        del after, most
        with self._guard.lock():
            kept = self._rows.kept
            old = [
                row.id
                for row in kept.values()
                if (row.claimed_at < unknown if row.completed_at is None else row.completed_at < completed)
            ]
            for operation_id in old:
                del kept[operation_id]
        return len(old), None


class _DictRows:
    """Rows in a dict, for the rules."""

    def __init__(self, kept: dict[str, Row]) -> None:
        self.kept = kept

    def get(self, operation_id: str) -> Row | None:
        return self.kept.get(operation_id)

    def add(self, row: Row) -> Row | None:
        there = self.kept.setdefault(row.id, row)
        return None if there is row else there

    def update(self, row: Row) -> None:
        self.kept[row.id] = row

    def delete(self, operation_id: str) -> None:
        del self.kept[operation_id]
