"""Text with a bound: what is measured in UTF-8 bytes is checked or cut here and nowhere else."""

from ._errors import InvalidInputError, InvalidTypeError

__all__ = ["byte_length", "cut", "exact", "preview", "require_text", "sound"]

_ELLIPSIS = "..."


def exact(text: str) -> str:
    """Return `text` as a plain `str`, so that a subclass's methods can't run later."""
    return text if type(text) is str else str.__str__(text)


def byte_length(text: str) -> int:
    """Return the number of UTF-8 bytes in `text`.

    Raises:
        UnicodeEncodeError: The text has a lone surrogate.
    """
    return len(text) if text.isascii() else len(text.encode())


def sound(text: str) -> str:
    """Return `text` with every lone surrogate replaced by U+FFFD, since no provider can be sent one."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def cut(text: str, max_bytes: int) -> str:
    """Return `text` in at most `max_bytes` bytes, cut on a character boundary, with `...` where that fits (C8)."""
    if len(text) * 4 <= max_bytes and text.isascii():
        return text
    encoded = sound(text).encode()
    if len(encoded) <= max_bytes:
        return encoded.decode()
    ending = _ELLIPSIS if max_bytes >= len(_ELLIPSIS) else ""
    return encoded[: max_bytes - len(ending)].decode(errors="ignore") + ending


def preview(value: object, max_chars: int = 80) -> str:
    """Return a bounded `repr` for an error message; a `repr` that raises gives the type's name."""
    try:
        text = exact(repr(value))
    except Exception:  # noqa: BLE001  hostile values must not replace the error that is being reported
        text = f"<{type(value).__name__}>"
    return text if len(text) <= max_chars else f"{text[:max_chars]}..."


def require_text(value: object, what: str, max_bytes: int) -> str:
    """Return `value` as a plain, non-blank `str` of at most `max_bytes` bytes.

    Raises:
        InvalidTypeError: It is not a `str`.
        InvalidInputError: It is blank, too long, or has a lone surrogate.
    """
    if type(value) is str and 0 < len(value) <= max_bytes and value.isascii() and not value.isspace():
        return value  # nearly all ids and names there are; the rest is looked at more closely
    if not isinstance(value, str):
        raise InvalidTypeError(f"{what} must be a str, not {preview(value)}")
    text = exact(value)
    if not text.strip():
        raise InvalidInputError(f"{what} must not be blank, as {text!r} is")
    try:
        size = byte_length(text)
    except UnicodeEncodeError:
        raise InvalidInputError(f"{what} {preview(text)} has a lone surrogate, which is not text") from None
    if size > max_bytes:
        raise InvalidInputError(f"{what} {preview(text)} has {size} bytes, more than the limit of {max_bytes}")
    return text
