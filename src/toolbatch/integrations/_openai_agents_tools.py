"""Function tools of the Agents SDK, each of whose calls is a batch."""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Unpack

from agents import (
    AgentsException,
    FunctionTool,
    FunctionToolCustomDataContext,
    RunContextWrapper,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents import Tool as AgentTool
from agents.tool import ValidToolOutputPydanticModelsTypeAdapter
from agents.tool_context import ToolContext
from pydantic import ValidationError

from toolbatch.batch import ToolBatch
from toolbatch.core import (
    Cancelled,
    Encoder,
    Failed,
    InvalidInputError,
    InvalidTypeError,
    Settlement,
    ToolCall,
    encode,
    preview,
)
from toolbatch.ports import AuditSink
from toolbatch.providers import openai_responses
from toolbatch.providers.kit import failure_text
from toolbatch.tools import AnyTool, Refused, Tool, ToolCatalog, prepare

from ._runner import CallOptions, Runner, only_settlement, result_of, unshowable

__all__ = ["batched", "custom_data"]

_INPUT: Final = "input_"
_MAX_META: Final = 1000  # calls whose custom data the SDK has not asked for


def batched(
    tools: Iterable[FunctionTool | AnyTool], *, audit_sinks: Iterable[AuditSink] = (), **options: Unpack[CallOptions]
) -> list[AgentTool]:
    """Return tools whose calls run through batches, for `Agent(tools=...)`.

    A tool that raises, times out or will not stop is an answer for the model, as JSON; nothing of it ends the run or its siblings.
    A value is sent as JSON, where the SDK would send Python's `repr` of it; structured outputs stay what they are. A tool's
    `timeout_seconds` becomes the batch's bound, which holds against a tool that swallows its cancellation, unless the tool has a
    `timeout_error_function` or a `timeout_behavior` of its own. A `failure_error_function` keeps its word: what it returns is the
    tool's result. Exceptions of the SDK itself pass through.

    A synchronous function of the SDK runs in a thread of the SDK's: when it is cut off, the wait for it ends, and nobody knows when
    the thread does. Make it a `Tool` of toolbatch's to have that known.

    Args:
        tools: The SDK's `FunctionTool`s, which are copied, and toolbatch's `Tool`s, with their own timeout, rendering, and `meta`
            (which becomes the output item's `custom_data`). What needs an approval asks for it in the SDK's way.
        audit_sinks: Who is handed each late result as it comes (B7).
        **options: Options of every `ToolBatch`. Durable operations need `RunConfig(group_id=...)`, which names the run, and tools with
            `failure_error_function=None`: what such a function returns counts as the operation's result.

    Raises:
        InvalidInputError: An option can't be used, or a tool has an output schema, which no failure can satisfy.
        InvalidTypeError: One is neither kind of tool, or an option is of a wrong type.
    """
    runner = Runner(audit_sinks, options, named_by="RunConfig(group_id=...)")
    encoder = options.get("encode", encode)
    made: list[AgentTool] = []  # as `Agent` takes them: to type checkers a list of the narrower kind is no such list
    for tool in tools:
        if isinstance(tool, Tool):
            made.append(_of_ours(tool, runner))
        elif isinstance(tool, FunctionTool):
            made.append(_of_theirs(tool, runner, encoder))
        else:
            raise InvalidTypeError(f"a tool must be a FunctionTool or a Tool, not {preview(tool)}")
    return made


def custom_data(meta: Any) -> dict[str, Any] | None:
    """Return what a tool's `meta` says as the SDK's custom data, which is a mapping."""
    return None if meta is None else dict(meta) if isinstance(meta, Mapping) else {"meta": meta}


def _announced(context: ToolContext[Any], arguments: str) -> ToolCall:
    if context.tool_call is None:
        return ToolCall(context.tool_call_id, context.tool_name, arguments)
    (call,) = openai_responses.calls([context.tool_call])
    return call


def _batch(runner: Runner, context: ToolContext[Any], call: ToolCall, **more: Any) -> ToolBatch:
    group = None if context.run_config is None else context.run_config.group_id
    return runner.batch([call], run_id=group or None, **more)


# -- the SDK's tools -------------------------------------------------------------------------------------------------------


def _of_theirs(tool: FunctionTool, runner: Runner, encoder: Encoder) -> FunctionTool:
    if tool.output_json_schema is not None:
        raise InvalidInputError(
            f"{tool.name} has an output schema, which the SDK holds every output to, so no failure of it could be told; leave it out"
        )
    made = copy.copy(tool)
    bound = tool.timeout_seconds
    if bound is not None and tool.timeout_behavior == "error_as_result" and tool.timeout_error_function is None:
        made.timeout_seconds = None
    else:
        bound = None

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        call = _announced(context, arguments)
        one = _OneCall(tool, context, arguments, encoder)
        batch = _batch(runner, context, call)
        async with batch:
            if batch.calls:
                batch.start(call.id, one.run, timeout=bound)
        return one.answer(only_settlement(batch))

    made.on_invoke_tool = invoke
    return made


class _OneCall:
    """One call of a tool of the SDK's: what the tool gave, beside what the batch was told of it."""

    def __init__(self, tool: FunctionTool, context: ToolContext[Any], arguments: str, encoder: Encoder) -> None:
        self._tool = tool
        self._context = context
        self._arguments = arguments
        self._encode = encoder
        self._value: Any = None  # what the SDK gets
        self._shown = ""  # what the batch was told
        self._passing: AgentsException | None = None

    async def run(self) -> str:
        """Run the tool, and return what the model will read, for the batch to judge."""
        try:
            value = await self._tool.on_invoke_tool(self._context, self._arguments)
        except AgentsException as error:
            self._passing = error
            raise
        if isinstance(value, str):
            self._value = self._shown = value
            return value
        try:
            self._shown = self._encode(value)
        except Exception as error:
            raise unshowable(self._tool.name, error) from error
        self._value = value if _is_structured(value) else self._shown
        return self._shown

    def answer(self, settlement: Settlement) -> Any:
        """Return or raise what the SDK makes the call's output of."""
        if self._passing is not None and isinstance(settlement, Failed | Cancelled) and settlement.code != "denied":
            raise self._passing
        if settlement.content is None:
            return failure_text(settlement)
        # An interceptor or a budget may have made something else of it; then nothing of the tool's own leaves (T6).
        return self._value if settlement.content == self._shown else settlement.content


def _is_structured(value: Any) -> bool:
    """Whether the SDK will send a value as content of its own; of all else it would send Python's `str`."""
    items = value if isinstance(value, list | tuple) and value else [value]
    return all(map(_is_content, items))


def _is_content(item: Any) -> bool:
    if isinstance(item, dict) and "type" in item:
        try:
            ValidToolOutputPydanticModelsTypeAdapter.validate_python(item)
        except ValidationError:
            return False
        return True
    return isinstance(item, ToolOutputText | ToolOutputImage | ToolOutputFileContent)


# -- toolbatch's tools -----------------------------------------------------------------------------------------------------


def _of_ours(tool: AnyTool, runner: Runner) -> FunctionTool:
    (declared,) = ToolCatalog([tool]).schemas("openai_responses")
    run_by_us = {tool.name: tool.replace(needs_approval=False)}  # the SDK has asked before it comes here
    told: dict[str, Any] = {}

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        call = _announced(context, arguments)
        batch = _batch(runner, context, call, tools=run_by_us)
        async with batch:
            batch.start_all()
        settlement = only_settlement(batch)
        if call.id in batch.meta:
            if len(told) >= _MAX_META:
                told.pop(next(iter(told)))
            told[context.tool_call_id] = batch.meta[call.id]
        if settlement.parts is None:
            return failure_text(settlement) if settlement.content is None else settlement.content
        (item,) = openai_responses.results(result_of(batch))
        return item["output"] if isinstance(item["output"], str) else [_output(entry) for entry in item["output"]]

    def extract(context: FunctionToolCustomDataContext) -> Mapping[str, Any] | None:
        return custom_data(told.pop(context.tool_context.tool_call_id, None))

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=declared["parameters"],
        on_invoke_tool=invoke,
        strict_json_schema=declared["strict"],
        needs_approval=_approval(tool),
        custom_data_extractor=extract,
    )


def _approval(tool: AnyTool) -> bool | Callable[[RunContextWrapper[Any], dict[str, Any], str], Any]:
    if isinstance(tool.needs_approval, bool):
        return tool.needs_approval

    async def needs(_context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        prepared = prepare(ToolCall(call_id, tool.name, arguments), {tool.name: tool})
        return not isinstance(prepared, Refused) and prepared.needs_approval  # what is refused runs nothing

    return needs


def _output(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input item of the API as what a tool returns in the SDK: the same under a shorter name."""
    return {**entry, "type": str(entry["type"]).removeprefix(_INPUT)}
