"""MCP: the calls that a client sends to a server, and those that a model makes in a server's sampling.

A server answers `tools/call`. There is no conversation, so nothing to extend: the results are the answers.

    (call,) = mcp.calls(request)
    async with ToolBatch([call], tools=tools) as batch: ...
    (result,) = mcp.results(batch.result)  # the JSON of a CallToolResult

A server that samples (`sampling/createMessage` with tools) runs the tools itself, and samples again with the turn appended:

    calls = mcp.calls(created)
    async with ToolBatch(calls, tools=tools) as batch: ...
    mcp.extend(messages, created, batch.result)

Shapes: the MCP schema, in the wire's camelCase (`mcp_types/_types.py`). Failures have `isError`, and their text says more (P4).
A tool that there isn't is such a failure too; a server that answers it with a JSON-RPC error looks before it runs a batch.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolbatch.core import CallProblem, InvalidTypeError, Json, Part, Snapshot, ToolCall, preview
from toolbatch.ports import LateNote

from ._content import in_blocks, place
from ._data import data_of
from ._export import Answer, answers, exported, late_text, require_list
from ._ids import IdRule, unused
from ._mcp_blocks import CARRIES, CONTENT, text_content, wire_block
from ._plain import OBJECT, field, items
from ._read import TOKEN_LIMIT, Draft, Turn, cut_off, no_response, not_requested, require_choice
from ._replay import arguments_object, replay_name
from ._tail import require_answered

__all__ = ["CARRIES", "calls", "extend", "notes", "results"]

_LANE: Final = "mcp"
_IDS: Final = IdRule()
_MAX_NAME: Final = 128  # "Tool names SHOULD be between 1 and 128 characters" (SEP-986)
_METHOD: Final = "tools/call"
_ASKS: Final = ("toolUse", "tool_use", "tool_calls")  # the latter from clients that hand on what their provider said
_CUT_OFF: Final[Mapping[str, CallProblem]] = {
    "maxTokens": TOKEN_LIMIT,
    "stopSequence": cut_off("the response was cut off at a stop sequence, so the input may be incomplete"),
}


def calls(response: object, *, expect: str | None = None) -> list[ToolCall]:
    """Return the calls of a request, of several requests, or of a sampled message, in their order (P1).

    A request's call is known by its JSON-RPC id, as text; bare params have none, so its id is ours. A call that can't be run
    has a `problem` and is answered with it; none raises (P6). All calls of a sampled message whose `stopReason` is there and
    is not `toolUse` are such calls.

    Args:
        response: A `CallToolRequest`, its params, a JSON-RPC `tools/call` request, or a list of these; or a
            `CreateMessageResultWithTools` or an assistant's `SamplingMessage`. The SDK's object, its `model_dump()`, or the
            wire's JSON.
        expect: The tool that `toolChoice` forced, to be checked before anything runs (P7).

    Raises:
        InvalidTypeError: `response` is none of these.
        ProviderMismatchError: The message does not call `expect`, or calls another tool.
    """
    return require_choice(_read(response).calls(), expect)


def results(snapshot: Snapshot) -> list[Any]:
    """Return one result a call, in the order of announcement (C16).

    For a request it is a `CallToolResult`: `content`, `structuredContent`, `isError`, `resultType`. It has no id: the first
    answers the first request. For a sampled call it is a `tool_result` block with the provider's own id as `toolUseId`.

    `structuredContent` is there where the tool answered with a JSON object, the only kind that all revisions allow, and
    with nothing beside it but text and media. The same object stands in the content as text, for clients that read only that.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet.
    """
    return [
        _result(call, call.wire_id or call.id, text, parts, failed=failed)
        for call, text, failed, parts in exported(snapshot)
    ]


def extend(messages: list[Any], response: object, snapshot: Snapshot | None = None) -> None:
    """Append a sampled message and the user message with its results to `messages`, and nothing else (P2).

    Blocks go back as they came, under the wire's names; a message with results has nothing else in it, as the protocol
    demands. Ids that are missing, repeated, or used before in `messages` are ours on both sides: the model behind the client
    may want them unique over the whole request. Input that is no JSON object becomes one, `{"INVALID_JSON": text}`.

    Args:
        messages: The conversation, of dicts or the SDK's `SamplingMessage`s. It is read for ids; nothing in it is changed.
        response: As in `calls`, but not a request: that is answered with `results`.
        snapshot: The closed snapshot of the batch made of that message's calls; a message without calls needs none.

    Raises:
        InvalidTypeError: `messages` is not a list, `response` no sampled message, or `snapshot` not made here.
        InvalidInputError: The snapshot is open, missing, or of other calls, or the last turn in `messages` has calls without
            a result. In every case the list is as it was.
    """
    history = require_list(messages)
    if _requests(response) is not None:
        raise InvalidTypeError(
            f"{preview(response)} is a tools/call request, which has no conversation: answer it with results(snapshot)"
        )
    turn = _read(response)
    replies = answers(turn.calls(), snapshot)
    _require_answered(history)
    ids = unused([answer.call.id for answer in replies], _used_ids(history))
    new: list[dict[str, Any]] = [{"role": "assistant", "content": _content(turn.source, replies, ids)}]
    if replies:
        blocks = [
            _result(answer.call, call_id, answer.text, answer.parts, failed=answer.failed)
            for answer, call_id in zip(replies, ids, strict=True)
        ]
        new.append({"role": "user", "content": blocks})
    history += new


def notes(late: Sequence[LateNote]) -> list[Any]:
    """Return one sampling message of the user's that tells of late results, or `[]` where there are none (B20).

    It is a message of its own, since one with results may hold nothing else.

    Raises:
        InvalidTypeError: A note has no text.
    """
    text = late_text(late)
    return [] if text is None else [{"role": "user", "content": text_content(text)}]


def _read(response: object) -> Turn:
    requests = _requests(response)
    if requests is not None:
        return Turn(None, None, _IDS, [_request_draft(request) for request in requests])
    content = field(response, "content")
    if field(response, "role") != "assistant" or not _is_content(content):
        raise no_response("a tools/call request or a sampled message", response)
    reason = field(response, "stopReason") or field(response, "stop_reason")
    truncated = _cut_off(reason) if isinstance(reason, str) else None
    echo = {_LANE: {"sampled": True}}
    drafts = [
        Draft(field(block, "id"), field(block, "name"), field(block, "input"), echo=echo, truncated=truncated)
        for block in _blocks(content)
        if field(block, "type") == "tool_use"
    ]
    return Turn(content, None, _IDS, drafts)


def _requests(response: object) -> list[object] | None:
    """Return the requests that `response` is, or `None` where it is no request."""
    requests = list(response) if isinstance(response, (list, tuple)) else [response]
    return requests if all(map(_is_request, requests)) else None


def _is_request(request: object) -> bool:
    method = field(request, "method")
    if method is not None:
        return isinstance(method, str) and method == _METHOD
    # Bare params. What else has a name says more of itself: a tool its schema, a block its type.
    others = ("inputSchema", "input_schema", "type", "uri")
    is_named = isinstance(field(request, "name"), str) and all(field(request, name) is None for name in others)
    return is_named and (isinstance(request, OBJECT) or hasattr(request, "arguments"))


def _request_draft(request: object) -> Draft:
    is_bare = field(request, "method") is None
    params = request if is_bare else field(request, "params")
    wire_id = None if is_bare else field(request, "id")
    if isinstance(wire_id, int) and not isinstance(wire_id, bool):
        wire_id = str(wire_id)
    return Draft(wire_id, field(params, "name"), field(params, "arguments"))


def _is_content(content: object) -> bool:
    return isinstance(content, (list, tuple)) or isinstance(field(content, "type"), str)


def _blocks(content: object) -> list[Any]:
    """Return a message's blocks: there may be one that is in no array."""
    return items(content) if isinstance(content, (list, tuple)) else [content]


def _cut_off(reason: str) -> CallProblem | None:
    if reason in _ASKS:
        return None
    unknown = f"the response ended with stopReason {preview(reason)} instead of waiting for tools"
    return _CUT_OFF.get(reason) or not_requested(unknown, "If it is still needed, call the tool again.")


def _result(call: ToolCall, call_id: str, text: str, parts: Sequence[Part] | None, *, failed: bool) -> dict[str, Any]:
    inside = [text] if parts is None else place(parts, CONTENT, call.name, call_id).inside
    result: dict[str, Any] = {"content": in_blocks(inside, text_content)}
    structured = None if failed else _structured(text, parts)
    if structured is not None:
        result["structuredContent"] = structured
    if failed:
        result["isError"] = True
    if call.echo and call.echo.get(_LANE, {}).get("sampled"):
        return {"type": "tool_result", "toolUseId": call_id, **result}
    return {**result, "resultType": "complete"}  # required since 2026-07-28, and ignored by older peers


def _structured(text: str, parts: Sequence[Part] | None) -> dict[str, Any] | None:
    if parts is not None:
        data = [part for part in parts if isinstance(part, Json)]
        if len(data) != 1:
            return None
        text = data[0].text
    value = data_of(text)
    return value if isinstance(value, dict) else None


def _content(content: object, replies: Sequence[Answer], ids: Sequence[str]) -> Any:
    unread = zip(replies, ids, strict=True)
    blocks = [
        _use(block, *next(unread)) if field(block, "type") == "tool_use" else wire_block(block)
        for block in _blocks(content)
    ]
    return blocks if isinstance(content, (list, tuple)) else blocks[0]


def _use(block: object, answer: Answer, call_id: str) -> dict[str, Any]:
    copy = wire_block(block, "id", "name", "input")
    name, arguments = replay_name(answer, _MAX_NAME), arguments_object(field(block, "input"))
    return {**copy, "type": "tool_use", "id": call_id, "name": name, "input": arguments}


def _require_answered(history: list[Any]) -> None:
    answered: list[object] = []
    for message in reversed(history):
        blocks = _blocks(field(message, "content"))
        if field(message, "role") == "assistant":
            require_answered([field(block, "id") for block in blocks if field(block, "type") == "tool_use"], answered)
            return
        answered.extend(field(block, "toolUseId") or field(block, "tool_use_id") for block in blocks)


def _used_ids(messages: list[Any]) -> set[str]:
    blocks = [block for message in messages for block in _blocks(field(message, "content"))]
    ids = [field(block, "id") for block in blocks if field(block, "type") == "tool_use"]
    return {call_id for call_id in ids if isinstance(call_id, str)}
