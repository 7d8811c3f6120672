"""Group commit: one thread writes, and what is asked for while one transaction is being synced makes up the next.

One caller waits for one sync, as it would alone; 64 callers share one. There is no timer: the sync itself is the time in
which a group gathers. The queue has no bound of its own, since each of its callers waits for the answer.
"""

import asyncio
import os
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple

from toolbatch.ports import OperationStoreClosedError, OperationStoreError

from ._complaints import complaint, primary_code
from ._database import Database, MovedError, Place, UnsuitableError, identity_of
from ._store import answered

__all__ = ["Writer"]

Job = Callable[[Database], Any]
"""One step of a transaction. It raises before it writes, or not at all."""

_MOST_AT_ONCE: Final = 256


class _Request(NamedTuple):
    job: Job
    future: "asyncio.Future[Any] | None"  # None where nobody waits for the answer


class _Answer(NamedTuple):
    value: Any
    error: BaseException | None


class _Files:
    """Which files this process has open, and which ones its parent had when it forked.

    A forked child must leave those alone: SQLite's notes on the parent's locks were copied with the memory, and a new
    connection would trust in locks that the child does not have.
    """

    def __init__(self) -> None:
        self.open: dict[Writer, str] = {}
        self.inherited: frozenset[str] = frozenset()

    def after_fork(self) -> None:
        self.inherited |= frozenset(self.open.values())
        self.open.clear()


_files = _Files()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_files.after_fork)


class Writer:
    """The thread, its connection and its queue. It starts with the first request, and may be used from any thread and loop.

    Args:
        place: The file.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._queue: SimpleQueue[_Request | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closing = False  # no new request is taken, but what undoes an earlier one
        self._ended = False  # nothing is taken: the thread does nothing more but close the file
        self._closers: list[asyncio.Future[None]] = []
        self._identity: tuple[int, int] | None = None  # of the file, once it was open: no other is taken for it

    @property
    def path(self) -> str:
        """The file."""
        return self._place.path

    @property
    def is_running(self) -> bool:
        """Whether there is a thread that nobody has asked to end."""
        return self._thread is not None and not self._closing and self._pid == os.getpid()

    async def ask(self, job: Job, undo: Job | None = None) -> Any:
        """Have a job done, and return what it returned once that is on disk.

        Args:
            job: The step.
            undo: What to do after it if the caller leaves without an answer.

        Raises:
            OperationStoreError: It could not be done, or the writer is closed.
            Exception: Whatever the job raised.
        """
        return await answered(
            lambda future: self._submit(_Request(job, future)),
            None if undo is None else lambda: self._submit(_Request(undo, None)),
        )

    def close(self) -> None:
        """Do what is in the queue, close the file, and end the thread; don't wait for it."""
        with self._lock:
            if not self._closing:
                self._closing = True
                self._ended = self._thread is None
                self._queue.put(None)

    async def aclose(self) -> None:
        """Do the same, and wait for it. Cancelled, it goes on without the caller."""
        if self._pid != os.getpid():
            return
        self.close()
        if self._thread is None:
            return
        closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._closers.append(closed)
        if self._thread.is_alive():
            await closed
        while self._thread.is_alive():  # noqa: ASYNC110  a thread has nothing left to set an event with at its very end
            await asyncio.sleep(0)

    def _submit(self, request: _Request) -> None:
        if self._pid != os.getpid():  # looked at before the lock, which may have been held at the fork
            raise OperationStoreClosedError(
                f"the store of {self._place.path!r} belongs to process {self._pid}, from which this one was forked. "
                "Make one after the fork, or start workers with spawn; nothing was stored"
            )
        with self._lock:
            if self._ended or (self._closing and request.future is not None):
                raise OperationStoreClosedError(f"the store of {self._place.path!r} was closed; nothing was stored")
            if self._thread is None:
                # A daemon: a store that nobody closed must not keep the process from ending. A kill loses nothing either.
                self._thread = threading.Thread(target=self._serve, name="toolbatch-operations", daemon=True)
                self._thread.start()
            self._queue.put(request)

    # -- in the thread -------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        # The connection is never kept anywhere but in the frames of this thread: a forked child, which has no such thread,
        # can then neither use nor close it.
        database: Database | None = None
        while not self._ended:
            group = self._gather()
            database = self._carry_out(database, group) if group else database
            with self._lock:
                self._ended = self._closing and self._queue.empty()
        self._discard(database)
        with self._lock:
            closers, self._closers = self._closers, []
        _deliver([(closer, _Answer(None, None)) for closer in closers])

    def _gather(self) -> list[_Request]:
        group: list[_Request] = []
        while len(group) < _MOST_AT_ONCE:
            try:
                request = self._queue.get(block=not group and not self._closing)
            except Empty:
                break
            if request is not None:
                group.append(request)
        return group

    def _carry_out(self, database: Database | None, group: Sequence[_Request]) -> Database | None:
        """Do a group's jobs in one transaction, answer them, and return the connection if it can be used again."""
        was_open = database is not None
        try:
            database = database or self._open()
            answers = database.transact(partial(_answers, group))
        except Exception as error:  # noqa: BLE001  whatever it is, nobody may wait for ever
            if not (isinstance(error, sqlite3.Error) and primary_code(error) in _HARMLESS):
                self._discard(database)
                database = None
            if was_open and type(error) is UnsuitableError:
                return self._carry_out(None, group)  # the file was put into another mode: open it anew, in ours
            if len(group) > 1 and isinstance(error, sqlite3.Error) and primary_code(error) not in _FOR_ALL:
                for request in group:  # perhaps only one of them is to blame
                    database = self._carry_out(database, [request])
                return database
            answers = [_Answer(None, OperationStoreError(self._explain(error))) for _ in group]
        _deliver([(request.future, answer) for request, answer in zip(group, answers, strict=True)])
        return database

    def _open(self) -> Database:
        place = self._place._replace(path=os.path.realpath(self._place.path))
        if place.path in _files.inherited:
            raise UnsuitableError(
                "was open in the process from which this one was forked, and so can't be opened here. Open it after the "
                "fork only, or start workers with spawn"
            )
        if self._identity not in (None, identity_of(place.path)):
            raise MovedError
        _files.open[self] = place.path  # before it is opened: a fork may come at any moment
        try:
            database = Database(place)
        except BaseException:
            del _files.open[self]
            raise
        self._identity = database.identity
        return database

    def _discard(self, database: Database | None) -> None:
        if database is not None:
            database.close()
            _files.open.pop(self, None)

    def _explain(self, error: Exception) -> str:
        if isinstance(error, UnsuitableError):
            return f"the operations file {self._place.path!r} {error}. What was asked for is not done"
        if isinstance(error, sqlite3.Error):
            return complaint(self._place.path, error)
        return f"the operations file {self._place.path!r} could not be used, by a fault of toolbatch's own: {error!r}"


_HARMLESS: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL})
"""Errors after which a connection is as good as before."""

_FOR_ALL: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_IOERR,
    }
)
"""Errors that are no single job's fault."""


def _answers(group: Sequence[_Request], database: Database) -> list[_Answer]:
    answers = []
    for request in group:
        try:
            answers.append(_Answer(request.job(database), None))
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001  a refusal is its caller's alone: the others' jobs stand
            answers.append(_Answer(None, error))
    return answers


def _deliver(answers: "Sequence[tuple[asyncio.Future[Any] | None, _Answer]]") -> None:
    """Answer with one call into each loop, however many wait there."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], _Answer]]] = defaultdict(list)
    for future, answer in answers:
        if future is not None:
            by_loop[future.get_loop()].append((future, answer))
    for loop, its_answers in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed: nobody waits there any more
            loop.call_soon_threadsafe(_settle, its_answers)


def _settle(answers: "Sequence[tuple[asyncio.Future[Any], _Answer]]") -> None:
    for future, answer in answers:
        if future.done():  # cancelled
            continue
        if answer.error is None:
            future.set_result(answer.value)
        else:
            future.set_exception(answer.error)
