"""Reading and copying what a message may be: the wire's dict, any mapping, or an SDK's object, without importing an SDK."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any, Final

from toolbatch.core import InvalidInputError, InvalidTypeError, preview

__all__ = [
    "NO_MESSAGE",
    "Members",
    "changed",
    "entries",
    "field",
    "fields",
    "key_of",
    "like",
    "members",
    "require_messages",
    "unreadable",
    "word",
]

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
    """Return a wire id as a key, or `None` where there is none to pair by (absent, empty, or no id at all).

    A key is a plain `str` or `int`, so that no subclass's code runs where keys are compared.
    """
    if isinstance(value, str):
        return str.__str__(value) or None
    return int.__index__(value) if isinstance(value, int) and not isinstance(value, bool) else None


def word(source: object, name: str) -> str:
    """Return a member that should be text, such as a name or a type; empty where there is none, or something else."""
    value = field(source, name)
    return str.__str__(value) if isinstance(value, str) else ""


def entries(value: object) -> Sequence[Any]:
    """Return a member that should be a list; empty where it is something else."""
    return value if isinstance(value, (list, tuple)) else ()


def changed(message: object, updates: Mapping[str, object]) -> Any:
    """Return a copy of an entry with some members replaced; what it holds beside them is the same, by identity.

    What has no members at all, because it is no entry of any lane, becomes one that has these.
    """
    if isinstance(message, Mapping):
        return {**message, **updates}
    if isinstance(message, NO_MESSAGE):
        return dict(updates)
    if is_dataclass(message) and not isinstance(message, type):
        return replace(message, **updates)
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


def unreadable(error: Exception, position: int | None = None) -> InvalidInputError:
    """Return what is said of a message whose own code raised `error`: a property, a `get`, a copy."""
    where = "the messages" if position is None else f"messages[{position}]"
    return InvalidInputError(f"{where} can't be read or copied: {type(error).__name__}: {preview(error)}")


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
