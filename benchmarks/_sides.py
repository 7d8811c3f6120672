"""The same turn twice: as toolbatch does it, and as people write it by hand. Both make the same messages."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from toolbatch import Limits, ToolBatch, ToolCall
from toolbatch.providers import openai_chat

__all__ = ["LIMITS", "TIMEOUT", "VALUE", "Messages", "announce", "by_hand", "no_op", "require_equal", "with_toolbatch"]

Messages = list[dict[str, Any]]

LIMITS: Final = Limits(max_calls=1_000_000)
TIMEOUT: Final = 30.0
VALUE: Final = ["done"]
"""What tools return. `json.dumps` without options, its fastest form, writes it just as toolbatch does."""


async def no_op() -> object:
    """Do nothing."""
    return VALUE


def announce(count: int) -> list[ToolCall]:
    """Return calls as a provider's lane reads them from a response."""
    return [ToolCall(f"call_{number:06}", "no_op", {}) for number in range(count)]


async def with_toolbatch(calls: Sequence[ToolCall], tool: Callable[..., Awaitable[object]] = no_op) -> Messages:
    """Run the calls in a `ToolBatch`, with a timeout for each."""
    async with ToolBatch(calls, call_timeout=TIMEOUT, limits=LIMITS) as batch:
        for call in batch.calls:
            batch.start(call.id, tool, **call.arguments)
        snapshot = await batch.snapshot()
    return openai_chat.results(snapshot)


async def by_hand(calls: Sequence[ToolCall], tool: Callable[..., Awaitable[object]] = no_op) -> Messages:
    """Run the calls in a task group, with a timeout for each; what fails is told to the model too."""
    texts: dict[str, str] = {}

    async def run(call: ToolCall) -> None:
        try:
            async with asyncio.timeout(TIMEOUT):
                value = await tool(**call.arguments)
            texts[call.id] = json.dumps(value)
        except TimeoutError:
            texts[call.id] = json.dumps({"error": {"code": "timeout", "message": "The tool timed out."}})
        except Exception as error:
            texts[call.id] = json.dumps({"error": {"code": "tool_error", "message": str(error)}})

    async with asyncio.TaskGroup() as group:
        for call in calls:
            group.create_task(run(call))
    return [{"role": "tool", "tool_call_id": call.id, "content": texts[call.id]} for call in calls]


def require_equal(ours: object, theirs: object) -> None:
    """Stop a benchmark whose sides do different things.

    Raises:
        AssertionError: They made different messages.
    """
    if ours != theirs:
        raise AssertionError(f"the two sides made different messages: {ours!r:.300} and {theirs!r:.300}")
