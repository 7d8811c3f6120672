"""Google Gemini's Interactions API.

    calls = gemini_interactions.calls(interaction)
    async with ToolBatch(calls, tools=tools) as batch: ...
    client.interactions.create(..., previous_interaction_id=interaction.id, input=gemini_interactions.results(batch.result))
    gemini_interactions.extend(steps, interaction, batch.result)   # or keep all steps, with `store=False`

Shapes: `google/genai/_gaos/types/interactions/*`, which are all that is known of this API's rules. A result is text, or a list
with images, documents, recordings and films in it (P5, FIELD 113), and has an error mark (P4).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolbatch.core import CallProblem, Data, Document, Image, Part, Snapshot, ToolCall, preview
from toolbatch.ports import LateNote

from ._content import Block, Carrier, Place, carries, content_of, place
from ._export import answers, exported, late_text, require_list
from ._gemini_media import is_readable, media_type_of
from ._ids import IdRule
from ._plain import copied, field, plain
from ._read import TOKEN_LIMIT, Draft, Turn, cut_off, no_response, not_requested, require_choice
from ._replay import arguments_object, replay_name
from ._tail import require_answered

__all__ = ["CARRIES", "calls", "extend", "notes", "results"]

_IDS: Final = IdRule()  # no rule is documented
_MAX_NAME: Final = 128
_CALL: Final = "function_call"
_RESULT: Final = "function_result"
# What a model accepts of each kind (`imagecontent.py`, `documentcontent.py`, `audiocontent.py`, `videocontent.py`).
_IMAGES: Final = ("png", "jpeg", "webp", "heic", "heif", "gif", "bmp", "tiff")
_OFFICE: Final = "application/vnd.openxmlformats-officedocument"
_OPEN: Final = "application/vnd.oasis.opendocument"
_DOCUMENTS: Final = (
    "application/pdf",
    "text/csv",
    "application/msword",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    f"{_OFFICE}.wordprocessingml.document",
    f"{_OFFICE}.wordprocessingml.template",
    f"{_OFFICE}.spreadsheetml.sheet",
    f"{_OFFICE}.presentationml.presentation",
    f"{_OPEN}.text",
    f"{_OPEN}.spreadsheet",
    f"{_OPEN}.presentation",
)
_UNFINISHED: Final = cut_off("the interaction was read before it was finished, so the arguments may be incomplete")
# `requires_action` asks for tools to be run. Another status can stand beside calls all the same.
_ENDED: Final[Mapping[str, CallProblem]] = {
    "in_progress": _UNFINISHED,
    "queued": _UNFINISHED,
    "incomplete": TOKEN_LIMIT,
    "requires_continuation": TOKEN_LIMIT,  # it goes on in another interaction, for whoever asks for that
    "budget_exceeded": cut_off("the interaction ended at its budget, so the arguments may be incomplete"),
    "failed": cut_off("the interaction failed on the model's server before it was complete"),
    "cancelled": cut_off("the interaction was cancelled before it was complete"),
}


def calls(response: object, *, expect: str | None = None) -> list[ToolCall]:
    """Return the calls that an interaction announces, in its order (P1).

    `function_call` steps are calls; what the server runs itself (`google_search_call`, `mcp_server_tool_call`, ...), thoughts
    and output are not, and a call that the interaction has the result of is none any more (P3). A call that can't be run
    has a `problem` and is answered with it; none raises (P6). All calls of an interaction whose `status` is there and is not
    `requires_action` are such calls.

    Args:
        response: An `Interaction` or the list of its steps: the SDK's objects, their dumps, or the wire's JSON.
        expect: The tool that the request forced, to be checked before anything runs (P7).

    Raises:
        InvalidTypeError: `response` is none of these.
        ProviderMismatchError: The interaction does not call `expect`, or calls another tool.
    """
    return require_choice(_read(response).calls(), expect)


def results(snapshot: Snapshot) -> list[Any]:
    """Return one `function_result` step a call, in the order of announcement (C16); failures have `is_error` (P4).

    They are the next request's `input`, with `previous_interaction_id`. The ids are the provider's own, even where two calls
    share one, because they must match the steps that the server keeps; `extend` puts both right.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet.
    """
    return [
        _result(call.wire_id or call.id, call.name, text, parts, failed=failed)
        for call, text, failed, parts in exported(snapshot)
    ]


def extend(messages: list[Any], response: object, snapshot: Snapshot | None = None) -> None:
    """Append the interaction's steps, then one result a call, to the steps in `messages`, and nothing else (P2).

    For hosts that keep the conversation themselves (`store=False`). Steps go back as they came, in their order, with their
    signatures. Ids that are missing or repeated are ours on both sides. Arguments that are no JSON object become one,
    `{"INVALID_JSON": text}`.

    Args:
        messages: The steps so far, of dicts or the SDK's objects. The last turn is read; nothing in it is changed.
        response: As in `calls`.
        snapshot: The closed snapshot of the batch made of that interaction's calls; one without calls needs none.

    Raises:
        InvalidTypeError: `messages` is not a list, `response` no interaction, or `snapshot` not made here.
        InvalidInputError: The snapshot is open, missing, or of other calls, or the last turn in `messages` has calls without
            a result. In every case the list is as it was.
    """
    history = require_list(messages)
    turn = _read(response)
    replies = answers(turn.calls(), snapshot)
    _require_answered(history)
    names = [replay_name(answer, _MAX_NAME) for answer in replies]
    open_calls = {id(step) for step in _open_calls(turn.source)}
    rows = list(zip(replies, names, strict=True))
    unread = iter(rows)
    steps = []
    for step in turn.source:
        if id(step) in open_calls:
            answer, name = next(unread)
            steps.append(_call_step(step, answer.call.id, name))
        else:
            steps.append(plain(step))
    history += [
        *steps,
        *[_result(answer.call.id, name, answer.text, answer.parts, failed=answer.failed) for answer, name in rows],
    ]


def notes(late: Sequence[LateNote]) -> list[Any]:
    """Return one step of the user's that tells of late results, or `[]` where there are none (B20).

    Raises:
        InvalidTypeError: A note has no text.
    """
    text = late_text(late)
    return [] if text is None else [{"type": "user_input", "content": [_text(text)]}]


def _read(response: object) -> Turn:
    steps = response if isinstance(response, (list, tuple)) else field(response, "steps")
    if steps is None and isinstance(field(response, "status"), str):
        steps = ()  # "when included in the response"
    if not isinstance(steps, (list, tuple)) or any(field(step, "type") is None for step in steps):
        raise no_response("an Interaction or a list of its steps", response)
    status = None if steps is response else field(response, "status")
    ended = None if status in (None, "requires_action") else _problem(status)
    drafts = [
        Draft(field(step, "id"), field(step, "name"), field(step, "arguments"), truncated=ended)
        for step in _open_calls(steps)
    ]
    return Turn(steps, None if steps is response else field(response, "id"), _IDS, drafts)


def _problem(status: object) -> CallProblem:
    unknown = f"the interaction has the status {preview(status)} instead of waiting for its calls"
    return _ENDED.get(str(status)) or not_requested(unknown, "If it is still needed, call the tool again.")


def _open_calls(steps: Sequence[object]) -> list[object]:
    """Return the calls that no step behind them answers."""
    opened: list[object] = []
    for step in steps:
        kind = field(step, "type")
        if kind == _CALL:
            opened.append(step)
        elif kind == _RESULT:
            answered = [at for at, call in enumerate(opened) if field(call, "id") == field(step, "call_id")]
            if answered:
                del opened[answered[0]]
    return opened


def _require_answered(history: list[Any]) -> None:
    require_answered([field(call, "id") or field(call, "name") for call in _open_calls(history)], ())


def _result(call_id: str, name: str, text: str, parts: Sequence[Part] | None, *, failed: bool) -> dict[str, Any]:
    result = text if parts is None else content_of(place(parts, _CARRIER, name, call_id).inside, _text)
    mark = {"is_error": True} if failed else {}
    return {"type": _RESULT, "call_id": call_id, "name": name, "result": result, **mark}


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _nest(part: Part) -> Block | None:
    source = part.source if isinstance(part, Image | Document) else None
    kind = None if source is None else _kind(media_type_of(source))
    if source is None or kind is None:
        return None
    if isinstance(source, Data):
        return {"type": kind, "mime_type": media_type_of(source), "data": source.base64}
    return {"type": kind, "mime_type": media_type_of(source), "uri": source.url} if is_readable(source) else None


def _kind(media_type: str | None) -> str | None:
    if media_type in _DOCUMENTS:
        return "document"
    kind, _, subtype = (media_type or "").partition("/")
    if kind in ("audio", "video"):
        return kind
    return kind if kind == "image" and subtype in _IMAGES else None


def _call_step(step: object, call_id: str, name: str) -> dict[str, Any]:
    """Return a call's step as it came, but for what a server would refuse."""
    facts = {"type": _CALL, "id": call_id, "name": name, "arguments": arguments_object(field(step, "arguments"))}
    return {**copied(step, *facts), **facts}


_CARRIER: Final = Carrier(nest=_nest)
CARRIES: Final[Mapping[str, Place]] = carries(_CARRIER)
"""Where each sort of part travels in this lane (P5)."""
