"""What a tool learns and says through `current_call()` (B19, B22, O4, O7, T11)."""

import asyncio
import gc
import logging
import threading
from typing import Any

import pytest

from tests.batch.clock import START, turned
from tests.batch.kit import Hung, calls, end, forever, result_of, turn
from toolbatch import (
    BatchStateError,
    CallContext,
    EncodingError,
    Limits,
    ToolBatch,
    ToolCall,
    ToolSession,
    current_call,
)


def test_outside_of_a_tool() -> None:
    """There is no current call where no tool runs."""
    with pytest.raises(BatchStateError, match="outside of a tool"):
        current_call()


@turned
async def test_what_a_tool_learns() -> None:
    """A tool knows its call, its tool's name, the run, its execution's id, its deadline and what is left (T11)."""
    seen: dict[str, Any] = {}

    async def tool() -> None:
        call = current_call()
        seen.update(
            id=call.call_id, name=call.name, run=call.run_id, generation=call.generation, execution=call.execution_id,
            arguments=call.call.arguments, deadline=call.deadline, remaining=call.remaining(), text=repr(call),
        )  # fmt: skip
        assert not call.is_cancelled
        await asyncio.sleep(4)
        seen["later"] = call.remaining()
        await asyncio.sleep(100)

    async with ToolBatch([ToolCall("a", "t", {"x": 1})], run_id="run", timeout=10) as batch:
        batch.start("a", tool)
        await batch.snapshot()
    assert seen["execution"] == batch.outcomes["a"].execution_id
    assert (seen["id"], seen["name"], seen["run"], seen["generation"]) == ("a", "t", "run", 1)
    assert seen["arguments"] == {"x": 1}
    assert (seen["deadline"], seen["remaining"], seen["later"]) == (START + 10, 10, 6)
    assert seen["text"] == "<CallContext of a (t)>"


@turned
async def test_the_earlier_deadline_counts() -> None:
    """A tool's deadline is its own or the batch's, whichever is earlier; `None` for none, and never less than nothing left (T11)."""
    seen: dict[str, Any] = {}

    async def tool(name: str) -> None:
        call = current_call()
        seen[name] = (call.deadline, call.remaining())
        if name == "swallows":
            try:
                await forever()
            except asyncio.CancelledError:
                await asyncio.sleep(1)
                seen[name] = (call.deadline, call.remaining())

    async with ToolBatch(calls("a", "b", "c"), timeout=10) as batch:
        batch.start("a", tool, "own", timeout=3)
        batch.start("b", tool, "batch", timeout=30)
        batch.start("c", tool, "swallows")
    async with ToolBatch(calls("a")) as batch:
        batch.start("a", tool, "none")
    assert seen["own"] == (START + 3, 3)
    assert seen["batch"] == (START + 10, 10)
    assert seen["none"] == (None, None)
    assert seen["swallows"] == (START + 10, 0)


@turned
async def test_it_works_in_threads() -> None:
    """A tool in a thread has its own call too, and says so in nested plain functions (T11, B11)."""
    seen: dict[str, Any] = {}

    def tool(name: str) -> str:
        call = current_call()
        seen[name] = (call.call_id, threading.current_thread().name, call.remaining())
        call.progress("half")
        return call.call_id

    async with ToolBatch(calls("a", "b")) as batch:
        batch.start("a", tool, "one")
        batch.start("b", tool, "two")
    assert {name: value[0] for name, value in seen.items()} == {"one": "a", "two": "b"}
    assert {value[1] for value in seen.values()} == {"toolbatch-tool"}


async def test_remaining_time_in_a_thread(nothing_left: None) -> None:
    """The remaining time is right in a thread, on both loops' clocks (T11, B12)."""
    seen: list[float | None] = []

    def tool() -> None:
        seen.append(current_call().remaining())

    async with ToolBatch(calls("a"), timeout=50) as batch:
        batch.start("a", tool)
    (left,) = seen
    assert left is not None
    assert 45 < left <= 50.01


@turned
async def test_a_tool_knows_that_it_is_to_stop() -> None:
    """`is_cancelled` and the event say that the tool was asked to stop, whenever the event was first looked at (B6)."""
    contexts: list[CallContext] = []

    async def tool() -> None:
        contexts.append(current_call())
        await forever()

    async with ToolBatch(calls("a")) as batch:
        batch.start("a", tool)
        await turn(2)
        assert not contexts[0].is_cancelled
        batch.close()
    assert contexts[0].is_cancelled
    assert contexts[0].cancel_event.is_set()
    assert contexts[0].cancel_event is contexts[0].cancel_event


@turned
async def test_progress() -> None:
    """What a tool had reported is in its outcome if it is cut off, joined, bounded and marked; else it is gone (B19)."""

    async def reports(last: str, then: Any) -> str:
        call = current_call()
        call.progress("one ")
        call.progress({"n": 2})
        call.progress(last)
        await then()
        return "done"

    ids = ["cut", "long", "fine", "late"]
    async with ToolBatch(calls(*ids), limits=Limits(max_message_bytes=20), timeout=5) as batch:
        batch.start("cut", reports, " three", forever)
        batch.start("long", reports, "x" * 50, forever)
        batch.start("fine", reports, "x", turn)
        await batch.snapshot()
    partial = {call_id: end(result_of(batch), call_id).to_dict().get("partial") for call_id in ids}
    assert partial["cut"] == 'one \n{"n":2}\n three'
    assert partial["long"] is not None
    assert len(partial["long"]) <= 20
    assert partial["long"].endswith("xxx") or partial["long"].endswith("...")
    assert partial["fine"] is None


@turned
async def test_progress_that_comes_too_late_or_cant_be_written() -> None:
    """Progress after the outcome is nothing; what is neither text nor JSON is refused, and the tool may go on (B19)."""
    contexts: list[CallContext] = []

    async def tool() -> str:
        call = current_call()
        contexts.append(call)
        with pytest.raises(EncodingError):
            call.progress(object())
        with pytest.raises(EncodingError):
            call.progress(float("nan"))
        return "fine"

    async with ToolSession() as session:
        async with session.batch(calls("a", "b")) as batch:
            batch.start("a", tool)
            await turn(3)
            contexts[0].progress("late")
            batch.cancel("b")
            contexts[0].progress("later")
        before = result_of(batch).to_dict()
        async with session.batch(calls("a")) as newer:
            contexts[0].progress("from an older generation")
            newer.close()
        assert result_of(batch).to_dict() == before
        assert "partial" not in end(result_of(newer), "a").to_dict()


async def _key(*announced: ToolCall, run_id: str | None = None, session: ToolSession | None = None) -> list[str]:
    keys = []

    async def tool() -> None:
        keys.append(current_call().idempotency_key)

    batch = session.batch(announced) if session else ToolBatch(announced, run_id=run_id)
    async with batch:
        for call in announced:
            batch.start(call.id, tool)
    return keys


async def test_idempotency_keys(nothing_left: None) -> None:
    """A key is the same for the same run, call, tool and arguments, in any order of names, and differs with each of them (B22)."""
    call = ToolCall("a", "pay", {"to": "x", "sum": 5})
    (key,) = await _key(call, run_id="r")
    same = [ToolCall("a", "pay", {"sum": 5, "to": "x"}), ToolCall("a", "pay", '{"to": "x", "sum": 5}')]
    for again in (call, *same):
        assert await _key(again, run_id="r") == [key], "a retry, a resume, another process"
    others = [
        ToolCall("b", "pay", {"to": "x", "sum": 5}),
        ToolCall("a", "refund", {"to": "x", "sum": 5}),
        ToolCall("a", "pay", {"to": "x", "sum": 6}),
        ToolCall("a", "pay", {"to": "x"}),
        ToolCall("a", "pay", {"to": "x", "sum": "5"}),
    ]
    keys = {key} | {(await _key(other, run_id="r"))[0] for other in others} | set(await _key(call, run_id="s"))
    assert len(keys) == 7
    assert all(len(each) == 64 and int(each, 16) >= 0 for each in keys)
    assert await _key(call) != await _key(call), "without a run's name, each batch is a run"
    async with ToolSession() as session:
        assert await _key(call, session=session) == await _key(call, session=session)
    assert call.arguments == {"to": "x", "sum": 5}, "the key is never among the model's arguments"
    (odd,) = await _key(ToolCall("a", "pay", {"x": object}), run_id="r")
    assert len(odd) == 64


@turned
async def test_a_key_is_stable_over_the_call() -> None:
    """A tool that changes its own arguments has the same key after as before (B22)."""
    keys = []

    async def tool(items: list[int]) -> None:
        keys.append(current_call().idempotency_key)
        items.append(3)
        keys.append(current_call().idempotency_key)

    for arguments in ({"items": [1, 2]}, '{"items": [1, 2]}'):
        announced = [ToolCall("a", "t", arguments)]
        async with ToolBatch(announced, run_id="r", tools={"t": tool}) as batch:
            batch.start_all()
    assert len(set(keys)) == 1
    assert keys[0] == (await _key(ToolCall("a", "t", {"items": [1, 2]}), run_id="r"))[0]


@turned
async def test_the_logger_names_the_call(caplog: pytest.LogCaptureFixture) -> None:
    """A tool's logger marks its records with the call (T11)."""
    caplog.set_level(logging.INFO)

    async def tool() -> None:
        current_call().logger.info("at work")

    async with ToolBatch(calls("a")) as batch:
        batch.start("a", tool)
    (record,) = [record for record in caplog.records if record.getMessage() == "at work"]
    assert record.__dict__["call_id"] == "a"
    assert record.__dict__["tool_name"] == "tool_a"
    assert record.__dict__["execution_id"] == batch.outcomes["a"].execution_id


@turned
async def test_nested_batches_have_their_own_calls() -> None:
    """A tool that runs a batch sees its own call before and after; the inner tool sees the inner one (O7, B11)."""
    seen = []

    async def inner() -> None:
        seen.append(current_call().call_id)

    async def outer() -> None:
        seen.append(current_call().call_id)
        async with ToolBatch(calls("x")) as batch:
            batch.start("x", inner)
        seen.append(current_call().call_id)

    async with ToolBatch(calls("a")) as batch:
        batch.start("a", outer)
    assert seen == ["a", "x", "a"]
    with pytest.raises(BatchStateError):
        current_call()


@turned
async def test_progress_of_a_thread_that_hangs() -> None:
    """A thread's progress is in the outcome of a call that is cut off (B19)."""
    hung = Hung()

    def tool() -> Any:
        current_call().progress("half way")
        return hung()

    late = asyncio.Event()
    async with ToolBatch(calls("a"), teardown_timeout=0, on_late=lambda _outcome: late.set()) as batch:
        batch.start("a", tool)
        hung.wait_entered()
        await turn(2)
        batch.close()
    hung.release.set()
    await late.wait()
    assert end(result_of(batch), "a").to_dict()["partial"] == "half way"


async def test_progress_after_the_batch_is_gone() -> None:
    """A task that outlives its tool, and the batch with it, may still report; it means nothing any more (B19)."""
    inside: list[CallContext] = []

    async def leaks() -> None:
        inside.append(current_call())

    async with ToolBatch(calls("a")) as batch:
        batch.start("a", leaks)
    del batch
    gc.collect()
    inside[0].progress("late")
    with pytest.raises(BatchStateError, match="'a' is gone"):
        _ = inside[0].run_id
