"""What a tool may be, what it may return, and what it may do besides (B1, B4, B9, B11, B23)."""

import asyncio
import contextlib
import contextvars
import functools
import gc
import logging
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from typing import Any, NoReturn

import pytest

from tests.batch.clock import ClockLoop, run, turned
from tests.batch.kit import (
    Hung,
    Stubborn,
    calls,
    check_batch,
    code,
    codes,
    completion,
    content,
    end,
    forever,
    instant,
    is_closed,
    message,
    result_of,
    turn,
)
from tests.batch.stages import Around, passes
from toolbatch import BatchClosedError, Limits, ToolBatch, ToolSession, current_call
from toolbatch.batch import let_go_count
from toolbatch.core import Succeeded


class Awaited:
    """An awaitable that is none of asyncio's."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __await__(self) -> Generator[Any, None, Any]:
        yield from asyncio.sleep(0).__await__()
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value


class Service:
    """Something with methods."""

    async def work(self, n: int) -> int:
        return n + 1

    def compute(self, n: int) -> int:
        assert threading.current_thread() is not threading.main_thread()
        return n + 1

    async def __call__(self, n: int) -> int:
        return n + 1

    @classmethod
    async def made(cls, n: int) -> int:
        return n + 1

    @staticmethod
    async def alone(n: int) -> int:
        return n + 1


class SyncService:
    """A callable object that is not async."""

    def __call__(self, n: int) -> int:
        assert threading.current_thread() is not threading.main_thread()
        return n + 1


async def add(n: int, by: int = 1) -> int:
    return n + by


def wrapped(n: int) -> Awaitable[int]:
    """A plain function that returns an awaitable, as a decorated coroutine function does."""
    return add(n)


async def counts(n: int) -> AsyncIterator[int]:
    yield n - 1
    yield n
    yield n + 1


CALLABLES: dict[str, Callable[..., Any]] = {
    "coroutine function": add,
    "partial": functools.partial(add, by=1),
    "partial of a partial": functools.partial(functools.partial(add, by=2), by=1),
    "bound method": Service().work,
    "bound sync method": Service().compute,
    "callable object": Service(),
    "sync callable object": SyncService(),
    "class method": Service.made,
    "static method": Service.alone,
    "sync function": SyncService.__call__.__get__(SyncService()),
    "sync function returning a coroutine": wrapped,
    "lambda returning a coroutine": lambda n: add(n),
    "lambda returning an awaitable": lambda n: Awaited(n + 1),
    "async generator": counts,
    "partial of an async generator": functools.partial(counts),
    "a class": int,
}


@pytest.mark.parametrize("kind", CALLABLES)
async def test_every_kind_of_function(kind: str, nothing_left: None) -> None:
    """Each kind of function is run as what it is, with its arguments (B1, B12)."""
    async with ToolBatch(calls("a")) as batch:
        batch.start("a", CALLABLES[kind], 1)
        snapshot = await batch.snapshot()
    assert content(snapshot, "a") == ("1" if kind == "a class" else "2")
    outcome = batch.outcomes["a"]
    assert (outcome.status, outcome.started, outcome.completion) == ("succeeded", True, "settled")


def _future(value: Any = None, error: BaseException | None = None) -> "asyncio.Future[Any]":
    future = asyncio.get_running_loop().create_future()
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)
    return future


def _cancelled() -> "asyncio.Future[Any]":
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    return future


AWAITABLES: dict[str, tuple[Callable[[], Awaitable[Any]], str]] = {
    "coroutine": (lambda: add(1), "success"),
    "task": (lambda: asyncio.ensure_future(add(1)), "success"),
    "done future": (lambda: _future(2), "success"),
    "failed future": (lambda: _future(error=ValueError("x")), "tool_error"),
    "cancelled future": (_cancelled, "cancelled"),
    "object": (lambda: Awaited(2), "success"),
    "object that raises": (lambda: Awaited(ValueError("x")), "tool_error"),
}


@pytest.mark.parametrize("kind", AWAITABLES)
async def test_every_kind_of_awaitable(kind: str, nothing_left: None) -> None:
    """An awaitable is awaited, whatever it is and however it ends (B1, B4)."""
    make, expected = AWAITABLES[kind]
    async with ToolBatch(calls("a")) as batch:
        batch.start("a", make())
        snapshot = await batch.snapshot()
    assert code(snapshot, "a") == expected
    if expected == "success":
        assert content(snapshot, "a") == "2"


@turned
async def test_a_generators_items_are_progress() -> None:
    """An async generator's last item is its result; what it had yielded before it was cut off is progress (B19, FIELD 42)."""

    async def slowly() -> AsyncIterator[str]:
        yield "one, "
        yield "two, "
        await forever()

    async def empty() -> AsyncIterator[str]:
        return
        yield

    async with ToolBatch(calls("a", "b", "c")) as batch:
        batch.start("a", slowly, timeout=10)
        batch.start("b", empty)
        batch.start("c", counts, 1)
        snapshot = await batch.snapshot()
    cut_off = end(snapshot, "a")
    assert cut_off.to_dict()["partial"] == "one, "
    assert code(snapshot, "a") == "timeout"
    assert content(snapshot, "b") == "null"
    assert content(snapshot, "c") == "2"


@turned
async def test_a_cut_off_generator_is_closed() -> None:
    """A generator tool that is cut off runs its `finally` before the exit returns (B6)."""
    closed = []

    async def items() -> AsyncIterator[str]:
        try:
            yield "one"
            await forever()
        finally:
            closed.append(True)

    async with ToolBatch(calls("a"), timeout=1) as batch:
        batch.start("a", items)
    assert closed == [True]
    assert batch.outcomes["a"].cancellation == "acknowledged"


class Hostile:
    """A value whose every way to be written raises."""

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    def __str__(self) -> str:
        raise RuntimeError("str")

    def model_dump(self, *, mode: str) -> Any:
        raise LookupError("dump")


class Dumps:
    """A value that does something when it is written."""

    def __init__(self, do: Callable[[], Any]) -> None:
        self.do = do

    def model_dump(self, *, mode: str) -> Any:
        return self.do()


def _circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def _deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


def _generator() -> Generator[int, None, None]:
    yield 1


INVALID: dict[str, Callable[[], Any]] = {
    "NaN": lambda: float("nan"),
    "nested infinity": lambda: {"x": [float("inf")]},
    "circular": _circular,
    "deep": _deep,
    "huge": lambda: "x" * 2000,
    "huge value": lambda: ["x" * 2000],
    "lone surrogate": lambda: "\ud800",
    "object": object,
    "hostile": Hostile,
    "coroutine": lambda: add(1),
    "generator": _generator,
    "async generator": lambda: counts(1),
    "future": lambda: asyncio.get_running_loop().create_future(),
    "function": lambda: add,
    "module": lambda: asyncio,
    "exception": lambda: ValueError("returned, not raised"),
}


@pytest.mark.parametrize("kind", INVALID)
async def test_a_value_that_cant_be_shown(kind: str, nothing_left: None) -> None:
    """A value that can't be written as JSON is error/`invalid_result`, and the siblings live (B23, O1)."""

    async def tool() -> Any:
        return INVALID[kind]()

    async with ToolBatch(calls("a", "b"), limits=Limits(max_result_bytes=1000)) as batch:
        batch.start("a", tool)
        batch.start("b", add, 1)
        snapshot = await batch.snapshot()
    assert codes(snapshot) == {"a": "invalid_result", "b": "success"}
    assert message(snapshot, "a").startswith("The tool ran")
    assert batch.outcomes["a"].status == "failed"
    assert batch.outcomes["a"].completion == "settled"
    gc.collect()


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_value_that_ends_its_own_call(in_thread: bool, nothing_left: None) -> None:
    """A value that closes, cancels or raises while it is written: what it did stands, and each call has one outcome (C14, B4)."""

    def close() -> str:
        batch.close("error", "closed_by_value", "So it was.")
        return "late"

    def cancel() -> str:
        batch.cancel("a", code="cancelled_by_value")
        return "late"

    def cancel_other() -> str:
        batch.cancel("b", code="cancelled_by_value")
        return "in time"

    def abort() -> str:
        raise asyncio.CancelledError

    expected = {
        close: ("closed_by_value", "closed_by_value"),
        cancel: ("cancelled_by_value", "success"),
        cancel_other: ("success", "cancelled_by_value"),
        abort: ("cancelled", "success"),
    }
    for do, outcome in expected.items():
        gate = asyncio.Event()

        async def sibling(gate: asyncio.Event = gate) -> str:
            await gate.wait()
            return "ok"

        def value(do: Callable[[], str] = do) -> Dumps:
            return Dumps(do)

        async def async_value(do: Callable[[], str] = do) -> Dumps:
            return Dumps(do)

        async with ToolBatch(calls("a", "b")) as batch:
            batch.start("b", sibling)
            batch.start("a", value if in_thread else async_value)
            while "a" not in batch.outcomes:
                await turn()
            gate.set()
        assert tuple(codes(check_batch(batch, ["a", "b"])).values()) == outcome
        assert len(batch.audit.drain()) == (do in {close, cancel})


@turned
async def test_a_late_coroutine_is_closed() -> None:
    """A coroutine that a tool returns after its call's outcome is closed, not left to complain (B9)."""
    stubborn = Stubborn()
    async with ToolSession() as session:
        async with session.batch(calls("a"), timeout=1) as batch:
            stubborn.value = add(1)
            batch.start("a", stubborn)
        stubborn.release.set()
    gc.collect()
    (stale,) = session.audit.drain()
    assert stale.observed_status == "success"


@turned
async def test_a_coroutine_that_is_never_run_is_closed() -> None:
    """A coroutine handed over is closed when it is refused, queued, overtaken or not needed any more (B9, B5)."""
    made = []

    def coroutine() -> Any:
        made.append(add(1))
        return made[-1]

    async with ToolBatch(calls("a", "b", "c", "d"), max_concurrency=1) as batch:
        batch.cancel("d")
        batch.start("d", coroutine())  # has its outcome already
        batch.start("a", forever)
        batch.start("b", coroutine())  # queued
        batch.start("c", coroutine())  # queued and cancelled
        batch.cancel("c")
        await turn(2)
        batch.close()
    async with ToolBatch(calls("a")) as batch:
        batch.start("a", coroutine())  # launched, and closed before its first step
        batch.close()
        with pytest.raises(BatchClosedError):
            batch.start("a", coroutine())
    async with ToolBatch(calls("a")) as batch:
        batch.start("a", coroutine())
        batch.cancel("a")
        await turn(2)
    assert [is_closed(item) for item in made] == [True] * 6
    gc.collect()


@turned
async def test_a_task_that_is_handed_over_is_asked_to_stop() -> None:
    """A Task that a call awaits is cancelled with the call: running, queued, or not awaited yet (B5, B6)."""
    for state in ("running", "queued", "not awaited yet", "cancelled alone"):
        task = asyncio.ensure_future(forever())
        other = asyncio.ensure_future(forever())
        await turn()
        async with ToolBatch(calls("a", "b"), max_concurrency=1) as batch:
            batch.start("a", task)
            batch.start("b", other)
            if state != "not awaited yet":
                await turn(3)
            which = task if state != "queued" else other
            if state == "cancelled alone":
                batch.cancel("a")
                await turn(5)
                assert task.cancelled()
            batch.close()
        snapshot = check_batch(batch, ["a", "b"])
        assert {call.settlement.to_dict()["side_effect_state"] for call in snapshot.calls if call.settlement} == {
            "unknown"
        }
        await turn(3)
        assert which.cancelled(), state
        assert task.cancelled()
        assert other.cancelled()
        assert [batch.outcomes[call_id].completion for call_id in "ab"] == ["settled", "settled"]
        assert all(batch.outcomes[call_id].started for call_id in "ab")


@turned
async def test_a_tool_that_cancels_itself() -> None:
    """A tool that cancels its own task is cancelled; the batch and its host are not (B4, FIELD 63)."""

    async def suicidal() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await turn()

    async with ToolBatch(calls("a", "b")) as batch:
        batch.start("a", suicidal)
        batch.start("b", add, 1)
        snapshot = await batch.snapshot()
    assert codes(snapshot) == {"a": "cancelled", "b": "success"}
    assert batch.outcomes["a"].cancellation == "none", "we did not ask for it"
    host = asyncio.current_task()
    assert host is not None
    assert host.cancelling() == 0


@turned
async def test_a_tool_that_cancels_its_host() -> None:
    """A tool that cancels the task of the batch's host cancels from outside: it passes through (B3)."""
    batch = ToolBatch(calls("a", "b"))

    async def host() -> None:
        async with batch:
            batch.start("a", patricidal)
            batch.start("b", forever)
            await batch.snapshot()

    async def patricidal() -> str:
        task.cancel()
        await turn(5)
        return "did it"

    task = asyncio.ensure_future(host())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert set(codes(result_of(batch)).values()) == {"request_aborted"}


@turned
async def test_a_tool_that_closes_its_batch() -> None:
    """A tool may close the batch that runs it: it gets what the close says, and is asked to stop like the rest (B3)."""
    seen = []

    async def closes() -> str:
        await turn()
        seen.append(batch.close("error", "enough", "That is enough."))
        await turn(3)
        return "not reached"

    async with ToolBatch(calls("a", "b")) as batch:
        batch.start("a", closes)
        batch.start("b", forever)
        snapshot = await batch.snapshot()
    assert seen == [snapshot]
    assert codes(snapshot) == {"a": "enough", "b": "enough"}
    assert {outcome.cancellation for outcome in batch.outcomes.values()} == {"acknowledged"}


@turned
async def test_a_tool_that_cancels_its_siblings_and_itself() -> None:
    """A tool may cancel other calls, and its own (B15)."""

    async def cancels() -> str:
        assert batch.cancel("b").accepted
        assert batch.cancel("a", code="mine").accepted
        assert not batch.cancel("a").accepted
        await turn(2)
        return "not reached"

    async with ToolBatch(calls("a", "b", "c")) as batch:
        batch.start("a", cancels)
        batch.start("b", forever)
        batch.start("c", add, 1)
    assert codes(result_of(batch)) == {"a": "mine", "b": "cancelled", "c": "success"}


@turned
async def test_a_tool_that_starts_calls() -> None:
    """A tool may start calls of its own batch while it is open; from a closed batch it can't reach back in (B15, FIELD 38)."""
    ran: list[bool] = []
    refused: list[str] = []

    async def starts() -> str:
        batch.start("b", add, 1)
        return "started"

    async def late_starter() -> None:
        try:
            await forever()
        except asyncio.CancelledError:
            for target in ("a", "c"):
                try:
                    batch.start(target, runs())
                except BatchClosedError:
                    refused.append(target)

    async def runs() -> None:
        ran.append(True)

    async with ToolBatch(calls("a", "b")) as batch:
        batch.start("a", starts)
    assert codes(result_of(batch)) == {"a": "success", "b": "success"}
    async with ToolSession() as session, session.batch(calls("a", "c")) as batch:
        batch.start("a", late_starter)
        await turn(2)
        async with session.batch(calls("a", "c")) as newer:
            await turn(5)
            newer.close()
    assert refused == ["a", "c"]
    assert ran == []


@turned
async def test_a_tool_that_supersedes_its_own_batch() -> None:
    """A tool that begins a newer batch in its session supersedes the one that runs it, and lives to run it (B3, B8)."""

    async def supersedes() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            async with session.batch(calls("x")) as newer:
                newer.start("x", add, 1)
                seen.append(newer)
                await newer.snapshot()
        return "late"

    seen: list[ToolBatch] = []
    async with ToolSession() as session, session.batch(calls("a", "b")) as batch:
        batch.start("a", supersedes)
        batch.start("b", forever)
        snapshot = await batch.snapshot()
    assert codes(snapshot) == {"a": "superseded", "b": "superseded"}
    assert codes(result_of(seen[0])) in ({"x": "request_aborted"}, {"x": "success"})
    assert [stale.call_id for stale in session.audit.drain()] == ["a"]


@turned
async def test_a_tool_that_spawns_tasks() -> None:
    """Tasks that a tool makes are its own: they may go on, and may even fail, without touching the batch (B4)."""
    spawned = []

    async def spawns() -> str:
        spawned.append(asyncio.ensure_future(asyncio.sleep(5)))
        spawned.append(asyncio.ensure_future(asyncio.sleep(6)))
        return "spawned"

    async with ToolBatch(calls("a")) as batch:
        batch.start("a", spawns)
        assert code(await batch.snapshot(), "a") == "success"
    assert not spawned[0].done()
    await asyncio.wait(spawned)


def test_a_swallower_costs_nothing() -> None:
    """A tool that swallows cancellation and awaits again is asked once and woken once, also in a cancelled scope (B17, FIELD 109)."""

    async def main() -> tuple[int, int, int]:
        import anyio

        loop = asyncio.get_running_loop()
        assert isinstance(loop, ClockLoop)
        stubborn = Stubborn()
        with anyio.move_on_after(1):
            async with ToolBatch(calls("a"), teardown_timeout=10_000) as batch:
                batch.start("a", stubborn)
                before = loop.turns
                await batch.snapshot()
        used = loop.turns - before
        stubborn.release.set()
        await turn(3)
        return stubborn.cancels, stubborn.turns, used

    cancels, woken, used = run(main())
    assert cancels == 1
    assert woken == 2
    assert used < 20


async def test_swallowing_for_ever_in_real_time(nothing_left: None) -> None:
    """In real time too, on both loops: one cancellation, no re-cancelling on every turn (B12, B17)."""
    stubborn = Stubborn()
    async with ToolBatch(calls("a"), timeout=0.01, teardown_timeout=0.05) as batch:
        batch.start("a", stubborn)
        snapshot = await batch.snapshot()
        assert code(snapshot, "a") == "timeout"
    assert (stubborn.cancels, stubborn.turns) == (1, 2)
    assert batch.outcomes["a"].completion == "unknown"
    assert let_go_count() == 1
    stubborn.release.set()
    await turn(3)


@turned
async def test_a_tool_that_swallows_in_its_thread() -> None:
    """A thread can't be interrupted: its event is set, it is let go at the bound, and its end is late (B6, B7)."""
    seen = []
    hung = Hung()

    def tool() -> str:
        seen.append(current_call().cancel_event)
        return str(hung())

    late = asyncio.Event()
    async with ToolBatch(calls("a"), timeout=5, teardown_timeout=1, on_late=lambda _outcome: late.set()) as batch:
        batch.start("a", tool)
        hung.wait_entered()
        await batch.snapshot()
        await turn(2)
        assert seen[0].is_set()
    assert let_go_count() == 1
    assert batch.outcomes["a"].completion == "unknown"
    hung.release.set()
    await late.wait()
    assert let_go_count() == 0
    assert completion(batch, "a") == "settled"
    assert [stale.observed_status for stale in batch.audit.drain()] == ["success"]


@turned
async def test_an_async_tool_sees_its_cancel_event_too() -> None:
    """The cancel event is set for a tool in the loop as well: it may have handed it to a thread of its own (B6)."""
    seen = []

    async def tool() -> None:
        seen.append(current_call().cancel_event)
        await forever()

    async with ToolBatch(calls("a"), timeout=5) as batch:
        batch.start("a", tool)
        await turn(2)
        assert not seen[0].is_set()
    assert seen[0].is_set()


async def test_context_variables(nothing_left: None) -> None:
    """Each tool sees its starter's context variables in its own copy, in threads and queues too (B11, FIELD 99, 101)."""
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")

    async def in_loop() -> str:
        seen = user.get()
        user.set("spoilt")
        await turn()
        return seen

    def in_thread() -> str:
        seen = user.get()
        user.set("spoilt")
        return seen

    def returns_awaitable() -> Awaitable[str]:
        user.set(f"{user.get()}, then in a thread")
        return in_loop()

    ids = [f"{kind}{n}" for n in range(5) for kind in "ltr"]
    for max_concurrency in (None, 1):
        async with ToolBatch(calls(*ids), max_concurrency=max_concurrency) as batch:
            for call_id in ids:
                user.set(f"user of {call_id}")
                batch.start(call_id, {"l": in_loop, "t": in_thread, "r": returns_awaitable}[call_id[0]])
            user.set("the host")
            snapshot = await batch.snapshot()
        for call_id in ids:
            ending = ", then in a thread" if call_id[0] == "r" else ""
            assert content(snapshot, call_id) == f"user of {call_id}{ending}"
        assert user.get() == "the host"


@pytest.mark.parametrize("returns", ["value", "coroutine"])
def test_a_thread_that_ends_after_its_loop(returns: str, caplog: pytest.LogCaptureFixture) -> None:
    """The report of a thread that outlived its loop is lost, and said to be; nothing complains, nothing is counted on (B9)."""
    hung = Hung()
    ended = threading.Event()

    class Watch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            ended.set()

    def tool() -> Any:
        hung()
        return add(1) if returns == "coroutine" else 5

    async def main() -> None:
        async with ToolBatch(calls("a"), timeout=1, teardown_timeout=0) as batch:
            batch.start("a", tool)
            hung.wait_entered()

    run(main(), may_leave=True)
    assert let_go_count() == 1
    watch = Watch()
    logging.getLogger("toolbatch").addHandler(watch)
    try:
        hung.release.set()
        assert ended.wait(20)
    finally:
        logging.getLogger("toolbatch").removeHandler(watch)
    for _ in range(2000):
        if let_go_count() == 0:
            break
        threading.Event().wait(0.005)
    assert let_go_count() == 0
    assert "event loop was closed" in caplog.text
    gc.collect()


def test_a_tool_that_is_thrown_away_with_its_loop() -> None:
    """A tool whose coroutine is closed from outside, as when a loop is thrown away, reports nothing and complains of nothing (B9)."""
    loop, made = ClockLoop(), list[ToolBatch]()

    async def main() -> Any:
        made.append(await ToolBatch(calls("a")).__aenter__())
        made[0].start("a", forever)
        await turn(3)
        (task,) = asyncio.all_tasks() - {asyncio.current_task()}
        return task

    task = loop.run_until_complete(main())
    task.get_coro().close()
    assert made[0].outcomes == {}
    assert made[0].result is None
    made[0].close()
    task.cancel()
    loop.run_until_complete(asyncio.wait([task]))
    loop.close()


def test_starting_in_a_loop_that_was_closed() -> None:
    """A batch whose loop is closed takes no call, and closes the coroutine that came with it (B9)."""
    made = []

    async def main() -> None:
        made.append(ToolBatch(calls("a")))
        await made[0].__aenter__()

    run(main())
    coroutine = add(1)
    with pytest.raises(RuntimeError):
        made[0].start("a", coroutine)
    assert is_closed(coroutine)


@turned
async def test_a_coroutine_started_in_the_middle_keeps_its_context() -> None:
    """A queued awaitable runs in the context of who started it, not of who made room for it (B11, B13)."""
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user2")

    async def reads() -> str:
        return user.get()

    async with ToolBatch(calls("a", "b"), max_concurrency=1) as batch:
        user.set("first")
        batch.start("a", reads)
        user.set("second")
        batch.start("b", reads())
        user.set("third")
        snapshot = await batch.snapshot()
    assert [content(snapshot, call_id) for call_id in "ab"] == ["first", "second"]


async def test_progress_of_a_generator_that_has_no_text() -> None:
    """What a generator yields on its way and is no JSON is no progress, and no failure: its last item is the result (B19)."""

    async def steps() -> AsyncGenerator[object, None]:
        yield object()
        yield "done"

    async with ToolBatch(calls("a")) as batch:
        batch.start("a", steps)
    assert result_of(batch).calls[0].settlement == Succeeded("done")


@pytest.mark.parametrize("guided", [False, True])
@turned
async def test_a_call_whose_task_cant_be_made(guided: bool) -> None:
    """A task factory that fails, at a start or in a call's turn, costs that call its result, and nobody the batch (B2, B4)."""

    def fails(*_: object, **_options: object) -> NoReturn:
        raise RuntimeError("no task")

    loop, gate = asyncio.get_running_loop(), asyncio.Event()
    policies = [Around(passes)] if guided else []
    async with ToolBatch(calls("a", "b", "c"), max_concurrency=1, interceptors=policies) as batch:
        batch.start("a", gate.wait)
        batch.start("b", instant)
        await turn(3)
        loop.set_task_factory(fails)
        batch.start("c", instant)
        gate.set()
        snapshot = await batch.snapshot()
        loop.set_task_factory(None)
    assert codes(snapshot) == {"a": "success", "b": "tool_error", "c": "tool_error"}
    assert message(snapshot, "c") == "no task"
    assert batch.audit.drain() == []
