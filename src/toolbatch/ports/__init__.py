"""What the layers above promise each other: records that cross a border, and Protocols with their promises."""

from ._audit import AuditSink, LateNote, StaleResult
from ._late import LATE_HEAD, late_line
from ._outcomes import Cancellation, Completion, ExecutionOutcome, ExecutionStatus, OutcomeObserver

__all__ = [
    "LATE_HEAD",
    "AuditSink",
    "Cancellation",
    "Completion",
    "ExecutionOutcome",
    "ExecutionStatus",
    "LateNote",
    "OutcomeObserver",
    "StaleResult",
    "late_line",
]
