"""What SQLite complains of, in words that name the file and say what to do."""

import sqlite3
from typing import Final

__all__ = ["complaint", "is_busy", "primary_code"]

_ADVICE: Final = {
    sqlite3.SQLITE_BUSY: (
        "is locked by another connection for longer than lock_timeout. Look for a process that holds a transaction open, "
        "such as a backup or a database shell, or for a store that was opened with exclusive=True"
    ),
    sqlite3.SQLITE_READONLY: "can't be written. Give this process the right to write the file and its folder",
    sqlite3.SQLITE_FULL: "can't grow, since the disk or its quota is full. Free some space and ask again",
    sqlite3.SQLITE_CANTOPEN: (
        "can't be opened. Make its folder if it is missing, and let this process write there, since SQLite makes files "
        "beside it"
    ),
    sqlite3.SQLITE_NOTADB: "is not an SQLite file, or its head is damaged. Give the path of a file of operations",
    sqlite3.SQLITE_CORRUPT: (
        "is damaged. Stop what has effects, copy it with the files beside it, and restore a backup or use SQLite's "
        ".recover. Don't delete it: what it knows to be done would be done again"
    ),
    sqlite3.SQLITE_IOERR: (
        "can't be read or written: the disk reports an error, or a file beside it is another user's. Check the owners of all "
        "its files, the disk, and the system's log"
    ),
}


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's result code without its extension; 0 where there is none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether it is another connection's lock that was in the way."""
    return primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def complaint(path: str, error: sqlite3.Error) -> str:
    """Return the sentence for a person."""
    code = sqlite3.SQLITE_BUSY if is_busy(error) else primary_code(error)
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if name == "SQLITE_IOERR_SHMSIZE":  # what SQLite says where the file of shared memory has no room
        code = sqlite3.SQLITE_FULL
    advice = _ADVICE.get(code, "could not be used")
    return f"the operations file {path!r} {advice} ({name}: {error}). What was asked for is not done"
