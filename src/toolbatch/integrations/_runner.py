"""How integrations make their batches: the host's options, checked once, and a place for late results to go."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypedDict, cast

from toolbatch.batch import ErrorDetail, OnError, ToolBatch, ToolSession
from toolbatch.batch.kit import records, reusable
from toolbatch.core import Encoder, InvalidInputError, Limits, Settlement, Snapshot, ToolError
from toolbatch.output import OutputBudget
from toolbatch.ports import ApprovalBroker, AuditSink, EventObserver, OutcomeObserver
from toolbatch.tools import Interceptor

__all__ = ["CallOptions", "Runner", "TurnOptions", "log", "only_settlement", "result_of", "unshowable"]

log: Final = logging.getLogger("toolbatch.integrations")


class CallOptions(TypedDict, total=False):
    """Options of `ToolBatch`, as it documents them, for a framework that begins each call by itself."""

    call_timeout: float | None
    teardown_timeout: float
    limits: Limits | None
    encode: Encoder
    error_detail: ErrorDetail
    cancel_exceptions: tuple[type[BaseException], ...]
    interceptors: Iterable[Interceptor]
    approvals: ApprovalBroker | None
    budget: OutputBudget | None
    on_outcome: OutcomeObserver | None
    on_late: OutcomeObserver | None
    on_event: EventObserver | None


class TurnOptions(CallOptions, total=False):
    """The same for a framework that hands over a turn's calls together."""

    timeout: float | None
    max_concurrency: int | None
    on_error: OnError


class Runner:
    """Makes an integration's batches.

    Args:
        audit_sinks: Who is handed each late result as it comes, also when nobody holds its batch any more (B7).
        options: The host's options for every batch: those of `ToolBatch`.
        named_by: What names the run for durable operations and a journal, in words for the host; `None` where nothing does.

    Raises:
        InvalidInputError: An option can't be used, or is of one batch and not of all.
        InvalidTypeError: An option is of a wrong type.
    """

    __slots__ = ("_is_recorded", "_named_by", "_options", "_sinks")

    def __init__(self, audit_sinks: Iterable[AuditSink], options: Mapping[str, Any], *, named_by: str | None) -> None:
        for name in ("deadline", "run_id", "resume"):
            if name in options:
                raise InvalidInputError(f"{name} can't be given here: it is of one ToolBatch, and this makes many")
        self._sinks = tuple(audit_sinks)
        self._options: dict[str, Any] = {**reusable(cast("Any", options))}
        self._named_by = named_by
        self._is_recorded = False
        # Made now, it refuses a bad option now, and not in the middle of a turn.
        self._is_recorded = records(self.batch(()))
        if self._is_recorded and named_by is None:
            raise InvalidInputError(
                "durable operations and a journal can't be used here, since nothing names the run, by which they are found after "
                "a crash; use them in a ToolBatch of your own"
            )

    def batch(self, calls: Iterable[object], **more: Any) -> ToolBatch:
        """Return a batch to be entered, with these options beside the host's.

        Raises:
            InvalidInputError: It is to be recorded, and its run has no name.
        """
        if self._is_recorded and not more.get("run_id"):
            raise InvalidInputError(
                f"durable operations and a journal need {self._named_by}: it names the run, by which they are found after a crash"
            )
        batch = ToolBatch(calls, **self._options, **more)
        for sink in self._sinks:
            batch.audit.add_sink(sink)
        return batch

    def batch_in(self, session: ToolSession, calls: Iterable[object], **more: Any) -> ToolBatch:
        """Return the next batch of a session.

        Raises:
            InvalidInputError: The host has given sinks, or options that are a session's.
        """
        if self._sinks:
            raise InvalidInputError("late results of a session go to its own audit_sinks; give them to the ToolSession")
        return session.batch(calls, **self._options, **more)


def result_of(batch: ToolBatch) -> Snapshot:
    """Return the closed snapshot of a batch that was left."""
    if batch.result is None:
        raise AssertionError(f"{batch!r} was left, and has no result")
    return batch.result


def only_settlement(batch: ToolBatch) -> Settlement:
    """Return how the one call of a batch that was left has ended."""
    ((_, settlement),) = result_of(batch).settled()
    return settlement


def unshowable(name: str, error: Exception) -> ToolError:
    """Return the failure of a tool that ran and whose value has no JSON form."""
    return ToolError.respond_to_model(
        f"{name} ran, but its result can't be shown: it is not plain JSON data ({type(error).__name__}).",
        "invalid_result",
    )
