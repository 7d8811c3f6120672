"""From the matching to what is wrong: the violations, which `check` returns and the plan mends."""

from collections.abc import Callable, Iterator, Sequence

from ._findings import Form, Violation
from ._matching import Matching
from ._turns import NOWHERE, Call, Result

__all__ = ["IsClose", "faults", "recorded", "violation"]

IsClose = Callable[[Result], bool]
"""Whether a result is an interrupted close that the law wrote earlier: a lane knows."""


def recorded(results: list[Result], is_close: IsClose) -> list[Result]:
    """Return those results of a call that count: all that were recorded, or one close where there is nothing else.

    A close says only that nothing was recorded, so a recorded result beside it makes it void, and a second close adds
    nothing (L2).
    """
    if len(results) < 2:
        return results
    return [result for result in results if not is_close(result)] or results[:1]


def faults(seen: Matching, is_close: IsClose, *, repair_last: bool = True) -> Iterator[tuple[int, list[Violation]]]:
    """Yield what is wrong turn by turn, in the order of the transcript: a turn's number, and the calls' own faults first.

    Orphans come as one violation of no turn (`NOWHERE`), where the first of them stands. One turn is looked at after the
    other, so that a long list of faults costs no more a turn than a short one.
    """
    orphans = [] if seen.opaque else seen.orphans
    unanswered = seen.unanswered()
    if not repair_last:
        unanswered.pop(seen.tail, None)
    disordered = {*seen.untidy, *seen.repeats, *seen.strange}
    for turn in sorted({*disordered, *unanswered}):
        if orphans and orphans[0].position < seen.positions[turn]:
            yield NOWHERE, [violation("orphan_result", orphans[0].position, orphans)]
            orphans = []
        found = _of_order(seen, turn, is_close) if turn in disordered else []
        if turn in unanswered:
            found.append(_of_calls(seen, "missing_result", turn, unanswered[turn]))
        yield turn, found
    if orphans:
        yield NOWHERE, [violation("orphan_result", orphans[0].position, orphans)]


def _of_order(seen: Matching, turn: int, is_close: IsClose) -> list[Violation]:
    """Return what is wrong with the calls of a turn and with the results that it has."""
    found: list[Violation] = []
    if turn in seen.untidy:
        found.append(_of_calls(seen, "trailing_text", turn, seen.calls(turn)))
    if turn in seen.repeats:
        found.append(_of_calls(seen, "duplicate_call", turn, seen.repeats[turn]))
    late: list[int] = []
    moved: list[int] = []
    doubled: list[int] = []
    folded: list[int] = []
    for call in sorted({*seen.strange.get(turn, ())}):
        places = seen.places(turn, call)
        position, _, run = places[0]
        if len(places) > 1:
            doubled.append(call)
            folded += [position for position, _, _ in places]
            if any(one != turn for _, _, one in places):  # all at home are not late, whichever of them counts
                first = recorded(seen.results(turn, call), is_close)[0]
                position, run = first.position, first.run
        if run != turn and call not in seen.optional:
            late.append(call)
            moved.append(position)
    if late:
        found.append(_of_calls(seen, "late_result", turn, late, moved))
    if doubled:
        found.append(_of_calls(seen, "duplicate_result", turn, doubled, folded))
    return found


def _of_calls(seen: Matching, form: Form, turn: int, calls: Sequence[int], positions: Sequence[int] = ()) -> Violation:
    """Return a violation of some calls of a turn and of the messages at some positions, without making objects of them."""
    if seen.sources.flat:
        positions = [*(seen.index(turn, call) for call in calls), *positions]
    return _worded(form, seen.positions[turn], list(map(seen.label, calls)), positions)


def violation(form: Form, position: int, calls: Sequence[Call | Result], results: Sequence[Result] = ()) -> Violation:
    """Return a violation of calls and their results, or of results that have no call.

    Args:
        form: Which.
        position: Where it is reported.
        calls: What it is named by, in call order.
        results: Whose messages it concerns too.
    """
    return _worded(form, position, [call.label for call in calls], [entry.position for entry in (*calls, *results)])


def _worded(form: Form, position: int, labels: Sequence[str], positions: Sequence[int]) -> Violation:
    """Return a violation as a caller reads it: each name once, each message once."""
    call_ids = tuple(labels) if len(labels) < 2 else tuple(dict.fromkeys(labels))
    return Violation(form, call_ids, position, tuple(sorted({position, *positions})) if positions else (position,))
