"""What the tests of the stages share: interceptors that do what a function says, and a short way to run one call."""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.batch.kit import check_batch
from toolbatch import Snapshot, ToolBatch, ToolCall
from toolbatch.tools import Decision, Interceptor, Prepared, Refused, ToolResult, Verdict

Proceed = Callable[[], Awaitable[Any]]


class Around(Interceptor):
    """Does what a function says around the tool."""

    def __init__(self, fn: Callable[[Proceed], Awaitable[Any]]) -> None:
        self._fn = fn

    async def around(self, call: Prepared, proceed: Proceed) -> Any:
        return await self._fn(proceed)


class Before(Interceptor):
    """Does what a function says before the tool."""

    def __init__(self, fn: Callable[[], Awaitable[Decision]]) -> None:
        self._fn = fn

    async def before(self, call: Prepared | Refused, proceed: Callable[[], Awaitable[Decision]]) -> Decision:
        return await self._fn()


class After(Interceptor):
    """Does what a function says after the tool."""

    def __init__(self, fn: Callable[[ToolResult], Awaitable[Verdict]]) -> None:
        self._fn = fn

    async def after(self, call: Prepared, result: ToolResult, proceed: Callable[[], Awaitable[Verdict]]) -> Verdict:
        return await self._fn(result)


async def passes(proceed: Proceed) -> Any:
    """Change nothing."""
    return await proceed()


def decides(decision: Decision) -> Before:
    """A policy that says the same of every call."""

    async def decide() -> Decision:
        return decision

    return Before(decide)


def judges(verdict: Verdict) -> After:
    """A policy that says the same of every result."""

    async def judge(_: ToolResult) -> Verdict:
        return verdict

    return After(judge)


def one(arguments: Any = None) -> list[ToolCall]:
    """One call, `a`, of the tool `t`."""
    return [ToolCall("a", "t", arguments)]


async def run_one(fn: Any, *interceptors: Interceptor, arguments: Any = None, **options: Any) -> ToolBatch:
    """Run one call of one tool or function to its end, check what holds of every batch, and return the batch."""
    async with ToolBatch(one(arguments), tools={"t": fn}, interceptors=interceptors, **options) as batch:
        batch.start_all()
        await batch.snapshot()
    check_batch(batch, ["a"])
    return batch


async def answer(fn: Any, *interceptors: Interceptor, arguments: Any = None, **options: Any) -> Snapshot:
    """Run one call, and return the snapshot."""
    batch = await run_one(fn, *interceptors, arguments=arguments, **options)
    assert batch.result is not None
    return batch.result
