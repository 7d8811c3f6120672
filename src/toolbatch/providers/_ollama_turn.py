"""One response of Ollama's, read: its calls, and why they may not be run."""

from typing import Final

from ._chat_shape import ended_early, function_draft, read_message
from ._ids import IdRule
from ._plain import field, items
from ._read import Turn

__all__ = ["read_turn"]

_IDS: Final = IdRule()


def read_turn(response: object) -> Turn:
    """Read what a response announces.

    Raises:
        InvalidTypeError: It is no response of this lane.
    """
    message, reason = read_message(response, "done_reason", "ChatResponse")
    truncated = ended_early(reason)
    drafts = [function_draft(entry, truncated) for entry in items(field(message, "tool_calls"))]
    # There is no response id; the time is the same in no two responses.
    created = field(response, "created_at")
    return Turn(message, created if isinstance(created, str) else None, _IDS, drafts)
