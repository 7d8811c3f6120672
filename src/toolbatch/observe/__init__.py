"""For the host's eyes: OpenTelemetry, the log, the live view, the run log, counters, and sinks of the audit channel."""

from ._counters import ToolCounters
from ._live import LiveView, Watchable, live
from ._logging import LOG_EVENTS, LogEvent, LogEventName, log_event
from ._otel import OpenTelemetry, continued_trace
from ._run_log import RunLog
from ._run_log_read import read_run
from ._run_log_record import BatchRecord, CallRecord, LateRecord, RunRecord
from ._sinks import JsonLinesSink, LoggingSink

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
