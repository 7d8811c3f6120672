"""pydantic-ai: `ToolCallPart` in, `ToolReturnPart` out; and an agent whose tools run through a `ToolBatch`.

    agent = Agent(model, capabilities=[BatchTools(call_timeout=5)])

or, where the loop is your own:

    response = await model_request(model, messages)
    async with ToolBatch(pydantic_ai.calls(response), tools=tools) as batch:
        batch.start_all()
    pydantic_ai.extend(messages, response, batch.result, meta=batch.meta)

Shapes: LANES 11.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import ModelRequest, ModelResponse, ToolReturnPart, UserPromptPart

from toolbatch.core import InvalidTypeError, Snapshot, ToolCall, preview, require_closed
from toolbatch.ports import LateNote
from toolbatch.providers.kit import answers, field, items, late_text, require_answered, require_choice, require_list

from ._pydantic_ai_messages import read_turn, return_part, used_ids, with_ids
from ._pydantic_ai_run import BatchTools

__all__ = ["BatchTools", "calls", "extend", "notes", "request", "results"]


def calls(response: object, *, expect: str | None = None) -> list[ToolCall]:
    """Return the calls that a response announces, in its order (P1).

    `ToolCallPart`s are calls; `NativeToolCallPart`s are their provider's to answer (P3). A call that can't be run has a `problem`
    and is answered with it; none raises (P6). All calls of a response that was cut off or interrupted are such calls; a suspended
    one announces none.

    Args:
        response: A `ModelResponse`, its dict as `ModelMessagesTypeAdapter` dumps it, or its parts.
        expect: The tool that the request forced, to be checked before anything runs (P7).

    Raises:
        InvalidTypeError: `response` is none of these.
        ProviderMismatchError: The response does not call `expect`, or calls another tool.
    """
    return require_choice(read_turn(response).calls(), expect)


def results(snapshot: Snapshot, *, meta: Mapping[str, Any] | None = None) -> list[ToolReturnPart]:
    """Return one `ToolReturnPart` a call, in the order of announcement (C16).

    `outcome` says how the call ended: `success`; `retried` where the model is to make it again with other arguments; `denied`;
    `interrupted` where the turn ended before there was a result; else `failed`, timeouts too. The content of all but a success
    is the failure as JSON (P4). Parts are pydantic-ai's own content (P5). The ids are the model's own, even where two calls
    share one; `extend` puts that right.

    Args:
        snapshot: The closed snapshot of the batch.
        meta: `batch.meta`: what tools say of their results to the host becomes the `metadata`, which no model is sent.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet.
    """
    told = meta or {}
    return [
        return_part(call, call.wire_id or call.id, settlement, told.get(call.id))
        for call, settlement in require_closed(snapshot).settled()
    ]


def request(snapshot: Snapshot, *, meta: Mapping[str, Any] | None = None) -> ModelRequest:
    """Return the one `ModelRequest` with all results, and with nothing else (P2). It must directly follow the response.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet.
    """
    return ModelRequest(parts=results(snapshot, meta=meta))


def extend(
    messages: list[Any], response: object, snapshot: Snapshot | None = None, *, meta: Mapping[str, Any] | None = None
) -> None:
    """Append the response and the request with its results to `messages`, and nothing else (P2).

    The response goes back as the same object unless ids in it are missing, repeated or used before in `messages`: those are ours
    on both sides. Malformed arguments stay as they are, since pydantic-ai sends them as `{"INVALID_JSON": text}`.

    Args:
        messages: The conversation, of pydantic-ai's messages. It is read for ids; what is in it is not changed.
        response: As in `calls`, but a `ModelResponse`.
        snapshot: The closed snapshot of the batch made of that response's calls; a response without calls needs none.
        meta: As in `results`.

    Raises:
        InvalidTypeError: `messages` is not a list, `response` no response of pydantic-ai's, or `snapshot` not made here.
        InvalidInputError: The snapshot is open, missing, or of other calls, or the last turn in `messages` has calls without
            a result. In every case the list is as it was.
    """
    history = require_list(messages)
    if not isinstance(response, ModelResponse):
        raise InvalidTypeError(f"response must be a ModelResponse to stand in messages, not {preview(response)}")
    replies = answers(read_turn(response).calls(), snapshot)
    _require_answered(history)
    mended, ids = with_ids(response, used_ids(history))
    parts = [] if snapshot is None else results(snapshot, meta=meta)
    new: list[ModelResponse | ModelRequest] = [mended]
    if replies:
        new.append(ModelRequest(parts=[replace(part, tool_call_id=own) for part, own in zip(parts, ids, strict=True)]))
    history += new


def notes(late: Sequence[LateNote]) -> list[UserPromptPart]:
    """Return one part that tells of late results, for the next request, or `[]` where there are none (B20).

    Raises:
        InvalidTypeError: A note has no text.
    """
    text = late_text(late)
    return [] if text is None else [UserPromptPart(text)]


def _require_answered(history: Sequence[object]) -> None:
    answered: list[object] = []
    for message in reversed(history):
        if field(message, "kind") == "response":
            require_answered([call.wire_id or call.id for call in read_turn(message).calls()], answered)
            return
        answered.extend(field(part, "tool_call_id") for part in items(field(message, "parts")))
