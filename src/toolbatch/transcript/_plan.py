"""From faults to what is to be done: which results go where, which are folded, closed, left out or delivered.

The plan knows no lane. A lane carries it out, since only the lane knows what a message is.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ._faults import IsClose, recorded, violation
from ._findings import Action, Form, Repair, Violation
from ._turns import NOWHERE, Call, Result, Turn

__all__ = [
    "OF_RESULTS",
    "Batch",
    "Close",
    "Note",
    "Options",
    "Place",
    "Plan",
    "add_repair",
    "fill",
    "fold_in_place",
    "leave_out",
    "mend_turn",
    "report",
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
    border: int = NOWHERE
    reaches: Callable[[Call], bool] = lambda _: False


_OF_CALLS: Final = frozenset({"trailing_text", "duplicate_call"})
OF_RESULTS: Final = frozenset({"late_result", "duplicate_result", "missing_result"})
"""The forms that a batch of answers mends."""


def mend_turn(plan: Plan, turn: Turn, found: Sequence[Violation], options: Options) -> None:
    """Plan the repair of one turn that may be changed: each call once, at the end, and one result each right behind."""
    forms = {one.form for one in found}
    if forms & _OF_CALLS:
        plan.turns.append(turn)
        plan.lossy |= "duplicate_call" in forms
    if forms & OF_RESULTS:
        batch = Batch(turn.position, [], turn.end, [])
        for call in turn.calls:
            if not call.places and turn.number == options.spared:
                continue
            if call.required:
                fill(plan, batch, call, call.results, options)
            elif len(call.places) > 1:
                fold_in_place(plan, call.results, options)
        plan.batches.append(batch)
    for one in found:
        report(plan, one, _concerned(turn, one.form), options)


def _concerned(turn: Turn, form: Form) -> list[Call]:
    """Return the calls of a turn that a violation of this form names, or more of them if all have the same account."""
    if form == "missing_result":
        return [call for call in turn.calls if call.required and not call.places]
    if form == "duplicate_result":
        return [call for call in turn.calls if len(call.places) > 1]
    return turn.calls[:1]


def fill(plan: Plan, batch: Batch, call: Call, results: list[Result], options: Options) -> None:
    """Put the one answer of a call into a batch: what was recorded, or a close."""
    if not results:
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
    """Plan to leave out results that answer no call, if there are any."""
    if not orphans:
        return
    plan.taken += [(result.position, result.index) for result in orphans]
    plan.lossy = True
    add_repair(plan, violation("orphan_result", orphans[0].position, orphans), "left_out")


def report(plan: Plan, found: Violation, calls: Sequence[Call], options: Options) -> None:
    """Add what is done about a violation, apart for calls that differ in it: closed or filled in, before this run or not."""
    groups: dict[tuple[Action, bool], list[Call]] = {}
    for call in calls:
        groups.setdefault(_account(found.form, call, options), []).append(call)
    if len(groups) == 1:
        ((action, before),) = groups
        plan.repairs.append(Repair(*found, action, before))
        return
    for (action, before), some in groups.items():
        results = [result for call in some for result in call.results]
        plan.repairs.append(Repair(*violation(found.form, found.position, some, results), action, before))


def _account(form: Form, call: Call, options: Options) -> tuple[Action, bool]:
    """Return what is done about a call, and whether it is a missing result that stood before this run."""
    if form == "missing_result":
        action: Action = "filled" if options.close(call).known else "closed"
        return action, id(options.home(call)) in options.prior
    if form == "duplicate_result":
        return "folded" if len(recorded(call.results, options.is_close)) > 1 else "voided", False
    return "left_out" if form == "duplicate_call" else "moved", False


def add_repair(plan: Plan, found: Violation, action: Action) -> None:
    """Add what is done about a violation as a whole."""
    plan.repairs.append(Repair(*found, action))
