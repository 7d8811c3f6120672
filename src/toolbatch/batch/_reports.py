"""What a tool's end means for its call and its batch."""

from typing import TYPE_CHECKING

from toolbatch.core import Accepted, Rejected, ToolError
from toolbatch.observe import log_event
from toolbatch.ports import BackendUnknownError
from toolbatch.tools import AnyTool, render_result

from ._accounts import publish_late
from ._attempt import Attempt
from ._execution import Execution
from ._failures import Failure, discard, is_a, read_failure, throw
from ._placeholders import give_up

if TYPE_CHECKING:
    from ._engine import Engine

__all__ = ["raised", "returned"]


def returned(engine: "Engine", execution: Execution, value: object) -> None:
    """A tool has returned. A value that can't be shown is an error, not a loss of the batch (B23)."""
    engine.end(execution)
    if type(execution) is Attempt:
        execution.returned(engine, value)
        return
    try:
        # What a guide hands over was rendered, and judged, before.
        tool = None if execution.is_guided else execution.tool
        content = value if tool is None else _render(engine, execution, tool, value)
        if type(engine.feed(execution, engine.closure.succeed, content)) is Rejected:
            discard(value)
    except ToolError as error:
        engine.feed(execution, engine.closure.fail, error.message, error.code)
    except Exception as error:  # noqa: BLE001  the value's own methods may raise anything
        message = f"The tool ran, but its result can't be shown: {read_failure(error, 'message').message}"
        engine.feed(execution, engine.closure.fail, message, "invalid_result")
        discard(value)
    except BaseException as error:  # noqa: BLE001  such as KeyboardInterrupt while the value was encoded
        raised(engine, execution, error)


def _render(engine: "Engine", execution: Execution, tool: AnyTool, value: object) -> object:
    if tool.render is None and tool.meta is None:
        return value
    rendered = render_result(tool, value, encode=engine.host.encode)
    execution.meta = rendered.meta
    return rendered.content


def raised(engine: "Engine", execution: Execution, error: BaseException) -> None:
    """A tool has raised. Its call gets an outcome; the batch ends only for what must end it (B4)."""
    engine.entries.hear(execution, engine.loop.time())
    engine.end(execution)
    if type(execution) is Attempt:
        execution.raised(engine, error)
        return
    failure = read_failure(error, engine.options.error_detail, engine.options.cancel_exceptions)
    if failure.passes_through is not None and engine.options.hooks.after:
        failure = failure._replace(message=type(error).__name__)  # what no policy has seen is not for the model (T6)
    if execution.doubt:
        ending = "" if failure.message.endswith((".", "!", "?")) else "."
        failure = failure._replace(message=f"{failure.message}{ending} {execution.doubt}")
    if failure.is_cancellation and execution.stop_requested and execution.is_over:
        # What it raised says nothing new, and its traceback would keep all of the batch alive in a circle.
        execution.acknowledged = True
        give_up(engine, execution)
        publish_late(engine, execution)
        return
    execution.exception = error
    if failure.is_cancellation:
        engine.feed(execution, engine.closure.cancel, failure.message)
    else:
        if is_a(error, BackendUnknownError) and not execution.is_over:  # the model must read that it may have happened
            engine.feed(execution, engine.closure.close_call, "error", failure.code, failure.message, "unknown")
        else:
            _fail(engine, execution, failure)
        message = "tool %s failed in call %s"
        log_event("tool_failed", message, execution.call.name, execution.call.id, exc_info=error, **execution.identity)
    if failure.passes_through is not None:
        engine.close("error", "batch_failed", f"The turn ended: {type(failure.passes_through).__name__}.", None)
        # Raised from a task it would also be reported as that task's; raised here it only passes through the loop.
        engine.loop.call_soon(throw, failure.passes_through)


def _fail(engine: "Engine", execution: Execution, failure: Failure) -> None:
    try:
        answer = engine.feed(execution, engine.closure.fail, failure.message, failure.code)
    except (TypeError, ValueError):  # a code that is blank, too long or no text: the failure matters more
        answer = engine.feed(execution, engine.closure.fail, failure.message)
    if failure.fatal is not None and isinstance(answer, Accepted):
        engine.end_turn(failure.fatal)
