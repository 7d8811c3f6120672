"""Takes the pictures of docs/report.md: a small agent's run, logged, reported, and looked at in a headless Chromium.

python -m tools.screenshots_report    # writes docs/images/report-light.png and report-dark.png

The times in it are the run's own, so that the pictures differ a little each time; CI does not compare them.
"""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

from toolbatch import ToolCall, ToolCatalog, ToolSession, tool
from toolbatch.cli import main as toolbatch
from toolbatch.observe import RunLog
from toolbatch.ports import Approve, Deny
from toolbatch.tools import InteractiveApprovals

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


@tool
async def search(query: str) -> str:
    """Search."""
    await asyncio.sleep(0.1 + len(query) / 60)
    return f"3 hits for {query}"


@tool
async def fetch(url: str) -> AsyncGenerator[str, None]:
    """Fetch a page."""
    for percent in (25, 50, 75):
        await asyncio.sleep(0.08)
        yield f"{percent} %"
    if "gone" in url:
        raise LookupError("404 Not Found")
    yield "a page"


@tool(timeout=0.3)
async def render(page: str) -> str:
    """Render a page; it ends what it has begun, whoever asks it to stop."""
    try:
        await asyncio.sleep(5)
    except asyncio.CancelledError:
        await asyncio.sleep(0.45)
    return f"{page} is rendered"


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    await asyncio.sleep(0.15)
    return f"paid {amount}"


async def run(path: Path) -> None:
    """Let an agent make three turns that have a bit of everything."""
    approvals = InteractiveApprovals()
    catalog = ToolCatalog([search, fetch, render, pay])
    loop = asyncio.get_running_loop()
    async with (
        RunLog(path, content_bytes=500) as log,
        ToolSession(tools=catalog, approvals=approvals, observers=[log], max_concurrency=3, run_id="demo") as session,
    ):
        first = [
            ToolCall("call_1", "search", {"query": "hotels in Lisbon"}),
            ToolCall("call_2", "fetch", {"url": "https://example.org/gone"}),
            ToolCall("call_3", "render", {"page": "map"}),
            ToolCall("call_4", "search", {"query": "trains from Porto to Lisbon"}),
            ToolCall("call_5", "serach", {"query": "weather"}),
        ]
        async with session.batch(first) as batch:
            batch.start_all()
        second = [
            ToolCall("call_6", "pay", {"amount": 120}),
            ToolCall("call_7", "pay", {"amount": 9000}),
            ToolCall("call_8", "fetch", {"url": "https://example.org/hotel"}),
        ]
        third = [ToolCall(f"call_{9 + number}", "search", {"query": "sun" * number}) for number in range(3)]
        await asyncio.sleep(0.3)  # the model thinks
        async with session.batch(second) as batch:
            batch.start_all()
            loop.call_later(0.2, approvals.resolve, "call_6", Approve())
            loop.call_later(0.3, approvals.resolve, "call_7", Deny("too much"))
        await asyncio.sleep(0.2)
        async with session.batch(third) as batch:
            batch.start_all()


def take(page: Path, chromium: str) -> None:
    """Open the page, choose the call that came late, and take a picture in each colour scheme."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            size = {"width": 1160, "height": 900}
            window = browser.new_page(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]  # one of its two
            window.goto(page.as_uri())
            window.locator("tr.call", has_text="call_3").click()
            window.screenshot(path=IMAGES / f"report-{scheme}.png")
        browser.close()


def main() -> int:
    """Take the pictures; return the exit code."""
    chromium = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if chromium is None:
        sys.stderr.write("no Chromium: apt-get install chromium-headless-shell, or set CHROMIUM\n")
        return 2
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        log, page = Path(folder, "agent.jsonl"), Path(folder, "agent.html")
        asyncio.run(run(log))
        toolbatch(["report", str(log), "-o", str(page)])
        take(page, chromium)
    return 0


if __name__ == "__main__":
    sys.exit(main())
