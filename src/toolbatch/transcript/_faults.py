"""From the matching to what is wrong: one list of faults, which `check` words and the plan mends."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ._findings import Form, Violation
from ._matching import NOWHERE, Call, Matching, Result, Sources, Turn

__all__ = ["Fault", "IsClose", "faults", "recorded", "violation"]

IsClose = Callable[[Result], bool]
"""Whether a result is an interrupted close that the law wrote earlier: a lane knows."""


@dataclass(slots=True)
class Fault:
    """One form in one turn, or the orphans of the whole list.

    Attributes:
        form: Which.
        position: Where it is reported.
        turn: The turn; `None` for orphans.
        calls: The calls concerned, in call order.
        results: The results concerned, in transcript order.
    """

    form: Form
    position: int
    turn: Turn | None
    calls: list[Call]
    results: list[Result] = field(default_factory=list)

    @property
    def call_ids(self) -> tuple[str, ...]:
        """The ids to report."""
        named: Iterable[Call | Result] = self.calls if self.turn is not None else self.results
        return tuple(dict.fromkeys(entry.label for entry in named))

    @property
    def positions(self) -> tuple[int, ...]:
        """The indices of the messages concerned."""
        here = {call.position for call in self.calls} | {result.position for result in self.results}
        return tuple(sorted(here | {self.position}))


def recorded(results: list[Result], is_close: IsClose) -> list[Result]:
    """Return those results of a call that count: all that were recorded, or one close where there is nothing else.

    A close says only that nothing was recorded, so a recorded result beside it makes it void, and a second close adds
    nothing (L2).
    """
    if len(results) < 2:
        return results
    return [result for result in results if not is_close(result)] or results[:1]


def faults(seen: Matching, sources: Sources, is_close: IsClose, *, repair_last: bool = True) -> list[Fault]:
    """Return all faults in the order of the transcript; within a turn, the calls' own first."""
    spared = NOWHERE if repair_last else seen.tail
    turns = seen.faulty_turns(sources)
    found = [fault for turn in turns for fault in _of_turn(turn, is_close, close=turn.number != spared)]
    if seen.orphans and not seen.opaque:
        orphans = seen.orphan_results(sources)
        first = orphans[0].position
        place = next((index for index, fault in enumerate(found) if fault.position > first), len(found))
        found.insert(place, Fault("orphan_result", first, None, [], orphans))
    return found


def _of_turn(turn: Turn, is_close: IsClose, *, close: bool) -> Iterator[Fault]:
    if not turn.tidy:
        yield Fault("trailing_text", turn.position, turn, turn.calls)
    if turn.repeats:
        yield Fault("duplicate_call", turn.position, turn, turn.repeats)
    late: list[Call] = []
    doubled: list[Call] = []
    unanswered: list[Call] = []
    moved: list[Result] = []
    for call in turn.calls:
        if not call.results:
            if call.required and close:
                unanswered.append(call)
            continue
        if len(call.results) > 1:
            doubled.append(call)
        first = recorded(call.results, is_close)[0]
        if call.required and first.run != turn.number:
            late.append(call)
            moved.append(first)
    if late:
        yield Fault("late_result", turn.position, turn, late, moved)
    if doubled:
        results = [result for call in doubled for result in call.results]
        yield Fault("duplicate_result", turn.position, turn, doubled, results)
    if unanswered:
        yield Fault("missing_result", turn.position, turn, unanswered)


def violation(fault: Fault) -> Violation:
    """Return a fault as what a caller reads."""
    return Violation(fault.form, fault.call_ids, fault.position, fault.positions, _sentence(fault))


def _sentence(fault: Fault) -> str:
    ids, where = ", ".join(fault.call_ids), f"messages[{fault.position}]"
    at = ", ".join(str(position) for position in sorted({result.position for result in fault.results}))
    if fault.form == "trailing_text":
        return f"{where}: content stands between or behind the calls {ids}; calls must come last"
    if fault.form == "duplicate_call":
        return f"{where}: the id {ids} is announced more than once; an id names one call"
    if fault.form == "late_result":
        return f"{where}: the result of {ids} does not stand right behind its call, but in messages {at}"
    if fault.form == "duplicate_result":
        return f"{where}: {ids} has more than one result, in messages {at}"
    if fault.form == "missing_result":
        return f"{where}: {ids} has no result"
    return f"{where}: the result of {ids} answers no earlier call, in messages {at}"
