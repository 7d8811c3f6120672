"""Checking the numbers that backends are made with."""

import math
import os

from toolbatch.core import InvalidInputError, InvalidTypeError, preview

__all__ = ["positive", "require_groups", "seconds"]


def positive(name: str, value: object, *, least: int = 1) -> int:
    """Return `value`, a whole number of at least `least`.

    Raises:
        InvalidTypeError: It is no int.
        InvalidInputError: It is less.
    """
    if type(value) is not int:
        raise InvalidTypeError(f"{name} must be an int, not {preview(value)}")
    if value < least:
        raise InvalidInputError(f"{name} must be at least {least}, not {value}")
    return value


def seconds(name: str, value: object, *, least: float | None = None) -> float:
    """Return `value`, a number of seconds: more than 0, or at least `least` where that is given.

    Raises:
        InvalidTypeError: It is no number.
        InvalidInputError: It is too small, infinite or not a number.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidTypeError(f"{name} must be a number of seconds, not {preview(value)}")
    if not math.isfinite(value) or (value <= 0 if least is None else value < least):
        bound = "more than 0" if least is None else f"at least {least:g}"
        raise InvalidInputError(f"{name} must be {bound} seconds, and finite, not {value!r}")
    return float(value)


def require_groups() -> None:
    """Check that this system has process groups.

    Raises:
        InvalidInputError: It has none, as Windows.
    """
    if not hasattr(os, "killpg"):
        raise InvalidInputError("this system has no process groups to kill; use ThreadBackend, or TemporalBackend")
