"""The journal of batches: what was announced, what was started, how each call ended, written before it is acted on (D4).

Times are seconds since the epoch (UTC) by the host's clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias, final

from toolbatch.core import Closed, CloseReason, InvalidInputError, Settlement, ToolCall, preview

__all__ = [
    "AnnouncedRecord",
    "ClosedRecord",
    "Journal",
    "JournalRecord",
    "JournaledBatch",
    "ResumedRecord",
    "SettledRecord",
    "StartedRecord",
    "was_cut_off",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncedRecord:
    """A batch has begun. It is on disk before any of its tools starts.

    Attributes:
        batch_id: The batch's name, unique over all runs; names grow with time.
        at: When.
        run_id: The host's name of the run.
        generation: The batch's number within its session.
        calls: What the model announced, arguments included.
    """

    batch_id: str
    at: float
    run_id: str
    generation: int
    calls: tuple[ToolCall, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StartedRecord:
    """A tool's code is about to be entered: without this record it certainly was not (B5).

    Attributes:
        batch_id: The batch.
        at: When.
        call_id: The call.
        operation_id: The durable operation that was claimed for it, which says more; `None` where there is none.
    """

    batch_id: str
    at: float
    call_id: str
    operation_id: str | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SettledRecord:
    """A call has its outcome. It is on disk before `snapshot()` shows it.

    Attributes:
        batch_id: The batch.
        at: When.
        call_id: The call.
        settlement: Its outcome.
    """

    batch_id: str
    at: float
    call_id: str
    settlement: Settlement


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedRecord:
    """Every call has its outcome.

    Attributes:
        batch_id: The batch.
        at: When.
        reason: Why the batch is closed.
    """

    batch_id: str
    at: float
    reason: CloseReason


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedRecord:
    """The batch goes on, in another process or another batch of this one: what is recorded next comes from there.

    Attributes:
        batch_id: The batch, which keeps its name.
        at: When.
        generation: Its number within the session that goes on with it.
    """

    batch_id: str
    at: float
    generation: int


JournalRecord: TypeAlias = AnnouncedRecord | StartedRecord | SettledRecord | ClosedRecord | ResumedRecord
"""One line of a journal."""


@final
@dataclass(frozen=True, slots=True, init=False)
class JournaledBatch:
    """A batch as its journal knows it: what `resume=` of a batch goes on with.

    Args:
        records: Its records, in the order in which they were written; the first one announces it.

    Attributes:
        records: As given.
        started: The latest start of each call that has one, by call id, but for those that were stopped before their code was entered.
        settled: The outcomes, by call id; the first one of each call stands, but for calls that a close had cut off before they had
            started, and that were gone on with.
        closed: The latest close, if nothing has gone on since then.

    Raises:
        InvalidInputError: `records` doesn't begin with an announcement, or has another batch's records, or calls that were not
            announced.
    """

    records: tuple[JournalRecord, ...]
    started: Mapping[str, StartedRecord]
    settled: Mapping[str, SettledRecord]
    closed: ClosedRecord | None

    def __init__(self, records: Sequence[JournalRecord]) -> None:
        first = records[0] if records else None
        if not isinstance(first, AnnouncedRecord):
            raise InvalidInputError(f"a batch's records must begin with its announcement, not with {preview(first)}")
        ids = {call.id for call in first.calls}
        started: dict[str, StartedRecord] = {}
        settled: dict[str, SettledRecord] = {}
        closed: ClosedRecord | None = None
        for number, record in enumerate(records):
            call_id = getattr(record, "call_id", None)
            if record.batch_id != first.batch_id or (call_id is not None and call_id not in ids):
                raise InvalidInputError(f"{preview(record)} is no record of batch {first.batch_id!r}")
            match record:
                case StartedRecord():
                    started[record.call_id] = record
                case SettledRecord():
                    settled.setdefault(record.call_id, record)
                    if record.settlement.side_effect_state == "not_started":
                        started.pop(record.call_id, None)  # it was stopped right before
                case ClosedRecord():
                    closed = record
                case ResumedRecord():
                    if closed is not None:
                        _reopen(settled, closed.reason)
                    closed = None
                case AnnouncedRecord() if number:
                    raise InvalidInputError(f"batch {first.batch_id!r} is announced twice")
                case AnnouncedRecord():
                    pass
        fill = object.__setattr__
        fill(self, "records", tuple(records))
        fill(self, "started", started)
        fill(self, "settled", settled)
        fill(self, "closed", closed)

    @property
    def announced(self) -> AnnouncedRecord:
        """The announcement."""
        first = self.records[0]
        assert isinstance(first, AnnouncedRecord)  # noqa: S101  the constructor has seen to it
        return first

    @property
    def batch_id(self) -> str:
        """The batch's name."""
        return self.announced.batch_id

    @property
    def run_id(self) -> str:
        """The host's name of the run."""
        return self.announced.run_id

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls, as they were announced."""
        return self.announced.calls

    @property
    def is_open(self) -> bool:
        """Whether it was not closed: it goes on now, or its process has died."""
        return self.closed is None

    def __repr__(self) -> str:
        state = "open" if self.closed is None else self.closed.reason.status
        return (
            f"<JournaledBatch {self.batch_id} of run {self.run_id!r}: {state}, "
            f"{len(self.settled)} of {len(self.calls)} calls settled>"
        )


def _reopen(settled: dict[str, SettledRecord], reason: CloseReason) -> None:
    for call_id, record in list(settled.items()):
        if was_cut_off(record.settlement, reason.status, reason.code):
            del settled[call_id]


def was_cut_off(end: Settlement, status: str | None, code: str | None) -> bool:
    """Whether a call has its outcome from its batch's close alone, and surely never ran: then it may be gone on with (T7, D4).

    Args:
        end: The outcome.
        status: The close's; `None` where there was none.
        code: Likewise.
    """
    return (
        isinstance(end, Closed) and end.side_effect_state == "not_started" and (end.status, end.code) == (status, code)
    )


class Journal(Protocol):
    """Keeps the records of batches. `testing.check_journal` checks that a journal keeps these promises.

    Every method raises `OperationStoreError` when the journal can't be reached or written, and
    `OperationStoreClosedError` after `aclose`.
    """

    async def append(self, records: Sequence[JournalRecord]) -> None:
        """Write records in their order, all or none; they are on disk before this returns.

        Once called it is carried out, even if the caller is cancelled. What is appended in one task after another comes in
        that order.

        Raises:
            EncodingError: An announced call's arguments have no JSON form. Nothing was written.
            InvalidInputError: A batch is announced a second time, or records are of one that was not. Nothing was written.
        """
        ...

    async def read(self, batch_id: str) -> JournaledBatch | None:
        """Return a batch, `None` if there is none of that name."""
        ...

    async def last(self, run_id: str) -> JournaledBatch | None:
        """Return the batch of a run that was announced last, which is what a run that crashed goes on with; `None` if it has none.

        That is by the order of writing, whatever the times say: a clock may have been set back.
        """
        ...

    async def batches(self, run_id: str) -> tuple[JournaledBatch, ...]:
        """Return all batches of a run in the order in which they were announced, oldest first."""
        ...

    async def unfinished(self, *, limit: int = 1000) -> tuple[str, ...]:
        """Return the names of runs that have an open batch, the oldest such batch first: those that run now, and those that have crashed."""
        ...

    async def purge(self, closed_before: float) -> int:
        """Forget batches that were closed before a time, and return how many. Open ones are kept."""
        ...

    async def aclose(self) -> None:
        """Write what was asked for, and end. Everything that is asked for later is refused. Repeating it is no error."""
        ...

    async def __aenter__(self) -> Self:
        """Make the journal ready, so that what is wrong with it is told now."""
        ...

    async def __aexit__(self, *exc_info: object) -> None:
        """Close it."""
        ...
