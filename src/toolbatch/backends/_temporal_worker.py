"""A worker of Temporal's that runs toolbatch's tools: what stands on the other machine (X2, ENGINES A.3)."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

from toolbatch.core import InvalidInputError, ToolError, preview
from toolbatch.ports import (
    BackendNotStartedError,
    BackendResultError,
    BackendUnknownError,
    CallNote,
    Claimed,
    ClaimedBeforeError,
    ClaimToken,
    Completed,
    ExecutionBackend,
    Invocation,
    NotApplied,
    Operation,
    OperationConflictError,
    OperationStore,
    OperationStoreError,
    ReplayPolicy,
    ResultNotSendableError,
    ResultTooLargeError,
    remote_call,
)

from ._context_vars import ContextVars
from ._letters import ACTIVITY, Request, enclosed, ending_of, read_request, write_answer
from ._loop import LoopBackend
from ._options import positive, seconds
from ._pickles import named
from ._remote import RemoteCall
from ._thread import ThreadBackend

if TYPE_CHECKING:
    from temporalio.client import Client
    from temporalio.worker import Worker

__all__ = ["WorkerTool", "temporal_worker"]

_CARRIED: Final = ("conclude_turn", "add_context", "report_failure")
"""Notes that make sense when the tool has ended, which is when they arrive."""


class WorkerTool(Protocol):
    """What a worker must know of a tool. `Tool` is one."""

    @property
    def name(self) -> str:
        """By which calls name it."""
        ...

    @property
    def fn(self) -> Callable[..., Any]:
        """The function to run."""
        ...

    def validate(self, arguments: Mapping[str, Any], /) -> dict[str, Any]:
        """Return the arguments, checked and converted, or raise a `ToolError`."""
        ...

    def bind(self, values: Mapping[str, Any], /) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what to call the function with."""
        ...


@asynccontextmanager
async def temporal_worker(
    client: "Client",
    task_queue: str,
    tools: Iterable[WorkerTool] | Mapping[str, WorkerTool],
    *,
    store: OperationStore | None = None,
    replay: ReplayPolicy = "if_not_started",
    sync_backend: ExecutionBackend | None = None,
    max_concurrent: int = 100,
    heartbeat_seconds: float = 0.5,
    shutdown_seconds: float = 10.0,
    context_vars: Iterable[ContextVar[Any]] = (),
) -> AsyncIterator["Worker"]:
    """Run tools for every `TemporalBackend` of a task queue, inside of an `async with`. Extra `[temporal]`.

    With a store, each call's operation is claimed here, right around the tool, and completed before its result is told: an
    operation that was completed before is answered with its saved result, and one that was begun by somebody else, perhaps by a
    worker that died, is answered as unknown (D1, D2). A tool that raises `NotApplied` gives its claim back.

    Asynchronous tools run in this loop. Cancellation reaches a tool with the next heartbeat. Whether it stops what runs is up
    to the tool, and to `sync_backend`.

    Args:
        client: Connected to the cluster.
        task_queue: Which calls.
        tools: Tools, or a catalog of them. Where such a tool has a backend of its own, that is not used: here it is run.
        store: Where operations are claimed, entered by the caller; nowhere where `None`.
        replay: The policy that is stored with claims.
        sync_backend: Where synchronous tools run, entered by the caller: a `ProcessBackend`, for tools that must stop. Threads of
            this process, which can't be stopped, where `None`.
        max_concurrent: How many calls are taken at once.
        heartbeat_seconds: How often the cluster is told that a call is alive, and so how soon a cancellation arrives.
        shutdown_seconds: How long calls may go on at the end of the block before they are cancelled.
        context_vars: Variables that calls may set. Others are not touched.

    Raises:
        InvalidInputError: Two tools have one name, or an option can't be used.
    """
    from temporalio.worker import Worker

    beat = timedelta(seconds=seconds("heartbeat_seconds", heartbeat_seconds))
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(LoopBackend())
        threads = await stack.enter_async_context(ThreadBackend(positive("max_concurrent", max_concurrent)))
        beside: ExecutionBackend = threads if sync_backend is None else sync_backend
        desk = _Desk(_by_name(tools), store, replay, here, beside, beat.total_seconds(), ContextVars(context_vars))
        worker = Worker(
            client,
            task_queue=task_queue,
            activities=[desk.activity()],
            max_concurrent_activities=max_concurrent,
            max_heartbeat_throttle_interval=beat,
            default_heartbeat_throttle_interval=beat,
            graceful_shutdown_timeout=timedelta(seconds=seconds("shutdown_seconds", shutdown_seconds, least=0.0)),
        )
        async with worker:
            yield worker


def _by_name(tools: Iterable[WorkerTool] | Mapping[str, WorkerTool]) -> dict[str, WorkerTool]:
    found: dict[str, WorkerTool] = {}
    for tool in tools.values() if isinstance(tools, Mapping) else tools:
        if tool.name in found:
            raise InvalidInputError(f"two tools are called {tool.name}; give one another name")
        found[tool.name] = tool
    return found


class _Desk:
    """Takes calls and answers them."""

    def __init__(
        self,
        tools: dict[str, WorkerTool],
        store: OperationStore | None,
        replay: ReplayPolicy,
        here: ExecutionBackend,
        beside: ExecutionBackend,
        beat: float,
        context_vars: ContextVars,
    ) -> None:
        self._tools = tools
        self._store = store
        self._replay: ReplayPolicy = replay
        self._here = here
        self._beside = beside
        self._beat = beat
        self._variables = context_vars.names

    def activity(self) -> Callable[..., Any]:
        """Return the activity that the cluster is told of."""
        from temporalio import activity
        from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

        @activity.defn(name=ACTIVITY)
        async def run(letter: bytes, seconds: float | None) -> bytes:
            notes: list[CallNote] = []
            try:
                async with _heartbeat(activity.heartbeat, self._beat):
                    answer = await self._answer(letter, seconds, notes)
            except Exception as error:  # noqa: BLE001  whatever a tool raises is its call's outcome
                ending = ending_of(error)
                said = [[note.what, *note.args] for note in notes]
                kind = ending.type_name or ending.fate
                # Benign to the cluster: what it means is the caller's to say, and not the worker's log's.
                benign = ApplicationErrorCategory.BENIGN
                raise ApplicationError(
                    ending.message, list(ending), said, type=kind, non_retryable=True, category=benign
                ) from None
            return enclosed(answer, notes)

        return run

    async def _answer(self, letter: bytes, seconds: float | None, notes: list[CallNote]) -> bytes:
        try:
            request = read_request(letter)
        except Exception as error:
            raise BackendNotStartedError(f"the worker can't read the call ({preview(error)}).") from error
        tool = self._tools.get(request.tool)
        if tool is None:
            raise BackendNotStartedError(f"the workers of this queue have no tool {preview(request.tool)}.")
        try:
            args, kwargs = tool.bind(tool.validate(request.arguments))
        except ToolError as error:
            raise BackendNotStartedError(f"the worker's own check of the arguments says: {error.message}") from error
        self._set_values(request)

        def say(note: CallNote) -> None:
            if note.what in _CARRIED:
                notes.append(note)

        remote = RemoteCall(request.facts, seconds, say)
        remote_call.set(remote)
        invocation = Invocation(
            fn=tool.fn, args=args, kwargs=kwargs, tool_name=tool.name, arguments=request.arguments, facts=request.facts,
            begin=remote.remaining, say=say,
        )  # fmt: skip
        token = await self._claim(request)
        if isinstance(token, Completed):
            return token.result
        return await self._run(invocation, remote, token, request.limit)

    async def _run(self, invocation: Invocation, remote: RemoteCall, token: ClaimToken | None, limit: int) -> bytes:
        backend = self._here if _is_asynchronous(invocation.fn) else self._beside
        try:
            value = await _run_to_its_end(backend, invocation, remote)
        except NotApplied:
            if token is not None and self._store is not None:
                await self._store.release(token)
            raise
        answer = _sealed_answer(value)
        if token is not None and self._store is not None:
            await self._complete(self._store, token, answer)
        if len(answer) > limit:
            raise ResultTooLargeError(f"it takes {len(answer):,} bytes, more than the {limit:,} that are allowed.")
        return answer

    async def _claim(self, request: Request) -> ClaimToken | Completed | None:
        if self._store is None:
            return None
        try:
            key = request.facts.idempotency_key
            operation = Operation(
                request.operation_id, request.tool, request.arguments, replay=self._replay, idempotency_key=key
            )
            claim = await self._store.claim(operation)
        except (OperationStoreError, OperationConflictError, ValueError) as error:
            raise BackendNotStartedError(f"the operation can't be claimed: {error}") from error
        if isinstance(claim, Claimed):
            return claim.token
        if isinstance(claim, Completed):
            return claim
        raise ClaimedBeforeError(
            f"The operation was begun {claim.age:.0f} seconds ago by {claim.owner}, and has no result."
        )

    @staticmethod
    async def _complete(store: OperationStore, token: ClaimToken, answer: bytes) -> None:
        try:
            await store.complete(token, answer)
        except Exception as error:
            raise BackendUnknownError(f"The tool has ended, but its result can't be saved: {error}.") from error

    def _set_values(self, request: Request) -> None:
        for module, name, value in request.values:
            if (module, name) not in self._variables:
                raise BackendNotStartedError(f"the worker was not told of the context variable {module}.{name}.")
            named(module, name).set(value)


async def _run_to_its_end(backend: ExecutionBackend, invocation: Invocation, remote: RemoteCall) -> Any:
    """Run a tool and wait for its true end, whatever cancels this: that is what the cluster is to be told."""
    task = asyncio.get_running_loop().create_task(backend.run(invocation))
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            remote.stop()
            task.cancel()
    return task.result()


def _sealed_answer(value: Any) -> bytes:
    try:
        return write_answer(value)
    except BackendResultError:
        raise
    except Exception as error:
        raise ResultNotSendableError(f"{preview(error, 300)}.") from error


def _is_asynchronous(fn: Callable[..., Any]) -> bool:
    called = getattr(type(fn), "__call__", None)  # noqa: B004  a callable object may be asynchronous
    return any(
        inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one) for one in (inspect.unwrap(fn), fn, called)
    )


@asynccontextmanager
async def _heartbeat(beat: Callable[[], None], every: float) -> AsyncIterator[None]:
    """Tell the cluster again and again that the call is alive."""

    async def tell() -> None:
        while True:  # its start is a sign of life, too, and most calls are over before the next is due
            await asyncio.sleep(every)
            beat()

    task = asyncio.get_running_loop().create_task(tell())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
