"""One message of Anthropic's, read: its calls, and why they may not be run."""

import re
from collections.abc import Mapping
from typing import Any, Final

from toolbatch.core import CallProblem, InvalidTypeError, preview

from ._ids import IdRule
from ._plain import field, items
from ._read import TOKEN_LIMIT, Draft, Turn, cut_off, echo_of, no_response, not_requested
from ._stream import BROKEN_OFF, INTERRUPTED

__all__ = ["LANE", "read_turn"]

LANE: Final = "anthropic"
_IDS: Final = IdRule(alphabet=re.compile(r"[a-zA-Z0-9_-]+"))  # "String should match pattern"; no length is documented
_PAUSED: Final = ("pause_turn", "compaction")  # the turn is resent as it is and goes on; nothing is run or answered
# Only `tool_use` asks for tools to be run (the SDK's own runner: `lib/tools/_beta_runner.py`). A turn that ends otherwise
# can have calls in it all the same, cut off or called off, and the SDK makes a cut one look whole.
_CUT_OFF: Final[dict[str, CallProblem]] = {
    "max_tokens": TOKEN_LIMIT,
    INTERRUPTED: BROKEN_OFF,
    "model_context_window_exceeded": cut_off(
        "the response was cut off at the end of the context window, so the input may be incomplete",
        "Continue without it, or call the tool again with much shorter input.",
    ),
    "refusal": not_requested(
        "the response ended as a refusal", "Do not call it again unless the user asks for something else."
    ),
    "end_turn": not_requested(
        "the response ended its turn instead of waiting for tools",
        "If it is still needed, call the tool again and wait for its result.",
    ),
    "stop_sequence": cut_off("the response was cut off at a stop sequence, so the input may be incomplete"),
}


def read_turn(response: object) -> Turn:
    """Read what a response announces.

    Raises:
        InvalidTypeError: It is no response of this lane.
    """
    content = field(response, "content")
    if field(response, "role") != "assistant" or not isinstance(content, (str, list, tuple)):
        raise no_response("a Message or an assistant message", response)
    if field(response, "tool_calls") or field(response, "function_call"):
        raise InvalidTypeError(f"{preview(response)} is a message of Chat Completions: read it with openai_chat")
    stop_reason = field(response, "stop_reason")
    if stop_reason in _PAUSED:
        return Turn(content, None, _IDS, [])
    truncated = None
    if stop_reason is not None and stop_reason != "tool_use":
        unknown = f"the response ended with stop_reason {preview(stop_reason)} instead of waiting for tools"
        advice = "If it is still needed, call the tool again."
        truncated = _CUT_OFF.get(str(stop_reason)) or not_requested(unknown, advice)
    drafts = [
        Draft(field(block, "id"), field(block, "name"), field(block, "input"), echo=_echo(block), truncated=truncated)
        for block in items(content)
        if field(block, "type") == "tool_use"
    ]
    return Turn(content, field(response, "id"), _IDS, drafts)


def _echo(block: object) -> Mapping[str, Any] | None:
    kept = echo_of({name: field(block, name) for name in ("toolset_name", "caller")})
    return {LANE: kept} if kept else None
