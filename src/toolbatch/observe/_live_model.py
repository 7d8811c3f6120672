"""What a live view knows of batches: rows that events change, and copies of them to draw from. No terminal, no clock of its own."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from toolbatch.core import preview
from toolbatch.ports import BatchOpened, ExecutionStatus

__all__ = ["Board", "CallRow", "RowState", "Turn", "plain", "read_report"]

RowState = Literal["announced", "waiting", "approval", "running"] | ExecutionStatus

_MAX_REPORT: Final = 500  # characters; a longer report is text
_MAX_TURNS: Final = 4
"""Turns that are shown: those that go on, and closed ones where there is room."""

_SPACES: Final = dict.fromkeys(map(ord, "\t\n\v\f\r\x85\u2028\u2029"), " ")


@dataclass(slots=True)
class CallRow:
    """One call.

    Attributes:
        call_id: The call, as it may be shown.
        tool: Its tool, as it may be shown.
        state: Where it stands.
        since: When it came into that state, on the view's clock.
        bound: Seconds that it may run, from `since` while it runs; `None` for no bound.
        took: Seconds that its code took, where it has ended for its caller.
        said: What it has reported last, as it may be shown.
        share: How much of it is done by its own report, from 0 to 1; `None` where it did not say.
        goes_on: Whether its code still runs, though it has its outcome.
        came_late: What it ended as after its outcome; empty where it did not.
    """

    call_id: str
    tool: str
    state: RowState
    since: float
    bound: float | None = None
    took: float | None = None
    said: str = ""
    share: float | None = None
    goes_on: bool = False
    came_late: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it has no outcome yet."""
        return self.state in ("announced", "waiting", "approval", "running")


@dataclass(slots=True)
class Turn:
    """One batch.

    Attributes:
        number: The how manieth batch the view has seen.
        run_id: The host's name of the run, as it may be shown.
        rows: Its calls by call id, in the order of announcement.
        closed: Why it is closed, as it may be shown; `None` while it is open.
    """

    number: int
    run_id: str
    rows: dict[str, CallRow]
    closed: str | None = None

    @property
    def is_quiet(self) -> bool:
        """Whether nothing of it can be seen to change any more."""
        return self.closed is not None and not any(row.goes_on for row in self.rows.values())

    def copied(self) -> "Turn":
        """Return a copy to draw from, which events don't change."""
        return replace(self, rows={call_id: replace(row) for call_id, row in self.rows.items()})


class Board:
    """The turns of any number of sessions, the latest last."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        self._seen = 0

    def open(self, opened: BatchOpened, now: float) -> Turn:
        """Add a batch."""
        self._seen += 1
        rows = {call.id: CallRow(plain(call.id, 40), plain(call.name, 40), "announced", now) for call in opened.calls}
        turn = Turn(self._seen, plain(opened.run_id or "", 40), rows)
        self._turns.append(turn)
        quiet = (one for one in self._turns[:-1] if one.is_quiet)
        while len(self._turns) > _MAX_TURNS and (oldest := next(quiet, None)) is not None:
            self._turns.remove(oldest)
        return turn

    def copied(self) -> list[Turn]:
        """Return copies of all turns to draw from."""
        return [turn.copied() for turn in self._turns]


def plain(value: object, max_chars: int) -> str:
    """Return text that can't do anything to a terminal: one line, without control characters, of bounded length.

    Names and reports come from models and tools, and may hold escape sequences, text that turns the reading direction, or markup.
    """
    text = value if isinstance(value, str) else preview(value, max_chars)
    shown = "".join(_harmless(text[: max_chars + 200].translate(_SPACES)))
    return shown if len(shown) <= max_chars and len(text) <= max_chars + 200 else f"{shown[: max_chars - 1]}…"


def _harmless(text: str) -> Iterator[str]:
    for char in text:
        category = unicodedata.category(char)
        if category in ("Cc", "Cs", "Co", "Cn"):
            yield "�"
        elif category != "Cf":  # such as marks of direction, and of no width
            yield char


_COUNTED = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:of|/)\s*(\d+(?:\.\d+)?)\b")
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%")


def read_report(report: str) -> tuple[float | None, str]:
    """Read a progress report: how much is done, where it says so, and the text to show.

    Read are `3 of 10`, `3/10` and `30%` at its beginning, a number up to 1, and JSON with `progress`, `total` and `message`.
    """
    head = report[:_MAX_REPORT]
    if (counted := _COUNTED.match(head)) is not None:
        return _share(float(counted[1]), float(counted[2])), report
    if (percent := _PERCENT.match(head)) is not None:
        return _share(float(percent[1]), 100.0), report
    if len(report) > len(head) or not head.lstrip().startswith(("{", "0", "1")):
        return None, report
    try:
        value = json.loads(head)
    except (ValueError, RecursionError):
        return None, report
    if isinstance(value, Mapping):
        message = value.get("message")
        share = _share(value.get("progress"), value.get("total", 1.0))
        return share, message if isinstance(message, str) and share is not None else report
    return _share(value, 1.0) if isinstance(value, float) else None, report


def _share(done: object, total: object) -> float | None:
    if isinstance(done, bool) or isinstance(total, bool) or not isinstance(done, (int, float)):
        return None
    if not isinstance(total, (int, float)) or not total > 0 or not done >= 0:  # NaN is none of it
        return None
    try:
        return min(1.0, done / total) if total < float("inf") else None
    except OverflowError:  # whole numbers may have any number of digits
        return None
