"""What outlives a batch: supersession, and that a refused beginning changes nothing (B8, C2, C14)."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.batch.clock import turned
from tests.batch.kit import Hung, calls, code, codes, effects, forever, result_of, turn
from toolbatch import InvalidInputError, ToolCall, ToolSession
from toolbatch.batch import _crew, _threads
from toolbatch.batch._host import Host


@pytest.fixture
def full_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hung]:
    """A pool of one thread, which hangs until it is released."""
    pool, hung = _threads.WorkerThreads(max_threads=1), Hung()
    pool.submit(_threads.Job(hung))
    hung.wait_entered()
    monkeypatch.setattr(_crew, "workers", pool)
    monkeypatch.setattr(_threads, "workers", pool)
    yield hung
    hung.release.set()


@turned
async def test_a_beginning_that_is_refused_loses_no_queued_thread(full_pool: Hung) -> None:
    """A newer batch that can't begin leaves the older one's queued threads to run (C2, B5)."""
    async with ToolSession() as session, session.batch(calls("a")) as batch:
        batch.start("a", lambda: "ran")
        with pytest.raises(InvalidInputError):
            await session.batch(calls("x", "x")).__aenter__()
        full_pool.release.set()
        assert code(await batch.snapshot(), "a") == "success"


@turned
async def test_a_superseded_call_in_a_threads_queue_never_runs(full_pool: Hung) -> None:
    """What waited for a thread when it was superseded is `not_started`, and that stays true (B5, FIELD 28)."""
    ran = []
    async with ToolSession() as session, session.batch(calls("a")) as old:
        old.start("a", lambda: ran.append(True))
        async with session.batch(calls("b")) as new:
            assert codes(result_of(old)) == {"a": "superseded"}
            assert effects(result_of(old), "a") == "not_started"
            full_pool.release.set()
            new.start("b", lambda: "ran")
            await new.snapshot()
    assert ran == []
    assert not old.outcomes["a"].started


@turned
async def test_calls_that_close_the_older_batch_and_then_fail(full_pool: Hung) -> None:
    """Calls whose reading closes the older batch and then fails: the close stands, and what it closed never runs (C14, B5)."""
    ran = []
    async with ToolSession() as session, session.batch(calls("a")) as batch:
        batch.start("a", lambda: ran.append(True))

        def hostile() -> Iterator[ToolCall]:
            batch.close("error", "closed_by_calls")
            yield ToolCall("", "")

        with pytest.raises(InvalidInputError):
            await session.batch(hostile()).__aenter__()
        assert codes(result_of(batch)) == {"a": "closed_by_calls"}
        full_pool.release.set()
        async with session.batch(calls("b")) as other:
            other.start("b", lambda: "ran")
            await other.snapshot()
    assert ran == []


@turned
async def test_calls_that_cancel_one_and_then_fail(full_pool: Hung) -> None:
    """Calls whose reading cancels one call and then fails: that one never runs, the other still does (C14, B5)."""
    ran = []
    async with ToolSession() as session, session.batch(calls("a", "b")) as batch:
        batch.start("a", lambda: ran.append("a"))
        batch.start("b", lambda: ran.append("b"))

        def hostile() -> Iterator[ToolCall]:
            batch.cancel("a")
            yield ToolCall("", "")

        with pytest.raises(InvalidInputError):
            await session.batch(hostile()).__aenter__()
        full_pool.release.set()
        await batch.snapshot()
    assert codes(result_of(batch)) == {"a": "cancelled", "b": "success"}
    assert ran == ["b"]


@turned
async def test_calls_that_begin_another_batch() -> None:
    """Calls whose reading begins a batch of the same session: that one stands, this one is refused (C14)."""
    async with ToolSession() as session:
        inner = session.batch(calls("a"))

        def hostile() -> Iterator[ToolCall]:
            with pytest.raises(StopIteration):
                inner.__aenter__().send(None)
            yield ToolCall("b", "t")

        with pytest.raises(InvalidInputError, match="generation 1"):
            await session.batch(hostile()).__aenter__()
        inner.start("a", forever)
        await turn(2)
        assert inner.result is None
        inner.close()
        await inner.__aexit__(None, None, None)
    assert inner.generation == 1


def test_a_new_host() -> None:
    """Before the first batch there is nothing to count, to note, or to answer for."""
    host = Host()
    assert host.counters() == {}
    assert host.current is None
    assert host.crew is None
    with pytest.raises(InvalidInputError):
        host.late_notes()
    assert Host().scope != host.scope == host.scope


@turned
async def test_a_superseded_batch_gives_its_tools_to_the_session_at_once() -> None:
    """Tools of a superseded batch are the session's from that moment, though its body has not left yet (B6, B8)."""
    gate = asyncio.Event()

    async def cleans_up() -> None:
        try:
            await forever()
        finally:
            await gate.wait()

    async with ToolSession(teardown_timeout=100) as session:
        old = session.batch(calls("a"))
        await old.__aenter__()
        old.start("a", cleans_up)
        await turn(2)
        async with session.batch([]):
            assert session.running == 1
        asyncio.get_running_loop().call_later(5, gate.set)
    assert old.outcomes["a"].completion == "settled"
    await old.__aexit__(None, None, None)
