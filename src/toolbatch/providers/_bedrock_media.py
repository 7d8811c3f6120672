"""What a `toolResult` can hold besides text: data, images, documents, within the bounds of one message.

The formats are those of botocore's model of the API (`service-2.json`), and the bounds those of its `Message`. Names of
documents are checked, and must be distinct over the whole request: "Messages can't contain duplicate document names".
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from toolbatch.core import Data, Document, Image, Json, Part, Url, described

from ._content import Block, Carrier, unsent
from ._data import data_of
from ._file_names import file_label
from ._plain import field, items

__all__ = ["RESERVED", "Media", "Room", "document_names", "with_text"]

Media = Literal["nested", "after", "text"]
"""How images and documents travel: in the results, in the same message behind them, or only in words."""

RESERVED: Final = "__type"  # the API's own mark of a type: data with it inside is refused, so it goes as text

_IMAGES: Final = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/jpg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_OFFICE: Final = "application/vnd.openxmlformats-officedocument"
_DOCUMENTS: Final = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    f"{_OFFICE}.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    f"{_OFFICE}.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}
_MAX_IMAGES: Final = 20
_MAX_DOCUMENTS: Final = 5
_MAX_IMAGE: Final = 3_932_160  # 3.75 MB
_MAX_DOCUMENT: Final = 4_718_592  # 4.5 MB
_MAX_NAME: Final = 200
_ILLEGAL_NAME: Final = re.compile(r"[^a-zA-Z0-9 ()\[\]-]")
_S3: Final = re.compile(r"s3://[a-z0-9][.\-a-z0-9]{1,61}[a-z0-9](/.*)?", re.DOTALL)
_MAX_S3: Final = 1024


class Room:
    """What one message with results still has room for. It is filled in the order of the parts.

    Args:
        names: Names that documents of the request have already.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = set(names)
        self._images = 0
        self._documents = 0

    def carrier(self, media: Media) -> Carrier:
        """Return what the message carries this way."""
        if media == "after":
            return Carrier(nest=_data, after=self._file)
        return Carrier(nest=self._nest if media == "nested" else _data)

    def _nest(self, part: Part) -> Block | str | None:
        return _data(part) or self._file(part)

    def _file(self, part: Part) -> Block | str | None:
        if isinstance(part, Image):
            return self._image(part)
        return self._document(part) if isinstance(part, Document) else None

    def _image(self, part: Image) -> Block | str | None:
        form, source = _IMAGES.get(part.source.media_type or ""), _source(part.source)
        if form is None or source is None:
            return None
        refusal = _refusal(part, "image", _MAX_IMAGE, self._images, _MAX_IMAGES)
        if refusal is not None:
            return refusal
        self._images += 1
        return {"image": {"format": form, "source": source}}

    def _document(self, part: Document) -> Block | str | None:
        form, source = _DOCUMENTS.get(part.source.media_type or ""), _source(part.source)
        if form is None or source is None:
            return None
        refusal = _refusal(part, "document", _MAX_DOCUMENT, self._documents, _MAX_DOCUMENTS)
        if refusal is not None:
            return refusal
        self._documents += 1
        name = file_label(part.name or "document", _ILLEGAL_NAME, _MAX_NAME, self._names)
        self._names.add(name)
        return {"document": {"format": form, "name": name, "source": source}}


def document_names(messages: Iterable[object]) -> set[str]:
    """Return the names of all documents in a conversation, in its results too."""
    names: set[str] = set()
    for message in messages:
        for block in items(field(message, "content")):
            inner = [block, *items(field(field(block, "toolResult"), "content"))]
            found = [field(field(one, "document"), "name") for one in inner]
            names.update(name for name in found if isinstance(name, str))
    return names


def with_text(blocks: list[Block], parts: Sequence[Part]) -> list[Block]:
    """Return a result's blocks with a text in front if it has documents and no text: a document is refused without."""
    if any("document" in block for block in blocks) and not any("text" in block for block in blocks):
        named = [described(part) for part in parts if isinstance(part, Document)]
        return [{"text": "\n".join(named)}, *blocks]
    return blocks


def _data(part: Part) -> Block | None:
    data = data_of(part.text, RESERVED) if isinstance(part, Json) else None
    return {"json": data} if isinstance(data, dict) else None  # "Provide a json object for the field"


def _source(source: Data | Url) -> dict[str, Any] | None:
    if isinstance(source, Data):
        return {"bytes": source.data}
    usable = len(source.url) <= _MAX_S3 and _S3.fullmatch(source.url) is not None
    return {"s3Location": {"uri": source.url}} if usable else None


def _refusal(part: Image | Document, kind: str, max_bytes: int, taken: int, room: int) -> str | None:
    """Return in words why a part is not sent that the API would refuse; `None` if it would not."""
    if isinstance(part.source, Data) and len(part.source.data) > max_bytes:
        return unsent(part, f"{kind}s of more than {max_bytes:,} bytes are refused")
    return unsent(part, f"a message holds at most {room} {kind}s") if taken == room else None
