"""The read-back tool, wherever a budget has a store: a text that is put aside and can't be read again would be lost (G4)."""

import functools
from collections.abc import Mapping
from typing import Any

from toolbatch.core import BatchStateError
from toolbatch.output import READER_NAME, OutputBudget, make_reader
from toolbatch.ports import SpillRecord, SpillSlice, SpillStore
from toolbatch.tools import AnyTool, ToolCatalog, tool

from ._execution import current_execution

__all__ = ["mount", "reading_tool"]


class _StoreOfTheBatch:
    """The store of the batch whose tool is running here: one tool serves all, however many sessions share a catalog."""

    async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
        """Save a text."""
        return await _store().save(text, tool_name=tool_name, call_id=call_id)

    async def read(self, locator: str, *, offset: int, limit: int) -> SpillSlice | None:
        """Read a part of one."""
        return await _store().read(locator, offset=offset, limit=limit)


def _store() -> SpillStore:
    execution = current_execution.get(None)
    budget = None if execution is None else execution.engine.options.budget
    if budget is None or budget.store is None:
        raise BatchStateError(f"{READER_NAME} runs only in a batch whose budget has a store")
    return budget.store


@functools.cache
def reading_tool() -> AnyTool:
    """Return the tool; made when it is first needed, since that loads pydantic."""
    return tool(make_reader(_StoreOfTheBatch()), budget_exempt=True)


def mount(tools: Mapping[str, Any] | None, budget: OutputBudget | None) -> None:
    """Put the tool into a catalog, so that the next request declares it. A tool of that name that is there already stays."""
    if budget is not None and budget.store is not None and isinstance(tools, ToolCatalog) and READER_NAME not in tools:
        tools.register(reading_tool())
