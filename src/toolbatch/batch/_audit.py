"""The audit channel: where late results go, and from where they never come back as results."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from typing import Any

from toolbatch.core import InvalidInputError, InvalidTypeError, preview
from toolbatch.observe import LoggingSink, log_event
from toolbatch.ports import AuditSink, StaleResult

from ._failures import throw

__all__ = ["AuditChannel"]

_LOG = LoggingSink(logging.getLogger("toolbatch"), logging.INFO)
"""Logs late results where the host has no `LoggingSink` of its own."""


class AuditChannel:
    """A bounded queue of `StaleResult`s, in order, each handed out once (B7).

    It never blocks a tool: when it is full, the first records stay, as nearest to the cause, and the rest are counted.
    Sinks are handed every record, also those that the queue has no room for.

    Args:
        size: How many records it holds, at least 1.
        sinks: Who is handed each record as it comes.

    Raises:
        InvalidInputError: `size` is less than 1.
        InvalidTypeError: `size` is not an int, or a sink can't be called.
    """

    def __init__(self, size: int = 1000, sinks: Iterable[AuditSink] = ()) -> None:
        if type(size) is not int:
            raise InvalidTypeError(f"audit_size must be a positive int, not {preview(size)}")
        if size < 1:
            raise InvalidInputError(f"audit_size must be at least 1, not {size}")
        self._size = size
        self._sinks: tuple[AuditSink, ...] = (_LOG,)
        self._records: deque[StaleResult] = deque()
        self._dropped = 0
        self._closed = False
        self._readers: deque[asyncio.Future[None]] = deque()
        for sink in sinks:
            self.add_sink(sink)

    @property
    def dropped(self) -> int:
        """How many records found no room."""
        return self._dropped

    def __len__(self) -> int:
        return len(self._records)

    def __bool__(self) -> bool:
        return True  # a channel without records is still a channel

    def add_sink(self, sink: AuditSink) -> None:
        """Hand every record from now on to `sink` too.

        Raises:
            InvalidTypeError: `sink` can't be called. The channel is as it was.
        """
        if not callable(sink):
            raise InvalidTypeError(f"a sink must be a function of one StaleResult, not {preview(sink)}")
        if isinstance(sink, LoggingSink):
            self._sinks = tuple(one for one in self._sinks if one is not _LOG)  # the host says how it is logged
        self._sinks += (sink,)

    def drain(self) -> list[StaleResult]:
        """Return the records that have come since the last time, without waiting."""
        records = list(self._records)
        self._records.clear()
        return records

    def put(self, stale: StaleResult) -> bool:
        """Add a record, and say whether there was room for it. Never waits and never raises."""
        for sink in self._sinks:
            try:
                sink(stale)
            except (KeyboardInterrupt, SystemExit) as error:
                asyncio.get_running_loop().call_soon(throw, error)
            except BaseException:  # noqa: BLE001  contained, and told of
                log_event(
                    "audit_sink_failed",
                    "the audit sink %s failed on %s",
                    preview(sink),
                    stale.execution_id,
                    exc_info=True,
                    **_identity(stale),
                )
        if len(self._records) >= self._size:
            if self._dropped == 0:
                log_event(
                    "audit_record_dropped",
                    "the audit channel is full at %d records; later ones are only counted",
                    self._size,
                    audit_size=self._size,
                    **_identity(stale),
                )
            self._dropped += 1
            return False
        self._records.append(stale)
        self._wake_one()
        return True

    def close(self) -> None:
        """End every iteration once it has read what is there. Records that come later can still be drained."""
        self._closed = True
        while self._readers:
            self._wake_one()

    def __aiter__(self) -> "AuditChannel":
        return self

    async def __anext__(self) -> StaleResult:
        """Return the next record, waiting for it; the iteration ends when the channel's owner has exited."""
        while not self._records:
            if self._closed:
                raise StopAsyncIteration
            reader = asyncio.get_running_loop().create_future()
            self._readers.append(reader)
            try:
                await reader
            except asyncio.CancelledError:
                if reader in self._readers:
                    self._readers.remove(reader)
                elif not reader.cancelled():
                    self._wake_one()  # the record that woke us is someone else's now
                raise
        return self._records.popleft()

    def _wake_one(self) -> None:
        while self._readers:
            reader = self._readers.popleft()
            if not reader.done():
                reader.set_result(None)
                return


def _identity(stale: StaleResult) -> dict[str, Any]:
    return {
        "call_id": stale.call_id,
        "tool_name": stale.name,
        "generation": stale.generation,
        "execution_id": stale.execution_id,
    }
