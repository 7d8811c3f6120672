"""The shapes of single Anthropic messages and blocks, after `anthropic/types/*_param.py`.

The API checks a request against its schema first and reports the first field that does not fit, in Pydantic's words
("Field required", "String should match pattern …"). `messages.3.content.0.tool_result.tool_use_id` is how it
writes a path.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import TypeAlias

from toolbatch.testing._rejection import Rejection, Rule

__all__ = [
    "SERVER_USES",
    "Block",
    "invalid",
    "is_server_result",
    "is_signed_otherwise",
    "message_fault",
    "sign",
    "tools_fault",
]

Block: TypeAlias = dict[str, object]

SERVER_USES = ("server_tool_use", "mcp_tool_use")
_ANYWHERE = ("text",)
_BY_USER = ("image", "document", "search_result", "tool_result", "container_upload", "tool_addition", "tool_removal")
_BY_ASSISTANT = (
    "thinking",
    "redacted_thinking",
    "tool_use",
    *SERVER_USES,
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "advisor_tool_result",
    "mcp_tool_result",
    "mcp_tool_listing",
    "container_upload",
    "compaction",
    "fallback",
)
_BY_ROLE = {"user": (*_ANYWHERE, *_BY_USER), "assistant": (*_ANYWHERE, *_BY_ASSISTANT), "system": _ANYWHERE}
_KNOWN = sorted({*_ANYWHERE, *_BY_USER, *_BY_ASSISTANT})
_IN_RESULT = ("text", "image", "document", "search_result", "tool_reference", "browser_state")

_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_SOURCES = {  # what a source of each type must hold, by the kind of block
    "image": {"base64": ("media_type", "data"), "url": ("url",), "file": ("file_id",)},
    "document": {
        "base64": ("media_type", "data"),
        "text": ("media_type", "data"),
        "content": ("content",),
        "url": ("url",),
        "file": ("file_id",),
    },
}
_MEDIA_TYPES = {
    ("image", "base64"): _IMAGES,
    ("document", "base64"): ("application/pdf",),
    ("document", "text"): ("text/plain",),
}
_MAX_IMAGE = 5_242_880  # of base64 text

_SIGNATURE = "toolbatch-testing-"  # other signatures are taken on trust: only their provider can check them

_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
# "Extra inputs are not permitted": what a block may hold is closed.
_FIELDS = {
    "text": {"type", "text", "cache_control", "citations"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller", "toolset_name"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"},
    "image": {"type", "source", "cache_control", "transformations"},
    "document": {"type", "source", "cache_control", "citations", "context", "title"},
}


def invalid(rule: Rule, path: str, problem: str) -> Rejection:
    """A refusal in this API's form: the path, a colon, the problem."""
    return Rejection(rule=rule, message=f"{path}: {problem}")


def sign(thinking: str) -> str:
    """The signature that the fake provider puts on a thinking block, to see whether it comes back unchanged."""
    return _SIGNATURE + hashlib.sha256(thinking.encode()).hexdigest()


def is_signed_otherwise(thinking: object, signature: object) -> bool:
    """Whether a signature is one of ours and belongs to another thinking."""
    return isinstance(signature, str) and signature.startswith(_SIGNATURE) and signature != sign(str(thinking))


def is_server_result(kind: object) -> bool:
    """Whether blocks of this type carry what a hosted tool returned."""
    return isinstance(kind, str) and kind.endswith("_tool_result")


def tools_fault(tools: object) -> Rejection | None:
    """Check the names of declared client tools."""
    seen: set[str] = set()
    for index, tool in enumerate(tools if isinstance(tools, list) else []):
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str) or tool.get("type", "custom") != "custom":
            continue
        if len(name) > 128:
            return invalid("bad_name", f"tools.{index}.custom.name", "String should have at most 128 characters")
        if not _TOOL_NAME.match(name):
            problem = "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
            return invalid("bad_name", f"tools.{index}.custom.name", problem)
        if name in seen:
            return invalid("bad_name", "tools", "Tool names must be unique.")
        seen.add(name)
    return None


def message_fault(message: object, index: int, *, last: bool) -> Rejection | None:
    """Check one message. The last one may be an empty assistant message (a prefill of nothing)."""
    path = f"messages.{index}"
    if not isinstance(message, dict):
        return invalid("bad_request", path, "Input should be a valid dictionary")
    role = message.get("role")
    if "role" not in message:
        return invalid("bad_request", f"{path}.role", "Field required")
    if not isinstance(role, str) or role not in _BY_ROLE:
        text = f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".'
        return Rejection(rule="bad_request", message=text)
    for field in message:
        if field not in ("role", "content"):
            return invalid("bad_request", f"{path}.{field}", "Extra inputs are not permitted")
    if "content" not in message:
        return invalid("bad_content", f"{path}.content", "Field required")
    content = message["content"]
    if not isinstance(content, (str, list)):
        return invalid("bad_content", f"{path}.content", "Input should be a valid list")
    if not content and not (last and role == "assistant"):
        problem = "all messages must have non-empty content except for the optional final assistant message"
        return invalid("bad_content", path, problem)
    for position, block in enumerate(content if isinstance(content, list) else []):
        fault = _block_fault(block, role, path, f"{path}.content.{position}")
        if fault is not None:
            return fault
    if isinstance(content, str) and content and not content.strip():
        return invalid("bad_content", "messages", "text content blocks must contain non-whitespace text")
    return None


def _block_fault(block: object, role: str, message_path: str, path: str) -> Rejection | None:
    if not isinstance(block, dict):
        return invalid("bad_content", path, "Input should be a valid dictionary")
    kind = block.get("type")
    if kind is None:
        return invalid("bad_content", f"{path}.type", "Field required")
    if kind not in _KNOWN:
        return _unknown_tag(path, kind, _KNOWN)
    if kind not in _BY_ROLE[role]:
        home = "assistant" if kind in _BY_ASSISTANT else "user"
        return invalid("bad_content", message_path, f"`{kind}` blocks can only be in `{home}` messages")
    fault = _extra_fault(block, str(kind), path)
    if fault is not None:
        return fault
    if kind == "text":
        return _text_fault(block, path, blank=False)
    if kind in _SOURCES:
        return _source_fault(block, str(kind), f"{path}.{kind}")
    if kind == "tool_use":
        return _tool_use_fault(block, f"{path}.tool_use")
    if kind == "tool_result":
        return _tool_result_fault(block, f"{path}.tool_result")
    if kind == "thinking":
        return _thinking_fault(block, f"{path}.thinking", path)
    if kind in SERVER_USES:
        return _id_fault(block, "id", f"{path}.{kind}")
    if is_server_result(kind):
        return _id_fault(block, "tool_use_id", f"{path}.{kind}")
    return None


def _extra_fault(block: Block, kind: str, path: str) -> Rejection | None:
    for field in block:
        if kind in _FIELDS and field not in _FIELDS[kind]:
            return invalid("bad_content", f"{path}.{kind}.{field}", "Extra inputs are not permitted")
    return None


def _source_fault(block: Block, kind: str, path: str) -> Rejection | None:
    """Check where the bytes of an image or a document are, and their type."""
    source = block.get("source")
    if not isinstance(source, dict):
        return invalid("bad_content", f"{path}.source", "Field required")
    tag = source.get("type")
    if not isinstance(tag, str) or tag not in _SOURCES[kind]:
        return _unknown_tag(f"{path}.source", tag, tuple(_SOURCES[kind]))
    path = f"{path}.source.{tag}"
    for key in _SOURCES[kind][tag]:
        if key not in source:
            return invalid("bad_content", f"{path}.{key}", "Field required")
        if key != "content" and not isinstance(source[key], str):
            return invalid("bad_content", f"{path}.{key}", "Input should be a valid string")
    accepted = _MEDIA_TYPES.get((kind, tag))
    if accepted is not None and source["media_type"] not in accepted:
        *head, last = [f"'{name}'" for name in accepted]
        listed = f"{', '.join(head)} or {last}" if head else last
        return invalid("bad_content", f"{path}.media_type", f"Input should be {listed}")
    return _data_fault(str(source.get("data", "")), kind, path) if tag in ("base64", "text") else None


def _data_fault(data: str, kind: str, path: str) -> Rejection | None:
    if not data.strip():
        return invalid("bad_content", f"{path}.data", "String should have at least 1 character")  # own words
    if not path.endswith("base64"):
        return None
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return invalid("bad_content", f"{path}.data", "Invalid base64 data")  # own words
    if kind == "image" and len(data) > _MAX_IMAGE:
        return invalid("bad_content", path, f"image exceeds 5 MB maximum: {len(data)} bytes > {_MAX_IMAGE} bytes")
    return None


def _unknown_tag(path: str, kind: object, known: list[str] | tuple[str, ...]) -> Rejection:
    tags = ", ".join(f"'{tag}'" for tag in known)
    problem = f"Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
    return invalid("bad_content", path, problem)


def _text_fault(block: Block, path: str, *, blank: bool) -> Rejection | None:
    """Check a text block; inside a tool result it may be `blank`, but not empty."""
    text = block.get("text")
    if not isinstance(text, str):
        problem = "Input should be a valid string" if "text" in block else "Field required"
        return invalid("bad_content", f"{path}.text.text", problem)
    if not text:
        return invalid("bad_content", "messages", "text content blocks must be non-empty")
    if not blank and not text.strip():
        return invalid("bad_content", "messages", "text content blocks must contain non-whitespace text")
    return None


def _thinking_fault(block: Block, path: str, short_path: str) -> Rejection | None:
    for key in ("thinking", "signature"):
        if not isinstance(block.get(key), str):
            problem = "Input should be a valid string" if key in block else "Field required"
            return invalid("bad_content", f"{path}.{key}", problem)
    if is_signed_otherwise(block["thinking"], block["signature"]):
        return invalid("bad_content", short_path, "Invalid `signature` in `thinking` block")
    return None


def _id_fault(block: Block, key: str, path: str) -> Rejection | None:
    if key not in block:
        return invalid("bad_id", f"{path}.{key}", "Field required")
    value = block[key]
    if not isinstance(value, str):
        return invalid("bad_id", f"{path}.{key}", "Input should be a valid string")
    if not _ID.match(value):
        return invalid("bad_id", f"{path}.{key}", "String should match pattern '^[a-zA-Z0-9_-]+$'")
    return None


def _tool_use_fault(block: Block, path: str) -> Rejection | None:
    fault = _id_fault(block, "id", path)
    if fault is not None:
        return fault
    name = block.get("name")
    if "name" not in block:
        return invalid("bad_name", f"{path}.name", "Field required")
    if not isinstance(name, str):
        return invalid("bad_name", f"{path}.name", "Input should be a valid string")
    if not name or len(name) > 128:
        limit = "at least 1 character" if not name else "at most 128 characters"
        return invalid("bad_name", f"{path}.name", f"String should have {limit}")
    if not _TOOL_NAME.match(name):
        return invalid("bad_name", f"{path}.name", "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'")
    if "input" not in block:
        return invalid("bad_arguments", f"{path}.input", "Field required")
    if not isinstance(block["input"], dict):
        return invalid("bad_arguments", f"{path}.input", "Input should be a valid dictionary")
    return None


def _tool_result_fault(block: Block, path: str) -> Rejection | None:
    fault = _id_fault(block, "tool_use_id", path)
    if fault is not None:
        return fault
    content = block.get("content", "")  # no content at all is a documented empty result
    is_error = block.get("is_error")
    if not isinstance(content, (str, list)):
        return invalid("bad_content", f"{path}.content", "Input should be a valid list")
    if is_error is not None and not isinstance(is_error, bool):
        return invalid("bad_content", f"{path}.is_error", "Input should be a valid boolean")
    if is_error and not content:
        return invalid("bad_content", path, "content cannot be empty if `is_error` is true")
    if content == []:
        # That it is refused is recorded in pydantic_ai/models/anthropic; the sentence is own words.
        return invalid("bad_content", f"{path}.content", "List should have at least 1 item")
    for position, part in enumerate(content if isinstance(content, list) else []):
        fault = _result_part_fault(part, f"{path}.content.{position}")
        if fault is not None:
            return fault
        if is_error and part["type"] != "text":
            return invalid("bad_content", path, "all content must be type `text` if `is_error` is true")
    return None


def _result_part_fault(part: object, path: str) -> Rejection | None:
    if not isinstance(part, dict):
        return invalid("bad_content", path, "Input should be a valid dictionary")
    kind = part.get("type")
    if kind is None:
        return invalid("bad_content", f"{path}.type", "Field required")
    if kind not in _IN_RESULT:
        return _unknown_tag(path, kind, _IN_RESULT)
    if kind == "text":
        return _text_fault(part, path, blank=True)
    if kind in _SOURCES:
        return _extra_fault(part, str(kind), path) or _source_fault(part, str(kind), f"{path}.{kind}")
    return None
