"""ToolBatch: runs the tool calls of one assistant turn, and answers every one of them exactly once.

This file is what a caller sees, and the rules of entering and leaving; what happens in between is `_engine.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, Unpack, final

from anyio import current_effective_deadline

from toolbatch.core import (
    Accepted,
    BatchClosedError,
    BatchStateError,
    CloseStatus,
    Encoder,
    InvalidInputError,
    Limits,
    Rejected,
    SideEffectState,
    Snapshot,
    ToolCall,
    WrongThreadError,
    encode,
    preview,
)

from ._engine import Engine
from ._events import EventStream
from ._execution import NEVER, Execution, Phase
from ._failures import discard
from ._host import Host
from ._leaving import leave, wait_closed, wait_parked, wait_quiet, wait_recorded, wind_down
from ._options import BatchOptions, BatchSettings, seconds
from ._plan import plan_call, plan_start
from ._starting import start
from ._view import BatchView

with suppress(ImportError):  # it is anyio's own affair where that is
    # Else the first batch of a process would import it inside the event loop, and block that for some 50 ms.
    import anyio._backends._asyncio  # noqa: F401

__all__ = ["ToolBatch"]


@final
class ToolBatch(BatchView):
    """Runs one turn's calls in a task group of its own and gives each exactly one outcome (B1 to B23).

    Use it as `async with ToolBatch(calls, tools=...) as batch`, call `start_all`, and await `batch.snapshot()`. Leaving
    the block waits for what was started. However it is left - a result, a timeout, an abort, an exception - afterwards
    `batch.result` holds an answer for every call, ready for the provider.

    Args:
        calls: What the model announced: `ToolCall`s, or mappings or objects with `id`, `name` and `arguments`.
        tools: A `ToolCatalog`, or functions by tool name, for `start_all`.
        timeout: Seconds for the whole batch, from entering it.
        deadline: The same as a time of the loop's clock; the earlier of the two holds, and an enclosing anyio scope's
            deadline if that is earlier still.
        call_timeout: Seconds for each call, from its start, where `start` names none.
        teardown_timeout: Seconds that leaving waits for tools that were asked to stop (B6). In a session it does not.
        max_concurrency: How many calls may run at once; the others wait their turn, in order (B13).
        on_error: `continue`, or `cancel_siblings`: the first call that fails or times out cancels the others (B16).
        limits: Bounds on calls and results.
        run_id: The host's name for the run: it scopes idempotency keys, and is in every outcome.
        encode: Turns results into JSON text, instead of the built-in encoder (C7).
        error_detail: What the model reads of a tool's exception: its `message`, its `type`, or what a function of it
            returns (B21).
        cancel_exceptions: Exceptions of other libraries that mean "cancelled", not "failed".
        interceptors: The host's policies and wrappers, outermost first (T6).
        approvals: Who is asked where a tool or a policy wants an approval; nobody where `None`, and such calls are denied (T7).
        budget: Shortens what is too long for the model (G1); with a store, `start_all` also runs `read_tool_output` (G4).
        resume: The closed snapshot of an earlier batch of the same calls, or its `to_dict()`. Outcomes in it stand, denials too; a
            call that its close cut off before it had started may be run here. See `pause`. Or what a journal has of a batch, perhaps
            of a process that died: a call that had started has its saved result, or is closed as unknown (D4).
        journal: Where the batch is written down: the announcement before any tool starts, each start, and each outcome before
            `snapshot()` shows it (D4). It needs `run_id`. While it can't be written nothing starts, and the turn ends.
        on_event: Is told of everything that happens in the batch, as `events` (B19).
        observers: Who is asked on entering for a `BatchWatcher`, such as `toolbatch.observe.OpenTelemetry()`.
        on_outcome: Is told of each call's outcome, once (O3).
        on_late: Is told when the code of a call ends after its outcome (O3).

    Raises:
        InvalidInputError: An option can't be used.
        InvalidTypeError: An option is of a wrong type.
    """

    __slots__ = ("_given", "_options")

    def __init__(
        self,
        calls: Iterable[object],
        *,
        limits: Limits | None = None,
        encode: Encoder = encode,
        **settings: Unpack[BatchSettings],
    ) -> None:
        self._options = BatchOptions.read(settings)
        self._host = Host(limits=limits, encode=encode)
        self._given = calls
        self._engine: Engine | None = None

    @classmethod
    def in_session(cls, host: Host, calls: Iterable[object], options: BatchOptions) -> "ToolBatch":
        """Make a batch of a session; `ToolSession.batch` is the way to call this."""
        batch = object.__new__(cls)
        batch._options = options
        batch._host = host
        batch._given = calls
        batch._engine = None
        return batch

    # -- entering and leaving ----------------------------------------------------------------------------------------

    async def __aenter__(self) -> "ToolBatch":
        """Announce the calls. Those that can't be run - malformed, cut off, unnamed - are answered at once (P6).

        Raises:
            BatchStateError: The batch was entered before, or its session was left.
            InvalidInputError: A call can't be used (C2), `resume` is of others, or what is recorded has no `run_id`. Nothing has
                begun, and a session's older batch goes on.
            InvalidTypeError: Likewise.
        """
        if self._engine is not None:
            raise BatchStateError(f"{self!r} was entered before; make a new one for each turn")
        if self._host.crew is not None and self._host.crew.closed:
            raise BatchStateError(f"the ToolSession of {self!r} was left; nothing has begun")
        self._engine = engine = Engine(self._host, self._options, self._given)
        self._given = ()
        engine.open()
        now = engine.loop.time()
        enclosing = current_effective_deadline()
        # A scope that is cancelled already says minus infinity; its cancellation is on its way and is not a deadline.
        candidates = (now + self._options.timeout, self._options.deadline, NEVER if enclosing == -NEVER else enclosing)
        engine.set_deadline(min(candidates), now)
        try:
            await wait_recorded(engine)
        except BaseException:
            self._abort(engine)
            await wind_down(engine)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait for what was started, answer the rest, seal; then wait for tools that wind down, within a bound.

        What the body raised passes through as it is. Afterwards `result` is set, also after a cancellation.

        Raises:
            ToolError: A tool's fatal one, where the body raised nothing of its own (B4).
            asyncio.CancelledError: The task was cancelled while it waited here.
        """
        engine = self._entered()
        if isinstance(error, GeneratorExit):  # an async generator is being closed: it must not await (B18)
            self._abort(engine)
            leave(engine)
            return
        try:
            if error is None:
                await wait_quiet(engine)
                engine.close("error", "not_started", "Tool call was never started.", None)
                await wait_recorded(engine)
        except BaseException:
            self._abort(engine)
            await wind_down(engine)
            raise
        if isinstance(error, asyncio.CancelledError):
            self._abort(engine)
        elif error is not None:
            engine.close("error", "batch_failed", "The turn failed before this tool call completed.", None)
        await wind_down(engine)
        if engine.fatal is not None and (error is None or isinstance(error, BatchClosedError)):
            raise engine.fatal  # also where the body only found that it could not start the rest

    def _abort(self, engine: Engine) -> None:
        engine.close("cancelled", "request_aborted", "The request was aborted before this tool call completed.", None)

    # -- running calls -----------------------------------------------------------------------------------------------

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls to start, in order: all that were announced, but for those that were answered on entering (P6, D4)."""
        executions = self._entered().executions.values()
        return tuple(one.call for one in executions if one.call.problem is None and not one.is_resumed)

    def start(
        self,
        call_id: str,
        fn: Callable[..., Any] | Awaitable[Any],
        /,
        *args: Any,
        timeout: float | None = None,
        **kwargs: Any,
    ) -> None:
        """Run a tool for a call, and return at once.

        A coroutine function runs in a task, an async generator too (its last item is the result), a plain function in a
        thread, and an awaitable is awaited. A `Tool` checks its named arguments first: a call whose arguments it refuses is
        answered as `invalid_arguments`. Each sees a copy of the caller's context variables (B11). A call that has its
        outcome already, by `cancel` or its own deadline, is left alone: nothing is run.

        Args:
            call_id: The call.
            fn: The tool.
            *args: Its positional arguments.
            timeout: Seconds; the tool's own or else `call_timeout` where `None`, infinity for no bound.
            **kwargs: Its named arguments. A model's own arguments are better run by `start_all`: one called `timeout` would be ours.

        Raises:
            BatchClosedError: The batch is closed or replaced. Nothing was run.
            BatchStateError: The batch was not entered. Nothing was run.
            InvalidInputError: The call was not announced or was started before, or `timeout` can't be used. Nothing was run.
            InvalidTypeError: `fn` is neither a function nor an awaitable, or `timeout` no number; or `fn` is a task or future, which
                runs already, and the host's policies stand before each call. Nothing was run.
        """
        try:
            engine, execution = self._admit(call_id)
            bound = None if timeout is None else seconds(timeout, "timeout")
            work = None if execution is None else plan_start(execution.call, fn, args, kwargs, self._options)
        except BaseException:
            discard(fn)
            raise
        if execution is None or work is None:
            discard(fn)
        else:
            start(engine, execution, work, bound)

    def start_all(self) -> None:
        """Start every call that was not started yet, with the function or `Tool` that `tools` has for its name.

        A `Tool` gets checked and converted arguments, has its own timeout, and runs alone unless it is `parallel` (T8). Calls
        that can't be run are answered: `unknown_tool` with near names, `invalid_arguments` (T5). One that needs an approval waits
        for it, and is `denied` where nobody can give it (T7).

        Raises:
            BatchClosedError: The batch is closed or replaced. Nothing was run.
            BatchStateError: The batch was not entered. Nothing was run.
            InvalidInputError: The batch was made without `tools`. Nothing was run.
            InvalidTypeError: One of the tools can't be run. Nothing was run.
        """
        if self._options.tools is None:
            raise InvalidInputError("start_all() needs the batch or its session to be made with tools=...")
        if self._here().result is not None and not self.calls:
            return  # no calls, or all were answered on entering (P6), which closed the batch: nothing is left to start
        engine = self._open()
        waiting = [
            (execution, plan_call(execution.call, self._options))  # all of it is looked at before anything is started
            for execution in engine.executions.values()
            if execution.awaits_start
        ]
        for execution, work in waiting:
            # Unless an observer, or a tool that runs at once, has ended or started it.
            if execution.awaits_start and engine.result is None:
                start(engine, execution, work, None)

    async def snapshot(self) -> Snapshot:
        """Wait until every call has its outcome, and return the closed snapshot.

        It does not wait for cancelled tools to wind down, and many may await it. A call that nobody starts keeps it waiting
        until it is started, cancelled or closed, or a deadline comes; the log says so once (B2).

        Raises:
            BatchStateError: The batch was not entered.
            ToolError: The journal can't be written; fatal, code `checkpoint_failed`. `result` has what could not be saved.
        """
        return await wait_closed(self._here())

    def cancel(self, call_id: str, message: str | None = None, code: str | None = None) -> Accepted | Rejected:
        """Cancel one call, and leave the others alone (B15). Its tool is asked to stop.

        Returns `Rejected` if the call has its outcome already: that stands.

        Args:
            call_id: The call.
            message: What the model reads; a standard text where `None`.
            code: Why; `cancelled` where `None`.

        Raises:
            BatchStateError: The batch was not entered.
            InvalidInputError: The call was not announced, or `code` can't be used. Nothing has changed.
        """
        engine = self._here()
        return engine.close_call(self._find(engine, call_id), code, message)

    async def pause(self) -> Snapshot:
        """Wait for what runs, then close the batch while calls still wait for approval, and return the closed snapshot (T7).

        Those are cancelled as `approval_pending`, not started; the model would read NOT EXECUTED. Keep the snapshot, or its `to_dict()`, until
        the decision comes; then go on with a new batch of the same calls: `resume=` that snapshot, and a broker that knows the
        decision. What had an outcome keeps it. Where nothing waits, the batch ends as usual.

        Raises:
            BatchStateError: The batch was not entered.
        """
        engine = self._here()
        await wait_parked(engine)
        engine.close("cancelled", "approval_pending", "The turn is paused until a person has decided.", None)
        return await wait_closed(engine)

    def events(self, *, size: int = 1000) -> EventStream:
        """Return a stream of what happens in this batch from now on, for a user interface: `async for event in batch.events()`.

        Args:
            size: How many progress reports it holds for a slow reader; the oldest go first.

        Raises:
            BatchStateError: The batch was not entered.
            InvalidInputError: `size` is less than 1.
            InvalidTypeError: `size` is no int.
        """
        engine = self._here()
        stream = EventStream(size)
        engine.listen(stream.put)
        return stream

    def close(
        self,
        status: CloseStatus = "cancelled",
        code: str | None = None,
        message: str | None = None,
        side_effect_state: SideEffectState | None = None,
    ) -> Snapshot:
        """Give every pending call a synthetic outcome, ask their tools to stop, and return the closed snapshot.

        The body goes on. On a closed batch nothing changes, and its snapshot is returned.

        Args:
            status: What the pending calls become, `error` or `cancelled`.
            code: Why; `status` where `None`.
            message: What the model reads; a standard text where `None`.
            side_effect_state: `None` for what is known of each call: `not_started` if its code was not entered, else
                `unknown` (B5).

        Raises:
            BatchStateError: The batch was not entered.
            InvalidInputError: A value can't be used. The batch is still open.
            InvalidTypeError: Likewise.
        """
        return self._here().close(status, code, message, side_effect_state)

    # -- checks ------------------------------------------------------------------------------------------------------

    def _entered(self) -> Engine:
        if self._engine is None:
            raise BatchStateError("this ToolBatch was not entered; use it inside `async with ToolBatch(...) as batch:`")
        return self._engine

    def _here(self) -> Engine:
        engine = self._entered()
        if not engine.clock.is_here():
            raise WrongThreadError(
                "a ToolBatch is used in the thread that entered it; hand the call over to its event loop"
            )
        return engine

    def _open(self) -> Engine:
        engine = self._here()
        if engine.result is not None:
            raise BatchClosedError(f"{self!r} takes no more work; nothing was run")
        return engine

    def _find(self, engine: Engine, call_id: str) -> Execution:
        execution = engine.executions.get(call_id) if isinstance(call_id, str) else None
        if execution is None:
            known = ", ".join(map(repr, list(engine.executions)[:10])) or "none"
            raise InvalidInputError(f"{preview(call_id)} was not announced in this batch; its calls are {known}")
        return execution

    def _admit(self, call_id: str) -> tuple[Engine, Execution | None]:
        """Return the engine and the execution to start, `None` where the call has its outcome and nothing is to do."""
        engine = self._engine
        if engine is not None and engine.result is None and engine.clock.is_here() and type(call_id) is str:
            execution = engine.executions.get(call_id)
            if execution is not None and execution.awaits_start:
                return engine, execution
        # All else is a refusal, or a call that needs nothing any more.
        engine = self._here()
        if engine.result is not None:
            given = engine.executions.get(call_id) if isinstance(call_id, str) else None
            if given is None or (given.call.problem is None and not given.is_resumed):
                raise BatchClosedError(f"{self!r} takes no more work; {preview(call_id)} was not run")
            return engine, None
        execution = self._find(engine, call_id)
        if execution.settlement is None and execution.phase is not Phase.ANNOUNCED:
            raise InvalidInputError(f"call {call_id!r} was started before; a call is run once")
        return engine, execution if execution.awaits_start else None
