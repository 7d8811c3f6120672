"""One run of a guided call's tool: what stands around it may run it again, or leave it behind (T6).

The call itself is guided by a task of its own, `_guide.py`. Its outcome is the call's, decided there; a run only reports to
it. A run whose time is over is left behind at once, settled for the guide, and stopped afterwards; what it says later is late.
"""

import logging
from asyncio import CancelledError, Future
from typing import TYPE_CHECKING, Any

from toolbatch.core import Closed, RejectionReason
from toolbatch.tools import ToolTimeoutError

from ._accounts import publish_late
from ._execution import Execution, Phase
from ._failures import Failure, discard, read_failure, throw
from ._log import tell

if TYPE_CHECKING:
    from toolbatch.core import Settlement

    from ._engine import Engine

__all__ = ["Body"]


class Body(Execution):
    """One run. To the crew, the threads and the deadlines it is an execution like others.

    Args:
        owner: The guided call's execution, which has the outcome.
        report: Is given `(True, value)` or `(False, exception)`, once.
    """

    def __init__(self, owner: Execution, report: "Future[tuple[bool, Any]]") -> None:
        self.call = owner.call
        self._engine = owner._engine  # the same weak reference
        self.number = owner.number
        self.owner = owner
        self.report = report
        self._left: Closed | None = None
        self._entered_at: float | None = None

    # What belongs to the call and not to one run of it is the owner's.

    @property
    def settlement(self) -> "Settlement | None":  # type: ignore[override]
        """The call's outcome, or what this run was left behind as."""
        return self.owner.settlement or self._left

    @property
    def started_at(self) -> float | None:
        """Loop time at which this run was entered; the call has started with the first of them (B5)."""
        return self._entered_at

    @started_at.setter
    def started_at(self, when: float | None) -> None:
        self._entered_at = when
        if self.owner.started_at is None:
            self.owner.started_at = when

    # -- what it reports ---------------------------------------------------------------------------------------------

    def returned(self, engine: "Engine", value: Any) -> None:
        """The tool has returned: hand the value to the guide, or note that it came late (B7)."""
        if self._hand_over(True, value):  # noqa: FBT003  as the guide reads it
            return
        engine.host.late(self, self._reason(engine), "success", value)
        discard(value)
        self._tell_late(engine)

    def raised(self, engine: "Engine", error: BaseException) -> None:
        """The tool has raised: hand the exception to the guide, or note that it came late."""
        failure = read_failure(error, engine.options.error_detail, engine.options.cancel_exceptions)
        if failure.is_cancellation and self.stop_requested:
            self.acknowledged = True
            self._hand_over(False, CancelledError())  # noqa: FBT003  nobody waits for it
            self._tell_late(engine)
        elif not self._hand_over(False, error):  # noqa: FBT003
            self.exception = error
            engine.host.late(self, self._reason(engine), "cancelled" if failure.is_cancellation else "error", error)
            self._tell_late(engine)
            self._let_through(engine, failure)

    def expired(self, engine: "Engine", late_by: float | None) -> None:
        """Its time is over: leave it behind, and ask it to stop."""
        self.owner.fired, self.owner.deadline_late_by = self.timeout, late_by
        error = ToolTimeoutError(self.timeout)
        self.leave(engine, "timeout", error.message)
        self._hand_over(False, error)  # noqa: FBT003

    def leave(self, engine: "Engine", code: str, message: str) -> None:
        """Nobody waits for this run any more: ask it to stop."""
        if self._left is None and self.phase is not Phase.ENDED:
            engine.entries.withdraw([self], engine.loop.time())  # certain from here on: entered, or never to be
            self._left = Closed("cancelled", code, message, "unknown" if self.started else "not_started")
            self.closed_at = engine.loop.time()
            engine.crew.ask_to_stop(self)

    def _hand_over(self, succeeded: bool, value: Any) -> bool:  # noqa: FBT001
        if self.report.done():
            return False
        self.report.set_result((succeeded, value))
        return True

    def _tell_late(self, engine: "Engine") -> None:
        if self.owner.settlement is not None:
            publish_late(engine, self.owner)

    @staticmethod
    def _reason(engine: "Engine") -> RejectionReason:
        if engine.result is None:
            return "duplicate_settlement"
        current = engine.closure.snapshot()
        replaced = current is not None and current.generation != engine.generation
        return "stale_generation" if replaced else "run_closed"

    @staticmethod
    def _let_through(engine: "Engine", failure: Failure) -> None:
        if failure.passes_through is not None:
            tell(logging.ERROR, "a tool that was left behind raised %r", failure.passes_through)
            engine.loop.call_soon(throw, failure.passes_through)
