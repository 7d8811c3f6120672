"""The engine of one batch: everything that happens to a call comes through here, in the loop's thread.

Read `feed` first: whatever happens to one call - its tool returns or raises, its deadline passes, the caller cancels it -
is fed to the core there, and what follows is done there. `conclude` is its other half, for the batch as a whole. Both
are synchronous, so no cancellation can fall between deciding and knowing. Settle first, cancel afterwards.
"""

import weakref
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Final, Literal

from toolbatch.core import (
    Accepted,
    CloseStatus,
    Rejected,
    SideEffectState,
    Snapshot,
    ToolCallClosure,
    ToolError,
    preview,
)
from toolbatch.ports import ApprovalRequest, ApprovalRequested, BatchClosed, BatchWatcher
from toolbatch.tools import NOT_EXECUTED

from ._accounts import cut_off, publish_late, retire
from ._attempt import Attempt
from ._clock import Clock
from ._crew import Crew
from ._deadlines import Deadlines, tell_batch_timeout, tell_call_timeout
from ._durable import durable_of, require_run
from ._entries import Entries
from ._events import Listener, Listeners
from ._execution import NEVER, Execution, Phase, current_execution
from ._host import Host
from ._launching import advance
from ._leaving import tell_if_stuck
from ._ledger import open_ledger
from ._options import BatchOptions
from ._placeholders import finish
from ._places import Places
from ._plan import plan_problem
from ._resume import Saved, begun_before, rehearse, restore
from ._starting import start
from ._waiting import Waiting
from ._watching import watch

__all__ = ["Engine"]

Verb = Callable[..., Accepted | Rejected]
"""One of the closure's `succeed`, `fail`, `cancel`, `close_call`."""

_OBSERVED: Final[dict[object, Literal["success", "error", "cancelled"]]] = {
    ToolCallClosure.succeed: "success",
    ToolCallClosure.fail: "error",
    ToolCallClosure.cancel: "cancelled",
}

_WAITS = f"{NOT_EXECUTED}: the call was still waiting for an approval."


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
    started = 0  # invariant: calls that the caller has started and that have no outcome
    _closed_at = 0.0  # loop time
    bound_fired: float | None = None  # the batch's bound, once it has
    late_by: float | None = None
    stuck_told = False
    is_advancing = False
    watchers: tuple[BatchWatcher, ...] = ()
    _unaccounted = False  # closed, and the calls that this cut off not told so yet

    def __init__(self, host: Host, options: BatchOptions, calls: Iterable[object]) -> None:
        self.clock = clock = Clock()
        self.loop = clock.loop
        self.host = host
        self.options = options
        require_run(options)
        self.closure = host.closure
        self._saved: Saved = {}
        if options.resume is not None:
            rehearsal = ToolCallClosure(host.closure.limits, host.encode)
            calls, self._saved = rehearse(rehearsal, calls, options.resume, durable_of(options))
        begun = host.begin(self, calls)
        self._handle = begun.handle
        self.generation = begun.generation
        self.run_id = options.run_id
        self.crew = Crew(clock.loop)
        self.listeners = Listeners()
        if options.on_event is not None:
            self.listeners.append(partial(host.publish, options.on_event, crew=self.crew))
        self.is_observed = bool(self.listeners) or options.on_outcome is not None
        self.is_watchful = options.on_error != "continue"  # or calls wait: something may follow when one is settled
        self._deadlines = Deadlines(clock.loop, self.expire)
        self.places = Places(options.max_concurrency, host.locked)
        self.entries = Entries()
        self.waiting = Waiting()
        self.ledger = open_ledger(self, options, self._saved)
        own = weakref.ref(self)
        self.executions = {call.id: Execution(call, own) for call in begun.announced}
        self._unsettled = len(self.executions)  # invariant: executions without an outcome
        self.parked: set[Execution] = set()  # invariant: those among the started that wait for an approval

    def open(self) -> None:
        """Answer the calls that can't be run (P6). Observers hear of it, so the batch's owner must have the engine by now."""
        if self.ledger is not None:
            self.ledger.begin(self)  # before anything that follows from the announcement
        for call_id, doubt in begun_before(self.options.resume, self._saved, durable_of(self.options)):
            self.note_begun(self.executions[call_id], doubt)
        watch(self, (*self.host.observers, *self.options.observers))
        for call_id in self._saved:
            self.executions[call_id].is_resumed = True  # all of them, before an observer hears of one
        for call_id, end in self._saved.items():
            execution = self.executions[call_id]
            execution.is_answered = end.status == "error" and end.side_effect_state == "not_started"
            self.feed(execution, partial(restore, self.closure), end)
        for execution in self.executions.values():
            if execution.call.problem is not None and execution.settlement is None:
                start(self, execution, plan_problem(execution.call, execution.call.problem, self.options), None)
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
            if self.ledger is not None:
                self.ledger.settled(self, execution)
            phase = execution.phase
            if phase:  # ANNOUNCED is 0
                self.started -= 1
                self.parked.discard(execution)  # its broker may take its time to hear of it
                if execution.has_place:
                    self.places.give_back(execution)
            if phase is not Phase.ENDED or self.is_observed:
                retire(self, execution)
            if self._unsettled == 0:
                self.conclude(self.closure.seal(self._handle), execution.closed_at)
            elif self.started == 0 or self.is_watchful:
                self._go_on(execution)
        elif type(answer) is Rejected and (observed := _OBSERVED.get(getattr(verb, "__func__", None))) is not None:
            if execution.is_pending:
                finish(self, execution, observed, details)
            else:
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
        if self.ledger is not None:
            self.ledger.closed(self, snapshot, self._closed_at)
        self._deadlines.stop()
        self._unaccounted = self._unsettled > 0
        self.waiting.wake_all()
        if self.is_observed:
            self.settle_accounts()  # observers are told by the time the caller can see it (O3)
            self.listeners.tell(BatchClosed(snapshot))
        elif self._unaccounted and not self.loop.is_closed():
            self.loop.call_soon(self.settle_accounts)

    def settle_accounts(self) -> None:
        """Tell every call that the close cut off so: its outcome, its counters and observers, and its tool to stop."""
        if not self._unaccounted or self.result is None or not self.clock.is_here():
            return
        self._unaccounted = False
        self.places.clear()
        cut_off(self, self.result, self._closed_at)

    def _go_on(self, execution: Execution) -> None:
        """One call more is settled, and others are not: let the next one run, unless this one ends the batch."""
        if self.result is not None:
            return  # an observer has closed the batch
        # A call that can't be run is the model's mistake, and not a tool's failure.
        ran = execution.phase is not Phase.ANNOUNCED and not execution.is_answered
        if ran and self.options.on_error == "cancel_siblings" and execution.status() in ("failed", "timed_out"):
            message = f"Cancelled, because the call of {execution.call.name} in the same turn failed."
            self.close("cancelled", "sibling_failed", message, None)
        else:
            advance(self)
            if self.started == len(self.parked):
                self.waiting.wake_parked()
            if self.started == 0:
                self.waiting.wake_quiet()
                tell_if_stuck(self)

    def set_deadline(self, when: float, now: float) -> None:
        """Bound the batch by a time of the loop's clock."""
        if when < NEVER and self.result is None:
            self.deadline = max(when, now)  # one that is over already is now, and not late
            self.bound = self.deadline - now
            self._deadlines.add(self.deadline, None)

    # -- what the code of a call does ------------------------------------------------------------------------------

    def arm(self, execution: Execution) -> None:
        """Let a call's own bound count from now."""
        when = self.loop.time() + execution.timeout
        if when < self.deadline and execution.settlement is None:
            execution.deadline = when
            self._deadlines.add(when, execution)

    def enter(self, execution: Execution) -> bool:
        """Take note that a task is about to enter the tool's code; False says that it must not: the call has its outcome."""
        if (execution.settlement is not None or self.result is not None) and execution.is_over:
            self.crew_of(execution).never_entered(execution)
            return False
        execution.phase = Phase.ENTERED
        if not execution.is_guided:  # the guide's own steps are not the tool's (B5)
            execution.work = None
            if execution.started_at is None and not execution.begins_elsewhere:
                execution.started_at = self.loop.time()
        current_execution.set(execution)
        if self.listeners and execution.job is None:  # else a thread has told of it
            self.listeners.started(execution)
        return True

    def note_begun(self, execution: Execution, doubt: str | None) -> None:
        """A process that died had begun a call: whatever closes it now begins with `doubt`, until its operation says more (D4)."""
        execution.was_begun = doubt is not None
        if doubt is not None:
            self.closure.start(self._handle, execution.call.id)
        self.closure.hold(self._handle, execution.call.id, doubt)

    def listen(self, listener: Listener) -> None:
        """Tell `listener` of every event from now on; of a closed batch, of that alone."""
        if self.result is not None:
            listener(BatchClosed(self.result))
            return
        self.listeners.append(listener)
        self.is_observed = True

    def end(self, execution: Execution) -> None:
        """A tool's code has ended. What was due before is settled first: a deadline decides, not the order of callbacks."""
        if execution.phase is Phase.ENDED:
            return
        execution.ended_at = now = self.loop.time()
        if now >= execution.deadline and self.result is None:
            self._deadlines.fire()
        crew = execution.crew or self.crew
        if execution.work is None:
            crew.ended(execution)
        else:
            crew.never_entered(execution)  # of a guided call: an awaitable that was never awaited

    def end_turn(self, error: ToolError) -> None:
        """A tool has said that the turn must end: the exit will raise what it raised (B4)."""
        self.fatal = self.fatal or error
        self.close("error", "batch_failed", f"The turn ended: {error.message}", None)

    def report_progress(self, execution: Execution, text: str) -> None:
        """Keep what a running tool has so far; after the call's outcome it is nothing (B19)."""
        if execution.settlement is None and self.result is None and not execution.is_silent:
            if not self.options.hooks.after:  # what no policy has seen is not for the model (T6)
                self.closure.progress(self._handle, execution.call.id, text)
            if self.listeners:
                self.listeners.progress(execution, text)

    def park(self, execution: Execution, request: ApprovalRequest) -> None:
        """A call waits for an approval: whatever closes it meanwhile, the model reads that it was not executed (T7)."""
        self.parked.add(execution)
        if not execution.was_begun:
            self.closure.hold(self._handle, execution.call.id, _WAITS)
        self.listeners.tell(ApprovalRequested(request))
        if self.started == len(self.parked):
            self.waiting.wake_parked()

    def unpark(self, execution: Execution) -> None:
        """It waits no longer."""
        self.parked.discard(execution)
        if execution.settlement is None and self.result is None and not execution.was_begun:
            self.closure.hold(self._handle, execution.call.id, None)

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
        withdrawn = self.ascertain([execution, *execution.attempts])
        try:
            if execution.is_pending:
                self.crew.ask_to_stop(execution)  # its placeholder stands
            return self.feed(execution, self.closure.close_call, "cancelled", code, message, None)
        except BaseException:
            self.restore(withdrawn)
            raise

    def answer(self, execution: Execution, code: str, message: str) -> None:
        """Answer a call that can't be run, with an error that the model can act on."""
        message = message if isinstance(message, str) else preview(message)  # a validator's own error may hold anything
        if not message.startswith(NOT_EXECUTED):  # else it could have been run, and making it again is no mistake
            execution.repeats = self.host.count_repeats(execution.call, code)
        execution.is_answered = not execution.is_over
        effects: SideEffectState = "unknown" if execution.was_begun else "not_started"
        try:
            self.feed(execution, self.closure.close_call, "error", code, message, effects)
        except (TypeError, ValueError):  # a code that is blank, too long or no text: the answer matters more
            self.feed(execution, self.closure.close_call, "error", None, message, effects)

    def expire(self, execution: Execution | None, late_by: float | None) -> None:
        """A deadline has passed, of one call or of the batch; `late_by` where a blocked loop delayed it (B14)."""
        if execution is None:
            self.bound_fired, self.late_by, open_calls = self.bound, late_by, self._unsettled
            self.close("cancelled", "timeout", f"The turn's time of {self.bound:g} seconds is over.", None)
            tell_batch_timeout(self.generation, self.bound, late_by, open_calls)
        elif isinstance(execution, Attempt):
            if execution.settlement is None and execution.phase is not Phase.ENDED:
                execution.expired(self, late_by)
                tell_call_timeout(execution, late_by)
        elif execution.settlement is None and self.result is None:
            execution.fired, execution.deadline_late_by = execution.timeout, late_by
            self.close_call(execution, "timeout", f"Tool call timed out after {execution.timeout:g} seconds.")
            tell_call_timeout(execution, late_by)

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

    def crew_of(self, execution: Execution) -> Crew:
        """Who answers for what runs for a call: this batch's own crew, or who has taken it over."""
        return execution.crew or self.crew

    @property
    def scope(self) -> str:
        """What idempotency keys are unique in: the host's run, or where it has no name this session or batch (B22)."""
        return self.run_id or self.host.scope
