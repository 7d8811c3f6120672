"""What a batch looks like from outside: immutable, detached, in the order of announcement."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, final

from ._calls import ToolCall
from ._errors import InvalidInputError, InvalidTypeError
from ._settlements import Settlement, SideEffectState
from ._table import State

__all__ = [
    "CallSnapshot",
    "CallState",
    "CloseReason",
    "CloseStatus",
    "Diagnostic",
    "RejectionReason",
    "Snapshot",
    "require_closed",
]

CloseStatus = Literal["error", "cancelled"]
"""What a close can make of pending calls."""

CallState = Literal["pending", "success", "error", "cancelled"]

RejectionReason = Literal["stale_generation", "run_closed", "unknown_call", "duplicate_settlement", "pending_calls"]
"""Why an operation changed nothing, in the order in which the reasons are checked (C5)."""

_NAMES: tuple[CallState, ...] = ("pending", "pending", "success", "error", "cancelled")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A rejected operation, kept for whoever looks for the cause (C13).

    Attributes:
        reason: Why it was rejected.
        call_id: The call that was named, or `None` where the operation names none.
        generation: The generation that the given handle spoke of, where it spoke of one.
        observed_status: What the late report said: `success`, `error`, `cancelled`, `invalid` or `None`.
    """

    reason: RejectionReason
    call_id: str | None
    generation: int | None
    observed_status: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return {
            "reason": self.reason,
            "call_id": self.call_id,
            "generation": self.generation,
            "observed_status": self.observed_status,
        }


@dataclass(frozen=True, slots=True)
class CloseReason:
    """Why a batch is closed.

    Attributes:
        status: `complete` when every call was settled before, else what the pending calls became.
        code: The pending calls' code; `None` when complete.
        message: The pending calls' message; `None` when complete.
        side_effect_state: `unknown` if any closed call may have begun, else `not_started`; `None` when complete.
    """

    status: Literal["complete", "error", "cancelled"]
    code: str | None = None
    message: str | None = None
    side_effect_state: SideEffectState | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        if self.status == "complete":
            return {"status": "complete"}
        return {
            "status": self.status,
            "code": self.code,
            "message": self.message,
            "side_effect_state": self.side_effect_state,
        }


@dataclass(frozen=True, slots=True)
class CallSnapshot:
    """One call as a snapshot saw it.

    Attributes:
        call: The call as it was announced.
        state: `pending`, `success`, `error` or `cancelled`.
        started: Whether its execution is known to have begun.
        settlement: Its outcome; `None` while it is pending.
    """

    call: ToolCall
    state: CallState
    started: bool
    settlement: Settlement | None

    @property
    def id(self) -> str:
        """The call's id."""
        return self.call.id

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.call.name

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data in the conformance vectors' shape."""
        settlement = None if self.settlement is None else self.settlement.to_dict()
        return {"id": self.id, "name": self.name, "state": self.state, "settlement": settlement}


@final
class Snapshot:
    """A batch at one moment, immutable and detached (C12). Made by a closure only.

    Ten thousand calls are snapped in microseconds: the records in `calls` are built when they are first read.
    """

    __slots__ = (
        "_announced", "_calls", "_close_reason", "_diagnostics", "_dropped", "_generation", "_settlements", "_started", "_states",
    )  # fmt: skip
    _announced: tuple[ToolCall, ...]
    _calls: tuple[CallSnapshot, ...] | None
    _close_reason: CloseReason | None
    _diagnostics: tuple[Diagnostic, ...]
    _dropped: int
    _generation: int
    _settlements: tuple[Settlement | None, ...]
    _started: bytes
    _states: bytes

    def __init__(self) -> None:
        raise InvalidTypeError("a Snapshot is made by a closure or a batch; it can't be constructed")

    @classmethod
    def of(
        cls,
        *,
        generation: int,
        announced: tuple[ToolCall, ...],
        states: bytes,
        started: bytes,
        settlements: tuple[Settlement | None, ...],
        close_reason: CloseReason | None,
        diagnostics: tuple[Diagnostic, ...],
        dropped: int,
    ) -> "Snapshot":
        """Make a snapshot. For the closure alone: what it did not make proves nothing, and is refused by exports."""
        self = object.__new__(cls)
        fill = object.__setattr__
        fill(self, "_generation", generation)
        fill(self, "_announced", announced)
        fill(self, "_states", states)
        fill(self, "_started", started)
        fill(self, "_settlements", settlements)
        fill(self, "_close_reason", close_reason)
        fill(self, "_diagnostics", diagnostics)
        fill(self, "_dropped", dropped)
        fill(self, "_calls", None)
        return self

    @property
    def generation(self) -> int:
        """The batch's number within its closure, from 1."""
        return self._generation

    @property
    def closed(self) -> bool:
        """Whether every call has its outcome and the batch is frozen."""
        return self._close_reason is not None

    @property
    def close_reason(self) -> CloseReason | None:
        """Why the batch is closed; `None` while it is open."""
        return self._close_reason

    @property
    def calls(self) -> tuple[CallSnapshot, ...]:
        """The calls, in the order of their announcement."""
        if self._calls is None:
            rows = zip(self._announced, self._states, self._started, self._settlements, strict=True)
            built = tuple(CallSnapshot(call, _NAMES[state], bool(began), end) for call, state, began, end in rows)
            object.__setattr__(self, "_calls", built)
            return built
        return self._calls

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The first `Limits.max_diagnostics` rejections of this generation, up to the moment of the snapshot."""
        return self._diagnostics

    @property
    def diagnostics_dropped(self) -> int:
        """How many rejections were not kept."""
        return self._dropped

    def settled(self) -> Sequence[tuple[ToolCall, Settlement]]:
        """Return each settled call with its outcome, in order of announcement: what an export needs, and no more."""
        pairs = zip(self._announced, self._settlements, strict=True)
        return [(call, settlement) for call, settlement in pairs if settlement is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data in the conformance vectors' shape."""
        return {
            "generation": self._generation,
            "closed": self.closed,
            "close_reason": None if self._close_reason is None else self._close_reason.to_dict(),
            "calls": [call.to_dict() for call in self.calls],
            "diagnostics": [diagnostic.to_dict() for diagnostic in self._diagnostics],
            "diagnostics_dropped": self._dropped,
        }

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Snapshot is immutable; {name} can't be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Snapshot is immutable; {name} can't be deleted")

    def __copy__(self) -> "Snapshot":
        return self

    def __deepcopy__(self, memo: object) -> "Snapshot":
        return self

    def __reduce__(self) -> NoReturn:
        raise InvalidTypeError("a Snapshot can't be pickled, since a copy proves nothing; store its to_dict()")

    def __repr__(self) -> str:
        settled = sum(state > State.RUNNING for state in self._states)
        status = self._close_reason.status if self._close_reason else "open"
        return f"<Snapshot of generation {self._generation}: {status}, {settled} of {len(self._states)} calls settled>"


def require_closed(snapshot: object) -> Snapshot:
    """Return `snapshot` if it is a closed one made here; nothing of it is read before that is known (C15).

    Raises:
        InvalidTypeError: It is not a snapshot made here.
        InvalidInputError: It is open: some calls have no outcome yet.
    """
    if type(snapshot) is not Snapshot:  # isinstance() would read the object's __class__
        raise InvalidTypeError(f"only a Snapshot can be exported, not an object of type {type(snapshot).__name__}")
    try:
        closed = snapshot.closed
    except AttributeError:
        raise InvalidTypeError(
            "only a Snapshot made by a closure or a batch can be exported, not an empty one"
        ) from None
    if not closed:
        raise InvalidInputError(f"{snapshot!r} can't be exported: close or seal the batch first")
    return snapshot
