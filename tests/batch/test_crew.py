"""The bounded task group: it waits no longer than its bound, keeps what it lets go, and forgets what has ended (B6, B9)."""

import asyncio
import gc
import weakref

import pytest

from tests.batch.clock import now, turned
from tests.batch.kit import Stubborn, breathe, calls, code, codes, forever, instant, is_closed, result_of, turn
from tests.batch.stages import Around, passes
from toolbatch import ExecutionOutcome, ToolBatch, ToolSession
from toolbatch.batch import let_go_count
from toolbatch.batch._crew import Crew


@turned
async def test_waiting_for_nothing() -> None:
    """A crew that answers for nothing, or may wait no time, does not wait (B6)."""
    crew = Crew(asyncio.get_running_loop())
    assert crew.is_idle
    waiting = crew.wait(100)
    with pytest.raises(StopIteration):
        waiting.send(None)
    crew.launch_side_task(asyncio.sleep(5))
    assert not crew.is_idle
    waiting = crew.wait(0)
    with pytest.raises(StopIteration):
        waiting.send(None)
    await crew.wait(100)
    assert now() == 5
    assert crew.is_idle


@turned
async def test_waiting_is_bounded() -> None:
    """The wait ends at its bound, and what still runs is let go: kept, counted, and forgotten when it ends (B6, B9)."""
    crew = Crew(asyncio.get_running_loop())
    crew.launch_side_task(asyncio.sleep(50))
    crew.launch_side_task(asyncio.sleep(5))
    await crew.wait(10)
    assert now() == 10
    assert len(crew.side_tasks) == 1
    crew.let_go()
    assert crew.is_idle
    assert let_go_count() == 1
    gc.collect()
    await asyncio.sleep(41)
    assert let_go_count() == 0


@turned
async def test_a_task_that_was_let_go_is_kept_alive() -> None:
    """What was let go is held strongly until it ends, since asyncio itself holds tasks weakly (B6)."""
    ended, references = [], []

    async def waits_for_itself() -> None:
        gate = asyncio.get_running_loop().create_future()
        references.append(weakref.ref(gate))
        try:
            await gate
        except asyncio.CancelledError:
            again = asyncio.get_running_loop().create_future()
            references.append(weakref.ref(again))
            del gate
            await again
        ended.append(True)

    async def host() -> None:
        async with ToolBatch(calls("a"), timeout=1, teardown_timeout=1) as batch:
            batch.start("a", waits_for_itself)

    await host()
    gc.collect()
    assert let_go_count() == 1
    gate = references[-1]()
    assert gate is not None, "a task that only it holds would be gone"
    gate.set_result(None)
    del gate
    await turn(3)
    assert ended == [True]
    assert let_go_count() == 0


@turned
async def test_nothing_is_kept_of_what_has_ended() -> None:
    """A batch that is done with leaves neither its tools' values nor itself behind (B9)."""

    class Value:
        pass

    kept: list[weakref.ref[object]] = []

    async def tool(value: Value) -> str:
        return "done"

    async def host() -> None:
        value = Value()
        async with ToolBatch(calls("a", "b")) as batch:
            batch.start("a", tool, value)
            batch.start("b", lambda value: "done", value)
        kept.append(weakref.ref(value))

    await host()
    await turn(3)
    gc.collect()
    for _ in range(200):
        if kept[0]() is None:
            break
        await breathe()
        gc.collect()
    assert kept[0]() is None


@turned
async def test_an_observer_that_is_a_coroutine_is_waited_for() -> None:
    """The exit waits for coroutine observers within its bound, also for those that begin as the last tool ends (O3, B9)."""
    told = []

    async def observer(outcome: ExecutionOutcome) -> None:
        await asyncio.sleep(3)
        told.append((outcome.call_id, outcome.completion))

    async def cleans_up() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(2)

    async with ToolBatch(calls("a"), timeout=10, teardown_timeout=100, on_late=observer) as batch:
        batch.start("a", cleans_up)
    assert told == [("a", "settled")]
    assert now() == 15
    assert code(result_of(batch), "a") == "timeout"


@turned
async def test_a_coroutine_observer_that_hangs_is_let_go() -> None:
    """An observer that never ends delays the exit no longer than its bound; in a session it is the session's (O3, B6)."""
    gate = asyncio.Event()

    async def observer(outcome: ExecutionOutcome) -> None:
        await gate.wait()

    async with ToolBatch(calls("a"), teardown_timeout=7, on_outcome=observer) as batch:
        batch.cancel("a")
    assert now() == 7
    assert let_go_count() == 1
    gate.set()
    await turn(2)
    gate.clear()
    async with ToolSession(teardown_timeout=3, on_outcome=observer) as session:
        async with session.batch(calls("a")) as batch:
            batch.cancel("a")
        assert now() == 7
        assert let_go_count() == 0
    assert now() == 10
    assert let_go_count() == 1
    gate.set()
    await turn(2)


@turned
async def test_a_session_waits_for_observers_no_longer_than_they_take() -> None:
    """A coroutine observer that a batch left to its session is waited for there until it ends (O3, B6)."""

    async def observer(outcome: ExecutionOutcome) -> None:
        await asyncio.sleep(3)

    async with ToolSession(teardown_timeout=100, on_outcome=observer) as session, session.batch(calls("a")) as batch:
        batch.cancel("a")
    assert now() == 3
    assert let_go_count() == 0


@pytest.mark.parametrize("how", ["complete", "not started", "closed unstarted"])
@turned
async def test_nothing_of_a_finished_batch_waits_for_the_collector(how: str) -> None:
    """A batch that is done with, and holds no exception with its frames, goes without the garbage collector (B9)."""

    async def host() -> weakref.ref[object]:
        batch = ToolBatch(calls("a", "b"), timeout=50, call_timeout=20)
        async with batch:
            if how == "complete":
                batch.start("a", turn, 5)
                batch.start("b", lambda: "done")
            elif how == "closed unstarted":
                batch.start("a", instant())
                batch.close()
            waiting = asyncio.ensure_future(batch.snapshot())
            await turn(2)
            waiting.cancel()
            await asyncio.wait([waiting])
        assert batch.result is not None
        return weakref.ref(batch._engine)

    gc.collect()
    gc.disable()
    try:
        engine = await host()
        for _ in range(50):
            await breathe()
            if engine() is None:
                break
        assert engine() is None
    finally:
        gc.enable()


@turned
async def test_a_tool_is_asked_to_stop_once() -> None:
    """Cancelling, closing and leaving ask a tool to stop once between them (B6, B17)."""
    stubborn = Stubborn()
    async with ToolSession(teardown_timeout=5) as session:
        async with session.batch(calls("a", "b"), timeout=10) as batch:
            batch.start("a", stubborn, timeout=3)
            await asyncio.sleep(4)
            batch.cancel("a")
            batch.cancel("b")
            batch.close()
        async with session.batch([]):
            pass
    assert stubborn.cancels == 1
    stubborn.release.set()
    await turn(3)


@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize("turns", range(5))
@turned
async def test_whoever_cancels_a_task_of_ours(turns: int, guided: bool) -> None:
    """A call whose task someone else cancels, at whatever step of it, has its outcome, and the batch waits for nothing (B2, B4)."""
    coroutine = forever()
    batch = ToolBatch(calls("a", "b"), teardown_timeout=5, interceptors=[Around(passes)] if guided else [])
    async with batch:
        batch.start("a", forever)
        batch.start("b", coroutine)
        await turn(turns)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
    assert codes(result_of(batch)) == {"a": "cancelled", "b": "cancelled"}
    assert now() == 0
    assert is_closed(coroutine)
    assert all(stale.observed_status == "cancelled" and stale.late_by == 0 for stale in batch.audit.drain())
