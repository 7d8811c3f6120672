"""The audit channel: where late results go, and from where they never come back as results."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable

from toolbatch.core import InvalidInputError, InvalidTypeError, preview
from toolbatch.ports import AuditSink, StaleResult

from ._failures import throw
from ._log import tell

__all__ = ["AuditChannel"]


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
        self._sinks: tuple[AuditSink, ...] = ()
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
        self._sinks += (sink,)

    def drain(self) -> list[StaleResult]:
        """Return the records that have come since the last time, without waiting."""
        records = list(self._records)
        self._records.clear()
        return records

    def put(self, stale: StaleResult) -> None:
        """Add a record. Never waits and never raises."""
        for sink in self._sinks:
            try:
                sink(stale)
            except (KeyboardInterrupt, SystemExit) as error:
                asyncio.get_running_loop().call_soon(throw, error)
            except BaseException:  # noqa: BLE001  contained, and told of
                tell(logging.ERROR, "the audit sink %s failed on %s", preview(sink), stale.execution_id, exc_info=True)
        if len(self._records) >= self._size:
            if self._dropped == 0:
                tell(
                    logging.WARNING, "the audit channel is full at %d records; later ones are only counted", self._size
                )
            self._dropped += 1
            return
        self._records.append(stale)
        self._wake_one()

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
                if reader.done() and not reader.cancelled():
                    self._wake_one()  # the record that woke us is someone else's now
                raise
        return self._records.popleft()

    def _wake_one(self) -> None:
        while self._readers:
            reader = self._readers.popleft()
            if not reader.done():
                reader.set_result(None)
                return
