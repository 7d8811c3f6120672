"""Tools that tests run in workers: they are imported there by this module's name."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Any

from toolbatch import InvalidInputError, current_call, tool

CHILD = """
import signal, socket, sys
line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
line.sendall(b"entered\\n")
signal.pause()
"""


def connect(port: int) -> socket.socket:
    """Tell the witness that this was entered; the line is open while the process lives."""
    line = socket.create_connection(("127.0.0.1", port))
    line.sendall(b"entered\n")
    return line


def pid() -> int:
    """Return the worker's process id."""
    return os.getpid()


def lose_path() -> None:
    """Leave the process such that it can import nothing more."""
    sys.path.clear()
    for name in ("tests", "tests.backends", "tests.backends.tools"):
        del sys.modules[name]


def exit_now(code: int) -> None:
    """End the process without a word."""
    os._exit(code)


def exit_politely() -> None:
    """End the process as programs do."""
    sys.exit(3)


def close_everything() -> None:
    """Close all that is open, which is not this tool's to close."""
    os.closerange(3, 1000)
    threading.Event().wait()


def scribble() -> None:
    """Write to whatever is open."""
    for number in range(3, 100):
        try:
            os.write(number, b"\xff" * 64)
        except OSError:
            continue
    threading.Event().wait()


def spin() -> None:
    """Use the processor for ever."""
    while True:
        pass


def spin_at(port: int) -> None:
    """Use the processor for ever, once the witness knows."""
    with connect(port):
        spin()


def eat_memory() -> int:
    """Ask for more memory than there may be."""
    return len(bytearray(3 << 30))  # which nobody touches: without a bound it costs nothing


def with_children(port: int, *, exits: bool) -> None:
    """Start a program and fork, and block with both until somebody says so; then perhaps end without them."""
    subprocess.Popen([sys.executable, "-c", CHILD, str(port)])
    if os.fork() == 0:
        with connect(port):
            signal.pause()
    connect(port).recv(1)
    if exits:
        os._exit(0)


def returns_twice(port: int) -> str:
    """Fork; both return, the child once the parent's call is long answered."""
    if os.fork() == 0:
        with connect(port) as line:
            current_call().progress("from the child")
            line.recv(1)
            return "the child's"
    return "the parent's"


class Opaque(Exception):
    """Nothing can be had of it, not even what it is."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("no attributes")


def fail_opaquely() -> None:
    """Raise what can't be asked what it is."""
    raise Opaque("x")


def _raise(how: type[BaseException]) -> None:
    raise how


class Trap:
    """A value that raises where it is read."""

    def __init__(self, how: type[BaseException]) -> None:
        self.how = how

    def __reduce__(self) -> Any:
        return _raise, (self.how,)


class Unspeakable(Exception):
    """Its text can't be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def lay_trap(how: type[BaseException]) -> Trap:
    """Return a value that raises in the host."""
    return Trap(how)


def leave_child(port: int) -> str:
    """Leave a program behind, and return."""
    subprocess.Popen([sys.executable, "-c", CHILD, str(port)])
    return "left"


def ignore_sigterm(port: int) -> None:
    """Do not listen to those who ask nicely."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    connect(port).recv(1)


def wait_for_word(port: int) -> str:
    """Wait until the witness says something."""
    with connect(port) as line:
        line.recv(1)
    return "heard"


def listen(port: int) -> str:
    """Wait until somebody asks to stop."""
    with connect(port):
        current_call().cancel_event.wait()
    return "heard"


async def count(to: int) -> AsyncIterator[int]:
    """Yield numbers."""
    for number in range(to):
        yield number


async def swallow(port: int) -> str:
    """End as if nothing had happened when cancelled."""
    with connect(port), suppress(asyncio.CancelledError):
        await asyncio.get_running_loop().create_future()
    return "swallowed"


def key() -> list[Any]:
    """Return what a tool passes on to services."""
    call = current_call()
    return [call.idempotency_key, call.call_id, call.run_id, call.call.arguments]


def speak(*, fails: bool) -> str:
    """Say all that can be said, and some of it wrongly."""
    call = current_call()
    call.progress({"half": True})
    call.add_context("a hint")
    call.conclude_turn()
    with suppress(InvalidInputError):
        call.add_context("x" * 3_000_000)
    if fails:
        call.report_failure("partly", "partly")
    call.logger.info("heard")
    return "said"


def sleep(seconds: float) -> float:
    """Sleep."""
    time.sleep(seconds)
    return seconds


@tool
def decorated(a: int) -> int:
    """Double."""
    return a * 2


class Shop:
    """Has methods."""

    def __init__(self, name: str) -> None:
        self.name = name

    def buy(self, what: str) -> str:
        """Buy."""
        return f"{what} from {self.name}"

    @tool
    def sell(self, what: str) -> str:
        """Sell."""
        return f"{what} to {self.name}"

    @staticmethod
    def open(hour: int) -> bool:
        """Say whether it is open."""
        return 8 <= hour < 20

    @classmethod
    def found(cls, name: str) -> str:
        """Found one."""
        return f"{cls.__name__} {name}"

    def __call__(self, what: str) -> str:
        """Order."""
        return f"{what} at {self.name}"


KINDS: list[tuple[Any, dict[str, Any], Any]] = [
    (decorated.fn, {"a": 2}, 4),
    (Shop("Ann").buy, {"what": "tea"}, "tea from Ann"),
    (Shop("Ann").sell.fn, {"what": "tea"}, "tea to Ann"),
    (Shop.open, {"hour": 9}, True),
    (Shop.found, {"name": "Ben"}, "Shop Ben"),
    (Shop("Ann"), {"what": "tea"}, "tea at Ann"),
    (partial(Shop("Ann").buy, "milk"), {}, "milk from Ann"),
    (partial(partial(decorated.fn), a=3), {}, 6),
    (max, {}, None),
    (os.path.join, {}, None),
]
"""Functions of every kind, with arguments and what comes of them."""
