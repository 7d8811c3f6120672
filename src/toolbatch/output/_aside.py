"""A thread of ours beside the event loop, for what would block it: a file's database, the counting of a very long text."""

import asyncio
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

__all__ = ["Aside", "NoThreadError"]

T = TypeVar("T")

_IDLE_SECONDS: Final = 5.0

_all: "weakref.WeakSet[Aside]" = weakref.WeakSet()


class NoThreadError(RuntimeError):
    """The system makes no more threads. The function was not called."""


class _Job(NamedTuple):
    call: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Any]"

    def run(self) -> None:
        if self.future.cancelled():
            return  # nobody waits any more
        value, error = None, None
        try:
            value = self.call()
        except BaseException as raised:  # noqa: BLE001  it is raised where it is awaited
            error = raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits there any more
            self.loop.call_soon_threadsafe(self._deliver, value, error)

    def _deliver(self, value: object, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(error)


class Aside:
    """Calls functions in a thread, one after the other in their order, for any number of event loops.

    The thread is made when it is needed and ends when it is idle, so there is nothing to close. It is a daemon: a function that
    hangs doesn't keep the process from ending. In a forked child there is none, and one is made when it is needed.

    Args:
        idle_seconds: How long the thread waits for more.
    """

    def __init__(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self.forget()
        _all.add(self)

    def forget(self) -> None:
        """Start anew, with no thread and nothing to do: in a forked child the thread isn't there, and its lock may be held."""
        self._changed = threading.Condition()
        self._jobs: deque[_Job] = deque()
        self._serving = False

    async def run(self, call: Callable[[], T]) -> T:
        """Return what `call` returns, or raise what it raises. Whoever is cancelled here leaves at once.

        What waits for its turn is then not called; what runs already goes on, and nobody hears of it.

        Raises:
            NoThreadError: There is no thread, and none can be made.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._changed:
            self._jobs.append(_Job(call, loop, future))
            self._changed.notify()
            if not self._serving:
                self._hire()
        return await future

    def _hire(self) -> None:
        try:
            threading.Thread(target=self._serve, name="toolbatch-output", daemon=True).start()
        except RuntimeError as error:
            self._jobs.pop()
            raise NoThreadError("the system makes no more threads") from error
        self._serving = True

    def _serve(self) -> None:
        while (job := self._next()) is not None:
            job.run()
            del job  # an idle thread must not keep the last text alive

    def _next(self) -> _Job | None:
        with self._changed:
            if not self._jobs:
                self._changed.wait_for(lambda: self._jobs, self._idle_seconds)
            if self._jobs:
                return self._jobs.popleft()
            self._serving = False
            return None


def _forget_all() -> None:
    for aside in list(_all):
        aside.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
