"""What a tool's options must be, said where the tool is made."""

import math
import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from toolbatch.core import InvalidInputError, InvalidTypeError, preview
from toolbatch.ports import ExecutionBackend

if TYPE_CHECKING:
    from ._tool import AnyTool

__all__ = ["check_name", "check_options"]

_NAME = re.compile(
    r"[A-Za-z0-9_.:-]{1,128}\Z"
)  # what some provider takes; each lane's own rule is checked in `schemas`


def check_options(tool: "AnyTool") -> None:
    """Check all but the name.

    Raises:
        InvalidInputError: An option can't be used.
        InvalidTypeError: An option is of a wrong type, or the function can't be run in the tool's backend.
    """
    if not isinstance(tool.description, str):
        raise InvalidTypeError(f"a tool's description must be a str, not {preview(tool.description)}")
    _check_bounds(tool)
    for option in ("parallel", "needs_approval"):
        value = getattr(tool, option)
        if not isinstance(value, bool) and not callable(value):
            raise InvalidTypeError(f"{option} must be a bool or a function of the arguments, not {preview(value)}")
    _check_resources(tool.resources)
    for option in ("render", "meta"):
        value = getattr(tool, option)
        if value is not None and not callable(value):
            raise InvalidTypeError(f"{option} must be a function of the result or None, not {preview(value)}")
    for option in ("budget_exempt", "strict"):
        if not isinstance(getattr(tool, option), bool):
            raise InvalidTypeError(f"{option} must be a bool, not {preview(getattr(tool, option))}")
    if tool.backend is not None:
        _check_backend(tool.backend, tool.fn)


def _check_backend(backend: ExecutionBackend, fn: Callable[..., Any]) -> None:
    if isinstance(backend, type) or not all(callable(getattr(backend, name, None)) for name in ("require", "run")):
        raise InvalidTypeError(f"backend must be an ExecutionBackend or None, not {preview(backend)}")
    backend.require(fn)


def _check_resources(resources: object) -> None:
    if resources is None or callable(resources):
        return
    if isinstance(resources, str) or not isinstance(resources, Collection):
        raise InvalidTypeError(f"resources must be names or a function of the arguments, not {preview(resources)}")
    for name in resources:
        if not isinstance(name, str):
            raise InvalidTypeError(f"resources must be names, not {preview(name)}")


def check_name(name: object) -> None:
    """Check that some provider takes the name.

    Raises:
        InvalidTypeError: It is no text.
        InvalidInputError: None does.
    """
    if not isinstance(name, str):
        raise InvalidTypeError(f"a tool's name must be a str, not {preview(name)}")
    if not _NAME.match(name):
        raise InvalidInputError(
            f"a tool's name must be 1 to 128 of A-Z a-z 0-9 _ - . and :, since no provider takes another, not {preview(name)}; "
            "give one with name=..."
        )


def _check_bounds(tool: "AnyTool") -> None:
    seconds, tokens = tool.timeout, tool.max_output_tokens
    if seconds is not None:
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            raise InvalidTypeError(f"timeout must be a number of seconds or None, not {preview(seconds)}")
        if math.isnan(seconds) or seconds <= 0:
            raise InvalidInputError(f"timeout must be more than 0 seconds, not {seconds!r}")
    if tokens is not None:
        if type(tokens) is not int:
            raise InvalidTypeError(f"max_output_tokens must be a positive int or None, not {preview(tokens)}")
        if tokens < 1:
            raise InvalidInputError(f"max_output_tokens must be at least 1, not {tokens}")
