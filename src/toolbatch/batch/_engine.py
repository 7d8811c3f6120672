"""The engine of one batch: everything that happens to a call comes through here, in the loop's thread.

Read `feed` first: whatever happens to one call - its tool returns or raises, its deadline passes, the caller cancels it -
is fed to the core there, and what follows is done there. `conclude` is its other half, for the batch as a whole. Both
are synchronous, so no cancellation can fall between deciding and knowing. Settle first, cancel afterwards.
"""

import asyncio
import logging
import weakref
from collections.abc import Callable, Collection, Iterable
from contextvars import copy_context
from typing import Any, Final, Literal

from toolbatch.core import (
    Accepted,
    CallProblem,
    CloseStatus,
    Rejected,
    SideEffectState,
    Snapshot,
    ToolCallClosure,
    ToolError,
)

from ._accounts import cut_off, publish_late, retire
from ._clock import Clock
from ._crew import Crew
from ._deadlines import Deadlines
from ._drive import Kind, Work, drive, thread_job
from ._entries import Entries
from ._execution import NEVER, Execution, Phase, current_execution
from ._host import Host
from ._log import tell
from ._options import BatchOptions
from ._places import Places
from ._reports import raised
from ._waiting import Waiting

__all__ = ["Engine"]

Verb = Callable[..., Accepted | Rejected]
"""One of the closure's `succeed`, `fail`, `cancel`, `close_call`."""

_OBSERVED: Final[dict[object, Literal["success", "error", "cancelled"]]] = {
    ToolCallClosure.succeed: "success",
    ToolCallClosure.fail: "error",
    ToolCallClosure.cancel: "cancelled",
}


class Engine:
    """One generation of a host's closure, with the tasks, threads and timers that serve it.

    Args:
        host: What outlives the batch.
        options: The batch's options.
        calls: What the model announced.

    Raises:
        InvalidInputError: A call can't be used. Nothing has begun; an older batch goes on.
        InvalidTypeError: Likewise.
    """

    result: Snapshot | None = None
    fatal: ToolError | None = None
    deadline = NEVER  # of the batch, in loop time
    bound = NEVER  # the same, in seconds from the beginning
    _started = 0  # invariant: calls that the caller has started and that have no outcome
    _closed_at = 0.0  # loop time
    bound_fired: float | None = None  # the batch's bound, once it has
    late_by: float | None = None
    _stuck_told = False
    _unaccounted = False  # closed, and the calls that this cut off not told so yet

    def __init__(self, host: Host, options: BatchOptions, calls: Iterable[object]) -> None:
        self.clock = clock = Clock()
        self.loop = clock.loop
        self.host = host
        self.options = options
        self.closure = host.closure
        begun = host.begin(self, calls)
        self._handle = begun.handle
        self.generation = begun.generation
        self.run_id = options.run_id
        self.crew = Crew(clock.loop)
        self._on_outcome = options.on_outcome
        self._is_watchful = options.on_error != "continue"  # or calls wait: something may follow when one is settled
        self._deadlines = Deadlines(clock.loop, self.expire)
        self._places = Places(options.max_concurrency)
        self.entries = Entries()
        self._waiting = Waiting()
        own = weakref.ref(self)
        self.executions = {call.id: Execution(call, own) for call in begun.announced}
        self._unsettled = len(self.executions)  # invariant: executions without an outcome

    def open(self) -> None:
        """Answer the calls that can't be run (P6). Observers hear of it, so the batch's owner must have the engine by now."""
        for execution in self.executions.values():
            problem = execution.call.problem
            if problem is not None:
                self.answer(execution, problem.code, problem.message)
        if not self.executions:
            self.conclude(self.closure.seal(self._handle))

    # -- the doorway -------------------------------------------------------------------------------------------------

    def feed(self, execution: Execution, verb: Verb, *details: Any) -> Accepted | Rejected:
        """Tell the core what happened to one call, and carry out what follows: no call is settled elsewhere while the batch is open.

        Args:
            execution: The call.
            verb: The operation of the closure that says it.
            *details: That operation's arguments after the call's id.

        Raises:
            Exception: What the core raises; then nothing has changed, and nothing follows.
        """
        answer = verb(self._handle, execution.call.id, *details)
        settlement = answer.settlement if type(answer) is Accepted else None
        if settlement is not None:
            execution.settlement = settlement
            execution.closed_at = execution.ended_at or self.loop.time()
            self._unsettled -= 1
            phase = execution.phase
            if phase:  # ANNOUNCED is 0
                self._started -= 1
                if phase is not Phase.QUEUED:
                    self._places.taken -= 1
            if phase is not Phase.ENDED or self._on_outcome is not None:
                retire(self, execution)
            if self._unsettled == 0:
                self.conclude(self.closure.seal(self._handle), execution.closed_at)
            elif self._started == 0 or self._is_watchful:
                self._go_on(execution)
        elif type(answer) is Rejected and (observed := _OBSERVED.get(getattr(verb, "__func__", None))) is not None:
            self.settle_accounts()
            self.host.late(execution, answer.reason, observed, details[0])
            publish_late(self, execution)
        return answer

    def conclude(self, snapshot: Snapshot | Rejected, closed_at: float | None = None) -> None:
        """Take note that the batch is closed: wake who waits for it now, tell and stop its calls right after.

        With ten thousand pending calls the second part takes longer than the first may (DESIGN, Speed).
        """
        if self.result is not None or isinstance(snapshot, Rejected):
            return
        self.result = snapshot
        self._closed_at = closed_at or self.loop.time()
        self._deadlines.stop()
        self._unaccounted = self._unsettled > 0
        self._waiting.wake_all()
        if self._on_outcome is not None:
            self.settle_accounts()  # observers are told by the time the caller can see it (O3)
        elif self._unaccounted and not self.loop.is_closed():
            self.loop.call_soon(self.settle_accounts)

    def settle_accounts(self) -> None:
        """Tell every call that the close cut off so: its outcome, its counters and observers, and its tool to stop."""
        if not self._unaccounted or self.result is None or not self.clock.is_here():
            return
        self._unaccounted = False
        self._places.clear()
        cut_off(self, self.result, self._closed_at)

    def _go_on(self, execution: Execution) -> None:
        """One call more is settled, and others are not: let the next one run, unless this one ends the batch."""
        if self.result is not None:
            return  # an observer has closed the batch
        # A call that can't be run is the model's mistake, and not a tool's failure.
        ran = self.options.on_error == "cancel_siblings" and execution.phase is not Phase.ANNOUNCED
        if ran and execution.status() in ("failed", "timed_out"):
            message = f"Cancelled, because the call of {execution.call.name} in the same turn failed."
            self.close("cancelled", "sibling_failed", message, None)
        else:
            while (ready := self._places.next()) is not None:
                self._launch(*ready)
            if self._started == 0:
                self._waiting.wake_quiet()
                self._tell_if_stuck()

    def set_deadline(self, when: float, now: float) -> None:
        """Bound the batch by a time of the loop's clock."""
        if when < NEVER and self.result is None:
            self.deadline = max(when, now)  # one that is over already is now, and not late
            self.bound = self.deadline - now
            self._deadlines.add(self.deadline, None)

    # -- starting ----------------------------------------------------------------------------------------------------

    def start(self, execution: Execution, work: Work | CallProblem, bound: float | None) -> None:
        """Run a call's code now, or as soon as there is a place (B13, T8); or answer it, where it can't be run.

        Its own bound counts from its launch: the given one, else its tool's, else that of the batch's calls.
        """
        if isinstance(work, CallProblem):
            self.answer(execution, work.code, work.message)
            return
        tool = execution.tool = work.tool
        if bound is None:
            bound = self.options.call_timeout if tool is None or tool.timeout is None else tool.timeout
        execution.timeout = bound
        self._started += 1
        if work.kind is Kind.AWAITABLE and asyncio.isfuture(work.fn):
            execution.started_at = self.loop.time()  # it may be running already (B5)
        if self._places.is_free(work):
            self._launch(execution, work)
        else:
            self._places.wait(execution, work._replace(context=copy_context()))
            self._is_watchful = True

    def _launch(self, execution: Execution, work: Work) -> None:
        self._places.taken += 1
        if work.is_alone:
            self._places.alone = execution
        execution.deadline = self.deadline
        if work.kind is Kind.THREAD:
            self.entries.expect(execution)
            try:
                if self.crew.launch_thread(execution, thread_job(self, execution, work)):
                    self.arm(execution)  # else when a thread is free (B13)
            except RuntimeError as error:  # the system has no thread left
                self.entries.forget(execution)
                self.loop.call_soon(raised, self, execution, error)
            return
        self.arm(execution)
        if work.kind is Kind.AWAITABLE:
            execution.work = work  # so that what is never awaited can be closed
        self.crew.launch(execution, drive(self, execution, work), work.context)

    def arm(self, execution: Execution) -> None:
        """Let a call's own bound count from now."""
        when = self.loop.time() + execution.timeout
        if when < self.deadline and execution.settlement is None:
            execution.deadline = when
            self._deadlines.add(when, execution)

    def enter(self, execution: Execution) -> bool:
        """Take note that a task is about to enter the tool's code; False says that it must not: the call has its outcome."""
        if execution.settlement is not None or self.result is not None:
            self.crew.never_entered(execution)
            return False
        execution.work = None
        execution.phase = Phase.ENTERED
        if execution.started_at is None:
            execution.started_at = self.loop.time()
        current_execution.set(execution)
        return True

    # -- what the tools report ---------------------------------------------------------------------------------------

    def end(self, execution: Execution) -> None:
        """A tool's code has ended. What was due before is settled first: a deadline decides, not the order of callbacks."""
        if execution.phase is Phase.ENDED:
            return
        execution.ended_at = now = self.loop.time()
        if now >= execution.deadline and self.result is None:
            self._deadlines.fire()
        self.crew.ended(execution)

    def end_turn(self, error: ToolError) -> None:
        """A tool has said that the turn must end: the exit will raise what it raised (B4)."""
        self.fatal = self.fatal or error
        self.close("error", "batch_failed", f"The turn ended: {error.message}", None)

    def report_progress(self, execution: Execution, text: str) -> None:
        """Keep what a running tool has so far; after the call's outcome it is nothing (B19)."""
        if execution.settlement is None and self.result is None:
            self.closure.progress(self._handle, execution.call.id, text)

    # -- closing -----------------------------------------------------------------------------------------------------

    def close(
        self, status: CloseStatus, code: str | None, message: str | None, side_effect_state: SideEffectState | None
    ) -> Snapshot:
        """Close the batch and return its snapshot; on a closed one, return that."""
        if self.result is None:
            withdrawn = self.ascertain()
            try:
                self.conclude(self.closure.close(self._handle, status, code, message, side_effect_state))
            except BaseException:
                self.restore(withdrawn)
                raise
        assert self.result is not None  # noqa: S101  a superseded batch was concluded by the one that replaced it
        return self.result

    def close_call(self, execution: Execution, code: str | None, message: str | None) -> Accepted | Rejected:
        """Give one call a synthetic cancellation, with what is known of its side effects (B15)."""
        withdrawn = self.ascertain([execution])
        try:
            return self.feed(execution, self.closure.close_call, "cancelled", code, message, None)
        except BaseException:
            self.restore(withdrawn)
            raise

    def answer(self, execution: Execution, code: str, message: str) -> None:
        """Answer a call that can't be run, with an error that the model can act on."""
        self.feed(execution, self.closure.close_call, "error", code, message, "not_started")

    def expire(self, execution: Execution | None, late_by: float | None) -> None:
        """A deadline has passed, of one call or of the batch; `late_by` where a blocked loop delayed it (B14)."""
        if execution is None:
            self.bound_fired, self.late_by = self.bound, late_by
            self.close("cancelled", "timeout", f"The turn's time of {self.bound:g} seconds is over.", None)
        elif execution.settlement is None and self.result is None:
            execution.fired, execution.deadline_late_by = execution.timeout, late_by
            self.close_call(execution, "timeout", f"Tool call timed out after {execution.timeout:g} seconds.")

    def ascertain(self, executions: Collection[Execution] | None = None) -> list[Execution]:
        """Tell the core, before it closes these calls or all, which of them have begun (B5).

        What waits in a thread's queue is withdrawn from it, so that it will not begin in this very moment. Those are
        returned, for `restore`.
        """
        withdrawn = self.entries.withdraw(executions, self.loop.time())
        if executions is None:
            self.closure.start_many(
                self._handle, bytes([execution.started_at is not None for execution in self.executions.values()])
            )
        else:
            for execution in executions:
                if execution.started_at is not None and execution.settlement is None and self.result is None:
                    self.closure.start(self._handle, execution.call.id)
        return withdrawn

    def restore(self, withdrawn: list[Execution]) -> None:
        """Undo what `ascertain` withdrew, where the close was refused."""
        if self.result is None:
            self.entries.restore(withdrawn)

    # -- waiting -----------------------------------------------------------------------------------------------------

    async def wait_closed(self) -> Snapshot:
        """Wait until every call has its outcome, and return the closed snapshot (B2)."""
        while self.result is None:
            waiter = self._waiting.for_close(self.loop)
            self._tell_if_stuck()
            try:
                await waiter
            except BaseException:
                self._waiting.forget(waiter)
                raise
        return self.result

    async def wait_quiet(self) -> None:
        """Wait until every call that was started has its outcome."""
        while self.result is None and self._started:
            waiter = self._waiting.for_quiet(self.loop)
            try:
                await waiter
            except BaseException:
                self._waiting.forget(waiter)
                raise

    async def wind_down(self) -> None:
        """Wait for tools that were asked to stop, at most `teardown_timeout`; in a session, leave them to it (B6)."""
        self.settle_accounts()
        if self.host.crew is None:
            try:
                await self.crew.wait(self.options.teardown_timeout)
            finally:
                self.leave()
        else:
            self.leave()

    def leave(self) -> None:
        """Stop answering for what still runs, without waiting."""
        self.settle_accounts()
        self.host.release(self)
        if self.host.crew is not None:
            self.crew.hand_over(self.host.crew)
        elif not self.crew.is_idle:
            self.crew.let_go()

    def _tell_if_stuck(self) -> None:
        if self._waiting and not self._started and not self._stuck_told and self.result is None:
            self._stuck_told = True
            waiting = [execution.call.id for execution in self.executions.values() if execution.settlement is None]
            tell(
                logging.WARNING, "snapshot() waits for %d calls that nobody has started: %s", len(waiting), waiting[:10]
            )

    @property
    def scope(self) -> str:
        """What idempotency keys are unique in: the host's run, or where it has no name this session or batch (B22)."""
        return self.run_id or self.host.scope
