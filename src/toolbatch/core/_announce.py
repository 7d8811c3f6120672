"""Reading what the caller announces. All of it is checked before anything changes (C2)."""

from collections.abc import Iterable, Mapping
from typing import Any

from ._calls import ToolCall
from ._errors import InvalidInputError, InvalidTypeError
from ._limits import Limits
from ._text import preview, require_text

__all__ = ["read_calls"]

_MISSING = object()


def _field(entry: object, name: str) -> Any:
    if isinstance(entry, Mapping):
        return entry.get(name, _MISSING)
    return getattr(entry, name, _MISSING)


def _is_plain(call: ToolCall, limits: Limits) -> bool:
    # Most calls are like this, and a batch of a thousand is read in half the time. Text that is not less than "!" is not
    # empty, and begins with something that can be seen.
    try:
        call_id, name = call.id, call.name
    except AttributeError:  # made without its constructor
        return False
    return (
        type(call_id) is str
        and call_id >= "!"
        and call_id.isascii()
        and len(call_id) <= limits.max_id_bytes
        and type(name) is str
        and name >= "!"
        and name.isascii()
        and len(name) <= limits.max_name_bytes
    )


def _read_call(entry: object, position: int, limits: Limits) -> ToolCall:
    where = f"calls[{position}]"
    if entry is None or isinstance(entry, (str, bytes, int, float, list, tuple)):
        raise InvalidTypeError(f"{where} must be a ToolCall or have an id and a name, unlike {preview(entry)}")
    raw_id, raw_name = _field(entry, "id"), _field(entry, "name")
    for name, value in (("id", raw_id), ("name", raw_name)):
        if value is _MISSING:
            raise InvalidInputError(f"{where} has no {name}: {preview(entry)}; a lane's calls() reads a response's")
    call_id = require_text(raw_id, f"{where}.id", limits.max_id_bytes)
    tool_name = require_text(raw_name, f"{where}.name", limits.max_name_bytes)
    if type(entry) is ToolCall and type(raw_id) is str and type(raw_name) is str:
        return entry
    arguments = _field(entry, "arguments")
    if type(entry) is not ToolCall:
        return ToolCall(call_id, tool_name, None if arguments is _MISSING else arguments)
    # Its id or name is of a subclass of str. It is the same call with plain ones.
    given = arguments if entry.raw_arguments is None else entry.raw_arguments
    return ToolCall(
        call_id, tool_name, given, problem=entry.problem, wire_id=entry.wire_id, kind=entry.kind, echo=entry.echo
    )


def read_calls(calls: Iterable[object], limits: Limits) -> tuple[ToolCall, ...]:
    """Return the announced calls as `ToolCall`s with distinct, bounded ids and bounded names.

    Raises:
        InvalidTypeError: `calls` is not an iterable of calls, or an id or a name is not a `str`.
        InvalidInputError: A call lacks an id or a name, an id occurs twice, something is blank or over its limit.
    """
    if type(calls) not in (list, tuple) and (  # asking an abstract class takes longer than reading a call
        isinstance(calls, (str, bytes, Mapping)) or not isinstance(calls, Iterable)
    ):
        raise InvalidTypeError(f"calls must be an iterable of tool calls, not {preview(calls)}")
    announced: dict[str, ToolCall] = {}
    for position, entry in enumerate(calls):
        if position >= limits.max_calls:
            raise InvalidInputError(f"there are more than {limits.max_calls} calls, the limit in max_calls")
        call = entry if type(entry) is ToolCall and _is_plain(entry, limits) else _read_call(entry, position, limits)
        if call.id in announced:
            raise InvalidInputError(f"calls[{position}].id {preview(call.id)} was announced before in this batch")
        announced[call.id] = call
    return tuple(announced.values())
