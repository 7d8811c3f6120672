"""Names for saved texts: short enough to be copied by a model, and not to be found by trying."""

import secrets
from typing import Final

from toolbatch.core import InvalidInputError, InvalidTypeError, preview

__all__ = ["READER_NAME", "new_locator", "require_range", "require_save", "require_size", "retrieval"]

READER_NAME: Final = "read_tool_output"
"""The name of the tool that reads saved texts back."""

_ALPHABET: Final = "abcdefghijkmnpqrstuvwxyz23456789"  # 32, and none that is taken for another
_LENGTH: Final = 14  # 70 bits: among a million texts, one guess in 10**15 finds one


def new_locator() -> str:
    """Return a new name, such as `out-k3v9x2mqa7bc4d`: 70 random bits, so that knowing one helps to find no other."""
    return f"out-{''.join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))}"


def retrieval(locator: str) -> str:
    """Return the sentence that tells the model how to get the rest."""
    return f'Call {READER_NAME} with locator "{locator}" to read the rest, or with a pattern to search it.'


def require_save(text: object, tool_name: object, call_id: object) -> str:
    """Return what a store is asked to save as a plain `str`, whose methods are known.

    Raises:
        InvalidTypeError: A value is no text.
    """
    for value, what in ((text, "text"), (tool_name, "tool_name"), (call_id, "call_id")):
        if not isinstance(value, str):
            raise InvalidTypeError(f"{what} must be a str, not {preview(value)}")
    return str.__str__(text)


def require_range(locator: object, offset: object, limit: object) -> None:
    """Check what a store is asked to read.

    Raises:
        InvalidTypeError: The locator is no text, or a number no int.
        InvalidInputError: A number is too small.
    """
    if not isinstance(locator, str):
        raise InvalidTypeError(f"locator must be a str, not {preview(locator)}")
    _require_int(offset, "offset", 0)
    _require_int(limit, "limit", 1)


def require_size(value: object, what: str) -> None:
    """Check a bound of a store.

    Raises:
        InvalidTypeError: It is no int.
        InvalidInputError: It is less than 1.
    """
    _require_int(value, what, 1)


def _require_int(value: object, what: str, least: int) -> None:
    if type(value) is not int:
        raise InvalidTypeError(f"{what} must be an int, not {preview(value)}")
    if value < least:
        raise InvalidInputError(f"{what} must be at least {least}, not {preview(value)}")
