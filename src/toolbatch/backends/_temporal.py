"""Running tools on workers of a Temporal cluster, as standalone activities (X2, ENGINES A.3).

One attempt, a duplicate refused, cancellation on the heartbeat: so a call runs once, a dead worker is told as unknown, and the end
that is told is the tool's own.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, final

from toolbatch.core import InvalidInputError, preview
from toolbatch.ports import (
    BackendUnknownError,
    CallFacts,
    ClaimedBeforeError,
    Enforcement,
    Invocation,
    NotSendableError,
)

from ._context_vars import ContextVars
from ._letters import Request, write_request
from ._opened import Opened
from ._options import positive, seconds
from ._temporal_activity import Activity, Terms

if TYPE_CHECKING:
    from temporalio.client import Client

__all__ = ["TemporalBackend"]

_ENFORCES: Final = Enforcement(cancellation="cooperative")
_MOST_REMEMBERED: Final = 10_000


@final
class TemporalBackend:
    """Runs tools on the workers of a task queue: `temporal_worker` makes one. Extra `[temporal]`.

    A call is a standalone activity whose id is the call's operation and attempt. Temporal starts it once, and never again: a second
    call of the same operation, as after a crash of this process, gets the first one's result. Tools are known by name; the
    arguments are sent as the model gave them, and a result comes back as its JSON. Results, arguments and ids stay in Temporal's
    history for as long as the cluster keeps it.

    A cancelled `run` asks the activity to stop, which its worker hears with its next heartbeat, and ends when the worker has
    told the tool's end; cancelled once more, it waits no longer. Worker died, heartbeat missed, time over: the outcome is unknown.
    Nobody took the call within `queue_timeout`: it was not started. What a tool says by `progress` and `pending` is not carried; its other
    notes arrive with its end.

    Args:
        client: Connected to the cluster.
        task_queue: Which workers.
        enforces: What those workers enforce; that a tool may ignore its cancellation, and nothing else, where `None`.
        operation_id: Makes the host's id of an operation from a call (D5); its idempotency key where `None`.
        queue_timeout: Seconds in which a worker must take the call.
        longest: Seconds that a call may take which has no time bound of its own.
        heartbeat_timeout: Seconds without a sign of the worker's after which it counts as dead.
        max_payload_bytes: The most bytes that arguments or a result may take: a cluster refuses payloads of 2 MB after the tool has run.
        context_vars: As of `ProcessBackend`, for values that have a JSON form; the workers must name them too.

    Raises:
        InvalidInputError: An option can't be used.
        InvalidTypeError: An option is of a wrong type.
    """

    name: Final = "temporal"

    def __init__(
        self,
        client: "Client",
        task_queue: str,
        *,
        enforces: Enforcement | None = None,
        operation_id: Callable[[CallFacts], str] | None = None,
        queue_timeout: float = 60.0,
        longest: float = 3600.0,
        heartbeat_timeout: float = 30.0,
        max_payload_bytes: int = 1_900_000,
        context_vars: Iterable[ContextVar[Any]] = (),
    ) -> None:
        if not isinstance(task_queue, str) or not task_queue:
            raise InvalidInputError(f"task_queue must be the name of a task queue, not {preview(task_queue)}")
        self._client = client
        self._enforces = enforces or _ENFORCES
        self._operation_id = operation_id or _by_key
        self._terms = Terms(
            task_queue,
            seconds("queue_timeout", queue_timeout),
            seconds("longest", longest),
            seconds("heartbeat_timeout", heartbeat_timeout),
        )
        self._limit = positive("max_payload_bytes", max_payload_bytes)
        self._context_vars = ContextVars(context_vars)
        self._opened = Opened(self.name)
        self._attempts: OrderedDict[str, int] = (
            OrderedDict()
        )  # of executions whose earlier attempts have ended for sure
        self._open: set[asyncio.Task[Any]] = set()

    @property
    def enforces(self) -> Enforcement:
        """What the workers enforce, as the host has said."""
        return self._enforces

    def require(self, fn: Callable[..., Any], /) -> None:
        """Take any function: which one is run is decided by the tool's name, in the worker."""

    async def run(self, invocation: Invocation, /) -> Any:
        """As `ExecutionBackend.run`.

        Raises:
            BackendNotStartedError: No worker took it in time, none knows the tool or accepts the arguments, or they can't be sent.
            BackendUnknownError: As above.
            BackendResultError: The tool ran, and its value has no JSON form or is too large.
            ToolError: The tool raised it.
            RemoteToolError: The tool raised another exception.
        """
        loop = self._opened.require()
        operation, request = self._request(invocation)
        execution = invocation.facts.execution_id
        activity = Activity(self._client, operation, self._attempts.get(execution, 1), self._terms, invocation.say)
        task = loop.create_task(activity.attend(request, invocation.begin()), name="toolbatch-activity")
        self._keep(task)
        task.add_done_callback(partial(self._ended, execution))
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            self._keep(loop.create_task(activity.stop(task)))
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                task.cancel()
                raise BackendUnknownError("The tool was asked to stop, and its end was not awaited.") from None
        except BaseException:
            task.cancel()
            raise
        return task.result()

    async def __aenter__(self) -> Self:
        self._opened.open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._opened.close()
        for task in self._open:
            task.cancel()  # the activities go on; who waits is told that the outcome is unknown
        while self._open:
            await asyncio.wait(self._open)

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    def _ended(self, execution: str, task: asyncio.Task[Any]) -> None:
        """An attempt has ended; only one whose end is known may be followed by another (ENGINES A.3)."""
        error = None if task.cancelled() else task.exception()
        if not isinstance(error, BackendUnknownError) or isinstance(error, ClaimedBeforeError):
            self._attempts[execution] = self._attempts.pop(execution, 1) + 1
            while len(self._attempts) > _MOST_REMEMBERED:
                self._attempts.popitem(last=False)

    def _request(self, invocation: Invocation) -> tuple[str, bytes]:
        """Return the operation's id, which the host is asked for once, and the letter to the worker."""
        limit = self._limit if invocation.max_result_bytes is None else min(self._limit, invocation.max_result_bytes)
        if invocation.arguments is None:
            raise NotSendableError(
                f"{invocation.tool_name} has arguments by position, and a worker takes them by name."
            )
        facts = invocation.facts
        operation = self._operation_id(facts)
        values = self._context_vars.values()
        try:
            data = write_request(Request(invocation.tool_name, invocation.arguments, facts, operation, values, limit))
        except Exception as error:
            raise NotSendableError(
                f"{invocation.tool_name} can't be sent to a worker: {preview(error, 300)}."
            ) from error
        if len(data) > self._limit:
            why = f"they take {len(data):,} bytes, more than the {self._limit:,} that are allowed"
            raise NotSendableError(
                f"the arguments of {invocation.tool_name} are too large to be sent to a worker: {why}."
            )
        return operation, data


def _by_key(facts: CallFacts) -> str:
    return facts.idempotency_key
