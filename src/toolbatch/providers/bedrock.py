"""AWS Bedrock Converse.

    calls = bedrock.calls(response)
    async with ToolBatch(calls, tools=tools) as batch: ...
    bedrock.extend(messages, response, batch.result)

Shapes: botocore's `bedrock-runtime` model, in boto3's own form: dicts, with bytes as bytes. A request needs its `toolConfig` as
long as there are calls or results in its messages, even where no tool may be called any more.

One API stands before many models, which differ in what they take in a turn with results (LANES 5). What most of them take is
the default; `status=False` is for Writer's, `data=True` for Mistral's, `media="after"` for Qwen's and Kimi's, and
`media="text"` for those that read no media, or none in a turn with results.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, get_args

from toolbatch.core import Snapshot, Text, ToolCall
from toolbatch.ports import LateNote

from ._bedrock_media import RESERVED, Media, Room, document_names, with_text
from ._bedrock_stream import StreamCollector
from ._bedrock_turn import End, content_of_turn, read_turn, require_answered_turn, used_ids
from ._content import Block, Place, carries, in_blocks, place, require_media
from ._data import data_of
from ._export import answers, exported, late_text, require_list
from ._ids import unused
from ._read import require_choice
from ._replay import replay_name

__all__ = ["CARRIES", "StreamCollector", "calls", "extend", "message", "notes", "results"]

_MAX_NAME: Final = 64


class _Means(NamedTuple):
    """How results are written.

    Attributes:
        media: How images and documents travel.
        status: Whether failures are marked.
        data: Whether a success that is a JSON object goes as one.
        room: What the message with the results still has room for.
    """

    media: Media
    status: bool
    data: bool
    room: Room


def calls(response: object, *, expect: str | None = None) -> list[ToolCall]:
    """Return the calls that a message announces, in its order (P1).

    `toolUse` blocks are calls, but for those that the server runs itself (`type: server_tool_use`); reasoning and text are
    not (P3). A call that can't be run has a `problem` and is answered with it; none raises (P6). All calls of a response
    whose `stopReason` is there and is not `tool_use` are such calls: beside `end_turn` a harness has run them already.

    Args:
        response: What boto3's `converse` returns, the same put together from a stream, or its message alone.
        expect: The tool that the request forced, to be checked before anything runs (P7).

    Raises:
        InvalidTypeError: `response` is none of these.
        ProviderMismatchError: The message does not call `expect`, or calls another tool.
    """
    return require_choice(read_turn(response).calls(), expect)


def results(snapshot: Snapshot, *, media: Media = "nested", status: bool = True, data: bool = False) -> list[Any]:
    """Return one `toolResult` block a call, in the order of announcement (C16); failures have `status: error` (P4).

    The ids are the provider's own, even where two calls share one, because they must match the assistant message as it was
    received; `extend` puts both right, and gives documents names that the conversation does not have yet.

    Args:
        snapshot: A closed snapshot.
        media: `nested` puts images and documents into the results; `after` puts them behind all results, in the same
            message; `text` says in words what they are. What the API can't hold is said in words in any case (P5): other
            formats, images over 3.75 MB or after the twentieth, documents over 4.5 MB or after the fifth.
        status: Whether failures are marked. Models that know no mark refuse it, and read the failure in the text.
        data: Whether a success that is a JSON object goes as `json`, for models that read no other, and not as text.
            Parts that are `Json` go so in any case. What the API would change or refuse stays text.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet. Or there is no such `media`.
    """
    require_media(media, *get_args(Media))
    means = _Means(media, status, data, Room())
    ends = [
        End(call.name, call.wire_id or call.id, text, failed, parts) for call, text, failed, parts in exported(snapshot)
    ]
    return _blocks(ends, means)


def message(snapshot: Snapshot, *, media: Media = "nested", status: bool = True, data: bool = False) -> Any:
    """Return the one user message with all results (P2).

    It must directly follow the assistant's message. A batch of no calls gives a message without content, which the API
    refuses: there is nothing to send.

    Args:
        snapshot: As in `results`.
        media: As in `results`.
        status: As in `results`.
        data: As in `results`.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet. Or there is no such `media`.
    """
    return {"role": "user", "content": results(snapshot, media=media, status=status, data=data)}


def extend(
    messages: list[Any],
    response: object,
    snapshot: Snapshot | None = None,
    *,
    media: Media = "nested",
    status: bool = True,
    data: bool = False,
) -> None:
    """Append the assistant's message and the user message with its results to `messages`, and nothing else (P2).

    Blocks go back as they came, in their order, reasoning and hosted ones to the byte. Left out are blank text blocks, which
    models send and the API does not take back, and a message that has no other. Ids that the API would refuse are ours on
    both sides: longer than 64 characters, of another alphabet, repeated, or used before in `messages`. Input that is no
    JSON object becomes one, `{"INVALID_JSON": text}`.

    Args:
        messages: The conversation. It is read for ids and names; what is in it is not changed.
        response: As in `calls`.
        snapshot: The closed snapshot of the batch made of that response's calls; a response without calls needs none.
        media: As in `results`.
        status: As in `results`.
        data: As in `results`.

    Raises:
        InvalidTypeError: `messages` is not a list, `response` no response, or `snapshot` not made here.
        InvalidInputError: The snapshot is open, missing, or of other calls; or the last turn in `messages` has calls without
            a result; or there is no such `media`. In every case the list is as it was.
    """
    history = require_list(messages)
    turn = read_turn(response)
    require_media(media, *get_args(Media))
    means = _Means(media, status, data, Room(document_names(history)))
    replies = answers(turn.calls(), snapshot)
    require_answered_turn(history)
    ids = unused([answer.call.id for answer in replies], used_ids(history))
    ends = [
        End(replay_name(answer, _MAX_NAME), call_id, answer.text, answer.failed, answer.parts)
        for answer, call_id in zip(replies, ids, strict=True)
    ]
    content = content_of_turn(turn.source, ends)
    new: list[dict[str, Any]] = [{"role": "assistant", "content": content}] if content else []
    history += [*new, *([{"role": "user", "content": _blocks(ends, means)}] if ends else [])]


def notes(late: Sequence[LateNote]) -> list[Any]:
    """Return one user message that tells of late results, or `[]` where there are none (B20).

    Roles must alternate, so it belongs behind the assistant's next message; or its text goes into a message of the user's.

    Raises:
        InvalidTypeError: A note has no text.
    """
    text = late_text(late)
    return [] if text is None else [{"role": "user", "content": [_text(text)]}]


CARRIES: Final[Mapping[str, Place]] = carries(Room().carrier("nested"))
"""Where each sort of part travels in this lane (P5)."""


def _text(text: str) -> Block:
    return {"text": text}


def _blocks(ends: Sequence[End], means: _Means) -> list[dict[str, Any]]:
    """Return the content of the message with the results."""
    behind: list[Block] = []
    run = [_result(end, means, behind) for end in ends]
    return [*run, *behind]


def _result(end: End, means: _Means, behind: list[Block]) -> dict[str, Any]:
    """Return the block of one result, and add to `behind` what it can't hold."""
    result: dict[str, Any] = {"toolUseId": end.call_id, "content": [_text(end.text)]}
    parts = end.parts
    if parts is None and not end.text.strip():
        parts = (Text(end.text),)  # blank text is refused
    if parts is not None:
        placed = place(parts, means.room.carrier(means.media), end.name, end.call_id)
        result["content"] = with_text(in_blocks(placed.inside, _text), parts)
        behind += in_blocks(placed.behind, _text)
    elif means.data and not end.failed:
        value = data_of(end.text, RESERVED)
        if isinstance(value, dict):
            result["content"] = [{"json": value}]
    if end.failed and means.status:
        result["status"] = "error"
    return {"toolResult": result}
