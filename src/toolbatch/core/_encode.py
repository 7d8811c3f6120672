"""The one JSON encoder. Two would disagree on NaN, sets and big numbers, and a stored text would not match a sent one."""

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from json import JSONEncoder
from json import encoder as json_encoder
from pathlib import PurePath
from typing import Any
from uuid import UUID

from ._errors import EncodingError
from ._text import preview

__all__ = ["Encoder", "encode"]

Encoder = Callable[[object], str]
"""Turns a tool's value into JSON text, or raises. A host may inject its own (C7)."""


def _sorted_items(items: AbstractSet[Any]) -> list[Any]:
    # A set has no order of its own; sorting by the encoded text gives one text for equal sets (C16). The texts are read
    # back so that no member is encoded from scratch again: sets in sets would double the work with each level.
    return [json.loads(text) for text in sorted(map(encode, items))]


def _convert(value: object) -> object:
    """Turn what JSON has no form for into what it has (T9). Called by the standard encoder, for unknown types only."""
    match value:
        case Enum():
            return value.value
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case UUID() | PurePath() | Decimal():
            return str(value)
        case set() | frozenset():
            return _sorted_items(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode("ascii")
        case Mapping():
            return dict(value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {field.name: getattr(value, field.name) for field in fields(value)}
        case _:
            return _dump(value)


def _dump(value: object) -> object:
    dump = getattr(type(value), "model_dump", None)
    if dump is not None:
        return dump(value, mode="json")
    raise EncodingError(f"{preview(value)} of type {type(value).__name__} has no JSON form; return plain data")


_PLAIN = frozenset((str, int, float, bool, type(None)))


def _make_flat_chunker() -> Callable[[object, int], Iterable[str]]:
    make = getattr(json_encoder, "c_make_encoder", None)
    if make is None:  # an interpreter without the accelerator
        return lambda value, _level: (_encode_nested(value),)
    chunker: Callable[[object, int], Iterable[str]] = make(
        None, _convert, json_encoder.encode_basestring, None, ":", ",", *(False, False, False)
    )
    return chunker


_encode_nested = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_convert).encode
# That makes a C encoder anew for each value, with a record of where it is, which takes longer than most values do. This one
# is made once, has no such record, and is given flat values only: one that holds itself would fill the memory.
_flat_chunks = _make_flat_chunker()


def encode(value: object) -> str:
    """Return `value` as strict, compact JSON: no blanks, non-ASCII kept, members in their order (C7).

    Beyond JSON's own types it takes dataclasses, pydantic models, `datetime`, `date`, `time` (ISO 8601), `timedelta`
    (seconds), `UUID`, `Enum` (its value), `Decimal` and paths (text), sets (sorted) and bytes (base64).

    Raises:
        EncodingError: The value has no JSON form, holds itself, or holds NaN or an infinity.
        Exception: Whatever the value's own methods raise, untouched; but a `TypeError`, `ValueError` or `RecursionError`,
            which JSON's own can't be told from, is the cause of an `EncodingError`.
    """
    try:
        members: Iterable[object] = (
            value.values()
            if type(value) is dict
            else value
            if type(value) is list or type(value) is tuple
            else (value,)
        )
        if _PLAIN.issuperset(map(type, members)):
            return "".join(_flat_chunks(value, 0))
        return _encode_nested(value)
    except EncodingError:
        raise
    except RecursionError as error:
        raise EncodingError(f"{type(value).__name__} can't be written as JSON: it is too deep") from error
    except (TypeError, ValueError) as error:
        raise EncodingError(f"{preview(value)} can't be written as JSON: {error}") from error
