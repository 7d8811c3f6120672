"""Field checks that OpenAI's two lanes share, with OpenAI's error texts.

The texts are those of its request validator, as quoted in public reports; the same sentence serves
`messages[2].tool_calls[0].id` and `input[2].call_id`, so a check takes the path of its field.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

from toolbatch.testing._rejection import Rejection, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "IMAGES",
    "MAX_STRING",
    "absent",
    "data_url_fault",
    "data_url_type",
    "empty_list",
    "name_fault",
    "string_fault",
    "unsupported",
    "wrong_type",
]

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_PAYLOADS = {
    "image": "data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=",
    "application/pdf": "data:application/pdf;base64,SGVsbG8sIFdvcmxkIQ==",
}
_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)

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


def data_url_type(url: str) -> str | None:
    """The media type of a base64 `data:` URL whose payload is base64; `None` where it is none."""
    match = _DATA_URL.fullmatch(url)
    try:
        return match[1] if match and base64.b64decode(match[2], validate=True) else None
    except (binascii.Error, ValueError):
        return None


def data_url_fault(subject: str, param: str, url: str, wanted: str, accepted: tuple[str, ...]) -> Rejection | None:
    """Check that a `data:` URL holds base64 of an `accepted` type; `subject` opens the sentence, `wanted` names the types."""
    got = data_url_type(url)
    if got in accepted:
        return None
    problem = "an invalid base64-encoded value" if got is None else f"unsupported MIME type '{got}'"
    message = (
        f"{subject} '{param}'. Expected a base64-encoded data URL with an {wanted} MIME type "
        f"(e.g. '{_PAYLOADS[wanted]}'), but got {problem}."
    )
    return Rejection(rule="bad_content", message=message, param=param, code="invalid_value")


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
