"""Cancellation from outside, at every await of a batch's life and in every surrounding (B3, B9, B10, B18)."""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import pytest

from tests.batch.clock import ClockLoop, run, turned
from tests.batch.kit import (
    Stubborn,
    after,
    boom,
    calls,
    check_batch,
    code,
    codes,
    completion,
    effects,
    forever,
    instant,
    result_of,
    totals,
    turn,
)
from toolbatch import ExecutionOutcome, ToolBatch, ToolSession
from toolbatch.batch import let_go_count

IDS = ["instant", "slow", "raises", "swallows", "expires", "queued", "never"]


async def _swallow_once(seconds: float) -> str:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        await asyncio.sleep(0.3)
        await asyncio.sleep(0.3)
    return "swallowed"


@dataclass
class Life:
    """A whole batch with tools of every temper, and what was seen of it.

    Attributes:
        in_session: Whether the batch is one of a session.
        batch: The batch, once it was entered.
        told: What `on_outcome` was told.
        cancelling: What the host's `cancelling()` was when the cancellation left the batch.
        cancelled_as: The cancellation that left the batch.
    """

    in_session: bool
    batch: ToolBatch | None = None
    session: ToolSession | None = None
    told: list[ExecutionOutcome] = field(default_factory=list)
    cancelling: int | None = None
    cancelled_as: BaseException | None = None
    left: bool = False

    async def live(self) -> None:
        options: dict[str, Any] = {"timeout": 50, "max_concurrency": 5, "on_outcome": self.told.append}
        if self.in_session:
            async with ToolSession(teardown_timeout=0.2) as session:
                self.session = session
                await self._body(session.batch(calls(*IDS), **options))
        else:
            await self._body(ToolBatch(calls(*IDS), teardown_timeout=0.2, **options))

    async def _body(self, batch: ToolBatch) -> None:
        try:
            async with batch:
                self.batch = batch
                await turn()
                batch.start("instant", instant)
                batch.start("slow", after, 3)
                batch.start("raises", boom)
                batch.start("swallows", _swallow_once, 10, timeout=1)
                batch.start("expires", forever, timeout=2)
                batch.start("queued", after, 1)
                await turn()
                await asyncio.sleep(0.5)
                if not self.in_session:
                    batch.cancel("never")
                    await batch.snapshot()
        except asyncio.CancelledError as error:
            host = asyncio.current_task()
            assert host is not None
            self.cancelling = host.cancelling()
            self.cancelled_as = error
            raise
        finally:
            self.left = True

    def check(self) -> None:
        """Check what must be true of it, however it ended."""
        if self.batch is None:
            return
        assert self.left
        check_batch(self.batch, IDS)
        outcomes = self.batch.outcomes
        assert sorted(told.call_id for told in self.told) == sorted(IDS), "each call is told of once"
        assert {told.call_id: told.status for told in self.told} == {key: o.status for key, o in outcomes.items()}
        counted = totals(self.batch)
        assert sum(counted[s] for s in ("succeeded", "failed", "cancelled", "timed_out", "not_started")) == len(IDS)
        assert counted["started"] == sum(outcome.started for outcome in outcomes.values())


async def in_nothing(life: Life) -> None:
    await life.live()


async def in_asyncio_timeout(life: Life) -> None:
    async with asyncio.timeout(1000):
        await life.live()


async def in_task_group(life: Life) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(0.1))
        await life.live()


async def in_anyio_scope(life: Life) -> None:
    with anyio.CancelScope(deadline=asyncio.get_running_loop().time() + 1000):
        await life.live()


async def in_anyio_task_group(life: Life) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(asyncio.sleep, 0.1)
        await life.live()


async def in_fail_after(life: Life) -> None:
    with anyio.fail_after(1000):
        await life.live()


async def in_a_tool(life: Life) -> None:
    async with ToolBatch(calls("outer"), teardown_timeout=60) as outer:
        outer.start("outer", life.live)
        await outer.snapshot()


Surrounding = Callable[[Life], Awaitable[None]]
SURROUNDINGS: list[Surrounding] = [
    in_nothing, in_asyncio_timeout, in_task_group, in_anyio_scope, in_anyio_task_group, in_fail_after, in_a_tool,
]  # fmt: skip


async def _host(surrounding: Surrounding, life: Life, hooks: dict[int, int], ended: dict[str, Any]) -> None:
    loop = cast(ClockLoop, asyncio.get_running_loop())
    host = asyncio.ensure_future(surrounding(life))
    ended["granted"] = 0
    begun_at = loop.turns
    for turn_number, times in hooks.items():

        def cancel(times: int = times) -> None:
            ended["granted"] += sum(host.cancel() for _ in range(times))

        loop.hooks[begun_at + turn_number] = cancel
    await asyncio.wait([host])
    ended["turns"] = loop.turns - begun_at
    ended["cancelled"] = host.cancelled()
    ended["error"] = None if host.cancelled() else host.exception()
    ended["count"] = host.cancelling()
    loop.hooks.clear()
    while let_go_count():
        await asyncio.sleep(1)


def _lives(surrounding: Surrounding, hooks: dict[int, int], *, in_session: bool) -> tuple[Life, dict[str, Any]]:
    life, ended = Life(in_session), dict[str, Any]()
    run(_host(surrounding, life, hooks, ended))
    life.check()
    assert ended["error"] is None
    return life, ended


@pytest.mark.parametrize("in_session", [False, True], ids=["alone", "in a session"])
@pytest.mark.parametrize("surrounding", SURROUNDINGS)
def test_the_host_is_cancelled_at_every_turn(surrounding: Surrounding, in_session: bool) -> None:
    """A cancellation at any turn passes through, every call has one outcome, nothing leaks, nothing is uncancelled (B3, B9, B10)."""
    _, undisturbed = _lives(surrounding, {}, in_session=in_session)
    assert not undisturbed["cancelled"]
    aborted = 0
    for turn_number in range(1, undisturbed["turns"] + 1):
        life, ended = _lives(surrounding, {turn_number: 1}, in_session=in_session)
        assert ended["cancelled"] == bool(ended["granted"]), f"turn {turn_number}: a cancellation was swallowed"
        assert ended["count"] == ended["granted"]
        if surrounding is not in_a_tool and life.cancelled_as is not None:
            assert life.cancelling == 1, "as with a plain task group"
            assert life.cancelled_as.args == ()
        aborted += life.batch is not None and "request_aborted" in codes(result_of(life.batch)).values()
    assert aborted > 5


@pytest.mark.parametrize("in_session", [False, True], ids=["alone", "in a session"])
@pytest.mark.parametrize("surrounding", [in_nothing, in_anyio_task_group, in_a_tool])
def test_the_host_is_cancelled_twice(surrounding: Surrounding, in_session: bool) -> None:
    """A second cancellation, at any turn of the teardown that the first one began, ends the wait and changes no outcome (B6, B10)."""
    _, undisturbed = _lives(surrounding, {}, in_session=in_session)
    for first in range(2, undisturbed["turns"] + 1, 3):
        for later in (1, 2, 3, 5):
            _, ended = _lives(surrounding, {first: 1, first + later: 1}, in_session=in_session)
            assert ended["cancelled"] == bool(ended["granted"])
            assert ended["count"] == ended["granted"]


@turned
async def test_cancelled_while_the_exit_waits() -> None:
    """A cancellation during the exit's wait aborts what is pending; what is settled stays (B3)."""
    batch = ToolBatch(calls("a", "b"))

    async def host() -> None:
        async with batch:
            batch.start("a", instant)
            batch.start("b", forever)

    task = asyncio.ensure_future(host())
    await turn(3)
    task.cancel("the user left")
    with pytest.raises(asyncio.CancelledError, match="the user left"):
        await task
    assert codes(result_of(batch)) == {"a": "success", "b": "request_aborted"}
    assert task.cancelling() == 1


@turned
async def test_cancelled_twice_while_tools_wind_down() -> None:
    """The second cancellation cuts the bounded wait short, and the tool is let go and kept (B6, B9)."""
    loop = asyncio.get_running_loop()
    stubborn, batch = Stubborn(), ToolBatch(calls("a"), teardown_timeout=3600)

    async def host() -> None:
        async with batch:
            batch.start("a", stubborn)
            await forever()

    task = asyncio.ensure_future(host())
    await turn(3)
    began = loop.time()
    task.cancel()
    await turn(3)
    assert not task.done(), "it waits for the tool"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert loop.time() == began
    assert let_go_count() == 1
    assert batch.outcomes["a"].completion == "unknown"
    stubborn.release.set()
    await turn(3)
    assert let_go_count() == 0
    assert completion(batch, "a") == "settled"
    assert stubborn.cancels == 1


@turned
async def test_the_session_is_cancelled_while_it_exits() -> None:
    """A cancellation during a session's exit passes through, and what still runs is let go and counted (B9)."""
    stubborn = Stubborn()

    async def host() -> None:
        async with ToolSession(teardown_timeout=3600) as session, session.batch(calls("a")) as batch:
            batch.start("a", stubborn)
            await turn(2)
            batch.close()

    task = asyncio.ensure_future(host())
    await turn(8)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert let_go_count() == 1
    stubborn.release.set()
    await turn(3)


async def test_scope_timeout_and_group_around_a_batch() -> None:
    """Inside every kind of scope, its own cancellation comes out as its own and the batch is answered (B10, B12)."""
    for surrounding in ("timeout", "fail_after", "move_on_after", "group", "anyio group"):
        batch = ToolBatch(calls("a"))

        async def body(batch: ToolBatch = batch) -> None:
            async with batch:
                batch.start("a", forever)
                await forever()

        match surrounding:
            case "timeout":
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await body()
            case "fail_after":
                with pytest.raises(TimeoutError):
                    with anyio.fail_after(0.01):
                        await body()
            case "move_on_after":
                with anyio.move_on_after(0.01) as scope:
                    await body()
                assert scope.cancelled_caught
            case "group":
                with pytest.raises(ExceptionGroup) as caught:
                    async with asyncio.TaskGroup() as group:
                        group.create_task(boom("a sibling of the host"))
                        await body()
                assert len(caught.value.exceptions) == 1
            case _:
                async with anyio.create_task_group() as other:
                    other.start_soon(body)
                    await turn(2)
                    other.cancel_scope.cancel()
        host = asyncio.current_task()
        assert host is not None
        assert host.cancelling() == 0
        by_scope = surrounding in {"fail_after", "move_on_after"}
        assert code(result_of(batch), "a") == ("timeout" if by_scope else "request_aborted")
        assert effects(result_of(batch), "a") == "unknown"


@turned
async def test_a_cancelled_scope_does_not_cut_the_bounded_wait_short() -> None:
    """An anyio scope that is cancelled re-cancels every await inside it, but not the wait for tools at exit (B6)."""
    ended = []

    async def cleans_up() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0.5)
            ended.append(True)

    with anyio.CancelScope() as scope:
        async with ToolBatch(calls("a"), teardown_timeout=1) as batch:
            batch.start("a", cleans_up)
            await turn(2)
            scope.cancel()
            await forever()
    assert ended == [True]
    assert batch.outcomes["a"].cancellation == "acknowledged"


@turned
async def test_a_scope_that_is_cancelled_already() -> None:
    """A batch entered in a cancelled scope is aborted at its first await, not timed out (B3)."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        async with ToolBatch(calls("a")) as batch:
            batch.start("a", forever)
            await batch.snapshot()
    assert code(result_of(batch), "a") == "request_aborted"


@turned
async def test_only_an_earlier_scope_bounds_the_batch() -> None:
    """Of the batch's own bound and the enclosing scopes' deadlines, as they stood on entering, the earliest counts (B3)."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    with anyio.move_on_after(100) as scope:
        async with ToolBatch(calls("a"), timeout=10) as batch:
            batch.start("a", forever)
            scope.deadline = began + 1000
            await batch.snapshot()
            assert loop.time() == began + 10
    with anyio.move_on_after(100) as scope:
        async with ToolBatch(calls("a")) as batch:
            batch.start("a", forever)
            scope.deadline = began + 1000
            await batch.snapshot()
            assert loop.time() == began + 110, "as it stood on entering"
    assert batch.outcomes["a"].timeout == 100


@turned
async def test_a_nested_batch_ends_with_its_tool() -> None:
    """Cancelling an outer call aborts the batch that its tool runs, before the outer exit returns (B10)."""
    inner = ToolBatch(calls("x", "y"))

    async def runs_a_batch() -> str:
        async with inner:
            inner.start("x", forever)
            inner.start("y", instant)
            await inner.snapshot()
        return "unreachable"

    async with ToolBatch(calls("a")) as outer:
        outer.start("a", runs_a_batch)
        await turn(4)
        outer.close()
    assert codes(result_of(inner)) == {"x": "request_aborted", "y": "success"}
    assert inner.outcomes["x"].cancellation == "acknowledged"
    assert outer.outcomes["a"].cancellation == "acknowledged"


async def _stream(batch: ToolBatch, seen: list[Any]) -> AsyncIterator[str]:
    try:
        async with batch:
            batch.start("a", forever)
            batch.start("b", instant)
            yield "first"
            await batch.snapshot()
    finally:
        seen.append(batch.result)


async def test_an_async_generator_is_closed() -> None:
    """`aclose()` in mid-stream leaves a right `batch.result` in a `finally`, and awaits nothing (B18)."""
    batch, seen = ToolBatch(calls("a", "b")), list[Any]()
    stream = _stream(batch, seen)
    assert await anext(stream) == "first"
    await turn(2)
    closing = stream.aclose()  # type: ignore[attr-defined]  # an AsyncIterator that is a generator
    with pytest.raises(StopIteration):
        closing.send(None)  # ends at once: nothing was awaited
    assert seen == [batch.result]
    assert codes(result_of(batch)) == {"a": "request_aborted", "b": "success"}
    await turn(3)
    assert let_go_count() == 0


@turned
async def test_an_async_generator_is_closed_before_its_calls_are_entered() -> None:
    """A stream whose client left at once has calls that were not started, and their code never runs (B5, B18)."""
    batch, seen = ToolBatch(calls("a", "b")), list[Any]()
    stream = _stream(batch, seen)
    closing = stream
    await anext(closing)
    await closing.aclose()  # type: ignore[attr-defined]  # as above
    assert {effects(result_of(batch), call_id) for call_id in "ab"} == {"not_started"}
    await turn(3)
    assert let_go_count() == 0
    assert batch.outcomes["a"].completion == "not_started"


async def test_an_async_generator_is_collected() -> None:
    """A stream that nobody closes is closed by the garbage collector, and its batch is answered all the same (B18, FIELD 108)."""
    batch, seen = ToolBatch(calls("a", "b")), list[Any]()
    stream = _stream(batch, seen)
    await anext(stream)
    await turn(2)
    del stream
    gc.collect()
    await turn(5)
    assert codes(result_of(batch)) == {"a": "request_aborted", "b": "success"}
    assert let_go_count() == 0


@turned
async def test_generator_exit_in_a_session_leaves_the_tool_to_the_session() -> None:
    """On `GeneratorExit` a session's batch hands its tools over without waiting, and the session waits for them (B6, B18)."""
    stubborn = Stubborn()
    async with ToolSession(teardown_timeout=10) as session:
        with pytest.raises(GeneratorExit):
            async with session.batch(calls("a")) as batch:
                batch.start("a", stubborn)
                await turn(2)
                raise GeneratorExit
        assert session.running == 1
        assert let_go_count() == 0
        stubborn.release.set()
    assert [stale.call_id for stale in session.audit.drain()] == ["a"]


async def test_entered_in_one_task_and_left_in_another() -> None:
    """A batch may be entered in one task and left in another, also out of order (B18, FIELD 106)."""
    one, two = ToolBatch(calls("a")), ToolBatch(calls("b"))

    async def enter() -> None:
        await one.__aenter__()
        await two.__aenter__()
        one.start("a", instant)
        two.start("b", forever, timeout=0.01)

    async def leave(batch: ToolBatch) -> None:
        await batch.__aexit__(None, None, None)

    await asyncio.create_task(enter())
    await asyncio.create_task(leave(one))
    await asyncio.create_task(leave(two))
    assert (code(result_of(one), "a"), code(result_of(two), "b")) == ("success", "timeout")
    stack = contextlib.AsyncExitStack()
    await asyncio.create_task(_enter_and_start(stack))
    await asyncio.create_task(stack.aclose())


async def _enter_and_start(stack: contextlib.AsyncExitStack) -> None:
    batch = await stack.enter_async_context(ToolBatch(calls("a")))
    batch.start("a", instant)


@turned
async def test_the_error_of_the_body_is_overtaken_by_a_cancellation() -> None:
    """A cancellation while the body's own error waits for tools comes out, with that error as its context (B10)."""
    stubborn, batch = Stubborn(), ToolBatch(calls("a"), teardown_timeout=100)

    async def host() -> None:
        async with batch:
            batch.start("a", stubborn)
            await turn(2)
            raise LookupError("own")

    task = asyncio.ensure_future(host())
    await turn(6)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert isinstance(caught.value.__context__, LookupError)
    assert code(result_of(batch), "a") == "batch_failed"
    stubborn.release.set()
    await turn(3)
