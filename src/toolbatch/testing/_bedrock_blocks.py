"""The shape of Converse messages: roles, blocks, and what a block may hold.

Constraints of names and ids have the words that every AWS service has for them; what the Converse API says by itself comes from
public reports. A text that no report shows is marked *own words*. Bytes may be bytes (boto3's form) or base64 text (the wire's).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from toolbatch.testing._anthropic_blocks import is_signed_otherwise
from toolbatch.testing._rejection import Rejection

if TYPE_CHECKING:
    from toolbatch.testing._rejection import Rule

__all__ = ["Block", "broken", "is_call", "message_fault", "tool_names_fault"]

Block: TypeAlias = dict[str, Any]

_ROLES = ("user", "assistant", "system")
_BLOCKS = (
    "text",
    "image",
    "document",
    "video",
    "audio",
    "toolUse",
    "toolResult",
    "guardContent",
    "cachePoint",
    "reasoningContent",
    "citationsContent",
    "searchResult",
    "toolAddition",
    "toolRemoval",
)
_IN_RESULT = ("json", "text", "image", "document", "video", "searchResult")
_BY_USER = ("image", "document", "video", "audio")
_IMAGES = ("png", "jpeg", "gif", "webp")
_DOCUMENTS = ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")
_STATUSES = ("success", "error")
_ID = r"[a-zA-Z0-9_.:-]+"
_NAME = r"[a-zA-Z0-9_-]+"
_MAX_CHARS = 64  # of ids and names alike
_DOCUMENT_NAME = re.compile(r"[a-zA-Z0-9\s()\[\]-]{1,200}\Z")
_TWO_BLANKS = re.compile(r"\s\s")
_MAX_BYTES = {"image": 3_932_160, "document": 4_718_592}
_HOSTED = "server_tool_use"


def broken(rule: Rule, text: str) -> Rejection:
    """A refusal in the API's own words."""
    return Rejection(rule=rule, message=text)


def is_call(block: Block) -> bool:
    """Whether a block calls a tool of the client's."""
    return "toolUse" in block and block["toolUse"].get("type") != _HOSTED


def tool_names_fault(config: object) -> Rejection | None:
    """Check the names of declared tools."""
    tools = config.get("tools") if isinstance(config, dict) else None
    for index, tool in enumerate(tools if isinstance(tools, list) else [], 1):
        spec = tool.get("toolSpec") if isinstance(tool, dict) else None
        if isinstance(spec, dict):
            fault = _text_fault("bad_name", spec, "name", f"toolConfig.tools.{index}.member.toolSpec", _NAME)
            if fault is not None:
                return fault
    return None


def message_fault(message: object, index: int) -> Rejection | None:
    """Check one message."""
    if not isinstance(message, dict):
        return broken("bad_request", f"The value at messages.{index} is invalid. Provide an object.")  # own words
    if message.get("role") not in _ROLES:
        return _constraint("bad_request", message.get("role"), f"messages.{index + 1}.member.role", _enum(_ROLES))
    content = message.get("content")
    if not isinstance(content, list) or not content:
        text = (
            f"The content field in the Message object at messages.{index} is empty. Add a ContentBlock object to the content "
            "field and try again."
        )
        return broken("bad_content", text)
    for position, block in enumerate(content):
        fault = _block_fault(block, message["role"], f"messages.{index}.content.{position}")
        if fault is not None:
            return fault
    return _documents_fault(content, index)


def _block_fault(block: object, role: str, path: str) -> Rejection | None:
    fault = _union_fault(block, _BLOCKS, "ContentBlock", path)
    if fault is not None or not isinstance(block, dict):
        return fault
    kind = next(iter(block))
    if kind in _BY_USER and role != "user":
        return broken(
            "bad_content", f"You can only include images and documents if the role is user, not at {path}"
        )  # own
    if kind == "text":
        return _blank_fault(block, "ContentBlock", path)
    if kind == "reasoningContent":
        return _reasoning_fault(block[kind], path)
    if kind == "toolUse":
        return _use_fault(block["toolUse"], role, path)
    if kind == "toolResult":
        return _result_fault(block["toolResult"], role, path)
    return _media_fault(block, kind, path)


def _reasoning_fault(reasoning: object, path: str) -> Rejection | None:
    """Check that a reasoning of ours came back as it was; other signatures only their provider can check."""
    spoken = reasoning.get("reasoningText") if isinstance(reasoning, dict) else None
    if not isinstance(spoken, dict) or not is_signed_otherwise(spoken.get("text"), spoken.get("signature")):
        return None
    text = f"The model returned the following errors: {path}: Invalid `signature` in `thinking` block"
    return broken("reasoning_pair", text)


def _use_fault(use: object, role: str, path: str) -> Rejection | None:
    member = f"{_members(path)}.toolUse"
    if not isinstance(use, dict):
        return _constraint("bad_content", None, member, "Member must not be null")
    if role != "assistant":
        return broken(
            "misplaced_content", f"toolUse blocks can only be in assistant messages, not at {path}"
        )  # own words
    fault = _text_fault("bad_id", use, "toolUseId", member, _ID) or _text_fault("bad_name", use, "name", member, _NAME)
    if fault is not None:
        return fault
    if use.get("type") not in (None, _HOSTED):
        return _constraint("bad_content", use["type"], f"{member}.type", _enum((_HOSTED,)))
    return None if isinstance(use.get("input"), dict) else _not_object("bad_arguments", f"{path}.toolUse.input")


def _result_fault(result: object, role: str, path: str) -> Rejection | None:
    member = f"{_members(path)}.toolResult"
    if not isinstance(result, dict):
        return _constraint("bad_content", None, member, "Member must not be null")
    if role == "assistant" and not result.get("type"):  # a hosted tool's result has a type
        return broken(
            "misplaced_content", f"toolResult blocks can only be in user messages, not at {path}"
        )  # own words
    fault = _text_fault("bad_id", result, "toolUseId", member, _ID)
    if fault is not None:
        return fault
    if result.get("status") is not None and result["status"] not in _STATUSES:
        return _constraint("bad_content", result["status"], f"{member}.status", _enum(_STATUSES))
    content = result.get("content")
    if not isinstance(content, list):
        return _constraint("bad_content", None, f"{member}.content", "Member must not be null")
    for position, block in enumerate(content):
        inner = f"{path}.toolResult.content.{position}"
        fault = _union_fault(block, _IN_RESULT, "ToolResultContentBlock", inner) or _inner_fault(block, inner)
        if fault is not None:
            return fault
    return _document_alone_fault(content, f"{path}.toolResult.content")


def _inner_fault(block: Block, path: str) -> Rejection | None:
    (kind,) = block
    if kind == "text":
        return _blank_fault(block, "ToolResultContentBlock", path)
    if kind == "json":
        data = block["json"]
        inner = list(data.values()) if isinstance(data, dict) else data
        # Smithy's own mark of a type: one inside an object makes it no plain object any more.
        wrong = not isinstance(data, dict) or _has_type(inner)
        return _not_object("bad_content", f"{path}.json") if wrong else None
    return _media_fault(block, kind, path)


def _has_type(value: object) -> bool:
    if isinstance(value, dict):
        return "__type" in value or any(map(_has_type, value.values()))
    return isinstance(value, list) and any(map(_has_type, value))


def _media_fault(block: Block, kind: str, path: str) -> Rejection | None:
    if kind not in _MAX_BYTES:
        return None
    holder, member = block[kind], f"{_members(path)}.{kind}"
    if not isinstance(holder, dict):
        return _constraint("bad_content", None, member, "Member must not be null")
    formats = _IMAGES if kind == "image" else _DOCUMENTS
    if (holder.get("format") is not None or kind == "image") and holder.get("format") not in formats:
        return _constraint("bad_content", holder.get("format"), f"{member}.format", _enum(formats))
    source = holder.get("source")
    if not isinstance(source, dict) or len(source) != 1:
        return _constraint("bad_content", None, f"{member}.source", "Member must not be null")
    data = source.get("bytes", b"x")
    if not data:
        return _constraint(
            "bad_content", "", f"{member}.source.bytes", "Member must have length greater than or equal to 1"
        )
    size = len(data) if isinstance(data, bytes) else len(str(data)) * 3 // 4
    if size > _MAX_BYTES[kind]:
        return broken(
            "bad_content", f"The {kind} at {path} has {size} bytes, more than {_MAX_BYTES[kind]}"
        )  # own words
    return _document_name_fault(holder.get("name"), member) if kind == "document" else None


def _document_name_fault(name: object, member: str) -> Rejection | None:
    if not isinstance(name, str):
        return _constraint("bad_name", name, f"{member}.name", "Member must not be null")
    if _DOCUMENT_NAME.match(name) and not _TWO_BLANKS.search(name):
        return None
    text = (
        "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and "
        "square brackets. The name can't contain more than one consecutive whitespace character."
    )
    return broken("bad_name", text)


def _documents_fault(content: list[Block], index: int) -> Rejection | None:
    """Check what a message may hold as a whole, its results included."""
    results = [block["toolResult"]["content"] for block in content if "toolResult" in block]
    blocks = [*content, *[block for result in results for block in result]]
    images, documents = (sum(kind in block for block in blocks) for kind in ("image", "document"))
    if images > 20:
        return broken("bad_content", f"messages.{index}: you can include up to 20 images, not {images}")  # own words
    if documents > 5:
        return broken(
            "bad_content", f"messages.{index}: you can include up to five documents, not {documents}"
        )  # own words
    return _document_alone_fault(content, f"messages.{index}.content")


def _document_alone_fault(content: list[Block], path: str) -> Rejection | None:
    if any("document" in block for block in content) and not any("text" in block for block in content):
        return broken("bad_content", f"A document at {path} needs a text block beside it")  # own words
    return None


def _union_fault(block: object, known: tuple[str, ...], shape: str, path: str) -> Rejection | None:
    if isinstance(block, dict) and len(block) == 1 and next(iter(block)) in known:
        return None
    text = f"The {shape} object at {path} must set exactly one of the following keys: {', '.join(known)}."  # own words
    return broken("bad_content", text)


def _blank_fault(block: Block, shape: str, path: str) -> Rejection | None:
    if isinstance(block["text"], str) and block["text"].strip():
        return None
    text = f"The text field in the {shape} object at {path} is blank. Add text to the text field, and try again."
    return broken("bad_content", text)


def _text_fault(rule: Rule, holder: Block, key: str, path: str, pattern: str) -> Rejection | None:
    """Check an id or a name: there, of 1 to 64 characters, in its alphabet."""
    value, member = holder.get(key), f"{path}.{key}"
    if not isinstance(value, str):
        return _constraint(rule, None, member, "Member must not be null")
    if len(value) > _MAX_CHARS:
        return _constraint(rule, value, member, f"Member must have length less than or equal to {_MAX_CHARS}")
    if not value:
        return _constraint(rule, value, member, "Member must have length greater than or equal to 1")
    if not re.fullmatch(pattern, value):
        return _constraint(rule, value, member, f"Member must satisfy regular expression pattern: {pattern}")
    return None


def _constraint(rule: Rule, value: object, path: str, problem: str) -> Rejection:
    shown = "Value null" if value is None else f"Value '{value}'"
    text = f"1 validation error detected: {shown} at '{path}' failed to satisfy constraint: {problem}"
    return broken(rule, text)


def _not_object(rule: Rule, path: str) -> Rejection:
    return broken(
        rule, f"The format of the value at {path} is invalid. Provide a json object for the field and try again."
    )


def _enum(values: tuple[str, ...]) -> str:
    return f"Member must satisfy enum value set: [{', '.join(values)}]"


def _members(path: str) -> str:
    """A path as constraints have it: `messages.0.content.1` is `messages.1.member.content.2.member` there."""
    return re.sub(r"\.(\d+)", lambda match: f".{int(match[1]) + 1}.member", path)
