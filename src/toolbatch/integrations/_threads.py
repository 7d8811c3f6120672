"""Synchronous functions of another framework, in our threads: they can be left, and still are accounted for honestly.

A framework awaits its own executor's future. Cancelled, that await ends at once while the thread works on, and whoever looks at
the await alone would say that the tool has ended (O2).
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

from toolbatch.batch.kit import Job, workers

__all__ = ["CallThreads"]

P = ParamSpec("P")
T = TypeVar("T")


class CallThreads(Executor):
    """Runs the functions of one call in daemon threads, and knows which of them have not ended."""

    def __init__(self) -> None:
        self._jobs: list[tuple[Job, Future[Any]]] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Run a function as soon as a thread is free."""
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return  # cancelled before its turn, so it never begins
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001  it is told to whoever awaits the future
                future.set_exception(error)
            else:
                future.set_result(result)

        job = Job(run)
        self._jobs.append((job, future))
        workers.submit(job)
        return future

    async def outlast(self) -> Any:
        """Wait for the function that still runs after its call was cancelled, and return or raise what it does.

        Raises:
            asyncio.CancelledError: None runs: the cancellation has ended the call.
        """
        running = [(job, future) for job, future in self._jobs if future.running()]
        if not running:
            raise asyncio.CancelledError
        for job, _ in running:
            workers.let_go(job)  # its place in the pool is for others
        return await asyncio.wrap_future(running[-1][1])
