"""The lock around what is kept in memory: of one process, and until it is closed."""

import os
import threading
from typing import final

from toolbatch.ports import OperationStoreClosedError

__all__ = ["Guard"]


@final
class Guard:
    """Lets threads in one after the other, for as long as what it guards is open, and nobody in a forked child.

    Args:
        what: What it guards, for the message.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._closed = False
        self._pid = os.getpid()

    def close(self) -> None:
        """Let nobody in from now on."""
        self._closed = True

    def lock(self) -> threading.Lock:
        """Return the lock, to be entered at once.

        Raises:
            OperationStoreClosedError: It was closed, or this is a forked child.
        """
        if self._pid != os.getpid():  # looked at before the lock, which may have been held at the fork
            raise OperationStoreClosedError(f"{self._what} belongs to process {self._pid}, not to its forked child")
        if self._closed:
            raise OperationStoreClosedError(f"{self._what} was closed; what it held is gone")
        return self._lock
