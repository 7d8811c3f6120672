"""Our journals keep the port's promises, as the checks that are public ask of every journal; and the checks are not asleep."""

import asyncio
import os
import sqlite3
from collections.abc import Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from tests.operations import pg
from tests.operations.kit import completed, granted, pay
from tests.operations.test_postgres import Proxy
from toolbatch.core import InvalidInputError, InvalidTypeError, ToolCall
from toolbatch.operations import (
    MemoryJournal,
    PostgresJournal,
    PostgresOperationStore,
    SqliteJournal,
    SqliteOperationStore,
    _database,
    _journal_postgres,
    _schema,
)
from toolbatch.operations._journal_rows import JournalRow, batch_of, rows_of
from toolbatch.ports import (
    AnnouncedRecord,
    JournalRecord,
    OperationStoreClosedError,
    OperationStoreError,
    StartedRecord,
)
from toolbatch.testing import check_journal


def announced(batch_id: str = "b", run_id: str = "run") -> AnnouncedRecord:
    """A batch of one call."""
    return AnnouncedRecord(batch_id=batch_id, at=1.0, run_id=run_id, generation=1, calls=(ToolCall("a", "pay"),))


def started(batch_id: str = "b") -> StartedRecord:
    """The start of its call."""
    return StartedRecord(batch_id=batch_id, at=2.0, call_id="a")


async def test_the_journal_in_memory_keeps_the_promises() -> None:
    """All but those of durable journals."""
    await check_journal(lambda _place: MemoryJournal(), durable=False)


@pytest.mark.parametrize("exclusive", [False, True])
async def test_the_sqlite_journal_keeps_the_promises(tmp_path: Path, exclusive: bool) -> None:
    """In a file of its own; an exclusive one keeps others out."""
    await check_journal(lambda place: SqliteJournal(tmp_path / place, exclusive=exclusive), durable=not exclusive)


async def test_the_journal_in_a_stores_file_keeps_the_promises(tmp_path: Path) -> None:
    """All but being closed by itself, which the store is."""

    @asynccontextmanager
    async def make(place: str) -> Any:
        async with SqliteOperationStore(tmp_path / place) as store, SqliteJournal(store) as journal:
            journal.aclose = store.aclose  # type: ignore[method-assign]
            yield journal

    await check_journal(make)


async def test_the_postgres_journal_keeps_the_promises(postgres: pg.Server, schema: str) -> None:
    """In the schema of a store."""

    @asynccontextmanager
    async def make(place: str) -> Any:
        place = f"{schema}_{place.replace('-', '_')}"
        async with PostgresOperationStore(postgres.dsn, schema=place) as store, PostgresJournal(store) as journal:
            journal.aclose = store.aclose  # type: ignore[method-assign]
            yield journal

    await check_journal(make)


# -- each broken rule is noticed --------------------------------------------------------------------------------------------


class Broken:
    """A journal in memory of which one thing is different."""

    def __init__(self) -> None:
        self.inner = MemoryJournal()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.inner.aclose()


class Forgets(Broken):
    """Writes all but starts."""

    async def append(self, records: Sequence[JournalRecord]) -> None:
        await self.inner.append([record for record in records if not isinstance(record, StartedRecord)])


class WritesHalf(Broken):
    """Writes record by record, up to the first that is refused."""

    async def append(self, records: Sequence[JournalRecord]) -> None:
        for record in records:
            await self.inner.append([record])


class DropsWhatIsCancelled(Broken):
    """Gives up with its caller."""

    async def append(self, records: Sequence[JournalRecord]) -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await self.inner.append(records)


class MixesRuns(Broken):
    """Thinks that there is one run."""

    async def last(self, run_id: str) -> Any:
        return await self.inner.read(next(reversed(self.inner._batches), "none"))


class TrustsTheClock(Broken):
    """Takes the latest time for the last."""

    async def last(self, run_id: str) -> Any:
        return max(await self.inner.batches(run_id), key=lambda batch: batch.announced.at, default=None)


class PurgesAll(Broken):
    """Forgets what is open too."""

    async def purge(self, closed_before: float) -> int:
        count = len(self.inner._batches)
        self.inner._batches.clear()
        return count


class KnowsNoEnd(Broken):
    """Lists every run as open."""

    async def unfinished(self, *, limit: int = 1000) -> tuple[str, ...]:
        return tuple(dict.fromkeys(rows[0].run for rows in self.inner._batches.values()))[:limit]


class StaysOpen(Broken):
    """Goes on after it was closed."""

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize(
    "kind", [Forgets, WritesHalf, DropsWhatIsCancelled, MixesRuns, TrustsTheClock, PurgesAll, KnowsNoEnd, StaysOpen]
)
async def test_a_journal_that_breaks_a_promise_is_found_out(kind: type[Broken]) -> None:
    """And the check is named."""
    with pytest.raises(AssertionError) as caught:
        await check_journal(lambda _place: kind(), durable=False)
    assert "in the check" in "".join(caught.value.__notes__)


async def test_a_place_that_forgets_is_found_out() -> None:
    """A journal in memory is not durable."""
    with pytest.raises(AssertionError, match="was to be in the journal"):
        await check_journal(lambda _place: MemoryJournal())


# -- what is particular to each -----------------------------------------------------------------------------------------------


async def test_claims_and_records_share_a_file_and_its_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread, one connection, one transaction for what is asked at one time."""
    commits = []
    transact = _database.Database.transact

    def counted(self: Any, work: Any) -> Any:
        commits.append(1)
        return transact(self, work)

    async with SqliteOperationStore(tmp_path / "o.db") as store, SqliteJournal(store) as journal:
        monkeypatch.setattr(_database.Database, "transact", counted)
        batches = [journal.append([announced(f"b{number}")]) for number in range(50)]
        claims = [store.claim(pay(f"t/r/{number}")) for number in range(50)]
        await asyncio.gather(*batches, *claims)
        assert len(commits) < 20
        await journal.aclose()
        await granted(store, pay("t/r/after"))
    assert [file.name for file in tmp_path.iterdir() if not file.name.endswith("-journal")] == ["o.db"]


async def test_a_file_of_operations_gets_the_journals_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the first version is migrated, and keeps its claims."""
    file = tmp_path / "o.db"
    with monkeypatch.context() as patch:
        patch.setattr(_database, "MIGRATIONS", _schema.MIGRATIONS[:1])
        patch.setattr(_database, "VERSION", 1)
        async with SqliteOperationStore(file) as store:
            await store.complete((await granted(store, pay())).token, b"1")
    async with SqliteJournal(file) as journal:
        await journal.append([announced()])
    async with SqliteOperationStore(file) as store:
        assert await completed(store, pay()) == b"1"
    with closing(sqlite3.connect(file)) as look:
        assert look.execute("PRAGMA user_version").fetchone() == (_schema.VERSION,)


async def test_records_that_can_t_be_read_are_told(tmp_path: Path) -> None:
    """Damaged, or of a newer toolbatch: the batch is named, and nothing is made up."""
    file = tmp_path / "j.db"
    async with SqliteJournal(file) as journal:
        await journal.append([announced(), started()])
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("UPDATE record SET body = '{}' WHERE kind = 'started'")
    async with SqliteJournal(file) as journal:
        with pytest.raises(OperationStoreError, match="batch 'b' can't be read"):
            await journal.read("b")


@pytest.mark.parametrize("bad", [b"", b"[]", b"\xff", b'{"call_id":1}', b"null"])
def test_a_damaged_row_is_no_crash(bad: bytes) -> None:
    """Whatever is in it."""
    rows = [*rows_of([announced()], lambda _: False), JournalRow("b", "settled", 1.0, "", bad)]
    with pytest.raises(OperationStoreError):
        batch_of(rows)
    with pytest.raises(OperationStoreError):
        batch_of([JournalRow("b", "unheard of", 1.0, "", b"{}")])
    with pytest.raises(InvalidInputError):
        rows_of(["no record"], lambda _: True)  # type: ignore[list-item]


async def test_names_are_checked() -> None:
    """As everywhere."""
    async with MemoryJournal() as journal:
        for bad in ("", " ", "x" * 600, "\ud800"):
            with pytest.raises(InvalidInputError):
                await journal.read(bad)
        with pytest.raises(InvalidTypeError):
            await journal.last(5)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError):
            await journal.purge(float("nan"))
    with pytest.raises(InvalidTypeError, match="PostgresOperationStore"):
        PostgresJournal("dsn")  # type: ignore[arg-type]


async def test_a_forked_child_can_t_use_a_journal_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its copy would guard nothing."""
    journal = MemoryJournal()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(OperationStoreClosedError, match="forked child"):
        await journal.append([announced()])


async def test_a_journal_that_nobody_closed_says_so(tmp_path: Path) -> None:
    """Its thread does not live on for nobody."""
    journal = SqliteJournal(tmp_path / "j.db")
    await journal.append([announced()])
    assert "j.db" in repr(journal)
    with pytest.warns(ResourceWarning, match="never closed"):
        journal.__del__()
    journal = SqliteJournal(tmp_path / "nowhere" / "j.db")
    with pytest.raises(OperationStoreError, match="Make its folder"):
        await journal.__aenter__()


class CutLater(Proxy):
    """Breaks off once, after so many answers."""

    def __init__(self, postgres: pg.Server, folder: Path) -> None:
        self.answers_left = 1 << 30
        super().__init__(postgres, folder)

    @property
    def cuts(self) -> int:
        """Whether to cut now; asked at each answer."""
        self.answers_left -= 1
        return int(self.answers_left < 0)

    @cuts.setter
    def cuts(self, _: int) -> None:
        self.answers_left = 1 << 30


async def test_large_records_are_sent_one_after_the_other(
    postgres: pg.Server, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one transaction all the same, and in their order."""
    monkeypatch.setattr(_journal_postgres, "MOST_BYTES_AT_ONCE", 200)
    sent = []
    execute = asyncpg.Connection.execute

    async def counting(connection: Any, statement: str, *values: Any, **options: Any) -> Any:
        if "WITH ORDINALITY" in statement:
            sent.append(sum(map(len, values[-1])))
        return await execute(connection, statement, *values, **options)

    monkeypatch.setattr(asyncpg.Connection, "execute", counting)
    records: list[JournalRecord] = [announced("b", "run"), *(started("b") for _ in range(20))]
    async with PostgresOperationStore(postgres.dsn, schema=schema) as store, PostgresJournal(store) as journal:
        await journal.append(records)
        found = await journal.read("b")
        assert found is not None
        assert found.records == tuple(records)
    assert len(sent) > 2
    assert max(sent) <= 200


async def test_a_connection_that_is_cut_at_any_moment_writes_once(postgres: pg.Server, schema: str) -> None:
    """Also right after the commit, whose answer is lost: it is asked again, and found to be there."""
    folder = postgres.folder / "proxy"
    folder.mkdir(exist_ok=True)
    (folder / ".s.PGSQL.5432").unlink(missing_ok=True)
    async with (
        CutLater(postgres, folder) as proxy,
        PostgresOperationStore(proxy.dsn, schema=schema, connections=1) as store,
        PostgresJournal(store) as journal,
    ):
        for number in range(16):
            proxy.answers_left = number
            await journal.append([announced(f"b{number}"), started(f"b{number}")])
            proxy.answers_left = 1 << 30
            batch = await journal.read(f"b{number}")
            assert batch is not None
            assert len(batch.records) == 2
        assert proxy.times >= 6
