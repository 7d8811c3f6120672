"""B3 as a table: what ends a batch, where a call stands then, and exactly what becomes of it."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from tests.batch.clock import now, turned
from tests.batch.kit import Hung, Stubborn, breathe, calls, check_batch, code, effects, end, forever, instant, turn
from toolbatch import Snapshot, ToolBatch, ToolSession
from toolbatch.batch import _crew, _threads

EVENTS = (
    "call_timeout",
    "batch_timeout",
    "deadline",
    "scope",
    "abort",
    "raise",
    "close",
    "supersede",
    "cancel",
    "exit",
)
STATES = ("announced", "queued", "launched", "running", "swallowing", "thread_queued", "thread_running", "settled")

ENDS = {
    "call_timeout": ("cancelled", "timeout", "timed_out"),
    "batch_timeout": ("cancelled", "timeout", "timed_out"),
    "deadline": ("cancelled", "timeout", "timed_out"),
    "scope": ("cancelled", "timeout", "timed_out"),
    "abort": ("cancelled", "request_aborted", "cancelled"),
    "raise": ("error", "batch_failed", "cancelled"),
    "close": ("error", "shut", "cancelled"),
    "supersede": ("cancelled", "superseded", "cancelled"),
    "cancel": ("cancelled", "unwanted", "cancelled"),
    "exit": ("error", "not_started", "not_started"),
}
"""Event: the call's status, its code, and its execution's status."""

ENTERED = ("running", "swallowing", "thread_running")

NEVER_HAPPENS = {
    ("call_timeout", "announced"): "a call's time begins with its start",
    ("call_timeout", "queued"): "a queued call's time begins when it leaves the queue",
    ("call_timeout", "thread_queued"): "likewise, where the queue is that of the threads",
    ("call_timeout", "launched"): "a launched call is entered before a timer can fire",
    ("batch_timeout", "launched"): "likewise",
    ("deadline", "launched"): "likewise",
    ("scope", "launched"): "likewise",
    ("abort", "launched"): "likewise: a cancellation comes at an await",
    **{("exit", state): "the exit waits for what was started" for state in STATES if state != "announced"},
}

CELLS = [(event, state) for event in EVENTS for state in STATES if (event, state) not in NEVER_HAPPENS]


@dataclass
class Stage:
    """One cell's batch and what was seen of it."""

    state: str
    batch: ToolBatch
    session: ToolSession
    stubborn: Stubborn = field(default_factory=Stubborn)
    hung: Hung = field(default_factory=Hung)
    late: list[str] = field(default_factory=list)
    seen: Snapshot | None = None
    took: float = 0.0

    async def arrange(self, timeout: float | None) -> None:
        """Bring call `x` into its state; `other` keeps the batch open, and `first` takes the place before a queued one."""
        batch = self.batch
        match self.state:
            case "announced":
                batch.start("first", forever)
            case "queued":
                batch.start("first", forever)
                batch.start("x", forever, timeout=timeout)
            case "launched":
                batch.start("x", forever, timeout=timeout)
                return
            case "running":
                batch.start("x", forever, timeout=timeout)
            case "swallowing":
                batch.start("x", self.stubborn, timeout=timeout)
            case "thread_queued":
                batch.start("x", self.hung, timeout=timeout)
            case "thread_running":
                batch.start("x", self.hung, timeout=timeout)
                self.hung.wait_entered()
            case "settled":
                batch.start("x", instant)
            case _:
                raise AssertionError(self.state)
        await turn(3)

    async def clean_up(self) -> None:
        """Let tools that are still running end."""
        self.stubborn.release.set()
        if self.state in {"thread_running", "swallowing"}:
            self.hung.release.set()
            while self.batch.outcomes["x"].completion != "settled":
                await breathe()


@pytest.fixture
def full_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A pool of one thread, which hangs: what is submitted waits in its queue."""
    pool, hung = _threads.WorkerThreads(max_threads=1), Hung()
    pool.submit(_threads.Job(hung))
    hung.wait_entered()
    monkeypatch.setattr(_crew, "workers", pool)
    monkeypatch.setattr(_threads, "workers", pool)
    yield
    hung.release.set()


@pytest.mark.parametrize(("event", "state"), CELLS)
def test_every_cell_of_the_table(event: str, state: str, request: pytest.FixtureRequest) -> None:
    """Each event makes of a call in each state what B3 says, with B5's side effects and O1's outcome (B2, B3, B5, B6, O1, O2)."""
    if state == "thread_queued":
        request.getfixturevalue("full_pool")
    turned(_cell)(event, state)


async def _cell(event: str, state: str) -> None:
    options: dict[str, Any] = {"max_concurrency": 1 if state == "queued" else None}
    if event == "batch_timeout":
        options["timeout"] = 3600
    elif event == "deadline":
        options["deadline"] = asyncio.get_running_loop().time() + 3600
    async with ToolSession(teardown_timeout=0) as session:
        stage = Stage(state, session.batch(calls("x", "first"), **options), session)
        await _happen(event, stage)
        await turn(5)
        snapshot = check_batch(stage.batch, ["x", "first"])
        assert stage.seen in {None, snapshot}
        _judge(event, state, stage, snapshot)
    await stage.clean_up()
    _judge_after(event, state, stage, snapshot)


async def _happen(event: str, stage: Stage) -> None:
    batch, session = stage.batch, stage.session
    per_call = 3600 if event == "call_timeout" else None
    began = now()
    match event:
        case "call_timeout" | "batch_timeout" | "deadline":
            async with batch:
                await stage.arrange(per_call)
                if event == "call_timeout":
                    while stage.state != "settled" and "x" not in batch.outcomes:
                        await asyncio.sleep(1)
                    stage.took = now() - began
                    assert batch.result is None, "the others run on"
                    batch.close()
                stage.seen = await batch.snapshot()
                stage.took = stage.took or now() - began
        case "scope":
            with anyio.move_on_after(3600) as scope:
                async with batch:
                    await stage.arrange(None)
                    await forever()
            stage.took = now() - began
            assert scope.cancelled_caught, "for the enclosing scope, cancellation follows"
        case "abort":
            host = asyncio.current_task()
            assert host is not None
            with pytest.raises(asyncio.CancelledError):
                async with batch:
                    await stage.arrange(None)
                    host.cancel()
                    await forever()
            assert host.uncancel() == 0
        case "raise":
            error = LookupError("the body's own")
            with pytest.raises(LookupError) as caught:
                async with batch:
                    await stage.arrange(None)
                    raise error
            assert caught.value is error
        case "close":
            async with batch:
                await stage.arrange(None)
                assert batch.close("error", "shut", "Shut for the night.") is batch.result
                stage.seen = await batch.snapshot()
        case "supersede":
            async with batch:
                await stage.arrange(None)
                waiting = asyncio.ensure_future(batch.snapshot()) if stage.state != "launched" else None
                await turn(1 if waiting else 0)
                async with session.batch([]):
                    stage.seen = await batch.snapshot()
                    assert waiting is None or await waiting is stage.seen
        case "cancel":
            async with batch:
                await stage.arrange(None)
                answer = batch.cancel("x", "Not wanted any more.", "unwanted")
                assert answer.accepted == (stage.state != "settled")
                assert batch.result is None, "the others run on"
                batch.close()
                stage.seen = await batch.snapshot()
        case "exit":
            async with batch:
                await stage.arrange(None)
                batch.cancel("first")
        case _:
            raise AssertionError(event)


def _judge(event: str, state: str, stage: Stage, snapshot: Snapshot) -> None:
    outcome = stage.batch.outcomes["x"]
    if state == "settled":
        assert code(snapshot, "x") == "success", "a settled call is never changed"
        assert (outcome.status, outcome.completion, outcome.cancellation) == ("succeeded", "settled", "none")
        return
    status, reason, execution_status = ENDS[event]
    assert (end(snapshot, "x").status, code(snapshot, "x")) == (status, reason)
    assert effects(snapshot, "x") == ("unknown" if state in ENTERED else "not_started")
    assert outcome.status == execution_status
    assert outcome.timeout == (3600 if execution_status == "timed_out" else None)
    if execution_status == "timed_out":
        assert stage.took == 3600
    assert outcome.started == (state in ENTERED)
    expected = {"running": "settled", "swallowing": "unknown", "thread_running": "unknown"}
    assert outcome.completion == expected.get(state, "not_started")
    asked = {"running": "acknowledged", "swallowing": "requested", "thread_running": "requested"}
    assert outcome.cancellation == asked.get(state, "none")


def _judge_after(event: str, state: str, stage: Stage, snapshot: Snapshot) -> None:
    assert stage.batch.result is snapshot, "what comes late changes nothing"
    late = stage.session.audit.drain()
    assert [stale.call_id for stale in late] == (["x"] if state in {"swallowing", "thread_running"} else [])
    assert all(stale.observed_status == "success" for stale in late)
    assert stage.hung.entered.is_set() == (state == "thread_running"), "what is not started never runs"
    assert stage.batch.outcomes["x"].completion in {"settled", "not_started"}
