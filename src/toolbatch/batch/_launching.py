"""Running the code of a call: its turn among the others, its task or thread, its own time bound (B13, T8)."""

from typing import TYPE_CHECKING

from ._drive import Kind, Work, drive, launch_task, not_launched, thread_job
from ._execution import Execution, Phase

if TYPE_CHECKING:
    from ._engine import Engine

__all__ = ["advance", "begin_elsewhere", "give_place", "launch", "run", "take_place"]


def launch(engine: "Engine", execution: Execution, work: Work) -> None:
    """Give a call its place, and run its code; or tell its guide that it is its turn."""
    if work.kind is not Kind.TURN:
        engine.places.take(execution, work)
        run(engine, execution, work)
    elif not work.fn.done():  # one that is cancelled has not heard of it yet
        engine.places.take(execution, work)
        work.fn.set_result(None)


def advance(engine: "Engine") -> None:
    """Let those run whose turn has come."""
    if engine.is_advancing:
        return  # an eager task that ends at once: one frame for all of them, and not one in the other
    engine.is_advancing = True
    try:
        while engine.result is None and (ready := engine.places.next()) is not None:
            launch(engine, *ready)
    finally:
        engine.is_advancing = False


def run(engine: "Engine", execution: Execution, work: Work) -> None:
    """Run a call's code now."""
    execution.deadline = engine.deadline
    if work.kind is Kind.THREAD:
        engine.entries.expect(execution)
        try:
            if engine.crew_of(execution).launch_thread(execution, thread_job(engine, execution, work)):
                engine.arm(execution)  # else when a thread is free (B13)
        except RuntimeError as error:  # the system has no thread left
            engine.entries.forget(execution)
            not_launched(engine, execution, error)
        return
    if not execution.begins_elsewhere:
        engine.arm(execution)
    if work.kind is Kind.AWAITABLE:
        execution.work = work  # so that what is never awaited can be closed
    launch_task(engine, execution, drive(engine, execution, work), work.context)


def begin_elsewhere(engine: "Engine", execution: Execution) -> None:
    """A backend is about to enter a call's code. Until then it has waited for a place there, and its bound has not counted (B13)."""
    if execution.started_at is None:
        execution.started_at = engine.loop.time()
        engine.arm(execution)
        if engine.listeners:
            engine.listeners.started(execution)


async def take_place(engine: "Engine", execution: Execution, work: Work) -> None:
    """Wait for the turn of a guided call."""
    if engine.places.try_take(execution, work):
        return
    turn = engine.loop.create_future()
    engine.places.wait(execution, work._replace(kind=Kind.TURN, fn=turn))
    engine.is_watchful = True
    advance(engine)  # it may wait for nothing that those in front of it wait for
    try:
        await turn
    except BaseException:
        if turn.done() and not turn.cancelled():
            give_place(engine, execution, work)
        else:
            engine.places.withdraw(execution)
        raise


def give_place(engine: "Engine", execution: Execution, work: Work) -> None:
    """A guided call's turn is over. What it has locked stays so while any run of its tool goes on, within a bound (T8)."""
    if execution.has_place:
        engine.places.give_back(execution)
    if engine.loop.is_closed():
        return
    if work.resources:
        going = [attempt for attempt in execution.attempts if attempt.phase is not Phase.ENDED]
        engine.host.unlock(engine.loop, work.resources, going, engine.options.teardown_timeout)
    advance(engine)
