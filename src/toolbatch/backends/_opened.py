"""Whether a backend is ready: entered in this loop and this process, and not left."""

import asyncio
import os

from toolbatch.core import BatchStateError
from toolbatch.ports import BackendNotStartedError

__all__ = ["Opened"]


class Opened:
    """The part of a backend's life that all of them have.

    Args:
        name: What the backend is called in messages.
    """

    __slots__ = ("_is_closed", "_loop", "_name", "_pid")

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0
        self._is_closed = False

    def open(self) -> asyncio.AbstractEventLoop:
        """Belong to the running loop, and return it.

        Raises:
            BatchStateError: It was entered before.
        """
        if self._loop is not None:
            raise BatchStateError(f"the {self._name} backend was entered before; make another one")
        self._loop, self._pid = asyncio.get_running_loop(), os.getpid()
        return self._loop

    def close(self) -> bool:
        """Take nothing any more; False says that this was so before."""
        was_open = not self._is_closed
        self._is_closed = True
        return was_open

    @property
    def is_closed(self) -> bool:
        """Whether it was left."""
        return self._is_closed

    def require(self) -> asyncio.AbstractEventLoop:
        """Return the backend's loop, which is the running one.

        Raises:
            BackendNotStartedError: The backend is not entered, or was left, or belongs to another loop or process.
        """
        loop = self._loop
        if loop is None:
            why = f"the {self._name} backend is not open; use it inside of `async with`"
        elif self._is_closed:
            why = f"the {self._name} backend is closed"
        elif self._pid != os.getpid():
            why = f"the {self._name} backend belongs to the process that this one was forked from; make one here"
        elif loop is not asyncio.get_running_loop():
            why = f"the {self._name} backend belongs to another event loop; make one here"
        else:
            return loop
        raise BackendNotStartedError(f"{why}.")
