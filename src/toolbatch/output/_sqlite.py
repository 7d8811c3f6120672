"""A spill store in an SQLite file, which outlives the process and may be shared by many (G3).

Every operation opens the file and closes it again. That takes well under a millisecond, next to a save's wait for the disk, and leaves
nothing to be closed, nothing for a forked child to inherit, and no lock that is held between two operations.

The file has a rollback journal, not a write-ahead log: of two processes that write a log in one moment, most SQLite libraries in use
can corrupt it (ENGINES, B.4), and large texts would be written twice.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from time import time
from typing import Final, TypeVar, final

from toolbatch.core import InvalidInputError, InvalidTypeError, preview, sound
from toolbatch.ports import SpillRecord, SpillSlice

from ._aside import Aside
from ._locators import new_locator, require_range, require_save, require_size, retrieval

__all__ = ["SqliteSpillStore"]

T = TypeVar("T")

_CHUNK: Final = 1 << 16  # characters in a row: a slice of a long text reads only the rows that it needs
_BUSY_SECONDS: Final = 5.0

_SCHEMA: Final = """
PRAGMA auto_vacuum = FULL;
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS spill_text (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    locator TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    call_id TEXT NOT NULL,
    saved_at REAL NOT NULL,
    chars INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS spill_chunk (
    text_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    chunk BLOB NOT NULL,
    PRIMARY KEY (text_id, position)
);
COMMIT;
"""


@final
class SqliteSpillStore:
    """Keeps texts in an SQLite file, the newest ones, as `MemorySpillStore` keeps them in memory.

    What is saved is on disk before it is shown (`synchronous=FULL`), so a locator in a stored conversation still works after a
    restart, until newer texts have taken its place. Any number of processes may use one file; it must be on a local disk, and for
    nothing else. The event loop is never blocked: a thread of the store's own does the work, one operation after another. There is
    nothing to close. A child that was forked may go on using the store.

    The file grows to what is kept and shrinks again with it. The bounds are those of whoever saves, over the whole file.

    Args:
        path: The file; made where missing, its folder is not. `:memory:` is refused: that is `MemorySpillStore`.
        max_entries: Texts kept.
        max_chars: Characters kept, all texts together.
        scope: Whose texts these are, such as a conversation or a tenant. Only a store of the same scope reads them, whatever
            locator it is given; without a scope, the locator's 70 random bits are what keeps them apart.

    Raises:
        InvalidInputError: A bound is less than 1, or the path is no file's.
        InvalidTypeError: A value is of a wrong type.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        max_entries: int = 4096,
        max_chars: int = 1_000_000_000,
        scope: str = "",
    ) -> None:
        require_size(max_entries, "max_entries")
        require_size(max_chars, "max_chars")
        if not isinstance(scope, str):
            raise InvalidTypeError(f"scope must be a str, not {preview(scope)}")
        self._path = _file(path)
        self._max_entries = max_entries
        self._max_chars = max_chars
        self._scope = sound(scope)
        self._aside = Aside()

    async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
        """Save a text, as `SpillStore.save` promises.

        Raises:
            InvalidTypeError: A value is no text.
            sqlite3.Error: It could not be saved: the disk is full, the folder is missing, another process holds the file.
        """
        text = require_save(text, tool_name, call_id)
        locator = new_locator()
        await self._aside.run(lambda: self._save(locator, text, sound(tool_name), sound(call_id)))
        return SpillRecord(locator=locator, total_chars=len(text), retrieval=retrieval(locator))

    async def read(self, locator: str, *, offset: int, limit: int) -> SpillSlice | None:
        """Read a piece of a text, as `SpillStore.read` promises.

        Raises:
            InvalidInputError: `offset` is negative, or `limit` less than 1.
            InvalidTypeError: A value is of a wrong type.
            sqlite3.Error: The file can't be read now.
        """
        require_range(locator, offset, limit)
        return await self._aside.run(lambda: self._read(sound(locator), offset, limit))

    def _save(self, locator: str, text: str, tool_name: str, call_id: str) -> None:
        with self._transaction("IMMEDIATE") as connection:
            self._make_room(connection, len(text))
            row = (locator, self._scope, tool_name, call_id, time(), len(text))
            text_id = connection.execute(
                "INSERT INTO spill_text (locator, scope, tool_name, call_id, saved_at, chars) VALUES (?, ?, ?, ?, ?, ?)",
                row,
            ).lastrowid
            connection.executemany(
                "INSERT INTO spill_chunk (text_id, position, chunk) VALUES (?, ?, ?)",
                ((text_id, start, _bytes(text[start : start + _CHUNK])) for start in range(0, len(text), _CHUNK)),
            )

    def _make_room(self, connection: sqlite3.Connection, chars: int) -> None:
        rows = connection.execute("SELECT id, chars FROM spill_text ORDER BY id").fetchall()
        count, held = len(rows), sum(size for _, size in rows)
        for text_id, size in rows:
            if count < self._max_entries and held + chars <= self._max_chars:
                break
            connection.execute("DELETE FROM spill_chunk WHERE text_id = ?", (text_id,))
            connection.execute("DELETE FROM spill_text WHERE id = ?", (text_id,))
            count, held = count - 1, held - size

    def _read(self, locator: str, offset: int, limit: int) -> SpillSlice | None:
        with self._transaction("DEFERRED") as connection:
            found = connection.execute(
                "SELECT id, chars FROM spill_text WHERE locator = ? AND scope = ?", (locator, self._scope)
            ).fetchone()
            if found is None:
                return None
            text_id, total = found
            start = min(offset, total)
            first = start - start % _CHUNK
            last = min(start + limit, total)
            rows = connection.execute(
                "SELECT chunk FROM spill_chunk WHERE text_id = ? AND position >= ? AND position < ? ORDER BY position",
                (text_id, first, last),
            ).fetchall()
        text = "".join(chunk.decode("utf-8", "surrogatepass") for (chunk,) in rows)
        return SpillSlice(text=text[start - first : last - first], offset=start, total_chars=total)

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            for setting in ("journal_mode = TRUNCATE", "synchronous = FULL", "fullfsync = ON"):
                connection.execute(f"PRAGMA {setting}")
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'spill_chunk'").fetchone() is None:
                connection.executescript(_SCHEMA)
            connection.execute(f"BEGIN {kind}")
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()  # which undoes a transaction that has not come to its end

    def __repr__(self) -> str:
        return f"<SqliteSpillStore {self._path}>"


def _file(path: object) -> str:
    try:
        text = fspath(path)  # type: ignore[call-overload]  # what is no path raises
    except TypeError:
        raise InvalidTypeError(f"path must be a file's path, not {preview(path)}") from None
    if not isinstance(text, str):
        raise InvalidTypeError(f"path must be text, not {preview(path)}")
    if not text.strip() or text == ":memory:" or "\0" in text:
        raise InvalidInputError(
            f"path must be a file's path, not {text!r}; to keep texts in memory use MemorySpillStore"
        )
    return str(Path(text).absolute())  # the process may go to another folder later


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # as text, SQLite would refuse a lone surrogate and stop at a NUL
