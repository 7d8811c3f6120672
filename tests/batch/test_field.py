"""What people who do this job report, as scenarios. Each test cites its number in FIELD.md and says it in a line."""

import asyncio
import contextvars
import datetime as dt
import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable
from typing import Any, NoReturn

import anyio
import pytest

from tests.batch.clock import now, turned
from tests.batch.kit import (
    Hung,
    Stubborn,
    after,
    calls,
    check_batch,
    code,
    codes,
    content,
    effects,
    end,
    forever,
    instant,
    is_closed,
    message,
    result_of,
    turn,
)
from toolbatch import BatchClosedError, BatchStateError, ToolBatch, ToolSession, current_call
from toolbatch.core import encode


class ToolCrash(Exception):
    """A tool's own error."""


# -- A, B: cancellation ------------------------------------------------------------------------------------------------


@turned
async def test_1_a_new_turn_while_a_tool_runs() -> None:
    """1: the user speaks while a tool runs: the old call is answered, its real value at +3 is stale."""
    tool = Stubborn("real")
    async with ToolSession(teardown_timeout=10) as session:
        async with session.batch(calls("a")) as old:
            old.start("a", tool)
            await asyncio.sleep(0.5)
            async with session.batch([]) as new:
                await new.snapshot()
                asyncio.get_running_loop().call_later(2.5, tool.release.set)
        assert now() == 0.5
    assert (code(result_of(old), "a"), effects(result_of(old), "a")) == ("superseded", "unknown")
    assert [stale.late_by for stale in session.audit.drain()] == [2.5]


@turned
async def test_2_cancelling_the_caller_cancels_its_tools() -> None:
    """2: a tool that goes on printing after its caller was cancelled: it gets the cancellation, and no task survives."""
    ticks: list[float] = []
    batch = ToolBatch(calls("a"))

    async def loops() -> None:
        while True:
            ticks.append(now())
            await asyncio.sleep(0.1)

    async def host() -> None:
        async with batch:
            batch.start("a", loops)
            await batch.snapshot()

    task = asyncio.ensure_future(host())
    await asyncio.sleep(1.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    before = len(ticks)
    await asyncio.sleep(2)
    assert len(ticks) == before
    assert effects(result_of(batch), "a") == "unknown"
    assert batch.outcomes["a"].cancellation == "acknowledged"


@pytest.mark.parametrize("started", [False, True])
@turned
async def test_3_8_15_an_abort_before_anything_has_finished(started: bool) -> None:
    """3, 8, 15, 97, 98: cancelled with no result yet, or before the dispatch: one synthetic outcome a call, exact on side effects."""
    batch = ToolBatch(calls("a"))

    async def host() -> None:
        async with batch:
            if started:
                batch.start("a", forever)
            await forever()

    task = asyncio.ensure_future(host())
    await turn(3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert codes(result_of(batch)) == {"a": "request_aborted"}
    assert effects(result_of(batch), "a") == ("unknown" if started else "not_started")


@turned
async def test_16_a_hook_stops_the_turn_after_the_first_result() -> None:
    """16: three calls, a hook raises after the first result: three results, the last two not started."""
    with pytest.raises(ToolCrash):
        async with ToolBatch(calls("a", "b", "c")) as batch:
            batch.start("a", instant)
            await turn(3)
            raise ToolCrash
    assert codes(check_batch(batch, ["a", "b", "c"])) == {"a": "success", "b": "batch_failed", "c": "batch_failed"}
    assert [effects(result_of(batch), call_id) for call_id in "bc"] == ["not_started", "not_started"]


@turned
async def test_18_25_cancelling_an_outer_batch() -> None:
    """18, 25: a batch with nested batches is cancelled: answers at both levels, and the inner ones are closed first."""
    inner = [ToolBatch(calls("x", "y")) for _ in range(2)]
    closed: list[float] = []

    async def agent(batch: ToolBatch) -> None:
        async with batch:
            batch.start("x", forever)
            batch.start("y", instant)
            try:
                await batch.snapshot()
            finally:
                closed.append(now())

    async with ToolBatch(calls("a", "b"), timeout=0.1) as outer:
        outer.start("a", agent, inner[0])
        outer.start("b", agent, inner[1])
        await outer.snapshot()
    assert codes(result_of(outer)) == {"a": "timeout", "b": "timeout"}
    assert [codes(result_of(batch)) for batch in inner] == [{"x": "request_aborted", "y": "success"}] * 2
    assert closed == [0.1, 0.1]


@turned
async def test_19_31_a_tool_killed_in_mid_run_is_unknown() -> None:
    """19, 31: a tool that ran when it was cut off is never said not to have been executed."""
    async with ToolBatch(calls("a", "b")) as batch:
        batch.start("a", forever)
        await asyncio.sleep(1)
        batch.close()
    for call_id, state in (("a", "unknown"), ("b", "not_started")):
        assert effects(result_of(batch), call_id) == state
        for claim in ("not executed", "rejected", "NOT", "stopped", "rolled back"):
            assert claim not in message(result_of(batch), call_id)


@turned
async def test_21_a_tear_down_tells_of_each_call() -> None:
    """21: tools that are cancelled in a tear-down do not vanish: one outcome a call."""
    told: list[str] = []
    async with ToolSession(on_outcome=lambda outcome: told.append(outcome.call_id)) as session:
        batch = session.batch(calls("a", "b", "c"))
        await batch.__aenter__()
        batch.start("a", forever)
        batch.start("b", instant)
        await turn(3)
    assert sorted(told) == ["a", "b", "c"]
    assert codes(result_of(batch)) == {"a": "request_aborted", "b": "success", "c": "request_aborted"}
    await batch.__aexit__(None, None, None)


@turned
async def test_22_an_inner_agent_cancels_itself() -> None:
    """22: a tool cancels a batch of its own: only that ends, and the outer batch goes on."""
    inner = ToolBatch(calls("x"))

    async def agent() -> str:
        async with inner:
            inner.start("x", forever)
            await turn(2)
            inner.close()
            await inner.snapshot()
        return "the inner agent gave up"

    async with ToolBatch(calls("a", "b")) as outer:
        outer.start("a", agent)
        outer.start("b", after, 1)
    assert codes(result_of(outer)) == {"a": "success", "b": "success"}
    assert codes(result_of(inner)) == {"x": "cancelled"}


@turned
async def test_23_a_librarys_own_cancelled() -> None:
    """23: a library's cancelled exception is a cancellation, and no error that invites to retry."""

    class Cancelled(Exception):
        pass

    async def tool() -> NoReturn:
        raise Cancelled("the sub-agent was cancelled")

    async with ToolBatch(calls("a"), cancel_exceptions=(Cancelled,)) as batch:
        batch.start("a", tool)
    assert end(result_of(batch), "a").status == "cancelled"
    assert batch.outcomes["a"].status == "cancelled"


@turned
async def test_26_a_cancel_that_overtakes_the_start() -> None:
    """26: the cancellation comes before the start: the terminal state wins, nothing runs, nothing hangs."""
    ran = []

    async def tool() -> None:
        ran.append(True)

    async with ToolBatch(calls("a")) as batch:
        assert batch.cancel("a").accepted
        batch.start("a", tool) if batch.result is None else None
    with pytest.raises(BatchClosedError):
        batch.start("a", tool)
    assert codes(result_of(batch)) == {"a": "cancelled"}
    assert ran == []


@turned
async def test_28_a_superseded_generation_never_executes() -> None:
    """28: calls of a turn that was thrown away never execute: no one hangs up on a live caller."""
    hung_up = []

    async def end_call() -> None:
        hung_up.append(True)

    async with ToolSession() as session, session.batch(calls("a")) as old:
        old.start("a", end_call)
        async with session.batch([]):
            await turn(5)
    assert hung_up == []
    assert (code(result_of(old), "a"), effects(result_of(old), "a")) == ("superseded", "not_started")


# -- C: timeouts -------------------------------------------------------------------------------------------------------


@turned
async def test_32_a_tool_that_never_returns() -> None:
    """32: a tool swallows its cancellation and never returns: settled at +0.2 all the same, and the close is bounded."""
    tool = Stubborn()
    async with ToolBatch(calls("a"), timeout=0.2, teardown_timeout=0.5) as batch:
        batch.start("a", tool)
        await batch.snapshot()
        assert now() == 0.2
    assert now() == 0.7
    tool.release.set()
    await turn(3)


@turned
async def test_33_both_entry_points_end_alike() -> None:
    """33: the same timeout through a sync and an async tool: identical outcomes, nothing leaks out of the step."""
    hung, seen = Hung(), []
    late = asyncio.Event()
    for tool in (hung, forever):
        async with ToolBatch(calls("a"), timeout=1, teardown_timeout=0, on_late=lambda _outcome: late.set()) as batch:
            batch.start("a", tool)
            if tool is hung:
                hung.wait_entered()
            snapshot = await batch.snapshot()
        seen.append(snapshot.to_dict()["calls"])
        hung.release.set()
        await late.wait()
        late.clear()
    assert seen[0] == seen[1]


@turned
async def test_35_one_hung_tool_does_not_stall_the_turn() -> None:
    """35: a hung tool beside a fast one, and nobody cancels: the batch's deadline settles it."""
    async with ToolBatch(calls("hang", "fast"), timeout=30) as batch:
        batch.start("hang", forever)
        batch.start("fast", instant)
        snapshot = await batch.snapshot()
    assert codes(snapshot) == {"hang": "timeout", "fast": "success"}
    assert now() == 30


@turned
async def test_36_a_tool_that_settles_just_after_the_grace() -> None:
    """36: a tool that ends a moment after its grace: the outcome stays cancelled, its payload is in the audit."""

    async def obeys_slowly() -> str:
        try:
            await forever()
        except asyncio.CancelledError:
            await asyncio.sleep(5.001)
            return "terminal payload"

    async with ToolSession(teardown_timeout=10, keep_content=True) as session, session.batch(calls("a")) as batch:
        batch.start("a", obeys_slowly)
        await turn(2)
        batch.cancel("a")
    assert code(result_of(batch), "a") == "cancelled"
    (stale,) = session.audit.drain()
    assert stale.content == "terminal payload"


@turned
async def test_38_an_abandoned_turn_can_not_act() -> None:
    """38: a timed-out turn's tool tries to start a nested call of its batch: refused."""
    refused: list[BatchClosedError] = []

    async def orphan() -> None:
        try:
            await forever()
        except asyncio.CancelledError:
            await asyncio.sleep(1)
            try:
                batch.start("b", instant)
            except BatchClosedError as error:
                refused.append(error)

    async with ToolBatch(calls("a", "b"), timeout=1, teardown_timeout=10) as batch:
        batch.start("a", orphan)
    assert len(refused) == 1
    assert effects(result_of(batch), "b") == "not_started"


# -- D, E: late, duplicate, misplaced -----------------------------------------------------------------------------------


@turned
async def test_39_a_cancelled_call_tells_its_server_once() -> None:
    """39: an adapter that must tell its server of a cancellation gets it once, and has time to, within the bound."""
    sent = []

    async def remote() -> None:
        try:
            await forever()
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await asyncio.sleep(0.5)
                sent.append("notifications/cancelled")
            raise

    async with ToolBatch(calls("a"), timeout=1, teardown_timeout=5) as batch:
        batch.start("a", remote)
    assert sent == ["notifications/cancelled"]
    assert batch.outcomes["a"].cancellation == "acknowledged"
    assert effects(result_of(batch), "a") == "unknown"


@turned
async def test_43_what_was_finished_before_an_interruption_is_kept() -> None:
    """43: done at +0.1, interrupted at +0.2: the snapshot of the interrupted generation has the result, so no one repeats it."""
    async with ToolSession() as session, session.batch(calls("a", "b")) as old:
        old.start("a", after, 0.1, "reserved")
        old.start("b", forever)
        await asyncio.sleep(0.2)
        async with session.batch([]):
            pass
    assert content(result_of(old), "a") == "reserved"
    assert end(result_of(old), "a").provenance == "reported"
    assert code(result_of(old), "b") == "superseded"


@turned
async def test_45_46_a_call_is_answered_once() -> None:
    """45, 46: a second delivery for one call is evidence, the first stands."""
    tool = Stubborn("second")
    async with ToolSession() as session, session.batch(calls("a", "b")) as batch:
        batch.start("a", tool)
        batch.start("b", after, 3)
        await turn(2)
        batch.cancel("a", code="first")
        tool.release.set()
        await turn(3)
        (stale,) = session.audit.drain()
        assert stale.reason == "duplicate_settlement"
        await batch.snapshot()
    assert code(result_of(batch), "a") == "first"
    assert [diagnostic.reason for diagnostic in result_of(batch).diagnostics] == ["duplicate_settlement"]


# -- F, G: order and siblings -------------------------------------------------------------------------------------------


@turned
async def test_59_61_results_are_in_source_order() -> None:
    """59, 61: the slow one first, the fast one second: the snapshot is in source order."""
    async with ToolBatch(calls("sf", "tokyo")) as batch:
        batch.start("sf", after, 5, "15C")
        batch.start("tokyo", after, 1, "25C")
        snapshot = await batch.snapshot()
    assert [(call.id, content(snapshot, call.id)) for call in snapshot.calls] == [("sf", "15C"), ("tokyo", "25C")]


@turned
async def test_62_one_error_discards_no_sibling() -> None:
    """62: ok at 0.05, boom at 0.1, slow at 0.3: three results, and the slow one is not cancelled."""

    async def fails() -> NoReturn:
        await asyncio.sleep(0.1)
        raise ToolCrash("boom")

    async with ToolBatch(calls("ok", "boom", "slow")) as batch:
        batch.start("ok", after, 0.05)
        batch.start("boom", fails)
        batch.start("slow", after, 0.3)
        snapshot = await batch.snapshot()
    assert codes(snapshot) == {"ok": "success", "boom": "tool_error", "slow": "success"}
    assert now() == 0.3


@turned
async def test_65_66_groups_are_flattened() -> None:
    """65, 66: a tool's own task groups, two deep: the error names the leaves, and the exit raises no group."""

    async def tool() -> None:
        async with asyncio.TaskGroup() as outer:

            async def inner() -> None:
                async with anyio.create_task_group() as group:
                    group.start_soon(fails)

            async def fails() -> NoReturn:
                raise ToolCrash("the leaf")

            outer.create_task(inner())

    async with ToolBatch(calls("a")) as batch:
        batch.start("a", tool)
    assert message(result_of(batch), "a") == "the leaf"


# -- H: results that are not JSON ---------------------------------------------------------------------------------------


def _strict(snapshot: Any) -> Any:
    def no_constant(name: str) -> NoReturn:
        raise AssertionError(name)

    return json.loads(encode(snapshot.to_dict()), parse_constant=no_constant)


async def test_68_69_datetimes(nothing_left: None) -> None:
    """68, 69: a dict with a datetime is a success with ISO text, normalised when it is recorded."""
    value: dict[str, Any] = {"when": dt.datetime(2026, 1, 2, tzinfo=dt.UTC)}

    async def tool() -> dict[str, Any]:
        return value

    async with ToolBatch(calls("a")) as batch:
        batch.start("a", tool)
        snapshot = await batch.snapshot()
        value["when"] = "changed later"
    assert content(snapshot, "a") == '{"when":"2026-01-02T00:00:00+00:00"}'
    _strict(snapshot)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"x": [float("-inf")]}])
async def test_71_no_silent_change_of_nan(value: Any, nothing_left: None) -> None:
    """71: NaN and infinity never become null in silence: a typed error, and the export is strict JSON."""
    async with ToolBatch(calls("a")) as batch:
        batch.start("a", instant, value)
    assert code(result_of(batch), "a") == "invalid_result"
    assert "null" not in _strict(result_of(batch))["calls"][0]["settlement"]["message"]


class Scalar:
    """Like a foreign scalar: no JSON form, and it is in the error too."""

    def __repr__(self) -> str:
        raise ToolCrash("no repr")

    __str__ = __repr__


async def test_72_the_path_that_reports_can_not_fail(nothing_left: None) -> None:
    """72: foreign scalars in a result and in an error's payload are both recorded."""

    async def raises() -> NoReturn:
        raise ToolCrash(Scalar(), {"payload": Scalar()})

    async with ToolBatch(calls("a", "b", "c")) as batch:
        batch.start("a", instant, {"score": Scalar()})
        batch.start("b", raises)
        batch.start("c", instant)
    assert codes(result_of(batch)) == {"a": "invalid_result", "b": "tool_error", "c": "success"}
    assert message(result_of(batch), "b") == "ToolCrash"
    _strict(result_of(batch))


async def test_73_ran_but_cant_be_shown_is_not_failed(nothing_left: None) -> None:
    """73: a tool that did its work and returned something unwritable is told apart from one that failed."""
    effects_done = []

    async def works() -> object:
        effects_done.append(True)
        return object()

    async with ToolBatch(calls("a")) as batch:
        batch.start("a", works)
    assert effects_done == [True]
    assert code(result_of(batch), "a") == "invalid_result"
    assert message(result_of(batch), "a").startswith("The tool ran, but its result can't be shown")


# -- K, M: supersession, disconnects ------------------------------------------------------------------------------------


@turned
async def test_83_a_new_message_while_a_call_waits_for_approval() -> None:
    """83: the user types instead of clicking approve: the waiting call is closed as superseded, not started, before the new turn."""
    async with ToolSession() as session, session.batch(calls("a")) as old, session.batch(calls("b")) as new:
        assert (code(result_of(old), "a"), effects(result_of(old), "a")) == ("superseded", "not_started")
        new.start("b", instant)
    assert codes(result_of(new)) == {"b": "success"}


async def test_95_a_stream_whose_client_leaves(nothing_left: None) -> None:
    """95: a streaming response is closed in mid-batch: the snapshot is there to be saved, with no await."""
    saved: list[Any] = []

    async def stream() -> AsyncIterator[bytes]:
        batch = ToolBatch(calls("a", "b"))
        try:
            async with batch:
                batch.start("a", forever)
                batch.start("b", instant)
                yield b"data: 1\n\n"
                await batch.snapshot()
        finally:
            saved.append(_strict(result_of(batch)))

    events: Any = stream()
    await anext(events)
    await turn(2)
    await events.aclose()
    assert [call["state"] for call in saved[0]["calls"]] == ["cancelled", "success"]
    await turn(3)


async def test_95_a_starlette_request_whose_client_leaves(nothing_left: None) -> None:
    """95: a real Starlette streaming response whose client disconnects in mid-batch: aborted, saved, and nothing swallowed (B10)."""
    from starlette.responses import StreamingResponse

    saved: list[ToolBatch] = []
    streaming, gone = asyncio.Event(), asyncio.Event()

    async def stream() -> AsyncIterator[bytes]:
        async with ToolBatch(calls("a", "b")) as batch:
            saved.append(batch)
            batch.start("a", forever)
            batch.start("b", instant)
            yield b"data: 1\n\n"
            await batch.snapshot()

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        streaming.set()

    scope = {"type": "http", "asgi": {"spec_version": "2.1"}, "method": "GET", "path": "/", "headers": []}
    request = asyncio.ensure_future(StreamingResponse(stream())(scope, receive, send))
    await streaming.wait()
    await turn(5)
    gone.set()
    await request
    assert codes(result_of(saved[0])) == {"a": "request_aborted", "b": "success"}
    assert saved[0].outcomes["a"].cancellation == "acknowledged"
    await turn(3)


@turned
async def test_96_a_caller_may_detach() -> None:
    """96: a page refresh need not lose work: a shielded batch runs on though its caller was cancelled."""
    batch = ToolBatch(calls("a"))

    async def work() -> Any:
        async with batch:
            batch.start("a", after, 60, "fifty messages of work")
            return await batch.snapshot()

    detached = asyncio.ensure_future(work())

    async def request() -> None:
        await asyncio.shield(detached)

    task = asyncio.ensure_future(request())
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert content(await detached, "a") == "fifty messages of work"


# -- N: threads, context, event loops ------------------------------------------------------------------------------------


async def test_99_101_context_in_threads_and_nested_batches(nothing_left: None) -> None:
    """99, 101: five parallel sync tools, each in a nested batch, see their own value and no other."""
    trace: contextvars.ContextVar[str] = contextvars.ContextVar("trace")

    def reads() -> str:
        return trace.get()

    async def nested(n: int) -> str:
        trace.set(f"span {n}")
        async with ToolBatch(calls("x")) as inner:
            inner.start("x", reads)
            return content(await inner.snapshot(), "x")

    async with ToolBatch(calls(*"01234")) as batch:
        for n in range(5):
            batch.start(str(n), nested, n)
        snapshot = await batch.snapshot()
    assert [content(snapshot, str(n)) for n in range(5)] == [f"span {n}" for n in range(5)]
    assert trace.get(None) is None


async def test_102_a_token_is_reset_where_it_was_set(nothing_left: None) -> None:
    """102: a tool that sets a variable and resets it by its token, across an await or in a thread, never fails to detach."""
    span: contextvars.ContextVar[str] = contextvars.ContextVar("span", default="none")

    async def attached() -> str:
        token = span.set("tool")
        await turn()
        span.reset(token)
        return span.get()

    def attached_in_thread() -> Awaitable[str]:
        token = span.set("thread")

        async def then() -> str:
            span.reset(token)
            return span.get()

        return then()

    async with ToolBatch(calls("a", "b")) as batch:
        batch.start("a", attached)
        batch.start("b", attached_in_thread)
    assert [content(result_of(batch), call_id) for call_id in "ab"] == ["none", "none"]


async def test_103_a_sync_tool_does_not_block_the_loop(nothing_left: None) -> None:
    """103: while a sync tool blocks, the loop's heart goes on beating."""
    gate, beats = threading.Event(), 0

    def blocks() -> str:
        assert gate.wait(20)
        return "done"

    async with ToolBatch(calls("a")) as batch:
        batch.start("a", blocks)
        while beats < 20:
            beats += 1
            await asyncio.sleep(0.001)
        assert batch.result is None
        gate.set()
        await batch.snapshot()
    assert code(result_of(batch), "a") == "success"


async def test_105_a_sync_tool_that_runs_a_loop_of_its_own(nothing_left: None) -> None:
    """105: a sync tool may call `asyncio.run`, and even run a batch in it: it has a thread of its own."""

    async def inner() -> str:
        current_call().progress("from a loop in a thread")
        async with ToolBatch(calls("x")) as batch:
            batch.start("x", instant, "from the inner loop")
            return content(await batch.snapshot(), "x")

    def tool() -> str:
        return asyncio.run(inner())

    async with ToolBatch(calls("a")) as batch:
        batch.start("a", tool)
    assert content(result_of(batch), "a") == "from the inner loop"


async def test_106_scopes_are_not_held_across_yields(nothing_left: None) -> None:
    """106, 108: generators that hold a batch are closed out of order, in other tasks, inside scopes: no scope is held across a yield."""

    async def holds(call_id: str) -> AsyncIterator[ToolBatch]:
        async with ToolBatch(calls(call_id), timeout=50) as batch:
            batch.start(call_id, instant)
            yield batch

    one: Any = holds("a")
    two: Any = holds("b")
    with anyio.CancelScope():
        first = await anext(one)
        second = await asyncio.create_task(anext(two))

    async def close(generator: Any) -> None:
        await generator.aclose()

    async with anyio.create_task_group() as group:
        group.start_soon(close, one)
        group.start_soon(close, two)
    assert {code(result_of(batch), call.id) for batch in (first, second) for call in batch.calls} <= {
        "success", "request_aborted",
    }  # fmt: skip
    await turn(3)


async def test_109_a_scope_with_a_deadline_does_not_spin(nothing_left: None) -> None:
    """109: a batch in a scope whose deadline passes, with a tool that swallows: no spinning, in real time on both loops."""
    loop = asyncio.get_running_loop()
    tool = Stubborn()
    spent = time.process_time()
    with anyio.move_on_after(0.02):
        async with ToolBatch(calls("a"), teardown_timeout=0.3) as batch:
            batch.start("a", tool)
            began = loop.time()
            await batch.snapshot()
    assert loop.time() - began >= 0.29
    assert tool.cancels == 1
    assert time.process_time() - spent < 0.15
    assert code(result_of(batch), "a") == "timeout"
    tool.release.set()
    await turn(3)


async def test_a_batch_of_a_loop_that_has_gone() -> None:
    """Using a batch whose event loop is over is refused or harmless, never a hang (C18)."""
    made: list[ToolBatch] = []

    def other() -> None:
        async def main() -> None:
            made.append(ToolBatch(calls("a")))
            await made[0].__aenter__()

        asyncio.run(main())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    coroutine = instant()
    with pytest.raises((BatchStateError, RuntimeError)):
        made[0].start("a", coroutine)
    assert is_closed(coroutine)
    assert made[0].result is None
