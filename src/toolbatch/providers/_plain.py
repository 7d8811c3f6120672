"""Reading what an SDK, a gateway or a JSON parser may hand over: objects and dicts alike, without importing an SDK."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from toolbatch.core import InvalidInputError, InvalidTypeError, preview, sound

__all__ = ["OBJECT", "copied", "drop_nulls", "field", "items", "members", "plain"]

OBJECT: Final = (dict, Mapping)
"""What is read as a JSON object. `dict` first: an abstract class alone takes ten times as long to ask."""


def field(source: object, name: str) -> Any:
    """Return a member of a dict or an attribute of an object; `None` where there is none."""
    if isinstance(source, OBJECT):
        return source.get(name)
    return getattr(source, name, None)


def items(value: object) -> list[Any]:
    """Return the entries of a JSON array, or none where there is no array."""
    return list(value) if isinstance(value, (list, tuple)) else []


def plain(value: object, *, binary: Callable[[bytes], object] | None = None) -> Any:
    """Return a detached copy of `value` in JSON's own types, as the server sent it.

    An SDK's object gives the fields that the server set and no others (`exclude_unset`), under their wire names
    (`async`, not `async_`): an API may refuse a `null` that it never sent. Lone surrogates become U+FFFD, since no
    request can carry one and the turn would fail for ever.

    Args:
        value: What to copy.
        binary: Gives what stands for bytes, in a lane whose messages have bytes in them.

    Raises:
        InvalidTypeError: Something in it has no JSON form.
        InvalidInputError: It holds NaN or an infinity.
    """
    if isinstance(value, str):
        return sound(value if type(value) is str else str.__str__(value))  # an SDK's enum is text with a name
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInputError(f"{value!r} is not JSON, so it can't be sent back")
        return value
    if isinstance(value, OBJECT):
        return copied(value, binary=binary)
    if isinstance(value, (list, tuple)):
        return [plain(entry, binary=binary) for entry in value]
    if binary is not None and isinstance(value, bytes | bytearray | memoryview):
        return binary(bytes(value))
    return plain(members(value), binary=binary)


def members(value: object) -> Mapping[str, Any]:
    """Return the fields of a JSON object, be it a dict or an SDK's object; none where there is no object."""
    if isinstance(value, OBJECT):
        return value
    if value is None or isinstance(value, (str, int, float, list, tuple)):
        return {}
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        # A gateway's odd value in a typed field is why this is read at all; it must not warn on its way back.
        fields = dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    else:
        fields = getattr(value, "__dict__", None)
    if not isinstance(fields, Mapping):
        raise InvalidTypeError(f"{preview(value)} of type {type(value).__name__} has no JSON form")
    return fields


def copied(value: object, *without: str, binary: Callable[[bytes], object] | None = None) -> dict[str, Any]:
    """Return a detached copy of a JSON object, as `plain` does, without some fields that the caller writes anew."""
    return {
        sound(str(name)): plain(entry, binary=binary) for name, entry in members(value).items() if name not in without
    }


def drop_nulls(holder: dict[str, Any], *names: str) -> None:
    """Remove those of `names` that are `null`: an optional field that a full `model_dump()` adds and an API refuses."""
    for name in names:
        if name in holder and holder[name] is None:
            del holder[name]
