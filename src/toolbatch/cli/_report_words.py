"""How a report says things: times, lengths of time, names that may hold anything, and what is known of a call."""

import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from toolbatch.observe import CallRecord

from ._report_view import KINDS, Kind, Row, Segment

__all__ = ["STATUS_WORDS", "details", "duration", "moment", "sentence", "shortened", "visible"]

STATUS_WORDS: Final = {
    "succeeded": "succeeded",
    "failed": "failed",
    "timed_out": "timed out",
    "cancelled": "cancelled",
    "denied": "denied",
    "not_started": "not started",
    "pending": "answered for now",
    "open": "not known",
}
"""Statuses as a person reads them."""

_HIDDEN: Final = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"))
_JOINER: Final = "\u200d"  # of emoji, which would fall apart


def visible(text: str, *, keep: str = "") -> str:
    """Return text with each character written out that can't be seen, or turns what is around it, such as U+202E.

    Args:
        text: Anything.
        keep: Characters that stay, such as line ends.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"\u27e8U+{ord(char):04X}\u27e9"
        if unicodedata.category(char) in _HIDDEN and char not in keep and char != _JOINER
        else char
        for char in text
    )


def shortened(text: str, most: int = 120) -> str:
    """Return at most so many characters, made visible."""
    return visible(text if len(text) <= most else f"{text[: most - 1]}\u2026")


def duration(seconds: float) -> str:
    """Return a length of time as a person says it, with about three digits."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} \u00b5s" if seconds else "0"
    if seconds < 1:
        return f"{_digits(seconds * 1000)} ms"
    if seconds < 60:
        return f"{_digits(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min" if minutes else f"{hours:,} h"


def moment(at: float | None) -> str:
    """Return a time in UTC, to the millisecond."""
    if at is None:
        return "at an unknown time"
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"
    except (OverflowError, OSError, ValueError):
        return f"{at:.3f} s after 1970"


def sentence(row: Row) -> str:
    """Return what a call did, in one line: what a screen reader says of its bar."""
    spans = [_span(part) for part in row.segments if part.kind != "closed"]
    return "; ".join([*spans, STATUS_WORDS[row.status]])


def _span(part: Segment) -> str:
    if part.kind == "late":
        return (
            "may have run on after its outcome"
            if part.length is None
            else f"ran on for {duration(part.length)} after its outcome"
        )
    return (
        f"{KINDS[part.kind]}, not known how long"
        if part.length is None
        else f"{KINDS[part.kind]} for {duration(part.length)}"
    )


def details(row: Row, batch_name: str) -> list[tuple[str, str]]:
    """Return all that is known of a call, as labels and texts; texts may have several lines."""
    return [(label, visible(text, keep="\n\t")) for label, text in _facts(row.call, row, batch_name) if text]


def _facts(call: CallRecord, row: Row, batch_name: str) -> Iterator[tuple[str, str]]:
    yield "Tool", call.tool_name
    yield "Call", call.call_id
    yield "Batch", batch_name
    yield "Outcome", STATUS_WORDS[row.status]
    yield "Code", call.code or ""
    yield "Its code", _COMPLETION.get(call.completion or "", "")
    yield "Asked to stop", _CANCELLATION.get(call.cancellation or "", "")
    yield "Side effects", "unknown: check before trying again" if call.side_effect_state == "unknown" else ""
    yield "Time bound", "" if call.timeout is None else duration(call.timeout)
    yield "Noticed late by", "" if call.deadline_late_by is None else duration(call.deadline_late_by)
    yield "Raised", call.exception_type or ""
    yield "The same before", f"{call.repeats} times" if call.repeats else ""
    yield "Taken over", "its outcome is an earlier batch's" if call.resumed else ""
    for label, at in (
        ("Handed over", call.admitted_at),
        ("Approval asked", call.asked_at),
        ("Started", call.started_at),
    ):
        yield label, "" if at is None else moment(at)
    yield "Outcome at", "" if call.settled_at is None else moment(call.settled_at)
    yield "Code ended", "" if call.ended_at is None else moment(call.ended_at)
    for part in row.segments:
        yield _LABELS[part.kind], "not known how long" if part.length is None else duration(part.length)
    yield "Progress reports", str(call.progress) if call.progress else ""
    yield "Last progress", call.last_progress or ""
    yield "Arguments", call.arguments or ""
    yield "Result or message", call.content or ""
    if call.late is not None:
        yield "Came late as", call.late.observed_status or "?"
        yield "Refused, since", (call.late.reason or "").replace("_", " ")
        yield "Late by", "" if call.late.late_by is None else duration(call.late.late_by)
        yield "Raised late", call.late.exception_type or ""
        yield "Late content", call.late.content or ""
    yield "Execution", call.execution_id or ""


_LABELS: Final[dict[Kind, str]] = {
    "waiting": "Waited",
    "approval": "Waited for approval",
    "running": "Ran",
    "closed": "Then its batch went on",
    "late": "Then ran on",
}
_COMPLETION: Final = {
    "not_started": "was never entered",
    "unknown": "was entered; whether it has ended is not known",
    "settled": "has ended",
}
_CANCELLATION: Final = {"requested": "yes; it did not end by that", "acknowledged": "yes, and it ended by that"}


def _digits(value: float) -> str:
    return f"{value:.3g}" if value < 999.5 else f"{value:.0f}"
