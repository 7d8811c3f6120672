"""The store on PostgreSQL keeps the promises, also when its connection breaks, its server restarts, or others hold locks."""

import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self

import asyncpg  # type: ignore[import-untyped]
import pytest

from tests.operations import pg
from tests.operations.kit import RESULT, completed, granted, pay, python, unknown
from toolbatch.core import InvalidInputError, InvalidTypeError
from toolbatch.operations import PostgresOperationStore, _pg_group, _pg_lane, _pg_schema, _pg_server
from toolbatch.ports import (
    Claimed,
    Operation,
    OperationConflictError,
    OperationStoreClosedError,
    OperationStoreError,
    Unknown,
)
from toolbatch.testing import check_store


@asynccontextmanager
async def looking(postgres: pg.Server) -> AsyncIterator[Any]:
    """A connection of somebody else's."""
    connection = await asyncpg.connect(postgres.dsn)
    try:
        yield connection
    finally:
        await connection.close()


async def test_the_store_keeps_the_promises(postgres: pg.Server, schema: str) -> None:
    """Those of durable stores too."""

    def make_store(place: str, now: Callable[[], float]) -> PostgresOperationStore:
        return PostgresOperationStore(
            postgres.dsn, schema=f"{schema}_{place.replace('-', '_')}", connections=2, now=now
        )

    await check_store(make_store)


# -- faults ------------------------------------------------------------------------------------------------------------------


class Proxy:
    """Stands between a client and the server, and can break off once a request has had its effect.

    Attributes:
        cuts: How many of the next answers are dropped, with the connection.
        times: How many were.
    """

    def __init__(self, postgres: pg.Server, folder: Path) -> None:
        self._server = postgres.folder / ".s.PGSQL.5432"
        self._own = folder / ".s.PGSQL.5432"
        self.dsn = f"postgresql://tester@/postgres?host={folder}"
        self.cuts = 0
        self.times = 0

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_unix_server(self._serve, self._own)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._listener.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(self._server)

        async def answers() -> None:
            while data := await there.read(65536):
                if self.cuts and b"C\0\0\0" in data:  # the command is complete
                    self.cuts -= 1
                    self.times += 1
                    break
                writer.write(data)
            writer.transport.abort()
            back.close()

        task = asyncio.ensure_future(answers())
        with suppress(OSError):
            while data := await reader.read(65536):
                back.write(data)
        back.close()
        await task


@pytest.fixture
async def proxy(postgres: pg.Server) -> AsyncIterator[Proxy]:
    """A proxy before the server."""
    folder = postgres.folder / "proxy"
    folder.mkdir(exist_ok=True)
    with suppress(FileNotFoundError):
        (folder / ".s.PGSQL.5432").unlink()
    async with Proxy(postgres, folder) as made:
        yield made


@pytest.mark.parametrize("cuts", [1, 2, 3, 4])
async def test_a_connection_that_is_cut_in_mid_commit_is_asked_again(proxy: Proxy, schema: str, cuts: int) -> None:
    """What was committed without an answer is answered all the same, and as if it had been asked once."""
    async with PostgresOperationStore(proxy.dsn, schema=schema, connections=1) as store:
        proxy.cuts = cuts
        claim = await granted(store, pay("t/r/1"))
        assert claim.attempt == 1
        proxy.cuts = cuts
        await store.complete(claim.token, RESULT)
        assert await completed(store, pay("t/r/1")) == RESULT
        another = await granted(store, pay("t/r/2"))
        proxy.cuts = cuts
        await store.release(another.token)
        proxy.cuts = cuts
        asked: list[Any] = [store.claim(pay(f"t/r/{number}")) for number in range(3, 40)]
        asked += [store.claim(pay("t/r/1")), store.claim(pay("t/r/2")), store.claim(pay("t/r/2"))]
        answers = await asyncio.gather(*asked)
        assert [type(answer).__name__ for answer in answers] == ["Claimed"] * 37 + ["Completed", "Claimed", "Unknown"]
        proxy.cuts = cuts
        assert len(await store.unresolved()) == 38
    assert proxy.times >= 5 * cuts


async def test_a_server_that_crashes_and_comes_back_loses_nothing(postgres: pg.Server, schema: str) -> None:
    """Callers wait, and what they were told is there after it."""
    told: list[str] = []

    async def caller(store: PostgresOperationStore, first: int) -> None:
        for number in range(first, first + 30):
            claim = await granted(store, pay(f"t/r/{number:04}"))
            await store.complete(claim.token, RESULT)
            told.append(f"t/r/{number:04}")

    async with PostgresOperationStore(postgres.dsn, schema=schema, timeout=40.0) as store:
        callers = asyncio.gather(*(caller(store, first) for first in range(0, 600, 30)))
        for _ in range(2):
            enough = len(told) + 60
            while len(told) < enough:
                await asyncio.sleep(0)
            await asyncio.to_thread(postgres.stop)
            await asyncio.to_thread(postgres.start)
        await callers
        assert len(told) == 600
        for name in told:
            assert await completed(store, pay(name)) == RESULT


async def test_a_server_that_stays_away_is_told(postgres: pg.Server, schema: str) -> None:
    """After `timeout`, to everyone who waits; once it is back, it goes on."""
    async with PostgresOperationStore(postgres.dsn, schema=schema, timeout=0.5) as store:
        await granted(store, pay("t/r/1"))
        await asyncio.to_thread(postgres.stop, signal.SIGINT)
        try:
            answers = await asyncio.gather(
                *(store.claim(pay(f"t/r/{number}")) for number in range(9)), return_exceptions=True
            )
            with pytest.raises(OperationStoreError):
                await store.unresolved()
        finally:
            await asyncio.to_thread(postgres.start)
        assert all(isinstance(answer, OperationStoreError) for answer in answers)
        assert "did not answer within 0.5 s" in str(answers[0])
    async with PostgresOperationStore(postgres.dsn, schema=schema) as store:
        await unknown(store, pay("t/r/1"))
        await granted(store, pay("t/r/2"))


async def test_a_row_that_is_locked_for_long_is_its_askers_alone(postgres: pg.Server, schema: str) -> None:
    """Others that are asked for in the same group are served, and so is it afterwards."""
    async with PostgresOperationStore(postgres.dsn, schema=schema, connections=1, lock_timeout=0.2) as store:
        claims = [await granted(store, pay(f"t/r/{number}")) for number in range(3)]
        async with looking(postgres) as other, other.transaction():
            await other.execute(f"SELECT * FROM {schema}.operation WHERE id = 't/r/1' FOR UPDATE")
            asked: list[Any] = [store.complete(claim.token, RESULT) for claim in claims]
            asked.append(store.claim(pay("t/r/new")))
            answers = await asyncio.gather(*asked, return_exceptions=True)
            assert [type(answer) for answer in answers] == [type(None), OperationStoreError, type(None), Claimed]
            assert "pg_stat_activity" in str(answers[1])
        await store.complete(claims[1].token, RESULT)
        assert await completed(store, pay("t/r/1")) == RESULT


async def test_a_table_that_is_locked_for_long_is_told(postgres: pg.Server, schema: str) -> None:
    """To all, and afterwards it goes on."""
    async with PostgresOperationStore(postgres.dsn, schema=schema, lock_timeout=0.2) as store:
        async with looking(postgres) as other, other.transaction():
            await other.execute(f"LOCK TABLE {schema}.operation IN ACCESS EXCLUSIVE MODE")
            answers = await asyncio.gather(
                *(store.claim(pay(f"t/r/{number}")) for number in range(9)), return_exceptions=True
            )
        assert all(isinstance(answer, OperationStoreError) for answer in answers)
        for number in range(9):
            await granted(store, pay(f"t/r/{number}"))


async def test_a_step_that_the_server_refuses_is_alone_to_blame(postgres: pg.Server, schema: str) -> None:
    """Its group is tried again one by one."""
    async with PostgresOperationStore(postgres.dsn, schema=schema, connections=1) as store:
        bad = pay("t/r/bad")
        object.__setattr__(bad, "summary", "a\0b")  # what no Operation has, and PostgreSQL can't store
        asked = [store.claim(pay("t/r/1")), store.claim(bad), store.claim(pay("t/r/2"))]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(answer) for answer in answers] == [Claimed, OperationStoreError, Claimed]


async def test_large_results_are_sent_one_after_the_other(
    postgres: pg.Server, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Together they could be a gigabyte, for which the server ends the connection, and all of them would be unknown."""
    monkeypatch.setattr(_pg_lane, "MOST_BYTES_AT_ONCE", 100)
    sizes = []

    async def counting(connection: Any, statements: Any, requests: Sequence[Any]) -> Any:
        sizes.append([request.size for request in requests if request.size])
        return await _pg_group.carry_out(connection, statements, requests)

    monkeypatch.setattr(_pg_lane, "carry_out", counting)
    names = [f"t/run/{number}" for number in range(6)]
    results = [b"1" * size for size in (60, 40, 1, 300, 50, 50)]
    async with PostgresOperationStore(postgres.dsn, schema=schema, connections=1) as store:
        claims = await asyncio.gather(*(granted(store, pay(name)) for name in names))
        await asyncio.gather(*(store.complete(one.token, data) for one, data in zip(claims, results, strict=True)))
        assert [group for group in sizes if group] == [[60, 40], [1], [300], [50, 50]]
        assert [await completed(store, pay(name)) for name in names] == results


async def test_a_refusal_is_its_callers_alone(postgres: pg.Server, schema: str) -> None:
    """A conflict in a group with claims that are granted."""
    async with PostgresOperationStore(postgres.dsn, schema=schema, connections=1) as store:
        await granted(store, pay("t/r/5"))
        asked = [store.claim(pay(f"t/r/{number}", amount=1)) for number in range(10)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(answer) for answer in answers[:5] + answers[6:]] == [Claimed] * 9
    assert isinstance(answers[5], OperationConflictError)


async def test_groups_in_opposite_order_do_not_block_each_other(postgres: pg.Server, schema: str) -> None:
    """Two stores claim, complete and reconcile the same operations at one time, in both directions."""
    names = [f"t/r/{number:03}" for number in range(200)]
    first = PostgresOperationStore(postgres.dsn, schema=schema, connections=2)
    async with first, PostgresOperationStore(postgres.dsn, schema=schema, connections=2) as second:
        for direction in (1, -1):
            asked = [
                one.claim(pay(name)) for one, order in ((first, 1), (second, direction)) for name in names[::order]
            ]
            answers = await asyncio.gather(*asked)
            claims = [answer for answer in answers if isinstance(answer, Claimed)]
            assert len(claims) == len(names)
            half = len(claims) // 2
            done: list[Any] = [first.complete(claim.token, RESULT) for claim in claims[:half]]
            done += [second.reconcile(claim.token.operation_id, RESULT) for claim in claims[::-1]]
            done += [second.complete(claim.token, RESULT) for claim in claims[half:]]
            await asyncio.gather(*done)
            assert await first.purge(1e12) == len(names)


@pytest.mark.parametrize("claims", [1, 2])
async def test_a_claim_that_waits_for_anothers_is_told_of_it(postgres: pg.Server, schema: str, claims: int) -> None:
    """Another process has inserted the row, and commits only while we wait: one statement, or two claims in a transaction."""
    async with PostgresOperationStore(postgres.dsn, schema=schema, connections=1) as store:
        await granted(store, pay("t/r/1"))
        async with looking(postgres) as other, looking(postgres) as third:
            transaction = other.transaction()
            await transaction.start()
            await other.execute(
                f"CREATE TEMP TABLE copy AS SELECT * FROM {schema}.operation; UPDATE copy SET id = 't/r/2';"
                f"INSERT INTO {schema}.operation SELECT * FROM copy"
            )
            asked = [asyncio.ensure_future(store.claim(pay("t/r/2"))) for _ in range(claims)]
            await _somebody_waits(third)
            await transaction.commit()
        answers = await asyncio.gather(*asked)
        assert [type(answer) for answer in answers] == [Unknown] * claims


async def _somebody_waits(connection: Any) -> None:
    """Return once a transaction waits for another's lock."""
    while not await connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
        await asyncio.sleep(0)


async def test_what_undoes_a_claim_does_not_overtake_it(postgres: pg.Server, schema: str) -> None:
    """A claim that is cancelled while it waits in the server is given back behind itself, though other connections are idle."""
    async with PostgresOperationStore(postgres.dsn, schema=schema, connections=4, lock_timeout=10) as store:
        for number in range(5):
            async with looking(postgres) as other, looking(postgres) as third:
                transaction = other.transaction()
                await transaction.start()
                await other.execute(f"LOCK TABLE {schema}.operation IN SHARE ROW EXCLUSIVE MODE")  # stops who writes
                asked = asyncio.ensure_future(store.claim(pay(f"t/r/{number}")))
                await _somebody_waits(third)
                asked.cancel()
                await asyncio.wait([asked])
                for _ in range(50):  # time enough for an idle connection
                    await third.fetchval("SELECT 1")
                await transaction.commit()
            assert await store.get(f"t/r/{number}") is None


# -- settings, tables and mistakes ---------------------------------------------------------------------------------------------


async def test_commits_are_durable_whatever_the_role_has(postgres: pg.Server, schema: str) -> None:
    """The role's and the database's settings would have it off."""
    async with looking(postgres) as other:
        await other.execute("ALTER ROLE tester SET synchronous_commit = off")
        await other.execute("ALTER ROLE tester SET default_transaction_isolation = 'repeatable read'")
        try:
            async with PostgresOperationStore(postgres.dsn, schema=schema) as store:
                for name, value in (("synchronous_commit", "on"), ("transaction_isolation", "read committed")):
                    assert await store.ask(_showing(name)) == value
                await granted(store, pay())
        finally:
            await other.execute("ALTER ROLE tester RESET ALL")


def _showing(name: str) -> Any:
    """A query for a setting."""
    return lambda connection, _sql: connection.fetchval(f"SHOW {name}")


async def test_a_server_without_fsync_is_refused(postgres: pg.Server, schema: str) -> None:
    """It would forget what it was told."""
    await asyncio.to_thread(postgres.stop)
    await asyncio.to_thread(postgres.start, fsync="off")
    try:
        store = PostgresOperationStore(postgres.dsn, schema=schema)
        with pytest.raises(OperationStoreError, match="fsync = 'off' where 'on' is needed"):
            await store.claim(pay())
        await store.aclose()
    finally:
        await asyncio.to_thread(postgres.stop)
        await asyncio.to_thread(postgres.start)


async def test_a_newer_schema_is_left_as_it_is(postgres: pg.Server, schema: str) -> None:
    """An older toolbatch says that it is too old."""
    async with PostgresOperationStore(postgres.dsn, schema=schema) as store:
        await granted(store, pay())
    async with looking(postgres) as other:
        await other.execute(f"INSERT INTO {schema}.version VALUES ({_pg_schema.VERSION + 1})")
    late = PostgresOperationStore(postgres.dsn, schema=schema)
    with pytest.raises(OperationStoreError, match="Upgrade toolbatch"):
        await late.claim(pay())
    await late.aclose()


async def test_an_older_schema_is_migrated_once(
    postgres: pg.Server, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whoever comes first of those that start at one time; what is there is kept."""
    async with PostgresOperationStore(postgres.dsn, schema=schema) as store:
        await granted(store, pay())
    steps = (*_pg_schema.MIGRATIONS, ("CREATE TABLE {schema}.journal (line TEXT)",))
    monkeypatch.setattr(_pg_server, "MIGRATIONS", steps)
    monkeypatch.setattr(_pg_server, "VERSION", len(steps))
    stores = [PostgresOperationStore(postgres.dsn, schema=schema, connections=1) for _ in range(5)]
    await asyncio.gather(*(unknown(store, pay()) for store in stores))
    await asyncio.gather(*(store.aclose() for store in stores))
    async with looking(postgres) as other:
        assert await other.fetchval(f"SELECT count(*) FROM {schema}.version") == len(steps)


async def test_a_database_that_is_not_there_is_told_without_the_password() -> None:
    """With what the client says of it, after `timeout`."""
    store = PostgresOperationStore("postgresql://tester:sekret@/none?host=/nonexistent", timeout=0.2)
    with pytest.raises(OperationStoreError, match=r"did not answer within 0\.2 s") as failure:
        await store.claim(pay())
    assert "sekret" not in str(failure.value) + repr(store)
    await store.aclose()


async def test_a_store_that_can_t_be_entered_leaves_no_task(nothing_left: None) -> None:
    """What `async with` has not entered, it does not leave."""
    store = PostgresOperationStore("postgresql://tester@/none?host=/nonexistent", timeout=0.1)
    with pytest.raises(OperationStoreError):
        async with store:
            raise AssertionError("it was entered")
    with pytest.raises(OperationStoreClosedError):
        await store.claim(pay())
    await store.aclose()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"dsn": None}, InvalidTypeError),
        ({"schema": "a; DROP TABLE b"}, InvalidInputError),
        ({"schema": ""}, InvalidInputError),
        ({"schema": "Upper"}, InvalidInputError),
        ({"connections": 0}, InvalidInputError),
        ({"connections": True}, InvalidInputError),
        ({"synchronous_commit": "off"}, InvalidInputError),
        ({"timeout": 0}, InvalidInputError),
        ({"timeout": float("nan")}, InvalidInputError),
        ({"lock_timeout": "5"}, InvalidTypeError),
        ({"owner": ""}, InvalidInputError),
    ],
)
def test_an_option_that_can_t_be_used_is_refused(options: dict[str, Any], error: type[Exception]) -> None:
    """And named."""
    with pytest.raises(error, match=next(iter(options))):
        PostgresOperationStore(**{"dsn": "postgresql:///", **options})


# -- loops and processes ---------------------------------------------------------------------------------------------------------


def test_a_store_lives_in_one_loop(postgres: pg.Server, schema: str) -> None:
    """Another is told so; a loop that ends without closing it leaves nobody waiting, and the store says so in the end."""

    def use() -> None:
        store = PostgresOperationStore(postgres.dsn, schema=schema)

        async def leave() -> "asyncio.Task[Any]":
            await granted(store, pay("t/r/1"))
            return asyncio.ensure_future(store.claim(pay("t/r/2")))

        left = asyncio.run(leave())
        assert left.cancelled()
        with pytest.raises(OperationStoreClosedError, match="another event loop"):
            asyncio.run(store.get("t/r/1"))

    with pytest.warns(ResourceWarning, match="never closed"):
        _use_and_collect(use)


def _use_and_collect(use: Callable[[], None]) -> None:
    use()
    gc.collect()


async def test_a_closed_or_forked_store_is_refused(
    postgres: pg.Server, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says which."""
    store = PostgresOperationStore(postgres.dsn, schema=schema)
    await granted(store, pay())
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(OperationStoreClosedError, match="forked"):
            await store.claim(pay())
        await store.aclose()
    await store.aclose()
    with pytest.raises(OperationStoreClosedError, match="was closed"):
        await store.claim(pay())


async def test_many_cancelled_claims_leave_nothing_behind(postgres: pg.Server, schema: str) -> None:
    """Claims that are cancelled at any moment: what is stored is exactly what was kept."""
    async with PostgresOperationStore(postgres.dsn, schema=schema, connections=3) as store:
        kept = set()
        for start in range(0, 300, 50):
            tasks = [asyncio.ensure_future(store.claim(pay(f"t/r/{start + number}"))) for number in range(50)]
            for number, task in enumerate(tasks):
                for _ in range(number % 7):
                    await asyncio.sleep(0)
                task.cancel()
            await asyncio.wait(tasks)
            kept |= {start + number for number, task in enumerate(tasks) if not task.cancelled()}
        await asyncio.gather(*(store.get(f"behind/{number}") for number in range(50)))
        assert {record.id for record in await store.unresolved()} == {f"t/r/{number}" for number in kept}


def test_asyncpg_is_loaded_when_it_is_used() -> None:
    """And where it is missing, the extra is named."""
    code = """
import sys
from toolbatch.operations import PostgresOperationStore
assert "asyncpg" not in sys.modules
sys.modules["asyncpg"] = None
try:
    PostgresOperationStore("postgresql:///")
except ImportError as error:
    assert "toolbatch[postgres]" in error.__notes__[0]
else:
    raise AssertionError
"""
    run = python(code)
    assert run.returncode == 0, run.stderr


async def test_nothing_is_done_in_a_transaction_of_the_hosts(postgres: pg.Server, schema: str) -> None:
    """What is claimed is there for others at once."""
    async with PostgresOperationStore(postgres.dsn, schema=schema) as store, looking(postgres) as other:
        await granted(store, Operation("t/r/1", "pay"))
        assert await other.fetchval(f"SELECT count(*) FROM {schema}.operation") == 1
