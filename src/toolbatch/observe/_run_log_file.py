"""A file of lines that is written in a thread of its own: who adds a line never waits for a disk."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import BinaryIO

from toolbatch.core import preview

__all__ = ["LineFile"]

_logger = logging.getLogger("toolbatch.run_log")


class LineFile:
    """Appends lines to a file, each whole and given to the system at once, in the order in which they came.

    Several processes may append to one file: each line is one write to its end. A line that can't be written is counted, and so
    is one that finds no room because the disk is slower than what happens.

    Args:
        path: The file; made where missing, its folder is not.
        size: How many lines may wait to be written.

    Raises:
        OSError: The file can't be opened.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._file: BinaryIO = path.open("ab", buffering=0)
        self._path = path
        self._size = size
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._is_torn = _is_torn(path)
        self._failures = 0  # written by the thread alone
        self._crowded = 0  # written by who adds lines alone
        self._closed = False
        self._ended = threading.Event()
        self._on_end: Callable[[], object] | None = None
        # A daemon: a disk that hangs must not keep the process from ending (B9).
        self._thread = threading.Thread(target=self._write_all, name="toolbatch-run-log", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """How many lines are not in the file, and will not be."""
        return self._crowded + self._failures

    def put(self, line: bytes) -> None:
        """Add a line. Never waits and never raises; what comes after `close` is counted as dropped."""
        if self._closed or self._lines.qsize() >= self._size:
            if self._crowded == 0:
                reason = "it is closed" if self._closed else f"{self._size} lines wait to be written"
                _tell("the run log %s drops lines: %s", self._path, reason)
            self._crowded += 1
        else:
            self._lines.put(line)

    def close(self, last: bytes, on_end: Callable[[], object] | None = None) -> None:
        """Take no more lines after `last`, for which there is room; `on_end` is called in the thread when all are written."""
        if not self._closed:
            self._closed = True
            self._on_end = on_end
            self._lines.put(last)
            self._lines.put(None)

    def wait(self, seconds: float) -> bool:
        """Block until everything is written, for so many seconds at most, and say whether it is."""
        return self._ended.wait(seconds)

    def give_up(self) -> None:
        """Say that the end was not waited for: what still waits may never be written."""
        _tell("the run log %s was left with about %d lines not written", self._path, self._lines.qsize())

    def _write_all(self) -> None:
        while (line := self._lines.get()) is not None:
            self._write(line)
        with suppress(OSError):
            self._file.close()
        self._ended.set()
        if self._on_end is not None:
            with suppress(RuntimeError):  # the loop that waited has gone
                self._on_end()

    def _write(self, line: bytes) -> None:
        rest = b"\n" + line if self._is_torn else line  # a line that was cut off must not spoil this one
        try:
            while rest:
                written = self._file.write(rest) or 0
                self._is_torn = True
                rest = rest[written:]
            self._is_torn = False
        except OSError as error:
            if self._failures == 0:
                _tell("the run log %s can't be written: %s", self._path, preview(error))
            self._failures += 1


def _is_torn(path: Path) -> bool:
    """Whether the file ends within a line, as a crash leaves it."""
    with path.open("rb") as file:
        try:
            file.seek(-1, 2)
        except OSError:
            return False  # it is empty, or can't be sought in
        return file.read(1) != b"\n"


def _tell(message: str, *args: object) -> None:
    with suppress(Exception):  # a handler that raises must not end the thread
        _logger.warning(message, *args)
