"""What toolbatch writes into the log: one record for each thing that matters, with a name that stays and fields beside its text.

All records of running batches are written here, under the logger `toolbatch`; in a run where nothing of `LOG_EVENTS` happens,
nothing is logged. A record's `event_name` says what happened, so that nobody has to read its text; the fields are attributes of the record,
as any `extra` is.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

__all__ = ["LOG_EVENTS", "LogEvent", "LogEventName", "log_event"]

_logger = logging.getLogger("toolbatch")

LogEventName = Literal[
    "audit_record_dropped",
    "audit_sink_failed",
    "batch_timed_out",
    "call_timed_out",
    "calls_not_started",
    "decision_failed",
    "exit_passed_through",
    "journal_failed",
    "late_result",
    "loop_blocked",
    "observer_failed",
    "operation_failed",
    "repeated_bad_call",
    "report_lost",
    "resources_freed",
    "teardown_given_up",
    "tool_failed",
]
"""What can be logged."""


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One kind of record.

    Attributes:
        level: Its level: INFO for what a tool or a deadline did, WARNING for what the host should look into, ERROR for what failed in the
            host's own code. Python shows WARNING and above where logging was not set up.
        fields: Its attributes besides `event_name`.
        meaning: What has happened, in a sentence.
    """

    level: int
    fields: tuple[str, ...]
    meaning: str


_CALL = ("call_id", "tool_name", "execution_id", "generation")

LOG_EVENTS: Final[Mapping[LogEventName, LogEvent]] = {
    "call_timed_out": LogEvent(logging.INFO, (*_CALL, "timeout", "late_by"), "A call's own time is over; it has its outcome."),
    "batch_timed_out": LogEvent(
        logging.INFO, ("generation", "timeout", "late_by", "open_calls"), "A batch's time is over; its open calls were closed."
    ),
    "tool_failed": LogEvent(logging.INFO, _CALL, "A tool raised; the exception is in `exc_info`."),
    "late_result": LogEvent(
        logging.INFO, (*_CALL, "stale_result"), "A tool ended after its call had its outcome (B7). A `LoggingSink` of the host's own "
        "writes it instead."
    ),
    "audit_record_dropped": LogEvent(
        logging.WARNING, (*_CALL, "audit_size"), "The audit channel is full. Once a channel; `audit.dropped` counts."
    ),
    "loop_blocked": LogEvent(
        logging.WARNING, ("call_id", "tool_name", "late_by", "late_calls"), "A deadline fired late, since something blocked the event loop (B14). Once a firing."
    ),
    "teardown_given_up": LogEvent(
        logging.WARNING, ("call_ids", "tool_names", "count"), "Tools that were asked to stop have not ended within the bound, and run on (B6)."
    ),
    "calls_not_started": LogEvent(
        logging.WARNING, ("call_ids", "count", "generation"), "`snapshot()` waits for calls that nobody has started. Once a batch (B2)."
    ),
    "repeated_bad_call": LogEvent(
        logging.WARNING, ("tool_name", "code", "times"), "The model repeats a call that can't be run. At 2, 4, 8 ... times."
    ),
    "resources_freed": LogEvent(
        logging.WARNING, ("resources",), "Resources are free again, though a tool that was stopped may still use them (T8)."
    ),
    "report_lost": LogEvent(logging.WARNING, (), "A tool reported after its event loop was closed."),
    "decision_failed": LogEvent(logging.ERROR, _CALL, "Deciding on a call raised, so it was denied (T6)."),
    "observer_failed": LogEvent(logging.ERROR, (), "An observer of the host's raised; it is contained (O3)."),
    "audit_sink_failed": LogEvent(logging.ERROR, _CALL, "A sink of the audit channel raised; it is contained (B7)."),
    "operation_failed": LogEvent(
        logging.ERROR, ("call_id", "operation_id"), "An operation could not be claimed, completed or released, or not be read (D1); the "
        "exception is in `exc_info`."
    ),
    "journal_failed": LogEvent(
        logging.ERROR, ("batch_id", "generation"), "A batch could not be written into its journal, and was ended (D4)."
    ),
    "exit_passed_through": LogEvent(
        logging.ERROR, _CALL, "A tool that nobody waits for raised KeyboardInterrupt or SystemExit, which ends the loop."
    ),
}  # fmt: skip
"""Every kind of record: its level, its fields, and what it means."""


def log_event(name: LogEventName, message: str, *args: object, exc_info: Any = None, **fields: object) -> None:
    """Write one record. It never raises: a filter or handler that does must not stop what is being told of (B21)."""
    with suppress(Exception):
        _logger.log(
            LOG_EVENTS[name].level,
            message,
            *args,
            exc_info=exc_info,
            extra={"event_name": name, **fields},
            stacklevel=2,
        )
