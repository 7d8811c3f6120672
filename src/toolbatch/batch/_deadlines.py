"""Deadlines of one batch: a heap, and one timer of the loop for the earliest of them.

A timer a call would cost the loop as much as the rest of a start; most calls of a batch share one bound.
"""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from heapq import heappop, heappush

from toolbatch.observe import log_event

from ._execution import Execution, Phase

__all__ = ["Deadlines", "tell_batch_timeout", "tell_call_timeout"]

_LATE = 0.1
"""Seconds: a deadline that fires later than this is named in the outcome and the log (B14)."""


class Deadlines:
    """Calls `expire(execution or None for the batch, late_by or None)` for every deadline that has passed, earliest first.

    Args:
        loop: Whose clock and timers are used.
        expire: Is called in the loop, never from `add`.
    """

    __slots__ = ("_armed_for", "_count", "_expire", "_heap", "_loop", "_timer")

    def __init__(self, loop: AbstractEventLoop, expire: Callable[[Execution | None, float | None], None]) -> None:
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
        heap, now = self._heap, self._loop.time()
        if heap and now - heap[0][0] > _LATE:
            self._tell(now)
        while heap and heap[0][0] <= self._loop.time():
            when, _, execution = heappop(heap)
            late_by = now - when
            self._expire(execution, late_by if late_by > _LATE else None)
        while heap and heap[0][2] is not None and heap[0][2].settlement is not None:
            heappop(heap)
        if heap:
            self._arm(heap[0][0])
        else:
            self.clear()

    def _tell(self, now: float) -> None:
        # Once a firing: a thousand late calls are one blocked loop.
        late = [entry for entry in self._heap if now - entry[0] > _LATE and _is_open(entry[2])]
        if late:
            when, _, execution = min(late)
            whose = "the batch" if execution is None else f"call {execution.call.id} of {execution.call.name}"
            others = f" and {len(late) - 1} more" if len(late) > 1 else ""
            log_event(
                "loop_blocked",
                "the event loop was blocked: the deadline of %s%s fired %.3f s late",
                whose,
                others,
                now - when,
                late_by=now - when,
                late_calls=len(late),
                call_id=None if execution is None else execution.call.id,
                tool_name=None if execution is None else execution.call.name,
            )

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


def _is_open(execution: Execution | None) -> bool:
    return execution is None or (execution.settlement is None and execution.phase is not Phase.ENDED)


def _ignore(_execution: Execution | None, _late_by: float | None) -> None:
    pass


def tell_call_timeout(execution: Execution, late_by: float | None) -> None:
    """Log that a call's own time is over."""
    log_event(
        "call_timed_out",
        "%s has taken %g seconds, its time in call %s",
        execution.call.name,
        execution.timeout,
        execution.call.id,
        timeout=execution.timeout,
        late_by=late_by,
        **execution.identity,
    )


def tell_batch_timeout(generation: int, bound: float, late_by: float | None, open_calls: int) -> None:
    """Log that a batch's time is over."""
    log_event(
        "batch_timed_out",
        "the turn's %g seconds are over with %d calls open",
        bound,
        open_calls,
        generation=generation,
        timeout=bound,
        late_by=late_by,
        open_calls=open_calls,
    )
