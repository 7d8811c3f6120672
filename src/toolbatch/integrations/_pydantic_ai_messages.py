"""pydantic-ai's messages, read and written. Its objects are frozen in effect: what changes is a copy.

`ToolReturnPart.outcome` has five words, of which a model's provider marks two as errors: `failed` and `retried` (LANES 11).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    DocumentUrl,
    FileUrl,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    VideoUrl,
)

from toolbatch.core import (
    CallProblem,
    Data,
    Document,
    Encoder,
    Image,
    InvalidInputError,
    InvalidTypeError,
    Json,
    Part,
    Settlement,
    Text,
    ToolCall,
    Url,
    described,
    preview,
    text_of,
)
from toolbatch.providers.kit import (
    FILTERED,
    TOKEN_LIMIT,
    Draft,
    IdRule,
    Turn,
    cut_off,
    failure_text,
    field,
    items,
    unused,
)

__all__ = [
    "answered_in_order",
    "content_of",
    "media_of",
    "outcome_of",
    "read_turn",
    "return_part",
    "truncation",
    "used_ids",
    "with_ids",
]

_IDS: Final = IdRule()
_UNFINISHED: Final = cut_off("the response was read before it was finished, so the arguments may be incomplete")
_INTERRUPTED: Final = cut_off("the response was interrupted, so the arguments may be incomplete")
_FAILED: Final = cut_off("the model's server ended the response with an error")
_STATES: Final = {"incomplete": _UNFINISHED, "interrupted": _INTERRUPTED}
_REASONS: Final = {"length": TOKEN_LIMIT, "content_filter": FILTERED, "error": _FAILED}

Outcome = Literal["success", "failed", "denied", "interrupted", "retried"]
_AGAIN: Final = ("malformed_arguments", "invalid_arguments", "unknown_tool", "response_truncated")
_NO_RESULT: Final = ("batch_failed", "not_started")


def read_turn(response: object) -> Turn:
    """Return what a model's response announces.

    Raises:
        InvalidTypeError: It is no response.
    """
    parts = response if isinstance(response, list | tuple) else field(response, "parts")
    is_response = parts is response or field(response, "kind") == "response"
    if not isinstance(parts, list | tuple) or not is_response:
        raise InvalidTypeError(f"response must be a ModelResponse, its dict, or its parts, not {preview(response)}")
    if field(response, "state") == "suspended":
        return Turn(response, None, _IDS, [])  # it is resent as it is and goes on
    truncated = truncation(response)
    drafts = [
        Draft(field(part, "tool_call_id"), field(part, "tool_name"), field(part, "args"), truncated=truncated)
        for part in parts
        if _is_call(part)
    ]
    return Turn(response, field(response, "provider_response_id"), _IDS, drafts)


def truncation(response: object) -> CallProblem | None:
    """Return why a response's calls may not be run though they look whole, if so (LANES 14.4)."""
    state, reason = field(response, "state"), field(response, "finish_reason")
    found = _STATES.get(state) if isinstance(state, str) else None
    return found or (_REASONS.get(reason) if isinstance(reason, str) else None)


def _is_call(part: object) -> bool:
    return bool(
        field(part, "part_kind") == "tool-call"
    )  # a native one, `builtin-tool-call`, is its provider's to answer


def used_ids(messages: Sequence[object]) -> set[str]:
    """Return the ids of all calls in a conversation."""
    parts = [part for message in messages for part in items(field(message, "parts"))]
    ids = [field(part, "tool_call_id") for part in parts if _is_call(part)]
    return {call_id for call_id in ids if isinstance(call_id, str)}


def with_ids(response: ModelResponse, used: set[str]) -> tuple[ModelResponse, list[str]]:
    """Return a response whose calls have distinct ids, none of which is `used`, and those ids; the same object if it has."""
    ids = unused([call.id for call in read_turn(response).calls()], used)
    fresh = iter(ids)
    parts = [
        replace(part, tool_call_id=next(fresh)) if isinstance(part, ToolCallPart) else part for part in response.parts
    ]
    if parts == list(response.parts):
        return response, ids
    return replace(response, parts=parts), ids


# -- results ---------------------------------------------------------------------------------------------------------------


def outcome_of(settlement: Settlement) -> Outcome:
    """Return pydantic-ai's word for how a call ended.

    `retried` where the model is to make the call again, `denied` where a person or policy said no, `interrupted` where the turn
    ended before there was a result, else `failed`. A timeout is a failure: the model should read it as an error.
    """
    if settlement.status == "success":
        return "success"
    if settlement.code in _AGAIN:
        return "retried"
    if settlement.code == "denied":
        return "denied"
    if settlement.code in _NO_RESULT or (settlement.status == "cancelled" and settlement.code != "timeout"):
        return "interrupted"
    return "failed"


def return_part(call: ToolCall, call_id: str, settlement: Settlement, metadata: Any) -> ToolReturnPart:
    """Return one call's answer."""
    content: Any = failure_text(settlement) if settlement.content is None else settlement.content
    if settlement.parts is not None:
        content = content_of(settlement.parts)
    outcome = outcome_of(settlement)
    return ToolReturnPart(call.name, content, call_id, metadata=metadata, outcome=outcome)


def content_of(parts: Sequence[Part]) -> str | list[UserContent]:
    """Return parts as pydantic-ai's content, which its models turn into what each provider can be sent."""
    found = [_content(part) for part in parts]
    found = [entry for entry in found if not isinstance(entry, str) or entry.strip()]
    if all(isinstance(entry, str) for entry in found):
        return text_of(tuple(parts))
    return found


def _content(part: Part) -> UserContent:
    if isinstance(part, Image | Document):
        source = part.source
        if isinstance(source, Data):
            return BinaryContent(source.data, media_type=source.media_type)
        kind = (source.media_type or "").partition("/")[0]
        urls: dict[str, type[ImageUrl | AudioUrl | VideoUrl]] = {"audio": AudioUrl, "video": VideoUrl}
        of = ImageUrl if isinstance(part, Image) else urls.get(kind, DocumentUrl)
        return of(source.url, media_type=source.media_type)
    return described(part)


def media_of(files: Sequence[Any], data: Any, encode: Encoder) -> tuple[Part, ...]:
    """Return a tool's own content as parts, so that the batch's bounds on media hold for it too."""
    texts = [] if data is None else [Text(data) if isinstance(data, str) else Json(data, encode=encode)]
    return (*texts, *[_part(file, encode) for file in files])


def _part(file: Any, encode: Encoder) -> Part:
    try:
        if isinstance(file, BinaryContent):
            source = Data(file.data, file.media_type)
        elif isinstance(file, FileUrl):
            source = Url(file.url, file.media_type)  # type: ignore[assignment]  # either is a source
        else:
            return Json(file, encode=encode)
        return Image(source) if source.media_type.startswith("image/") else Document(source)
    except (InvalidInputError, InvalidTypeError, ValueError):
        return Text(f"[file: {preview(file)}]")  # a dialect of its own, such as a file without a type


def answered_in_order(
    response: ModelResponse, request: ModelRequest, missing: dict[str, ToolReturnPart]
) -> ModelRequest:
    """Return a request with the answers that were missing, all answers in the order of the calls and before all else."""
    own = [part for part in request.parts if isinstance(part, ToolReturnPart)]
    rest = [part for part in request.parts if not isinstance(part, ToolReturnPart)]
    place = {part.tool_call_id: at for at, part in enumerate(response.parts) if isinstance(part, ToolCallPart)}
    answers = sorted([*own, *missing.values()], key=lambda part: place.get(part.tool_call_id, len(place)))
    return replace(request, parts=[*answers, *rest])
