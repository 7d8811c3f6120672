"""What the closure answers. Named tuples: they are made on the hot path, where a dataclass costs twice as much."""

from typing import Any, Literal, NamedTuple

from ._calls import BatchHandle, ToolCall
from ._settlements import Settlement
from ._snapshots import RejectionReason, Snapshot

__all__ = ["Accepted", "Begun", "Rejected"]


class Begun(NamedTuple):
    """A batch has begun.

    Attributes:
        generation: Its number within the closure, from 1.
        handle: What every later operation on it must show.
        superseded: The closed snapshot of the batch that it replaced, if one was still open (C3).
        announced: Its calls as they were read, in order.
    """

    generation: int
    handle: BatchHandle
    superseded: Snapshot | None
    announced: tuple[ToolCall, ...]


class Accepted(NamedTuple):
    """The operation took effect.

    Attributes:
        generation: The batch's generation.
        call_id: The call.
        settlement: Its outcome; `None` for `start` and `progress`, which settle nothing.
    """

    generation: int
    call_id: str
    settlement: Settlement | None

    @property
    def accepted(self) -> Literal[True]:
        """Always true: how the two answers are told apart."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data in the conformance vectors' shape."""
        settlement = None if self.settlement is None else self.settlement.to_dict()
        return {"accepted": True, "generation": self.generation, "call_id": self.call_id, "settlement": settlement}


class Rejected(NamedTuple):
    """The operation lost an expected race and changed nothing.

    Attributes:
        reason: The first that holds of `stale_generation`, `run_closed`, `unknown_call`, `duplicate_settlement`; `seal`
            alone says `pending_calls` (C5).
        call_id: The call, where the operation names one.
        generation: The generation that the given handle spoke of, where it spoke of one.
        observed_status: What the report said: `success`, `error`, `cancelled`, `invalid` or `None`.
    """

    reason: RejectionReason
    call_id: str | None
    generation: int | None
    observed_status: str | None

    @property
    def accepted(self) -> Literal[False]:
        """Always false: how the two answers are told apart."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data in the conformance vectors' shape."""
        return {
            "accepted": False,
            "reason": self.reason,
            "call_id": self.call_id,
            "generation": self.generation,
            "observed_status": self.observed_status,
        }
