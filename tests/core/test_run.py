"""The active batch does what the table says and nothing else, whole or not at all (C6, C9, C17)."""

from typing import Any

import pytest

from toolbatch.core import (
    LATE,
    TABLE,
    BatchHandle,
    CloseReason,
    Diagnostic,
    Input,
    State,
    Succeeded,
    ToolCall,
    ToolCallClosure,
)
from toolbatch.core._run import CLOSES, NO_RUN, Run

PAIRS = [(state, event) for state in State for event in Input]
ENDS = {Input.SUCCEED, Input.FAIL, Input.CANCEL, Input.CLOSE_ERROR, Input.CLOSE_CANCELLED}
OUTCOME = Succeeded("x")

WAY: dict[State, list[Input]] = {
    State.ANNOUNCED: [],
    State.RUNNING: [Input.START],
    State.SUCCESS: [Input.SUCCEED],
    State.ERROR: [Input.FAIL],
    State.CANCELLED: [Input.CANCEL],
}
"""How a call gets into each state."""


def batch(*ways: list[Input]) -> Run:
    """A run whose calls have each come a way."""
    run = Run(1, tuple(ToolCall(str(number), "t") for number in range(len(ways))))
    for position, way in enumerate(ways):
        for event in way:
            assert run.move(position, event, Succeeded(str(position)) if event in ENDS else None)
    return run


def record(run: Run) -> dict[str, Any]:
    """All that a run holds, but for its cached view."""
    return {
        name: getattr(run, name)
        if not isinstance(getattr(run, name), (list, dict, bytearray))
        else getattr(run, name).copy()
        for name in vars(run)
        if name != "snapshot"
    }


@pytest.mark.parametrize(("state", "event"), PAIRS, ids=str)
def test_the_machine_does_what_the_cell_says(state: State, event: Input) -> None:
    """For every pair: the call goes where the cell says or nothing at all changes, and its neighbours never move."""
    run = batch([], WAY[state], [Input.START])
    before = record(run)
    run.view()
    outcome = OUTCOME if event in ENDS else None
    moved = run.move(1, event, outcome)
    cell = TABLE[state][event]
    after = record(run)
    if cell is LATE:
        assert moved is False
        assert after == before
        return
    assert moved is True
    assert list(run.states) == [State.ANNOUNCED, cell, State.RUNNING]
    assert run.settlements == [None, outcome, None]
    assert list(run.started) == [0, int(state is State.RUNNING or event <= Input.CANCEL), 1]
    assert run.pending == 2 + (outcome is None)
    unmoved = set(before) - {"states", "settlements", "started", "pending"}
    assert {name: after[name] for name in unmoved} == {name: before[name] for name in unmoved}
    assert run.view().calls[1].settlement is outcome


def test_many_starts_are_many_single_starts() -> None:
    """Calls begun together are where each would be by itself, whatever their states were (C10, C17)."""
    together, alone = batch(*WAY.values(), []), batch(*WAY.values(), [])
    together.begun(bytes([1] * len(State) + [0]))
    for position in range(len(State)):
        alone.move(position, Input.START, None)
    differ = {"handle"}
    assert {name: value for name, value in record(together).items() if name not in differ} == {
        name: value for name, value in record(alone).items() if name not in differ
    }


@pytest.mark.parametrize("status", CLOSES)
def test_a_close_moves_every_pending_call_and_no_other(status: Any) -> None:
    """Each call goes where the table says for the closing input; what was settled keeps its outcome (C6, C9)."""
    run = batch(*WAY.values())
    settled = run.settlements.copy()
    run.close(status, "code", "message", None)
    assert list(run.states) == [
        state if TABLE[state][CLOSES[status]] is LATE else TABLE[state][CLOSES[status]] for state in State
    ]
    for position in (State.SUCCESS, State.ERROR, State.CANCELLED):
        assert run.settlements[position] is settled[position]
    for position in (State.ANNOUNCED, State.RUNNING):
        outcome = run.settlements[position]
        assert outcome is not None
        assert outcome.status == status
    assert run.pending == 0
    assert run.close_reason == CloseReason(status, "code", "message", "unknown")


def test_a_final_state_and_an_outcome_come_together() -> None:
    """A call has an outcome exactly when its state is final, whatever way it came."""
    run = batch(*WAY.values())
    assert [state <= State.RUNNING for state in run.states] == [True, True, False, False, False]
    assert [outcome is None for outcome in run.settlements] == [True, True, False, False, False]
    assert run.pending == 2


def test_pending_calls_share_their_outcome_when_they_have_nothing_of_their_own() -> None:
    """Ten thousand calls closed at a deadline don't make ten thousand outcomes."""
    run = batch(*[[] for _ in range(100)])
    run.keep_partial(5, "own", 100)
    run.close("cancelled", "code", "message", "unknown")
    assert len({id(outcome) for outcome in run.settlements}) == 2


def test_diagnostics_are_counted_when_there_are_enough() -> None:
    """The first so many are kept, the rest is a number (C13)."""
    run = batch([])
    notes = [Diagnostic("unknown_call", str(number), 1, None) for number in range(5)]
    for note in notes:
        run.note(note, 2)
    assert run.diagnostics == notes[:2]
    assert run.dropped == 3
    assert run.view().diagnostics == tuple(notes[:2])
    assert run.view().diagnostics_dropped == 3


def test_the_run_before_the_first_is_closed_and_holds_nothing() -> None:
    """All closures share it until they begin: it is complete from the start, and no misuse leaves a trace in it (C3, C13)."""
    for _ in range(2):
        closure = ToolCallClosure()
        closure.succeed(BatchHandle(0), "a", "x")
        closure.close(BatchHandle(0))
        assert closure.begin([]).superseded is None
    assert NO_RUN.close_reason == CloseReason("complete")
    assert (NO_RUN.diagnostics, NO_RUN.dropped, NO_RUN.announced) == ([], 0, ())
