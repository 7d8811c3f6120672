"""Which lane a list of messages is in, by what only that lane has."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from toolbatch.core import InvalidInputError, ToolbatchError

from ._law import LANES, LaneName
from ._read import field, members, require_messages, unreadable

__all__ = ["detect"]

_CHAT_ROLES: Final = ("tool", "function", "developer")
_LANGCHAIN_TYPES: Final = ("human", "ai", "tool", "system", "AIMessageChunk", "HumanMessageChunk")
_BEDROCK_KEYS: Final = ("toolUse", "toolResult", "reasoningContent", "cachePoint")
_ANTHROPIC_TYPES: Final = ("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document")
_RESPONSES_TYPES: Final = ("input_text", "output_text", "input_image", "input_file")
_CHAT_TYPES: Final = ("image_url", "input_audio", "refusal", "file")


def detect(messages: list[Any]) -> LaneName:
    """Return the lane that a list is in. The first message that only one lane can have decides.

    A list of plain text, which every lane with roles could have, is `openai_chat`: it has no calls, so each lane would say
    the same of it.

    Raises:
        InvalidInputError: No message has a shape that is known: name the lane. Or a message's own code raises.
        InvalidTypeError: `messages` is not a list, or an entry is no message.
    """
    known = not messages
    for position, message in enumerate(require_messages(messages)):
        try:
            lane, speaks = _lane_of(members(message, position).get)
        except (ToolbatchError, MemoryError):
            raise
        except Exception as error:
            raise unreadable(error, position) from error
        if lane is not None:
            return lane
        known |= speaks
    if known:
        return "openai_chat"
    raise InvalidInputError(f"the messages have no shape that is known: name the lane, one of {', '.join(LANES)}")


def _lane_of(get: Callable[[str], Any]) -> tuple[LaneName | None, bool]:
    """Return the lane that a message is in if only one can have it, and whether it is a message of some lane at all."""
    if get("parts") is not None and get("role") in ("user", "model", "function", None):
        return "gemini", True
    role, kind = get("role"), get("type")
    if role is None:
        if kind in _LANGCHAIN_TYPES:
            return "langchain", True
        return ("openai_responses", True) if kind is not None or get("id") is not None else (None, False)
    if kind == "message" and get("stop_reason") is None:
        return "openai_responses", True  # Anthropic's response is of this type too, and says why it stopped
    if role in _CHAT_ROLES or get("tool_calls") is not None or get("function_call") is not None:
        return "openai_chat", True
    return _by_content(get("content")), True


def _by_content(content: object) -> LaneName | None:
    for block in content if isinstance(content, Sequence) and not isinstance(content, str) else ():
        kind = field(block, "type")
        if kind in _ANTHROPIC_TYPES or field(block, "cache_control") is not None:
            return "anthropic"
        if kind in _RESPONSES_TYPES:
            return "openai_responses"
        if kind in _CHAT_TYPES:
            return "openai_chat"
        if kind is None and (
            field(block, "text") is not None or any(field(block, key) is not None for key in _BEDROCK_KEYS)
        ):
            return "bedrock"
    return None
