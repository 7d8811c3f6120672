"""Who may run at once: the bound on concurrency, and tools that must run alone (B13, T8)."""

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
    """

    __slots__ = ("_limit", "_queue", "alone", "taken")

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._queue: deque[Execution] = deque()  # those that are settled are skipped
        self.alone: Execution | None = None  # the last that was to run alone; it does while it has no outcome
        self.taken = 0  # invariant: the calls that were launched and have no outcome

    def is_free(self, work: Work) -> bool:
        """Whether `work` may be launched now, with nobody in front of it."""
        if self.alone is None and not self._queue and not work.is_alone:
            return self.taken < self._limit  # the usual case, without another call
        return not self._queue and self._fits(work)

    def wait(self, execution: Execution, work: Work) -> None:
        """Let a call wait for a place."""
        execution.phase = Phase.QUEUED
        execution.work = work
        self._queue.append(execution)

    def next(self) -> tuple[Execution, Work] | None:
        """Return the next call that may be launched, in order: one that must run alone holds back those behind it."""
        while self._queue:
            execution = self._queue[0]
            work = execution.work
            if execution.settlement is None and work is not None:
                if not self._fits(work):
                    return None
                execution.work = None
                self._queue.popleft()
                return execution, work
            self._queue.popleft()
        return None

    def clear(self) -> None:
        """Nobody waits any more."""
        self._queue.clear()

    def _fits(self, work: Work) -> bool:
        if self.alone is not None and self.alone.settlement is None:
            return False
        return self.taken == 0 if work.is_alone else self.taken < self._limit
