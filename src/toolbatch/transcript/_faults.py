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
        if len(self.calls) == 1:
            return (self.calls[0].label,)
        named: Iterable[Call | Result] = self.calls if self.turn is not None else self.results
        return tuple(dict.fromkeys([entry.label for entry in named]))

    @property
    def positions(self) -> tuple[int, ...]:
        """The indices of the messages concerned."""
        here = {call.position for call in self.calls}
        if not self.results and here == {self.position}:
            return (self.position,)
        here.update(result.position for result in self.results)
        return tuple(sorted(here | {self.position}))


def recorded(results: list[Result], is_close: IsClose) -> list[Result]:
    """Return those results of a call that count: all that were recorded, or one close where there is nothing else.

    A close says only that nothing was recorded, so a recorded result beside it makes it void, and a second close adds
    nothing (L2).
    """
    if len(results) < 2:
        return results
    return [result for result in results if not is_close(result)] or results[:1]


def faults(seen: Matching, sources: Sources, is_close: IsClose, *, repair_last: bool = True) -> Iterator[list[Fault]]:
    """Yield the faults of each faulty turn, in the order of the transcript; within a turn, the calls' own first.

    Orphans come as one list by themselves, where the first of them stands. One turn is looked at after the other, so that
    a long list of faults costs no more a turn than a short one.
    """
    spared = NOWHERE if repair_last else seen.tail
    orphans = [] if seen.opaque else seen.orphan_results(sources)
    for turn in seen.faulty_turns(sources):
        if orphans and orphans[0].position < turn.position:
            yield [Fault("orphan_result", orphans[0].position, None, [], orphans)]
            orphans = []
        found = list(_of_turn(turn, is_close, close=turn.number != spared))
        if found:
            yield found
    if orphans:
        yield [Fault("orphan_result", orphans[0].position, None, [], orphans)]


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
        places = call.places
        if not places:
            if call.required and close:
                unanswered.append(call)
        elif len(places) > 1:
            doubled.append(call)
            first = recorded(call.results, is_close)[0]
            if call.required and first.run != turn.number:
                late.append(call)
                moved.append(first)
        elif places[0][2] != turn.number and call.required:
            late.append(call)
            moved += call.results
    if late:
        yield Fault("late_result", turn.position, turn, late, moved)
    if doubled:
        results = [result for call in doubled for result in call.results]
        yield Fault("duplicate_result", turn.position, turn, doubled, results)
    if unanswered:
        yield Fault("missing_result", turn.position, turn, unanswered)


def violation(fault: Fault) -> Violation:
    """Return a fault as what a caller reads."""
    return Violation(fault.form, fault.call_ids, fault.position, fault.positions)
