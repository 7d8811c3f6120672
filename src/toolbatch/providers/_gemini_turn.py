"""One turn of Gemini's: read from a response, written back to the conversation, and looked for at its end."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from toolbatch.core import CallProblem, Part, preview

from ._gemini_wire import either, function_call, is_hollow, wire
from ._ids import IdRule
from ._plain import field, items, members
from ._read import FILTERED, TOKEN_LIMIT, Draft, Turn, cut_off, no_response, not_requested
from ._replay import arguments_object
from ._stream import BROKEN_OFF, INTERRUPTED
from ._tail import require_answered

__all__ = ["End", "parts_of", "read_turn", "require_answered_turn"]

_IDS: Final = IdRule()  # no rule is documented
_CALL_NAMES: Final = ("functionCall", "function_call")
# What a response has beside its candidates, and nothing of another lane has.
_HEAD: Final = (("promptFeedback", "prompt_feedback"), ("modelVersion", "model_version"), ("responseId", "response_id"))
# What a call has in a stream that cuts it into pieces (Vertex AI), and must not have in a request.
_FRAGMENTS: Final = (("partialArgs", "partial_args"), ("willContinue", "will_continue"))
_CALL_FACTS: Final = frozenset(("id", "name", "args", *(name for names in _FRAGMENTS for name in names)))

_UNFINISHED: Final = cut_off("the call was read before it was finished, so the arguments may be incomplete")
_AGAIN: Final = "If it is still needed, call one of the declared tools again, by its name."
# A response with calls ends with `STOP`, as every other does (LANES 4); what else it can end with calls them off.
_RUN: Final = ("STOP", "FINISH_REASON_UNSPECIFIED")
_FILTERS: Final = (
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "ESCALATION",
    "MODEL_ARMOR",
)
_ENDED: Final[Mapping[str, CallProblem]] = {
    "MAX_TOKENS": TOKEN_LIMIT,
    "CONTINUATION": TOKEN_LIMIT,  # it goes on in another response, for whoever asks for that
    INTERRUPTED.upper(): BROKEN_OFF,
    "MALFORMED_FUNCTION_CALL": cut_off("the server could not read a call of the response"),
    "MALFORMED_RESPONSE": cut_off("the server could not read the response"),
    "UNEXPECTED_TOOL_CALL": not_requested("the server found a call of the response that it does not allow", _AGAIN),
    "TOO_MANY_TOOL_CALLS": not_requested(
        "the response made more calls than the server allows", "Continue with fewer calls, or without."
    ),
    **dict.fromkeys(_FILTERS, FILTERED),
}


class End(NamedTuple):
    """One call's outcome, under the name and the id that the call has on the wire.

    Attributes:
        name: The tool's name.
        call_id: The id; `None` if the call goes without.
        number: The call's place in its turn, from 1.
        text: As in `Answer`.
        failed: As in `Answer`.
        parts: As in `Answer`.
    """

    name: str
    call_id: str | None
    number: int
    text: str
    failed: bool
    parts: Sequence[Part] | None


def read_turn(response: object) -> Turn:
    """Read what a response announces.

    Raises:
        InvalidTypeError: It is no response of this lane.
    """
    content, reason, response_id = _content(response)
    ended = _problem(reason) if isinstance(reason, str) else None
    parts = items(field(content, "parts"))
    drafts = [_draft(call, ended) for call in map(function_call, parts) if call is not None]
    return Turn(parts, response_id, _IDS, drafts)


def _content(response: object) -> tuple[object, object, object]:
    """Return the model's content (`None` where a filter left none), the finish reason and the response's id."""
    candidates = items(field(response, "candidates"))
    if candidates:
        reason = either(candidates[0], "finishReason", "finish_reason")
        return field(candidates[0], "content"), reason, either(response, "responseId", "response_id")
    if any(either(response, *names) is not None for names in _HEAD):
        return None, None, None  # the prompt was blocked, or the server sent no candidate, as it does at times
    # Last, for the SDK's response has a `parts` of its own, without the reason why they ended.
    if field(response, "role") in ("model", None) and isinstance(field(response, "parts"), (list, tuple)):
        return response, None, None
    raise no_response("a GenerateContentResponse or a model's content", response)


def _problem(reason: str) -> CallProblem | None:
    name = reason.upper()
    if name in _RUN:
        return None
    unknown = f"the response ended with finishReason {preview(name)} instead of waiting for its calls"
    return _ENDED.get(name) or not_requested(unknown, "If it is still needed, call the tool again.")


def _draft(call: object, ended: CallProblem | None) -> Draft:
    if ended is None and any(either(call, camel, snake) for camel, snake in _FRAGMENTS):
        ended = _UNFINISHED
    return Draft(field(call, "id"), field(call, "name"), field(call, "args"), truncated=ended)


def require_answered_turn(history: list[Any]) -> None:
    """Refuse a conversation whose last turn has calls without a result.

    Raises:
        InvalidInputError: A call has no result. Nothing was appended.
    """
    responses: list[object] = []
    for content in reversed(history):
        parts = items(field(content, "parts"))
        if field(content, "role") == "model":
            require_answered([_label(call) for call in _unanswered(map(function_call, parts), responses)], ())
            return
        found = [either(part, "functionResponse", "function_response") for part in parts]
        responses += [one for one in found if one is not None]


def _unanswered(announced: Iterable[object], responses: Sequence[object]) -> list[object]:
    """Return the calls that no response answers: by id where both have one, else by name, in order."""
    left = list(responses)
    missing: list[object] = []
    for call in announced:
        if call is not None:
            answer = next((one for one in left if _answers(one, call)), None)
            if answer is None:
                missing.append(call)
            else:
                left.remove(answer)
    return missing


def _answers(response: object, call: object) -> bool:
    key = "id" if field(response, "id") and field(call, "id") else "name"
    return bool(field(response, key) == field(call, key))


def _label(call: object) -> object:
    return field(call, "id") or field(call, "name")


def parts_of(source: Sequence[object], ends: Sequence[End]) -> list[dict[str, Any]]:
    """Return the parts of the model's content as they go back to the server. `ends` are those of its calls, in order."""
    unread = iter(ends)
    copies: list[dict[str, Any]] = []
    for part in source:
        call = function_call(part)
        copy = wire(part) if call is None else _call_part(part, call, next(unread))
        if isinstance(copy, dict) and not is_hollow(copy):
            copies.append(copy)
    return copies


def _call_part(part: object, call: object, end: End) -> dict[str, Any]:
    """Return a call's part as it came, but for what a server would refuse."""
    facts: dict[str, Any] = {} if end.call_id is None else {"id": end.call_id}
    facts["name"] = end.name
    if field(call, "args") is not None:
        facts["args"] = arguments_object(field(call, "args"))
    outer = {name: entry for name, entry in members(part).items() if name not in _CALL_NAMES}
    inner = {name: entry for name, entry in members(call).items() if name not in _CALL_FACTS}
    return {**wire(outer), "functionCall": {**wire(inner), **facts}}
