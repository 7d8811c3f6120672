"""Running one tool: what kind of thing it is, and the few lines that stand between it and the batch."""

import asyncio
import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from contextvars import Context, copy_context
from enum import Enum, auto
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from toolbatch.core import EncodingError, InvalidTypeError, preview
from toolbatch.tools import AnyTool

from ._context import current_call
from ._execution import Execution, current_execution
from ._failures import discard, is_a, is_awaitable
from ._reports import raised, returned
from ._threads import Job

if TYPE_CHECKING:
    from ._engine import Engine

__all__ = ["Kind", "Work", "drive", "kind_of", "launch_task", "not_launched", "thread_job", "was_thrown_in"]

_COROUTINE_FLAG = inspect.CO_COROUTINE


class Kind(Enum):
    """How a tool is run (B1)."""

    FUNCTION = auto()  # called in a task, and awaited there
    GENERATOR = auto()  # drained in a task: its last item is the result, those before are progress
    AWAITABLE = auto()  # awaited in a task
    THREAD = auto()  # called in a thread; if it returns an awaitable, that is awaited in a task
    TURN = auto()  # of a guided call: nothing is run, but a future is told that it is its turn


class Work(NamedTuple):
    """What a call will run, and in which context.

    Attributes:
        kind: How.
        fn: The tool.
        args: Its positional arguments.
        kwargs: Its named arguments.
        context: Where; `None` for a copy of the context of whoever launches it.
        tool: The tool that it belongs to, where it belongs to one.
        is_alone: Whether no other call of the batch may overlap with it (T8).
        resources: Names of what no other call may use meanwhile (T8).
    """

    kind: Kind
    fn: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    context: Context | None = None
    tool: AnyTool | None = None
    is_alone: bool = False
    resources: frozenset[str] = frozenset()


def kind_of(fn: object, has_arguments: bool) -> Kind:  # noqa: FBT001  a fact about the call beside it, not an option
    """Say how `fn` is run.

    Raises:
        InvalidTypeError: It is neither a function nor an awaitable, or an awaitable with arguments.
    """
    # The usual case first: inspect's own test takes longer than the rest of a start.
    plain = fn.__func__ if type(fn) is MethodType else fn
    if type(plain) is FunctionType and plain.__code__.co_flags & _COROUTINE_FLAG:
        return Kind.FUNCTION
    if inspect.isawaitable(fn):
        if has_arguments:
            raise InvalidTypeError(
                f"an awaitable takes no arguments; start {preview(fn)} without, or give its function"
            )
        return Kind.AWAITABLE
    if not callable(fn):
        raise InvalidTypeError(f"a tool must be a function or an awaitable, not {preview(fn)}")
    unwrapped: Any = fn
    while isinstance(unwrapped, functools.partial):
        unwrapped = unwrapped.func
    called = getattr(type(unwrapped), "__call__", None)  # noqa: B004  a callable object may be async
    if inspect.iscoroutinefunction(unwrapped) or inspect.iscoroutinefunction(called):
        return Kind.FUNCTION
    if inspect.isasyncgenfunction(unwrapped) or inspect.isasyncgenfunction(called):
        return Kind.GENERATOR
    return Kind.THREAD


def drive(engine: "Engine", execution: Execution, work: Work) -> Coroutine[Any, Any, None]:
    """Return the body of the task that runs a tool and reports how it ended. It raises nothing."""
    if work.kind is Kind.FUNCTION:
        return _drive_function(engine, execution, work.fn, work.args, work.kwargs)
    if work.kind is Kind.GENERATOR:
        return _drive_function(engine, execution, _drain, (work.fn, *work.args), work.kwargs)
    return _drive_awaitable(engine, execution, work.fn)


async def _drive_function(
    engine: "Engine",
    execution: Execution,
    fn: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> None:
    if not engine.enter(execution):
        return
    try:
        value = await fn(*args, **kwargs)
    except BaseException as error:
        if was_thrown_in(execution, error):
            raise
        raised(engine, execution, error)  # whatever a tool raises is its call's outcome (B4)
    else:
        returned(engine, execution, value)


def was_thrown_in(execution: Execution, error: BaseException) -> bool:
    """Whether a coroutine gets `error` from outside, where a loop is torn down: then it must not go on after it."""
    if not is_a(error, GeneratorExit) or execution.task is None:
        return False  # an eager task takes its first steps before anyone knows it
    try:
        return asyncio.current_task() is not execution.task
    except RuntimeError:
        return True


async def _drive_awaitable(engine: "Engine", execution: Execution, awaitable: Awaitable[Any]) -> None:
    async def wait() -> Any:
        return await awaitable

    await _drive_function(engine, execution, wait, (), {})
    discard(awaitable)


async def _drain(fn: Callable[..., AsyncGenerator[Any, None]], /, *args: Any, **kwargs: Any) -> Any:
    """Run an async generator to its end: its last item is the result, every one before is progress (FIELD 42)."""
    items = fn(*args, **kwargs)
    last: Any = None
    try:
        first = True
        async for item in items:
            if not first:
                with suppress(
                    EncodingError
                ):  # what is on its way and has no text is no progress, and no failure either
                    current_call().progress(last)
            last, first = item, False
    finally:
        await items.aclose()
    return last


def launch_task(
    engine: "Engine", execution: Execution, body: Coroutine[Any, Any, None], context: Context | None
) -> None:
    """Run a call's code in a task of its own."""
    try:
        engine.crew_of(execution).launch(execution, body, context)
    except Exception as error:  # noqa: BLE001  whatever the host's task factory raises
        not_launched(engine, execution, error)


def not_launched(engine: "Engine", execution: Execution, error: Exception) -> None:
    """Nothing will run a call's code, since there is no task or thread for it: that is its end."""
    execution.exception = error  # which an attempt's guide is told of
    engine.loop.call_soon(raised, engine, execution, error)


def thread_job(engine: "Engine", execution: Execution, work: Work) -> Job:
    """Return the job that runs a synchronous tool in a thread, in its own copy of the starter's context (B11)."""
    context = work.context or copy_context()

    def run() -> None:
        execution.started_at = engine.clock.now()
        if engine.listeners:
            engine.clock.call(engine.listeners.started, execution)
        try:
            value = context.run(_call, execution, work)
        except BaseException as error:  # noqa: BLE001  whatever a tool raises is its call's outcome (B4)
            told = engine.clock.call(raised, engine, execution, error)
        else:
            told = engine.clock.call(_returned_from_thread, engine, execution, value, context)
            if not told:
                discard(value)
        if not told:
            engine.crew.ended(execution)  # at least it is not counted as running any more

    return Job(run, functools.partial(engine.clock.call, engine.arm, execution))


def _returned_from_thread(engine: "Engine", execution: Execution, value: object, context: Context) -> None:
    engine.entries.hear(execution, engine.loop.time())
    if not is_awaitable(value):
        returned(engine, execution, value)
    elif execution.stop_requested or execution.is_over:
        discard(value)
        raised(engine, execution, asyncio.CancelledError())
    else:
        execution.work = work = Work(Kind.AWAITABLE, value, (), {}, context)
        launch_task(engine, execution, drive(engine, execution, work), context)


def _call(execution: Execution, work: Work) -> Any:
    current_execution.set(execution)
    return work.fn(*work.args, **work.kwargs)
