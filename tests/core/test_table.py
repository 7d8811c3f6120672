"""The table of a call's life keeps its laws and tells its stories (C6, C17)."""

from collections.abc import Callable

import pytest

from tests.core.tables import FINAL, LAWS, OPEN, STORIES, Story, play
from toolbatch.core import LATE, TABLE, Input, State
from toolbatch.core._table import ROWS, Table, compile_rows


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_law_holds(law: Callable[[Table], None]) -> None:
    """Each law of a correct table is true of ours."""
    law(TABLE)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.words)
def test_story_goes_as_told(story: Story) -> None:
    """Each life goes as its story says, with the state looked at after every step."""
    play(story, TABLE)


def test_the_compiled_rows_are_the_table() -> None:
    """The nested tuples that the machine reads say the same as the table that people read, cell by cell (C17)."""
    assert len(ROWS) == len(State) == len(TABLE)
    for state in State:
        assert len(ROWS[state]) == len(Input) == len(TABLE[state])
        for event in Input:
            assert ROWS[state][event] is TABLE[state][event]


def test_a_gap_can_not_be_compiled() -> None:
    """A table with an unwritten cell is refused when the module is loaded, not when a call first meets the gap (C17)."""
    with pytest.raises(KeyError):
        compile_rows({**TABLE, State.RUNNING: {Input.START: State.RUNNING}})
    with pytest.raises(KeyError):
        compile_rows({State.ANNOUNCED: TABLE[State.ANNOUNCED]})


def test_open_states_sort_before_final_ones() -> None:
    """`state <= RUNNING` means pending, in every place that asks."""
    assert sorted(State) == [*OPEN, *FINAL]
    assert max(OPEN) is State.RUNNING


def test_late_is_no_state() -> None:
    """The mark of a late input can't be taken for a state, the first of which is zero."""
    assert LATE is None
    assert LATE not in tuple(State)
