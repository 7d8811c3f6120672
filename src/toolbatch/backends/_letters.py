"""What is sent to workers on other machines and back: JSON, so that nobody who can write to the engine can run code here.

The two sides may be of different versions of the host's program, and of toolbatch: a letter says only what both can check.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from toolbatch.core import EncodingError, ToolCall, ToolError, as_parts, cut, encode, from_plain, to_plain
from toolbatch.ports import (
    NOTES,
    SAVED_MARK,
    SAVED_VERSION,
    BackendError,
    BackendNotStartedError,
    BackendUnknownError,
    CallFacts,
    CallNote,
    ClaimedBeforeError,
    RemoteToolError,
    ResultNotSendableError,
    ResultTooLargeError,
)

__all__ = [
    "ACTIVITY", "Ending", "Fate", "Request", "enclosed", "ending_of", "error_of", "read_answer", "read_notes", "read_request",
    "sealed", "write_answer", "write_request",
]  # fmt: skip

ACTIVITY: Final = "toolbatch.run"

Fate = Literal["raised", "not_started", "unknown", "claimed_before", "result_too_large", "result_not_sendable"]
"""What became of a call that has no value."""

_MAX_TEXT: Final = 64 * 1024


class Request(NamedTuple):
    """One call, on its way to a worker.

    Attributes:
        tool: The tool's name, as workers know it.
        arguments: Its arguments, by name, as they were given.
        facts: The call that is answered.
        operation_id: What the worker claims, where it has a store.
        values: Context variables: module, name, value.
        limit: The most bytes that the answer may take.
    """

    tool: str
    arguments: Mapping[str, Any]
    facts: CallFacts
    operation_id: str
    values: tuple[tuple[str, str, Any], ...]
    limit: int


class Ending(NamedTuple):
    """A call without a value, on its way back.

    Attributes:
        fate: What became of it.
        message: The text of what was raised, or why.
        type_name: The class of what the tool raised.
        code: The code of its `ToolError`, if it was one.
        is_tool_error: Whether it was one.
        is_fatal: Whether that ends the turn.
    """

    fate: Fate
    message: str
    type_name: str = ""
    code: str | None = None
    is_tool_error: bool = False
    is_fatal: bool = False


def sealed(value: object) -> bytes:
    """Return a value as the JSON that is sent.

    Raises:
        EncodingError: It has no JSON form, or holds a lone surrogate.
    """
    try:
        return encode(value).encode()
    except UnicodeEncodeError as error:
        raise EncodingError("a lone surrogate is not text") from error


def write_request(request: Request) -> bytes:
    """Return a request as it is sent.

    Raises:
        EncodingError: Something of it has no JSON form.
    """
    facts = request.facts
    plain = {
        "tool": request.tool,
        "arguments": request.arguments,
        "call_id": facts.call.id,
        "call_name": facts.call.name,
        "generation": facts.generation,
        "run_id": facts.run_id,
        "execution_id": facts.execution_id,
        "idempotency_key": facts.idempotency_key,
        "operation_id": request.operation_id,
        "values": request.values,
        "limit": request.limit,
    }
    return sealed(plain)


def read_request(data: bytes) -> Request:
    """Return the request that `write_request` was given.

    Raises:
        ValueError: It is none.
        KeyError: Likewise.
    """
    plain = json.loads(data)
    facts = CallFacts(
        call=ToolCall(plain["call_id"], plain["call_name"], plain["arguments"]),
        generation=plain["generation"],
        run_id=plain["run_id"],
        execution_id=plain["execution_id"],
        idempotency_key=plain["idempotency_key"],
    )
    values = tuple((module, name, value) for module, name, value in plain["values"])
    return Request(plain["tool"], plain["arguments"], facts, plain["operation_id"], values, plain["limit"])


def write_answer(value: object) -> bytes:
    """Return a tool's value as it is sent and saved: its own JSON, or an object with a marked member where that can't say it.

    Raises:
        EncodingError: It has no JSON form.
        Exception: What the value's own methods raise.
    """
    parts = None if isinstance(value, str) else as_parts(value)
    if parts is not None:
        return sealed({SAVED_MARK: SAVED_VERSION, "parts": [to_plain(part) for part in parts]})
    data = sealed(value)
    return (
        data
        if SAVED_MARK.encode() not in data
        else sealed({SAVED_MARK: SAVED_VERSION, "value": json.loads(data), "content": data.decode()})
    )


def enclosed(answer: bytes, notes: list[CallNote]) -> bytes:
    """Return an answer together with what the tool has said besides."""
    return b'{"notes":%b,"answer":%b}' % (sealed([[note.what, *note.args] for note in notes]), answer)


def read_answer(data: bytes) -> tuple[Any, list[CallNote]]:
    """Return the value - parts as parts, anything else as plain JSON data - and the notes of what `enclosed` has made.

    Raises:
        ValueError: It is no answer.
        KeyError: Likewise.
    """
    letter = json.loads(data)
    value = letter["answer"]
    if isinstance(value, dict) and SAVED_MARK in value:
        if value[SAVED_MARK] != SAVED_VERSION:
            raise ValueError("it was written by a newer toolbatch")
        value = [from_plain(part) for part in value["parts"]] if "parts" in value else value["value"]
    return value, read_notes(letter["notes"])


def read_notes(plain: Any) -> list[CallNote]:
    """Return what a tool has said besides its value, from its JSON."""
    return [CallNote(what, tuple(args)) for what, *args in plain if what in NOTES]


def ending_of(error: BaseException) -> Ending:
    """Say what an exception of a tool, or of where it was run, means for its call."""
    if isinstance(error, BackendError):
        return Ending(_fate_of(error), cut(error.why, _MAX_TEXT))
    try:
        text = error.message if isinstance(error, ToolError) else str(error)
    except Exception:  # noqa: BLE001  a message that can't be made must not hide that the tool failed
        text = ""
    name = type(error).__name__
    message = cut(text, _MAX_TEXT) if isinstance(text, str) and text.strip() else name
    if isinstance(error, ToolError):
        return Ending("raised", message, name, error.code, is_tool_error=True, is_fatal=error.is_fatal)
    return Ending("raised", message, name)


def _fate_of(error: BackendError) -> Fate:
    if isinstance(error, ResultTooLargeError):
        return "result_too_large"
    if isinstance(error, ClaimedBeforeError):
        return "claimed_before"
    return {"not_started": "not_started", "unknown": "unknown", "settled": "result_not_sendable"}[error.effects]  # type: ignore[return-value]


def error_of(ending: Ending) -> Exception:
    """Return the exception that an ending means here."""
    match ending.fate:
        case "not_started":
            return BackendNotStartedError(ending.message)
        case "unknown":
            return BackendUnknownError(ending.message)
        case "claimed_before":
            return ClaimedBeforeError(ending.message)
        case "result_too_large":
            return ResultTooLargeError(ending.message)
        case "result_not_sendable":
            return ResultNotSendableError(ending.message)
        case "raised" if ending.is_tool_error:
            return ToolError(ending.message, ending.code, is_fatal=ending.is_fatal)
        case "raised":
            return RemoteToolError(ending.message, ending.type_name)
