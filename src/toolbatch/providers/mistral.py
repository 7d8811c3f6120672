"""Mistral: chat completions, and the entries of the Conversations API.

    calls = mistral.calls(response)
    async with ToolBatch(calls, tools=tools) as batch: ...
    mistral.extend(messages, response, batch.result)

Shapes: `mistralai/client/models/*`; rules: mistral-common's validators, whose texts the API returns. This lane has no error
mark, so a failure shows in its text alone (P4).

Ids are nine letters and digits in every turn that is written here: tokenizers up to v11 refuse all others, and newer ones take
any. Another id is mapped to nine of ours, the same in the call and in its result, and the same each time.

A result is text. The API refuses a user's message behind a tool's ("Unexpected role 'user' after role 'tool'"), so nothing can
follow the results; and a tool's message takes other chunks than text from tokenizer v15 on only (`media="nested"`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

from toolbatch.core import Data, Document, Part, Snapshot, ToolCall
from toolbatch.ports import LateNote

from ._chat_shape import function_entry, image_url, require_answered_turn, text_block, user_note
from ._content import Block, Carrier, Place, carries, content_of, place, require_media, web_url
from ._export import Answer, answers, exported, require_list
from ._mistral_stream import StreamCollector
from ._mistral_turn import CALL, LANE, is_call, read_turn
from ._plain import copied, field, items, plain
from ._read import require_choice
from ._replay import arguments_text, replay_name
from ._tail import require_answered

__all__ = ["CARRIES", "StreamCollector", "calls", "extend", "notes", "results"]

Media = Literal["text", "nested"]
"""How images and sound travel: only in words, or in the tool's message."""

_MAX_NAME: Final = 64
_RESULT: Final = "function.result"
_TIMES: Final = ("created_at", "completed_at")  # the server's own, optional on input, and no JSON in a model_dump()


def calls(response: object, *, expect: str | None = None) -> list[ToolCall]:
    """Return the calls that a response announces, in its order (P1).

    Of a chat's choices only the first is read: only one can become history. Of a conversation's entries `function.call` is a
    call; `tool.execution` is the server's own (P3), and a `function.call` whose `confirmation_status` is `pending` is an
    approval that the host owes, to be sent as `tool_confirmations`. A call that can't be run has a `problem` and is answered
    with it; none raises (P6). All calls of a chat response that was cut off (`finish_reason` `length`, `model_length`,
    `error`) are such calls; entries do not say.

    Args:
        response: A `ChatCompletionResponse`, its assistant message, a `ConversationResponse` or the list of its entries: the
            SDK's object, its `model_dump()`, or the wire's JSON.
        expect: The tool that the request forced, to be checked before anything runs (P7).

    Raises:
        InvalidTypeError: `response` is none of these.
        ProviderMismatchError: The response does not call `expect`, or calls another tool.
    """
    return require_choice(read_turn(response).calls(), expect)


def results(snapshot: Snapshot, *, media: Media = "text") -> list[Any]:
    """Return one message a call: `{"role": "tool", "tool_call_id", "name", "content"}`, in the order of announcement (C16).

    A conversation's call has an entry instead: `{"type": "function.result", "tool_call_id", "result"}`, which is what
    `conversations.append` takes. The ids are the provider's own, even where two calls share one, because they must match the
    turn as it was received; `extend` puts both right.

    Args:
        snapshot: A closed snapshot of calls of this lane.
        media: `text` says in words what is no text. `nested` puts images and sound into the tool's message: models of
            tokenizer v15 and newer take that, all others refuse the request. Entries are text in any case.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet. Or there is no such `media`.
    """
    carrier = _carrier(media)
    return [
        _result(call, call.wire_id or call.id, call.name, text, parts, carrier)
        for call, text, _, parts in exported(snapshot)
    ]


def extend(messages: list[Any], response: object, snapshot: Snapshot | None = None, *, media: Media = "text") -> None:
    """Append the assistant's message, or a conversation's entries, and the results to `messages`, and nothing else (P2).

    A message has what the endpoint takes back: its content, thinking chunks included, and its calls. One with neither is
    left out, since the endpoint refuses it. Entries go back as they came, for a conversation that the server does not store;
    for one that it does, send `results(snapshot)` alone. Ids that an old tokenizer would refuse are ours on both sides.
    Arguments are text, as JSON of an object; those that are none become one, `{"INVALID_JSON": text}`.

    Args:
        messages: The conversation: chat messages, or entries where `response` is a conversation's. Its last turn is read;
            nothing in it is changed.
        response: As in `calls`.
        snapshot: The closed snapshot of the batch made of that response's calls; a response without calls needs none.
        media: As in `results`.

    Raises:
        InvalidTypeError: `messages` is not a list, `response` no response, or `snapshot` not made here.
        InvalidInputError: The snapshot is open, missing, or of other calls; or the last turn in `messages` has calls without
            a result; or there is no such `media`. In every case the list is as it was.
    """
    history, carrier = require_list(messages), _carrier(media)
    turn = read_turn(response)
    replies = answers(turn.calls(), snapshot)
    names = [replay_name(answer, _MAX_NAME) for answer in replies]
    if isinstance(turn.source, (list, tuple)):
        _require_answered_entries(history)
        new = _entries(turn.source, replies, names)
    else:
        require_answered_turn(history)
        new = _message(turn.source, replies, names)
    history += new + [
        _result(answer.call, answer.call.id, name, answer.text, answer.parts, carrier)
        for answer, name in zip(replies, names, strict=True)
    ]


def notes(late: Sequence[LateNote]) -> list[Any]:
    """Return one user message that tells of late results, or `[]` where there are none (B20).

    It belongs behind the assistant's answer to the results: the API refuses a user's message behind a tool's.

    Raises:
        InvalidTypeError: A note has no text.
    """
    return user_note(late)


def _chunk(part: Part) -> Block | None:
    if isinstance(part, Document) and (part.source.media_type or "").startswith("audio/"):
        sound = part.source.base64 if isinstance(part.source, Data) else web_url(part.source)
        return None if sound is None else {"type": "input_audio", "input_audio": sound}
    return image_url(part)


_TEXT: Final = Carrier()
_NESTED: Final = Carrier(nest=_chunk)
CARRIES: Final[Mapping[str, Place]] = carries(_TEXT)
"""Where each sort of part travels in this lane (P5)."""


def _carrier(media: Media) -> Carrier:
    require_media(media, *get_args(Media))
    return _NESTED if media == "nested" else _TEXT


def _result(
    call: ToolCall, call_id: str, name: str, text: str, parts: Sequence[Part] | None, carrier: Carrier
) -> dict[str, Any]:
    is_entry = bool(call.echo and call.echo.get(LANE, {}).get("entry"))
    content: str | list[Block] = text
    if parts is not None:
        inside = place(parts, _TEXT if is_entry else carrier, name, call_id).inside
        content = content_of(inside, text_block)
    if is_entry:
        return {"type": _RESULT, "tool_call_id": call_id, "result": content}
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}


def _message(source: object, replies: Sequence[Answer], names: Sequence[str]) -> list[dict[str, Any]]:
    given = field(source, "content") or ""  # the SDK's mark for a field that was not sent is false, and no JSON
    content = [plain(_dumped(chunk)) for chunk in given] if isinstance(given, (list, tuple)) else plain(given)
    rows = zip(items(field(source, "tool_calls")), replies, names, strict=True)
    entries = [function_entry(entry, answer.call.id, name) for entry, answer, name in rows]
    if not entries and (not content or (isinstance(content, str) and not content.strip())):
        return []
    return [{"role": "assistant", "content": content, **({"tool_calls": entries} if entries else {})}]


def _entries(source: Sequence[object], replies: Sequence[Answer], names: Sequence[str]) -> list[dict[str, Any]]:
    unread = zip(replies, names, strict=True)
    return [
        _call_entry(entry, *next(unread)) if is_call(entry) else copied(_dumped(entry), *_TIMES) for entry in source
    ]


def _dumped(value: object) -> object:
    """Return an SDK's object as JSON with all its defaults: in one that a host made, the `type` is one of them."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", by_alias=True, warnings=False) if callable(dump) else value


def _call_entry(entry: object, answer: Answer, name: str) -> dict[str, Any]:
    copy = copied(entry, "tool_call_id", "name", "arguments", *_TIMES)
    arguments = arguments_text(field(entry, "arguments"))
    return {**copy, "type": CALL, "tool_call_id": answer.call.id, "name": name, "arguments": arguments}


def _require_answered_entries(history: list[Any]) -> None:
    announced: list[object] = []
    answered: list[object] = []
    for entry in reversed(history):
        if is_call(entry):
            announced.append(field(entry, "tool_call_id"))
        elif field(entry, "type") == _RESULT or field(entry, "role") == "user":
            if announced:
                break  # the model's last run of entries has been read
            answered.append(field(entry, "tool_call_id"))
    require_answered(announced[::-1], answered)
