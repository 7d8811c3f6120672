"""Where the parts of a rich result go: into the result, behind the whole run of results, or into words (P5).

A lane says what it can carry with a `Carrier`. All that is the same in every lane is decided here: the order, what stands in
the result for a part that travels elsewhere, and whose it is when it gets there (FIELD 111 to 113).
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from toolbatch.core import (
    Data,
    Document,
    Image,
    InvalidInputError,
    Json,
    Part,
    ResourceLink,
    Text,
    Url,
    cut,
    described,
    preview,
)

__all__ = [
    "CARRIED",
    "IMAGES",
    "PDF",
    "Block",
    "Carrier",
    "Place",
    "Placed",
    "carrier_for",
    "carries",
    "content_of",
    "data_url",
    "document_text",
    "file_name",
    "in_blocks",
    "place",
    "require_media",
    "unsent",
    "web_url",
]

Block = dict[str, Any]
"""One content block in a lane's own shape."""

Place = Literal["nested", "after", "text"]
"""Where a part travels: in the result itself, behind the whole run of results, or only as text in the result."""

IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""The types of images that OpenAI, Anthropic and Bedrock take."""

PDF: Final = "application/pdf"

_EMPTY: Final = "[the result is empty]"
_SHOWN_LATER: Final = "(it follows the tool results)"
_MAX_LABEL_BYTES: Final = 128
_MAX_READ_OUT: Final = 1_048_576  # characters of files in one result; as much as its own text may have by default
_MARKS: Final = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
_TEXTUAL: Final = ("application/json", "application/xml", "application/yaml", "application/toml")
_TEXTUAL_ENDS: Final = ("+json", "+xml", "+yaml")


def _nothing(_part: Part) -> None:
    """Carry nothing."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """What a lane can carry of a rich result.

    Both functions are asked for every part but `Text`, which is always text, and return the part as the lane's block, or
    `None` where the lane can't carry it there. `nest` is asked first. What neither takes is said in text; a `str` is text
    too, for a lane that has a reason to give (`unsent`).

    Attributes:
        nest: Gives the block inside the result.
        after: Gives the block behind the whole run of results, in a message of the user's.
    """

    nest: Callable[[Part], Block | str | None] = _nothing
    after: Callable[[Part], Block | str | None] = _nothing


class Placed(NamedTuple):
    """One rich result, laid out. A `str` is text, for the lane to put in its own shape; a `dict` is a lane's block.

    Attributes:
        inside: The result's own content, in the parts' order. Never empty, and no text in it is blank.
        behind: What travels behind the whole run of results, never between two of them: first a line that says whose it is,
            then the blocks. Empty where nothing does.
    """

    inside: list[str | Block]
    behind: list[str | Block]


def place(parts: Sequence[Part], carrier: Carrier, name: str, call_id: str) -> Placed:
    """Lay out the parts of one result.

    Args:
        parts: A success's `parts`.
        carrier: What the lane can carry, for this call.
        name: The tool's name, as the lane's wire has it.
        call_id: The call's id, as the lane's wire has it.
    """
    inside: list[str | Block] = []
    behind: list[str | Block] = []
    room = _MAX_READ_OUT
    for part in map(_true_type, parts):
        entry = None if type(part) is Text else carrier.nest(part)
        if entry is None and type(part) is not Text:
            entry = carrier.after(part)
            if isinstance(entry, dict):
                behind.append(entry)
                entry = f"{described(part)} {_SHOWN_LATER}"
        if entry is None:
            entry = described(part)
            text = document_text(part)
            if text is not None and len(text) <= room:  # a text file loses nothing by being read out
                room -= len(text)
                entry = f"{entry}\n{text}"
        inside.append(entry)
    inside = [entry for entry in inside if not isinstance(entry, str) or entry.strip()]
    if behind:
        behind.insert(0, f"From the result of {_label(name)} (call {_label(call_id)}):")
    return Placed(inside or [_EMPTY], behind)


def in_blocks(entries: Sequence[str | Block], text: Callable[[str], Block]) -> list[Block]:
    """Return `Placed.inside` or `Placed.behind` as blocks only; `text` gives a text in the lane's shape."""
    return [text(entry) if isinstance(entry, str) else entry for entry in entries]


def require_media(media: object, *ways: str) -> None:
    """Refuse a way for images and documents to travel that a lane does not have.

    Raises:
        InvalidInputError: `media` is none of `ways`.
    """
    if media not in ways:
        raise _no_such(media, ways)


def _no_such(media: object, ways: Iterable[str]) -> InvalidInputError:
    return InvalidInputError(f"media must be one of {', '.join(ways)}, not {preview(media)}")


def carrier_for(media: str, carriers: Mapping[str, Carrier]) -> Carrier:
    """Return what a lane carries where a host asks for `media`.

    Raises:
        InvalidInputError: The lane has no such way.
    """
    try:
        return carriers[media]
    except (KeyError, TypeError):  # TypeError: it can't be looked up at all
        raise _no_such(media, carriers) from None


def unsent(part: Part, why: str) -> str:
    """Return a part in words, with the reason why it is not sent: for what a lane carries at times only."""
    return f"{described(part)} (not sent: {why})"


def content_of(entries: Sequence[str | Block], text: Callable[[str], Block]) -> str | list[Block]:
    """Return `Placed.inside` as one text, a line a part, where all of it is text, else as blocks."""
    texts = [entry for entry in entries if isinstance(entry, str)]
    return "\n".join(texts) if len(texts) == len(entries) else in_blocks(entries, text)


def data_url(source: Data) -> str:
    """Return bytes as a `data:` URL."""
    return f"data:{source.media_type};base64,{source.base64}"


def web_url(source: Data | Url) -> str | None:
    """Return an address that a provider can fetch from (`http`, `https`), or `None` where there is none."""
    if isinstance(source, Url) and source.url[:8].lower().startswith(("https://", "http://")):
        return source.url
    return None


def file_name(part: Document, extension: str) -> str:
    """Return what to call a file whose name a provider reads its type from: a name with an ending, such as `a.pdf`."""
    name = part.name or "document"
    return name if "." in name else f"{name}.{extension}"


def document_text(part: Part) -> str | None:
    """Return the text of a document that is text and whose bytes are there; `None` for every other part.

    It is text by its media type (`text/*`, JSON, XML, YAML, TOML) and by its bytes, which must be UTF-8 and not blank.
    """
    if not isinstance(part, Document) or not isinstance(part.source, Data):
        return None
    kind = part.source.media_type
    if not (kind.startswith("text/") or kind in _TEXTUAL or kind.endswith(_TEXTUAL_ENDS)):
        return None
    try:
        text = part.source.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return text if text.strip() else None


def _true_type(part: Part) -> Part:
    """Return an image under the media type of its first bytes, if they show one, and `image/jpg` as `image/jpeg`.

    A wrong type stays in the history, and is refused for ever ("Image does not match the provided media type image/png").
    """
    if not isinstance(part, Image):
        return part
    source = part.source
    if isinstance(source, Url):
        return Image(Url(source.url, "image/jpeg")) if source.media_type == "image/jpg" else part
    declared = "image/jpeg" if source.media_type == "image/jpg" else source.media_type
    true = next((media_type for media_type, mark in _MARKS.items() if mark.match(source.data)), declared)
    return part if true == source.media_type else Image(Data(source.data, true))


def _label(text: str) -> str:
    return cut(text, _MAX_LABEL_BYTES)


_URL: Final = "https://example.org/a"
CARRIED: Final[Mapping[str, Part]] = {
    "text": Text("a"),
    "JSON": Json({}),
    "PNG, JPEG": Image.of(b"a", "image/png"),
    "GIF": Image.of(b"a", "image/gif"),
    "WebP": Image.of(b"a", "image/webp"),
    "other image": Image.of(b"a", "image/tiff"),
    "image by URL": Image(Url(_URL, "image/png")),
    "PDF": Document.of(b"a", "application/pdf", "a.pdf"),
    "PDF by URL": Document(Url(_URL, "application/pdf"), "a.pdf"),
    "text file": Document.of(b"a", "text/plain", "a.txt"),
    "text file by URL": Document(Url(_URL, "text/plain"), "a.txt"),
    "spreadsheet": Document.of(b"a", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "a.xlsx"),
    "recording": Document.of(b"a", "audio/wav", "a.wav"),
    "film": Document.of(b"a", "video/mp4", "a.mp4"),
    "resource link": ResourceLink("https://example.org/a", "a"),
}
"""One part of each sort that lanes treat differently, by what the documentation calls it."""


def carries(carrier: Carrier) -> Mapping[str, Place]:
    """Return where each sort of part travels: found out by placing one, so that it can't be wrong."""
    return {sort: _travels(part, carrier) for sort, part in CARRIED.items()}


def _travels(part: Part, carrier: Carrier) -> Place:
    placed = place((part,), carrier, "a", "a")
    if placed.behind:
        return "after"
    return "text" if isinstance(placed.inside[0], str) else "nested"
