"""Telling of outcomes: observers, and the tools that are to stop. What a close cuts off is told in one go, right after it."""

from typing import TYPE_CHECKING

from toolbatch.core import Snapshot
from toolbatch.ports import CallSettled, ExecutionOutcome

from ._execution import OUTCOME_UNKNOWN, Execution, Phase

if TYPE_CHECKING:
    from ._engine import Engine

__all__ = ["cut_off", "outcomes", "publish_late", "retire"]


def retire(engine: "Engine", execution: Execution) -> None:
    """A call has its outcome: publish it, and ask its code to stop if that still runs."""
    end = execution.settlement
    # What was told before a crash is not told again; that nobody knows how a call ended, a resume is the first to say.
    if engine.is_observed and end is not None and (not execution.is_resumed or end.code == OUTCOME_UNKNOWN):
        outcome = execution.outcome()
        engine.listeners.tell(CallSettled(outcome, end))  # first: an observer of outcomes may close the batch
        if engine.options.on_outcome is not None:
            engine.host.publish(engine.options.on_outcome, outcome, engine.crew)
    if execution.is_pending:
        return
    if execution.phase is not Phase.ENDED and not engine.loop.is_closed():
        engine.crew.ask_to_stop(execution)


def cut_off(engine: "Engine", result: Snapshot, closed_at: float) -> None:
    """Give every execution that has no outcome of its own what the close made of its call, then tell of them all."""
    concerned = []
    for execution, (_, settlement) in zip(engine.executions.values(), result.settled(), strict=True):
        if execution.settlement is None:
            execution.settlement = settlement
            execution.closed_at = closed_at
            execution.fired = engine.bound_fired
            execution.deadline_late_by = engine.late_by
            concerned.append(execution)
    for execution in concerned:
        retire(engine, execution)


def publish_late(engine: "Engine", execution: Execution) -> None:
    """The code of a call has ended after its outcome (O3): of a guided call all of it, if any of it was the tool's."""
    engine.settle_accounts()
    if execution.is_guided:
        if execution.is_told_late or not execution.started or not execution.has_ended:
            return
        execution.is_told_late = True
    if engine.options.on_late is None and not engine.watchers:
        return
    outcome, crew = execution.outcome(), engine.crew_of(execution)
    if engine.options.on_late is not None:
        engine.host.publish(engine.options.on_late, outcome, crew)
    for watcher in engine.watchers:
        engine.host.publish(watcher.ended, outcome, crew)


def outcomes(engine: "Engine") -> dict[str, ExecutionOutcome]:
    """Return what is known now of every call that has its outcome."""
    engine.settle_accounts()
    executions = engine.executions.items()
    return {call_id: execution.outcome() for call_id, execution in executions if execution.settlement is not None}
