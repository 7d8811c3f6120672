"""One connection to an SQLite file of operations, for one thread: how it is opened, locked and written.

What was measured, and is kept to here: `synchronous=EXTRA` is set before the journal mode, since the creation of the file could
otherwise be undone by a power cut; a writing transaction begins with `BEGIN IMMEDIATE`, since one that only becomes a writer is
refused at once where another process has written; every statement is finished before the next, since SQLite commits when the
last one ends.
"""

import os
import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

from ._complaints import is_busy, primary_code
from ._rules import Row
from ._schema import APPLICATION_ID, MIGRATIONS, VERSION

__all__ = ["Database", "MovedError", "Place", "UnsuitableError", "identity_of", "may_share_wal"]

T = TypeVar("T")

_COLUMNS: Final = ", ".join(Row._fields)
_GET: Final = f"SELECT {_COLUMNS} FROM operation WHERE id = ?"  # noqa: S608  names of our own
_ADD: Final = (
    f"INSERT INTO operation ({_COLUMNS}) VALUES ({', '.join('?' * len(Row._fields))}) ON CONFLICT (id) DO NOTHING"  # noqa: S608
)
_UPDATE: Final = (
    "UPDATE operation SET claim = ?, secret = ?, owner = ?, attempt = ?, claimed_at = ?, completed_at = ?, completed_by = ?, "
    "result = ? WHERE id = ?"
)
_OPEN: Final = (
    f"SELECT {_COLUMNS} FROM operation WHERE completed_at IS NULL AND claimed_at < ? AND substr(id, 1, ?) = ? "  # noqa: S608
    "ORDER BY claimed_at, id LIMIT ?"
)
_WALK: Final = "SELECT id, claimed_at, completed_at FROM operation WHERE id > ? ORDER BY id LIMIT ?"

_SETTINGS: Final = (
    "PRAGMA synchronous = EXTRA",
    "PRAGMA fullfsync = ON",  # on macOS a plain fsync does not reach the disk; elsewhere these two do nothing
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA mmap_size = 0",  # an I/O error in mapped memory is a signal instead of an answer
    "PRAGMA trusted_schema = OFF",
    "PRAGMA journal_size_limit = 67108864",
)


class UnsuitableError(Exception):
    """The file, or this SQLite, can't serve as asked; the message says why, in words for the host."""


class MovedError(UnsuitableError):
    """The file was removed or replaced while it was open: what is written now would be lost."""

    def __init__(self) -> None:
        super().__init__(
            "was removed or replaced while it was open. What was saved is in the file that is gone. Stop what has effects, put "
            "that file back, and open it again"
        )


class Place(NamedTuple):
    """Where a file is, and how it is opened.

    Attributes:
        path: Absolute.
        exclusive: Whether this connection keeps all others out.
        lock_timeout: Seconds to wait for another connection's lock.
    """

    path: str
    exclusive: bool
    lock_timeout: float


def may_share_wal(version: Sequence[int] = sqlite3.sqlite_version_info) -> bool:
    """Return whether this SQLite may share a file in WAL mode.

    Versions from 3.7.0 to 3.51.2 can damage such a file when two connections write and checkpoint it at one instant (the
    "WAL-reset bug"); 3.51.3, 3.50.7 and 3.44.6 are corrected.
    """
    at = tuple(version)
    return at >= (3, 51, 3) or (3, 50, 7) <= at < (3, 51) or (3, 44, 6) <= at < (3, 45)


class Database:
    """The connection. It is the writer thread's alone: a forked child must neither use nor close what it inherits.

    Attributes:
        identity: Which file it is.

    Args:
        place: Where, and how.

    Raises:
        UnsuitableError: The file is not ours, is of a newer toolbatch, or can't be shared.
        sqlite3.Error: It can't be opened.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._connection = sqlite3.connect(place.path, timeout=0, isolation_level=None)
        try:
            self._set_up()
        except BaseException:
            self.close()
            raise

    def transact(self, work: Callable[["Database"], T]) -> T:
        """Do work in one transaction, on disk when this returns; what it raises undoes it.

        Raises:
            MovedError: The file is not where it was.
            UnsuitableError: Another process has put it into a mode that this SQLite can't share.
            sqlite3.Error: It can't be read or written.
        """
        try:
            self.execute("BEGIN IMMEDIATE")
            self._require_place()
            self._require_mode()
            result = work(self)
            self.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):  # a connection that can't go back is given up by its owner
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                self._require_place()  # a missing file has many names among SQLite's errors
            raise
        return result

    def close(self) -> None:
        """Fold the log back into the file and let it go."""
        with suppress(sqlite3.Error):  # the log is folded back when the file is next opened
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        with suppress(sqlite3.Error):
            self._connection.close()

    def get(self, operation_id: str) -> Row | None:
        """Return the row of that id."""
        found = self.execute(_GET, (operation_id,))
        return Row(*found[0]) if found else None

    def add(self, row: Row) -> Row | None:
        """Add a row, or return the one that its id has already."""
        added = self._connection.execute(_ADD, row).rowcount
        return None if added else self.get(row.id)

    def update(self, row: Row) -> None:
        """Replace what can change in the row of that id."""
        self.execute(_UPDATE, (*row[_CHANGING:], row.id))

    def delete(self, operation_id: str) -> None:
        """Take the row of that id away."""
        self.execute("DELETE FROM operation WHERE id = ?", (operation_id,))

    def unresolved(self, prefix: str, claimed_before: float | None, limit: int) -> list[Row]:
        """Return open claims, oldest first."""
        before = float("inf") if claimed_before is None else claimed_before
        return [Row(*found) for found in self.execute(_OPEN, (before, len(prefix), prefix, limit))]

    def purge(self, after: str, completed: float, unknown: float, most: int) -> tuple[int, str | None]:
        """Look at `most` rows behind an id, and delete those that are old."""
        walked = self.execute(_WALK, (after, most))
        old = [(i,) for i, claimed, done in walked if (claimed < unknown if done is None else done < completed)]
        self.execute_many("DELETE FROM operation WHERE id = ?", old)
        return len(old), str(walked[-1][0]) if len(walked) == most else None

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Execute a statement to its end, and again for as long as another connection's lock is in the way.

        SQLite's own waiting sleeps ever longer, up to 100 ms, and so lets the unlucky wait for seconds.
        """
        until = 0.0
        while True:
            try:
                return self._connection.execute(statement, values).fetchall()
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
                now = time.monotonic()
                until = until or now + self._place.lock_timeout
                if now >= until:
                    raise
            time.sleep(random.uniform(0.0002, 0.003))  # noqa: S311  no secret, only no common rhythm

    def execute_many(self, statement: str, values: Sequence[Sequence[object]]) -> None:
        """Execute a statement for each of these, within a transaction that writes."""
        self._connection.executemany(statement, values)

    def _pragma(self, text: str) -> Any:
        found = self.execute(f"PRAGMA {text}")
        return found[0][0] if found else None

    # -- opening -------------------------------------------------------------------------------------------------------

    def _set_up(self) -> None:
        if self._place.exclusive:  # before anything is read, so that no shared memory is made
            self._pragma("locking_mode = EXCLUSIVE")
        for setting in _SETTINGS:
            self.execute(setting)
        self._require_ours()
        self._set_journal_mode()
        self.identity = identity_of(self._place.path)
        if self._version() < VERSION or self._place.exclusive:  # the first transaction takes the lock that is then kept
            self.transact(Database._migrate)
        if self._mode == "wal":
            self._fold_back()

    def _fold_back(self) -> None:
        """Copy the log into the file: after a failed sync it may hold what is not on the disk, and is synced anew by that."""
        try:
            self.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            if primary_code(error) != sqlite3.SQLITE_FULL:  # it has synced the log first, and what is in it can be read
                raise

    def _require_ours(self) -> None:
        mark = self._pragma("application_id")
        if mark != APPLICATION_ID and self.execute("SELECT name FROM sqlite_master LIMIT 1"):
            raise UnsuitableError("holds another program's tables. Give operations a file of their own")
        version = self._version()
        if version > VERSION:
            raise UnsuitableError(
                f"was written by a newer toolbatch (its schema has version {version}, this one knows up to {VERSION}). "
                "Upgrade toolbatch here; the file was not changed"
            )

    def _set_journal_mode(self) -> None:
        """Choose the fastest journal that this SQLite may use on this file.

        A rollback journal that is kept (PERSIST) is a third as fast with one caller and half as fast with 64, and safe in
        every version.
        """
        self._mode = "wal" if self._place.exclusive or may_share_wal() else "persist"
        set_to = self._pragma(f"journal_mode = {self._mode}")
        if set_to != self._mode:
            raise UnsuitableError(
                f"can't have the journal mode {self._mode}, only {set_to}: its file system lacks shared memory or locks, as "
                "network file systems do. Put it on a local disk"
            )

    def _version(self) -> int:
        return int(self._pragma("user_version"))

    def _migrate(self) -> None:
        steps = MIGRATIONS[self._version() :]  # read again within the transaction: another process may have been first
        for statement in chain.from_iterable(steps):
            self.execute(statement)
        if steps:
            self._pragma(f"application_id = {APPLICATION_ID}")
            self._pragma(f"user_version = {VERSION}")

    def _require_place(self) -> None:
        if identity_of(self._place.path) != self.identity:
            raise MovedError

    def _require_mode(self) -> None:
        if self._mode == "persist" and self._pragma("journal_mode") != "persist":
            raise UnsuitableError(
                "was put into WAL mode by another process, which SQLite "
                f"{sqlite3.sqlite_version} can't share without a risk of damage"
            )


_CHANGING: Final = Row._fields.index("claim")


def identity_of(path: str) -> tuple[int, int] | None:
    """Return what tells a file from another one of its name; `None` if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116  not opened: closing any descriptor of the file would drop SQLite's locks on it
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
