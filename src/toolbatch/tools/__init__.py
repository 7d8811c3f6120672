"""Tools as models and batches see them: `@tool`, the catalog, and the stages of a call, each usable alone."""

from ._catalog import Registration, ToolCatalog, Tools, ToolView
from ._lanes import Lane
from ._near import near_names, unknown_tool_message
from ._prepare import Prepared, Refused, prepare
from ._render import Rendered, render_result
from ._tool import AnyTool, Judge, NamedOptions, Tool, ToolOptions, tool

__all__ = [
    "AnyTool",
    "Judge",
    "Lane",
    "NamedOptions",
    "Prepared",
    "Refused",
    "Registration",
    "Rendered",
    "Tool",
    "ToolCatalog",
    "ToolOptions",
    "ToolView",
    "Tools",
    "near_names",
    "prepare",
    "render_result",
    "tool",
    "unknown_tool_message",
]
