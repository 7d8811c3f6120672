"""The tables of an SQLite file of operations and journals, and how an older file becomes a newer one."""

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
    (
        """
        CREATE TABLE batch (
            id TEXT PRIMARY KEY NOT NULL,
            run TEXT NOT NULL,
            announced_at REAL NOT NULL,
            closed_at REAL
        ) WITHOUT ROWID
        """,
        "CREATE INDEX batch_run ON batch (run, announced_at, id)",
        "CREATE INDEX batch_open ON batch (run, announced_at) WHERE closed_at IS NULL",
        "CREATE INDEX batch_closed ON batch (closed_at) WHERE closed_at IS NOT NULL",
        """
        CREATE TABLE record (
            number INTEGER PRIMARY KEY,
            batch TEXT NOT NULL REFERENCES batch (id),
            kind TEXT NOT NULL CHECK (kind IN ('announced', 'started', 'settled', 'closed', 'resumed')),
            at REAL NOT NULL,
            body BLOB NOT NULL
        )
        """,
        "CREATE INDEX record_batch ON record (batch, number)",
    ),
)
"""The steps from each version of the schema to the next. They are kept for ever: a file may be as old as the first."""

VERSION: Final = len(MIGRATIONS)
"""The version that this code reads and writes, in the file's `PRAGMA user_version`."""
