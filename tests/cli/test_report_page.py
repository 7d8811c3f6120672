"""The page as a document: correct, self-contained, closed to whatever a file says, and bounded."""

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from xml.etree import ElementTree as ET

import html5lib  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings

from tests.cli.runs import HOSTILE, any_run, batch, call, done, full_run, hostile_run, large_run, run
from toolbatch.cli._report_chart import standalone_svg
from toolbatch.cli._report_page import chart_css, page
from toolbatch.cli._report_view import KINDS, STATUSES, make_view
from toolbatch.cli._report_words import visible
from toolbatch.observe import RunRecord

HTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}href"

ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "col",
    "colgroup", "form", "label", "select", "option", "input", "button", "output", "div", "main", "section", "dl", "script", "b", "i", "bdi", "span",
}  # fmt: skip


def parsed(record: RunRecord, title: str = "run.jsonl", limit: int = 1000) -> ET.Element:
    """The page as a tree; a parse error of any kind fails."""
    parser = html5lib.HTMLParser(tree=html5lib.getTreeBuilder("etree"), strict=True)
    root: ET.Element = parser.parse(page(make_view(record, limit), title))
    check_closed(root)
    return root


def check_closed(root: ET.Element) -> None:
    """Nothing in it comes from elsewhere or runs but our script; each id is there once, and each reference leads somewhere."""
    elements = list(root.iter())
    assert {element.tag.removeprefix(HTML) for element in elements if str(element.tag).startswith(HTML)} <= ALLOWED
    ids = Counter(element.get("id") for element in elements if element.get("id"))
    assert max(ids.values()) == 1
    for element in elements:
        for name, value in element.attrib.items():
            assert not name.startswith("on"), f"{element.tag} has {name}"
            if name in {"src", "href", XLINK, "xlink:href"}:
                assert value.startswith("#")
                assert value[1:] in ids
            assert "url(" not in value
            assert name != "style"
        if element.get("aria-controls"):
            assert element.get("aria-controls") in ids
    styles = [element.text or "" for element in root.iter(f"{HTML}style")]
    assert all(reference.startswith("#") for style in styles for reference in re.findall(r"url\(([^)]*)\)", style))
    assert "@import" not in "".join(styles)
    facts, script = root.iter(f"{HTML}script")
    assert facts.get("type") == "application/json"
    (policy,) = [meta.get("content", "") for meta in root.iter(f"{HTML}meta") if meta.get("http-equiv")]
    assert "default-src 'none'" in policy
    assert f"script-src '{digest(script.text or '')}'" in policy
    assert f"style-src '{digest(''.join(styles))}'" in policy
    assert "unsafe" not in policy


def digest(text: str) -> str:
    """A source's hash, as a policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def facts_of(root: ET.Element) -> list[list[tuple[str, str]]]:
    """What the panel shows, a list a row."""
    (text,) = [element.text or "" for element in root.iter(f"{HTML}script") if element.get("id") == "facts"]
    return [[(label, known) for label, known in row] for row in json.loads(text)]


def rows_of(root: ET.Element) -> Iterator[ET.Element]:
    """The calls' rows."""
    return (row for row in root.iter(f"{HTML}tr") if row.get("class") == "call")


def words(element: ET.Element) -> str:
    """All text in it."""
    return " ".join(text.strip() for text in element.itertext() if text.strip())


def test_every_call_has_its_row_and_its_facts() -> None:
    """Name, id, outcome and length are in the table; the bars are said in words; the panel's facts are those of the row."""
    root = parsed(full_run())
    rows, facts = list(rows_of(root)), facts_of(root)
    calls = [one for part in full_run().batches for one in part.calls]
    assert len(rows) == len(facts) == len(calls)
    for one, row, known in zip(calls, rows, facts, strict=True):
        assert one.tool_name in words(row)
        assert one.call_id in words(row)
        assert ("Call", one.call_id) in known
        assert ("Tool", one.tool_name) in known
        (bars,) = [svg for svg in row.iter(f"{SVG}svg") if svg.get("role") == "img"]
        assert bars.get("aria-label")
    late = dict(facts[2])
    assert late["Outcome"] == "timed out"
    assert late["Late by"] == "1.5 s"
    assert late["Late content"] == "the page"
    assert late["Side effects"].startswith("unknown")


def test_bars_differ_in_more_than_colour() -> None:
    """Each kind has its own class, height or pattern, and is in the legend; each outcome has its own mark."""
    root = parsed(full_run())
    kinds = {str(rect.get("class")) for row in rows_of(root) for rect in row.iter(f"{SVG}rect")}
    assert kinds == set(KINDS)
    shapes = {
        kind: {(r.get("y"), r.get("height")) for r in root.iter(f"{SVG}rect") if r.get("class") == kind}
        for kind in KINDS
    }
    assert all(len(shape) == 1 for shape in shapes.values())
    patterns = {pattern.get("id") for pattern in root.iter(f"{SVG}pattern")}
    assert patterns == {"p-waiting", "p-approval", "p-late", "p-trouble"}
    marks = {str(use.get(XLINK)) for row in rows_of(root) for use in row.iter(f"{SVG}use")}
    assert {f"#m-{status}" for status in STATUSES if status != "open"} <= marks
    legend = words(root)
    assert all(text in legend for text in KINDS.values())


def test_what_is_missing_is_said() -> None:
    """Notes for the reader, and nothing of the kind where all is there."""
    root = parsed(run(batch(1, 0, 1, done("a", "t", 0, 1)), unreadable=2, unknown=1, dropped=1500, cut_off=1))
    said = [words(note) for note in root.iter(f"{HTML}p") if note.get("class") == "note"]
    assert said == [
        "It was not ended in order: its process died, or goes on. What has no outcome had none by then.",
        "2 records could not be read, as a crash leaves them.",
        "1 record of a later version left out.",
        "1,500 records were lost by whoever wrote them.",
    ]
    whole = parsed(run(batch(1, 0, 1, done("a", "t", 0, 1))))
    assert not [note for note in whole.iter(f"{HTML}p") if note.get("class") == "note"]


def test_what_is_not_known_is_not_claimed() -> None:
    """A batch of which only late results are on record has no time of its own, and was not said to be open."""
    root = parsed(run(batch(None, None, None, call("a", "t", status="timed_out"))))
    (head,) = [row for row in root.iter(f"{HTML}tr") if row.get("class") == "head"]
    assert "at an unknown time, 1 call, no close on record" in words(head)


def test_hostile_texts_are_texts() -> None:
    """No name, id, code or content becomes an element, an attribute, a script or a template; each is shown as it is."""
    root = parsed(hostile_run(), title="".join(HOSTILE[:4]))
    shown, facts = words(root), facts_of(root)
    rows = list(rows_of(root))
    assert len(rows) == 2 * len(HOSTILE)
    for text, row, known in zip(HOSTILE, rows[::2], facts[::2], strict=True):
        assert visible(text)[:60].strip() in words(row)
        assert ("Call", visible(text, keep="\n\t")) in known
        assert ("Late content", visible(text, keep="\n\t")) in known
    assert "49" not in shown.split()
    for char in "\u202e\u2066\x00\x1b\u2028":
        assert char not in shown


def test_ten_thousand_calls_are_bounded() -> None:
    """A page of so many calls has a thousand rows, counts of all, and a size that a browser opens at once."""
    for batches, calls in ((1, 10_000), (100, 100), (10_000, 1)):
        text = page(make_view(large_run(batches, calls), 1000), "run.jsonl")
        assert text.count('<tr class="call"') == 1000
        assert len(text) < 4_000_000
        assert "1,000 of 10,000 calls are shown" in text
        assert "9,000 more calls, not shown" in text or "not shown: " in text
        assert "failed: 100<" in text


def test_many_tools_that_a_model_made_up() -> None:
    """The table of tools is bounded too."""
    root = parsed(run(batch(1, 0, 1, *(done(str(number), f"tool_{number}", 0, 1) for number in range(900)))))
    (table,) = [table for table in root.iter(f"{HTML}table") if table.get("class") == "tools"]
    assert len(list(table.iter(f"{HTML}tr"))) == 202
    assert "700 others" in words(table)
    assert len(list(root.iter(f"{HTML}option"))) < 210


@given(any_run())
@settings(max_examples=60, deadline=None)
def test_whatever_is_known_makes_a_correct_page(record: RunRecord) -> None:
    """Any times, any texts, any gaps."""
    parsed(record)
    svg_of(record)


def svg_of(record: RunRecord, limit: int = 1000) -> ET.Element:
    """The drawing as a tree."""
    return ET.fromstring(standalone_svg(make_view(record, limit), "run.jsonl", chart_css()))


def test_the_drawing_is_complete() -> None:
    """All calls and batches, with words beside the bars; it refers to nothing but itself, and runs nothing."""
    root = svg_of(full_run())
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    for one in full_run().batches:
        assert f"Generation {one.generation}" in texts
    assert texts.count("search") == 6
    assert "timed out, then late" in texts
    assert set(KINDS.values()) <= set(texts)
    ids = {element.get("id") for element in root.iter() if element.get("id")}
    for element in root.iter():
        assert element.get(XLINK, "#m-failed")[1:] in ids
        assert not [name for name in element.attrib if name.startswith("on")]
    assert not list(root.iter(f"{SVG}script"))
    assert "prefers-color-scheme: dark" in "".join(element.text or "" for element in root.iter(f"{SVG}style"))


def test_the_drawing_takes_hostile_texts() -> None:
    """They are text there too; ten thousand calls are bounded."""
    root = svg_of(hostile_run())
    assert not [element for element in root.iter() if str(element.tag).removeprefix(SVG) in {"script", "img", "b"}]
    assert "<!--" in [element.text for element in root.iter(f"{SVG}text")]
    text = standalone_svg(make_view(large_run(1, 10_000), 1000), "run.jsonl", chart_css())
    assert len(text) < 2_000_000
    assert "9,000 more calls, not shown" in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_words_can_be_read(scheme: str) -> None:
    """The contrast of every text and mark with what is behind it, by WCAG: 4.5 for text, 3 for marks and bars."""
    colours = palette(scheme)
    for ink in ("ink", "dim"):
        for back in ("paper", "panel"):
            assert contrast(colours[ink], colours[back]) >= 4.5, (ink, back)
    for mark in (
        "good",
        "bad",
        "slow",
        "off",
        "wait",
        "running",
        "closed",
        "late-ink",
        "approval-ink",
        "waiting-ink",
        "focus",
    ):
        assert contrast(colours[mark], colours["paper"]) >= 3, mark


def palette(scheme: str) -> dict[str, str]:
    """The colours of a scheme."""
    blocks = re.findall(r":root \{(.*?)\}", chart_css(), re.DOTALL)
    found: dict[str, str] = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[0 if scheme == "light" else 1]))
    return found


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two colours, from 1 to 21."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    """A colour's relative luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
