"""Reads request bodies as strictly as the providers do.

Python's own reader takes more than JSON: NaN, and escapes of half a surrogate pair, which no UTF-8 text can hold.
Histories with either are refused for ever, so a fake that lets them pass would hide the bug.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

__all__ = ["BodyError", "parse_body"]

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


class BodyError(ValueError):
    """A body that is no JSON object; the message says why, in the words of the providers' reader."""


def parse_body(raw: bytes) -> dict[str, Any]:
    """Parse a request body.

    Raises:
        BodyError: It is not UTF-8, not JSON, holds a lone surrogate, or is not an object.
    """
    try:
        text = raw.decode()
        body = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as exc:
        raise BodyError(
            f"{exc.msg[:1].lower()}{exc.msg[1:]}: line {exc.lineno} column {exc.colno} (char {exc.pos})"
        ) from None
    except (ValueError, RecursionError) as exc:
        raise BodyError(str(exc)) from None
    _refuse_lone_surrogate(text)
    if not isinstance(body, dict):
        raise BodyError("expected an object")
    return body


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _refuse_lone_surrogate(text: str) -> None:
    high_end = -1  # where an escape of a high surrogate ended that still waits for its low one
    for escape in _ESCAPE.finditer(text):
        code = int(escape[1], 16) if escape[1] else 0
        paired = 0xDC00 <= code <= 0xDFFF and high_end == escape.start()
        if high_end >= 0 and not paired:
            _lone(text, high_end)
        if 0xDC00 <= code <= 0xDFFF and not paired:
            _lone(text, escape.start())
        high_end = escape.end() if 0xD800 <= code <= 0xDBFF else -1
    if high_end >= 0:
        _lone(text, high_end)


def _lone(text: str, position: int) -> NoReturn:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    raise BodyError(f"no low surrogate in string: line {line} column {column} (char {position})")
