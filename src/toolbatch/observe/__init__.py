"""For the host's eyes: OpenTelemetry, the log, the live view, the run log, counters, and sinks of the audit channel.

What a batch does not need by itself is loaded when it is asked for.
"""

from typing import TYPE_CHECKING, Any

from ._counters import ToolCounters
from ._logging import LOG_EVENTS, LogEvent, LogEventName, log_event
from ._sinks import JsonLinesSink, LoggingSink

if TYPE_CHECKING:
    from ._live import LiveView, Watchable, live
    from ._otel import OpenTelemetry, continued_trace
    from ._run_log import RunLog
    from ._run_log_read import read_run
    from ._run_log_record import BatchRecord, CallRecord, LateRecord, RunRecord

__all__ = [
    "LOG_EVENTS",
    "BatchRecord",
    "CallRecord",
    "JsonLinesSink",
    "LateRecord",
    "LiveView",
    "LogEvent",
    "LogEventName",
    "LoggingSink",
    "OpenTelemetry",
    "RunLog",
    "RunRecord",
    "ToolCounters",
    "Watchable",
    "continued_trace",
    "live",
    "log_event",
    "read_run",
]

if not TYPE_CHECKING:  # a type checker would take every misspelt name for one that is there

    def __getattr__(name: str) -> Any:
        if name in __all__:
            from . import _live, _otel, _run_log, _run_log_read, _run_log_record

            for module in (_live, _otel, _run_log, _run_log_read, _run_log_record):
                if name in module.__all__:
                    return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
