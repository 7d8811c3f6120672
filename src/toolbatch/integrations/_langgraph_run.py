"""Running one turn's tools inside a LangGraph node: what each is called with, what it gave, and what LangChain hears of it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, NoReturn

from langchain_core.messages import BaseMessage
from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import (
    get_async_callback_manager_for_config,
    get_callback_manager_for_config,
    patch_config,
    var_child_runnable_config,
)
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import Tool as SimpleTool
from langchain_core.tools.base import TOOL_MESSAGE_BLOCK_TYPES
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import GraphBubbleUp, is_invalid_resume
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from pydantic import ValidationError

from toolbatch.batch import current_call
from toolbatch.batch.kit import Kind, kind_of, placed
from toolbatch.core import Encoder, EncodingError, Snapshot, ToolCall, as_parts
from toolbatch.providers.kit import answers, exported, unused
from toolbatch.tools import AnyTool
from toolbatch.tools.kit import Problem, complaint, place, required, shown

from ._langchain_messages import answer_message, blocks_of, mended, used_ids
from ._langgraph_turn import Given, Reply, read_response
from ._runner import unshowable

__all__ = ["Seized", "SeizedError", "Turn", "in_langchain", "in_toolbatch", "seize", "with_json"]

Seized = tuple[Any, RunnableConfig] | Exception
"""What a call of a LangChain tool is invoked with, or why that can't be made."""


class SeizedError(Exception):
    """Carries what `ToolNode` would call a tool with, out of it before it does."""

    def __init__(self, arguments: Any, config: RunnableConfig) -> None:
        super().__init__("the tool's arguments were seized")
        self.arguments = arguments
        self.config = config


class _Probe(BaseTool):
    """Stands in for a tool until its arguments are known."""

    name: str = "toolbatch_probe"
    description: str = ""

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> NoReturn:  # noqa: A002, ARG002  LangChain's
        raise SeizedError(input, config or {})

    def _run(self) -> NoReturn:
        raise AssertionError("a probe is never run")


_probe = _Probe()


async def seize(request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Any]]) -> Any:
    """Let `ToolNode` inject what a tool asks for, and raise `SeizedError` in the tool's place (its `awrap_tool_call`)."""
    return await execute(request.override(tool=_probe))


class Turn:
    """One run of a node.

    Attributes:
        given: What the node was invoked with.
        config: The node's configuration.
        ids: Each call's id in the graph's messages, by its id in the batch.
        seized: What each call of a LangChain tool is run with, by the call's id; an error where that can't be made.
        replies: What LangChain's tools gave, by the call's id.
        bubble: The first exception of LangGraph's own that a tool has raised.
    """

    def __init__(self, given: Given, config: RunnableConfig, messages_key: str) -> None:
        self.given = given
        self.config = config
        self.ids = _ids(given)
        self.seized: dict[str, Seized] = {}
        self.replies: dict[str, Reply] = {}
        self.bubble: BaseException | None = None
        self._messages_key = messages_key

    @property
    def run_id(self) -> str | None:
        """What idempotency keys are unique in: the thread and the node's task, which are the same when LangGraph runs it again."""
        thread = self.config.get("configurable", {}).get("thread_id")
        task = self.config.get("metadata", {}).get("langgraph_checkpoint_ns")
        return f"{thread}/{task}" if thread and task else None

    def payload(self, call: ToolCall) -> Any:
        """Return the input for a `ToolNode` of this one call."""
        one = {"name": call.name, "args": dict(call.arguments), "id": self.ids[call.id], "type": "tool_call"}
        if self.given.kind == "tool_calls" and self.given.state is None:
            return [one]
        return {"__type": "tool_call_with_context", "tool_call": one, "state": self.given.state}

    def arguments(self, call_id: str) -> tuple[Any, RunnableConfig]:
        """Return what to invoke a call's tool with.

        Raises:
            Exception: What kept `ToolNode` from making it, such as a field that the graph's state does not have.
        """
        seized = self.seized[call_id]
        if isinstance(seized, Exception):
            raise seized
        return seized

    def take(self, response: Any) -> Any:
        """Keep what the tool of the running call gave, and return what the batch is told.

        Raises:
            TypeError: It can't be a tool's response.
            ValueError: It has no answer to the call, or two.
            ToolError: There is something in it that has no JSON form.
        """
        running = current_call()
        call_id = running.call_id
        try:
            reply = read_response(response, self.ids[call_id], running.name, self.given, self._messages_key)
        except EncodingError as error:
            raise unshowable(running.name, error) from error
        self.replies[call_id] = reply
        if reply.failed:
            running.report_failure("The tool returned a ToolMessage whose status is error.")
        return reply.value

    def failure(self, error: Exception, tool: BaseTool) -> Exception:
        """Return what the batch is told of a LangChain tool that raised; keep what is LangGraph's."""
        self.keep(error)
        return _complaint(error, tool, current_call().call) if isinstance(error, ValidationError) else error

    def keep(self, error: Exception) -> None:
        """Keep what a tool raised if it is LangGraph's: the node ends with it, unless the call had its answer before."""
        if (isinstance(error, GraphBubbleUp) or is_invalid_resume(error)) and not current_call().is_cancelled:
            self.bubble = self.bubble or error

    def outputs(self, result: Snapshot, meta: dict[str, Any]) -> list[BaseMessage | Command[Any]]:
        """Return the node's outputs: the model's message where it had to be mended, then each call's own, in order."""
        outputs: list[BaseMessage | Command[Any]] = list(self._mended(result))
        for call, text, failed, parts in exported(result):
            reply = None if failed else self.replies.get(call.id)
            if reply is not None and reply.stands(text, parts):
                outputs += reply.outputs
            else:
                outputs.append(answer_message(call, self.ids[call.id], text, failed, parts, meta.get(call.id)))
        return outputs

    def messages(self, result: Snapshot, meta: dict[str, Any]) -> list[BaseMessage]:
        """Return the same as messages alone: of a command, the answer in it."""
        rows = list(self._mended(result))
        for call, text, failed, parts in exported(result):
            reply = None if failed else self.replies.get(call.id)
            answer = reply.answer if reply is not None and reply.stands(text, parts) else None
            rows.append(answer or answer_message(call, self.ids[call.id], text, failed, parts, meta.get(call.id)))
        return rows

    def _mended(self, result: Snapshot) -> Sequence[BaseMessage]:
        if not self.given.is_whole:
            return ()
        replies = answers(self.given.calls, result)
        message = mended(self.given.turn, replies, [self.ids[reply.call.id] for reply in replies])
        return () if message is self.given.turn.source else (message,)


def _ids(given: Given) -> dict[str, str]:
    own = [call.id for call in given.calls]
    if given.is_whole:
        return dict(zip(own, unused(own, used_ids(given.earlier)), strict=True))
    return {call.id: call.wire_id or call.id for call in given.calls}


def _complaint(error: ValidationError, tool: BaseTool, call: ToolCall) -> Exception:
    """Return what the model reads of arguments that a LangChain tool refuses: nothing of what was injected is in it."""
    schema = convert_to_openai_tool(tool)["function"].get("parameters", {})
    known = schema.get("properties", {})
    problems = []
    for detail in error.errors(include_url=False, include_context=False):
        path = detail["loc"]
        if path and path[0] not in known and path[0] not in call.arguments:
            continue  # injected, so no concern of the model's
        if detail["type"] == "missing" and len(path) == 1:
            problems.append(required(schema, str(path[0])))
        else:
            problems.append(
                Problem(place(path), detail["msg"], "" if detail["type"] == "missing" else shown(detail["input"]))
            )
    return complaint(call.name, call.arguments, problems, schema)


# -- LangChain's tools -----------------------------------------------------------------------------------------------------


def with_json(tool: BaseTool, encode: Encoder) -> BaseTool:
    """Return a tool whose results are JSON where LangChain would fall back on Python's `repr`.

    Only tools made of a function can be changed so; one that is a class of its own keeps LangChain's way.
    """
    if not isinstance(tool, StructuredTool | SimpleTool):
        return tool
    has_artifact = tool.response_format == "content_and_artifact"

    def shown(value: Any) -> Any:
        if has_artifact and isinstance(value, tuple) and len(value) == 2:
            return _content(value[0], tool.name, encode), value[1]
        return _content(value, tool.name, encode)

    changes: dict[str, Any] = {}
    func, coroutine = tool.func, tool.coroutine
    if func is not None:

        @wraps(func)
        def run(*args: Any, **kwargs: Any) -> Any:
            return shown(func(*args, **kwargs))

        changes["func"] = run
    if coroutine is not None:

        @wraps(coroutine)
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            return shown(await coroutine(*args, **kwargs))

        changes["coroutine"] = run_async
    return tool.model_copy(update=changes)


def _content(value: Any, name: str, encode: Encoder) -> Any:
    """Return what LangChain will take for a message's content as it is: text, blocks, messages and commands."""
    if isinstance(value, str | ToolOutputMixin) or (isinstance(value, list) and all(map(_is_output, value))):
        return value
    try:
        parts = as_parts(value)
        return encode(value) if parts is None else blocks_of(parts, name, current_call().call_id)
    except Exception as error:
        raise unshowable(name, error) from error


def _is_output(item: Any) -> bool:
    if isinstance(item, dict):
        return item.get("type") in TOOL_MESSAGE_BLOCK_TYPES
    return isinstance(item, str | ToolOutputMixin)


def in_langchain(tool: BaseTool, turn: Turn) -> Callable[..., Any]:
    """Return the function that runs a tool of LangChain's for the call that is running.

    One without a coroutine of its own is run in our thread, not in an executor's: that could not be left (B9).
    """
    if _is_synchronous(tool):

        def run(**_: Any) -> Any:
            try:
                return turn.take(tool.invoke(*turn.arguments(current_call().call_id)))
            except Exception as error:
                raise turn.failure(error, tool) from error

        return run

    async def run_async(**_: Any) -> Any:
        try:
            return turn.take(await tool.ainvoke(*turn.arguments(current_call().call_id)))
        except Exception as error:
            raise turn.failure(error, tool) from error

    return run_async


def _is_synchronous(tool: BaseTool) -> bool:
    if isinstance(tool, StructuredTool | SimpleTool):
        return tool.coroutine is None
    return type(tool)._arun is BaseTool._arun and type(tool).ainvoke is BaseTool.ainvoke


# -- toolbatch's tools -----------------------------------------------------------------------------------------------------


def in_toolbatch(tool: AnyTool, turn: Turn) -> AnyTool:
    """Return a tool whose runs LangChain's callbacks hear of, as they do of its own tools, and whose interrupts are kept."""
    kind = kind_of(placed(tool, None), has_arguments=True)
    if kind is Kind.THREAD:
        return replace(tool, fn=_told_in_thread(tool, turn))
    if kind is Kind.GENERATOR:
        return replace(tool, fn=_told_by_item(tool, turn))
    return replace(tool, fn=_told(tool, turn), backend=None)  # which the function has run it


def _start(tool: AnyTool) -> tuple[dict[str, Any], str, dict[str, Any]]:
    call = current_call().call
    more = {"name": tool.name, "inputs": dict(call.arguments), "tool_call_id": call.id}
    return {"name": tool.name, "description": tool.description}, str(call.arguments), more


def _told_in_thread(tool: AnyTool, turn: Turn) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        serialized, text, more = _start(tool)
        told = get_callback_manager_for_config(turn.config).on_tool_start(serialized, text, **more)
        var_child_runnable_config.set(patch_config(turn.config, callbacks=told.get_child()))
        try:
            value = tool.fn(*args, **kwargs)
        except Exception as error:
            turn.keep(error)
            told.on_tool_error(error)
            raise
        told.on_tool_end(value)
        return value

    return run


def _told(tool: AnyTool, turn: Turn) -> Callable[..., Any]:
    async def run(*args: Any, **kwargs: Any) -> Any:
        serialized, text, more = _start(tool)
        told = await get_async_callback_manager_for_config(turn.config).on_tool_start(serialized, text, **more)
        var_child_runnable_config.set(patch_config(turn.config, callbacks=told.get_child()))
        try:
            value = await placed(tool, current_call().call.arguments)(*args, **kwargs)
        except Exception as error:
            turn.keep(error)
            await told.on_tool_error(error)
            raise
        await told.on_tool_end(value)
        return value

    return run


def _told_by_item(tool: AnyTool, turn: Turn) -> Callable[..., Any]:
    async def run(*args: Any, **kwargs: Any) -> Any:
        serialized, text, more = _start(tool)
        told = await get_async_callback_manager_for_config(turn.config).on_tool_start(serialized, text, **more)
        var_child_runnable_config.set(patch_config(turn.config, callbacks=told.get_child()))
        items, last = tool.fn(*args, **kwargs), None
        try:
            async for item in items:
                last = item
                yield item
        except Exception as error:
            turn.keep(error)
            await told.on_tool_error(error)
            raise
        finally:
            await items.aclose()
        await told.on_tool_end(last)

    return run
