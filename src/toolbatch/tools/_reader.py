"""What a tool knows of its arguments: their schema, how to check them, and how to hand them to the function."""

from collections.abc import Collection, Mapping
from typing import Any, Protocol

__all__ = ["ArgumentReader", "Bound", "FreeReader"]

Bound = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and named arguments of the function."""


class ArgumentReader(Protocol):
    """Reads a model's arguments for one function. It never calls the function."""

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments: an object's, and a copy that the caller may change."""
        ...

    def validate(self, arguments: Mapping[str, Any], tool_name: str) -> dict[str, Any]:
        """Return the checked and converted arguments by parameter, detached from what was given.

        Raises:
            ToolError: They don't fit; its message is for the model, its code `invalid_arguments`.
        """
        ...

    def omittable(self) -> Collection[str]:
        """Return the arguments that may be left out and can't be null: a strict model's null for one means "left out"."""
        ...

    def bind(self, values: Mapping[str, Any]) -> Bound:
        """Return what to call the function with, for values that `validate` returned."""
        ...


class FreeReader:
    """Takes any arguments: for a function that nobody has made a tool of."""

    __slots__ = ()

    def schema(self) -> dict[str, Any]:
        """Return a schema that says nothing."""
        return {"type": "object"}

    def validate(self, arguments: Mapping[str, Any], tool_name: str) -> dict[str, Any]:  # noqa: ARG002
        """Return the arguments as they are."""
        return dict(arguments)

    def omittable(self) -> Collection[str]:
        """Return nothing."""
        return ()

    def bind(self, values: Mapping[str, Any]) -> Bound:
        """Return them by name."""
        return (), dict(values)
