"""T8: two calls that share a resource don't overlap, others do, and nobody is held up for ever."""

import asyncio
import logging
from typing import Any

import pytest

from tests.batch.clock import turned
from tests.batch.kit import Stubborn, codes, turn
from toolbatch import ToolBatch, ToolCall, ToolCatalog, ToolSession, tool
from toolbatch.core import InvalidTypeError
from toolbatch.tools import prepare


class Disk:
    """Writes files, and notices when two write one file at once."""

    def __init__(self, *, is_parallel: bool = True) -> None:
        self.open: set[str] = set()
        self.log: list[str] = []
        self.most = 0

        @tool(resources=lambda arguments: arguments["path"], parallel=is_parallel)
        async def write(path: str) -> str:
            """Write."""
            assert path not in self.open, f"{path} is written twice at once"
            self.open.add(path)
            self.most = max(self.most, len(self.open))
            await asyncio.sleep(1)
            self.open.discard(path)
            self.log.append(path)
            return path

        self.catalog = ToolCatalog([write])


def writes(*paths: str) -> list[ToolCall]:
    """One call a path."""
    return [ToolCall(str(index), "write", {"path": path}) for index, path in enumerate(paths)]


@turned
async def test_one_file_is_written_by_one_at_a_time() -> None:
    """T8: those of one file run in order of announcement, those of others beside them."""
    disk = Disk()
    began = asyncio.get_running_loop().time()
    async with ToolBatch(writes("a", "a", "b", "a", "b", "c"), tools=disk.catalog) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert set(codes(snapshot).values()) == {"success"}
    assert disk.most == 3
    assert asyncio.get_running_loop().time() - began == 3
    assert sorted(disk.log) == ["a", "a", "a", "b", "b", "c"]


@turned
async def test_a_bound_on_places_holds_too() -> None:
    """B13, T8: two places, and a call that waits for its file takes none of them."""
    disk = Disk()
    async with ToolBatch(writes("a", "a", "b", "c"), tools=disk.catalog, max_concurrency=2) as batch:
        batch.start_all()
        assert set(codes(await batch.snapshot()).values()) == {"success"}
    assert disk.most == 2
    assert disk.log[:2] == ["a", "b"]


@turned
async def test_a_tool_that_runs_alone_runs_alone() -> None:
    """T8: also one that names resources."""
    disk = Disk(is_parallel=False)
    async with ToolBatch(writes("a", "b"), tools=disk.catalog) as batch:
        batch.start_all()
        assert set(codes(await batch.snapshot()).values()) == {"success"}
    assert disk.most == 1


@turned
async def test_tools_of_different_names_share_a_resource() -> None:
    """T8: it is the resource that counts, not the tool; fixed names too."""
    running: list[str] = []

    async def use() -> None:
        running.append("x")
        assert len(running) == 1
        await asyncio.sleep(1)
        running.clear()

    catalog = ToolCatalog([tool(name="one", resources=["db", "net"])(use), tool(name="two", resources=("db",))(use)])
    async with ToolBatch([ToolCall("a", "one"), ToolCall("b", "two")], tools=catalog) as batch:
        batch.start_all()
        assert set(codes(await batch.snapshot()).values()) == {"success"}


@turned
async def test_a_stuck_tool_keeps_its_file_for_a_while_only(caplog: pytest.LogCaptureFixture) -> None:
    """B6, T8: while a tool that was given up may still write, nobody else does, for as long as `teardown_timeout`; the log says so."""
    caplog.set_level(logging.WARNING)
    stubborn = Stubborn()
    loop = asyncio.get_running_loop()
    entered: list[float] = []

    async def second() -> None:
        entered.append(loop.time())

    catalog = ToolCatalog(
        [tool(name="one", resources=["f"], timeout=5)(stubborn), tool(name="two", resources=["f"])(second)]
    )
    began = loop.time()
    async with ToolSession(tools=catalog, teardown_timeout=3) as session:
        async with session.batch([ToolCall("a", "one"), ToolCall("b", "two")]) as batch:
            batch.start_all()
            assert codes(await batch.snapshot()) == {"a": "timeout", "b": "success"}
        assert entered == [began + 8]
        assert "['f'] are free" in caplog.text
        stubborn.release.set()
        await turn(3)


@turned
async def test_a_tool_that_ends_late_gives_its_file_free_at_once() -> None:
    """T8: the bound is only for those that never end; a later batch of the session waits likewise."""
    stubborn = Stubborn()
    loop = asyncio.get_running_loop()
    entered: list[float] = []

    async def second() -> None:
        entered.append(loop.time())

    catalog = ToolCatalog(
        [tool(name="one", resources=["f"], timeout=5)(stubborn), tool(name="two", resources=["f"])(second)]
    )
    began = loop.time()
    async with ToolSession(tools=catalog, teardown_timeout=100) as session:
        async with session.batch([ToolCall("a", "one")]) as batch:
            batch.start_all()
        loop.call_later(2, stubborn.release.set)
        async with session.batch([ToolCall("b", "two")]) as batch:
            batch.start_all()
            assert codes(await batch.snapshot()) == {"b": "success"}
    assert entered == [began + 7]


@turned
async def test_a_close_lets_go_of_what_was_locked() -> None:
    """T8: nothing stays locked behind a batch that was closed while calls held and awaited a file."""
    disk = Disk()
    async with ToolSession(tools=disk.catalog) as session:
        async with session.batch(writes("a", "a", "a")) as batch:
            batch.start_all()
            await turn(5)
            batch.close()
        disk.open.clear()
        async with session.batch(writes("a")) as batch:
            batch.start_all()
            assert codes(await batch.snapshot()) == {"0": "success"}


@pytest.mark.parametrize("resources", [lambda _: 1 / 0, lambda _: [1], lambda _: 5, lambda _: [None, "a"]])
def test_a_judge_of_resources_that_fails_means_alone(resources: Any) -> None:
    """T8: the careful answer."""
    made = tool(name="t", resources=resources)(lambda: None)
    prepared = prepare(ToolCall("a", "t"), {"t": made})
    assert getattr(prepared, "is_parallel", None) is False


@pytest.mark.parametrize("bad", ["path", 5, [1], object(), [None]])
def test_resources_are_names(bad: Any) -> None:
    """Bad input gets a clear error: a lone string is most likely meant as one name, and would be five."""
    with pytest.raises(InvalidTypeError, match="resources must be names"):
        tool(name="t", resources=bad)(lambda: None)
