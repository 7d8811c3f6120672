"""The program of a worker process: it takes one call after the other from its host, over a socket of their own.

The main thread runs the tools, so that signals and event loops work as tools expect. A second thread reads the socket all the time:
when the host is gone, this process and what it has started must be gone too, whatever the tool does.
"""

import asyncio
import math
import os
import queue
import runpy
import select
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress
from contextvars import Context, copy_context
from types import FrameType, ModuleType
from typing import Any, Final, NoReturn

from toolbatch.core import InvalidInputError, ToolError, cut, preview
from toolbatch.ports import CallNote, remote_call

from ._body import finish, is_unfinished
from ._frames import SECONDS, Ending, Frames, Kind, Order, ProtocolFault, Settings, packed
from ._pickles import NotPicklableError, TooLargeError, dump, load, named, on_main
from ._remote import RemoteCall

__all__ = ["MAX_WORDS", "is_loading_main", "main"]

MAX_WORDS: Final = 1 << 20
"""Bytes of what is said beside results: notes, exceptions, reasons."""

_MAX_ORDER: Final = 1 << 40  # the host measures what it sends
_READ: Final = 1 << 18
_LOOK_SECONDS: Final = 5.0
"""How often a worker looks whether its host is still there: one that has forked leaves the socket open in its child."""
_EXIT_SECONDS: Final = 2.0


def main(channel_fd: int) -> None:
    """Serve the host at the other end of a socket until it closes that."""
    # What tools start must not hold it open.
    os.set_inheritable(channel_fd, False)  # noqa: FBT003  it takes no name
    worker = _Worker(socket.socket(fileno=channel_fd))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _pass)  # not SIG_IGN, which the programs that tools start would inherit
    threading.Thread(target=worker.read, name="toolbatch-worker", daemon=True).start()
    with asyncio.Runner() as runner:
        worker.serve(runner)


class _Worker:
    """One process that runs tools, one at a time."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._inbox: queue.SimpleQueue[tuple[Kind, bytes] | None] = queue.SimpleQueue()
        self._taken = 0  # calls that were read, by the one thread
        self._done = 0  # calls that were answered, by the other
        self._is_stopped = False
        self._sending = threading.Lock()  # tools speak from threads of their own, too
        self._remote: RemoteCall | None = None
        self._task: asyncio.Task[Any] | None = None
        self._parent = os.getppid()
        self._pid = os.getpid()
        self._cpu_seconds: float | None = None

    # -- the other thread --------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read the socket until the host has gone, and see to it that this process goes too."""
        with suppress(
            OSError, ValueError, ProtocolFault
        ):  # a tool may have closed the socket, or put another in its place
            self._read_all(Frames(_MAX_ORDER))
        if self._taken != self._done:
            _end_all()
        self._inbox.put(None)
        threading.Event().wait(_EXIT_SECONDS)  # for what the interpreter does at its end
        _end_all()

    def _read_all(self, frames: Frames) -> None:
        while os.getppid() == self._parent:
            ready, _, _ = select.select([self._channel], [], [], _LOOK_SECONDS)
            data = self._channel.recv(_READ) if ready else b""
            if ready and not data:
                return
            for kind, message in frames.feed(data):
                if kind is Kind.STOP:
                    self._stop()
                else:
                    self._taken += kind is Kind.CALL
                    self._inbox.put((kind, message))

    def _stop(self) -> None:
        self._is_stopped = True
        remote, task = self._remote, self._task
        if remote is not None:
            remote.stop()
        if task is not None:
            task.get_loop().call_soon_threadsafe(task.cancel)

    # -- the main thread ---------------------------------------------------------------------------------------------------

    def serve(self, runner: asyncio.Runner) -> None:
        """Take messages until there will be none."""
        while (message := self._inbox.get()) is not None:
            kind, data = message
            if kind is Kind.SETTINGS:
                self._begin(load(data))
            elif kind is Kind.CALL:
                self._answer(runner, data)

    def _begin(self, settings: Settings) -> None:
        why: str | None = None
        try:
            self._cpu_seconds = settings.cpu_seconds
            sys.path[:], sys.argv = settings.path, settings.argv
            with suppress(OSError):
                os.chdir(settings.folder)
            if settings.main is not None:
                on_main.append(_MainModule(*settings.main).load)
            if settings.memory is not None:
                _limit("RLIMIT_AS", settings.memory)
            for module in settings.preload:
                __import__(module)
        except BaseException as error:  # noqa: BLE001  a module that is imported may raise anything
            why = _described(error)
        self._send(Kind.READY, dump(why, MAX_WORDS))

    def _answer(self, runner: asyncio.Runner, data: bytes) -> None:
        try:
            (seconds,) = SECONDS.unpack_from(data)
            order: Order = load(data[SECONDS.size :])
            context = copy_context()
            context.run(_set_all, order.values)
            self._bound_cpu()
        except BaseException as error:  # noqa: BLE001  modules are imported here; the tool was not entered
            self._reply(Kind.REFUSED, dump(_described(error), MAX_WORDS))
            return
        del data
        self._remote = remote = RemoteCall(order.facts, None if math.isnan(seconds) else seconds, self._note)
        if self._is_stopped:  # which the other thread has seen before there was anything to stop
            remote.stop()
        context.run(remote_call.set, remote)
        try:
            value = self._run(runner, order, context)
        except BaseException as error:  # noqa: BLE001  whatever a tool raises is its call's outcome
            self._remote = None
            self._reply(Kind.RAISED, _packed_error(error, is_stopped=remote.is_cancelled))
        else:
            self._remote = None
            self._send_value(value, order.limit)

    def _run(self, runner: asyncio.Runner, order: Order, context: Context) -> Any:
        value = context.run(order.fn, *order.args, **order.kwargs)
        if is_unfinished(value):
            value = runner.run(self._drive(value), context=context)
        return value

    async def _drive(self, value: Any) -> Any:
        self._task = asyncio.current_task()
        try:
            if self._task is not None and self._remote is not None and self._remote.is_cancelled:
                self._task.cancel()  # it was asked to stop between its call and this
            return await finish(value, self._note)
        finally:
            self._task = None

    # -- what is sent ------------------------------------------------------------------------------------------------------

    def _send_value(self, value: Any, limit: int) -> None:
        try:
            kind, data = Kind.RETURNED, dump(value, limit)
        except TooLargeError as error:
            kind, data = Kind.TOO_LARGE, dump(str(error), MAX_WORDS)
        except BaseException as error:  # noqa: BLE001  pickling runs the value's own code
            kind, data = Kind.NOT_SENDABLE, dump(_described(error), MAX_WORDS)
        self._reply(kind, data)

    def _reply(self, kind: Kind, data: bytes) -> None:
        if (
            os.getpid() != self._pid
        ):  # what a tool has forked has come to the tool's end: it is no worker, and its word not the call's
            _end_fork(succeeded=kind is not Kind.RAISED)
        self._done += 1  # before it is sent: the host may close the socket as soon as it has it
        self._send(kind, data)

    def _note(self, note: CallNote) -> None:
        if self._remote is None or os.getpid() != self._pid:
            return  # a thread that outlived its tool, or what a tool has forked
        if note.what == "progress":  # which is cut in any case, and replaced by the next
            note = note._replace(args=tuple(cut(arg or "", MAX_WORDS // 8) for arg in note.args))
        try:
            data = dump(note, MAX_WORDS)
        except TooLargeError as error:
            raise InvalidInputError(f"what a tool says by {note.what} is too long to be sent: {error}") from None
        self._send(Kind.NOTE, data)

    def _send(self, kind: Kind, data: bytes) -> None:
        with self._sending:
            try:
                self._channel.sendall(packed(kind, data))
            except OSError:  # a tool has closed what it had not opened, or the host is gone
                _end_all()

    def _bound_cpu(self) -> None:
        if self._cpu_seconds is None:
            return
        used = sum(os.times()[:2])
        _limit("RLIMIT_CORE", 0)
        _limit("RLIMIT_CPU", math.ceil(used + self._cpu_seconds))


class _MainModule:
    """The host's main module, loaded when a function or class of it is asked for, as `multiprocessing` does."""

    is_loading = False

    def __init__(self, how: str, where: str) -> None:
        self._how = how
        self._where = where
        self._is_loaded = False

    def load(self) -> None:
        if self._is_loaded:
            return
        self._is_loaded = True
        _MainModule.is_loading = True
        try:
            self._load()
        finally:
            _MainModule.is_loading = False

    def _load(self) -> None:
        module = ModuleType("__mp_main__")
        if self._how == "name":
            found = runpy.run_module(self._where, run_name="__mp_main__", alter_sys=True)
        else:
            found = runpy.run_path(self._where, run_name="__mp_main__")
        module.__dict__.update(found)
        sys.modules["__main__"] = sys.modules["__mp_main__"] = module


def _pass(number: int, frame: FrameType | None) -> None:
    """Do nothing: the host asks by the socket, and this is for the programs that tools have started."""


def is_loading_main() -> bool:
    """Whether this process is a worker in the middle of loading its host's main module, which must not begin another program."""
    return _MainModule.is_loading


def _set_all(values: tuple[tuple[str, str, Any], ...]) -> None:
    for module, name, value in values:
        named(module, name).set(value)


def _limit(name: str, most: int) -> None:
    import resource

    which = getattr(resource, name)
    hard = resource.getrlimit(which)[1]
    resource.setrlimit(which, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _packed_error(error: BaseException, *, is_stopped: bool) -> bytes:
    kind = type(error)  # isinstance() would ask the exception, which may raise
    is_cancellation = issubclass(kind, asyncio.CancelledError)
    if not issubclass(kind, Exception) and not is_cancellation:
        # Such as SystemExit: it was meant for a process of the tool's own, and must not end the host's.
        error = ToolError(f"The tool ended its process: {_described(error)}", "tool_failed")
    with suppress(Exception):
        error.add_note("".join(traceback.format_exception(error))[-MAX_WORDS // 8 :])
    ending = Ending(type(error).__name__, _text(error), _pickled(error), is_cancellation and is_stopped)
    return dump(ending, MAX_WORDS)


def _pickled(error: BaseException) -> bytes | None:
    """Return an exception as it is sent, unless it can't be made again from what it says of itself."""
    try:
        pickled = dump(error, MAX_WORDS // 2)
        return pickled if isinstance(load(pickled), BaseException) else None
    except BaseException:  # noqa: BLE001  both run the exception's own code
        return None


def _described(error: BaseException) -> str:
    if issubclass(type(error), NotPicklableError):
        return _text(error)
    return cut(f"{type(error).__name__}: {_text(error)}", MAX_WORDS // 8)


def _text(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001  a message that can't be made must not hide what happened
        return type(error).__name__
    return cut(text, MAX_WORDS // 8) if text.strip() else preview(error)


def _end_fork(*, succeeded: bool) -> NoReturn:
    """End what a tool has forked, as a program that has nothing left to do."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(0 if succeeded else 1)


def _end_all() -> None:
    """End this process and all that it has started in its group, now."""
    os.killpg(os.getpgrp(), signal.SIGKILL)
