"""LangChain: `AIMessage` in, `ToolMessage` out. For graphs there is `langgraph`.

    message = await model.ainvoke(messages)
    async with ToolBatch(langchain.calls(message), tools=tools) as batch:
        batch.start_all()
    langchain.extend(messages, message, batch.result, meta=batch.meta)

Shapes: LANES 10. LangChain is loaded by the functions that make its objects, and by nothing else.
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from toolbatch.batch.kit import Kind, kind_of, placed
from toolbatch.core import InvalidInputError, Snapshot, ToolCall, ToolError
from toolbatch.ports import LateNote
from toolbatch.providers.kit import (
    answers,
    exported,
    field,
    late_text,
    require_answered,
    require_choice,
    require_list,
    unused,
)
from toolbatch.tools import AnyTool, render_result

from ._langchain_messages import answer_message, blocks_of, is_ai, is_tool_message, mended, read_turn, used_ids

if TYPE_CHECKING:
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_core.tools import StructuredTool

__all__ = ["calls", "extend", "notes", "results", "structured_tool"]

_TAKEN: Final = ("callbacks", "config", "run_manager")  # what LangChain itself hands to every tool by name


def calls(response: object, *, expect: str | None = None) -> list[ToolCall]:
    """Return the calls that a message announces: `tool_calls`, then `invalid_tool_calls` (P1, LANES 10).

    A call that can't be run has a `problem` and is answered with it; none raises (P6). All calls of a message that was cut
    off are such calls: LangChain completes what is missing, so only the stop reason in `response_metadata` tells.

    Args:
        response: An `AIMessage`, a sum of `AIMessageChunk`s, or the `model_dump()` of one.
        expect: The tool that the request forced, to be checked before anything runs (P7).

    Raises:
        InvalidTypeError: `response` is none of these.
        ProviderMismatchError: The message does not call `expect`, or calls another tool.
    """
    return require_choice(read_turn(response).calls(), expect)


def results(snapshot: Snapshot, *, meta: Mapping[str, Any] | None = None) -> "list[ToolMessage]":
    """Return one `ToolMessage` a call, in the order of announcement (C16); failures have `status="error"` (P4).

    The content is the result's text or JSON, never a Python `repr`; parts are LangChain's standard content blocks (P5). The
    ids are the model's own, even where two calls share one; `extend` puts that right.

    Args:
        snapshot: The closed snapshot of the batch.
        meta: `batch.meta`: what tools say of their results to the host becomes the `artifact`, which no model is sent.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet.
    """
    told = meta or {}
    return [
        answer_message(call, call.wire_id or call.id, text, failed, parts, told.get(call.id))
        for call, text, failed, parts in exported(snapshot)
    ]


def extend(
    messages: list[Any], response: object, snapshot: Snapshot | None = None, *, meta: Mapping[str, Any] | None = None
) -> None:
    """Append the model's message and a `ToolMessage` for each of its calls to `messages`, and nothing else (P2).

    The message goes back as the same object unless something is wrong with it. Ids that are missing, repeated or used before
    in `messages` are ours on both sides; calls with malformed arguments move to `tool_calls` as `{"INVALID_JSON": text}`,
    since strict servers refuse them for ever otherwise; a chunk becomes an `AIMessage`.

    Args:
        messages: The conversation, of LangChain's messages. The model's are read for ids; nothing in it is changed.
        response: As in `calls`, but an object of LangChain's.
        snapshot: The closed snapshot of the batch made of that message's calls; a message without calls needs none.
        meta: As in `results`.

    Raises:
        InvalidTypeError: `messages` is not a list, `response` no message of the model's, or `snapshot` not made here.
        InvalidInputError: The snapshot is open, missing, or of other calls, or the last turn in `messages` has calls without
            a result. In every case the list is as it was.
    """
    history = require_list(messages)
    turn = read_turn(response)
    replies = answers(turn.calls(), snapshot)
    _require_answered(history)
    ids = unused([reply.call.id for reply in replies], used_ids(history))
    told = meta or {}
    message = mended(turn, replies, ids)
    history += [
        message,
        *[
            answer_message(reply.call, call_id, reply.text, reply.failed, reply.parts, told.get(reply.call.id))
            for reply, call_id in zip(replies, ids, strict=True)
        ],
    ]


def notes(late: Sequence[LateNote]) -> "list[HumanMessage]":
    """Return one user message that tells of late results, or `[]` where there are none (B20).

    Raises:
        InvalidTypeError: A note has no text.
    """
    from langchain_core.messages import HumanMessage

    text = late_text(late)
    return [] if text is None else [HumanMessage(content=text)]


def structured_tool(tool: AnyTool) -> "StructuredTool":
    """Return a tool as LangChain's, with the same name, description, schema and checks.

    It is for `bind_tools`, and for whoever else runs tools of LangChain's: `BatchToolNode` runs the `Tool` itself, with its
    timeout. The content is the rendered result; the artifact is what the tool's `meta` says of it. Arguments that don't fit
    are an answer for the model, with `status="error"`.

    Raises:
        InvalidInputError: A parameter has a name that LangChain gives to something of its own.
        InvalidTypeError: It is a method and misses its instance.
    """
    from langchain_core.tools import StructuredTool

    tool.require_bound()
    schema = tool.schema
    taken = sorted(set(_TAKEN) & set(schema.get("properties", {})))
    if taken:
        raise InvalidInputError(
            f"{tool.name} has a parameter {taken[0]!r}, a name under which LangChain gives tools something of its own; "
            "call it otherwise"
        )
    described: dict[str, Any] = {"name": tool.name, "description": tool.description, "args_schema": schema}
    shape: dict[str, Any] = {"response_format": "content_and_artifact", "handle_tool_error": True}
    if kind_of(placed(tool, None), has_arguments=True) is not Kind.THREAD:

        async def run_async(**arguments: Any) -> tuple[Any, Any]:
            args, kwargs = _bound(tool, arguments)
            return _shown(tool, await _awaited(placed(tool, arguments)(*args, **kwargs)))

        return StructuredTool(coroutine=run_async, **described, **shape)

    def run(**arguments: Any) -> tuple[Any, Any]:
        args, kwargs = _bound(tool, arguments)
        return _shown(tool, tool.fn(*args, **kwargs))

    return StructuredTool(func=run, **described, **shape)


def _bound(tool: AnyTool, arguments: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    from langchain_core.tools import ToolException

    try:
        return tool.bind(tool.validate(arguments))
    except ToolError as error:
        raise ToolException(error.message) from error


async def _awaited(started: Any) -> Any:
    if not inspect.isasyncgen(started):
        return await started
    last: Any = None
    async for item in started:  # as in a batch: the last item is the result
        last = item
    return last


def _shown(tool: AnyTool, value: Any) -> tuple[Any, Any]:
    rendered = render_result(tool, value)
    content = rendered.content
    return content if isinstance(content, str) else blocks_of(content, tool.name, ""), rendered.meta


def _require_answered(history: Sequence[object]) -> None:
    answered: list[object] = []
    for message in reversed(history):
        if is_ai(message):
            require_answered([call.wire_id or call.id for call in read_turn(message).calls()], answered)
            return
        if is_tool_message(message):
            answered.append(field(message, "tool_call_id"))
