"""One call as a standalone activity of Temporal's: how it is started, followed and asked to stop, and what its end means."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolbatch.core import preview
from toolbatch.ports import (
    BackendError,
    BackendNotStartedError,
    BackendUnknownError,
    CallNote,
    ClaimedBeforeError,
    ResultNotSendableError,
    ResultTooLargeError,
)

from ._letters import ACTIVITY, Ending, error_of, read_answer, read_notes

if TYPE_CHECKING:
    from temporalio.client import ActivityHandle, Client
    from temporalio.service import RPCError

__all__ = ["Activity", "Terms"]

_LAST_WORDS_SECONDS: Final = 10.0
"""How much longer than its call's time an activity may take, so that the end of what was cancelled is still told."""
_LEAST_SECONDS: Final = 0.1
_RETRY_SECONDS: Final = 0.5


class Terms(NamedTuple):
    """What activities are started by.

    Attributes:
        queue: Which workers.
        queue_timeout: Seconds in which one must take the call.
        longest: Seconds that a call may take which has no bound of its own.
        heartbeat_timeout: Seconds without a sign of the worker's after which it counts as dead.
    """

    queue: str
    queue_timeout: float
    longest: float
    heartbeat_timeout: float


class Activity:
    """One call.

    Args:
        client: Connected to the cluster.
        operation: The operation's id.
        attempt: Which attempt at it this is; the activity's id is made of both.
        terms: What it is started by.
        say: Is given what the tool has said besides its value.
    """

    def __init__(
        self, client: "Client", operation: str, attempt: int, terms: Terms, say: Callable[[CallNote], None]
    ) -> None:
        self._client = client
        self._operation = operation
        self._attempt = attempt
        self._is_another_s = False
        self._terms = terms
        self._say = say
        self._handle: ActivityHandle[bytes] | None = None
        self._is_stopped = False

    @property
    def _name(self) -> str:
        return f"{self._operation}:{self._attempt}"

    async def attend(self, request: bytes, seconds: float | None) -> Any:
        """Start it and return its value.

        Raises:
            asyncio.CancelledError: It ended as cancelled, or was stopped before it was started.
            BackendError: It has no value of the tool's.
            Exception: What the tool raised.
        """
        while True:
            try:
                return await self._attend_once(request, seconds)
            except ClaimedBeforeError:
                if not self._is_another_s:
                    raise
                self._attempt += 1  # an earlier run has heard that of the store; by now it may say something else

    async def _attend_once(self, request: bytes, seconds: float | None) -> Any:
        from temporalio.client import ActivityFailureError
        from temporalio.service import RPCError

        self._is_another_s = False
        if self._is_stopped:
            raise asyncio.CancelledError
        try:
            self._handle = await self._start(request, seconds)
            answer = await self._handle.result()
        except ActivityFailureError as error:
            raise self._read_failure(error.cause) from None
        except RPCError as error:
            raise BackendUnknownError(f"The engine no longer answers ({_shown(error)}).") from error
        except asyncio.CancelledError:
            raise BackendUnknownError("The tool's end was not awaited.") from None
        return self._read(answer)

    async def stop(self, attending: "asyncio.Task[Any]") -> None:
        """Ask it to stop, as soon as it is started and the cluster can be reached, while anybody attends to it."""
        from temporalio.service import RPCError

        self._is_stopped = True
        while not attending.done():
            if self._handle is not None:
                try:
                    await self._handle.cancel()
                except RPCError:
                    pass  # it may have ended in this moment, or the server comes back
                else:
                    return
            await asyncio.wait([attending], timeout=_RETRY_SECONDS)

    async def _start(self, request: bytes, seconds: float | None) -> "ActivityHandle[bytes]":
        from temporalio.common import ActivityIDConflictPolicy, ActivityIDReusePolicy, RetryPolicy
        from temporalio.exceptions import ActivityAlreadyStartedError
        from temporalio.service import RPCError

        terms = self._terms
        bound = max(_LEAST_SECONDS, terms.longest if seconds is None else min(seconds, terms.longest))
        try:
            return await self._client.start_activity(
                ACTIVITY,
                args=[request, seconds],
                id=self._name,
                task_queue=terms.queue,
                result_type=bytes,
                start_to_close_timeout=timedelta(seconds=bound + _LAST_WORDS_SECONDS),
                schedule_to_start_timeout=timedelta(seconds=min(terms.queue_timeout, bound)),
                heartbeat_timeout=timedelta(seconds=terms.heartbeat_timeout),
                id_reuse_policy=ActivityIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=ActivityIDConflictPolicy.FAIL,
                retry_policy=RetryPolicy(maximum_attempts=1),
            )
        except ActivityAlreadyStartedError:  # by an earlier call of the same operation: its end is this one's
            self._is_another_s = True
            return self._client.get_activity_handle(self._name, result_type=bytes)
        except RPCError as error:
            return await self._found(error)

    async def _found(self, error: "RPCError") -> "ActivityHandle[bytes]":
        """Return the handle of an activity whose start was not confirmed; it may be there all the same."""
        from temporalio.service import RPCError, RPCStatusCode

        refusals = {
            RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.NOT_FOUND, RPCStatusCode.PERMISSION_DENIED,
            RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.UNIMPLEMENTED, RPCStatusCode.FAILED_PRECONDITION,
        }  # fmt: skip
        if error.status in refusals:
            raise BackendNotStartedError(f"the engine refuses the call ({_shown(error)}).") from error
        handle = self._client.get_activity_handle(self._name, result_type=bytes)
        try:
            await handle.describe()
        except RPCError:
            raise BackendUnknownError(f"The engine has not confirmed the call ({_shown(error)}).") from error
        return handle

    def _read(self, answer: bytes) -> Any:
        try:
            value, notes = read_answer(answer)
        except Exception as error:
            raise ResultNotSendableError(
                f"the worker has sent no answer that can be read ({preview(error)})."
            ) from error
        self._tell(notes)
        return value

    def _read_failure(self, cause: BaseException | None) -> BaseException:
        from temporalio.exceptions import ApplicationError, CancelledError, TimeoutError, TimeoutType  # noqa: A004

        match cause:
            case CancelledError():
                return asyncio.CancelledError("the tool ended as cancelled")
            case TimeoutError(type=TimeoutType.SCHEDULE_TO_START):
                return BackendNotStartedError(f"no worker of {self._terms.queue!r} has taken the call in time.")
            case TimeoutError(type=TimeoutType.HEARTBEAT):
                return BackendUnknownError("The worker that ran the tool has given no sign of life.")
            case TimeoutError():
                return BackendUnknownError("The tool's time was over before its end was known.")
            case ApplicationError():
                return self._read_ending(cause)
            case _:
                pass
        return BackendUnknownError(f"The call was ended from outside ({type(cause).__name__}).")

    def _read_ending(self, error: Any) -> Exception:
        try:
            plain, notes = error.details
            ending = Ending(*plain)
            told = error_of(ending)
        except (TypeError, ValueError):  # it is not of our making
            return self._read_foreign(error)
        self._tell(read_notes(notes))
        return told

    def _read_foreign(self, error: Any) -> BackendError:
        text = preview(error.message, 300)
        if error.type == "PayloadsTooLarge":
            return ResultTooLargeError(f"the engine does not take it ({text}).")
        if error.type == "NotFoundError":
            return BackendNotStartedError(f"the workers of {self._terms.queue!r} run no tools ({text}).")
        return BackendUnknownError(f"The worker has failed ({error.type}: {text}).")

    def _tell(self, notes: list[CallNote]) -> None:
        for note in notes:
            self._say(note)


def _shown(error: "RPCError") -> str:
    return f"{error.status.name}: {preview(error.message, 200)}"
