"""How a call can end. A union of small classes: no value says less or more than its own case.

What a case can't have it has as `None`, so that all of them can be asked alike.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ._parts import Part, to_plain

__all__ = ["Cancelled", "Closed", "Failed", "RichSucceeded", "Settlement", "SideEffectState", "Succeeded"]

SideEffectState = Literal["unknown", "not_started"]
"""What is known of a closed call's effects: nothing, or that its code was never entered (C10)."""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The tool answered.

    Attributes:
        content: Its text, or its value as compact JSON.
    """

    content: str
    parts: ClassVar[None] = None
    status: ClassVar[Literal["success"]] = "success"
    provenance: ClassVar[Literal["reported"]] = "reported"
    code: ClassVar[None] = None
    message: ClassVar[None] = None
    side_effect_state: ClassVar[None] = None
    partial: ClassVar[None] = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data in the conformance vectors' shape."""
        return {"status": "success", "content": self.content, "provenance": "reported"}


@dataclass(frozen=True, slots=True)
class RichSucceeded:
    """The tool answered in parts (P5).

    Attributes:
        parts: What it answered with, at least one part.
        content: The same as text, a line a part: what stands where the parts can't be sent.
    """

    parts: tuple[Part, ...]
    content: str
    status: ClassVar[Literal["success"]] = "success"
    provenance: ClassVar[Literal["reported"]] = "reported"
    code: ClassVar[None] = None
    message: ClassVar[None] = None
    side_effect_state: ClassVar[None] = None
    partial: ClassVar[None] = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data in the conformance vectors' shape, with the `parts` beside it."""
        parts = [to_plain(part) for part in self.parts]
        return {"status": "success", "content": self.content, "provenance": "reported", "parts": parts}


@dataclass(frozen=True, slots=True)
class _Reported:
    code: str
    message: str
    content: ClassVar[None] = None
    parts: ClassVar[None] = None
    side_effect_state: ClassVar[None] = None
    partial: ClassVar[None] = None


@dataclass(frozen=True, slots=True)
class Failed(_Reported):
    """The tool reported an error.

    Attributes:
        code: A short, stable code.
        message: What the model may read.
    """

    status: ClassVar[Literal["error"]] = "error"
    provenance: ClassVar[Literal["reported"]] = "reported"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data in the conformance vectors' shape."""
        return {"status": "error", "code": self.code, "message": self.message, "provenance": "reported"}


@dataclass(frozen=True, slots=True)
class Cancelled(_Reported):
    """The tool reported that it was cancelled.

    Attributes:
        code: A short, stable code.
        message: What the model may read.
    """

    status: ClassVar[Literal["cancelled"]] = "cancelled"
    provenance: ClassVar[Literal["reported"]] = "reported"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data in the conformance vectors' shape."""
        return {"status": "cancelled", "code": self.code, "message": self.message, "provenance": "reported"}


@dataclass(frozen=True, slots=True)
class Closed:
    """We closed the call; the tool had not answered. It never claims that work stopped or was undone (C10).

    Attributes:
        status: `error` or `cancelled`.
        code: Why, such as `timeout` or `superseded`.
        message: What the model may read.
        side_effect_state: `not_started` if the tool's code was never entered, else `unknown`.
        partial: What the tool had reported so far, bounded, or `None` (B19).
    """

    status: Literal["error", "cancelled"]
    code: str
    message: str
    side_effect_state: SideEffectState
    partial: str | None = None
    content: ClassVar[None] = None
    parts: ClassVar[None] = None
    provenance: ClassVar[Literal["synthetic"]] = "synthetic"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data in the conformance vectors' shape; `partial` only where there is some."""
        data = {
            "status": self.status,
            "code": self.code,
            "message": self.message,
            "provenance": "synthetic",
            "side_effect_state": self.side_effect_state,
        }
        return data if self.partial is None else {**data, "partial": self.partial}


Settlement = Succeeded | RichSucceeded | Failed | Cancelled | Closed
"""A call's one terminal outcome: reported by the tool (all but the last) or synthetic (`Closed`)."""
