"""One call's execution: what the shell knows of it. The call's outcome is the core's; where its code is, is ours."""

import itertools
import os
import secrets
from asyncio import isfuture
from contextvars import ContextVar
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from toolbatch.core import BatchStateError, CallProblem, Settlement, ToolCall
from toolbatch.ports import Cancellation, Completion, ExecutionOutcome, ExecutionStatus
from toolbatch.tools import NOT_EXECUTED

from ._failures import discard

if TYPE_CHECKING:
    from asyncio import Future, Task
    from collections.abc import Callable
    from threading import Event
    from weakref import ref

    from toolbatch.ports import Operation
    from toolbatch.tools import AnyTool

    from ._attempt import Attempt
    from ._crew import Crew
    from ._drive import Work
    from ._engine import Engine
    from ._saved import Saved
    from ._threads import Job

__all__ = ["NEVER", "OUTCOME_UNKNOWN", "Execution", "Phase", "current_execution"]

NEVER = float("inf")

OUTCOME_UNKNOWN = "outcome_unknown"
"""The code of a call that was begun before, perhaps by a process that died, and of which no result is known (D2)."""

_numbers = itertools.count(1)
_prefix = secrets.token_hex(6)


def _renew_prefix() -> None:
    global _prefix  # noqa: PLW0603  a forked child must not go on with its parent's ids
    _prefix = secrets.token_hex(6)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_prefix)


class Phase(IntEnum):
    """Where the code of a call is. It moves forward, but where a thread has returned an awaitable, which is launched anew."""

    ANNOUNCED = 0  # nobody has started it
    QUEUED = 1  # started by the caller, waits for a place
    LAUNCHED = 2  # a task or a thread has it; its code may not have been entered yet
    ENTERED = 3  # its code runs
    ENDED = 4  # its code has ended, or never will be entered


class Execution:
    """One call of one batch. Mutable, private, and small: there may be a hundred thousand.

    What most calls never need has its default in the class, which costs a call neither time nor memory.
    """

    phase = Phase.ANNOUNCED
    crew: "Crew | None" = None  # who owns the running code: the batch's, then perhaps the session's
    work: "Work | None" = None  # what it will run, while that can still be closed unrun
    tool: "AnyTool | None" = None
    meta: Any = None  # what the tool's `meta` says of its result, for the host (T9)
    task: "Task[None] | None" = None
    key: str | None = None  # for idempotency, once it was asked for
    job: "Job | None" = None  # the thread's side, for a sync function
    cancel_event: "Event | None" = None
    timeout = NEVER  # seconds that its code may take
    fired: float | None = None  # the bound that fired, in seconds: its own or the batch's
    deadline = NEVER  # loop time; the earlier of its own and the batch's
    deadline_late_by: float | None = None
    started_at: float | None = None  # loop time at which its code was entered
    ended_at: float | None = None  # loop time
    closed_at: float | None = None  # loop time of its outcome
    settlement: Settlement | None = None  # its outcome, once it has been told
    stop_requested = False
    acknowledged = False
    exception: BaseException | None = None
    failure: CallProblem | None = None  # what the tool reported of itself besides its value (O4)
    begins_elsewhere = False  # its tool has a backend, which says when its code is entered
    has_place = False  # it is one of those that `max_concurrency` counts
    is_guided = False  # a task of ours takes it through its stages (T3)
    is_told_late = False  # `on_late` has heard of it
    entered_count = 0  # of a guided call: how many attempts were entered
    not_applied_count = 0  # and how many of them have said that they had no effect (D2)
    may_run = False  # of a guided call: it is its turn, and what stands around its tool may run it
    attempts: "tuple[Attempt, ...]" = ()  # of a guided call: those that go on, and the last; none once nothing goes on
    is_answered = False  # it can't be run or may not, and a batch has answered it by itself
    is_resumed = False  # its outcome is an earlier batch's
    is_replayed = False  # its outcome is an earlier execution's, which a store has told (D1)
    was_begun = False  # a process that died had begun it, and its operation has not said yet how it stands (D4)
    operation: "Operation | None" = None  # what it is in a store (D1)
    operation_id: str | None = None  # the same, once it was claimed
    saved: "Saved | None" = None  # what stands for a value that a store has or had (D1)
    doubt = ""  # what the model has to read beside a failure (D2)
    on_late: "Callable[[bool, Any], None] | None" = None  # who else hears how an attempt ends that nobody waits for
    is_pending = False  # it was answered with a placeholder, and goes on (O6)
    final: ExecutionStatus | None = None  # how that ended
    repeats = 0  # how often the session has seen this bad call before
    concludes = False  # it said that the turn is done (T10)
    added: list[str] | None = None  # what it gave the host besides its result

    def __init__(self, call: ToolCall, engine: "ref[Engine]") -> None:
        self.call = call
        self._engine = engine  # weakly: a batch that is done with goes at once, unless a tool's exception holds it by its traceback
        self.number = next(_numbers)

    @property
    def id(self) -> str:
        """The execution's id: unique over processes, and cheap."""
        return f"{_prefix}-{self.number}"

    @property
    def identity(self) -> dict[str, Any]:
        """Names the execution in events and in the log."""
        return {
            "call_id": self.call.id,
            "tool_name": self.call.name,
            "generation": self.engine.generation,
            "execution_id": self.id,
        }

    @property
    def engine(self) -> "Engine":
        """The engine of the call's batch; it lives as long as anything of the batch runs, or its `ToolBatch` does."""
        engine = self._engine()
        if engine is None:
            raise BatchStateError(f"the batch that announced call {self.call.id!r} is gone")
        return engine

    @property
    def awaits_start(self) -> bool:
        """Whether the host may start it: nobody has, and the batch doesn't answer it by itself on being entered (P6, D4)."""
        is_ours = self.call.problem is not None or self.is_resumed
        return self.phase is Phase.ANNOUNCED and self.settlement is None and not is_ours

    @property
    def started(self) -> bool:
        """Whether the tool's code was entered."""
        return self.started_at is not None

    @property
    def is_over(self) -> bool:
        """Whether nothing of the call may be run any more: it has its outcome, and that is no placeholder whose work goes on."""
        if self.is_pending:
            return self.stop_requested
        return self.settlement is not None or self.engine.result is not None

    @property
    def is_silent(self) -> bool:
        """Whether what its code says of the call counts no more, whoever of its tasks says it: it has ended."""
        return self.phase is Phase.ENDED

    @property
    def has_ended(self) -> bool:
        """Whether nothing of the call runs any more, neither its guide nor its tool."""
        return self.phase is Phase.ENDED and all(attempt.phase is Phase.ENDED for attempt in self.attempts)

    @property
    def started_wall(self) -> float | None:
        """When the tool's code was entered, in seconds since the epoch."""
        return None if self.started_at is None else self.engine.clock.wall(self.started_at)

    def dispose(self) -> "Future[Any] | None":
        """Close a coroutine that was handed over and will not be run (B9); return a future, which runs already."""
        work, self.work = self.work, None
        if work is not None:
            discard(work.fn)
        return work.fn if work is not None and isfuture(work.fn) else None

    def forget(self) -> None:
        """Something else stands in the place of what was said so far: nothing of that may be seen (T6)."""
        self.exception = self.failure = self.meta = self.added = None
        self.doubt = ""

    def note_end(self) -> None:
        """Its code has ended."""

    def fold(self) -> None:
        """Nothing of a guided call runs any more: keep what is known of its tool's code, and let go of the attempts, which lead back here."""
        if self.attempts and self.has_ended:
            code = self._code
            self.ended_at, self.stop_requested, self.acknowledged = (
                code.ended_at,
                code.stop_requested,
                code.acknowledged,
            )
            self.attempts = ()

    @property
    def _code(self) -> "Execution":
        """What says where the tool's code is: of several attempts the first that still goes on, else the one that ended last."""
        going = [attempt for attempt in self.attempts if attempt.phase is not Phase.ENDED]
        return going[0] if going else max(self.attempts, key=lambda attempt: attempt.ended_at or 0.0)

    def outcome(self) -> ExecutionOutcome:
        """Return what is known now of a call that has its outcome."""
        code = self._code if self.attempts else self
        ended = code.phase is Phase.ENDED
        completion: Completion = "not_started" if not self.started else "settled" if ended else "unknown"
        started = self.started
        is_resumed = self.is_resumed or self.is_replayed or self.was_begun
        if is_resumed and self.settlement is not None:
            effects = self.settlement.side_effect_state
            started = effects != "not_started"
            completion = "settled" if effects is None else effects
        cancellation: Cancellation = "none"
        if code.stop_requested and self.started:  # code that was never entered was not asked anything
            cancellation = "acknowledged" if code.acknowledged else "requested"
        end = code.ended_at or self.closed_at or 0.0
        return ExecutionOutcome(
            execution_id=self.id,
            call_id=self.call.id,
            tool_name=self.call.name,
            generation=self.engine.generation,
            run_id=self.engine.run_id,
            status=self.status(),
            started=started,
            completion=completion,
            cancellation=cancellation,
            started_at=self.started_wall,
            duration=None if self.started_at is None else max(0.0, end - self.started_at),
            timeout=self.fired,
            deadline_late_by=self.deadline_late_by,
            repeats=self.repeats,
            resumed=is_resumed,
            exception=self.exception,
        )

    def status(self) -> ExecutionStatus:
        """Return how the call ended for the caller; it has its outcome."""
        settlement = self.settlement
        if settlement is None:
            raise AssertionError(f"call {self.call.id} has no outcome yet")
        if self.is_pending:
            return self.final or "pending"
        if settlement.status == "success":
            return "succeeded" if self.failure is None else "failed"
        if settlement.provenance == "reported":
            return "failed" if settlement.status == "error" else "cancelled"
        if settlement.code == "not_started":
            return "failed" if self.was_begun else "not_started"
        if self.is_answered or settlement.code == OUTCOME_UNKNOWN:
            return "denied" if settlement.message.startswith(NOT_EXECUTED) else "failed"
        return "timed_out" if settlement.code == "timeout" else "cancelled"


current_execution: ContextVar[Execution] = ContextVar("toolbatch_current_execution")
"""The execution whose code is running here, in the loop or in a thread (T11)."""
