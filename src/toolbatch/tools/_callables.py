"""What stands behind a callable: the function that speaks for it, and the names that its annotations may mean."""

import functools
import inspect
from collections.abc import Mapping
from types import FrameType, FunctionType, MethodType
from typing import Any

__all__ = ["caller_names", "root_function"]


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
