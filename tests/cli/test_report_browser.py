"""The page as a person has it before them: in a real browser, with a mouse, with the keyboard alone, in the dark, on paper.

Without a Chromium only these tests are skipped; what can be seen without one is in test_report_page.py.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.runs import HOSTILE, full_run, hostile_run, large_run
from toolbatch.cli._report_chart import standalone_svg
from toolbatch.cli._report_page import chart_css, page
from toolbatch.cli._report_view import KINDS, make_view
from toolbatch.cli._report_words import visible
from toolbatch.observe import RunRecord

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, FloatRect, Page

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)

pytestmark = [
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium: apt-get install chromium-headless-shell, or set CHROMIUM"
    ),
    pytest.mark.timeout(120),
]

Opened = Callable[..., "Page"]


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: "Browser", tmp_path: Path) -> Iterator[Opened]:
    """Opens a report in a window of its own. Afterwards: no error, no message, no request but for the file, no dialog."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_page(record: RunRecord, *, svg: bool = False, **options: Any) -> "Page":
        view = make_view(record, 1000)
        path = tmp_path / ("run.svg" if svg else "run.html")
        path.write_text(
            standalone_svg(view, "run.jsonl", chart_css()) if svg else page(view, "run.jsonl"), encoding="utf-8"
        )
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        context.set_default_timeout(30_000)
        window = context.new_page()
        window.on("console", lambda message: complaints.append(message.text))
        window.on("pageerror", lambda error: complaints.append(str(error)))
        window.on("dialog", lambda dialog: complaints.append(dialog.message))
        window.on("request", lambda request: complaints.append(request.url) if request.url != path.as_uri() else None)
        window.goto(path.as_uri())
        return window

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def shown(window: "Page") -> list[str]:
    """The ids of the calls that can be seen."""
    return window.locator("tr.call:visible .id").all_inner_texts()


def facts(window: "Page") -> dict[str, str]:
    """What the panel says."""
    labels = window.locator("#panel dt").all_inner_texts()
    return dict(zip(labels, window.locator("#panel dd").all_inner_texts(), strict=True))


def test_calls_can_be_filtered(opened: Opened) -> None:
    """By tool, by outcome, by lateness, by any text that is known of them; headings go with the last of their calls."""
    from playwright.sync_api import expect

    window = opened(full_run())
    assert len(shown(window)) == 14
    assert window.locator("#shown").inner_text() == ""
    window.get_by_label("Tool", exact=True).select_option("pay")
    assert shown(window) == ["call_e", "call_f"]
    assert window.locator("#shown").inner_text() == "2 of 14 calls"
    assert window.locator("tr.head:visible").count() == 1
    window.get_by_label("Outcome", exact=True).select_option("denied")
    assert shown(window) == ["call_f"]
    window.get_by_role("button", name="Show all").click()
    expect(window.locator("tr.call:visible")).to_have_count(14)  # the reset is acted on a moment later
    window.get_by_label("Outcome", exact=True).select_option("came late")
    assert shown(window) == ["call_c"]
    window.get_by_label("Outcome", exact=True).select_option("all")
    window.get_by_label("Text", exact=True).fill("HTTPERROR")
    assert shown(window) == ["call_b"]
    window.get_by_label("Text", exact=True).fill("nothing like this")
    assert shown(window) == []
    assert window.locator("tr.head:visible").count() == 0


def test_a_call_is_chosen_with_the_mouse(opened: Opened) -> None:
    """A click anywhere in its row opens the panel with all that is known; another closes it."""
    window = opened(full_run())
    panel = window.locator("#panel")
    assert not panel.is_visible()
    row = window.locator("tr.call", has_text="call_c")
    row.locator("td.time").click()
    assert panel.is_visible()
    known = facts(window)
    assert (known["Tool"], known["Call"], known["Outcome"], known["Code"]) == (
        "render",
        "call_c",
        "timed out",
        "timeout",
    )
    assert (known["Late by"], known["Late content"], known["Time bound"]) == ("1.5 s", "the page", "1 s")
    assert row.get_by_role("button").get_attribute("aria-expanded") == "true"
    window.locator("tr.call", has_text="call_a").click()
    assert facts(window)["Arguments"] == '{"q": "cats"}'
    assert row.get_by_role("button").get_attribute("aria-expanded") == "false"
    window.locator("tr.call", has_text="call_a").click()
    assert not panel.is_visible()
    row.click()
    panel.get_by_role("button", name="Close").click()
    assert not panel.is_visible()
    assert window.evaluate("document.activeElement.innerText").startswith("render call_c")


def test_a_call_is_chosen_with_the_keyboard(opened: Opened) -> None:
    """Tab, arrows, Enter and Escape do everything; the focus comes back, and can be seen."""
    window = opened(full_run())
    window.get_by_role("button", name="Show all").focus()
    window.keyboard.press("Tab")
    assert window.evaluate("document.activeElement.innerText").startswith("search call_a")
    assert window.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    window.keyboard.press("Enter")
    assert facts(window)["Call"] == "call_a"
    window.keyboard.press("ArrowDown")
    window.keyboard.press("ArrowDown")
    assert facts(window)["Call"] == "call_c"
    window.keyboard.press("ArrowUp")
    assert facts(window)["Call"] == "call_b"
    window.keyboard.press("Escape")
    assert not window.locator("#panel").is_visible()
    assert window.evaluate("document.activeElement.innerText").startswith("fetch call_b")
    window.get_by_label("Text", exact=True).fill("call_d")
    window.get_by_role("button", name="search call_d").focus()
    window.keyboard.press("ArrowDown")  # there is no other
    window.keyboard.press("Enter")
    assert facts(window)["Call"] == "call_d"
    window.get_by_label("Text", exact=True).fill("call_a")  # it goes with its row
    assert not window.locator("#panel").is_visible()


def test_bars_are_where_their_times_are(opened: Opened) -> None:
    """Places and lengths on the screen are those of the times: measured in pixels."""
    window = opened(full_run())

    def box(call: str, kind: str) -> "FloatRect":
        found = window.locator("tr.call", has_text=call).locator(f"rect.{kind}").bounding_box()
        assert found is not None
        return found

    second = box("call_d", "running")["width"] / 0.8
    assert box("call_b", "running")["width"] == pytest.approx(second * 0.69, rel=0.02)
    assert box("call_c", "late")["width"] == pytest.approx(second * 1.5, rel=0.02)
    assert box("call_d", "running")["x"] - box("call_a", "running")["x"] == pytest.approx(second * 0.39, rel=0.02)
    marks = window.locator("tr.call", has_text="call_a").locator("use[*|href='#m-succeeded']")
    mark = marks.last.bounding_box()
    assert mark is not None
    assert mark["x"] + mark["width"] / 2 == pytest.approx(box("call_a", "running")["x"] + second * 0.39, abs=4)
    ticks = window.locator("#b0 tr.head text")
    first, then = (tick.bounding_box() for tick in (ticks.nth(0), ticks.nth(1)))
    assert first is not None
    assert then is not None
    assert ticks.nth(1).inner_html() == "1 s"
    assert then["x"] - first["x"] == pytest.approx(second, rel=0.02)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_bars_can_be_told_apart_without_colour(opened: Opened, scheme: str) -> None:
    """In grey, as some people see and many printers print, no two kinds look alike, and patterns are painted."""
    window = opened(full_run(), color_scheme=scheme, bypass_csp=True)
    window.add_style_tag(content="html { filter: grayscale(1) }")
    samples = window.locator("ul.legend").first.locator("svg")
    assert samples.count() == len(KINDS)
    fills = samples.locator("rect").evaluate_all("all => all.map(one => getComputedStyle(one).fill)")
    assert [fill.startswith("url(") for fill in fills] == [kind in {"waiting", "approval", "late"} for kind in KINDS]
    pictures = [samples.nth(number).screenshot() for number in range(len(KINDS))]
    assert len(set(pictures)) == len(KINDS)
    marks = window.locator("ul.legend").nth(1).locator("svg")
    assert len({marks.nth(number).screenshot() for number in range(marks.count())}) == marks.count() == 8


def test_the_dark_page_is_dark(opened: Opened) -> None:
    """It follows what the reader's system prefers."""
    colours = {}
    for scheme in ("light", "dark"):
        window = opened(full_run(), color_scheme=scheme)
        colours[scheme] = window.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colours == {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(opened: Opened, scheme: str) -> None:
    """axe finds nothing to complain of, with the panel open or not, and with hostile names."""
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    for record in (full_run(), hostile_run()):
        window = opened(record, color_scheme=scheme)
        assert complaints_of(Axe().run(window)) == []
        window.locator("tr.call").nth(2).click()
        assert complaints_of(Axe().run(window)) == []


def complaints_of(results: Any) -> list[str]:
    """Each rule that is broken, with the first element that breaks it."""
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in results.response["violations"]]


def test_it_can_be_printed(opened: Opened) -> None:
    """On paper it is light, has neither filters nor panel, keeps its colours and leaves no call out."""
    window = opened(full_run(), color_scheme="dark")
    window.locator("tr.call").first.click()
    window.emulate_media(media="print", color_scheme="dark")
    assert window.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert window.evaluate("getComputedStyle(document.body).printColorAdjust") == "exact"
    assert not window.locator("form").is_visible()
    assert not window.locator("#panel").is_visible()
    assert window.locator("tr.call:visible").count() == 14
    assert window.pdf(prefer_css_page_size=True).startswith(b"%PDF")


@pytest.mark.parametrize("width", [320, 600, 900, 2400])
def test_it_fits_every_window(opened: Opened, width: int) -> None:
    """Nothing has to be scrolled sideways, with the panel open or not."""
    for record in (full_run(), hostile_run()):
        window = opened(record, viewport={"width": width, "height": 700})
        assert window.evaluate("document.documentElement.scrollWidth") <= width
        window.locator("tr.call button").first.click()
        assert window.locator("#panel").is_visible()
        assert window.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_it_still_tells_the_story(opened: Opened) -> None:
    """Where scripts are off there are no filters that do nothing, and everything else is there."""
    window = opened(full_run(), java_script_enabled=False)
    assert window.locator("tr.call:visible").count() == 14
    assert not window.locator("form").is_visible()
    assert not window.locator("#panel").is_visible()


def test_hostile_texts_run_nothing(opened: Opened) -> None:
    """Names that would like to be scripts are shown, in the table and in the panel, and stay text."""
    window = opened(hostile_run())
    assert window.locator("tr.call").count() == 2 * len(HOSTILE)
    for number, text in enumerate(HOSTILE):
        window.locator("tr.call").nth(2 * number).click()
        known = window.locator("#panel dd bdi").first.text_content()
        assert known == visible(text, keep="\n\t")
    window.get_by_label("Text", exact=True).fill("</script>")
    assert len(shown(window)) == 2
    assert window.evaluate("window.pwned") is None
    assert window.locator("img, iframe, object, embed").count() == 0


@pytest.mark.parametrize("batches", [1, 1000])
def test_ten_thousand_calls_can_be_used(opened: Opened, batches: int) -> None:
    """The page opens, filters and answers a click."""
    window = opened(large_run(batches, 10_000 // batches))
    assert window.locator("tr.call").count() == 1000
    window.get_by_label("Outcome", exact=True).select_option("failed")
    assert window.locator("tr.call:not([hidden])").count() == 100
    window.locator("tr.call:not([hidden])").nth(50).click()
    assert facts(window)["Outcome"] == "failed"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_drawing_alone(opened: Opened, scheme: str) -> None:
    """The SVG shows itself, in the reader's colours, and no text runs into another."""
    window = opened(full_run(), svg=True, color_scheme=scheme)
    paper = window.evaluate("getComputedStyle(document.querySelector('.paper')).fill")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}[scheme]
    boxes = window.evaluate(
        "[...document.querySelectorAll('text')].map(t => t.getBoundingClientRect()).map(b => [b.left, b.top, b.right, b.bottom])"
    )
    width = window.evaluate("document.documentElement.getBoundingClientRect().width")
    assert len(boxes) > 40
    for number, (left, top, right, bottom) in enumerate(boxes):
        assert left >= 0
        assert right <= width
        for other in boxes[number + 1 :]:
            apart = other[0] >= right or other[2] <= left or other[1] + 4 >= bottom or other[3] - 4 <= top
            assert apart, "two texts overlap"
