"""For the host's eyes: counters, and sinks of the audit channel."""

from ._counters import ToolCounters
from ._sinks import JsonLinesSink, LoggingSink

__all__ = ["JsonLinesSink", "LoggingSink", "ToolCounters"]
