"""Arguments that strict servers refuse: a step of its own, which the law never does silently.

A call whose arguments were cut off stays in the history as it was written. OpenAI reads it back; vLLM, llama-server and others
refuse the conversation for ever ("arguments must be a valid JSON object string", LANES 14.3). Here such arguments become
an object, `{"INVALID_JSON": <the text>}`, as in the lanes' `extend`, so that the model still sees what it wrote.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolbatch.core import ToolbatchError, ToolCall, encode, preview, sound

from ._law import LaneName, lane_of
from ._openai_responses import item_type
from ._read import NO_MESSAGE, changed, field, key_of, members, require_messages, unreadable
from ._turns import label_of

__all__ = ["ArgumentsRepair", "RepairedArguments", "repair_arguments"]

_UNREADABLE: Final = "INVALID_JSON"
_EACH: Final = "*"  # every entry of a list
_USE: Final = "=tool_use"  # only where the type is this: other blocks have an `input` too, and it is the server's
_OURS: Final = "!server_tool_use"  # only where the type is not this

# Where a lane keeps the arguments of calls: members to go down by, the last of which holds text or an object.
_TEXTS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "openai_chat": (("tool_calls", _EACH, "function", "arguments"), ("function_call", "arguments")),
    "openai_responses": (("arguments",),),
    "langchain": (("invalid_tool_calls", _EACH, "args"),),
}
_OBJECTS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "anthropic": (("content", _EACH, _USE, "input"),),
    "bedrock": (("content", _EACH, "toolUse", _OURS, "input"),),
    "gemini": (("parts", _EACH, "functionCall", "args"), ("parts", _EACH, "function_call", "args")),
    "langchain": (("tool_calls", _EACH, "args"), ("content", _EACH, _USE, "input")),
}


@dataclass(frozen=True, slots=True)
class ArgumentsRepair:
    """One call whose arguments were replaced.

    Attributes:
        call_id: Its id; empty where it has none.
        position: The index of its message.
        original: The arguments as they were, kept aside.
        text: What was done, as a sentence.
    """

    call_id: str
    position: int
    original: Any
    text: str


@dataclass(frozen=True, slots=True)
class RepairedArguments:
    """Messages in which every call's arguments are an object.

    Attributes:
        messages: The messages. The very list that was given if nothing had to be done.
        repairs: What was replaced, in the order of the transcript.
    """

    messages: list[Any]
    repairs: tuple[ArgumentsRepair, ...] = ()


def repair_arguments(messages: list[Any], lane: LaneName) -> RepairedArguments:
    """Replace arguments that are no JSON object by one, for servers that refuse them.

    Blank arguments become `{}`. An object where the lane wants text becomes its text, and the other way round. All else
    becomes `{"INVALID_JSON": <the text>}`. Custom calls carry free text, and hosted calls are the server's: both stay.

    Args:
        messages: The messages, in the lane's shape; never changed.
        lane: The format.

    Raises:
        InvalidInputError: The lane is unknown, or a message's own code raises when it is read or copied.
        InvalidTypeError: `messages` is not a list, or an entry is no message.
    """
    lane_of(lane)
    repairs: list[ArgumentsRepair] = []
    view = list(require_messages(messages))
    for position, message in enumerate(messages):
        try:
            view[position] = _mended(message, position, lane, repairs)
        except (ToolbatchError, MemoryError):
            raise
        except Exception as error:
            raise unreadable(error, position) from error
    return RepairedArguments(view, tuple(repairs)) if repairs else RepairedArguments(messages)


def _mended(message: Any, position: int, lane: LaneName, repairs: list[ArgumentsRepair]) -> Any:
    get = members(message, position).get
    if lane == "openai_responses" and item_type(get) != "function_call":
        return message
    for mend, paths in ((_as_text, _TEXTS.get(lane, ())), (_as_object, _OBJECTS.get(lane, ()))):
        for path in paths:
            message = _Walk(position, mend, repairs).mended(message, path, "")
    return message


class _Walk:
    """The way down to the arguments of one message, and back up with copies of what changed."""

    def __init__(self, position: int, mend: Callable[[Any], Any], repairs: list[ArgumentsRepair]) -> None:
        self._position = position
        self._mend = mend
        self._repairs = repairs

    def mended(self, node: Any, path: tuple[str, ...], call_id: str) -> Any:
        name, rest = path[0], path[1:]
        if name == _EACH:
            if not isinstance(node, (list, tuple)):
                return node
            entries = [self.mended(entry, rest, call_id) for entry in node]
            return node if all(one is other for one, other in zip(entries, node, strict=True)) else entries
        if not isinstance(node, Mapping) and isinstance(node, NO_MESSAGE):
            return node
        if name in (_USE, _OURS):
            fits = (field(node, "type") == name[1:]) == (name == _USE)
            return self.mended(node, rest, call_id) if fits else node
        call_id = _label(node) or call_id
        if rest:
            below = field(node, name)
            mended = below if below is None else self.mended(below, rest, call_id)
            return node if mended is below else changed(node, {name: mended})
        return self._leaf(node, name, call_id)

    def _leaf(self, node: Any, name: str, call_id: str) -> Any:
        value = field(node, name)
        if value is None and name == "args":
            return node  # Gemini leaves them out where there are none
        mended = self._mend(value)
        if mended is value:
            return node
        text = (
            f"messages[{self._position}]: the arguments of {call_id or 'a call'} are no JSON object: {preview(value)}"
        )
        self._repairs.append(ArgumentsRepair(call_id, self._position, value, text))
        return changed(node, {name: mended})


def _label(node: object) -> str:
    """Return what reports name a call by, if this is where its id stands."""
    keys = [key_of(field(node, name)) for name in ("call_id", "toolUseId", "id")]
    return label_of(next((key for key in keys if key is not None), None), "")


def _as_text(value: Any) -> Any:
    if isinstance(value, str):
        if not value.strip():
            return "{}"
        return value if _parsed(value) is not None else encode({_UNREADABLE: sound(value)})
    return "{}" if value is None else _encoded(value if isinstance(value, Mapping) else {_UNREADABLE: _written(value)})


def _as_object(value: Any) -> Any:
    if isinstance(value, Mapping):
        return value
    if isinstance(value, str):
        parsed = _parsed(value)
        return {_UNREADABLE: sound(value)} if parsed is None else parsed
    return {} if value is None else {_UNREADABLE: _written(value)}


def _parsed(text: str) -> dict[str, Any] | None:
    # The core's own reader decides, as it does before a call is run.
    call = ToolCall("", "", text)
    return None if call.problem else call.arguments


def _encoded(value: Any) -> str:
    try:
        return encode(value)
    except ToolbatchError:
        return encode({_UNREADABLE: preview(value, 10_000)})


def _written(value: Any) -> str:
    return value if isinstance(value, str) else _encoded(value)
