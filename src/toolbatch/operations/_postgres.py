"""Claims in PostgreSQL: for many processes and machines (D3)."""

import asyncio
import math
import os
import re
import sys
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast, final

from toolbatch.core import InvalidInputError, InvalidTypeError, preview
from toolbatch.ports import OperationRecord, OperationStoreClosedError

from ._pg_group import Request
from ._rules import Row
from ._store import Step, Store, answered

if TYPE_CHECKING:
    from ._pg_lane import Query

__all__ = ["PostgresOperationStore"]

T = TypeVar("T")


@final
class PostgresOperationStore(Store):
    """Keeps claims in tables of PostgreSQL: each is committed, and by that on the disk, before it is told.

    What many callers ask for at one time is committed together, on a few connections of the store's own. They set
    `synchronous_commit` by themselves, since a role or a database may have it off; a server without `fsync` is refused. A
    connection that breaks is made anew, and what was under way is asked again, which comes to the same as once; only after
    `timeout` is that an error.

    A store lives in one event loop, and in the process that has made it. It is never part of a transaction of the host's:
    what is claimed stays claimed. With replicas that take over, a claim that they have not got is forgotten, unless
    `synchronous_commit` is `remote_write` or `remote_apply` and the server names them in `synchronous_standby_names`.

    Args:
        dsn: Where the database is, such as `postgresql://user@host/name`; what is missing comes from the environment, as for
            asyncpg. Connect directly: a pooler of transactions loses the settings.
        schema: The schema of the tables, made where it is missing.
        connections: How many connections to use at once.
        synchronous_commit: How far a commit has got before it is told.
        timeout: Seconds in which whatever is asked has to be done, reconnecting included.
        lock_timeout: Seconds to wait for what another transaction has locked.
        now: The host's clock, in seconds since the epoch.
        owner: What claims say of their claimant; `None` for this process's name.

    Raises:
        InvalidInputError: An argument can't be used; it is named.
        InvalidTypeError: `dsn` is not a `str`, or `timeout` or `lock_timeout` not a number.
        ImportError: asyncpg is missing, which the extra `postgres` brings.
    """

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = "toolbatch",
        connections: int = 2,
        synchronous_commit: Literal["on", "remote_write", "remote_apply"] = "on",
        timeout: float = 15.0,
        lock_timeout: float = 5.0,
        now: Callable[[], float] = time.time,
        owner: str | None = None,
    ) -> None:
        super().__init__(now=now, owner=owner)
        if not isinstance(dsn, str):
            raise InvalidTypeError(f"dsn must be a str, not {type(dsn).__name__}")
        if not isinstance(schema, str) or not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
            raise InvalidInputError(f"schema must be a plain name of SQL in lower case, not {preview(schema)}")
        if type(connections) is not int or not 1 <= connections <= 64:
            raise InvalidInputError(f"connections must be an int from 1 to 64, not {preview(connections)}")
        if synchronous_commit not in ("on", "remote_write", "remote_apply"):
            raise InvalidInputError(
                f"synchronous_commit must be on, remote_write or remote_apply, not {preview(synchronous_commit)}"
            )
        for name, seconds in (("timeout", timeout), ("lock_timeout", lock_timeout)):
            if isinstance(seconds, bool) or not isinstance(seconds, int | float):
                raise InvalidTypeError(f"{name} must be a number of seconds, not {preview(seconds)}")
            if not 0.001 <= seconds <= 86_400 or math.isnan(seconds):
                raise InvalidInputError(f"{name} must be from 0.001 to 86400 seconds, not {preview(seconds)}")
        try:
            from ._pg_lane import Lane
            from ._pg_server import Server
        except ImportError as error:
            error.add_note("The PostgreSQL store needs the extra: pip install toolbatch[postgres]")
            raise
        server = Server(dsn, schema, synchronous_commit, timeout, lock_timeout)
        self._make_lane: Callable[[], Lane] = lambda: Lane(server)
        self._count = connections
        self._lanes: list[Lane] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._pid = os.getpid()

    async def aclose(self) -> None:
        """Do what was asked for, and close the connections. Cancelled, that goes on without the caller."""
        self._closed = True
        if self._pid == os.getpid():
            await asyncio.gather(*(lane.aclose() for lane in self._lanes))

    async def __aenter__(self) -> Self:
        """Connect, and make or migrate the tables; a store that can't connect is closed."""
        try:
            await self.ask(_nothing)
        except BaseException:
            self._closed = True
            for lane in self._lanes:
                lane.cancel()
            raise
        return self

    async def _apply(self, operation_id: str, step: Step[T], *, undo: Step[None] | None = None) -> T:
        self._require_open()
        # One lane for one operation: who asks next must find done what was asked before, or undone.
        lane = self._lanes[hash(operation_id) % self._count]
        return cast(
            "T",
            await answered(
                lambda future: lane.put(Request(operation_id, step, future)),
                None if undo is None else lambda: lane.put(Request(operation_id, undo, None)),
            ),
        )

    async def _unresolved(self, prefix: str, claimed_before: float | None, limit: int) -> tuple[OperationRecord, ...]:
        before = math.inf if claimed_before is None else claimed_before
        found = await self.ask(lambda connection, sql: connection.fetch(sql.unresolved, before, prefix, limit))
        return tuple(Row(*row).record() for row in found)

    async def _purge(self, after: str, completed: float, unknown: float, most: int) -> tuple[int, str | None]:
        gone, walked, last = await self.ask(
            lambda connection, sql: connection.fetchrow(sql.purge, after, most, unknown, completed)
        )
        return gone, last if walked == most else None

    async def ask(self, query: "Query") -> Any:
        """Have something asked that is no operation's step. It may be asked again where a connection breaks.

        Raises:
            OperationStoreError: The server did not answer, or has refused it.
        """
        self._require_open()
        return await answered(lambda future: self._lanes[0].put((query, future)), None)

    def _require_open(self) -> None:
        if self._pid != os.getpid():
            raise OperationStoreClosedError(
                f"this store belongs to process {self._pid}, from which this one was forked. Make one after the fork; "
                "nothing was stored"
            )
        if self._closed:
            raise OperationStoreClosedError("this store was closed; nothing was stored")
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
            self._lanes = [self._make_lane() for _ in range(self._count)]
        if self._loop is not loop:
            raise OperationStoreClosedError(
                "this store lives in another event loop. Make one for each loop; nothing was stored"
            )

    def __del__(self) -> None:
        if getattr(self, "_loop", None) is not None and not self._closed and not sys.is_finalizing():
            warnings.warn(f"{self!r} was never closed; use `async with` or aclose()", ResourceWarning, stacklevel=2)

    def __repr__(self) -> str:
        return f"<PostgresOperationStore with {self._count} connections>"


async def _nothing(connection: object, statements: object) -> None:
    """Do nothing, with a connection to tables that are there."""
