"""One connection to PostgreSQL and its queue: what is asked for while one transaction is under way makes up the next."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import asyncpg  # type: ignore[import-untyped]

from toolbatch.ports import OperationStoreClosedError, OperationStoreError

from ._pg_group import MOST_BYTES_AT_ONCE, Answer, Connection, Request, Statements, carry_out
from ._pg_server import Server

__all__ = ["Lane", "Query"]

T = TypeVar("T")

Query = Callable[[Connection, Statements], Awaitable[Any]]
"""Something to ask that is no step of a transaction."""

_MOST_AT_ONCE: Final = 256
_PAUSE: Final = 0.05  # seconds between two attempts to connect

_LOCKED: Final = "55P03"
_AGAIN: Final = ("40001", "40P01")
"""Two transactions have waited for each other, and this one was given up: it is to be tried again."""
_LOST: Final = ("08", "57P")
"""How the codes begin that end a connection: it broke, or the server shuts down, has crashed, or is starting."""


class Lane:
    """A connection, the task that speaks through it, and what it has to say. It lives in the loop that it was made in.

    All that concerns one operation has to go through one lane, so that it is done in order.

    Args:
        server: Where to.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._queue: deque[Request | tuple[Query, asyncio.Future[Any] | None]] = deque()
        self._filled = asyncio.Event()
        self._closing = False
        self._connection: Connection | None = None
        self._task = asyncio.get_running_loop().create_task(self._serve(), name="toolbatch-operations")

    def put(self, entry: "Request | tuple[Query, asyncio.Future[Any] | None]") -> None:
        """Queue a request or a query.

        Raises:
            OperationStoreClosedError: The lane has ended, by itself or with its loop.
        """
        if self._task.done():
            raise OperationStoreClosedError("the store's connection was closed; nothing was stored")
        self._queue.append(entry)
        self._filled.set()

    async def aclose(self) -> None:
        """Do what is in the queue, and end. Cancelled, it goes on without the caller."""
        self._closing = True
        self._filled.set()
        await asyncio.wait([self._task])

    def cancel(self) -> None:
        """End without doing what is in the queue; it is told so."""
        self._task.cancel()

    async def _serve(self) -> None:
        try:
            while self._queue or not self._closing:
                await self._filled.wait()
                self._filled.clear()
                while self._queue:
                    await self._do_next()
        finally:  # also where the loop ends before the store was closed
            closed = OperationStoreClosedError("the store's connection was closed; nothing was stored")
            for entry in self._queue:
                _settle(entry[-1], Answer(None, closed))
            if self._connection is not None:
                with suppress(Exception):
                    await self._connection.close(timeout=self._server.timeout)

    async def _do_next(self) -> None:
        group: list[Request] = []
        size = 0
        while self._queue and len(group) < _MOST_AT_ONCE:
            entry = self._queue[0]
            if not isinstance(entry, Request) or (group and size + entry.size > MOST_BYTES_AT_ONCE):
                break
            size += entry.size
            group.append(entry)
            self._queue.popleft()
        if group:
            await self._carry_out(group)
        else:
            await self._ask(self._queue.popleft())

    async def _ask(self, entry: Any) -> None:
        query, future = entry
        try:
            answer = Answer(await self._connected(lambda connection: query(connection, self._server.statements)), None)
        except BaseException as error:
            _settle(future, Answer(None, _explained(error)))
            if not isinstance(error, Exception):
                raise
        else:
            _settle(future, answer)

    async def _carry_out(self, group: Sequence[Request]) -> None:
        """Do a group's steps and answer them."""
        try:
            answers = await self._connected(lambda connection: carry_out(connection, self._server.statements, group))
        except asyncpg.PostgresError as error:
            if len(group) > 1 and error.sqlstate == _LOCKED:
                await self._around_locks(group, error)
            elif len(group) > 1 and error.sqlstate not in _AGAIN:
                for request in group:  # perhaps only one of them is to blame
                    await self._carry_out([request])
            else:
                _refuse(group, error)
        except BaseException as error:
            _refuse(group, error)
            if not isinstance(error, Exception):
                raise
        else:
            for request, answer in zip(group, answers, strict=True):
                _settle(request.future, answer)

    async def _around_locks(self, group: Sequence[Request], error: Exception) -> None:
        """Refuse what another transaction keeps locked, and do the rest."""
        ids = [request.operation_id for request in group]
        statements = self._server.statements

        async def look(connection: Connection) -> set[str]:
            there = {found["id"] for found in await connection.fetch(statements.there, ids)}
            return there - {found["id"] for found in await connection.fetch(statements.not_locked, ids)}

        locked: set[str] = set()
        with suppress(Exception):  # the whole table is locked: so is each of them
            locked = await self._connected(look)
        if not locked:
            _refuse(group, error)
            return
        _refuse([request for request in group if request.operation_id in locked], error)
        rest = [request for request in group if request.operation_id not in locked]
        if rest:
            await self._carry_out(rest)

    async def _connected(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do work through the connection, and again through a new one for as long as it gets lost; all of it can be repeated.

        Raises:
            OperationStoreError: The server did not answer in time, or can't be used.
            asyncpg.PostgresError: What it says of the work.
        """
        why: Exception | None = None
        try:
            async with asyncio.timeout(self._server.timeout):
                while True:
                    try:
                        self._connection = self._connection or await self._server.connect()
                        return await work(self._connection)
                    except asyncpg.PostgresError as error:
                        if error.sqlstate in _AGAIN:
                            continue
                        if not str(error.sqlstate).startswith(_LOST):
                            raise
                        why = error
                    except (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
                        why = error
                    self._drop()
                    await asyncio.sleep(_PAUSE)
        except TimeoutError as error:
            self._drop()
            raise OperationStoreError(
                f"PostgreSQL did not answer within {self._server.timeout} s ({why!r}). Whether it was done what was asked for "
                "is not known; asking again is safe and tells"
            ) from (why or error)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


def _refuse(group: Sequence[Request], error: BaseException) -> None:
    for request in group:
        _settle(request.future, Answer(None, _explained(error)))


def _explained(error: BaseException) -> OperationStoreError:
    if isinstance(error, OperationStoreError):
        return type(error)(*error.args)
    if isinstance(error, asyncpg.PostgresError):
        advice = (
            "Another transaction keeps it locked for longer than lock_timeout: look in pg_stat_activity for who does"
            if error.sqlstate == _LOCKED
            else "What was asked for is not done"
        )
        return OperationStoreError(f"PostgreSQL says {error} ({error.sqlstate}). {advice}")
    if isinstance(error, Exception):
        return OperationStoreError(f"PostgreSQL could not be used: {error!r}")
    return OperationStoreClosedError("the store's task was cancelled; whether it was done is not known")


def _settle(future: "asyncio.Future[Any] | None", answer: Answer) -> None:
    if future is None or future.done():
        return
    if answer.error is None:
        future.set_result(answer.value)
    else:
        future.set_exception(answer.error)
