"""Arguments described by a function's signature, which is read when it is needed.

No pydantic in here: `_signature.py`, which has it, is imported when the first tool is made.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from toolbatch.core import InvalidTypeError

from ._callables import root_function
from ._reader import Bound

if TYPE_CHECKING:
    from ._signature import Signature

__all__ = ["SignatureReader"]


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
