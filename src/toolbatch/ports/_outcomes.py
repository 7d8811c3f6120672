"""What is known of one execution, for the host. The model never reads it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Cancellation", "Completion", "ExecutionOutcome", "ExecutionStatus", "OutcomeObserver"]

ExecutionStatus = Literal["succeeded", "failed", "cancelled", "timed_out", "denied", "not_started", "pending"]
"""How the call ended for the caller; `pending` where it was answered with a placeholder and goes on (O6)."""

Completion = Literal["not_started", "unknown", "settled"]
"""Where the tool's code is: never entered, entered and not known to have ended, ended."""

Cancellation = Literal["none", "requested", "acknowledged"]
"""Whether the tool was asked to stop, and whether it ended by that. It proves nothing about a remote effect (O2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOutcome:
    """One call's execution, as far as it is known: neither its arguments nor its result are in it (O1).

    Attributes:
        execution_id: Unique over processes.
        call_id: The call.
        tool_name: The tool.
        generation: The batch's number within its session.
        run_id: The host's name of the run, if it gave one.
        status: How the call ended for the caller.
        started: Whether the tool's code was entered.
        completion: Whether the tool's code has ended.
        cancellation: Whether it was asked to stop, and ended by that.
        started_at: When the code was entered, in seconds since the epoch; `None` if it was not.
        duration: Seconds from then to the end, or to the outcome where the end is unknown; `None` if not started.
        timeout: The bound that fired, in seconds; `None` where none did.
        deadline_late_by: By how many seconds a blocked event loop delayed that deadline, where it is worth telling (B14).
        repeats: How often the session has seen this same call fail in the same way before: a call that can't be run, with the same
            arguments and the same code. A model that repeats it for ever is stopped by the host, not by us.
        resumed: Whether the outcome is an earlier batch's, taken over: nothing was run for it here.
        exception: What the tool raised, whole, for the host's eyes (B21).
    """

    execution_id: str
    call_id: str
    tool_name: str
    generation: int
    run_id: str | None
    status: ExecutionStatus
    started: bool
    completion: Completion
    cancellation: Cancellation
    started_at: float | None
    duration: float | None
    timeout: float | None
    deadline_late_by: float | None
    repeats: int = 0
    resumed: bool = False
    exception: BaseException | None = field(default=None, repr=False)


OutcomeObserver = Callable[[ExecutionOutcome], Awaitable[None] | None]
"""Is told of outcomes, in the loop's thread. What it raises is logged and contained (O3)."""
