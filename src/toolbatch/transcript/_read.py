"""Reading and copying what a message may be: the wire's dict, any mapping, or an SDK's object, without importing an SDK."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from toolbatch.core import InvalidTypeError, preview

__all__ = ["NO_MESSAGE", "Members", "changed", "field", "fields", "key_of", "like", "members", "require_messages"]

NO_MESSAGE: Final = (str, bytes, bytearray, int, float, complex, list, tuple, set, frozenset, type(None))
"""Types of which nothing is a message, a call or a block in any lane."""


def field(source: object, name: str) -> Any:
    """Return a member of a mapping or an attribute of an object; `None` where there is none."""
    if isinstance(source, (dict, Mapping)):
        return source.get(name)
    return getattr(source, name, None)


class Members:
    """An entry that is no dict, read like one: `get` is `field`."""

    __slots__ = ("_entry",)

    def __init__(self, entry: object) -> None:
        self._entry = entry

    def get(self, name: str) -> Any:
        return field(self._entry, name)


def members(message: object, position: int) -> Members:
    """Return how to read one message that is no dict.

    Raises:
        InvalidTypeError: It is text, a number, a list or nothing: no message in any lane.
    """
    if isinstance(message, NO_MESSAGE):
        raise InvalidTypeError(
            f"messages[{position}] must be a mapping or an SDK's object, not {preview(message)} of type {type(message).__name__}"
        )
    return Members(message)


def fields(message: object) -> Mapping[str, Any]:
    """Return what a message holds, for copying; empty for an object, whose copy keeps all by itself."""
    return message if isinstance(message, Mapping) else {}


def key_of(value: object) -> str | int | None:
    """Return a wire id as a key, or `None` where there is none to pair by (absent, empty, or no id at all)."""
    if isinstance(value, str):
        return value or None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def changed(message: object, updates: Mapping[str, object]) -> Any:
    """Return a copy of a message with some members replaced; what it holds beside them is the same, by identity."""
    if isinstance(message, Mapping):
        return {**message, **updates}
    model_copy = getattr(message, "model_copy", None)
    if callable(model_copy):
        return model_copy(update=dict(updates))
    clone = copy.copy(message)
    for name, value in updates.items():
        setattr(clone, name, value)
    return clone


def like(sample: object, data: dict[str, Any]) -> Any:
    """Return `data` in the form of `sample`: as it is beside dicts, as the same model beside a pydantic object."""
    validate = None if isinstance(sample, Mapping) else getattr(type(sample), "model_validate", None)
    return validate(data) if callable(validate) else data


def require_messages(messages: object) -> list[Any]:
    """Return the caller's own list.

    Raises:
        InvalidTypeError: It is not a `list`.
    """
    if not isinstance(messages, list):
        raise InvalidTypeError(
            f"messages must be a list of messages, not {preview(messages)} of type {type(messages).__name__}"
        )
    return messages
