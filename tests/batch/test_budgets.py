"""G1 to G4 in a batch: what is too long is shortened before it is an outcome, and can be read back."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.batch.clock import turned
from tests.batch.kit import code, codes, content
from toolbatch import Image, Text, ToolBatch, ToolCall, ToolCatalog, ToolSession, tool
from toolbatch.core import InvalidTypeError, encode
from toolbatch.output import READER_NAME, MemorySpillStore, OutputBudget, SqliteSpillStore, estimate_tokens
from toolbatch.ports import SpillStore

LONG = "\n".join(f"line {number} of the log" for number in range(5000))


@tool
async def log() -> str:
    """Read the log."""
    return LONG


@turned
async def test_a_long_result_is_cut_to_the_batchs_budget() -> None:
    """G1, G2: head and tail stay, and how much is gone is said."""
    async with ToolBatch([ToolCall("a", "log")], tools=ToolCatalog([log]), budget=OutputBudget(200)) as batch:
        batch.start_all()
        shown = content(await batch.snapshot(), "a")
    assert estimate_tokens(shown) <= 200
    assert shown.startswith("line 0 of")
    assert shown.endswith("of the log")


@turned
@pytest.mark.parametrize("kind", ["tool", "function", "started", "thread"])
async def test_the_budget_holds_for_whatever_runs(kind: str) -> None:
    """G1: tools, plain functions, calls that the host starts itself, threads."""
    catalog: Any = {"log": log if kind == "tool" else (lambda: LONG) if kind == "thread" else log.fn}
    async with ToolBatch([ToolCall("a", "log")], tools=catalog, budget=OutputBudget(200)) as batch:
        if kind == "started":
            batch.start("a", log)
        else:
            batch.start_all()
        assert estimate_tokens(content(await batch.snapshot(), "a")) <= 200


@turned
@pytest.mark.parametrize(
    ("own", "of_the_batch", "most"), [(100, 200, 100), (200, 100, 100), (100, None, 100), (None, 100, 100)]
)
async def test_the_stricter_budget_wins(own: int | None, of_the_batch: int | None, most: int) -> None:
    """G1: the tool's or the batch's; a tool's own holds in a batch that has none, and in `start` too."""
    mine = log.replace(max_output_tokens=own)
    budget = None if of_the_batch is None else OutputBudget(of_the_batch)
    for by_hand in (False, True):
        async with ToolBatch([ToolCall("a", "log")], tools=ToolCatalog([mine]), budget=budget) as batch:
            if by_hand:
                batch.start("a", mine)
            else:
                batch.start_all()
            shown = content(await batch.snapshot(), "a")
        assert most * 0.8 < estimate_tokens(shown) <= most


@turned
async def test_an_exempt_tool_is_never_shortened() -> None:
    """G4, T1: whatever the batch's budget."""
    mine = log.replace(budget_exempt=True)
    async with ToolBatch([ToolCall("a", "log")], tools=ToolCatalog([mine]), budget=OutputBudget(10)) as batch:
        batch.start_all()
        assert content(await batch.snapshot(), "a") == LONG


@turned
async def test_images_are_never_cut() -> None:
    """G2, P5: only the text among parts is shortened."""
    picture = Image.of(b"x" * 10_000, "image/png")

    @tool
    async def look() -> Any:
        """Look."""
        return [picture, Text(LONG)]

    async with ToolBatch([ToolCall("a", "look")], tools=ToolCatalog([look]), budget=OutputBudget(100)) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    settlement = snapshot.calls[0].settlement
    assert settlement is not None
    assert settlement.parts is not None
    assert picture in settlement.parts
    assert len(content(snapshot, "a")) < 2000


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("tools", ["catalog", "dict", "view"])
async def test_what_was_spilled_can_be_read_back(kind: str, tools: str, tmp_path: Path) -> None:
    """G1, G3, G4: the model is told how, the tool is there wherever a store is, and its answers need no budget."""
    store: Any = MemorySpillStore() if kind == "memory" else SqliteSpillStore(tmp_path / "spill.db")
    catalog = ToolCatalog([log])
    given: Any = {"catalog": catalog, "dict": {"log": log.fn}, "view": catalog.view(allow=["log"])}[tools]
    async with ToolSession(tools=given, budget=OutputBudget(100, store=store)) as session:
        assert (READER_NAME in catalog) == (tools == "catalog")
        async with session.batch([ToolCall("a", "log")]) as batch:
            batch.start_all()
            shown = content(await batch.snapshot(), "a")
        words = [word.strip("\"',.`") for word in shown.split()]
        (locator,) = {word for word in words if await knows(store, word)}
        reads = [
            ToolCall("r", READER_NAME, {"locator": locator, "offset": 1000, "limit": 20_000}),
            ToolCall("s", READER_NAME, {"locator": locator, "pattern": "line 4[0-9]{3} of"}),
            ToolCall("t", READER_NAME, {"locator": locator, "pattern": "("}),
            ToolCall("u", READER_NAME, {"locator": "expired"}),
            ToolCall("v", READER_NAME, {"locator": locator, "offset": -1}),
        ]
        async with session.batch(reads) as batch:
            batch.start_all()
            snapshot = await batch.snapshot()
    assert codes(snapshot) == {
        "r": "success", "s": "success", "t": "invalid_arguments", "u": "success", "v": "invalid_arguments",
    }  # fmt: skip
    assert encode(LONG[1000:21_000]) in content(snapshot, "r")
    assert "line 4000 of" in content(snapshot, "s")
    assert "may have expired" in content(snapshot, "u")


async def knows(store: SpillStore, word: str) -> bool:
    """Whether a word is a locator."""
    return bool(word) and await store.read(word, offset=0, limit=1) is not None


@turned
async def test_sessions_that_share_a_catalog_read_from_their_own_stores() -> None:
    """G4: the tool is one, the store is the batch's."""
    catalog = ToolCatalog([log])
    one, two = MemorySpillStore(), MemorySpillStore()
    record = await two.save("kept by two", tool_name="t", call_id="c")
    read = [ToolCall("r", READER_NAME, {"locator": record.locator})]
    for store, expected in ((one, "may have expired"), (two, "kept by two")):
        async with ToolBatch(read, tools=catalog, budget=OutputBudget(100, store=store)) as batch:
            batch.start_all()
            assert expected in content(await batch.snapshot(), "r")
    async with ToolBatch(read, tools=catalog) as batch:
        batch.start_all()
        assert code(await batch.snapshot(), "r") == "tool_error"


class Down:
    """A store that is down."""

    async def save(self, text: str, *, tool_name: str, call_id: str) -> Any:
        raise ConnectionError("down")

    async def read(self, locator: str, *, offset: int, limit: int) -> Any:
        raise ConnectionError("down")


@turned
async def test_a_store_that_fails_loses_no_result() -> None:
    """G1: it is cut instead."""
    async with ToolBatch(
        [ToolCall("a", "log")], tools=ToolCatalog([log]), budget=OutputBudget(100, policy="spill", store=Down())
    ) as batch:
        batch.start_all()
        shown = content(await batch.snapshot(), "a")
    assert shown.startswith("line 0")
    assert estimate_tokens(shown) <= 100


@turned
async def test_a_slow_store_costs_the_locator_and_not_the_result() -> None:
    """G1, B3: it is given half of what is left of the turn's time."""

    class Slow:
        async def save(self, text: str, *, tool_name: str, call_id: str) -> Any:
            await asyncio.sleep(3)

        async def read(self, locator: str, *, offset: int, limit: int) -> Any:
            raise AssertionError

    async def part() -> str:
        return LONG[:50_000]

    budget = OutputBudget(100, store=Slow())
    async with ToolBatch([ToolCall("a", "part")], tools={"part": part}, budget=budget, timeout=4) as batch:
        batch.start_all()
        assert content(await batch.snapshot(), "a").startswith("line 0")


def test_a_budget_is_an_output_budget() -> None:
    """Bad input gets a clear error."""
    with pytest.raises(InvalidTypeError, match="OutputBudget"):
        ToolBatch([], budget=100)  # type: ignore[arg-type]
