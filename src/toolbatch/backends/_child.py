"""One worker process, as the event loop sees it: what it is doing, what it says, and how it is brought to its end."""

import asyncio
import atexit
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast
from weakref import WeakSet

from toolbatch.ports import CallNote

from ._frames import Frames, Kind, ProtocolFault, Settings, packed
from ._pickles import NotPicklableError, dump, load

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["Child", "Output", "Reply", "discard", "launch"]

Output = Literal["stderr", "discard"]
"""Where what tools print goes: never to the host's own output, which may be somebody's protocol."""

_ROOT: Final = str(Path(__file__).resolve().parent.parent.parent)
_PROGRAM: Final = "import sys; sys.path.insert(0, {root!r}); from toolbatch.backends._worker import main; main({fd})"
_LAST_WORDS_SECONDS: Final = 0.5
"""How long the end of the socket is waited for once the process has ended, which a child of it may hold open; and the reverse."""
_MAX_SETTINGS: Final = 1 << 24


class Reply(NamedTuple):
    """How a call ended: what the worker said, or `None` where it died before."""

    kind: Kind | None
    data: bytes


def launch(output: Output) -> tuple["subprocess.Popen[bytes]", socket.socket]:
    """Start a worker in a session of its own, and return it with our end of its socket. It takes some milliseconds.

    Raises:
        OSError: There can be no process here.
    """
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
            process = subprocess.Popen(  # noqa: S603  it is this interpreter
                [sys.executable, *flags, "-c", _PROGRAM.format(root=_ROOT, fd=theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if output == "discard" else _stderr(),
                stderr=subprocess.DEVNULL if output == "discard" else None,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
    except BaseException:
        ours.close()
        raise
    ours.settimeout(0.0)
    return process, ours


def discard(launched: "Future[tuple[subprocess.Popen[bytes], socket.socket]]") -> None:
    """End a worker that was started for somebody who has left."""
    if not launched.cancelled() and launched.exception() is None:
        process, ours = launched.result()
        ours.close()
        process.kill()
        process.wait()


def _stderr() -> int:
    try:
        os.fstat(2)
    except OSError:
        return subprocess.DEVNULL
    return 2


class Child(asyncio.Protocol):
    """A worker process.

    Args:
        process: As `launch` returned it.
        loop: The loop that it serves.
        limit: The longest message that it may send, in bytes.
        on_dead: Is told once that nothing of it is left.

    Attributes:
        calls: How many it has been given.
        ready: Is done when it can take calls, with why it can't, or `None`.
        dead: Is done when it has ended, was reaped, and all of its group was killed.
        fault: What it did that it must not, if it did.
        was_killed: Whether we have killed it.
    """

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        loop: asyncio.AbstractEventLoop,
        limit: int,
        on_dead: Callable[["Child"], None],
    ) -> None:
        self.calls = 0
        self.ready: asyncio.Future[str | None] = loop.create_future()
        self.dead: asyncio.Future[None] = loop.create_future()
        self.fault: str | None = None
        self.was_killed = False
        self._host = os.getpid()
        self._process = process
        self._loop = loop
        self._frames = Frames(limit)
        self._on_dead = on_dead
        self._transport: asyncio.Transport | None = None
        self._reply: asyncio.Future[Reply] | None = None
        self._say: Callable[[CallNote], None] | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._has_ended = False
        self._is_retired = False
        self._pidfd = self._watch()
        _alive.add(self)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended, as `subprocess` says it; `None` while it has not."""
        return self._process.returncode

    @property
    def is_usable(self) -> bool:
        """Whether it can be given a call, as far as is known."""
        return not (self._transport is None or self._is_retired or self.was_killed or self._has_ended)

    # -- what it is asked ------------------------------------------------------------------------------------------------

    def begin(self, settings: Settings, seconds: float) -> None:
        """Tell it what it must know before its first call. If it is not ready in so many seconds it is killed."""
        self._send(Kind.SETTINGS, dump(settings, _MAX_SETTINGS))
        timer = self._loop.call_later(seconds, self.kill)
        self.ready.add_done_callback(lambda _: timer.cancel())

    def call(self, order: bytes, say: Callable[[CallNote], None]) -> "asyncio.Future[Reply]":
        """Give it a call, and return what it will say to it. It has no other one now."""
        self.calls += 1
        self._say = say
        self._reply = reply = self._loop.create_future()
        self._send(Kind.CALL, order)
        return reply

    def stop(self) -> None:
        """Ask its tool, and the programs that this has started, to stop."""
        self._send(Kind.STOP, b"")
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it, and what it has started in its process group, now."""
        self.was_killed = True
        self._signal(signal.SIGKILL)

    def retire(self, seconds: float) -> None:
        """Let it end by itself, and kill it if it has not after so many seconds."""
        self._is_retired = True
        if self._transport is not None:
            self._transport.close()
        self._later(seconds, self.kill)

    def _later(self, seconds: float, fn: Callable[[], None]) -> None:
        self._timers.append(self._loop.call_later(seconds, fn))

    def _send(self, kind: Kind, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(packed(kind, data))

    def _signal(self, number: signal.Signals) -> None:
        # Until it is reaped, nobody else can have its number, nor that of its group.
        if self._process.returncode is None and self._host == os.getpid():
            try:
                os.killpg(self._process.pid, number)
            except (ProcessLookupError, PermissionError):  # macOS says the second of a group of zombies
                return

    # -- what it says ------------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The loop has its socket."""
        self._transport = cast(asyncio.Transport, transport)  # a socket's is one

    def data_received(self, data: bytes) -> None:
        """It has said something."""
        try:
            for kind, message in self._frames.feed(data):
                self._heard(kind, message)
        except (ProtocolFault, NotPicklableError) as fault:
            self.fault = f"has sent {fault}"
            self.kill()

    def _heard(self, kind: Kind, data: bytes) -> None:
        if kind is Kind.READY:
            _set(self.ready, load(data))
        elif kind is Kind.NOTE:
            note: Any = load(data)
            if self._say is not None and isinstance(note, CallNote):
                self._say(note)
        elif self._reply is not None:
            _set(self._reply, Reply(kind, data))
            self._reply = self._say = None

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  as the loop calls it
        """Its end of the socket is closed: it has ended, or is useless. What it has started goes with it."""
        self._transport = None
        if self._has_ended:
            self._bury()
            return
        if self._pidfd is not None:  # its end follows in this moment, unless only its socket was closed
            self._later(_LAST_WORDS_SECONDS, self._hung_up)
        else:
            self._hung_up()
            self._loop.run_in_executor(None, self._process.wait).add_done_callback(lambda _: self._ended())

    def _hung_up(self) -> None:
        if not self._is_retired and not self.was_killed:
            self.fault = "has closed its socket"
            self.kill()

    # -- its end -----------------------------------------------------------------------------------------------------------

    def _watch(self) -> int | None:
        try:
            pidfd = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):  # another system, or an old one: the end of the socket has to do
            return None
        self._loop.add_reader(pidfd, self._ended)
        return pidfd

    def _ended(self) -> None:
        if self._has_ended:
            return
        self._signal(signal.SIGKILL)  # what it has left behind in its group
        self._has_ended = True
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        self._process.wait()  # it has ended, so this returns at once
        if self._transport is None:
            self._bury()
        else:  # its last words may still be on their way
            self._later(_LAST_WORDS_SECONDS, self._transport.abort)

    def _bury(self) -> None:
        _alive.discard(self)
        for timer in self._timers:
            timer.cancel()
        _set(self.ready, "it ended before it was ready")
        if self._reply is not None:
            _set(self._reply, Reply(None, b""))
        self._reply = self._say = None
        _set(self.dead, None)
        self._on_dead(self)


def _set(future: "asyncio.Future[Any]", value: Any) -> None:
    if not future.done():
        future.set_result(value)


_alive: WeakSet[Child] = WeakSet()
"""Workers of this process that have not ended."""


@atexit.register
def _end_all() -> None:
    for child in list(_alive):
        child.kill()
