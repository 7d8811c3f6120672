"""OpenAI Chat Completions, and the many servers that speak it.

    calls = openai_chat.calls(completion)
    async with ToolBatch(calls, tools=tools) as batch: ...
    openai_chat.extend(messages, completion, batch.result)

Shapes: `openai/types/chat/*`. This lane has no error mark, so a
failure shows in its text alone (P4).
"""

from collections.abc import Sequence
from typing import Any, Final

from toolbatch.core import CallProblem, InvalidTypeError, Snapshot, ToolCall, preview
from toolbatch.ports import LateNote

from ._export import Answer, answers, exported, late_text, require_list
from ._ids import IdRule
from ._plain import copied, field, items, plain
from ._read import FILTERED, TOKEN_LIMIT, Draft, Turn, as_text, cut_off, require_choice
from ._replay import arguments_text, replay_name
from ._tail import require_answered

__all__ = ["calls", "extend", "notes", "results"]

_LANE: Final = "openai_chat"
_IDS: Final = IdRule(max_chars=40)  # "Expected a string with maximum length 40"
_MAX_NAME: Final = 64
# `max_tokens`, `error` and their like are no values of OpenAI's: servers behind a gateway send them through.
_CUT_OFF: Final[dict[object, CallProblem]] = {
    "length": TOKEN_LIMIT,
    "max_tokens": TOKEN_LIMIT,
    "model_length": TOKEN_LIMIT,
    "content_filter": FILTERED,
    "error": cut_off("the response ended with an error of the model's server, so the arguments may be incomplete"),
}


def calls(response: object, *, expect: str | None = None) -> list[ToolCall]:
    """Return the calls that a response announces, in its order (P1).

    Function calls, custom calls (`kind="custom"`, their text in `arguments["input"]`) and the legacy `function_call` are
    calls. Of several choices only the first is read: only one can become history. A call that can't be run has a
    `problem` and is answered with it; none raises (P6). All calls of a response that was cut off (`finish_reason`
    `length`, `content_filter`) are such calls.

    Args:
        response: A `ChatCompletion` or its assistant message: the SDK's object, its `model_dump()`, or the wire's JSON.
        expect: The tool that the request forced, to be checked before anything runs (P7).

    Raises:
        InvalidTypeError: `response` is none of these.
        ProviderMismatchError: The response does not call `expect`, or calls another tool.
    """
    return require_choice(_read(response).calls(), expect)


def results(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return one message a call: `{"role": "tool", "tool_call_id", "content"}`, in the order of announcement (C16).

    A legacy call has `{"role": "function", "name", "content"}`. The ids are the provider's own, even where two calls
    share one, because they must match the assistant message as it was received; `extend` puts both right.

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet.
    """
    return [_result(call, call.wire_id or call.id, call.name, text) for call, text, _ in exported(snapshot)]


def extend(messages: list[Any], response: object, snapshot: Snapshot | None = None) -> None:
    """Append the assistant message and its results to `messages`, in place, and nothing else (P2).

    The message has what the endpoint takes back: `content`, `refusal`, `audio` (its id), `name` and the calls. Ids that
    the endpoint would refuse are ours on both sides. Arguments that are no JSON object become one, `{"INVALID_JSON":
    text}`, and none become `{}`: strict servers refuse the conversation for ever otherwise.

    Args:
        messages: The conversation. Its last turn is read; nothing in it is changed.
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
    names = [replay_name(answer, _MAX_NAME) for answer in replies]
    message = _assistant(turn, replies, names)
    named = zip(replies, names, strict=True)
    history += [message, *[_result(answer.call, answer.call.id, name, answer.text) for answer, name in named]]


def notes(late: Sequence[LateNote]) -> list[dict[str, Any]]:
    """Return one user message that tells of late results, or `[]` where there are none (B20).

    It belongs behind a finished tool turn, never between a call and its result.

    Raises:
        InvalidTypeError: A note has no text.
    """
    text = late_text(late)
    return [] if text is None else [{"role": "user", "content": text}]


def _require_answered(history: list[Any]) -> None:
    answered: set[object] = set()
    for message in reversed(history):
        if field(message, "role") == "assistant":
            require_answered([field(call, "id") for call in items(field(message, "tool_calls"))], answered)
            return
        answered.add(field(message, "tool_call_id"))


def _read(response: object) -> Turn:
    message, finish_reason = _message(response)
    truncated = _CUT_OFF.get(finish_reason) if isinstance(finish_reason, str) else None
    drafts = [_draft(entry, truncated) for entry in items(field(message, "tool_calls"))]
    legacy = field(message, "function_call")
    if legacy and not drafts:  # a server that sends both repeats itself
        name, arguments = field(legacy, "name"), field(legacy, "arguments")
        drafts = [Draft(None, name, arguments, echo={_LANE: {"legacy": True}}, truncated=truncated)]
    return Turn(message, field(response, "id"), _IDS, drafts)


def _message(response: object) -> tuple[object, object]:
    choices = items(field(response, "choices"))
    if choices and field(choices[0], "message") is not None:
        return field(choices[0], "message"), field(choices[0], "finish_reason")
    if field(response, "role") == "assistant":
        content = field(response, "content")
        if isinstance(content, (list, tuple)) and any(field(part, "type") == "tool_use" for part in content):
            raise InvalidTypeError(f"{preview(response)} is a message of Anthropic's: read it with anthropic")
        return response, None
    raise InvalidTypeError(f"response must be a ChatCompletion or its assistant message, not {preview(response)}")


def _is_custom(entry: object) -> bool:
    return field(entry, "type") == "custom" or (field(entry, "function") is None and field(entry, "custom") is not None)


def _draft(entry: object, truncated: CallProblem | None) -> Draft:
    wire_id = field(entry, "id")
    if _is_custom(entry):
        custom = field(entry, "custom")
        return Draft(wire_id, field(custom, "name"), field(custom, "input"), "custom", truncated=truncated)
    function = field(entry, "function")
    return Draft(wire_id, field(function, "name"), field(function, "arguments"), truncated=truncated)


def _result(call: ToolCall, call_id: str, name: str, text: str) -> dict[str, Any]:
    if call.echo and call.echo.get(_LANE, {}).get("legacy"):
        return {"role": "function", "name": name, "content": text}
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def _assistant(turn: Turn, replies: Sequence[Answer], names: Sequence[str]) -> dict[str, Any]:
    source = turn.source
    copy: dict[str, Any] = {"role": "assistant", "content": plain(field(source, "content")) or None}
    for key in ("name", "refusal"):
        if field(source, key) is not None:
            copy[key] = plain(field(source, key))
    audio_id = field(field(source, "audio"), "id")
    if audio_id is not None:
        copy["audio"] = {"id": plain(audio_id)}
    entries = items(field(source, "tool_calls"))
    if entries:
        rows = zip(entries, replies, names, strict=True)
        copy["tool_calls"] = [_entry(entry, answer.call, name) for entry, answer, name in rows]
    elif replies:
        legacy = field(source, "function_call")
        copy["function_call"] = {"name": names[0], "arguments": arguments_text(field(legacy, "arguments"))}
    if len(copy) == 2 and copy["content"] is None:
        copy["content"] = ""  # "Required unless tool_calls or function_call is specified"
    return copy


def _entry(entry: object, call: ToolCall, name: str) -> dict[str, Any]:
    """Return a call as it came, but for what a server would refuse. `index` is a mark of streams."""
    copy = {**copied(entry, "id", "function", "custom", "index"), "id": call.id}
    if call.kind == "custom":
        custom = field(entry, "custom")
        return {**copy, "type": "custom", "custom": {"name": name, "input": plain(as_text(field(custom, "input")))}}
    function = field(entry, "function")
    copy["type"] = copy.get("type") or "function"
    copy["function"] = {"name": name, "arguments": arguments_text(field(function, "arguments"))}
    return copy
