"""The first stage of a call: which tool, with which arguments, and how it may run. Nothing has been run after it (T3)."""

import logging
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from toolbatch.core import CallProblem, InvalidTypeError, ToolCall, ToolError, preview

from ._complaint import INVALID
from ._near import UNKNOWN, unknown_tool_message
from ._tool import AnyTool, Judge, Tool

__all__ = ["Prepared", "Refused", "prepare"]

_MALFORMED = "malformed_arguments"
_NONE: frozenset[str] = frozenset()
_log = logging.getLogger("toolbatch.tools")


class Prepared(NamedTuple):  # every call makes one, and a frozen dataclass takes six times as long
    """A call that may run. All of it is fixed: what happens to the catalog from here on concerns later calls (O7).

    Attributes:
        call: The call.
        tool: Its tool.
        arguments: The validated arguments by parameter, detached from `call.arguments`.
        args: Positional arguments of the tool's function.
        kwargs: Named arguments of it.
        is_parallel: Whether it may overlap with others (T8).
        needs_approval: Whether a person must agree first (T7).
        resources: What no other call may use meanwhile, by name (T8).
    """

    call: ToolCall
    tool: AnyTool
    arguments: Mapping[str, Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    is_parallel: bool
    needs_approval: bool
    resources: frozenset[str] = frozenset()

    @property
    def fn(self) -> Callable[..., Any]:
        """The function to run, with `args` and `kwargs`."""
        return self.tool.fn

    def shown_arguments(self) -> dict[str, Any]:
        """Return the arguments for others to look at: whatever they do to them, what is run stays as it is (O7)."""
        try:
            return deepcopy(dict(self.arguments))
        except Exception:  # noqa: BLE001  a value may be of any kind, and not all can be copied
            return dict(self.arguments)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Refused:
    """A call that can't run. It is answered with `problem`, as an error whose side effects are `not_started`.

    Attributes:
        call: The call.
        tool: Its tool, where there is one of that name.
        problem: Why: `unknown_tool`, `malformed_arguments`, `invalid_arguments`, or what the lane found (P6).
    """

    call: ToolCall
    tool: AnyTool | None
    problem: CallProblem


def prepare(call: ToolCall, catalog: Mapping[str, AnyTool]) -> Prepared | Refused:
    """Resolve, validate and classify a call. The arguments were parsed once, when the call was read (T5).

    Args:
        call: The call.
        catalog: Tools by name: a `ToolCatalog`, a view of one, or a dict of tools.

    Raises:
        InvalidTypeError: What the catalog has under that name is no tool, or one that can't be run: its annotations mention a
            name that nobody has defined, or it is a method of no instance.
    """
    tool = catalog.get(call.name)
    problem = call.problem
    # Of a call that is both malformed and unknown the model should hear of the name first: better arguments would not help.
    if problem is not None and (tool is not None or problem.code != _MALFORMED):
        return Refused(call, tool, problem)
    if tool is None:
        return Refused(call, None, CallProblem(UNKNOWN, unknown_tool_message(call.name, catalog)))
    if not isinstance(tool, Tool):
        raise InvalidTypeError(f"{call.name!r} is no tool but {preview(tool)}; make one of it with tool(...)")
    tool.require_bound()
    try:
        values = tool.validate(call.arguments)
    except ToolError as error:
        return Refused(call, tool, CallProblem(error.code or INVALID, error.message))
    args, kwargs = tool.bind(values)
    is_parallel, needs_approval = tool.parallel, tool.needs_approval
    if not isinstance(is_parallel, bool):
        is_parallel = _judge(tool, "parallel", is_parallel, values, otherwise=False)
    if not isinstance(needs_approval, bool):
        needs_approval = _judge(tool, "needs_approval", needs_approval, values, otherwise=True)
    resources = _NONE if tool.resources is None else _resources(tool, values)
    if resources is None:
        return Prepared(call, tool, values, args, kwargs, False, needs_approval)  # noqa: FBT003  alone, to be careful
    return Prepared(call, tool, values, args, kwargs, is_parallel, needs_approval, resources)


def _resources(tool: AnyTool, values: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the names of what a call uses; `None` where the tool's own word on it is no answer."""
    try:
        names = tool.resources(dict(values)) if callable(tool.resources) else tool.resources
        found = frozenset([names] if isinstance(names, str) else names or ())
    except Exception:  # noqa: BLE001  a classifier that fails must not fail the call (T8)
        _log.warning("resources of tool %s failed; the call runs alone", tool.name, exc_info=True)
        return None
    if all(isinstance(name, str) for name in found):
        return found
    _log.warning("resources of tool %s are no names but %s; the call runs alone", tool.name, preview(found))
    return None


def _judge(tool: AnyTool, what: str, judge: Judge, values: Mapping[str, Any], *, otherwise: bool) -> bool:
    """Return the tool's own word on a call; the careful answer where it has none: alone, and with approval."""
    try:
        verdict = judge(dict(values))
    except Exception:  # noqa: BLE001  a classifier that fails must not fail the call (T8)
        _log.warning("%s of tool %s failed; taken as %s", what, tool.name, otherwise, exc_info=True)
        return otherwise
    return verdict if isinstance(verdict, bool) else otherwise
