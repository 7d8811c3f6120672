"""What the host learns of each execution: records, observers, counters (O1 to O5)."""

import asyncio
import dataclasses
import logging
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.batch.clock import ClockLoop, run, turned
from tests.batch.kit import (
    Hung,
    Stubborn,
    after,
    boom,
    calls,
    code,
    codes,
    content,
    forever,
    instant,
    result_of,
    totals,
    turn,
)
from toolbatch import ExecutionOutcome, ToolBatch, ToolCall, ToolSession, current_call
from toolbatch.batch import let_go_count

RECORD = {
    "execution_id", "call_id", "tool_name", "generation", "run_id", "status", "started", "completion", "cancellation",
    "started_at", "duration", "timeout", "deadline_late_by", "repeats", "resumed", "exception",
}  # fmt: skip


@turned
async def test_a_record_of_each_call() -> None:
    """Every call has one record with who, when, how long and how it ended; arguments and results are not in it (O1)."""
    before = time.time()
    async with ToolBatch(
        [ToolCall("a", "t", {"seconds": 5, "value": "secret"}), *calls("b", "c", "d")], run_id="run"
    ) as batch:
        batch.start("a", after, 5, "secret")
        batch.start("b", boom, "secret message")
        batch.start("c", forever, timeout=3)
        await asyncio.sleep(10)
        assert list(batch.outcomes) == ["a", "b", "c"]
    records = batch.outcomes
    assert {field.name for field in dataclasses.fields(ExecutionOutcome)} == RECORD
    assert [record.status for record in records.values()] == ["succeeded", "failed", "timed_out", "not_started"]
    assert [record.call_id for record in records.values()] == list(records) == ["a", "b", "c", "d"]
    assert [record.tool_name for record in records.values()] == ["t", "tool_b", "tool_c", "tool_d"]
    assert len({record.execution_id for record in records.values()}) == 4
    assert {record.run_id for record in records.values()} == {"run"}
    assert [record.started for record in records.values()] == [True, True, True, False]
    assert [record.completion for record in records.values()] == ["settled", "settled", "settled", "not_started"]
    assert [record.cancellation for record in records.values()] == ["none", "none", "acknowledged", "none"]
    assert [record.duration for record in records.values()] == [5, 0, 3, None]
    assert [record.timeout for record in records.values()] == [None, None, 3, None]
    assert [record.started_at is not None and before <= record.started_at <= time.time() for record in records.values()] == [
        True, True, True, False,
    ]  # fmt: skip
    assert "secret" not in repr(records)
    assert all(record.deadline_late_by is None for record in records.values())
    assert isinstance(records["b"].exception, ValueError)


@turned
async def test_records_hold_the_latest_truth() -> None:
    """When an execution that was let go ends, its record is replaced; the old one is not changed (O1)."""
    stubborn = Stubborn()
    async with ToolBatch(calls("a"), timeout=10, teardown_timeout=5) as batch:
        batch.start("a", stubborn)
        await batch.snapshot()
    before = batch.outcomes["a"]
    assert (before.completion, before.cancellation, before.duration) == ("unknown", "requested", 10)
    await asyncio.sleep(85)
    stubborn.release.set()
    await turn(3)
    now = batch.outcomes["a"]
    assert (now.completion, now.cancellation, now.duration) == ("settled", "requested", 100)
    assert before.completion == "unknown"
    assert now.execution_id == before.execution_id
    assert now.status == before.status == "timed_out"


@turned
async def test_acknowledged_means_by_that_cancellation() -> None:
    """Only a tool that ended by our cancellation acknowledged it: not one that returned or raised something else (O2)."""

    async def instead(error: BaseException | None) -> str:
        try:
            await forever()
        except asyncio.CancelledError:
            if error is not None:
                raise error from None
        return "instead"

    async with ToolSession() as session, session.batch(calls("a", "b", "c", "d"), timeout=10) as batch:
        batch.start("a", forever)
        batch.start("b", instead, None)
        batch.start("c", instead, ValueError("x"))
        batch.start("d", instead, BaseExceptionGroup("g", [asyncio.CancelledError()]))
        await batch.snapshot()
    assert [record.cancellation for record in batch.outcomes.values()] == [
        "acknowledged", "requested", "requested", "acknowledged",
    ]  # fmt: skip
    assert {record.completion for record in batch.outcomes.values()} == {"settled"}
    assert [stale.call_id for stale in session.audit.drain()] == ["b", "c"]


@pytest.mark.parametrize("is_async", [False, True])
@turned
async def test_observers(is_async: bool) -> None:
    """`on_outcome` is told once a call, by the time the caller can see it; `on_late` once when an abandoned call ends (O3)."""
    told: list[tuple[str, str, str]] = []
    late: list[tuple[str, str, str]] = []

    def observer(seen: list[tuple[str, str, str]]) -> Callable[[ExecutionOutcome], Awaitable[None] | None]:
        def sync(outcome: ExecutionOutcome) -> None:
            seen.append((outcome.call_id, outcome.status, outcome.completion))

        async def later(outcome: ExecutionOutcome) -> None:
            await turn(2)
            sync(outcome)

        return later if is_async else sync

    stubborn = Stubborn()
    ids = ["ok", "bad", "hangs", "obeys", "cancelled", "never"]
    async with (
        ToolSession(on_outcome=observer(told), on_late=observer(late), teardown_timeout=100) as session,
        session.batch(calls(*ids), timeout=10) as batch,
    ):
        batch.start("ok", instant)
        batch.start("bad", boom)
        batch.start("hangs", stubborn)
        batch.start("obeys", forever)
        batch.cancel("cancelled")
        await turn(6)
        assert [entry[0] for entry in sorted(told)] == ["bad", "cancelled", "ok"]
        await batch.snapshot()
        if not is_async:
            assert sorted(entry[0] for entry in told) == sorted(ids), "told by the time the caller can see it"
        await turn(8)
        assert {entry[0]: entry[1] for entry in told} == {
            "ok": "succeeded", "bad": "failed", "hangs": "timed_out", "obeys": "timed_out", "cancelled": "cancelled", "never": "timed_out",
        }  # fmt: skip
        assert late == [("obeys", "timed_out", "settled")]
        stubborn.release.set()
    assert late == [("obeys", "timed_out", "settled"), ("hangs", "timed_out", "settled")]
    assert len(told) == len(ids)


@turned
async def test_an_observer_knows_before_the_closer_does() -> None:
    """After `close` returns, and in a `finally`, every call's outcome was told of (O3)."""
    told: list[str] = []
    async with ToolBatch(calls("a", "b"), on_outcome=lambda outcome: told.append(outcome.call_id)) as batch:
        batch.start("a", forever)
        await turn(2)
        batch.close()
        assert told == ["a", "b"]


ERRORS = [
    ValueError("x"),
    asyncio.CancelledError(),
    GeneratorExit(),
    BaseExceptionGroup("g", [asyncio.CancelledError()]),
]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("error", ERRORS)
@turned
async def test_an_observer_that_raises_is_contained(
    error: BaseException, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """An observer that raises anything changes no outcome, hangs no batch, and is logged (O3)."""
    caplog.set_level(logging.ERROR)

    def raises(_: ExecutionOutcome) -> None:
        raise error

    async def raises_later(_: ExecutionOutcome) -> None:
        raise error

    observer: Any = raises_later if is_async else raises
    async with ToolBatch(calls("a", "b", "c"), timeout=5, on_outcome=observer, on_late=observer) as batch:
        batch.start("a", instant)
        batch.start("b", boom)
        batch.start("c", forever)
        snapshot = await batch.snapshot()
    assert codes(snapshot) == {"a": "success", "b": "tool_error", "c": "timeout"}
    if not isinstance(error, asyncio.CancelledError) or not is_async:
        assert "an observer failed on " in caplog.text
    assert totals(batch)["succeeded"] == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_an_observer_that_is_interrupted(is_async: bool) -> None:
    """A `KeyboardInterrupt` in an observer comes out of the loop, and every call still has its one outcome (B4, O3)."""
    made: list[ToolBatch] = []

    def interrupts(outcome: ExecutionOutcome) -> None:
        if outcome.call_id == "a":
            raise KeyboardInterrupt

    async def interrupts_later(outcome: ExecutionOutcome) -> None:
        interrupts(outcome)

    async def main() -> None:
        async with ToolBatch(calls("a", "b"), on_outcome=interrupts_later if is_async else interrupts) as batch:
            made.append(batch)
            batch.start("a", instant)
            batch.start("b", after, 5)
            await batch.snapshot()
            await asyncio.sleep(5)

    with pytest.raises(KeyboardInterrupt):
        run(main())
    ended = codes(result_of(made[0]))
    assert ended["a"] == "success"
    assert ended["b"] in {"request_aborted", "cancelled"}, "the runner cancels the tool and its host, in any order"
    assert let_go_count() == 0


@turned
async def test_an_observer_may_use_the_batch() -> None:
    """An observer that closes, cancels, starts or looks at the batch does so once, and every call has one outcome (B3, O3)."""
    told: list[str] = []

    def observer(outcome: ExecutionOutcome) -> None:
        told.append(outcome.call_id)
        assert batch.outcomes[outcome.call_id] == outcome
        assert batch.counters["tool_a"].succeeded == 1
        if outcome.call_id == "a":
            batch.cancel("b")
            batch.start("c", instant)
        if outcome.call_id == "c":
            batch.close("error", "enough")

    async with ToolBatch(calls("a", "b", "c", "d"), on_outcome=observer) as batch:
        batch.start("a", instant)
        batch.start("d", forever)
    assert codes(result_of(batch)) == {"a": "success", "b": "cancelled", "c": "success", "d": "enough"}
    assert sorted(told) == ["a", "b", "c", "d"]


@turned
async def test_a_value_that_says_failure_is_a_success() -> None:
    """A value like `{"success": false}` is data; only `report_failure` makes a returned value a failed execution (O4)."""

    async def reports() -> dict[str, bool]:
        current_call().report_failure("the service is down", "service_down")
        return {"success": False}

    async def own_only() -> str:
        await turn(5)
        return "fine"

    async with ToolBatch(calls("a", "b", "c")) as batch:
        batch.start("a", instant, {"success": False})
        batch.start("b", reports)
        batch.start("c", own_only)
        snapshot = await batch.snapshot()
    assert [record.status for record in batch.outcomes.values()] == ["succeeded", "failed", "succeeded"]
    assert content(snapshot, "a") == content(snapshot, "b") == '{"success":false}'
    assert batch.counters["tool_b"].failed == 1
    assert batch.counters["tool_b"].succeeded == 0


@turned
async def test_a_failure_reported_too_late_changes_nothing() -> None:
    """After the outcome a report of failure is too late: the first outcome stands (C6, O4, O5)."""
    contexts = []

    async def tool() -> str:
        contexts.append(current_call())
        return "fine"

    async with ToolBatch(calls("a")) as batch:
        batch.start("a", tool)
        await batch.snapshot()
        before = batch.outcomes["a"]
        contexts[0].report_failure("oh no")
    assert batch.outcomes["a"] == before
    assert batch.outcomes["a"].status == "succeeded"
    assert totals(batch)["succeeded"] == 1
    assert totals(batch)["failed"] == 0


@turned
async def test_counters_count_each_execution_once() -> None:
    """Counters per tool agree with the outcomes, late ends included, however often they are read (O5)."""
    stubborn = Stubborn()
    names = {"ok": "t", "bad": "t", "slow": "t", "hangs": "u", "gone": "u", "never": "u"}
    async with (
        ToolSession(teardown_timeout=100) as session,
        session.batch([ToolCall(call_id, name) for call_id, name in names.items()], timeout=10) as batch,
    ):
        batch.start("ok", instant)
        batch.start("bad", boom)
        batch.start("slow", forever, timeout=2)
        batch.start("hangs", stubborn)
        batch.start("gone", forever)
        await turn(3)
        batch.cancel("gone")
        assert session.counters["t"].to_dict()["succeeded"] == 1
        await batch.snapshot()
        expected_t = {"started": 3, "succeeded": 1, "failed": 1, "timed_out": 1}
        expected_u = {"started": 2, "cancelled": 1, "timed_out": 2}
        for _ in range(2):
            for name, expected in (("t", expected_t), ("u", expected_u)):
                shown = {key: number for key, number in session.counters[name].to_dict().items() if number}
                assert shown == expected
        stubborn.release.set()
    assert session.counters["u"].late == 1
    assert session.counters["u"].timed_out == 2
    assert batch.counters == session.counters


@turned
async def test_counters_are_detached() -> None:
    """What a caller does to a mapping of counters changes no count (O5)."""
    async with ToolBatch(calls("a")) as batch:
        batch.start("a", instant)
    counters: Any = batch.counters
    counters.clear()
    assert batch.counters["tool_a"].succeeded == 1


def test_a_blocked_loop_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """A deadline that a blocking tool delayed says by how much, in the outcome and the log; the tool's answer is late (B14)."""

    async def main() -> tuple[ToolBatch, ToolBatch]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ClockLoop)

        async def blocks(seconds: float) -> str:
            loop.now += seconds
            return "blocked"

        async with ToolBatch(calls("a", "b", "c"), timeout=10) as batch:
            batch.start("a", blocks, 3, timeout=2)
            batch.start("b", forever)
            await asyncio.sleep(0.5)
            assert list(batch.outcomes) == ["a"]
            batch.start("c", blocks, 30)
            await batch.snapshot()
        async with ToolBatch(calls("a"), timeout=10) as punctual:
            punctual.start("a", blocks, 10.05)
        return batch, punctual

    batch, punctual = run(main())
    assert codes(result_of(batch)) == {"a": "timeout", "b": "timeout", "c": "timeout"}
    assert batch.outcomes["a"].deadline_late_by == 1
    assert batch.outcomes["b"].deadline_late_by == pytest.approx(23)
    assert batch.outcomes["b"].timeout == 10
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [
        "the event loop was blocked: the deadline of call a of tool_a fired 1.000 s late",
        "the event loop was blocked: the deadline of the batch fired 23.000 s late",
    ]
    assert [stale.call_id for stale in batch.audit.drain()] == ["a", "c"]
    assert code(result_of(punctual), "a") == "timeout"
    assert punctual.outcomes["a"].deadline_late_by is None, "a little late is in time"


async def test_a_tool_that_blocks_the_loop_in_real_time(nothing_left: None, caplog: pytest.LogCaptureFixture) -> None:
    """On both loops a tool that blocks past its deadline is timed out, not a success (B12, B14)."""
    caplog.set_level(logging.CRITICAL)

    async def blocks() -> str:
        until = time.monotonic() + 0.15
        while time.monotonic() < until:
            pass
        return "blocked"

    async with ToolBatch(calls("a")) as batch:
        batch.start("a", blocks, timeout=0.02)
    assert code(result_of(batch), "a") == "timeout"
    late_by = batch.outcomes["a"].deadline_late_by
    assert late_by is not None
    assert 0.1 <= late_by < 1
    assert len(batch.audit.drain()) == 1


@turned
async def test_durations_of_threads() -> None:
    """A thread's execution has its start on the wall clock and ends when its report comes (O1)."""
    hung = Hung()
    before = time.time()
    async with ToolBatch(calls("a")) as batch:
        batch.start("a", hung)
        hung.wait_entered()
        hung.release.set()
    record = batch.outcomes["a"]
    assert record.started_at is not None
    assert before <= record.started_at <= time.time()
    assert record.duration is not None
    assert record.duration >= 0
    assert record.status == "succeeded"


def test_ids_differ_in_a_forked_child() -> None:
    """A forked child does not go on with its parent's execution ids (O1)."""
    from toolbatch.batch import _execution

    before = _execution._prefix
    _execution._renew_prefix()
    assert _execution._prefix != before
    assert len(_execution._prefix) == 12
    assert hasattr(os, "register_at_fork")
