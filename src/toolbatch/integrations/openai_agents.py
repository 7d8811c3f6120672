"""OpenAI's Agents SDK: its items in and out, and function tools that run through a `ToolBatch`.

    agent = Agent("travel", model=distinct_ids(model), tools=batched([weather, flights], call_timeout=5))
    await Runner.run(agent, "Hi.", run_config=RunConfig(tool_not_found_behavior="return_error_to_model"))

or, where the loop is your own:

    response = await model.get_response(...)
    async with ToolBatch(openai_agents.calls(response), tools=tools) as batch:
        batch.start_all()
    openai_agents.extend(items, response, batch.result)

The seam is the tool's own `on_invoke_tool`: the SDK has none that encloses the calls of one turn. So each call is a batch of its
own here, and what is of a whole turn can't be had from inside the SDK's loop: one deadline for all calls, cancelling siblings, and
what became of the calls when a run is cancelled, whose turn the SDK throws away. Nor can a tool that does not exist be answered
from here; the run's own `tool_not_found_behavior` does that.

Shapes: LANES 2 and 12.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agents import ToolCallItem, ToolCallOutputItem

from toolbatch.core import InvalidInputError, InvalidTypeError, Snapshot, ToolCall, preview
from toolbatch.ports import LateNote
from toolbatch.providers import openai_responses
from toolbatch.providers.kit import answers, field

from ._openai_agents_model import distinct_ids
from ._openai_agents_tools import batched, custom_data

__all__ = ["batched", "calls", "distinct_ids", "extend", "notes", "output_items", "results"]


def calls(response: object, *, expect: str | None = None) -> list[ToolCall]:
    """Return the calls that a response announces, in its order (P1): as `openai_responses.calls`.

    Args:
        response: A `ModelResponse`, or a list of `ToolCallItem`s or of raw output items.
        expect: The tool that the request forced, to be checked before anything runs (P7).

    Raises:
        InvalidTypeError: `response` is none of these.
        ProviderMismatchError: The response does not call `expect`, or calls another tool.
    """
    return openai_responses.calls(_raw(response), expect=expect)


def results(snapshot: Snapshot) -> list[Any]:
    """Return one raw output item a call, in the order of announcement (C16): as `openai_responses.results`.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet.
    """
    return openai_responses.results(snapshot)


def extend(messages: list[Any], response: object, snapshot: Snapshot | None = None) -> None:
    """Append the response's items and one output a call to the input items `messages`: as `openai_responses.extend`.

    Raises:
        InvalidTypeError: As there.
        InvalidInputError: As there: among others, the snapshot does not answer exactly these calls. The list is as it was.
    """
    openai_responses.extend(messages, _raw(response), snapshot)


def output_items(
    items: Sequence[ToolCallItem], snapshot: Snapshot, *, meta: Mapping[str, Any] | None = None
) -> list[ToolCallOutputItem]:
    """Return the run items that answer these run items, in their order.

    Args:
        items: The calls, as the SDK's run items, of one turn.
        snapshot: The closed snapshot of the batch made of their calls.
        meta: `batch.meta`: what tools say of their results to the host becomes the `custom_data`, which no model is sent.

    Raises:
        InvalidTypeError: One is no `ToolCallItem`, or `snapshot` was not made here (C15).
        InvalidInputError: One is no call that is answered here, the snapshot is open, or it does not answer exactly these calls:
            an output without its call, or a call without its output, is refused for ever.
    """
    announced = openai_responses.calls(_raw(items))
    if len(announced) != len(items):
        raise InvalidInputError(
            f"{len(items) - len(announced)} of the items are no function or custom calls: {preview(items)}"
        )
    answers(announced, snapshot)  # refuses what does not pair
    told = meta or {}
    return [
        ToolCallOutputItem(
            agent=item.agent,
            raw_item=raw,
            output=raw["output"],
            tool_origin=item.tool_origin,
            custom_data=custom_data(told.get(call.id)),
        )
        for item, call, raw in zip(items, announced, results(snapshot), strict=True)
    ]


def notes(late: Sequence[LateNote]) -> list[Any]:
    """Return one user message that tells of late results, as an input item, or `[]` where there are none (B20).

    Raises:
        InvalidTypeError: A note has no text.
    """
    return openai_responses.notes(late)


def _raw(response: object) -> list[Any]:
    """Return the Responses items of whatever the SDK calls a response."""
    found = response if isinstance(response, list | tuple) else field(response, "output")
    if not isinstance(found, list | tuple):
        raise InvalidTypeError(f"response must be a ModelResponse, or a list of items, not {preview(response)}")
    return [item if (raw := field(item, "raw_item")) is None else raw for item in found]
