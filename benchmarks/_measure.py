"""Two sides, in turns, in one process: whatever else the machine does, it does to both.

The main figure is CPU time of this process, which other processes disturb least; wall time is the second. The collector
stays on, as in real life; it is only run once before each sample, so that no side pays for the other's garbage.
"""

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from statistics import median
from typing import Any, Final, NamedTuple

import uvloop

__all__ = ["FULL", "LOOPS", "QUICK", "Comparison", "Effort", "Side", "Times", "compare", "looped"]

LOOPS: Final[dict[str, Callable[[], asyncio.AbstractEventLoop]]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}

Side = Callable[[int], object]
"""Does the work that is measured, as often as it is told."""


class Effort(NamedTuple):
    """How much is measured.

    Attributes:
        rounds: How many samples each side gives.
        sample: The seconds of CPU that one sample should take, at least; work that takes longer is done once a sample.
        many: How many calls stand for "ten thousand".
        quick: Whether the figures mean nothing, and only the code is tried.
    """

    rounds: int
    sample: float
    many: int
    quick: bool


FULL: Final = Effort(rounds=31, sample=0.02, many=10_000, quick=False)
QUICK: Final = Effort(rounds=2, sample=0.0, many=50, quick=True)


class Times(NamedTuple):
    """Seconds that one run took, sample by sample."""

    cpu: list[float]
    wall: list[float]


class Comparison(NamedTuple):
    """What two sides took."""

    ours: Times
    theirs: Times

    @property
    def ratio(self) -> float:
        """Ours to theirs: the medians of CPU time. The figure that the goals are about."""
        return median(self.ours.cpu) / median(self.theirs.cpu)

    @property
    def ratio_of_best(self) -> float:
        """The same of the minima, which are the least disturbed samples."""
        return min(self.ours.cpu) / min(self.theirs.cpu)

    @property
    def wall_ratio(self) -> float:
        """The same of the medians of wall time."""
        return median(self.ours.wall) / median(self.theirs.wall)


def compare(ours: Side, theirs: Side, effort: Effort, rounds: int | None = None) -> Comparison:
    """Measure two sides in turns; who goes first alternates.

    Args:
        ours: One side.
        theirs: The other.
        effort: How much to measure.
        rounds: How many samples, where the work is so long that `effort.rounds` are too many.
    """
    repeats = _repeats(ours, effort), _repeats(theirs, effort)
    result = Comparison(Times([], []), Times([], []))
    turns = [(ours, repeats[0], result.ours), (theirs, repeats[1], result.theirs)]
    for _ in range(rounds or effort.rounds):
        for side, times, into in turns:
            cpu, wall = _sample(side, times, effort)
            into.cpu.append(cpu)
            into.wall.append(wall)
        turns.reverse()
    return result


def looped(runner: asyncio.Runner, work: Callable[[int], Coroutine[Any, Any, object]]) -> Side:
    """Return the side that runs `work` in the runner's loop."""
    return lambda times: runner.run(work(times))


def _sample(side: Side, times: int, effort: Effort) -> tuple[float, float]:
    """Return the CPU and the wall seconds of one run, as a mean of `times` runs."""
    if not effort.quick:
        gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    side(times)
    return (time.process_time() - cpu) / times, (time.perf_counter() - wall) / times


def _repeats(side: Side, effort: Effort) -> int:
    side(1)  # warm
    if not effort.sample:
        return 1
    cpu, _ = _sample(side, 3, effort)
    return max(1, round(effort.sample / cpu)) if cpu else 1
