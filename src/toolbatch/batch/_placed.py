"""A tool's function in its place: itself, or what has a backend run it (X2)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from uuid import uuid4

from toolbatch.core import ToolCall
from toolbatch.observe import log_event
from toolbatch.ports import NOTES, CallFacts, CallNote, Invocation
from toolbatch.tools import AnyTool

from ._context import CallContext
from ._execution import current_execution
from ._launching import begin_elsewhere

__all__ = ["placed"]


def placed(tool: AnyTool, arguments: Mapping[str, Any] | None) -> Callable[..., Any]:
    """Return what runs a tool where it belongs: called as its function is.

    Args:
        tool: The tool.
        arguments: What its arguments were before they were checked and converted, by name; `None` where nobody knows. A backend
            whose workers have tools of their own sends these.

    Returns:
        The tool's own function, or, where it has a backend, an asynchronous one that has that run it.
    """
    return tool.fn if tool.backend is None else partial(_run, tool, arguments)


async def _run(tool: AnyTool, arguments: Mapping[str, Any] | None, /, *args: Any, **kwargs: Any) -> Any:
    backend = tool.backend
    assert backend is not None  # noqa: S101  else this was not made
    execution = current_execution.get(None)
    call = None if execution is None else CallContext(execution)

    def begin() -> float | None:
        if execution is None or call is None:
            return tool.timeout
        if execution.begins_elsewhere:
            begin_elsewhere(execution.engine, execution)
        return call.remaining()

    invocation = Invocation(
        fn=tool.fn,
        args=args,
        kwargs=kwargs,
        tool_name=tool.name,
        arguments=arguments,
        facts=_no_call(tool, arguments) if call is None else CallFacts.of(call),
        begin=begin,
        say=partial(_hear, call),
    )
    return await backend.run(invocation)


def _no_call(tool: AnyTool, arguments: Mapping[str, Any] | None) -> CallFacts:
    """Return the facts of what no batch runs: nothing of it is known elsewhere, so all of it is new."""
    name = uuid4().hex
    return CallFacts(call=ToolCall(name, tool.name, arguments), execution_id=name, idempotency_key=name)


def _hear(call: CallContext | None, note: CallNote) -> None:
    """Do here what a tool has asked for elsewhere. What it can't do is logged: the tool is not here to be told."""
    if call is None or note.what not in NOTES:
        return
    try:
        getattr(call, note.what)(*note.args)
    except Exception:  # noqa: BLE001  a word too much of a tool must not cost it its result
        log_event("tool_failed", "%s of call %s was not accepted", note.what, call.call_id, exc_info=True)
