"""The audit channel: every late result once, in order, bounded, never in the way (B7)."""

import asyncio
import gc
import logging
import time
import weakref
from typing import Any

import pytest

from tests.batch.clock import turned
from tests.batch.kit import Stubborn, calls, forever, instant, turn
from toolbatch import AuditChannel, InvalidInputError, InvalidTypeError, StaleResult, ToolBatch, ToolSession


def stale(n: int) -> StaleResult:
    """A late result."""
    return StaleResult(
        call_id=f"c{n}", name="t", generation=1, execution_id=f"e{n}", reason="run_closed", answered_as="timeout", observed_status="success",
        exception_type=None, started_at=1.0, closed_at=2.0, settled_at=3.0, late_by=1.0,
    )  # fmt: skip


def test_records_come_out_once_and_in_order() -> None:
    """`drain` returns what came since the last time, without waiting (B7)."""
    channel = AuditChannel()
    assert channel.drain() == []
    for n in range(3):
        channel.put(stale(n))
    assert len(channel) == 3
    assert channel.drain() == [stale(n) for n in range(3)]
    assert channel.drain() == []
    assert channel, "an empty channel is a channel"


def test_a_full_channel_keeps_the_first_and_counts_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    """A full channel drops what comes, counts it, says so once, and has room again when drained; sinks get all (B7)."""
    seen: list[StaleResult] = []
    channel = AuditChannel(2, [seen.append])
    for n in range(5):
        channel.put(stale(n))
    assert channel.dropped == 3
    assert channel.drain() == [stale(0), stale(1)]
    channel.put(stale(9))
    assert channel.drain() == [stale(9)]
    assert len(seen) == 6
    (record,) = caplog.records
    assert "full at 2 records" in record.getMessage()
    usual = AuditChannel()
    for n in range(1001):
        usual.put(stale(n))
    assert (len(usual), usual.dropped) == (1000, 1)


@pytest.mark.parametrize("error", [ValueError("x"), asyncio.CancelledError(), GeneratorExit()])
def test_a_sink_that_raises_is_contained(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    """What a sink raises is logged, and neither the channel nor the other sinks nor the tool feel it (B7)."""

    def bad(_: StaleResult) -> None:
        raise error

    seen: list[StaleResult] = []
    channel = AuditChannel(10, [bad, seen.append])
    channel.put(stale(1))
    assert seen == channel.drain() == [stale(1)]
    assert "the audit sink" in caplog.records[0].getMessage()


@pytest.mark.parametrize("size", [0, -1, True, 1.0, "5", None])
def test_sizes_that_cant_be_used(size: Any) -> None:
    """A size is a positive int."""
    with pytest.raises((InvalidInputError, InvalidTypeError), match="audit_size"):
        AuditChannel(size)


def test_sinks_that_cant_be_used() -> None:
    """A sink that can't be called is refused, and the channel is as it was."""
    channel = AuditChannel()
    with pytest.raises(InvalidTypeError, match="'x'"):
        channel.add_sink("x")  # type: ignore[arg-type]
    channel.put(stale(1))
    assert channel.drain() == [stale(1)]


async def test_iterating_waits_for_records(nothing_left: None) -> None:
    """`async for` hands out each record once, to whoever waits, and ends when the channel is closed (B7)."""
    channel = AuditChannel()
    channel.put(stale(0))
    taken: dict[int, list[str]] = {0: [], 1: []}

    async def read(reader: int) -> None:
        async for record in channel:
            taken[reader].append(record.call_id)

    readers = [asyncio.ensure_future(read(n)) for n in (0, 1)]
    await turn(3)
    for n in range(1, 6):
        channel.put(stale(n))
        await turn(3)
    channel.close()
    await asyncio.gather(*readers)
    assert sorted(taken[0] + taken[1]) == [f"c{n}" for n in range(6)]
    assert taken[0]
    assert taken[1]
    channel.put(stale(9))
    assert channel.drain() == [stale(9)], "what comes after the end can still be drained"


async def test_closing_reads_what_is_there_first(nothing_left: None) -> None:
    """An iteration that begins after the end reads what is there, and ends (B7)."""
    channel = AuditChannel()
    channel.put(stale(1))
    channel.put(stale(2))
    channel.close()
    assert [record async for record in channel] == [stale(1), stale(2)]


async def test_a_cancelled_reader_passes_its_record_on(nothing_left: None) -> None:
    """A reader that is cancelled as it is woken loses no record: another reader gets it (B7)."""
    channel = AuditChannel()
    first = asyncio.ensure_future(anext(channel))
    second = asyncio.ensure_future(anext(channel))
    await turn(2)
    channel.put(stale(1))
    first.cancel()
    assert await asyncio.wait_for(second, 5) == stale(1)
    with pytest.raises(asyncio.CancelledError):
        await first
    third = asyncio.ensure_future(anext(channel))
    await turn(2)
    third.cancel()
    await turn(2)
    channel.put(stale(2))
    assert await anext(channel) == stale(2)


async def test_a_woken_reader_whose_record_was_drained_waits_on(nothing_left: None) -> None:
    """A reader that finds its record drained waits for the next (B7)."""
    channel = AuditChannel()
    reader = asyncio.ensure_future(anext(channel))
    await turn(2)
    channel.put(stale(1))
    channel.drain()
    await turn(3)
    assert not reader.done()
    channel.put(stale(2))
    assert await reader == stale(2)


@turned
async def test_what_a_record_says() -> None:
    """A record names the call, its execution, why and when, how late, and never its content unasked (B7)."""
    stubborn, failing = Stubborn("secret"), Stubborn(LookupError("secret"))
    before = time.time()
    async with ToolSession(teardown_timeout=100) as session:
        async with session.batch(calls("a", "b", "c"), timeout=10) as batch:
            batch.start("a", stubborn)
            batch.start("b", failing, timeout=4)
            batch.start("c", forever)
            snapshot = await batch.snapshot()
        await asyncio.sleep(5)
        stubborn.release.set()
        failing.release.set()
        assert [record async for record in _two(session)] == (records := session.audit.drain()) or len(records) == 0
    first, second = _seen
    assert (first.call_id, first.name, first.generation) == ("a", "tool_a", 1)
    assert first.execution_id == batch.outcomes["a"].execution_id
    assert (first.reason, first.observed_status, first.exception_type) == ("run_closed", "success", None)
    assert (second.observed_status, second.exception_type) == ("error", "LookupError")
    assert (first.late_by, second.late_by) == (5, 11)
    assert first.started_at is not None
    assert before <= first.started_at <= first.settled_at <= time.time()
    assert first.settled_at - first.closed_at == pytest.approx(5)
    assert "secret" not in repr(_seen)
    assert batch.result is snapshot
    assert batch.outcomes["c"].cancellation == "acknowledged", "one that ends by our cancellation is not late"


_seen: list[StaleResult] = []


async def _two(session: ToolSession) -> Any:
    _seen.clear()
    async for record in session.audit:
        _seen.append(record)
        yield record
        if len(_seen) == 2:
            return


@turned
async def test_an_iteration_of_a_session_ends_with_it() -> None:
    """`async for stale in session.audit` goes on after the last batch and ends with the session (B7)."""
    stubborn, seen = Stubborn(), list[StaleResult]()

    async def watch(session: ToolSession) -> None:
        async for record in session.audit:
            seen.append(record)

    async with ToolSession(teardown_timeout=100) as session:
        watcher = asyncio.ensure_future(watch(session))
        async with session.batch(calls("a"), timeout=10) as batch:
            batch.start("a", stubborn)
        await asyncio.sleep(5)
        stubborn.release.set()
    await watcher
    assert [record.call_id for record in seen] == ["a"]


@turned
async def test_a_lone_batch_has_a_channel_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """A batch without a session has an audit channel too, and late results of two batches do not mix (B7)."""
    caplog.set_level(logging.CRITICAL)
    stubborn = Stubborn()
    async with ToolBatch(calls("a"), timeout=1, teardown_timeout=0) as batch:
        batch.start("a", stubborn)
    async with ToolBatch(calls("a")) as other:
        other.start("a", instant)
    stubborn.release.set()
    await turn(3)
    assert [record.call_id for record in batch.audit.drain()] == ["a"]
    assert other.audit.drain() == []


async def test_readers_that_give_up_are_forgotten(nothing_left: None) -> None:
    """A user interface that asks now and again, each time for a moment, leaves nothing behind (B7, B9)."""
    channel = AuditChannel()
    readers = [asyncio.ensure_future(anext(channel)) for _ in range(3)]
    await turn(2)
    waiting = [weakref.ref(future) for future in channel._readers]
    for reader in readers:
        reader.cancel()
    await asyncio.wait(readers)
    readers.clear()
    del reader
    gc.collect()
    assert [one() for one in waiting] == [None, None, None]
