"""Starting a call: what its time bound is, and whether its code runs at once, waits, or goes through stages first."""

import asyncio
from contextvars import copy_context
from typing import TYPE_CHECKING

from toolbatch.core import CallProblem

from ._drive import Kind, Work
from ._execution import Execution
from ._guide import Guided, guide
from ._launching import launch
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
    run = work.work if isinstance(work, Guided) else work
    if run is not None and run.kind is Kind.AWAITABLE and asyncio.isfuture(run.fn):
        execution.started_at = engine.loop.time()  # it may be running already (B5)
    if isinstance(work, Guided):
        execution.is_guided = True
        execution.deadline = engine.deadline
        if run is not None and run.kind is Kind.AWAITABLE:
            execution.work = run  # so that what is never awaited can be closed
        engine.crew.launch(execution, guide(engine, execution, work), context)
        return
    if context is not None:
        work = work._replace(context=context)
    if engine.places.is_free(work):
        launch(engine, execution, work)
    else:
        engine.places.wait(execution, work._replace(context=copy_context() if context is None else context))
        engine.is_watchful = True
