"""Durable claims: an operation that pays, mails or deploys is not done twice because a process died (D1-D5).

A store is asked to claim an operation before it is run, and to keep its result before it is shown. What was claimed and has no
result is *unknown*: it is never run again by itself.

The stores on disk are loaded when one is asked for: a batch alone loads no database.
"""

from typing import TYPE_CHECKING, Any

from ._ids import operation_id
from ._journal import MemoryJournal
from ._journal_rows import settlement_of
from ._memory import MemoryOperationStore
from ._owners import OwnerState, owner_state, this_owner
from ._resolve import resolve

if TYPE_CHECKING:
    from ._database import may_share_wal
    from ._journal_postgres import PostgresJournal
    from ._journal_sqlite import SqliteJournal
    from ._postgres import PostgresOperationStore
    from ._sqlite import SqliteOperationStore

__all__ = [
    "MemoryJournal",
    "MemoryOperationStore",
    "OwnerState",
    "PostgresJournal",
    "PostgresOperationStore",
    "SqliteJournal",
    "SqliteOperationStore",
    "may_share_wal",
    "operation_id",
    "owner_state",
    "resolve",
    "settlement_of",
    "this_owner",
]

if not TYPE_CHECKING:  # a type checker would take every misspelt name for one that is there

    def __getattr__(name: str) -> Any:
        if name in __all__:
            from . import _database, _journal_postgres, _journal_sqlite, _postgres, _sqlite

            for module in (_database, _journal_postgres, _journal_sqlite, _postgres, _sqlite):
                if name in module.__all__:
                    return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
