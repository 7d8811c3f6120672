"""From faults to what is to be done: which results go where, which are folded, closed, left out or delivered.

The plan knows no lane. A lane carries it out, since only the lane knows what a message is.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ._faults import Fault, IsClose, recorded
from ._findings import Action, Form, Repair, Violation
from ._matching import NOWHERE, Call, Result, Turn

__all__ = [
    "Batch",
    "Close",
    "Note",
    "Options",
    "Place",
    "Plan",
    "delivered",
    "fill",
    "fold_in_place",
    "leave_out",
    "mend_turn",
    "report",
    "voided",
]


Place = tuple[int, int]
"""Where a result stands: the index of its message, and its place within it."""


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


class Batch(NamedTuple):
    """The answers of one turn, in call order, to be put in front of the message at index `at`.

    Attributes:
        position: The index of the turn's message.
        answers: The results, ready to be put in: the very objects, folds, closes.
        at: Where they belong.
        places: Where they were: position and index of each.
    """

    position: int
    answers: list[Any]
    at: int
    places: list[Place]


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
        in_place: What stands for a result where it stands: the fold of an asynchronous call's, which has no home.
        taken: Places of results that leave them, because they are in a batch, folded, void or orphans.
        notes: Results that become new content.
        repairs: What to report.
        remaining: Faults in what was sent, left alone.
        lossy: Whether recorded content is left out: a repeated call, a result that answers none, what a fold has no room for.
    """

    turns: list[Turn] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    in_place: dict[Place, Any] = field(default_factory=dict)
    taken: list[Place] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    remaining: list[Violation] = field(default_factory=list)
    lossy: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """What the plan depends on beside the faults.

    Attributes:
        is_close: The lane's reading of a close.
        loses: Whether the lane's fold of some results has no room for all of them.
        folded: How the lane makes one result of some.
        closed: How the lane writes a close.
        close: What to answer an unanswered call with.
        home: The object that stands for a call's message in `prior`.
        prior: The identities of messages that stood before this run (L5).
        spared: The number of the turn whose unanswered calls stay open.
        sent: How many messages were sent already and stay as they are.
        border: The index of the turn whose results may still follow the last message that was sent.
        reaches: Whether a result behind what was sent still answers a call that was, wherever that stands.
    """

    is_close: IsClose
    loses: Callable[[list[Result]], bool]
    folded: Callable[[list[Result]], Any]
    closed: Callable[[Call, Close], Any]
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
        plan.lossy |= "duplicate_call" in forms
    if forms & {"late_result", "duplicate_result", "missing_result"}:
        batch = Batch(turn.position, [], turn.end, [])
        for call in turn.calls:
            if call.required:
                fill(plan, batch, call, call.results, options, spared=turn.number == options.spared)
            elif len(call.results) > 1:
                fold_in_place(plan, call.results, options)
        plan.batches.append(batch)
    for fault in found:
        report(plan, fault, options)


def fill(
    plan: Plan, batch: Batch, call: Call, results: list[Result], options: Options, *, spared: bool = False
) -> None:
    """Put the one answer of a call into a batch; none where it has no result and stays open."""
    if not results:
        if not spared:
            batch.answers.append(options.closed(call, options.close(call)))
        return
    kept = recorded(results, options.is_close)
    plan.lossy |= options.loses(kept)
    batch.answers.append(options.folded(kept))
    places = [(result.position, result.index) for result in results]
    batch.places.extend(places)
    plan.taken += places


def fold_in_place(plan: Plan, results: list[Result], options: Options) -> None:
    """Fold results where the first of them that counts stands."""
    kept = recorded(results, options.is_close)
    plan.lossy |= options.loses(kept)
    plan.in_place[kept[0].position, kept[0].index] = options.folded(kept)
    plan.taken += [(result.position, result.index) for result in results if result is not kept[0]]


def leave_out(plan: Plan, orphans: list[Result]) -> None:
    """Plan to leave out results that answer no call."""
    plan.taken += [(result.position, result.index) for result in orphans]
    plan.lossy = True
    fault = Fault("orphan_result", orphans[0].position, None, [], orphans)
    plan.repairs.append(_done(fault, "left_out"))


def report(plan: Plan, fault: Fault, options: Options) -> None:
    """Add what is done about a fault, apart for what differs in the account: closed or filled in, before this run or not."""
    if len(fault.calls) == 1:
        action, before = _account(fault, fault.calls[0], options)
        plan.repairs.append(_done(fault, action, before_run=before))
        return
    groups: dict[tuple[Action, bool], list[Call]] = {}
    for call in fault.calls:
        groups.setdefault(_account(fault, call, options), []).append(call)
    for (action, before), calls in groups.items():
        results = fault.results if len(groups) == 1 else [result for call in calls for result in call.results]
        plan.repairs.append(
            _done(Fault(fault.form, fault.position, fault.turn, calls, results), action, before_run=before)
        )


def _account(fault: Fault, call: Call, options: Options) -> tuple[Action, bool]:
    """Return what is done about a call, and whether it is a missing result that stood before this run."""
    if fault.form == "missing_result":
        action: Action = "filled" if options.close(call).known else "closed"
        return action, id(options.home(call)) in options.prior
    if fault.form == "duplicate_result":
        return "folded" if len(recorded(call.results, options.is_close)) > 1 else "voided", False
    return _ACTIONS[fault.form], False


def delivered(plan: Plan, fault: Fault) -> None:
    """Add that results of a turn that was sent become new content."""
    plan.repairs.append(_done(fault, "delivered"))


def voided(plan: Plan, fault: Fault) -> None:
    """Add that closes are left out, since the call has an answer that was sent."""
    plan.repairs.append(_done(fault, "voided"))


_ACTIONS: Final[dict[Form, Action]] = {
    "trailing_text": "moved",
    "late_result": "moved",
    "duplicate_call": "left_out",
}


def _done(fault: Fault, action: Action, *, before_run: bool = False) -> Repair:
    return Repair(fault.form, fault.call_ids, fault.position, fault.positions, action, before_run)
