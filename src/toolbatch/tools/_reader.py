"""What a tool knows of its arguments: their schema, how to check them, and how to hand them to the function.

No pydantic in here: a tool's signature is read by `_signature.py`, which is imported when the first tool is made.
"""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from types import FrameType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Protocol

from toolbatch.core import InvalidTypeError

if TYPE_CHECKING:
    from ._signature import Signature

__all__ = ["INVALID", "ArgumentReader", "Bound", "FreeReader", "SignatureReader", "caller_names", "root_function"]

INVALID = "invalid_arguments"
"""The code of arguments that don't fit their tool (T4)."""

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


class SignatureReader:
    """Reads arguments by a function's signature. It is compiled once: at the decorator, or later where a name is missing.

    A tool may mention a class that its module defines further down. Then the decorator can't know the schema yet, and
    the first who needs it (`ToolCatalog.register`, at the latest) does.
    """

    __slots__ = ("_compiled", "_fn", "_names", "_skip_first")

    def __init__(self, fn: Callable[..., Any], *, skip_first: bool, names: Mapping[str, Any]) -> None:
        self._fn = fn
        self._skip_first = skip_first  # `self` or `cls`, of a function in a class
        self._names = names  # what string annotations may mean besides the module's globals
        self._compiled: Signature | None = None

    def try_compile(self) -> None:
        """Compile now if every name is there already.

        Raises:
            InvalidTypeError: The signature can't be a tool's, whatever will be defined later.
        """
        try:
            self._compile()
        except NameError:
            return

    def compiled(self) -> "Signature":
        """Return the compiled signature.

        Raises:
            InvalidTypeError: The signature can't be a tool's, or mentions a name that nobody has defined.
        """
        if self._compiled is not None:
            return self._compiled
        try:
            return self._compile()
        except NameError as error:
            label = getattr(root_function(self._fn), "__qualname__", repr(self._fn))
            raise InvalidTypeError(
                f"the annotations of {label} can't be read: {error}; define or import the name before the tool is used"
            ) from error

    def _compile(self) -> "Signature":
        from ._signature import read_signature

        compiled = read_signature(self._fn, skip_first=self._skip_first, names=self._names)
        self._compiled = compiled
        self._names = {}  # it may hold a whole frame's variables, which nobody needs any more
        return compiled

    def schema(self) -> dict[str, Any]:
        """As `ArgumentReader.schema`.

        Raises:
            InvalidTypeError: As `compiled`.
        """
        return self.compiled().schema()

    def validate(self, arguments: Mapping[str, Any], tool_name: str) -> dict[str, Any]:
        """As `ArgumentReader.validate`.

        Raises:
            InvalidTypeError: As `compiled`.
            ToolError: They don't fit.
        """
        return (self._compiled or self.compiled()).validate(arguments, tool_name)

    def omittable(self) -> Collection[str]:
        """As `ArgumentReader.omittable`."""
        return self.compiled().omittable

    def bind(self, values: Mapping[str, Any]) -> Bound:
        """As `ArgumentReader.bind`."""
        return (self._compiled or self.compiled()).bind(values)


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


def root_function(fn: Any) -> Any:
    """Return the function whose annotations and docstring speak for `fn`: under partials, methods, wrappers, objects."""
    for _ in range(100):  # a `__wrapped__` may lead back to itself
        if isinstance(fn, functools.partial):
            fn = fn.func
        elif isinstance(fn, (MethodType, classmethod, staticmethod)):
            fn = fn.__func__
        elif callable(getattr(fn, "__wrapped__", None)):
            fn = fn.__wrapped__
        elif callable(fn) and not isinstance(fn, type) and not inspect.isroutine(fn):
            fn = type(fn).__call__
        else:
            break
    return fn


def caller_names(fn: Any, frame: FrameType) -> Mapping[str, Any]:
    """Return the names that `fn`'s annotations may mean where it was written inside a function or a class.

    Python keeps a function's globals but not its surroundings, so they are read from the frame that makes the tool; and
    only where there are annotations to resolve, since it copies every local variable.
    """
    root = root_function(fn)
    annotations = getattr(root, "__annotations__", {}) if isinstance(root, FunctionType) else {}
    if not any(isinstance(hint, str) or "ForwardRef" in repr(hint) for hint in annotations.values()):
        return {}
    layers: list[Mapping[str, Any]] = []
    at: FrameType | None = frame
    while at is not None and at.f_code.co_name != "<module>":
        layers.append(at.f_locals)
        if at.f_code.co_flags & inspect.CO_OPTIMIZED:  # a function: whoever called it is no surrounding of ours
            break
        at = at.f_back  # a class body runs inside the function that it is written in
    names: dict[str, Any] = {}
    for layer in reversed(layers):
        names |= layer
    return names
