"""Where a tool is run: what each backend costs a call, against what people write by hand for the same place."""

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from statistics import median
from typing import Any, Final

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from tests.backends import temporal
from toolbatch import ToolBatch, ToolCall, ToolCatalog, tool
from toolbatch.backends import LoopBackend, ProcessBackend, ThreadBackend
from toolbatch.ports import ExecutionBackend

from ._measure import LOOPS, Effort, compare, looped
from ._report import Row, Table
from ._sides import LIMITS, TIMEOUT

__all__ = ["add", "add_later", "run"]

WORKERS: Final = 2
ROUNDS: Final = 9
QUEUE: Final = "by-hand"


def add(a: int, b: int) -> int:
    """Add, as fast as a tool can."""
    return a + b


async def add_later(a: int, b: int) -> int:
    """Likewise, as a coroutine."""
    return a + b


@activity.defn(name="add")
async def add_there(a: int, b: int) -> int:
    """Likewise, as an activity."""
    return a + b


Place = AbstractAsyncContextManager[ToolCatalog]
"""Where tools run: inside of it there is a catalog of one tool, `add`."""


@asynccontextmanager
async def ours(backend: ExecutionBackend, fn: Callable[..., Any]) -> AsyncIterator[ToolCatalog]:
    """Run the tool in a backend."""
    async with backend:
        yield ToolCatalog([tool(fn, name="add", backend=backend)])


@asynccontextmanager
async def plain(fn: Callable[..., Any]) -> AsyncIterator[ToolCatalog]:
    """Run the tool where a batch runs it."""
    yield ToolCatalog([tool(fn, name="add")])


@asynccontextmanager
async def pooled() -> AsyncIterator[ToolCatalog]:
    """Run the tool in a pool of the standard library's, with the same kind of processes."""
    with ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn")) as pool:

        async def add_in_pool(a: int, b: int) -> int:
            return await asyncio.get_running_loop().run_in_executor(pool, add, a, b)

        yield ToolCatalog([tool(add_in_pool, name="add")])


@asynccontextmanager
async def on_temporal(address: str) -> AsyncIterator[ToolCatalog]:
    """Run the tool on a worker, in a backend."""
    async with AsyncExitStack() as stack:
        serving = temporal.serving(address, [tool(add_later, name="add")])
        client, queue = await stack.enter_async_context(serving)
        yield await stack.enter_async_context(ours(temporal.backend(client, queue), add_later))


@asynccontextmanager
async def by_activity(address: str) -> AsyncIterator[ToolCatalog]:
    """Run the tool on a worker, as an activity written by hand."""
    client = await Client.connect(address)
    numbers = iter(range(1_000_000))

    async def add_by_activity(a: int, b: int) -> int:
        name = f"{id(numbers)}-{next(numbers)}"
        bound = timedelta(seconds=30)
        handle = await client.start_activity(
            add_there, args=[a, b], id=name, task_queue=QUEUE, start_to_close_timeout=bound, heartbeat_timeout=bound
        )
        return await handle.result()

    async with Worker(client, task_queue=QUEUE, activities=[add_there]):
        yield ToolCatalog([tool(add_by_activity, name="add")])


def run(effort: Effort) -> Table:
    """Measure each backend, with one call in a batch and with many."""
    with ExitStack() as stack:
        address = stack.enter_context(temporal.running())
        places: dict[str, tuple[Callable[[], Place], Callable[[], Place]]] = {
            "loop": (lambda: ours(LoopBackend(), add_later), lambda: plain(add_later)),
            "thread": (lambda: ours(ThreadBackend(), add), lambda: plain(add)),
            "process": (lambda: ours(ProcessBackend(WORKERS, warm=WORKERS), add), pooled),
            "temporal": (partial(on_temporal, address), partial(by_activity, address)),
        }
        sizes = (2,) if effort.quick else (1, 16)
        rows = [_row(name, sides, size, effort) for name, sides in places.items() for size in sizes]
    return Table(
        "Where a tool runs",
        "Calls of a tool that adds two numbers, in a `ToolBatch` on asyncio. Ours: the tool has the backend. Theirs: for `loop` and\n"
        "`thread` the same tool without one; for `process` a coroutine that awaits the standard library's `ProcessPoolExecutor`\n"
        f"(spawned, {WORKERS} processes, as ours); for `temporal` one that starts an activity by hand and awaits it, on the same\n"
        "development server. Wall time is what counts, since the work is done elsewhere.",
        "none; this informs",
        ("backend", "calls", "ours, us a call", "theirs, us a call", "CPU ratio", "wall ratio"),
        rows,
    )


def _row(name: str, sides: tuple[Callable[[], Place], Callable[[], Place]], size: int, effort: Effort) -> Row:
    calls = [ToolCall(f"call_{number:06}", "add", {"a": number, "b": 1}) for number in range(size)]
    with asyncio.Runner(loop_factory=LOOPS["asyncio"]) as runner:
        entered = [side() for side in sides]
        catalogs = [runner.run(_entered(side)) for side in entered]
        try:
            our_side, their_side = (looped(runner, partial(_times, calls, catalog)) for catalog in catalogs)
            effort = effort._replace(sample=0.0, rounds=min(effort.rounds, ROUNDS))
            comparison = compare(our_side, their_side, effort)
        finally:
            for side in entered:
                runner.run(_left(side))
    per_call = [f"{median(times.wall) * 1e6 / size:,.0f}" for times in comparison]
    cells = (name, f"{size}", *per_call, f"{comparison.ratio:.2f}", f"{comparison.wall_ratio:.2f}")
    return Row(cells, comparison.wall_ratio, None)


async def _times(calls: list[ToolCall], catalog: ToolCatalog, times: int) -> None:
    for _ in range(times):
        async with ToolBatch(calls, tools=catalog, call_timeout=TIMEOUT, limits=LIMITS) as batch:
            batch.start_all()
            snapshot = await batch.snapshot()
        assert all(call.state == "success" for call in snapshot.calls), snapshot


async def _entered(place: Place) -> ToolCatalog:
    return await place.__aenter__()


async def _left(place: Place) -> None:
    await place.__aexit__(None, None, None)
