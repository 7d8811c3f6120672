"""T3, T6: policies before, wrappers around, sanitisation after; and what a batch makes of their answers."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from tests.batch.clock import turned
from tests.batch.kit import (
    Hung,
    Stubborn,
    after,
    boom,
    breathe,
    check_batch,
    code,
    codes,
    completion,
    content,
    effects,
    end,
    message,
    turn,
)
from toolbatch import Image, Text, ToolBatch, ToolCall, ToolCatalog, ToolError, ToolSession, current_call, tool
from toolbatch.core import CallProblem, Closed, Failed, InvalidTypeError
from toolbatch.ports import Deny
from toolbatch.tools import (
    Accept,
    Allow,
    Ask,
    Block,
    CallAllowance,
    Decision,
    Interceptor,
    Prepared,
    Refused,
    Replace,
    ToolFailure,
    ToolResult,
    ToolSuccess,
    ToolTimeoutError,
    Verdict,
)

Proceed = Callable[[], Awaitable[Any]]


class Log(Interceptor):
    """Writes down what it sees, in order."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    async def before(self, call: Prepared | Refused, proceed: Callable[[], Awaitable[Decision]]) -> Decision:
        self.log.append(f"{self.name} before {call.call.name}")
        decision = await proceed()
        self.log.append(f"{self.name} decided {type(decision).__name__}")
        return decision

    async def around(self, call: Prepared, proceed: Proceed) -> Any:
        self.log.append(f"{self.name} in")
        try:
            return await proceed()
        finally:
            self.log.append(f"{self.name} out")

    async def after(self, call: Prepared, result: ToolResult, proceed: Callable[[], Awaitable[Verdict]]) -> Verdict:
        self.log.append(f"{self.name} after")
        return await proceed()


class Policy(Interceptor):
    """Answers `before` and `after` with what it was given, or raises it."""

    def __init__(self, before: Any = None, after: Any = None) -> None:
        self._before = before
        self._after = after
        self.seen: list[ToolResult] = []

    async def before(self, call: Prepared | Refused, proceed: Callable[[], Awaitable[Decision]]) -> Decision:
        return await proceed() if self._before is None else _given(self._before)

    async def after(self, call: Prepared, result: ToolResult, proceed: Callable[[], Awaitable[Verdict]]) -> Verdict:
        self.seen.append(result)
        return await proceed() if self._after is None else _given(self._after)


def _given(answer: Any) -> Any:
    if isinstance(answer, BaseException):
        raise answer
    return answer


class Around(Interceptor):
    """Does what a function says around the tool."""

    def __init__(self, fn: Callable[[Proceed], Awaitable[Any]]) -> None:
        self._fn = fn

    async def around(self, call: Prepared, proceed: Proceed) -> Any:
        return await self._fn(proceed)


def one(name: str = "t", arguments: Any = None, call_id: str = "a") -> list[ToolCall]:
    """One call."""
    return [ToolCall(call_id, name, arguments)]


async def run_one(fn: Any, *interceptors: Interceptor, **options: Any) -> ToolBatch:
    """Run one call of one tool through interceptors, and check what holds of every batch."""
    catalog = {"t": fn}
    async with ToolBatch(one(), tools=catalog, interceptors=interceptors, **options) as batch:
        batch.start_all()
        await batch.snapshot()
    check_batch(batch, ["a"])
    return batch


@turned
async def test_the_first_interceptor_is_outermost() -> None:
    """T6: it sees a call first and its result last, in each of the three stages."""
    log: list[str] = []

    async def t() -> str:
        log.append("tool")
        return "done"

    batch = await run_one(tool(t), Log("1", log), Log("2", log))
    assert content(batch.result, "a") == "done"  # type: ignore[arg-type]
    assert log == [
        "1 before t", "2 before t", "2 decided Allow", "1 decided Allow", "1 in", "2 in", "tool", "2 out", "1 out", "1 after", "2 after",
    ]  # fmt: skip


@turned
@pytest.mark.parametrize("kind", ["tool", "function", "thread", "generator"])
async def test_every_kind_of_tool_goes_through(kind: str) -> None:
    """T6: tools, plain functions, threads and generators alike; the outcome is as without interceptors."""

    async def function() -> str:
        return "done"

    def thread() -> str:
        assert current_call().name == "t"
        return "done"

    async def generator() -> Any:
        yield "half"
        yield "done"

    log: list[str] = []
    fns: dict[str, Any] = {"tool": tool(function), "function": function, "thread": thread, "generator": generator}
    batch = await run_one(fns[kind], Log("1", log))
    assert content(batch.result, "a") == "done"  # type: ignore[arg-type]
    outcome = batch.outcomes["a"]
    assert (outcome.status, outcome.started, outcome.completion) == ("succeeded", True, "settled")
    assert "1 in" in log


@turned
@pytest.mark.parametrize(
    ("decision", "text"),
    [
        (Deny("too dear"), "NOT EXECUTED: too dear."),
        (Deny(), "NOT EXECUTED: the host's policy does not allow it."),
        (Deny("no!", "forbidden"), "NOT EXECUTED: no!"),
        (Ask(), "needs the approval of a person"),
        (ToolError.respond_to_model("not now", "later"), "NOT EXECUTED: not now."),
        (RuntimeError("secret"), "NOT EXECUTED: the host's policy for it failed."),
        ("yes", "NOT EXECUTED: the host's policy for it failed."),
        (None, ""),
    ],
)
async def test_a_policy_decides_before_anything_runs(decision: Any, text: str) -> None:
    """T6: deny, ask without an approver, and a policy that fails all mean that nothing was run, and the model reads so."""
    ran: list[str] = []

    async def t() -> str:
        ran.append("t")
        return "done"

    batch = await run_one(t, Policy(before=decision))
    snapshot = batch.result
    assert snapshot is not None
    if decision is None:
        assert ran == ["t"]
        return
    assert ran == []
    assert text in message(snapshot, "a")
    assert "secret" not in str(snapshot.to_dict())
    assert effects(snapshot, "a") == "not_started"
    assert batch.outcomes["a"].status == "denied"


@turned
async def test_a_fatal_policy_ends_the_turn() -> None:
    """T4: a fatal `ToolError` of a policy closes the batch and is raised at exit."""
    with pytest.raises(ToolError, match="stop") as raised:
        async with ToolBatch(one(), tools={"t": after}, interceptors=[Policy(before=ToolError.fatal("stop"))]) as batch:
            batch.start_all()
    assert raised.value.is_fatal
    assert effects(batch.result, "a") is None or batch.outcomes["a"].started is False  # type: ignore[arg-type]


@turned
@pytest.mark.parametrize("problem", ["unknown", "malformed", "invalid"])
async def test_policies_see_calls_that_cannot_run(problem: str) -> None:
    """T6: an audit sees the attempt; the call stays refused with its own code, whatever the policy says."""
    seen: list[Prepared | Refused] = []

    class Audit(Interceptor):
        async def before(self, call: Prepared | Refused, proceed: Callable[[], Awaitable[Decision]]) -> Decision:
            seen.append(call)
            return Allow()

    @tool
    async def t(x: int) -> int:
        """T."""
        raise AssertionError("ran")

    name, arguments = {"unknown": ("u", "{}"), "malformed": ("t", "{"), "invalid": ("t", '{"x":"a"}')}[problem]
    async with ToolBatch(one(name, arguments), tools=ToolCatalog([t]), interceptors=[Audit()]) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    codes_ = {"unknown": "unknown_tool", "malformed": "malformed_arguments", "invalid": "invalid_arguments"}
    assert code(snapshot, "a") == codes_[problem]
    assert batch.outcomes["a"].status == "failed"
    (refused,) = seen
    assert isinstance(refused, Refused)
    assert refused.problem.code == codes_[problem]


@turned
async def test_policies_see_what_a_lane_found_wrong() -> None:
    """P6, T6: a call that was cut off is answered on entering, and the policies see it."""
    log: list[str] = []
    cut = ToolCall("a", "t", "{", problem=CallProblem("response_truncated", "cut off"))
    async with ToolBatch([cut], tools={"t": after}, interceptors=[Log("1", log)]) as batch:
        snapshot = await batch.snapshot()
    assert code(snapshot, "a") == "response_truncated"
    assert log == ["1 before t", "1 decided Allow"]


@turned
@pytest.mark.parametrize("stubborn", [False, True])
async def test_around_sees_the_tools_own_timeout(stubborn: bool) -> None:
    """T6: the tool's time is innermost, so that what stands around it can answer instead; a stubborn tool delays nobody."""
    tool_ = Stubborn() if stubborn else None
    seen: list[BaseException] = []

    async def fall_back(proceed: Proceed) -> Any:
        try:
            return await proceed()
        except TimeoutError as error:
            seen.append(error)
            return "fallback"

    async def slow() -> str:
        await asyncio.Event().wait()
        raise AssertionError

    began = asyncio.get_running_loop().time()
    async with ToolSession() as session:
        async with session.batch(
            one(), tools={"t": tool_ or slow}, call_timeout=3, interceptors=[Around(fall_back)]
        ) as batch:
            batch.start_all()
            snapshot = await batch.snapshot()
            assert asyncio.get_running_loop().time() - began == pytest.approx(3, abs=0.5)
        assert content(snapshot, "a") == "fallback"
        assert isinstance(seen[0], ToolTimeoutError)
        outcome = batch.outcomes["a"]
        assert (outcome.status, outcome.timeout) == ("succeeded", 3)
        assert outcome.completion == ("unknown" if stubborn else "settled")
        if tool_ is not None:
            tool_.release.set()
            await turn(5)
            assert batch.outcomes["a"].completion == "settled"
            (stale,) = session.audit.drain()
            assert (stale.call_id, stale.reason, stale.observed_status) == ("a", "run_closed", "success")
            assert stale.answered_as == "success"


@turned
async def test_a_timeout_that_nobody_catches_is_a_timeout() -> None:
    """B3, T6: cancelled as `timeout` with unknown side effects, as without interceptors."""
    stubborn = Stubborn()
    async with ToolBatch(
        one(), tools={"t": stubborn}, call_timeout=3, teardown_timeout=1, interceptors=[Log("1", [])]
    ) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert (code(snapshot, "a"), effects(snapshot, "a")) == ("timeout", "unknown")
    assert message(snapshot, "a") == "Tool call timed out after 3 seconds."
    outcome = batch.outcomes["a"]
    assert (outcome.status, outcome.completion, outcome.cancellation) == ("timed_out", "unknown", "requested")
    stubborn.release.set()
    await turn(5)
    assert batch.outcomes["a"].completion == "settled"


@turned
async def test_around_may_run_the_tool_again() -> None:
    """T6: each run has the tool's whole time; the idempotency key and the call stay the same (B22)."""
    keys: list[str] = []

    async def t() -> str:
        keys.append(current_call().idempotency_key)
        if len(keys) < 3:
            await asyncio.sleep(100)
        return "third"

    async def retry(proceed: Proceed) -> Any:
        for _ in range(2):
            try:
                return await proceed()
            except TimeoutError:
                pass
        return await proceed()

    batch = await run_one(t, Around(retry), call_timeout=5)
    assert content(batch.result, "a") == "third"  # type: ignore[arg-type]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert batch.outcomes["a"].duration == 10, "from the first entry"


@turned
async def test_around_may_not_run_the_tool_at_all() -> None:
    """T6: an answer from a cache is a success of a tool that was never entered, and its outcome says so (O1)."""

    async def cached(proceed: Proceed) -> Any:
        return {"cached": True}

    batch = await run_one(boom, Around(cached))
    assert content(batch.result, "a") == '{"cached":true}'  # type: ignore[arg-type]
    outcome = batch.outcomes["a"]
    assert (outcome.status, outcome.started, outcome.completion) == ("succeeded", False, "not_started")


@turned
async def test_around_with_a_bound_of_its_own_leaves_the_tool_behind() -> None:
    """B6, T6: what stands around the tool may stop waiting; the tool is stopped, and what it says later is late."""
    stubborn = Stubborn()

    async def impatient(proceed: Proceed) -> Any:
        try:
            async with asyncio.timeout(2):
                return await proceed()
        except TimeoutError:
            await turn()
            assert stubborn.cancels == 1, "it is stopped at once, and not when this is done with it all"
            return "gave up"

    async with ToolSession() as session:
        async with session.batch(one(), tools={"t": stubborn}, interceptors=[Around(impatient)]) as batch:
            batch.start_all()
            assert content(await batch.snapshot(), "a") == "gave up"
        assert stubborn.cancels == 1
        stubborn.release.set()
        await turn(5)
        (stale,) = session.audit.drain()
        assert (stale.answered_as, stale.reason) == ("success", "run_closed")


@turned
@pytest.mark.parametrize("thread", [False, True])
async def test_a_close_stops_the_tool_inside_of_its_interceptors(thread: bool) -> None:
    """B3: a close settles the call at once, the guide and the tool are asked to stop, and the interceptors may clean up."""
    log: list[str] = []
    hung = Hung()
    stubborn = Stubborn()
    async with ToolBatch(
        one(), tools={"t": hung if thread else stubborn}, teardown_timeout=0, interceptors=[Log("1", log)]
    ) as batch:
        batch.start_all()
        if thread:
            await asyncio.get_running_loop().run_in_executor(None, hung.wait_entered)
        await turn(5)
        batch.close(code="enough")
        await turn(5)
    snapshot = check_batch(batch, ["a"])
    assert (code(snapshot, "a"), effects(snapshot, "a")) == ("enough", "unknown")
    assert log[-1] == "1 out"
    assert (stubborn.cancels == 1) or thread
    assert batch.outcomes["a"].completion == "unknown"
    hung.release.set()
    stubborn.release.set()
    while completion(batch, "a") != "settled":
        await breathe()


@turned
async def test_a_close_before_the_tool_was_entered_says_so() -> None:
    """B5: a call whose policy still thinks has not started, whatever the policy did."""
    thinking = asyncio.Event()

    class Slow(Interceptor):
        async def before(self, call: Prepared | Refused, proceed: Callable[[], Awaitable[Decision]]) -> Decision:
            thinking.set()
            await asyncio.Event().wait()
            return Allow()

    async with ToolBatch(one(), tools={"t": after}, timeout=5, interceptors=[Slow()]) as batch:
        batch.start_all()
        await thinking.wait()
        snapshot = await batch.snapshot()
    assert (code(snapshot, "a"), effects(snapshot, "a")) == ("timeout", "not_started")
    assert batch.outcomes["a"].started is False
    check_batch(batch, ["a"])


SECRET = "p4ssw0rd"


@turned
@pytest.mark.parametrize("verdict", [Replace("clean"), Block("withheld"), RuntimeError("policy bug"), "nonsense"])
@pytest.mark.parametrize("how", ["returns", "raises", "returns parts"])
async def test_what_a_policy_replaces_escapes_nowhere(verdict: Any, how: str, caplog: pytest.LogCaptureFixture) -> None:
    """T6: neither value nor metadata, error, progress, added context or log of the original are seen anywhere after it."""
    caplog.set_level(logging.DEBUG)

    @tool(meta=lambda value: {"meta": str(value)})
    async def t() -> Any:
        """T."""
        current_call().add_context(SECRET)
        current_call().report_failure(SECRET)
        if how == "raises":
            raise ValueError(SECRET)
        return [Text(SECRET), Image.of(SECRET.encode(), "image/png")] if how == "returns parts" else SECRET

    policy = Policy(after=verdict)
    batch = await run_one(t, policy)
    assert SECRET in repr(policy.seen) or how == "returns parts"
    snapshot = batch.result
    assert snapshot is not None
    shown = [
        snapshot.to_dict(),
        batch.outcomes,
        batch.outcomes["a"].exception,
        batch.meta,
        batch.added_context,
        caplog.text,
    ]
    assert SECRET not in repr(shown)
    if verdict == Replace("clean"):
        expected = "success" if how != "raises" else "denied"
        assert code(snapshot, "a") == expected
        settlement = end(snapshot, "a")
        assert (settlement.content or settlement.message) == "clean"
    else:
        assert isinstance(end(snapshot, "a"), Failed)
        assert code(snapshot, "a") == "denied"


@turned
async def test_after_may_put_parts_in_place_of_a_result() -> None:
    """P5, T6: a replacement may be rich, with metadata of its own."""
    picture = Image.of(b"x", "image/png")
    batch = await run_one(tool(name="t")(after_zero), Policy(after=Replace((picture,), meta={"m": 1})))
    settlement = end(batch.result, "a")  # type: ignore[arg-type]
    assert settlement.parts == (picture,)
    assert batch.meta == {"a": {"m": 1}}


async def after_zero() -> str:
    """Return at once."""
    return "done"


@turned
async def test_after_sees_successes_failures_and_timeouts() -> None:
    """T6: as the model would get them, with what was raised."""

    async def slow() -> None:
        await asyncio.sleep(100)

    for fn, expected in ((after_zero, ToolSuccess), (boom, ToolFailure), (slow, ToolFailure)):
        policy = Policy(after=Accept())
        batch = await run_one(fn, policy, call_timeout=5)
        (seen,) = policy.seen
        assert isinstance(seen, expected)
        snapshot = batch.result
        assert snapshot is not None
        if isinstance(seen, ToolFailure):
            assert (seen.code, seen.message) == (code(snapshot, "a"), message(snapshot, "a"))
    outcome_of_boom = await run_one(boom, Policy(after=Accept()))
    assert isinstance(outcome_of_boom.outcomes["a"].exception, ValueError)


@turned
async def test_a_result_without_json_is_invalid_inside_the_pipeline_too() -> None:
    """B23, T9: `invalid_result`, and `after` sees that as a failure."""
    policy = Policy()

    async def t() -> object:
        return object()

    batch = await run_one(t, policy)
    assert code(batch.result, "a") == "invalid_result"  # type: ignore[arg-type]
    assert isinstance(policy.seen[0], ToolFailure)


@turned
async def test_a_tool_that_cancels_itself_is_cancelled() -> None:
    """B4: through interceptors too, and the batch goes on."""

    async def t() -> None:
        raise asyncio.CancelledError

    batch = await run_one(t, Log("1", []))
    assert batch.outcomes["a"].status == "cancelled"


@turned
async def test_a_library_that_cancels_in_its_own_way_is_no_failure_for_policies() -> None:
    """B4, T6: exceptions that mean "cancelled" are no result, and no policy is asked about them."""

    class Stopped(Exception):
        pass

    async def t() -> None:
        raise Stopped

    policy = Policy(after=Replace("a result"))
    batch = await run_one(t, policy, cancel_exceptions=(Stopped,))
    assert (batch.outcomes["a"].status, policy.seen) == ("cancelled", [])


@turned
async def test_a_fatal_tool_ends_the_turn_through_interceptors() -> None:
    """T4, T6: what the model reads of it may be replaced; that the turn ends may not."""
    for policy, text in ((Policy(), "broken"), (Policy(after=Replace("clean")), "clean")):
        with pytest.raises(ToolError) as raised:
            await run_one_fatal(policy)
        assert raised.value.message == text


async def run_one_fatal(policy: Interceptor) -> None:
    """Run a tool that ends the turn."""

    async def t() -> None:
        raise ToolError.fatal("broken", "broken_contract")

    async with ToolBatch(one(), tools={"t": t}, interceptors=[policy]) as batch:
        batch.start_all()


@turned
async def test_start_by_hand_goes_through_the_same_policies() -> None:
    """T6: a host that starts a call itself has not set its policies aside."""
    async with ToolBatch(one(), interceptors=[Policy(before=Deny("no"))]) as batch:
        batch.start("a", after, 1)
        snapshot = await batch.snapshot()
    assert code(snapshot, "a") == "denied"
    async with ToolBatch(one(), interceptors=[Log("1", [])]) as batch:
        batch.start("a", after, 1, timeout=5)
        assert content(await batch.snapshot(), "a") == "done"


variable: ContextVar[str] = ContextVar("variable", default="unset")


@turned
@pytest.mark.parametrize("thread", [False, True])
async def test_the_tool_sees_what_its_interceptors_set(thread: bool) -> None:
    """B11, T6: context variables of what stands around a tool are the tool's, in threads too: so spans have parents."""

    class Sets(Interceptor):
        async def around(self, call: Prepared, proceed: Proceed) -> Any:
            variable.set("set")
            assert current_call().call_id == "a"
            return await proceed()

    async def t() -> str:
        return variable.get()

    batch = await run_one(variable.get if thread else t, Sets())
    assert content(batch.result, "a") == "set"  # type: ignore[arg-type]
    assert variable.get() == "unset"


@turned
async def test_tools_run_side_by_side_through_interceptors() -> None:
    """T8: chains of different calls overlap."""
    together = asyncio.Barrier(3)

    async def t() -> str:
        await together.wait()
        return "met"

    batch_calls = [ToolCall(name, "t") for name in "abc"]
    async with ToolBatch(batch_calls, tools={"t": t}, timeout=60, interceptors=[Log("1", [])]) as batch:
        batch.start_all()
        assert set(codes(await batch.snapshot()).values()) == {"success"}


@turned
async def test_places_are_taken_by_tools_and_not_by_policies() -> None:
    """B13, T8: with one place, tools run one after the other, in order; a call that is asked about holds nobody up."""
    running: list[str] = []
    order: list[str] = []

    async def t() -> None:
        running.append(current_call().call_id)
        assert len(running) == 1
        await asyncio.sleep(1)
        order.append(running.pop())

    batch_calls = [ToolCall(name, "t") for name in "abcd"]
    async with ToolBatch(batch_calls, tools={"t": t}, max_concurrency=1, interceptors=[Log("1", [])]) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert order == ["a", "b", "c", "d"]
    assert set(codes(snapshot).values()) == {"success"}


@turned
async def test_a_call_that_waits_for_its_turn_has_not_started() -> None:
    """B13: a queued call at close is `not_started`, behind policies too, and its own time has not begun."""
    batch_calls = [ToolCall(name, "t", {"seconds": 10}) for name in "ab"]
    async with ToolBatch(
        batch_calls, tools={"t": after}, max_concurrency=1, call_timeout=4, timeout=6, interceptors=[Log("1", [])]
    ) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert [(code(snapshot, name), effects(snapshot, name)) for name in "ab"] == [
        ("timeout", "unknown"),
        ("timeout", "unknown"),
    ]
    assert (batch.outcomes["a"].timeout, batch.outcomes["b"].timeout) == (4, 6)
    async with ToolBatch(
        batch_calls, tools={"t": after}, max_concurrency=1, timeout=3, interceptors=[Log("1", [])]
    ) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert [effects(snapshot, name) for name in "ab"] == ["unknown", "not_started"]


@turned
async def test_an_allowance_is_spent_and_then_denied() -> None:
    """T4: `budget_exhausted`, bad calls counted, exempt tools not, over all batches that share it."""
    allowance = CallAllowance(3)
    free = tool(name="free", budget_exempt=True)(after_zero)
    catalog = ToolCatalog([tool(name="t")(after_zero), free])
    for names, expected in (
        (["t", "unknown", "free"], ["success", "unknown_tool", "success"]),
        (["t", "t", "free"], ["success", "budget_exhausted", "success"]),
    ):
        batch_calls = [ToolCall(str(index), name) for index, name in enumerate(names)]
        async with ToolBatch(batch_calls, tools=catalog, interceptors=[allowance]) as batch:
            batch.start_all()
            assert list(codes(await batch.snapshot()).values()) == expected
        denied = [outcome for outcome in batch.outcomes.values() if outcome.status == "denied"]
        assert len(denied) == expected.count("budget_exhausted")
    assert allowance.used == 3


@pytest.mark.parametrize("bad", [object(), [object()], [Interceptor], Interceptor(), 5])
async def test_what_is_no_interceptor_is_refused(bad: Any) -> None:
    """Bad input gets a clear error before anything begins."""
    with pytest.raises(InvalidTypeError, match="interceptor"):
        ToolBatch(one(), interceptors=bad)


@turned
@pytest.mark.parametrize("stage", ["before", "around", "after"])
async def test_cancelling_the_host_passes_through_the_stages(stage: str) -> None:
    """B10: cancellation from outside wins, in whatever stage the calls are; everything is answered."""
    reached = asyncio.Event()

    class Waits(Interceptor):
        pass

    async def wait(self: Any, *_: Any) -> Any:
        reached.set()
        await asyncio.Event().wait()

    setattr(Waits, stage, wait)
    seen: list[ToolBatch] = []

    async def host() -> None:
        async with ToolBatch(one(), tools={"t": after_zero}, interceptors=[Waits()]) as batch:
            seen.append(batch)
            batch.start_all()
            await batch.snapshot()

    task = asyncio.ensure_future(host())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    snapshot = check_batch(seen[0], ["a"])
    assert code(snapshot, "a") == "request_aborted"
    assert effects(snapshot, "a") == ("unknown" if stage == "after" else "not_started")


@turned
async def test_threads_are_withdrawn_while_they_wait() -> None:
    """B5: a thread tool that no thread has taken when its call is closed never runs."""
    entered = threading.Event()

    def t() -> None:
        entered.set()

    class Slow(Interceptor):
        async def around(self, call: Prepared, proceed: Proceed) -> Any:
            await asyncio.sleep(5)
            return await proceed()

    async with ToolBatch(one(), tools={"t": t}, timeout=2, interceptors=[Slow()]) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert effects(snapshot, "a") == "not_started"
    assert not entered.is_set()
    assert isinstance(end(snapshot, "a"), Closed)


@turned
@pytest.mark.parametrize("name", ["two words", "naïve", "x" * 200, "a/b", "🙂"])
async def test_a_function_runs_under_whatever_name_the_host_gave_it(name: str) -> None:
    """T6: a name that no provider would let us declare is still one under which a host may run something, with policies too."""
    async with ToolBatch([ToolCall("a", name)], tools={name: after_zero}, interceptors=[Log("1", [])]) as batch:
        batch.start_all()
        assert content(await batch.snapshot(), "a") == "done"
    async with ToolBatch([ToolCall("a", name)], interceptors=[Log("1", [])]) as batch:
        batch.start("a", after_zero)
        assert content(await batch.snapshot(), "a") == "done"


@turned
@pytest.mark.parametrize("guided", [False, True])
async def test_a_result_is_rendered_once(guided: bool) -> None:
    """T1, T9: `render` and `meta` see the tool's own value, and nothing that was made of it."""
    seen: list[Any] = []

    @tool(render=lambda rows: f"{len(rows)} rows", meta=seen.append)
    async def t() -> list[int]:
        """T."""
        return [1, 2]

    batch = await run_one(t, *([Log("1", [])] if guided else []))
    assert batch.result is not None
    assert content(batch.result, "a") == "2 rows"
    assert seen == [[1, 2]]
