"""The pictures of docs/concepts.md are what the code draws (issue 7), and say what the page says of them."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.core.tables import copy_of
from toolbatch.core import LATE, TABLE, Input, State
from tools import render_pictures


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    """Every picture, drawn anew."""
    return render_pictures.pictures()


def test_the_pictures_in_the_repository_are_those(drawn: dict[str, str]) -> None:
    """A change of the library that changes a picture is told."""
    for name, text in drawn.items():
        assert (render_pictures.IMAGES / name).read_text(encoding="utf-8") == text, f"{name}: run `make docs`"


def test_they_are_the_same_each_time(drawn: dict[str, str]) -> None:
    """Nothing of a picture depends on when it was drawn."""
    assert render_pictures.pictures() == drawn


def words(picture: str) -> list[str]:
    """The texts in a picture, in order."""
    return [text for element in ET.fromstring(picture).iter() if (text := (element.text or "").strip())]


def test_they_say_what_happened(drawn: dict[str, str]) -> None:
    """The deaf tool timed out and was late; the older turn was cancelled and late; the payment ran the next day."""
    timeout = words(drawn["timeline-timeout.svg"])
    assert timeout.count("succeeded") == 2
    assert "timed out, then late" in timeout
    assert "cancelled, then late" in words(drawn["timeline-superseded.svg"])
    approval = words(drawn["timeline-approval.svg"])
    assert [word for word in approval if word in {"succeeded", "cancelled"}] == [
        "succeeded",
        "cancelled",
        "succeeded",
        "succeeded",
    ]
    assert [word[:10] for word in approval if word.endswith("UTC")] == ["2026-01-01", "2026-01-02"]


def test_they_follow_the_readers_colours(drawn: dict[str, str]) -> None:
    """Each has a dark form of its own, and asks nothing of a network."""
    for picture in drawn.values():
        assert "prefers-color-scheme: dark" in picture
        assert set(re.findall(r"https?://[^\"'\s)]+", picture)) <= {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1999/xlink",
        }


def test_a_table_that_the_diagram_can_not_show_is_refused() -> None:
    """A changed cell is either drawn differently or refused, never drawn as ours."""
    ours = render_pictures.life(TABLE)
    for state in State:
        for event in Input:
            for cell in (*State, LATE):
                other = copy_of(TABLE)
                other[state][event] = cell
                if cell is TABLE[state][event]:
                    continue
                try:
                    assert render_pictures.life(other) != ours, (state, event, cell)
                except ValueError:
                    continue


def test_check_tells_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--check` exits 1, names each picture that differs or is missing, and leaves the folder alone."""
    assert render_pictures.main(["--check", "--folder", str(tmp_path)]) == 1
    assert "life.svg is not what the code draws" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    assert render_pictures.main(["--folder", str(tmp_path)]) == 0
    assert render_pictures.main(["--check", "--folder", str(tmp_path)]) == 0
