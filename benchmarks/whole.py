"""A whole turn of tools that do nothing: everything but the tools."""

import asyncio

from ._measure import LOOPS, Effort, compare, looped
from ._report import COLUMNS, Row, Table, cells
from ._sides import announce, by_hand, require_equal, with_toolbatch

__all__ = ["run"]


def run(effort: Effort) -> Table:
    """Measure it for batches of four sizes on both loops."""
    sizes = (1, 8) if effort.quick else (1, 8, 64, 1_000)
    rows = [_row(loop, size, effort) for loop in LOOPS for size in sizes]
    return Table(
        "A whole batch",
        "Tools that do nothing. Ours: `ToolBatch`, `start` and a timeout for each call, `snapshot()`, `openai_chat.results`.\n"
        "Theirs: `asyncio.TaskGroup`, `asyncio.timeout` for each call, `json.dumps`, the same messages. Times are of a batch.",
        "a CPU ratio of at most 1.0 from 8 calls on",
        ("loop", "calls", *COLUMNS),
        rows,
    )


def _row(loop: str, size: int, effort: Effort) -> Row:
    calls = announce(size)

    async def ours(times: int) -> None:
        for _ in range(times):
            await with_toolbatch(calls)

    async def theirs(times: int) -> None:
        for _ in range(times):
            await by_hand(calls)

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        require_equal(runner.run(with_toolbatch(calls)), runner.run(by_hand(calls)))
        comparison = compare(looped(runner, ours), looped(runner, theirs), effort)
    return Row((loop, f"{size:,}", *cells(comparison)), comparison.ratio, 1.0 if size >= 8 else None)
