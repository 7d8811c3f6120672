"""A PostgreSQL database that keeps claims: how it is connected to, what is demanded of it, and how its tables are made."""

from typing import Final, Literal

import asyncpg  # type: ignore[import-untyped]

from toolbatch.ports import OperationStoreError

from ._pg_group import Connection, Statements
from ._pg_schema import LOCK, MIGRATIONS, VERSION

__all__ = ["Server", "Synchronous"]

Synchronous = Literal["on", "remote_write", "remote_apply"]
"""How far a commit has got before it is told: on this server's disk, or on that of its synchronous replicas too."""

_NEEDED: Final = {"fsync": "on", "server_encoding": "UTF8"}
"""What only the server's owner can set."""


class Server:
    """A database, and how it is spoken to.

    Args:
        dsn: As asyncpg takes it.
        schema: The schema of the tables, as SQL writes it.
        synchronous_commit: See `Synchronous`.
        timeout: Seconds in which whatever is asked has to be done, with as many connections as that takes.
        lock_timeout: Seconds to wait for what another transaction has locked.
    """

    def __init__(
        self, dsn: str, schema: str, synchronous_commit: Synchronous, timeout: float, lock_timeout: float
    ) -> None:
        self.timeout = timeout
        self.statements = Statements(schema)
        self._dsn = dsn
        self._schema = schema
        self._durable = {
            # A role or a database may have it off, and so forget what was told.
            "synchronous_commit": synchronous_commit,
            # Otherwise a row that another process was first to insert could not be read.
            "default_transaction_isolation": "read committed",
        }
        self._settings = {
            **self._durable,
            "application_name": "toolbatch",
            "default_transaction_read_only": "off",
            "lock_timeout": f"{lock_timeout * 1000:.0f}",
            "statement_timeout": f"{timeout * 1000:.0f}",
            "idle_in_transaction_session_timeout": f"{timeout * 1000:.0f}",  # a client that is gone holds nobody up
        }
        self._is_migrated = False

    async def connect(self) -> Connection:
        """Return a connection to tables of our version.

        Raises:
            OperationStoreError: This server can't keep what it is told, or its tables are of a newer toolbatch.
            Exception: It can't be reached.
        """
        connection: Connection = await asyncpg.connect(self._dsn, timeout=self.timeout, server_settings=self._settings)
        try:
            await self._require_durable(connection)
            if not self._is_migrated:
                async with connection.transaction():
                    await self._migrate(connection)
                self._is_migrated = True
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _require_durable(self, connection: Connection) -> None:
        for setting, needed in {**self._durable, **_NEEDED}.items():
            found = await connection.fetchval(f"SHOW {setting}")
            if found != needed:
                raise OperationStoreError(
                    f"this PostgreSQL has {setting} = {found!r} where {needed!r} is needed: a crash would forget claims, and "
                    "what is forgotten is done again. Set it, and connect directly, not through a pooler of transactions"
                )
        if await connection.fetchval("SELECT pg_is_in_recovery()"):
            raise OperationStoreError("this PostgreSQL is a replica, which takes no claims. Connect to the primary")

    async def _migrate(self, connection: Connection) -> None:
        await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
        if not await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", f"{self._schema}.version"):
            await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")
            await connection.execute(f"CREATE TABLE {self._schema}.version (number INTEGER NOT NULL)")
        version = await connection.fetchval(f"SELECT max(number) FROM {self._schema}.version") or 0  # noqa: S608  our own name
        if version > VERSION:
            raise OperationStoreError(
                f"the tables in schema {self._schema} were made by a newer toolbatch (version {version}, this one knows up to "
                f"{VERSION}). Upgrade toolbatch here; nothing was changed"
            )
        for number, step in enumerate(MIGRATIONS[version:], version + 1):
            for statement in step:
                await connection.execute(statement.format(schema=self._schema))
            await connection.execute(f"INSERT INTO {self._schema}.version VALUES ($1)", number)  # noqa: S608  likewise
