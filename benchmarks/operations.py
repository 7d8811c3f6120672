"""Durable claims: our stores against what people write by hand, one transaction each."""

import asyncio
import hashlib
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, Final, Protocol

import aiosqlite
import asyncpg  # type: ignore[import-untyped]

from tests.operations import pg
from toolbatch.operations import PostgresOperationStore, SqliteOperationStore
from toolbatch.ports import Claimed, Operation, OperationStore

from ._measure import LOOPS, Effort, compare, looped
from ._report import Row, Table

__all__ = ["run"]

CALLERS: Final = (1, 16, 64)
CALLERS_WHEN_QUICK: Final = (1, 4)
GOAL: Final = 0.2  # at 64 callers at least five times as many a second
RESULT: Final = b'{"paid":true}'
ROUNDS: Final = 7


class _Ledger(Protocol):
    """One operation, claimed and completed: two durable transactions."""

    async def __call__(self, name: str) -> None: ...


Side = AbstractAsyncContextManager[_Ledger]
Sides = Callable[[str], tuple[Side, Side]]
"""Makes ours and theirs in a place: a folder, or a database."""


@asynccontextmanager
async def ours(store: AbstractAsyncContextManager[OperationStore]) -> AsyncIterator[_Ledger]:
    """Do it with a store."""
    async with store as opened:

        async def once(name: str) -> None:
            claim = await opened.claim(Operation(name, "pay", {"amount": 50, "to": name}))
            assert isinstance(claim, Claimed)
            await opened.complete(claim.token, RESULT)

        yield once


def _fingerprint(name: str) -> bytes:
    return hashlib.sha256(json.dumps(["pay", {"amount": 50, "to": name}], sort_keys=True).encode()).digest()


@asynccontextmanager
async def with_aiosqlite(path: Path, *, log: bool) -> AsyncIterator[_Ledger]:
    """Do it by hand: one connection, a lock, a transaction each, with the same fingerprint and the same safety."""
    async with aiosqlite.connect(path, isolation_level=None) as database:
        if log:
            await database.execute("PRAGMA locking_mode = EXCLUSIVE")
        await database.execute("PRAGMA synchronous = EXTRA")
        await database.execute(f"PRAGMA journal_mode = {'WAL' if log else 'PERSIST'}")
        await database.execute(
            "CREATE TABLE operation (id TEXT PRIMARY KEY NOT NULL, tool TEXT NOT NULL, fingerprint BLOB NOT NULL, "
            "token BLOB NOT NULL, claimed_at REAL NOT NULL, completed_at REAL, result BLOB) WITHOUT ROWID"
        )
        lock = asyncio.Lock()

        async def commit(statement: str, *values: object) -> None:
            async with lock:
                await database.execute("BEGIN IMMEDIATE")
                cursor = await database.execute(statement, values)
                assert cursor.rowcount == 1
                await database.execute("COMMIT")

        async def once(name: str) -> None:
            token = os.urandom(16)
            await commit(
                "INSERT INTO operation (id, tool, fingerprint, token, claimed_at) VALUES (?, 'pay', ?, ?, ?) "
                "ON CONFLICT (id) DO NOTHING",
                *(name, _fingerprint(name), token, time.time()),
            )
            await commit(
                "UPDATE operation SET result = ?, completed_at = ? WHERE id = ? AND token = ? AND result IS NULL",
                *(RESULT, time.time(), name, token),
            )

        yield once


@asynccontextmanager
async def with_asyncpg(dsn: str, *, table: str, connections: int) -> AsyncIterator[_Ledger]:
    """Do it by hand: a pool, a connection of it for each statement, which is a transaction."""
    settings = {"synchronous_commit": "on"}
    async with asyncpg.create_pool(dsn, min_size=connections, max_size=connections, server_settings=settings) as pool:
        await pool.execute(
            f"CREATE TABLE {table} (id TEXT PRIMARY KEY, tool TEXT NOT NULL, fingerprint BYTEA NOT NULL, "
            "token BYTEA NOT NULL, claimed_at FLOAT8 NOT NULL, completed_at FLOAT8, result BYTEA)"
        )

        async def commit(statement: str, *values: object) -> None:
            async with pool.acquire() as connection:
                assert await connection.fetchval(statement, *values) == 1

        async def once(name: str) -> None:
            token = os.urandom(16)
            await commit(
                f"INSERT INTO {table} (id, tool, fingerprint, token, claimed_at) VALUES ($1, 'pay', $2, $3, $4) "
                "ON CONFLICT (id) DO NOTHING RETURNING 1",
                *(name, _fingerprint(name), token, time.time()),
            )
            await commit(
                f"UPDATE {table} SET result = $1, completed_at = $2 WHERE id = $3 AND token = $4 AND result IS NULL RETURNING 1",
                *(RESULT, time.time(), name, token),
            )

        yield once


def _sqlite(*, log: bool) -> Sides:
    def sides(folder: str) -> tuple[Side, Side]:
        store = SqliteOperationStore(Path(folder) / "ours.db", exclusive=log)
        return ours(store), with_aiosqlite(Path(folder) / "theirs.db", log=log)

    return sides


def _postgres(connections: int, name: str) -> Sides:
    def sides(dsn: str) -> tuple[Side, Side]:
        store = PostgresOperationStore(dsn, schema=f"ours_{name}", connections=1)
        return ours(store), with_asyncpg(dsn, table=f"theirs_{name}", connections=connections)

    return sides


def run(effort: Effort) -> Table:
    """Measure SQLite with both journals, and PostgreSQL where there is one, at 1, 16 and 64 callers."""
    rows = []
    many = CALLERS_WHEN_QUICK if effort.quick else CALLERS
    for name, sides in {
        "SQLite, rollback journal": _sqlite(log=False),
        "SQLite, one process's log": _sqlite(log=True),
    }.items():
        for callers in many:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(_row(name, sides(folder), callers, effort))
    if pg.is_possible():
        with pg.running(on_disk=True) as server:
            for connections in (1, 16):
                for callers in many:
                    both = _postgres(connections, f"at_{connections}_for_{callers}")(server.dsn)
                    rows.append(_row(f"PostgreSQL, {connections} of theirs", both, callers, effort))
    return Table(
        "Durable claims",
        "Claims and completions, each on the disk before it is told. Ours: a `SqliteOperationStore`, and a\n"
        "`PostgresOperationStore` with one connection. Theirs: aiosqlite with one connection and a lock, and an asyncpg pool\n"
        "of 1 and of 16 connections, with one transaction each. Both sides have the same settings: `synchronous = EXTRA`,\n"
        "`synchronous_commit = on`. A rollback journal is what SQLite versions with the WAL-reset bug may share between\n"
        f"processes. The ratio is of wall time, since waiting for the disk is most of it. SQLite {sqlite3.sqlite_version}.",
        f"a wall ratio of at most {GOAL} with 64 callers: five times as many a second",
        ("store", "callers", "ours, 1/s", "theirs, 1/s", "CPU ratio", "wall ratio"),
        rows,
    )


def _row(name: str, sides: tuple[Side, Side], callers: int, effort: Effort) -> Row:
    each = 1 if effort.quick else max(2, 64 // callers)
    numbers = count()

    def work(ledger: _Ledger) -> Callable[[int], Coroutine[Any, Any, None]]:
        async def caller() -> None:
            for _ in range(each):
                await ledger(f"tenant/run/{next(numbers):09}")

        async def times(repeats: int) -> None:
            for _ in range(repeats):
                await asyncio.gather(*(caller() for _ in range(callers)))

        return times

    with asyncio.Runner(loop_factory=LOOPS["asyncio"]) as runner:
        our_ledger, their_ledger = (runner.run(side.__aenter__()) for side in sides)
        try:
            comparison = compare(
                looped(runner, work(our_ledger)),
                looped(runner, work(their_ledger)),
                effort._replace(sample=0.0),  # waiting takes no CPU time, so that a sample of it would take for ever
                rounds=min(ROUNDS, effort.rounds),
            )
        finally:
            for side in sides:
                runner.run(side.__aexit__(None, None, None))
    per_second = [f"{2 * callers * each / median(times.wall):,.0f}" for times in comparison]
    cells = (name, f"{callers}", *per_second, f"{comparison.ratio:.2f}", f"{comparison.wall_ratio:.2f}")
    return Row(cells, comparison.wall_ratio, GOAL if callers == 64 else None)
