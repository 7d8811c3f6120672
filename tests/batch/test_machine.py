"""Random lives of a session on a jumping clock: whatever tools and hosts do, the promises hold.

Invariants: one outcome a call, the first one for ever; snapshots in order of announcement; what is not started never ran;
the audit holds exactly what ended late; counters and observers agree with the outcomes; nothing is left.
"""

import asyncio
import contextlib
import sys
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.batch.clock import ClockLoop, run
from tests.batch.kit import Hung, check_batch, effects, forever, totals
from toolbatch import ExecutionOutcome, StaleResult, ToolBatch, ToolCall, ToolError, ToolSession, current_call
from toolbatch.tools import Interceptor

Temper = Literal[
    "returns",
    "raises",
    "cancels itself",
    "swallows",
    "swallows and raises",
    "cleans up",
    "bad value",
    "fatal",
    "progress",
    "thread",
    "thread raises",
]
TEMPERS: list[Temper] = [
    "returns", "raises", "cancels itself", "swallows", "swallows and raises", "cleans up", "bad value", "fatal", "progress", "thread", "thread raises",
]  # fmt: skip
Event = Literal["cancel", "close", "start_again", "look", "supersede", "host cancelled", "body raises", "leave"]

Around = Literal["nothing", "passes", "swallows"]

times = st.sampled_from([0, 0, 0.5, 1, 1, 2, 3, 5, 8])
bounds = st.sampled_from([None, None, 0, 1, 2, 3, 5, 10])


@dataclass(frozen=True)
class Plan:
    """One call's tool: how it behaves, for how long, when it is started, and with what bound."""

    temper: Temper
    seconds: float
    start_at: float | None
    timeout: float | None
    as_awaitable: bool


@dataclass(frozen=True)
class BatchPlan:
    """One batch: its calls, bounds, and what its host does to it and when."""

    calls: list[Plan]
    timeout: float | None
    call_timeout: float | None
    max_concurrency: int | None
    on_error: str
    events: list[tuple[float, Event, int]]
    around: Around


class Passes(Interceptor):
    """Stands around every call in all stages, and changes nothing: then nothing may be different."""

    async def before(self, call: Any, proceed: Any) -> Any:
        return await proceed()

    async def around(self, call: Any, proceed: Any) -> Any:
        return await proceed()

    async def after(self, call: Any, result: Any, proceed: Any) -> Any:
        return await proceed()


class Swallows(Passes):
    """Keeps every cancellation to itself, wherever it falls, and tries what was cancelled again."""

    async def before(self, call: Any, proceed: Any) -> Any:
        await _stubbornly(lambda: asyncio.sleep(0.25))
        return await proceed()

    async def around(self, call: Any, proceed: Any) -> Any:
        return await _stubbornly(proceed)

    async def after(self, call: Any, result: Any, proceed: Any) -> Any:
        await _stubbornly(lambda: asyncio.sleep(0.25))
        return await proceed()


async def _stubbornly(attempt: Any) -> Any:
    try:
        return await attempt()
    except asyncio.CancelledError:
        return await attempt()


INTERCEPTORS: dict[Around, list[Interceptor]] = {"nothing": [], "passes": [Passes()], "swallows": [Swallows()]}

plans = st.builds(
    Plan, st.sampled_from(TEMPERS), times, st.one_of(st.none(), times, st.just(0)), bounds, st.booleans()
)  # fmt: skip
events = st.tuples(
    times,
    st.sampled_from(
        ["cancel", "cancel", "close", "start_again", "look", "supersede", "host cancelled", "body raises", "leave"]
    ),
    st.integers(0, 5),
)
batch_plans = st.builds(
    BatchPlan,
    st.lists(plans, max_size=6),
    bounds,
    bounds,
    st.sampled_from([None, None, 1, 2]),
    st.sampled_from(["continue", "continue", "continue", "cancel_siblings"]),
    st.lists(events, max_size=4),
    st.sampled_from(list(INTERCEPTORS)),
)


class OwnError(Exception):
    """The body's own."""


@dataclass
class World:
    """What was seen of one batch."""

    number: int
    plan: BatchPlan
    batch: ToolBatch | None = None
    entered: set[str] = field(default_factory=set)
    ended: dict[str, float] = field(default_factory=dict)
    by_cancellation: set[str] = field(default_factory=set)
    told: list[ExecutionOutcome] = field(default_factory=list)
    told_late: list[ExecutionOutcome] = field(default_factory=list)
    first_seen: dict[str, Any] = field(default_factory=dict)
    hung: list[Hung] = field(default_factory=list)
    error: BaseException | None = None

    @property
    def ids(self) -> list[str]:
        return [f"c{n}" for n in range(len(self.plan.calls))]

    def observe(self) -> None:
        """Note every outcome that can be seen now; one that was seen before must be the same."""
        assert self.batch is not None
        for call_id, outcome in self.batch.outcomes.items():
            seen = (outcome.status, outcome.execution_id, outcome.started)
            assert self.first_seen.setdefault(call_id, seen) == seen, "the first outcome never changes"
        if self.batch.result is not None:
            now = self.batch.result.to_dict()["calls"]
            assert self.first_seen.setdefault("result", now) == now

    async def tool(self, call_id: str, plan: Plan) -> Any:
        """What a call runs."""
        self.entered.add(call_id)
        try:
            return await self._behave(plan)
        except asyncio.CancelledError:
            self.by_cancellation.add(call_id)
            raise
        finally:
            self.ended[call_id] = asyncio.get_running_loop().time()

    async def _behave(self, plan: Plan) -> Any:
        if plan.temper == "progress":
            current_call().progress("so far")
        try:
            await asyncio.sleep(plan.seconds)
            if plan.temper == "swallows":
                await asyncio.sleep(3)
        except asyncio.CancelledError:
            if plan.temper == "swallows":
                await asyncio.sleep(4)
                return "swallowed"
            if plan.temper == "swallows and raises":
                await asyncio.sleep(2)
                raise ValueError("late") from None
            if plan.temper == "cleans up":
                await asyncio.sleep(1.5)
            raise
        match plan.temper:
            case "raises":
                raise ValueError("in time")
            case "cancels itself":
                raise asyncio.CancelledError
            case "bad value":
                return object()
            case "fatal":
                raise ToolError.fatal("fatal")
            case _:
                pass
        return {"n": 1}

    def thread(self, call_id: str, plan: Plan) -> Any:
        """What a call runs in a thread."""
        self.entered.add(call_id)
        if plan.temper == "thread raises":
            raise ValueError("in a thread")
        return "from a thread"

    def start(self, call_id: str) -> None:
        """Start a call as its plan says."""
        assert self.batch is not None
        plan = self.plan.calls[int(call_id[1:])]
        with contextlib.suppress(ValueError, RuntimeError):  # started before, or closed: refused, and nothing was run
            if plan.temper in {"thread", "thread raises"}:
                self.batch.start(call_id, self.thread, call_id, plan, timeout=plan.timeout)
            elif plan.as_awaitable:
                self.batch.start(call_id, self.tool(call_id, plan), timeout=plan.timeout)
            else:
                self.batch.start(call_id, self.tool, call_id, plan, timeout=plan.timeout)


async def _body(world: World, session: ToolSession) -> None:
    loop, plan = asyncio.get_running_loop(), world.plan
    world.batch = batch = session.batch(
        [ToolCall(call_id, plan.calls[n].temper) for n, call_id in enumerate(world.ids)],
        timeout=plan.timeout, call_timeout=plan.call_timeout, max_concurrency=plan.max_concurrency, on_error=cast(Any, plan.on_error),
        on_outcome=world.told.append, on_late=world.told_late.append, interceptors=INTERCEPTORS[plan.around],
    )  # fmt: skip
    async with batch:
        began = loop.time()
        for n, each in enumerate(plan.calls):
            if each.start_at == 0:
                world.start(f"c{n}")
            elif each.start_at is not None:
                loop.call_later(each.start_at, world.start, f"c{n}")
        for at, event, which in sorted(plan.events):
            await asyncio.sleep(max(0.0, began + at - loop.time()))
            call_id = f"c{which}"
            match event:
                case "cancel" if call_id in world.ids:
                    batch.cancel(call_id)
                case "close":
                    batch.close("error", "closed")
                case "start_again" if call_id in world.ids:
                    world.start(call_id)
                case "supersede":
                    async with session.batch([]):
                        pass
                case "host cancelled":
                    task = asyncio.current_task()
                    assert task is not None
                    task.cancel()
                    await forever()
                case "body raises":
                    raise OwnError
                case "leave":
                    return
                case _:
                    pass
            world.observe()
        if all(each.start_at is not None for each in plan.calls) or plan.timeout is not None:
            snapshot = await batch.snapshot()
            assert snapshot is batch.result
            assert sorted(told.call_id for told in world.told) == world.ids


async def _live(worlds: list[World], late: list[StaleResult]) -> ToolSession:
    async with ToolSession(teardown_timeout=1000, audit_sinks=[late.append]) as session:
        for world in worlds:
            host = asyncio.ensure_future(_body(world, session))
            await asyncio.wait([host])
            if host.cancelled():
                world.error = asyncio.CancelledError()
                assert any(event == "host cancelled" for _, event, _ in world.plan.events)
            else:
                world.error = host.exception()
                assert world.error is None or isinstance(world.error, (OwnError, ToolError)), world.error
            world.observe()
    return session


def _check(session: ToolSession, worlds: list[World], late: list[StaleResult]) -> None:
    expected_late = set()
    for world in worlds:
        assert world.batch is not None
        world.observe()
        snapshot = check_batch(world.batch, world.ids)
        assert sorted(told.call_id for told in world.told) == world.ids, "each is told of once"
        for call in snapshot.calls:
            outcome = world.batch.outcomes[call.id]
            assert outcome.started == (call.id in world.entered)
            assert (effects(snapshot, call.id) == "not_started") == (
                call.id not in world.entered and effects(snapshot, call.id) is not None
            )
            assert outcome.completion == ("settled" if outcome.started else "not_started"), "all have ended by now"
            synthetic = effects(snapshot, call.id) is not None
            if synthetic and outcome.started:
                if outcome.cancellation != "acknowledged":
                    expected_late.add((world.number, call.id))
                else:
                    assert call.id in world.by_cancellation
            # What stands around a tool whose time is over may answer instead; and the call may be cut off before it has.
            if world.plan.around == "nothing" or outcome.status == "timed_out":
                assert (outcome.timeout is not None) == (outcome.status == "timed_out")
        assert len(world.told_late) == sum(1 for call in snapshot.calls if effects(snapshot, call.id) == "unknown")
    assert {(stale.generation, stale.call_id) for stale in late} == {
        (world.batch.generation, call_id)
        for world in worlds
        if world.batch is not None
        for number, call_id in expected_late
        if number == world.number
    }
    assert len(late) == len(expected_late), "exactly once"
    assert session.audit.drain() == late
    counted = totals(session)
    outcomes = [outcome for world in worlds if world.batch is not None for outcome in world.batch.outcomes.values()]
    assert counted.get("started", 0) == sum(outcome.started for outcome in outcomes)
    assert counted.get("late", 0) == len(late)
    for status in ("succeeded", "failed", "cancelled", "timed_out", "not_started"):
        assert counted.get(status, 0) == sum(outcome.status == status for outcome in outcomes)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(st.lists(batch_plans, min_size=1, max_size=3))
def test_random_lives(given_plans: list[BatchPlan]) -> None:
    """Whatever random tools and a random host do, the promises hold (B1 to B9, B13, O1 to O5, FIELD 13)."""
    worlds = [World(number, plan) for number, plan in enumerate(given_plans)]
    late: list[StaleResult] = []
    unraisable: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", lambda seen: unraisable.append(seen.exc_value))
        session = run(_live(worlds, late), ClockLoop())
    assert not unraisable
    _check(session, worlds, late)
