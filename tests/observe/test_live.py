"""The live view: what a terminal shows while batches run, plain lines elsewhere, and that nothing of it does harm."""

import asyncio
import gc
import io
import json
import os
import pty
import subprocess
import sys
import threading
import unicodedata
import weakref
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.batch.kit import Stubborn, boom, calls, forever, instant, turn
from toolbatch import ToolBatch, ToolCall, ToolSession, current_call, tool
from toolbatch.core import InvalidTypeError
from toolbatch.observe import LiveView, live
from toolbatch.observe._live_model import CallRow, plain, read_report
from toolbatch.ports import Approve, BatchOpened
from toolbatch.tools import InteractiveApprovals, Interceptor

pytestmark = pytest.mark.usefixtures("nothing_left")

COLUMNS, LINES = 100, 20


class Terminal(io.StringIO):
    """A terminal: what is written is shown on a screen, as a real emulator shows it."""

    def __init__(self) -> None:
        self.screen = pyte.HistoryScreen(COLUMNS, LINES, history=1000)
        self._stream = pyte.Stream(self.screen)
        self._lock = threading.Lock()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self._lock:
            self._stream.feed(text.replace("\n", "\r\n"))
        return len(text)

    def lines(self) -> list[str]:
        """What is on the screen, without empty lines."""
        with self._lock:
            return [line.rstrip() for line in self.screen.display if line.strip()]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of a known size and kind."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("LINES", str(LINES))
    return Terminal()


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def shown(terminal: Terminal, condition: Callable[[list[str]], bool]) -> list[str]:
    """Wait until the thread that draws has drawn what is waited for."""
    for _ in range(500):
        lines = terminal.lines()
        if condition(lines):
            return lines
        await asyncio.sleep(0.01)
    raise AssertionError("\n".join(terminal.lines()))


def has(*texts: str) -> Callable[[list[str]], bool]:
    """Say whether all texts are on the screen."""
    return lambda lines: all(any(text in line for line in lines) for text in texts)


async def test_a_table_with_a_bar_for_each_running_call(terminal: Terminal) -> None:
    """States, bars that run down to the deadline, reports and times are there while it happens, and stay at the end (B19)."""
    clock = Clock()
    gate = asyncio.Event()

    async def search() -> str:
        current_call().progress("3 of 10: reads page 3")
        await gate.wait()
        return "found"

    async with ToolSession() as session:
        with live(session, stream=terminal, clock=clock):
            async with session.batch(calls("a", "b", "c", "d"), max_concurrency=2) as batch:
                batch.start("a", search, timeout=100)
                batch.start("b", boom)
                batch.start("c", forever)
                await turn(5)
                clock.now += 75
                lines = await shown(terminal, has("25.0 s left"))
                gate.set()
                await turn(5)
                batch.close()
            await shown(terminal, has("closed: cancelled"))
    assert lines[0].startswith("Turn 1  2 running  1 failed  1 not started yet")
    (first,) = [line for line in lines if "tool_a" in line]
    assert "━" in first
    assert "30% 3 of 10: reads page 3" in first
    (third,) = [line for line in lines if "tool_c" in line]
    assert third.endswith("75.0 s")
    last = terminal.lines()
    assert [line.split()[0] for line in last[1:5]] == ["✔", "✘", "■", "■"]
    assert "cancelled" in last[3]
    assert not terminal.screen.cursor.hidden


def bar(terminal: Terminal, name: str) -> int:
    """How many cells of a call's bar are lit."""
    for y, line in enumerate(terminal.screen.display):
        if name in line:
            row = terminal.screen.buffer[y]
            return sum(row[x].data in "━╸" and row[x].fg in ("green", "brown", "red") for x in range(COLUMNS))
    return -1


async def test_the_bar_runs_down(terminal: Terminal) -> None:
    """The lit part of a bar is the part of its time that a call has left, in its colour."""
    clock = Clock()
    seen = []
    async with ToolSession() as session:
        with live(session, stream=terminal, clock=clock):
            async with session.batch(calls("a")) as batch:
                batch.start("a", forever, timeout=100)
                await turn(3)
                for gone in (0, 50, 75, 100, 200):
                    clock.now = 100.0 + gone
                    await shown(terminal, has(f"{max(0, 100 - gone)}.0 s left"))
                    seen.append(bar(terminal, "tool_a"))
                batch.close()
    assert seen[0] == 20
    assert seen == sorted(seen, reverse=True)
    assert seen[1] in (10, 11)
    assert seen[3:] == [0, 0]


async def test_what_is_printed_appears_above(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host's own prints don't tear the table, and standard output and error are its own again afterwards."""
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    async with ToolSession() as session:
        with live(session):
            async with session.batch(calls("a")) as batch:
                batch.start("a", instant)
                sys.stdout.write("hello from the host\n")
                sys.stderr.write("and its log\n")
    lines = terminal.lines()
    assert lines[:2] == ["hello from the host", "and its log"]
    assert lines[2].startswith("Turn 1  1 succeeded")
    assert len(lines) == 4
    assert sys.stdout is terminal
    assert sys.stderr is terminal


async def test_several_batches_and_sessions(terminal: Terminal) -> None:
    """Batches of several sessions, nested ones and a lone one are all there, the latest last, within the screen."""
    gate = asyncio.Event()

    async with ToolSession(run_id="one") as first, ToolSession() as second:
        with live(first, second, stream=terminal) as view:

            async def nested() -> str:
                async with ToolBatch(calls("x"), observers=[view]) as batch:
                    batch.start("x", gate.wait)
                return "done"

            async with first.batch(calls("a")) as outer, second.batch(calls("b")) as other:
                outer.start("a", nested)
                other.start("b", forever)
                lines = await shown(terminal, has("Turn 3", "tool_x"))
                gate.set()
                other.close()
            for _ in range(20):
                async with first.batch(calls("z")) as batch:
                    batch.start("z", instant)
            assert [turn.number for turn in view.turns()] == [20, 21, 22, 23]
    assert [line.split("  ")[0] for line in lines if line.startswith("Turn")] == ["Turn 1 of one", "Turn 2", "Turn 3"]


async def test_more_calls_than_lines(terminal: Terminal) -> None:
    """What runs is shown before what waits and what has ended; the rest is counted, and the screen doesn't scroll."""
    async with ToolSession() as session:
        with live(session, stream=terminal):
            async with session.batch(calls(*map(str, range(200))), max_concurrency=3) as batch:
                for number in range(200):
                    batch.start(str(number), forever if number % 50 == 49 else instant)
                # The last of the three that hold the places; until it runs, others come and go.
                lines = await shown(terminal, lambda lines: any("▶" in line and "tool_149" in line for line in lines))
                assert sum("▶" in line for line in lines) == 3
                assert has("and 184 more")(lines)
                assert len(lines) == LINES - 2
                batch.close()
    assert not terminal.screen.history.top


async def test_placeholders_and_late_results(terminal: Terminal) -> None:
    """A call that was answered for now and one that ends late are told apart from the rest (O6, B7)."""
    gate = asyncio.Event()

    async def job() -> str:
        current_call().pending("job 17")
        await gate.wait()
        return "printed"

    stubborn = Stubborn()
    async with ToolSession() as session:
        with live(session, stream=terminal):
            async with session.batch(calls("a", "b", "c")) as batch:
                batch.start("a", job)
                batch.start("b", stubborn, timeout=0.02)
                batch.start("c", forever, timeout=0.02)
                await shown(terminal, has("answered for now", "timed out, not ended yet", "timed out, then stopped"))
            gate.set()
            stubborn.release.set()
            lines = await shown(terminal, has("timed out, then a late success", "1 succeeded  2 timed out"))
    assert lines[1].split()[:2] == ["✔", "tool_a"]


async def test_a_call_that_waits_for_a_person(terminal: Terminal) -> None:
    """It says so until there is a decision (T7)."""

    @tool(needs_approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    approvals = InteractiveApprovals()
    async with ToolSession(approvals=approvals, tools={"pay": pay}) as session:
        with live(session, stream=terminal):
            async with session.batch([ToolCall("a", "pay", "{}")]) as batch:
                batch.start_all()
                await shown(terminal, has("waits for a person"))
                approvals.resolve("a", Approve())
    assert "succeeded" in terminal.lines()[1]


async def test_plain_lines_without_a_terminal() -> None:
    """Into a file or a pipe goes one line for what happens, without a single control character (B19)."""
    stream, clock = io.StringIO(), Clock()
    stubborn = Stubborn()

    async def talk() -> str:
        for number in range(3):
            current_call().progress(f"page {number}")
        clock.now += 1.5
        current_call().progress("page 3")
        return "done"

    async with ToolSession() as session:
        with live(session, stream=stream, clock=clock):
            async with session.batch([*calls("a", "b", "c"), ToolCall("d", "instant", "{")]) as batch:
                batch.start("a", talk, timeout=5)
                batch.start("b", stubborn, timeout=0.02)
                batch.start("c", boom)
                await batch.snapshot()
            stubborn.release.set()
            await turn(3)
    lines = stream.getvalue().splitlines()
    assert lines == [
        "turn 1: instant (d) failed",
        "turn 1: tool_a (a) running for at most 5.0 s",
        "turn 1: tool_a (a) page 0",
        "turn 1: tool_a (a) page 3",
        "turn 1: tool_a (a) succeeded after 0.0 s",
        "turn 1: tool_b (b) running for at most 0.0 s",
        "turn 1: tool_c (c) running",
        "turn 1: tool_c (c) failed after 0.0 s",
        "turn 1: tool_b (b) timed out after 0.0 s and has not ended yet",
        "turn 1: closed, complete",
        "turn 1: tool_b (b) a late success",
    ]


HOSTILE = [
    "\x1b[2J\x1b[H\x1b[31mred",
    "\x1b]0;title\x07",
    "a\rb\nc\td",
    "[bold red]markup[/] [link=x]",
    "\u202egnp.exe\u2066",
    "\x9b31m",
    "\ud800",
    "\x00",
    "e" + "\u0301" * 500,
    "🧨" * 300,
    ":boom:",
]


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_cant_break_the_terminal(terminal: Terminal, text: str) -> None:
    """Names, ids and reports of models and tools move no cursor, change no colour and are no markup."""

    async def talk() -> str:
        current_call().progress(text)
        await forever()
        return ""

    plainly = io.StringIO()
    name = text if "\ud800" not in text else "x"
    async with ToolSession(run_id=name[:400]) as session:
        with live(session, stream=terminal), live(session, stream=plainly):
            async with session.batch([ToolCall(name[:100], name[:100])]) as batch:
                batch.start(name[:100], talk)
                lines = await shown(terminal, has("1 running"))
                batch.close()
    assert lines[0].startswith("Turn 1 of ")
    assert len(lines) == 2, "one line a call, whatever its name"
    assert terminal.screen.title == ""
    written = plainly.getvalue()
    assert all(unicodedata.category(char) not in ("Cc", "Cf", "Cs") for char in written.replace("\n", ""))
    assert len(written.splitlines()) == 4


def test_text_of_several_lines_is_one() -> None:
    """Breaks and tabs are spaces, what is not to be seen is left out, and what controls is shown as something else."""
    assert plain("a\nb\tc\r\u2028d", 20) == "a b c  d"
    assert plain("a\u202eb\u200d", 20) == "ab"
    assert plain("a\x1bb", 20) == "a\ufffdb"
    assert plain("abcdef", 4) == "abc…"


@given(st.text() | st.text(st.characters(categories=("Cc", "Cf", "Cs", "Zl", "Zp", "Mn", "Co"))), st.integers(1, 50))
def test_shown_text_is_harmless(text: str, bound: int) -> None:
    """It is one line of bounded length without anything that controls a terminal; harmless text stays as it is."""
    made = plain(text, bound)
    assert len(made) <= bound
    assert len(made.splitlines()) <= 1
    assert all(unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in made)
    made.encode()
    if len(text) <= bound and text.isalnum():
        assert made == text


@pytest.mark.parametrize(
    ("report", "share"),
    [
        ("3 of 10: reads", 0.3), ("3/4", 0.75), ("12.5 of 50", 0.25), ("40%", 0.4), ("40 % done", 0.4), ("0.5", 0.5),
        ('{"progress": 0.5}', 0.5), ("30 of 10", 1.0), ("0 of 10", 0.0),
        ("page 3 of 10", None), ("3", None), ("", None), ("3 of 0", None), ("-1 of 10", None), ("half", None), ("NaN", None),
        ('{"progress": true}', None), ('{"progress": NaN}', None), ('{"progress": "1"}', None), ('{"progress": 1, "total": 1e999}', None),
        ("{" * 100_000, None), ("1" * 5000, None), ("[1]", None), ('{"total": 3}', None),
        ('{"progress": 1%s, "total": 3}' % ("0" * 400), None), ('{"progress": 0.5, "total": 1%s}' % ("0" * 400), None),
    ],
)  # fmt: skip
def test_how_much_is_done(report: str, share: float | None) -> None:
    """Reports that say how much is done are read in the usual ways, and anything else is only text (B19)."""
    assert read_report(report) == (share, report)


@given(st.text())
def test_any_report_can_be_read(report: str) -> None:
    """Reading a report never raises, and gives a share from 0 to 1 or nothing."""
    share, said = read_report(report)
    assert share is None or 0.0 <= share <= 1.0
    assert said == report or said in json.loads(report).values()


def test_a_report_of_parts() -> None:
    """Of a report in JSON the message is shown; where it says nothing else that is known, all of it is."""
    assert read_report('{"progress": 2, "total": 8, "message": "page 2"}') == (0.25, "page 2")
    assert read_report('{"message": "page 2"}') == (None, '{"message": "page 2"}')
    assert read_report('{"progress": 2, "total": 8, "message": 7}')[0] == 0.25


class Breaks(io.StringIO):
    """A stream that breaks after a while."""

    def __init__(self, writes: int, *, terminal: bool) -> None:
        super().__init__()
        self.left = writes
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        self.left -= 1
        if self.left < 0:
            raise BrokenPipeError("the reader has gone")
        return super().write(text)


@pytest.mark.parametrize("writes", [0, 1, 3, 10])
@pytest.mark.parametrize("is_terminal", [True, False])
async def test_a_stream_that_breaks(
    terminal: Terminal, writes: int, is_terminal: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """It ends the view, is logged, and is nothing to the batches, nor to what they return (O3)."""
    stream = Breaks(writes, terminal=is_terminal)
    async with ToolSession() as session:
        with live(session, stream=stream):
            for _ in range(5):
                async with session.batch(calls("a", "b")) as batch:
                    batch.start("a", instant)
                    batch.start("b", boom)
                assert [outcome.status for outcome in batch.outcomes.values()] == ["succeeded", "failed"]
    names = [record.__dict__.get("event_name") for record in caplog.records if record.levelname == "ERROR"]
    assert set(names) <= {"observer_failed"}
    assert len(names) <= 3
    assert names or writes > 1


class Blocks(io.StringIO):
    """A stream whose reader has stopped reading; it reads on after 20 seconds at the latest, so that a test can fail."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.reader = threading.Event()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        if not self.reader.wait(20.0):
            self.reader.set()
        return super().write(text)


@pytest.mark.parametrize("is_terminal", [True, False])
async def test_a_stream_that_blocks(terminal: Terminal, is_terminal: bool) -> None:
    """A terminal that was stopped, or a full pipe, holds up neither batches nor their deadlines, nor who leaves the view (O3, B14)."""
    stream, before, streams = Blocks(terminal=is_terminal), set(threading.enumerate()), (sys.stdout, sys.stderr)
    async with ToolSession() as session:
        with live(session, stream=stream):
            async with session.batch(calls("a", "b")) as batch:
                batch.start("a", instant)
                batch.start("b", forever, timeout=0.02)
    assert not stream.reader.is_set()
    assert [outcome.status for outcome in batch.outcomes.values()] == ["succeeded", "timed_out"]
    assert (sys.stdout, sys.stderr) == streams
    stream.reader.set()
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert "tool_b" in stream.getvalue()
    assert (sys.stdout, sys.stderr) == streams


async def test_lines_that_nobody_reads_are_few() -> None:
    """Lines wait for a slow reader up to a bound; how many were left out is said (B7)."""
    stream, before = Blocks(terminal=False), set(threading.enumerate())
    async with ToolSession() as session:
        with live(session, stream=stream) as view:
            (writer,) = set(threading.enumerate()) - before
            for _ in range(1500):
                async with session.batch([]):
                    pass
            stream.reader.set()
            view.stop()
            writer.join()
    lines = stream.getvalue().splitlines()
    assert 1000 <= len(lines) <= 1003
    assert lines[-1] == f"lines left out: {1501 - len(lines)}"


async def test_a_closed_stream_and_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that is closed, or a program without any, has no view, and runs."""
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", None)
    async with ToolSession() as session:
        with live(session, stream=closed), live(session):
            async with session.batch(calls("a")) as batch:
                batch.start("a", instant)
    assert batch.outcomes["a"].status == "succeeded"


async def test_it_ends_with_its_block(terminal: Terminal) -> None:
    """However the block is left, the thread has ended, the cursor is back, and later batches are not shown (B9)."""
    before = threading.active_count()
    async with ToolSession() as session:
        for error in (None, ValueError("x"), KeyboardInterrupt(), asyncio.CancelledError()):
            raised = nullcontext() if error is None else pytest.raises(type(error))
            with raised, live(session, stream=terminal) as view:
                assert threading.active_count() == before + 1
                async with session.batch(calls("a")) as batch:
                    batch.start("a", instant)
                    if error is not None:
                        raise error
            assert threading.active_count() == before
            assert not terminal.screen.cursor.hidden
            async with session.batch(calls("b")):
                pass
            assert len(view.turns()) == 1
            assert view(BatchOpened(generation=1, run_id=None, calls=())) is None
            view.stop()


async def test_a_session_lets_a_view_go() -> None:
    """After its block nothing of the session holds a view, however long the session lives (B9)."""
    async with ToolSession() as session:
        with live(session, stream=io.StringIO()) as view:
            async with session.batch(calls("a")) as batch:
                batch.start("a", instant)
        held = weakref.ref(view)
        del view, batch
        gc.collect()
        assert held() is None


async def test_an_attempt_that_was_given_up_is_not_the_call(terminal: Terminal) -> None:
    """What an attempt says after its policies have started another is not shown as the call's own end (T6)."""
    tries = [Stubborn(), Stubborn("second")]

    class Again(Interceptor):
        async def around(self, call: Any, proceed: Any) -> Any:
            try:
                return await proceed()
            except TimeoutError:
                return await proceed()

    later = iter(tries)

    async def run() -> Any:
        return await next(later)()

    async with ToolSession(interceptors=[Again()]) as session:
        with live(session, stream=terminal) as view:
            async with session.batch(calls("a")) as batch:
                batch.start("a", run, timeout=0.1)
                while not tries[1].entered:
                    await asyncio.sleep(0)
                tries[0].release.set()
                await turn(5)
                before = view.turns()
                tries[1].release.set()
    assert [row.came_late for row in before[0].rows.values()] == [""]
    assert [row.state for row in before[0].rows.values()] == ["running"], (
        "it was looked at then, and has not changed since"
    )
    assert batch.outcomes["a"].status == "succeeded"


async def test_it_stops_when_its_task_is_cancelled(terminal: Terminal) -> None:
    """Cancelling the task that shows and runs leaves the terminal as it was, and the cancellation goes on (B10)."""

    async def run() -> None:
        async with ToolSession() as session:
            with live(session, stream=terminal):
                async with session.batch(calls("a")) as batch:
                    batch.start("a", forever)
                    await batch.snapshot()

    task = asyncio.ensure_future(run())
    await shown(terminal, has("1 running"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "cancelled" in terminal.lines()[1]
    assert not terminal.screen.cursor.hidden


async def test_what_cant_be_shown() -> None:
    """Something that is no session is refused by name, and nothing was begun; of a lone batch it is said what to do."""
    with pytest.raises(InvalidTypeError, match="live\\(\\) shows sessions, which have observe\\(\\), not 7"), live(7):  # type: ignore[arg-type]
        raise AssertionError
    lone: Any = ToolBatch([])
    with pytest.raises(InvalidTypeError, match="a lone batch takes the view as one of its observers"), live(lone):
        raise AssertionError


async def test_without_rich(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rich is not installed, a terminal gets plain lines (extra `cli`)."""
    for name in [name for name in sys.modules if name.split(".")[0] == "rich" or "_live_" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    async with ToolSession() as session:
        with live(session, stream=terminal):
            async with session.batch(calls("a")) as batch:
                batch.start("a", instant)
    assert terminal.lines()[0] == "turn 1: tool_a (a) running"


async def test_a_terminal_without_unicode(monkeypatch: pytest.MonkeyPatch, terminal: Terminal) -> None:
    """A terminal that can't show the marks and bars gets plain lines that it can show."""
    monkeypatch.setattr(Terminal, "encoding", "ascii", raising=False)
    async with ToolSession() as session:
        with live(session, stream=terminal):
            async with session.batch([ToolCall("a", "tööl")]) as batch:
                batch.start("a", instant)
    assert terminal.lines()[0] == "turn 1: t??l (a) running"


async def test_a_dumb_terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that can't move its cursor gets plain lines."""
    monkeypatch.setenv("TERM", "dumb")
    async with ToolSession() as session:
        with live(session, stream=terminal):
            async with session.batch(calls("a")) as batch:
                batch.start("a", instant)
    assert terminal.lines()[0] == "turn 1: tool_a (a) running"


def test_nothing_of_it_is_loaded_unless_used() -> None:
    """`import toolbatch` and an observed session without a view load no rich."""
    program = "import sys, toolbatch, toolbatch.observe; print('rich' in sys.modules, 'opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "False False\n"


@pytest.fixture
def pseudo_terminal() -> Iterator[tuple[list[bytes], Any]]:
    """A real one, of the system's, and what it was sent: all of it once the stream is closed."""
    reader, writer = pty.openpty()
    sent: list[bytes] = []

    def read() -> None:
        try:
            while data := os.read(reader, 65536):
                sent.append(data)
        except OSError:  # which is how Linux says that the other end was closed
            pass
        sent.append(b"end")

    thread = threading.Thread(target=read)
    thread.start()
    stream = os.fdopen(writer, "w")
    yield sent, stream
    stream.close()
    thread.join()
    os.close(reader)


async def test_a_real_terminal(terminal: Terminal, pseudo_terminal: tuple[list[bytes], Any]) -> None:
    """On a pseudo-terminal of the system's it draws, hides the cursor while it does, and gives it back."""
    sent, stream = pseudo_terminal
    async with ToolSession() as session:
        with live(session, stream=stream):
            async with session.batch(calls("a")) as batch:
                batch.start("a", instant)
    stream.close()
    while b"end" not in sent:
        await asyncio.sleep(0.01)
    written = b"".join(sent).decode()
    assert written.index("\x1b[?25l") < written.index("succeeded") < written.rindex("\x1b[?25h")


def test_a_row_that_is_open() -> None:
    """Open are the states before an outcome."""
    row = CallRow("a", "t", "waiting", 0.0)
    assert row.is_open
    row.state = "pending"
    assert not row.is_open


def test_a_view_is_an_observer() -> None:
    """It can be handed to lone batches."""
    view = LiveView(io.StringIO(), Clock())
    assert view(BatchOpened(generation=1, run_id=None, calls=(ToolCall("a", "t"),))) is not None
    assert [row.tool for row in view.turns()[0].rows.values()] == ["t"]
