"""What one call costs in ever larger batches: a cost that grows with the batch would show here."""

import asyncio

from ._measure import LOOPS, Comparison, Effort, compare, looped
from ._report import COLUMNS, Row, Table, cells
from ._sides import announce, by_hand, require_equal, with_toolbatch

__all__ = ["run"]


def run(effort: Effort) -> Table:
    """Measure batches of three sizes; each is compared with the smallest."""
    sizes = (10, 100) if effort.quick else (1_000, 10_000, 100_000)
    measured = {size: _measure(size, effort) for size in sizes}
    first = measured[sizes[0]]
    return Table(
        "Cost of a call in ever larger batches",
        "As above, on asyncio; times are of one call. Growth is the CPU ratio of a size to that of the smallest: at 1.0 our\n"
        "calls grow dearer just as fast as those by hand.",
        "a growth of at most 1.0",
        ("calls", *COLUMNS, "growth"),
        [_row(size, comparison, first) for size, comparison in measured.items()],
    )


def _measure(size: int, effort: Effort) -> Comparison:
    calls = announce(size)

    async def ours(times: int) -> None:
        for _ in range(times):
            await with_toolbatch(calls)

    async def theirs(times: int) -> None:
        for _ in range(times):
            await by_hand(calls)

    with asyncio.Runner(loop_factory=LOOPS["asyncio"]) as runner:
        require_equal(runner.run(with_toolbatch(calls)), runner.run(by_hand(calls)))
        return compare(looped(runner, ours), looped(runner, theirs), effort, rounds=_rounds(size, effort))


def _rounds(size: int, effort: Effort) -> int:
    return 5 if size >= 100_000 else effort.rounds


def _row(size: int, comparison: Comparison, first: Comparison) -> Row:
    growth = comparison.ratio / first.ratio
    goal = None if comparison is first else 1.0
    return Row((f"{size:,}", *cells(comparison, per=size), f"{growth:.2f}"), growth, goal)
