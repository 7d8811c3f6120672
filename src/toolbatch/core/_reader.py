"""Reading what a caller reports or asks for. Any of this may run the caller's code; none of it changes the state."""

from collections.abc import Mapping
from typing import Any, TypeVar

from ._encode import Encoder
from ._errors import EncodingError, InvalidInputError, InvalidTypeError
from ._limits import Limits
from ._parts import as_parts, media_bytes, text_of
from ._settlements import Cancelled, Failed, RichSucceeded, Settlement, SideEffectState, Succeeded
from ._snapshots import CloseStatus
from ._text import byte_length, cut, exact, preview, require_text

__all__ = ["CANCELLED_MESSAGE", "Reader", "observe", "require_side_effects"]

_Word = TypeVar("_Word", bound=str)

CANCELLED_MESSAGE = "Tool call was cancelled."
_REPORTED_MESSAGE = {"error": "Tool call failed.", "cancelled": CANCELLED_MESSAGE}
_CLOSED_MESSAGE = {"error": "Tool call did not complete.", "cancelled": CANCELLED_MESSAGE}


def _one_of(value: object, *words: _Word) -> _Word | None:
    """Return the word that `value` is, as ours: a subclass's `__eq__` must not choose, and its methods must not run later."""
    if not isinstance(value, str):
        return None
    text = exact(value)
    return next((word for word in words if word == text), None)


def observe(outcome: object) -> str | None:
    """Return the status that an outcome claims, `invalid` for one that there isn't, `None` for none (C5)."""
    status = outcome.get("status") if isinstance(outcome, Mapping) else None
    if status is None:
        return None
    return _one_of(status, "success", "error", "cancelled") or "invalid"


def require_side_effects(side_effect_state: object) -> SideEffectState | None:
    """Return the side-effect state, or raise `InvalidInputError` for one that there isn't (C10)."""
    known: SideEffectState | None = _one_of(side_effect_state, "unknown", "not_started")
    if known is None and side_effect_state is not None:
        raise InvalidInputError(
            f"side_effect_state must be unknown, not_started or None, not {preview(side_effect_state)}"
        )
    return known


class Reader:
    """Reads content, messages and codes within one closure's limits, through its encoder."""

    __slots__ = ("_max_result_bytes", "encode", "limits")

    def __init__(self, limits: Limits, encode: Encoder) -> None:
        self.limits = limits
        self.encode = encode
        self._max_result_bytes = limits.max_result_bytes

    def outcome(self, outcome: Mapping[str, Any]) -> Settlement:
        """Return the reported settlement that a mapping describes."""
        if not isinstance(outcome, Mapping):
            raise InvalidTypeError(f"outcome must be a mapping with a status, not {preview(outcome)}")
        status = observe(outcome)
        if status == "success":
            if "content" not in outcome:
                raise InvalidInputError("a success needs content; None is a value, a missing one is not")
            return self.success(outcome["content"])
        if status not in ("error", "cancelled"):
            raise InvalidInputError(
                f"outcome.status must be success, error or cancelled, not {preview(outcome.get('status'))}"
            )
        code = self.code(outcome.get("code"), status)
        message = self.message(outcome.get("message"), _REPORTED_MESSAGE[status])
        return Failed(code, message) if status == "error" else Cancelled(code, message)

    def success(self, content: object) -> Succeeded | RichSucceeded:
        """Return a success: text as it is, parts as parts (P5), anything else encoded (C7)."""
        if type(content) is str:
            return Succeeded(self._bounded(content))
        parts = as_parts(content)
        if parts is None:
            return Succeeded(self._bounded(self._text(content)))
        size, limit = media_bytes(parts), self.limits.max_media_bytes
        if size > limit:
            raise EncodingError(f"the result's media have {size} bytes, more than max_media_bytes, which is {limit}")
        return RichSucceeded(parts, self._bounded(text_of(parts)))

    def _bounded(self, text: str) -> str:
        limit = self._max_result_bytes
        if len(text) * 4 <= limit and text.isascii():
            return text
        try:
            size = byte_length(text)
        except UnicodeEncodeError:
            raise EncodingError(f"the result {preview(text)} has a lone surrogate, which no provider accepts") from None
        if size > limit:
            raise EncodingError(f"the result has {size} bytes, more than max_result_bytes, which is {limit}")
        return text

    def message(self, message: object, default: str) -> str:
        """Return a message cut to its limit; an exception gives its message and nothing else (C8)."""
        if message is None:
            message = default
        text = message if type(message) is str else exact(str(message))
        return cut(text, self.limits.max_message_bytes)

    def report(self, content: object) -> str:
        """Return a progress report as text, cut to a message's limit (B19)."""
        return cut(self._text(content), self.limits.max_message_bytes)

    def _text(self, content: object) -> str:
        text: object = exact(content) if isinstance(content, str) else self.encode(content)
        if type(text) is not str:
            raise EncodingError(f"the encoder must return a str, not {preview(text)}")
        return text

    def code(self, code: str | None, default: str) -> str:
        """Return a code within its limit; built-in defaults stay whole under any limit (C8)."""
        return default if code is None else require_text(code, "code", self.limits.max_code_bytes)

    def closing(
        self, status: object, code: str | None, message: str | None, side_effect_state: object
    ) -> tuple[CloseStatus, str, str, SideEffectState | None]:
        """Return status, code, message and side-effect state of a close (C9)."""
        known: CloseStatus | None = _one_of(status, "error", "cancelled")
        if known is None:
            raise InvalidInputError(f"a close status must be error or cancelled, not {preview(status)}")
        effects = require_side_effects(side_effect_state)
        return known, self.code(code, known), self.message(message, _CLOSED_MESSAGE[known]), effects
