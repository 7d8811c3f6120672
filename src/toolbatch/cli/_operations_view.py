"""Operations as a person reads them, and as a script does."""

import base64
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TextIO

from toolbatch.operations import OwnerState, owner_state
from toolbatch.ports import OperationRecord

__all__ = ["OperationRow", "age_of", "details", "printable", "row_of", "show_rows", "to_dict", "unescaped"]

_WIDTH: Final = 60
_ESCAPES: Final = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")
_STATES: Final[dict[OwnerState, str]] = {
    "this_process": "runs",
    "running": "runs",
    "gone": "has ended",
    "unknown": "can't be seen from here",
}


class OperationRow(NamedTuple):
    """One line of a list.

    Attributes:
        id: The operation.
        tool: Its tool.
        age: Seconds since it was claimed.
        owner: Who claimed it, and whether that process still runs.
        attempt: How often it was claimed.
        replay: Its policy.
        summary: What it is about.
    """

    id: str
    tool: str
    age: float
    owner: str
    attempt: int
    replay: str
    summary: str


def age_of(record: OperationRecord) -> float:
    """Return for how many seconds a record has been claimed."""
    return max(0.0, time.time() - record.claimed_at)


def row_of(record: OperationRecord) -> OperationRow:
    """Return the line of a record."""
    summary = record.summary if len(record.summary) <= _WIDTH else f"{record.summary[:_WIDTH]}..."
    return OperationRow(record.id, record.tool, age_of(record), _owner(record), record.attempt, record.replay, summary)


def show_rows(rows: Sequence[OperationRow], stream: TextIO) -> None:
    """Write a table, and how many there are."""
    cells = [tuple(printable(str(cell)) for cell in (*row[:2], _age(row.age), *row[3:])) for row in rows]
    if not (rows and stream.isatty() and _table(cells, stream)):
        stream.writelines("  ".join(line) + "\n" for line in cells)
    stream.write(f"{len(rows)} open operation{'' if len(rows) == 1 else 's'}\n")


def _table(cells: Sequence[tuple[str, ...]], stream: TextIO) -> bool:
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in OperationRow._fields:
        table.add_column(head, justify="right" if head in ("age", "attempt") else "left", overflow="fold")
    for line in cells:
        table.add_row(*map(Text, line))
    Console(file=stream).print(table)
    return True


def details(record: OperationRecord) -> Iterator[str]:
    """Return the lines that say all that is stored of an operation."""
    completed = record.completed_at
    state = "open: its outcome is unknown" if completed is None else f"completed {_moment(completed)}"
    facts = {
        "operation": record.id,
        "state": state if record.completed_by is None else f"{state} by {record.completed_by}",
        "tool": record.tool,
        "arguments": record.summary,
        "claimed": f"{_moment(record.claimed_at)}, {_age(age_of(record))} ago",
        "by": f"{record.owner}: {_STATES[owner_state(record.owner)]}",
        "claim": f"{record.claim}, attempt {record.attempt}",
        "policy": record.replay,
        "idempotency key": record.idempotency_key or "none",
    }
    if record.result is not None:
        facts["result"] = record.result.decode("utf-8", "replace")
    width = max(map(len, facts))
    return (f"{name:<{width}}  {printable(text)}\n" for name, text in facts.items())


def to_dict(record: OperationRecord) -> dict[str, Any]:
    """Return a record as JSON-ready data; a result that is no JSON as base64."""
    result: Any = None
    if record.result is not None:
        try:
            result = json.loads(record.result)
        except ValueError:
            result = {"base64": base64.b64encode(record.result).decode("ascii")}
    return {
        "id": record.id,
        "state": "open" if record.is_open else "completed",
        "tool": record.tool,
        "summary": record.summary,
        "replay": record.replay,
        "idempotency_key": record.idempotency_key,
        "claim": record.claim,
        "attempt": record.attempt,
        "owner": record.owner,
        "owner_state": owner_state(record.owner),
        "claimed_at": record.claimed_at,
        "age": age_of(record),
        "completed_at": record.completed_at,
        "completed_by": record.completed_by,
        "fingerprint": record.fingerprint.hex(),
        "result": result,
    }


def printable(text: str) -> str:
    """Return text with what would move a terminal's cursor, or change its colours, made visible: a model has written it."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def unescaped(text: str) -> str:
    """Return text as it was before `printable`, or a terminal without its characters, has escaped it."""
    return _ESCAPES.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    code = int(escape[escape.lastindex or 0], 16)
    return chr(code) if code <= sys.maxunicode else escape[0]


def _owner(record: OperationRecord) -> str:
    words = record.owner.split(" ")
    name = f"{words[1]}:{words[2]}" if words[0] == "process" and len(words) > 2 else record.owner
    return f"{name} {_STATES[owner_state(record.owner)]}"


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ", timespec="seconds")
    except (OverflowError, ValueError, OSError):  # a host's clock may say anything
        return f"{seconds}"


def _age(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"
