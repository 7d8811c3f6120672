"""One batch's loop, seen from any thread: whose turn it is, and what time."""

import asyncio
import time
from collections.abc import Callable
from threading import get_ident
from typing import Any

from toolbatch.observe import log_event

__all__ = ["Clock"]


class Clock:
    """The loop that a batch was entered in, its thread and its time."""

    __slots__ = ("_monotonic_offset", "_thread", "_wall_offset", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._thread = get_ident()
        now = self.loop.time()
        self._wall_offset = time.time() - now
        self._monotonic_offset = now - time.monotonic()

    def is_here(self) -> bool:
        """Whether this is the loop's thread."""
        return get_ident() == self._thread

    def now(self) -> float:
        """Return the loop's time, in any thread."""
        # The loop's own clock is its thread's alone: uvloop changes its state when it is read.
        return self.loop.time() if self.is_here() else time.monotonic() + self._monotonic_offset

    def wall(self, loop_time: float) -> float:
        """Return a time of the loop's clock in seconds since the epoch."""
        return loop_time + self._wall_offset

    def call(self, fn: Callable[..., object], /, *args: Any) -> bool:
        """Call `fn` in the loop's thread: now if this is it, else soon; never, and say False, if the loop has gone."""
        if self.is_here():
            fn(*args)
            return True
        try:
            self.loop.call_soon_threadsafe(fn, *args)
        except RuntimeError:
            log_event("report_lost", "a tool's report came after its event loop was closed; it is lost")
            return False
        return True
