"""Anthropic Messages.

    calls = anthropic.calls(response)
    async with ToolBatch(calls, tools=tools) as batch: ...
    anthropic.extend(messages, response, batch.result)

Shapes: `anthropic/types/*`. Two things are the request's and not
the turn's, so the caller sends them: `container.id` where code on the server waits for its calls, and the tools.

A result holds text, images and documents; nothing has to travel outside it (P5, FIELD 113). Code on the server that waits for
its calls is given text only: "Image, document, and other content block types are rejected". Other servers that speak this lane
may take text only in any result: say so with `media`, since what they refuse once they refuse for ever.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from toolbatch.core import Data, Document, Image, Part, Snapshot, ToolCall, Url
from toolbatch.ports import LateNote

from ._anthropic_stream import StreamCollector
from ._anthropic_turn import LANE, read_turn
from ._content import (
    IMAGES,
    PDF,
    Block,
    Carrier,
    Place,
    carrier_for,
    carries,
    content_of,
    document_text,
    place,
    unsent,
    web_url,
)
from ._export import Answer, answers, exported, late_text, require_list
from ._ids import unused
from ._plain import copied, drop_nulls, field, items, plain
from ._read import require_choice
from ._replay import arguments_object, replay_name
from ._tail import require_answered

__all__ = ["CARRIES", "StreamCollector", "calls", "extend", "message", "notes", "results"]

_MAX_NAME: Final = 128
Media = Literal["nested", "text"]
"""How images and documents travel: in the results, or only in words."""

_MAX_IMAGE: Final = 5_242_880  # of base64 text: the bound on Bedrock and Google Cloud, half of the API's own


def calls(response: object, *, expect: str | None = None) -> list[ToolCall]:
    """Return the calls that a message announces, in its order (P1).

    `tool_use` blocks are calls; what the server runs itself (`server_tool_use`, `mcp_tool_use`), thinking and text are not
    (P3). A call that can't be run has a `problem` and is answered with it; none raises (P6). All calls of a message whose
    `stop_reason` is there and is not `tool_use` are such calls, except that a paused one (`pause_turn`, `compaction`)
    announces none: it is resent as it is. `echo` keeps the call's `toolset_name` and `caller`, under the lane's name.

    Args:
        response: A `Message` or `BetaMessage`, its `model_dump()`, the wire's JSON, or `{"role", "content"}`.
        expect: The tool that the request forced, to be checked before anything runs (P7).

    Raises:
        InvalidTypeError: `response` is none of these.
        ProviderMismatchError: The message does not call `expect`, or calls another tool.
    """
    return require_choice(read_turn(response).calls(), expect)


def results(snapshot: Snapshot, *, media: Media = "nested") -> list[Any]:
    """Return one `tool_result` block a call, in the order of announcement (C16); failures have `is_error` (P4).

    The ids are the provider's own, even where two calls share one, because they must match the assistant message as it
    was received; `extend` puts both right.

    Args:
        snapshot: A closed snapshot.
        media: `nested` puts images and documents into the results; `text` says them in words, for models that see nothing.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet. Or there is no such `media`.
    """
    carrier = carrier_for(media, _CARRIERS)
    return [
        _result(call, call.wire_id or call.id, text, failed, parts, carrier)
        for call, text, failed, parts in exported(snapshot)
    ]


def message(snapshot: Snapshot, *, media: Media = "nested") -> Any:
    """Return the one user message with all results, and with nothing else (P2).

    It must directly follow the assistant's message. A batch of no calls gives a message without content, which the API
    refuses: there is nothing to send.

    Args:
        snapshot: A closed snapshot.
        media: As in `results`.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet. Or there is no such `media`.
    """
    return {"role": "user", "content": results(snapshot, media=media)}


def extend(messages: list[Any], response: object, snapshot: Snapshot | None = None, *, media: Media = "nested") -> None:
    """Append the assistant's message and the user message with its results to `messages`, and nothing else (P2).

    Blocks go back as they came, in their order, thinking and hosted ones to the byte. Left out are blank text blocks and, of
    a turn that was cut off, thinking behind which nothing came, which the API sends but does not take back, and a message that has
    no other. Ids that the API would refuse are ours on both
    sides: of another alphabet, repeated, or used before in `messages`, since they must be unique over the whole request.
    Input that is no JSON object becomes one, `{"INVALID_JSON": text}`.

    Args:
        messages: The conversation, of dicts or the SDK's objects. It is read for ids; what is in it is not changed.
        response: As in `calls`.
        snapshot: The closed snapshot of the batch made of that response's calls; a response without calls needs none.
        media: As in `results`.

    Raises:
        InvalidTypeError: `messages` is not a list, `response` no response, or `snapshot` not made here.
        InvalidInputError: The snapshot is open, missing, or of other calls, or the last turn in `messages` has calls without
            a result; or there is no such `media`. In every case the list is as it was.
    """
    history, carrier = require_list(messages), carrier_for(media, _CARRIERS)
    turn = read_turn(response)
    replies = answers(turn.calls(), snapshot)
    _require_answered(history)
    ids = unused([answer.call.id for answer in replies], _used_ids(history))
    content = _assistant(turn.source, replies, ids)
    new: list[dict[str, Any]] = [{"role": "assistant", "content": content}] if content else []
    if replies:
        rows = zip(replies, ids, strict=True)
        blocks = [
            _result(answer.call, call_id, answer.text, answer.failed, answer.parts, carrier) for answer, call_id in rows
        ]
        new.append({"role": "user", "content": blocks})
    history += new


def notes(late: Sequence[LateNote]) -> list[Any]:
    """Return one user message that tells of late results, or `[]` where there are none (B20).

    It belongs behind the user message with results, never before it: results come first. Where code on the server waits for
    those results, nothing may stand beside them, so the message must wait for a later turn.

    Raises:
        InvalidTypeError: A note has no text.
    """
    text = late_text(late)
    return [] if text is None else [{"role": "user", "content": [{"type": "text", "text": text}]}]


def _nest(part: Part) -> Block | str | None:
    if isinstance(part, Image) and part.source.media_type in (None, *IMAGES):
        source = _source(part.source)
        if source is not None and len(source.get("data", "")) > _MAX_IMAGE:
            return unsent(part, f"its base64 text is longer than {_MAX_IMAGE:,} bytes")
        return None if source is None else {"type": "image", "source": source}
    if isinstance(part, Document):
        source = _document_source(part)
        return None if source is None else {"type": "document", "source": source, **_title(part)}
    return None


def _source(source: Data | Url) -> Block | None:
    if isinstance(source, Data):
        return {"type": "base64", "media_type": source.media_type, "data": source.base64}
    url = web_url(source)
    return None if url is None else {"type": "url", "url": url}


def _document_source(part: Document) -> Block | None:
    text = document_text(part)
    if text is not None:  # of any textual type: the API has this one name for all of them
        return {"type": "text", "media_type": "text/plain", "data": text}
    return _source(part.source) if part.source.media_type == PDF else None


def _title(part: Document) -> Block:
    return {} if part.name is None else {"title": part.name}


_CARRIERS: Final[Mapping[str, Carrier]] = {"nested": Carrier(nest=_nest), "text": Carrier()}
CARRIES: Final[Mapping[str, Place]] = carries(_CARRIERS["nested"])
"""Where each sort of part travels in this lane by default (P5)."""


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _result(
    call: ToolCall,
    call_id: str,
    text: str,
    failed: bool,  # noqa: FBT001  as exported
    parts: Sequence[Part] | None,
    carrier: Carrier,
) -> dict[str, Any]:
    content = text if parts is None else _content(call, call_id, parts, carrier)
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    if failed:
        block["is_error"] = True
    if call.echo:
        toolset = call.echo.get(LANE, {}).get("toolset_name")
        if toolset is not None:
            block["toolset_name"] = toolset  # "the API rejects a mismatch" (SDK `lib/tools/_toolsets/_runnable.py`)
    return block


def _content(call: ToolCall, call_id: str, parts: Sequence[Part], carrier: Carrier) -> str | list[Block]:
    caller = field(call.echo.get(LANE, {}).get("caller"), "type")
    if caller not in (None, "direct"):  # all others are code on the server
        carrier = _CARRIERS["text"]
    return content_of(place(parts, carrier, call.name, call_id).inside, _text)


def _require_answered(history: list[Any]) -> None:
    answered: list[object] = []
    for message in reversed(history):
        blocks = items(field(message, "content"))
        if field(message, "role") == "assistant":
            require_answered([field(block, "id") for block in blocks if field(block, "type") == "tool_use"], answered)
            return
        answered.extend(field(block, "tool_use_id") for block in blocks)


def _used_ids(messages: list[Any]) -> set[str]:
    blocks = [block for message in messages for block in items(field(message, "content"))]
    ids = [field(block, "id") for block in blocks if field(block, "type") == "tool_use"]
    return {call_id for call_id in ids if isinstance(call_id, str)}


_THINKING = ("thinking", "redacted_thinking")  # "The final block in an assistant message cannot be `thinking`."


def _assistant(content: object, replies: Sequence[Answer], ids: Sequence[str]) -> str | list[Any]:
    if isinstance(content, str):
        return str(plain(content)) if content.strip() else ""
    unread = zip(replies, ids, strict=True)
    blocks: list[Any] = []
    for block in items(content):
        if replies and field(block, "type") == "tool_use":
            answer, call_id = next(unread)
            blocks.append(_use(block, answer, call_id))
        else:
            copy = plain(block)
            if isinstance(copy, dict):
                drop_nulls(copy, "caller", "citations")  # a full model_dump() has them
            if not _blank(copy):
                blocks.append(copy)
    while blocks and field(blocks[-1], "type") in _THINKING:
        blocks.pop()
    return blocks


def _blank(block: object) -> bool:
    text = field(block, "text")
    return field(block, "type") == "text" and isinstance(text, str) and not text.strip()


def _use(block: object, answer: Answer, call_id: str) -> dict[str, Any]:
    copy = copied(block, "id", "name", "input")
    drop_nulls(copy, "caller", "toolset_name")
    name, arguments = replay_name(answer, _MAX_NAME), arguments_object(field(block, "input"))
    return {**copy, "type": "tool_use", "id": call_id, "name": name, "input": arguments}
