"""OpenAI Responses.

    calls = openai_responses.calls(response)
    async with ToolBatch(calls, tools=tools) as batch: ...
    openai_responses.extend(items, response, batch.result)   # or send results(snapshot) with previous_response_id

Shapes: `openai/types/responses/*`. This lane has no error mark
(`status` is none), so a failure shows in its text alone (P4).

Calls are `function_call` and `custom_tool_call`. Items whose answer is not text (`computer_call`, `shell_call`,
`apply_patch_call`, ...) are the host's to answer: they stay in the turn, and the host appends their outputs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolbatch.core import CallProblem, InvalidTypeError, Snapshot, ToolCall, preview
from toolbatch.ports import LateNote

from ._export import Answer, answers, exported, late_text, require_list
from ._ids import IdRule
from ._plain import copied, drop_nulls, field, items, plain
from ._read import FILTERED, TOKEN_LIMIT, Draft, Turn, as_text, cut_off, require_choice
from ._replay import arguments_text, replay_name
from ._tail import require_answered

__all__ = ["calls", "extend", "notes", "results"]

_LANE: Final = "openai_responses"
_IDS: Final = IdRule(max_chars=64)  # of `call_id` and `id` alike
_MAX_NAME: Final = 64
_OUTPUTS: Final = {"function": "function_call_output", "custom": "custom_tool_call_output"}
_ITEM_IDS: Final = {"function_call": "fc", "custom_tool_call": "ctc"}  # "Expected an ID that begins with 'fc'"
# What a full model_dump() adds and the input's types refuse as null. A call's optional fields may all be left out.
_CALL_NULLS: Final = ("id", "async", "async_", "caller", "namespace", "status")
_NULLS: Final = {
    "reasoning": ("content", "status"),
    "message": ("phase",),
    "image_generation_call": ("error", "svg_usage"),
}

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


def calls(response: object, *, expect: str | None = None) -> list[ToolCall]:
    """Return the calls that a response announces, in its order (P1).

    Hosted calls, reasoning and messages are not calls (P3). Custom calls are (`kind="custom"`, their text in
    `arguments["input"]`). A call that can't be run has a `problem` and is answered with it; none raises (P6). All calls of
    a response that is incomplete, failed or cancelled are such calls, and so is a single incomplete item. `echo` keeps
    the call's `caller`, `namespace` and `async`, under the lane's name.

    Args:
        response: A `Response` or the list of its output items: the SDK's objects, their `model_dump()`, or the wire's JSON.
        expect: The tool that the request forced, to be checked before anything runs (P7).

    Raises:
        InvalidTypeError: `response` is none of these.
        ProviderMismatchError: The response does not call `expect`, or calls another tool.
    """
    return require_choice(_read(response).calls(), expect)


def results(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return one `function_call_output` or `custom_tool_call_output` item a call, in the order of announcement (C16).

    `caller` is copied for calls that a program made. The ids are the provider's own `call_id`s, even where two calls share
    one, because they must match the items that the server sent; `extend` puts both right.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet.
    """
    return [_result(call, call.wire_id or call.id, text) for call, text, _ in exported(snapshot)]


def extend(messages: list[Any], response: object, snapshot: Snapshot | None = None) -> None:
    """Append the response's output items, then one output a call, to the input list `messages`, and nothing else (P2).

    Every item goes back as it came, in its place: a reasoning item without the item that it led to is refused. Ids that
    the endpoint would refuse are ours on both sides. Arguments that are no JSON object become one, `{"INVALID_JSON":
    text}`, and none become `{}`: strict servers refuse the conversation for ever otherwise.

    Args:
        messages: The input items so far. The last turn is read; nothing in it is changed.
        response: As in `calls`.
        snapshot: The closed snapshot of the batch made of that response's calls; a response without calls needs none.

    Raises:
        InvalidTypeError: `messages` is not a list, `response` no response, or `snapshot` not made here.
        InvalidInputError: The snapshot is open, missing, or of other calls, or the last turn in `messages` has calls without
            a result. In every case the list is as it was.
    """
    history = require_list(messages)
    turn = _read(response)
    replies = answers(turn.calls(), snapshot)
    _require_answered(history)
    unread = iter(replies)
    output = [_call_item(item, next(unread)) if _kind(item) else _item(item) for item in turn.source]
    history += [*output, *[_result(answer.call, answer.call.id, answer.text) for answer in replies]]


def notes(late: Sequence[LateNote]) -> list[dict[str, Any]]:
    """Return one user message that tells of late results, or `[]` where there are none (B20).

    Raises:
        InvalidTypeError: A note has no text.
    """
    text = late_text(late)
    return [] if text is None else [{"role": "user", "content": [{"type": "input_text", "text": text}]}]


def _read(response: object) -> Turn:
    output = response if isinstance(response, (list, tuple)) else field(response, "output")
    if not isinstance(output, (list, tuple)) or any(field(item, "type") is None for item in output):
        raise InvalidTypeError(f"response must be a Response or a list of its output items, not {preview(response)}")
    status = None if output is response else field(response, "status")
    truncated = _STATUSES.get(status) if isinstance(status, str) else None
    reason = field(field(response, "incomplete_details"), "reason")
    if truncated and isinstance(reason, str):
        truncated = _REASONS.get(reason, truncated)
    drafts = [_draft(item, truncated, finished=status == "completed") for item in output if _kind(item)]
    response_id = None if output is response else field(response, "id")
    return Turn(output, response_id, _IDS, drafts)


def _kind(item: object) -> str | None:
    kind = field(item, "type")
    return kind if isinstance(kind, str) and kind in _ITEM_IDS else None


def _draft(item: object, truncated: CallProblem | None, *, finished: bool) -> Draft:
    status = field(item, "status")
    # In a response that says it is complete, `in_progress` is a gateway's slip; elsewhere it is a stream's first event.
    if truncated is None and (status == "incomplete" or (status == "in_progress" and not finished)):
        truncated = _STATUSES[status]
    name, call_id, echo = field(item, "name"), field(item, "call_id"), _echo(item)
    if _kind(item) == "custom_tool_call":
        return Draft(call_id, name, field(item, "input"), "custom", echo, truncated)
    return Draft(call_id, name, field(item, "arguments"), "function", echo, truncated)


def _echo(item: object) -> Mapping[str, Any] | None:
    asynchronous = field(item, "async")  # the SDK's attribute, and its dump's key, is `async_`
    facts = {
        "caller": field(item, "caller"),
        "namespace": field(item, "namespace"),
        "async": field(item, "async_") if asynchronous is None else asynchronous,
    }
    kept = {name: plain(fact) for name, fact in facts.items() if fact}
    return {_LANE: kept} if kept else None


def _result(call: ToolCall, call_id: str, text: str) -> dict[str, Any]:
    item: dict[str, Any] = {"type": _OUTPUTS[call.kind], "call_id": call_id, "output": text}
    if call.echo:
        caller = call.echo.get(_LANE, {}).get("caller")
        if isinstance(caller, Mapping) and caller.get("type") == "program":
            item["caller"] = dict(caller)  # must match the call's; the model's own calls may leave it out
    return item


def _require_answered(history: list[Any]) -> None:
    announced: list[object] = []
    answered: set[object] = set()
    for item in reversed(history):
        if _kind(item):
            if not (field(item, "async") or field(item, "async_")):  # these may be answered later (LANES 2)
                announced.append(field(item, "call_id"))
        elif field(item, "type") in _OUTPUTS.values() or field(item, "role") not in (None, "assistant"):
            if announced:
                break  # the model's last run of items has been read
            answered.add(field(item, "call_id"))
    require_answered(announced[::-1], answered)


def _call_item(item: object, answer: Answer) -> dict[str, Any]:
    """Return a call's item as it came, but for what a server would refuse and for the SDK's own helper fields."""
    copy = copied(item, "call_id", "name", "arguments", "input", "parsed_arguments")
    drop_nulls(copy, *_CALL_NULLS)
    if "async_" in copy:
        copy["async"] = copy.pop("async_")
    item_id = copy.get("id")
    if not isinstance(item_id, str) or not item_id.startswith(_ITEM_IDS[_kind(item) or ""]) or not _IDS.usable(item_id):
        copy.pop("id", None)  # optional on input, and refused there where the server did not make it
    copy |= {"type": _kind(item), "call_id": answer.call.id, "name": replay_name(answer, _MAX_NAME)}
    if answer.call.kind == "custom":
        return {**copy, "input": plain(as_text(field(item, "input")))}
    return {**copy, "arguments": arguments_text(field(item, "arguments"))}


def _item(item: object) -> dict[str, Any]:
    copy = copied(item)
    drop_nulls(copy, *_NULLS.get(str(copy.get("type")), ()))
    for part in items(copy.get("content")):
        if isinstance(part, dict):
            part.pop("parsed", None)  # the SDK's own, of `responses.parse()`
            drop_nulls(part, "logprobs")
    action = copy.get("action")
    if copy.get("type") == "web_search_call" and isinstance(action, dict):
        drop_nulls(action, *list(action))
    return copy
