"""Deadlines of a batch: in order, at their moment, with one timer of the loop (B3, B13)."""

import asyncio
from typing import Any, cast

import pytest

from tests.batch.clock import START, ClockLoop, turned
from tests.batch.kit import after, calls, codes, forever, instant, result_of, turn
from toolbatch import ExecutionOutcome, ToolBatch, ToolCall
from toolbatch.batch._deadlines import Deadlines
from toolbatch.batch._execution import Execution, Phase


def timers() -> int:
    """How many timers the running loop holds that are not cancelled."""
    scheduled = cast(Any, asyncio.get_running_loop())._scheduled
    return sum(not timer.cancelled() for timer in scheduled)


@turned
async def test_they_fire_in_order_at_their_moment() -> None:
    """Deadlines fire earliest first, ties in order of adding, each at its own time, with one timer (B3)."""
    loop = asyncio.get_running_loop()
    fired: list[tuple[object, float | None, float]] = []
    deadlines = Deadlines(loop, lambda who, late_by: fired.append((who, late_by, loop.time())))
    whos = [cast(Execution, _Who(name)) for name in "abcd"]
    deadlines.add(START + 30, whos[0])
    deadlines.add(START + 10, whos[1])
    deadlines.add(START + 10, whos[2])
    deadlines.add(START + 20, None)
    assert timers() == 1
    await asyncio.sleep(25)
    assert fired == [
        (whos[1], None, START + 10), (whos[2], None, START + 10), (None, None, START + 20),
    ]  # fmt: skip
    deadlines.add(START + 5, whos[3])
    assert len(fired) == 3, "never from add"
    await turn(2)
    assert fired[-1] == (whos[3], 20, START + 25), "it was late from the beginning"
    await asyncio.sleep(25)
    assert fired[-1] == (whos[0], None, START + 30)
    assert timers() == 0


class _Who:
    def __init__(self, name: str) -> None:
        self.call = ToolCall(name, "t")
        self.settlement: object = None
        self.phase = Phase.ENTERED


@turned
async def test_clearing_stops_the_timer() -> None:
    """Cleared deadlines never fire and leave no timer; new ones can be added (B9)."""
    loop = asyncio.get_running_loop()
    fired: list[float] = []
    deadlines = Deadlines(loop, lambda _who, _late_by: fired.append(loop.time()))
    deadlines.add(START + 10, None)
    deadlines.clear()
    assert timers() == 0
    deadlines.add(START + 20, None)
    await asyncio.sleep(60)
    assert fired == [START + 20]


@turned
async def test_a_timer_that_comes_early_is_set_again() -> None:
    """A loop whose timer fires a little early is waited for: nothing expires before its time (B3)."""
    loop = cast(ClockLoop, asyncio.get_running_loop())
    fired: list[float] = []
    deadlines = Deadlines(loop, lambda _who, _when: fired.append(loop.time()))
    deadlines.add(START + 10, None)
    await asyncio.sleep(5)
    deadlines.fire()
    assert fired == []
    await asyncio.sleep(10)
    assert fired == [START + 10]


@turned
async def test_settled_calls_keep_no_timer() -> None:
    """A timer for calls that are settled already is not kept (B9)."""
    loop = asyncio.get_running_loop()
    deadlines = Deadlines(loop, lambda _who, _when: None)
    first, settled = _Who("a"), _Who("b")
    settled.settlement = "done"
    deadlines.add(START + 10, cast(Execution, first))
    deadlines.add(START + 1000, cast(Execution, settled))
    await asyncio.sleep(15)
    assert timers() == 0


@turned
async def test_a_batch_leaves_no_timer() -> None:
    """However a batch ends, no timer of it is left (B9)."""
    for how in ("complete", "close", "timeout", "cancel", "error"):
        batch = ToolBatch(calls("a", "b"), timeout=1000, call_timeout=50)
        try:
            async with batch:
                batch.start("a", instant)
                batch.start("b", after if how == "complete" else forever, *([1] if how == "complete" else []))
                await turn(2)
                match how:
                    case "close":
                        batch.close()
                    case "cancel":
                        batch.cancel("b")
                    case "error":
                        raise LookupError
                    case _:
                        pass
        except LookupError:
            pass
        assert batch.result is not None
        assert timers() == 0, how


@turned
async def test_bounds_of_all_kinds() -> None:
    """A call's own bound, the default, the batch's, none and zero: the earliest that applies fires (B1, B13)."""
    ids = ["own", "default", "batch", "none", "zero", "done"]
    loop = asyncio.get_running_loop()
    seen: dict[str, float] = {}

    def note(outcome: ExecutionOutcome) -> None:
        seen[outcome.call_id] = loop.time() - START

    async with ToolBatch(
        calls(*ids), timeout=100, deadline=loop.time() + 90, call_timeout=20,
        on_outcome=note,
    ) as batch:  # fmt: skip
        batch.start("own", forever, timeout=5)
        batch.start("default", forever)
        batch.start("batch", forever, timeout=95)
        batch.start("none", forever, timeout=float("inf"))
        batch.start("zero", forever, timeout=0)
        batch.start("done", after, 19.5)
        await batch.snapshot()
    expected: dict[str, tuple[float, float | None]] = {
        "own": (5, 5), "default": (20, 20), "batch": (90, 90), "none": (90, 90), "zero": (0, 0), "done": (19.5, None),
    }  # fmt: skip
    assert {call_id: (seen[call_id], batch.outcomes[call_id].timeout) for call_id in ids} == expected
    assert codes(result_of(batch)) == {call_id: "success" if call_id == "done" else "timeout" for call_id in ids}


@turned
async def test_a_result_and_its_deadline_at_the_same_moment() -> None:
    """At its deadline a call is timed out, whichever callback comes first (B3)."""
    async with ToolBatch(calls("a", "b", "c"), timeout=20) as batch:
        batch.start("a", after, 10, timeout=10)
        batch.start("b", after, 20)
        batch.start("c", after, 9.999, timeout=10)
        await batch.snapshot()
    assert codes(result_of(batch)) == {"a": "timeout", "b": "timeout", "c": "success"}


@turned
async def test_deadlines_in_the_past() -> None:
    """A batch whose deadline has passed is closed at its first turn; a call whose time is nothing, likewise (B3)."""
    loop = asyncio.get_running_loop()
    for options in ({"deadline": loop.time() - 5}, {"timeout": 0}, {"deadline": 0}, {"deadline": -5.0}):
        async with ToolBatch(calls("a", "b"), **options) as batch:
            batch.start("a", instant)
            assert batch.result is None
            await batch.snapshot()
        assert codes(result_of(batch))["b"] == "timeout"
        assert batch.outcomes["b"].timeout == 0
    assert loop.time() == START


async def test_deadlines_in_real_time(nothing_left: None) -> None:
    """On both loops a call's and a batch's timeout come at about their time (B3, B12)."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with ToolBatch(calls("a", "b"), timeout=0.08) as batch:
        batch.start("a", forever, timeout=0.03)
        batch.start("b", forever)
        while "a" not in batch.outcomes:
            await asyncio.sleep(0.001)
        assert loop.time() - began >= 0.025
        assert batch.result is None
        await batch.snapshot()
        assert 0.075 <= loop.time() - began < 5
    assert codes(result_of(batch)) == {"a": "timeout", "b": "timeout"}


@turned
async def test_the_deadline_comes_during_the_exit() -> None:
    """A batch's deadline bounds the exit's wait too (B3)."""
    async with ToolBatch(calls("a", "b"), timeout=30) as batch:
        batch.start("a", forever)
    assert asyncio.get_running_loop().time() == START + 30
    assert codes(result_of(batch)) == {"a": "timeout", "b": "timeout"}


@turned
async def test_one_blocked_loop_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """A thousand calls whose deadlines a blocked loop delays are one line of the log, and each hears by how much (B14)."""
    loop = asyncio.get_running_loop()
    late: list[float | None] = []
    deadlines = Deadlines(loop, lambda _who, late_by: late.append(late_by))
    for number in range(1000):
        deadlines.add(START - 2 + number / 1000, cast(Execution, _Who(f"c{number}")))
    await turn(2)
    assert late == pytest.approx([2 - number / 1000 for number in range(1000)])
    assert [record.getMessage() for record in caplog.records] == [
        "the event loop was blocked: the deadline of call c0 of t and 999 more fired 2.000 s late"
    ]
