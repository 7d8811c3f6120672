"""ToolSession: what outlives a batch, and how a newer batch replaces an older one (B6, B8, B9, B20)."""

import asyncio
from typing import Any

import pytest

from tests.batch.clock import now, run, turned
from tests.batch.kit import (
    Hung,
    Stubborn,
    after,
    boom,
    breathe,
    calls,
    check_batch,
    code,
    codes,
    content,
    effects,
    forever,
    instant,
    is_closed,
    result_of,
    totals,
    turn,
)
from tests.batch.stages import decides
from toolbatch import (
    BatchClosedError,
    BatchStateError,
    InvalidInputError,
    InvalidTypeError,
    LateNote,
    Limits,
    StaleResult,
    ToolBatch,
    ToolCall,
    ToolSession,
    current_call,
)
from toolbatch.batch import let_go_count
from toolbatch.batch._threads import workers
from toolbatch.ports import BatchOpened, Deny


async def test_a_session_of_three_turns(nothing_left: None) -> None:
    """Each batch is the next generation of one closure, with the session's tools and defaults (B8)."""
    async with ToolSession(tools={"tool_a": instant, "tool_b": boom}, run_id="run", call_timeout=60) as session:
        for generation in (1, 2, 3):
            async with session.batch(calls("a", "b")) as batch:
                batch.start_all()
                snapshot = await batch.snapshot()
            assert snapshot.generation == batch.generation == generation
            assert codes(snapshot) == {"a": "success", "b": "tool_error"}
            assert batch.outcomes["a"].run_id == "run"
            assert batch.outcomes["a"].generation == generation
            assert batch.audit is session.audit
            assert batch.counters == session.counters
        assert session.counters["tool_a"].to_dict()["succeeded"] == 3
        assert session.running == 0


@turned
async def test_a_batch_of_a_session_waits_for_nobody() -> None:
    """A batch in a session leaves cut-off tools to the session, which waits for them at its exit, within its bound (B6)."""
    stubborn = Stubborn()
    async with ToolSession(teardown_timeout=50) as session:
        async with session.batch(calls("a"), timeout=10) as batch:
            batch.start("a", stubborn)
        assert now() == 10, "the batch does not wait"
        assert session.running == 1
        assert batch.outcomes["a"].completion == "unknown"
        assert let_go_count() == 0, "the session answers for it"
    assert now() == 60
    assert session.running == 0
    assert let_go_count() == 1
    stubborn.release.set()
    await turn(3)


@turned
async def test_a_session_waits_no_longer_than_it_must() -> None:
    """The session's exit ends with the last tool that winds down (B6)."""

    async def cleans_up() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(7)

    async with ToolSession(teardown_timeout=50) as session, session.batch(calls("a"), timeout=10) as batch:
        batch.start("a", cleans_up)
    assert now() == 17
    assert batch.outcomes["a"].cancellation == "acknowledged"
    assert batch.outcomes["a"].completion == "settled"


@turned
async def test_a_newer_batch_supersedes_an_older_one() -> None:
    """The older one's pending calls are superseded, its snapshot returns, and it takes no more work (B3, B8, B15)."""
    async with ToolSession() as session:
        old = session.batch(calls("a", "b", "c"))
        async with old:
            old.start("a", instant)
            old.start("b", forever)
            await turn(2)
            waiting = asyncio.ensure_future(old.snapshot())
            await turn()
            async with session.batch(calls("a")) as new:
                snapshot = await waiting
                assert snapshot is old.result
                assert codes(snapshot) == {"a": "success", "b": "superseded", "c": "superseded"}
                assert [effects(snapshot, call_id) for call_id in "abc"] == [None, "unknown", "not_started"]
                coroutine = instant()
                with pytest.raises(BatchClosedError):
                    old.start("c", coroutine)
                assert is_closed(coroutine)
                answer = old.cancel("a")
                assert not answer.accepted
                assert answer.reason == "stale_generation"
                assert old.close() is snapshot
                new.start("a", instant, "new")
                await new.snapshot()
            assert content(result_of(new), "a") == "new"
        check_batch(old, ["a", "b", "c"])


@turned
async def test_a_late_result_can_not_reach_a_newer_generation() -> None:
    """The same id in a newer generation is another call: the old one's late result goes to the audit (B7, FIELD 1, 49)."""
    stubborn = Stubborn("old value")
    async with ToolSession() as session, session.batch(calls("x")) as old:
        old.start("x", stubborn)
        await turn(2)
        async with session.batch(calls("x")) as new:
            new.start("x", after, 5, "new value")
            stubborn.release.set()
            await turn(3)
            (stale,) = session.audit.drain()
            assert new.result is None
    assert (stale.generation, stale.reason, stale.observed_status) == (1, "stale_generation", "success")
    assert stale.content is None
    assert content(result_of(new), "x") == "new value"
    assert code(result_of(old), "x") == "superseded"


@turned
async def test_calls_that_cant_be_used_leave_the_older_batch_open() -> None:
    """A newer batch that can't begin supersedes nothing (C2)."""
    async with ToolSession() as session, session.batch(calls("a")) as old:
        old.start("a", after, 5)
        with pytest.raises(InvalidInputError, match="announced before"):
            await session.batch([*calls("x", "x")]).__aenter__()
        assert old.result is None
        assert code(await old.snapshot(), "a") == "success"
    assert old.generation == 1


@turned
async def test_a_session_that_ends_closes_its_open_batch() -> None:
    """A batch still open when the session ends is aborted, and its body, in another task, gets the closed snapshot (B8, B9)."""
    batches = []

    async def other(session: ToolSession) -> Any:
        async with session.batch(calls("a", "b")) as batch:
            batches.append(batch)
            batch.start("a", forever)
            return await batch.snapshot()

    async with ToolSession() as session:
        task = asyncio.ensure_future(other(session))
        await turn(3)
    assert codes(result_of(batches[0])) == {"a": "request_aborted", "b": "request_aborted"}
    assert await task is batches[0].result
    assert batches[0].outcomes["a"].completion == "settled"


@turned
async def test_a_superseded_batch_that_is_left_after_the_session() -> None:
    """Tools of a batch that is left only after its session ended are kept and counted like any that were let go (B6, B9)."""
    stubborn, gate = Stubborn(), asyncio.Event()

    async def other(session: ToolSession) -> None:
        async with session.batch(calls("a")) as batch:
            batch.start("a", stubborn)
            await gate.wait()

    async with ToolSession(teardown_timeout=3) as session:
        task = asyncio.ensure_future(other(session))
        await turn(3)
        async with session.batch([]):
            pass
    gate.set()
    await task
    assert let_go_count() == 1
    assert session.running == 0
    stubborn.release.set()
    await turn(3)
    assert len(session.audit.drain()) == 1


async def test_a_session_held_wrong() -> None:
    """A session before entering, entered twice, and after leaving: a clear error each, and nothing begins."""
    session = ToolSession()
    with pytest.raises(BatchStateError, match="async with"):
        session.batch([])
    assert session.running == 0
    async with session:
        with pytest.raises(BatchStateError, match="entered before"):
            await session.__aenter__()
        made = session.batch(calls("a"))
    with pytest.raises(BatchStateError, match="entered before"):
        await session.__aenter__()
    with pytest.raises(BatchStateError):
        session.batch(calls("a"))
    with pytest.raises(BatchStateError):
        await made.__aenter__()
    assert made.result is None


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"teardown_timeout": -1}, "-1"),
    ({"teardown_timeout": True}, "True"),
    ({"teardown_timeout": None}, "None"),
    ({"audit_size": 0}, "0"),
    ({"audit_size": -5}, "-5"),
    ({"audit_size": True}, "True"),
    ({"audit_size": 1.5}, "1.5"),
    ({"audit_sinks": [5]}, "5"),
    ({"limits": 5}, "5"),
    ({"encode": 5}, "5"),
    ({"nonsense": 1}, "'nonsense'"),
    ({"timeout": -1}, "-1"),
    ({"on_error": "x"}, "'x'"),
    ({"tools": 5}, "5"),
]


@pytest.mark.parametrize(("options", "text"), OPTIONS)
def test_options_that_cant_be_used(options: dict[str, Any], text: str) -> None:
    """A bad option of a session, or a default for its batches, is refused when the session is made."""
    with pytest.raises((InvalidInputError, InvalidTypeError), match=text):
        ToolSession(**options)


async def test_options_of_a_batch_of_a_session() -> None:
    """A batch's own options win over the session's defaults; what is the session's can't be given to a batch."""
    async with ToolSession(timeout=1000, run_id="r1", tools={"t": instant}) as session:
        for options in ({"limits": Limits()}, {"encode": str}, {"audit_size": 5}, {"nonsense": 1}):
            with pytest.raises(InvalidInputError, match=next(iter(options))):
                session.batch([], **options)
        with pytest.raises(InvalidInputError, match="-1"):
            session.batch([], timeout=-1)
        async with session.batch([ToolCall("a", "u")], run_id="r2", tools={"u": instant}, timeout=0.01) as batch:
            batch.start_all()
            await batch.snapshot()
        assert batch.outcomes["a"].run_id == "r2"
        assert batch.outcomes["a"].status == "succeeded"
        async with session.batch(calls("a"), timeout=0.01) as batch:
            assert code(await batch.snapshot(), "a") == "timeout"
        assert batch.outcomes["a"].timeout == pytest.approx(0.01)


@turned
async def test_late_notes() -> None:
    """A late success can be given to the model as new content, once, and no turn that was sent is changed (B20)."""
    stubborn, failing = Stubborn({"n": 1}), Stubborn(ValueError("x"))
    async with ToolSession(keep_content=True, limits=Limits(max_result_bytes=20)) as session:
        async with session.batch(calls("a", "b", "c"), timeout=10) as batch:
            batch.start("a", stubborn)
            batch.start("b", failing)
            batch.start("c", instant)
        before = result_of(batch).to_dict()
        assert session.late_notes() == []
        stubborn.release.set()
        failing.release.set()
        await turn(3)
        assert session.late_notes() == [LateNote(call_id="a", name="tool_a", generation=1, content='{"n":1}')]
        assert session.late_notes() == []
        assert result_of(batch).to_dict() == before
        assert [stale.content for stale in session.audit.drain()] == ['{"n":1}', None]


@turned
async def test_kept_content_is_bounded_and_can_fail() -> None:
    """Kept content is cut to the limit, and what can't be written is still evidence that it came (B7, B20)."""
    long, odd = Stubborn("x" * 100), Stubborn(object())
    async with ToolSession(keep_content=True, limits=Limits(max_result_bytes=20)) as session:
        async with session.batch(calls("a", "b"), timeout=10) as batch:
            batch.start("a", long)
            batch.start("b", odd)
        long.release.set()
        odd.release.set()
    first, second = session.audit.drain()
    assert first.content == "x" * 17 + "..."
    assert second.content is None
    assert second.observed_status == "success"


@turned
async def test_late_notes_need_content() -> None:
    """Without `keep_content` there is nothing to give, and the session says so (B20)."""
    async with ToolSession() as session:
        with pytest.raises(InvalidInputError, match="keep_content"):
            session.late_notes()


@turned
async def test_the_error_of_a_sessions_body_passes_through() -> None:
    """What is raised inside a session comes out as it is, after its bounded wait (B3)."""
    stubborn, error = Stubborn(), LookupError("own")
    with pytest.raises(LookupError) as caught:
        async with ToolSession(teardown_timeout=5) as session, session.batch(calls("a")) as batch:
            batch.start("a", stubborn)
            await turn(2)
            raise error
    assert caught.value is error
    assert now() == 5
    assert code(result_of(batch), "a") == "batch_failed"
    stubborn.release.set()
    await turn(3)


@turned
async def test_generator_exit_leaves_a_session_without_waiting() -> None:
    """A session that is left by `GeneratorExit` awaits nothing: what runs is let go and counted (B9, B18)."""
    stubborn, session = Stubborn(), ToolSession(teardown_timeout=100)
    await session.__aenter__()
    batch = session.batch(calls("a"))
    await batch.__aenter__()
    batch.start("a", stubborn)
    await turn(2)
    leaving = session.__aexit__(GeneratorExit, GeneratorExit(), None)
    with pytest.raises(StopIteration):
        leaving.send(None)
    assert let_go_count() == 1
    assert code(result_of(batch), "a") == "request_aborted"
    stubborn.release.set()
    await turn(3)


@turned
async def test_batches_left_out_of_order() -> None:
    """Batches of a session may be left in any order, in any task (B18, FIELD 106)."""
    async with ToolSession() as session:
        one, two = session.batch(calls("a")), session.batch(calls("b"))
        await one.__aenter__()
        one.start("a", forever)
        await turn(2)
        await asyncio.ensure_future(two.__aenter__())
        two.start("b", instant)
        await asyncio.ensure_future(one.__aexit__(None, None, None))
        await asyncio.ensure_future(two.__aexit__(None, None, None))
    assert (code(result_of(one), "a"), code(result_of(two), "b")) == ("superseded", "success")


def test_a_whole_run_leaves_nothing() -> None:
    """A hundred turns with tools of every temper in one session: all accounts agree, and nothing is left (B8, B9, O5)."""

    async def main() -> tuple[ToolSession, list[ToolBatch], list[StaleResult]]:
        batches: list[ToolBatch] = []
        late: list[StaleResult] = []
        async with ToolSession(teardown_timeout=100, audit_sinks=[late.append]) as session:
            for _ in range(100):
                stubborn = Stubborn()
                async with session.batch(calls("a", "b", "c", "d"), timeout=5) as batch:
                    batch.start("a", instant)
                    batch.start("b", stubborn, timeout=2)
                    batch.start("c", boom)
                    batch.start("d", forever)
                    await batch.snapshot()
                asyncio.get_running_loop().call_later(20, stubborn.release.set)
                batches.append(batch)
                assert session.running <= 6
        return session, batches, late

    session, batches, late = run(main())
    for batch in batches:
        assert codes(check_batch(batch, ["a", "b", "c", "d"])) == {
            "a": "success", "b": "timeout", "c": "tool_error", "d": "timeout",
        }  # fmt: skip
    assert [stale.generation for stale in late] == list(range(1, 101))
    assert session.audit.drain() == late
    counted = totals(session)
    assert counted == {
        "started": 400, "succeeded": 100, "failed": 100, "cancelled": 0, "timed_out": 200, "denied": 0, "not_started": 0, "pending": 0, "late": 100,
    }  # fmt: skip


@turned
async def test_a_superseded_thread_leaves_its_place() -> None:
    """What hangs in a thread when its batch is replaced takes no thread from others either (B6, B9)."""
    hung, before = Hung(), workers.counts["let_go"]
    async with ToolSession(teardown_timeout=0) as session:
        async with session.batch(calls("a")) as older:
            older.start("a", hung)
            hung.wait_entered()
            async with session.batch(calls("b")):
                assert workers.counts["let_go"] == before + 1
        assert codes(result_of(older)) == {"a": "superseded"}
        hung.release.set()
        while session.running:
            await breathe()


@pytest.mark.parametrize("is_replaced", [False, True])
@turned
async def test_a_closed_batch_that_is_left_after_the_session(is_replaced: bool) -> None:
    """The session's exit stops what a closed batch has left running, though that batch is left later (B8, O6)."""
    stopped: list[int] = []

    async def job() -> None:
        current_call().pending("accepted")
        try:
            await forever()
        except asyncio.CancelledError:
            stopped.append(1)
            raise

    async with ToolSession(teardown_timeout=3) as session:
        batch = await session.batch(calls("a")).__aenter__()
        batch.start("a", job)
        assert codes(await batch.snapshot()) == {"a": "success"}
        if is_replaced:
            async with session.batch([]):
                pass
    assert stopped == [1]
    await batch.__aexit__(None, None, None)
    assert batch.outcomes["a"].status == "cancelled"


@turned
async def test_a_task_that_was_handed_over_and_never_awaited() -> None:
    """A task that its batch had no time to await is waited for by the session, until it ends and no longer (B6, B9)."""
    async with ToolSession(teardown_timeout=3) as session, session.batch(calls("a")) as batch:
        batch.start("a", asyncio.ensure_future(forever()))
        batch.close()
    assert now() == 0
    assert session.running == let_go_count() == 0
    assert batch.outcomes["a"].cancellation == "acknowledged"


async def test_policies_that_can_be_read_once_hold_for_every_batch() -> None:
    """Such as a generator: what it denies the first time it denies the second time, too."""
    told: list[str] = []

    def watch(_opened: BatchOpened) -> None:
        told.append("opened")

    watchers = (watcher for watcher in [watch])
    policies = (policy for policy in [decides(Deny("no"))])
    async with ToolSession(tools={"pay": forever}, interceptors=policies, observers=watchers) as session:
        for _ in range(2):
            async with session.batch([ToolCall("a", "pay", {})]) as batch:
                batch.start_all()
                assert code(await batch.snapshot(), "a") == "denied"
    assert told == ["opened", "opened"]
