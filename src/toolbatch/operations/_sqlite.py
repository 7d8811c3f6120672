"""The embedded default: claims in one SQLite file, durable, with no server (D3)."""

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Self, TypeVar, cast, final

from toolbatch.core import InvalidInputError, InvalidTypeError, preview
from toolbatch.ports import OperationRecord

from ._database import Database, Place
from ._store import Step, Store
from ._writer import Writer

__all__ = ["SqliteOperationStore", "nothing", "writer_of"]

T = TypeVar("T")


@final
class SqliteOperationStore(Store):
    """Keeps claims in an SQLite file: each is synced to the disk before it is told, as is each result.

    What many callers ask for at one time is synced together by one thread, so the event loop never waits for the disk. One
    store may be used from several event loops and threads; several stores, in one or many processes, may share a file. For
    more than about four busy processes a server's store is the better one.

    The file is to be on a local disk, neither on a network file system nor in memory. Beside it SQLite makes others
    (`-journal`, or `-wal` and `-shm`): copy all or none, and better by SQLite's backup. This process must not open the file
    by itself, not even to read or copy it, since closing it would drop SQLite's locks. A forked child can't use a store of
    its parent's, nor open the same file: open it after the fork.

    Args:
        path: The file. It is made if it is missing; its folder is not.
        exclusive: Keep all other connections out, and so always use the faster write-ahead log. SQLite versions that have
            the WAL-reset bug (up to 3.51.2, but for 3.50.7 and 3.44.6) use a rollback journal for a file that is shared.
        lock_timeout: Seconds to wait for another process's lock before `OperationStoreError`.
        now: The host's clock, in seconds since the epoch.
        owner: What claims say of their claimant; `None` for this process's name.

    Raises:
        InvalidTypeError: `path` is not a path, or `lock_timeout` not a number.
        InvalidInputError: `path` is empty or `:memory:`, or `lock_timeout` is negative or not finite.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        exclusive: bool = False,
        lock_timeout: float = 5.0,
        now: Callable[[], float] = time.time,
        owner: str | None = None,
    ) -> None:
        super().__init__(now=now, owner=owner)
        self._writer = writer_of(path, exclusive=exclusive, lock_timeout=lock_timeout)

    async def aclose(self) -> None:
        """Do what was asked for, close the file, and end the thread. Cancelled, that goes on without the caller."""
        await self._writer.aclose()

    async def __aenter__(self) -> Self:
        """Open the file, and make or migrate its tables; a store that can't be opened is closed."""
        try:
            await self._writer.ask(nothing)
        except BaseException:
            self._writer.close()
            raise
        return self

    async def _apply(self, operation_id: str, step: Step[T], *, undo: Step[None] | None = None) -> T:
        del operation_id
        return cast("T", await self._writer.ask(step, undo))

    async def _unresolved(self, prefix: str, claimed_before: float | None, limit: int) -> tuple[OperationRecord, ...]:
        rows = await self._writer.ask(
            partial(Database.unresolved, prefix=prefix, claimed_before=claimed_before, limit=limit)
        )
        return tuple(row.record() for row in rows)

    async def _purge(self, after: str, completed: float, unknown: float, most: int) -> tuple[int, str | None]:
        step = partial(Database.purge, after=after, completed=completed, unknown=unknown, most=most)
        return cast("tuple[int, str | None]", await self._writer.ask(step))

    def __del__(self) -> None:
        writer: Writer | None = getattr(self, "_writer", None)  # None where the constructor raised
        if writer is not None and writer.is_running and not sys.is_finalizing():
            writer.close()  # first, since a warning may be an error
            warnings.warn(f"{self!r} was never closed; use `async with` or aclose()", ResourceWarning, stacklevel=2)

    def __repr__(self) -> str:
        return f"<SqliteOperationStore of {self._writer.path!r}>"


def writer_of(
    place: "str | os.PathLike[str] | SqliteOperationStore", *, exclusive: bool, lock_timeout: float
) -> Writer:
    """Return a writer of a file, or that of a store.

    Raises:
        InvalidTypeError: `place` is not a path, or `lock_timeout` not a number.
        InvalidInputError: `place` is empty or `:memory:`, or `lock_timeout` is negative or not finite.
    """
    if isinstance(place, SqliteOperationStore):
        return place._writer
    if isinstance(lock_timeout, bool) or not isinstance(lock_timeout, int | float):
        raise InvalidTypeError(f"lock_timeout must be a number of seconds, not {preview(lock_timeout)}")
    if not 0 <= lock_timeout <= threading.TIMEOUT_MAX:
        raise InvalidInputError(f"lock_timeout must be at least 0 and finite, not {preview(lock_timeout)}")
    return Writer(Place(_absolute(place), exclusive, lock_timeout))


def _absolute(path: object) -> str:
    """Return the path as it is from any folder; its links are resolved in the thread, since that asks the disk."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidTypeError(f"path must be a str or a path, not {preview(path)}")
    text = os.fspath(path)
    if not isinstance(text, str):
        raise InvalidTypeError(f"path must be text, not {preview(path)}")
    if not text.strip() or text == ":memory:" or "\0" in text:
        raise InvalidInputError(f"path must name a file, not {preview(path)}; MemoryOperationStore needs none")
    place = Path(text)
    return str(place if place.is_absolute() else Path.cwd() / place)


def nothing(database: Database) -> None:
    """Do nothing, with an open file."""
