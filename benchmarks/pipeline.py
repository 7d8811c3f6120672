"""What a call's stages cost: a typed tool, policies around it, an approval, a budget, each against a bare `ToolBatch`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from toolbatch import ToolBatch, ToolCall, ToolCatalog, tool
from toolbatch.output import OutputBudget
from toolbatch.ports import Approve
from toolbatch.providers import openai_chat
from toolbatch.tools import FixedApprovals, Interceptor, Prepared, Refused, ToolResult

from ._measure import LOOPS, Effort, compare, looped
from ._report import COLUMNS, Row, Table, cells
from ._sides import LIMITS, TIMEOUT, Messages, require_equal

__all__ = ["run"]

Proceed = Callable[[], Awaitable[Any]]


async def add(x: int, y: int = 1) -> str:
    """Add two numbers."""
    return str(x + y)


class Passes(Interceptor):
    """Stands around a tool in all three stages, and changes nothing."""

    async def before(self, call: Prepared | Refused, proceed: Proceed) -> Any:  # noqa: ARG002
        """Ask the next one."""
        return await proceed()

    async def around(self, call: Prepared, proceed: Proceed) -> Any:  # noqa: ARG002
        """Run the tool."""
        return await proceed()

    async def after(self, call: Prepared, result: ToolResult, proceed: Proceed) -> Any:  # noqa: ARG002
        """Ask the next one."""
        return await proceed()


TYPED = ToolCatalog([tool(add)])
ASKED = ToolCatalog([tool(add, needs_approval=True)])
STAGES: dict[str, dict[str, Any]] = {
    "plain function": {"tools": {"add": add}},
    "typed tool": {"tools": TYPED},
    "and one policy": {"tools": TYPED, "interceptors": [Passes()]},
    "and three": {"tools": TYPED, "interceptors": [Passes(), Passes(), Passes()]},
    "and an approval": {"tools": ASKED, "interceptors": [Passes()], "approvals": FixedApprovals(Approve())},
    "and a budget": {"tools": TYPED, "interceptors": [Passes()], "budget": OutputBudget(1000)},
}


def announce(count: int) -> list[ToolCall]:
    """Return calls as a lane reads them: arguments are text that was parsed once."""
    return [ToolCall(f"call_{number:06}", "add", '{"x":1,"y":2}') for number in range(count)]


async def bare(calls: list[ToolCall]) -> Messages:
    """Run a function for each call, started by hand."""
    async with ToolBatch(calls, call_timeout=TIMEOUT, limits=LIMITS) as batch:
        for call in batch.calls:
            batch.start(call.id, add, **call.arguments)
        snapshot = await batch.snapshot()
    return openai_chat.results(snapshot)


async def staged(calls: list[ToolCall], options: dict[str, Any]) -> Messages:
    """Run all calls through the stages that the options ask for."""
    async with ToolBatch(calls, call_timeout=TIMEOUT, limits=LIMITS, **options) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    return openai_chat.results(snapshot)


def run(effort: Effort) -> Table:
    """Measure each combination of stages on asyncio."""
    sizes = (8,) if effort.quick else (8, 64)
    rows = [_row(name, size, effort) for size in sizes for name in STAGES]
    return Table(
        "A call's stages",
        "Ours: `start_all` with what the row says. Theirs: a bare `ToolBatch`, `start` with a plain function for each call. A policy\n"
        "is an interceptor with all three stages that changes nothing. Times are of a batch.",
        "none of its own; the goal against other frameworks is in the peers' table",
        ("stages", "calls", *COLUMNS),
        rows,
    )


def _row(name: str, size: int, effort: Effort) -> Row:
    calls = announce(size)
    options = STAGES[name]

    async def ours(times: int) -> None:
        for _ in range(times):
            await staged(calls, options)

    async def theirs(times: int) -> None:
        for _ in range(times):
            await bare(calls)

    with asyncio.Runner(loop_factory=LOOPS["asyncio"]) as runner:
        require_equal(runner.run(staged(calls, options)), runner.run(bare(calls)))
        comparison = compare(looped(runner, ours), looped(runner, theirs), effort)
    return Row((name, f"{size:,}", *cells(comparison)), comparison.ratio, None)
