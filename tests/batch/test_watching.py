"""Observers of whole batches: who is asked, what each watcher hears and in which order, and that none can do harm (O3, B11)."""

import asyncio
import logging
from contextvars import Context, ContextVar
from typing import Any

import pytest

from tests.batch.clock import turned
from tests.batch.kit import Stubborn, boom, calls, forever, instant, turn
from toolbatch import StaleResult, ToolBatch, ToolCall, ToolSession, current_call, tool
from toolbatch.core import InvalidTypeError
from toolbatch.ports import (
    BatchClosed,
    BatchEvent,
    BatchOpened,
    BatchWatcher,
    CallAdmitted,
    CallSettled,
    CallStarted,
    ExecutionOutcome,
)
from toolbatch.tools import Interceptor

name: ContextVar[str] = ContextVar("name", default="nobody")


class Diary(BatchWatcher):
    """Writes down all that it hears, in a word or two."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def prepare(self, admitted: CallAdmitted, context: Context, /) -> None:
        self.said.append(f"prepare {admitted.call.id} {admitted.description}")

    def event(self, event: BatchEvent, /) -> None:
        who = getattr(event, "call_id", "") or getattr(getattr(event, "outcome", None), "call_id", "")
        self.said.append(f"{type(event).__name__} {who}".strip())

    def ended(self, outcome: ExecutionOutcome, /) -> None:
        self.said.append(f"ended {outcome.call_id} {outcome.cancellation}")

    def late(self, stale: StaleResult, /, *, kept: bool) -> None:
        self.said.append(f"late {stale.call_id} {kept}")


@turned
async def test_a_watcher_hears_all_of_its_batch_in_order() -> None:
    """Admission, entry, outcome, close, end by cancellation, late results and those that the channel dropped (B7, O3)."""
    diary, opened = Diary(), []

    def observe(batch: BatchOpened) -> BatchWatcher:
        opened.append(batch)
        return diary

    @tool
    async def look() -> str:
        """Looks."""
        return "seen"

    tools = [Stubborn(), Stubborn()]
    async with ToolSession(observers=[observe], audit_size=1, run_id="r") as session:
        async with session.batch(calls("a", "b", "c", "d", "e")) as batch:
            batch.start("a", look)
            batch.start("b", forever)
            batch.start("c", tools[0])
            batch.start("d", tools[1])
            await turn(3)
            batch.close()
        for stubborn in tools:
            stubborn.release.set()
        await turn(3)
    (batch_opened,) = opened
    assert (batch_opened.generation, batch_opened.run_id) == (1, "r")
    assert [call.id for call in batch_opened.calls] == ["a", "b", "c", "d", "e"]
    assert diary.said == [
        "prepare a Looks.", "prepare b None", "prepare c None", "prepare d None",
        "CallStarted a", "CallSettled a", "CallStarted b", "CallStarted c", "CallStarted d",
        "CallSettled b", "CallSettled c", "CallSettled d", "CallSettled e", "BatchClosed",
        "ended b acknowledged", "late c True", "ended c requested", "late d False", "ended d requested",
    ]  # fmt: skip


@turned
async def test_one_watcher_a_batch(caplog: pytest.LogCaptureFixture) -> None:
    """Each batch has its own, so that two with the same ids don't mix; `None` is no watcher."""
    diaries: list[Diary] = []

    def observe(opened: BatchOpened) -> BatchWatcher | None:
        if opened.generation == 2:
            return None
        diaries.append(Diary())
        return diaries[-1]

    async with ToolSession(observers=[observe]) as session:
        for _ in range(3):
            async with session.batch(calls("a")) as batch:
                batch.start("a", instant)
    assert [diary.said for diary in diaries] == [
        ["prepare a None", "CallStarted a", "CallSettled a", "BatchClosed"],
    ] * 2
    assert caplog.records == []


@turned
async def test_what_was_answered_on_entering_is_heard() -> None:
    """A watcher is there before the first call is answered (P6), and of a batch without calls it hears the close."""
    diary = Diary()
    async with ToolBatch([ToolCall("a", "t", "{")], observers=[lambda _: diary]):
        pass
    assert diary.said == ["CallSettled a", "BatchClosed"]
    diary = Diary()
    async with ToolBatch([], observers=[lambda _: diary]):
        pass
    assert diary.said == ["BatchClosed"]


@turned
async def test_events_say_how_long_and_with_what_text() -> None:
    """An entry says how long the call may take, by its own bound or the batch's; an outcome has what the model is told."""
    events: list[BatchEvent] = []

    class Keeps(BatchWatcher):
        def event(self, event: BatchEvent, /) -> None:
            events.append(event)

    async with ToolBatch(calls("a", "b", "c"), timeout=100, observers=[lambda _: Keeps()]) as batch:
        batch.start("a", instant, timeout=7)
        batch.start("b", instant, timeout=700)
        batch.start("c", boom)
    started = {event.call_id: event.seconds_left for event in events if isinstance(event, CallStarted)}
    assert started == {"a": 7, "b": 100, "c": 100}
    settled = {event.outcome.call_id: event.settlement for event in events if isinstance(event, CallSettled)}
    assert settled["a"].content == "done"
    assert (settled["c"].code, settled["c"].message) == ("tool_error", "boom")
    assert batch.result is not None
    assert events[-1] == BatchClosed(batch.result)
    events.clear()
    async with ToolBatch(calls("a"), observers=[lambda _: Keeps()]) as batch:
        batch.start("a", instant)
    assert isinstance(events[0], CallStarted)
    assert events[0].seconds_left is None


class Names(BatchWatcher):
    """Says to each call's code who it is."""

    def prepare(self, admitted: CallAdmitted, context: Context, /) -> None:
        context.run(name.set, f"{context[name]} {admitted.call.id}" if name in context else admitted.call.id)


class Around(Interceptor):
    """Looks at the name, too."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def around(self, call: Any, proceed: Any) -> Any:
        self.seen.append(name.get())
        return await proceed()


@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize("places", [None, 1])
@pytest.mark.parametrize("kind", ["coroutine", "thread", "awaitable", "awaitable from a thread"])
async def test_a_call_runs_in_the_context_that_was_prepared(kind: str, places: int | None, guided: bool) -> None:
    """What watchers set is found by the call's code and policies, wherever it runs and however long it waited; each call has its own,
    made of its starter's, and the host's stays as it was (B11)."""
    seen: dict[str, str] = {}

    async def work() -> None:
        await asyncio.sleep(0)
        seen[current_call().call_id] = name.get()

    def in_a_thread() -> None:
        seen[current_call().call_id] = name.get()

    fns: dict[str, Any] = {
        "coroutine": lambda: work,
        "thread": lambda: in_a_thread,
        "awaitable": work,
        "awaitable from a thread": lambda: lambda: work(),
    }
    around = Around()
    async with ToolBatch(
        calls("a", "b"),
        max_concurrency=places,
        interceptors=[around] if guided else [],
        observers=[lambda _: Names(), lambda _: BatchWatcher()],
    ) as batch:
        batch.start("a", fns[kind]())
        token = name.set("host")
        batch.start("b", fns[kind]())
        name.reset(token)
    assert seen == {"a": "a", "b": "host b"}
    assert sorted(around.seen) == (["a", "host b"] if guided else [])
    assert name.get() == "nobody"


class Broken(BatchWatcher):
    """Raises whatever it is told."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def prepare(self, admitted: CallAdmitted, context: Context, /) -> None:
        raise self.error

    def event(self, event: BatchEvent, /) -> None:
        raise self.error

    def ended(self, outcome: ExecutionOutcome, /) -> None:
        raise self.error

    def late(self, stale: StaleResult, /, *, kept: bool) -> None:
        raise self.error


@turned
async def test_a_watcher_that_raises_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Calls run, other watchers hear all, and the log says that an observer failed, whatever it raises (O3)."""
    caplog.set_level(logging.ERROR)
    for error in (ValueError("x"), asyncio.CancelledError(), GeneratorExit()):
        diary, stubborn = Diary(), Stubborn()

        def fails(_opened: BatchOpened, error: BaseException = error) -> BatchWatcher:
            raise error

        observers: Any = [
            fails,
            lambda _opened, error=error: Broken(error),
            lambda _opened: 7,
            lambda _opened, diary=diary: diary,
        ]
        async with ToolSession(observers=observers) as session:
            async with session.batch(calls("a", "b")) as batch:
                batch.start("a", instant)
                batch.start("b", stubborn)
                await turn(3)
                batch.close()
            stubborn.release.set()
            await turn(3)
        assert [outcome.status for outcome in batch.outcomes.values()] == ["succeeded", "cancelled"]
        assert diary.said[-2:] == ["late b True", "ended b requested"]
        assert len(diary.said) == 9
    assert {record.__dict__["event_name"] for record in caplog.records} == {"observer_failed"}
    assert "an observer must return a BatchWatcher or None, not 7" in caplog.text


@pytest.mark.parametrize("given", [7, [7], ["no"], None, lambda _: None])
def test_observers_that_cant_be_used(given: Any) -> None:
    """Something that is no list of functions is refused where it is given, by its value."""
    with pytest.raises(InvalidTypeError, match="observer"):
        ToolBatch([], observers=given)


@turned
async def test_a_session_is_observed_until_it_is_not() -> None:
    """`observe` adds to what batches are given; the same observer twice is two, each undone by itself (B8)."""
    asked: list[int] = []

    def observe(opened: BatchOpened) -> None:
        asked.append(opened.generation)

    session = ToolSession(observers=[observe])
    stops = [session.observe(observe), session.observe(observe)]
    async with session:
        async with session.batch([]):
            pass
        assert asked == [1, 1, 1]
        stops[0]()
        async with session.batch([], observers=[]):
            late: list[int] = []
            session.observe(lambda opened: late.append(opened.generation))
            assert late == [], "a closed batch is nothing to watch"
        assert asked == [1, 1, 1, 2]
        stops[1]()
        async with session.batch([]) as batch:
            assert batch.result is not None
        assert asked == [1, 1, 1, 2, 3]
        assert late == [3]
