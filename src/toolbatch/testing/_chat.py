"""The rules of OpenAI Chat Completions.

`check_chat` goes through the list twice, as a server does: first every message alone (its shape), then the
tool turns (its pairing). Within a pass the first message that breaks a rule decides, and within a message
the order of the code below. Shapes: `openai/types/chat/*_param.py`; pairing: the API reference, "tool messages",
and the error texts that public reports quote. A text that no report shows is marked *own words*.
"""

from __future__ import annotations

import sys
from typing import Literal

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

__all__ = ["check_chat", "check_chat_body"]

_ROLES = ("system", "assistant", "user", "function", "tool", "developer")
_CALL_TYPES = ("function", "custom")
_PART_TYPES = {
    "system": ("text",),
    "developer": ("text",),
    "tool": ("text",),
    "function": ("text",),
    "assistant": ("text", "refusal"),
    "user": ("text", "image_url", "input_audio", "file"),
}
_MAX_ID = 40  # "Expected a string with maximum length 40", for the call's id and the result's tool_call_id


def check_chat_body(body: dict[str, object]) -> Rejection | None:
    """Check a whole request body of `POST /v1/chat/completions`."""
    if "model" not in body:
        return Rejection(rule="bad_request", message="you must provide a model parameter")
    if "messages" not in body:
        return absent("bad_request", "messages")
    return _tools_fault(body.get("tools")) or check_chat(body["messages"])


def check_chat(messages: object) -> Rejection | None:
    """Judge a `messages` list as the Chat Completions endpoint does.

    Args:
        messages: The list, of the types that JSON has: dicts, lists, strings, numbers, booleans, `None`.

    Returns:
        The first broken rule, or `None` if the list would be accepted.
    """
    if not isinstance(messages, list):
        return wrong_type("bad_request", "messages", "an array of objects", messages)
    if not messages:
        return empty_list("bad_request", "messages")
    for index, message in enumerate(messages):
        fault = _message_fault(message, f"messages[{index}]")
        if fault is not None:
            return fault
    return _pairing_fault(messages)


def _tools_fault(tools: object) -> Rejection | None:
    """Check the names of declared tools; what else a declaration may hold is not this judge's business."""
    for index, tool in enumerate(tools if isinstance(tools, list) else []):
        kind = tool.get("type") if isinstance(tool, dict) else None
        if isinstance(kind, str) and isinstance(tool.get(kind), dict):
            fault = name_fault(tool[kind], f"tools[{index}].{kind}")
            if fault is not None:
                return fault
    return None


def _message_fault(message: object, path: str) -> Rejection | None:
    if not isinstance(message, dict):
        return wrong_type("bad_request", path, "an object", message)
    if "role" not in message:
        return absent("bad_request", f"{path}.role")
    role = message["role"]
    if role not in _ROLES:
        return unsupported("bad_request", f"{path}.role", role, _ROLES)
    if role == "assistant":
        return _assistant_fault(message, path)
    if role == "tool":
        fault = string_fault("bad_id", message, "tool_call_id", path, limit=_MAX_ID)
        return fault or _content_fault(message, role, path)
    if role == "function":
        # The deprecated pair has no id: it is matched by position, and the endpoint never enforced that.
        return name_fault(message, path) or _content_fault(message, role, path)
    return _content_fault(message, role, path)


def _assistant_fault(message: dict[str, object], path: str) -> Rejection | None:
    calls = message.get("tool_calls")
    if "tool_calls" in message:
        fault = _calls_fault(calls, f"{path}.tool_calls")
        if fault is not None:
            return fault
    legacy = message.get("function_call")
    if legacy is not None:
        fault = _function_fault(legacy, f"{path}.function_call")
        if fault is not None:
            return fault
    # "Required unless tool_calls or function_call is specified"; audio and a refusal are replayed without content too.
    if message.get("content") is None and any(
        message.get(k) for k in ("tool_calls", "function_call", "audio", "refusal")
    ):
        return None
    return _content_fault(message, "assistant", path)


def _calls_fault(calls: object, path: str) -> Rejection | None:
    if not isinstance(calls, list):
        return wrong_type("bad_request", path, "an array of objects", calls)
    if not calls:
        return empty_list("bad_request", path)
    for index, call in enumerate(calls):
        fault = _call_fault(call, f"{path}[{index}]")
        if fault is not None:
            return fault
    return None


def _call_fault(call: object, path: str) -> Rejection | None:
    if not isinstance(call, dict):
        return wrong_type("bad_request", path, "an object", call)
    fault = string_fault("bad_id", call, "id", path, limit=_MAX_ID)
    if fault is not None:
        return fault
    if "type" not in call:
        return absent("bad_request", f"{path}.type")
    kind = call["type"]
    if kind not in _CALL_TYPES:
        return unsupported("bad_request", f"{path}.type", kind, _CALL_TYPES)
    if kind not in call:
        return absent("bad_request", f"{path}.{kind}")
    if kind == "function":
        return _function_fault(call["function"], f"{path}.function")
    custom = call["custom"]
    if not isinstance(custom, dict):
        return wrong_type("bad_request", f"{path}.custom", "an object", custom)
    fault = name_fault(custom, f"{path}.custom")
    return fault or string_fault("bad_arguments", custom, "input", f"{path}.custom", empty=True)


def _function_fault(function: object, path: str) -> Rejection | None:
    if not isinstance(function, dict):
        return wrong_type("bad_request", path, "an object", function)
    # The text need not be JSON: "the model does not always generate valid JSON", and it must be able to see that.
    return name_fault(function, path) or string_fault("bad_arguments", function, "arguments", path, empty=True)


def _content_fault(message: dict[str, object], role: str, path: str) -> Rejection | None:
    param = f"{path}.content"
    if "content" not in message:
        return absent("bad_content", param)
    content = message["content"]
    if content is None:
        text = "Invalid value for 'content': expected a string, got null."
        return Rejection(rule="bad_content", message=text, param=param)
    if isinstance(content, str):
        return string_fault("bad_content", message, "content", path, empty=True)
    if not isinstance(content, list):
        return wrong_type("bad_content", param, "one of a string or array of objects", content)
    if not content:
        return empty_list("bad_content", param)
    for index, part in enumerate(content):
        fault = _part_fault(part, role, path, f"{param}[{index}]")
        if fault is not None:
            return fault
    return None


def _part_fault(part: object, role: str, path: str, param: str) -> Rejection | None:
    if not isinstance(part, dict):
        return wrong_type("bad_content", param, "an object", part)
    if "type" not in part:
        return absent("bad_content", f"{param}.type")
    kind = part["type"]
    if kind == "image_url" and role != "user":
        text = (
            f"Invalid '{path}'. Image URLs are only allowed for messages with role 'user', "
            f"but this message with role '{role}' contains an image URL."
        )
        return Rejection(rule="bad_content", message=text, param=path, code="invalid_value")
    if kind not in _PART_TYPES[role]:
        return unsupported("bad_content", f"{param}.type", kind, _PART_TYPES[role])
    if kind == "text":
        return string_fault("bad_content", part, "text", param, empty=True)
    return _media_fault(part, str(kind), param)


def _media_fault(part: dict[str, object], kind: str, path: str) -> Rejection | None:
    """Check an image or a file of the user's. What stands behind an address or a file's id is not known here."""
    if kind not in ("image_url", "file"):
        return None
    param = f"{path}.{kind}"
    holder = part.get(kind)
    if kind not in part:
        return absent("bad_content", param)
    if not isinstance(holder, dict):
        return wrong_type("bad_content", param, "an object", holder)
    if kind == "file":
        return _file_fault(holder, param)
    fault = string_fault("bad_content", holder, "url", param, limit=sys.maxsize)
    url = str(holder.get("url"))
    if fault is None and url.startswith("data:") and data_url_type(url) not in IMAGES:
        text = "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp']."
        return Rejection(rule="bad_content", message=text, code="invalid_image_format")
    return fault


def _file_fault(file: dict[str, object], path: str) -> Rejection | None:
    if file.get("file_data") is None:
        return string_fault("bad_content", file, "file_id", path)
    fault = string_fault("bad_content", file, "file_data", path, limit=sys.maxsize) or string_fault(
        "bad_content", file, "filename", path
    )
    return fault or data_url_fault(
        "Invalid file data:", f"{path}.file_data", str(file["file_data"]), "application/pdf", ("application/pdf",)
    )


def _pairing_fault(messages: list[dict[str, object]]) -> Rejection | None:
    """Check every tool turn: a calling assistant message and the unbroken run of tool messages behind it."""
    index = 0
    while index < len(messages):
        message = messages[index]
        if message["role"] == "tool":
            text = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
            return Rejection(rule="orphan_result", message=text, param=f"messages.[{index}].role")
        calls = message.get("tool_calls")
        index += 1
        if message["role"] == "assistant" and isinstance(calls, list):
            end = index
            while end < len(messages) and messages[end]["role"] == "tool":
                end += 1
            fault = _turn_fault([str(call["id"]) for call in calls], messages, index, end)
            if fault is not None:
                return fault
            index = end
    return None


def _turn_fault(ids: list[str], messages: list[dict[str, object]], start: int, end: int) -> Rejection | None:
    """Check the results `messages[start:end]` against the ids that the message before them announced."""
    for position, call_id in enumerate(ids):
        if call_id in ids[:position]:
            return _duplicate("duplicate_call", call_id, start - 1)
    answered: set[str] = set()
    for index in range(start, end):
        call_id = str(messages[index]["tool_call_id"])
        param = f"messages.[{index}].tool_call_id"
        if call_id not in ids:
            text = f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of previous message."
            return Rejection(rule="unknown_result_id", message=text, param=param)
        if call_id in answered:
            return _duplicate("duplicate_result", call_id, index)
        answered.add(call_id)
    missing = [call_id for call_id in ids if call_id not in answered]
    if not missing:
        return None
    text = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(missing)}"
    )
    # The param names the message that stands where a result should; at the end of the list, the last one.
    return Rejection(rule="missing_result", message=text, param=f"messages.[{min(end, len(messages) - 1)}].role")


def _duplicate(rule: Literal["duplicate_call", "duplicate_result"], call_id: str, index: int) -> Rejection:
    text = f"Duplicate value for 'tool_call_id' of {call_id} in message[{index}]"
    return Rejection(rule=rule, message=text, param=f"messages.[{index}]")
