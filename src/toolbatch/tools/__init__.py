"""Tools as models and batches see them: `@tool`, the catalog, and the stages of a call, each usable alone."""

from ._allowance import CallAllowance
from ._brokers import FixedApprovals, InteractiveApprovals
from ._catalog import Registration, ToolCatalog, Tools, ToolView
from ._interceptors import (
    Accept,
    Allow,
    Ask,
    Block,
    Decision,
    Interceptor,
    Replace,
    ToolFailure,
    ToolResult,
    ToolSuccess,
    ToolTimeoutError,
    Verdict,
)
from ._lanes import Lane
from ._near import near_names, unknown_tool_message
from ._prepare import Prepared, Refused, prepare
from ._render import Rendered, render_result
from ._stages import NOT_EXECUTED, Hooks, authorize, dispatch, finalize
from ._tool import AnyTool, Judge, NamedOptions, Tool, ToolOptions, tool, unchecked

__all__ = [
    "NOT_EXECUTED",
    "Accept",
    "Allow",
    "AnyTool",
    "Ask",
    "Block",
    "CallAllowance",
    "Decision",
    "FixedApprovals",
    "Hooks",
    "InteractiveApprovals",
    "Interceptor",
    "Judge",
    "Lane",
    "NamedOptions",
    "Prepared",
    "Refused",
    "Registration",
    "Rendered",
    "Replace",
    "Tool",
    "ToolCatalog",
    "ToolFailure",
    "ToolOptions",
    "ToolResult",
    "ToolSuccess",
    "ToolTimeoutError",
    "ToolView",
    "Tools",
    "Verdict",
    "authorize",
    "dispatch",
    "finalize",
    "near_names",
    "prepare",
    "render_result",
    "tool",
    "unchecked",
    "unknown_tool_message",
]
