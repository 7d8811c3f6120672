"""Waiting for a batch, and leaving it: what still runs is waited for within a bound, then answered for by others or let go (B6)."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from toolbatch.core import Snapshot, ToolError
from toolbatch.observe import log_event

if TYPE_CHECKING:
    from ._engine import Engine

__all__ = ["leave", "tell_if_stuck", "wait_closed", "wait_parked", "wait_quiet", "wait_recorded", "wind_down"]


async def wait_closed(engine: "Engine") -> Snapshot:
    """Wait until every call has its outcome, and return the closed snapshot (B2), once its journal has it too.

    Raises:
        ToolError: The journal can't be written; fatal (D4).
    """
    while engine.result is None:
        waiter = engine.waiting.for_close(engine.loop)
        tell_if_stuck(engine)
        await engine.waiting.wait(waiter)
    if engine.ledger is not None:
        await engine.ledger.written()
    return engine.result


async def wait_quiet(engine: "Engine") -> None:
    """Wait until every call that was started has its outcome."""
    while engine.result is None and engine.started:
        await engine.waiting.wait(engine.waiting.for_quiet(engine.loop))


async def wait_recorded(engine: "Engine") -> None:
    """Wait until a batch's journal has all that has happened; that it can't be written ends the turn by itself."""
    if engine.ledger is not None:
        with suppress(ToolError):
            await engine.ledger.written()


async def wait_parked(engine: "Engine") -> None:
    """Wait until every call that was started has its outcome, or waits for an approval."""
    engine.is_watchful = True
    await asyncio.sleep(0)  # calls that were started just now have yet to ask
    while engine.result is None and engine.started > len(engine.parked):
        await engine.waiting.wait(engine.waiting.for_parked(engine.loop))


async def wind_down(engine: "Engine") -> None:
    """Wait for tools that were asked to stop, at most `teardown_timeout`; in a session, leave them to it (B6)."""
    engine.settle_accounts()
    if engine.host.crew is not None:
        leave(engine)
        return
    engine.crew.stop_all()  # a placeholder's tool too: nobody is left who could take its result (O6)
    try:
        await engine.crew.wait(engine.options.teardown_timeout)
    finally:
        leave(engine)


def leave(engine: "Engine") -> None:
    """Stop answering for what still runs, without waiting."""
    engine.settle_accounts()
    engine.host.release(engine)
    if engine.host.crew is not None:
        engine.crew.hand_over(engine.host.crew)
    elif not engine.crew.is_idle:
        engine.crew.let_go()


def tell_if_stuck(engine: "Engine") -> None:
    """Say once that someone waits for calls which nobody has started."""
    if engine.waiting and not engine.started and not engine.stuck_told and engine.result is None:
        engine.stuck_told = True
        waiting = [execution.call.id for execution in engine.executions.values() if execution.settlement is None]
        log_event(
            "calls_not_started",
            "snapshot() waits for %d calls that nobody has started: %s",
            len(waiting),
            waiting[:10],
            call_ids=waiting,
            count=len(waiting),
            generation=engine.generation,
        )
