"""The two stores: the promises of the port, what they let go of, and a file that many share."""

import asyncio
import multiprocessing
import re
import sqlite3
import sys
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Self

import pytest
from blockbuster import blockbuster_ctx

from tests.batch.clock import run
from tests.output.kit import Loud, in_a_child, locator_in, open_files, threads
from toolbatch.core import InvalidInputError, InvalidTypeError
from toolbatch.output import MemorySpillStore, OutputBudget, SqliteSpillStore
from toolbatch.output import _sqlite as module_sqlite
from toolbatch.ports import SpillRecord, SpillSlice, SpillStore
from toolbatch.testing import check_spill_store

CALL: dict[str, Any] = {"tool_name": "search", "call_id": "c1"}

Make = Callable[..., SpillStore]


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Makes stores of a kind, each apart from the others."""
    if request.param == "memory":
        return MemorySpillStore
    numbers = count()
    return lambda **options: SqliteSpillStore(tmp_path / f"{next(numbers)}.db", **options)


async def save(store: SpillStore, text: str) -> str:
    """Save a text and return its locator."""
    return (await store.save(text, **CALL)).locator


async def read(store: SpillStore, locator: str) -> str | None:
    """The whole of a saved text, `None` if it is gone."""
    piece = await store.read(locator, offset=0, limit=10**9)
    return None if piece is None else piece.text


async def test_the_promises_of_the_port_are_kept(make: Make) -> None:
    """Both pass the checks that anybody can run on a store."""
    await check_spill_store(make)


async def test_the_oldest_goes_first_when_there_are_too_many(make: Make) -> None:
    """The newest `max_entries` texts are kept."""
    store = make(max_entries=3)
    locators = [await save(store, f"text {number}") for number in range(5)]
    assert [await read(store, locator) for locator in locators] == [None, None, "text 2", "text 3", "text 4"]


async def test_the_oldest_goes_first_when_they_are_too_long(make: Make) -> None:
    """As many go as the new one needs room for, and characters are what is counted."""
    store = make(max_chars=100)
    locators = [await save(store, "上" * size) for size in (40, 30, 30, 31)]
    assert [await read(store, locator) for locator in locators] == [None, "上" * 30, "上" * 30, "上" * 31]


async def test_what_fits_exactly_lets_nothing_go(make: Make) -> None:
    """The bounds themselves are allowed."""
    store = make(max_chars=100, max_entries=2)
    locators = [await save(store, "x" * 50) for _ in range(2)]
    assert [await read(store, locator) for locator in locators] == ["x" * 50, "x" * 50]


async def test_one_text_over_all_bounds_is_kept_until_the_next(make: Make) -> None:
    """The model has been told where it is; the next text takes its place."""
    store = make(max_chars=100)
    small = await save(store, "small")
    large = await save(store, "x" * 1000)
    assert (await read(store, small), await read(store, large)) == (None, "x" * 1000)
    small = await save(store, "small")
    assert (await read(store, small), await read(store, large)) == ("small", None)


async def test_reading_makes_nothing_younger(make: Make) -> None:
    """Who was saved first goes first, however often it was read."""
    store = make(max_entries=2)
    first, second = await save(store, "first"), await save(store, "second")
    await read(store, first)
    await save(store, "third")
    assert (await read(store, first), await read(store, second)) == (None, "second")


async def test_its_locators_are_short_and_easy_to_copy(make: Make) -> None:
    """18 characters, none of which is taken for another."""
    store = make()
    for _ in range(20):
        assert re.fullmatch(r"out-[a-km-np-z2-9]{14}", await save(store, "x"))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"locator": 7, "offset": 0, "limit": 1}, InvalidTypeError, "locator must be a str, not 7"),
        ({"locator": "x", "offset": -1, "limit": 1}, InvalidInputError, "offset must be at least 0, not -1"),
        ({"locator": "x", "offset": 0.5, "limit": 1}, InvalidTypeError, "offset must be an int, not 0.5"),
        ({"locator": "x", "offset": 0, "limit": 0}, InvalidInputError, "limit must be at least 1, not 0"),
        ({"locator": "x", "offset": 0, "limit": True}, InvalidTypeError, "limit must be an int, not True"),
    ],
)
async def test_bad_ranges_are_named(make: Make, arguments: Any, error: type[Exception], words: str) -> None:
    """A value that can't be used is in the message."""
    with pytest.raises(error, match=re.escape(words)):
        await make().read(**arguments)


@pytest.mark.parametrize("name", ["text", "tool_name", "call_id"])
async def test_only_text_is_saved(make: Make, name: str) -> None:
    """Anything else is named, and nothing is let go of for it."""
    store = make(max_entries=1)
    locator = await save(store, "kept")
    with pytest.raises(InvalidTypeError, match=f"{name} must be a str, not b'x'"):
        await store.save(**{"text": "x", **CALL, name: b"x"})
    assert await read(store, locator) == "kept"


async def test_a_text_with_methods_of_its_own_is_a_text(make: Make) -> None:
    """They are not called, neither then nor later."""
    store = make()
    assert await read(store, await save(store, Loud("text"))) == "text"


@pytest.mark.parametrize("options", [{"max_entries": 0}, {"max_chars": 0}, {"max_entries": True}, {"max_chars": 1.5}])
def test_bad_bounds_are_named(make: Make, options: dict[str, Any]) -> None:
    """A bound that is none is in the message."""
    ((name, value),) = options.items()
    with pytest.raises((InvalidInputError, InvalidTypeError), match=f"{name} must be .*, not {value}"):
        make(**options)


def test_threads_may_share_a_store(make: Make) -> None:
    """Each with a loop of its own; the bounds hold."""
    store = make(max_entries=8)
    errors: list[BaseException] = []

    async def work() -> None:
        for number in range(20):
            assert await read(store, await save(store, f"text {number}")) in {f"text {number}", None}

    def serve() -> None:
        try:
            asyncio.run(work())
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=serve) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert errors == []


def test_it_tells_what_it_is() -> None:
    """The log of a host shows how full a store is, and where a file is."""
    store = MemorySpillStore()
    asyncio.run(save(store, "x" * 1234))
    assert repr(store) == "<MemorySpillStore of 1 texts, 1,234 characters>"
    assert repr(SqliteSpillStore("/tmp/x.db")) == "<SqliteSpillStore /tmp/x.db>"


# -- the file --------------------------------------------------------------------------------------------------------


async def test_a_locator_works_after_a_restart(tmp_path: Path) -> None:
    """What was saved is found by another store on the same file (FIELD 76)."""
    locator = await save(SqliteSpillStore(tmp_path / "a.db"), "text")
    assert await read(SqliteSpillStore(tmp_path / "a.db"), locator) == "text"


async def test_a_scope_keeps_conversations_apart(tmp_path: Path) -> None:
    """In one file, a locator of another scope leads nowhere; the bounds are the whole file's."""
    ours, theirs = (SqliteSpillStore(tmp_path / "a.db", scope=name, max_entries=2) for name in ("ours", "theirs"))
    locator = await save(ours, "text")
    assert (await read(ours, locator), await read(theirs, locator)) == ("text", None)
    await save(theirs, "one")
    await save(theirs, "two")
    assert await read(ours, locator) is None


async def test_many_make_the_file_at_once(tmp_path: Path) -> None:
    """Whoever comes first makes its tables, and the others wait for that."""
    for number in range(12):
        stores = [SqliteSpillStore(tmp_path / f"{number}.db") for _ in range(8)]
        locators = await asyncio.gather(*(save(store, "text") for store in stores))
        assert [await read(stores[0], locator) for locator in locators] == ["text"] * 8


def save_many(path: str, number: int, sink: Any) -> None:
    """In another process: save texts and send their locators."""

    async def work() -> list[tuple[str, str]]:
        store = SqliteSpillStore(path)
        texts = [f"text {number}.{item} " * 500 for item in range(8)]
        return [(await save(store, text), text) for text in texts]

    sink.put(asyncio.run(work()))


def test_many_processes_share_a_file(tmp_path: Path) -> None:
    """They make it together, none is told that it is locked, and everybody reads what any has saved."""
    path = str(tmp_path / "a.db")
    context = multiprocessing.get_context("spawn")
    sink = context.Queue()
    processes = [context.Process(target=save_many, args=(path, number, sink)) for number in range(3)]
    for process in processes:
        process.start()
    saved = [pair for _ in processes for pair in sink.get(timeout=50)]
    for process in processes:
        process.join()
    store = SqliteSpillStore(path)
    assert len({locator for locator, _ in saved}) == 24
    for locator, text in saved:
        assert asyncio.run(read(store, locator)) == text


async def test_it_works_in_a_forked_child(tmp_path: Path) -> None:
    """Though the thread isn't there, and was waiting for work when the process was forked."""
    store = SqliteSpillStore(tmp_path / "a.db")
    locator = await save(store, "before")
    assert threads()

    def child() -> None:
        async def work() -> None:
            assert await read(store, locator) == "before"
            assert await read(store, await save(store, "of the child")) == "of the child"

        asyncio.events._set_running_loop(None)  # the parent's is still said to be running
        asyncio.new_event_loop().run_until_complete(work())

    assert in_a_child(child) == 0
    assert await read(store, await save(store, "after")) == "after"


async def test_nothing_is_held_open_between_two_operations(tmp_path: Path) -> None:
    """No file is open, so there is nothing to close, and a store that is dropped leaves nothing behind."""
    store = SqliteSpillStore(tmp_path / "a.db")
    await save(store, "text")
    assert not [name for name in open_files() if "a.db" in name]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.db", "a.db-journal"]
    assert not (tmp_path / "a.db-journal").stat().st_size


async def test_the_loop_is_never_blocked(tmp_path: Path) -> None:
    """Neither to save nor to read does the loop's own thread open, read or write a file."""
    store = SqliteSpillStore(tmp_path / "a.db")
    budget = OutputBudget(100, store=store)
    with blockbuster_ctx():
        shown = await budget.fit("x" * 300_000, **CALL)
        assert isinstance(shown, str)
        assert await read(store, locator_in(shown)) == "x" * 300_000


async def test_its_thread_ends_when_it_is_idle(tmp_path: Path) -> None:
    """And another one is made when there is something to do again."""
    store = SqliteSpillStore(tmp_path / "a.db")
    store._aside._idle_seconds = 0.0
    others = set(threads())
    for number in range(3):
        assert await read(store, await save(store, f"text {number}")) == f"text {number}"
        for thread in set(threads()) - others:
            thread.join(10)
        assert set(threads()) <= others


async def test_the_file_shrinks_with_what_is_kept(tmp_path: Path) -> None:
    """What is let go of takes no room on the disk."""
    store = SqliteSpillStore(tmp_path / "a.db", max_chars=3_000_000)
    await save(store, "x" * 3_000_000)
    assert (tmp_path / "a.db").stat().st_size > 3_000_000
    await save(store, "small")
    assert (tmp_path / "a.db").stat().st_size < 100_000


async def test_a_slice_reads_only_what_it_needs(tmp_path: Path) -> None:
    """A page of a long text costs a page, not the text: the rest may even be damaged."""
    store = SqliteSpillStore(tmp_path / "a.db")
    locator = await save(store, "0123456789" * 200_000)
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute(
        "DELETE FROM spill_chunk WHERE position NOT IN (SELECT max(position) FROM spill_chunk WHERE position <= 1000003)"
    )
    connection.commit()
    connection.close()
    piece = await store.read(locator, offset=1_000_003, limit=5)
    assert piece == SpillSlice(text="34567", offset=1_000_003, total_chars=2_000_000)


async def test_the_folder_may_be_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is that of the folder in which the store was made."""
    monkeypatch.chdir(tmp_path)
    store = SqliteSpillStore("a.db")
    monkeypatch.chdir("/")
    await save(store, "text")
    assert (tmp_path / "a.db").exists()


async def test_what_is_no_database_raises_and_stays_as_it_is(tmp_path: Path) -> None:
    """A file of another kind is not overwritten, a folder that is missing not made."""
    (tmp_path / "a.txt").write_text("not a database, but a text of some length " * 50, encoding="utf-8")
    before = (tmp_path / "a.txt").read_bytes()
    for path in ("a.txt", "missing/a.db", "."):
        store = SqliteSpillStore(tmp_path / path)
        with pytest.raises(sqlite3.Error):
            await save(store, "text")
        with pytest.raises(sqlite3.Error):
            await read(store, "out-x")
    assert (tmp_path / "a.txt").read_bytes() == before


async def test_a_save_that_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is the text there, nor is anything gone that had to make room for it."""
    store = SqliteSpillStore(tmp_path / "a.db", max_entries=1)
    locator = await save(store, "kept")
    pieces = count()
    real = module_sqlite._bytes

    def fail(text: str) -> bytes:
        if next(pieces) == 2:
            raise OSError("disk full")
        return real(text)

    monkeypatch.setattr(module_sqlite, "_bytes", fail)
    with pytest.raises(OSError, match="disk full"):
        await save(store, "x" * 300_000)
    assert await read(store, locator) == "kept"
    connection = sqlite3.connect(tmp_path / "a.db")
    assert connection.execute("SELECT count(*), max(position) FROM spill_chunk").fetchone() == (1, 0)
    connection.close()


async def test_a_file_that_another_holds_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to a bound, then it raises; the loop goes on meanwhile."""
    store = SqliteSpillStore(tmp_path / "a.db")
    await save(store, "text")
    holder = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    task = asyncio.ensure_future(save(store, "waits"))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not task.done()
    holder.execute("COMMIT")
    assert await read(store, await task) == "waits"
    monkeypatch.setattr(module_sqlite, "_BUSY_SECONDS", 0.05)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        await save(store, "in vain")
    holder.close()


async def test_who_is_cancelled_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    """A save whose caller has left before its turn is not done at all; one that had begun is, and nobody is told."""
    store = SqliteSpillStore(tmp_path / "a.db")
    await save(store, "text")
    holder = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    begun, queued = (asyncio.ensure_future(save(store, text)) for text in ("begun", "queued"))
    while len(store._aside._jobs) != 1:
        await asyncio.sleep(0)
    for task in (begun, queued):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    holder.execute("COMMIT")
    assert await read(store, await save(store, "after")) == "after"
    texts = [bytes(chunk).decode() for (chunk,) in holder.execute("SELECT chunk FROM spill_chunk ORDER BY text_id")]
    holder.close()
    assert "queued" not in texts
    assert texts[0] == "text"
    assert texts[-1] == "after"


@pytest.mark.parametrize(
    ("path", "error", "words"),
    [
        (":memory:", InvalidInputError, "not ':memory:'; to keep texts in memory use MemorySpillStore"),
        ("", InvalidInputError, "path must be a file's path, not ''"),
        ("a\0b", InvalidInputError, "path must be a file's path"),
        (b"a.db", InvalidTypeError, "path must be text, not b'a.db'"),
        (7, InvalidTypeError, "path must be a file's path, not 7"),
    ],
)
def test_bad_paths_are_named(path: Any, error: type[Exception], words: str) -> None:
    """What is no file's path is refused when the store is made."""
    with pytest.raises(error, match=re.escape(words)):
        SqliteSpillStore(path)
    with pytest.raises(InvalidTypeError, match="scope must be a str, not 7"):
        SqliteSpillStore("a.db", scope=7)  # type: ignore[arg-type]


# -- the checks ------------------------------------------------------------------------------------------------------


class Broken:
    """A store that keeps all promises but one."""

    def __init__(self) -> None:
        self.inner = MemorySpillStore()

    async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
        return await self.inner.save(text, tool_name=tool_name, call_id=call_id)

    async def read(self, locator: str, *, offset: int, limit: int) -> SpillSlice | None:
        return await self.inner.read(locator, offset=offset, limit=limit)


class StripsBlanks(Broken):
    async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
        record = await super().save(text.strip(), tool_name=tool_name, call_id=call_id)
        return SpillRecord(locator=record.locator, total_chars=len(text), retrieval=record.retrieval)


class RefusesSurrogates(Broken):
    async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
        text.encode()
        return await super().save(text, tool_name=tool_name, call_id=call_id)


class CountsBytes(Broken):
    async def read(self, locator: str, *, offset: int, limit: int) -> SpillSlice | None:
        piece = await super().read(locator, offset=0, limit=10**9)
        if piece is None:
            return None
        data = piece.text.encode("utf-8", "surrogatepass")[offset : offset + limit]
        return SpillSlice(text=data.decode("utf-8", "replace"), offset=offset, total_chars=piece.total_chars)


class NeverEnds(Broken):
    async def read(self, locator: str, *, offset: int, limit: int) -> SpillSlice | None:
        piece = await super().read(locator, offset=offset, limit=limit)
        return piece and SpillSlice(text=piece.text, offset=offset, total_chars=piece.total_chars)


class RaisesOnUnknown(Broken):
    async def read(self, locator: str, *, offset: int, limit: int) -> SpillSlice | None:
        piece = await super().read(locator, offset=offset, limit=limit)
        if piece is None:
            raise KeyError(locator)
        return piece


class CountsUp(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, str] = {}

    async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
        record = await super().save(text, tool_name=tool_name, call_id=call_id)
        name = f"out-{len(self.names)}"
        self.names[name] = record.locator
        return SpillRecord(locator=name, total_chars=len(text), retrieval=f"Read {name}.")

    async def read(self, locator: str, *, offset: int, limit: int) -> SpillSlice | None:
        return await super().read(self.names.get(locator, ""), offset=offset, limit=limit)


class OneForAll(Broken):
    everybody = MemorySpillStore()

    def __init__(self) -> None:
        self.inner = self.everybody


class OneForEachText(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.records: dict[str, SpillRecord] = {}

    async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
        if text not in self.records:
            self.records[text] = await super().save(text, tool_name=tool_name, call_id=call_id)
        return self.records[text]


class SwallowsCancellation(Broken):
    async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            await asyncio.sleep(3600)
        return await super().save(text, tool_name=tool_name, call_id=call_id)


class LosesOneOfMany(Broken):
    under_way = 0

    async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
        self.under_way += 1
        await asyncio.sleep(0)
        text, self.under_way = text if self.under_way == 1 else "other" * len(text), self.under_way - 1
        return await super().save(text, tool_name=tool_name, call_id=call_id)


class TakesPlainNamesOnly(Broken):
    async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
        Path(tool_name.replace("/", "_")).stem.encode()
        return await super().save(text, tool_name=tool_name, call_id=call_id)


class SaysNothing(Broken):
    async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
        record = await super().save(text, tool_name=tool_name, call_id=call_id)
        return SpillRecord(locator=record.locator, total_chars=len(text), retrieval="Ask for it.")


CAUGHT_BY = {
    StripsBlanks: "every_text_comes_back_as_it_was",
    RefusesSurrogates: "every_text_comes_back_as_it_was",
    CountsBytes: "every_text_comes_back_as_it_was",
    SaysNothing: "every_text_comes_back_as_it_was",
    NeverEnds: "past_the_end_is_the_end",
    RaisesOnUnknown: "what_was_not_saved_is_none",
    OneForEachText: "each_save_has_its_own_locator",
    CountsUp: "no_locator_leads_to_another",
    OneForAll: "stores_are_apart",
    LosesOneOfMany: "many_at_once",
    SwallowsCancellation: "who_is_cancelled_leaves",
    TakesPlainNamesOnly: "any_name_of_a_call",
}


@pytest.mark.parametrize("broken", CAUGHT_BY, ids=lambda kind: kind.__name__)
def test_the_checks_notice_what_a_store_gets_wrong(broken: type[Broken]) -> None:
    """Each way to break one promise is found, by the check of that name."""
    with pytest.raises(Exception) as caught:
        run(check_spill_store(broken))
    assert caught.value.__notes__ == [f"in the check '{CAUGHT_BY[broken]}' of toolbatch.testing._spill_checks"]


def test_the_checks_find_nothing_wrong_with_what_is_right() -> None:
    """The store that the broken ones are made of passes; one that has to be entered is, and is left again."""
    entered: list[str] = []

    class Entered(Broken):
        async def __aenter__(self) -> Self:
            entered.append("in")
            return self

        async def __aexit__(self, *_error: object) -> None:
            entered.append("out")

    asyncio.run(check_spill_store(Entered))
    assert entered.count("in") == entered.count("out") > 5


if sys.platform != "linux":  # what the process has open is read from /proc
    del test_nothing_is_held_open_between_two_operations
