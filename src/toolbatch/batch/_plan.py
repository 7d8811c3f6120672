"""What a batch will run for a call: a function with checked arguments, its stages, or an answer instead (T3, T5)."""

from asyncio import isfuture
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from toolbatch.core import CallProblem, InvalidTypeError, ToolCall, ToolError, preview
from toolbatch.output import READER_NAME
from toolbatch.tools import Prepared, Refused, Tool, prepare, unchecked

from ._drive import Kind, Work, kind_of
from ._durable import is_recorded
from ._guide import Guided
from ._options import BatchOptions
from ._placed import placed
from ._reading import reading_tool

__all__ = ["plan_call", "plan_problem", "plan_start"]


def plan_call(call: ToolCall, options: BatchOptions) -> Work | Guided | CallProblem:
    """Find a call's tool by its name, and check its arguments.

    Raises:
        InvalidTypeError: What stands under that name is no function and no tool, or a tool that can't be run by anyone.
    """
    tools = {} if options.tools is None else options.tools
    found = tools.get(call.name)
    if found is None and call.name == READER_NAME and options.budget is not None and options.budget.store is not None:
        tools = {READER_NAME: reading_tool()}
        found = tools[READER_NAME]
    if found is not None and not isinstance(found, Tool):
        work = Work(kind_of(found, has_arguments=True), found, (), dict(call.arguments))
        return _unchecked(call, work) if options.is_guided else work
    prepared = prepare(call, tools)  # type: ignore[arg-type]  # what it finds there is a tool, or nothing
    if isinstance(prepared, Refused):
        return Guided(prepared, None) if options.is_guided else prepared.problem
    tool = prepared.tool
    run = placed(tool, call.arguments)
    kind = kind_of(run, has_arguments=True)
    work = Work(kind, run, prepared.args, prepared.kwargs, None, tool, not prepared.is_parallel)
    needs_stages = prepared.needs_approval or prepared.resources or tool.max_output_tokens is not None
    return _guided(prepared, work) if needs_stages or options.is_guided else work


def plan_start(
    call: ToolCall, fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], options: BatchOptions
) -> Work | Guided | CallProblem:
    """Say how what the host starts by itself is run. A tool's named arguments are checked; positional ones are the host's own.

    The host's own start is its approval; its policies see the call all the same.

    Raises:
        InvalidTypeError: `fn` is no function, no tool and no awaitable, or a tool that can't be run by anyone.
    """
    if type(fn) is FunctionType or not isinstance(fn, Tool):
        work = Work(kind_of(fn, bool(args or kwargs)), fn, args, kwargs)
        if not options.is_guided:
            return work
        if work.kind is Kind.AWAITABLE and isfuture(fn) and (options.hooks.before or is_recorded(options)):
            raise InvalidTypeError(f"{preview(fn)} runs already, and nothing can stand before it; start its function")
        return _unchecked(call, work)
    fn.require_bound()
    values = kwargs
    arguments = None if args else kwargs
    if not args:
        try:
            values = fn.validate(kwargs)
            args, kwargs = fn.bind(values)
        except ToolError as error:
            problem = CallProblem(error.code or "invalid_arguments", error.message)
            return Guided(Refused(call, fn, problem), None) if options.is_guided else problem
    run = placed(fn, arguments)
    work = Work(kind_of(run, has_arguments=True), run, args, kwargs, None, fn)
    if not options.is_guided and fn.max_output_tokens is None:
        return work
    return Guided(Prepared(call, fn, values, args, kwargs, is_parallel=True, needs_approval=False), work)


def plan_problem(call: ToolCall, problem: CallProblem, options: BatchOptions) -> Guided | CallProblem:
    """Say what becomes of a call that can't be run (P6): the host's policies see the attempt (T6)."""
    if not options.is_guided:
        return problem
    found = (options.tools or {}).get(call.name)
    return Guided(Refused(call, found if isinstance(found, Tool) else None, problem), None)


def _unchecked(call: ToolCall, work: Work) -> Guided:
    """A function or awaitable that the host made no tool of: its arguments are its own affair."""
    tool = unchecked(call.name, work.fn)
    prepared = Prepared(call, tool, work.kwargs, work.args, work.kwargs, is_parallel=True, needs_approval=False)
    return Guided(prepared, work)


def _guided(call: Prepared, work: Work) -> Guided:
    return Guided(call, work._replace(resources=call.resources))
