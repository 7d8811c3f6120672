"""Gemini's parts on their way back to the server: one form, whatever they came in.

The wire has camelCase and base64 text; the SDK's objects and their `model_dump()` have snake_case, bytes and `None`. Here all
become the wire's form, which the SDK reads as well as its own (`types.Content.model_validate`).
"""

import base64
import re
from collections.abc import Mapping
from typing import Any, Final

from toolbatch.core import sound

from ._plain import OBJECT, field, members, plain

__all__ = ["either", "function_call", "is_hollow", "wire"]

# Objects whose names are a tool's or a host's own; those in between are the API's.
_OPAQUE: Final = ("args", "response", "partMetadata")
_WORD: Final = re.compile(r"_([a-z0-9])")


def either(source: object, camel: str, snake: str) -> Any:
    """Return a member under either of its names; `None` where there is none."""
    found = field(source, camel)
    return field(source, snake) if found is None else found


def function_call(part: object) -> Any:
    """Return a part's call, of any type, or `None` if the part is none."""
    return either(part, "functionCall", "function_call")


def wire(value: object) -> Any:
    """Return a detached copy in the wire's form. `None` is left out: a full `model_dump()` adds it, and no server sends it.

    Raises:
        InvalidTypeError: Something in it has no JSON form.
        InvalidInputError: It holds NaN or an infinity.
    """
    if isinstance(value, (list, tuple)):
        return [wire(entry) for entry in value]
    fields = value if isinstance(value, OBJECT) else _fields(value)
    if fields is None:
        return plain(value, binary=_base64)
    named = {_camel(sound(str(name))): entry for name, entry in fields.items() if entry is not None}
    return {name: plain(entry, binary=_base64) if name in _OPAQUE else wire(entry) for name, entry in named.items()}


def is_hollow(part: Mapping[str, Any]) -> bool:
    """Whether a part has nothing in it: the API sends such parts and refuses them (`required oneof field 'data'`)."""
    return not any(entry for name, entry in part.items() if name != "thought")


def _fields(value: object) -> Mapping[str, Any] | None:
    if value is None or isinstance(value, (str, int, float, bytes, bytearray, memoryview)):
        return None
    return members(value)


def _camel(name: str) -> str:
    return _WORD.sub(lambda match: match[1].upper(), name)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii")  # the SDK's own spelling; the server takes both
