"""What is true of the life of a call, in two forms: laws of any correct table, and stories of single lives in words.

Neither is derived from the table. `test_mutants.py` proves that together they leave no wrong cell unnoticed.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from toolbatch.core import LATE, TABLE, Input, State
from toolbatch.core._table import Cell, Table

OPEN = (State.ANNOUNCED, State.RUNNING)
FINAL = (State.SUCCESS, State.ERROR, State.CANCELLED)
REPORTS = (Input.SUCCEED, Input.FAIL, Input.CANCEL)


class Broken(Exception):
    """A table breaks a law, or a life in it goes another way than its story."""


def demand(truth: bool, what: str) -> None:
    """Raise `Broken` unless `truth`: a law must fail under `python -O` too."""
    if not truth:
        raise Broken(what)


# -- laws ----------------------------------------------------------------------------------------------------------------


def every_cell_is_written_out(table: Table) -> None:
    """No state and no input is left to a default."""
    demand(set(table) == set(State), "a state has no row")
    for state, row in table.items():
        demand(set(row) == set(Input), f"{state.name} has a gap")


def an_outcome_stands(table: Table) -> None:
    """Whatever comes after the outcome is late, and none of it is a transition (C6)."""
    for state in FINAL:
        for event, cell in table[state].items():
            demand(cell is LATE, f"{state.name} hears {event.name}")


def an_open_call_is_never_late(table: Table) -> None:
    """A call without an outcome takes every input: only an outcome makes something late."""
    for state in OPEN:
        for event, cell in table[state].items():
            demand(cell is not LATE, f"{event.name} is late for {state.name}")


def only_a_start_leaves_a_call_open(table: Table) -> None:
    """Every input but START is an end."""
    for state in OPEN:
        for event, cell in table[state].items():
            demand((cell in OPEN) == (event is Input.START), f"{state.name} x {event.name} is {cell}")


def nobody_is_announced_twice(table: Table) -> None:
    """No input leads back to where nothing is known to have begun."""
    for state, row in table.items():
        demand(State.ANNOUNCED not in row.values(), f"{state.name} leads back to ANNOUNCED")


def the_end_does_not_depend_on_the_beginning(table: Table) -> None:
    """A report that overtook its `start` counts like one that did not: both open states go the same ways."""
    for event in Input:
        cells = {state: table[state].get(event, "missing") for state in OPEN}
        demand(len(set(cells.values())) == 1, f"{event.name} tells the open states apart")


def different_reports_end_differently(table: Table) -> None:
    """Success, error and cancellation are three things."""
    for state in OPEN:
        ends = {table[state].get(event, "missing") for event in REPORTS}
        demand(ends == set(FINAL), f"the reports of {state.name} end as {ends}")


def we_close_a_call_as_its_tool_would_have_ended_it(table: Table) -> None:
    """The model reads an error or a cancellation, whoever decided it; who did is the settlement's provenance."""
    for state, row in table.items():
        demand(row.get(Input.FAIL, 0) == row.get(Input.CLOSE_ERROR, 1), f"{state.name}: two kinds of error")
        demand(row.get(Input.CANCEL, 0) == row.get(Input.CLOSE_CANCELLED, 1), f"{state.name}: two kinds of cancelled")


LAWS: tuple[Callable[[Table], None], ...] = (
    every_cell_is_written_out,
    an_outcome_stands,
    an_open_call_is_never_late,
    only_a_start_leaves_a_call_open,
    nobody_is_announced_twice,
    the_end_does_not_depend_on_the_beginning,
    different_reports_end_differently,
    we_close_a_call_as_its_tool_would_have_ended_it,
)

# -- stories -------------------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """Something that happens, whether the call takes it or is past it, and where the call stands afterwards."""

    event: Input
    taken: bool
    state: State


class Story(NamedTuple):
    """The life of one call, from its announcement on."""

    words: str
    steps: tuple[Step, ...]


def then(event: Input, state: State) -> Step:
    """The call takes it and moves on to `state`."""
    return Step(event, True, state)


def too_late(event: Input, state: State) -> Step:
    """It is noted, and the call stays in `state`."""
    return Step(event, False, state)


STORIES: tuple[Story, ...] = (
    Story(
        "it runs and answers; an impatient host then closes everything, and the answer stands",
        (
            then(Input.START, State.RUNNING),
            then(Input.SUCCEED, State.SUCCESS),
            too_late(Input.CLOSE_CANCELLED, State.SUCCESS),
            too_late(Input.CLOSE_ERROR, State.SUCCESS),
        ),
    ),
    Story(
        "it answers before anyone says that it began, and neither that news nor a second answer changes a thing",
        (
            then(Input.SUCCEED, State.SUCCESS),
            too_late(Input.START, State.SUCCESS),
            too_late(Input.SUCCEED, State.SUCCESS),
        ),
    ),
    Story(
        "it answers, and its cleanup then fails and is cancelled",
        (
            then(Input.START, State.RUNNING),
            then(Input.SUCCEED, State.SUCCESS),
            too_late(Input.FAIL, State.SUCCESS),
            too_late(Input.CANCEL, State.SUCCESS),
        ),
    ),
    Story(
        "it is started by two workers and fails in one; the other one's answer comes too late",
        (
            then(Input.START, State.RUNNING),
            then(Input.START, State.RUNNING),
            then(Input.FAIL, State.ERROR),
            too_late(Input.SUCCEED, State.ERROR),
            too_late(Input.FAIL, State.ERROR),
        ),
    ),
    Story(
        "it can't be run at all: an error without a beginning, which no close and no cancellation softens",
        (
            then(Input.FAIL, State.ERROR),
            too_late(Input.CANCEL, State.ERROR),
            too_late(Input.CLOSE_CANCELLED, State.ERROR),
            too_late(Input.CLOSE_ERROR, State.ERROR),
        ),
    ),
    Story(
        "the tool stops by itself, then says that it had finished after all",
        (
            then(Input.START, State.RUNNING),
            then(Input.CANCEL, State.CANCELLED),
            too_late(Input.SUCCEED, State.CANCELLED),
            too_late(Input.CANCEL, State.CANCELLED),
        ),
    ),
    Story(
        "it is called off before it begins, and the worker that then takes it up is refused",
        (
            then(Input.CANCEL, State.CANCELLED),
            too_late(Input.START, State.CANCELLED),
        ),
    ),
    Story(
        "its deadline passes while it runs: closed as cancelled, whatever it says on its way out",
        (
            then(Input.START, State.RUNNING),
            then(Input.CLOSE_CANCELLED, State.CANCELLED),
            too_late(Input.FAIL, State.CANCELLED),
            too_late(Input.CLOSE_CANCELLED, State.CANCELLED),
            too_late(Input.CLOSE_ERROR, State.CANCELLED),
        ),
    ),
    Story(
        "a newer request replaces it before it begins",
        (then(Input.CLOSE_CANCELLED, State.CANCELLED),),
    ),
    Story(
        "the host breaks down while it runs: closed as an error, and its answer is late",
        (
            then(Input.START, State.RUNNING),
            then(Input.CLOSE_ERROR, State.ERROR),
            too_late(Input.SUCCEED, State.ERROR),
        ),
    ),
    Story(
        "nobody ever starts it: closed as an error, and a start after that is refused",
        (
            then(Input.CLOSE_ERROR, State.ERROR),
            too_late(Input.START, State.ERROR),
        ),
    ),
)


def play(story: Story, table: Table) -> None:
    """Live through `story` by `table`, and look where the call stands after every step."""
    state = State.ANNOUNCED
    for number, (event, taken, expected) in enumerate(story.steps):
        cell = table[state].get(event, "missing")
        demand(cell != "missing", f"step {number}: {state.name} has no {event.name}")
        demand((cell is not LATE) == taken, f"step {number}: {event.name} in {state.name}")
        state = state if not isinstance(cell, State) else cell
        demand(state is expected, f"step {number}: {event.name} led to {state.name}")


# -- mutants -------------------------------------------------------------------------------------------------------------


class Mutant(NamedTuple):
    """A table that differs from ours in one cell."""

    name: str
    table: Table


def mutants() -> Iterator[Mutant]:
    """Every table that differs from `TABLE` in one cell: another state, `LATE`, or no cell at all."""
    for state in State:
        for event in Input:
            values: tuple[Cell, ...] = (*State, LATE)
            for cell in values:
                if cell is not TABLE[state][event]:
                    name = "late" if cell is None else cell.name
                    yield Mutant(f"{state.name} x {event.name} = {name}", with_cell(state, event, cell))
            gap = copy_of(TABLE)
            del gap[state][event]
            yield Mutant(f"{state.name} x {event.name} is missing", gap)


def copy_of(table: Table) -> Table:
    """A table of its own rows: ours shares one row between the final states."""
    return {state: dict(row) for state, row in table.items()}


def with_cell(state: State, event: Input, cell: Cell) -> Table:
    """`TABLE` with another value in one cell."""
    table = copy_of(TABLE)
    table[state][event] = cell
    return table
