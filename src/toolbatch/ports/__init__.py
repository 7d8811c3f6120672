"""What the layers above promise each other: records that cross a border, and Protocols with their promises."""

from ._audit import AuditSink, LateNote, StaleResult
from ._outcomes import Cancellation, Completion, ExecutionOutcome, ExecutionStatus, OutcomeObserver

__all__ = [
    "AuditSink",
    "Cancellation",
    "Completion",
    "ExecutionOutcome",
    "ExecutionStatus",
    "LateNote",
    "OutcomeObserver",
    "StaleResult",
]
