"""How long after a deadline the body goes on, with ten thousand tools pending."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from statistics import median, quantiles
from typing import Any, Final

from toolbatch import ToolBatch, ToolCall

from ._measure import LOOPS, Effort
from ._report import Row, Table
from ._sides import LIMITS, announce

__all__ = ["run"]

Hang = Callable[[], Awaitable[object]]
Waiter = Callable[[Sequence[ToolCall], Hang, float], Coroutine[Any, Any, float]]
"""Makes every call pending, waits for a deadline so many seconds ahead, and returns how late its body went on.

Infinitely late, where the deadline came before all were pending: the measurement would be of something else.
"""

_ALLOWED_MS: Final = 5.0


async def asleep() -> None:
    """Hang as a tool that waits for the network does."""
    await asyncio.sleep(3600)


def waiting() -> Hang:
    """Return a tool that hangs in an event which all of them share."""
    event = asyncio.Event()

    async def wait() -> None:
        await event.wait()

    return wait


async def batch_deadline(calls: Sequence[ToolCall], hang: Hang, seconds: float) -> float:
    """One deadline for the batch."""
    # Both loops' clocks are the monotonic one; uvloop's stands still within a turn of the loop.
    deadline = time.monotonic() + seconds
    async with ToolBatch(calls, deadline=deadline, limits=LIMITS) as batch:
        for call in batch.calls:
            batch.start(call.id, hang)
        in_time = await _entered_before(deadline)
        await batch.snapshot()
        return time.monotonic() - deadline if in_time else math.inf


async def call_deadlines(calls: Sequence[ToolCall], hang: Hang, seconds: float) -> float:
    """A deadline for each call, so many seconds after its start; they pass in as close a row as the starts."""
    loop = asyncio.get_running_loop()
    async with ToolBatch(calls, call_timeout=seconds, limits=LIMITS) as batch:
        first_deadline = loop.time() + seconds
        for call in batch.calls:
            batch.start(call.id, hang)
        last_deadline = loop.time() + seconds
        in_time = await _entered_before(first_deadline)
        await batch.snapshot()
        return time.monotonic() - last_deadline if in_time else math.inf


async def bare_timer(calls: Sequence[ToolCall], hang: Hang, seconds: float) -> float:
    """As many tasks, and one timer that wakes the body and nothing else: what the machine allows."""
    loop = asyncio.get_running_loop()
    deadline = time.monotonic() + seconds
    tasks = [asyncio.ensure_future(hang()) for _ in calls]
    in_time = await _entered_before(deadline)
    awake = loop.create_future()
    loop.call_at(deadline, awake.set_result, None)
    await awake
    late = time.monotonic() - deadline
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return late if in_time else math.inf


async def by_hand(calls: Sequence[ToolCall], hang: Hang, seconds: float) -> float:
    """A task group under one timeout, which waits until each task has been cancelled."""
    deadline = time.monotonic() + seconds
    in_time = False
    with suppress(TimeoutError):
        async with asyncio.timeout_at(deadline), asyncio.TaskGroup() as group:
            for _ in calls:
                group.create_task(_hung(hang))
            in_time = await _entered_before(deadline)
    return time.monotonic() - deadline if in_time else math.inf


def run(effort: Effort) -> Table:
    """Measure each way on both loops, in turns."""
    calls = announce(effort.many)
    cases: list[tuple[str, Waiter, Callable[[], Hang], float | None]] = [
        ("ToolBatch, tools asleep", batch_deadline, lambda: asleep, _ALLOWED_MS),
        ("ToolBatch, tools await an event", batch_deadline, waiting, _ALLOWED_MS),
        ("ToolBatch, a deadline for each call", call_deadlines, lambda: asleep, None),
        ("a bare timer, tasks asleep", bare_timer, lambda: asleep, None),
        ("task group and timeout, tasks asleep", by_hand, lambda: asleep, None),
    ]
    rows = []
    for loop, factory in LOOPS.items():
        with _silent_log(), asyncio.Runner(loop_factory=factory) as runner:
            late: dict[str, list[float]] = {name: [] for name, *_ in cases}
            for _ in range(2 if effort.quick else 10):
                for name, waiter, make, _ in cases:
                    late[name].append(_late(runner, waiter, calls, make(), 0.1 if effort.quick else 0.5))
        rows += [_row(loop, name, late[name], goal) for name, _, _, goal in cases]
    return Table(
        f"From a deadline to the body, with {len(calls):,} pending calls",
        "Milliseconds from the moment of the deadline until the line after `await batch.snapshot()` runs. The bare timer shows\n"
        "what the machine adds; the task group is what people write, and goes on only when every task has ended.",
        f"at most {_ALLOWED_MS:g} ms, nine times of ten",
        ("loop", "what waits", "min, ms", "median", "90th percentile", "max"),
        rows,
    )


async def _entered_before(deadline: float) -> bool:
    """Let all the tools begin, and return whether they have before the deadline."""
    await asyncio.sleep(0)
    return time.monotonic() < deadline


@contextmanager
def _silent_log() -> Iterator[None]:
    """Keep out of the figures what a terminal needs to show that a deadline was late."""
    logger = logging.getLogger("toolbatch")
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = False


async def _hung(hang: Hang) -> None:
    await hang()


def _late(runner: asyncio.Runner, waiter: Waiter, calls: Sequence[ToolCall], hang: Hang, seconds: float) -> float:
    """Return how late a body was, in milliseconds; on a machine that is too busy, wait for a later deadline."""
    while True:
        late = runner.run(waiter(calls, hang, seconds))
        if late != math.inf:
            return 1000 * late
        seconds *= 2


def _row(loop: str, name: str, late: Sequence[float], goal: float | None) -> Row:
    ninetieth = quantiles(late, n=10, method="inclusive")[-1]
    figures = (min(late), median(late), ninetieth, max(late))
    return Row((loop, name, *[f"{figure:,.2f}" for figure in figures]), ninetieth, goal)
