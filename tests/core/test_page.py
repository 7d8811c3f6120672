"""docs/state-machine.md shows the table, and whoever changes one without the other is told (C17)."""

from pathlib import Path

import pytest

from tests.core.tables import copy_of, mutants
from toolbatch.core import TABLE, Input, State
from tools import render_table


def test_the_page_shows_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """The page in the repository is what the script would write (C17)."""
    assert render_table.main(["--check"]) == 0, capsys.readouterr().err


def test_every_changed_cell_changes_the_page() -> None:
    """No table that differs in one cell is drawn like ours, neither as grid nor as diagram plus grid (C17)."""
    page = render_table.render(TABLE)
    for mutant in mutants():
        if "missing" in mutant.name:
            with pytest.raises(KeyError):
                render_table.render(mutant.table)
        else:
            assert render_table.render(mutant.table) != page, mutant.name
            assert render_table.grid(mutant.table) != render_table.grid(TABLE), mutant.name
            assert render_table.diagram(mutant.table) != render_table.diagram(TABLE), mutant.name


def test_a_page_of_another_table_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--check` exits 1, names the page and what to run, shows the line that differs, and leaves the page alone (C17)."""
    other = copy_of(TABLE)
    other[State.RUNNING][Input.CANCEL] = State.ERROR
    page = tmp_path / "page.md"
    page.write_text(render_table.render(other), encoding="utf-8")
    assert render_table.main(["--check", "--page", str(page)]) == 1
    told = capsys.readouterr().err
    assert str(page) in told
    assert "make docs" in told
    assert "-| RUNNING" in told
    assert "+| RUNNING" in told
    assert page.read_text(encoding="utf-8") == render_table.render(other)


def test_a_missing_page_is_refused_and_then_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a page the check fails and says so; writing it makes the check pass (C17)."""
    page = tmp_path / "docs" / "page.md"
    assert render_table.main(["--check", "--page", str(page)]) == 1
    assert "does not exist" in capsys.readouterr().err
    assert render_table.main(["--page", str(page)]) == 0
    assert render_table.main(["--check", "--page", str(page)]) == 0


def test_every_state_and_input_is_explained() -> None:
    """The page has a sentence for each state and each input, so a new one can't be added without words."""
    assert set(render_table.STATES) == set(State)
    assert set(render_table.INPUTS) == set(Input)
    assert all(map(str.strip, render_table.STATES.values()))
