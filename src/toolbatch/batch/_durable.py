"""Durable operations in the pipeline: claimed before a tool's code is entered, completed before its success is told (D1-D5)."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeVar, final

from toolbatch.core import (
    EncodingError,
    InvalidInputError,
    InvalidTypeError,
    ToolCall,
    preview,
    require_text,
)
from toolbatch.operations import operation_id, resolve
from toolbatch.output import READER_NAME
from toolbatch.ports import (
    MAX_OPERATION_ID_BYTES,
    REPLAY_POLICIES,
    Claim,
    Claimed,
    Completed,
    Done,
    JournaledBatch,
    NotDone,
    Operation,
    OperationConflictError,
    OperationResolver,
    OperationStore,
    OperationStoreError,
    ReplayPolicy,
    Unknown,
)
from toolbatch.tools import Interceptor, Prepared

from ._claimed import IN_DOUBT, ClaimedCall, DurableOperationError, not_started, replayed, tell_failed, unknown_text
from ._context import CallContext
from ._execution import NEVER, OUTCOME_UNKNOWN, Execution, current_execution
from ._options import BatchOptions, seconds

__all__ = ["DurableOperations", "durable_of", "is_recorded", "require_run"]

T = TypeVar("T")


@final
class DurableOperations(Interceptor):
    """Keeps calls from being done twice, whatever dies: an interceptor for `interceptors=` (D1, D2).

    Each call is an operation of its tenant, its run (the batch's `run_id`, which it needs) and its call id. It is claimed on disk before
    the tool's code is entered, and its result is on disk before the model can see it. So a call that comes again, after a
    crash, say, has its saved result; and one that was claimed and has none is answered as `outcome_unknown`, and never
    run again by itself.

    - What the tool returns completes the operation. A result that comes after the call's outcome does so too.
    - `NotApplied` releases it: the call may be made again. After several attempts under one claim each of them must have said so.
    - Anything else that a tool raises, a timeout, a cancellation and a crash leave it unknown, since it may have had its
      effect. The model is told to verify that first.
    - A completion that can't be written ends the turn as `checkpoint_failed`. While claims can't be written, no call starts
      but those whose policy is `safe`.

    Put it last in `interceptors`, so that it stands next to the tool. What stands inside of it has to run the tool by `proceed()`, and
    may do so again under the same claim; where something does stand there, a claim under which nothing was run is not
    given back, and late results are not saved.

    Args:
        store: Keeps the claims.
        tenant: On whose behalf the run is, as the host has authenticated it. It scopes the ids (D5).
        identity: More of the same, any JSON value: the same id under another identity is a conflict.
        replay: What may run again by itself: one policy for all tools, or by tool name; `if_not_started` for those not named.
        read_only: Tools without effects, by name or by a function of the call. They are run as if this were not here.
        resolver: Asks the outside world about an operation whose outcome is unknown, before the call is answered.
        call_key: Names the call within its run, where the provider's id does not: some gateways repeat theirs from turn to turn.
        summary: What a person reads of the operation in the store, instead of the arguments.
        timeout: Seconds that the store may take for a claim or a completion, and the resolver for its answer.

    Raises:
        InvalidInputError: An argument can't be used; it is named.
        InvalidTypeError: An argument is of a wrong type.
    """

    def __init__(
        self,
        store: OperationStore,
        *,
        tenant: str,
        identity: object = None,
        replay: ReplayPolicy | Mapping[str, ReplayPolicy] = "if_not_started",
        read_only: Collection[str] | Callable[[ToolCall], bool] = (),
        resolver: OperationResolver | None = None,
        call_key: Callable[[ToolCall], str] | None = None,
        summary: Callable[[ToolCall], str] | None = None,
        timeout: float = 30.0,
    ) -> None:
        if not callable(getattr(store, "claim", None)):
            raise InvalidTypeError(f"store must be an OperationStore, not {preview(store)}")
        operation_id(tenant=tenant, run="run", call="call")  # or what is wrong with the tenant
        for name, given in (("resolver", resolver), ("call_key", call_key), ("summary", summary)):
            if given is not None and not callable(given):
                raise InvalidTypeError(f"{name} must be a function or None, not {preview(given)}")
        self._store = store
        self._tenant = tenant
        self._identity = identity
        self._replay: Mapping[str, ReplayPolicy] | ReplayPolicy = _policies(replay)
        self._read_only = _names(read_only)
        self._resolver = resolver
        self._call_key = call_key
        self._summary = summary
        self._timeout = seconds(timeout, "timeout")
        if self._timeout == 0:
            raise InvalidInputError("timeout must be more than 0 seconds, not 0")

    # -- what the batch asks -----------------------------------------------------------------------------------------

    def may_go_on(self, call: ToolCall, run_id: str, claimed: str | None) -> bool:
        """Whether a call that had been started when its process died may go through the pipeline again.

        It may if it has no effects, or if its policy says so; or if it was claimed by the same name, since its claim then
        says how it stands.

        Args:
            call: The call.
            run_id: Its run.
            claimed: The operation that was claimed for it, if one was.
        """
        if self.is_read_only(call) or self.policy(call.name) == "safe":
            return True
        try:
            return claimed is not None and claimed == self.name(call, run_id)
        except Exception as error:  # noqa: BLE001  a name that can't be made is not that of any claim
            tell_failed("call %s can't be made an operation", call.id, error=error)
            return False

    def name(self, call: ToolCall, run_id: str) -> str:
        """Return the id of the operation that a call is."""
        key = call.id if self._call_key is None else self._call_key(call)
        return operation_id(tenant=self._tenant, run=run_id, call=require_text(key, "call_key", MAX_OPERATION_ID_BYTES))

    def is_read_only(self, call: ToolCall) -> bool:
        """Whether a call is run without a claim. A function that raises has not said so."""
        if not callable(self._read_only):
            return call.name == READER_NAME or call.name in self._read_only
        try:
            return call.name == READER_NAME or self._read_only(call) is True
        except Exception as error:  # noqa: BLE001  the careful answer
            tell_failed("read_only failed on call %s, which is claimed", call.id, error=error)
            return False

    def policy(self, tool_name: str) -> ReplayPolicy:
        """Return the replay policy of a tool."""
        return self._replay if isinstance(self._replay, str) else self._replay.get(tool_name, "if_not_started")

    def operation(self, execution: Execution) -> Operation:
        """Return the operation that a call is.

        Raises:
            DurableOperationError: It can't be named or written down. Nothing was run.
        """
        call, run = execution.call, execution.engine.run_id or ""
        try:
            return Operation(
                self.name(call, run),
                call.name,
                call.arguments,
                identity=self._identity,
                replay=self.policy(call.name),
                idempotency_key=CallContext(execution).idempotency_key,
                summary=None if self._summary is None else self._summary(call),
            )
        except Exception as error:
            tell_failed("call %s can't be made an operation", call.id, error=error)
            why = "its arguments have no JSON form" if isinstance(error, EncodingError) else "it can't be recorded"
            raise not_started(f"it must not be done twice, and {why}", "checkpoint_failed") from error

    # -- the pipeline ------------------------------------------------------------------------------------------------

    async def around(self, call: Prepared, proceed: Callable[[], Awaitable[Any]]) -> Any:
        """Claim the call, run it, and complete it; or give its saved result."""
        if self.is_read_only(call.call):
            return await proceed()
        execution = current_execution.get()
        if execution.operation is None:  # what a run has done to the arguments must not make it another one
            execution.operation = self.operation(execution)
        operation = execution.operation
        try:
            claim = await self._claim(operation, execution)
        except OperationConflictError as error:
            tell_failed("operation %s was claimed before for another call", execution.call.id, operation.id, error)
            why = "its id was used before in this run for another operation"
            raise not_started(why, "operation_conflict") from error
        except Exception as error:
            tell_failed("operation %s could not be claimed", execution.call.id, operation.id, error)
            if operation.replay == "safe":
                _note_known(execution)
                return await proceed()
            why = "it must not be done twice, and it can't be recorded now"
            raise not_started(why, "checkpoint_failed") from error
        _note_known(execution)
        match claim:
            case Completed():
                return replayed(execution, call, claim.result)
            case Unknown():
                execution.is_replayed = True
                raise DurableOperationError(unknown_text(claim.age), OUTCOME_UNKNOWN)
            case Claimed():
                execution.operation_id = operation.id
                is_innermost = _owner(execution.engine.options.hooks.around[-1]) is self
                step = ClaimedCall(self._bounded, self._store, execution, call, claim.token, is_innermost=is_innermost)
                return await step.run(proceed, operation.replay)

    async def _claim(self, operation: Operation, execution: Execution) -> Claim:
        claim = await self._bounded(self._store.claim(operation))
        if not isinstance(claim, Claimed | Completed | Unknown):
            raise InvalidTypeError(f"a store must answer Claimed, Completed or Unknown, not {preview(claim)}")
        if not isinstance(claim, Unknown):
            return claim
        if self._resolver is not None:
            settled = await self._resolved(operation, execution)
            if settled is not None:
                return settled
        if claim.replay == "safe":
            claim = await self._bounded(self._store.claim(operation, taking_over=claim.claim))
        return claim

    async def _resolved(self, operation: Operation, execution: Execution) -> Claim | None:
        assert self._resolver is not None  # noqa: S101  it was looked at
        try:
            answer = await self._bounded(resolve(self._store, self._resolver, operation.id))
        except OperationStoreError:
            raise
        except Exception as error:  # noqa: BLE001  a resolver that failed has said nothing
            tell_failed(
                "the resolver failed on operation %s, which stays unknown", execution.call.id, operation.id, error
            )
            return None
        except BaseException:
            execution.doubt = IN_DOUBT
            raise
        match answer:
            case Done() | NotDone():
                return await self._bounded(self._store.claim(operation))
            case _:
                return None

    async def _bounded(self, asked: Awaitable[T]) -> T:
        async with asyncio.timeout(None if self._timeout == NEVER else self._timeout):
            return await asked


def _note_known(execution: Execution) -> None:
    """What a process that died had begun is known now, or is about to be done again."""
    if execution.was_begun:
        execution.engine.note_begun(execution, None)


def durable_of(options: BatchOptions) -> DurableOperations | None:
    """Return what makes a batch's calls durable, if anything does.

    Raises:
        InvalidInputError: Two things do.
    """
    found = [one for one in map(_owner, options.hooks.around) if isinstance(one, DurableOperations)]
    if len(found) > 1:
        raise InvalidInputError(
            "a batch can have one DurableOperations only; give it all tools, by name where they differ"
        )
    return found[0] if found else None


def _owner(hook: object) -> object:
    return getattr(hook, "__self__", None)


def is_recorded(options: BatchOptions) -> bool:
    """Whether something has to be on disk before a call's code is entered."""
    return durable_of(options) is not None or options.journal is not None


def require_run(options: BatchOptions) -> None:
    """Check that what is recorded can be found again, and give a resumed batch its run.

    Raises:
        InvalidInputError: It could not, since the run has no name, or another one.
    """
    resumed = options.resume
    if isinstance(resumed, JournaledBatch):
        options.run_id = options.run_id or resumed.run_id
        if options.run_id != resumed.run_id:
            raise InvalidInputError(
                f"resume is of run {resumed.run_id!r}, and this batch of {options.run_id!r}: its operations and idempotency "
                "keys would be others"
            )
    if is_recorded(options) and options.run_id is None:
        raise InvalidInputError("a journal and durable operations need run_id=, by which they are found after a crash")


def _policies(given: object) -> "Mapping[str, ReplayPolicy] | ReplayPolicy":
    values: Collection[Any] = given.values() if isinstance(given, Mapping) else (given,)
    for value in values:
        if not isinstance(value, str) or value not in REPLAY_POLICIES:
            raise InvalidInputError(f"replay must be one of {', '.join(REPLAY_POLICIES)}, not {preview(value)}")
    if isinstance(given, Mapping):
        return dict(given)
    return given  # type: ignore[return-value]  # one of the three


def _names(given: object) -> "frozenset[str] | Callable[[ToolCall], bool]":
    if callable(given):
        return given
    if isinstance(given, str) or not isinstance(given, Collection):
        raise InvalidTypeError(f"read_only must be names of tools or a function of the call, not {preview(given)}")
    for name in given:
        if not isinstance(name, str):
            raise InvalidTypeError(f"read_only must be names of tools, not {preview(name)}")
    return frozenset(given)
