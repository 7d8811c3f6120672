"""What a batch will run for a call: a function with checked arguments, or an answer instead (T3, T5)."""

from collections.abc import Mapping
from types import FunctionType
from typing import Any

from toolbatch.core import CallProblem, ToolCall, ToolError
from toolbatch.tools import Refused, Tool, prepare

from ._drive import Work, kind_of
from ._options import Tools

__all__ = ["plan_call", "plan_start"]

_NO_APPROVER = "NOT EXECUTED: {} needs the approval of a person, and nobody can give it here. Go on without it."


def plan_call(call: ToolCall, tools: Tools) -> Work | CallProblem:
    """Find a call's tool by its name, and check its arguments. What needs an approval is denied: nobody can give it (T7).

    Raises:
        InvalidTypeError: What stands under that name is no function and no tool, or a tool that can't be run by anyone.
    """
    found = tools.get(call.name)
    if found is not None and not isinstance(found, Tool):
        return Work(kind_of(found, has_arguments=True), found, (), dict(call.arguments))
    prepared = prepare(call, tools)  # type: ignore[arg-type]  # what it finds there is a tool, or nothing
    if isinstance(prepared, Refused):
        return prepared.problem
    if prepared.needs_approval:
        return CallProblem("denied", _NO_APPROVER.format(call.name))
    kind = kind_of(prepared.fn, has_arguments=True)
    return Work(kind, prepared.fn, prepared.args, prepared.kwargs, None, prepared.tool, not prepared.is_parallel)


def plan_start(fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Work | CallProblem:
    """Say how what the host starts by itself is run. A tool's named arguments are checked; positional ones are the host's own.

    Raises:
        InvalidTypeError: `fn` is no function, no tool and no awaitable, or a tool that can't be run by anyone.
    """
    if type(fn) is FunctionType or not isinstance(fn, Tool):
        return Work(kind_of(fn, bool(args or kwargs)), fn, args, kwargs)
    fn.require_bound()
    if not args:
        try:
            args, kwargs = fn.bind(fn.validate(kwargs))
        except ToolError as error:
            return CallProblem(error.code or "invalid_arguments", error.message)
    return Work(kind_of(fn.fn, has_arguments=True), fn.fn, args, kwargs, None, fn)
