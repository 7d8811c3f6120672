"""One turn of Bedrock's: read from a response, written back to the conversation, and looked for at its end."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from toolbatch.core import CallProblem, InvalidTypeError, Part, preview

from ._ids import IdRule
from ._plain import copied, field, items, plain
from ._read import FILTERED, TOKEN_LIMIT, Draft, Turn, cut_off, no_response, not_requested
from ._replay import arguments_object
from ._stream import BROKEN_OFF, INTERRUPTED
from ._tail import require_answered

__all__ = ["End", "content_of_turn", "read_turn", "require_answered_turn", "used_ids"]

_IDS: Final = IdRule(max_chars=64, alphabet=re.compile(r"[a-zA-Z0-9_.:-]+"))
_HOSTED: Final = "server_tool_use"
# Only `tool_use` asks for tools to be run. A turn that ends otherwise can have calls in it all the same (LANES 5).
_ENDED: Final[Mapping[str, CallProblem]] = {
    "max_tokens": TOKEN_LIMIT,
    INTERRUPTED: BROKEN_OFF,
    "model_context_window_exceeded": cut_off(
        "the response was cut off at the end of the context window, so the input may be incomplete",
        "Continue without it, or call the tool again with much shorter input.",
    ),
    "malformed_tool_use": cut_off("the server could not read a call of the response"),
    "malformed_model_output": cut_off("the server could not read the response"),
    "stop_sequence": cut_off("the response was cut off at a stop sequence, so the input may be incomplete"),
    "guardrail_intervened": FILTERED,
    "content_filtered": FILTERED,
    "end_turn": not_requested(
        "the response ended its turn instead of waiting for tools; where a harness on the server runs tools, it has run it",
        "If its result is still needed and not there, call the tool again and wait for it.",
    ),
}


class End(NamedTuple):
    """One call's outcome, under the name and the id that the call has on the wire."""

    name: str
    call_id: str
    text: str
    failed: bool
    parts: Sequence[Part] | None


def read_turn(response: object) -> Turn:
    """Read what a response announces.

    Raises:
        InvalidTypeError: It is no response of this lane.
    """
    message = field(field(response, "output"), "message") or response
    content = field(message, "content")
    if field(message, "role") != "assistant" or not isinstance(content, (list, tuple)):
        raise no_response("what converse returns or its message", response)
    if any(field(block, "type") is not None for block in content):
        raise InvalidTypeError(f"{preview(response)} is a message of Anthropic's: read it with anthropic")
    reason = field(response, "stopReason")
    ended = None if reason is None or reason == "tool_use" else _problem(reason)
    drafts = [
        Draft(field(use, "toolUseId"), field(use, "name"), field(use, "input"), truncated=ended)
        for use in map(_use, content)
        if use is not None
    ]
    return Turn(content, field(field(response, "ResponseMetadata"), "RequestId"), _IDS, drafts)


def _problem(reason: object) -> CallProblem:
    unknown = f"the response ended with stopReason {preview(reason)} instead of waiting for tools"
    return _ENDED.get(str(reason)) or not_requested(unknown, "If it is still needed, call the tool again.")


def _use(block: object) -> Any:
    """Return a block's call of a client's tool, or `None` if it is none."""
    use = field(block, "toolUse")
    return None if field(use, "type") == _HOSTED else use


def require_answered_turn(history: list[Any]) -> None:
    """Refuse a conversation whose last turn has calls without a result.

    Raises:
        InvalidInputError: A call has no result. Nothing was appended.
    """
    answered: list[object] = []
    for message in reversed(history):
        blocks = items(field(message, "content"))
        if field(message, "role") == "assistant":
            uses = [use for use in map(_use, blocks) if use is not None]
            require_answered([field(use, "toolUseId") for use in uses], answered)
            return
        answered.extend(field(field(block, "toolResult"), "toolUseId") for block in blocks)


def used_ids(messages: list[Any]) -> set[str]:
    """Return the ids of all calls in a conversation, hosted ones too."""
    uses = [field(block, "toolUse") for message in messages for block in items(field(message, "content"))]
    ids = [field(use, "toolUseId") for use in uses]
    return {call_id for call_id in ids if isinstance(call_id, str)}


def content_of_turn(content: Sequence[object], ends: Sequence[End]) -> list[Any]:
    """Return the assistant's content as it goes back to the API. `ends` are those of its calls, in order."""
    unread = iter(ends)
    blocks: list[Any] = []
    for block in content:
        use = _use(block)
        if use is not None:
            blocks.append(_call_block(block, use, next(unread)))
            continue
        copy = plain(block, binary=bytes)
        if not _blank(copy):
            blocks.append(copy)
    return blocks


def _blank(block: object) -> bool:
    text = field(block, "text")
    return isinstance(text, str) and not text.strip()


def _call_block(block: object, use: object, end: End) -> dict[str, Any]:
    """Return a call's block as it came, but for what the API would refuse."""
    facts = {"toolUseId": end.call_id, "name": end.name, "input": arguments_object(field(use, "input"))}
    return {**copied(block, "toolUse", binary=bytes), "toolUse": {**copied(use, *facts, binary=bytes), **facts}}
