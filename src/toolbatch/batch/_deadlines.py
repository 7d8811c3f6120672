"""Deadlines of one batch: a heap, and one timer of the loop for the earliest of them.

A timer a call would cost the loop as much as the rest of a start; most calls of a batch share one bound.
"""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from heapq import heappop, heappush

from ._execution import Execution

__all__ = ["Deadlines"]


class Deadlines:
    """Calls `expire(execution or None for the batch, when)` for every deadline that has passed, earliest first.

    Args:
        loop: Whose clock and timers are used.
        expire: Is called in the loop, never from `add`.
    """

    __slots__ = ("_armed_for", "_count", "_expire", "_heap", "_loop", "_timer")

    def __init__(self, loop: AbstractEventLoop, expire: Callable[[Execution | None, float], None]) -> None:
        self._loop = loop
        self._expire = expire
        self._heap: list[tuple[float, int, Execution | None]] = []
        self._count = 0  # breaks ties, in the order in which the deadlines were added
        self._timer: TimerHandle | None = None
        self._armed_for = float("inf")

    def add(self, when: float, execution: Execution | None) -> None:
        """Add a deadline, in loop time."""
        self._count += 1
        heappush(self._heap, (when, self._count, execution))
        if when < self._armed_for:
            self._arm(when)

    def fire(self) -> None:
        """Expire every deadline that has passed, then wait for the next."""
        heap = self._heap
        while heap and heap[0][0] <= self._loop.time():
            when, _, execution = heappop(heap)
            self._expire(execution, when)
        while heap and heap[0][2] is not None and heap[0][2].settlement is not None:
            heappop(heap)
        if heap:
            self._arm(heap[0][0])
        else:
            self.clear()

    def clear(self) -> None:
        """Forget all deadlines and stop the timer."""
        self._heap.clear()
        self._armed_for = float("inf")
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def stop(self) -> None:
        """Forget all deadlines, and who wanted to know of them: the batch is closed."""
        self.clear()
        self._expire = _ignore

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for = when
        self._timer = self._loop.call_at(when, self.fire)


def _ignore(_execution: Execution | None, _when: float) -> None:
    pass
