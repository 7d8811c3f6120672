"""Calls that were answered with a placeholder and finish later: where their results go, and how they count (O6)."""

from typing import TYPE_CHECKING, Any, Literal

from toolbatch.core import encode
from toolbatch.ports import ExecutionStatus

from ._accounts import publish_late
from ._execution import Execution

if TYPE_CHECKING:
    from ._engine import Engine

__all__ = ["answer_for_now", "finish", "give_up"]

_FINAL: dict[str, ExecutionStatus] = {"success": "succeeded", "error": "failed", "cancelled": "cancelled"}


def answer_for_now(engine: "Engine", execution: Execution, speaker: Execution, content: object) -> None:
    """Answer a running call with a placeholder, and let it go on. After its outcome this does nothing.

    Args:
        engine: The batch.
        execution: The call.
        speaker: What runs the tool that says so: the call's own execution, or one attempt.
        content: The placeholder.

    Raises:
        EncodingError: `content` has no JSON form or is too long. The call is still pending.
    """
    if speaker.settlement is not None or speaker.is_silent or engine.result is not None:
        return
    execution.is_pending = engine.host.has_placeholders = True
    try:
        engine.feed(execution, engine.closure.succeed, content)
    except BaseException:
        execution.is_pending = False
        raise


def finish(
    engine: "Engine", execution: Execution, observed: Literal["success", "error", "cancelled"], details: tuple[Any, ...]
) -> None:
    """The tool behind a placeholder has ended: its result is a late note, or evidence if the session has moved on."""
    if execution.final is not None:
        return
    engine.settle_accounts()
    _end(engine, execution, "failed" if execution.failure is not None else _FINAL[observed])
    if engine.host.has_moved_on(engine):
        engine.host.late(execution, "stale_generation", observed, details[0])
    elif observed == "success":
        engine.host.note(execution, details[0])
    else:
        code = details[1] if len(details) > 1 else None
        message = details[0] if isinstance(details[0], str) else None
        # The shape in which the model reads every failure (P4).
        error = {
            "code": code or ("tool_error" if observed == "error" else "cancelled"),
            "message": message or "Tool call failed.",
        }
        engine.host.note(execution, encode({"error": error}))
    publish_late(engine, execution)


def give_up(engine: "Engine", execution: Execution) -> None:
    """The tool behind a placeholder was stopped, and has ended by that."""
    if execution.is_pending and execution.final is None:
        _end(engine, execution, "cancelled")


def _end(engine: "Engine", execution: Execution, final: ExecutionStatus) -> None:
    execution.final = final
    engine.host.count_end(engine, execution.call.name, final)
