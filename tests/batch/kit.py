"""What the tests of the shell share: calls, tools of every temper, and short ways to look at what came out."""

import asyncio
import inspect
import threading
import weakref
from collections.abc import Coroutine, Mapping
from typing import Any, ClassVar, NoReturn

from toolbatch import Snapshot, ToolBatch, ToolCall, ToolSession
from toolbatch.core import Closed, Settlement, encode


def calls(*ids: str) -> list[ToolCall]:
    """Calls of these ids, each of a tool `tool_<id>`."""
    return [ToolCall(call_id, f"tool_{call_id}") for call_id in ids]


async def forever() -> NoReturn:
    """Wait for what never comes, and obey a cancellation."""
    await asyncio.Event().wait()
    raise AssertionError


async def instant(value: Any = "done") -> Any:
    """Return at once."""
    return value


async def after(seconds: float, value: Any = "done") -> Any:
    """Return after a while, on a jumping clock."""
    await asyncio.sleep(seconds)
    return value


async def boom(message: str = "boom") -> NoReturn:
    """Raise at once."""
    raise ValueError(message)


class Stubborn:
    """A tool that swallows every cancellation, counts them, and ends when it is released.

    Attributes:
        cancels: How often it was asked to stop.
        turns: How often it was woken.
    """

    living: ClassVar["weakref.WeakSet[Stubborn]"] = weakref.WeakSet()

    def __init__(self, value: Any = "stubborn") -> None:
        self.living.add(self)
        self.value = value
        self.cancels = 0
        self.turns = 0
        self.entered = False
        self.release = asyncio.Event()

    async def __call__(self) -> Any:
        self.entered = True
        while not self.release.is_set():
            self.turns += 1
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.cancels += 1
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value


class Hung:
    """A tool in a thread that waits until it is released."""

    living: ClassVar["weakref.WeakSet[Hung]"] = weakref.WeakSet()

    def __init__(self, value: Any = "hung") -> None:
        self.living.add(self)
        self.value = value
        self.entered = threading.Event()
        self.release = threading.Event()

    def __call__(self) -> Any:
        self.entered.set()
        assert self.release.wait(20), "the test never released its thread"
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value

    def wait_entered(self) -> None:
        """Block until the thread runs the tool's code."""
        assert self.entered.wait(20), "the tool's thread never came"


def release_all() -> None:
    """Let every tool end that a failed test did not release."""
    for stubborn in Stubborn.living:
        stubborn.release.set()
    for hung in Hung.living:
        hung.release.set()


def is_closed(coroutine: Coroutine[Any, Any, Any]) -> bool:
    """Whether a coroutine has ended or was closed."""
    return inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


async def breathe() -> None:
    """Let other threads run for a moment, on a jumping clock too."""
    loop = asyncio.get_running_loop()
    woken = loop.create_future()
    threading.Thread(target=loop.call_soon_threadsafe, args=(woken.set_result, None)).start()
    await woken


async def turn(times: int = 1) -> None:
    """Let the loop go round."""
    for _ in range(times):
        await asyncio.sleep(0)


def result_of(batch: ToolBatch) -> Snapshot:
    """The batch's result, closed."""
    assert batch.result is not None
    assert batch.result.closed
    return batch.result


def end(snapshot: Snapshot, call_id: str) -> Settlement:
    """One call's outcome."""
    (settlement,) = [call.settlement for call in snapshot.calls if call.id == call_id]
    assert settlement is not None
    return settlement


def code(snapshot: Snapshot, call_id: str) -> str:
    """One call's outcome, short: `success` or its code."""
    settlement = end(snapshot, call_id)
    return "success" if settlement.status == "success" else settlement.code


def codes(snapshot: Snapshot) -> dict[str, str]:
    """All outcomes, short."""
    return {call.id: code(snapshot, call.id) for call in snapshot.calls}


def message(snapshot: Snapshot, call_id: str) -> str:
    """What the model reads of a call that has no result."""
    settlement = end(snapshot, call_id)
    assert settlement.status != "success"
    return settlement.message


def content(snapshot: Snapshot, call_id: str) -> str:
    """What the model reads of a call that has a result."""
    settlement = end(snapshot, call_id)
    assert settlement.status == "success", settlement
    return settlement.content


def effects(snapshot: Snapshot, call_id: str) -> str | None:
    """What is known of a call's side effects; `None` for one that reported."""
    settlement = end(snapshot, call_id)
    return settlement.side_effect_state if isinstance(settlement, Closed) else None


def check_batch(batch: ToolBatch, ids: list[str]) -> Snapshot:
    """Check what holds of every batch that has ended: one outcome a call, in order, and strict JSON."""
    snapshot = result_of(batch)
    assert [call.id for call in snapshot.calls] == ids
    assert all(call.settlement is not None and call.state != "pending" for call in snapshot.calls)
    assert list(batch.outcomes) == ids
    encode(snapshot.to_dict())
    for call in snapshot.calls:
        outcome = batch.outcomes[call.id]
        state = effects(snapshot, call.id)
        assert outcome.started or outcome.completion == "not_started"
        assert state != "not_started" or not outcome.started, (call, outcome)
        assert (outcome.status == "succeeded") <= (call.state == "success")
    return snapshot


def completion(batch: ToolBatch, call_id: str) -> str:
    """Where a call's code is, as far as is known now."""
    return batch.outcomes[call_id].completion


def totals(holder: ToolBatch | ToolSession) -> Mapping[str, int]:
    """The counters of all tools together."""
    summed: dict[str, int] = {}
    for counters in holder.counters.values():
        for name, number in counters.to_dict().items():
            summed[name] = summed.get(name, 0) + number
    return summed
