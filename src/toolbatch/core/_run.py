"""The active batch as the closure holds it: the only place where a call's state is assigned."""

from dataclasses import replace
from typing import Final

from ._calls import BatchHandle, ToolCall
from ._settlements import Closed, Settlement, SideEffectState
from ._snapshots import CloseReason, CloseStatus, Diagnostic, Snapshot, View
from ._table import LATE, ROWS, Input, State
from ._text import byte_length, cut

__all__ = ["CLOSES", "NO_RUN", "Run"]

CLOSES: dict[CloseStatus, Input] = {"error": Input.CLOSE_ERROR, "cancelled": Input.CLOSE_CANCELLED}


_RUNNING: Final = int(State.RUNNING)
_LAST_REPORT: Final = int(Input.CANCEL)


def _column(event: Input) -> bytes:
    """Where each state goes by one input, for all 256 bytes; a late one stays."""
    return bytes(state if ROWS[state][event] is LATE else ROWS[state][event] or 0 for state in State).ljust(256, b"\0")


def _number(many: bytes | bytearray) -> int:
    """Return bytes as one number: the operations of Python's integers work on ten thousand calls at once."""
    return int.from_bytes(many, "big")


_STARTED: Final = _column(Input.START)
_PENDING: Final = bytes(ROWS[state][Input.START] is not LATE for state in State).ljust(256, b"\0")
_FULL: Final = b"\x00\xff".ljust(256, b"\0")
_CLOSED: Final = {status: _column(event) for status, event in CLOSES.items()}


class Run:
    """One generation. Parallel arrays by position: a call costs two bytes and a slot until someone looks at it.

    Nothing here runs the caller's code, so whatever a method does, it does whole.
    """

    close_reason: CloseReason | None = None
    dropped = 0  # diagnostics that found no room
    snapshot: Snapshot | None = None  # the last view, while nothing has changed since

    def __init__(self, generation: int, announced: tuple[ToolCall, ...]) -> None:
        count = len(announced)
        self.generation = generation
        self.handle = BatchHandle(generation)
        self.announced = announced
        self.positions = {call.id: position for position, call in enumerate(announced)}
        self.states = bytearray(count)  # invariant: states[i] > RUNNING exactly when settlements[i] is set
        self.started = bytearray(count)  # invariant: 1 once the call's execution is known to have begun
        self.settlements: list[Settlement | None] = [None] * count
        self.pending = count  # invariant: the number of states that are not final
        self.partials: dict[int, list[str]] = {}
        self.holds: dict[
            int, tuple[str, int]
        ] = {}  # and how many bytes a message may have; of calls that wait for the host: what their closing must say first
        self.diagnostics: list[Diagnostic] = []

    def move(self, position: int, event: Input, settlement: Settlement | None) -> bool:
        """Move one call by its table, and return whether it moved: False says that its outcome stands.

        `settlement` is given exactly when `event` leads to a final state.
        """
        cell = ROWS[self.states[position]][event]
        if cell is LATE:
            return False
        self.states[position] = cell
        self.snapshot = None
        if event <= _LAST_REPORT:
            self.started[position] = 1  # whatever the tool reports, it has begun
        if settlement is not None:
            self.settlements[position] = settlement
            self.pending -= 1
        return True

    def begun(self, began: bytes) -> None:
        """Take note of which calls run, a byte each in order of announcement; where a call has its outcome, that stands."""
        count = len(began)
        chosen = _number(began.translate(_FULL))
        states = _number(self.states)
        moved = _number(self.states.translate(_STARTED))
        pending = _number(self.states.translate(_PENDING))
        self.started = bytearray((_number(self.started) | (_number(began) & pending)).to_bytes(count, "big"))
        self.states = bytearray(((moved & chosen) | (states & ~chosen)).to_bytes(count, "big"))
        self.snapshot = None

    def close(self, status: CloseStatus, code: str, message: str, side_effect_state: SideEffectState | None) -> None:
        """Give every pending call a synthetic outcome and freeze the run. `None` says what is known of each call."""
        # Pending calls share two settlements and move all at once: with ten thousand of them, a loop that asked the table
        # for each would take most of the 5 ms that a deadline has.
        unknown = Closed(status, code, message, "unknown")
        not_started = Closed(status, code, message, "not_started")
        if side_effect_state is not None:
            unknown = not_started = replace(unknown, side_effect_state=side_effect_state)
        by_start = (not_started, unknown)
        special = [position for position in {*self.partials, *self.holds} if self.settlements[position] is None]
        settlements: list[Settlement | None] = [
            end or by_start[began] for end, began in zip(self.settlements, self.started, strict=True)
        ]
        uncertain = any(end is unknown for end in settlements)
        for position in special:
            settlements[position] = self.closed(position, by_start[self.started[position]])
        self.settlements = settlements
        self.states = self.states.translate(_CLOSED[status])
        self.pending = 0
        overall = side_effect_state or ("unknown" if uncertain else "not_started")
        self.close_reason = CloseReason(status, code, message, overall)
        self.snapshot = None

    def seal(self) -> None:
        """Freeze the run; every call is settled."""
        self.close_reason = CloseReason("complete")
        self.snapshot = None

    def known(self, position: int) -> SideEffectState:
        """What is known of a call's side effects if it is closed now (C10)."""
        return "unknown" if self.started[position] else "not_started"

    def keep_partial(self, position: int, text: str, max_bytes: int) -> None:
        """Add a progress report; the oldest go when they exceed `max_bytes` together with the breaks between them."""
        kept = self.partials.setdefault(position, [])
        kept.append(text)
        while len(kept) > 1 and sum(map(byte_length, kept)) + len(kept) - 1 > max_bytes:
            del kept[0]

    def closed(self, position: int, closed: Closed) -> Closed:
        """Return a call's synthetic outcome with what is kept of it: its progress, a report a line, and what it waited for."""
        partial = "\n".join(self.partials.get(position, ())) or None
        message = closed.message
        if position in self.holds:
            reason, max_bytes = self.holds[position]
            message = cut(f"{reason} {message}", max_bytes)
        return replace(closed, partial=partial, message=message)

    def note(self, diagnostic: Diagnostic, max_diagnostics: int) -> None:
        """Keep a rejection, or count it once there are enough (C13)."""
        if self is NO_RUN:
            return  # nobody can look at it
        if len(self.diagnostics) < max_diagnostics:
            self.diagnostics.append(diagnostic)
        else:
            self.dropped += 1
        self.snapshot = None

    def view(self) -> Snapshot:
        """Return the run as it stands; the same object while nothing has changed."""
        if self.snapshot is None:
            self.snapshot = Snapshot.of(
                View(
                    self.generation,
                    self.announced,
                    bytes(self.states),
                    bytes(self.started),
                    tuple(self.settlements),
                    self.close_reason,
                    tuple(self.diagnostics),
                    self.dropped,
                )
            )
        return self.snapshot


NO_RUN = Run(0, ())
"""What every closure holds before its first batch: closed, without calls, and with a handle that nobody has."""
NO_RUN.seal()
