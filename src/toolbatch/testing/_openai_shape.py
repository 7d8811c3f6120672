"""Field checks that OpenAI's two lanes share, with OpenAI's error texts.

The texts are those of its request validator, as quoted in public reports; the same sentence serves
`messages[2].tool_calls[0].id` and `input[2].call_id`, so a check takes the path of its field.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolbatch.testing._rejection import Rejection, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MAX_STRING", "absent", "empty_list", "name_fault", "string_fault", "unsupported", "wrong_type"]

MAX_STRING = 10_485_760  # of every string in a request: "Invalid 'messages[0].content': string too long"
_MAX_NAME = 64
_NAME = re.compile(r"[a-zA-Z0-9_-]+\Z")

_KINDS: dict[type, str] = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a decimal",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def absent(rule: Rule, param: str) -> Rejection:
    """A required field is not there."""
    return Rejection(
        rule=rule, message=f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter"
    )


def wrong_type(rule: Rule, param: str, expected: str, value: object) -> Rejection:
    """A field holds another JSON type than `expected`, which is worded as in "an array of objects"."""
    got = _KINDS.get(type(value), "a value that JSON does not have")
    message = f"Invalid type for '{param}': expected {expected}, but got {got} instead."
    return Rejection(rule=rule, message=message, param=param, code="invalid_type")


def unsupported(rule: Rule, param: str, value: object, supported: Iterable[str]) -> Rejection:
    """A field holds a value that is not one of `supported`."""
    *head, last = [f"'{name}'" for name in supported]
    listed = f"{', '.join(head)}, and {last}" if len(head) > 1 else " and ".join([*head, last])
    message = f"Invalid value: '{value}'. Supported values are: {listed}."
    return Rejection(rule=rule, message=message, param=param, code="invalid_value")


def empty_list(rule: Rule, param: str) -> Rejection:
    """A list that must have an element has none."""
    message = (
        f"Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    )
    return Rejection(rule=rule, message=message, param=param, code="empty_array")


def string_fault(
    rule: Rule, holder: dict[str, object], key: str, path: str, *, limit: int = MAX_STRING, empty: bool = False
) -> Rejection | None:
    """Check a required string field: there, a string, not empty unless `empty`, at most `limit` characters."""
    param = f"{path}.{key}" if path else key
    if key not in holder:
        return absent(rule, param)
    value = holder[key]
    if not isinstance(value, str):
        return wrong_type(rule, param, "a string", value)
    if not value and not empty:
        message = (
            f"Invalid '{param}': empty string. "
            "Expected a string with minimum length 1, but got an empty string instead."
        )
        return Rejection(rule=rule, message=message, param=param, code="empty_string")
    if len(value) > limit:
        message = (
            f"Invalid '{param}': string too long. Expected a string with maximum length {limit}, "
            f"but got a string with length {len(value)} instead."
        )
        return Rejection(rule=rule, message=message, param=param, code="string_above_max_length")
    return None


def name_fault(holder: dict[str, object], path: str) -> Rejection | None:
    """Check `name`: a-z, A-Z, 0-9, underscores and dashes, 64 characters at most (SDK `function_definition.py`)."""
    fault = string_fault("bad_name", holder, "name", path, limit=_MAX_NAME)
    if fault is not None:
        return fault
    if not _NAME.match(str(holder["name"])):
        param = f"{path}.name"
        message = (
            f"Invalid '{param}': string does not match pattern. "
            "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        )
        return Rejection(rule="bad_name", message=message, param=param, code="invalid_value")
    return None
