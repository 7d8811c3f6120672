"""From faults to what is to be done: which results go where, which are folded, closed, left out or delivered.

The plan knows no lane. A lane carries it out, since only the lane knows what a message is.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ._faults import Fault, IsClose, recorded, violation
from ._findings import Action, Form, Repair, Violation
from ._matching import NOWHERE, Call, Result, Turn

__all__ = [
    "Batch",
    "Close",
    "Note",
    "Options",
    "Plan",
    "Slot",
    "delivered",
    "fill",
    "fold_in_place",
    "leave_out",
    "mend_turn",
    "report",
]


@dataclass(frozen=True, slots=True)
class Close:
    """What a call without a recorded result is answered with.

    Attributes:
        text: What the model reads.
        failed: Whether it carries the lane's error mark.
        known: Whether it is a batch's own outcome, and not a close of ours.
    """

    text: str
    failed: bool = True
    known: bool = False


@dataclass(slots=True)
class Slot:
    """One call's one answer: its results, folded if there are several, or a close."""

    call: Call
    results: list[Result]
    close: Close | None = None


@dataclass(slots=True)
class Batch:
    """The answers of one turn, in call order, to be put in front of the message at index `at`."""

    turn: Turn
    slots: list[Slot]
    at: int


@dataclass(frozen=True, slots=True)
class Note:
    """A late result that becomes new content where it stands, since its turn was sent already (B20)."""

    call: Call
    result: Result


@dataclass(slots=True)
class Plan:
    """What a lane has to carry out.

    Attributes:
        turns: Turns whose own content changes: calls moved to the end, repeated ones left out.
        batches: Results to be put behind their turn.
        in_place: Calls whose results are folded where the first one stands: asynchronous ones have no home.
        taken: Results that leave their place, because they are in a batch, folded, void or orphans.
        notes: Results that become new content.
        repairs: What to report.
        remaining: Faults in what was sent, left alone.
    """

    turns: list[Turn] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    in_place: list[Slot] = field(default_factory=list)
    taken: list[Result] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    remaining: list[Violation] = field(default_factory=list)

    @property
    def lossy(self) -> bool:
        """Whether recorded content is left out: a repeated call, or a result that answers none."""
        return any(repair.form in ("duplicate_call", "orphan_result") for repair in self.repairs)


@dataclass(frozen=True, slots=True)
class Options:
    """What the plan depends on beside the faults.

    Attributes:
        is_close: The lane's reading of a close.
        close: What to answer an unanswered call with.
        home: The object that stands for a call's message in `prior`.
        prior: The identities of messages that stood before this run (L5).
        spared: The number of the turn whose unanswered calls stay open.
        sent: How many messages were sent already and stay as they are.
        border: The index of the turn whose results may still follow the last message that was sent.
        reaches: Whether a result behind what was sent still answers a call that was, wherever that stands.
    """

    is_close: IsClose
    close: Callable[[Call], Close]
    home: Callable[[Call], object]
    prior: Collection[int] = ()
    spared: int = NOWHERE
    sent: int = 0
    border: int | None = None
    reaches: Callable[[Call], bool] = lambda _: False


def mend_turn(plan: Plan, turn: Turn, found: Sequence[Fault], options: Options) -> None:
    """Plan the repair of one turn that may be changed: each call once, at the end, and one result each right behind."""
    forms = {fault.form for fault in found}
    if forms & {"trailing_text", "duplicate_call"}:
        plan.turns.append(turn)
    if forms & {"late_result", "duplicate_result", "missing_result"}:
        slots = []
        for call in turn.calls:
            if call.required:
                slot = fill(turn, call, call.results, options)
                if slot is not None:
                    slots.append(slot)
                    plan.taken += call.results
            elif len(call.results) > 1:
                fold_in_place(plan, call, call.results, options)
        plan.batches.append(Batch(turn, slots, turn.end))
    for fault in found:
        report(plan, fault, options)


def fill(turn: Turn, call: Call, results: list[Result], options: Options) -> Slot | None:
    """Return the one answer of a call; `None` where it has none and stays open."""
    if results:
        return Slot(call, recorded(results, options.is_close))
    return None if turn.number == options.spared else Slot(call, [], options.close(call))


def fold_in_place(plan: Plan, call: Call, results: list[Result], options: Options) -> None:
    """Fold results where the first of them stands."""
    kept = recorded(results, options.is_close)
    plan.in_place.append(Slot(call, kept))
    plan.taken += [result for result in results if result is not kept[0]]


def leave_out(plan: Plan, orphans: list[Result]) -> None:
    """Plan to leave out results that answer no call."""
    plan.taken += orphans
    fault = Fault("orphan_result", orphans[0].position, None, [], orphans)
    plan.repairs.append(_done(fault, "left_out", "left out"))


def report(plan: Plan, fault: Fault, options: Options) -> None:
    """Add what is done about a fault, apart for what differs in the account: closed or filled in, before this run or not."""
    if fault.form != "missing_result":
        action, words = _WORDS[fault.form]
        plan.repairs.append(_done(fault, action, words))
        return
    groups: dict[tuple[bool, bool], list[Call]] = {}
    for call in fault.calls:
        before = id(options.home(call)) in options.prior
        groups.setdefault((options.close(call).known, before), []).append(call)
    for (known, before), calls in groups.items():
        part = Fault(fault.form, fault.position, fault.turn, calls)
        words = "answered with the batch's own outcome" if known else "closed as interrupted"
        repair = _done(part, "filled" if known else "closed", words)
        plan.repairs.append(replace(repair, before_run=before) if before else repair)


def delivered(plan: Plan, fault: Fault) -> None:
    """Add that results of a turn that was sent become new content."""
    plan.repairs.append(_done(fault, "delivered", "delivered as new content, since the turn was sent already"))


_WORDS: Final[dict[Form, tuple[Action, str]]] = {
    "trailing_text": ("moved", "put in front of the calls"),
    "late_result": ("moved", "moved right behind its call"),
    "duplicate_result": ("folded", "folded into one"),
    "duplicate_call": ("left_out", "left out, the first one stays"),
}


def _done(fault: Fault, action: Action, words: str) -> Repair:
    found = violation(fault)
    return Repair(found.form, found.call_ids, found.position, found.positions, f"{found.text}: {words}", action)
