"""Bounds on what a closure accepts and keeps."""

from dataclasses import dataclass, fields

from ._errors import InvalidInputError, InvalidTypeError
from ._text import preview

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on one closure; bytes are UTF-8 bytes (C1).

    Attributes:
        max_calls: Calls in one batch.
        max_diagnostics: Rejections remembered in one generation; the rest are counted.
        max_result_bytes: A success's text. More raises, and the call stays pending.
        max_media_bytes: All images and documents of a success, before base64. More raises, and the call stays pending.
        max_message_bytes: An error's or a cancellation's message, and reported progress. More is cut.
        max_id_bytes: A call id. More raises.
        max_name_bytes: A tool name. More raises.
        max_code_bytes: A code that the caller gives. More raises; built-in codes are exempt.

    Raises:
        InvalidTypeError: A bound is not an int (a bool is not an int here).
        InvalidInputError: A bound is less than 1.
    """

    max_calls: int = 1000
    max_diagnostics: int = 100
    max_result_bytes: int = 1_048_576
    max_media_bytes: int = 20_971_520
    max_message_bytes: int = 4096
    max_id_bytes: int = 512
    max_name_bytes: int = 512
    max_code_bytes: int = 128

    def __post_init__(self) -> None:
        for field in fields(self):
            bound = getattr(self, field.name)
            if type(bound) is not int:
                raise InvalidTypeError(f"{field.name} must be a positive int, not {preview(bound)}")
            if bound < 1:
                raise InvalidInputError(f"{field.name} must be at least 1, not {preview(bound)}")
