"""Checks that a journal keeps its promises: run them on your own journal, as toolbatch does on its own (D4).

A call of the checks, for a journal whose places are files of a folder::

    await check_journal(lambda place: MyJournal(folder / place))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from toolbatch.core import (
    CallProblem,
    Cancelled,
    Closed,
    CloseReason,
    Data,
    EncodingError,
    Failed,
    Image,
    InvalidInputError,
    RichSucceeded,
    Settlement,
    Succeeded,
    Text,
    ToolCall,
)
from toolbatch.ports import (
    AnnouncedRecord,
    ClosedRecord,
    Journal,
    JournaledBatch,
    JournalRecord,
    OperationStoreClosedError,
    ResumedRecord,
    SettledRecord,
    StartedRecord,
)
from toolbatch.testing._store_bench import equal, refused, require

if TYPE_CHECKING:
    from collections.abc import Awaitable

__all__ = ["check_journal"]

MakeJournal: TypeAlias = Callable[[str], AbstractAsyncContextManager[Journal]]
"""Makes a journal from the name of a place. A new name is an empty place; the same name is the same place."""

_ENDS: Final[tuple[Settlement, ...]] = (
    Succeeded('{"ä":"\\u0000","n":1e-7}'),
    Succeeded(""),
    RichSucceeded((Text("see"), Image(Data(b"\x00png", "image/png"))), "see\n[image: image/png, 4 bytes]"),
    Failed("tool_error", "bröke\n\x1b[0m"),
    Cancelled("cancelled", "it stopped"),
    Closed("cancelled", "timeout", "too slow", "unknown", "half of it"),
    Closed("error", "not_started", "never", "not_started"),
)
_CALLS: Final = (
    ToolCall("a", "pay", '{"amount": 50, "to": "\u00e4"}', wire_id="w", echo={"lane": {"caller": {"type": "x"}}}),
    ToolCall("b/../'", "pay", {"deep": [{"x": None}]}),
    ToolCall("c", "pay", "not json \udce4"),
    ToolCall("d", "nobody", {"input": "x"}, kind="custom"),
    ToolCall("e", "pay", None, problem=CallProblem("response_truncated", "cut off")),
    ToolCall("f", "pay"),
    ToolCall("g", "pay"),
)


async def check_journal(make_journal: MakeJournal, *, durable: bool = True) -> None:
    """Run every check on journals of the caller's making. It takes some seconds.

    Args:
        make_journal: Makes a journal from the name of a place: a new name is an empty place, the same name the same one. Each
            journal is entered, used and left in the running loop.
        durable: Whether a place keeps what is in it: between journals on it, one after the other and at the same time.

    Raises:
        AssertionError: A promise is not kept; its note names the check.
        Exception: What the journal raised without having promised to; likewise.
    """
    for check in _CHECKS + (_DURABLE_CHECKS if durable else ()):
        place = f"journal-{next(_numbers)}"
        try:
            await check(lambda place=place: make_journal(place))  # type: ignore[misc]
        except Exception as error:
            error.add_note(f"in the check {check.__name__.strip('_')!r} of {check.__module__}")
            raise


_numbers = count(1)

_Make: TypeAlias = Callable[[], AbstractAsyncContextManager[Journal]]


def _announced(batch_id: str = "batch-1", run_id: str = "run", at: float = 1.0) -> AnnouncedRecord:
    return AnnouncedRecord(batch_id=batch_id, at=at, run_id=run_id, generation=3, calls=_CALLS)


def _whole(batch_id: str = "batch-1", run_id: str = "run", at: float = 1.0) -> list[JournalRecord]:
    records: list[JournalRecord] = [_announced(batch_id, run_id, at)]
    for call, end in zip(_CALLS, _ENDS, strict=True):
        records.append(StartedRecord(batch_id=batch_id, at=at + 0.25, call_id=call.id, operation_id=f"t/run/{call.id}"))
        records.append(SettledRecord(batch_id=batch_id, at=at + 0.5, call_id=call.id, settlement=end))
    records.insert(3, StartedRecord(batch_id=batch_id, at=at, call_id="g"))
    records.append(_closed(batch_id, at + 1))
    return records


def _closed(batch_id: str, at: float = 2.0) -> ClosedRecord:
    return ClosedRecord(batch_id=batch_id, at=at, reason=CloseReason("cancelled", "timeout", "over", "unknown"))


def _resumed(batch_id: str, at: float = 3.0) -> ResumedRecord:
    return ResumedRecord(batch_id=batch_id, at=at, generation=1)


async def _read(journal: Journal, batch_id: str = "batch-1") -> JournaledBatch:
    batch = await journal.read(batch_id)
    if batch is None:
        raise AssertionError(f"batch {batch_id!r} was to be in the journal")
    return batch


def _names(batches: Sequence[JournaledBatch]) -> list[str]:
    return [batch.batch_id for batch in batches]


async def _what_is_written_is_read(make: _Make) -> None:
    async with make() as journal:
        equal(await journal.read("batch-1"), None)
        for record in _whole():
            await journal.append([record])
        equal((await _read(journal)).records, tuple(_whole()), "records that were written one by one")
        await journal.append(_whole("batch-2"))
        equal((await _read(journal, "batch-2")).records, tuple(_whole("batch-2")), "records that were written together")
        await journal.append([])


async def _runs_are_kept_apart(make: _Make) -> None:
    async with make() as journal:
        for number, run_id in enumerate(("x", "y", "x", "ä'; --")):
            await journal.append(_whole(f"b{number}", run_id, at=10.0 + number))
        equal(_names(await journal.batches("x")), ["b0", "b2"], "a run's batches, oldest first")
        last = await journal.last("x")
        require(last is not None and last.batch_id == "b2", "the last batch of a run is its latest")
        equal(_names(await journal.batches("ä'; --")), ["b3"])
        equal((await journal.batches("nobody"), await journal.last("nobody")), ((), None))


async def _a_clock_may_be_set_back(make: _Make) -> None:
    async with make() as journal:
        for name, at in (("b2", 30.0), ("b1", 20.0), ("b3", 10.0)):
            await journal.append(_whole(name, at=at))
        await journal.append([_resumed("b2", 40.0)])
        equal(_names(await journal.batches("run")), ["b2", "b1", "b3"], "a run's batches, as they were announced")
        last = await journal.last("run")
        require(last is not None and last.batch_id == "b3", "the last batch is the one that was announced last")


async def _open_runs_are_known(make: _Make) -> None:
    async with make() as journal:
        for number, run_id in enumerate("xyz"):
            await journal.append([_announced(f"b{number}", run_id, at=10.0 + number)])
        await journal.append([_announced("b9", "y", at=20.0)])
        equal(await journal.unfinished(), ("x", "y", "z"), "runs with an open batch, oldest first")
        equal(await journal.unfinished(limit=2), ("x", "y"))
        await journal.append([_closed("b0")])
        await journal.append([_closed("b1")])
        equal(
            await journal.unfinished(), ("z", "y"), "a run with one open batch of two is open, and as old as that one"
        )
        await journal.append([_resumed("b0")])
        equal(await journal.unfinished(), ("x", "z", "y"), "a batch that goes on is open again")
        await journal.append([_closed("b0", 4.0)])
        equal(await journal.unfinished(), ("z", "y"))
        for bad in (0, -1, True, 1.5):
            await refused(InvalidInputError, journal.unfinished(limit=bad))  # type: ignore[arg-type]


async def _what_makes_no_sense_is_refused_whole(make: _Make) -> None:
    async with make() as journal:
        await journal.append([_announced()])
        started = StartedRecord(batch_id="batch-1", at=1.0, call_id="a")
        nonsense: tuple[list[JournalRecord], ...] = (
            [started, _announced()],
            [started, StartedRecord(batch_id="other", at=1.0, call_id="a")],
            [_announced("new"), _announced("new")],
            [_announced("new"), _closed("other")],
        )
        for records in nonsense:
            await refused(InvalidInputError, journal.append(records))
        calls: Any = (ToolCall("a", "pay", {"x": object()}),)
        unwritable = AnnouncedRecord(batch_id="new", at=1.0, run_id="run", generation=1, calls=calls)
        await refused(EncodingError, journal.append([started, unwritable]))
        equal((await _read(journal)).records, (_announced(),), "a refused group has written nothing")
        equal(await journal.read("new"), None)


async def _a_cancelled_append_is_carried_out(make: _Make) -> None:
    async with make() as journal:
        await journal.append([_announced()])
        task = asyncio.ensure_future(journal.append([_closed("batch-1")]))
        await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await journal.append([_resumed("batch-1")])
        records = (_announced(), _closed("batch-1"), _resumed("batch-1"))
        equal((await _read(journal)).records, records, "a cancelled append is carried out, and before the next one")


async def _many_batches_at_one_time(make: _Make) -> None:
    async with make() as journal:

        async def write(number: int) -> None:
            for record in _whole(f"b{number:03}", f"run-{number % 3}", at=float(number)):
                await journal.append([record])

        await asyncio.gather(*(write(number) for number in range(12)))
        for number in range(12):
            whole = tuple(_whole(f"b{number:03}", f"run-{number % 3}", at=float(number)))
            equal((await _read(journal, f"b{number:03}")).records, whole)


async def _what_is_old_and_closed_can_be_forgotten(make: _Make) -> None:
    async with make() as journal:
        for number in range(3):
            await journal.append([_announced(f"b{number}"), _closed(f"b{number}", 10.0 * (number + 1))])
        await journal.append([_announced("open")])
        await journal.append([_announced("again"), _closed("again", 1.0), _resumed("again")])
        equal(await journal.purge(20.0), 1, "only what was closed before the time goes")
        equal(sorted(_names(await journal.batches("run"))), ["again", "b1", "b2", "open"])
        equal(await journal.read("b0"), None)
        equal(await journal.purge(1e12), 2, "what is open is kept")
        await journal.append([_announced("b0")])  # its name is free again


async def _a_closed_journal_refuses(make: _Make) -> None:
    async with make() as journal:
        await journal.append([_announced()])
        await journal.aclose()
        await refused(OperationStoreClosedError, journal.append([_closed("batch-1")]))
        await refused(OperationStoreClosedError, journal.read("batch-1"))
        await journal.aclose()


async def _a_place_keeps_what_was_written(make: _Make) -> None:
    async with make() as journal:
        await journal.append(_whole())
    async with make() as journal:
        equal((await _read(journal)).records, tuple(_whole()))
        await journal.append([_resumed("batch-1", 5.0)])
    async with make() as journal, make() as other:
        equal((await _read(journal)).records[-1], _resumed("batch-1", 5.0))
        await other.append([_closed("batch-1", 6.0)])
        equal((await _read(journal)).records[-1], _closed("batch-1", 6.0), "what one writes, the other reads")


_Check: TypeAlias = "Callable[[_Make], Awaitable[None]]"

_CHECKS: Final[tuple[_Check, ...]] = (
    _what_is_written_is_read,
    _runs_are_kept_apart,
    _a_clock_may_be_set_back,
    _open_runs_are_known,
    _what_makes_no_sense_is_refused_whole,
    _a_cancelled_append_is_carried_out,
    _many_batches_at_one_time,
    _what_is_old_and_closed_can_be_forgotten,
    _a_closed_journal_refuses,
)
_DURABLE_CHECKS: Final[tuple[_Check, ...]] = (_a_place_keeps_what_was_written,)
