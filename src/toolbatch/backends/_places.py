"""A bounded number of places, given in the order of asking."""

import asyncio
from collections import deque

__all__ = ["Places"]


class Places:
    """Places for calls, each for one at a time.

    Args:
        count: How many there are.
    """

    __slots__ = ("_free", "_waiting")

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for a place. Who is cancelled while waiting has none, and leaves none behind.

        Raises:
            Exception: What `refuse` was given.
        """
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.give()  # it came in the very moment of the cancellation
            raise

    def give(self) -> None:
        """Give a place back, to the next who waits."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def refuse(self, error: BaseException) -> None:
        """Tell all who wait that there will be none."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(error)
