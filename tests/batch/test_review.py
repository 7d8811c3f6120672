"""Faults that a reader of the requirements found, each of a kind: what is hostile, what is full, what is over already."""

import asyncio
import logging
import math
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.batch.clock import START, turned
from tests.batch.kit import Hung, Stubborn, calls, codes, effects, forever, instant, result_of
from toolbatch import (
    ExecutionOutcome,
    InvalidInputError,
    ToolBatch,
    ToolCall,
    ToolSession,
    WrongThreadError,
)
from toolbatch.batch import _crew, _threads
from toolbatch.core import Cancelled, Closed, Failed, Settlement, Succeeded


def _refuse(_self: object) -> Any:
    raise ZeroDivisionError


class NoClass:
    """An object that won't say what it is."""

    __class__ = property(_refuse)


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_value_that_will_not_say_what_it_is(in_thread: bool, nothing_left: None) -> None:
    """A result whose `__class__` raises is one that can't be shown; its call is answered all the same (B4, B23)."""

    async def in_loop() -> object:
        return NoClass()

    async with asyncio.timeout(20), ToolBatch(calls("a", "b")) as batch:
        batch.start("a", NoClass if in_thread else in_loop)
        batch.start("b", instant)
    assert codes(result_of(batch)) == {"a": "invalid_result", "b": "success"}


def small_pool(monkeypatch: pytest.MonkeyPatch, size: int) -> _threads.WorkerThreads:
    pool = _threads.WorkerThreads(max_threads=size)
    monkeypatch.setattr(_crew, "workers", pool)
    monkeypatch.setattr(_threads, "workers", pool)
    return pool


async def test_sub_agents_in_threads_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Synchronous tools that fill all threads and each run a batch with a synchronous tool go on (FIELD 105, B10)."""
    small_pool(monkeypatch, 4)
    barrier = threading.Barrier(4)

    async def inner() -> str:
        async with ToolBatch(calls("x")) as batch:
            batch.start("x", lambda: "inner")
        return codes(result_of(batch))["x"]

    def outer() -> str:
        barrier.wait(20)
        return asyncio.run(inner())

    async with ToolBatch(calls("a", "b", "c", "d"), timeout=30) as batch:
        for call in batch.calls:
            batch.start(call.id, outer)
    assert [row.settlement for row in result_of(batch).calls] == [Succeeded("success")] * 4


async def test_hung_threads_of_a_session_leave_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """What hangs in a session's hands takes no thread from others, long before the session ends (B6, B9)."""
    pool = small_pool(monkeypatch, 2)
    hung = [Hung(), Hung()]
    async with ToolSession(teardown_timeout=0) as session:
        async with session.batch(calls("a", "b")) as batch:
            for call, tool in zip(batch.calls, hung, strict=True):
                batch.start(call.id, tool)
                await asyncio.to_thread(tool.wait_entered)
            batch.close()
        async with ToolBatch(calls("c"), timeout=20) as other:
            other.start("c", lambda: "free")
        assert codes(result_of(other)) == {"c": "success"}
        assert pool.counts["let_go"] == 2
        for tool in hung:
            tool.release.set()


async def test_a_call_that_waits_for_a_thread_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call's own bound counts from the moment at which a thread has it, not from its start (B13)."""
    small_pool(monkeypatch, 1)
    hung = Hung()
    async with ToolBatch(calls("a", "b", "c")) as batch:
        batch.start("a", hung)
        batch.start("b", lambda: "done", timeout=0.05)
        second = Hung()
        batch.start("c", second, timeout=0.05)
        await asyncio.sleep(0.2)  # four times what they may take
        hung.release.set()
        snapshot = await batch.snapshot()
        second.release.set()
    assert codes(snapshot) == {"a": "success", "b": "success", "c": "timeout"}
    assert effects(snapshot, "c") == "unknown"


@pytest.fixture
def broken_log() -> Iterator[None]:
    """Every record of toolbatch's log meets a filter that raises."""

    def filter_(_record: logging.LogRecord) -> bool:
        raise ZeroDivisionError

    logger = logging.getLogger("toolbatch")
    logger.addFilter(filter_)
    yield
    logger.removeFilter(filter_)


def told(stage: list[Any]) -> Any:
    """An observer or a sink that raises after it has heard."""

    def hear(what: object) -> None:
        stage.append(what)
        raise ValueError("observer")

    return hear


async def test_a_log_that_raises_stops_nothing(broken_log: None) -> None:
    """Whatever is to be logged - a late deadline, a failed observer, a stuck snapshot, a full channel - goes on without (B21)."""
    heard: list[Any] = []
    async with ToolSession(
        audit_size=1, audit_sinks=[told(heard)], on_outcome=told(heard), teardown_timeout=5
    ) as session:
        stubborn = [Stubborn(), Stubborn()]
        async with session.batch(calls("a", "b", "c", "d"), timeout=60) as batch:
            waiting = asyncio.create_task(batch.snapshot())
            await asyncio.sleep(0)
            loop = asyncio.get_running_loop()
            for call_id, tool in zip("ab", stubborn, strict=True):
                batch.start(call_id, tool, timeout=0.05)
            while not all(tool.entered for tool in stubborn):
                await asyncio.sleep(0)
            end = loop.time() + 0.2
            while loop.time() < end:
                pass  # the loop is blocked, so that the deadlines are late
            while len(batch.outcomes) < 2:
                await asyncio.sleep(0)
            batch.close()
            await waiting
        for tool in stubborn:
            tool.release.set()
    assert len(session.audit.drain()) == 1
    assert session.audit.dropped == 1
    assert len(heard) == 6


async def test_looking_from_another_thread_changes_nothing() -> None:
    """Outcomes and counters can be read anywhere; asking to stop happens in the loop's thread alone (C18)."""
    async with ToolBatch(calls("a")) as batch:
        batch.start("a", forever)
        await asyncio.sleep(0)
        batch.close()

        def look() -> tuple[dict[str, ExecutionOutcome], Any]:
            return batch.outcomes, batch.counters

        assert await asyncio.to_thread(look) is not None

        def wait() -> None:
            asyncio.run(batch.snapshot())

        with pytest.raises(WrongThreadError):
            await asyncio.to_thread(wait)
    assert batch.outcomes["a"].cancellation == "acknowledged"


@pytest.mark.parametrize("deadline", [START - 5, 0, -math.inf, -(10**400)])
@turned
async def test_a_deadline_that_is_over_is_now(deadline: float, caplog: pytest.LogCaptureFixture) -> None:
    """It closes the batch at once, and blames no blocked loop (B14)."""
    async with ToolBatch(calls("a", "b"), deadline=deadline) as batch:
        batch.start("a", forever)
        await batch.snapshot()
    assert codes(result_of(batch)) == {"a": "timeout", "b": "timeout"}
    assert [outcome.deadline_late_by for outcome in batch.outcomes.values()] == [None, None]
    assert [outcome.timeout for outcome in batch.outcomes.values()] == [0, 0]
    assert caplog.records == []


@pytest.mark.parametrize("option", ["timeout", "call_timeout", "teardown_timeout", "deadline"])
def test_numbers_beyond_all_floats(option: str) -> None:
    """A bound that no float can hold is none, and a negative one is an error that can be read (bad input)."""
    options: dict[str, Any] = {option: 10**5000}
    ToolBatch([], **options)
    if option != "deadline":
        with pytest.raises(InvalidInputError, match=option):
            ToolBatch([], **{option: -(10**5000)})  # type: ignore[arg-type]


async def test_observers_hear_of_malformed_calls_when_the_batch_is_there() -> None:
    """What is answered on entering is told when its owner can see it (O3, P6)."""
    seen: list[Any] = []

    def hear(outcome: ExecutionOutcome) -> None:
        seen.append((outcome.status, batch.generation, list(batch.outcomes)))

    batch = ToolBatch([ToolCall("a", "f", "{"), ToolCall("b", "f")], on_outcome=hear)
    async with batch:
        batch.start("b", instant)
    assert seen == [("failed", 1, ["a"]), ("succeeded", 1, ["a", "b"])]


def test_settlements_can_be_asked_alike() -> None:
    """Each kind of outcome has what the others have, and says None for what it can't know."""
    kinds: list[Settlement] = [
        Succeeded("x"),
        Failed("c", "m"),
        Cancelled("c", "m"),
        Closed("error", "c", "m", "unknown"),
    ]
    assert [kind.content for kind in kinds] == ["x", None, None, None]
    assert [kind.code for kind in kinds] == [None, "c", "c", "c"]
    assert [kind.message for kind in kinds] == [None, "m", "m", "m"]
    assert [kind.side_effect_state for kind in kinds] == [None, None, None, "unknown"]
    assert [kind.partial for kind in kinds] == [None] * 4
    for kind in kinds:
        with pytest.raises((AttributeError, TypeError)):
            kind.partial = "x"  # type: ignore[misc]
