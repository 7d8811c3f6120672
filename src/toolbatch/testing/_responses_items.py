"""The shapes of single Responses items, after `openai/types/responses/response_input_item_param.py`."""

from __future__ import annotations

import sys
from typing import TypeAlias

from toolbatch.testing._openai_shape import (
    IMAGES,
    absent,
    data_url_fault,
    data_url_type,
    empty_list,
    name_fault,
    string_fault,
    unsupported,
    wrong_type,
)
from toolbatch.testing._rejection import Rejection

__all__ = ["CALL_TO_OUTPUT", "HOSTED", "Item", "item_fault", "item_type"]

Item: TypeAlias = dict[str, object]

CALL_TO_OUTPUT = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
}
# Run by the provider: these bring their own result and are never answered.
HOSTED = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "program",
        "program_output",
        "reasoning",
        "compaction",
    }
)
_OTHERS = (
    "message",
    "item_reference",
    "mcp_approval_response",
    "additional_tools",
    "compaction_trigger",
    "configuration_update",
)
_TYPES = (*_OTHERS, *CALL_TO_OUTPUT, *CALL_TO_OUTPUT.values(), *sorted(HOSTED))

_MAX_ID = 64  # "Expected a string with maximum length 64", for `call_id` and `id` alike
_ID_PREFIX = {  # "Invalid 'input[3].id': 'call_1'. Expected an ID that begins with 'fc'."
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fc",
    "custom_tool_call": "ctc",
    "reasoning": "rs",
}
_STATUSES = ("in_progress", "completed", "incomplete")
_ROLES = ("user", "assistant", "system", "developer")
_ASSISTANT_PARTS = ("output_text", "refusal")
_INPUT_PARTS = ("input_text", "input_image", "input_file", "input_audio")
_OUTPUT_PARTS = ("input_text", "input_image", "input_file")


def item_type(item: Item) -> str:
    """The type of an item; two kinds may leave it out: messages, and references, which hold an id alone."""
    kind = item.get("type")
    if kind is None:
        return "message" if "role" in item else "item_reference" if "id" in item else ""
    return str(kind)


def item_fault(item: object, path: str) -> Rejection | None:
    """Check one item of the input."""
    if not isinstance(item, dict):
        return wrong_type("bad_request", path, "an input item", item)
    kind = item_type(item)
    if not kind:
        return absent("bad_request", f"{path}.type")
    if kind not in _TYPES:
        return unsupported("bad_request", f"{path}.type", kind, _TYPES)
    fault = _id_fault(item, kind, path)
    if fault is not None:
        return fault
    if kind == "message":
        return _message_fault(item, path)
    if kind in CALL_TO_OUTPUT:
        return _call_fault(item, kind, path)
    if kind in CALL_TO_OUTPUT.values():
        return _output_fault(item, kind, path)
    return None


def _id_fault(item: Item, kind: str, path: str) -> Rejection | None:
    if item.get("id") is None:
        return absent("bad_id", f"{path}.id") if kind == "item_reference" else None
    fault = string_fault("bad_id", item, "id", path, limit=_MAX_ID)
    if fault is not None:
        return fault
    prefix = _ID_PREFIX.get(kind, "")
    if not str(item["id"]).startswith(prefix):
        text = f"Invalid '{path}.id': '{item['id']}'. Expected an ID that begins with '{prefix}'."
        return Rejection(rule="bad_id", message=text, param=f"{path}.id", code="invalid_value")
    return None


def _message_fault(item: Item, path: str) -> Rejection | None:
    role = item.get("role")
    if role not in _ROLES:
        return unsupported("bad_request", f"{path}.role", role, _ROLES)
    parts = _ASSISTANT_PARTS if role == "assistant" else _INPUT_PARTS
    return _text_or_parts_fault(item, "content", path, parts, may_be_empty=True)


def _call_fault(item: Item, kind: str, path: str) -> Rejection | None:
    # A local shell call may carry its id in `id`, and a tool search that the server ran has none at all.
    fault = None if kind in ("local_shell_call", "tool_search_call") else _call_id_fault(item, path)
    if fault is not None:
        return fault
    if kind == "function_call":
        return (
            name_fault(item, path)
            or string_fault("bad_arguments", item, "arguments", path, empty=True)
            or _status_fault(item, path)
        )
    if kind == "custom_tool_call":
        return name_fault(item, path) or string_fault("bad_arguments", item, "input", path, empty=True)
    return None


def _output_fault(item: Item, kind: str, path: str) -> Rejection | None:
    # An output without a call is legal if it names the tool it reports for; call_id is optional in the type since then.
    unpaired = kind == "function_call_output" and item.get("call_id") is None and isinstance(item.get("name"), str)
    loose = kind in ("local_shell_call_output", "tool_search_output")
    fault = None if unpaired or (loose and item.get("call_id") is None) else _call_id_fault(item, path)
    if fault is not None:
        return fault
    if kind in ("function_call_output", "custom_tool_call_output"):
        fault = _text_or_parts_fault(item, "output", path, _OUTPUT_PARTS)
        return fault or (_status_fault(item, path) if kind == "function_call_output" else None)
    if kind == "local_shell_call_output":
        return string_fault("bad_content", item, "output", path, empty=True)
    if kind == "apply_patch_call_output" and item.get("status") not in ("completed", "failed"):
        return unsupported("bad_content", f"{path}.status", item.get("status"), ("completed", "failed"))
    shapes: dict[str, tuple[type, str]] = {
        "computer_call_output": (dict, "an object"),
        "shell_call_output": (list, "an array of objects"),
    }
    if kind in shapes and not isinstance(item.get("output"), shapes[kind][0]):
        return wrong_type("bad_content", f"{path}.output", shapes[kind][1], item.get("output"))
    return None


def _call_id_fault(item: Item, path: str) -> Rejection | None:
    if item.get("call_id") is None:
        return absent("bad_id", f"{path}.call_id")
    return string_fault("bad_id", item, "call_id", path, limit=_MAX_ID)


def _status_fault(item: Item, path: str) -> Rejection | None:
    # `status` says how far an item got, not whether the tool failed: there is no error mark in this lane.
    if item.get("status") is None or item["status"] in _STATUSES:
        return None
    return unsupported("bad_content", f"{path}.status", item["status"], _STATUSES)


def _text_or_parts_fault(
    item: Item, key: str, path: str, parts: tuple[str, ...], *, may_be_empty: bool = False
) -> Rejection | None:
    param = f"{path}.{key}"
    if key not in item:
        return absent("bad_content", param)
    value = item[key]
    if isinstance(value, str):
        return string_fault("bad_content", item, key, path, empty=True)
    if not isinstance(value, list):
        return wrong_type("bad_content", param, "one of an array of objects or string", value)
    if not value and not may_be_empty:
        return empty_list("bad_content", param)
    for index, part in enumerate(value):
        fault = _part_fault(part, f"{param}[{index}]", parts)
        if fault is not None:
            return fault
    return None


def _part_fault(part: object, param: str, parts: tuple[str, ...]) -> Rejection | None:
    if not isinstance(part, dict):
        return wrong_type("bad_content", param, "an object", part)
    kind = part.get("type")
    if kind is None:
        return absent("bad_content", f"{param}.type")
    if kind not in parts:
        return unsupported("bad_content", param, kind, parts)
    if kind in ("input_text", "output_text"):
        return string_fault("bad_content", part, "text", param, empty=True)
    if kind == "input_image":
        return _image_fault(part, param)
    return _file_fault(part, param) if kind == "input_file" else None


def _image_fault(part: Item, path: str) -> Rejection | None:
    if part.get("image_url") is None:
        return None if part.get("file_id") is not None else absent("bad_content", f"{path}.image_url")
    fault = string_fault("bad_content", part, "image_url", path, limit=sys.maxsize)
    url = str(part["image_url"])
    if fault is None and url.startswith("data:"):
        return data_url_fault("Invalid", f"{path}.image_url", url, "image", IMAGES)
    return fault


def _file_fault(part: Item, path: str) -> Rejection | None:
    """Check a file: bytes with their name, or where they are. Of the accepted types only the families are known here."""
    if part.get("file_data") is None:
        source = "file_url" if part.get("file_url") is not None else "file_id"
        return string_fault("bad_content", part, source, path)
    fault = string_fault("bad_content", part, "file_data", path, limit=sys.maxsize) or string_fault(
        "bad_content", part, "filename", path
    )
    if fault is None and not str(data_url_type(str(part["file_data"]))).startswith(("text/", "application/")):
        param = f"{path}.file_data"
        return Rejection(rule="bad_content", message=f"Invalid '{param}'.", param=param, code="invalid_value")
    return fault
