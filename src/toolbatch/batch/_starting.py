"""Starting a call: what its time bound is, and whether its code runs at once, waits, or goes through stages first."""

import asyncio
from contextvars import copy_context
from typing import TYPE_CHECKING

from toolbatch.core import CallProblem

from ._drive import Kind, Work, launch_task
from ._execution import Execution
from ._guide import Guided, guide
from ._launching import run
from ._watching import prepared_context

if TYPE_CHECKING:
    from ._engine import Engine

__all__ = ["start"]


def start(engine: "Engine", execution: Execution, work: Work | Guided | CallProblem, bound: float | None) -> None:
    """Run a call's code now, or as soon as there is a place (B13, T8); or answer it, where it can't be run.

    Its own bound counts from its launch: the given one, else its tool's, else that of the batch's calls.
    """
    if isinstance(work, CallProblem):
        engine.answer(execution, work.code, work.message)
        return
    tool = execution.tool = work.tool
    execution.begins_elsewhere = tool is not None and tool.backend is not None
    if bound is None:
        bound = engine.options.call_timeout if tool is None or tool.timeout is None else tool.timeout
    execution.timeout = bound
    engine.started += 1
    context = prepared_context(engine, execution, tool) if engine.watchers else None
    if isinstance(work, Guided):
        execution.is_guided = True
        execution.deadline = engine.deadline
        if work.work is not None and work.work.kind is Kind.AWAITABLE:
            execution.work = work.work  # so that what is never awaited can be closed
            _note_future(engine, execution, work.work)
        launch_task(engine, execution, guide(engine, execution, work), context)
        return
    if work.kind is Kind.AWAITABLE:
        _note_future(engine, execution, work)
    if context is not None:
        work = work._replace(context=context)
    if engine.places.try_take(execution, work):
        run(engine, execution, work)
    else:
        engine.places.wait(execution, work._replace(context=copy_context() if context is None else context))
        engine.is_watchful = True


def _note_future(engine: "Engine", execution: Execution, work: Work) -> None:
    if asyncio.isfuture(work.fn):
        execution.started_at = engine.loop.time()  # it may be running already (B5)
