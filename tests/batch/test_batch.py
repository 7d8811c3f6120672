"""A batch's life as its caller sees it, and every way to hold it wrong (B1, B2, B13, B15)."""

import asyncio
import gc
import logging
import math
import threading
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest

from tests.batch.clock import now, turned
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
    message,
    result_of,
    turn,
)
from toolbatch import (
    BatchClosedError,
    BatchStateError,
    InvalidInputError,
    InvalidTypeError,
    Limits,
    Snapshot,
    ToolBatch,
    ToolCall,
    ToolError,
)
from toolbatch import WrongThreadError as WrongThread
from toolbatch.batch import let_go_count
from toolbatch.ports import BatchEvent, CallSettled

# -- the ordinary life --------------------------------------------------------------------------------------------------


async def test_the_life_of_a_batch(nothing_left: None) -> None:
    """Calls are started with arguments, answered in order of announcement, and the batch is sealed as complete (B1, B2, B3)."""
    gate = asyncio.Event()

    async def slow(text: str, *, suffix: str) -> str:
        await gate.wait()
        return text + suffix

    def fast(n: int) -> dict[str, int]:
        return {"n": n}

    batch = ToolBatch(calls("a", "b"))
    assert batch.result is None
    assert batch.outcomes == {}
    assert batch.generation is None
    async with batch as same:
        assert same is batch
        assert [call.id for call in batch.calls] == ["a", "b"]
        batch.start("a", slow, "x", suffix="y")
        batch.start("b", fast, n=1)
        while "b" not in batch.outcomes:
            await asyncio.sleep(0.001)
        assert batch.result is None
        assert list(batch.outcomes) == ["b"]
        gate.set()
        snapshot = await batch.snapshot()
        assert batch.result is snapshot
        assert await batch.snapshot() is snapshot
    assert [content(snapshot, call_id) for call_id in "ab"] == ["xy", '{"n":1}']
    assert snapshot.close_reason is not None
    assert snapshot.close_reason.status == "complete"
    assert batch.generation == 1
    check_batch(batch, ["a", "b"])


async def test_a_batch_of_no_calls(nothing_left: None) -> None:
    """A batch of no calls is complete from the beginning (C2, B2)."""
    async with ToolBatch([]) as batch:
        snapshot = await batch.snapshot()
        assert batch.result is snapshot
    assert snapshot.calls == ()


@turned
async def test_snapshot_waits_for_nothing_but_outcomes() -> None:
    """`snapshot()` returns at the deadline, many at once, while a tool that swallows its cancellation still runs (B2, B6)."""
    stubborn, hung = Stubborn(), Hung()
    async with ToolBatch(calls("a", "b"), timeout=100, teardown_timeout=7) as batch:
        batch.start("a", stubborn)
        batch.start("b", hung)
        hung.wait_entered()
        snapshots = await asyncio.gather(*(batch.snapshot() for _ in range(10)))
        assert now() == 100
        assert all(snapshot is batch.result for snapshot in snapshots)
        assert stubborn.entered
    assert now() == 107, "the exit waits no longer than its bound"
    assert let_go_count() == 2
    stubborn.release.set()
    hung.release.set()
    while let_go_count():
        await breathe()


@turned
async def test_a_cancelled_snapshot_leaves_the_batch_alone() -> None:
    """Whoever stops waiting for the snapshot stops waiting, and no more (B2)."""
    async with ToolBatch(calls("a")) as batch:
        batch.start("a", after, 10)
        waiting = asyncio.ensure_future(batch.snapshot())
        await turn(2)
        waiting.cancel()
        await turn(2)
        assert waiting.cancelled()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await batch.snapshot()
        assert code(await batch.snapshot(), "a") == "success"


@turned
async def test_leaving_waits_for_what_was_started() -> None:
    """Leaving the block waits for started calls as a task group does, then closes the rest as not started (B2, B3)."""
    async with ToolBatch(calls("a", "b", "c"), max_concurrency=1) as batch:
        batch.start("a", after, 3600)
        batch.start("b", after, 3600)
    assert now() == 7200
    assert codes(result_of(batch)) == {"a": "success", "b": "success", "c": "not_started"}
    assert effects(result_of(batch), "c") == "not_started"
    assert batch.outcomes["c"].status == "not_started"


@turned
async def test_calls_that_nobody_starts_keep_the_snapshot_waiting(caplog: pytest.LogCaptureFixture) -> None:
    """Only such calls left: one log line names them, and the snapshot comes when they are started, cancelled or due (B2)."""
    caplog.set_level(logging.WARNING, "toolbatch")
    async with ToolBatch(calls("a", "b", "c"), timeout=100) as batch:
        waiting = asyncio.ensure_future(batch.snapshot())
        batch.start("a", after, 1)
        await asyncio.sleep(10)
        assert not waiting.done()
        (record,) = caplog.records
        assert record.getMessage() == "snapshot() waits for 2 calls that nobody has started: ['b', 'c']"
        batch.start("b", instant)
        await turn(3)
        batch.cancel("c")
        await turn(2)
        assert codes(await waiting) == {"a": "success", "b": "success", "c": "cancelled"}
    assert len(caplog.records) == 1
    async with ToolBatch(calls("a"), timeout=100) as batch:
        began = now()
        assert code(await batch.snapshot(), "a") == "timeout"
        assert now() == began + 100
    assert batch.outcomes["a"].status == "timed_out"
    assert len(caplog.records) == 2


@turned
async def test_no_such_line_while_something_runs(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is said while a started call is still to come (B2)."""
    caplog.set_level(logging.WARNING, "toolbatch")
    async with ToolBatch(calls("a", "b")) as batch:
        batch.start("a", after, 1)
        waiting = asyncio.ensure_future(batch.snapshot())
        await turn(3)
        batch.start("b", after, 2)
        await waiting
    assert caplog.records == []


@turned
async def test_one_call_is_cancelled() -> None:
    """One call can be cancelled with a message and a code; the others run on, and a settled one stands (B15)."""
    async with ToolBatch(calls("a", "b")) as batch:
        batch.start("a", forever)
        batch.start("b", after, 10)
        await turn(2)
        answer = batch.cancel("a", "The user took it back.", "user_cancelled")
        assert answer.accepted
        assert "a" in batch.outcomes
        assert batch.result is None
        again = batch.cancel("a")
        assert not again.accepted
        assert again.reason == "duplicate_settlement"
        snapshot = await batch.snapshot()
        closed = batch.cancel("b")
        assert not closed.accepted
        assert closed.reason == "run_closed"
    assert codes(snapshot) == {"a": "user_cancelled", "b": "success"}
    assert message(snapshot, "a") == "The user took it back."
    assert now() == 10


@turned
async def test_close_says_what_the_caller_says() -> None:
    """`close` gives pending calls its status, code, message and side effects, and the body goes on (B3, B5)."""
    for given, running, waiting in ((None, "unknown", "not_started"), ("unknown",) * 3, ("not_started",) * 3):
        async with ToolBatch(calls("a", "b", "c")) as batch:
            batch.start("a", forever)
            batch.start("c", instant)
            await turn(2)
            snapshot = batch.close("error", "why", "Because.", given)  # type: ignore[arg-type]  # of a table
            assert batch.close("cancelled", "again") is snapshot, "on a closed batch it changes nothing"
        assert codes(snapshot) == {"a": "why", "b": "why", "c": "success"}
        assert [effects(snapshot, call_id) for call_id in "ab"] == [running, waiting]
        assert message(snapshot, "a") == "Because."
        assert batch.result is snapshot
    async with ToolBatch(calls("a")) as batch:
        snapshot = batch.close()
    assert code(snapshot, "a") == "cancelled"


@turned
async def test_at_most_so_many_run_at_once() -> None:
    """`max_concurrency` bounds what runs, in order of start; a queued call's own time counts from its launch (B13)."""
    running, most, order = 0, 0, []

    async def tool(name: str) -> str:
        nonlocal running, most
        order.append((name, now()))
        running += 1
        most = max(most, running)
        try:
            await asyncio.sleep(10)
        finally:
            running -= 1
        return name

    ids = ["a", "b", "c", "d", "e"]
    async with ToolBatch(calls(*ids), max_concurrency=2, call_timeout=15) as batch:
        for call_id in ids:
            batch.start(call_id, tool, call_id)
        batch.cancel("c")
        snapshot = await batch.snapshot()
    assert most == 2
    assert order == [("a", 0), ("b", 0), ("d", 10), ("e", 10)]
    assert codes(snapshot) == {"a": "success", "b": "success", "c": "cancelled", "d": "success", "e": "success"}
    assert effects(snapshot, "c") == "not_started"


@turned
async def test_a_place_comes_free_however_a_call_ends() -> None:
    """An error, a timeout and a cancellation make room as a result does; the batch's deadline counts for the queue too (B13)."""
    async with ToolBatch(calls("a", "b", "c", "d", "e"), max_concurrency=1, timeout=100) as batch:
        batch.start("a", boom)
        batch.start("b", forever, timeout=10)
        batch.start("c", forever)
        batch.start("d", after, 1000)
        batch.start("e", instant)
        await asyncio.sleep(20)
        assert list(batch.outcomes) == ["a", "b"]
        batch.cancel("c")
        snapshot = await batch.snapshot()
        assert now() == 100
    assert codes(snapshot) == {"a": "tool_error", "b": "timeout", "c": "cancelled", "d": "timeout", "e": "timeout"}
    assert effects(snapshot, "d") == "unknown"
    assert effects(snapshot, "e") == "not_started"
    assert batch.outcomes["e"].status == "timed_out"
    assert not batch.outcomes["e"].started


@turned
async def test_a_call_that_was_answered_is_not_run() -> None:
    """Starting a call that has its outcome already, by its own cancellation, runs nothing and raises nothing (FIELD 26)."""
    ran = []

    async def tool() -> None:
        ran.append(True)

    async with ToolBatch(calls("a", "b")) as batch:
        batch.cancel("a")
        batch.start("a", tool)
        batch.start("a", tool())
        batch.start("b", instant)
    assert ran == []
    assert codes(result_of(batch)) == {"a": "cancelled", "b": "success"}
    gc.collect()


async def test_calls_that_cant_be_run(nothing_left: None) -> None:
    """Malformed arguments are answered on entering, never run, and the rest goes on; starting such a call does nothing (P6, FIELD 78)."""
    ran = []

    async def tool(**_: Any) -> str:
        ran.append(True)
        return "ok"

    announced = [ToolCall("a", "t", '{"city": "San Fra'), ToolCall("b", "t", "[1]"), ToolCall("c", "t", '{"x": 1}')]
    async with ToolBatch(announced, tools={"t": tool}) as batch:
        assert list(batch.outcomes) == ["a", "b"]
        assert [call.id for call in batch.calls] == ["c"]
        batch.start("a", tool)
        batch.start_all()
        snapshot = await batch.snapshot()
        batch.start("a", tool)
    assert codes(snapshot) == {"a": "malformed_arguments", "b": "malformed_arguments", "c": "success"}
    assert effects(snapshot, "a") == "not_started"
    assert batch.outcomes["a"].status == "failed"
    assert ran == [True]
    async with ToolBatch(announced[:2]) as batch:
        assert batch.result is not None, "all are answered, so the batch is complete"
    assert result_of(batch).close_reason is not None


async def test_start_all(nothing_left: None) -> None:
    """`start_all` runs what was not started yet through `tools`, with the call's arguments; an unknown name is answered (B1, T5)."""

    async def add(a: int, timeout: int = 0) -> int:
        return a + timeout

    announced = [
        ToolCall("a", "add", {"a": 1, "timeout": 2}),
        ToolCall("b", "sub", {"a": 1}),
        ToolCall("c", "ad", {"a": 1}),
        ToolCall("d", "add", {"nonsense": 1}),
        ToolCall("e", "add"),
    ]
    async with ToolBatch(announced, tools={"add": add, "sub": lambda a: a - 1}, max_concurrency=2) as batch:
        batch.start("e", instant)
        batch.start_all()
        batch.start_all()
        snapshot = await batch.snapshot()
    expected = {"a": "success", "b": "success", "c": "unknown_tool", "d": "tool_error", "e": "success"}
    assert codes(snapshot) == expected
    assert [content(snapshot, call_id) for call_id in "abe"] == ["3", "0", "done"]
    assert "Did you mean add?" in message(snapshot, "c")
    assert effects(snapshot, "c") == "not_started"


async def test_start_all_with_nothing_to_start(nothing_left: None) -> None:
    """A turn without calls, or whose calls were all answered on entering, does not make `start_all` raise (P6)."""
    for announced in ([], [ToolCall("a", "t", "{broken")]):
        async with ToolBatch(announced, tools={"t": instant}) as batch:
            batch.start_all()
            assert len((await batch.snapshot()).calls) == len(announced)


@turned
async def test_what_a_tool_sees_was_fixed_at_its_start() -> None:
    """A queued call runs the function, and gets the arguments, that were there when it was started (O7)."""
    tools: dict[str, Any] = {"tool_a": after, "t": lambda **arguments: ["old", arguments]}
    announced = [ToolCall("a", "tool_a", {"seconds": 5}), ToolCall("b", "t", {"x": 1})]
    async with ToolBatch(announced, tools=tools, max_concurrency=1) as batch:
        batch.start_all()
        tools["t"] = lambda **arguments: ["new", arguments]
        announced[1].arguments["x"] = 2
        snapshot = await batch.snapshot()
    assert content(snapshot, "b") == '["old",{"x":1}]'


@turned
async def test_unnamed_and_wrong_tools_start_nothing() -> None:
    """A mapping with something that is no function starts no call at all (state unchanged)."""
    started = []

    async def tool() -> None:
        started.append(True)

    tools: Any = MappingProxyType({"tool_a": tool, "tool_b": 5})  # a dict would be refused at once
    async with ToolBatch(calls("a", "b"), tools=tools) as batch:
        with pytest.raises(InvalidTypeError, match="5"):
            batch.start_all()
        await turn(3)
        assert started == []
        assert batch.outcomes == {}
        batch.start("a", instant)
        batch.start("b", instant)
    assert codes(result_of(batch)) == {"a": "success", "b": "success"}


async def test_an_error_names_no_more_calls_than_can_be_read(nothing_left: None) -> None:
    """The error about an id that was not announced names ten of those that were, however many there are."""
    async with ToolBatch(calls(*(f"c{n}" for n in range(50)))) as batch:
        with pytest.raises(InvalidInputError) as caught:
            batch.start("x", instant)
        assert "'c9'" in str(caught.value)
        assert "'c10'" not in str(caught.value)
        batch.close()


async def test_repr() -> None:
    """A batch says what it is, whether it is open, and how it ended."""
    batch = ToolBatch(calls("a"))
    assert repr(batch) == "<ToolBatch, not entered>"
    async with batch:
        assert repr(batch) == "<ToolBatch of generation 1, open, 1 calls>"
        batch.close()
    assert "cancelled, 1 of 1 calls settled" in repr(batch)


# -- held wrong ---------------------------------------------------------------------------------------------------------

SECONDS = ("timeout", "call_timeout", "teardown_timeout")
NO_NUMBERS: list[Any] = [True, "1", []]
OPTIONS: list[tuple[str, Any, str]] = [
    *((name, value, "number") for name in SECONDS for value in NO_NUMBERS),
    *((name, value, "at least 0") for name in SECONDS for value in (-1, -0.5, math.nan)),
    ("timeout", Decimal(1), "number"),
    ("timeout", 1j, "number"),
    ("teardown_timeout", None, "number"),
    ("deadline", True, "time"),
    ("deadline", math.nan, "time"),
    ("deadline", "soon", "time"),
    ("max_concurrency", 0, "at least 1"),
    ("max_concurrency", -1, "at least 1"),
    ("max_concurrency", True, "positive int"),
    ("max_concurrency", 1.0, "positive int"),
    ("max_concurrency", "2", "positive int"),
    ("on_error", "explode", "cancel_siblings"),
    ("on_error", None, "cancel_siblings"),
    ("tools", [1], "mapping"),
    ("tools", "abc", "mapping"),
    ("limits", {"max_calls": 1}, "Limits"),
    ("run_id", "", "non-blank"),
    ("run_id", " ", "non-blank"),
    ("run_id", 5, "non-blank"),
    ("encode", 5, "encode"),
    ("error_detail", "everything", "error_detail"),
    ("error_detail", None, "error_detail"),
    ("cancel_exceptions", (ValueError, 5), "exception classes"),
    ("cancel_exceptions", (int,), "exception classes"),
    ("cancel_exceptions", ValueError, "exception classes"),
    ("cancel_exceptions", 5, "exception classes"),
    ("on_outcome", 5, "on_outcome"),
    ("on_late", "x", "on_late"),
    ("on_error", [], "cancel_siblings"),
    ("error_detail", [], "error_detail"),
]


@pytest.mark.parametrize(("name", "value", "text"), OPTIONS)
def test_options_that_cant_be_used(name: str, value: Any, text: str) -> None:
    """A bad option is refused where it is given, with its name or value in the error."""
    with pytest.raises((InvalidInputError, InvalidTypeError), match=text) as caught:
        ToolBatch(calls("a"), **{name: value})
    shown = repr(value)
    assert shown[:20] in str(caught.value) or repr(value[-1]) in str(caught.value), str(caught.value)


CALLS: list[tuple[Any, str]] = [
    (None, "iterable"),
    (5, "iterable"),
    ("abc", "iterable"),
    ({"id": "a", "name": "b"}, "iterable"),
    ([None], "ToolCall"),
    (["a"], "ToolCall"),
    ([{"id": "a"}], "name"),
    ([{"name": "a"}], "id"),
    ([ToolCall("", "t")], "blank"),
    ([ToolCall("a", " ")], "blank"),
    ([ToolCall("a", "t"), ToolCall("a", "u")], "announced before"),
    ([ToolCall(5, "t")], "str"),  # type: ignore[arg-type]
    ([ToolCall("x" * 600, "t")], "512"),
    ([ToolCall("a", "x" * 600)], "512"),
    ([ToolCall(f"c{n}", "t") for n in range(1001)], "1000"),
]


@pytest.mark.parametrize(("given", "text"), CALLS)
async def test_calls_that_cant_be_used(given: Any, text: str) -> None:
    """Bad calls are refused on entering, and nothing has begun (C2)."""
    batch = ToolBatch(given)
    with pytest.raises((InvalidInputError, InvalidTypeError), match=text):
        await batch.__aenter__()
    assert batch.result is None
    assert batch.generation is None
    with pytest.raises(BatchStateError, match="not entered"):
        batch.start("a", instant)


@turned
async def test_a_bad_start_changes_nothing() -> None:
    """A start that is refused names what was wrong, closes a coroutine that came with it, and leaves the call to be started (B9)."""
    made = []

    def coroutine() -> Any:
        made.append(instant())
        return made[-1]

    async with ToolBatch(calls("a", "b")) as batch:
        bad: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
            (("x", coroutine()), {}, "'x' was not announced in this batch; its calls are 'a', 'b'"),
            ((5, coroutine()), {}, "5 was not announced"),
            ((["a"], coroutine()), {}, "was not announced"),
            (("a", coroutine()), {"timeout": -1}, "-1"),
            (("a", coroutine()), {"timeout": math.nan}, "nan"),
            (("a", coroutine()), {"timeout": True}, "True"),
            (("a", coroutine()), {"timeout": "5"}, "'5'"),
            (("a", coroutine(), "an argument"), {}, "no arguments"),
            (("a", coroutine()), {"named": 1}, "no arguments"),
            (("a", None), {}, "None"),
            (("a", "text"), {}, "'text'"),
            (("a", 5), {}, "5"),
        ]
        for args, options, text in bad:
            with pytest.raises((InvalidInputError, InvalidTypeError), match=text):
                batch.start(*args, **options)
        assert batch.outcomes == {}
        assert all(map(is_closed, made))
        batch.start("a", forever)
        await turn(2)
        with pytest.raises(InvalidInputError, match="'a' was started before"):
            batch.start("a", coroutine())
        batch.start("b", instant, timeout=math.inf)
        with pytest.raises(InvalidInputError, match="tools"):
            batch.start_all()
        for call_id, code_given in (("x", None), (5, None), (None, None), ("a", ""), ("a", "c" * 200)):
            with pytest.raises((InvalidInputError, InvalidTypeError)):
                batch.cancel(call_id, None, code_given)  # type: ignore[arg-type]
        for close in (
            ("done",),
            ("success",),
            ("error", ""),
            ("error", "c" * 200),
            ("error", None, None, "maybe"),
            (None,),
            (5,),
        ):
            with pytest.raises((InvalidInputError, InvalidTypeError)):
                batch.close(*close)
        assert batch.result is None
        assert list(batch.outcomes) in ([], ["b"])
        batch.cancel("a")
        await batch.snapshot()
        with pytest.raises(BatchClosedError):
            batch.start("a", coroutine())
        with pytest.raises(InvalidInputError, match="'x'"):
            batch.cancel("x")
    assert codes(result_of(batch)) == {"a": "cancelled", "b": "success"}
    late_ids: list[Any] = ["a", "x", 5]
    for call_id in late_ids:
        with pytest.raises(BatchClosedError, match="no more work"):
            batch.start(call_id, coroutine())
    with_tools = await _left_with_tools()
    with pytest.raises(BatchClosedError):
        with_tools.start_all()
    assert await batch.snapshot() is batch.result
    assert batch.close() is batch.result
    assert all(map(is_closed, made))
    gc.collect()


async def _left_with_tools() -> ToolBatch:
    async with ToolBatch(calls("a"), tools={"tool_a": instant}) as batch:
        batch.start_all()
    return batch


@turned
async def test_a_bad_close_leaves_a_queued_thread_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A close or cancel that is refused does not lose a call that was on its way to a thread (state unchanged)."""
    from toolbatch.batch import _crew, _threads

    pool, hung, ran = _threads.WorkerThreads(max_threads=1), Hung(), asyncio.Event()
    monkeypatch.setattr(_crew, "workers", pool)
    monkeypatch.setattr(_threads, "workers", pool)
    pool.submit(_threads.Job(hung))
    hung.wait_entered()
    async with ToolBatch(calls("a")) as batch:
        batch.start("a", lambda: "ran")
        for refused in (lambda: batch.close("error", ""), lambda: batch.cancel("a", None, "")):
            with pytest.raises(InvalidInputError):
                refused()
        hung.release.set()
        snapshot = await batch.snapshot()
    assert content(snapshot, "a") == "ran"
    assert not ran.is_set()


async def test_before_entering() -> None:
    """A batch that was not entered does nothing, and says why; a coroutine handed to it is closed."""
    batch = ToolBatch(calls("a"))
    coroutine = instant()
    for use in (
        lambda: batch.start("a", coroutine),
        batch.start_all,
        lambda: batch.cancel("a"),
        batch.close,
        lambda: batch.calls,
    ):
        with pytest.raises((BatchStateError, InvalidInputError)):
            use()
    with pytest.raises(BatchStateError, match="async with"):
        await batch.snapshot()
    with pytest.raises(BatchStateError):
        await batch.__aexit__(None, None, None)
    assert is_closed(coroutine)
    assert batch.result is None
    async with batch:
        batch.start("a", instant)


async def test_entering_twice() -> None:
    """A batch is entered once: not again while it is open, nor after."""
    batch = ToolBatch(calls("a"))
    async with batch:
        with pytest.raises(BatchStateError, match="entered before"):
            await batch.__aenter__()
        batch.start("a", instant)
    with pytest.raises(BatchStateError, match="entered before"):
        await batch.__aenter__()
    assert code(result_of(batch), "a") == "success"


async def test_from_another_thread(nothing_left: None) -> None:
    """A batch used from a foreign thread refuses loudly, and is not changed (C18)."""
    errors: list[BaseException] = []
    coroutine = instant()
    async with ToolBatch(calls("a")) as batch:

        def misuse() -> None:
            for use in (
                lambda: batch.start("a", coroutine),
                lambda: batch.cancel("a"),
                batch.close,
            ):
                try:
                    use()
                except WrongThread as error:
                    errors.append(error)

        thread = threading.Thread(target=misuse)
        thread.start()
        thread.join()
        assert batch.result is None
        batch.start("a", instant)
    assert len(errors) == 3
    assert code(result_of(batch), "a") == "success"


async def test_limits(nothing_left: None) -> None:
    """A batch keeps the limits it was given (C1, B23)."""
    with pytest.raises(InvalidInputError, match="more than 1"):
        await ToolBatch(calls("a", "b"), limits=Limits(max_calls=1)).__aenter__()
    async with ToolBatch(calls("a"), limits=Limits(max_result_bytes=3)) as batch:
        batch.start("a", instant, "four")
    assert code(result_of(batch), "a") == "invalid_result"


async def test_an_injected_encoder(nothing_left: None) -> None:
    """A host's own encoder writes results (C7)."""
    async with ToolBatch(calls("a"), encode=lambda value: f'"{type(value).__name__}"') as batch:
        batch.start("a", instant, [object()])
    assert content(result_of(batch), "a") == '"list"'


async def test_a_fatal_error_is_not_hidden_by_what_it_causes() -> None:
    """A body that then can't start the rest leaves with the fatal error, not with the `BatchClosedError` (B4)."""

    async def fatal() -> None:
        raise ToolError.fatal("out of money")

    with pytest.raises(ToolError, match="out of money"):
        async with ToolBatch(calls("a", "b")) as batch:
            batch.start("a", fatal)
            while batch.result is None:
                await asyncio.sleep(0)
            batch.start("b", instant)


@pytest.mark.parametrize("end", ["success", "timeout"])
async def test_a_finished_batch_leaves_nothing_to_the_collector(end: str) -> None:
    """Nothing of a batch that is done with is in a circle: its memory comes back at once (B9)."""
    tool = instant if end == "success" else forever

    async def run() -> Snapshot:
        async with ToolBatch(calls("a", "b"), timeout=0.01) as batch:
            batch.start("a", tool, timeout=0.005)
            batch.start("b", tool, timeout=60)
            return await batch.snapshot()

    await run()
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        await run()
        gc.collect()
        ours = [thing for thing in gc.garbage if type(thing).__module__.startswith("toolbatch")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert ours == []


async def test_what_an_observer_has_started_is_not_started_again(nothing_left: None) -> None:
    """A call that an observer starts while `start_all` is at work is run once, and what it has given is its result (B1)."""
    ran: list[str] = []

    async def tool_b() -> str:
        ran.append("b")
        return "from tools"

    async def instead() -> str:
        ran.append("instead")
        await turn(3)
        return "from the observer"

    def observe(event: BatchEvent) -> None:
        if isinstance(event, CallSettled) and event.outcome.call_id == "a":
            batch.start("b", instead)

    batch = ToolBatch([ToolCall("a", "nobody"), *calls("b")], tools={"tool_b": tool_b}, on_event=observe)
    async with batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert ran == ["instead"]
    assert content(snapshot, "b") == "from the observer"


async def test_many_that_end_at_once_in_their_turn(nothing_left: None) -> None:
    """A thousand queued calls that never wait run one after the other, on a loop with eager tasks too (B12, B13)."""
    ids = [str(number) for number in range(1000)]

    async def work() -> str:
        if len(done) == 0:
            await asyncio.sleep(0)
        done.append(1)
        return "done"

    done: list[int] = []
    async with ToolBatch(calls(*ids), tools={f"tool_{one}": work for one in ids}, max_concurrency=1) as batch:
        batch.start_all()
        snapshot = await asyncio.wait_for(batch.snapshot(), 20)
    assert set(codes(snapshot).values()) == {"success"}
    assert len(done) == 1000


async def test_a_call_that_cant_be_run_is_not_started_by_an_observer(nothing_left: None) -> None:
    """While a batch is entered, an observer may start what can be run, and no more: a malformed call is answered, not run (P6)."""
    ran: list[int] = []

    async def work() -> None:
        ran.append(1)

    def observe(event: BatchEvent) -> None:
        if isinstance(event, CallSettled) and event.outcome.call_id == "a":
            batch.start("b", work)

    batch = ToolBatch([ToolCall("a", "x", "{"), ToolCall("b", "x", "{")], on_event=observe)
    async with batch:
        pass
    assert ran == []
    assert codes(result_of(batch)) == {"a": "malformed_arguments", "b": "malformed_arguments"}


async def test_an_observer_runs_no_call_again_whose_outcome_is_saved(nothing_left: None) -> None:
    """Where an observer hears of one resumed outcome, the others stand as well: what it starts of them is not run (D4)."""
    ran: list[int] = []

    async def work() -> None:
        ran.append(1)

    def observe(event: BatchEvent) -> None:
        if isinstance(event, CallSettled) and event.outcome.call_id == "a":
            batch.start("b", work)

    unknown = {
        "status": "error",
        "provenance": "synthetic",
        "code": "outcome_unknown",
        "message": "m",
        "side_effect_state": "unknown",
    }
    success = {"status": "success", "provenance": "reported", "content": "x"}
    rows = [{"id": "a", "name": "tool_a", "settlement": unknown}, {"id": "b", "name": "tool_b", "settlement": success}]
    saved = {"closed": True, "close_reason": {"status": "complete"}, "calls": rows}
    batch = ToolBatch(calls("a", "b"), on_event=observe, resume=saved)
    async with batch:
        pass
    assert ran == []
    assert codes(result_of(batch)) == {"a": "outcome_unknown", "b": "success"}
