"""MCP's content blocks, in the wire's camelCase: what a result holds, and what a sampling message brings back."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from toolbatch.core import Data, Document, Image, Part, ResourceLink, Url

from ._content import Block, Carrier, Place, carries, document_text
from ._plain import copied, drop_nulls

__all__ = ["CARRIES", "CONTENT", "text_content", "wire_block"]

_WIRE_NAMES: Final = {"mime_type": "mimeType", "meta": "_meta", "last_modified": "lastModified"}


def text_content(text: str) -> Block:
    """Return a text as a content block."""
    return {"type": "text", "text": text}


def _block(part: Part) -> Block | None:
    match part:
        case Image(source=Data() as source):
            return {"type": "image", "data": source.base64, "mimeType": source.media_type}
        case Document(source=Data() as source) if source.media_type.startswith("audio/"):
            return {"type": "audio", "data": source.base64, "mimeType": source.media_type}
        case Document(source=Data() as source, name=name):
            text = document_text(part)
            held = {"blob": source.base64} if text is None else {"text": text}
            return {
                "type": "resource",
                "resource": {"uri": _uri(source, name), "mimeType": source.media_type, **held},
            }
        case Image(source=Url() as source):
            return _link(source.url, "image", source.media_type)
        case Document(source=Url() as source, name=name):
            return _link(source.url, name or "document", source.media_type)
        case ResourceLink():
            return _link(part.uri, part.name, part.media_type, part.description)
        case _:
            return None


def _uri(source: Data, name: str | None) -> str:
    """Return the URI that an embedded resource must have: its own for each content, and one that nobody can fetch."""
    return f"attachment:{hashlib.sha256(source.data).hexdigest()[:16]}/{quote(name or 'document', safe='')}"


def _link(uri: str, name: str, media_type: str | None, description: str | None = None) -> Block:
    link = {"type": "resource_link", "uri": uri, "name": name, "mimeType": media_type, "description": description}
    drop_nulls(link, "mimeType", "description")
    return link


CONTENT: Final = Carrier(nest=_block)
"""What a result can hold: everything."""
CARRIES: Final[Mapping[str, Place]] = carries(CONTENT)
"""Where each sort of part travels in this lane (P5)."""


def wire_block(block: object, *without: str) -> dict[str, Any]:
    """Return a detached copy of a sampling message's block under the wire's names, which a `model_dump()` does not use."""
    copy = _renamed(copied(block, *without))
    if isinstance(copy.get("annotations"), dict):
        copy["annotations"] = _renamed(copy["annotations"])
        drop_nulls(copy["annotations"], *copy["annotations"])
    drop_nulls(copy, "annotations", "_meta")
    return copy


def _renamed(fields: dict[str, Any]) -> dict[str, Any]:
    return {_WIRE_NAMES.get(name, name): value for name, value in fields.items()}
