"""What a `functionResponse` says: an object, and the media that belongs to it."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple

from toolbatch.core import Data, Document, Image, Json, Part, Url

from ._content import Block, Carrier, place
from ._data import data_of
from ._file_names import file_label

__all__ = ["Media", "Said", "carrier", "is_readable", "media_type_of", "rich", "said"]

Media = Literal["nested", "referenced", "after"]
"""How media travels: in its `functionResponse`; there, and pointed at from the result's data; or in a content behind it."""

_REFERENCE: Final = "$ref"  # at whatever depth: "The referenced name ... does not match to a display_name"
_OWN_KEYS: Final = frozenset(("output", "error"))
_DATA: Final = "json"  # marks data among blocks until the object is put together
_NESTED: Final = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "application/pdf": "pdf",
    "text/plain": "txt",
}
_BESIDE: Final = (
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
    "application/pdf",
    "audio/",
    "video/",
)
_SAME: Final = {"image/jpg": "image/jpeg"}
_FILES_API: Final = re.compile(r"https://([a-z0-9-]+\.)*googleapis\.com/[a-z0-9]+/files/", re.IGNORECASE)
_ILLEGAL_LABEL: Final = re.compile(r"[^\w.()\[\] -]")
_MAX_LABEL: Final = 128


class Said(NamedTuple):
    """One outcome in pieces of the wire's shape.

    Attributes:
        response: The object for `response`.
        parts: The media for `parts`, each with a `displayName` of its own.
        behind: What travels in a content of its own, behind all results.
    """

    response: dict[str, Any]
    parts: list[Block]
    behind: list[str | Block]


def carrier(media: Media, *, behind: bool) -> Carrier:
    """Return what the lane carries this way; `behind` says whether there is a place behind the results."""
    nest = _data if media == "after" else _nest
    return Carrier(nest=nest, after=_beside) if behind else Carrier(nest=nest)


def said(text: str, *, failed: bool) -> dict[str, Any]:
    """Return the `response` of an outcome that is text.

    A failure is `{"error": {"code", "message", ...}}` (P4). A success that is a JSON object is that object, since "if "output"
    and "error" keys are not specified, then whole "response" is treated as function output"; all else is `{"output": ...}`.
    """
    if failed:
        failure: dict[str, Any] = json.loads(text)  # written by `failure_text`
        return failure
    data = data_of(text, _REFERENCE)
    return _object(text if data is None else data)


def rich(parts: Sequence[Part], means: Carrier, media: Media, name: str, call_id: str) -> Said:
    """Return a success in parts: its texts and data as the output, its media attached to it (P5)."""
    placed = place(parts, means, name, call_id)
    entries: list[Any] = []
    attached: list[Block] = []
    labels: list[str] = []
    for entry in placed.inside:
        if isinstance(entry, dict) and _DATA not in entry:
            ((kind, source),) = entry.items()
            wanted = source["displayName"] or f"file {len(labels) + 1}.{_NESTED.get(source.get('mimeType', ''), 'bin')}"
            labels.append(file_label(wanted, _ILLEGAL_LABEL, _MAX_LABEL, labels))
            attached.append({kind: {**source, "displayName": labels[-1]}})
            entries.append({_REFERENCE: labels[-1]} if media == "referenced" else f"[attached: {labels[-1]}]")
        else:
            entries.append(entry if isinstance(entry, str) else entry[_DATA])
    return Said(_output(entries), attached, placed.behind)


def _output(entries: Sequence[Any]) -> dict[str, Any]:
    if all(isinstance(entry, str) for entry in entries):
        return _object("\n".join(entries))
    return _object(entries[0] if len(entries) == 1 else list(entries))


def _object(value: Any) -> dict[str, Any]:
    # An empty object could be read as none at all, and one with keys of Gemini's own as something else than the output.
    apart = isinstance(value, dict) and value and _OWN_KEYS.isdisjoint(value) and _REFERENCE not in value
    return value if apart else {"output": value}


def _data(part: Part) -> Block | None:
    data = data_of(part.text, _REFERENCE) if isinstance(part, Json) else None
    return None if data is None else {_DATA: data}


def _nest(part: Part) -> Block | None:
    block = _file(part, _NESTED.__contains__)
    if block is None:
        return _data(part)
    ((kind, source),) = block.items()
    return {kind: {**source, "displayName": (part.name if isinstance(part, Document) else None) or ""}}


def _beside(part: Part) -> Block | None:
    return _file(part, lambda media_type: media_type.startswith(_BESIDE))


def _file(part: Part, takes: Callable[[str], bool]) -> Block | None:
    if not isinstance(part, Image | Document):
        return None
    source, media_type = part.source, media_type_of(part.source)
    if media_type is not None and not takes(media_type):
        return None
    if isinstance(source, Data):
        return {"inlineData": {"mimeType": media_type, "data": source.base64}}
    if not is_readable(source):
        return None
    if media_type is None:  # the Files API knows it
        return {"fileData": {"fileUri": source.url}} if _FILES_API.match(source.url) else None
    return {"fileData": {"mimeType": media_type, "fileUri": source.url}}


def media_type_of(source: Data | Url) -> str | None:
    """Return a source's media type as Google's servers call it; `None` where it is not known."""
    return _SAME.get(source.media_type or "", source.media_type)


def is_readable(source: Url) -> bool:
    """Whether Google's servers read from there by themselves: Cloud Storage and the Files API, and no other everywhere."""
    return source.url.startswith("gs://") or _FILES_API.match(source.url) is not None
