"""Which context variables go with a call, and how they are found where it is run (B11)."""

import sys
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from toolbatch.core import InvalidInputError, InvalidTypeError, preview

__all__ = ["ContextVars", "Value"]

Value = tuple[str, str, Any]
"""A variable's module, its name there, and its value."""


class ContextVars:
    """Context variables that are sent: exactly those that the host has named, since others may hold anything, secrets included.

    Args:
        variables: The variables.

    Raises:
        InvalidTypeError: One is none.
        InvalidInputError: One is at no module's top level, so that nobody could find it elsewhere.
    """

    __slots__ = ("_places",)

    def __init__(self, variables: Iterable[ContextVar[Any]]) -> None:
        self._places = tuple((variable, *_place_of(variable)) for variable in variables)

    def values(self) -> tuple[Value, ...]:
        """Return the values that are set in the current context."""
        missing = object()
        found = ((module, name, variable.get(missing)) for variable, module, name in self._places)
        return tuple(value for value in found if value[2] is not missing)

    @property
    def names(self) -> frozenset[tuple[str, str]]:
        """Module and name of each."""
        return frozenset((module, name) for _, module, name in self._places)


def _place_of(variable: object) -> tuple[str, str]:
    if not isinstance(variable, ContextVar):
        raise InvalidTypeError(f"context_vars must be context variables, not {preview(variable)}")
    for module, content in list(sys.modules.items()):
        for name, value in list(getattr(content, "__dict__", {}).items()):
            if value is variable:
                return module, name
    raise InvalidInputError(
        f"{preview(variable)} is at no module's top level, so no worker could find it; define it there"
    )
