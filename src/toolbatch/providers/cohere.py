"""Cohere, v2 chat.

    calls = cohere.calls(response)
    async with ToolBatch(calls, tools=tools) as batch: ...
    cohere.extend(messages, response, batch.result)

Shapes: `cohere/types/*`. This lane has no error mark, so a failure shows in its text alone (P4).

A result is its text, unless it is to be cited. What a tool returned as a text `Document` always goes as a `document` block, and
with `documents=True` so does each JSON object that a tool returned: the model then cites them one by one. Images follow the
whole run of results in one message of the user's, for a vision model only (`media="after"`): other models refuse the request.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

from toolbatch.core import Json, Part, Snapshot, Text, ToolCall
from toolbatch.ports import LateNote

from ._chat_shape import carried, image_url, require_answered_turn, text_block, user_note
from ._cohere_stream import StreamCollector
from ._cohere_turn import read_turn
from ._content import Block, Carrier, Place, carries, content_of, document_text, place, require_media
from ._data import data_of
from ._export import Answer, answers, exported, require_list
from ._plain import field, items, plain
from ._read import require_choice
from ._replay import arguments_text, replay_name

__all__ = ["CARRIES", "StreamCollector", "calls", "extend", "notes", "results"]

Media = Literal["text", "after"]
"""How images travel: only in words, or behind the whole run of results."""

_MAX_NAME: Final = 64


def calls(response: object, *, expect: str | None = None) -> list[ToolCall]:
    """Return the calls that a response announces, in its order (P1).

    A call's name and arguments are optional in this lane. A call that can't be run has a `problem` and is answered with it;
    none raises (P6). All calls of a response whose `finish_reason` is there and is neither `TOOL_CALL` nor `COMPLETE` are
    such calls.

    Args:
        response: A `V2ChatResponse` or its assistant message: the SDK's object, its `model_dump()`, or the wire's JSON.
        expect: The tool that the request forced, to be checked before anything runs (P7).

    Raises:
        InvalidTypeError: `response` is none of these.
        ProviderMismatchError: The response does not call `expect`, or calls another tool.
    """
    return require_choice(read_turn(response).calls(), expect)


def results(snapshot: Snapshot, *, documents: bool = False, media: Media = "text") -> list[Any]:
    """Return one message a call: `{"role": "tool", "tool_call_id", "content"}`, in the order of announcement (C16).

    Behind all of them comes one message of the user's, where there are images to carry (P5). The ids are the provider's own,
    even where two calls share one, because they must match the assistant message as it was received; `extend` puts both
    right.

    Args:
        snapshot: A closed snapshot of calls of this lane.
        documents: Whether JSON objects, alone or in an array, go as `document` blocks, which the model can cite. They should
            be short ("under 300 words"). All else is text, and so are failures.
        media: `text` says in words what is no text. `after` sends images behind the results, to a model that sees them.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet. Or there is no such `media`.
    """
    behind: list[str | Block] = []
    carrier = _carrier(media, documents=documents)
    run = [
        _result(
            call.wire_id or call.id, call.name, _parts(text, parts, documents=documents and not failed), carrier, behind
        )
        for call, text, failed, parts in exported(snapshot)
    ]
    return run + carried(behind)


def extend(
    messages: list[Any],
    response: object,
    snapshot: Snapshot | None = None,
    *,
    documents: bool = False,
    media: Media = "text",
) -> None:
    """Append the assistant's message and its results, as `results` gives them, to `messages`, and nothing else (P2).

    The message goes back with its `tool_plan`, which the model reads on its next step, its content, thinking included, its
    citations and its calls. One with neither content nor calls is left out. Ids that are missing or repeated are ours on
    both sides. Arguments that are no JSON object become one, `{"INVALID_JSON": text}`, and none become `{}`.

    Args:
        messages: The conversation. Its last turn is read; nothing in it is changed.
        response: As in `calls`.
        snapshot: The closed snapshot of the batch made of that response's calls; a response without calls needs none.
        documents: As in `results`.
        media: As in `results`.

    Raises:
        InvalidTypeError: `messages` is not a list, `response` no response, or `snapshot` not made here.
        InvalidInputError: The snapshot is open, missing, or of other calls; or the last turn in `messages` has calls without
            a result; or there is no such `media`. In every case the list is as it was.
    """
    history, carrier = require_list(messages), _carrier(media, documents=documents)
    turn = read_turn(response)
    replies = answers(turn.calls(), snapshot)
    require_answered_turn(history)
    names = [replay_name(answer, _MAX_NAME) for answer in replies]
    new = _message(turn.source, replies, names)
    behind: list[str | Block] = []
    for answer, name in zip(replies, names, strict=True):
        parts = _parts(answer.text, answer.parts, documents=documents and not answer.failed)
        new.append(_result(answer.call.id, name, parts, carrier, behind))
    history += new + carried(behind)


def notes(late: Sequence[LateNote]) -> list[Any]:
    """Return one user message that tells of late results, or `[]` where there are none (B20).

    It belongs behind a finished tool turn, never between a call and its result.

    Raises:
        InvalidTypeError: A note has no text.
    """
    return user_note(late)


def _document(data: Mapping[str, Any]) -> Block:
    return {"type": "document", "document": {"data": data}}


def _nest(part: Part) -> Block | None:
    text = document_text(part)
    if text is None:
        return None
    name = getattr(part, "name", None)
    return _document({"text": text} if name is None else {"title": name, "text": text})


def _nest_all(part: Part) -> Block | None:
    value = data_of(part.text) if isinstance(part, Json) else None
    return _document(value) if isinstance(value, dict) else _nest(part)


def _carrier(media: Media = "text", *, documents: bool = False) -> Carrier:
    require_media(media, *get_args(Media))
    nest = _nest_all if documents else _nest
    return Carrier(nest, image_url) if media == "after" else Carrier(nest)


CARRIES: Final[Mapping[str, Place]] = carries(_carrier())
"""Where each sort of part travels in this lane (P5)."""


def _parts(text: str, parts: Sequence[Part] | None, *, documents: bool) -> Sequence[Part]:
    """Return a result as parts: a rich one's own, or the objects in a plain one that is to be cited, or its text."""
    if parts is not None:
        return parts
    value = data_of(text) if documents else None
    entries = value if isinstance(value, list) else [value]
    return [Json(entry) for entry in entries] if entries and all(isinstance(e, dict) for e in entries) else [Text(text)]


def _result(
    call_id: str, name: str, parts: Sequence[Part], carrier: Carrier, behind: list[str | Block]
) -> dict[str, Any]:
    """Return the message of one result, and add to `behind` what it can't hold."""
    placed = place(parts, carrier, name, call_id)
    behind += placed.behind
    return {"role": "tool", "tool_call_id": call_id, "content": content_of(placed.inside, text_block)}


def _message(source: object, replies: Sequence[Answer], names: Sequence[str]) -> list[dict[str, Any]]:
    copy: dict[str, Any] = {"role": "assistant"}
    rows = zip(items(field(source, "tool_calls")), replies, names, strict=True)
    entries = [_entry(entry, answer.call.id, name) for entry, answer, name in rows]
    for key in ("tool_plan", "content", "citations"):
        value = field(source, key)
        if value:
            copy[key] = plain(value)
    if entries:
        copy["tool_calls"] = entries
    return [copy] if entries or "content" in copy else []


def _entry(entry: object, call_id: str, name: str) -> dict[str, Any]:
    # All that the schema has. The SDK's objects take any value, and warn of it when they are dumped.
    function = {"name": name, "arguments": arguments_text(field(field(entry, "function"), "arguments"))}
    return {"id": call_id, "type": "function", "function": function}
