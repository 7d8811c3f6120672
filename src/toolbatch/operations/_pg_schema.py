"""The tables of a PostgreSQL schema of operations and journals, and how an older one becomes a newer one."""

from typing import Final

__all__ = ["LOCK", "MIGRATIONS", "VERSION"]

LOCK: Final = 0x54424F50
"""The advisory lock under which one process at a time migrates: "TBOP"."""

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """
        CREATE TABLE {schema}.operation (
            id TEXT COLLATE "C" PRIMARY KEY,
            tool TEXT NOT NULL,
            fingerprint BYTEA NOT NULL,
            summary TEXT NOT NULL,
            replay TEXT NOT NULL CHECK (replay IN ('never', 'if_not_started', 'safe')),
            idempotency_key TEXT,
            claim TEXT NOT NULL,
            secret TEXT NOT NULL,
            owner TEXT NOT NULL,
            attempt INTEGER NOT NULL,
            claimed_at DOUBLE PRECISION NOT NULL,
            completed_at DOUBLE PRECISION,
            completed_by TEXT,
            result BYTEA,
            CHECK ((completed_at IS NULL) = (result IS NULL))
        )
        """,
        "CREATE INDEX operation_open ON {schema}.operation (claimed_at, id) WHERE completed_at IS NULL",
    ),
    (
        """
        CREATE TABLE {schema}.batch (
            id TEXT COLLATE "C" PRIMARY KEY,
            run TEXT NOT NULL,
            announced_at DOUBLE PRECISION NOT NULL,
            closed_at DOUBLE PRECISION
        )
        """,
        "CREATE INDEX batch_run ON {schema}.batch (run, announced_at, id)",
        "CREATE INDEX batch_open ON {schema}.batch (run, announced_at) WHERE closed_at IS NULL",
        "CREATE INDEX batch_closed ON {schema}.batch (closed_at) WHERE closed_at IS NOT NULL",
        """
        CREATE TABLE {schema}.record (
            number BIGSERIAL,
            entry TEXT PRIMARY KEY,
            batch TEXT COLLATE "C" NOT NULL REFERENCES {schema}.batch (id) ON DELETE CASCADE,
            kind TEXT NOT NULL CHECK (kind IN ('announced', 'started', 'settled', 'closed', 'resumed')),
            at DOUBLE PRECISION NOT NULL,
            body BYTEA NOT NULL
        )
        """,
        "CREATE INDEX record_batch ON {schema}.record (batch, number)",
    ),
)
"""The steps from each version to the next, with the schema's name to be filled in. They are kept for ever."""

VERSION: Final = len(MIGRATIONS)
"""The version that this code reads and writes, in the schema's table `version`."""
