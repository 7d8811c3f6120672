"""The live view's picture on a terminal: a thread that draws it, and leaves the terminal as it was."""

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TextIO

from rich.console import Console, RenderableType
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.text import Text

from ._live_model import Turn
from ._live_render import render
from ._logging import log_event

__all__ = ["Screen"]


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Say so: rich itself would end the program, and turn its standard output off."""
        raise BrokenPipeError("the terminal has gone")


class Screen:
    """Draws turns until it is stopped.

    Args:
        console: The terminal.
        clock: The time in seconds.
        turns: Returns what to draw.
        seconds: Between two frames.
    """

    @classmethod
    def on(
        cls, stream: TextIO, clock: Callable[[], float], turns: Callable[[], Sequence[Turn]], seconds: float
    ) -> "Screen | None":
        """Return a screen if the stream is a terminal that can be drawn on, else `None`."""
        console = _Console(file=stream, highlight=False, markup=False, emoji=False)
        can_draw = stream.isatty() and console.is_terminal and not console.is_dumb_terminal
        has_marks = console.encoding.lower().startswith("utf")
        return cls(console, clock, turns, seconds) if can_draw and has_marks else None

    def __init__(
        self, console: Console, clock: Callable[[], float], turns: Callable[[], Sequence[Turn]], seconds: float
    ) -> None:
        self._console = console
        self._clock = clock
        self._turns = turns
        self._seconds = seconds
        self._live = Live(console=self._console, auto_refresh=False, get_renderable=self._picture)
        self._streams = sys.stdout, sys.stderr
        self._begun = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._draw, name="toolbatch-live", daemon=True)

    def start(self, seconds: float) -> None:
        """Begin to draw; waits so many seconds for a terminal that blocks, as `stop` does."""
        self._streams = sys.stdout, sys.stderr
        self._thread.start()
        self._begun.wait(seconds)

    def stop(self, seconds: float) -> None:
        """Draw the last picture, and leave the terminal as it was."""
        self._over.set()
        self._thread.join(seconds)
        if self._thread.is_alive():  # it does the rest when the terminal goes on; what is printed must not wait for it
            if isinstance(sys.stdout, FileProxy):
                sys.stdout = self._streams[0]
            if isinstance(sys.stderr, FileProxy):
                sys.stderr = self._streams[1]

    def _draw(self) -> None:
        try:
            self._live.start()
            self._begun.set()
            while not self._over.wait(self._seconds):
                self._live.refresh()
        except Exception:  # noqa: BLE001  whatever a terminal raises, the batches go on
            self._give_up()
        self._begun.set()
        try:
            self._live.stop()
        except Exception:  # noqa: BLE001
            self._give_up()

    def _give_up(self) -> None:
        self._over.set()
        log_event("observer_failed", "the live view has ended: it could not be drawn", exc_info=True)
        with suppress(Exception):
            self._console.show_cursor()

    def _picture(self) -> RenderableType:
        try:
            return render(self._turns(), self._clock(), max(4, self._console.height - 2))
        except Exception:  # noqa: BLE001  it is drawn around what the host prints, too
            self._over.set()
            log_event("observer_failed", "the live view has ended: it could not be drawn", exc_info=True)
            return Text("")
