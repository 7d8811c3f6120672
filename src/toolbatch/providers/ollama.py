"""Ollama's own chat endpoint. What its `/v1` endpoint sends is Chat Completions: read that with `openai_chat`.

    calls = ollama.calls(response)
    async with ToolBatch(calls, tools=tools) as batch: ...
    ollama.extend(messages, response, batch.result)

Shapes: `ollama/_types.py`, and the server's own `Message`. This lane has no error mark, so a failure shows in its text alone
(P4).

The Python SDK has no ids: it drops those that a newer server sends. So ids are ours, inside a batch only, and the model tells
results by `tool_name` and order. Raw JSON that has ids keeps them, in the calls and as the results' `tool_call_id`.

Images travel on the result's message, as base64. No content is blank, since the SDK drops a message's empty fields, and a model
that reads no result takes the call for unanswered.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolbatch.core import Data, Image, Part, Snapshot, Text, ToolCall, described
from toolbatch.ports import LateNote

from ._chat_shape import user_note
from ._content import Block, Carrier, Place, carries, place
from ._export import Answer, answers, exported, require_list
from ._ollama_stream import StreamCollector
from ._ollama_turn import read_turn
from ._plain import copied, field, items, plain
from ._read import require_choice
from ._replay import arguments_object, replay_name
from ._tail import require_answered

__all__ = ["CARRIES", "StreamCollector", "calls", "extend", "notes", "results"]

_MAX_NAME: Final = 64
_IMAGES: Final = ("image/png", "image/jpeg", "image/webp")  # what the server decodes


def calls(response: object, *, expect: str | None = None) -> list[ToolCall]:
    """Return the calls that a response announces, in its order (P1).

    A call that can't be run has a `problem` and is answered with it; none raises (P6). All calls of a response that was cut
    off (`done_reason` `length`) are such calls. `stop` is what the server says of calls.

    Args:
        response: A `ChatResponse` or its message: the SDK's object, its `model_dump()`, or the wire's JSON.
        expect: The tool that the request forced, to be checked before anything runs (P7).

    Raises:
        InvalidTypeError: `response` is none of these.
        ProviderMismatchError: The response does not call `expect`, or calls another tool.
    """
    return require_choice(read_turn(response).calls(), expect)


def results(snapshot: Snapshot) -> list[Any]:
    """Return one message a call: `{"role": "tool", "tool_name", "content"}`, in the order of announcement (C16).

    The order tells two calls of one tool apart (FIELD 61). A call whose wire form had an id has it as `tool_call_id`.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet.
    """
    return [
        _result(call, call.wire_id or call.id, call.name, parts or (Text(text),))
        for call, text, _, parts in exported(snapshot)
    ]


def extend(messages: list[Any], response: object, snapshot: Snapshot | None = None) -> None:
    """Append the assistant's message and its results to `messages`, in place, and nothing else (P2).

    The message goes back with its content, its thinking and its calls. Arguments are objects, which the endpoint demands;
    those that are none become one, `{"INVALID_JSON": text}`.

    Args:
        messages: The conversation. Its last turn is read; nothing in it is changed.
        response: As in `calls`.
        snapshot: The closed snapshot of the batch made of that response's calls; a response without calls needs none.

    Raises:
        InvalidTypeError: `messages` is not a list, `response` no response, or `snapshot` not made here.
        InvalidInputError: The snapshot is open, missing, or of other calls, or the last turn in `messages` has calls without
            a result. In every case the list is as it was.
    """
    history = require_list(messages)
    turn = read_turn(response)
    replies = answers(turn.calls(), snapshot)
    _require_answered(history)
    names = [replay_name(answer, _MAX_NAME) for answer in replies]
    message = _message(turn.source, replies, names)
    history += [
        message,
        *[
            _result(answer.call, answer.call.id, name, answer.parts or (Text(answer.text),))
            for answer, name in zip(replies, names, strict=True)
        ],
    ]


def notes(late: Sequence[LateNote]) -> list[Any]:
    """Return one user message that tells of late results, or `[]` where there are none (B20).

    It belongs behind a finished tool turn, never between a call and its result.

    Raises:
        InvalidTypeError: A note has no text.
    """
    return user_note(late)


def _has_wire_id(call: ToolCall) -> bool:
    return call.wire_id != ""  # `None` where it is the call's own, empty where there was none


def _nest(part: Part) -> Block | None:
    if isinstance(part, Image) and isinstance(part.source, Data) and part.source.media_type in _IMAGES:
        return {"image": part.source.base64, "place": described(part)}
    return None


_CARRIER: Final = Carrier(_nest)
CARRIES: Final[Mapping[str, Place]] = carries(_CARRIER)
"""Where each sort of part travels in this lane (P5)."""


def _result(call: ToolCall, call_id: str, name: str, parts: Sequence[Part]) -> dict[str, Any]:
    inside = place(parts, _CARRIER, name, call_id).inside
    images = [entry["image"] for entry in inside if not isinstance(entry, str)]
    content = "\n".join(entry if isinstance(entry, str) else entry["place"] for entry in inside)
    message: dict[str, Any] = {"role": "tool", "tool_name": name, "content": content}
    if images:
        message["images"] = images
    if _has_wire_id(call):
        message["tool_call_id"] = call_id
    return message


def _message(source: object, replies: Sequence[Answer], names: Sequence[str]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": plain(field(source, "content")) or ""}
    if field(source, "thinking"):
        message["thinking"] = plain(field(source, "thinking"))
    if replies:
        rows = zip(items(field(source, "tool_calls")), replies, names, strict=True)
        message["tool_calls"] = [_entry(entry, answer.call, name) for entry, answer, name in rows]
    return message


def _entry(entry: object, call: ToolCall, name: str) -> dict[str, Any]:
    function = field(entry, "function")
    arguments = arguments_object(field(function, "arguments"))
    copy = {
        **copied(entry, "id", "function"),
        "function": {**copied(function, "name", "arguments"), "name": name, "arguments": arguments},
    }
    return {**copy, "id": call.id} if _has_wire_id(call) else copy


def _require_answered(history: list[Any]) -> None:
    """Refuse a conversation whose last turn has more calls than results: without ids their number is all there is to tell."""
    answered = 0
    for message in reversed(history):
        if field(message, "role") == "assistant":
            names = [field(field(call, "function"), "name") for call in items(field(message, "tool_calls"))]
            require_answered(names[answered:], ())
            return
        answered += field(message, "role") == "tool"
