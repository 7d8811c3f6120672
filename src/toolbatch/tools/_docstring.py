"""What a docstring tells the model: its summary, and what each parameter means."""

import inspect
import re
from collections.abc import Callable
from typing import Any

from ._callables import root_function

__all__ = ["parameter_texts", "summary"]

_SECTION = re.compile(
    r"(:\w|@\w+|(Args|Arguments|Parameters|Params|Returns|Raises|Yields|Attributes|Examples?|Notes?):?\s*$)"
)


def _docstring(fn: Callable[..., Any]) -> str:
    text = getattr(root_function(fn), "__doc__", None)  # not inspect.getdoc: it inherits `object`'s own
    if not text and not inspect.isroutine(fn):
        text = type(fn).__doc__  # an object whose class says what calling it does
    return inspect.cleandoc(text) if isinstance(text, str) else ""


def summary(fn: Callable[..., Any]) -> str:
    """Return the docstring's first paragraph as one line, or nothing.

    It is the same whether or not a docstring library is installed: a description that changed with the environment would
    change the model's behaviour and break prompt caches.
    """
    lines: list[str] = []
    for line in _docstring(fn).strip().splitlines():
        if not line.strip() or _SECTION.match(line):
            break
        lines.append(line.strip())
    return " ".join(lines)


def parameter_texts(fn: Callable[..., Any]) -> dict[str, str]:
    """Return the descriptions of parameters out of a Google, NumPy or Sphinx docstring.

    The `docstring_parser` library reads it (extra `[docstrings]`); without it there are none, and `Annotated` is the way.
    """
    text = _docstring(fn)
    if not text:
        return {}
    try:
        import docstring_parser
    except ImportError:
        return {}
    try:
        found = docstring_parser.parse(text).params
    except docstring_parser.ParseError:  # prose that only looks like a section
        return {}
    texts: dict[str, str] = {}
    for parameter in found:
        if parameter.description:
            for name in parameter.arg_name.split(","):  # NumPy writes `x, y : int`
                texts[name.strip().lstrip("*")] = " ".join(parameter.description.split())
    return texts
