"""One response of Cohere's, read: its calls, and why they may not be run."""

from collections.abc import Mapping
from typing import Final

from toolbatch.core import CallProblem, preview

from ._chat_shape import function_draft, read_message
from ._ids import IdRule
from ._plain import field, items
from ._read import TOKEN_LIMIT, Turn, cut_off, not_requested
from ._stream import BROKEN_OFF, INTERRUPTED

__all__ = ["read_turn"]

_IDS: Final = IdRule()  # none is documented
_ASKS: Final = ("TOOL_CALL", "COMPLETE")  # the latter from servers that translate v1
_CUT_OFF: Final[Mapping[str, CallProblem]] = {
    "MAX_TOKENS": TOKEN_LIMIT,
    INTERRUPTED: BROKEN_OFF,
    "STOP_SEQUENCE": cut_off("the response was cut off at a stop sequence, so the arguments may be incomplete"),
    "ERROR": cut_off("the response ended with an error of the model's server, so the arguments may be incomplete"),
    "TIMEOUT": cut_off("the model's server ran out of time, so the arguments may be incomplete"),
}


def read_turn(response: object) -> Turn:
    """Read what a response announces.

    Raises:
        InvalidTypeError: It is no response of this lane.
    """
    message, reason = read_message(response, "finish_reason", "V2ChatResponse")
    drafts = [function_draft(entry, _cut_off(reason)) for entry in items(field(message, "tool_calls"))]
    return Turn(message, field(response, "id"), _IDS, drafts)


def _cut_off(reason: object) -> CallProblem | None:
    if not isinstance(reason, str) or reason in _ASKS:
        return None
    unknown = f"the response ended with finish_reason {preview(reason)} instead of waiting for tools"
    return _CUT_OFF.get(reason) or not_requested(unknown, "If it is still needed, call the tool again.")
