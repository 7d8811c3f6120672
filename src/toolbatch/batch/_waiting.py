"""Who waits for a batch: its `snapshot()`s for the close, its exit for the last call that was started."""

from asyncio import AbstractEventLoop, Future

__all__ = ["Waiting"]


class Waiting:
    """Waiters of one batch. Waking is synchronous and happens once; who is woken looks again."""

    __slots__ = ("_closed", "_parked", "_quiet")

    def __init__(self) -> None:
        self._closed: list[Future[None]] = []
        self._quiet: list[Future[None]] = []
        self._parked: list[Future[None]] = []

    def __bool__(self) -> bool:
        """Whether someone waits for the close."""
        return bool(self._closed)

    def for_close(self, loop: AbstractEventLoop) -> "Future[None]":
        """Return a future that is done when the batch is closed."""
        self._closed.append(future := loop.create_future())
        return future

    def for_quiet(self, loop: AbstractEventLoop) -> "Future[None]":
        """Return a future that is done when no started call is without its outcome, or the batch is closed."""
        self._quiet.append(future := loop.create_future())
        return future

    def for_parked(self, loop: AbstractEventLoop) -> "Future[None]":
        """Return a future that is done when all that runs waits for approvals, or the batch is closed."""
        self._parked.append(future := loop.create_future())
        return future

    async def wait(self, future: "Future[None]") -> None:
        """Await one of these futures; a waiter that is cancelled is forgotten."""
        try:
            await future
        except BaseException:
            for waiters in (self._closed, self._quiet, self._parked):
                if future in waiters:
                    waiters.remove(future)
            raise

    def wake_quiet(self) -> None:
        """No started call is without its outcome."""
        _wake(self._quiet)

    def wake_parked(self) -> None:
        """All that runs waits for approvals."""
        _wake(self._parked)

    def wake_all(self) -> None:
        """The batch is closed."""
        _wake(self._closed)
        _wake(self._quiet)
        _wake(self._parked)


def _wake(futures: "list[Future[None]]") -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
    futures.clear()
