"""The tables of an SQLite file of operations, and how an older file becomes a newer one."""

from typing import Final

__all__ = ["APPLICATION_ID", "MIGRATIONS", "VERSION"]

APPLICATION_ID: Final = 0x54424F50
"""Marks a file as ours: "TBOP". It stands in the file's header, where `file` and `PRAGMA application_id` read it."""

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """
        CREATE TABLE operation (
            id TEXT PRIMARY KEY NOT NULL,
            tool TEXT NOT NULL,
            fingerprint BLOB NOT NULL,
            summary TEXT NOT NULL,
            replay TEXT NOT NULL CHECK (replay IN ('never', 'if_not_started', 'safe')),
            idempotency_key TEXT,
            claim TEXT NOT NULL,
            secret TEXT NOT NULL,
            owner TEXT NOT NULL,
            attempt INTEGER NOT NULL,
            claimed_at REAL NOT NULL,
            completed_at REAL,
            completed_by TEXT,
            result BLOB,
            CHECK ((completed_at IS NULL) = (result IS NULL))
        ) WITHOUT ROWID
        """,
        "CREATE INDEX operation_open ON operation (claimed_at, id) WHERE completed_at IS NULL",
    ),
)
"""The steps from each version of the schema to the next. They are kept for ever: a file may be as old as the first."""

VERSION: Final = len(MIGRATIONS)
"""The version that this code reads and writes, in the file's `PRAGMA user_version`."""
