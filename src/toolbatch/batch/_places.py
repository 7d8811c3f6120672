"""Who may run at once: the bound on concurrency, tools that must run alone, and what two calls may not share (B13, T8)."""

from collections import deque

from ._drive import Work
from ._execution import Execution, Phase

__all__ = ["Places"]


class Places:
    """The places of one batch, and the queue for them, in order.

    A call holds its place while it has no outcome. One that was cut off and will not stop gives it back: a stuck tool must
    not keep the others waiting for ever.

    Args:
        limit: How many may run at once; infinity for no bound.
        locked: The names of what is in use, by this batch or others of the session.
    """

    __slots__ = ("_limit", "_locked", "_queue", "alone", "taken")

    def __init__(self, limit: float, locked: set[str]) -> None:
        self._limit = limit
        self._locked = locked
        self._queue: deque[tuple[Execution, Work]] = deque()  # those that are settled are skipped
        self.alone: Execution | None = None  # the last that was to run alone; it does while it has its place
        self.taken = 0  # invariant: the executions that have a place

    def try_take(self, execution: Execution, work: Work) -> bool:
        """Give a call its place if `work` may be launched now, with nobody in front of it; say whether it has it."""
        if self.alone is None and not self._queue and not work.is_alone and not work.resources:
            if self.taken >= self._limit:
                return False
            self.taken += 1  # the usual case, without another call
            execution.has_place = True
            return True
        if self._queue or not self._fits(work) or not self._locked.isdisjoint(work.resources):
            return False
        self.take(execution, work)
        return True

    def take(self, execution: Execution, work: Work) -> None:
        """Give a call its place."""
        self.taken += 1
        execution.has_place = True
        if work.is_alone:
            self.alone = execution
        if work.resources:
            self._locked.update(work.resources)

    def give_back(self, execution: Execution) -> None:
        """Take a call's place back."""
        execution.has_place = False
        self.taken -= 1

    def wait(self, execution: Execution, work: Work) -> None:
        """Let a call wait for a place."""
        if not execution.is_guided:
            execution.phase = Phase.QUEUED
            execution.work = work
        self._queue.append((execution, work))

    def withdraw(self, execution: Execution) -> None:
        """A guided call waits for its turn no longer."""
        self._queue = deque(entry for entry in self._queue if entry[0] is not execution)

    def next(self) -> tuple[Execution, Work] | None:
        """Return the next call that may be launched, in order.

        One that must run alone, or finds no place, holds back those behind it. One that waits for a resource holds back only those
        that want it too.
        """
        queue = self._queue
        while queue and queue[0][0].settlement is not None:
            queue.popleft()
        wanted: set[str] = set()
        for index, entry in enumerate(queue):
            execution, work = entry
            if execution.settlement is not None:
                continue
            if not self._fits(work):
                return None
            if self._locked.isdisjoint(work.resources) and wanted.isdisjoint(work.resources):
                del queue[index]  # of the first, nearly always
                if not execution.is_guided:
                    execution.work = None
                return entry
            if work.is_alone:
                return None
            wanted |= work.resources
        return None

    def clear(self) -> None:
        """Nobody waits any more."""
        self._queue.clear()

    def _fits(self, work: Work) -> bool:
        if self.alone is not None and self.alone.has_place:
            return False
        return self.taken == 0 if work.is_alone else self.taken < self._limit
