"""One call's execution: what the shell knows of it. The call's outcome is the core's; where its code is, is ours."""

import itertools
import os
import secrets
from contextvars import ContextVar
from enum import IntEnum
from inspect import iscoroutine
from typing import TYPE_CHECKING

from toolbatch.core import CallProblem, Settlement, ToolCall
from toolbatch.ports import Cancellation, Completion, ExecutionOutcome, ExecutionStatus

if TYPE_CHECKING:
    from asyncio import Task
    from threading import Event

    from ._crew import Crew
    from ._drive import Work
    from ._engine import Engine
    from ._threads import Job

__all__ = ["NEVER", "Execution", "Phase", "current_execution"]

NEVER = float("inf")

_numbers = itertools.count(1)
_prefix = secrets.token_hex(6)


def _renew_prefix() -> None:
    global _prefix  # noqa: PLW0603  a forked child must not go on with its parent's ids
    _prefix = secrets.token_hex(6)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_prefix)


class Phase(IntEnum):
    """Where the code of a call is. It only ever moves forward."""

    ANNOUNCED = 0  # nobody has started it
    QUEUED = 1  # started by the caller, waits for a place
    LAUNCHED = 2  # a task or a thread has it; its code may not have been entered yet
    ENTERED = 3  # its code runs
    ENDED = 4  # its code has ended, or never will be entered


class Execution:
    """One call of one batch. Mutable, private, and small: there may be a hundred thousand."""

    __slots__ = (
        "acknowledged",
        "call",
        "cancel_event",
        "closed_at",
        "crew",
        "deadline",
        "deadline_late_by",
        "ended_at",
        "engine",
        "exception",
        "failure",
        "fired",
        "job",
        "number",
        "phase",
        "settlement",
        "started_at",
        "started_wall",
        "stop_requested",
        "task",
        "timeout",
        "work",
    )  # fmt: skip

    def __init__(self, call: ToolCall, engine: "Engine") -> None:
        self.call = call
        self.engine = engine
        self.number = next(_numbers)
        self.phase = Phase.ANNOUNCED
        self.crew: Crew | None = None  # who owns the running code: the batch's, then perhaps the session's
        self.work: Work | None = None  # what it will run, while it is queued
        self.task: Task[None] | None = None
        self.job: Job | None = None  # the thread's side, for a sync function
        self.cancel_event: Event | None = None
        self.timeout = NEVER  # seconds that its code may take
        self.fired: float | None = None  # the bound that fired, in seconds: its own or the batch's
        self.deadline = NEVER  # loop time; the earlier of its own and the batch's
        self.deadline_late_by: float | None = None
        self.started_wall: float | None = None
        self.started_at = 0.0
        self.ended_at: float | None = None  # loop time
        self.closed_at: float | None = None  # loop time of its outcome
        self.settlement: Settlement | None = None  # its outcome, once it has been told
        self.stop_requested = False
        self.acknowledged = False
        self.exception: BaseException | None = None
        self.failure: CallProblem | None = None  # what the tool reported of itself besides its value (O4)

    @property
    def id(self) -> str:
        """The execution's id: unique over processes, and cheap."""
        return f"{_prefix}-{self.number}"

    @property
    def started(self) -> bool:
        """Whether the tool's code was entered."""
        return self.started_wall is not None

    def dispose(self) -> None:
        """Close a coroutine that was handed over and will not be run (B9)."""
        work, self.work = self.work, None
        if work is not None and iscoroutine(work.fn):
            work.fn.close()

    def outcome(self) -> ExecutionOutcome:
        """Return what is known now of a call that has its outcome."""
        ended = self.phase is Phase.ENDED
        completion: Completion = "not_started" if not self.started else "settled" if ended else "unknown"
        cancellation: Cancellation = "none"
        if self.stop_requested:
            cancellation = "acknowledged" if self.acknowledged else "requested"
        end = self.ended_at or self.closed_at or self.started_at
        return ExecutionOutcome(
            execution_id=self.id,
            call_id=self.call.id,
            tool_name=self.call.name,
            generation=self.engine.generation,
            run_id=self.engine.run_id,
            status=self.status(),
            started=self.started,
            completion=completion,
            cancellation=cancellation,
            started_at=self.started_wall,
            duration=max(0.0, end - self.started_at) if self.started else None,
            timeout=self.fired,
            deadline_late_by=self.deadline_late_by,
            exception=self.exception,
        )

    def status(self) -> ExecutionStatus:
        """Return how the call ended for the caller; it has its outcome."""
        settlement = self.settlement
        if settlement is None:
            raise AssertionError(f"call {self.call.id} has no outcome yet")
        if settlement.status == "success":
            return "succeeded" if self.failure is None else "failed"
        if settlement.provenance == "reported":
            return "failed" if settlement.status == "error" else "cancelled"
        if settlement.code == "not_started":
            return "not_started"
        if self.call.problem is not None or settlement.code == "unknown_tool":
            return "failed"
        return "timed_out" if settlement.code == "timeout" else "cancelled"


current_execution: ContextVar[Execution] = ContextVar("toolbatch_current_execution")
"""The execution whose code is running here, in the loop or in a thread (T11)."""
