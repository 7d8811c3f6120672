"""A batch and a catalog: calls are checked, answered or run as their tools say (T1 to T9)."""

import asyncio
import json
from datetime import date
from types import MappingProxyType
from typing import Any

import pytest

from tests.batch.kit import codes, result_of
from toolbatch import InvalidTypeError, ToolBatch, ToolCall, ToolCatalog, tool
from toolbatch.core import Closed, Failed, Snapshot, Succeeded


@tool
async def book(day: date, seats: int = 1) -> dict[str, Any]:
    """Book seats."""
    return {"day": day, "seats": seats}


async def run_all(*calls: ToolCall, tools: Any) -> tuple[ToolBatch, Snapshot]:
    """Run calls through `start_all`."""
    async with ToolBatch(calls, tools=tools) as batch:
        batch.start_all()
    return batch, result_of(batch)


async def test_arguments_are_converted() -> None:
    """A tool gets what its signature says, not what JSON has (T1)."""
    _, snapshot = await run_all(ToolCall("a", "book", '{"day":"2026-11-30","seats":"2"}'), tools=ToolCatalog([book]))
    assert snapshot.calls[0].settlement == Succeeded('{"day":"2026-11-30","seats":2}')


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        (ToolCall("a", "book", {"seats": 1}), "invalid_arguments", "day"),
        (ToolCall("a", "book", {"day": "2026-11-30", "seats": "many"}), "invalid_arguments", "seats"),
        (ToolCall("a", "bok", {}), "unknown_tool", "book"),
        (ToolCall("a", "book", '{"day":'), "malformed_arguments", "JSON"),
    ],
)
async def test_what_can_t_be_run_is_answered(call: ToolCall, code: str, words: str) -> None:
    """The model reads what was wrong, the tool never hears of it, and nothing else suffers (T5, P6)."""
    good = ToolCall("b", "book", {"day": "2026-11-30"})
    batch, snapshot = await run_all(call, good, tools=ToolCatalog([book]))
    answered, ran = (row.settlement for row in snapshot.calls)
    assert isinstance(answered, Closed)
    assert (answered.status, answered.code, answered.side_effect_state) == ("error", code, "not_started")
    assert words in answered.message
    assert isinstance(ran, Succeeded)
    assert [outcome.status for outcome in batch.outcomes.values()] == ["failed", "succeeded"]


async def test_a_started_tool_checks_its_arguments_too() -> None:
    """The host's own loop over `batch.calls` is as safe as `start_all`; positional arguments are the host's own (T1)."""
    calls = [
        ToolCall("a", "book", {"day": "2026-11-30"}),
        ToolCall("b", "book", {"day": 7.5, "seats": None}),
        ToolCall("c", "book"),
    ]
    async with ToolBatch(calls) as batch:
        for call in batch.calls[:2]:
            batch.start(call.id, book, **call.arguments)
        batch.start("c", book, date(2026, 12, 1))
    assert codes(result_of(batch)) == {"a": "success", "b": "invalid_arguments", "c": "success"}


async def test_a_tool_has_its_own_timeout() -> None:
    """It is used where the start names none, before the batch's (T1)."""

    @tool(timeout=0.01)
    async def slow() -> None:
        await asyncio.Event().wait()

    async with ToolBatch(
        [ToolCall("a", "slow"), ToolCall("b", "slow")], call_timeout=60, tools={"slow": slow}
    ) as batch:
        batch.start("b", slow, timeout=0.02)
        batch.start_all()
    assert codes(result_of(batch)) == {"a": "timeout", "b": "timeout"}
    assert [outcome.timeout for outcome in batch.outcomes.values()] == [0.01, 0.02]


async def test_approval_that_nobody_can_give_is_denied() -> None:
    """A tool that needs an approval is not run by `start_all`; the model reads NOT EXECUTED (T7)."""
    ran: list[str] = []

    @tool(needs_approval=True)
    async def pay() -> None:
        ran.append("pay")

    batch, snapshot = await run_all(ToolCall("a", "pay"), tools=ToolCatalog([pay]))
    settlement = snapshot.calls[0].settlement
    assert isinstance(settlement, Closed)
    assert (settlement.code, settlement.side_effect_state) == ("denied", "not_started")
    assert "NOT EXECUTED" in settlement.message
    assert batch.outcomes["a"].status == "denied"
    assert ran == []


async def test_tools_that_are_not_parallel_run_alone_and_in_order() -> None:
    """Parallel ones overlap; one that is not waits for those before it and holds back those behind it (T8)."""
    running: set[str] = set()
    seen: list[tuple[str, frozenset[str]]] = []

    async def body(name: str) -> None:
        running.add(name)
        for _ in range(3):
            await asyncio.sleep(0)
        seen.append((name, frozenset(running)))
        running.discard(name)

    read = tool(body, name="read", parallel=True)
    write = tool(body, name="write", parallel=False)
    names = ["read", "read", "write", "write", "read", "read"]
    calls = [ToolCall(str(n), name, {"name": f"{name}{n}"}) for n, name in enumerate(names)]
    await run_all(*calls, tools=ToolCatalog([read, write]))
    overlaps = [others for _, others in seen]
    assert overlaps[:2] == [{"read0", "read1"}, {"read1"}]
    assert overlaps[2:4] == [{"write2"}, {"write3"}]
    assert overlaps[4:] == [{"read4", "read5"}, {"read5"}]


async def test_a_tool_that_runs_alone_and_will_not_stop_does_not_block_the_rest() -> None:
    """Its call has its outcome at the deadline, and the next may run (B6, T8)."""

    @tool(timeout=0.01, parallel=False)
    async def stuck() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()

    @tool(parallel=False)
    async def next_one() -> str:
        return "done"

    async with ToolBatch(
        [ToolCall("a", "stuck"), ToolCall("b", "next_one")], tools=ToolCatalog([stuck, next_one]), teardown_timeout=0
    ) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert [row.state for row in snapshot.calls] == ["cancelled", "success"]


async def test_render_and_meta() -> None:
    """`render` makes the model's text, `meta` the host's facts; one that fails loses nothing (T9)."""

    @tool(render=lambda value: f"{len(value)} rows", meta=lambda value: {"rows": value})
    async def query() -> list[int]:
        return [1, 2, 3]

    def fail(_value: object) -> str:
        raise ValueError

    @tool(render=fail, meta=fail)
    async def broken() -> list[int]:
        return [4]

    @tool(render=str)
    async def no_json() -> object:
        return object()

    @tool(render=str)
    async def fails() -> object:
        raise ValueError("as it is")

    calls = [ToolCall(name, name) for name in ("query", "broken", "no_json", "fails")]
    batch, snapshot = await run_all(*calls, tools=ToolCatalog([query, broken, no_json, fails]))
    first, second, third, fourth = (row.settlement for row in snapshot.calls)
    assert first == Succeeded("3 rows")
    assert second == Succeeded("[4]")
    assert isinstance(third, Failed)
    assert third.code == "invalid_result"
    assert fourth == Failed("tool_error", "as it is")
    assert batch.meta == {"query": {"rows": [1, 2, 3]}}
    assert json.dumps(batch.meta)


async def test_a_tool_that_nobody_can_run_starts_nothing() -> None:
    """All calls are looked at before any is started: the host's mistake costs no half-run turn (T3)."""
    ran: list[str] = []

    async def fine() -> None:
        ran.append("fine")

    tools: Any = MappingProxyType({"fine": fine, "odd": 5})  # a dict would be refused at once
    async with ToolBatch([ToolCall("a", "fine"), ToolCall("b", "odd")], tools=tools) as batch:
        with pytest.raises(InvalidTypeError, match="5"):
            batch.start_all()
        assert batch.outcomes == {}
        batch.close()
    assert ran == []


def test_a_dict_with_what_is_no_tool_is_refused_at_once() -> None:
    """A function that isn't one is named where it is given (T3)."""
    with pytest.raises(InvalidTypeError, match=r"'odd'.* not 5"):
        ToolBatch([], tools={"odd": 5})  # type: ignore[dict-item]
