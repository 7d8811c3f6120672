"""Writes docs/images/trace.png: a trace of `examples/traced_agent.py` in a viewer, as a browser shows it. By hand, not in CI.

pip install arize-phoenix playwright; phoenix serve
OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:6006 python examples/traced_agent.py
python -m tools.trace_screenshot http://localhost:6006 --browser /usr/bin/chromium
"""

import argparse
import json
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import sync_playwright

__all__ = ["main"]

IMAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "images" / "trace.png"


def _asked(url: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as response:
        return json.load(response)["data"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Look at the latest trace of the viewer, and write the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("viewer", help="where Phoenix listens, such as http://localhost:6006")
    parser.add_argument("--browser", help="the browser's program; playwright's own where it is not given")
    options = parser.parse_args(arguments)
    project = _asked(f"{options.viewer}/v1/projects")[0]["id"]
    trace_id = _asked(f"{options.viewer}/v1/projects/default/spans?limit=1")[0]["context"]["trace_id"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=options.browser, args=["--no-sandbox", "--no-proxy-server"]
        )
        page = browser.new_page(viewport={"width": 1400, "height": 1040})
        page.goto(f"{options.viewer}/projects/{project}/traces/{trace_id}")
        page.get_by_text("execute_tool scrape").first.click(timeout=60_000)
        page.get_by_text("timed out after").first.wait_for(timeout=60_000)
        page.wait_for_timeout(2000)  # until what slides has slid
        page.screenshot(path=IMAGE)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
