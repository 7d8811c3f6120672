"""Threads for synchronous tools: ours, daemon, bounded, each job once or never (B5, B9)."""

import threading
from collections.abc import Callable

import pytest

from tests.batch.clock import turned
from tests.batch.kit import Hung, calls, code, content, instant, message
from tests.batch.stages import Around, passes
from toolbatch import ToolBatch
from toolbatch.batch import _threads
from toolbatch.batch._threads import Job, WorkerThreads


def run_and_wait(pool: WorkerThreads, count: int = 1) -> None:
    """Run jobs and wait until all have ended."""
    done = threading.Semaphore(0)
    for _ in range(count):
        pool.submit(Job(done.release))
    for _ in range(count):
        assert done.acquire(timeout=20)


def settled(pool: WorkerThreads, predicate: Callable[[dict[str, int]], bool]) -> dict[str, int]:
    """Wait until the pool's counts are as expected, woken by the pool's own condition."""
    with pool._changed:
        for _ in range(2000):
            if predicate(pool.counts):
                break
            pool._changed.wait(0.005)
    return pool.counts


def test_a_job_is_run_once_or_withdrawn() -> None:
    """Whoever takes the ticket decides: a withdrawn job never runs, one that ran can't be withdrawn (B5)."""
    ran: list[int] = []
    job = Job(lambda: ran.append(1))
    assert job.withdraw()
    assert job.withdraw(), "withdrawing again says so again"
    job.run_once()
    assert ran == []
    other = Job(lambda: ran.append(2))
    other.run_once()
    other.run_once()
    assert ran == [2]
    assert not other.withdraw()
    assert not other.is_withdrawn


def test_withdrawing_races_with_entering() -> None:
    """Of many races between a worker and the owner, each has exactly one winner (B5)."""
    pool = WorkerThreads(max_threads=4)
    for _ in range(300):
        entered = threading.Event()
        job = Job(entered.set)
        pool.submit(job)
        if not job.withdraw():
            assert entered.wait(20)
        else:
            assert not entered.is_set()


def test_a_restored_job_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job whose withdrawal is undone runs after all, once (state unchanged)."""
    pool, hung, ran = WorkerThreads(max_threads=1), Hung(), threading.Semaphore(0)
    monkeypatch.setattr(_threads, "workers", pool)
    pool.submit(Job(hung))
    hung.wait_entered()
    job = Job(ran.release)
    pool.submit(job)
    assert job.withdraw()
    job.restore()
    assert not job.is_withdrawn
    hung.release.set()
    assert ran.acquire(timeout=20)
    run_and_wait(pool)
    assert not ran.acquire(blocking=False)


def test_threads_are_daemons_and_bounded() -> None:
    """No more threads than the bound serve at once; the rest waits its turn (B9)."""
    pool = WorkerThreads(max_threads=3)
    hung = [Hung() for _ in range(5)]
    for each in hung:
        pool.submit(Job(each))
    for each in hung[:3]:
        each.wait_entered()
    assert pool.counts == {"serving": 3, "idle": 0, "let_go": 0}
    assert not hung[3].entered.is_set()
    ours = [thread for thread in threading.enumerate() if thread.name == "toolbatch-tool"]
    assert ours
    assert all(thread.daemon for thread in ours)
    hung[0].release.set()
    hung[3].wait_entered()
    for each in hung:
        each.release.set()
    hung[4].wait_entered()
    assert settled(pool, lambda counts: counts["idle"] == 3) == {"serving": 3, "idle": 3, "let_go": 0}


def test_an_idle_thread_is_used_again() -> None:
    """A second job takes the idle thread and makes no new one (B9)."""
    pool = WorkerThreads(max_threads=10)
    for _ in range(5):
        run_and_wait(pool)
        settled(pool, lambda counts: counts["idle"] == 1)
    assert pool.counts == {"serving": 1, "idle": 1, "let_go": 0}


def test_idle_threads_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that has had nothing to do for a while ends (B9)."""
    monkeypatch.setattr(_threads, "_IDLE_SECONDS", 0.01)
    pool = WorkerThreads()
    run_and_wait(pool, 3)
    assert settled(pool, lambda counts: counts["serving"] == 0) == {"serving": 0, "idle": 0, "let_go": 0}
    run_and_wait(pool)


def test_a_hung_thread_that_was_let_go_frees_its_place() -> None:
    """One hung job does not block the next; it is counted until it ends, and its thread ends with it (B9)."""
    pool, hung = WorkerThreads(max_threads=1), Hung()
    job = Job(hung)
    pool.submit(job)
    hung.wait_entered()
    ran = threading.Event()
    pool.submit(Job(ran.set))
    assert not ran.wait(0.02)
    pool.let_go(job)
    pool.let_go(job)
    assert pool.counts["let_go"] == 1
    assert ran.wait(20)
    hung.release.set()
    assert settled(pool, lambda counts: counts["let_go"] == 0)["let_go"] == 0
    assert settled(pool, lambda counts: counts["idle"] == 1) == {"serving": 1, "idle": 1, "let_go": 0}


def test_letting_go_is_bounded() -> None:
    """A thousand hung tools do not make a thousand threads (B9)."""
    pool = WorkerThreads(max_threads=1, max_let_go=2)
    hung = [Hung() for _ in range(4)]
    jobs = [Job(each) for each in hung]
    for job, each in zip(jobs[:3], hung[:3], strict=True):
        pool.submit(job)
        each.wait_entered()
        pool.let_go(job)
    pool.submit(jobs[3])
    assert pool.counts == {"serving": 1, "idle": 0, "let_go": 2}
    assert not hung[3].entered.wait(0.02)
    for each in hung:
        each.release.set()
    hung[3].wait_entered()


def test_letting_a_job_go_that_has_just_ended() -> None:
    """A job that ended before it was let go is not counted as hung, for ever or at all (B9)."""
    pool = WorkerThreads(max_threads=2)
    ended = threading.Event()
    job = Job(ended.set)
    pool.submit(job)
    assert ended.wait(20)
    settled(pool, lambda counts: counts["idle"] == 1)
    pool.let_go(job)
    run_and_wait(pool)
    assert settled(pool, lambda counts: counts["idle"] == counts["serving"])["let_go"] == 0
    assert pool.counts["serving"] >= 1


def test_after_a_fork_there_are_no_threads() -> None:
    """A forked child has none of its parent's threads, and makes its own (B9)."""
    pool = WorkerThreads()
    run_and_wait(pool)
    pool.forget()
    assert pool.counts == {"serving": 0, "idle": 0, "let_go": 0}
    run_and_wait(pool)


class NoThreads:
    """Stands in for `threading.Thread` where the system has no more."""

    def __init__(self, **_: object) -> None:
        pass

    def start(self) -> None:
        raise RuntimeError("can't start new thread")


def test_a_thread_that_cant_be_made_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the system has no thread left, the job is refused, and the pool is as it was (B9)."""
    pool, ran = WorkerThreads(max_threads=1), threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(threading, "Thread", NoThreads)
        with pytest.raises(RuntimeError, match="new thread"):
            pool.submit(Job(ran.set))
    assert pool.counts == {"serving": 0, "idle": 0, "let_go": 0}
    run_and_wait(pool)
    assert not ran.is_set()


@turned
async def test_a_call_whose_thread_cant_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that gets no thread is answered as an error, at its start or in its turn, and its siblings run (B4, B9)."""
    pool = WorkerThreads(max_threads=1)
    monkeypatch.setattr(_threads, "workers", pool)
    monkeypatch.setattr("toolbatch.batch._crew.workers", pool)
    monkeypatch.setattr(threading, "Thread", NoThreads)
    async with ToolBatch(calls("a", "b", "c"), timeout=50, max_concurrency=1) as batch:
        batch.start("b", instant)
        batch.start("a", lambda: "never")
        batch.start("c", instant)
        snapshot = await batch.snapshot()
    assert [code(snapshot, call_id) for call_id in "abc"] == ["tool_error", "success", "success"]


async def test_a_hundred_sync_tools(nothing_left: None) -> None:
    """More synchronous tools than there are threads all get their turn (B1, B9)."""
    ids = [f"c{n}" for n in range(100)]
    async with ToolBatch(calls(*ids)) as batch:
        for call_id in ids:
            batch.start(call_id, str.upper, call_id)
        snapshot = await batch.snapshot()
    assert [content(snapshot, call_id) for call_id in ids] == [f"C{n}" for n in range(100)]


@turned
async def test_a_guided_call_whose_thread_cant_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """With policies around it such a call is the same error, they see it, and nothing of it is late (B4, T6)."""
    pool = WorkerThreads(max_threads=1)
    monkeypatch.setattr("toolbatch.batch._crew.workers", pool)
    monkeypatch.setattr(threading, "Thread", NoThreads)
    async with ToolBatch(calls("a"), timeout=50, interceptors=[Around(passes)]) as batch:
        batch.start("a", lambda: "never")
        snapshot = await batch.snapshot()
    assert code(snapshot, "a") == "tool_error"
    assert "new thread" in message(snapshot, "a")
    assert batch.audit.drain() == []


def test_a_restored_job_gives_its_place_to_others_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that is in the queue twice, since its withdrawal was undone, is let go and counted as one (B9)."""
    pool, busy, hung = WorkerThreads(max_threads=1), Hung(), Hung()
    monkeypatch.setattr(_threads, "workers", pool)
    pool.submit(Job(busy))
    busy.wait_entered()
    job = Job(hung)
    pool.submit(job)
    assert job.withdraw()
    job.restore()
    busy.release.set()
    hung.wait_entered()
    pool.let_go(job)
    run_and_wait(pool)
    hung.release.set()
    expected = {"serving": 1, "idle": 1, "let_go": 0}
    assert settled(pool, lambda counts: counts == expected) == expected


def test_a_job_that_was_passed_over_can_be_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that has found a job withdrawn says nothing of its later run, which may hang (B9)."""
    pool, hung = WorkerThreads(max_threads=1), Hung()
    monkeypatch.setattr(_threads, "workers", pool)
    job = Job(hung)
    assert job.withdraw()
    pool.submit(job)
    run_and_wait(pool)
    job.restore()
    hung.wait_entered()
    pool.let_go(job)
    run_and_wait(pool)
    assert pool.counts["let_go"] == 1
    hung.release.set()
