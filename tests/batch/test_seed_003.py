"""The behaviour list of seed 003 - errors, pipeline, approvals, output budgets - line by line, in our words.

Where our requirements differ on purpose, ours is tested, and the line says so. Durable execution is with the operations' tests.
"""

import asyncio
import logging
from typing import Any

import pytest

from tests.batch.clock import now, turned
from tests.batch.kit import (
    Stubborn,
    after,
    boom,
    code,
    codes,
    completion,
    content,
    effects,
    end,
    forever,
    message,
    turn,
)
from tests.batch.stages import Around, Before, Proceed, answer, decides, judges, one, passes, run_one
from toolbatch import Image, Text, ToolBatch, ToolCall, ToolCatalog, ToolError, ToolSession, current_call, tool
from toolbatch.core import InvalidInputError
from toolbatch.output import READER_NAME, MemorySpillStore, OutputBudget, estimate_tokens, truncate_middle
from toolbatch.ports import Abort, ApprovalRequest, ApprovalRequested, Approve, CallSettled, Deny
from toolbatch.tools import (
    Accept,
    Allow,
    Ask,
    Block,
    CallAllowance,
    Decision,
    FixedApprovals,
    InteractiveApprovals,
    Interceptor,
    Prepared,
    Refused,
    Replace,
    ToolSuccess,
    ToolTimeoutError,
    dispatch,
    finalize,
    prepare,
)


async def done() -> str:
    """Return at once."""
    return "done"


@tool(name="t")
async def add(x: int, y: int = 1) -> int:
    """Add."""
    return x + y


# -- errors ------------------------------------------------------------------------------------------------------------------


@turned
async def test_a_failure_is_an_answer_and_the_turn_goes_on() -> None:
    """Seed 003: what a tool raises becomes its call's result, and its siblings and the body go on."""
    async with ToolBatch([*one(), ToolCall("b", "u")], tools={"t": boom, "u": done}) as batch:
        batch.start_all()
        assert codes(await batch.snapshot()) == {"a": "tool_error", "b": "success"}


@turned
async def test_a_fatal_error_ends_the_turn_and_is_raised_itself() -> None:
    """Seed 003: a broken contract, which no other attempt of the model would mend; the host gets the same object."""
    fatal = ToolError.fatal("wrong shape", "broken_contract")

    async def t() -> None:
        raise fatal

    with pytest.raises(ToolError) as raised:
        await run_one(t)
    assert raised.value is fatal


@turned
@pytest.mark.parametrize(
    "error", [ValueError("x"), ToolError.respond_to_model("x"), OSError("x"), ExceptionGroup("g", [ValueError("x")])]
)
async def test_whatever_is_not_fatal_is_for_the_model(error: Exception) -> None:
    """Seed 003: that it ends the turn is never a default."""

    async def t() -> None:
        raise error

    assert message(await answer(t), "a") == "x"


@turned
async def test_the_model_sees_the_message_and_the_host_the_code() -> None:
    """Seed 003: an error is written for the model, with a stable code for routing; `tool_error` where it names none (B4, not seed's name)."""

    async def own() -> None:
        raise ToolError.respond_to_model("no file /tmp/x.txt", "no_file")

    async def plain() -> None:
        raise ToolError.respond_to_model("no file")

    snapshot = await answer(own)
    assert (message(snapshot, "a"), code(snapshot, "a")) == ("no file /tmp/x.txt", "no_file")
    assert code(await answer(plain), "a") == "tool_error"


@turned
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [("nobody", "{}", "unknown_tool"), ("t", '{"x":"a"}', "invalid_arguments"), ("t", '{"x":', "malformed_arguments")],
)
async def test_the_codes_of_calls_that_cannot_run(name: str, arguments: str, expected: str) -> None:
    """Seed 003: each reason has its own code; nothing was started."""
    async with ToolBatch([ToolCall("a", name, arguments)], tools=ToolCatalog([add])) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert (code(snapshot, "a"), effects(snapshot, "a")) == (expected, "not_started")


@turned
async def test_the_code_of_a_timeout() -> None:
    """Seed 003: a tool over its own bound."""
    assert code(await answer(tool(name="t", timeout=3)(forever)), "a") == "timeout"


@turned
async def test_cut_off_after_the_start_and_before_it_are_told_apart() -> None:
    """Seed 003: aborted, or aborted before dispatch. Ours says it by the side effects, and has the second as the code of an abort (B5, T7)."""
    async with ToolBatch([*one(), ToolCall("b", "t")], max_concurrency=1, tools={"t": forever}) as batch:
        batch.start_all()
        await turn(3)
        snapshot = batch.close()
    assert [effects(snapshot, name) for name in "ab"] == ["unknown", "not_started"]


@turned
async def test_an_allowance_that_is_spent_denies() -> None:
    """Seed 003: a run's number of tool calls has a bound, with its own code."""
    allowance = CallAllowance(1)
    assert code(await answer(done, allowance), "a") == "success"
    assert code(await answer(done, allowance), "a") == "budget_exhausted"


# -- prepare -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", ["", "  \n", None, "{}"])
def test_no_arguments_are_the_empty_object(raw: str | None) -> None:
    """Seed 003: blank text as well."""
    prepared = prepare(ToolCall("a", "t", raw), {"t": tool(name="t")(done)})
    assert isinstance(prepared, Prepared)
    assert prepared.kwargs == {}


def test_bad_json_says_what_was_wrong() -> None:
    """Seed 003: the model is told, and can try again."""
    refused = prepare(ToolCall("a", "t", '{"x": 1,'), {"t": add})
    assert isinstance(refused, Refused)
    assert refused.problem.code == "malformed_arguments"
    assert "JSON" in refused.problem.message


def test_arguments_are_converted_once_and_before_any_stage() -> None:
    """Seed 003: resolve, parse, validate; all later stages see the same values."""
    prepared = prepare(ToolCall("a", "t", '{"x": "2"}'), {"t": add})
    assert isinstance(prepared, Prepared)
    assert prepared.arguments == {"x": 2}


@turned
async def test_a_classifier_that_fails_means_alone() -> None:
    """Seed 003: whether a call may overlap is asked with its arguments; the careful answer is no."""

    def judge(arguments: Any) -> bool:
        raise ValueError

    made = tool(name="t", parallel=judge)(after)
    async with ToolBatch([ToolCall(name, "t", {"seconds": 2}) for name in "ab"], tools={"t": made}) as batch:
        batch.start_all()
        await batch.snapshot()
    assert now() == 4


@turned
async def test_a_call_that_cannot_run_holds_nobody_up() -> None:
    """Seed 003 calls it exclusive. Ours is answered at once, and takes no place: there is nothing to overlap with (T8)."""
    announced = [ToolCall("a", "t", {"seconds": 5}), ToolCall("b", "nobody")]
    async with ToolBatch(announced, tools=ToolCatalog([tool(name="t")(after)]), max_concurrency=1) as batch:
        batch.start_all()
        assert batch.outcomes["b"].status == "failed"


# -- authorize -------------------------------------------------------------------------------------------------------------------


@turned
async def test_policies_see_bad_calls_and_cannot_allow_them() -> None:
    """Seed 003 shows them no bad call. Ours does, so that an audit has the attempt (T6); it stays refused."""
    seen: list[str] = []

    class Audit(Interceptor):
        async def before(self, call: Any, proceed: Any) -> Decision:
            seen.append(call.call.name)
            return Allow()

    snapshot = await answer(add, Audit(), arguments="{")
    assert (seen, code(snapshot, "a")) == (["t"], "malformed_arguments")


@turned
async def test_earlier_interceptors_are_outermost_and_gaps_are_skipped() -> None:
    """Seed 003: one that has nothing for a stage is not there in it."""
    log: list[str] = []

    def named(name: str) -> Around:
        async def around(proceed: Proceed) -> Any:
            log.append(name)
            return await proceed()

        return Around(around)

    await answer(done, named("1"), decides(Allow()), named("2"))
    assert log == ["1", "2"]


@turned
async def test_without_a_word_a_call_is_allowed() -> None:
    """Seed 003: the innermost decision."""
    assert code(await answer(done, Interceptor(), Around(passes)), "a") == "success"


@turned
async def test_a_denial_is_an_answer_with_its_reason() -> None:
    """Seed 003: the code is `denied`; nothing ran. Ours also says NOT EXECUTED."""
    snapshot = await answer(done, decides(Deny("only reading here")))
    assert (code(snapshot, "a"), message(snapshot, "a")) == ("denied", "NOT EXECUTED: only reading here.")


@turned
async def test_ask_without_anyone_to_ask_is_a_denial() -> None:
    """Seed 003: with the reason for asking. Ours tells the model that nobody is there; the reason is for a person (T7)."""
    snapshot = await answer(done, decides(Ask("dangerous")))
    assert code(snapshot, "a") == "denied"
    assert "nobody can give it here" in message(snapshot, "a")


@turned
async def test_the_request_says_all_that_is_known() -> None:
    """Seed 003: the call's identity, its tool, checked arguments, where in the run it stands, and why."""
    seen: list[ApprovalRequest] = []

    class Broker:
        async def decide(self, request: ApprovalRequest, /) -> Approve:
            seen.append(request)
            return Approve()

    batch = await run_one(add, decides(Ask("why")), arguments='{"x": 1}', approvals=Broker(), run_id="run")
    (request,) = seen
    assert (request.call_id, request.tool_name, request.arguments) == ("a", "t", {"x": 1})
    assert (request.reason, request.run_id, request.generation) == ("why", "run", 1)
    assert request.execution_id == batch.outcomes["a"].execution_id


@turned
async def test_a_decision_in_the_moment_of_asking_is_not_lost() -> None:
    """Seed 003: whoever is told may answer at once, since the one who waits is there before."""

    def resolve(request: ApprovalRequest) -> None:
        assert broker.resolve(request.call_id, Approve())

    broker = InteractiveApprovals(resolve)
    assert code(await answer(done, decides(Ask()), approvals=broker), "a") == "success"


@turned
async def test_a_request_that_reaches_nobody_leaves_nobody_waiting() -> None:
    """Seed 003 raises what the publication raised. Ours denies the call (T7); in both nothing waits any more."""

    def no_screen(request: ApprovalRequest) -> None:
        raise RuntimeError

    broker = InteractiveApprovals(no_screen)
    assert code(await answer(done, decides(Ask()), approvals=broker), "a") == "denied"
    assert broker.pending() == []


@turned
@pytest.mark.parametrize("decision", [Approve(), Deny(), Abort()])
async def test_each_wait_is_settled_once(decision: Any) -> None:
    """Seed 003: observers hear of the request, and once of its end."""
    events: list[Any] = []
    try:
        await run_one(done, decides(Ask()), approvals=FixedApprovals(decision), on_event=events.append)
    except ToolError:
        assert decision == Abort()
    assert [type(event) for event in events if isinstance(event, (ApprovalRequested, CallSettled))] == [
        ApprovalRequested,
        CallSettled,
    ]


@turned
async def test_what_is_no_decision_approves_nothing() -> None:
    """Seed 003 ends the turn. Ours denies the call: it fails closed, and the turn goes on (T7)."""

    class Broker:
        async def decide(self, request: ApprovalRequest, /) -> Any:
            return "allow"

    assert code(await answer(done, decides(Ask()), approvals=Broker()), "a") == "denied"


@turned
async def test_abort_withdraws_the_turn() -> None:
    """Seed 003: it is fatal; the call was not dispatched."""
    with pytest.raises(ToolError) as raised:
        async with ToolBatch(
            one(), tools={"t": done}, interceptors=[decides(Ask())], approvals=FixedApprovals(Abort())
        ) as batch:
            batch.start_all()
    assert (raised.value.is_fatal, raised.value.code) == (True, "aborted")
    assert batch.result is not None
    assert code(batch.result, "a") == "aborted_before_dispatch"


@turned
async def test_a_persons_denial_is_an_answer() -> None:
    """Seed 003: the model reads it and goes on."""
    snapshot = await answer(done, decides(Ask()), approvals=FixedApprovals(Deny("not today")))
    assert (code(snapshot, "a"), message(snapshot, "a")) == ("denied", "NOT EXECUTED: not today.")


@turned
async def test_an_unknown_tool_runs_under_no_policy() -> None:
    """Seed 003: even one that a policy allows and a person approves."""
    async with ToolBatch(
        [ToolCall("a", "nobody")], tools={}, interceptors=[decides(Ask())], approvals=FixedApprovals(Approve())
    ) as batch:
        batch.start_all()
        assert code(await batch.snapshot(), "a") == "unknown_tool"


# -- dispatch --------------------------------------------------------------------------------------------------------------------


@turned
async def test_a_call_that_is_cancelled_before_its_turn_is_never_entered() -> None:
    """Seed 003: the body is not run, and the outcome says so."""
    async with ToolBatch(one(), tools={"t": done}, interceptors=[Around(passes)]) as batch:
        batch.start_all()
        batch.cancel("a")
        await batch.snapshot()
    assert (batch.outcomes["a"].started, batch.outcomes["a"].completion) == (False, "not_started")


@turned
async def test_the_context_of_a_tool() -> None:
    """Seed 003: the call's identity and place in the run, a signal, a logger, and ways to add and to conclude."""

    async def t() -> str:
        call = current_call()
        assert (call.call_id, call.name, call.run_id, call.generation) == ("a", "t", "run", 1)
        assert not call.cancel_event.is_set()
        assert isinstance(call.logger, logging.LoggerAdapter)
        assert call.remaining() == 5
        return "done"

    assert code(await answer(t, Around(passes), run_id="run", call_timeout=5), "a") == "success"


@turned
async def test_nothing_is_a_result() -> None:
    """Seed 003: a tool that returns nothing has succeeded."""

    async def t() -> None:
        return None

    assert content(await answer(t, Around(passes)), "a") == "null"


@turned
async def test_a_fatal_error_passes_all_stages() -> None:
    """Seed 003: `after` is not asked. Ours is, for what the model reads; that the turn ends is not up to it (T6)."""

    async def t() -> None:
        raise ToolError.fatal("broken")

    with pytest.raises(ToolError, match="clean"):
        await run_one(t, judges(Replace("clean")))


@turned
async def test_what_a_cancelled_tool_raises_is_not_its_failure() -> None:
    """Seed 003: once it was told to stop, an error of its own is the cancellation's. Ours keeps it as evidence (B7)."""

    async def t() -> None:
        try:
            await forever()
        except asyncio.CancelledError:
            raise ValueError("connection lost") from None

    async with ToolSession() as session:
        async with session.batch(one(), tools={"t": t}, interceptors=[Around(passes)]) as batch:
            batch.start_all()
            await turn(4)
            assert code(batch.close(), "a") == "cancelled"
        await turn(4)
        (stale,) = session.audit.drain()
        assert stale.exception_type == "ValueError"


@turned
async def test_a_failure_keeps_what_was_added() -> None:
    """Seed 003: context that a tool gave before it failed reaches the caller."""

    async def t() -> None:
        current_call().add_context("half of the file")
        raise ValueError

    assert (await run_one(t, Around(passes))).added_context == {"a": ["half of the file"]}


@turned
async def test_a_value_that_is_no_json_is_an_invalid_result() -> None:
    """Seed 003: the tool ran; its answer can't be shown."""

    async def t() -> object:
        return object()

    snapshot = await answer(t, Around(passes))
    assert (code(snapshot, "a"), effects(snapshot, "a")) == ("invalid_result", None)


@turned
@pytest.mark.parametrize("what", ["render", "meta"])
async def test_a_renderer_that_fails_loses_nothing(what: str, caplog: pytest.LogCaptureFixture) -> None:
    """Seed 003: the model reads the plain value, and the host is told (by the log)."""

    def fail(value: Any) -> Any:
        raise RuntimeError("renderer")

    options: Any = {what: fail}
    assert content(await answer(tool(name="t", **options)(done), Around(passes)), "a") == "done"
    assert f"{what} of tool t failed" in caplog.text


@turned
async def test_metadata_is_for_the_host() -> None:
    """Seed 003: beside the content, which the model alone reads."""
    batch = await run_one(tool(name="t", meta=lambda value: {"length": len(value)})(done), Around(passes))
    assert batch.meta == {"a": {"length": 4}}
    assert batch.result is not None
    assert "length" not in str(batch.result.to_dict())


@turned
async def test_metadata_hides_no_failure() -> None:
    """Seed 003 asks a failed call for metadata too. Ours asks only for results (T9); in both the failure is what the model reads."""
    asked: list[Any] = []
    batch = await run_one(tool(name="t", meta=asked.append)(boom), Around(passes))
    assert batch.outcomes["a"].status == "failed"
    assert asked == []


@turned
@pytest.mark.parametrize("fails", [False, True])
async def test_only_a_success_concludes_the_turn(fails: bool) -> None:
    """Seed 003: a failure must be heard of."""

    async def t() -> str:
        current_call().conclude_turn()
        if fails:
            raise ValueError
        return "done"

    assert (await run_one(t, Around(passes))).concluded is not fails


@turned
async def test_the_timeout_is_innermost() -> None:
    """Seed 003: what stands around the tool sees it, and may answer instead."""

    async def fall_back(proceed: Proceed) -> Any:
        try:
            return await proceed()
        except ToolTimeoutError as error:
            return f"after {error.seconds:g}"

    assert content(await answer(forever, Around(fall_back), call_timeout=3), "a") == "after 3"


@turned
async def test_the_tools_own_bound_goes_before_the_default() -> None:
    """Seed 003: the default is for tools that have none."""
    batch = await run_one(tool(name="t", timeout=2)(forever), call_timeout=9)
    assert (batch.outcomes["a"].timeout, now()) == (2, 2)
    assert (await run_one(forever, call_timeout=9)).outcomes["a"].timeout == 9


@turned
async def test_a_tool_that_ignores_its_timeout_delays_nobody() -> None:
    """Seed 003 waits for it within a bound and then ends the turn. Ours answers at once, goes on, and says that its end is unknown (B6)."""
    stubborn = Stubborn()
    async with ToolSession() as session:
        async with session.batch(one(), tools={"t": stubborn}, call_timeout=3, interceptors=[Around(passes)]) as batch:
            batch.start_all()
            assert code(await batch.snapshot(), "a") == "timeout"
            assert now() == 3
        assert completion(batch, "a") == "unknown"
        stubborn.release.set()
        await turn(3)
        assert completion(batch, "a") == "settled"


@turned
async def test_no_timer_outlives_its_call() -> None:
    """Seed 003: a bound that was not needed is gone."""
    loop: Any = asyncio.get_running_loop()
    await run_one(done, Around(passes), call_timeout=1000, timeout=1000)
    assert [timer for timer in loop._scheduled if not timer.cancelled()] == []


@turned
async def test_only_the_tool_takes_a_place() -> None:
    """Seed 003: the stage that is scheduled is the tool with what stands around it; policies before and after overlap freely."""
    together = asyncio.Barrier(3)

    async def meet() -> Decision:
        await together.wait()
        return Allow()

    async with ToolBatch(
        [ToolCall(name, "t") for name in "abc"],
        tools={"t": done},
        max_concurrency=1,
        timeout=9,
        interceptors=[Before(meet)],
    ) as batch:
        batch.start_all()
        assert set(codes(await batch.snapshot()).values()) == {"success"}


# -- finalize --------------------------------------------------------------------------------------------------------------------


@turned
async def test_accept_changes_nothing() -> None:
    """Seed 003: the same result, by identity."""
    call = prepare(one()[0], {"t": tool(name="t")(done)})
    assert isinstance(call, Prepared)
    result = ToolSuccess("x", "x")
    assert await finalize(call, result) == (result, True)
    assert await dispatch(call, done) == "done"


@turned
async def test_replace_of_a_success_keeps_nothing_but_its_conclusion() -> None:
    """Seed 003: content and metadata are the policy's, the value is gone; that the turn is done stays."""

    @tool(name="t", meta=lambda value: {"secret": value})
    async def t() -> str:
        current_call().conclude_turn()
        current_call().add_context("secret")
        return "secret"

    batch = await run_one(t, judges(Replace("clean", {"by": "policy"})))
    assert batch.result is not None
    assert content(batch.result, "a") == "clean"
    assert (batch.meta, batch.added_context, batch.concluded) == ({"a": {"by": "policy"}}, {}, True)
    assert "secret" not in repr((batch.result.to_dict(), batch.outcomes))


@turned
async def test_replace_of_a_failure_is_a_denial_in_the_policys_words() -> None:
    """Seed 003: it stays a failure, with the code `denied`; its own text and exception are gone."""
    batch = await run_one(boom, judges(Replace("try later")))
    assert batch.result is not None
    assert (code(batch.result, "a"), message(batch.result, "a")) == ("denied", "try later")
    assert "boom" not in repr(batch.outcomes["a"].exception)


@turned
async def test_replace_of_a_failure_without_text_still_says_something() -> None:
    """Seed 003: an image alone is no text for an error."""
    snapshot = await answer(boom, judges(Replace((Image.of(b"x", "image/png"),))))
    assert message(snapshot, "a") == "The tool failed; the host's policy withheld how."


@turned
@pytest.mark.parametrize(("block", "expected"), [(Block("no"), "denied"), (Block("no", "secret"), "secret")])
async def test_block_is_an_error_in_the_policys_words(block: Block, expected: str) -> None:
    """Seed 003: with its own code, or `denied`."""
    snapshot = await answer(done, judges(block))
    assert (code(snapshot, "a"), message(snapshot, "a")) == (expected, "no")


@turned
async def test_a_block_without_words_still_says_something() -> None:
    """Seed 003: a standard text. Ours names what it knows: that a tool error came (B21)."""
    assert message(await answer(done, judges(Block(""))), "a")


# -- the whole of it -------------------------------------------------------------------------------------------------------------


@turned
async def test_a_policy_that_hangs_is_bounded_by_the_batch() -> None:
    """Seed 003 has a deadline for all stages of a call. Ours is the batch's; the call's own bound is the tool's (B3)."""
    snapshot = await answer(done, Before(forever), timeout=7)
    assert (code(snapshot, "a"), effects(snapshot, "a"), now()) == ("timeout", "not_started", 7)


@turned
async def test_cancelling_the_caller_reaches_every_stage() -> None:
    """Seed 003: the caller's signal wins over what the pipeline does."""
    task = asyncio.ensure_future(run_one(done, Before(forever)))
    await turn(3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@turned
@pytest.mark.parametrize("error", [ValueError(), RuntimeError("")])
async def test_an_exception_without_words_is_still_readable(error: Exception) -> None:
    """Seed 003: the model never reads an empty failure."""

    async def t() -> None:
        raise error

    assert message(await answer(t, Around(passes)), "a") == type(error).__name__


@pytest.mark.parametrize("bad", [-1, float("nan")])
def test_bounds_are_checked_where_they_are_given(bad: float) -> None:
    """Seed 003: a bad bound is the caller's mistake, and nothing begins."""
    with pytest.raises(InvalidInputError):
        ToolBatch(one(), call_timeout=bad)
    with pytest.raises(InvalidInputError):
        ToolBatch(one(), teardown_timeout=bad)


# -- output budgets --------------------------------------------------------------------------------------------------------------

LONG = "\n".join(f"line {number}" for number in range(5000))


async def long() -> str:
    """Say much."""
    return LONG


@turned
async def test_a_result_in_its_budget_is_untouched() -> None:
    """Seed 003: shortening is for what is over."""
    assert content(await answer(done, budget=OutputBudget(10)), "a") == "done"
    assert truncate_middle("done", 10).text == "done"


@turned
@pytest.mark.parametrize(
    ("policy", "has_store", "is_saved"),
    [
        ("auto", True, True),
        ("auto", False, False),
        ("truncate", True, False),
        ("spill", True, True),
        ("spill", False, False),
    ],
)
async def test_the_three_policies(policy: Any, has_store: bool, is_saved: bool) -> None:
    """Seed 003: save where there is a store and the policy lets it; else cut. A result is never lost."""
    store = MemorySpillStore()
    budget = OutputBudget(200, policy=policy, store=store if has_store else None)
    shown = content(await answer(long, budget=budget), "a")
    assert estimate_tokens(shown) <= 200
    assert (READER_NAME in shown) == is_saved


@turned
async def test_a_store_that_fails_costs_the_locator_only() -> None:
    """Seed 003: then it is cut."""

    class Down:
        async def save(self, text: str, *, tool_name: str, call_id: str) -> Any:
            raise ConnectionError

        async def read(self, locator: str, *, offset: int, limit: int) -> Any:
            raise ConnectionError

    shown = content(await answer(long, budget=OutputBudget(200, policy="spill", store=Down())), "a")
    assert shown.startswith("line 0\n")
    assert shown.endswith("line 4999")


async def test_a_record_says_how_to_get_the_rest() -> None:
    """Seed 003: a handle, the size, and a sentence by the store, which alone knows what its handle is."""
    record = await MemorySpillStore().save("héllo", tool_name="t", call_id="a")
    assert record.locator in record.retrieval
    assert READER_NAME in record.retrieval
    assert record.total_chars == 5


async def test_a_slice_says_where_it_is() -> None:
    """Seed 003: its offset and the whole length, both in characters; past the end there is nothing."""
    store = MemorySpillStore()
    record = await store.save("aé😀d", tool_name="t", call_id="a")
    piece = await store.read(record.locator, offset=1, limit=2)
    assert piece is not None
    assert (piece.text, piece.offset, piece.total_chars) == ("é😀", 1, 4)
    beyond = await store.read(record.locator, offset=99, limit=5)
    assert beyond is not None
    assert beyond.text == ""


async def test_the_memory_store_is_bounded() -> None:
    """Seed 003: the oldest goes first, by number and by size; one that is too large alone is kept until the next comes."""
    store = MemorySpillStore(max_entries=2, max_chars=10)
    saved = [(await store.save(text, tool_name="t", call_id="a")).locator for text in ("1", "2", "3")]
    assert [await store.read(locator, offset=0, limit=9) is None for locator in saved] == [True, False, False]
    huge = (await store.save("x" * 50, tool_name="t", call_id="a")).locator
    assert await store.read(huge, offset=0, limit=9) is not None
    await store.save("next", tool_name="t", call_id="a")
    assert await store.read(huge, offset=0, limit=9) is None
    with pytest.raises(InvalidInputError):
        MemorySpillStore(max_entries=0)


def test_the_estimate_is_the_same_every_time() -> None:
    """Seed 003: an estimate, of four characters a token there; ours is finer (G5). It decides when to shorten, and bills nothing."""
    assert estimate_tokens(LONG) == estimate_tokens(LONG) > 0
    assert estimate_tokens("") == 0


@turned
async def test_images_are_neither_counted_nor_cut() -> None:
    """Seed 003: a shorter image is a broken one."""
    picture = Image.of(b"x" * 100_000, "image/png")

    async def t() -> Any:
        return [picture, Text("short")]

    parts = end(await answer(t, budget=OutputBudget(20)), "a").parts
    assert parts == (picture, Text("short"))


def test_the_middle_goes_and_it_is_said_how_much() -> None:
    """Seed 003: about two thirds head, one third tail."""
    cut = truncate_middle("h" * 30_000 + "t" * 30_000, 1000)
    assert 0.6 < cut.head / (cut.head + cut.tail) < 0.72
    assert cut.gone_chars == 60_000 - cut.head - cut.tail
    assert f"{cut.gone_chars:,} of 60,000" in cut.text


@turned
async def test_the_reader_is_there_wherever_a_store_is() -> None:
    """Seed 003: a text that is put aside and can't be read again would be worse than a cut one. It needs no budget, and runs beside others."""
    catalog = ToolCatalog([tool(name="t")(long)])
    store = MemorySpillStore()
    ToolBatch([], tools=catalog, budget=OutputBudget(100, store=store))
    reader = catalog[READER_NAME]
    assert (reader.budget_exempt, reader.parallel) == (True, True)
    locator = (await store.save(LONG, tool_name="t", call_id="a")).locator
    calls = [
        ToolCall("page", READER_NAME, {"locator": locator}),
        ToolCall("last", READER_NAME, {"locator": locator, "offset": len(LONG) - 4}),
        ToolCall("gone", READER_NAME, {"locator": "gone"}),
        ToolCall("bad", READER_NAME, {"locator": locator, "offset": "x"}),
        ToolCall("empty", READER_NAME, {"locator": ""}),
    ]
    async with ToolBatch(calls, tools=catalog, budget=OutputBudget(100, store=store)) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert codes(snapshot) == {
        "page": "success", "last": "success", "gone": "success", "bad": "invalid_arguments", "empty": code(snapshot, "empty"),
    }  # fmt: skip
    assert '"next_offset":8000' in content(snapshot, "page")
    assert '"next_offset":null' in content(snapshot, "last")
    assert "may have expired" in content(snapshot, "gone")


@turned
async def test_the_stricter_of_two_budgets_wins() -> None:
    """Seed 003: the tool's, or the run's."""
    mine = tool(name="t", max_output_tokens=50)(long)
    assert estimate_tokens(content(await answer(mine, budget=OutputBudget(500)), "a")) <= 50


@turned
async def test_a_failure_and_the_value_that_around_makes_of_it() -> None:
    """Seed 003: what stands around the tool gets its failure and may make a result of it; `after` sees what came out."""
    seen: list[Any] = []

    class Mends(Interceptor):
        async def around(self, call: Any, proceed: Any) -> Any:
            try:
                return await proceed()
            except ValueError as error:
                return f"mended {error}"

        async def after(self, call: Any, result: Any, proceed: Any) -> Any:
            seen.append(result)
            return Accept()

    assert content(await answer(boom, Mends()), "a") == "mended boom"
    assert isinstance(seen[0], ToolSuccess)
