"""The behaviour list of seed 004 - outcomes, cancellation, accounting - line by line, in our words.

Where our requirements differ on purpose, ours is tested, and the line says so. Each holds with interceptors and without.
"""

import asyncio
import dataclasses
import threading
from contextvars import ContextVar
from typing import Any

import pytest

from tests.batch.clock import now, turned
from tests.batch.kit import (
    Stubborn,
    after,
    boom,
    check_batch,
    code,
    completion,
    content,
    effects,
    forever,
    message,
    totals,
    turn,
)
from tests.batch.stages import Around, one, passes
from toolbatch import (
    ExecutionOutcome,
    Snapshot,
    ToolBatch,
    ToolCall,
    ToolCatalog,
    ToolError,
    ToolSession,
    current_call,
    tool,
)
from toolbatch.core import BatchClosedError, ProviderMismatchError
from toolbatch.ports import Approve
from toolbatch.providers import anthropic
from toolbatch.tools import InteractiveApprovals

HOOKS: dict[str, Any] = {"plain": {}, "guided": {"interceptors": [Around(passes)]}}


@pytest.fixture(params=list(HOOKS))
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Options of a batch or session: without interceptors, and with one."""
    given: dict[str, Any] = HOOKS[request.param]
    return given


async def done() -> str:
    """Return at once."""
    return "done"


async def run_one(fn: Any, **options: Any) -> ToolBatch:
    """Run one call to its end, and return its batch."""
    async with ToolBatch(one(), tools={"t": fn}, **options) as batch:
        batch.start_all()
        await batch.snapshot()
    check_batch(batch, ["a"])
    return batch


def result(batch: ToolBatch) -> Snapshot:
    """The closed snapshot."""
    assert batch.result is not None
    return batch.result


# -- the record --------------------------------------------------------------------------------------------------------------


@turned
async def test_an_outcome_stands_beside_the_result(options: dict[str, Any]) -> None:
    """Seed 004: what is known of an execution changes nothing of what it returned."""
    batch = await run_one(done, **options)
    assert content(result(batch), "a") == "done"
    assert batch.outcomes["a"].status == "succeeded"


@turned
async def test_what_is_in_an_outcome(options: dict[str, Any]) -> None:
    """Seed 004: its own id, the call's and the run's, the tool, start and duration, status, how far it came, whether it was stopped."""

    async def t() -> str:
        await asyncio.sleep(3)
        return "done"

    batch = await run_one(t, run_id="run", **options)
    outcome = batch.outcomes["a"]
    assert (outcome.call_id, outcome.tool_name, outcome.run_id, outcome.generation) == ("a", "t", "run", 1)
    assert (outcome.status, outcome.started, outcome.completion, outcome.cancellation) == (
        "succeeded",
        True,
        "settled",
        "none",
    )
    assert outcome.duration == 3
    assert outcome.started_at is not None
    assert outcome.timeout is None
    assert outcome.execution_id != (await run_one(t, **options)).outcomes["a"].execution_id


@turned
async def test_neither_arguments_nor_result_are_in_it(options: dict[str, Any]) -> None:
    """Seed 004: a diagnostic may be forwarded; bodies and secrets are not in it."""

    async def t(token: str) -> str:
        return f"result of {token}"

    async with ToolBatch(one({"token": "s3cret"}), tools={"t": t}, **options) as batch:
        batch.start_all()
        await batch.snapshot()
    assert "s3cret" not in repr(dataclasses.asdict(batch.outcomes["a"]))


@turned
@pytest.mark.parametrize("value", [{"success": False}, {"error": "no"}, False, None])
async def test_data_that_says_no_is_a_success(value: Any, options: dict[str, Any]) -> None:
    """Seed 004: a business decision is no failed execution."""

    async def t() -> Any:
        return value

    assert (await run_one(t, **options)).outcomes["a"].status == "succeeded"


@turned
async def test_a_tool_reports_its_failure_and_keeps_its_value(options: dict[str, Any]) -> None:
    """Seed 004: one that catches its own error may return what it likes, and say that it failed."""

    async def t() -> Any:
        current_call().report_failure("upstream is down")
        return {"items": []}

    batch = await run_one(t, **options)
    assert content(result(batch), "a") == '{"items":[]}'
    assert batch.outcomes["a"].status == "failed"
    assert batch.counters["t"].failed == 1


@turned
async def test_a_report_is_of_its_own_call_only(options: dict[str, Any]) -> None:
    """Seed 004: calls that run side by side don't fail for each other."""

    async def t() -> str:
        if current_call().call_id == "a":
            current_call().report_failure("only a")
        await asyncio.sleep(1)
        return "done"

    async with ToolBatch([ToolCall(name, "t") for name in "ab"], tools={"t": t}, **options) as batch:
        batch.start_all()
        await batch.snapshot()
    assert [batch.outcomes[name].status for name in "ab"] == ["failed", "succeeded"]


@turned
@pytest.mark.parametrize("name", ["nobody", "t"])
async def test_what_cannot_run_was_not_started(name: str, options: dict[str, Any]) -> None:
    """Seed 004: an unknown tool or bad arguments are no execution."""

    @tool
    async def t(x: int) -> int:
        """T."""
        return x

    async with ToolBatch([ToolCall("a", name, "{}")], tools=ToolCatalog([t]), **options) as batch:
        batch.start_all()
        await batch.snapshot()
    outcome = batch.outcomes["a"]
    assert (outcome.status, outcome.started, outcome.completion, outcome.duration) == (
        "failed",
        False,
        "not_started",
        None,
    )


# -- cancellation --------------------------------------------------------------------------------------------------------------


@turned
async def test_a_call_that_is_cancelled_before_cannot_start(options: dict[str, Any]) -> None:
    """Seed 004: what was aborted before is not run, however late it is started."""
    ran: list[str] = []

    async def t() -> None:
        ran.append("t")

    async with ToolBatch(one(), **options) as batch:
        batch.cancel("a")
        with pytest.raises(BatchClosedError):
            batch.start("a", t)
    assert ran == []


@turned
@pytest.mark.parametrize(("call", "turn_", "fires"), [(3, 9, 3), (9, 3, 3), (None, 3, 3), (3, None, 3)])
async def test_the_earlier_of_two_bounds_fires(
    call: float | None, turn_: float | None, fires: float, options: dict[str, Any]
) -> None:
    """Seed 004: the call's and the turn's; the outcome names the one that did."""
    batch = await run_one(forever, call_timeout=call, timeout=turn_, **options)
    assert (now(), batch.outcomes["a"].timeout, batch.outcomes["a"].status) == (fires, fires, "timed_out")


@turned
async def test_without_a_bound_there_is_none(options: dict[str, Any]) -> None:
    """Seed 004: none is added. There 0 means none; ours is None, and 0 is no time at all."""

    async def t() -> str:
        await asyncio.sleep(80_000)
        return "done"

    assert content(result(await run_one(t, **options)), "a") == "done"
    assert (await run_one(forever, call_timeout=0, **options)).outcomes["a"].status == "timed_out"


@turned
async def test_nothing_is_tried_again_by_itself(options: dict[str, Any]) -> None:
    """Seed 004: neither a failure nor a timeout."""
    runs: list[int] = []

    async def t() -> None:
        runs.append(1)
        raise OSError

    await run_one(t, **options)
    assert runs == [1]


@turned
async def test_a_tool_that_stops_has_acknowledged(options: dict[str, Any]) -> None:
    """Seed 004: its end by that cancellation is known; an effect somewhere else is not, and is called unknown."""
    batch = await run_one(forever, call_timeout=3, **options)
    assert (completion(batch, "a"), batch.outcomes["a"].cancellation) == ("settled", "acknowledged")
    assert effects(result(batch), "a") == "unknown"


@turned
async def test_a_tool_that_goes_on_has_only_been_asked(options: dict[str, Any]) -> None:
    """Seed 004: unknown while it runs; settled when it has ended, and still only asked, since it ended otherwise."""
    stubborn = Stubborn()
    async with ToolSession(**options) as session:
        async with session.batch(one(), tools={"t": stubborn}, call_timeout=3) as batch:
            batch.start_all()
            await batch.snapshot()
        await turn(3)
        assert (completion(batch, "a"), batch.outcomes["a"].cancellation) == ("unknown", "requested")
        stubborn.release.set()
        await turn(3)
        assert (completion(batch, "a"), batch.outcomes["a"].cancellation) == ("settled", "requested")
        assert batch.outcomes["a"].status == "timed_out", "the caller's outcome stands"


@turned
async def test_a_cancelled_tool_that_fails_otherwise_has_not_acknowledged(options: dict[str, Any]) -> None:
    """Seed 004: only an end by that very cancellation counts."""

    async def t() -> None:
        try:
            await forever()
        except asyncio.CancelledError:
            raise ValueError("on the way out") from None

    batch = await run_one(t, call_timeout=3, **options)
    assert (completion(batch, "a"), batch.outcomes["a"].cancellation) == ("settled", "requested")


@turned
async def test_a_text_for_the_model_never_claims_that_work_stopped(options: dict[str, Any]) -> None:
    """Seed 004: an abort establishes nothing about a remote write."""
    batch = await run_one(forever, call_timeout=3, **options)
    assert message(result(batch), "a") == "Tool call timed out after 3 seconds."


async def test_a_thread_has_a_signal_of_its_own(options: dict[str, Any], nothing_left: None) -> None:
    """Seed 004: each call's is its own, and a tool that can't be interrupted can look at it."""
    entered = threading.Event()

    def t() -> str:
        entered.set()
        assert current_call().cancel_event.wait(20)
        return "stopped"

    async with ToolBatch([*one(), ToolCall("b", "u")], teardown_timeout=20, **options) as batch:
        batch.start("a", t)
        batch.start("b", done)
        await asyncio.to_thread(entered.wait, 20)
        batch.cancel("a")
        await batch.snapshot()
    assert (code(result(batch), "a"), code(result(batch), "b")) == ("cancelled", "success")
    assert completion(batch, "a") == "settled"


# -- observers -----------------------------------------------------------------------------------------------------------------


@turned
async def test_an_outcome_is_told_once_and_its_late_end_once(options: dict[str, Any]) -> None:
    """Seed 004: with the original ids and without the late body; no counter counts it again."""
    stubborn = Stubborn("late body")
    told: list[ExecutionOutcome] = []
    late: list[ExecutionOutcome] = []
    async with ToolSession(on_outcome=told.append, on_late=late.append, **options) as session:
        async with session.batch(one(), tools={"t": stubborn}, call_timeout=3) as batch:
            batch.start_all()
            await batch.snapshot()
        before = totals(session)
        stubborn.release.set()
        await turn(4)
        assert (len(told), len(late)) == (1, 1)
        assert late[0].execution_id == told[0].execution_id
        assert (late[0].status, late[0].completion) == ("timed_out", "settled")
        assert "late body" not in repr(late)
        assert totals(session) == {**before, "late": 1}
        assert [stale.content for stale in session.audit.drain()] == [None]


@turned
async def test_a_tool_that_stops_is_told_of_late_too(options: dict[str, Any]) -> None:
    """Seed 004: an abandoned execution that settles by its cancellation is no late result, but its end is known."""
    late: list[ExecutionOutcome] = []
    batch = await run_one(forever, call_timeout=3, on_late=late.append, **options)
    assert [(outcome.completion, outcome.cancellation) for outcome in late] == [("settled", "acknowledged")]
    assert batch.audit.drain() == []


@turned
@pytest.mark.parametrize("fails", [False, True])
async def test_observers_change_nothing_by_failing(fails: bool, options: dict[str, Any]) -> None:
    """Seed 004: neither the result nor a count."""

    def observe(outcome: Any) -> None:
        raise RuntimeError("observer")

    fn = boom if fails else done
    batch = await run_one(fn, on_outcome=observe, on_late=observe, on_event=observe, **options)
    assert batch.outcomes["a"].status == ("failed" if fails else "succeeded")
    counted = batch.counters["t"]
    assert (counted.started, counted.succeeded, counted.failed) == (1, not fails, fails)


@turned
async def test_counters_are_right_when_observers_hear_of_it(options: dict[str, Any]) -> None:
    """Seed 004: an end is counted before it is told."""
    counts: list[int] = []
    session = ToolSession(on_outcome=lambda outcome: counts.append(session.counters["t"].succeeded), **options)
    async with session, session.batch(one(), tools={"t": done}) as batch:
        batch.start_all()
    assert counts == [1]


@turned
async def test_nothing_is_left_of_a_call_that_ended(options: dict[str, Any]) -> None:
    """Seed 004: listeners, timers and signals go when the caller's wait is over."""
    loop: Any = asyncio.get_running_loop()
    await run_one(done, call_timeout=1000, timeout=2000, **options)
    assert len(asyncio.all_tasks()) == 1
    assert not [timer for timer in loop._scheduled if not timer.cancelled()]


# -- accounting ------------------------------------------------------------------------------------------------------------------


@turned
async def test_counters_follow_the_outcomes(options: dict[str, Any]) -> None:
    """Seed 004: success, failure, timeout apart from failure, and what was never run."""
    announced = [ToolCall(name, name) for name in ("good", "bad", "slow", "unstarted")]
    async with ToolBatch(announced, call_timeout=3, **options) as batch:
        batch.start("good", done)
        batch.start("bad", boom)
        batch.start("slow", forever)
    counted = {
        name: {key for key, number in counts.to_dict().items() if number} for name, counts in batch.counters.items()
    }
    assert counted == {
        "good": {"started", "succeeded"}, "bad": {"started", "failed"}, "slow": {"started", "timed_out"}, "unstarted": {"not_started"},
    }  # fmt: skip


@turned
async def test_a_batch_that_is_left_early_counts_only_what_was_run(options: dict[str, Any]) -> None:
    """Seed 004: calls that nobody came to are no executions; each announced call still has its answer."""
    async with ToolSession(**options) as session:
        async with session.batch([ToolCall(name, "t") for name in "abc"], tools={"t": done}) as batch:
            batch.start("a", done)
            await turn(4)
        assert session.counters["t"].started == 1
        assert session.counters["t"].not_started == 2
    check_batch(batch, ["a", "b", "c"])


@turned
async def test_an_acceptance_is_no_success_until_its_end(options: dict[str, Any]) -> None:
    """Seed 004: the placeholder is pending; the end updates the counters of its execution once."""
    release = asyncio.Event()

    async def t() -> str:
        current_call().pending("accepted")
        await release.wait()
        return "report"

    async with ToolSession(tools={"t": t}, **options) as session:
        async with session.batch(one()) as batch:
            batch.start_all()
            assert content(await batch.snapshot(), "a") == "accepted"
        assert (session.counters["t"].pending, session.counters["t"].succeeded) == (1, 0)
        release.set()
        await turn(5)
        assert (session.counters["t"].pending, session.counters["t"].succeeded) == (0, 1)
        assert [note.content for note in session.late_notes()] == ["report"]


@turned
@pytest.mark.parametrize("why", ["cancelled", "other run"])
async def test_an_end_that_nobody_waits_for_is_dropped(why: str, options: dict[str, Any]) -> None:
    """Seed 004: where the call was cancelled, or the trusted scope has changed, its body goes to nobody."""
    release = asyncio.Event()

    async def t() -> str:
        current_call().pending("accepted")
        await release.wait()
        return "report"

    async with ToolSession(tools={"t": t}, run_id="1", **options) as session:
        async with session.batch(one()) as batch:
            batch.start_all()
            await batch.snapshot()
        if why == "cancelled":
            batch.cancel("a")
        else:
            async with session.batch([], run_id="2"):
                pass
        release.set()
        await turn(5)
        assert session.late_notes() == []
        assert batch.outcomes["a"].status == ("cancelled" if why == "cancelled" else "succeeded")
        assert session.counters["t"].pending == 0


# -- what is fixed when a call is admitted ---------------------------------------------------------------------------------------


@turned
async def test_another_tool_of_that_name_is_for_later_calls() -> None:
    """Seed 004: each invocation keeps its implementation through an approval wait."""
    broker = InteractiveApprovals()
    catalog = ToolCatalog()

    def made(answer: str) -> Any:
        async def t() -> str:
            return answer

        return tool(name="t", needs_approval=True)(t)

    remove = catalog.register(made("old"))
    async with ToolBatch(one(), tools=catalog, approvals=broker) as batch:
        batch.start_all()
        await turn(3)
        remove()
        catalog.register(made("new"))
        broker.resolve("a", Approve())
        assert content(await batch.snapshot(), "a") == "old"


user: ContextVar[str] = ContextVar("user")


@turned
async def test_the_hosts_context_is_the_one_of_the_start(options: dict[str, Any]) -> None:
    """Seed 004: trusted bindings are taken when a call is admitted; what the host sets while it waits is for later calls."""

    async def t() -> str:
        return user.get()

    user.set("alice")
    async with ToolBatch(
        [ToolCall("z", "z", {"seconds": 2}), *one()], tools={"t": t, "z": after}, max_concurrency=1, **options
    ) as batch:
        batch.start_all()
        user.set("bob")
        assert content(await batch.snapshot(), "a") == "alice"


# -- around the batch ------------------------------------------------------------------------------------------------------------


@turned
async def test_cancelling_a_run_asks_all_its_tools_to_stop(options: dict[str, Any]) -> None:
    """Seed 004: the agent's cancellation reaches every active tool; each has its own outcome."""

    async def host() -> None:
        async with ToolBatch([ToolCall(name, "t") for name in "ab"], tools={"t": forever}, **options) as batch:
            seen.append(batch)
            batch.start_all()
            await batch.snapshot()

    seen: list[ToolBatch] = []
    task = asyncio.ensure_future(host())
    await turn(5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for name in "ab":
        outcome = seen[0].outcomes[name]
        assert (outcome.status, outcome.cancellation, outcome.completion) == ("cancelled", "acknowledged", "settled")


@turned
async def test_records_are_of_this_process_only(options: dict[str, Any]) -> None:
    """Seed 004: a batch that goes on takes outcomes over, and claims no execution of its own for them."""
    first = await run_one(done, **options)
    async with ToolBatch(one(), tools={"t": done}, resume=result(first).to_dict(), **options) as batch:
        pass
    outcome = batch.outcomes["a"]
    assert (outcome.resumed, outcome.status, outcome.duration) == (True, "succeeded", None)
    assert outcome.execution_id != first.outcomes["a"].execution_id
    assert batch.counters.get("t") is None


def test_a_call_of_another_tool_than_the_forced_one_never_runs() -> None:
    """Seed 004: it is an error before anything is dispatched; no rename, no retry."""
    response = {
        "role": "assistant", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "other", "input": {}}],
    }  # fmt: skip
    with pytest.raises(ProviderMismatchError, match="other"):
        anthropic.calls(response, expect="lookup")


@turned
async def test_a_fatal_failure_is_in_its_outcome_too(options: dict[str, Any]) -> None:
    """Seed 004: an error that is thrown to the host carries no less than one that is returned."""

    async def t() -> None:
        raise ToolError.fatal("broken")

    batch = ToolBatch(one(), tools={"t": t}, **options)
    with pytest.raises(ToolError):
        async with batch:
            batch.start_all()
    outcome = batch.outcomes["a"]
    assert (outcome.status, outcome.started, outcome.completion) == ("failed", True, "settled")
    assert isinstance(outcome.exception, ToolError)
