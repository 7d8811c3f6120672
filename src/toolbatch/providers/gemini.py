"""Google Gemini (`generateContent`).

    calls = gemini.calls(response)
    async with ToolBatch(calls, tools=tools) as batch: ...
    gemini.extend(contents, response, batch.result)

Shapes: `google/genai/types.py`. Whatever a response came in, what is written is the wire's form: camelCase keys and base64
text, which the SDK takes as well as its own objects, in one list with them.

A result is an object; its error mark is the key `error` (P4). Since Gemini 3 images, PDFs and plain text stand in the result
they belong to, under a `displayName`. Pointing at them from the result's data (`{"$ref": name}`) is documented, works on
Vertex AI, and is refused by the Developer API, so it has to be asked for. Gemini 2 takes no media in results: ask for it behind
them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from toolbatch.core import Snapshot, ToolCall
from toolbatch.ports import LateNote

from ._content import Block, Carrier, Place, carries, in_blocks, require_media
from ._export import answers, exported, late_text, require_list
from ._gemini_media import Media, carrier, rich, said
from ._gemini_stream import StreamCollector
from ._gemini_turn import End, parts_of, read_turn, require_answered_turn
from ._read import require_choice
from ._replay import replay_name

__all__ = ["CARRIES", "StreamCollector", "calls", "extend", "message", "notes", "results"]

_MAX_NAME: Final = 128
_ILLEGAL_NAME: Final = re.compile(r"^[^a-zA-Z_]|[^a-zA-Z0-9_.:-]")


def calls(response: object, *, expect: str | None = None) -> list[ToolCall]:
    """Return the calls that the first candidate announces, in its order (P1).

    `functionCall` parts are calls; what the server runs itself (`toolCall`, `executableCode`), thoughts and text are not
    (P3). A call that can't be run has a `problem` and is answered with it; none raises (P6). All calls of a candidate whose
    `finishReason` is there and is not `STOP` are such calls. An id is optional here: a call that has none gets one of ours,
    which never leaves.

    Args:
        response: A `GenerateContentResponse` or a model's `Content`: the SDK's object, its `model_dump()`, or the wire's JSON.
        expect: The tool that the request forced, to be checked before anything runs (P7).

    Raises:
        InvalidTypeError: `response` is none of these.
        ProviderMismatchError: The candidate does not call `expect`, or calls another tool.
    """
    return require_choice(read_turn(response).calls(), expect)


def results(snapshot: Snapshot, *, media: Media = "nested") -> list[Any]:
    """Return one `functionResponse` part a call, in the order of announcement (C16): servers pair by it where ids are absent.

    A success that is a JSON object is `response` as it is, unless Gemini would read something else in it: then, and if it
    is no object, it is `{"output": ...}`. A failure is `{"error": {"code", "message", ...}}` (P4). An id is there only if the
    call had one, and is the provider's own, even where two calls share one, because it must match the content as it was
    received; `extend` puts both right.

    Args:
        snapshot: A closed snapshot.
        media: `nested` puts images, PDFs and plain text into the result, `referenced` also points at them from its data
            (Vertex AI), and `after`, for Gemini 2, leaves them to `extend`. What is not sent is said in text (P5).

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet. Or there is no such `media`.
    """
    require_media(media, *get_args(Media))
    means = carrier(media, behind=False)
    ends = [
        End(call.name, _wire_id(call, call.wire_id or call.id), number, text, failed, parts)
        for number, (call, text, failed, parts) in enumerate(exported(snapshot), 1)
    ]
    return _run(ends, means, media)[0]


def message(snapshot: Snapshot, *, media: Media = "nested") -> Any:
    """Return the one content with all results, and with nothing else in it (P2).

    It must directly follow the model's content. Other parts beside results make servers take it for the model's own. A batch
    of no calls gives a content without parts, which the API refuses: there is nothing to send.

    Args:
        snapshot: As in `results`.
        media: As in `results`.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet. Or there is no such `media`.
    """
    return {"role": "user", "parts": results(snapshot, media=media)}


def extend(messages: list[Any], response: object, snapshot: Snapshot | None = None, *, media: Media = "nested") -> None:
    """Append the model's content and the content with its results to `messages`, in place, and nothing else (P2).

    Parts go back as they came, in their order, with their `thoughtSignature`; left out are hollow ones, which the API sends
    but does not take back, and a content that has no other. Ids that are blank or repeated are ours on both sides; where the
    call had none, there is none on either. Arguments that are no JSON object become one, `{"INVALID_JSON": text}`.
    Media that can't be in a result follows in a content of its own, which says whose it is (P5, FIELD 111).

    Args:
        messages: The contents so far, of dicts or the SDK's objects. The last turn is read; nothing in it is changed.
        response: As in `calls`.
        snapshot: The closed snapshot of the batch made of that response's calls; a response without calls needs none.
        media: As in `results`. With `after`, and for what no result can hold, media follows the results.

    Raises:
        InvalidTypeError: `messages` is not a list, `response` no response, or `snapshot` not made here.
        InvalidInputError: The snapshot is open, missing, or of other calls; or the last turn in `messages` has calls without
            a result; or there is no such `media`. In every case the list is as it was.
    """
    history = require_list(messages)
    turn = read_turn(response)
    require_media(media, *get_args(Media))
    means = carrier(media, behind=True)
    replies = answers(turn.calls(), snapshot)
    require_answered_turn(history)
    names = [replay_name(answer, _MAX_NAME, _ILLEGAL_NAME) for answer in replies]
    ends = [
        End(name, _wire_id(answer.call, answer.call.id), number, answer.text, answer.failed, answer.parts)
        for number, (answer, name) in enumerate(zip(replies, names, strict=True), 1)
    ]
    parts = parts_of(turn.source, ends)
    run, behind = _run(ends, means, media)
    new = [{"role": "model", "parts": parts}] if parts else []
    history += [*new, *[{"role": "user", "parts": more} for more in (run, in_blocks(behind, _text)) if more]]


def notes(late: Sequence[LateNote]) -> list[Any]:
    """Return one content of the user's that tells of late results, or `[]` where there are none (B20).

    It belongs behind the content with results, never into it.

    Raises:
        InvalidTypeError: A note has no text.
    """
    text = late_text(late)
    return [] if text is None else [{"role": "user", "parts": [_text(text)]}]


CARRIES: Final[Mapping[str, Place]] = carries(carrier("nested", behind=True))
"""Where each sort of part travels in this lane, with `extend` (P5)."""


def _wire_id(call: ToolCall, call_id: str) -> str | None:
    return None if call.wire_id == "" else call_id  # it had none that is text


def _run(ends: Sequence[End], means: Carrier, media: Media) -> tuple[list[dict[str, Any]], list[str | Block]]:
    """Return the parts of all results, and what travels behind them."""
    behind: list[str | Block] = []
    return [_result(end, means, media, behind) for end in ends], behind


def _result(end: End, means: Carrier, media: Media, behind: list[str | Block]) -> dict[str, Any]:
    facts: dict[str, Any] = {} if end.call_id is None else {"id": end.call_id}
    facts["name"] = end.name
    if end.parts is None:
        facts["response"] = said(end.text, failed=end.failed)
    else:
        made = rich(end.parts, means, media, end.name, end.call_id or f"number {end.number}")
        facts["response"] = made.response
        if made.parts:
            facts["parts"] = made.parts
        behind += made.behind
    return {"functionResponse": facts}


def _text(text: str) -> Block:
    return {"text": text}
