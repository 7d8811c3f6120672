"""Tool: a function with what a model and a batch must know of it. Made by `@tool`, or from an existing JSON Schema."""

import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import FrameType, FunctionType
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack, cast, final, overload

from toolbatch.core import InvalidInputError, InvalidTypeError, Part, preview
from toolbatch.ports import ExecutionBackend

from ._callables import caller_names
from ._checks import check_name, check_options
from ._docstring import summary
from ._reader import ArgumentReader, Bound, FreeReader
from ._signature_reader import SignatureReader

__all__ = ["AnyTool", "Binding", "Judge", "NamedOptions", "Tool", "ToolOptions", "tool", "unchecked"]

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")


class ToolOptions(TypedDict, total=False):
    """Options of a tool, as the attributes of `Tool` describe them."""

    timeout: float | None
    parallel: "bool | Judge"
    needs_approval: "bool | Judge"
    resources: "Collection[str] | Namer | None"
    render: Callable[[Any], str | tuple[Part, ...]] | None
    meta: Callable[[Any], Any] | None
    max_output_tokens: int | None
    budget_exempt: bool
    strict: bool
    backend: ExecutionBackend | None


class NamedOptions(ToolOptions, total=False):
    """The same with what is otherwise read from the function; `None` for that."""

    name: str | None
    description: str | None


Judge = Callable[[Mapping[str, Any]], bool]
"""Decides by a call's arguments: validated, and by parameter name."""

Namer = Callable[[Mapping[str, Any]], str | Iterable[str]]
"""Says by a call's arguments which resources it uses, such as the path of a file."""

Binding = Literal["function", "instance", "class"] | None


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Tool(Generic[P, R]):
    """A function that a model may call (T1). Immutable; called, it is the function itself, types included.

    Make one with `@tool`, `Tool.from_schema`, or `replace`. In a class it is like the method it was made of: `Weather().look`
    is the tool of that instance, and only such a tool can be registered.

    Attributes:
        fn: The function to run, as it was given; for a tool of an instance, the bound method.
        name: What the model calls it by.
        description: What it does, for the model; empty for none.
        timeout: Seconds that a call may take; `None` for the batch's `call_timeout`.
        parallel: Whether a call may overlap with others, or what decides it by the arguments (T8).
        needs_approval: Whether a person must agree before a call runs, or what decides it by the arguments (T7).
        resources: Names of what a call must have to itself, such as the path that it writes, or what says so by the
            arguments: two calls that share a name don't overlap, whatever their tools (T8). `None` for nothing.
        render: Makes the model's text, or parts, of a result; `None` for the result itself.
        meta: Makes what the host, and never the model, is told of a result; `None` for nothing.
        max_output_tokens: The result's token budget; `None` for the batch's (G1).
        budget_exempt: Whether results are never shortened, and calls never counted (G4).
        strict: Whether lanes that can force a model to keep to the schema are told to.
        reader: Checks arguments.
        backend: Where batches run it: a process that can be killed, say, or a distributed engine (X2). `None` for the batch's own loop, or a
            thread where the function is synchronous.
        binding: What the tool is missing to be run, where it was made in a class: its `instance` or its `class`. `function` for
            one that misses nothing, and is bound all the same where it is made a class's attribute, as functions are.

    Raises:
        InvalidInputError: An option can't be used.
        InvalidTypeError: An option is of a wrong type.
    """

    fn: Callable[P, R]
    name: str
    description: str
    reader: ArgumentReader
    timeout: float | None = None
    parallel: bool | Judge = True
    needs_approval: bool | Judge = False
    resources: Collection[str] | Namer | None = None
    render: Callable[[Any], str | tuple[Part, ...]] | None = None
    meta: Callable[[Any], Any] | None = None
    max_output_tokens: int | None = None
    budget_exempt: bool = False
    strict: bool = False
    backend: ExecutionBackend | None = None
    binding: Binding = None

    def __post_init__(self) -> None:
        if not isinstance(self.reader, FreeReader):  # that one is declared to no provider, and runs under whatever name
            check_name(self.name)
        check_options(self)

    @classmethod
    def from_schema(
        cls,
        name: str,
        schema: Mapping[str, Any],
        fn: Callable[..., Any],
        *,
        description: str = "",
        validator: Callable[[dict[str, Any]], object] | None = None,
        unpack: bool = True,
        **options: Unpack[ToolOptions],
    ) -> "Tool[..., Any]":
        """Return a tool whose arguments are described by a JSON Schema, not by its function's signature.

        pydantic makes schemas but can't read them, and a validator of our own would be another half of a standard: so the
        `jsonschema` library checks arguments (extra `[jsonschema]`). They are handed over as they came: nothing is converted,
        and the schema's defaults are not filled in.

        Args:
            name: What the model calls it by.
            schema: An object's JSON Schema. It is copied; references must be to places within it.
            fn: Called with the arguments by name.
            description: As in `tool`; the schema's own where empty, or the summary of the function's docstring.
            validator: Checks a copy of the arguments instead of `jsonschema`: what it raises as `ValueError` the model reads.
                For a remote tool whose server checks by itself, a function that does nothing.
            unpack: Whether the function takes the arguments by name; else it takes them as one dict.
            **options: As in `tool`.

        Raises:
            InvalidInputError: The schema or an option can't be used, or `jsonschema` is needed and not installed.
            InvalidTypeError: A value is of a wrong type.
        """
        from ._json_schema import SchemaReader

        _check_callable(fn)
        reader = SchemaReader(schema, validator, unpack=unpack)
        text = description or reader.description or summary(fn)
        return Tool(fn=fn, name=name, description=text, reader=reader, **_known(options))

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments; a copy, which the caller may change.

        Raises:
            InvalidTypeError: An annotation mentions a name that nobody has defined.
        """
        return self.reader.schema()

    def validate(self, arguments: Mapping[str, Any], /) -> dict[str, Any]:
        """Return the arguments by parameter name, checked and converted. The tool is not run.

        What the model left out is left out here, so that the function's own defaults hold.

        Raises:
            ToolError: They don't fit: code `invalid_arguments`, with a message that tells the model what was wrong, where, and
                what was expected.
            InvalidTypeError: `arguments` is no mapping, or an annotation mentions a name that nobody has defined.
        """
        if not isinstance(arguments, Mapping):
            raise InvalidTypeError(f"arguments must be a dict, not {preview(arguments)}")
        return self.reader.validate(self._given(arguments) if self.strict else arguments, self.name)

    def bind(self, values: Mapping[str, Any], /) -> Bound:
        """Return the positional and named arguments to call `fn` with, for values that `validate` returned."""
        return self.reader.bind(values)

    def replace(self, **options: Unpack[NamedOptions]) -> "Tool[P, R]":
        """Return the same tool with other options, such as another name where two sources have the same one.

        Raises:
            InvalidInputError: An option is unknown or can't be used.
            InvalidTypeError: An option is of a wrong type.
        """
        known = _known(options, *_NAMING)
        return replace(
            self, **{name: value for name, value in known.items() if name not in _NAMING or value is not None}
        )

    def require_bound(self) -> None:
        """Check that the tool has all that it needs to be run.

        Raises:
            InvalidTypeError: It is a method, and of no instance.
        """
        if self.binding in {"instance", "class"}:
            label = getattr(self.fn, "__qualname__", self.name)
            owner = "the class" if self.binding == "class" else "an instance"
            raise InvalidTypeError(f"{label} is a method and misses its {self.binding}; use the tool of {owner}")

    @property
    def __name__(self) -> str:
        return getattr(self.fn, "__name__", self.name)

    @property
    def __wrapped__(self) -> Callable[P, R]:
        return self.fn  # what `inspect.signature` and documentation tools look behind

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.fn(*args, **kwargs)

    @overload
    def __get__(self, instance: None, owner: type) -> "Tool[P, R]": ...
    @overload
    def __get__(self: "Tool[Concatenate[S, Q], R]", instance: S, owner: type | None = None) -> "Tool[Q, R]": ...
    def __get__(self, instance: object, owner: type | None = None) -> "Tool[..., R]":
        if self.binding is None or (instance is None and self.binding != "class"):
            return cast("Tool[..., R]", self)
        bound = self.fn.__get__(instance, owner)
        reader = self.reader
        if self.binding == "function":
            reader = SignatureReader(bound, skip_first=False, names={})
        return replace(cast("Tool[..., R]", self), fn=bound, reader=reader, binding=None)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    def _given(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return `arguments` without the nulls that stand for "not given" where a strict lane makes the model say something."""
        names = self.reader.omittable()
        return {name: value for name, value in arguments.items() if value is not None or name not in names}


AnyTool = Tool[..., Any]
"""A tool of any signature."""


def _check_callable(fn: object) -> None:
    root = fn
    while isinstance(root, functools.partial):
        root = root.func
    if isinstance(fn, (classmethod, staticmethod)):
        return
    if isinstance(root, type):
        raise InvalidTypeError(
            f"a tool can't be made of the class {root.__name__}; use a function, or an instance with __call__"
        )
    if not callable(fn):
        raise InvalidTypeError(f"a tool must be a function, not {preview(fn)}")
    if inspect.isgeneratorfunction(root) or inspect.isgeneratorfunction(getattr(type(root), "__call__", None)):  # noqa: B004
        raise InvalidTypeError(f"{preview(fn)} is a plain generator; make it an async one, or return a list")


_FREE = FreeReader()
_OPTIONS = frozenset(ToolOptions.__annotations__)
_NAMING = ("name", "description")


def _known(options: Mapping[str, Any], *more: str) -> dict[str, Any]:
    unknown = sorted(set(options) - _OPTIONS - set(more))
    if unknown:
        raise InvalidInputError(
            f"{unknown[0]!r} is no option of a tool; they are {', '.join(sorted({*_OPTIONS, *more}))}"
        )
    return dict(options)


def _is_method(fn: Any) -> bool:
    """Whether a function was written in a class, to be given an instance first. Python itself doesn't know."""
    if not isinstance(fn, FunctionType):
        return False
    scope = fn.__qualname__.rpartition(".")[0]
    first = next(iter(fn.__code__.co_varnames[: fn.__code__.co_argcount]), "")
    return (
        bool(scope) and not scope.endswith("<locals>") and first in {"self", "cls"} and first not in fn.__annotations__
    )


def _default_name(fn: Any) -> str:
    while isinstance(fn, functools.partial):
        fn = fn.func
    name = getattr(fn, "__name__", None)
    return name if isinstance(name, str) else type(fn).__name__


def _make(fn: Any, frame: FrameType, name: str | None, description: str | None, options: dict[str, Any]) -> AnyTool:
    if isinstance(fn, Tool):
        raise InvalidTypeError(f"{fn!r} is a tool already; its replace(...) gives one with other options")
    _check_callable(fn)
    names = caller_names(fn, frame)
    binding: Binding = None
    if isinstance(fn, staticmethod):
        fn = fn.__func__
    elif isinstance(fn, classmethod):
        binding = "class"
    elif isinstance(fn, FunctionType):
        binding = "instance" if _is_method(fn) else "function"
    is_method = binding in {"instance", "class"}
    reader = SignatureReader(fn.__func__ if binding == "class" else fn, skip_first=is_method, names=names)
    made: AnyTool = Tool(
        fn=fn,
        name=_default_name(fn) if name is None else name,
        description=summary(fn) if description is None else description,
        reader=reader,
        binding=binding,
        **options,
    )
    reader.try_compile()
    return made


def unchecked(name: str, fn: Any) -> AnyTool:
    """Return a tool for what the host runs, under any name, without having made a tool of it: so that policies see one."""
    return Tool(fn=fn, name=name, description="", reader=_FREE)


@overload
def tool(fn: "classmethod[Any, P, R]", /, **options: Unpack[NamedOptions]) -> Tool[P, R]: ...
@overload
def tool(fn: "staticmethod[P, R]", /, **options: Unpack[NamedOptions]) -> Tool[P, R]: ...
@overload
def tool(fn: Callable[P, R], /, **options: Unpack[NamedOptions]) -> Tool[P, R]: ...
@overload
def tool(**options: Unpack[NamedOptions]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(fn: Any = None, /, *, name: str | None = None, description: str | None = None, **options: Any) -> Any:
    """Make a `Tool` of a function: `@tool`, `@tool(timeout=5)`, or `tool(fn)`.

    The function may be async or not, an async generator, a method, a partial or an object with `__call__`. What the model
    must give is read from its signature by pydantic: types, defaults, `Annotated[int, Field(ge=1)]`, and descriptions from
    `Annotated[str, "text"]` or, with the extra `[docstrings]`, its docstring. Parameters that a partial has filled are the
    host's, and no model sees them. In a class, `@tool` stands above `@classmethod` and `@staticmethod`.

    Args:
        fn: The function.
        name: What the model calls it by; the function's own where `None`.
        description: What it does, for the model; the docstring's first paragraph where `None`.
        **options: `timeout`, `parallel`, `needs_approval`, `resources`, `render`, `meta`, `max_output_tokens`, `budget_exempt`, `strict` and
            `backend`,
            as the attributes of `Tool`.

    Raises:
        InvalidInputError: An option can't be used.
        InvalidTypeError: It can't be a tool, or an option is of a wrong type. The message says which parameter and why.
    """
    known = _known(options)
    if fn is None:
        return lambda given: _make(given, sys._getframe(1), name, description, known)
    return _make(fn, sys._getframe(1), name, description, known)
