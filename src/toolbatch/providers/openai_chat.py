"""OpenAI Chat Completions, and the many servers that speak it.

    calls = openai_chat.calls(completion)
    async with ToolBatch(calls, tools=tools) as batch: ...
    openai_chat.extend(messages, completion, batch.result)

Shapes: `openai/types/chat/*`. This lane has no error mark, so a
failure shows in its text alone (P4).

A result is text: "Image URLs are only allowed for messages with role 'user'". Images and PDFs follow the whole run of results
in one message of the user's, which says whose they are (P5, FIELD 111). Files of another type are refused even there ("Chat
Completions accepts only PDF files"); text files are read out. Other servers that speak this lane take images but no files, or
neither: say so with `media`, since what they refuse once they refuse for ever.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from toolbatch.core import Data, Document, Image, Part, Snapshot, ToolCall
from toolbatch.ports import LateNote

from ._chat_shape import carried, function_entry, image_url, require_answered_turn, text_block, user_note
from ._content import PDF, Block, Carrier, Place, carrier_for, carries, content_of, data_url, file_name, place
from ._export import Answer, answers, exported, require_list
from ._openai_chat_stream import StreamCollector
from ._openai_chat_turn import LANE, read_turn
from ._plain import copied, field, items, plain
from ._read import Turn, as_text, require_choice
from ._replay import arguments_text, replay_name

__all__ = ["CARRIES", "StreamCollector", "calls", "extend", "notes", "results"]

_MAX_NAME: Final = 64

Media = Literal["after", "images", "text"]
"""What travels behind the results: images and PDFs, images only, or nothing."""


def calls(response: object, *, expect: str | None = None) -> list[ToolCall]:
    """Return the calls that a response announces, in its order (P1).

    Function calls, custom calls (`kind="custom"`, their text in `arguments["input"]`) and the legacy `function_call` are
    calls. Of several choices only the first is read: only one can become history. A call that can't be run has a
    `problem` and is answered with it; none raises (P6). All calls of a response that was cut off (`finish_reason`
    `length`, `content_filter`) are such calls.

    Args:
        response: A `ChatCompletion` or its assistant message: the SDK's object, its `model_dump()`, or the wire's JSON.
        expect: The tool that the request forced, to be checked before anything runs (P7).

    Raises:
        InvalidTypeError: `response` is none of these.
        ProviderMismatchError: The response does not call `expect`, or calls another tool.
    """
    return require_choice(read_turn(response).calls(), expect)


def results(snapshot: Snapshot, *, media: Media = "after") -> list[Any]:
    """Return one message a call: `{"role": "tool", "tool_call_id", "content"}`, in the order of announcement (C16).

    A legacy call has `{"role": "function", "name", "content"}`. Behind all of them comes one message of the user's, where
    there are images or files to carry (P5). The ids are the provider's own, even where two calls share one, because they
    must match the assistant message as it was received; `extend` puts both right.

    Args:
        snapshot: A closed snapshot.
        media: `after` sends images and PDFs behind the results, `images` only images, for servers that take no files, and
            `text` says both in words, for models that see nothing.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet. Or there is no such `media`.
    """
    carrier = carrier_for(media, _CARRIERS)
    behind: list[str | Block] = []
    run = [
        _result(call, call.wire_id or call.id, call.name, text, parts, carrier, behind)
        for call, text, _, parts in exported(snapshot)
    ]
    return run + carried(behind)


def extend(messages: list[Any], response: object, snapshot: Snapshot | None = None, *, media: Media = "after") -> None:
    """Append the assistant message and its results, as `results` gives them, to `messages`, in place, and nothing else (P2).

    The message has what the endpoint takes back: `content`, `refusal`, `audio` (its id), `name` and the calls. Ids that
    the endpoint would refuse are ours on both sides. Arguments that are no JSON object become one, `{"INVALID_JSON":
    text}`, and none become `{}`: strict servers refuse the conversation for ever otherwise.

    Args:
        messages: The conversation. Its last turn is read; nothing in it is changed.
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
    require_answered_turn(history)
    names = [replay_name(answer, _MAX_NAME) for answer in replies]
    message = _assistant(turn, replies, names)
    behind: list[str | Block] = []
    run = [
        _result(answer.call, answer.call.id, name, answer.text, answer.parts, carrier, behind)
        for answer, name in zip(replies, names, strict=True)
    ]
    history += [message, *run, *carried(behind)]


def notes(late: Sequence[LateNote]) -> list[Any]:
    """Return one user message that tells of late results, or `[]` where there are none (B20).

    It belongs behind a finished tool turn, never between a call and its result.

    Raises:
        InvalidTypeError: A note has no text.
    """
    return user_note(late)


def _after(part: Part) -> Block | None:
    if isinstance(part, Image):
        return image_url(part)
    if isinstance(part, Document) and isinstance(part.source, Data) and part.source.media_type == PDF:
        return {"type": "file", "file": {"filename": file_name(part, "pdf"), "file_data": data_url(part.source)}}
    return None


_CARRIERS: Final[Mapping[str, Carrier]] = {
    "after": Carrier(after=_after),
    "images": Carrier(after=image_url),
    "text": Carrier(),
}
CARRIES: Final[Mapping[str, Place]] = carries(_CARRIERS["after"])
"""Where each sort of part travels in this lane by default (P5)."""


def _result(
    call: ToolCall,
    call_id: str,
    name: str,
    text: str,
    parts: Sequence[Part] | None,
    carrier: Carrier,
    behind: list[str | Block],
) -> dict[str, Any]:
    """Return the message of one result, and add to `behind` what it can't hold."""
    content: str | list[Block] = text
    if parts is not None:
        placed = place(parts, carrier, name, call_id)
        content = content_of(placed.inside, text_block)
        behind += placed.behind
    if call.echo and call.echo.get(LANE, {}).get("legacy"):
        return {"role": "function", "name": name, "content": content}
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _assistant(turn: Turn, replies: Sequence[Answer], names: Sequence[str]) -> dict[str, Any]:
    source = turn.source
    copy: dict[str, Any] = {"role": "assistant", "content": plain(field(source, "content")) or None}
    for key in ("name", "refusal"):
        if field(source, key) is not None:
            copy[key] = plain(field(source, key))
    audio_id = field(field(source, "audio"), "id")
    if audio_id is not None:
        copy["audio"] = {"id": plain(audio_id)}
    entries = items(field(source, "tool_calls"))
    if entries:
        rows = zip(entries, replies, names, strict=True)
        copy["tool_calls"] = [_entry(entry, answer.call, name) for entry, answer, name in rows]
    elif replies:
        legacy = field(source, "function_call")
        copy["function_call"] = {"name": names[0], "arguments": arguments_text(field(legacy, "arguments"))}
    if len(copy) == 2 and copy["content"] is None:
        copy["content"] = ""  # "Required unless tool_calls or function_call is specified"
    return copy


def _entry(entry: object, call: ToolCall, name: str) -> dict[str, Any]:
    if call.kind != "custom":
        return function_entry(entry, call.id, name)
    custom = {"name": name, "input": plain(as_text(field(field(entry, "custom"), "input")))}
    return {**copied(entry, "id", "function", "custom", "index"), "id": call.id, "type": "custom", "custom": custom}
