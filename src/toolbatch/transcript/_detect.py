"""Which lane a list of messages is in, by what only that lane has."""

from collections.abc import Sequence
from typing import Any, Final

from toolbatch.core import InvalidInputError

from ._law import LANES, LaneName
from ._read import field, members, require_messages

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
        InvalidInputError: No message has a shape that is known. Name the lane.
        InvalidTypeError: `messages` is not a list, or an entry is no message.
    """
    known = not messages
    for position, message in enumerate(require_messages(messages)):
        get = members(message, position).get
        if get("parts") is not None and get("role") in ("user", "model", "function", None):
            return "gemini"
        role, kind = get("role"), get("type")
        if role is None:
            if kind in _LANGCHAIN_TYPES:
                return "langchain"
            if kind is not None or get("id") is not None:
                return "openai_responses"
            continue
        if kind == "message" and get("stop_reason") is None:
            return "openai_responses"  # Anthropic's response is of this type too, and says why it stopped
        if role in _CHAT_ROLES or get("tool_calls") is not None or get("function_call") is not None:
            return "openai_chat"
        known = True
        lane = _by_content(get("content"))
        if lane is not None:
            return lane
    if known:
        return "openai_chat"
    raise InvalidInputError(f"the messages have no shape that is known: name the lane, one of {', '.join(LANES)}")


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
