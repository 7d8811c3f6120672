"""T6, B5 to B9: whatever an interceptor, a broker or an observer does, a guided call has one honest outcome, and nothing is left."""

import asyncio
import contextlib
import gc
import sys
import threading
import weakref
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.batch.clock import ClockLoop, run, turned
from tests.batch.kit import (
    Stubborn,
    after,
    check_batch,
    code,
    codes,
    completion,
    content,
    effects,
    forever,
    instant,
    is_closed,
    message,
    turn,
)
from tests.batch.stages import After, Around, Before, Proceed, one, passes
from toolbatch import ToolBatch, ToolCall, ToolCatalog, ToolError, ToolSession, current_call, tool
from toolbatch.batch import CallContext
from toolbatch.core import InvalidTypeError
from toolbatch.output import OutputBudget
from toolbatch.ports import (
    Abort,
    ApprovalDecision,
    ApprovalRequest,
    ApprovalRequested,
    Approve,
    BatchEvent,
    CallProgress,
    CallStarted,
    Deny,
    SpillRecord,
    SpillSlice,
)
from toolbatch.tools import (
    Accept,
    Ask,
    Block,
    Decision,
    FixedApprovals,
    InteractiveApprovals,
    Interceptor,
    Replace,
    ToolResult,
    Verdict,
)

# -- a call that is over is not run any more -------------------------------------------------------------------------------


@turned
@pytest.mark.parametrize("kind", ["coroutine", "thread"])
async def test_proceed_after_the_close_runs_nothing(kind: str) -> None:
    """B5, B15: an interceptor that swallows the cancellation and tries again reaches no tool, and hangs nowhere."""
    runs: list[str] = []
    first = asyncio.Event()

    async def coroutine() -> None:
        runs.append("x")
        first.set()
        await forever()

    def thread() -> None:
        runs.append("x")

    async def wait_then(proceed: Proceed) -> Any:
        first.set()
        await forever()

    async def again(proceed: Proceed) -> Any:
        try:
            return await (proceed() if kind == "coroutine" else wait_then(proceed))
        except asyncio.CancelledError:
            return await proceed()

    async with ToolBatch(
        one(), tools={"t": coroutine if kind == "coroutine" else thread}, interceptors=[Around(again)]
    ) as batch:
        batch.start_all()
        await first.wait()
        await turn(3)
        batch.close()
    assert runs == (["x"] if kind == "coroutine" else [])
    assert batch.outcomes["a"].started == bool(runs)
    check_batch(batch, ["a"])


@turned
async def test_a_policy_that_swallows_the_cancellation_opens_nothing() -> None:
    """B15, T7: neither the broker nor the tool hears of a call that was closed while a policy thought about it."""
    asked: list[str] = []
    ran: list[str] = []

    async def think() -> Decision:
        try:
            await forever()
        except asyncio.CancelledError:
            return Ask()

    async def t() -> None:
        ran.append("t")

    broker = InteractiveApprovals(lambda request: asked.append(request.call_id))
    async with ToolBatch(one(), tools={"t": t}, approvals=broker, interceptors=[Before(think)]) as batch:
        batch.start_all()
        await turn(3)
        batch.close()
    assert (asked, ran, broker.pending()) == ([], [], [])
    assert effects(check_batch(batch, ["a"]), "a") == "not_started"


@turned
async def test_a_call_that_is_closed_as_it_is_started_is_shown_to_no_policy() -> None:
    """B15: its guide's first step comes after the close."""
    asked: list[str] = []

    async def note() -> Decision:
        asked.append("a")
        return Deny()

    async with ToolBatch(one(), tools={"t": instant_none}, interceptors=[Before(note)]) as batch:
        batch.start_all()
        batch.close()
        await turn(3)
    assert asked == []
    check_batch(batch, ["a"])


class Deaf:
    """A broker that ignores cancellation, and answers in the end."""

    def __init__(self, answer: ApprovalDecision) -> None:
        self.answer = answer
        self.release = asyncio.Event()

    async def decide(self, request: ApprovalRequest, /) -> ApprovalDecision:
        while not self.release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.release.wait()
        return self.answer


@turned
@pytest.mark.parametrize("answer", [Approve(), Deny("no"), Abort("stop")])
@pytest.mark.parametrize("left", [False, True])
async def test_a_decision_that_comes_after_the_close_does_nothing(answer: ApprovalDecision, left: bool) -> None:
    """T7: of a broker that ignores cancellation too; not even an abort, whose turn is over."""
    ran: list[str] = []
    broker = Deaf(answer)

    @tool(needs_approval=True)
    async def t() -> None:
        """T."""
        ran.append("t")

    async with ToolSession(tools=ToolCatalog([t]), approvals=broker) as session:
        async with session.batch(one()) as batch:
            batch.start_all()
            await turn(3)
            batch.close()
            if not left:
                broker.release.set()
                await turn(3)
        broker.release.set()
        await turn(3)
        assert session.running == 0
    assert ran == []
    assert message(check_batch(batch, ["a"]), "a").startswith("NOT EXECUTED")
    assert session.audit.drain() == []


@turned
async def test_proceed_that_was_kept_for_later_runs_nothing() -> None:
    """B15, T6: once `around` has returned, its `proceed` is of no use: the call has given its place and its locks away."""
    kept: list[Proceed] = []
    runs: list[str] = []

    async def t() -> str:
        runs.append("x")
        return "done"

    async def keep(proceed: Proceed) -> Any:
        kept.append(proceed)
        return await proceed()

    async def after(result: ToolResult) -> Verdict:
        with pytest.raises(asyncio.CancelledError):
            await kept[0]()
        return Replace("seen")

    async with ToolBatch(one(), tools={"t": t}, timeout=50, interceptors=[Around(keep), After(after)]) as batch:
        batch.start_all()
        assert content(await batch.snapshot(), "a") == "seen"
        with pytest.raises(asyncio.CancelledError):
            await kept[0]()
    assert runs == ["x"]


@turned
async def test_an_observer_that_closes_at_the_request_leaves_nobody_asked() -> None:
    """O3, T7: the batch is closed while observers are told that a call will wait; the broker never hears of it."""
    asked: list[str] = []

    def observe(event: BatchEvent) -> None:
        if isinstance(event, ApprovalRequested):
            batch.close()

    broker = InteractiveApprovals(lambda request: asked.append(request.call_id))
    made = tool(name="t", needs_approval=True)(instant)
    async with ToolBatch(one({"value": 1}), tools=ToolCatalog([made]), approvals=broker, on_event=observe) as batch:
        batch.start_all()
        await batch.snapshot()
    assert asked == []
    assert message(check_batch(batch, ["a"]), "a").startswith("NOT EXECUTED")


# -- whatever is raised or returned is an outcome ----------------------------------------------------------------------------


class OwnBaseError(BaseException):
    """Nobody expects it."""


RAISED = [GeneratorExit, OwnBaseError, asyncio.CancelledError, StopIteration, StopAsyncIteration, ValueError]


@turned
@pytest.mark.parametrize("kind", RAISED)
@pytest.mark.parametrize("where", ["before", "around", "after", "broker", "request", "tool", "thread"])
async def test_whatever_is_raised_in_a_stage_is_the_calls_outcome(kind: type[BaseException], where: str) -> None:
    """B4: kinds that nobody expects too; nothing hangs, and where nothing was run the model reads so."""

    async def fail(*_: Any) -> Any:
        raise kind

    async def fail_in_task() -> Any:
        raise kind

    def fail_now(_: Any = None) -> Any:
        raise kind

    class Broker:
        decide = staticmethod(fail)

    hooks: dict[str, Interceptor] = {"before": Before(fail), "around": Around(fail), "after": After(fail)}
    fns: dict[str, Any] = {"tool": fail_in_task, "thread": fail_now}
    broker: Any = InteractiveApprovals(fail_now) if where == "request" else Broker()
    asks = where in ("broker", "request")
    catalog = ToolCatalog([tool(name="t", needs_approval=asks)(fns.get(where, instant_none))])
    async with ToolBatch(
        one(), tools=catalog, approvals=broker, interceptors=[hooks.get(where, Around(passes))],
        timeout=None if where == "thread" else 50,
    ) as batch:  # fmt: skip
        batch.start_all()
        snapshot = await batch.snapshot()
    assert code(check_batch(batch, ["a"]), "a") not in ("timeout", "success")
    if asks or where == "before":
        assert not batch.outcomes["a"].started
        assert effects(snapshot, "a") == "not_started"
        assert message(snapshot, "a").startswith("NOT EXECUTED")
        assert batch.outcomes["a"].status == "denied"


async def instant_none() -> str:
    """Return at once."""
    return "done"


BAD_WORDS: list[Any] = ["", "  ", "x" * 1000, 5, None, "\ud800", object()]


@turned
@pytest.mark.parametrize("bad", BAD_WORDS, ids=repr)
@pytest.mark.parametrize(
    "what",
    ["deny code", "deny reason", "ask reason", "block code", "block message", "abort reason", "error code", "replace"],
)
async def test_answers_that_cannot_be_used_still_answer_the_call(bad: Any, what: str) -> None:
    """B4, B21: a code or text of a policy that the core does not take must not leave the call without an outcome."""

    async def before() -> Decision:
        match what:
            case "deny code":
                return Deny("no", bad)
            case "deny reason":
                return Deny(bad)
            case "error code":
                raise ToolError("no", bad)
            case _:
                return Ask(bad)

    async def after(_: ToolResult) -> Verdict:
        return Block("no", bad) if what == "block code" else Block(bad) if what == "block message" else Replace(bad)

    hooks = [After(after)] if what in ("block code", "block message", "replace") else [Before(before)]
    broker = FixedApprovals(Abort(bad) if what == "abort reason" else Deny("no"))
    with contextlib.suppress(ToolError):
        async with ToolBatch(
            one(), tools={"t": instant_none}, timeout=50, interceptors=hooks, approvals=broker
        ) as batch:
            batch.start_all()
            await batch.snapshot()
    snapshot = check_batch(batch, ["a"])
    assert code(snapshot, "a") != "timeout"
    assert what == "replace" or code(snapshot, "a") != "success"
    if what == "abort reason":
        assert code(snapshot, "a") == "aborted_before_dispatch"
        assert snapshot.close_reason is not None
    elif what in ("deny code", "deny reason", "ask reason", "error code"):
        assert effects(snapshot, "a") == "not_started"
        assert message(snapshot, "a").startswith("NOT EXECUTED")
        assert batch.outcomes["a"].status == "denied"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("where", ["before", "around", "after", "broker", "tool"])
def test_what_must_end_the_process_does_so_from_every_stage(kind: type[BaseException], where: str) -> None:
    """B4: it passes through the loop, and the batch is closed by then, the call's own outcome included."""
    seen: list[ToolBatch] = []

    async def fail(*_: Any) -> Any:
        raise kind

    async def fail_in_tool() -> Any:
        raise kind

    class Broker:
        decide = staticmethod(fail)

    async def main() -> None:
        hooks: dict[str, Interceptor] = {"before": Before(fail), "around": Around(fail), "after": After(fail)}
        made = tool(name="t", needs_approval=where == "broker")(fail_in_tool if where == "tool" else instant_none)
        async with ToolBatch(
            [*one(), ToolCall("b", "u")], tools={"t": made, "u": forever}, approvals=Broker(), timeout=50,
            interceptors=[hooks.get(where, Around(passes))],
        ) as batch:  # fmt: skip
            seen.append(batch)
            batch.start("a", made) if where != "broker" else batch.start_all()
            await batch.snapshot()

    with pytest.raises(kind):
        run(main())
    snapshot = check_batch(seen[0], ["a", "b"])
    assert (code(snapshot, "a"), code(snapshot, "b")) == ("tool_error", "batch_failed")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_must_end_the_process_does_so_after_the_close_too(kind: type[BaseException]) -> None:
    """B4: raised on the way out of a call that was closed."""

    async def interrupted(proceed: Proceed) -> Any:
        try:
            return await proceed()
        except asyncio.CancelledError:
            raise kind from None

    async def main() -> None:
        async with ToolBatch(one(), tools={"t": forever}, interceptors=[Around(interrupted)]) as batch:
            batch.start_all()
            await turn(4)
            batch.close()

    with pytest.raises(kind):
        run(main())


# -- coroutines and futures that are never run -------------------------------------------------------------------------------


@turned
@pytest.mark.parametrize("why", ["denied", "closed at once", "closed in before", "not proceeded", "queued"])
async def test_a_coroutine_that_is_never_run_is_closed(why: str) -> None:
    """B9: nobody warns that it was never awaited."""
    coroutine = instant()

    async def deny() -> Decision:
        if why == "closed in before":
            await forever()
        return Deny("no")

    async def instead(proceed: Proceed) -> Any:
        return "instead"

    hooks: list[Interceptor] = (
        [Before(deny)]
        if why in ("denied", "closed in before")
        else [Around(instead if why == "not proceeded" else passes)]
    )
    announced = [ToolCall("z", "z"), *one()]
    async with ToolBatch(announced, max_concurrency=1 if why == "queued" else None) as plain:
        plain.close()
    async with ToolBatch(announced, max_concurrency=1, interceptors=hooks) as batch:
        if why == "queued":
            batch.start("z", forever)
        batch.start("a", coroutine)
        if why == "closed at once":
            batch.close()
        elif why in ("closed in before", "queued"):
            await turn(4)
            batch.close()
        else:
            await turn(10)
            batch.close()
    assert is_closed(coroutine)
    assert not batch.outcomes["a"].started


@turned
async def test_a_task_cannot_be_put_under_a_policy() -> None:
    """B5, T6: what runs already can't be denied; to say that it was not executed would be a lie."""
    task = asyncio.ensure_future(instant())
    async with ToolBatch(one(), interceptors=[Before(instant)]) as batch:
        with pytest.raises(InvalidTypeError, match="runs already"):
            batch.start("a", task)
    assert await task == "done"
    async with ToolBatch(one(), interceptors=[Around(passes)]) as batch:
        batch.start("a", asyncio.ensure_future(instant()))
        assert content(await batch.snapshot(), "a") == "done"
        assert (completion(batch, "a"), batch.outcomes["a"].cancellation) == ("settled", "none")
    async with ToolBatch(one(), timeout=5, interceptors=[Around(lambda _: forever())]) as batch:
        task = asyncio.ensure_future(forever())
        batch.start("a", task)
        assert effects(await batch.snapshot(), "a") == "unknown"
    await turn(3)
    assert task.cancelled()
    check_batch(batch, ["a"])


@turned
async def test_a_tool_that_returns_a_coroutine_has_it_closed() -> None:
    """B9, B23: a forgotten `await` is `invalid_result`, and nobody warns."""
    inner = instant()

    async def t() -> Any:
        return inner

    async with ToolBatch(one(), tools={"t": t}, interceptors=[Around(passes)]) as batch:
        batch.start_all()
        assert code(await batch.snapshot(), "a") == "invalid_result"
    assert is_closed(inner)


# -- several runs of one tool ------------------------------------------------------------------------------------------------


@turned
async def test_a_run_that_still_goes_on_is_in_the_outcome() -> None:
    """O1, O2: the second run has ended, the first has not: what is known of the call's code is unknown until both have."""
    stubborn = Stubborn()
    runs: list[Any] = [stubborn, instant]

    async def t() -> Any:
        return await runs.pop(0)()

    async def retry(proceed: Proceed) -> Any:
        try:
            return await proceed()
        except TimeoutError:
            return await proceed()

    late: list[str] = []
    async with ToolSession(on_late=lambda outcome: late.append(outcome.completion)) as session:
        async with session.batch(one(), tools={"t": t}, call_timeout=3, interceptors=[Around(retry)]) as batch:
            batch.start_all()
            assert content(await batch.snapshot(), "a") == "done"
        outcome = batch.outcomes["a"]
        assert (outcome.completion, outcome.cancellation) == ("unknown", "requested")
        assert late == []
        await asyncio.sleep(4)
        stubborn.release.set()
        await turn(5)
        outcome = batch.outcomes["a"]
        assert (outcome.completion, outcome.cancellation, outcome.duration) == ("settled", "requested", 7)
        assert late == ["settled"]
        assert len(session.audit.drain()) == 1


@turned
async def test_a_file_stays_locked_while_any_run_may_write_it() -> None:
    """T8: also a first run that was given up, whatever became of the second."""
    stubborn = Stubborn()
    runs: list[Any] = [stubborn, instant]
    loop = asyncio.get_running_loop()
    entered: list[float] = []

    @tool(resources=["f"], timeout=3)
    async def t() -> Any:
        """T."""
        return await runs.pop(0)()

    @tool(resources=["f"])
    async def u() -> None:
        """U."""
        entered.append(loop.time())

    async def retry(proceed: Proceed) -> Any:
        try:
            return await proceed()
        except TimeoutError:
            return await proceed()

    began = loop.time()
    session = ToolSession(tools=ToolCatalog([t, u]), teardown_timeout=100, interceptors=[Around(retry)])
    async with session, session.batch([*one(), ToolCall("b", "u")]) as batch:
        batch.start_all()
        loop.call_later(10, stubborn.release.set)
        assert set(codes(await batch.snapshot()).values()) == {"success"}
    assert entered == [began + 10]


@turned
@pytest.mark.parametrize("stubborn", [False, True])
async def test_two_runs_at_once_are_both_stopped(stubborn: bool) -> None:
    """B6, T6: `around` may run the tool twice at the same time; a close asks both to stop, and waits for both."""
    tools: list[Stubborn] = [Stubborn(), Stubborn()]
    stopped: list[int] = []

    async def t() -> Any:
        mine = len(stopped) if not stubborn else 0
        if stubborn:
            return await tools.pop()()
        try:
            await forever()
        finally:
            stopped.append(mine)

    async def twice(proceed: Proceed) -> Any:
        return await asyncio.gather(proceed(), proceed())

    both = list(tools)
    async with ToolSession() as session:
        async with session.batch(one(), tools={"t": t}, interceptors=[Around(twice)]) as batch:
            batch.start_all()
            await turn(5)
            batch.close()
            await turn(5)
        if stubborn:
            assert [each.cancels for each in both] == [1, 1]
            both[1].release.set()
            await turn(3)
            assert batch.outcomes["a"].completion == "unknown"
            both[0].release.set()
            await turn(3)
            assert len(session.audit.drain()) == 2
        else:
            assert len(stopped) == 2
            assert batch.outcomes["a"].cancellation == "acknowledged"
        assert batch.outcomes["a"].completion == "settled"


@turned
@pytest.mark.parametrize("how", ["task", "shield", "awaitable"])
async def test_a_run_that_around_has_walked_away_from_is_stopped(how: str) -> None:
    """B6: a fallback that doesn't wait for the tool leaves nothing running behind an answered call."""
    stubborn = Stubborn()
    background: list[asyncio.Future[Any]] = []

    async def walk_away(proceed: Proceed) -> Any:
        task = asyncio.ensure_future(proceed())
        background.append(task)
        if how == "shield":
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(task), 2)
        else:
            await asyncio.wait([task], timeout=2)
        return "fallback"

    async with ToolSession() as session:
        async with session.batch(one(), interceptors=[Around(walk_away)]) as batch:
            batch.start("a", stubborn() if how == "awaitable" else stubborn)
            assert content(await batch.snapshot(), "a") == "fallback"
        await turn(3)
        assert stubborn.cancels == 1
        assert batch.outcomes["a"].completion == "unknown"
        assert background[0].done()
        stubborn.release.set()
        await turn(3)
        assert completion(batch, "a") == "settled"
        (stale,) = session.audit.drain()
        assert stale.observed_status == "success"


@turned
async def test_a_shielded_run_that_was_never_entered_does_not_hang() -> None:
    """B9: the close falls between making the task and its first step, and whoever waits for it is told."""
    background: list[asyncio.Future[Any]] = []

    async def shielded(proceed: Proceed) -> Any:
        task = asyncio.ensure_future(proceed())
        background.append(task)
        return await asyncio.shield(task)

    async with ToolBatch(one(), tools={"t": forever}, interceptors=[Around(shielded)]) as batch:
        batch.start_all()
        while not background:
            await turn()
        batch.close()
        await turn(5)
        assert background[0].done()


@turned
async def test_what_a_run_that_was_given_up_said_counts_no_more() -> None:
    """O4, T10: the second run succeeds, and what the first reported, added and concluded is not the call's."""
    runs: list[str] = []

    async def t() -> str:
        runs.append("x")
        if len(runs) == 1:
            current_call().report_failure("first")
            current_call().add_context("first")
            current_call().conclude_turn()
            raise ValueError
        current_call().add_context("second")
        return "done"

    async def retry(proceed: Proceed) -> Any:
        try:
            return await proceed()
        except ValueError:
            return await proceed()

    async with ToolBatch(one(), tools={"t": t}, interceptors=[Around(retry)]) as batch:
        batch.start_all()
        await batch.snapshot()
    assert batch.outcomes["a"].status == "succeeded"
    assert batch.added_context == {"a": ["second"]}
    assert not batch.concluded


# -- late results ------------------------------------------------------------------------------------------------------------

SECRET = "p4ssw0rd"


@turned
@pytest.mark.parametrize("when", ["tool", "policy"])
async def test_a_late_result_that_no_policy_has_seen_is_not_kept(when: str) -> None:
    """B20, T6: late notes are for the model; what would have been replaced in time must not come that way."""
    stubborn = Stubborn(SECRET)

    async def replace(_: ToolResult) -> Verdict:
        if when == "policy":
            await forever()
        return Replace("clean")

    async with ToolSession(keep_content=True) as session:
        async with session.batch(one(), tools={"t": stubborn}, interceptors=[After(replace)]) as batch:
            batch.start_all()
            await turn(4)
            if when == "policy":
                stubborn.release.set()
                await turn(4)
            batch.close()
        stubborn.release.set()
        await turn(4)
        (stale,) = session.audit.drain()
        assert stale.content is None
        assert session.late_notes() == []


@turned
async def test_progress_that_no_policy_has_seen_is_not_shown_to_the_model() -> None:
    """B19, T6: the user's screen sees it; the model would read it past the policy that cleans results."""
    seen: list[BatchEvent] = []

    async def t() -> None:
        current_call().progress(SECRET)
        await forever()

    async def accept(_: ToolResult) -> Verdict:
        return Block("no")

    async with ToolBatch(one(), tools={"t": t}, timeout=5, interceptors=[After(accept)], on_event=seen.append) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert SECRET not in str(snapshot.to_dict())
    assert SECRET in str(seen)


@turned
async def test_what_was_said_before_a_close_is_not_late_by_an_age() -> None:
    """B7: a result that waited for a policy when the call was closed was there in time; its record says by how little."""

    async def think(_: ToolResult) -> Verdict:
        await forever()

    async with ToolSession() as session:
        async with session.batch(one(), tools={"t": instant_none}, timeout=5, interceptors=[After(think)]) as batch:
            batch.start_all()
            await batch.snapshot()
        await turn(3)
        (stale,) = session.audit.drain()
        assert stale.late_by == 0
        assert stale.closed_at is not None
        assert abs(stale.settled_at - stale.closed_at) < 60


@turned
async def test_a_fallback_after_the_close_is_not_a_second_late_result() -> None:
    """B7, O5: one run of the tool, one late result; what `around` made of the cancellation is not the tool's."""
    stubborn = Stubborn()

    async def fall_back(proceed: Proceed) -> Any:
        try:
            return await proceed()
        except BaseException:  # as careless code does
            return "fallback"

    async with ToolSession() as session:
        async with session.batch(one(), tools={"t": stubborn}, interceptors=[Around(fall_back)]) as batch:
            batch.start_all()
            await turn(4)
            batch.close()
        stubborn.release.set()
        await turn(4)
        assert len(session.audit.drain()) == 1
        assert session.counters["t"].late == 1


# -- answers for now ---------------------------------------------------------------------------------------------------------


@turned
@pytest.mark.parametrize("who", ["tool", "around"])
async def test_a_tool_may_be_run_again_after_a_placeholder(who: str) -> None:
    """O6, T6: the call is answered, its work goes on, retries included, though its batch is long closed."""
    runs: list[int] = []

    async def t() -> str:
        runs.append(len(runs))
        if who == "tool":
            current_call().pending("accepted")
        await asyncio.sleep(10)
        if len(runs) == 1:
            raise ValueError("first")
        return "second"

    async def retry(proceed: Proceed) -> Any:
        if who == "around":
            current_call().pending("accepted")
        try:
            return await proceed()
        except ValueError:
            return await proceed()

    async with ToolSession(tools={"t": t}, interceptors=[Around(retry)], call_timeout=5) as session:
        async with session.batch(one()) as batch:
            batch.start_all()
            assert content(await batch.snapshot(), "a") == "accepted"
        await asyncio.sleep(30)
        (note,) = session.late_notes()
        assert note.content == "second"
        assert batch.outcomes["a"].status == "succeeded"
        assert session.counters["t"].succeeded == 1
        assert session.running == 0


@turned
async def test_a_run_after_a_placeholder_is_the_sessions() -> None:
    """B8, O6: a run that begins after its batch was left is stopped and waited for by the session."""
    stubborn = Stubborn()
    runs: list[int] = []

    async def t() -> Any:
        runs.append(1)
        current_call().pending("accepted")
        await asyncio.sleep(10)
        if len(runs) == 1:
            raise ValueError
        return await stubborn()

    async def retry(proceed: Proceed) -> Any:
        try:
            return await proceed()
        except ValueError:
            return await proceed()

    async with ToolSession(tools={"t": t}, interceptors=[Around(retry)], teardown_timeout=5) as session:
        async with session.batch(one()) as batch:
            batch.start_all()
            await batch.snapshot()
        await asyncio.sleep(25)
        assert session.running == 2, "the guide and the second run"
        asyncio.get_running_loop().call_later(2, stubborn.release.set)
    assert session.running == 0
    assert stubborn.cancels == 1


@pytest.mark.parametrize("guided", [False, True])
async def test_a_thread_that_answered_for_now_may_return_an_awaitable(guided: bool, nothing_left: None) -> None:
    """B1, O6: it is awaited, also after the batch was closed; nobody has asked it to stop."""
    release = threading.Event()

    def t() -> Any:
        current_call().pending("soon")
        assert release.wait(20)
        return instant("late")

    hooks = [Around(passes)] if guided else []
    async with ToolSession(tools={"t": t}, interceptors=hooks, teardown_timeout=30) as session:
        async with session.batch(one()) as batch:
            batch.start_all()
            await batch.snapshot()
        release.set()
        while session.running:
            await asyncio.sleep(0.01)
        assert batch.outcomes["a"].status == "succeeded"
        (note,) = session.late_notes()
        assert note.content == "late"


# -- who tears everything down -----------------------------------------------------------------------------------------------


@turned
async def test_cancelling_every_task_at_once_breaks_no_queue() -> None:
    """B9: as `asyncio.run` does at its end: a call whose turn would come is already cancelled."""
    loop = asyncio.get_running_loop()
    complaints: list[Any] = []
    old = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    announced = [ToolCall(name, "t") for name in "abcd"]

    async def host() -> None:
        async with ToolBatch(
            announced, tools={"t": forever}, max_concurrency=1, interceptors=[Around(passes)]
        ) as batch:
            batch.start_all()
            await batch.snapshot()

    task = asyncio.ensure_future(host())
    await turn(6)
    mine = asyncio.current_task()
    for other in asyncio.all_tasks():
        if other is not mine:
            other.cancel()
    await asyncio.wait([task])
    await turn(5)
    gc.collect()
    loop.set_exception_handler(old)
    assert complaints == []


HOOKS = [
    "plain",
    "around",
    "denied",
    "timeout",
    "approved",
    "asked and closed",
    "replaced",
    "retried",
    "queued",
    "locked",
    "budget",
]


@turned
@pytest.mark.parametrize("how", HOOKS)
async def test_a_batch_that_is_done_with_goes_at_once(how: str) -> None:
    """B9: no circle of references keeps it, its tools' results, or its interceptors."""
    gc.collect()
    gc.disable()
    try:
        watched = await _life(how)
        await turn(3)
        left = [name for name, reference in watched.items() if reference() is not None]
        assert left == []
    finally:
        gc.enable()


class Value(dict[str, Any]):
    """A result that can be watched."""


async def _life(how: str) -> dict[str, Any]:
    watched: dict[str, Any] = {}
    runs: list[int] = []

    @tool(needs_approval=how in ("approved", "asked and closed"), resources=["f"] if how == "locked" else None)
    async def t() -> Any:
        """T."""
        runs.append(1)
        if how == "timeout":
            await forever()
        if how == "retried" and len(runs) == 1:
            raise ValueError
        value = Value(x=1)
        watched["value"] = weakref.ref(value)
        await asyncio.sleep(1)
        return value

    async def deny() -> Decision:
        return Deny("no")

    async def replace(result: ToolResult) -> Verdict:
        return Replace("clean")

    async def retry(proceed: Proceed) -> Any:
        try:
            return await proceed()
        except ValueError:
            return await proceed()

    hooks: list[Interceptor] = {
        "plain": [],
        "approved": [],
        "locked": [],
        "denied": [Before(deny)],
        "replaced": [After(replace)],
        "retried": [Around(retry)],
    }.get(how, [Around(passes)])  # type: ignore[assignment]

    def approve(request: ApprovalRequest) -> None:
        if how == "approved":
            asyncio.get_running_loop().call_soon(broker.resolve, request.call_id, Approve())

    broker = InteractiveApprovals(approve)
    announced = [ToolCall(name, "t") for name in "abc"]
    batch = ToolBatch(
        announced, tools=ToolCatalog([t]), interceptors=hooks, call_timeout=5, max_concurrency=1 if how == "queued" else None, approvals=broker,
    )  # fmt: skip
    async with batch:
        batch.start_all()
        if how == "asked and closed":
            await turn(3)
            batch.close()
        await batch.snapshot()
    engine: Any = batch._engine
    watched["engine"] = weakref.ref(engine)
    for hook in hooks:
        watched[type(hook).__name__] = weakref.ref(hook)
    watched["execution"] = weakref.ref(engine.executions["a"])
    return watched


# -- events ------------------------------------------------------------------------------------------------------------------


@turned
async def test_several_readers_share_a_stream() -> None:
    """B19: each event goes to one of them, and none waits for ever."""
    async with ToolBatch([*one(), ToolCall("b", "t")]) as batch:
        stream = batch.events()

        async def read() -> list[BatchEvent]:
            return [event async for event in stream]

        readers = [asyncio.ensure_future(read()) for _ in range(3)]
        await turn(2)
        batch.start("a", instant)
        await turn(5)
        batch.start("b", instant)
    _, waiting = await asyncio.wait(readers, timeout=5)
    for reader in waiting:
        reader.cancel()
    assert not waiting
    assert sum(len(reader.result()) for reader in readers) == 5


@turned
async def test_nothing_comes_after_the_close() -> None:
    """B19: a stream that is asked for between the close and its accounts begins and ends with `BatchClosed`."""
    async with ToolBatch(one()) as batch:
        batch.start("a", forever)
        await turn(2)
        batch.close()
        stream = batch.events()
        await turn(3)
    names = []
    with contextlib.suppress(StopAsyncIteration):
        while True:
            names.append(type(await anext(stream)).__name__)
    assert names == ["BatchClosed"]
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


@turned
async def test_work_that_goes_on_behind_a_placeholder_is_no_event_of_the_batch() -> None:
    """B19, O6: the stream ends with `BatchClosed`, though the tool is run again after it."""
    runs: list[int] = []

    async def t() -> str:
        runs.append(1)
        current_call().pending("accepted")
        await asyncio.sleep(1)
        current_call().progress("more")
        if len(runs) == 1:
            raise ValueError
        return "done"

    async def retry(proceed: Proceed) -> Any:
        try:
            return await proceed()
        except ValueError:
            return await proceed()

    seen: list[str] = []
    async with ToolSession(tools={"t": t}, interceptors=[Around(retry)]) as session:
        async with session.batch(one(), on_event=lambda event: seen.append(type(event).__name__)) as batch:
            stream = batch.events()
            batch.start_all()
        await asyncio.sleep(10)
    assert len(runs) == 2
    assert seen == ["CallStarted", "CallSettled", "BatchClosed"]
    assert [type(event).__name__ async for event in stream] == seen


@pytest.mark.parametrize("guided", [False, True])
async def test_a_thread_that_returns_an_awaitable_starts_once(guided: bool) -> None:
    """B19: one call that ran once is told as started once."""
    seen: list[BatchEvent] = []

    def t() -> Any:
        return instant()

    async with ToolBatch(
        one(), tools={"t": t}, on_event=seen.append, interceptors=[Around(passes)] if guided else []
    ) as batch:
        batch.start_all()
        await batch.snapshot()
    assert sum(isinstance(event, CallStarted) for event in seen) == 1


# -- hostile arguments -------------------------------------------------------------------------------------------------------


class Evil:
    """Can't be looked at."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


def deep(levels: int) -> Any:
    """Arguments nested beyond any recursion limit."""
    value: Any = {}
    for _ in range(levels):
        value = {"x": value}
    return value


@turned
@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [{"x": Evil()}, deep(20_000), {"x": float("nan")}, {"x": "\ud800"}],
    ids=["evil", "deep", "nan", "surrogate"],
)
async def test_hostile_arguments_of_a_bad_call_are_counted_too(guided: bool, arguments: Any) -> None:
    """T3: whatever the model or a gateway put there, the call is answered, and its siblings run."""
    async with ToolBatch(
        [ToolCall("a", "nobody", arguments), ToolCall("b", "t")],
        tools={"t": instant_none},
        interceptors=[Around(passes)] if guided else [],
    ) as batch:
        batch.start_all()
        assert codes(await batch.snapshot()) == {"a": "unknown_tool", "b": "success"}


# -- approvals ---------------------------------------------------------------------------------------------------------------


async def test_one_request_may_be_asked_twice_at_once() -> None:
    """T7: a broker keeps the two apart, whatever names they have."""
    broker = InteractiveApprovals()
    request = ApprovalRequest(execution_id="x", call_id="a", tool_name="t", arguments={})
    first, second = (asyncio.ensure_future(broker.decide(request)) for _ in range(2))
    await turn(2)
    assert len(broker.pending()) == 2
    assert broker.abort_all("stop") == 2
    assert await first == await second == Abort("stop")
    assert broker.pending() == []


class Instance(Interceptor):
    """Has its policy on the instance."""

    def __init__(self) -> None:
        self.before = self._deny  # type: ignore[method-assign]

    async def _deny(self, call: Any, proceed: Any) -> Decision:
        return Deny("no")


@turned
async def test_a_policy_on_the_instance_is_not_overlooked() -> None:
    """T6: what stands there to deny must not be passed by silently."""
    async with ToolBatch(one(), tools={"t": instant_none}, interceptors=[Instance()]) as batch:
        batch.start_all()
        assert code(await batch.snapshot(), "a") == "denied"


@turned
@pytest.mark.parametrize("stored", [False, True])
async def test_what_a_person_has_denied_stays_denied_over_a_pause(stored: bool) -> None:
    """T7: a later batch asks only for what was still open; a broad approval must not reach what was refused before."""
    ran: list[str] = []

    @tool(needs_approval=True)
    async def t() -> str:
        """T."""
        ran.append(current_call().call_id)
        return "done"

    announced = [ToolCall(name, "t") for name in "ab"] + [ToolCall("c", "nobody")]
    broker = InteractiveApprovals()
    async with ToolBatch(announced, tools=ToolCatalog([t]), approvals=broker) as batch:
        batch.start_all()
        await turn(3)
        broker.resolve("a", Deny("never", "refused"))
        paused = await batch.pause()
    saved: Any = paused.to_dict() if stored else paused
    async with ToolBatch(announced, tools=ToolCatalog([t]), approvals=FixedApprovals(Approve()), resume=saved) as later:
        later.start_all()
        snapshot = await later.snapshot()
    assert codes(snapshot) == {"a": "refused", "b": "success", "c": "unknown_tool"}
    assert ran == ["b"]
    outcome = later.outcomes["a"]
    assert (outcome.status, outcome.started, outcome.completion) == ("denied", False, "not_started")
    assert later.outcomes["c"].status == "failed"
    check_batch(later, ["a", "b", "c"])


# -- a blow at every turn ----------------------------------------------------------------------------------------------------


class Slow(Interceptor):
    """Awaits something in every stage, before and after; swallows a cancellation where it is told to."""

    def __init__(self, swallows: str) -> None:
        self._swallows = swallows

    async def _pause(self, where: str) -> None:
        try:
            await turn(2)
        except asyncio.CancelledError:
            if self._swallows != where:
                raise

    async def before(self, call: Any, proceed: Any) -> Any:
        await self._pause("before")
        decision = await proceed()
        await self._pause("decided")
        return decision

    async def around(self, call: Any, proceed: Any) -> Any:
        await self._pause("around")
        try:
            value = await proceed()
        except asyncio.CancelledError:
            if self._swallows != "tool":
                raise
            value = "swallowed"
        await self._pause("ran")
        return value

    async def after(self, call: Any, result: Any, proceed: Any) -> Any:
        await self._pause("after")
        verdict = await proceed()
        await self._pause("judged")
        return verdict


class SlowStore:
    """A spill store that takes its time."""

    async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
        await turn(2)
        return SpillRecord(locator="loc", total_chars=len(text), retrieval="Read it by loc.")

    async def read(self, locator: str, *, offset: int, limit: int) -> SpillSlice | None:
        return None


class SlowBroker:
    """Approves after a while."""

    async def decide(self, request: ApprovalRequest, /) -> ApprovalDecision:
        await turn(2)
        return Approve()


SWALLOWS = ["nothing", "before", "decided", "around", "tool", "ran", "after", "judged"]
BLOWS = ["close", "cancel", "host", "supersede", "session", "expire", "pending"]


@pytest.mark.parametrize("swallows", SWALLOWS)
@pytest.mark.parametrize("blow", BLOWS)
def test_a_blow_at_every_turn_leaves_one_honest_outcome(swallows: str, blow: str) -> None:
    """B3 to B9, T6: at whatever await of whatever stage it falls; one outcome, one late record at most, nothing left, nothing run after."""
    for at in range(1, 40):
        loop = ClockLoop()
        seen: dict[str, Any] = {}
        loop.hooks[at] = lambda seen=seen: seen["blow"]() if "blow" in seen else None  # type: ignore[misc]
        session = run(_be_hit(swallows, blow, seen), loop)
        batch: ToolBatch = seen["batch"]
        snapshot = check_batch(batch, ["a", "b"])
        late = session.audit.drain()
        for call_id in "ab":
            outcome = batch.outcomes[call_id]
            ran: list[float] = seen["ran"][call_id]
            assert len(ran) <= 1
            assert outcome.started == bool(ran), (at, outcome)
            assert outcome.completion == ("settled" if ran else "not_started"), (at, outcome)
            records = [stale for stale in late if stale.call_id == call_id]
            has_returned = call_id in seen["returned"]
            if blow != "pending":
                # What the tool said is the outcome, or evidence, or was never said.
                assert len(records) == (has_returned and code(snapshot, call_id) != "success"), (at, outcome, records)
            for stale in records:
                assert stale.late_by < 1
            if effects(snapshot, call_id) == "not_started":
                assert not ran
        assert session.running == 0
        counted = session.counters["t"]
        assert counted.started == sum(map(bool, seen["ran"].values()))
        assert counted.late == len(late)


async def _be_hit(swallows: str, blow: str, seen: dict[str, Any]) -> ToolSession:
    seen["ran"] = {"a": [], "b": []}
    seen["returned"] = set()
    host = asyncio.current_task()
    assert host is not None

    @tool(needs_approval=True, resources=["f"], max_output_tokens=50)
    async def t() -> str:
        """T."""
        call_id = current_call().call_id
        seen["ran"][call_id].append(1)
        await turn(3)
        seen["returned"].add(call_id)
        return "long " * 1000

    session = ToolSession(
        tools=ToolCatalog([t]), approvals=SlowBroker(), interceptors=[Slow(swallows)], budget=OutputBudget(50, store=SlowStore()),
        teardown_timeout=100, timeout=50,
    )  # fmt: skip

    def strike() -> None:
        batch = seen["batch"]
        match blow:
            case "close":
                batch.close()
            case "cancel":
                batch.cancel("a")
            case "host":
                seen["host"].cancel()
            case "supersede":
                seen["next"] = asyncio.ensure_future(supersede(session))
            case "session":
                seen["host"].cancel()
            case "expire":
                asyncio.get_running_loop().now += 50  # type: ignore[attr-defined]
            case _:
                for execution in batch._engine.executions.values():
                    CallContext(execution).pending("accepted")

    async def live() -> None:
        async with session, session.batch([ToolCall("a", "t"), ToolCall("b", "t")]) as batch:
            seen["batch"] = batch
            seen["blow"] = strike
            batch.start_all()
            await batch.snapshot()
            if blow != "session":
                await turn(60)

    seen["host"] = asyncio.ensure_future(live())
    await asyncio.wait([seen["host"]])
    if "next" in seen:
        await seen["next"]
    if not seen["host"].cancelled():
        assert seen["host"].exception() is None
    return session


async def supersede(session: ToolSession) -> None:
    """Begin another turn."""
    async with session.batch([]):
        pass


# -- other ways to end ---------------------------------------------------------------------------------------------------------


def test_a_loop_that_is_torn_down_is_not_disturbed(recwarn: pytest.WarningsRecorder) -> None:
    """B9: a loop that is closed under running guides, with locks, queues and approvals: their coroutines just go."""
    complaints: list[object] = []
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _, context: None)  # that tasks were destroyed is told by asyncio itself

    @tool(resources=["f"])
    async def t() -> None:
        """T."""
        await forever()

    asks = tool(name="u", needs_approval=True)(forever)
    announced = [*one(), ToolCall("b", "t"), ToolCall("c", "u"), ToolCall("d", "u")]

    async def host() -> None:
        batch = ToolBatch(
            announced, tools={"t": t, "u": asks}, interceptors=[Around(passes)], approvals=InteractiveApprovals()
        )
        await batch.__aenter__()
        batch.start_all()
        await turn(5)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", lambda seen: complaints.append(seen.exc_value))
        loop.run_until_complete(host())
        loop.close()
        gc.collect()
    assert complaints == []


@turned
async def test_a_client_that_goes_away_leaves_every_call_answered() -> None:
    """B18: `aclose` of a streaming response, with a guided call at work and one that waits for approval."""
    seen: list[ToolBatch] = []
    asks = tool(name="u", needs_approval=True)(instant_none)

    async def stream() -> AsyncGenerator[str, None]:
        async with ToolBatch(
            [*one(), ToolCall("b", "u")], tools={"t": forever, "u": asks}, interceptors=[Around(passes)],
            approvals=InteractiveApprovals(),
        ) as batch:  # fmt: skip
            seen.append(batch)
            batch.start_all()
            await turn(4)
            yield "first"

    generator = stream()
    assert await anext(generator) == "first"
    await generator.aclose()
    snapshot = check_batch(seen[0], ["a", "b"])
    assert codes(snapshot) == {"a": "request_aborted", "b": "request_aborted"}
    assert [effects(snapshot, name) for name in "ab"] == ["unknown", "not_started"]
    await turn(4)


@turned
async def test_a_batch_inside_of_a_guided_tool_has_calls_of_its_own() -> None:
    """B10: the inner call is the inner batch's, its approval too, and the outer cancellation reaches it."""
    broker = InteractiveApprovals()
    ran: list[str] = []

    @tool(needs_approval=True)
    async def inner() -> str:
        """Inner."""
        ran.append(current_call().call_id)
        await forever()

    async def outer() -> str:
        assert current_call().call_id == "a"
        async with ToolBatch([ToolCall("i", "inner")], tools=ToolCatalog([inner]), approvals=broker) as batch:
            batch.start_all()
            await batch.snapshot()
        raise AssertionError

    async with ToolBatch(one(), tools={"t": outer}, interceptors=[Around(passes)]) as batch:
        batch.start_all()
        await turn(8)
        assert [request.call_id for request in broker.pending()] == ["i"]
        broker.resolve("i", Approve())
        await turn(8)
        assert ran == ["i"]
        batch.close()
    assert batch.outcomes["a"].cancellation == "acknowledged"


@turned
@pytest.mark.parametrize("end", ["close", "cancel", "deadline"])
async def test_a_decision_in_the_turn_of_the_end_is_too_late(end: str) -> None:
    """T7: whichever came first in that turn: what is closed has not been executed, and is not executed afterwards."""
    ran: list[str] = []
    broker = InteractiveApprovals()

    @tool(needs_approval=True)
    async def t() -> None:
        """T."""
        ran.append("t")

    loop = asyncio.get_running_loop()
    async with ToolBatch(one(), tools=ToolCatalog([t]), approvals=broker, timeout=5) as batch:
        batch.start_all()
        await turn(4)
        if end == "deadline":
            loop.call_at(loop.time() + 5, broker.resolve, "a", Approve())
            await batch.snapshot()
        else:
            assert broker.resolve("a", Approve())
            batch.close() if end == "close" else batch.cancel("a")
        await turn(5)
    snapshot = check_batch(batch, ["a"])
    assert message(snapshot, "a").startswith("NOT EXECUTED")
    assert ran == []
    assert effects(snapshot, "a") == "not_started"


@turned
async def test_an_async_observer_that_fails_harms_nothing() -> None:
    """O3: `on_event` may be a coroutine function, and may raise; it is waited for at the exit."""
    seen: list[str] = []

    async def observe(event: BatchEvent) -> None:
        await asyncio.sleep(1)
        seen.append(type(event).__name__)
        raise RuntimeError

    async with ToolBatch(
        one(), tools={"t": instant_none}, teardown_timeout=50, on_event=observe, interceptors=[Around(passes)]
    ) as batch:
        batch.start_all()
        assert content(await batch.snapshot(), "a") == "done"
    assert seen == ["CallStarted", "CallSettled", "BatchClosed"]


class OddError(BaseException):
    """A tool's exception that is none of `Exception`'s."""


@pytest.mark.parametrize(
    "error",
    [
        OddError("sk-123"),
        BaseExceptionGroup("group", [ValueError("sk-123"), asyncio.CancelledError()]),
        GeneratorExit("sk-123"),
    ],
    ids=["odd", "group", "exit"],
)
@turned
async def test_policies_see_every_failure(error: BaseException) -> None:
    """`after` sees whatever a tool raises, also what is no `Exception`, and can withhold it (T6)."""
    seen: list[ToolResult] = []

    async def fail() -> None:
        raise error

    async def withhold(result: ToolResult) -> Verdict:
        seen.append(result)
        return Replace("withheld")

    async with ToolBatch([ToolCall("a", "fail")], interceptors=[After(withhold)]) as batch:
        batch.start("a", fail)
        snapshot = await batch.snapshot()
    assert len(seen) == 1
    assert (code(snapshot, "a"), message(snapshot, "a")) == ("denied", "withheld")
    assert "sk-123" not in repr(batch.outcomes["a"].exception)


def test_what_ends_the_turn_tells_no_more_than_policies_allow() -> None:
    """An exit passes at once, unseen by `after`: so the model reads its type, and nothing that it says (T6, B4)."""

    async def leave() -> None:
        raise SystemExit("sk-123")

    async def main() -> None:
        async with ToolBatch([ToolCall("a", "leave")], interceptors=[After(accept)]) as batch:
            batches.append(batch)
            batch.start("a", leave)

    async def accept(_: ToolResult) -> Verdict:
        return Accept()

    batches: list[ToolBatch] = []
    with pytest.raises(SystemExit):
        run(main(), may_leave=True)
    assert batches[0].result is not None
    assert message(batches[0].result, "a") == "SystemExit"


@pytest.mark.parametrize(
    "error",
    [
        OddError("odd"),
        BaseExceptionGroup("group", [ValueError("x"), asyncio.CancelledError()]),
        asyncio.CancelledError(),
    ],
    ids=["odd", "group", "cancelled"],
)
@turned
async def test_a_policy_that_fails_in_any_way_withholds_the_result(error: BaseException) -> None:
    """What `after` raises blocks the result, also where it is no `Exception`, and says nothing to the model (T6)."""

    async def fail(_: ToolResult) -> Verdict:
        raise error

    async with ToolBatch([ToolCall("a", "tool_a")], interceptors=[After(fail)]) as batch:
        batch.start("a", instant, "sk-123")
        snapshot = await batch.snapshot()
    assert code(snapshot, "a") == "denied"
    assert "withheld" in message(snapshot, "a")
    assert batch.outcomes["a"].status == "failed"


@turned
async def test_a_bound_that_passes_after_the_tool_has_ended_did_not_fire() -> None:
    """The tool's own time is over for its tool alone: what a policy takes afterwards is no timeout, and none is told of (T6, O1)."""

    async def think(_: ToolResult) -> Verdict:
        await asyncio.sleep(100)
        return Accept()

    async with ToolBatch([ToolCall("a", "tool_a")], interceptors=[After(think)]) as batch:
        batch.start("a", instant, timeout=5)
        snapshot = await batch.snapshot()
    assert code(snapshot, "a") == "success"
    assert batch.outcomes["a"].timeout is None


@pytest.mark.parametrize("guided", [False, True])
@turned
async def test_a_tools_own_bound_is_a_timeout_whatever_other_timeouts_mean(guided: bool) -> None:
    """`cancel_exceptions` is of what tools raise: a bound of ours that fires is a timeout for all that (B3)."""
    options: dict[str, Any] = {"cancel_exceptions": (TimeoutError,), "interceptors": [Around(passes)] if guided else []}
    async with ToolBatch([ToolCall("a", "tool_a"), ToolCall("b", "tool_b")], **options) as batch:
        batch.start("a", forever, timeout=5)
        batch.start("b", asyncio.wait_for, asyncio.Event().wait(), 1)
        snapshot = await batch.snapshot()
    assert codes(snapshot) == {"a": "timeout", "b": "cancelled"}
    assert batch.outcomes["a"].status == "timed_out"


@turned
async def test_what_a_cancelled_tool_has_added_is_not_told_past_the_policies() -> None:
    """Where `after` sees nothing of a call, since it was cancelled, nobody does (T6, T10)."""

    async def give_up() -> None:
        current_call().add_context("sk-123")
        raise asyncio.CancelledError

    async def accept(_: ToolResult) -> Verdict:
        return Accept()

    for policies in ([After(accept)], [Around(passes)]):
        async with ToolBatch([ToolCall("a", "give_up")], interceptors=policies) as batch:
            batch.start("a", give_up)
            snapshot = await batch.snapshot()
        assert code(snapshot, "a") == "cancelled"
        assert bool(batch.added_context) is isinstance(policies[0], Around)


@turned
async def test_a_value_that_comes_as_the_wait_for_it_is_cancelled() -> None:
    """It is evidence, of an attempt that was left in that moment: no time has passed since (T6, B7)."""
    gate = asyncio.Event()
    waiting: list[asyncio.Task[Any]] = []

    async def work() -> str:
        await gate.wait()
        return "work"

    async def walk_away(proceed: Proceed) -> str:
        task = asyncio.current_task()
        assert task is not None
        waiting.append(task)
        try:
            return str(await proceed())
        except asyncio.CancelledError:
            return "walked away"

    async with ToolBatch([ToolCall("a", "work")], interceptors=[Around(walk_away)]) as batch:
        batch.start("a", work)
        await turn(3)
        gate.set()
        waiting[0].cancel()
        snapshot = await batch.snapshot()
    assert content(snapshot, "a") == "walked away"
    (stale,) = batch.audit.drain()
    assert (stale.observed_status, stale.answered_as, stale.late_by) == ("success", "cancelled", 0)


@turned
async def test_a_coroutine_that_runs_is_not_closed_by_a_second_run_of_it() -> None:
    """What was handed over as a coroutine can be run once: a second run beside it fails by itself, and leaves the first alone (T6)."""

    async def twice(proceed: Proceed) -> list[Any]:
        return [repr(end) for end in await asyncio.gather(proceed(), proceed(), return_exceptions=True)]

    async with ToolBatch([ToolCall("a", "after")], interceptors=[Around(twice)]) as batch:
        batch.start("a", after(3, "first"))
        snapshot = await batch.snapshot()
    assert content(snapshot, "a") == """["'first'","RuntimeError('coroutine is being awaited already')"]"""


@turned
async def test_a_future_that_was_never_awaited_does_not_keep_its_call_open() -> None:
    """What stands around a future that was handed over may give up before it is awaited: the call is cancelled, and so is that (B4, B9)."""

    async def give_up(_: Proceed) -> None:
        raise asyncio.CancelledError

    future = asyncio.ensure_future(forever())
    async with ToolBatch([ToolCall("a", "forever")], interceptors=[Around(give_up)], timeout=50) as batch:
        batch.start("a", future)
        snapshot = await batch.snapshot()
    assert code(snapshot, "a") == "cancelled"
    assert future.cancelled()


@pytest.mark.parametrize("how", ["left", "ended"])
@turned
async def test_what_a_former_attempt_says_later_counts_no_more(how: str) -> None:
    """An attempt that was given up, or has failed, and whose code still speaks, says nothing of the call any more (T6)."""
    attempts = []

    async def speak(call: CallContext) -> None:
        await asyncio.sleep(6)
        call.pending("placeholder")
        call.add_context("sk-123")
        call.conclude_turn()
        call.report_failure("failed")
        call.progress("progress")

    async def work() -> str:
        attempts.append(asyncio.ensure_future(speak(current_call())))
        if len(attempts) == 1 and how == "ended":
            raise TimeoutError
        await asyncio.sleep(10 if len(attempts) == 1 else 4)
        return "done"

    async def again(proceed: Proceed) -> Any:
        try:
            return await proceed()
        except TimeoutError:
            return await proceed()

    async def think(_: ToolResult) -> Verdict:
        await asyncio.sleep(10)
        return Accept()

    events: list[BatchEvent] = []
    async with ToolBatch(
        [ToolCall("a", "work")], interceptors=[Around(again), After(think)], on_event=events.append
    ) as batch:
        batch.start("a", work, timeout=5)
        snapshot = await batch.snapshot()
    assert content(snapshot, "a") == "done"
    assert batch.outcomes["a"].status == "succeeded"
    assert (batch.added_context, batch.concluded) == ({}, False)
    assert not [event for event in events if isinstance(event, CallProgress)]
    await asyncio.wait(attempts)
