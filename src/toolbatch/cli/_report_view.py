"""What a report shows of a run: which calls, on which time axis, in which segments. Drawing and wording come after it."""

import itertools
import math
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from toolbatch.observe import BatchRecord, CallRecord, RunRecord

__all__ = [
    "KINDS",
    "OPEN",
    "STATUSES",
    "Axis",
    "BatchView",
    "Gap",
    "Kind",
    "Row",
    "Segment",
    "View",
    "make_view",
    "status_of",
    "took",
]

Kind = Literal["waiting", "approval", "running", "closed", "late"]

KINDS: Final[Mapping[Kind, str]] = {
    "waiting": "waiting to run",
    "approval": "waiting for an approval",
    "running": "running",
    "closed": "has its outcome, its batch goes on",
    "late": "ran on after its outcome, or may have",
}
"""What a call can be doing, in the order in which it does."""

OPEN: Final = "open"
"""The status of a call of which no line tells an outcome."""

STATUSES: Final = ("succeeded", "failed", "timed_out", "cancelled", "denied", "not_started", "pending", OPEN)

_STRETCH: Final = 1.5
"""How far beyond its batch's own time an axis follows a call that runs on: so much longer, and then it is cut."""

_SHORTEST: Final = 1e-3
"""Seconds that an axis shows at least."""


class Segment(NamedTuple):
    """What a call did for some time.

    Attributes:
        kind: What.
        start: From when, in seconds since the epoch.
        end: Until when.
        is_open: Whether it went on longer than that: nothing says until when, or the axis does not reach so far.
        length: Its whole length in seconds, also beyond the axis; `None` where nothing says how long.
    """

    kind: Kind
    start: float
    end: float
    is_open: bool
    length: float | None


class Axis(NamedTuple):
    """A batch's own time axis, in seconds since the epoch."""

    start: float
    end: float

    def share(self, at: float) -> float:
        """Return where a time is, from 0 to 1."""
        return min(1.0, max(0.0, (at - self.start) / (self.end - self.start)))

    def ticks(self, most: int = 4) -> list[float]:
        """Return round numbers of seconds after the start, the first of them 0."""
        length = self.end - self.start
        step = 10.0 ** math.floor(math.log10(length / most))
        step = next(step * factor for factor in (1, 2, 5, 10) if length / (step * factor) <= most)
        return [number * step for number in range(int(length / step + 1e-9) + 1)]


@dataclass(frozen=True, slots=True)
class Row:
    """One call that is shown.

    Attributes:
        call: What is known of it.
        status: Its status, `open` where it has none.
        segments: What it did.
    """

    call: CallRecord
    status: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class BatchView:
    """One batch of which at least a call is shown, or which has none.

    Attributes:
        record: What is known of it.
        axis: Its time axis.
        rows: Its calls that are shown.
        left_out: How many are not, by status.
    """

    record: BatchRecord
    axis: Axis
    rows: tuple[Row, ...]
    left_out: Mapping[str, int]

    @property
    def own_end(self) -> float:
        """When it was closed, as far as that is known; calls may run on."""
        return self.axis.end if self.record.closed_at is None else self.record.closed_at


@dataclass(frozen=True, slots=True)
class Gap:
    """Consecutive batches of which no call is shown.

    Attributes:
        first: The first one.
        last: The last one.
        batches: How many.
        axis: Their time.
        left_out: How many calls they have, by status.
    """

    first: BatchRecord
    last: BatchRecord
    batches: int
    axis: Axis
    left_out: Mapping[str, int]

    @property
    def own_end(self) -> float:
        """When the last of them ended."""
        return self.axis.end


@dataclass(frozen=True, slots=True)
class View:
    """What a report shows.

    Attributes:
        run: All that is known.
        parts: The batches, in order, and what stands for those that are not shown.
        axis: The time of the whole run; `None` where there is none.
        calls: How many calls there are.
        shown: How many of them are shown.
    """

    run: RunRecord
    parts: tuple[BatchView | Gap, ...]
    axis: Axis | None
    calls: int
    shown: int

    @property
    def rows(self) -> Iterator[Row]:
        """The calls that are shown."""
        return (row for part in self.parts if isinstance(part, BatchView) for row in part.rows)


def took(call: CallRecord) -> float | None:
    """Return how long a call took until it had its outcome, in seconds; `None` where it was not started, or nothing says so."""
    if call.started_at is None or call.settled_at is None:
        return call.duration
    until = call.settled_at if call.ended_at is None else min(call.settled_at, call.ended_at)
    return max(0.0, until - call.started_at)


def status_of(call: CallRecord) -> str:
    """Return a call's status, `open` where it has none or one that is not known."""
    return call.status if call.status in STATUSES else OPEN


def make_view(run: RunRecord, limit: int) -> View:
    """Choose what is shown of a run: at most `limit` calls, those that went wrong or late first, then the slowest.

    They keep their order. What is not shown is counted.
    """
    every = [call for batch in run.batches for call in batch.calls]
    chosen = {id(call) for call in (sorted(every, key=_rank)[:limit] if len(every) > limit else every)}
    axes = {id(batch): _axis(batch) for batch in run.batches}
    last = max((axis.end for axis in axes.values()), default=0.0)

    def is_shown(batch: BatchRecord) -> bool:
        return any(id(call) in chosen for call in batch.calls) or (not batch.calls and len(run.batches) <= limit)

    parts: list[BatchView | Gap] = []
    for shown, batches in itertools.groupby(run.batches, is_shown):
        if shown:
            parts += [_batch_view(batch, axes[id(batch)], last, chosen) for batch in batches]
        else:
            parts.append(_gap(list(batches), axes))
    timed = [axis for axis in axes.values() if axis.start > 0] or list(axes.values())
    whole = Axis(min(axis.start for axis in timed), last) if timed else None
    return View(run, tuple(parts), whole, len(every), len(chosen))


def _rank(call: CallRecord) -> tuple[bool, float]:
    is_plain = call.status == "succeeded" and call.late is None
    return is_plain, -(took(call) or 0.0)


def _batch_view(batch: BatchRecord, axis: Axis, last: float, chosen: Container[int]) -> BatchView:
    shown = [call for call in batch.calls if id(call) in chosen]
    rows = [Row(call, status_of(call), tuple(_segments(call, batch, axis, last))) for call in shown]
    return BatchView(
        batch, axis, tuple(rows), Counter(status_of(call) for call in batch.calls if id(call) not in chosen)
    )


def _gap(batches: Sequence[BatchRecord], axes: Mapping[int, Axis]) -> Gap:
    counts = Counter(status_of(call) for batch in batches for call in batch.calls)
    own = [axes[id(batch)] for batch in batches]
    axis = Axis(min(axis.start for axis in own), max(axis.end for axis in own))
    return Gap(batches[0], batches[-1], len(batches), axis, counts)


def _axis(batch: BatchRecord) -> Axis:
    """Return the axis of a batch: its own time, and that of calls that run on a little longer; from 0 where no time is known."""
    inner = [batch.begun_at, batch.closed_at]
    for call in batch.calls:
        inner += [call.admitted_at, call.asked_at, call.started_at, call.settled_at]
    known = [at for at in inner if at is not None]
    start, end = min(known, default=0.0), max(known, default=0.0)
    most = end + max(end - start, _SHORTEST) * _STRETCH
    end = max([end, *(min(call.ended_at, most) for call in batch.calls if call.ended_at is not None)])
    return Axis(start, max(end, start + _SHORTEST))


def _segments(call: CallRecord, batch: BatchRecord, axis: Axis, last: float) -> Iterator[Segment]:
    """Return what a call did, in order; from clocks that were set back, nothing is longer than it can be."""
    settled, started = call.settled_at, call.started_at
    if call.resumed and started is None:
        return  # it did nothing here
    begun = batch.begun_at if batch.begun_at is not None else _first(call)
    if begun is not None:
        entered = started if started is not None else settled
        if call.asked_at is not None:
            yield from _cut("waiting", begun, call.asked_at, axis, last)
            yield from _cut("approval", call.asked_at, entered, axis, last)
        else:
            yield from _cut("waiting", begun, entered, axis, last)
    if started is not None:
        yield from _cut("running", started, settled, axis, last)
    if settled is not None and batch.closed_at is not None:
        yield from _cut("closed", settled, batch.closed_at, axis, last)
    runs_on = call.completion == "unknown" or (
        call.ended_at is not None and settled is not None and call.ended_at > settled
    )
    if started is not None and settled is not None and runs_on:
        yield from _cut("late", settled, call.ended_at, axis, last)


def _cut(kind: Kind, start: float, end: float | None, axis: Axis, last: float) -> Iterator[Segment]:
    """Return the part of a segment that the axis shows; without an end it lasts to the last moment that is known."""
    known = last if end is None else end
    length = None if end is None else known - start
    if start <= axis.end and (length is None or length > 0):
        yield Segment(kind, start, min(known, axis.end), end is None or known > axis.end, length)


def _first(call: CallRecord) -> float | None:
    return min((at for at in (call.admitted_at, call.asked_at, call.started_at) if at is not None), default=None)
