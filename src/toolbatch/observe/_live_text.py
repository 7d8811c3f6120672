"""A live view without a terminal: one plain line for what happens."""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final, TextIO

from ._live_model import CallRow, Turn
from ._logging import log_event

__all__ = ["LineWriter", "PlainLines"]

_SECONDS: Final = 1.0
_MAX_WAITING: Final = 1000


class LineWriter:
    """Writes lines to a stream in a thread of its own: a pipe that nobody reads must not hold up a loop.

    Args:
        stream: Where to. What it raises ends the writing, and is logged.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._left_out = 0
        self._thread = threading.Thread(target=self._write_all, name="toolbatch-live", daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        """Add a line; it is left out where a thousand wait, or the stream is broken."""
        if self._lines.qsize() < _MAX_WAITING and self._thread.is_alive():
            self._lines.put(line)
        else:
            self._left_out += 1

    def stop(self, seconds: float) -> None:
        """Write what waits, and wait so many seconds for that at most."""
        if self._left_out:
            self._lines.put(f"lines left out: {self._left_out}")
        self._lines.put(None)
        self._thread.join(seconds)

    def _write_all(self) -> None:
        try:
            encoding = getattr(self._stream, "encoding", None) or "utf-8"
            while (line := self._lines.get()) is not None:
                self._stream.write(f"{line.encode(encoding, 'replace').decode(encoding)}\n")
                self._stream.flush()
        except Exception:  # noqa: BLE001  whatever a stream raises, the batches go on
            log_event("observer_failed", "the live view has ended: it could not be written", exc_info=True)


class PlainLines:
    """Writes a line when a call starts, reports, waits for approval, has its outcome, or ends after it, and when a batch closes.

    Args:
        write: Takes one line.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._reported: dict[tuple[int, str], float] = {}  # when a call has reported last

    def call(self, turn: Turn, row: CallRow, now: float) -> None:
        """Tell of a call that has changed; of its reports at most once a second."""
        if row.state == "running" and row.said:
            key = (turn.number, row.call_id)
            if now - self._reported.get(key, -_SECONDS) < _SECONDS:
                return
            self._reported[key] = now
        words = [f"turn {turn.number}:", row.tool, f"({row.call_id})", row.state.replace("_", " ")]
        if row.state == "running" and row.said:
            words = [*words[:3], row.said]
        elif row.state == "running" and row.bound is not None:
            words.append(f"for at most {row.bound:.1f} s")
        elif row.came_late:
            words = [*words[:3], row.came_late]
        elif row.took is not None:
            words.append(f"after {row.took:.1f} s")
            words += ["and has not ended yet"] if row.goes_on else []
        self._write(" ".join(words))

    def closed(self, turn: Turn) -> None:
        """Tell of a batch that is closed."""
        self._reported = {key: at for key, at in self._reported.items() if key[0] != turn.number}
        self._write(f"turn {turn.number}: closed, {turn.closed}")
