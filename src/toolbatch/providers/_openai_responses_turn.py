"""One response of OpenAI's Responses API, read: its calls, and why they may not be run."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from toolbatch.core import CallProblem

from ._ids import IdRule
from ._openai_responses_output import LANE, is_program
from ._plain import field, items
from ._read import FILTERED, TOKEN_LIMIT, Draft, Turn, cut_off, echo_of, no_response

__all__ = ["IDS", "ITEM_IDS", "call_kind", "is_async", "read_turn"]

IDS: Final = IdRule(max_chars=64)  # of `call_id` and `id` alike
ITEM_IDS: Final = {"function_call": "fc", "custom_tool_call": "ctc"}  # "Expected an ID that begins with 'fc'"
_INCOMPLETE: Final = cut_off("the response is incomplete, so the arguments may be incomplete too")
_UNFINISHED: Final = cut_off("the response was read before it was finished, so the arguments may be incomplete")
_REASONS: Final[dict[object, CallProblem]] = {"max_output_tokens": TOKEN_LIMIT, "content_filter": FILTERED}
_STATUSES: Final[dict[object, CallProblem]] = {
    "incomplete": _INCOMPLETE,
    "failed": cut_off("the response failed on the model's server before it was complete"),
    "cancelled": cut_off("the response was cancelled before it was complete"),
    "in_progress": _UNFINISHED,
    "queued": _UNFINISHED,
}


def read_turn(response: object) -> Turn:
    """Read what a response announces.

    Raises:
        InvalidTypeError: It is no response of this lane.
    """
    output = response if isinstance(response, (list, tuple)) else field(response, "output")
    if not isinstance(output, (list, tuple)) or any(field(item, "type") is None for item in output):
        raise no_response("a Response or a list of its output items", response)
    status = None if output is response else field(response, "status")
    truncated = _STATUSES.get(status) if isinstance(status, str) else None
    reason = field(field(response, "incomplete_details"), "reason")
    if truncated and isinstance(reason, str):
        truncated = _REASONS.get(reason, truncated)
    described_tools = _described_tools(response) if any(is_program(field(item, "caller")) for item in output) else ()
    drafts = [
        _draft(item, truncated, described_tools, finished=status == "completed") for item in output if call_kind(item)
    ]
    response_id = None if output is response else field(response, "id")
    return Turn(output, response_id, IDS, drafts)


def call_kind(item: object) -> str | None:
    """Return the type of an item that is a call; of any other `None`."""
    kind = field(item, "type")
    return kind if isinstance(kind, str) and kind in ITEM_IDS else None


def _described_tools(response: object) -> list[tuple[object, object]]:
    """Return the tools whose output the request described with a schema, by namespace and name."""
    found: list[tuple[object, object]] = []
    for tool in items(field(response, "tools")):
        members = items(field(tool, "tools"))
        namespace = field(tool, "name") if members else None
        found += [(namespace, field(entry, "name")) for entry in members or [tool] if field(entry, "output_schema")]
    return found


def _draft(
    item: object, truncated: CallProblem | None, described_tools: Collection[tuple[object, object]], *, finished: bool
) -> Draft:
    status = field(item, "status")
    # In a response that says it is complete, `in_progress` is a gateway's slip; elsewhere it is a stream's first event.
    if truncated is None and (status == "incomplete" or (status == "in_progress" and not finished)):
        truncated = _STATUSES[status]
    name, call_id, echo = field(item, "name"), field(item, "call_id"), _echo(item, described_tools)
    if call_kind(item) == "custom_tool_call":
        return Draft(call_id, name, field(item, "input"), "custom", echo, truncated)
    return Draft(call_id, name, field(item, "arguments"), "function", echo, truncated)


def is_async(item: object) -> bool:
    """Whether a call may stay open (LANES 2)."""
    return field(item, "async") is True or field(item, "async_") is True  # the SDK's name for it is `async_`


def _echo(item: object, described_tools: Collection[tuple[object, object]]) -> Mapping[str, Any] | None:
    caller, namespace = field(item, "caller"), field(item, "namespace")
    kept = echo_of(
        {
            "caller": caller,
            "namespace": namespace,
            "async": is_async(item),
            "output_schema": is_program(caller) and (namespace, field(item, "name")) in described_tools,
        }
    )
    return {LANE: kept} if kept else None
