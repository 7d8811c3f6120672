"""toolbatch's own tools as a toolset of pydantic-ai's."""

import asyncio
import inspect
from collections.abc import Iterable, Mapping
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Final

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.exceptions import ApprovalRequired, ModelRetry
from pydantic_ai.messages import ToolReturn
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from toolbatch.batch.kit import Kind, kind_of, placed
from toolbatch.core import ToolCall, ToolError
from toolbatch.tools import AnyTool, Refused, ToolCatalog, prepare, render_result

from ._pydantic_ai_messages import content_of
from ._threads import CallThreads

__all__ = ["OwnTools", "threads_of_call"]

threads_of_call: Final[ContextVar[CallThreads]] = ContextVar("toolbatch_threads_of_call")
"""Where the synchronous functions of the call that is running here are run."""


class OwnTools(AbstractToolset[Any]):
    """A catalog's tools. Arguments are checked by the tool itself, and refused in pydantic-ai's way: the model tries again."""

    def __init__(self, tools: Iterable[AnyTool]) -> None:
        self.tools = ToolCatalog(tools)

    @property
    def id(self) -> str | None:
        """No id: pydantic-ai wants one for durable runs only."""
        return None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools, with the run's default for how often a model may try again."""
        retries = ctx.max_retries
        return {name: self._declared(tool, retries) for name, tool in self.tools.items()}

    def _declared(self, tool: AnyTool, max_retries: int) -> ToolsetTool[Any]:
        definition = ToolDefinition(
            name=tool.name,
            description=tool.description or None,
            parameters_json_schema=tool.schema,
            strict=tool.strict or None,
            sequential=tool.parallel is False,
        )
        checker = _Checker(tool)
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=max_retries, args_validator=checker)

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],  # noqa: ARG002  the framework's
    ) -> Any:
        """Run a tool, and return what it rendered, with what its `meta` says as the metadata.

        Raises:
            ApprovalRequired: It needs an approval, and has none.
        """
        found = self.tools[name]
        needs_approval: object = found.needs_approval
        if not isinstance(needs_approval, bool):
            prepared = prepare(ToolCall(ctx.tool_call_id or name, name, tool_args), self.tools)
            needs_approval = isinstance(prepared, Refused) or prepared.needs_approval
        if needs_approval and not ctx.tool_call_approved:
            raise ApprovalRequired
        args, kwargs = found.bind(tool_args)
        value = await _run(found, args, kwargs)
        rendered = render_result(found, value)
        shown: Any = rendered.content
        if not isinstance(shown, str):
            shown = content_of(shown)
        elif found.render is None:
            shown = value  # data stays data in pydantic-ai's history; it writes the JSON itself
        return ToolReturn(return_value=shown, metadata=rendered.meta)


class _Checker:
    """Checks a tool's arguments where pydantic-ai would ask pydantic."""

    def __init__(self, tool: AnyTool) -> None:
        self._tool = tool

    def validate_json(self, input: str | bytes | bytearray, **_: Any) -> Any:  # noqa: A002  pydantic's name
        text = input if isinstance(input, str) else bytes(input).decode(errors="replace")
        call = ToolCall("", self._tool.name, text)
        if call.problem is not None:
            raise ModelRetry(call.problem.message)
        return self.validate_python(call.arguments)

    def validate_python(self, input: Any, **_: Any) -> Any:  # noqa: A002  pydantic's name
        try:
            return self._tool.validate(input if isinstance(input, Mapping) else {})
        except ToolError as error:
            raise ModelRetry(error.message) from error


async def _run(tool: AnyTool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    fn = placed(tool, None)
    kind = kind_of(fn, has_arguments=True)
    if kind is Kind.GENERATOR:
        last: Any = None
        async for item in fn(*args, **kwargs):  # its last item is the result, as in a batch
            last = item
        return last
    if kind is Kind.THREAD:
        run = partial(copy_context().run, fn, *args, **kwargs)
        value = await asyncio.get_running_loop().run_in_executor(threads_of_call.get(None) or CallThreads(), run)
        return await value if inspect.isawaitable(value) else value
    return await fn(*args, **kwargs)
