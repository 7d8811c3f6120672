"""One byte string for one JSON value, whatever order its members came in: what fingerprints are made of."""

import json
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from toolbatch.core import EncodingError, encode, preview

__all__ = ["canonical_json"]


def canonical_json(value: object) -> bytes:
    """Return `value` as canonical JSON in UTF-8: equal JSON values give equal bytes.

    It is the core's strict, compact JSON with the members of every object sorted by name (in the order of code points) and
    whole floats written as integers, so that `1.0`, which another writer of the same arguments may have sent as `1`, is
    the same number. Integers keep all their digits.

    Raises:
        EncodingError: The value has no JSON form, holds itself, NaN, an infinity or a lone surrogate, is too deep, or has
            two members of one name, as `{1: "a", "1": "b"}` would.
        Exception: Whatever the value's own methods raise, untouched, as from `encode`.
    """
    text = encode(value)
    try:
        return encode(_decode(text)).encode()
    except RecursionError as error:
        raise EncodingError(f"{type(value).__name__} can't be written as JSON: it is too deep") from error
    except UnicodeEncodeError as error:
        raise EncodingError(f"{preview(value)} has a lone surrogate, which is not text") from error


def _by_name(members: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    ordered = dict(sorted(members, key=itemgetter(0)))
    if len(ordered) < len(members):
        names = [name for name, _ in members]
        twice = next(name for name in names if names.count(name) > 1)
        raise EncodingError(f"an object with two members named {preview(twice)} has no one JSON form")
    return ordered


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


_decode = json.JSONDecoder(
    object_pairs_hook=_by_name, parse_float=_number
).decode  # `json.loads` would make one each time
