"""OpenAI Responses.

    calls = openai_responses.calls(response)
    async with ToolBatch(calls, tools=tools) as batch: ...
    openai_responses.extend(items, response, batch.result)   # or send results(snapshot) with previous_response_id

Shapes: `openai/types/responses/*`. This lane has no error mark
(`status` is none), so a failure shows in its text alone (P4).

Calls are `function_call` and `custom_tool_call`. Items whose answer is not text (`computer_call`, `shell_call`,
`apply_patch_call`, ...) are the host's to answer: they stay in the turn, and the host appends their outputs.

A result holds text, images and files (P5). Files are of the types that the guide to file inputs lists. Other servers that speak
this lane may take text only: say so with `media`, since what they refuse once they refuse for ever.

Calls of a tool that was declared `async` are the only ones that a turn may leave unanswered (LANES 2). A snapshot is closed, so
such a call is run by a batch of its own, and its output comes later, under its own id:

    later = [call for call in calls if openai_responses.may_stay_open(call)]
    openai_responses.extend(items, response, batch.result, leave_open=later)   # the batch ran the other calls
    ...
    items += openai_responses.late_results(items, [job.result])                # the job is a batch of `later`
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

from toolbatch.core import InvalidInputError, Snapshot, ToolCall, preview
from toolbatch.ports import LateNote

from ._content import carrier_for
from ._export import Answer, answers, exported, late_text, require_list
from ._ids import unused
from ._openai_responses_output import CARRIERS, CARRIES, LANE, OUTPUTS, Media, result_item
from ._openai_responses_stream import StreamCollector
from ._openai_responses_turn import IDS, ITEM_IDS, call_kind, is_async, read_turn
from ._plain import copied, drop_nulls, field, items, plain
from ._read import as_text, require_choice
from ._replay import arguments_text, replay_name
from ._tail import require_answered

__all__ = ["CARRIES", "StreamCollector", "calls", "extend", "late_results", "may_stay_open", "notes", "results"]

_MAX_NAME: Final = 64
# What a full model_dump() adds and the input's types refuse as null. A call's optional fields may all be left out.
_CALL_NULLS: Final = ("id", "async", "async_", "caller", "namespace", "status")
_NULLS: Final = {
    "reasoning": ("content", "status"),
    "message": ("phase",),
    "image_generation_call": ("error", "svg_usage"),
}


def calls(response: object, *, expect: str | None = None) -> list[ToolCall]:
    """Return the calls that a response announces, in its order (P1).

    Hosted calls, reasoning and messages are not calls (P3). Custom calls are (`kind="custom"`, their text in
    `arguments["input"]`). A call that can't be run has a `problem` and is answered with it; none raises (P6). All calls of
    a response that is incomplete, failed or cancelled are such calls, and so is a single incomplete item. `echo` keeps
    the call's `caller`, `namespace` and `async`, under the lane's name, and of a program's call whether the response
    declares its tool with an `output_schema`.

    Args:
        response: A `Response` or the list of its output items: the SDK's objects, their `model_dump()`, or the wire's JSON.
        expect: The tool that the request forced, to be checked before anything runs (P7).

    Raises:
        InvalidTypeError: `response` is none of these.
        ProviderMismatchError: The response does not call `expect`, or calls another tool.
    """
    return require_choice(read_turn(response).calls(), expect)


def results(snapshot: Snapshot, *, media: Media = "nested") -> list[Any]:
    """Return one `function_call_output` or `custom_tool_call_output` item a call, in the order of announcement (C16).

    `caller` is copied for calls that a program made, and text for such a call is JSON where its tool has an
    `output_schema`: text that is not becomes `{"output": text}`. The ids are the provider's own `call_id`s, even where
    two calls share one, because they must match the items that the server sent; `extend` puts both right.

    Args:
        snapshot: A closed snapshot.
        media: `nested` puts images and files into the results; `text` says them in words, for models that see nothing.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet. Or there is no such `media`.
    """
    carrier = carrier_for(media, CARRIERS)
    return [
        result_item(call, call.wire_id or call.id, text, parts, carrier) for call, text, _, parts in exported(snapshot)
    ]


def may_stay_open(call: ToolCall) -> bool:
    """Whether a turn may leave this call unanswered: its tool was declared `async` (LANES 2)."""
    return call.echo.get(LANE, {}).get("async") is True


def late_results(messages: list[Any], late: Sequence[Snapshot], *, media: Media = "nested") -> list[Any]:
    """Return the outputs of calls that `extend` left open in `messages`, to be appended to them (LANES 2).

    Where the server keeps the conversation (`previous_response_id`), `results(snapshot)` gives what to send.

    Args:
        messages: The input items so far, of which each is read. Nothing in them is changed.
        late: Closed snapshots of batches of such calls, in the order of the outputs.
        media: As in `results`.

    Raises:
        InvalidTypeError: `messages` is not a list, or a snapshot was not made here.
        InvalidInputError: A snapshot is open, or has a call that is not open in `messages`. Or there is no such `media`.
    """
    carrier = carrier_for(media, CARRIERS)
    open_calls = _open_calls(require_list(messages))
    outputs = []
    for call, text, _, parts in [row for snapshot in late for row in exported(snapshot)]:
        if open_calls.pop(call.id, None) != OUTPUTS[call.kind]:
            raise InvalidInputError(
                f"messages have no {call.kind} call {call.id!r} ({call.name}) that is async and without its output"
            )
        outputs.append(result_item(call, call.id, text, parts, carrier))
    return outputs


def extend(
    messages: list[Any],
    response: object,
    snapshot: Snapshot | None = None,
    *,
    leave_open: Collection[ToolCall] = (),
    late: Sequence[Snapshot] = (),
    media: Media = "nested",
) -> None:
    """Append the response's output items, then one output a call, to the input list `messages`, and nothing else (P2).

    Every item goes back as it came, in its place: a reasoning item without the item that it led to is refused. Ids that
    the endpoint would refuse are ours on both sides; a call's own `id`, which is optional, is left out then. Arguments that are no JSON object become one, `{"INVALID_JSON":
    text}`, and none become `{}`: strict servers refuse the conversation for ever otherwise.

    Args:
        messages: The input items so far, which are read for calls without an output. Nothing in them is changed.
        response: As in `calls`.
        snapshot: The closed snapshot of the batch made of that response's calls; a response without calls needs none.
        leave_open: Those of the response's calls that are answered later, and that the snapshot does not have.
        late: Snapshots of batches of calls that were left open, now or before. Their outputs come before this turn's own:
            a model that called a tool to wait for them then reads them first.
        media: As in `results`.

    Raises:
        InvalidTypeError: `messages` is not a list, `response` no response, or a snapshot not made here.
        InvalidInputError: A snapshot is open, missing, or of other calls, a call may not be left open, or the last turn in
            `messages` has calls without a result; or there is no such `media`. In every case the list is as it was.
    """
    history, carrier = require_list(messages), carrier_for(media, CARRIERS)
    turn = read_turn(response)
    announced = turn.calls()
    open_before = _open_calls(history)
    left = _left_open(announced, leave_open, open_before)
    replies = answers([call for call in announced if call.id not in left], snapshot)
    _require_answered(history)
    answered = iter(replies)
    rows = [_unanswered(call) if call.id in left else next(answered) for call in announced]
    ids = unused([call.id for call in announced], open_before)
    unread = zip(rows, ids, strict=True)
    output = [_call_item(item, *next(unread)) if call_kind(item) else _item(item) for item in turn.source]
    _drop_used_item_ids(output, history)
    outputs = [
        result_item(row.call, call_id, row.text, row.parts, carrier)
        for row, call_id in zip(rows, ids, strict=True)
        if row.call.id not in left
    ]
    history += [*output, *(late_results([*history, *output], late, media=media) if late else ()), *outputs]


def notes(late: Sequence[LateNote]) -> list[Any]:
    """Return one user message that tells of late results, or `[]` where there are none (B20).

    Raises:
        InvalidTypeError: A note has no text.
    """
    text = late_text(late)
    return [] if text is None else [{"role": "user", "content": [{"type": "input_text", "text": text}]}]


def _unanswered(call: ToolCall) -> Answer:
    """Return what stands for a call that is answered later. Its tool is a declared one, unless the call has a problem."""
    return Answer(call, "", failed=False, parts=None, ran=call.problem is None)


def _left_open(
    announced: Sequence[ToolCall], leave_open: Collection[ToolCall], open_before: Collection[str]
) -> set[str]:
    """Return the ids of the calls that are left open, each of which must be allowed to."""
    names = {call.id: call.name for call in announced}
    left: set[str] = set()
    for call in leave_open:
        if not isinstance(call, ToolCall) or names.get(call.id) != call.name:
            raise InvalidInputError(f"{preview(call)} can't be left open: it is no call of the response")
        if not may_stay_open(call):
            raise InvalidInputError(f"{call!r} can't be left open: only calls of async tools may be")
        if call.id in open_before:
            raise InvalidInputError(
                f"{call!r} can't be left open: messages have an open call with that id, so an output would fit both"
            )
        left.add(call.id)
    return left


def _open_calls(history: list[Any]) -> dict[str, str]:
    """Return the ids of async calls without an output, each with the type of output that it waits for."""
    waiting: dict[str, str] = {}
    for item in history:
        kind, call_id = field(item, "type"), field(item, "call_id")
        if not isinstance(call_id, str):
            continue
        if call_kind(item) and is_async(item):
            waiting[call_id] = f"{kind}_output"
        elif kind in OUTPUTS.values():
            waiting.pop(call_id, None)
    return waiting


def _require_answered(history: list[Any]) -> None:
    announced: list[object] = []
    answered: list[object] = []
    for item in reversed(history):
        if call_kind(item):
            if not is_async(item):  # these may be answered later (LANES 2)
                announced.append(field(item, "call_id"))
        elif field(item, "type") in OUTPUTS.values() or field(item, "role") not in (None, "assistant"):
            if announced:
                break  # the model's last run of items has been read
            answered.append(field(item, "call_id"))
    require_answered(announced[::-1], answered)


def _call_item(item: object, answer: Answer, call_id: str) -> dict[str, Any]:
    """Return a call's item as it came, but for what a server would refuse and for the SDK's own helper fields."""
    copy = copied(item, "call_id", "name", "arguments", "input", "parsed_arguments")
    drop_nulls(copy, *_CALL_NULLS)
    if "async_" in copy:
        copy["async"] = copy.pop("async_")
    item_id = copy.get("id")
    if (
        not isinstance(item_id, str)
        or not item_id.startswith(ITEM_IDS[call_kind(item) or ""])
        or not IDS.usable(item_id)
    ):
        copy.pop("id", None)  # optional on input, and refused there where the server did not make it
    copy |= {"type": call_kind(item), "call_id": call_id, "name": replay_name(answer, _MAX_NAME)}
    if answer.call.kind == "custom":
        return {**copy, "input": plain(as_text(field(item, "input")))}
    return {**copy, "arguments": arguments_text(field(item, "arguments"))}


def _drop_used_item_ids(output: list[dict[str, Any]], history: list[Any]) -> None:
    """Remove the own ids of calls that another item has: "Duplicate item found with id". Some servers count them anew each turn."""
    used = {item_id for item_id in (field(item, "id") for item in history) if isinstance(item_id, str)}
    for item in output:
        item_id = item.get("id")
        if isinstance(item_id, str):
            if item_id in used and call_kind(item):
                del item["id"]
            used.add(item_id)


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
