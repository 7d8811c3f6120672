"""What happens in a batch, for user interfaces: one small value an event, in the order in which it happened."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from toolbatch.core import Settlement, Snapshot

from ._approvals import ApprovalRequest
from ._outcomes import ExecutionOutcome

__all__ = [
    "ApprovalRequested",
    "BatchClosed",
    "BatchEvent",
    "CallProgress",
    "CallSettled",
    "CallStarted",
    "EventObserver",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A tool's code was entered.

    Attributes:
        call_id: The call.
        tool_name: The tool.
        generation: The batch's number within its session.
        execution_id: The execution, as in its outcome.
        seconds_left: How long it may take, until its own bound or the batch's; `None` where there is no bound.
    """

    call_id: str
    tool_name: str
    generation: int
    execution_id: str
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallProgress:
    """A running tool has reported what it has so far (B19).

    Attributes:
        call_id: The call.
        tool_name: The tool.
        generation: The batch's number within its session.
        execution_id: The execution, as in its outcome.
        content: The report as text.
    """

    call_id: str
    tool_name: str
    generation: int
    execution_id: str
    content: str


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """A call waits for a decision; nothing of it was run.

    Attributes:
        request: What the broker was shown.
    """

    request: ApprovalRequest


@dataclass(frozen=True, slots=True)
class CallSettled:
    """A call has its outcome.

    Attributes:
        outcome: What is known of its execution at that moment.
        settlement: What the model is told of it.
    """

    outcome: ExecutionOutcome
    settlement: Settlement


@dataclass(frozen=True, slots=True)
class BatchClosed:
    """Every call has its outcome. The last event of a batch.

    Attributes:
        snapshot: The closed snapshot.
    """

    snapshot: Snapshot


BatchEvent = CallStarted | CallProgress | ApprovalRequested | CallSettled | BatchClosed
"""Anything that happens in a batch."""

EventObserver = Callable[[BatchEvent], Awaitable[None] | None]
"""Is told of events as they happen, in the loop's thread. What it raises is logged and contained."""
