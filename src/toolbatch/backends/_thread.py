"""Running tools in threads of our own, beside the event loop."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Final, Self, final

from toolbatch.core import InvalidInputError, preview
from toolbatch.ports import BackendNotStartedError, BackendUnknownError, CallNote, Enforcement, Invocation

from ._body import finish, is_unfinished
from ._opened import Opened
from ._places import Places

__all__ = ["ThreadBackend"]

_ENFORCES: Final = Enforcement(cancellation="cooperative")


@final
class ThreadBackend:
    """Runs each tool in a daemon thread (X2), so that one that blocks does not stop the event loop.

    An asynchronous tool has an event loop of its own there, and is cancelled in it. A synchronous one can't be interrupted: it
    sees `current_call().cancel_event`, and the cancelled `run` ends when the tool does; cancelled once more, it gives the thread up.

    Args:
        max_threads: How many tools may run at once; more of them wait. A tool that hangs keeps its thread.

    Raises:
        InvalidInputError: `max_threads` is no positive number.
    """

    name: Final = "thread"

    def __init__(self, max_threads: int = 64) -> None:
        if type(max_threads) is not int or max_threads < 1:
            raise InvalidInputError(f"max_threads must be a positive int, not {preview(max_threads)}")
        self._opened = Opened(self.name)
        self._places = Places(max_threads)

    @property
    def enforces(self) -> Enforcement:
        """A cancellation that the tool may ignore, and nothing else."""
        return _ENFORCES

    def require(self, fn: Callable[..., Any], /) -> None:
        """Take any function."""

    async def run(self, invocation: Invocation, /) -> Any:
        """As `ExecutionBackend.run`."""
        loop = self._opened.require()
        await self._places.take()
        if self._opened.is_closed:
            self._places.give()
            self._opened.require()
        job = _Job(loop, invocation, self._places.give)
        invocation.begin()
        try:
            threading.Thread(target=copy_context().run, args=(job.run,), name="toolbatch-backend", daemon=True).start()
        except RuntimeError as error:
            self._places.give()
            raise BackendNotStartedError(f"the system has no thread left ({error}).") from error
        return await job.result()

    async def __aenter__(self) -> Self:
        self._opened.open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._opened.close()
        self._places.refuse(BackendNotStartedError("the thread backend was closed."))


class _Job:
    """One tool in one thread, and the loop that waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, invocation: Invocation, free: Callable[[], None]) -> None:
        self._loop = loop
        self._invocation = invocation
        self._free = free
        self._end: asyncio.Future[tuple[bool, Any]] = loop.create_future()
        self._task: asyncio.Task[Any] | None = None  # of an asynchronous tool, in the thread's own loop
        self._is_stopped = False

    async def result(self) -> Any:
        """Wait for the end of the thread's work; when cancelled ask it to stop, and wait on."""
        try:
            await asyncio.shield(self._end)
        except asyncio.CancelledError:
            self._stop()
            try:
                await asyncio.shield(self._end)
            except asyncio.CancelledError:
                raise BackendUnknownError("The tool does not stop, and its thread was given up.") from None
        succeeded, value = self._end.result()
        try:
            if succeeded:
                return value
            raise value
        finally:
            del value  # an exception leads back here by its traceback

    def run(self) -> None:
        """Run the tool; in the thread."""
        try:
            value = self._invocation.fn(*self._invocation.args, **self._invocation.kwargs)
            if is_unfinished(value):
                with asyncio.Runner() as runner:
                    value = runner.run(self._drive(value), context=copy_context())
            end = True, value
        except BaseException as error:  # noqa: BLE001  whatever a tool raises is its call's outcome
            end = False, error
        self._tell(self._ended, end)

    async def _drive(self, value: Any) -> Any:
        self._task = asyncio.current_task()
        if self._is_stopped and self._task is not None:
            self._task.cancel()  # at its first await
        return await finish(value, self._say)

    def _say(self, note: CallNote) -> None:
        self._tell(self._invocation.say, note)

    def _tell(self, fn: Callable[[Any], object], value: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(fn, value)
        except RuntimeError:
            return  # the loop has gone, and with it whoever wanted to know

    def _ended(self, end: tuple[bool, Any]) -> None:
        self._free()
        self._task = None
        if not self._end.done():
            self._end.set_result(end)

    def _stop(self) -> None:
        self._is_stopped = True
        task = self._task
        if task is not None:
            try:
                task.get_loop().call_soon_threadsafe(task.cancel)
            except RuntimeError:
                return  # its loop has ended in this moment
