"""Reading run logs, whatever a crash, a later version or another program's hand has made of them."""

import json
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, Final

from toolbatch.core import InvalidTypeError, cut, preview

from ._run_log_lines import FORMAT
from ._run_log_record import BatchRecord, CallRecord, LateRecord, RunRecord

__all__ = ["read_run"]

_LINE_BYTES: Final = 1 << 26
"""A longer line is no line of a run log."""

_TEXT_BYTES: Final = 1 << 16
"""What is kept of a text in it."""

_STATUSES: Final[dict[str, str]] = {"success": "succeeded", "error": "failed", "cancelled": "cancelled"}

_ANSWERS: Final = {
    "success": "succeeded",
    "timeout": "timed_out",
    "cancelled": "cancelled",
    "request_aborted": "cancelled",
    "superseded": "cancelled",
}
"""What a call was answered as, where only its late result tells."""

_UNKNOWN: Final = dict.fromkeys(("generation", "run_id", "begun_at", "closed_at", "status", "code"))

_SECONDS: Final = 253_402_300_800
"""The year 10000, in seconds since the epoch."""

Draft = dict[str, Any]


def read_run(source: str | PathLike[str] | Iterable[bytes]) -> RunRecord:
    """Read a run log, or a file of a `JsonLinesSink`.

    It takes what it can: a line that is torn, or no run log's, is counted and left out, and so is one of a later version; keys that
    it does not know are skipped, and a value of the wrong type is as if it were not there. A file may hold several logs, of several
    processes, in any mixture.

    Args:
        source: The file, or its lines.

    Raises:
        InvalidTypeError: `source` is neither, or a line is no bytes.
        OSError: The file can't be read.
    """
    if isinstance(source, (str, PathLike)):
        with Path(source).open("rb") as file:
            return _Reading().run(iter(lambda: file.readline(_LINE_BYTES), b""))
    if isinstance(source, (bytes, bytearray)) or not isinstance(source, Iterable):
        raise InvalidTypeError(f"source must be a path or lines as bytes, not {preview(source)}")
    return _Reading().run(source)


class _Reading:
    """One file's reading: drafts of batches and calls, filled line by line."""

    def __init__(self) -> None:
        self.batches: dict[object, Draft] = {}
        self.executions: dict[str, Draft] = {}
        self.logs: dict[str, bool] = {}  # whether each has said that it ended
        self.lines = self.unreadable = self.unknown = self.dropped = 0
        self.events: dict[str, Callable[[Draft], object]] = {
            "opened": lambda _: None,
            "begun": self.begun,
            "admitted": lambda entry: self.call(entry).update(admitted_at=_number(entry, "at")),
            "approval": lambda entry: self.call(entry).update(asked_at=_number(entry, "at")),
            "started": lambda entry: self.call(entry).update(started_at=_number(entry, "at")),
            "progress": self.progress,
            "settled": self.settled,
            "ended": self.ended,
            "late": self.late,
            "closed": self.closed,
            "left": self.left,
        }

    def run(self, lines: Iterable[bytes]) -> RunRecord:
        """Read them all."""
        for line in lines:
            if not isinstance(line, (bytes, bytearray)):
                raise InvalidTypeError(f"the lines of source must be bytes, not {preview(line)}")
            if line.strip():
                self.lines += 1
                self.take(line)
        return RunRecord(
            batches=tuple(_batch(draft) for draft in self.batches.values()),
            lines=self.lines,
            unreadable=self.unreadable,
            unknown=self.unknown,
            dropped=self.dropped,
            cut_off=sum(not has_ended for has_ended in self.logs.values()),
        )

    def take(self, line: bytes) -> None:
        """Read one line."""
        try:
            entry = json.loads(line.decode())
        except (ValueError, RecursionError):
            entry = None
        if not isinstance(entry, dict):
            self.unreadable += 1
            return
        version = entry.get("toolbatch")
        if version is None and "execution_id" in entry and "late_by" in entry:
            self.late(entry)  # of a sink that wrote no version yet
        elif type(version) is not int or version < 1:
            self.unreadable += 1
        elif version > FORMAT or (take := self.events.get(_text(entry, "event") or "")) is None:
            self.unknown += 1
        else:
            if (log := _text(entry, "log")) is not None:
                self.logs.setdefault(log, False)
            take(entry)

    def batch(self, entry: Draft) -> Draft:
        """Return the draft of the batch that a line is of."""
        name, generation = _text(entry, "batch"), _whole(entry, "generation")
        key = ("generation", generation) if name is None else name
        if key not in self.batches:
            self.batches[key] = {**_UNKNOWN, "log": _text(entry, "log"), "calls": {}}
        draft = self.batches[key]
        draft["generation"] = draft["generation"] or generation
        draft["run_id"] = draft["run_id"] or _text(entry, "run_id")
        return draft

    def call(self, entry: Draft, id_key: str = "call_id", name_key: str = "tool_name") -> Draft:
        """Return the draft of the call that a line is of."""
        call_id, execution_id = _text(entry, id_key) or "?", _text(entry, "execution_id")
        if execution_id is not None and execution_id in self.executions:
            return self.executions[execution_id]
        draft: Draft = self.batch(entry)["calls"].setdefault(call_id, {"call_id": call_id})
        if execution_id is not None:
            draft["execution_id"] = execution_id
            self.executions[execution_id] = draft
        draft["tool_name"] = draft.get("tool_name") or _text(entry, name_key) or ""
        return draft

    def begun(self, entry: Draft) -> None:
        """A batch was opened with these calls."""
        self.batch(entry)["begun_at"] = _number(entry, "at")
        for call in _dicts(entry, "calls"):
            draft = self.call(
                {**call, "batch": entry.get("batch"), "generation": entry.get("generation")}, "id", "name"
            )
            draft["arguments"] = _text(call, "arguments")

    def progress(self, entry: Draft) -> None:
        """A running tool has said how far it is."""
        draft = self.call(entry)
        draft["progress"] = draft.get("progress", 0) + 1
        draft["last_progress"] = _text(entry, "content") or draft.get("last_progress")

    def settled(self, entry: Draft) -> None:
        """A call has its outcome."""
        draft = self.call(entry)
        draft.update(settled_at=_number(entry, "at"), status=_text(entry, "status"), **_end(entry))
        self.ended(entry)

    def ended(self, entry: Draft) -> None:
        """What is known of an execution, at its outcome or later."""
        draft = self.call(entry)
        started_at, asked_at = _number(entry, "started_at") or draft.get("started_at"), draft.get("asked_at")
        if started_at is not None and asked_at is not None:
            started_at = max(started_at, asked_at)  # the loop's clock told the first, and may lag by milliseconds
        draft["started_at"] = started_at
        for name in ("timeout", "deadline_late_by", "duration"):
            draft[name] = _number(entry, name)
        for name in ("status", "completion", "cancellation", "exception_type"):
            draft[name] = _text(entry, name) or draft.get(name)
        draft["repeats"] = _whole(entry, "repeats") or 0
        draft["resumed"] = entry.get("resumed") is True
        if draft["completion"] == "settled" and None not in (draft["started_at"], draft["duration"]):
            draft["ended_at"] = draft["started_at"] + draft["duration"]

    def late(self, entry: Draft) -> None:
        """A result came after its call's outcome."""
        draft = self.call(entry, name_key="name")
        settled_at = _number(entry, "settled_at")
        draft["started_at"] = draft.get("started_at") or _number(entry, "started_at")
        draft["settled_at"] = draft.get("settled_at") or _number(entry, "closed_at")
        draft["ended_at"] = settled_at
        answered_as = _text(entry, "answered_as")
        draft["code"] = draft.get("code") or answered_as
        draft["status"] = draft.get("status") or _ANSWERS.get(answered_as or "")
        texts = ("observed_status", "answered_as", "reason", "exception_type", "content")
        late_by = _number(entry, "late_by")
        draft["late"] = LateRecord(at=settled_at, late_by=late_by, **{name: _text(entry, name) for name in texts})

    def closed(self, entry: Draft) -> None:
        """A batch was closed; with those calls that no other line tells the end of."""
        draft = self.batch(entry)
        draft.update(closed_at=_number(entry, "at"), status=_text(entry, "status"), code=_text(entry, "code"))
        for call in _dicts(entry, "calls"):
            known = self.call(
                {**call, "batch": entry.get("batch"), "generation": entry.get("generation")}, "id", "name"
            )
            if known.get("status") is None:
                status = _STATUSES.get(_text(call, "state") or "")
                known.update(
                    status=status, resumed=True, settled_at=known.get("settled_at") or draft["begun_at"], **_end(call)
                )

    def left(self, entry: Draft) -> None:
        """A log has ended in order."""
        self.logs[_text(entry, "log") or ""] = True
        self.dropped += max(0, _whole(entry, "dropped") or 0)


def _batch(draft: Draft) -> BatchRecord:
    calls = tuple(CallRecord(**call) for call in draft["calls"].values())
    return BatchRecord(**{**draft, "calls": calls})


def _end(entry: Draft) -> Draft:
    """Return what the end of a call says besides its status."""
    return {name: _text(entry, name) for name in ("code", "side_effect_state", "content")}


def _dicts(entry: Draft, key: str) -> Iterator[Draft]:
    found = entry.get(key)
    return (one for one in found if isinstance(one, dict)) if isinstance(found, list) else iter(())


def _text(entry: Draft, key: str) -> str | None:
    value = entry.get(key)
    return cut(value, _TEXT_BYTES) if isinstance(value, str) and value else None


def _number(entry: Draft, key: str) -> float | None:
    """Return a time or a length of time; `None` for what is no number, negative, or beyond all calendars."""
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _SECONDS:  # NaN is not
        return None
    return float(value)


def _whole(entry: Draft, key: str) -> int | None:
    value = entry.get(key)
    return value if type(value) is int else None
