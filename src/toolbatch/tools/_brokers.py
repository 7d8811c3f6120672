"""Who decides on a call: a fixed answer, or a person who is asked while the call waits (T7)."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import final

from toolbatch.core import InvalidInputError, InvalidTypeError, preview
from toolbatch.ports import Abort, ApprovalDecision, ApprovalRequest, Approve, Deny

__all__ = ["FixedApprovals", "InteractiveApprovals"]

_log = logging.getLogger("toolbatch.tools")


def _decision(value: object) -> ApprovalDecision:
    if isinstance(value, Approve | Deny | Abort):
        return value
    raise InvalidTypeError(f"a decision must be Approve(), Deny(...) or Abort(...), not {preview(value)}")


@final
class FixedApprovals:
    """Answers at once: the same to all, or what was decided before for each call.

    Args:
        decision: The answer to calls that `by_call_id` does not name.
        by_call_id: Decisions that came while no batch was open: those of calls that were paused.

    Raises:
        InvalidTypeError: A decision is none.
    """

    __slots__ = ("_by_call_id", "_otherwise")

    def __init__(
        self,
        decision: ApprovalDecision = Deny("nobody has approved it"),  # noqa: B008  immutable
        by_call_id: Mapping[str, ApprovalDecision] | None = None,
    ) -> None:
        self._otherwise = _decision(decision)
        self._by_call_id = {call_id: _decision(value) for call_id, value in (by_call_id or {}).items()}

    async def decide(self, request: ApprovalRequest, /) -> ApprovalDecision:
        """Return the decision on one call."""
        return self._by_call_id.get(request.call_id, self._otherwise)


@final
class InteractiveApprovals:
    """Lets calls wait for a person. One broker may serve many sessions in one event loop.

    A call that gets its outcome otherwise - a close, a deadline, a newer batch - is no longer pending, and a decision on it
    does nothing.

    Args:
        on_request: Is told of each request, after it can be resolved. Synchronous or not; what it raises denies the call.
        max_pending: How many may wait at once; one more is denied.

    Raises:
        InvalidInputError: `max_pending` is less than 1.
        InvalidTypeError: A value is of a wrong type.
    """

    __slots__ = ("_max_pending", "_on_request", "_waiting")

    def __init__(
        self,
        on_request: Callable[[ApprovalRequest], Awaitable[None] | None] | None = None,
        *,
        max_pending: int = 100,
    ) -> None:
        if on_request is not None and not callable(on_request):
            raise InvalidTypeError(f"on_request must be a function of one request, not {preview(on_request)}")
        if type(max_pending) is not int:
            raise InvalidTypeError(f"max_pending must be an int, not {preview(max_pending)}")
        if max_pending < 1:
            raise InvalidInputError(f"max_pending must be at least 1, not {max_pending}")
        self._on_request = on_request
        self._max_pending = max_pending
        self._waiting: dict[asyncio.Future[ApprovalDecision], ApprovalRequest] = {}

    async def decide(self, request: ApprovalRequest, /) -> ApprovalDecision:
        """Wait for the decision on one call."""
        if len(self._waiting) >= self._max_pending:
            return Deny("too many calls wait for approval already; ask again when some are decided")
        waiter: asyncio.Future[ApprovalDecision] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = request  # before anyone is told, who may resolve it at once
        try:
            if self._on_request is not None:
                told = self._on_request(request)
                if inspect.isawaitable(told):
                    await told
            return await waiter
        finally:
            del self._waiting[waiter]

    def pending(self) -> list[ApprovalRequest]:
        """Return the requests that wait, oldest first."""
        return [request for waiter, request in self._waiting.items() if not waiter.done()]

    def resolve(
        self,
        call_id: str,
        decision: ApprovalDecision,
        *,
        generation: int | None = None,
        execution_id: str | None = None,
    ) -> bool:
        """Give the decision on a call; False says that none of that name waits, or not any more: nothing has changed.

        Args:
            call_id: The call.
            decision: The decision.
            generation: The batch's number, where several batches wait for calls of one id.
            execution_id: The request's own id, where even that is not enough: with many sessions.

        Raises:
            InvalidInputError: Several calls of that id wait. Nothing has changed.
            InvalidTypeError: `decision` is none.
        """
        decided = _decision(decision)
        found = [
            waiter
            for waiter, request in self._waiting.items()
            if request.call_id == call_id
            and not waiter.done()
            and generation in (None, request.generation)
            and execution_id in (None, request.execution_id)
        ]
        if len(found) > 1:
            raise InvalidInputError(
                f"{len(found)} calls with the id {preview(call_id)} wait; say which one by generation or execution_id"
            )
        for waiter in found:
            waiter.set_result(decided)
        return bool(found)

    def abort_all(self, reason: str | None = None) -> int:
        """Answer every request that waits with `Abort(reason)`, and return how many there were."""
        waiting = [waiter for waiter in self._waiting if not waiter.done()]
        for waiter in waiting:
            waiter.set_result(Abort(reason))
        return len(waiting)
