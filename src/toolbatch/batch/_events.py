"""A batch's events, as a stream for user interfaces."""

import asyncio
from collections import deque
from collections.abc import Callable

from toolbatch.core import InvalidInputError, InvalidTypeError, preview
from toolbatch.ports import BatchClosed, BatchEvent, CallProgress, CallStarted

from ._execution import NEVER, Execution

__all__ = ["EventStream", "Listener", "Listeners"]

Listener = Callable[[BatchEvent], object]
"""Is told of one event, and must not raise."""


class Listeners(list[Listener]):
    """Who is told of a batch's events, in order."""

    __slots__ = ("_untold",)

    def __init__(self) -> None:
        super().__init__()
        self._untold: deque[BatchEvent] | None = None  # what else has happened while they are told of something

    def tell(self, event: BatchEvent) -> None:
        """Tell all of them of an event; of one that a listener brings about, once all know of what was before."""
        if self._untold is not None:
            self._untold.append(event)
            return
        self._untold = untold = deque([event])
        try:
            while untold:
                event = untold.popleft()
                for listener in self:
                    listener(event)
        finally:
            self._untold = None

    def started(self, execution: Execution) -> None:
        """Tell them that a tool's code was entered."""
        # A thread's word may come after the outcome, and a placeholder's tool be run again.
        is_open = execution.settlement is None and execution.engine.result is None
        if execution.started_at is not None and is_open:
            self.tell(CallStarted(**execution.identity, seconds_left=_seconds_left(execution)))

    def progress(self, execution: Execution, content: str) -> None:
        """Tell them what a running tool has so far."""
        self.tell(CallProgress(**execution.identity, content=content))


def _seconds_left(execution: Execution) -> float | None:
    return None if execution.deadline == NEVER else max(0.0, execution.deadline - execution.engine.clock.now())


class EventStream:
    """The events of one batch from the moment it was asked for: `async for event in stream`.

    Several readers share them: each event goes to one. It never holds up the batch. A reader that is too slow loses the oldest progress reports, which are counted, and nothing
    else. It ends with `BatchClosed`.

    Args:
        size: How many progress reports it holds.

    Attributes:
        dropped: How many progress reports were lost.
    """

    def __init__(self, size: int = 1000) -> None:
        if type(size) is not int:
            raise InvalidTypeError(f"size must be a positive int, not {preview(size)}")
        if size < 1:
            raise InvalidInputError(f"size must be at least 1, not {size}")
        self._size = size
        self._events: deque[BatchEvent] = deque()
        self._reports = 0  # invariant: how many of them are progress
        self._ended = False
        self._readers: list[asyncio.Future[None]] = []
        self.dropped = 0

    def put(self, event: BatchEvent) -> None:
        """Add an event. Never waits and never raises."""
        if isinstance(event, CallProgress):
            if self._reports == self._size:
                oldest = next(index for index, kept in enumerate(self._events) if isinstance(kept, CallProgress))
                del self._events[oldest]
                self.dropped += 1
                self._reports -= 1
            self._reports += 1
        self._events.append(event)
        for reader in self._readers:
            if not reader.done():
                reader.set_result(None)

    def __aiter__(self) -> "EventStream":
        return self

    async def __anext__(self) -> BatchEvent:
        """Return the next event, waiting for it.

        Raises:
            StopAsyncIteration: The batch is closed, and everything was read.
        """
        while not self._events:
            if self._ended:
                raise StopAsyncIteration
            reader = asyncio.get_running_loop().create_future()
            self._readers.append(reader)
            try:
                await reader
            finally:
                self._readers.remove(reader)
        event = self._events.popleft()
        self._reports -= isinstance(event, CallProgress)
        self._ended = self._ended or isinstance(event, BatchClosed)
        return event
