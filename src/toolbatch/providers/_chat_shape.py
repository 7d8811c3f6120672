"""What the lanes in chat's shape share: calls in an assistant message's `tool_calls`, and one message for each result."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolbatch.core import CallProblem, Data, Image, InvalidTypeError, Part, preview
from toolbatch.ports import LateNote

from ._content import IMAGES, Block, data_url, in_blocks, web_url
from ._export import late_text
from ._plain import copied, field, items
from ._read import FILTERED, TOKEN_LIMIT, Draft, cut_off, no_response
from ._replay import arguments_text
from ._stream import BROKEN_OFF, INTERRUPTED
from ._tail import require_answered

__all__ = [
    "carried",
    "ended_early",
    "function_draft",
    "function_entry",
    "image_url",
    "read_choice",
    "read_message",
    "require_answered_turn",
    "runs",
    "text_block",
    "user_note",
]

# `max_tokens`, `error` and their like are no values of OpenAI's: servers behind a gateway send them through.
_CUT_OFF: Final[Mapping[object, CallProblem]] = {
    "length": TOKEN_LIMIT,
    "max_tokens": TOKEN_LIMIT,
    "model_length": TOKEN_LIMIT,
    INTERRUPTED: BROKEN_OFF,
    "content_filter": FILTERED,
    "error": cut_off("the response ended with an error of the model's server, so the arguments may be incomplete"),
}
"""The finish reasons of a response whose calls may not be run. `stop` is none: many servers say so of calls (LANES 14.5)."""


def runs(reason: object) -> bool:
    """Whether a choice that ended so has calls that may run."""
    return ended_early(reason) is None


def ended_early(reason: object) -> CallProblem | None:
    """Return why the calls of a response with this finish reason may not be run, if so."""
    return _CUT_OFF.get(reason) if isinstance(reason, str) else None


def read_choice(response: object, kind: str) -> tuple[object, CallProblem | None]:
    """Return the message of a response's first choice, and why its calls may not be run, if so.

    Raises:
        InvalidTypeError: `response` is neither a response with choices nor an assistant's message.
    """
    choices = items(field(response, "choices"))
    if choices and field(choices[0], "message") is not None:
        reason = field(choices[0], "finish_reason")
        return field(choices[0], "message"), ended_early(reason)
    return _assistant_message(response, response, kind), None


def read_message(response: object, reason: str, kind: str) -> tuple[object, object]:
    """Return a response's one message, and the field that says why it ended. An assistant's message alone will do.

    Raises:
        InvalidTypeError: `response` is neither.
    """
    message = field(response, "message")
    if message is None:
        return _assistant_message(response, response, kind), None
    return _assistant_message(message, response, kind), field(response, reason)


def _assistant_message(message: object, response: object, kind: str) -> object:
    if field(message, "role") != "assistant":
        raise no_response(f"a {kind} or its assistant message", response)
    if any(field(part, "type") == "tool_use" for part in items(field(message, "content"))):
        raise InvalidTypeError(f"{preview(message)} is a message of Anthropic's: read it with anthropic")
    return message


def function_draft(entry: object, truncated: CallProblem | None) -> Draft:
    """Return an entry of `tool_calls` as it came."""
    function = field(entry, "function")
    return Draft(field(entry, "id"), field(function, "name"), field(function, "arguments"), truncated=truncated)


def function_entry(entry: object, call_id: str, name: str) -> dict[str, Any]:
    """Return a call as it came, but for what a server would refuse. `index` is a mark of streams."""
    copy = {**copied(entry, "id", "function", "custom", "index"), "id": call_id}
    copy["type"] = copy.get("type") or "function"
    copy["function"] = {"name": name, "arguments": arguments_text(field(field(entry, "function"), "arguments"))}
    return copy


def require_answered_turn(history: list[Any]) -> None:
    """Refuse a conversation whose last turn has calls without a result, as `require_answered` does."""
    answered: list[object] = []
    for message in reversed(history):
        if field(message, "role") == "assistant":
            require_answered([field(call, "id") for call in items(field(message, "tool_calls"))], answered)
            return
        answered.append(field(message, "tool_call_id"))


def image_url(part: Part) -> Block | None:
    """Return an image as the content block that these lanes have for it.

    `None` for all else: another part, a type that they don't read, an address that they can't fetch from.
    """
    if not isinstance(part, Image) or part.source.media_type not in (None, *IMAGES):
        return None
    url = data_url(part.source) if isinstance(part.source, Data) else web_url(part.source)
    return None if url is None else {"type": "image_url", "image_url": {"url": url}}


def text_block(text: str) -> Block:
    """Return a text as a content block."""
    return {"type": "text", "text": text}


def carried(behind: Sequence[str | Block]) -> list[dict[str, Any]]:
    """Return the one message of the user's with what no result can hold, or nothing where there is nothing (FIELD 111)."""
    return [{"role": "user", "content": in_blocks(behind, text_block)}] if behind else []


def user_note(late: Sequence[LateNote]) -> list[dict[str, Any]]:
    """Return one user message that tells of late results, or `[]` where there are none (B20).

    Raises:
        InvalidTypeError: A note has no text.
    """
    text = late_text(late)
    return [] if text is None else [{"role": "user", "content": text}]
