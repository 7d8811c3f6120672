"""What a batch looks like from outside: immutable, detached, in the order of announcement."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, NoReturn, final

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
    "View",
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


class View(NamedTuple):
    """What a snapshot has seen of a run; parallel by position, as the run holds it."""

    generation: int
    announced: tuple[ToolCall, ...]
    states: bytes
    started: bytes
    settlements: tuple[Settlement | None, ...]
    close_reason: CloseReason | None
    diagnostics: tuple[Diagnostic, ...]
    dropped: int


@final
class Snapshot:
    """A batch at one moment, immutable and detached (C12). Made by a closure only.

    Ten thousand calls are snapped in microseconds: the records in `calls` are built when they are first read.
    """

    __slots__ = ("_calls", "_view")
    _calls: tuple[CallSnapshot, ...] | None
    _view: View

    def __init__(self) -> None:
        raise InvalidTypeError("a Snapshot is made by a closure or a batch; it can't be constructed")

    @classmethod
    def of(cls, view: View) -> "Snapshot":
        """Make a snapshot. For the closure alone: what it did not make proves nothing, and is refused by exports."""
        self = object.__new__(cls)
        object.__setattr__(self, "_view", view)
        object.__setattr__(self, "_calls", None)
        return self

    @property
    def generation(self) -> int:
        """The batch's number within its closure, from 1."""
        return self._view.generation

    @property
    def closed(self) -> bool:
        """Whether every call has its outcome and the batch is frozen."""
        return self._view.close_reason is not None

    @property
    def close_reason(self) -> CloseReason | None:
        """Why the batch is closed; `None` while it is open."""
        return self._view.close_reason

    @property
    def calls(self) -> tuple[CallSnapshot, ...]:
        """The calls, in the order of their announcement."""
        if self._calls is None:
            rows = zip(self._view.announced, self._view.states, self._view.started, self._view.settlements, strict=True)
            built = tuple(CallSnapshot(call, _NAMES[state], bool(began), end) for call, state, began, end in rows)
            object.__setattr__(self, "_calls", built)
            return built
        return self._calls

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The first `Limits.max_diagnostics` rejections of this generation, up to the moment of the snapshot."""
        return self._view.diagnostics

    @property
    def diagnostics_dropped(self) -> int:
        """How many rejections were not kept."""
        return self._view.dropped

    def settled(self) -> Sequence[tuple[ToolCall, Settlement]]:
        """Return each settled call with its outcome, in order of announcement: what an export needs, and no more."""
        pairs = zip(self._view.announced, self._view.settlements, strict=True)
        return [(call, settlement) for call, settlement in pairs if settlement is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data in the conformance vectors' shape."""
        return {
            "generation": self._view.generation,
            "closed": self.closed,
            "close_reason": None if self._view.close_reason is None else self._view.close_reason.to_dict(),
            "calls": [call.to_dict() for call in self.calls],
            "diagnostics": [diagnostic.to_dict() for diagnostic in self._view.diagnostics],
            "diagnostics_dropped": self._view.dropped,
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
        settled = sum(state > State.RUNNING for state in self._view.states)
        status = self._view.close_reason.status if self._view.close_reason else "open"
        return f"<Snapshot of generation {self._view.generation}: {status}, {settled} of {len(self._view.states)} calls settled>"


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
