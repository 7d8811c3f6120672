"""docs/lanes.md shows what the lanes do, and whoever changes one without the other is told."""

from pathlib import Path
from typing import Any

import pytest

from toolbatch import providers
from toolbatch.core import Snapshot
from toolbatch.providers import cohere, ollama
from toolbatch.providers._content import CARRIED, Carrier, carries
from tools import render_lanes
from tools.render_lanes import WIRES


def test_the_page_shows_the_lanes(capsys: pytest.CaptureFixture[str]) -> None:
    """The tables in the repository are what the script would write."""
    assert render_lanes.main(["--check"]) == 0, capsys.readouterr().err


def test_every_lane_has_its_place() -> None:
    """Each lane that is promised has a row, a column and some words of its own, and each sort of part has a row."""
    page = render_lanes.PAGE.read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    head = next(line for line in page.splitlines() if line.startswith("| part"))
    for lane in providers.__all__:
        assert any(line.startswith(f"| `{lane}`") for line in rows), lane
        assert f"`{lane}`" in head
        assert f"`{lane}` " in page.split("## Results that are more than text")[1]
    assert {wire.lane for wire in WIRES} == set(providers.__all__)
    for sort in CARRIED:
        assert f"\n| {sort} " in page


def test_a_lane_that_changes_changes_the_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lane that carries something else, or marks its failures, makes the check fail, and the lines that differ are told."""
    results = cohere.results

    def marked(snapshot: Snapshot) -> list[dict[str, Any]]:
        rows = zip(results(snapshot), snapshot.calls, strict=True)
        return [{**entry, "is_error": True} if row.state == "error" else entry for entry, row in rows]

    monkeypatch.setattr(ollama, "CARRIES", carries(Carrier()))
    monkeypatch.setattr(cohere, "results", marked)
    assert render_lanes.main(["--check"]) == 1
    told = capsys.readouterr().err
    assert "make docs" in told
    assert "-| PNG, JPEG" in told
    assert "| `is_error: true` " in next(line for line in told.splitlines() if line.startswith("+| `cohere`"))


def test_another_page_is_refused_and_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--check` exits 1 and changes nothing; without it the tables are written, and the prose around them stays."""
    page = tmp_path / "lanes.md"
    marks = "\n".join(
        f"<!-- {n}: written by tools/render_lanes.py --><!-- end of {n} -->\nProse." for n in render_lanes.TABLES
    )
    page.write_text(marks, encoding="utf-8")
    assert render_lanes.main(["--check", "--page", str(page)]) == 1
    assert str(page) in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == marks
    assert render_lanes.main(["--page", str(page)]) == 0
    assert render_lanes.main(["--check", "--page", str(page)]) == 0
    assert page.read_text(encoding="utf-8").count("Prose.") == len(render_lanes.TABLES)


def test_a_page_without_marks_is_refused(tmp_path: Path) -> None:
    """A table that has lost its place is not skipped without a word."""
    page = tmp_path / "lanes.md"
    page.write_text("Prose.", encoding="utf-8")
    with pytest.raises(ValueError, match="no place for the table 'lanes'"):
        render_lanes.main(["--check", "--page", str(page)])
