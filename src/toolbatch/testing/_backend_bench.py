"""What the checks of execution backends are written with: calls that can be looked at, and a witness of what tools do elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from itertools import count
from typing import Any, Final, TypeAlias

from toolbatch.backends import RemoteCall
from toolbatch.core import ToolCall
from toolbatch.ports import BackendNotStartedError, CallFacts, CallNote, ExecutionBackend, Invocation, remote_call
from toolbatch.testing._store_bench import require

__all__ = ["Ask", "Bench", "Line", "MakeBackend", "Witness"]

MakeBackend: TypeAlias = Callable[[], ExecutionBackend]
"""Makes a backend that was not entered."""

SECONDS: Final = 60.0
_numbers = count(1)


class Ask:
    """One call, and what has come of it so far.

    Attributes:
        facts: Its facts, as no other call has them.
        invocation: What the backend is asked.
        begun: How often the backend has said that the tool may begin.
        notes: What the tool has said.
    """

    def __init__(self, fn: Callable[..., Any], arguments: dict[str, Any], limit: int | None = None) -> None:
        number = next(_numbers)
        self.facts = CallFacts(
            call=ToolCall(f"call-{number}", fn.__name__, arguments),
            generation=3,
            run_id=f"run-{number}",
            execution_id=f"execution-{id(self)}-{number}",
            idempotency_key=f"key-{id(self)}-{number}",
        )
        self.begun = 0
        self.notes: list[CallNote] = []
        self.invocation = Invocation(
            fn=fn, kwargs=arguments, tool_name=fn.__name__, arguments=arguments, facts=self.facts, max_result_bytes=limit,
            begin=self._begin, say=self.notes.append,
        )  # fmt: skip

    def _begin(self) -> float:
        self.begun += 1
        return SECONDS


class Bench:
    """A backend that is being checked.

    Args:
        backend: The backend.
    """

    def __init__(self, backend: ExecutionBackend) -> None:
        self.backend = backend

    async def run(self, fn: Callable[..., Any], /, **arguments: Any) -> Any:
        """Run a tool."""
        return await self.ask(Ask(fn, arguments))

    async def ask(self, asked: Ask) -> Any:
        """Run a tool as a batch does: with its call in the context."""
        remote_call.set(RemoteCall(asked.facts, SECONDS, asked.notes.append))
        return await self.backend.run(asked.invocation)

    def start(self, asked: Ask) -> asyncio.Task[Any]:
        """Begin to run a tool."""
        work: Coroutine[Any, Any, Any] = self.ask(asked)
        return asyncio.get_running_loop().create_task(work, context=copy_context())

    async def raises(self, error: type[Exception], asked: Ask) -> Exception:
        """Run a tool, which has to come to an error of this type; return that."""
        try:
            value = await self.ask(asked)
        except error as raised:
            return raised
        raise AssertionError(f"{error.__name__} was to be raised, but {value!r:.200} was returned")

    async def refused(self, asked: Ask) -> None:
        """Run a tool, which has to be refused without a beginning."""
        await self.raises(BackendNotStartedError, asked)
        require(asked.begun == 0, "what is not started was not begun either")


class Line:
    """A tool's connection to the witness: it is open for as long as the tool runs, or who has it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def hear(self) -> str:
        """Return the next thing that the tool says; an empty text once it has gone."""
        try:
            return (await self._reader.readline()).decode().strip()
        except ConnectionError:
            return ""

    async def gone(self) -> None:
        """Wait until the tool has gone."""
        while await self.hear():
            pass

    def let_go(self) -> None:
        """Tell the tool to end."""
        self._writer.write(b"!")

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


class Witness:
    """Listens to tools, wherever on this machine they run.

    Attributes:
        port: Where.
    """

    def __init__(self) -> None:
        self.port = 0
        self._lines: asyncio.Queue[Line] = asyncio.Queue()
        self._met_so_far: list[Line] = []

    async def line(self) -> Line:
        """Return the next tool's connection, which says that it was entered."""
        line = await self._lines.get()
        require(await line.hear() == "entered", "a tool tells that it was entered")
        return line

    async def marks(self) -> list[int]:
        """Return the numbers of the marks that were made so far."""
        found = []
        while not self._lines.empty():
            line = self._lines.get_nowait()
            found.append(int(await line.hear()))
        return found

    def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = Line(reader, writer)
        self._met_so_far.append(line)
        self._lines.put_nowait(line)

    @classmethod
    @asynccontextmanager
    async def listening(cls) -> AsyncIterator[Witness]:
        """Listen on this machine's loopback."""
        witness = cls()
        server = await asyncio.start_server(witness._met, "127.0.0.1", 0)
        witness.port = server.sockets[0].getsockname()[1]
        try:
            yield witness
        finally:
            server.close()
            for line in witness._met_so_far:
                await line.close()
