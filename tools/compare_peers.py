"""Writes the table of docs/compared.md: each system is given the same turns of a scripted model, and a cell is what it did.

.venv-peers/bin/python -m tools.compare_peers    # `make bench-peers` makes that environment, from benchmarks/peers.txt

Each system runs its whole loop by its public names: the model announces the calls, the system runs the tools, and what the model
is sent next is looked at. Systems that have no bound of time for a tool are given none.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from tools.peer_loops import LOOPS, Call, Loop, NoBound, NoText, Results, Tool
from tools.render_table import markdown_table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "compared.md"
MARKS = re.compile(
    r"(?<=<!-- compared: written by tools/compare_peers.py -->\n).*?(?=<!-- end of compared -->)", re.DOTALL
)
PACKAGES = ("langgraph", "pydantic-ai-slim", "openai-agents", "agent-framework-core", "anthropic", "toolbatch")
BOUND = 0.1
DEAF = 2.0

entered: list[str] = []
"""The tools that were entered, in order."""

is_deaf = asyncio.Event()
"""Is set when the tool that swallows cancellations is entered."""


async def fast(x: int = 0) -> str:
    """Return at once."""
    entered.append("fast")
    return f"fast {x}"


async def slow() -> str:
    """Return after a while."""
    await asyncio.sleep(0.1)
    return "slow"


async def boom() -> str:
    """Raise."""
    await asyncio.sleep(0.02)
    raise RuntimeError("password=hunter2")


async def deaf() -> str:
    """Swallow every cancellation, and return late."""
    is_deaf.set()
    until = time.monotonic() + DEAF
    while (left := until - time.monotonic()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            continue
    entered.append("deaf has ended")
    return "late value"


async def dated() -> dict[str, Any]:
    """Return what JSON has no word for."""
    return {"when": datetime(2026, 1, 1, tzinfo=UTC), "share": float("nan"), "raw": b"\x00\xff"}


TOOLS: Mapping[str, Tool] = {fn.__name__: fn for fn in (fast, slow, boom, deaf, dated)}


class Ran(NamedTuple):
    """What a system did with a turn: what the model is sent, or the exception that ended the run."""

    results: dict[str, str]
    answers: int
    error: str | None
    seconds: float


async def ran(loop: Loop, *calls: Call, timeout: float | None = None) -> Ran:
    """Run one turn to its end; whatever it raises ends the run."""
    entered.clear()
    began = time.monotonic()
    results: Results = []
    error = None
    try:
        results = await loop(calls, TOOLS, timeout)
    except (NoBound, NoText):
        raise
    except Exception as exc:  # noqa: BLE001  a run may end by anything, and that is what is asked here
        error = type(exc).__name__
    return Ran(dict(results), len(results), error, time.monotonic() - began)


def ended(error: str) -> str:
    """Return a cell that says that the run has ended."""
    return f"the run ends: `{error}`"


async def raises(loop: Loop) -> str:
    """One tool raises, and another one is still at work."""
    seen = await ran(loop, Call("a", "boom"), Call("b", "slow"))
    if seen.error is not None:
        return f"{ended(seen.error)}; the sibling's result is lost"
    kept = "both answered" if seen.results.get("b") == "slow" else "the sibling's result is lost"
    return f"{kept}; the message {'is shown' if 'hunter2' in seen.results['a'] else 'is hidden'}"


async def times_out(loop: Loop) -> str:
    """A tool has 0.1 seconds, does not care to be cancelled, and returns after 2."""
    try:
        seen = await ran(loop, Call("a", "deaf"), timeout=BOUND)
    except NoBound:
        return "no bound for a tool"
    if seen.error is not None:
        return ended(seen.error)
    told = "its late value, as a success" if "late value" in seen.results["a"] else "a timeout"
    return f"after {seen.seconds:.1f} s: {told}"


async def cancelled(loop: Loop) -> str:
    """The caller is cancelled 0.1 seconds after that tool was entered."""
    entered.clear()
    is_deaf.clear()
    task = asyncio.ensure_future(loop((Call("a", "fast"), Call("b", "deaf")), TOOLS, None))
    await is_deaf.wait()
    await asyncio.sleep(BOUND)
    began = time.monotonic()
    task.cancel()
    await asyncio.wait([task])
    waited = time.monotonic() - began
    has_ended = "deaf has ended" in entered
    told = "" if task.cancelled() else ", and goes on as if nothing had been"
    await asyncio.sleep(DEAF)
    return f"returns after {waited:.1f} s{told}{'' if has_ended else '; the tool runs on'}"


async def no_json(loop: Loop) -> str:
    """A tool returns a datetime, a NaN and bytes; its sibling a text."""
    seen = await ran(loop, Call("a", "dated"), Call("b", "fast"))
    if seen.error is not None:
        return f"{ended(seen.error)}; the sibling's result is lost"
    text = seen.results["a"]
    try:
        json.loads(text, parse_constant=_refuse)
    except ValueError:
        return f"text that is no JSON: `{text[:44]}…`"
    if "invalid_result" in text:
        return "an error, `invalid_result`"
    return f"JSON: `{text[:44]}…`{'; the NaN is gone' if 'NaN' not in text else ''}"


async def malformed(loop: Loop) -> str:
    """The arguments are cut off: `{"x": 1`."""
    try:
        seen = await ran(loop, Call("a", "fast", '{"x": 1'))
    except NoText:
        return "arguments are objects here"
    if entered:
        return "the tool is **run** with its defaults"
    if seen.error is not None:
        return ended(seen.error)
    return "an error, not run" if seen.answers else "not run, and not answered"


async def unknown(loop: Loop) -> str:
    """There is no such tool."""
    seen = await ran(loop, Call("a", "no_such_tool"), Call("b", "fast"))
    if seen.error is not None:
        return f"{ended(seen.error)}; the sibling's result is lost"
    return "an error for the model" if "a" in seen.results else "no answer"


async def twice(loop: Loop) -> str:
    """Two calls have one id."""
    seen = await ran(loop, Call("a", "fast", '{"x": 1}'), Call("a", "fast", '{"x": 2}'))
    if seen.error is not None:
        return ended(seen.error)
    ids = len(seen.results)
    return f"{seen.answers} answers {'with an id each' if ids == seen.answers else 'with one id'}"


SITUATIONS: Sequence[tuple[str, Callable[[Loop], Awaitable[str]]]] = (
    ("one of two tools raises", raises),
    ("a tool has 0.1 s, ignores its cancellation, returns after 2 s", times_out),
    ("the caller is cancelled while that tool runs", cancelled),
    ("a result is no JSON (`datetime`, NaN, bytes)", no_json),
    ("arguments are cut off", malformed),
    ("there is no such tool", unknown),
    ("two calls have one id", twice),
)


def _refuse(name: str) -> None:
    raise ValueError(name)


async def table() -> str:
    """Return the whole table: a section a situation, a row a system."""
    parts = []
    for title, situation in SITUATIONS:
        rows = [[name, await situation(loop)] for name, loop in LOOPS.items()]
        parts.append(f"### {title[0].upper()}{title[1:]}\n\n{markdown_table(['system', 'what happens'], rows)}\n")
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    parts.append(f"Tried on {datetime.now(UTC):%Y-%m-%d} with {versions}.\n")
    return "\n".join(["", *parts, ""])


def main() -> int:
    """Try all of them, and write the table into the page."""
    written = asyncio.run(table())
    text, found = MARKS.subn(lambda _match: written, PAGE.read_text(encoding="utf-8"))
    if not found:
        sys.stderr.write(f"{PAGE} has no place for the table\n")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
