"""Real files that can't be written, in the middle of a turn: nothing starts, the file is named, and nothing is lost."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.batch.durable import RUN, Bank, call, durable
from tests.batch.kit import code, content, effects, result_of
from toolbatch import ToolBatch, ToolError
from toolbatch.operations import SqliteJournal, SqliteOperationStore, _database

Fault = Callable[[Path, pytest.MonkeyPatch], AbstractContextManager[None]]


@contextmanager
def full(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The disk is full."""
    with closing(sqlite3.connect(path)) as look:
        pages = look.execute("PRAGMA page_count").fetchone()[0]
    with monkeypatch.context() as patch:
        patch.setattr(_database, "_SETTINGS", (*_database._SETTINGS, f"PRAGMA max_page_count = {pages}"))
        yield


@contextmanager
def locked(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another connection keeps it locked."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


@contextmanager
def damaged(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Its head was overwritten."""
    whole = path.read_bytes()
    path.write_bytes(b"nonsense" * 20 + whole[160:])
    yield
    path.write_bytes(whole)


@contextmanager
def gone(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Its folder is not there: the disk was unmounted, say."""
    away = path.parent.with_name("away")
    path.parent.rename(away)
    yield
    away.rename(path.parent)


TELLS: dict[Fault, str] = {
    full: "can't grow",
    locked: "is locked",
    damaged: "is not an SQLite file",
    gone: "can't be opened",
}


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A file in which one payment is saved, and a batch journaled."""
    (tmp_path / "disk").mkdir()
    file = tmp_path / "disk" / "operations.db"
    async with SqliteOperationStore(file) as store, SqliteJournal(store) as journal:
        await turn(store, journal, Bank(), "saved")
    return file


async def turn(store: Any, journal: Any, bank: Bank, call_id: str = "a") -> ToolBatch:
    """One payment, with a note that does not fit into what is free in the file."""
    announced = call(call_id, note="x" * 200_000)

    async def pay(note: str) -> Any:
        return await bank()

    hooks = [] if store is None else [durable(store)]
    async with ToolBatch([announced], tools={"pay": pay}, interceptors=hooks, journal=journal, run_id=RUN) as batch:
        batch.start_all()
        await batch.snapshot()
    return batch


@pytest.mark.parametrize("fault", [locked, damaged, gone])
async def test_a_store_that_can_t_be_written_lets_nothing_start(
    path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    """The call is an error, the log names the file, and once it is well again the payment is made, once."""
    bank = Bank()
    with fault(path, monkeypatch):
        store = SqliteOperationStore(path, lock_timeout=0.01)
        batch = await turn(store, None, bank)
        await store.aclose()
    assert (code(result_of(batch), "a"), effects(result_of(batch), "a")) == ("checkpoint_failed", "not_started")
    assert bank.paid == []
    assert str(path) in caplog.text
    assert TELLS[fault] in caplog.text
    async with SqliteOperationStore(path) as well:
        await turn(well, None, bank)
        again = await turn(well, None, bank, "saved")
    assert bank.paid == ["a"]
    assert content(result_of(again), "saved") == '{"paid":50,"to":"ä"}'


@pytest.mark.parametrize("fault", [full, locked, damaged, gone])
async def test_a_journal_that_can_t_be_written_lets_nothing_start(
    path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    """The turn ends with the file's name and what to do; later it goes on, and what was there is there."""
    bank = Bank()
    with fault(path, monkeypatch):
        journal = SqliteJournal(path, lock_timeout=0.01)
        with pytest.raises(ToolError, match=TELLS[fault]) as caught:
            await turn(None, journal, bank)
        await journal.aclose()
    assert caught.value.code == "checkpoint_failed"
    assert bank.paid == []
    async with SqliteJournal(path) as well:
        (batch,) = await well.batches(RUN)
        assert list(batch.settled) == ["saved"]
        await turn(None, well, bank)
    assert bank.paid == ["a"]
