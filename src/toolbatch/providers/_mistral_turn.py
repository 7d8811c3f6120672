"""One response of Mistral's, read: a completion's calls or a conversation's, and why they may not be run."""

from typing import Final

from toolbatch.core import CallProblem

from ._chat_shape import function_draft, read_choice
from ._ids import IdRule
from ._plain import field, items
from ._read import Draft, Turn, no_response
from ._stream import BROKEN_OFF, INTERRUPTED

__all__ = ["CALL", "LANE", "is_call", "read_turn"]

LANE: Final = "mistral"
_IDS: Final = IdRule(exact_chars=9)  # "Tool call id was call_search but must be a-z, A-Z, 0-9, with a length of 9."
CALL: Final = "function.call"


def read_turn(response: object) -> Turn:
    """Read what a response announces.

    Raises:
        InvalidTypeError: It is no response of this lane.
    """
    entries = response if isinstance(response, (list, tuple)) else field(response, "outputs")
    if isinstance(entries, (list, tuple)):
        if any(field(entry, "type") is None for entry in entries):
            raise no_response("a ConversationResponse or a list of its entries", response)
        response_id = None if entries is response else field(response, "conversation_id")
        broke_off = field(response, "finish_reason") == INTERRUPTED  # the server has no such field
        truncated = BROKEN_OFF if broke_off else None
        drafts = [_entry_draft(entry, truncated) for entry in entries if is_call(entry)]
        return Turn(entries, response_id, _IDS, drafts)
    message, truncated = read_choice(response, "ChatCompletionResponse")
    drafts = [function_draft(entry, truncated) for entry in items(field(message, "tool_calls"))]
    return Turn(message, field(response, "id"), _IDS, drafts)


def is_call(entry: object) -> bool:
    """Whether an entry of a conversation is a call that waits for its result."""
    return bool(field(entry, "type") == CALL and field(entry, "confirmation_status") != "pending")


def _entry_draft(entry: object, truncated: CallProblem | None) -> Draft:
    call_id, name, arguments = [field(entry, key) for key in ("tool_call_id", "name", "arguments")]
    return Draft(call_id, name, arguments, echo={LANE: {"entry": True}}, truncated=truncated)
