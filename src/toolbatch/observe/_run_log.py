"""The run log: what happened in a session, one JSON line each, for `read_run` and `toolbatch report`."""

import asyncio
import itertools
import secrets
import time
from collections.abc import Mapping
from contextvars import Context
from os import PathLike
from pathlib import Path
from threading import TIMEOUT_MAX
from types import TracebackType
from typing import Any, Self

from toolbatch.core import BatchStateError, InvalidInputError, InvalidTypeError, preview
from toolbatch.ports import (
    ApprovalRequested,
    BatchClosed,
    BatchEvent,
    BatchOpened,
    BatchWatcher,
    CallAdmitted,
    CallProgress,
    CallSettled,
    CallStarted,
    ExecutionOutcome,
    StaleResult,
)

from ._run_log_file import LineFile
from ._run_log_lines import (
    admitted_entry,
    begun_entry,
    call_entry,
    closed_entry,
    ended_entry,
    line,
    progress_entry,
    settled_entry,
    stale_entry,
)

__all__ = ["RunLog"]


class RunLog:
    """Writes what happens in batches to a file, one JSON line each: `toolbatch report` draws it (B7, O1, O3).

    A run log is an observer of a session, of many at once, or of a lone batch::

        async with RunLog("run.jsonl") as log, ToolSession(tools=tools, observers=[log]) as session:
            ...

    Several logs may write to one file, from several processes too, and `read_run` tells them apart.

    It never holds up a tool: lines are written, and flushed one by one, in a thread. What can't be written is counted, and said once
    under the logger `toolbatch.run_log`. After a crash of the process the file has all that came but for the last moment; what a resumed
    batch needs is a journal's matter.

    Neither arguments nor results nor messages nor progress texts are in it, unless asked for.

    Args:
        path: The file; made where missing, appended to where not. Its folder is not made.
        content_bytes: How many bytes to keep of each argument object, result, message and progress report; 0 for none of them. Late
            results have theirs where the session keeps content.
        size: How many lines may wait to be written, at least 1. More are dropped, and counted.
        close_timeout: Seconds that leaving waits for a slow disk.

    Raises:
        InvalidInputError: A bound can't be used.
        InvalidTypeError: A bound, or the path, is of a wrong type.
    """

    def __init__(
        self, path: str | PathLike[str], *, content_bytes: int = 0, size: int = 10_000, close_timeout: float = 5.0
    ) -> None:
        if not isinstance(path, (str, PathLike)):
            raise InvalidTypeError(f"path must be a str or a PathLike, not {preview(path)}")
        self._path = Path(path)
        self._content_bytes = _whole(content_bytes, "content_bytes", 0)
        self._size = _whole(size, "size", 1)
        self._close_timeout = _seconds(close_timeout)
        self._file: LineFile | None = None
        self._source = {"log": secrets.token_hex(6)}
        self._batches = itertools.count(1)

    def __enter__(self) -> Self:
        """Open the file.

        Raises:
            BatchStateError: The log was entered before.
            OSError: The file can't be opened.
        """
        if self._file is not None:
            raise BatchStateError("this RunLog was entered before; make a new one, which may append to the same file")
        self._file = LineFile(self._path, self._size)
        self._file.put(line("opened", time.time(), self._source, {}))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait until everything is written, at most `close_timeout` seconds. On an event loop use `async with`: this blocks it."""
        file = self._entered()
        file.close(self._farewell(file))
        if not file.wait(self._close_timeout):
            file.give_up()

    async def __aenter__(self) -> Self:
        """Open the file, as `with` does."""
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait until everything is written, at most `close_timeout` seconds; the loop goes on meanwhile.

        Raises:
            asyncio.CancelledError: The task was cancelled while it waited here. The thread goes on to the end.
        """
        file = self._entered()
        loop = asyncio.get_running_loop()
        written = asyncio.Event()
        file.close(self._farewell(file), lambda: loop.call_soon_threadsafe(written.set))
        if isinstance(error, GeneratorExit):  # an async generator is being closed: it must not await (B18)
            return
        try:
            async with asyncio.timeout(self._close_timeout):
                await written.wait()
        except TimeoutError:
            file.give_up()

    @property
    def dropped(self) -> int:
        """How many lines could not be written, or found no room, or came after the end."""
        return 0 if self._file is None else self._file.dropped

    def __call__(self, opened: BatchOpened, /) -> BatchWatcher:
        """Watch a batch: for the option `observers` of a session or batch. Batches that open after the log was left are counted only.

        Raises:
            BatchStateError: The log was not entered. The batch goes on, and the log says why nobody watches it.
        """
        source = {**self._source, "batch": f"{self._source['log']}-{next(self._batches)}"}
        return _Watcher(self._entered(), source, opened, self._content_bytes)

    def _farewell(self, file: LineFile) -> bytes:
        return line("left", time.time(), self._source, {"dropped": file.dropped})

    def _entered(self) -> LineFile:
        if self._file is None:
            raise BatchStateError(
                "this RunLog was not entered; use it as `async with RunLog(path) as log:` around the session"
            )
        return self._file


class _Watcher(BatchWatcher):
    """Writes what happens in one batch."""

    def __init__(self, file: LineFile, source: dict[str, str], opened: BatchOpened, content_bytes: int) -> None:
        self._file = file
        self._source = source
        self._content_bytes = content_bytes
        self._told: set[str] = set()  # the calls whose outcome was written
        self._put("begun", begun_entry(opened, content_bytes))

    def prepare(self, admitted: CallAdmitted, _: Context, /) -> None:
        self._put("admitted", admitted_entry(admitted))

    def event(self, event: BatchEvent, /) -> None:
        match event:
            case ApprovalRequested(request=request):
                self._put("approval", call_entry(request))
            case CallStarted():
                self._put("started", call_entry(event))
            case CallProgress():
                self._put("progress", progress_entry(event, self._content_bytes))
            case CallSettled(outcome=outcome):
                self._told.add(outcome.call_id)
                self._put("settled", settled_entry(event, self._content_bytes))
            case BatchClosed(snapshot=snapshot):
                self._put("closed", closed_entry(snapshot, self._told, self._content_bytes))

    def ended(self, outcome: ExecutionOutcome, /) -> None:
        self._put("ended", ended_entry(outcome))

    def late(self, stale: StaleResult, /, *, kept: bool) -> None:
        self._put("late", stale_entry(stale, kept=kept))

    def _put(self, event: str, entry: Mapping[str, Any]) -> None:
        self._file.put(line(event, time.time(), self._source, entry))


def _whole(value: object, what: str, least: int) -> int:
    if type(value) is not int:
        raise InvalidTypeError(f"{what} must be an int, not {preview(value)}")
    if value < least:
        raise InvalidInputError(f"{what} must be at least {least}, not {value}")
    return value


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidTypeError(f"close_timeout must be a number of seconds, not {preview(value)}")
    if not 0 <= value <= TIMEOUT_MAX:
        raise InvalidInputError(f"close_timeout must be from 0 to {TIMEOUT_MAX:.0f} seconds, not {preview(value)}")
    return float(value)
