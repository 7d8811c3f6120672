"""Rich content: the parts that a result may be made of, as immutable values that every lane can read (P5)."""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

from ._encode import encode
from ._errors import EncodingError, InvalidInputError, InvalidTypeError
from ._text import exact, preview

__all__ = [
    "Data",
    "Document",
    "Image",
    "Json",
    "Part",
    "ResourceLink",
    "Text",
    "Url",
    "as_parts",
    "described",
    "from_plain",
    "media_bytes",
    "text_of",
    "to_plain",
]

_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*\Z")  # RFC 6838, lower case
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+\Z")


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidTypeError(f"{what} must be a str, not {preview(value)}")
    text = exact(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(f"{what} {preview(text)} has a lone surrogate, which no provider accepts") from None
    return text


def _name(value: object, what: str) -> str:
    text = _text(value, what)
    if not text.strip():
        raise InvalidInputError(f"{what} must not be blank, as {text!r} is")
    return text


def _uri(value: object, what: str) -> str:
    text = _text(value, what)
    if _SCHEME.match(text) is None:
        raise InvalidInputError(f"{what} must be absolute, such as https://…, not {preview(text)}")
    return text


def _media_type(value: object) -> str:
    text = _text(value, "media_type").lower()
    if _MEDIA_TYPE.match(text) is None:
        raise InvalidInputError(f"media_type must be like image/png, without parameters, not {preview(text)}")
    return text


@final
@dataclass(frozen=True, slots=True)
class Text:
    """Plain text.

    Attributes:
        text: May be empty.

    Raises:
        InvalidTypeError: It is not a `str`.
        InvalidInputError: It has a lone surrogate.
    """

    text: str
    type: ClassVar[Literal["text"]] = "text"

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", _text(self.text, "text"))


@final
@dataclass(frozen=True, slots=True, init=False)
class Json:
    """Data, written down as JSON the moment the part is made: no later mutation changes it.

    Args:
        value: Anything that the encoder takes.
        encode: The host's encoder, where it injected one (C7).

    Attributes:
        text: The compact JSON text.

    Raises:
        EncodingError: The value has no strict JSON form.
    """

    text: str
    type: ClassVar[Literal["json"]] = "json"

    def __init__(self, value: object, *, encode: Callable[[object], str] = encode) -> None:
        object.__setattr__(self, "text", _text(encode(value), "the encoder's text"))


@final
@dataclass(frozen=True, slots=True)
class Data:
    """Bytes that travel with the message.

    Args:
        data: The bytes, or base64 text of them.
        media_type: Such as `image/png`; kept in lower case, without parameters.

    Attributes:
        data: The bytes.
        media_type: Their type.

    Raises:
        InvalidTypeError: `data` is neither bytes nor text, or `media_type` no text.
        InvalidInputError: `data` is empty or no base64, or `media_type` is not of the form `type/subtype`.
    """

    data: bytes
    media_type: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", _read_bytes(self.data))
        object.__setattr__(self, "media_type", _media_type(self.media_type))

    @property
    def base64(self) -> str:
        """The bytes as base64 text, with padding."""
        return base64.b64encode(self.data).decode("ascii")


def _read_bytes(data: object) -> bytes:
    if isinstance(data, str):
        try:
            read = base64.b64decode(exact(data), validate=True)
        except (binascii.Error, ValueError) as error:
            raise InvalidInputError(f"data must be bytes or base64 text, not {preview(data)}: {error}") from None
    elif isinstance(data, bytes | bytearray | memoryview):
        read = bytes(data)
    else:
        raise InvalidTypeError(f"data must be bytes or base64 text, not {preview(data)}")
    if not read:
        raise InvalidInputError("data must not be empty: providers refuse an image or document of no bytes")
    return read


@final
@dataclass(frozen=True, slots=True)
class Url:
    """Where the provider finds the bytes.

    Attributes:
        url: An absolute URL that the provider can reach. `data:` URLs are bytes in disguise, and refused: use `Data`.
        media_type: The type of what is there, if known. Some lanes need it.

    Raises:
        InvalidTypeError: A value is no text.
        InvalidInputError: The URL is not absolute or is a `data:` URL, or `media_type` is not of the form `type/subtype`.
    """

    url: str
    media_type: str | None = None

    def __post_init__(self) -> None:
        url = _uri(self.url, "url")
        if url[:5].lower() == "data:":
            raise InvalidInputError(f"url {preview(url)} holds its data; give the bytes and their media_type as Data")
        object.__setattr__(self, "url", url)
        if self.media_type is not None:
            object.__setattr__(self, "media_type", _media_type(self.media_type))


def _source(source: object) -> Data | Url:
    if isinstance(source, Data | Url):
        return source
    raise InvalidTypeError(f"source must be Data(bytes, media_type) or Url(url), not {preview(source)}")


@final
@dataclass(frozen=True, slots=True)
class Image:
    """A picture.

    Attributes:
        source: Its bytes, or where they are.

    Raises:
        InvalidTypeError: `source` is neither `Data` nor `Url`.
        InvalidInputError: The source says that it is something else than an image.
    """

    source: Data | Url
    type: ClassVar[Literal["image"]] = "image"

    def __post_init__(self) -> None:
        media_type = _source(self.source).media_type
        if media_type is not None and not media_type.startswith("image/"):
            raise InvalidInputError(
                f"an image's media_type must begin with image/, as {media_type!r} doesn't; use Document"
            )

    @classmethod
    def of(cls, data: bytes | str, media_type: str) -> "Image":
        """Return an image of these bytes, or this base64 text. Raises as `Data` does."""
        return cls(Data(data, media_type))  # type: ignore[arg-type]  # base64 text is read into bytes


@final
@dataclass(frozen=True, slots=True)
class Document:
    """A file to read: a PDF, a text file, a table, a recording.

    Attributes:
        source: Its bytes, or where they are.
        name: What to call it, or `None`.

    Raises:
        InvalidTypeError: `source` is neither `Data` nor `Url`, or `name` no text.
        InvalidInputError: `name` is blank.
    """

    source: Data | Url
    name: str | None = None
    type: ClassVar[Literal["document"]] = "document"

    def __post_init__(self) -> None:
        _source(self.source)
        if self.name is not None:
            object.__setattr__(self, "name", _name(self.name, "name"))

    @classmethod
    def of(cls, data: bytes | str, media_type: str, name: str | None = None) -> "Document":
        """Return a document of these bytes, or this base64 text. Raises as `Data` does."""
        return cls(Data(data, media_type), name)  # type: ignore[arg-type]  # base64 text is read into bytes


@final
@dataclass(frozen=True, slots=True)
class ResourceLink:
    """A resource that the host can fetch later, by its name (MCP's `resource_link`).

    Attributes:
        uri: An absolute URI.
        name: What to call it.
        media_type: The type of what is there, if known.
        description: What is there, for the model, or `None`.

    Raises:
        InvalidTypeError: A value is no text.
        InvalidInputError: The URI is not absolute, a text is blank, or `media_type` is not of the form `type/subtype`.
    """

    uri: str
    name: str
    media_type: str | None = None
    description: str | None = None
    type: ClassVar[Literal["resource_link"]] = "resource_link"

    def __post_init__(self) -> None:
        object.__setattr__(self, "uri", _uri(self.uri, "uri"))
        object.__setattr__(self, "name", _name(self.name, "name"))
        if self.media_type is not None:
            object.__setattr__(self, "media_type", _media_type(self.media_type))
        if self.description is not None:
            object.__setattr__(self, "description", _name(self.description, "description"))


Part = Text | Json | Image | Document | ResourceLink
"""One piece of a rich result."""

_PARTS = frozenset((Text, Json, Image, Document, ResourceLink))


def as_parts(value: object) -> tuple[Part, ...] | None:
    """Return a result as parts, or `None` if it is plain data: no part, and no list or tuple with a part in it.

    Text among parts is a `Text`.

    Raises:
        EncodingError: Something else stands among parts: wrap it in `Json`.
    """
    kind = type(value)
    if kind in _PARTS:
        return (value,)  # type: ignore[return-value]  # its type is one of them
    if (kind is not list and kind is not tuple) or _PARTS.isdisjoint(map(type, value)):  # type: ignore[call-overload]
        return None
    return tuple(item if type(item) in _PARTS else _among(item) for item in value)  # type: ignore[attr-defined]


def _among(item: object) -> Text:
    if isinstance(item, str):
        return Text(item)
    raise EncodingError(f"{preview(item)} stands among parts: wrap data in Json, or text in Text")


def media_bytes(parts: tuple[Part, ...]) -> int:
    """Return how many bytes of images and documents travel with these parts, before base64."""
    sources = [part.source for part in parts if isinstance(part, Image | Document)]
    return sum(len(source.data) for source in sources if isinstance(source, Data))


def described(part: Part) -> str:
    """Return a part as text: its own, or in brackets what stands there, for a reader who can't be sent it (P5)."""
    match part:
        case Text() | Json():
            return part.text
        case Image():
            return f"[image: {_where(part.source)}]"
        case Document():
            return f"[document{_quoted(part.name)}: {_where(part.source)}]"
        case ResourceLink():
            kind = "" if part.media_type is None else f" ({part.media_type})"
            about = "" if part.description is None else f", {part.description}"
            return f"[resource{_quoted(part.name)}: {part.uri}{kind}{about}]"


def text_of(parts: tuple[Part, ...]) -> str:
    """Return all parts as text, a line each."""
    return "\n".join(map(described, parts))


def _quoted(name: str | None) -> str:
    return "" if name is None else f' "{name}"'


def _where(source: Data | Url) -> str:
    if isinstance(source, Data):
        return f"{source.media_type}, {len(source.data):,} bytes"
    return source.url if source.media_type is None else f"{source.url} ({source.media_type})"


def to_plain(part: Part) -> dict[str, Any]:
    """Return a part as JSON-ready data, bytes as base64."""
    match part:
        case Text() | Json():
            return {"type": part.type, "text": part.text}
        case Image():
            return {"type": part.type, **_plain_source(part.source)}
        case Document():
            return {"type": part.type, **_plain_source(part.source), "name": part.name}
        case ResourceLink():
            about = {"media_type": part.media_type, "description": part.description}
            return {"type": part.type, "uri": part.uri, "name": part.name, **about}


def from_plain(data: Mapping[str, Any]) -> Part:
    """Return the part that `to_plain` made this data of.

    Raises:
        InvalidInputError: It did not make it.
        InvalidTypeError: Likewise.
    """
    match data:
        case {"type": "text", "text": text}:
            return Text(text)
        case {"type": "json", "text": text}:
            return Json(None, encode=lambda _: _text(text, "text"))
        case {"type": "image"}:
            return Image(_source_of(data))
        case {"type": "document"}:
            return Document(_source_of(data), data.get("name"))
        case {"type": "resource_link", "uri": uri, "name": name}:
            return ResourceLink(uri, name, data.get("media_type"), data.get("description"))
        case _:
            raise InvalidInputError(
                f"{preview(data)} is no saved part; its type must be text, json, image, document or resource_link"
            )


def _source_of(data: Mapping[str, Any]) -> Data | Url:
    if "data" in data:
        return Data(data["data"], data.get("media_type") or "")
    return Url(data.get("url") or "", data.get("media_type"))


def _plain_source(source: Data | Url) -> dict[str, Any]:
    if isinstance(source, Data):
        return {"media_type": source.media_type, "data": source.base64}
    return {"media_type": source.media_type, "url": source.url}
