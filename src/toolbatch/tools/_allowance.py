"""A bound on how many calls a run may make, as an interceptor (T4, `budget_exhausted`)."""

from collections.abc import Awaitable, Callable
from typing import final

from toolbatch.core import InvalidInputError, InvalidTypeError, preview
from toolbatch.ports import Deny

from ._interceptors import Decision, Interceptor
from ._prepare import Prepared, Refused

__all__ = ["CallAllowance"]


@final
class CallAllowance(Interceptor):
    """Denies calls as `budget_exhausted` once so many were made. Tools that are `budget_exempt` don't count.

    Calls that can't be run count: a model that repeats a malformed call for ever is stopped like any other.

    Args:
        limit: How many calls, over all batches that share this object.

    Attributes:
        used: How many were made.

    Raises:
        InvalidInputError: `limit` is negative.
        InvalidTypeError: It is no int.
    """

    def __init__(self, limit: int) -> None:
        if type(limit) is not int:
            raise InvalidTypeError(f"limit must be an int, not {preview(limit)}")
        if limit < 0:
            raise InvalidInputError(f"limit must not be negative, as {limit} is")
        self._limit = limit
        self.used = 0

    async def before(self, call: Prepared | Refused, proceed: Callable[[], Awaitable[Decision]]) -> Decision:
        """Count the call, or deny it."""
        if call.tool is not None and call.tool.budget_exempt:
            return await proceed()
        if self.used >= self._limit:
            return Deny(
                f"all {self._limit} tool calls of this run are used up. Answer with what you have", "budget_exhausted"
            )
        self.used += 1
        return await proceed()
