"""Draws the pictures of docs/concepts.md from the code; with `--check`, fails if one is not what it would draw.

python -m tools.render_pictures            # write docs/images/life.svg and the timelines
python -m tools.render_pictures --check    # exit 1 if one is out of date; CI runs this

A timeline is a real batch, run on a clock that jumps, logged by a `RunLog` and drawn as `toolbatch report` draws it. So a
picture shows what the library does and not what somebody thinks it does, and is the same each time.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import drawsvg as dw  # type: ignore[import-untyped]

from tests.batch.clock import START, ClockLoop, run
from toolbatch import ToolCall, ToolCatalog, ToolSession, tool
from toolbatch.cli._report_chart import standalone_svg
from toolbatch.cli._report_page import chart_css
from toolbatch.cli._report_view import make_view
from toolbatch.core import LATE, TABLE, Input, State
from toolbatch.core._table import Table
from toolbatch.observe import RunLog, read_run
from toolbatch.ports import Approve
from toolbatch.tools import FixedApprovals, InteractiveApprovals
from tools.render_table import check

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
NOON = 1767268800.0  # 2026-01-01 12:00 UTC: when the clock of a story begins
PENDING = (State.ANNOUNCED, State.RUNNING)
ENDS = (State.SUCCESS, State.ERROR, State.CANCELLED)

LIFE_CSS = """
.box { fill: var(--panel); stroke: var(--line); stroke-width: 1.5; }
.pending { fill: none; stroke: var(--dim); stroke-width: 1.5; stroke-dasharray: 5 4; }
.success { stroke: var(--good); } .error { stroke: var(--bad); } .cancelled { stroke: var(--off); }
.way { fill: none; stroke: var(--ink); stroke-width: 1.5; }
.tip { fill: var(--ink); }
"""

Story = Callable[[RunLog], Awaitable[object]]


@tool
async def weather(city: str) -> str:
    """Look up the weather."""
    await asyncio.sleep(0.4)
    return f"{city}: 4 degrees"


@tool
async def hotels(city: str) -> str:
    """Look for hotels."""
    await asyncio.sleep(1.5)
    return f"3 hotels in {city}"


@tool(timeout=1)
async def flights(city: str) -> str:
    """Look for flights; whoever asks it to stop, it ends what it has begun."""
    return await _stubborn(1.8, f"a flight to {city}")


@tool
async def report(topic: str) -> str:
    """Write a report; whoever asks it to stop, it ends what it has begun."""
    return await _stubborn(1.6, f"all about {topic}")


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    await asyncio.sleep(0.5)
    return f"paid {amount}"


TOOLS = ToolCatalog([weather, hotels, flights, report, pay])


async def _stubborn(seconds: float, value: str) -> str:
    """Return `value` after so many seconds, deaf to every cancellation."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while (left := until - loop.time()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            continue
    return value


async def timeout_story(log: RunLog) -> None:
    """A call whose time is over, and whose tool does not stop."""
    calls = [_call("a", "weather", city="Oslo"), _call("b", "flights", city="Oslo"), _call("c", "hotels", city="Oslo")]
    async with ToolSession(tools=TOOLS, observers=[log]) as session, session.batch(calls) as batch:
        batch.start_all()


async def superseded_story(log: RunLog) -> None:
    """A turn that a newer one overtakes, and a tool of the older one that ends afterwards."""
    async with ToolSession(tools=TOOLS, observers=[log]) as session:
        first = session.batch([_call("a", "weather", city="Oslo"), _call("b", "report", topic="Oslo")])
        async with first:
            first.start_all()
            await asyncio.sleep(1)
            async with session.batch([_call("a", "weather", city="Rome")]) as second:  # the user has asked anew
                second.start_all()


async def approval_story(log: RunLog) -> None:
    """A call that waits for a person, a pause of a day, and the same call with its approval."""
    calls = [_call("a", "weather", city="Oslo"), _call("b", "pay", amount=50)]
    async with (
        ToolSession(tools=TOOLS, approvals=InteractiveApprovals(), observers=[log]) as session,
        session.batch(calls) as batch,
    ):
        batch.start_all()
        await asyncio.sleep(1)
        kept = (await batch.pause()).to_dict()
    await asyncio.sleep(86_400)
    decided = FixedApprovals(by_call_id={"b": Approve()})
    async with (
        ToolSession(tools=TOOLS, approvals=decided, observers=[log]) as session,
        session.batch(calls, resume=kept) as batch,
    ):
        batch.start_all()


STORIES: Mapping[str, tuple[str, Story]] = {
    "timeout": ("a timeout", timeout_story),
    "superseded": ("a newer turn", superseded_story),
    "approval": ("an approval, a day later", approval_story),
}


def timeline(title: str, story: Story) -> str:
    """Run a story on a jumping clock and return its chart.

    Args:
        title: What the chart is called.
        story: Runs batches that the log observes.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, loop = Path(folder) / "run.jsonl", ClockLoop()

        async def told() -> None:
            await story(log)

        with patch("time.time", lambda: NOON + loop.now - START), RunLog(path) as log:
            run(told(), loop)
        view = make_view(read_run(path), sys.maxsize)
    return f"{standalone_svg(view, title, chart_css())}\n"


def life(table: Table) -> str:
    """Return the diagram of a call's life; the two pending states share the ways out of them.

    Raises:
        ValueError: They don't, so that this diagram can't show the table.
    """
    ways = _ways(table, State.RUNNING)
    if (
        _ways(table, State.ANNOUNCED) != ways
        or any(table[state][Input.START] is not State.RUNNING for state in PENDING)
        or sum(map(len, ways.values())) != len(Input) - 1
        or any(table[state][event] is not LATE for state in ENDS for event in Input)
    ):
        raise ValueError("the pending states differ in how they end, or a final state goes on: draw it otherwise")
    drawing = dw.Drawing(860, 250, role="img")
    drawing.append_title(
        "A call's life: pending, then exactly one of success, error and cancelled; anything more is late"
    )
    drawing.append_css(f"{chart_css()}{LIFE_CSS}")
    drawing.append(dw.Rectangle(0, 0, 860, 250, class_="paper"))
    drawing.append(dw.Rectangle(20, 54, 370, 120, rx=8, class_="pending"))
    drawing.append(dw.Text("pending", 13, 32, 46, class_="dim"))
    drawing.extend(_box(State.ANNOUNCED, 40, 92))
    drawing.extend(_box(State.RUNNING, 250, 92))
    drawing.extend(_way([(160, 114), (250, 114)]))
    drawing.append(dw.Text(Input.START.name, 12, 205, 106, text_anchor="middle"))
    for top, (state, events) in zip((22, 92, 162), ways.items(), strict=True):
        drawing.extend(_way([(390, 114), (450, top + 22), (640, top + 22)]))
        drawing.append(dw.Text(", ".join(events), 12, 545, top + 15, text_anchor="middle"))
        drawing.extend(_box(state, 640, top))
        drawing.append(dw.Text("then: late", 12, 770, top + 26, class_="dim"))
    drawing.append(dw.Text("Whatever comes first decides. It is never undone.", 13, 20, 232, class_="dim"))
    text: str = drawing.as_svg(header=dw.drawing.XML_HEADER)
    return f"{text}\n"


def pictures() -> dict[str, str]:
    """Return every picture by the name of its file."""
    drawn = {"life.svg": life(TABLE)}
    for name, (title, story) in STORIES.items():
        drawn[f"timeline-{name}.svg"] = timeline(title, story)
    return drawn


def _call(call_id: str, name: str, **arguments: object) -> ToolCall:
    return ToolCall(call_id, name, arguments)


def _ways(table: Table, source: State) -> dict[State, list[str]]:
    return {target: [event.name for event in Input if table[source][event] is target] for target in ENDS}


def _box(state: State, left: int, top: int) -> list[Any]:
    return [
        dw.Rectangle(left, top, 120, 44, rx=8, class_=f"box {state.name.lower()}"),
        dw.Text(state.name, 13, left + 60, top + 27, text_anchor="middle", class_="strong"),
    ]


def _way(points: Sequence[tuple[int, int]]) -> list[Any]:
    """Return a line through some points with a tip at its end, which it meets from the left."""
    (x, y) = points[-1]
    line = dw.Path(f"M{' L'.join(f'{a} {b}' for a, b in points)}", class_="way")
    return [line, dw.Path(f"M{x} {y}L{x - 9} {y - 5}L{x - 9} {y + 5}Z", class_="tip")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the pictures; return the exit status."""
    parser = argparse.ArgumentParser(description="Draw the pictures of docs/concepts.md from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a picture is out of date")
    parser.add_argument("--folder", type=Path, default=IMAGES, help="where they are (default: %(default)s)")
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    drawn = pictures()
    if options.check:
        problems = [name for name, text in drawn.items() if check(folder / name, text) is not None]
        for name in problems:
            sys.stderr.write(f"{folder / name} is not what the code draws; run `make docs` and look at the change\n")
        return 1 if problems else 0
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in drawn.items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
