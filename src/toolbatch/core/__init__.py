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
from ._parts import Data, Document, Image, Json, Part, ResourceLink, Text, Url, as_parts, described, from_plain, text_of
from ._settlements import Cancelled, Closed, Failed, RichSucceeded, Settlement, SideEffectState, Succeeded
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
from ._text import byte_length, cut, preview, sound

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
    "Data",
    "Diagnostic",
    "Document",
    "Encoder",
    "EncodingError",
    "Failed",
    "Image",
    "Input",
    "InvalidInputError",
    "InvalidTypeError",
    "Json",
    "Limits",
    "Part",
    "ProviderMismatchError",
    "Rejected",
    "RejectionReason",
    "ResourceLink",
    "RichSucceeded",
    "Settlement",
    "SideEffectState",
    "Snapshot",
    "State",
    "Succeeded",
    "Text",
    "ToolCall",
    "ToolCallClosure",
    "ToolError",
    "ToolbatchError",
    "Url",
    "WrongThreadError",
    "as_parts",
    "byte_length",
    "cut",
    "described",
    "encode",
    "from_plain",
    "preview",
    "require_closed",
    "sound",
    "text_of",
]
