"""Every tool call that a model announces gets exactly one answer, in order, whatever happens.

async with ToolBatch(calls, tools=TOOLS, timeout=30, call_timeout=5) as batch:
    batch.start_all()
    snapshot = await batch.snapshot()
"""

from .batch import AuditChannel, CallContext, ToolBatch, ToolSession, current_call
from .core import (
    BatchClosedError,
    BatchStateError,
    Data,
    Document,
    EncodingError,
    Image,
    InvalidInputError,
    InvalidTypeError,
    Json,
    Limits,
    Part,
    ProviderMismatchError,
    ResourceLink,
    Snapshot,
    Text,
    ToolbatchError,
    ToolCall,
    ToolError,
    Url,
    WrongThreadError,
)
from .observe import JsonLinesSink, LoggingSink, ToolCounters
from .ports import ExecutionOutcome, LateNote, StaleResult
from .tools import Tool, ToolCatalog, tool

__all__ = [
    "AuditChannel",
    "BatchClosedError",
    "BatchStateError",
    "CallContext",
    "Data",
    "Document",
    "EncodingError",
    "ExecutionOutcome",
    "Image",
    "InvalidInputError",
    "InvalidTypeError",
    "Json",
    "JsonLinesSink",
    "LateNote",
    "Limits",
    "LoggingSink",
    "Part",
    "ProviderMismatchError",
    "ResourceLink",
    "Snapshot",
    "StaleResult",
    "Text",
    "Tool",
    "ToolBatch",
    "ToolCall",
    "ToolCatalog",
    "ToolCounters",
    "ToolError",
    "ToolSession",
    "ToolbatchError",
    "Url",
    "WrongThreadError",
    "current_call",
    "tool",
]
