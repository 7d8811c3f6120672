"""One attempt at a guided call's tool: what stands around it may make another, or leave one behind (T6).

The call itself is guided by a task of its own, `_guide.py`. Its outcome is decided there; an attempt only reports to it. One
whose time is over is left behind at once, settled for the guide, and stopped afterwards; what it says later is late.
"""

from asyncio import CancelledError, Future
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolbatch.core import Closed, RejectionReason, ToolError
from toolbatch.observe import log_event
from toolbatch.ports import NotApplied
from toolbatch.tools import ToolTimeoutError, render_result

from ._accounts import publish_late
from ._execution import Execution, Phase
from ._failures import Failure, discard, is_a, read_failure, throw

if TYPE_CHECKING:
    from toolbatch.core import Settlement

    from ._engine import Engine

__all__ = ["Attempt"]


class Attempt(Execution):
    """One run of the tool. To the crew, the threads and the deadlines it is an execution like others.

    Args:
        owner: The guided call's execution, which has the outcome.
        report: Is given `(True, value)` or `(False, exception)`, once.
    """

    on_end: Callable[[], None] | None = None  # what else waits for the end of its code

    def __init__(self, owner: Execution, report: "Future[tuple[bool, Any]]") -> None:
        self.call = owner.call
        self._engine = owner._engine  # the same weak reference
        self.number = owner.number
        self.owner = owner
        self.timeout = owner.timeout
        self.crew = owner.crew
        self.begins_elsewhere = owner.begins_elsewhere
        self.on_late = owner.on_late
        self.report: Future[tuple[bool, Any]] | None = report
        self._left: Closed | None = None
        self._entered_at: float | None = None

    # What belongs to the call and not to one attempt is the owner's.

    @property
    def settlement(self) -> "Settlement | None":  # type: ignore[override]
        """The call's outcome, or what this attempt was left behind as."""
        return self.owner.settlement or self._left

    @property
    def is_over(self) -> bool:
        """Whether it must not be entered any more."""
        return self._left is not None or self.owner.is_over

    @property
    def is_silent(self) -> bool:
        """As `Execution.is_silent`; or nobody waits for this attempt any more."""
        return self._left is not None or super().is_silent

    @property
    def started_at(self) -> float | None:
        """Loop time at which this one was entered; the call has started with the first of them (B5)."""
        return self._entered_at

    @started_at.setter
    def started_at(self, when: float | None) -> None:
        self.owner.entered_count += self._entered_at is None and when is not None
        self._entered_at = when
        if self.owner.started_at is None:
            self.owner.started_at = when

    # -- what it reports ---------------------------------------------------------------------------------------------

    def returned(self, engine: "Engine", value: Any) -> None:
        """The tool has returned: hand the value to the guide, or note that it came late (B7)."""
        if not self._hand_over(True, value):  # noqa: FBT003  as the guide reads it
            self._late(engine, True, value)  # noqa: FBT003
            self._tell_late(engine)

    def raised(self, engine: "Engine", error: BaseException) -> None:
        """The tool has raised: hand the exception to the guide, or note that it came late."""
        if error is self.exception:
            return  # nothing could run it, and its end has told so
        self.owner.not_applied_count += self.started and is_a(error, NotApplied)
        failure = read_failure(error, engine.options.error_detail, engine.options.cancel_exceptions)
        if failure.is_cancellation and self.stop_requested:
            self.acknowledged = True
            self._hand_over(False, CancelledError())  # noqa: FBT003
            self._tell_late(engine)
        elif not self._hand_over(False, error):  # noqa: FBT003
            self._late(engine, False, error, is_cancellation=failure.is_cancellation)  # noqa: FBT003
            self._tell_late(engine)
            self._let_through(engine, failure)

    def note_end(self) -> None:
        """Its code has ended, and its report follows; or will never be entered, and whoever waits for it must know."""
        if self.on_end is not None:
            self.on_end()
        if self._entered_at is None:
            self._hand_over(False, self.exception or CancelledError())  # noqa: FBT003
            self.owner.fold()

    # -- what becomes of it ------------------------------------------------------------------------------------------

    @property
    def was_left(self) -> bool:
        """Whether nobody waited for its end."""
        return self._left is not None

    def expired(self, engine: "Engine", late_by: float | None) -> None:
        """Its time is over: leave it behind, and ask it to stop."""
        self.owner.fired, self.owner.deadline_late_by = self.timeout, late_by
        error = ToolTimeoutError(self.timeout)
        self._hand_over(False, error)  # noqa: FBT003
        self.leave(engine, "timeout", error.message)

    def leave(self, engine: "Engine", code: str, message: str) -> None:
        """Nobody waits for this attempt any more: ask it to stop."""
        if self._left is not None or self.phase is Phase.ENDED:
            return
        engine.entries.withdraw([self], engine.loop.time())  # certain from here on: entered, or never to be
        self._left = Closed("cancelled", code, message, "unknown" if self.started else "not_started")
        self.closed_at = self.owner.closed_at or engine.loop.time()
        if self.report is not None:
            self.report.cancel()
        engine.crew_of(self).ask_to_stop(self)

    def lost(self, engine: "Engine") -> None:
        """The call was closed before its guide could settle it by what this attempt has said in time: that is evidence too (B7)."""
        has_spoken = self.started and self._left is None and not self.acknowledged
        if has_spoken and self.report is not None and self.report.done() and not self.report.cancelled():
            self.closed_at = self.owner.closed_at
            self._late(engine, *self.report.result())

    def forget(self) -> None:
        """Nobody will ask any more what this attempt has said."""
        self.report = None

    def _hand_over(self, succeeded: bool, value: Any) -> bool:  # noqa: FBT001
        if self.report is None or self.report.done():
            return False
        self.report.set_result((succeeded, value))
        return True

    # -- what comes late ---------------------------------------------------------------------------------------------

    def _late(self, engine: "Engine", succeeded: bool, value: Any, *, is_cancellation: bool = False) -> None:  # noqa: FBT001
        if self.settlement is None:  # who waited for it was cancelled a moment ago, and has yet to hear of that
            self._left = Closed("cancelled", "cancelled", "Tool call was cancelled.", "unknown")
            self.closed_at = engine.loop.time()
        if self.on_late is not None:
            self.on_late(succeeded, value)
        if succeeded:
            engine.host.late(self, self._reason(engine), "success", self._shown(engine, value))
            discard(value)
        else:
            self.exception = value
            engine.host.late(self, self._reason(engine), "cancelled" if is_cancellation else "error", value)

    def _shown(self, engine: "Engine", value: Any) -> Any:
        tool = self.owner.tool
        if tool is None or tool.render is None or not engine.host.keep_content:
            return value
        try:
            return render_result(tool, value, encode=engine.host.encode).content
        except ToolError:
            return value  # which has no text either

    def _tell_late(self, engine: "Engine") -> None:
        self.owner.fold()
        if self.owner.settlement is not None:
            publish_late(engine, self.owner)

    @staticmethod
    def _reason(engine: "Engine") -> RejectionReason:
        if engine.result is None:
            return "duplicate_settlement"
        current = engine.closure.snapshot()
        replaced = current is not None and current.generation != engine.generation
        return "stale_generation" if replaced else "run_closed"

    def _let_through(self, engine: "Engine", failure: Failure) -> None:
        if failure.passes_through is not None:
            message = "a tool that was left behind raised %r"
            log_event("exit_passed_through", message, failure.passes_through, **self.identity)
            engine.loop.call_soon(throw, failure.passes_through)
