"""Waiting for a host's store no longer than agreed, whatever it does with being cancelled."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

__all__ = ["StoppedError", "bounded"]

T = TypeVar("T")

_GRACE: Final = 0.1  # seconds that what was cancelled is given to end, so that nothing is left behind in the usual case

_let_go: set["asyncio.Task[Any]"] = set()
"""Tasks that were cancelled and went on: the loop itself holds tasks weakly."""


class StoppedError(Exception):
    """What was waited for cancelled itself."""


async def bounded(start: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
    """Run a coroutine for at most so long and return its result.

    It runs in a task of its own: in the caller's, one that swallows its cancellation could not be left. At the bound, and when the
    caller is cancelled, it is cancelled, and left to itself if it goes on.

    Raises:
        TimeoutError: The time was over.
        StoppedError: It ended as cancelled, though nobody had cancelled it.
        CancelledError: The caller was cancelled.
        BaseException: What it raises.
    """
    task = asyncio.get_running_loop().create_task(start())
    in_time = False
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
        in_time = bool(done)
    finally:
        if not in_time:
            await _stop(task)
    if not in_time and (not task.done() or task.cancelled()):
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    if task.cancelled():
        raise StoppedError("it was cancelled, and not by us")
    return task.result()


async def _stop(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    _let_go.add(task)
    task.add_done_callback(_forget)
    await asyncio.wait({task}, timeout=_GRACE)


def _forget(task: "asyncio.Task[Any]") -> None:
    _let_go.discard(task)
    if not task.cancelled():
        task.exception()  # nobody else will ask, and the loop would complain
