"""Group commit in one thread: who shares a transaction, who leaves, and that nobody else is held up."""

import asyncio
import gc
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx

from tests.operations.kit import RESULT, completed, granted, pay, unknown
from toolbatch.operations import SqliteOperationStore, _writer
from toolbatch.operations._database import Database
from toolbatch.ports import Claimed, OperationConflictError, OperationStoreClosedError, OperationStoreError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that is not there yet."""
    return tmp_path / "operations.db"


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many jobs each transaction had."""
    sizes: list[int] = []
    answers = _writer._answers

    def counted(group: Any, database: Database) -> Any:
        sizes.append(len(group))
        return answers(group, database)

    monkeypatch.setattr(_writer, "_answers", counted)
    return sizes


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another connection's writing transaction, which lets nobody write meanwhile."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def threads() -> list[threading.Thread]:
    """The stores' threads."""
    return [thread for thread in threading.enumerate() if thread.name == "toolbatch-operations"]


async def test_what_is_asked_at_one_time_is_synced_together(path: Path, groups: list[int]) -> None:
    """A thousand claims make a few transactions, none of more than 256."""
    async with SqliteOperationStore(path) as store:
        groups.clear()
        answers = await asyncio.gather(*(store.claim(pay(f"t/r/{number}")) for number in range(1000)))
    assert all(isinstance(answer, Claimed) for answer in answers)
    assert sum(groups) == 1000
    assert len(groups) < 20
    assert max(groups) <= 256


async def test_a_refusal_is_its_callers_alone(path: Path, groups: list[int]) -> None:
    """Claims in one transaction with a conflict are granted."""
    async with SqliteOperationStore(path) as store:
        await granted(store, pay("t/r/5"))
        with locked(path):
            asked = [asyncio.ensure_future(store.claim(pay(f"t/r/{number}", amount=1))) for number in range(10)]
            await asyncio.sleep(0)
        answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(answer) for answer in answers[:5] + answers[6:]] == [Claimed] * 9
    assert isinstance(answers[5], OperationConflictError)
    assert max(groups) > 1


async def test_a_job_that_sqlite_refuses_is_alone_to_blame(path: Path) -> None:
    """Its group is undone and tried again one by one, so that the others' claims are granted, once."""

    def broken(database: Database) -> None:
        database.execute("INSERT INTO operation (id) VALUES ('half')")  # what is not null is missing

    async with SqliteOperationStore(path) as store:
        with locked(path):
            before = asyncio.ensure_future(store.claim(pay("t/r/1")))
            poison = asyncio.ensure_future(store._writer.ask(broken))
            after = asyncio.ensure_future(store.claim(pay("t/r/2")))
            await asyncio.sleep(0)
        answers: tuple[Any, ...] = await asyncio.gather(before, poison, after, return_exceptions=True)
        first, failure, second = answers
        assert isinstance(first, Claimed)
        assert isinstance(second, Claimed)
        assert isinstance(failure, OperationStoreError)
        assert "SQLITE_CONSTRAINT" in str(failure)
        await store.complete(first.token, RESULT)
        assert await completed(store, pay("t/r/1")) == RESULT


async def test_a_fault_of_our_own_leaves_nobody_waiting(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong in the thread is told to all who wait, and the next ones are served."""
    async with SqliteOperationStore(path) as store:
        with monkeypatch.context() as patch:
            patch.setattr(Database, "transact", lambda _self, _work: 1 / 0)
            with pytest.raises(OperationStoreError, match="ZeroDivisionError"):
                await store.claim(pay())
        await granted(store, pay())


async def test_the_loop_is_never_blocked(path: Path) -> None:
    """Neither opening, claiming, completing, listing nor closing waits in the loop's thread."""
    with blockbuster_ctx():
        async with SqliteOperationStore(path) as store:
            claim = await granted(store, pay())
            await store.complete(claim.token, RESULT)
            await store.unresolved()
            await store.purge(0.0)


async def test_a_lock_that_another_holds_does_not_block_the_loop(path: Path) -> None:
    """While the thread waits for the lock, the loop goes round."""
    async with SqliteOperationStore(path) as store:
        with locked(path):
            asked = asyncio.ensure_future(store.claim(pay()))
            for _ in range(1000):
                await asyncio.sleep(0)
            assert not asked.done()
        assert isinstance(await asked, Claimed)


async def test_a_cancelled_claim_passes_at_once_and_is_given_back(path: Path) -> None:
    """Its caller does not wait for the disk, and nobody finds the operation unknown later, as nothing was run."""
    async with SqliteOperationStore(path) as store:
        with locked(path):
            asked = asyncio.ensure_future(store.claim(pay()))
            await asyncio.sleep(0)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
        await granted(store, pay())


async def test_a_claim_that_is_cancelled_once_it_is_answered_is_given_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is in its future, but the waiter is cancelled before it has seen it."""
    settle = _writer._settle
    async with SqliteOperationStore(path) as store:
        asked = asyncio.ensure_future(store.claim(pay()))

        def settled_too_late(answers: Any) -> None:
            settle(answers)
            assert isinstance(answers[0][0].result(), Claimed)
            asked.cancel()

        with monkeypatch.context() as patch:
            patch.setattr(_writer, "_settle", settled_too_late)
            with pytest.raises(asyncio.CancelledError):
                await asked
        await granted(store, pay())


async def test_a_cancelled_completion_is_carried_out(path: Path) -> None:
    """The caller's cancellation passes at once, and the result is saved all the same."""
    async with SqliteOperationStore(path) as store:
        claim = await granted(store, pay())
        with locked(path):
            asked = asyncio.ensure_future(store.complete(claim.token, RESULT))
            await asyncio.sleep(0)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
        assert await completed(store, pay()) == RESULT


async def test_a_cancelled_takeover_leaves_the_operation_unknown(path: Path) -> None:
    """The one that was taken over may have had an effect, so it must not be free."""
    async with SqliteOperationStore(path) as store:
        await granted(store, pay(replay="safe"))
        before = await unknown(store, pay(replay="safe"))
        with locked(path):
            asked = asyncio.ensure_future(store.claim(pay(replay="safe"), taking_over=before.claim))
            await asyncio.sleep(0)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
        after = await unknown(store, pay(replay="safe"))
        assert after.attempt == 2
        await granted(store, pay(replay="safe"), taking_over=after.claim)


async def test_many_cancelled_claims_leave_nothing_behind(path: Path) -> None:
    """Five hundred claims, cancelled at any moment: what is stored is exactly what was kept."""
    async with SqliteOperationStore(path) as store:
        kept = set()
        for start in range(0, 500, 50):
            tasks = [asyncio.ensure_future(store.claim(pay(f"t/r/{start + number}"))) for number in range(50)]
            for number, task in enumerate(tasks):
                for _ in range(number % 7):
                    await asyncio.sleep(0)
                task.cancel()
            await asyncio.wait(tasks)
            kept |= {start + number for number, task in enumerate(tasks) if not task.cancelled()}
        assert {record.id for record in await store.unresolved()} == {f"t/r/{number}" for number in kept}


def test_a_loop_that_is_closed_gives_its_claim_back(path: Path) -> None:
    """A claim whose loop ended before the answer came is not left unknown."""

    async def leave(store: SqliteOperationStore) -> None:
        await store.claim(pay())

    loop = asyncio.new_event_loop()
    store = SqliteOperationStore(path)
    loop.run_until_complete(store.__aenter__())
    with locked(path):
        coroutine = leave(store)
        task = loop.create_task(coroutine)
        loop.run_until_complete(asyncio.sleep(0))
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # that it is, is what this is about
        loop.close()
        del task
        coroutine.close()
        gc.collect()

    async def look() -> None:
        await granted(store, pay())
        await store.aclose()

    asyncio.run(look())


def test_one_store_serves_several_loops_in_several_threads(path: Path) -> None:
    """Each caller is answered in its own loop, and each operation is granted once."""
    store = SqliteOperationStore(path)
    answers: list[object] = []

    async def ask() -> None:
        answers.extend(await asyncio.gather(*(store.claim(pay(f"t/r/{number}")) for number in range(100))))

    workers = [threading.Thread(target=asyncio.run, args=(ask(),)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sum(isinstance(answer, Claimed) for answer in answers) == 100
    assert len(answers) == 400
    asyncio.run(store.aclose())
    assert threads() == []


async def test_closing_ends_the_thread_and_folds_the_log_back(path: Path) -> None:
    """After it there is one file, and no thread; a store that was never used has none to end."""
    async with SqliteOperationStore(path, exclusive=True) as store:
        await granted(store, pay())
        assert len(threads()) == 1
    assert threads() == []
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    unused = SqliteOperationStore(path)
    await unused.aclose()
    with pytest.raises(OperationStoreClosedError, match="was closed"):
        await unused.claim(pay())
    assert threads() == []


async def test_closing_does_what_was_asked_first(path: Path) -> None:
    """Claims and completions in the queue are carried out; a cancelled closing goes on."""
    store = SqliteOperationStore(path)
    claim = await granted(store, pay("t/r/0"))
    with locked(path):
        asked: list[asyncio.Future[Any]] = [
            asyncio.ensure_future(store.claim(pay(f"t/r/{number}"))) for number in range(1, 300)
        ]
        asked.append(asyncio.ensure_future(store.complete(claim.token, RESULT)))
        await asyncio.sleep(0)
        end = asyncio.ensure_future(store.aclose())
        await asyncio.sleep(0)
        end.cancel()
        with pytest.raises(asyncio.CancelledError):
            await end
    answers = await asyncio.gather(*asked)
    assert all(isinstance(answer, Claimed) for answer in answers[:-1])
    await store.aclose()
    async with SqliteOperationStore(path) as store:
        assert await completed(store, pay("t/r/0")) == RESULT
        assert len(await store.unresolved()) == 299


async def test_a_claim_that_is_cancelled_while_the_store_closes_is_given_back(path: Path) -> None:
    """Closing refuses new work, but not what undoes old work."""
    store = SqliteOperationStore(path)
    await store.__aenter__()
    with locked(path):
        asked = asyncio.ensure_future(store.claim(pay()))
        await asyncio.sleep(0)
        end = asyncio.ensure_future(store.aclose())
        await asyncio.sleep(0)
        asked.cancel()
        await asyncio.wait([asked])
        assert asked.cancelled()
    await end
    async with SqliteOperationStore(path) as store:
        await granted(store, pay())


async def test_a_store_that_nobody_closed_says_so_and_ends(path: Path) -> None:
    """Its thread does not live on for nobody."""
    store = SqliteOperationStore(path)
    await granted(store, pay())
    thread = threads()[0]
    with pytest.warns(ResourceWarning, match="never closed"):
        del store
    gc.collect()
    await asyncio.get_running_loop().run_in_executor(None, thread.join, 20)
    assert not thread.is_alive()


async def test_a_store_that_can_t_be_entered_leaves_no_thread(tmp_path: Path) -> None:
    """What `async with` has not entered, it does not leave."""
    with pytest.raises(OperationStoreError):
        async with SqliteOperationStore(tmp_path / "missing" / "operations.db"):
            raise AssertionError("it was entered")
    for thread in threads():
        await asyncio.get_running_loop().run_in_executor(None, thread.join, 20)
    assert threads() == []


async def test_what_comes_in_one_group_is_in_order(path: Path) -> None:
    """A claim, its completion and a second claim of it, all in the queue at one time, are done in that order."""
    async with SqliteOperationStore(path) as store:
        claim = await granted(store, pay())
        steps: list[Callable[[], Any]] = [
            partial(store.claim, pay()),
            partial(store.complete, claim.token, RESULT),
            partial(store.claim, pay()),
        ]
        with locked(path):
            asked = [asyncio.ensure_future(step()) for step in steps]
            await asyncio.sleep(0)
        first, _, last = await asyncio.gather(*asked)
        assert (type(first).__name__, type(last).__name__) == ("Unknown", "Completed")
