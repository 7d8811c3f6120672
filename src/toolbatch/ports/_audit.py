"""Late results, and who may be told of them."""

from dataclasses import dataclass
from typing import Literal, Protocol

from toolbatch.core import RejectionReason

__all__ = ["AuditSink", "LateNote", "StaleResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleResult:
    """A tool ended after its call had its outcome: evidence, never a result (B7).

    Attributes:
        call_id: The call.
        name: The tool.
        generation: The batch that announced the call.
        execution_id: The execution, as in its `ExecutionOutcome`.
        reason: Why the report was refused: `duplicate_settlement`, `run_closed` or `stale_generation`.
        answered_as: What the call was answered as: the code of its outcome, such as `timeout`, or `success`.
        observed_status: What the tool reported: `success`, `error` or `cancelled`.
        exception_type: The class name of what it raised, if it did.
        started_at: When its code was entered, in seconds since the epoch; `None` if it was not.
        closed_at: When the call was given its outcome, in seconds since the epoch.
        settled_at: When the tool ended, in seconds since the epoch.
        late_by: Seconds from the outcome to the end.
        content: The result's text, cut to `max_result_bytes`; only where the host asked to keep it, else `None`.
    """

    call_id: str
    name: str
    generation: int
    execution_id: str
    reason: RejectionReason
    answered_as: str
    observed_status: Literal["success", "error", "cancelled"]
    exception_type: str | None
    started_at: float | None
    closed_at: float
    settled_at: float
    late_by: float
    content: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LateNote:
    """A late success that the host may give to the model on purpose, as new content (B20).

    Attributes:
        call_id: The call.
        name: The tool.
        generation: The batch that announced the call.
        content: The result's text, cut to `max_result_bytes`.
    """

    call_id: str
    name: str
    generation: int
    content: str


class AuditSink(Protocol):
    """Is handed every `StaleResult`, in order, in the loop's thread, before anyone reads it from the channel.

    It must be quick. What it raises is logged and contained: the channel and the other sinks are not affected.
    """

    def __call__(self, stale: StaleResult, /) -> None:
        """Take one record."""
