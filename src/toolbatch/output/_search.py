"""Looking for a pattern in a text of any length, in a process that can be killed (G4).

Python's `re` holds the interpreter's lock while it matches, so in a thread a catastrophic pattern stops the event loop and
everything else: `(a+)+$` on 25 characters took 6.5 s here, on 30 it takes minutes. Measured alternatives: the `regex` package
stops matching in time, but not compiling (12 s, and 1 s without the lock); `google-re2` is linear and fast, but another language,
without look-around and back references. A process costs 30 ms a search, needs nothing installed, and whatever it does ends with it.
"""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from toolbatch.core import ToolError, sound

from ._search_child import Order

__all__ = ["INVALID", "Found", "Match", "search"]

INVALID: Final = "invalid_arguments"

_PROGRAM: Final = Path(__file__).with_name("_search_child.py")
_AT_ONCE: Final = 4  # processes of one event loop
_MAX_MATCHES: Final = 200
_MAX_CHARS: Final = (
    16_000  # of excerpts; so the whole answer fits the buffer of the child's output, and it never waits for us
)
_WIDTH: Final = 300
_MAX_PATTERN: Final = 1000  # characters
_ENCODING: Final = ("utf-8", "surrogatepass")

_places: "WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]" = WeakKeyDictionary()


class Match(NamedTuple):
    """One match: the number of its line from 1, where it begins in the text, and the line, or what stands around it."""

    line: int
    offset: int
    text: str


class Found(NamedTuple):
    """What a search came to.

    Attributes:
        matches: In the order of the text.
        next_offset: Where the rest begins that was not searched; `None` if nothing is left.
        is_stopped: Whether the time was over, or the memory.
    """

    matches: tuple[Match, ...]
    next_offset: int | None
    is_stopped: bool


async def search(pieces: AsyncIterator[str], pattern: str, *, start: int, seconds: float) -> Found:
    """Look for a regular expression of Python's, in each line of a text.

    Args:
        pieces: The text.
        pattern: What to look for.
        start: Matches that begin before this offset are passed over.
        seconds: How long the search may take once it has begun; then its process is killed.

    Raises:
        ToolError: The pattern is none, or there can be no process here.
        CancelledError: The caller was cancelled; the process is gone.
        Exception: What `pieces` raises; likewise.
    """
    if len(pattern) > _MAX_PATTERN:
        raise ToolError.respond_to_model(
            f"pattern has {len(pattern):,} characters, more than the {_MAX_PATTERN:,} that are allowed; look for less.",
            INVALID,
        )
    async with _places.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(_AT_ONCE)):
        said, is_late = await _ask(pieces, pattern, start, seconds)
    return _read(said.decode(*_ENCODING), start, is_late=is_late)


async def _ask(pieces: AsyncIterator[str], pattern: str, start: int, seconds: float) -> tuple[bytes, bool]:
    """Return what the child said, and whether it was killed before its end."""
    encoded = pattern.encode(*_ENCODING)
    order = Order(len(encoded), start, _MAX_MATCHES, _MAX_CHARS, _WIDTH, int(seconds) + 2)
    process = await _begin()
    timer = asyncio.timeout(seconds)
    try:
        try:
            async with timer:
                await _feed(process, b"%s\n%s" % (" ".join(map(str, order)).encode(), encoded), pieces)
                await process.wait()
        except TimeoutError:
            if not timer.expired():
                raise  # it is the store's own
    finally:
        await _end(process)
    assert process.stdout is not None  # noqa: S101  it was asked for
    return await process.stdout.read(), timer.expired()


async def _begin() -> Process:
    if not sys.executable or getattr(sys, "frozen", False) or not _PROGRAM.is_file():
        raise _unavailable("this program has no Python interpreter beside it")
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(_PROGRAM), stdin=PIPE, stdout=PIPE, stderr=DEVNULL
        )
    except (OSError, NotImplementedError, RuntimeError) as error:
        raise _unavailable(type(error).__name__) from error


async def _feed(process: Process, order: bytes, pieces: AsyncIterator[str]) -> None:
    sink = process.stdin
    assert sink is not None  # noqa: S101  it was asked for
    if not await _send(sink, order):
        return
    async for piece in pieces:
        if not await _send(sink, piece.encode(*_ENCODING)):
            return
    sink.close()


async def _send(sink: asyncio.StreamWriter, data: bytes) -> bool:
    """Send something to the child; False says that it takes no more: it has found enough, or can't use the pattern."""
    try:
        sink.write(data)
        await sink.drain()
    except (BrokenPipeError, ConnectionResetError, RuntimeError):  # the last is uvloop's, for a pipe that is closed
        return False
    return True


async def _end(process: Process) -> None:
    """Make sure that the process is gone, and nothing of it is left."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
    assert process.stdin is not None  # noqa: S101  it was asked for
    process.stdin.close()
    await process.wait()


def _read(said: str, start: int, *, is_late: bool) -> Found:
    matches: list[Match] = []
    reached = start
    lines = said.split("\n")[:-1]  # one without its end was cut off when the process was killed
    for line in lines:
        what, _, rest = line.partition(" ")
        if what == "match":
            number, offset, text = rest.split(" ", 2)
            matches.append(Match(int(number), int(offset), sound(text)))
            reached = int(offset) + 1
        elif what == "passed":
            reached = max(reached, int(rest))
        elif what == "full":
            return Found(tuple(matches), int(rest), is_stopped=False)
        elif what == "end":
            return Found(tuple(matches), None, is_stopped=False)
        elif what == "bad":
            raise ToolError.respond_to_model(
                f"pattern is not a regular expression that Python can read: {sound(rest)}", INVALID
            )
    if not lines and not is_late:
        raise _unavailable("its process did not start")
    return Found(tuple(matches), reached, is_stopped=True)


def _unavailable(why: str) -> ToolError:
    return ToolError.respond_to_model(
        f"Searching by pattern is not possible here ({why}); read the text by offset and limit instead."
    )
