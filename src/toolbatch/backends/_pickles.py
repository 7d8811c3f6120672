"""What is sent between a process and its workers: values by pickle, functions by where they are found.

Standard pickle finds a function by its name, and where `@tool` stands above it that name is the tool's. So a function is sent as a
module, a name in it, and how many wrappers are to be taken off.
"""

import functools
import io
import pickle
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Final, NamedTuple

from toolbatch.core import preview

__all__ = [
    "NotPicklableError",
    "Place",
    "TooLargeError",
    "dump",
    "load",
    "locate",
    "named",
    "on_main",
    "require_findable",
]

_MOST_WRAPPERS: Final = 16
_MAIN: Final = ("__main__", "__mp_main__")  # the second is what the first is called in a worker


class NotPicklableError(Exception):
    """A value can't be sent."""


class TooLargeError(Exception):
    """A value takes more bytes than may be sent."""


class Place(NamedTuple):
    """Where a function is found.

    Attributes:
        module: Its module's full name.
        name: Its qualified name there.
        wrappers: How many wrappers, such as a `Tool`, stand between what has that name and the function.
    """

    module: str
    name: str
    wrappers: int


on_main: list[Callable[[], None]] = []
"""What must be done before a name in the main module can be found: a worker adds the loading of it."""


def require_findable(fn: Any) -> None:
    """Check what can be known of a function before its module is complete: that it has a name that can be looked up.

    Raises:
        NotPicklableError: It is local to another function, or a lambda.
    """
    while not isinstance(fn, FunctionType):
        if isinstance(fn, functools.partial):
            fn = fn.func
        elif isinstance(fn, MethodType):
            fn = fn.__func__
        else:
            return
    if "<locals>" in fn.__qualname__ or "<lambda>" in fn.__qualname__ or not isinstance(fn.__module__, str):
        raise NotPicklableError(
            f"{fn.__qualname__} can't be found by its name elsewhere; define it at a module's top level"
        )


def locate(fn: FunctionType) -> Place:
    """Say where a function is found.

    Raises:
        NotPicklableError: It can't be found by name: it is local to another function, a lambda, or was replaced there.
    """
    module, name = fn.__module__, fn.__qualname__
    require_findable(fn)
    try:
        found = named(module, name)
    except (ImportError, AttributeError, KeyError) as error:
        raise NotPicklableError(f"{name} can't be found in {module}: {error}") from error
    for wrappers in range(_MOST_WRAPPERS):
        if found is fn:
            return Place(module, name, wrappers)
        found = _inner(found)
    raise NotPicklableError(f"what is called {name} in {module} is another function by now")


def _find(module: str, name: str, wrappers: int) -> Any:
    found = named(module, name)
    for _ in range(wrappers):
        found = _inner(found)
    return found


def named(module: str, name: str) -> Any:
    """Return what has a name in a module, which is imported if it was not.

    Raises:
        Exception: What the import raises, or the look-up.
    """
    if module in _MAIN:
        module = _main()
    __import__(module)
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _main() -> str:
    for prepare in on_main:
        prepare()
    return "__main__"


def _inner(wrapper: Any) -> Any:
    return wrapper.__func__ if isinstance(wrapper, MethodType) else getattr(wrapper, "__wrapped__", None)


def _bind(function: Any, owner: Any) -> Any:
    return MethodType(function, owner)


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is FunctionType:
            place = locate(obj)
            return (_find, tuple(place)) if place.wrappers else NotImplemented  # which pickle finds by itself
        if type(obj) is MethodType:
            return _bind, (obj.__func__, obj.__self__)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str, /) -> Any:
        return super().find_class(_main() if module in _MAIN else module, name)


class _Bounded(io.BytesIO):
    """A buffer that refuses to grow, so that a value that is too large does not fill the memory a second time."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._room = limit
        self._limit = limit

    def write(self, data: Any, /) -> int:
        size = memoryview(data).nbytes
        self._room -= size
        if self._room < 0:
            raise TooLargeError(f"it takes more than {self._limit:,} bytes")
        return super().write(data)


def dump(value: object, limit: int) -> bytes:
    """Return `value` in the form in which it is sent.

    Raises:
        NotPicklableError: It can't be sent; the message says what of it can't.
        TooLargeError: It takes more than `limit` bytes.
    """
    buffer = _Bounded(limit)
    try:
        _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    except (NotPicklableError, TooLargeError):
        raise
    except Exception as error:
        raise NotPicklableError(_why(error)) from error
    return buffer.getvalue()


def load(data: bytes) -> Any:
    """Return the value that `dump` was given.

    Raises:
        NotPicklableError: It can't be made here, such as one of a class that is not there.
    """
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a value's own code must not end the program that reads it
        raise NotPicklableError(_why(error)) from error


def _why(error: BaseException) -> str:
    try:
        text = str(error)[:200]
    except Exception:  # noqa: BLE001  the exception of a value's own code may be anything
        text = ""
    return f"{type(error).__name__}: {text or preview(error, 200)}"
