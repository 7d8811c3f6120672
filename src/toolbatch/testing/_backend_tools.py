"""Tools that the checks of execution backends run: at a module's top level, so that every worker can import them."""

import asyncio
import os
import socket
import threading
from contextvars import ContextVar
from typing import Any, Final

from toolbatch.batch import current_call
from toolbatch.core import ToolError

__all__ = [
    "BACKEND_TOOLS", "BACKEND_VARIABLE", "add", "block", "echo", "echo_later", "facts", "fail", "fail_oddly", "fail_plainly", "hold", "large",
    "loud", "mark", "refuse_to_stop", "say", "unshowable",
]  # fmt: skip

BACKEND_VARIABLE: ContextVar[str] = ContextVar("toolbatch_backend_variable", default="its default")
"""A context variable that the checks set where they are told that the backend carries it."""

_HOST: Final = "127.0.0.1"


class _OddError(Exception):
    """An exception that nobody can make again from what it says of itself, and that can't be shown."""

    def __init__(self, one: object, two: object) -> None:
        super().__init__(one, two, threading.Lock())

    def __str__(self) -> str:
        raise ZeroDivisionError


def echo(value: Any) -> Any:
    """Return what was given."""
    return value


async def echo_later(value: Any) -> Any:
    """Return what was given, after a turn of the loop."""
    await asyncio.sleep(0)
    return value


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


def fail(message: str, code: str | None = None) -> None:
    """Fail with a word for the model."""
    raise ToolError.respond_to_model(message, code)


def fail_plainly(message: str) -> None:
    """Fail as any function does."""
    raise ValueError(message)


def fail_oddly() -> None:
    """Fail with an exception that can't be sent."""
    raise _OddError(1, 2)


def facts() -> dict[str, Any]:
    """Return what the call is known as here."""
    call = current_call()
    left = call.remaining()
    return {
        "call_id": call.call_id,
        "name": call.name,
        "generation": call.generation,
        "run_id": call.run_id,
        "execution_id": call.execution_id,
        "idempotency_key": call.idempotency_key,
        "has_time": left is not None and 0 < left <= 3600,
        "variable": BACKEND_VARIABLE.get(),
    }


def say() -> str:
    """Say everything of its call that is for its end."""
    call = current_call()
    call.conclude_turn()
    call.add_context("a hint")
    call.report_failure("it failed", "partly")
    return "said"


def unshowable() -> Any:
    """Return something that is in this process only."""
    return threading.Lock()


def large(size: int) -> str:
    """Return a text."""
    return "x" * size


def loud() -> str:
    """Write to wherever tools write."""
    print("noise" * 1000, flush=True)  # noqa: T201  which it is about
    os.write(2, b"more noise\n")
    return "quiet"


def mark(port: int, number: int) -> int:
    """Tell the witness that this was run."""
    with socket.create_connection((_HOST, port)) as line:
        line.sendall(b"%d\n" % number)
    return number


def block(port: int) -> str:
    """Block until the witness says so."""
    with socket.create_connection((_HOST, port)) as line:
        line.sendall(b"entered\n")
        line.recv(1)
    return "done"


async def hold(port: int) -> None:
    """Wait for ever, and clean up when cancelled."""
    _, writer = await asyncio.open_connection(_HOST, port)
    try:
        writer.write(b"entered\n")
        await asyncio.get_running_loop().create_future()
    except asyncio.CancelledError:
        writer.write(b"cleaned up\n")
        await writer.drain()
        raise
    finally:
        writer.close()
        await writer.wait_closed()


async def refuse_to_stop(port: int) -> str:
    """Go on until the witness says so, whoever cancels this."""
    reader, writer = await asyncio.open_connection(_HOST, port)
    writer.write(b"entered\n")
    word = asyncio.ensure_future(reader.read(1))
    while not word.done():
        try:
            await asyncio.wait([word])
        except asyncio.CancelledError:
            writer.write(b"cancelled\n")
    writer.close()
    await writer.wait_closed()
    return "done"


BACKEND_TOOLS: Final = (
    echo, echo_later, add, fail, fail_plainly, fail_oddly, facts, say, unshowable, large, loud, mark, block, hold, refuse_to_stop,
)  # fmt: skip
"""The functions that `check_backend` runs. A backend whose workers have tools of their own needs `tool(...)` of each."""
