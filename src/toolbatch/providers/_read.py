"""From what a response announces to `ToolCall`s: the part of reading that is the same in every lane.

A lane collects `Draft`s, with every field as it came. Whatever is wrong with one becomes its `CallProblem`, because the
model must hear of it: nothing here raises for a bad call (P6).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from toolbatch.core import (
    CallProblem,
    InvalidTypeError,
    ProviderMismatchError,
    ToolbatchError,
    ToolCall,
    cut,
    encode,
    preview,
    sound,
)

from ._ids import IdRule, assign, is_blank
from ._plain import plain

__all__ = [
    "FILTERED",
    "TOKEN_LIMIT",
    "UNNAMED",
    "Draft",
    "Turn",
    "as_text",
    "cut_off",
    "echo_of",
    "no_response",
    "not_requested",
    "require_choice",
]

UNNAMED: Final = "unnamed_tool"
_MAX_NAME_BYTES: Final = 512  # what the core takes by default; the lanes' own 64 and 128 are for declared tools
_CUT_NAME_BYTES: Final = 64


@dataclass(frozen=True, slots=True)
class Draft:
    """A call as a response announces it; nothing in it can be relied on yet.

    Attributes:
        wire_id: The provider's id, of any type; `None` where there is none.
        name: The tool's name, of any type.
        arguments: JSON text, an object, or anything else; the input text of a custom call.
        kind: As in `ToolCall`.
        echo: As in `ToolCall`.
        truncated: Why the response was cut off, so that the call may not be run; else `None`.
    """

    wire_id: object
    name: object
    arguments: object
    kind: Literal["function", "custom"] = "function"
    echo: Mapping[str, Any] | None = None
    truncated: CallProblem | None = None


def cut_off(
    why: str, advice: str = "If it is still needed, call the tool again with complete arguments."
) -> CallProblem:
    """Return the problem of every call in a response that was cut off, so that its calls may be incomplete (P6)."""
    return CallProblem("response_truncated", f"The tool was not run, because {why}. {advice}")


def not_requested(why: str, advice: str) -> CallProblem:
    """Return the problem of every call in a response that ended otherwise than by asking for its calls to be run (P6)."""
    return CallProblem("not_requested", f"The tool was not run, because {why}. {advice}")


TOKEN_LIMIT: Final = cut_off(
    "the response was cut off at its token limit, so the arguments may be incomplete",
    "If it is still needed, call the tool again with complete, shorter arguments.",
)
FILTERED: Final = cut_off("the response was stopped by a content filter, so the arguments may be incomplete")


def as_text(value: object) -> str:
    """Return any value as text: text as it is, nothing as nothing, else compact JSON, or its `repr` where it has none."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return encode(plain(value))
    except (ToolbatchError, RecursionError):
        return preview(value, 200)


def echo_of(facts: Mapping[str, object]) -> dict[str, Any]:
    """Return those of a call's `facts` that are there, detached. One that JSON can't hold could not travel back: it is left out."""
    kept: dict[str, Any] = {}
    for name, fact in facts.items():
        if fact:
            try:
                kept[name] = plain(fact)
            except (ToolbatchError, RecursionError):
                continue
    return kept


def _read_name(name: object) -> tuple[str, CallProblem | None]:
    if not isinstance(name, str) or not name.strip():
        problem = "The call has no tool name, so nothing was run. Call one of the declared tools by its name."
        return UNNAMED, CallProblem("unknown_tool", problem)
    clean = sound(name)
    if clean == name and len(clean.encode()) <= _MAX_NAME_BYTES:
        return clean, None
    short = cut(clean, _CUT_NAME_BYTES)
    problem = f"No tool has the name {short!r}, so nothing was run. Call one of the declared tools by its name."
    return short, CallProblem("unknown_tool", problem)


def _read_arguments(draft: Draft) -> tuple[Mapping[str, Any] | str | None, CallProblem | None]:
    """Return what the `ToolCall` gets: detached, so that a tool that changes its arguments can't change the response."""
    arguments = draft.arguments
    if draft.kind == "custom":
        return {"input": as_text(arguments)}, None  # free text, which only looks like JSON at times
    if arguments is None or isinstance(arguments, str):
        return arguments, None
    if isinstance(arguments, Mapping):
        try:
            return plain(arguments), None
        except (ToolbatchError, RecursionError) as error:
            problem = f"The arguments are not valid JSON ({error}), so the tool was not run. Call it again with others."
            return None, CallProblem("malformed_arguments", problem)
    return as_text(arguments), None  # JSON, but no object: the core says so to the model


@dataclass(frozen=True, slots=True)
class Turn:
    """What a lane read of one response.

    Attributes:
        source: The part of the response that goes back as the assistant's turn, as it came.
        response_id: The response's own id, of any type; it goes into the ids that are made here.
        rule: What the lane accepts as an id.
        drafts: The calls as they came, in order.
    """

    source: Any
    response_id: object
    rule: IdRule
    drafts: list[Draft]

    def calls(self) -> list[ToolCall]:
        """Return the calls in their order, with distinct ids that the lane accepts. Never raises (P6)."""
        ids = assign([draft.wire_id for draft in self.drafts], self.rule, self._seed)
        return [_call(draft, call_id) for draft, call_id in zip(self.drafts, ids, strict=True)]

    def _seed(self, position: int) -> Sequence[object]:
        draft = self.drafts[position]
        # No id is an id that says nothing: an SDK fills in its own word for it, and the wire has none.
        wire_id = None if is_blank(draft.wire_id) else draft.wire_id
        return [as_text(part) for part in (self.response_id, draft.name, draft.arguments, wire_id)]


def _call(draft: Draft, call_id: str) -> ToolCall:
    name, bad_name = _read_name(draft.name)
    arguments, bad_arguments = _read_arguments(draft)
    wire_id = draft.wire_id if isinstance(draft.wire_id, str) else ""
    return ToolCall(
        call_id,
        name,
        arguments,
        problem=draft.truncated or bad_name or bad_arguments,
        wire_id=None if wire_id == call_id else wire_id,
        kind=draft.kind,
        echo=draft.echo,
    )


def require_choice(calls: list[ToolCall], expect: str | None) -> list[ToolCall]:
    """Return `calls` if each of them, and at least one, is of the tool that the request forced (P7).

    Raises:
        InvalidTypeError: `expect` is neither a name nor `None`.
        ProviderMismatchError: There is no call, or one of another tool. Nothing has been run.
    """
    if expect is None:
        return calls
    if not isinstance(expect, str):
        raise InvalidTypeError(f"expect must be a tool's name or None, not {preview(expect)}")
    if not calls:
        raise ProviderMismatchError(f"the response should call {expect!r}, but it calls no tool")
    others = [call.name for call in calls if call.name != expect]
    if others:
        raise ProviderMismatchError(
            f"the response should call {expect!r} and nothing else, but it calls {preview(others, 200)}"
        )
    return calls


def no_response(kinds: str, given: object) -> InvalidTypeError:
    """Return the error for what is none of the `kinds` of response that a lane reads, with what to do where that can be told."""
    kind, advice = type(given), ""
    if hasattr(kind, "__await__"):
        advice = "; await it first"
    elif hasattr(kind, "__aiter__") or hasattr(kind, "__next__"):
        advice = "; a stream's events go to the lane's StreamCollector, which then has the calls"
    return InvalidTypeError(f"response must be {kinds}, not {preview(given)}{advice}")
