"""The assistant turn on its way back: what of it a strict server would refuse for ever, and what it becomes.

A turn is history from the moment it is sent. One with broken arguments or an impossible name makes every later
request fail, so these are put right once, when the turn is written. All else goes back as it came.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from toolbatch.core import ToolbatchError, ToolCall, encode, sound

from ._export import Answer
from ._plain import plain
from ._read import UNNAMED, as_text

__all__ = ["arguments_object", "arguments_text", "replay_name"]

_ILLEGAL: Final = re.compile(r"[^a-zA-Z0-9_-]")  # in all lanes but Gemini
_UNREADABLE: Final = "INVALID_JSON"  # pydantic-ai's key for the same purpose


def _parsed(text: str) -> dict[str, Any] | None:
    # The core's own reader decides, so that what is sent back and what was run never disagree.
    call = ToolCall("", "", text)
    return None if call.problem else call.arguments


def arguments_text(arguments: object) -> str:
    r"""Return arguments as the text of a JSON object, for lanes that carry text.

    The provider's text stays as it is, to the byte, where it is an object's. No text, which means no arguments (T5),
    becomes `{}`, since some servers refuse `""` on replay. All else becomes `{"INVALID_JSON": "<the text>"}`, so that
    the model still sees what it wrote.
    """
    if isinstance(arguments, str) and arguments.strip():
        return sound(arguments) if _parsed(arguments) is not None else encode({_UNREADABLE: sound(arguments)})
    return encode(arguments_object(arguments))


def arguments_object(arguments: object) -> dict[str, Any]:
    """Return arguments as a JSON object, for lanes that carry one: the same rules as `arguments_text`."""
    if arguments is None:
        return {}
    if isinstance(arguments, str):
        parsed = _parsed(arguments)
        return {_UNREADABLE: sound(arguments)} if parsed is None else _detached(parsed, arguments)
    if isinstance(arguments, Mapping):
        return _detached(arguments, arguments)
    return {_UNREADABLE: sound(as_text(arguments))}


def _detached(value: Mapping[str, Any], given: object) -> dict[str, Any]:
    """Return a detached copy of `value`, or what was `given` as unreadable where it holds what JSON does not."""
    try:
        copy: dict[str, Any] = plain(value)
    except (ToolbatchError, RecursionError):
        return {_UNREADABLE: sound(as_text(given))}
    return copy


def replay_name(answer: Answer, max_chars: int, illegal: re.Pattern[str] = _ILLEGAL) -> str:
    """Return the call's name as the turn may carry it, in at most `max_chars` characters.

    A tool that ran was declared under its name, so the server takes that name in a turn too. One that did not may be a
    name that the model made up (`multi_tool_use.parallel`), which OpenAI and Anthropic refuse to read back: in it, what is
    `illegal` becomes `_`.
    """
    name = answer.call.name
    if answer.ran and answer.call.problem is None:
        return name
    return illegal.sub("_", name)[:max_chars] or UNNAMED
