"""Append-only: what can still be done about turns that were sent already.

The messages that were sent are signed or cached as they are, so none is changed, moved or left out. What is left to do:

- the turn at the border, behind which nothing but its results was sent, can still be answered: missing results are closed
  and late ones moved, right behind what was sent;
- a result that comes for a call which had been answered is delivered as new content where it stands (B20);
- all else is reported in `remaining`.
"""

from collections.abc import Sequence

from ._faults import violation
from ._findings import Form, Violation
from ._plan import OF_RESULTS, Batch, Note, Options, Plan, add_repair, fill, fold_in_place, report
from ._turns import Call, Result, Turn

__all__ = ["append_to_turn", "drop_new_orphans"]


def drop_new_orphans(plan: Plan, orphans: list[Result], options: Options) -> list[Result]:
    """Return the orphans that may be left out, and report those that were sent."""
    sent = [result for result in orphans if result.position < options.sent]
    if sent:
        plan.remaining.append(violation("orphan_result", sent[0].position, sent))
    return orphans[len(sent) :]


def append_to_turn(plan: Plan, turn: Turn, found: Sequence[Violation], options: Options) -> None:
    """Plan what can be done about a turn that was sent."""
    plan.remaining += [one for one in found if one.form in ("trailing_text", "duplicate_call")]
    if OF_RESULTS.isdisjoint(one.form for one in found):
        return
    batch = Batch(turn.position, [], options.sent, [])
    done: dict[Form, list[Call]] = {}
    for call in turn.calls:
        if not call.places and turn.number == options.spared:
            continue
        results = call.results
        before = [result for result in results if result.position < options.sent]
        after = results[len(before) :]
        if before:
            _remain(plan, turn, call, before)
            _deliver(plan, turn, call, after, options, known=not all(map(options.is_close, before)))
        elif not call.required:
            if len(after) > 1:
                fold_in_place(plan, after, options)
                done.setdefault("duplicate_result", []).append(call)
        elif turn.position == options.border:
            fill(plan, batch, call, after, options)
            _note_done(done, call, after, turn)
        elif options.reaches(call):
            if after:  # the first result stays where it is
                _deliver(plan, turn, call, after[1:], options, known=True)
            else:
                fill(plan, batch, call, [], options)
                done.setdefault("missing_result", []).append(call)
        else:
            plan.remaining.append(violation("missing_result", turn.position, [call]))
            _deliver(plan, turn, call, after, options, known=False)
    if batch.answers:
        plan.batches.append(batch)
    for form, calls in done.items():
        results = [result for call in calls for result in call.results]
        report(plan, violation(form, turn.position, calls, results), calls, options)


def _remain(plan: Plan, turn: Turn, call: Call, before: list[Result]) -> None:
    """Report what is wrong with the results that were sent."""
    if len(before) > 1:
        plan.remaining.append(violation("duplicate_result", turn.position, [call], before))
    if call.required and before[0].run != turn.number:
        plan.remaining.append(violation("late_result", turn.position, [call], before[:1]))


def _deliver(plan: Plan, turn: Turn, call: Call, after: list[Result], options: Options, *, known: bool) -> None:
    """Make new content of results that come too late, and leave out closes, which say nothing new.

    Args:
        plan: What is added to.
        turn: The turn, which was sent.
        call: The call.
        after: Its results that were not sent.
        options: The options.
        known: Whether a recorded result was sent, so that these are second ones.
    """
    for result in after:
        plan.taken.append((result.position, result.index))
        if options.is_close(result):
            add_repair(plan, violation("duplicate_result", turn.position, [call], [result]), "voided")
        else:
            plan.notes.append(Note(call, result))
            form: Form = "duplicate_result" if known else "late_result"
            add_repair(plan, violation(form, turn.position, [call], [result]), "delivered")


def _note_done(done: dict[Form, list[Call]], call: Call, after: list[Result], turn: Turn) -> None:
    if not after:
        done.setdefault("missing_result", []).append(call)
    elif len(after) > 1:
        done.setdefault("duplicate_result", []).append(call)
    elif after[0].run != turn.number:
        done.setdefault("late_result", []).append(call)
