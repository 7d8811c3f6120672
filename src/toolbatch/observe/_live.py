"""The live view: what runs, how long it still may, and what it says, on a terminal while it happens."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final, Protocol, TextIO

from toolbatch.core import InvalidTypeError, preview
from toolbatch.ports import (
    ApprovalRequested,
    BatchClosed,
    BatchEvent,
    BatchObserver,
    BatchOpened,
    BatchWatcher,
    CallAdmitted,
    CallProgress,
    CallSettled,
    CallStarted,
    ExecutionOutcome,
    StaleResult,
)

from ._live_model import Board, CallRow, Turn, plain, read_report
from ._live_text import LineWriter, PlainLines

if TYPE_CHECKING:
    from contextvars import Context

    from ._live_screen import Screen

__all__ = ["LiveView", "Watchable", "live"]

_SECONDS: Final = 0.1  # between two frames
_PATIENCE: Final = 1.0  # seconds; a terminal or a pipe that blocks must not hold up the host for ever


class Watchable(Protocol):
    """A session, as far as a live view needs it: `ToolSession` is one."""

    def observe(self, observer: BatchObserver, /) -> Callable[[], None]:
        """Have every batch watched from now on; returns what ends that."""
        ...


@contextmanager
def live(
    *sessions: Watchable, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> "Iterator[LiveView]":
    """Show what sessions do, for as long as a `with` block around it runs.

    On a terminal, with rich, it is a table that is drawn anew ten times a second by a thread of its own: a bar for each running call
    that runs down to its deadline, its state in colour, and what it reports by `progress()`. Anywhere else it is one plain line for what happens. What is printed meanwhile appears above
    the table. However the block is left, the last picture stays, and the terminal is as it was.

    Nothing of it can harm the batches: a stream that breaks ends the view and is logged, and one that blocks holds up nobody but who
    leaves the block, for a second or two. Text of models and tools is shown without
    control characters.

    Args:
        *sessions: Whose batches to show; none, where the view is given to batches as one of their `observers`.
        stream: Where to; standard error where `None`.
        clock: The time in seconds.

    Raises:
        InvalidTypeError: One of the sessions can't be observed. Nothing is shown.
    """
    for session in sessions:
        if not callable(getattr(session, "observe", None)):
            raise InvalidTypeError(
                f"live() shows sessions, which have observe(), not {preview(session)}; a lone batch takes the view as one of its observers"
            )
    view = LiveView(sys.stderr if stream is None else stream, clock)  # which is None in programs without a console
    with ExitStack() as stack:
        stack.callback(view.stop)
        for session in sessions:
            stack.callback(session.observe(view))
        view.start()
        yield view


class LiveView:
    """Shows batches; made by `live`. It is an observer, so that a lone batch can be shown too: `observers=[view]`."""

    def __init__(self, stream: TextIO | None, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock
        self._lock = (
            threading.RLock()
        )  # over the board: events come in loops' threads, and what is printed there draws a frame too
        self._board = Board()
        self._lines: PlainLines | None = None
        self._writer: LineWriter | None = None
        self._screen: Screen | None = None
        self._is_over = False

    def __call__(self, opened: BatchOpened, /) -> BatchWatcher | None:
        """Show a batch."""
        if self._is_over:
            return None
        with self._lock:
            turn = self._board.open(opened, self._clock())
        return _Watcher(self, turn)

    def turns(self) -> list[Turn]:
        """Return what is shown, as it is now, detached."""
        with self._lock:
            return self._board.copied()

    def start(self) -> None:
        """Begin to show."""
        if self._stream is None:
            return
        with suppress(Exception):  # no rich, or a stream that is closed
            from ._live_screen import Screen

            self._screen = Screen.on(self._stream, self._clock, self.turns, _SECONDS)
        if self._screen is None:
            self._writer = LineWriter(self._stream)
            self._lines = PlainLines(self._writer.put)
        else:
            self._screen.start(_PATIENCE)

    def stop(self) -> None:
        """Show the last picture, and leave the terminal as it was. Repeating it does nothing."""
        self._is_over = True
        self._lines = None
        screen, self._screen = self._screen, None
        writer, self._writer = self._writer, None
        if screen is not None:
            screen.stop(_PATIENCE)
        if writer is not None:
            writer.stop(_PATIENCE)

    def change(
        self, turn: Turn, row: CallRow, change: Callable[[CallRow, float], None], *, is_told: bool = True
    ) -> None:
        """Change a row; where lines are written, tell of it."""
        with self._lock:
            now = self._clock()
            change(row, now)
        if self._lines is not None and is_told:
            self._lines.call(turn, row, now)

    def close(self, turn: Turn, why: str) -> None:
        """A batch is closed."""
        with self._lock:
            turn.closed = why
        if self._lines is not None:
            self._lines.closed(turn)


class _Watcher(BatchWatcher):
    def __init__(self, view: LiveView, turn: Turn) -> None:
        self._view = view
        self._turn = turn

    def prepare(self, admitted: CallAdmitted, context: "Context", /) -> None:  # noqa: ARG002  it needs no context
        self._view.change(self._turn, self._turn.rows[admitted.call.id], _wait, is_told=False)

    def event(self, event: BatchEvent, /) -> None:
        match event:
            case CallStarted():
                self._change(event.call_id, lambda row, now: _start(row, now, event.seconds_left))
            case CallProgress():
                self._change(event.call_id, lambda row, _: _report(row, event.content))
            case ApprovalRequested():
                self._change(event.request.call_id, _ask)
            case CallSettled():
                self._change(event.outcome.call_id, lambda row, now: _settle(row, now, event.outcome))
            case BatchClosed():
                reason = event.snapshot.close_reason
                self._view.close(self._turn, "complete" if reason is None else plain(reason.code or reason.status, 40))

    def ended(self, outcome: ExecutionOutcome, /) -> None:
        is_told = not self._turn.rows[outcome.call_id].came_late
        self._view.change(
            self._turn, self._turn.rows[outcome.call_id], lambda row, _: _end(row, outcome), is_told=is_told
        )

    def late(self, stale: StaleResult, /, *, kept: bool) -> None:  # noqa: ARG002  the row is shown either way
        row, word = self._turn.rows[stale.call_id], f"a late {stale.observed_status}"
        if not row.is_open:  # else its policies have given up an attempt
            self._view.change(self._turn, row, lambda row, _: _come_late(row, word))

    def _change(self, call_id: str, change: Callable[[CallRow, float], None]) -> None:
        self._view.change(self._turn, self._turn.rows[call_id], change)


def _wait(row: CallRow, now: float) -> None:
    row.state, row.since = "waiting", now


def _come_late(row: CallRow, word: str) -> None:
    row.came_late = word


def _start(row: CallRow, now: float, seconds_left: float | None) -> None:
    row.state, row.since, row.bound = "running", now, seconds_left


def _report(row: CallRow, content: str) -> None:
    row.share, said = read_report(content)
    row.said = plain(said, 120)


def _ask(row: CallRow, now: float) -> None:
    row.state, row.since = "approval", now


def _settle(row: CallRow, now: float, outcome: ExecutionOutcome) -> None:
    row.state, row.since, row.took = outcome.status, now, outcome.duration
    row.goes_on = outcome.completion == "unknown"


def _end(row: CallRow, outcome: ExecutionOutcome) -> None:
    row.goes_on = False
    if row.state == "pending":
        row.state, row.took = outcome.status, outcome.duration
    elif not row.came_late:
        row.came_late = "stopped" if outcome.cancellation == "acknowledged" else "ended"
