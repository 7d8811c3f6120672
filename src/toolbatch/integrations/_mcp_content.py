"""What an MCP server answered, as parts. The other way, parts to MCP's content, is the lane `mcp`."""

from typing import Any, Final

from toolbatch.core import (
    Document,
    Image,
    InvalidInputError,
    InvalidTypeError,
    Json,
    Part,
    ResourceLink,
    Text,
    ToolCall,
    ToolError,
    text_of,
)
from toolbatch.providers.kit import field, items, plain

__all__ = ["failure_of", "is_failure", "parts_of", "shown"]

_UNKNOWN: Final = "application/octet-stream"


def is_failure(result: object) -> bool:
    """Whether the tool says that it failed; in the words of either version of the SDK (LANES 9)."""
    return bool(field(result, "is_error") or field(result, "isError"))


def shown(result: object) -> str | tuple[Part, ...]:
    """Return what the model gets of a result: its content, or where there is none its structured content, as JSON."""
    parts = parts_of(items(field(result, "content")))
    if not parts:
        structured = field(result, "structured_content")
        structured = field(result, "structuredContent") if structured is None else structured
        return "" if structured is None else (Json(structured),)
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return parts


def failure_of(result: object) -> ToolError:
    """Return a failed result as an error for the model: its text, or the code and message in it where it says them as we do (P4)."""
    content = shown(result)
    text = content if isinstance(content, str) else text_of(content)
    said = ToolCall("", "", text).arguments.get("error")
    if isinstance(said, dict) and isinstance(message := said.get("message"), str) and message.strip():
        code = said.get("code")
        return ToolError.respond_to_model(message, code if isinstance(code, str) and code.strip() else None)
    return ToolError.respond_to_model(text or "The tool failed, and did not say why.")


def parts_of(blocks: list[Any]) -> tuple[Part, ...]:
    """Return content blocks as parts. What can't be read - an unknown sort, broken base64 - is there as JSON."""
    return tuple(map(_part, blocks))


def _part(block: Any) -> Part:
    try:
        known = _known(block)
    except (InvalidInputError, InvalidTypeError):
        known = None
    if known is not None:
        return known
    try:
        return Json(plain(block))
    except (InvalidInputError, InvalidTypeError):
        return Text("[content that can't be shown]")


def _known(block: Any) -> Part | None:
    match field(block, "type"):
        case "text":
            return Text(field(block, "text"))
        case "image":
            return Image.of(field(block, "data"), _media_type(block) or "image/png")
        case "audio":
            return Document.of(field(block, "data"), _media_type(block) or "audio/wav")
        case "resource_link":
            uri, about = field(block, "uri"), field(block, "description")
            return ResourceLink(str(uri), field(block, "name") or str(uri), _media_type(block), about or None)
        case "resource":
            return _resource(field(block, "resource"))
        case _:
            return None


def _resource(resource: Any) -> Part:
    name = str(field(resource, "uri") or "") or None
    text, media_type = field(resource, "text"), _media_type(resource)
    if isinstance(text, str):
        return Document.of(text.encode(errors="replace"), media_type or "text/plain", name) if text else Text("")
    return Document.of(field(resource, "blob"), media_type or _UNKNOWN, name)


def _media_type(holder: Any) -> str | None:
    found = field(holder, "mime_type") or field(holder, "mimeType")
    return found.partition(";")[0].strip() or None if isinstance(found, str) else None
