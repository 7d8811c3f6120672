"""One completion of OpenAI's, read: its calls, and why they may not be run."""

from typing import Final

from toolbatch.core import CallProblem

from ._chat_shape import function_draft, read_choice
from ._ids import IdRule
from ._plain import field, items
from ._read import Draft, Turn

__all__ = ["LANE", "read_turn"]

LANE: Final = "openai_chat"
_IDS: Final = IdRule(max_chars=40)  # "Expected a string with maximum length 40"


def read_turn(response: object) -> Turn:
    """Read what a response announces.

    Raises:
        InvalidTypeError: It is no response of this lane.
    """
    message, truncated = read_choice(response, "ChatCompletion")
    drafts = [_draft(entry, truncated) for entry in items(field(message, "tool_calls"))]
    legacy = field(message, "function_call")
    if legacy and not drafts:  # a server that sends both repeats itself
        name, arguments = field(legacy, "name"), field(legacy, "arguments")
        drafts = [Draft(None, name, arguments, echo={LANE: {"legacy": True}}, truncated=truncated)]
    return Turn(message, field(response, "id"), _IDS, drafts)


def _is_custom(entry: object) -> bool:
    return field(entry, "type") == "custom" or (field(entry, "function") is None and field(entry, "custom") is not None)


def _draft(entry: object, truncated: CallProblem | None) -> Draft:
    if not _is_custom(entry):
        return function_draft(entry, truncated)
    custom = field(entry, "custom")
    return Draft(field(entry, "id"), field(custom, "name"), field(custom, "input"), "custom", truncated=truncated)
