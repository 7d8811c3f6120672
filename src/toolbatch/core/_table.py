"""The life of one call, as data.

Two rules. Every transition is a cell below, and every cell is written: nothing about a call's state is decided
elsewhere. And this file knows no clock, no tool and no message: guards that depend on data run in the closure or the
shell, and choose which input to feed.

`docs/state-machine.md` is drawn from this table, and checked in CI.
"""

from enum import IntEnum
from typing import Final

__all__ = ["LATE", "ROWS", "TABLE", "Cell", "Input", "State", "Table", "compile_rows"]


class State(IntEnum):
    """Where a call stands."""

    ANNOUNCED = 0
    RUNNING = 1
    SUCCESS = 2
    ERROR = 3
    CANCELLED = 4


class Input(IntEnum):
    """What can happen to a call. The first four are reports of the tool, the last two are decisions of ours."""

    START = 0
    SUCCEED = 1
    FAIL = 2
    CANCEL = 3
    CLOSE_ERROR = 4
    CLOSE_CANCELLED = 5


Cell = State | None
LATE: Final = None
"""The call has its outcome, which stands. The input is noted, and it is not a mistake: it lost an expected race."""

Table = dict[State, dict[Input, Cell]]

# To be told twice that a call began is no mistake and no news, so RUNNING x START stays where it is.
# The final states share one row: whatever comes after the outcome is late, even a `start` that was overtaken.
_SETTLED: dict[Input, Cell] = {
    Input.START: LATE,
    Input.SUCCEED: LATE,
    Input.FAIL: LATE,
    Input.CANCEL: LATE,
    Input.CLOSE_ERROR: LATE,
    Input.CLOSE_CANCELLED: LATE,
}

TABLE: Final[Table] = {
    State.ANNOUNCED: {
        Input.START: State.RUNNING,
        Input.SUCCEED: State.SUCCESS,
        Input.FAIL: State.ERROR,
        Input.CANCEL: State.CANCELLED,
        Input.CLOSE_ERROR: State.ERROR,
        Input.CLOSE_CANCELLED: State.CANCELLED,
    },
    State.RUNNING: {
        Input.START: State.RUNNING,
        Input.SUCCEED: State.SUCCESS,
        Input.FAIL: State.ERROR,
        Input.CANCEL: State.CANCELLED,
        Input.CLOSE_ERROR: State.ERROR,
        Input.CLOSE_CANCELLED: State.CANCELLED,
    },
    State.SUCCESS: _SETTLED,
    State.ERROR: _SETTLED,
    State.CANCELLED: _SETTLED,
}


def compile_rows(table: Table) -> tuple[tuple[Cell, ...], ...]:
    """Return `table` as nested tuples, indexed by state and input: a lookup there is three times faster."""
    return tuple(tuple(table[state][event] for event in Input) for state in State)


ROWS: Final = compile_rows(TABLE)
