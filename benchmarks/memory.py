"""What a call that is pending occupies."""

import asyncio
import gc
import tracemalloc
from collections.abc import Sequence
from statistics import median

from toolbatch import ToolBatch, ToolCall

from ._measure import Effort
from ._report import Row, Table
from ._sides import LIMITS, TIMEOUT, announce

__all__ = ["run"]


def run(effort: Effort) -> Table:
    """Measure what many pending calls add to the heap, against as many bare tasks."""
    calls = announce(effort.many)
    ours, theirs = [], []
    tracemalloc.start()
    try:
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            for _ in range(2 if effort.quick else 5):
                ours.append(runner.run(with_toolbatch(calls)) / len(calls))
                theirs.append(runner.run(bare(calls)) / len(calls))
    finally:
        tracemalloc.stop()
    ratio = median(ours) / median(theirs)
    return Table(
        "Memory of a pending call",
        "Bytes that a tool waiting for an event adds to Python's heap (tracemalloc), without the announced call itself.\n"
        "Ours: a started call with a timeout. Theirs: a task and a timer of the loop that cancels it.",
        "a ratio of at most 1.5",
        ("calls", "ours, bytes: min / median", "theirs, bytes: min / median", "ratio"),
        [Row((f"{len(calls):,}", _bytes(ours), _bytes(theirs), f"{ratio:.2f}"), ratio, 1.5)],
    )


async def with_toolbatch(calls: Sequence[ToolCall]) -> int:
    """Hold the calls in a `ToolBatch`."""
    forever = asyncio.Event()

    async def tool() -> None:
        await forever.wait()

    before = _traced()
    async with ToolBatch(calls, call_timeout=TIMEOUT, limits=LIMITS) as batch:
        for call in batch.calls:
            batch.start(call.id, tool)
        await asyncio.sleep(0)
        added = _traced() - before
        forever.set()
    return added


async def bare(calls: Sequence[ToolCall]) -> int:
    """Hold as many tasks, each with a timer."""
    forever = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def tool() -> None:
        await forever.wait()

    before = _traced()
    tasks, timers = [], []
    for _ in calls:
        task = loop.create_task(tool())
        tasks.append(task)
        timers.append(loop.call_later(TIMEOUT, task.cancel))
    await asyncio.sleep(0)
    added = _traced() - before
    forever.set()
    await asyncio.wait(tasks)
    for timer in timers:
        timer.cancel()
    return added


def _traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _bytes(values: Sequence[float]) -> str:
    return f"{min(values):,.0f} / {median(values):,.0f}"
