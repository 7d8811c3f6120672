"""Sinks of the audit channel: where late results go besides the channel itself."""

import logging
from dataclasses import asdict
from os import PathLike
from pathlib import Path

from toolbatch.ports import StaleResult

from ._run_log_lines import line, stale_entry

__all__ = ["JsonLinesSink", "LoggingSink"]


class LoggingSink:
    """Logs every late result as one warning, named `late_result`, its fields under `record.stale_result` (B7).

    A channel that has one of these does not log late results by itself, which it else does at INFO under `toolbatch`.

    Args:
        logger: Where to; `toolbatch.audit` where `None`.
        level: The records' level.
    """

    def __init__(self, logger: logging.Logger | None = None, level: int = logging.WARNING) -> None:
        self._logger = logger or logging.getLogger("toolbatch.audit")
        self._level = level

    def __call__(self, stale: StaleResult, /) -> None:
        """Log one record."""
        self._logger.log(
            self._level,
            "late %s from %s (call %s, generation %d), %.3f s after it was answered as %s",
            stale.observed_status, stale.name, stale.call_id, stale.generation, stale.late_by, stale.answered_as,
            extra={
                "event_name": "late_result",
                "call_id": stale.call_id,
                "tool_name": stale.name,
                "generation": stale.generation,
                "execution_id": stale.execution_id,
                "stale_result": asdict(stale),
            },
        )  # fmt: skip


class JsonLinesSink:
    """Appends every late result to a file, one JSON object a line, flushed by the system at each (B7).

    They are the lines that a `RunLog` writes of late results, so `read_run` and `toolbatch report` read them too. The file is opened for
    each record, so it may be rotated, and nothing has to be closed.

    Args:
        path: The file; made where missing, its folder is not.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = Path(path)

    def __call__(self, stale: StaleResult, /) -> None:
        """Append one record. Raises `OSError` when it can't be written; the channel contains that."""
        with self._path.open("ab") as file:
            file.write(line("late", stale.settled_at, {}, stale_entry(stale)))
