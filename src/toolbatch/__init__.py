"""Every tool call that a model announces gets exactly one answer, in order, whatever happens.

async with ToolBatch(calls, tools=TOOLS, timeout=30, call_timeout=5) as batch:
batch.start_all()
snapshot = await batch.snapshot()
"""

from .batch import AuditChannel, CallContext, ToolBatch, ToolSession, current_call
from .core import (
    BatchClosedError,
    BatchStateError,
    EncodingError,
    InvalidInputError,
    InvalidTypeError,
    Limits,
    ProviderMismatchError,
    Snapshot,
    ToolbatchError,
    ToolCall,
    ToolError,
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
    "EncodingError",
    "ExecutionOutcome",
    "InvalidInputError",
    "InvalidTypeError",
    "JsonLinesSink",
    "LateNote",
    "Limits",
    "LoggingSink",
    "ProviderMismatchError",
    "Snapshot",
    "StaleResult",
    "Tool",
    "ToolBatch",
    "ToolCall",
    "ToolCatalog",
    "ToolCounters",
    "ToolError",
    "ToolSession",
    "ToolbatchError",
    "WrongThreadError",
    "current_call",
    "tool",
]
