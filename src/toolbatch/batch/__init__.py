"""The asyncio-native shell: runs the calls, turns deadlines and cancellation into closes, sends late results to the audit."""

from ._audit import AuditChannel
from ._batch import ToolBatch
from ._claimed import DurableOperationError
from ._context import CallContext, current_call
from ._crew import let_go_count
from ._durable import DurableOperations
from ._events import EventStream
from ._failures import ErrorDetail
from ._options import BatchSettings, OnError, Tools
from ._session import ToolSession
from ._threads import MAX_LET_GO, MAX_THREADS

__all__ = [
    "MAX_LET_GO",
    "MAX_THREADS",
    "AuditChannel",
    "BatchSettings",
    "CallContext",
    "DurableOperationError",
    "DurableOperations",
    "ErrorDetail",
    "EventStream",
    "OnError",
    "ToolBatch",
    "ToolSession",
    "Tools",
    "current_call",
    "let_go_count",
]
