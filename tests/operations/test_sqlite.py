"""Whatever can be wrong with a file is told with its name and what to do; nothing is lost, and nothing is forgotten."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.operations.kit import RESULT, completed, granted, pay, python, unknown
from toolbatch.core import InvalidInputError, InvalidTypeError
from toolbatch.operations import SqliteOperationStore, _database, _schema
from toolbatch.operations._database import Database, may_share_wal
from toolbatch.ports import Claimed, Operation, OperationStoreClosedError, OperationStoreError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that is not there yet."""
    return tmp_path / "operations.db"


@pytest.fixture
async def filled(path: Path) -> Path:
    """A file with an operation that is completed and one that is not."""
    async with SqliteOperationStore(path) as store:
        await store.complete((await granted(store, pay("t/r/done"))).token, RESULT)
        await granted(store, pay("t/r/open"))
    return path


async def fails(path: Path, **options: Any) -> str:
    """Ask a store that can't answer, and return what it says."""
    store = SqliteOperationStore(path, **options)
    with pytest.raises(OperationStoreError) as failure:
        await store.claim(pay())
    await store.aclose()
    assert str(path) in str(failure.value)
    return str(failure.value)


# -- what can't be a file of operations --------------------------------------------------------------------------------------


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """It is not made, since it may be a typing error or a disk that is not there."""
    assert "Make its folder" in await fails(tmp_path / "missing" / "operations.db")
    assert not (tmp_path / "missing").exists()


async def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """It says that it can't be opened."""
    assert "can't be opened" in await fails(tmp_path)


async def test_a_file_of_another_kind_is_left_as_it_is(path: Path) -> None:
    """Text, or a file whose head is damaged, is not overwritten."""
    path.write_bytes(b"no database at all, but long enough for a head of a hundred bytes" * 20)
    before = path.read_bytes()
    assert "not an SQLite file" in await fails(path)
    assert path.read_bytes() == before


async def test_another_programs_database_is_left_as_it_is(path: Path) -> None:
    """Its tables are not ours to write beside."""
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE operation (id)")
    before = path.read_bytes()
    assert "another program's tables" in await fails(path)
    assert path.read_bytes() == before


async def test_a_newer_schema_is_left_as_it_is(filled: Path) -> None:
    """An older toolbatch says that it is too old."""
    with closing(sqlite3.connect(filled)) as other:
        other.execute(f"PRAGMA user_version = {_schema.VERSION + 1}")
    assert "Upgrade toolbatch" in await fails(filled)


async def test_an_older_schema_is_migrated(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that is added later is carried out once, and keeps what is there."""
    steps = (*_schema.MIGRATIONS, ("CREATE TABLE journal (line TEXT)", "INSERT INTO journal VALUES ('first')"))
    monkeypatch.setattr(_database, "MIGRATIONS", steps)
    monkeypatch.setattr(_database, "VERSION", len(steps))
    for _ in range(2):
        async with SqliteOperationStore(filled) as store:
            assert await completed(store, pay("t/r/done")) == RESULT
            await unknown(store, pay("t/r/open"))
    with closing(sqlite3.connect(filled)) as other:
        assert other.execute("SELECT line FROM journal").fetchall() == [("first",)]
        assert other.execute("PRAGMA user_version").fetchone() == (len(steps),)


async def test_a_migration_that_fails_is_undone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is of one version or the other, never between."""
    with monkeypatch.context() as patch:
        patch.setattr(_database, "MIGRATIONS", (*_schema.MIGRATIONS, ("CREATE TABLE half (x)", "no SQL")))
        patch.setattr(_database, "VERSION", _schema.VERSION + 1)
        await fails(path)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == []
    async with SqliteOperationStore(path) as store:
        await granted(store, pay())


@pytest.mark.parametrize("bad", ["", "  ", ":memory:", "a\0b"])
def test_a_path_has_to_name_a_file(bad: str) -> None:
    """A store in memory is asked for by its name, and not by accident."""
    with pytest.raises(InvalidInputError, match="must name a file"):
        SqliteOperationStore(bad)


@pytest.mark.parametrize("bad", [None, 1, b"operations.db", object()])
def test_a_path_has_to_be_text(bad: Any) -> None:
    """Or what stands for it."""
    with pytest.raises(InvalidTypeError, match="path must be"):
        SqliteOperationStore(bad)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_a_lock_timeout_has_to_be_a_time(path: Path, bad: float) -> None:
    """Finite, and not negative."""
    with pytest.raises(InvalidInputError, match="lock_timeout"):
        SqliteOperationStore(path, lock_timeout=bad)
    with pytest.raises(InvalidTypeError, match="lock_timeout"):
        SqliteOperationStore(path, lock_timeout=True)


async def test_a_relative_path_is_of_the_folder_at_its_making(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that changes its folder later does not change the file."""
    monkeypatch.chdir(tmp_path)
    store = SqliteOperationStore("operations.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    await granted(store, pay())
    await store.aclose()
    assert (tmp_path / "operations.db").exists()
    assert str(tmp_path / "operations.db") in repr(store)


# -- what happens to a file ----------------------------------------------------------------------------------------------------


async def test_a_damaged_file_says_so(filled: Path) -> None:
    """It says that the file must not be deleted, which is what people do first."""
    content = bytearray(filled.read_bytes())
    page = int.from_bytes(content[16:18], "big")
    content[page:] = b"\xa5" * (len(content) - page)
    filled.write_bytes(content)
    said = await fails(filled)
    assert "is damaged" in said
    assert "Don't delete it" in said


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("replaced", [False, True])
async def test_a_file_that_was_removed_is_not_begun_anew(filled: Path, replaced: bool, exclusive: bool) -> None:
    """A new file would have forgotten what was done, and SQLite would go on writing into the one that is gone."""
    store = SqliteOperationStore(filled, exclusive=exclusive)
    await granted(store, pay("t/r/1"))
    filled.rename(filled.with_name("gone"))
    if replaced:
        filled.write_bytes(b"")
    for _ in range(3):
        with pytest.raises(OperationStoreError, match="removed or replaced"):
            await store.claim(pay("t/r/2"))
    assert not filled.exists() or filled.read_bytes() == b""
    filled.with_name("gone").rename(filled)
    await unknown(store, pay("t/r/1"))
    await granted(store, pay("t/r/2"))
    await store.aclose()


async def test_a_lock_that_is_held_for_long_is_told(filled: Path) -> None:
    """After `lock_timeout` it says so; nothing of what was asked is done, and later it is."""
    async with SqliteOperationStore(filled, lock_timeout=0.1) as store:
        with closing(sqlite3.connect(filled, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            answers = await asyncio.gather(
                *(store.claim(pay(f"t/r/{number}")) for number in range(10)), return_exceptions=True
            )
            other.execute("COMMIT")
        assert all(isinstance(answer, OperationStoreError) for answer in answers)
        assert "is locked by another connection for longer than lock_timeout" in str(answers[0])
        for number in range(10):
            await granted(store, pay(f"t/r/{number}"))


async def test_a_reader_that_stays_does_not_lose_a_commit(filled: Path) -> None:
    """A shell with an open query keeps a rollback journal from committing: that is told, undone, and done later."""
    async with SqliteOperationStore(filled, lock_timeout=0.1) as store:
        with closing(sqlite3.connect(filled, isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT * FROM operation").fetchall()
            with pytest.raises(OperationStoreError, match="locked"):
                await store.claim(pay("t/r/1"))
        await granted(store, pay("t/r/1"))


async def test_a_full_disk_is_told_and_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is refused, what is in the file stays, and later it goes on."""
    settings = (*_database._SETTINGS, "PRAGMA max_page_count = 40")
    with monkeypatch.context() as patch:
        patch.setattr(_database, "_SETTINGS", settings)
        saved = 0
        async with SqliteOperationStore(path) as store:
            with pytest.raises(OperationStoreError, match=r"can't grow.*Free some space"):
                for number in range(1000):
                    claim = await granted(store, pay(f"t/r/{number:04}"))
                    await store.complete(claim.token, b"x" * 5000)
                    saved += 1
            assert saved > 10
            asked = [store.claim(pay(f"t/s/{number}")) for number in range(200)]
            answers = await asyncio.gather(*asked, return_exceptions=True)
            assert {type(answer) for answer in answers} <= {Claimed, OperationStoreError}
            assert any(isinstance(answer, OperationStoreError) for answer in answers)
            granted_ones = {answer.token.operation_id for answer in answers if isinstance(answer, Claimed)}
    async with SqliteOperationStore(path) as store:
        assert {record.id for record in await store.unresolved(prefix="t/s/")} == granted_ones
        for number in range(saved):
            assert await completed(store, pay(f"t/r/{number:04}")) == b"x" * 5000
        await granted(store, pay("t/s/after"))


FULL = """
import asyncio, sys
from toolbatch.operations import SqliteOperationStore
from toolbatch.ports import Claimed, Operation, OperationStoreError

async def main():
    saved = []
    async with SqliteOperationStore(sys.argv[1] + "/operations.db", exclusive=sys.argv[2] == "True") as store:
        try:
            for number in range(10_000):
                claim = await store.claim(Operation(f"t/r/{number:05}", "pay"))
                await store.complete(claim.token, b"x" * 5000)
                saved.append(number)
        except OperationStoreError as error:
            print(error, file=sys.stderr)
    async with SqliteOperationStore(sys.argv[1] + "/operations.db", exclusive=sys.argv[2] == "True") as store:
        for number in saved:
            assert (await store.claim(Operation(f"t/r/{number:05}", "pay"))).result == b"x" * 5000
    print(len(saved))

asyncio.run(main())
"""


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_disk_that_is_really_full_loses_nothing(tmp_path: Path, exclusive: bool) -> None:
    """The same on a file system of 512 KiB that is mounted for this process alone."""
    mount = f'mount -t tmpfs -o size=512k tmpfs {tmp_path} && exec "$@"'
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh", sys.executable, "-c", FULL]
    if subprocess.run([*command[:4], "-c", mount, "sh", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system does not let a process mount a file system of its own")
    run = subprocess.run([*command, tmp_path, str(exclusive)], capture_output=True, text=True, check=False, timeout=50)
    assert run.returncode == 0, run.stderr
    assert "can't grow" in run.stderr or "can't be read or written" in run.stderr
    assert int(run.stdout) > 10


READ_ONLY = """
import asyncio, os, sys
from toolbatch.operations import SqliteOperationStore
from toolbatch.ports import Operation, OperationStoreError

if os.getuid() == 0:  # whom permissions don't bind
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)

async def main():
    store = SqliteOperationStore(sys.argv[1])
    try:
        await store.claim(Operation("t/r/1", "pay"))
    except OperationStoreError as error:
        print(error)
    await store.aclose()

asyncio.run(main())
"""


@pytest.mark.parametrize(("folder", "file"), [(0o555, 0o444), (0o777, 0o444), (0o555, 0o666)])
def test_a_file_that_can_t_be_written_says_so(filled: Path, folder: int, file: int) -> None:
    """Neither the file nor its folder may be read-only."""
    for above in list(filled.parents)[:-1]:
        if above.stat().st_uid == os.getuid() and not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o055)
    filled.chmod(file)
    filled.parent.chmod(folder)
    try:
        run = python(READ_ONLY, filled)
    finally:
        filled.parent.chmod(0o755)
    assert run.returncode == 0, run.stderr
    assert str(filled) in run.stdout
    told = ("can't be written. Give this process the right", "can't be opened", "another user's")
    assert any(words in run.stdout for words in told), run.stdout


# -- journals and other connections --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "may"),
    [
        ((3, 40, 1), False), ((3, 44, 5), False), ((3, 44, 6), True), ((3, 45, 1), False), ((3, 50, 6), False),
        ((3, 50, 7), True), ((3, 51, 0), False), ((3, 51, 2), False), ((3, 51, 3), True), ((3, 54, 0), True), ((4, 0, 0), True),
    ],
)  # fmt: skip
def test_only_corrected_versions_share_a_write_ahead_log(version: tuple[int, int, int], may: bool) -> None:
    """The WAL-reset bug is in all others."""
    assert may_share_wal(version) is may


def settings_of(database: Database) -> dict[str, object]:
    """What SQLite says of the connection that a store uses."""
    return {name: database._pragma(name) for name in ("journal_mode", "synchronous", "locking_mode", "mmap_size")}


@pytest.mark.parametrize(
    ("exclusive", "corrected", "mode", "locking"),
    [
        (False, False, "persist", "normal"),
        (False, True, "wal", "normal"),
        (True, False, "wal", "exclusive"),
        (True, True, "wal", "exclusive"),
    ],
)
async def test_every_commit_is_synced(
    path: Path, monkeypatch: pytest.MonkeyPatch, exclusive: bool, corrected: bool, mode: str, locking: str
) -> None:
    """`synchronous` is EXTRA (3) in every mode; which journal there is depends on the version and on who may share."""
    monkeypatch.setattr(_database, "may_share_wal", lambda: corrected)
    async with SqliteOperationStore(path, exclusive=exclusive) as store:
        await granted(store, pay())
        said = await store._writer.ask(settings_of)
    assert said == {"journal_mode": mode, "synchronous": 3, "locking_mode": locking, "mmap_size": 0}


async def test_an_exclusive_store_keeps_others_out(path: Path) -> None:
    """They are told, and let in once it is closed; what it wrote is there."""
    async with SqliteOperationStore(path, exclusive=True) as store:
        await store.complete((await granted(store, pay("t/r/1"))).token, RESULT)
        assert "exclusive=True" in await fails(path, lock_timeout=0.1)
        assert "exclusive=True" in await fails(path, lock_timeout=0.1, exclusive=True)
        await granted(store, pay("t/r/2"))
    async with SqliteOperationStore(path) as store:
        assert await completed(store, pay("t/r/1")) == RESULT
        await unknown(store, pay("t/r/2"))


async def test_a_file_that_another_put_into_wal_mode_is_taken_back(path: Path) -> None:
    """A process with a newer SQLite may do so between two transactions; this one must not share that."""
    async with SqliteOperationStore(path) as store:
        await granted(store, pay("t/r/1"))
        async with SqliteOperationStore(path, exclusive=True) as other:
            await granted(other, pay("t/r/2"))
        assert _mode(path) == "wal"
        await unknown(store, pay("t/r/2"))
        await granted(store, pay("t/r/3"))
        assert (await store._writer.ask(settings_of))["journal_mode"] == "persist"


async def test_a_file_that_another_keeps_in_wal_mode_is_not_shared(path: Path) -> None:
    """Where it can't be taken back, as another has it open, nothing is risked."""
    async with SqliteOperationStore(path, lock_timeout=0.1) as store:
        await granted(store, pay("t/r/1"))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("PRAGMA journal_mode = WAL").fetchall()
            other.execute("SELECT * FROM operation").fetchall()
            with pytest.raises(OperationStoreError, match="locked"):
                await store.claim(pay("t/r/2"))
        await granted(store, pay("t/r/2"))


def _mode(path: Path) -> str:
    """The journal mode in the file's head."""
    return {1: "rollback", 2: "wal"}[path.read_bytes()[18]]


async def test_two_stores_of_one_process_share_a_file(path: Path) -> None:
    """Also by two names of it."""
    path.with_name("link").symlink_to(path)
    async with SqliteOperationStore(path) as one, SqliteOperationStore(path.with_name("link")) as two:
        answers = await asyncio.gather(
            *(store.claim(pay(f"t/r/{number}")) for number in range(200) for store in (one, two))
        )
    assert sum(isinstance(answer, Claimed) for answer in answers) == 200


# -- processes -------------------------------------------------------------------------------------------------------------------


FORK = """
import asyncio, os, sys, warnings
from toolbatch.operations import MemoryOperationStore, SqliteOperationStore
from toolbatch.ports import Claimed, Operation, OperationStoreClosedError, OperationStoreError, Unknown

warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
path = sys.argv[1]
loop = asyncio.new_event_loop()
store = SqliteOperationStore(path, exclusive=sys.argv[2] == "True")
memory = MemoryOperationStore()
assert isinstance(loop.run_until_complete(store.claim(Operation("t/r/1", "pay"))), Claimed)

async def in_the_child():
    for inherited in (store, memory):
        try:
            await inherited.claim(Operation("t/r/2", "pay"))
        except OperationStoreClosedError as error:
            assert "fork" in str(error), error
        else:
            raise AssertionError("the child used its parent's store")
        if inherited is store:
            await inherited.aclose()
    another = SqliteOperationStore(path)
    try:
        await another.claim(Operation("t/r/2", "pay"))
    except OperationStoreError as error:
        assert "after the fork" in str(error), error
    else:
        raise AssertionError("the child opened the file that it has inherited")
    await another.aclose()
    async with SqliteOperationStore(path + ".other") as other:
        assert isinstance(await other.claim(Operation("t/r/1", "pay")), Claimed)

child = os.fork()
if child == 0:
    asyncio.new_event_loop().run_until_complete(in_the_child())
    sys.exit(7)  # by the ordinary way out, which closes what it finds
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 7, status

async def in_the_parent():
    assert isinstance(await store.claim(Operation("t/r/1", "pay")), Unknown)
    assert isinstance(await store.claim(Operation("t/r/2", "pay")), Claimed)
    await store.aclose()

loop.run_until_complete(in_the_parent())
loop.close()
"""


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_forked_child_leaves_its_parents_file_alone(path: Path, exclusive: bool) -> None:
    """It is refused the store and the file, may use another, and its end does not touch the parent's."""
    run = python(FORK, path, exclusive)
    assert run.returncode == 0, run.stderr
    with closing(sqlite3.connect(path)) as look:
        assert look.execute("SELECT id FROM operation").fetchall() == [("t/r/1",), ("t/r/2",)]
        assert look.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


UNCLOSED = """
import asyncio, sys
from toolbatch.operations import SqliteOperationStore
from toolbatch.ports import Claimed, Operation

store = SqliteOperationStore(sys.argv[1])
assert isinstance(asyncio.run(store.claim(Operation("t/r/1", "pay"))), Claimed)
"""


def test_a_store_that_nobody_closed_does_not_keep_the_process(path: Path) -> None:
    """The interpreter ends, and what was acknowledged is there."""
    run = python(UNCLOSED, path)
    assert run.returncode == 0, run.stderr
    with closing(sqlite3.connect(path)) as look:
        assert look.execute("SELECT id FROM operation").fetchall() == [("t/r/1",)]


async def test_a_closed_store_is_named(path: Path) -> None:
    """With its file."""
    store = SqliteOperationStore(path)
    await store.aclose()
    with pytest.raises(OperationStoreClosedError, match=r"operations\.db"):
        await store.get("t/r/1")


async def test_nothing_of_the_arguments_is_stored_but_the_summary(path: Path) -> None:
    """A secret in the arguments is nowhere in the file if the host gives another summary."""
    async with SqliteOperationStore(path) as store:
        await granted(store, Operation("t/r/1", "pay", {"card": "4111-1111"}, summary="a payment"))
        await granted(store, Operation("t/r/2", "pay", {"card": "4222-2222"}))
    content = path.read_bytes()
    assert b"4111-1111" not in content
    assert b"a payment" in content
    assert b"4222-2222" in content
