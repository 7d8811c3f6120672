"""A live view without a terminal: one plain line for what happens."""

from collections.abc import Callable
from typing import Final

from ._live_model import CallRow, Turn

__all__ = ["PlainLines"]

_SECONDS: Final = 1.0


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
