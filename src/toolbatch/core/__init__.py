"""The sans-IO core: announced calls in, exactly one outcome each out. No event loop, clock, thread or third-party import."""

from ._answers import Accepted, Begun, Rejected
from ._calls import BatchHandle, CallProblem, ToolCall
from ._closure import ToolCallClosure
from ._encode import Encoder, encode
from ._errors import (
    BatchClosedError,
    BatchStateError,
    EncodingError,
    InvalidInputError,
    InvalidTypeError,
    ProviderMismatchError,
    ToolbatchError,
    ToolError,
    WrongThreadError,
)
from ._limits import Limits
from ._settlements import Cancelled, Closed, Failed, Settlement, SideEffectState, Succeeded
from ._snapshots import (
    CallSnapshot,
    CallState,
    CloseReason,
    CloseStatus,
    Diagnostic,
    RejectionReason,
    Snapshot,
    require_closed,
)
from ._table import LATE, TABLE, Input, State
from ._text import cut, preview, sound

__all__ = [
    "LATE",
    "TABLE",
    "Accepted",
    "BatchClosedError",
    "BatchHandle",
    "BatchStateError",
    "Begun",
    "CallProblem",
    "CallSnapshot",
    "CallState",
    "Cancelled",
    "CloseReason",
    "CloseStatus",
    "Closed",
    "Diagnostic",
    "Encoder",
    "EncodingError",
    "Failed",
    "Input",
    "InvalidInputError",
    "InvalidTypeError",
    "Limits",
    "ProviderMismatchError",
    "Rejected",
    "RejectionReason",
    "Settlement",
    "SideEffectState",
    "Snapshot",
    "State",
    "Succeeded",
    "ToolCall",
    "ToolCallClosure",
    "ToolError",
    "ToolbatchError",
    "WrongThreadError",
    "cut",
    "encode",
    "preview",
    "require_closed",
    "sound",
]
