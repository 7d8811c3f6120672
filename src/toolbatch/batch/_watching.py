"""Who watches a batch besides its own observers: what each of them is told, and how its calls' contexts are made ready."""

from collections.abc import Iterable
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING

from toolbatch.core import InvalidTypeError, preview
from toolbatch.ports import BatchObserver, BatchOpened, BatchWatcher, CallAdmitted, StaleResult

if TYPE_CHECKING:
    from toolbatch.tools import AnyTool

    from ._engine import Engine
    from ._execution import Execution

__all__ = ["prepared_context", "tell_late", "watch"]


def watch(engine: "Engine", observers: Iterable[BatchObserver]) -> None:
    """Ask each observer for its watcher, which hears of everything in this batch from now on."""
    asked = tuple(observers)
    if not asked:
        return
    calls = tuple(execution.call for execution in engine.executions.values())
    opened = BatchOpened(generation=engine.generation, run_id=engine.run_id, calls=calls)
    for observer in asked:
        engine.host.publish(partial(_add, engine, observer), opened, engine.crew)


def _add(engine: "Engine", observer: BatchObserver, opened: BatchOpened) -> None:
    watcher = observer(opened)
    if watcher is None:
        return
    if not isinstance(watcher, BatchWatcher):
        raise InvalidTypeError(f"an observer must return a BatchWatcher or None, not {preview(watcher)}")
    engine.watchers = (*engine.watchers, watcher)
    engine.listen(partial(engine.host.publish, watcher.event, crew=engine.crew))


def prepared_context(engine: "Engine", execution: "Execution", tool: "AnyTool | None") -> Context:
    """Return the context in which a call is to run: a copy of its starter's (B11), with what the watchers put there."""
    context = copy_context()
    description = None if tool is None else tool.description
    admitted = CallAdmitted(call=execution.call, execution_id=execution.id, description=description)
    for watcher in engine.watchers:
        engine.host.publish(partial(_prepare, watcher, context), admitted, engine.crew)
    return context


def _prepare(watcher: BatchWatcher, context: Context, admitted: CallAdmitted) -> None:
    watcher.prepare(admitted, context)


def tell_late(engine: "Engine", stale: StaleResult, *, kept: bool) -> None:
    """Tell of a late result."""
    for watcher in engine.watchers:
        engine.host.publish(partial(watcher.late, kept=kept), stale, engine.crew)
