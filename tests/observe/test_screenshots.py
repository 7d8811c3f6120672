"""The pictures of the documentation are those that the code draws now."""

import re
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tools import screenshots

DRAWN_BY = "15."
"""The version of rich whose drawing is committed; another may draw other shapes."""


@pytest.mark.skipif(not metadata.version("rich").startswith(DRAWN_BY), reason="drawn by another version of rich")
def test_the_live_view_is_current() -> None:
    """`docs/images/live.svg` shows what the live view shows."""
    assert screenshots.main(["--check"]) == 0


def test_the_picture_is_the_same_each_time_and_fetches_nothing() -> None:
    """It depends on no clock, and asks no other site for anything."""
    drawn = screenshots.live_view()
    assert drawn == screenshots.live_view()
    root = ET.fromstring(drawn)
    assert root.tag.endswith("svg")
    assert re.findall(r"url\((?!#)[^)]*\)|href=", drawn) == []
    text = "".join(root.itertext()).replace("\xa0", " ")
    for part in ("search_flights", "20.6 s left", "60%", "not ended yet", "3 running"):
        assert part in text


def test_an_outdated_picture_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing or changed picture fails the check; writing mends it."""
    monkeypatch.setattr(screenshots, "IMAGES", tmp_path / "images")
    assert screenshots.main(["--check"]) == 1
    assert screenshots.main([]) == 0
    assert screenshots.main(["--check"]) == 0
    (tmp_path / "images" / "live.svg").write_text("<svg/>", encoding="utf-8")
    assert screenshots.main(["--check"]) == 1
    assert "live.svg is out of date" in capsys.readouterr().err
