"""A loop whose clock jumps: when nothing is left to run, it is at once the time of the next timer.

An hour's deadline takes no time, and fires at its exact moment. A loop without timers waits for real, so that threads
and signals can still wake it.
"""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from tests.batch.kit import release_all
from toolbatch.batch import let_go_count

__all__ = ["START", "ClockLoop", "now", "run", "turned"]

P = ParamSpec("P")
T = TypeVar("T")

START = 1000.0
"""What the clock says when a loop is made."""

MAX_TURNS = 200_000
"""A run that needs more turns than this spins."""


class _Selector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.jump: Callable[[float], None] = lambda _seconds: None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            found = super().select(20)  # threads and signals wake it
            if not found:
                raise AssertionError("nothing has happened for 20 seconds: the loop waits for ever")
            return found
        events = super().select(0)
        if timeout > 0 and not events:
            self.jump(timeout)
        return events


class ClockLoop(asyncio.SelectorEventLoop):
    """An asyncio loop on a clock that jumps.

    Attributes:
        now: What the clock says.
        turns: How often the loop has gone round.
        hooks: What to call before a turn, by its number.
        complaints: What the loop's exception handler was told.
    """

    def __init__(self) -> None:
        selector = _Selector()
        super().__init__(selector)
        selector.jump = self._jump
        self.now = START
        self.turns = 0
        self.hooks: dict[int, Callable[[], object]] = {}
        self.complaints: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _loop, context: self.complaints.append(context))

    def time(self) -> float:
        return self.now

    def _jump(self, seconds: float) -> None:
        timers = self._scheduled  # type: ignore[attr-defined]  # the exact moment, which adding `seconds` could miss
        self.now = max(self.now, timers[0].when()) if timers else self.now + seconds

    def _run_once(self) -> None:
        self.turns += 1
        if self.turns > MAX_TURNS:
            raise AssertionError("the loop spins")
        hook = self.hooks.pop(self.turns, None)
        if hook is not None:
            hook()
        super()._run_once()  # type: ignore[misc]  # the one place that every turn passes


def run(main: Coroutine[Any, Any, T], loop: ClockLoop | None = None, *, may_leave: bool = False) -> T:
    """Run `main` on a jumping clock; fail if it leaves a task or anything that was let go behind (B9)."""
    with asyncio.Runner(loop_factory=lambda: loop or ClockLoop()) as runner:
        used = runner.get_loop()
        let_go_before = let_go_count()  # by a test that failed
        assert isinstance(used, ClockLoop)
        try:
            result = runner.run(main)
        except BaseException:
            release_all()
            raise
        if not may_leave:
            assert not asyncio.all_tasks(used), f"tasks left behind: {asyncio.all_tasks(used)}"
            assert let_go_count() == let_go_before, "executions were let go and have not ended"
        assert not used.complaints, used.complaints
        return result


def turned(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Make a coroutine function a test that runs on a jumping clock."""

    @functools.wraps(test)
    def on_the_clock(*args: P.args, **kwargs: P.kwargs) -> None:
        run(test(*args, **kwargs))

    return on_the_clock


def now() -> float:
    """Return the time of the running loop's clock, from 0 at the loop's making on a `ClockLoop`."""
    loop = asyncio.get_running_loop()
    return round(loop.time() - (START if isinstance(loop, ClockLoop) else 0.0), 6)
