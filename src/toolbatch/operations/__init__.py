"""Durable claims: an operation that pays, mails or deploys is not done twice because a process died (D1-D5).

A store is asked to claim an operation before it is run, and to keep its result before it is shown. What was claimed and has no
result is *unknown*: it is never run again by itself.
"""

from ._ids import operation_id
from ._memory import MemoryOperationStore
from ._owners import OwnerState, owner_state, this_owner
from ._postgres import PostgresOperationStore
from ._resolve import resolve
from ._sqlite import SqliteOperationStore

__all__ = [
    "MemoryOperationStore",
    "OwnerState",
    "PostgresOperationStore",
    "SqliteOperationStore",
    "operation_id",
    "owner_state",
    "resolve",
    "this_owner",
]
