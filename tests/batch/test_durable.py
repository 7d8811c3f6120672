"""Durable operations in the pipeline: claimed before, completed before it is told, never run twice (D1-D5)."""

import asyncio
import logging
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NoReturn
from uuid import UUID

import pytest

from tests.batch.clock import ClockLoop, run, turned
from tests.batch.durable import RUN, Bank, FaultyStore, call, durable, executed, run_durable, state
from tests.batch.kit import Hung, Stubborn, code, content, effects, end, forever, message, result_of, totals, turn
from tests.batch.stages import After, Around, Proceed, decides
from toolbatch import (
    Image,
    InvalidInputError,
    InvalidTypeError,
    Limits,
    Text,
    ToolBatch,
    ToolCall,
    ToolError,
    ToolSession,
    current_call,
    tool,
)
from toolbatch.batch import DurableOperationError, DurableOperations
from toolbatch.core import Data
from toolbatch.operations import MemoryOperationStore
from toolbatch.ports import (
    BackendNotStartedError,
    ClaimToken,
    Deny,
    Done,
    NotApplied,
    NotDone,
    Operation,
    OperationRecord,
    OperationStore,
    Resolution,
    ResultTooLargeError,
    StillUnknown,
    WorkerKilledError,
)
from toolbatch.tools import Accept, Replace, ToolFailure, ToolResult, Verdict


async def half_done(store: OperationStore | FaultyStore, **options: Any) -> None:
    """Leave a claim as a process that died would: claimed, and no result."""
    store = store.inner if isinstance(store, FaultyStore) else store
    await store.claim(Operation(f"t/{RUN}/a", "pay", options.pop("arguments", {}), **options))


# -- once ------------------------------------------------------------------------------------------------------------------


async def test_a_call_is_claimed_before_it_runs_and_completed_before_it_is_told() -> None:
    """At each step the store knows what is about to be true."""
    store, seen = FaultyStore(), []

    async def pay() -> str:
        seen.append(await state(store))
        return "paid"

    async def told(verdict: ToolResult) -> Verdict:
        seen.append(await state(store))
        return Accept()

    batch = await run_durable(store, pay, interceptors=[After(told), durable(store)])
    assert content(result_of(batch), "a") == "paid"
    assert seen == ["open", '"paid"']
    assert store.log == ["claim", "claimed", "complete", "completed"]


async def test_a_call_that_comes_again_has_its_saved_result_and_is_not_run() -> None:
    """Byte for byte, and the outcome says that it is an earlier one."""
    store, bank = MemoryOperationStore(), Bank()
    first = await run_durable(store, bank, call(amount=7))
    again = await run_durable(store, bank, call(amount=7))
    assert bank.paid == ["a"]
    assert executed(again) == executed(first)
    assert content(result_of(again), "a") == '{"paid":7,"to":"ä"}'
    assert await state(store) == '{"paid":7,"to":"ä"}'
    outcome = again.outcomes["a"]
    assert (outcome.status, outcome.resumed, outcome.started) == ("succeeded", True, True)
    assert (outcome.completion, outcome.started_at) == ("settled", None)
    assert not first.outcomes["a"].resumed


async def test_a_replay_is_told_to_observers_and_counts_as_no_execution() -> None:
    """`on_outcome` hears of it, once, as resumed; the counters count executions (O3, O5)."""
    store, bank, told = MemoryOperationStore(), Bank(), []
    await run_durable(store, bank)
    batch = await run_durable(store, bank, on_outcome=lambda outcome: told.append(outcome.resumed))
    assert told == [True]
    assert {name: number for name, number in totals(batch).items() if number} == {}


async def test_the_idempotency_key_reaches_the_tool_and_the_store() -> None:
    """The same in both, so that a resolver can ask the service by it, and the same after a retry (B22)."""
    store, bank = MemoryOperationStore(), Bank(fails=OSError("gone"))
    await run_durable(store, bank)
    record = await store.get(f"t/{RUN}/a")
    assert record is not None
    assert record.idempotency_key == bank.keys["a"]


@pytest.mark.parametrize(
    "value",
    [
        "text",
        "",
        "5",
        5,
        1.5,
        None,
        True,
        [],
        {"ä": [1, {"b": None}]},
        "lone \\ud800 text",
        {"toolbatch.result": 1},
        "toolbatch.result",
    ],
)
async def test_any_result_comes_back_as_it_was(value: Any) -> None:
    """What the model reads the second time is what it read the first time."""
    store, seen = MemoryOperationStore(), []

    async def give() -> Any:
        return value

    async def look(proceed: Proceed) -> Any:
        seen.append(await proceed())
        return seen[-1]

    first = await run_durable(store, give, interceptors=[Around(look), durable(store)])
    again = await run_durable(store, give, interceptors=[Around(look), durable(store)])
    assert executed(again) == executed(first)
    assert again.outcomes["a"].resumed
    assert seen[0] == seen[1] == value


@pytest.mark.parametrize(
    "value",
    [date(2026, 11, 30), Decimal("1.10"), UUID(int=7), b"\xff", Path("a/b"), {date(2026, 11, 30): [Decimal(1)]}],
)
async def test_a_value_that_is_written_as_a_text_comes_back_as_it_was_shown(value: Any) -> None:
    """Quotes and all: it is no text, and the model has read its JSON."""
    store = MemoryOperationStore()

    async def give() -> Any:
        return value

    first, again = await run_durable(store, give), await run_durable(store, give)
    assert again.outcomes["a"].resumed
    assert executed(again) == executed(first)


async def test_parts_render_meta_and_what_a_tool_says_besides_come_back() -> None:
    """Also what is no plain JSON: an image, another text for the model, facts for the host, the end of the turn."""
    store, runs = MemoryOperationStore(), []

    @tool(render=lambda value: f"sum {value['n']}", meta=lambda value: {"n": value["n"], "set": {3}})
    async def count() -> dict[str, int]:
        runs.append("count")
        current_call().conclude_turn()
        current_call().add_context("a hint")
        return {"n": 3}

    @tool
    async def draw() -> list[Any]:
        runs.append("draw")
        current_call().report_failure("it is blurred", "blurred")
        return [Text("see"), Image(Data(b"png", "image/png"))]

    async def once() -> ToolBatch:
        calls = [call("a", "count"), call("b", "draw")]
        tools: dict[str, Any] = {"count": count, "draw": draw}
        async with ToolBatch(calls, tools=tools, interceptors=[durable(store)], run_id=RUN) as batch:
            batch.start_all()
            await batch.snapshot()
        return batch

    first, again = await once(), await once()
    assert sorted(runs) == ["count", "draw"]
    assert executed(again) == executed(first)
    assert again.meta == {"a": {"n": 3, "set": [3]}}
    assert again.concluded
    assert first.concluded
    assert again.added_context == first.added_context == {"a": ["a hint"]}
    assert again.outcomes["b"].status == first.outcomes["b"].status == "failed"


@pytest.mark.parametrize("what", ["meta", "concludes", "added", "failure"])
async def test_each_thing_that_is_said_beside_a_result_is_saved(what: str) -> None:
    """Alone, with a result that would need nothing else."""
    store = MemoryOperationStore()

    async def pay() -> dict[str, int]:
        if what == "concludes":
            current_call().conclude_turn()
        elif what == "added":
            current_call().add_context("a hint")
        elif what == "failure":
            current_call().report_failure("declined")
        return {"n": 1}

    made = tool(pay, meta=(lambda value: value["n"]) if what == "meta" else None)
    first, again = await run_durable(store, made), await run_durable(store, made)
    assert again.outcomes["a"].resumed
    for name in ("meta", "concluded", "added_context"):
        assert getattr(again, name) == getattr(first, name)
    assert again.outcomes["a"].status == first.outcomes["a"].status
    assert executed(again) == executed(first)


async def test_a_result_is_rendered_once() -> None:
    """For the store and for the model alike; a host's `render` may be slow."""
    rendered: list[Any] = []

    def render(value: Any) -> str:
        rendered.append(value)
        return "shown"

    async def pay() -> int:
        return 1

    await run_durable(MemoryOperationStore(), tool(pay, render=render))
    assert rendered == [1]


async def test_a_result_that_can_t_be_shown_is_done_all_the_same() -> None:
    """The work was done, so it must not be done again to get another answer (B23)."""
    store, runs = MemoryOperationStore(), []

    async def pay() -> object:
        runs.append(1)
        return object()

    first, again = await run_durable(store, pay), await run_durable(store, pay)
    assert code(result_of(first), "a") == code(result_of(again), "a") == "invalid_result"
    assert len(runs) == 1


async def test_a_result_over_the_limit_is_saved_and_said_to_be_too_large() -> None:
    """The limit is the batch's; the operation is done."""
    store, runs = MemoryOperationStore(), []

    async def pay() -> str:
        runs.append(1)
        return "x" * 100

    for _ in range(2):
        batch = await run_durable(store, pay, limits=Limits(max_result_bytes=50))
        assert code(result_of(batch), "a") == "invalid_result"
    assert len(runs) == 1


@pytest.mark.parametrize("render", [None, lambda value: f"{len(value)} characters"])
async def test_a_result_that_is_too_large_to_be_saved_is_not_shown_either(
    render: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A success that a crash forgets is none: the next process must say the same."""
    monkeypatch.setattr("toolbatch.batch._claimed.MAX_OPERATION_RESULT_BYTES", 50)
    store, runs = MemoryOperationStore(), []

    async def pay() -> str:
        runs.append(1)
        return "x" * 49

    tools = tool(pay, name="pay", render=render)
    first, again = await run_durable(store, tools), await run_durable(store, tools)
    assert message(result_of(first), "a") == "The tool ran, but its result is too large to be saved."
    assert executed(again) == executed(first)
    assert [one.outcomes["a"].resumed for one in (first, again)] == [False, True]
    assert len(runs) == 1


async def test_a_saved_result_that_is_no_json_is_an_answer_and_runs_nothing() -> None:
    """A host may have saved whatever; the operation is done."""
    store, bank = MemoryOperationStore(), Bank()
    await half_done(store)
    await store.reconcile(f"t/{RUN}/a", b"\xff not json")
    batch = await run_durable(store, bank)
    assert code(result_of(batch), "a") == "invalid_result"
    assert bank.paid == []


async def test_a_reconciled_result_is_rendered_as_the_tools_own() -> None:
    """A person writes the value, and the model reads what the tool's `render` makes of it."""
    store = MemoryOperationStore()
    await half_done(store)
    await store.reconcile(f"t/{RUN}/a", b'{"n": 3}')

    async def never() -> NoReturn:
        raise AssertionError

    plain = await run_durable(store, never)
    assert content(result_of(plain), "a") == '{"n": 3}'
    rendered = await run_durable(store, tool(never, name="pay", render=lambda value: f"sum {value['n']}"))
    assert content(result_of(rendered), "a") == "sum 3"


# -- unknown ---------------------------------------------------------------------------------------------------------------


async def test_what_was_claimed_and_has_no_result_is_told_as_unknown_and_not_run() -> None:
    """FIELD 92: the model reads that it has to verify first."""
    store, bank = MemoryOperationStore(), Bank()
    await half_done(store)
    batch = await run_durable(store, bank)
    snapshot = result_of(batch)
    assert bank.paid == []
    assert (code(snapshot, "a"), effects(snapshot, "a"), end(snapshot, "a").status) == (
        "outcome_unknown",
        "unknown",
        "error",
    )
    assert "Verify" in message(snapshot, "a")
    outcome = batch.outcomes["a"]
    assert (outcome.status, outcome.started, outcome.completion, outcome.resumed) == ("failed", True, "unknown", True)
    assert await state(store) == "open"


@pytest.mark.parametrize(
    "error", [ValueError("broke"), ToolError("gateway time-out", "gateway"), ToolError.fatal("stop", "x")]
)
async def test_what_a_tool_raises_leaves_its_claim_open_and_the_model_is_told_so(error: Exception) -> None:
    """An error says nothing of the effect; a second call of the same operation is unknown."""
    store, bank = MemoryOperationStore(), Bank(fails=error)
    if getattr(error, "is_fatal", False):
        with pytest.raises(ToolError, match="stop"):
            await run_durable(store, bank)
    else:
        first = await run_durable(store, bank)
        assert message(result_of(first), "a").endswith("verify that before repeating it.")
        assert first.outcomes["a"].exception is error
    assert await state(store) == "open"
    bank.fails = None
    again = await run_durable(store, bank)
    assert code(result_of(again), "a") == "outcome_unknown"
    assert bank.paid == ["a"]


class OddError(BaseException):
    """What some libraries raise past every `except Exception`."""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OddError("gave up"), "gave up. It is not known"),
        (BaseExceptionGroup("several", [OddError("gave up")]), "gave up. It is not known"),
        (GeneratorExit(), "GeneratorExit. It is not known"),
        (asyncio.CancelledError(), "Tool call was cancelled. It is not known"),
    ],
)
async def test_what_is_no_ordinary_exception_leaves_the_same_doubt(error: BaseException, said: str) -> None:
    """Also the cancellation that a tool has from within, such as from a scope of its own."""
    store = MemoryOperationStore()
    batch = await run_durable(store, Bank(fails=error))
    assert message(result_of(batch), "a").startswith(said)
    assert await state(store) == "open"


def test_a_tool_that_ends_the_process_leaves_the_same_doubt() -> None:
    """It passes through the loop; what is kept of the call, in a journal perhaps, must not say that nothing was done."""
    store, batches = MemoryOperationStore(), []

    async def leaving() -> None:
        batch = ToolBatch([call()], tools={"pay": Bank(fails=SystemExit(3))}, interceptors=[durable(store)], run_id=RUN)
        batches.append(batch)
        async with batch:
            batch.start_all()

    with pytest.raises(SystemExit):
        asyncio.run(leaving())
    assert message(result_of(batches[0]), "a").endswith("verify that before repeating it.")


async def hurry(proceed: Proceed) -> Any:
    """Give up after five seconds, in words of its own."""
    try:
        async with asyncio.timeout(5):
            return await proceed()
    except TimeoutError:
        raise ToolError("too slow", "slow") from None


@turned
async def test_a_time_bound_further_out_leaves_the_same_doubt() -> None:
    """The policy that gave up waiting says what it likes; the tool may have had its effect all the same."""
    store = MemoryOperationStore()

    batch = await run_durable(store, forever, interceptors=[Around(hurry), durable(store)])
    assert message(result_of(batch), "a").startswith("too slow. It is not known")
    assert (code(result_of(batch), "a"), await state(store)) == ("slow", "open")


@turned
async def test_a_time_bound_further_out_leaves_the_same_doubt_while_the_result_is_saved() -> None:
    """The tool has done its work by then, and only the host has lost patience."""
    store, bank = FaultyStore(), Bank()
    store.on["complete"] = forever

    batch = await run_durable(store, bank, interceptors=[Around(hurry), durable(store)])
    assert message(result_of(batch), "a").startswith("too slow. It is not known")
    assert await state(store) == '{"paid":50,"to":"ä"}'


async def test_a_retry_around_it_does_not_run_it_twice() -> None:
    """FIELD 92: the first lost its answer, and the second is refused."""
    store, bank = MemoryOperationStore(), Bank(fails=ConnectionError("reset"))

    async def retry(proceed: Proceed) -> Any:
        try:
            return await proceed()
        except ConnectionError:
            return await proceed()

    batch = await run_durable(store, bank, interceptors=[Around(retry), durable(store)])
    assert code(result_of(batch), "a") == "outcome_unknown"
    assert effects(result_of(batch), "a") == "unknown"
    assert bank.paid == ["a"]


@pytest.mark.parametrize("arguments", ['{"items": [1]}', {"items": [1]}])
async def test_a_retry_is_the_same_operation_whatever_the_tool_did_to_its_arguments(arguments: Any) -> None:
    """It is unknown, and no conflict."""
    store, runs = MemoryOperationStore(), []

    async def pay(items: list[int]) -> NoReturn:
        runs.append(1)
        items.append(2)
        raise ConnectionError("reset")

    async def retry(proceed: Proceed) -> Any:
        with suppress(ConnectionError):
            return await proceed()
        return await proceed()

    announced = ToolCall("a", "pay", arguments)
    batch = await run_durable(store, pay, announced, interceptors=[Around(retry), durable(store)])
    assert (code(result_of(batch), "a"), len(runs)) == ("outcome_unknown", 1)


async def test_a_retry_that_finds_the_store_down_does_not_say_that_nothing_was_started() -> None:
    """The first attempt was entered (B5)."""
    store, bank = FaultyStore(), Bank(fails=ConnectionError("reset"))

    async def retry(proceed: Proceed) -> Any:
        with suppress(ConnectionError):
            return await proceed()
        store.breaks("claim")
        return await proceed()

    batch = await run_durable(store, bank, interceptors=[Around(retry), durable(store)])
    assert (code(result_of(batch), "a"), effects(result_of(batch), "a")) == ("checkpoint_failed", "unknown")


@pytest.mark.parametrize("ends", ["raises", "is cancelled"])
async def test_what_stands_inside_may_have_done_the_work_elsewhere(ends: str) -> None:
    """It has not run the tool here, and that says nothing: the claim stays open."""
    store, elsewhere = MemoryOperationStore(), asyncio.Event()

    async def run_elsewhere(_: Proceed) -> Any:
        elsewhere.set()
        if ends == "raises":
            raise ConnectionError("the worker is gone")
        await forever()

    hooks = [durable(store), Around(run_elsewhere)]
    async with ToolBatch([call()], tools={"pay": Bank()}, interceptors=hooks, run_id=RUN) as batch:
        batch.start_all()
        await elsewhere.wait()
        if ends == "is cancelled":
            batch.cancel("a")
        await batch.snapshot()
    assert await state(store) == "open"


@turned
async def test_a_late_value_is_not_saved_where_something_inside_would_have_changed_it() -> None:
    """What it would have made of it nobody knows."""
    store, stubborn = MemoryOperationStore(), Stubborn("raw")

    async def inner(proceed: Proceed) -> Any:
        return f"signed {await proceed()}"

    slow = tool(stubborn.__call__, name="pay", timeout=5)
    hooks = [durable(store), Around(inner)]
    batch = await run_durable(store, slow, interceptors=hooks, teardown_timeout=0)
    assert code(result_of(batch), "a") == "timeout"
    stubborn.release.set()
    await turn(10)
    assert await state(store) == "open"


async def test_a_retry_inside_of_it_is_one_operation() -> None:
    """Under one claim, with one key; its end is the operation's."""
    store, bank = MemoryOperationStore(), Bank(fails=ConnectionError("reset"))

    async def retry(proceed: Proceed) -> Any:
        try:
            return await proceed()
        except ConnectionError:
            bank.fails = None
            return await proceed()

    batch = await run_durable(store, bank, interceptors=[durable(store), Around(retry)])
    assert code(result_of(batch), "a") == "success"
    assert bank.paid == ["a", "a"]
    assert await state(store) == '{"paid":50,"to":"ä"}'


async def test_a_tool_that_has_done_nothing_releases_its_claim() -> None:
    """`NotApplied` is the tool's word for it: the model reads why, and the call may be made again."""
    store, bank = MemoryOperationStore(), Bank(fails=NotApplied("the account is locked", "locked"))
    first = await run_durable(store, bank)
    assert (code(result_of(first), "a"), message(result_of(first), "a")) == ("locked", "the account is locked")
    assert await state(store) == "free"
    bank.fails = None
    again = await run_durable(store, bank)
    assert code(result_of(again), "a") == "success"
    assert bank.paid == ["a", "a"]


@pytest.mark.parametrize(
    ("answers", "left", "said"),
    [
        ([ConnectionError("reset"), NotApplied("refused")], "open", "outcome_unknown"),
        ([NotApplied("refused"), ConnectionError("reset"), NotApplied("refused")], "open", "outcome_unknown"),
        ([NotApplied("refused"), NotApplied("refused")], "free", "not_applied"),
    ],
)
async def test_the_last_of_several_attempts_speaks_for_itself_only(
    answers: list[Exception], left: str, said: str
) -> None:
    """A payment that may have been sent, and then a refused connection: the claim is kept, or it would be paid twice."""
    store, waiting = MemoryOperationStore(), list(answers)

    async def pay() -> None:
        raise waiting.pop(0)

    async def retry(proceed: Proceed) -> Any:
        while len(waiting) > 1:
            with suppress(ConnectionError, NotApplied):
                await proceed()
        return await proceed()

    batch = await run_durable(store, pay, interceptors=[durable(store), Around(retry)])
    assert (code(result_of(batch), "a"), await state(store)) == (said, left)
    assert message(result_of(batch), "a").count("verify") == (left == "open")


async def test_what_stands_around_a_tool_may_say_that_its_one_attempt_was_not_applied() -> None:
    """Such as a host's own translation of a refused connection."""
    store = MemoryOperationStore()

    async def translate(proceed: Proceed) -> Any:
        try:
            return await proceed()
        except ConnectionRefusedError as error:
            raise NotApplied("nothing was sent") from error

    batch = await run_durable(
        store, Bank(fails=ConnectionRefusedError("no")), interceptors=[durable(store), Around(translate)]
    )
    assert (code(result_of(batch), "a"), await state(store)) == ("not_applied", "free")


async def test_a_backends_word_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    """Not started: free. Run to its end, with a value that can't be sent: done, and not to be done again. Unknown: open."""
    for error, known, said in (
        (BackendNotStartedError("the pool is closed"), "free", "backend_unavailable"),
        (ResultTooLargeError("it has 9 MB"), "failure", "invalid_result"),
        (WorkerKilledError("the worker was killed."), "open", "outcome_unknown"),
    ):
        store, bank = MemoryOperationStore(), Bank(fails=error)
        first = await run_durable(store, bank)
        assert code(result_of(first), "a") == said
        assert known in await state(store)
        assert message(result_of(first), "a").count("verify") == (1 if known == "open" else 0)
        bank.fails = None
        again = await run_durable(store, bank)
        assert code(result_of(again), "a") == ("success" if known == "free" else said)
        assert len(bank.paid) == (2 if known == "free" else 1)


def test_not_applied_is_an_ordinary_tool_error_without_a_store() -> None:
    """With a code of its own."""
    error = NotApplied("nothing was sent")
    assert (error.message, error.code, error.is_fatal) == ("nothing was sent", "not_applied", False)
    assert NotApplied.fatal("x").is_fatal
    assert NotApplied.respond_to_model("x").code == "not_applied"


async def test_a_release_that_fails_leaves_the_operation_unknown(caplog: pytest.LogCaptureFixture) -> None:
    """Which is safe, and the model still reads what the tool has said."""
    store, bank = FaultyStore().breaks("release"), Bank(fails=NotApplied("locked"))
    batch = await run_durable(store, bank)
    assert code(result_of(batch), "a") == "not_applied"
    assert await state(store) == "open"
    assert "was not released" in caplog.text


@turned
async def test_a_timeout_leaves_the_claim_open() -> None:
    """The tool's own bound is innermost, and the outcome is a timeout as ever."""
    store = MemoryOperationStore()
    batch = await run_durable(store, tool(forever, name="pay", timeout=5))
    assert (code(result_of(batch), "a"), effects(result_of(batch), "a")) == ("timeout", "unknown")
    assert await state(store) == "open"


@turned
async def test_a_tool_that_ends_after_its_timeout_completes_its_operation() -> None:
    """The call's outcome stands; the operation's end is known all the same, and no one has to look for it."""
    store, stubborn = MemoryOperationStore(), Stubborn("paid after all")
    async with ToolSession(
        tools={"pay": tool(stubborn.__call__, name="pay", timeout=5)}, interceptors=[durable(store)], run_id=RUN
    ) as session:
        async with session.batch([call()]) as batch:
            batch.start_all()
            snapshot = await batch.snapshot()
        assert code(snapshot, "a") == "timeout"
        assert await state(store) == "open"
        stubborn.release.set()
        await turn(10)
        assert await state(store) == '"paid after all"'
        async with session.batch([call()]) as again:
            again.start_all()
            assert content(await again.snapshot(), "a") == "paid after all"


@turned
async def test_a_tool_that_says_late_that_nothing_happened_frees_its_operation() -> None:
    """The same word, heard later."""
    store, stubborn = MemoryOperationStore(), Stubborn(NotApplied("nothing was sent"))
    batch = await run_durable(store, tool(stubborn.__call__, name="pay", timeout=5), teardown_timeout=0)
    assert code(result_of(batch), "a") == "timeout"
    stubborn.release.set()
    await turn(10)
    assert await state(store) == "free"


async def test_a_thread_that_ends_late_completes_its_operation() -> None:
    """A synchronous tool can't be stopped at all, so this is how it often ends."""
    store, hung = MemoryOperationStore(), Hung("paid")
    async with ToolSession(tools={"pay": hung}, interceptors=[durable(store)], run_id=RUN) as session:
        async with session.batch([call()]) as batch:
            batch.start_all()
            while not hung.entered.is_set():
                await asyncio.sleep(0)
            batch.cancel("a")
            assert effects(await batch.snapshot(), "a") == "unknown"
        assert await state(store) == "open"
        hung.release.set()
    assert await state(store) == '"paid"'


# -- the store fails -------------------------------------------------------------------------------------------------------


async def test_a_store_that_is_down_lets_nothing_start(caplog: pytest.LogCaptureFixture) -> None:
    """An error that the model can read, nothing run, and the turn goes on."""
    store, bank = FaultyStore().breaks("claim"), Bank()
    batch = await run_durable(store, bank)
    snapshot = result_of(batch)
    assert bank.paid == []
    assert (code(snapshot, "a"), effects(snapshot, "a")) == ("checkpoint_failed", "not_started")
    assert "not executed" in message(snapshot, "a")
    outcome = batch.outcomes["a"]
    assert (outcome.status, outcome.started, outcome.completion) == ("failed", False, "not_started")
    assert isinstance(outcome.exception, DurableOperationError)
    assert "could not be claimed" in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        {"read_only": {"pay"}},
        {"replay": "safe"},
        {"read_only": lambda one: one.name == "pay"},
        {"replay": {"pay": "safe"}},
    ],
)
async def test_a_store_that_is_down_lets_harmless_tools_run(options: dict[str, Any]) -> None:
    """Those without effects, and those that may run twice."""
    bank = Bank()
    batch = await run_durable(durable(FaultyStore().breaks("claim"), **options), bank)
    assert code(result_of(batch), "a") == "success"
    assert bank.paid == ["a"]


async def test_a_tool_without_effects_is_not_claimed() -> None:
    """It may be run as often as the model likes, also where its arguments have no JSON form."""
    store, bank = FaultyStore(), Bank()
    for _ in range(2):
        await run_durable(durable(store, read_only=["pay"]), bank)
    assert bank.paid == ["a", "a"]
    assert store.log == []


async def test_a_function_that_can_t_say_whether_a_tool_has_effects_is_taken_to_say_yes() -> None:
    """The careful answer."""

    def broken(one: ToolCall) -> bool:
        raise KeyError(one.name)

    store = FaultyStore()
    await run_durable(durable(store, read_only=broken), Bank())
    assert "claim" in store.log


async def test_a_completion_that_can_t_be_written_ends_the_turn() -> None:
    """The model does not read a success that a crash would forget; the exit raises what ended it (T4)."""
    store, bank = FaultyStore().breaks("complete"), Bank()
    with pytest.raises(ToolError, match="could not be saved") as caught:
        await run_durable(store, bank)
    assert (caught.value.code, caught.value.is_fatal) == ("checkpoint_failed", True)
    assert await state(store) == "open"


async def test_after_a_failed_completion_the_others_are_closed() -> None:
    """With honest outcomes: the call itself is unknown, and what ran beside it too."""
    store = FaultyStore().breaks("complete")
    async with _caught(
        ToolBatch(
            [call("a"), call("b", "wait")],
            tools={"pay": Bank(), "wait": forever},
            interceptors=[durable(store)],
            run_id=RUN,
        )
    ) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert (code(snapshot, "a"), effects(snapshot, "a")) == ("checkpoint_failed", "unknown")
    assert (code(snapshot, "b"), effects(snapshot, "b")) == ("batch_failed", "unknown")
    assert batch.outcomes["a"].status == "failed"


@turned
async def test_a_store_that_hangs_is_bounded() -> None:
    """A claim that does not come lets nothing start; a completion that does not come ends the turn."""
    store, bank = FaultyStore(), Bank()
    store.on["claim"] = forever
    batch = await run_durable(durable(store, timeout=3), bank)
    assert code(result_of(batch), "a") == "checkpoint_failed"
    assert bank.paid == []
    store = FaultyStore()
    store.on["complete"] = forever
    with pytest.raises(ToolError, match="could not be saved"):
        await run_durable(durable(store, timeout=3), bank)
    assert bank.paid == ["a"]


async def test_a_store_that_answers_nonsense_lets_nothing_start() -> None:
    """Whatever is no answer grants nothing."""

    class Odd(FaultyStore):
        async def claim(self, *_: Any, **__: Any) -> Any:
            return {"status": "claimed"}

    bank = Bank()
    batch = await run_durable(Odd(), bank)
    assert code(result_of(batch), "a") == "checkpoint_failed"
    assert bank.paid == []


async def test_a_claim_that_the_host_has_settled_meanwhile_has_the_hosts_result() -> None:
    """The late claimant's own is refused, and what is saved is what is told."""
    store = FaultyStore()

    async def pay() -> str:
        await store.inner.reconcile(f"t/{RUN}/a", b'"by hand"')
        return "by the tool"

    batch = await run_durable(store, pay)
    assert content(result_of(batch), "a") == "by hand"


async def test_a_claim_that_the_host_has_released_meanwhile_ends_the_turn() -> None:
    """It could be run again by someone else, so nobody may be told that it is done."""
    store = FaultyStore()

    async def pay() -> str:
        await store.inner.release_unknown(f"t/{RUN}/a")
        return "by the tool"

    with pytest.raises(ToolError, match="could not be saved"):
        await run_durable(store, pay)


# -- conflicts, policies, resolvers ------------------------------------------------------------------------------------------


async def test_an_id_that_is_used_again_for_something_else_is_a_conflict(caplog: pytest.LogCaptureFixture) -> None:
    """Other arguments, another tool or another identity: nothing is run, and the host's log says why."""
    store, bank = MemoryOperationStore(), Bank()
    await run_durable(store, bank, call(amount=1))
    for hook, again in (
        (durable(store), call(amount=2)),
        (durable(store), call(name="refund", amount=1)),
        (durable(store, identity={"user": "b"}), call(amount=1)),
    ):
        batch = await run_durable(hook, bank, again)
        assert (code(result_of(batch), "a"), effects(result_of(batch), "a")) == ("operation_conflict", "not_started")
    assert bank.paid == ["a"]
    assert "claimed before for another call" in caplog.text


async def test_the_order_of_arguments_is_no_difference() -> None:
    """The same call written by another writer is the same operation."""
    store, bank = MemoryOperationStore(), Bank()

    async def pay(**arguments: Any) -> Any:
        return await bank()

    await run_durable(store, pay, ToolCall("a", "pay", '{"x": 1, "y": 2}'))
    batch = await run_durable(store, pay, ToolCall("a", "pay", '{"y": 2, "x": 1.0}'))
    assert batch.outcomes["a"].resumed


async def test_what_a_tool_does_to_its_arguments_is_no_difference() -> None:
    """The fingerprint is of what the model has sent."""
    store = MemoryOperationStore()

    async def pay(items: list[int]) -> int:
        items.append(4)
        return len(items)

    for is_resumed in (False, True):
        batch = await run_durable(store, pay, ToolCall("a", "pay", '{"items": [1]}'))
        assert content(result_of(batch), "a") == "2"
        assert batch.outcomes["a"].resumed == is_resumed


async def test_tenants_and_runs_do_not_meet() -> None:
    """The same call id in another run is another operation (D5)."""
    store, bank = MemoryOperationStore(), Bank()
    await run_durable(store, bank)
    await run_durable(store, bank, run_id="run-2")
    await run_durable(DurableOperations(store, tenant="u"), bank)
    assert bank.paid == ["a", "a", "a"]


async def test_a_host_names_calls_where_the_provider_repeats_itself() -> None:
    """A gateway that calls every turn's first call `call_0` would have it answered with an earlier turn's result."""
    store, bank, turns = MemoryOperationStore(), Bank(), ["1", "2"]
    for number in turns:
        hook = durable(store, call_key=lambda one, number=number: f"{number}-{one.id}")
        await run_durable(hook, bank)
    assert bank.paid == ["a", "a"]
    assert await state(store, "1-a") == await state(store, "2-a") == '{"paid":50,"to":"ä"}'


@pytest.mark.parametrize(
    "options",
    [
        {"call_key": lambda one: ""},
        {"call_key": lambda one: 1 / 0},
        {"call_key": lambda one: "x" * 600},
        {"summary": lambda one: 5},
        {"identity": object()},
    ],
)
async def test_a_call_that_can_t_be_named_is_not_run(options: dict[str, Any]) -> None:
    """Without a name there is no claim."""
    bank = Bank()
    batch = await run_durable(durable(MemoryOperationStore(), **options), bank)
    assert (code(result_of(batch), "a"), effects(result_of(batch), "a")) == ("checkpoint_failed", "not_started")
    assert bank.paid == []


async def test_arguments_without_a_json_form_are_not_run() -> None:
    """Only a host can announce such; nobody could tell later whether it was the same call."""
    bank = Bank()
    batch = await run_durable(MemoryOperationStore(), bank, ToolCall("a", "pay", {"amount": object()}))
    assert "no JSON form" in message(result_of(batch), "a")
    assert bank.paid == []


async def test_a_summary_keeps_arguments_out_of_the_store() -> None:
    """For hosts whose arguments are secret."""
    store = MemoryOperationStore()
    await run_durable(durable(store, summary=lambda one: f"one {one.name}"), Bank(), call(amount=4711))
    record = await store.get(f"t/{RUN}/a")
    assert record is not None
    assert record.summary == "one pay"


@pytest.mark.parametrize(
    ("stored", "current", "runs"),
    [
        ("safe", "safe", True),
        ("safe", "if_not_started", False),
        ("safe", "never", False),
        ("if_not_started", "safe", False),
        ("never", "safe", False),
        ("if_not_started", "if_not_started", False),
    ],
)
async def test_the_stricter_of_the_stored_and_the_current_policy_wins(stored: Any, current: Any, runs: bool) -> None:
    """FIELD 93: an open claim is taken over only where both say that it may run twice."""
    store, bank = MemoryOperationStore(), Bank()
    await half_done(store, replay=stored)
    batch = await run_durable(durable(store, replay=current), bank)
    assert code(result_of(batch), "a") == ("success" if runs else "outcome_unknown")
    assert bank.paid == (["a"] if runs else [])


async def test_policies_are_by_tool() -> None:
    """Those that are not named have the default."""
    hook = durable(MemoryOperationStore(), replay={"look": "safe", "pay": "never"})
    assert [hook.policy(name) for name in ("look", "pay", "mail")] == ["safe", "never", "if_not_started"]


class Asked:
    """A resolver that says the same of everything."""

    def __init__(self, answer: Resolution | Exception) -> None:
        self.answer = answer
        self.asked: list[str | None] = []

    async def __call__(self, record: OperationRecord) -> Resolution:
        self.asked.append(record.idempotency_key)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def test_a_resolver_that_knows_the_end_gives_the_result() -> None:
    """It is saved, and told as the call's success; nothing is run."""
    store, bank, asked = MemoryOperationStore(), Bank(), Asked(Done(b'{"paid":50}'))
    await half_done(store, idempotency_key="k")
    batch = await run_durable(durable(store, resolver=asked), bank)
    assert content(result_of(batch), "a") == '{"paid":50}'
    assert (bank.paid, asked.asked) == ([], ["k"])
    assert await state(store) == '{"paid":50}'


async def test_a_resolver_that_knows_that_nothing_happened_lets_it_run() -> None:
    """If whoever had claimed it is gone, or long enough ago."""
    clock = [1000.0]
    store, bank = MemoryOperationStore(now=lambda: clock[0], owner="elsewhere"), Bank()
    await half_done(store)
    clock[0] += 1
    batch = await run_durable(durable(store, resolver=Asked(NotDone())), bank)
    assert code(result_of(batch), "a") == "success"
    assert bank.paid == ["a"]


@pytest.mark.parametrize("answer", [StillUnknown("the bank is closed"), ConnectionError("no line"), "nonsense"])
async def test_a_resolver_that_can_t_say_leaves_it_unknown(answer: Any) -> None:
    """Also one that fails, or that says what is no answer."""
    store, bank = MemoryOperationStore(), Bank()
    await half_done(store)
    batch = await run_durable(durable(store, resolver=Asked(answer)), bank)
    assert code(result_of(batch), "a") == "outcome_unknown"
    assert bank.paid == []


@turned
async def test_a_resolver_that_hangs_is_given_up() -> None:
    """It has as long as the store; the call's own time has not begun, and nothing else might end the turn."""
    store, bank = MemoryOperationStore(), Bank()
    await half_done(store)

    async def ask(_record: OperationRecord) -> Resolution:
        await asyncio.Event().wait()
        return NotDone()

    batch = await run_durable(durable(store, resolver=ask, timeout=3), bank, call_timeout=1)
    assert code(result_of(batch), "a") == "outcome_unknown"
    assert bank.paid == []


async def test_a_resolver_that_ends_as_cancelled_leaves_the_doubt() -> None:
    """What passes through is not read as a call that had no effect."""
    store, bank = MemoryOperationStore(), Bank()
    await half_done(store)

    async def ask(_record: OperationRecord) -> Resolution:
        raise asyncio.CancelledError

    batch = await run_durable(durable(store, resolver=ask), bank)
    assert message(result_of(batch), "a").endswith("verify that before repeating it.")
    assert bank.paid == []


# -- together with the rest of the pipeline ----------------------------------------------------------------------------------


async def test_a_policy_sees_saved_results_and_refusals_too() -> None:
    """`after` stands between the store and the model, for a replay as for a first run; `Replace` leaves nothing (T6)."""
    store, seen = MemoryOperationStore(), []

    async def judge(result: ToolResult) -> Verdict:
        seen.append(result)
        return Replace("[redacted]")

    for _ in range(2):
        batch = await run_durable(store, Bank(), interceptors=[After(judge), durable(store)])
        assert content(result_of(batch), "a") == "[redacted]"
    await half_done(other := MemoryOperationStore())
    batch = await run_durable(other, Bank(), interceptors=[After(judge), durable(other)])
    assert message(result_of(batch), "a") == "[redacted]"
    assert isinstance(seen[-1], ToolFailure)
    assert seen[-1].code == "outcome_unknown"


async def test_what_stands_around_it_may_change_a_saved_value() -> None:
    """An outer `around` gets the value as JSON has it, and what it makes of that is told."""
    store = MemoryOperationStore()

    async def double(proceed: Proceed) -> Any:
        return {"twice": (await proceed())["paid"] * 2}

    for _ in range(2):
        batch = await run_durable(store, Bank(), call(amount=4), interceptors=[Around(double), durable(store)])
        assert content(result_of(batch), "a") == '{"twice":8}'


async def test_a_placeholder_is_shown_at_once_and_its_operation_completed_at_the_end() -> None:
    """The work goes on under its claim (O6)."""
    store, go = MemoryOperationStore(), asyncio.Event()

    async def pay() -> str:
        current_call().pending("accepted")
        await go.wait()
        return "paid"

    async with ToolSession(tools={"pay": pay}, interceptors=[durable(store)], run_id=RUN) as session:
        async with session.batch([call()]) as batch:
            batch.start_all()
            assert content(await batch.snapshot(), "a") == "accepted"
        assert await state(store) == "open"
        go.set()
        await turn(20)
        assert await state(store) == '"paid"'
        assert [note.content for note in session.late_notes()] == ["paid"]


async def test_a_placeholder_whose_completion_fails_is_a_late_failure() -> None:
    """Its outcome stands; the note says what happened."""
    store = FaultyStore().breaks("complete")

    async def pay() -> str:
        current_call().pending("accepted")
        await asyncio.sleep(0)
        return "paid"

    async with ToolSession(tools={"pay": pay}, interceptors=[durable(store)], run_id=RUN) as session:
        async with session.batch([call()]) as batch:
            batch.start_all()
            await batch.snapshot()
        await turn(20)
        (note,) = session.late_notes()
        assert "checkpoint_failed" in note.content


async def test_a_call_that_is_not_admitted_is_not_claimed() -> None:
    """Policies and approvals come first."""
    store, bank = FaultyStore(), Bank()
    batch = await run_durable(store, bank, interceptors=[decides(Deny("no")), durable(store)])
    assert code(result_of(batch), "a") == "denied"
    assert store.log == bank.paid == []


async def test_a_task_that_runs_already_can_t_be_claimed_first() -> None:
    """It is refused, and its function asked for."""
    async with ToolBatch([call()], interceptors=[durable(MemoryOperationStore())], run_id=RUN) as batch:
        task = asyncio.ensure_future(forever())
        with pytest.raises(InvalidTypeError, match="runs already"):
            batch.start("a", task)
        task.cancel()
        await asyncio.wait([task])
        batch.start("a", Bank())
        assert code(await batch.snapshot(), "a") == "success"


def test_options_are_checked_where_they_are_given() -> None:
    """And named."""
    store = MemoryOperationStore()
    bad: list[dict[str, Any]] = [
        {"replay": "sometimes"},
        {"replay": {"pay": None}},
        {"timeout": 0},
        {"timeout": -1},
        {"tenant": " "},
    ]
    for options in bad:
        with pytest.raises(InvalidInputError):
            DurableOperations(store, **{"tenant": "t", **options})
    wrong: list[dict[str, Any]] = [
        {"read_only": "pay"},
        {"read_only": [1]},
        {"resolver": 1},
        {"call_key": "id"},
        {"tenant": 1},
        {"timeout": "1"},
    ]
    for options in wrong:
        with pytest.raises(InvalidTypeError):
            DurableOperations(store, **{"tenant": "t", **options})
    with pytest.raises(InvalidTypeError, match="OperationStore"):
        DurableOperations(object(), tenant="t")  # type: ignore[arg-type]


async def test_a_batch_needs_a_run_and_one_store() -> None:
    """Without a run's name nothing would be found again; nothing has begun."""
    hook = durable(MemoryOperationStore())
    with pytest.raises(InvalidInputError, match="run_id"):
        async with ToolBatch([call()], interceptors=[hook]):
            raise AssertionError
    with pytest.raises(InvalidInputError, match="one DurableOperations"):
        async with ToolBatch([call()], interceptors=[hook, hook], run_id=RUN):
            raise AssertionError


# -- cancellation at every await ---------------------------------------------------------------------------------------------


class _caught:
    """A batch whose fatal error is expected."""

    def __init__(self, batch: ToolBatch) -> None:
        self._batch = batch

    async def __aenter__(self) -> ToolBatch:
        return await self._batch.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[True]:
        with pytest.raises(ToolError):
            await self._batch.__aexit__(kind, error, traceback)
        return True


def _cut(how: str, batch: ToolBatch, task: "asyncio.Task[Any]") -> None:
    if how == "cancel the call":
        batch.cancel("a")
    elif how == "close the batch":
        batch.close()
    else:
        task.cancel()


@pytest.mark.parametrize("how", ["cancel the call", "close the batch", "cancel the task"])
@pytest.mark.parametrize("is_innermost", [True, False])
def test_cut_off_at_any_moment_nothing_is_done_twice_or_forgotten(how: str, is_innermost: bool) -> None:
    """At every turn of the loop: what was entered is open or completed, what was not is free, and a second run tells the truth."""
    seen: set[tuple[str, str]] = set()
    for when in range(1, 40):
        store = FaultyStore()
        loop = ClockLoop()
        entered: list[str] = []

        async def pay(entered: list[str] = entered) -> str:
            entered.append("in")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            entered.append("out")
            return "paid"

        async def inner(proceed: Proceed) -> Any:
            return await proceed()

        async def main(store: FaultyStore = store, loop: ClockLoop = loop, when: int = when, pay: Any = pay) -> None:
            hooks = [durable(store), *([] if is_innermost else [Around(inner)])]
            async with ToolBatch([call()], tools={"pay": pay}, interceptors=hooks, run_id=RUN) as batch:
                task = asyncio.current_task()
                assert task is not None
                loop.hooks[loop.turns + when] = lambda: _cut(how, batch, task)
                batch.start_all()
                await batch.snapshot()
            result_of(batch)

        async def whole(main: Any = main) -> None:
            with suppress(asyncio.CancelledError):
                await asyncio.ensure_future(main())
            await turn(20)

        run(whole(), loop)
        known = asyncio.run(state(store))
        was = "out" if "out" in entered else "in" if entered else "not entered"
        seen.add((was, known))
        assert (was, known) not in {("in", "free"), ("out", "free"), ("not entered", '"paid"'), ("in", '"paid"')}
        if was == "not entered" and is_innermost:
            assert known == "free"
    assert {("not entered", "free"), ("in", "open"), ("out", '"paid"')} <= seen


@pytest.mark.parametrize("error", [ValueError("x"), NotApplied("x")])
async def test_nothing_is_left_behind(error: Exception, nothing_left: None) -> None:
    """Whatever a tool raises, no task outlives the batch."""
    await run_durable(FaultyStore(), Bank(fails=error))


async def test_a_token_is_never_shown() -> None:
    """Neither the model nor an outcome has the claim's secret."""
    store = MemoryOperationStore()
    batch = await run_durable(store, Bank())
    secret = store._rows.kept[f"t/{RUN}/a"].secret
    assert secret not in repr(batch.outcomes) + repr(executed(batch)) + repr(ClaimToken("a", "b", secret))


async def test_what_is_logged_has_its_call_and_operation(caplog: pytest.LogCaptureFixture) -> None:
    """So that a person finds it."""
    with caplog.at_level(logging.ERROR):
        await run_durable(FaultyStore().breaks("claim"), Bank())
    (record,) = [one for one in caplog.records if getattr(one, "event_name", None) == "operation_failed"]
    assert (getattr(record, "call_id", None), getattr(record, "operation_id", None)) == ("a", f"t/{RUN}/a")
