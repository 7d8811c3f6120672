"""Results as data, for lanes that carry an object beside text: Gemini and Bedrock.

Both read numbers as doubles and give a meaning of their own to one key, and what they refuse once stays in the history and is
refused for ever. So a result goes as data only where the model is sure to read what the tool returned; else it goes as text.
"""

import json
from decimal import Decimal
from math import isfinite
from typing import Any, Final, NoReturn

from toolbatch.core import sound

__all__ = ["data_of"]

_MAX_EXACT: Final = 2**53  # a double holds every integer up to here
_MAX_DEPTH: Final = 30  # protobuf readers stop at 100 levels, and a level of JSON takes three of theirs


class _UnsafeError(ValueError):
    """The text is JSON that a lane would change or refuse."""


def data_of(text: str, reserved: str | None = None) -> dict[str, Any] | list[Any] | None:
    """Return what the text of a JSON object or array says, or `None` where it has to stay text.

    It stays text if it is neither; if it says a name twice in one object, or a number that no double holds exactly; if half a
    surrogate pair is in it, or more than 30 levels; or if a key in it, at whatever depth, is `reserved`.
    """
    if text.lstrip(" \t\r\n")[:1] not in ("{", "["):
        return None
    try:
        value = _decode(text)
        _require_safe(value, reserved, 1)
    except (ValueError, RecursionError):
        return None
    return value  # type: ignore[no-any-return]  # one of the two, as its first character says


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _UnsafeError
    return members


def _integer(text: str) -> int:
    if len(text) > 17 or abs(number := int(text)) > _MAX_EXACT:
        raise _UnsafeError
    return number


def _fraction(text: str) -> float:
    number = float(text)
    if not isfinite(number) or Decimal(text) != Decimal(repr(number)):
        raise _UnsafeError
    return number


def _constant(_name: str) -> NoReturn:
    raise _UnsafeError


_decode: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_fraction, parse_constant=_constant
).decode


def _require_safe(value: object, reserved: str | None, depth: int) -> None:
    if isinstance(value, str):
        if sound(value) != value:
            raise _UnsafeError
        return
    if isinstance(value, dict):
        if reserved in value or any(sound(key) != key for key in value):
            raise _UnsafeError
        inner = list(value.values())
    elif isinstance(value, list):
        inner = value
    else:
        return
    if depth > _MAX_DEPTH:
        raise _UnsafeError
    for entry in inner:
        _require_safe(entry, reserved, depth + 1)
