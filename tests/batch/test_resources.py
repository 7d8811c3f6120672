"""T8: two calls that share a resource don't overlap, others do, and nobody is held up for ever."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.batch.clock import run, turned
from tests.batch.kit import Stubborn, codes, turn
from toolbatch import ToolBatch, ToolCall, ToolCatalog, ToolSession, tool
from toolbatch.core import InvalidTypeError
from toolbatch.ports import Approve
from toolbatch.tools import FixedApprovals, prepare


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


@dataclass(frozen=True)
class Use:
    """One call: what it uses, whether it runs alone or needs a person, for how long it runs, and when it is cancelled."""

    names: frozenset[str]
    is_alone: bool
    asks: bool
    seconds: int
    cancel_at: int | None


uses = st.builds(
    Use,
    st.frozensets(st.sampled_from("fgh"), max_size=2),
    st.booleans(),
    st.booleans(),
    st.integers(0, 3),
    st.one_of(st.none(), st.none(), st.integers(0, 6)),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(st.lists(uses, min_size=1, max_size=8), st.sampled_from([None, 1, 2]), st.booleans(), st.booleans())
def test_whoever_waits_gets_a_turn_and_nobody_overlaps(
    given_uses: list[Use], limit: int | None, superseded: bool, watched: bool
) -> None:
    """T8, B13: whatever waits for what: no resource is used twice, bounds hold, and in the end all have run or were cancelled."""
    run(_use(given_uses, limit, superseded=superseded, watched=watched))


async def _use(given_uses: list[Use], limit: int | None, *, superseded: bool, watched: bool) -> None:
    running: list[Use] = []
    loop = asyncio.get_running_loop()

    def made(number: int, use: Use) -> Any:
        async def work() -> None:
            assert not any(use.names & other.names for other in running)
            assert not running or not (use.is_alone or any(other.is_alone for other in running))
            running.append(use)
            assert limit is None or len(running) <= limit
            try:
                await asyncio.sleep(use.seconds)
            finally:
                running.remove(use)

        resources = sorted(use.names) or None
        return tool(name=f"t{number}", parallel=not use.is_alone, needs_approval=use.asks, resources=resources)(work)

    catalog = ToolCatalog([made(number, use) for number, use in enumerate(given_uses)])
    announced = [ToolCall(str(number), f"t{number}") for number in range(len(given_uses))]
    options: Any = {"on_event": lambda event: None} if watched else {}
    async with ToolSession(
        tools=catalog, max_concurrency=limit, approvals=FixedApprovals(Approve()), **options
    ) as session:
        if superseded:
            async with session.batch(announced) as older:
                older.start_all()
                await turn(4)
                async with session.batch([]):
                    pass
        async with session.batch(announced, timeout=100) as batch:
            batch.start_all()
            for number, use in enumerate(given_uses):
                if use.cancel_at is not None:
                    loop.call_later(use.cancel_at, batch.cancel, str(number))
            snapshot = await batch.snapshot()
        for call, use in zip(snapshot.calls, given_uses, strict=True):
            assert call.state == "success" or use.cancel_at is not None
        await turn(5)  # what was cancelled winds down
        assert running == []
        assert session._host.locked == set()
