"""Running tools in processes that can be killed, and their children with them."""

import asyncio
import math
import os
import signal
import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, Self, final

from toolbatch.core import BatchStateError, InvalidTypeError
from toolbatch.ports import (
    BackendUnknownError,
    Enforcement,
    Invocation,
    NotSendableError,
    RemoteToolError,
    ResultNotSendableError,
    ResultTooLargeError,
    WorkerKilledError,
)

from ._child import Child, Output, Reply
from ._context_vars import ContextVars
from ._frames import SECONDS, Ending, Kind, Order, Settings
from ._opened import Opened
from ._options import positive, require_groups, seconds
from ._pickles import NotPicklableError, TooLargeError, dump, load, require_findable
from ._pool import Pool, Terms
from ._worker import MAX_WORDS, is_loading_main

__all__ = ["ProcessBackend"]

_ENFORCES: Final = Enforcement(cancellation="forced")
_DEATH_SECONDS: Final = 10.0
"""How long a killed process is waited for: the system ends it at once, unless it hangs in the system itself."""


@final
class ProcessBackend:
    """Runs tools in worker processes (X2): what does not stop is killed, and what it has started in its process group with it.

    Workers are fresh interpreters, never forks of this one, and stay warm from call to call; each runs one tool at a time in its
    main thread. More calls than workers wait in the order in which they came. A tool is a function that a worker can import: at
    a module's top level, a method of something that can be pickled, or a partial of these. Arguments, results and exceptions
    travel as pickles, over a socket of their own: what a tool prints goes to this process's standard error.

    A tool that is cancelled, as a batch does at a deadline, is killed at once, or after `grace`; the worker is replaced. It is for
    tools that are trusted but may hang, leak or crash: it is no sandbox, and a worker can do what this process's user can.
    Children that make a session of their own, as daemons do, are not found by the kill.

    Args:
        workers: How many processes there may be; as many as there are processors where `None`.
        warm: How many of them are started at once and kept ready.
        max_calls: After so many calls a worker is replaced; never where `None`.
        grace: Seconds between asking a tool to stop and killing it. It is asked by `current_call().cancel_event`, an asynchronous
            one by cancellation too, and programs that it has started by SIGTERM.
        memory: Bytes of address space that a worker may have, the interpreter's own included (`RLIMIT_AS`): a tool that needs
            more gets `MemoryError`. `None` for no bound.
        cpu_seconds: Seconds of processor time that a call may take (`RLIMIT_CPU`, rounded up); then its worker is killed.
        max_result_bytes: The most bytes of pickle that a result, or a call's arguments, may take.
        context_vars: The context variables whose values tools see as they were in the call's context: exactly these. Each is at the
            top level of a module, and its value can be pickled. Others have their defaults in a worker.
        preload: Modules that workers import when they start, so that the first call does not.
        start_timeout: Seconds in which a worker must be ready.
        output: Where what tools print goes: this process's standard error, or nowhere.

    Raises:
        InvalidInputError: An option can't be used, or this system has no process groups.
        InvalidTypeError: An option is of a wrong type.
    """

    name: Final = "process"

    def __init__(
        self,
        workers: int | None = None,
        *,
        warm: int = 1,
        max_calls: int | None = None,
        grace: float = 0.0,
        memory: int | None = None,
        cpu_seconds: float | None = None,
        max_result_bytes: int = 16 * 1024 * 1024,
        context_vars: Iterable[ContextVar[Any]] = (),
        preload: Iterable[str] = (),
        start_timeout: float = 60.0,
        output: Output = "stderr",
    ) -> None:
        require_groups()
        self._opened = Opened(self.name)
        self._pool: Pool | None = None
        self._limit = positive("max_result_bytes", max_result_bytes)
        self._grace = seconds("grace", grace, least=0.0)
        self._memory = None if memory is None else positive("memory", memory)
        self._cpu_seconds = None if cpu_seconds is None else seconds("cpu_seconds", cpu_seconds)
        self._context_vars = ContextVars(context_vars)
        self._preload = tuple(preload)
        most = positive("workers", (os.cpu_count() or 1) if workers is None else workers)
        self._terms = Terms(
            most,
            min(positive("warm", warm, least=0), most),
            None if max_calls is None else positive("max_calls", max_calls),
            max(self._limit, MAX_WORDS),
            seconds("start_timeout", start_timeout),
            output,
        )

    @property
    def enforces(self) -> Enforcement:
        """That a tool which is cancelled is dead afterwards. It can reach all that this process's user can."""
        return _ENFORCES

    @property
    def pids(self) -> list[int]:
        """The workers' process ids; empty before the backend is entered."""
        return [] if self._pool is None else self._pool.pids

    def require(self, fn: Callable[..., Any], /) -> None:
        """As `ExecutionBackend.require`.

        Raises:
            InvalidTypeError: It is a lambda or local to a function, so that no worker could import it.
        """
        try:
            require_findable(fn)
        except NotPicklableError as error:
            raise InvalidTypeError(f"{error}, or run it without a process") from None

    async def run(self, invocation: Invocation, /) -> Any:
        """As `ExecutionBackend.run`."""
        self._opened.require()
        order = self._packed(invocation)
        pool = self._pool
        assert pool is not None  # noqa: S101  it is open
        child = await pool.take()
        try:
            left = invocation.begin()
        except BaseException:
            pool.give(child)
            raise
        reply = child.call(SECONDS.pack(math.nan if left is None else left) + order, invocation.say)
        is_stopped = False
        try:
            answer = await asyncio.shield(reply)
        except asyncio.CancelledError:
            is_stopped = True
            answer = await self._stopped(child, reply)
        except BaseException:
            child.kill()
            raise
        # What it could not even begin it may owe to an earlier tool, which has changed its folder or its path, say.
        pool.give(child, is_sound=answer.kind is not Kind.REFUSED)
        return self._read(answer, child, is_stopped=is_stopped)

    async def __aenter__(self) -> Self:
        loop = self._opened.open()
        if is_loading_main():
            raise BatchStateError(
                "a worker loads the main module; put what that runs under `if __name__ == '__main__':`"
            )
        settings = Settings(
            list(sys.path), str(Path.cwd()), list(sys.argv), _main_module(), self._memory, self._cpu_seconds, self._preload
        )  # fmt: skip
        self._pool = Pool(self._terms, settings, loop)
        await self._pool.open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._opened.close() and self._pool is not None:
            await self._pool.close()

    def _packed(self, invocation: Invocation) -> bytes:
        limit = self._limit if invocation.max_result_bytes is None else min(self._limit, invocation.max_result_bytes)
        order = Order(
            invocation.fn, invocation.args, dict(invocation.kwargs), invocation.facts, self._context_vars.values(), limit
        )  # fmt: skip
        try:
            return dump(order, self._limit)
        except TooLargeError as error:
            raise NotSendableError(
                f"the arguments of {invocation.tool_name} are too large to be sent to a worker: {error}."
            ) from None
        except NotPicklableError as error:
            raise NotSendableError(f"{invocation.tool_name} can't be sent to a worker: {error}.") from error

    async def _stopped(self, child: Child, reply: "asyncio.Future[Reply]") -> Reply:
        """End a worker whose call was cancelled, and return what it has said until then. What cancels this again hurries it."""
        if self._grace:
            child.stop()
            await _until(reply, self._grace, child)
        child.kill()
        if not await _until(child.dead, _DEATH_SECONDS, child):
            raise BackendUnknownError("The process that runs the tool was killed, and has not ended.")
        return reply.result()

    def _read(self, answer: Reply, child: Child, *, is_stopped: bool) -> Any:
        match answer.kind:
            case Kind.RETURNED:
                try:
                    return load(answer.data)
                except NotPicklableError as error:
                    raise ResultNotSendableError(f"{error}.") from error
            case Kind.RAISED:
                raise _raised(load(answer.data), is_stopped=is_stopped)
            case Kind.TOO_LARGE:
                raise ResultTooLargeError(f"{load(answer.data)}.")
            case Kind.NOT_SENDABLE:
                raise ResultNotSendableError(f"{load(answer.data)}.")
            case _ if is_stopped and child.exit_code == -signal.SIGKILL:
                raise asyncio.CancelledError("the tool's process was killed")
            case Kind.REFUSED:
                raise NotSendableError(f"the worker can't run the call: {load(answer.data)}.")
            case _:
                pass
        if self._opened.is_closed:
            raise BackendUnknownError("The backend was closed while the tool ran.")
        raise WorkerKilledError(self._obituary(child))

    def _obituary(self, child: Child) -> str:
        code = child.exit_code
        if child.fault is not None:
            return f"The process that ran the tool was killed: it {child.fault}."
        if code == -signal.SIGXCPU and self._cpu_seconds is not None:
            return f"The process that ran the tool was killed: it used more than {self._cpu_seconds:g} seconds of processor time."
        if code is not None and code < 0 and not child.was_killed:
            return f"The process that ran the tool was killed ({_signal_name(-code)})."
        return (
            f"The process that ran the tool has ended{'' if code is None or code < 0 else f' with exit code {code}'}."
        )


async def _until(done: "asyncio.Future[Any]", seconds_left: float, child: Child) -> bool:
    """Wait for something, whatever cancels us; say whether it has come. Being cancelled again kills the worker."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds_left
    while not done.done() and (left := end - loop.time()) > 0:
        try:
            await asyncio.wait([done], timeout=left)
        except asyncio.CancelledError:
            child.kill()
    return done.done()


def _raised(ending: Ending, *, is_stopped: bool) -> BaseException:
    """Return what a tool has raised, or what stands for it here."""
    if ending.is_cancellation and is_stopped:
        return asyncio.CancelledError("the tool ended as cancelled")
    try:
        error = None if ending.pickled is None else load(ending.pickled)
    except NotPicklableError:
        error = None
    return error if isinstance(error, BaseException) else RemoteToolError(ending.message, ending.type_name)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _main_module() -> tuple[str, str] | None:
    """Say how a worker can load the main module, as `multiprocessing` does."""
    main = sys.modules.get("__main__")
    name = getattr(getattr(main, "__spec__", None), "name", None)
    if name is not None:
        return None if name == "__main__" or name.endswith(".__main__") else ("name", name)
    path = getattr(main, "__file__", None)
    return None if path is None else ("path", os.path.abspath(path))  # noqa: PTH100  as the interpreter was given it
