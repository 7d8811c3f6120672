"""What the layers above promise each other: records that cross a border, and Protocols with their promises."""

from ._approvals import Abort, ApprovalBroker, ApprovalDecision, ApprovalRequest, Approve, Deny
from ._audit import AuditSink, LateNote, StaleResult
from ._canonical import canonical_json
from ._events import (
    ApprovalRequested,
    BatchClosed,
    BatchEvent,
    CallProgress,
    CallSettled,
    CallStarted,
    EventObserver,
)
from ._late import LATE_HEAD, late_line
from ._operation_errors import ClaimLostError, OperationConflictError, OperationStoreClosedError, OperationStoreError
from ._operation_store import OperationResolver, OperationStore
from ._operations import (
    MAX_OPERATION_ID_BYTES,
    MAX_OPERATION_RESULT_BYTES,
    REPLAY_POLICIES,
    Claim,
    Claimed,
    ClaimToken,
    Completed,
    Done,
    NotDone,
    Operation,
    OperationRecord,
    ReplayPolicy,
    Resolution,
    StillUnknown,
    Unknown,
)
from ._outcomes import Cancellation, Completion, ExecutionOutcome, ExecutionStatus, OutcomeObserver
from ._spill import SpillRecord, SpillSlice, SpillStore

__all__ = [
    "LATE_HEAD",
    "MAX_OPERATION_ID_BYTES",
    "MAX_OPERATION_RESULT_BYTES",
    "REPLAY_POLICIES",
    "Abort",
    "ApprovalBroker",
    "ApprovalDecision",
    "ApprovalRequest",
    "ApprovalRequested",
    "Approve",
    "AuditSink",
    "BatchClosed",
    "BatchEvent",
    "CallProgress",
    "CallSettled",
    "CallStarted",
    "Cancellation",
    "Claim",
    "ClaimLostError",
    "ClaimToken",
    "Claimed",
    "Completed",
    "Completion",
    "Deny",
    "Done",
    "EventObserver",
    "ExecutionOutcome",
    "ExecutionStatus",
    "LateNote",
    "NotDone",
    "Operation",
    "OperationConflictError",
    "OperationRecord",
    "OperationResolver",
    "OperationStore",
    "OperationStoreClosedError",
    "OperationStoreError",
    "OutcomeObserver",
    "ReplayPolicy",
    "Resolution",
    "SpillRecord",
    "SpillSlice",
    "SpillStore",
    "StaleResult",
    "StillUnknown",
    "Unknown",
    "canonical_json",
    "late_line",
]
