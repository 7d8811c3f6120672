"""Writes the pictures of the documentation; with `--check`, fails if one is not what it would write.

python -m tools.screenshots            # write them
python -m tools.screenshots --check    # exit 1 if one is out of date

The live view is drawn from a story that is written down here, on a clock that stands still, so the picture is the same each time. Another version of rich may draw it
otherwise: write it anew then.
"""

import argparse
import io
import re
import sys
from collections.abc import Sequence
from contextvars import copy_context
from pathlib import Path
from typing import Final

from rich import _export_format
from rich.console import Console

from toolbatch.core import Failed, Settlement, Succeeded, ToolCall
from toolbatch.observe import LiveView
from toolbatch.observe._live_render import render
from toolbatch.ports import (
    BatchOpened,
    BatchWatcher,
    CallAdmitted,
    CallProgress,
    CallSettled,
    CallStarted,
    ExecutionOutcome,
    ExecutionStatus,
)
from tools.render_table import check

__all__ = ["live_view", "main"]

IMAGES: Final = Path(__file__).resolve().parent.parent / "docs" / "images"

_FONTS: Final = re.compile(r"\s*@font-face \{\{.*?\}\}", re.DOTALL)


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class _Story:
    """One batch, told call by call."""

    def __init__(self, view: LiveView, clock: _Clock, generation: int, calls: Sequence[ToolCall]) -> None:
        self._clock = clock
        self._generation = generation
        self._names = {call.id: call.name for call in calls}
        watcher = view(BatchOpened(generation=generation, run_id=None, calls=tuple(calls)))
        assert isinstance(watcher, BatchWatcher)
        self._watcher = watcher

    def admit(self, call_id: str) -> None:
        admitted = CallAdmitted(call=ToolCall(call_id, self._names[call_id]), execution_id=call_id, description=None)
        self._watcher.prepare(admitted, copy_context())

    def start(self, call_id: str, at: float, bound: float | None) -> None:
        self._clock.now = at
        self._watcher.event(
            CallStarted(
                call_id=call_id,
                tool_name=self._names[call_id],
                generation=self._generation,
                execution_id=call_id,
                seconds_left=bound,
            )
        )

    def report(self, call_id: str, content: str) -> None:
        name = self._names[call_id]
        self._watcher.event(
            CallProgress(
                call_id=call_id, tool_name=name, generation=self._generation, execution_id=call_id, content=content
            )
        )

    def settle(
        self, call_id: str, status: ExecutionStatus, took: float, settlement: Settlement, *, ended: bool = True
    ) -> None:
        outcome = ExecutionOutcome(
            execution_id=call_id,
            call_id=call_id,
            tool_name=self._names[call_id],
            generation=self._generation,
            run_id=None,
            status=status,
            started=True,
            completion="settled" if ended else "unknown",
            cancellation="none" if ended else "requested",
            started_at=0.0,
            duration=took,
            timeout=None,
            deadline_late_by=None,
        )
        self._watcher.event(CallSettled(outcome, settlement))


def live_view() -> str:
    """Return the live view in mid-run, as SVG."""
    clock = _Clock()
    view = LiveView(None, clock)
    names = {
        "call_1": "search_flights",
        "call_2": "search_hotels",
        "call_3": "read_calendar",
        "call_4": "convert_currency",
        "call_5": "book_flight",
        "call_6": "scrape_page",
        "call_7": "send_summary",
    }
    story = _Story(view, clock, 3, [ToolCall(call_id, name) for call_id, name in names.items()])
    for call_id in names:
        story.admit(call_id)
    story.start("call_1", 0.0, 30.0)
    story.start("call_2", 0.2, 12.0)
    story.start("call_3", 0.2, 10.0)
    story.settle("call_3", "succeeded", 0.4, Succeeded("free"))
    story.start("call_4", 0.6, 5.0)
    story.settle("call_4", "failed", 1.1, Failed("tool_error", "no such currency"))
    story.start("call_6", 1.8, 5.0)
    story.settle("call_6", "timed_out", 5.0, Failed("timeout", "timed out"), ended=False)
    story.start("call_5", 6.0, None)
    story.report("call_1", "6 of 10: asks the sixth airline")
    story.report("call_2", '{"progress": 45, "total": 60, "message": "page 45"}')
    story.report("call_5", "waits for the airline's confirmation")
    clock.now = 9.4
    console = Console(
        file=io.StringIO(), record=True, width=104, force_terminal=True, color_system="truecolor", legacy_windows=False
    )
    console.print(render(view.turns(), clock.now, 20))
    code_format = _FONTS.sub("", _export_format.CONSOLE_SVG_FORMAT)  # which would be fetched from another site
    return console.export_svg(title="with live(session): ...", code_format=code_format, unique_id="live")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pictures, or check them; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a picture is out of date")
    picture, drawn = IMAGES / "live.svg", live_view()
    if not parser.parse_args(arguments).check:
        IMAGES.mkdir(exist_ok=True)
        picture.write_text(drawn, encoding="utf-8")
    elif check(picture, drawn) is not None:
        sys.stderr.write(f"{picture.name} is out of date; run `python -m tools.screenshots`\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
