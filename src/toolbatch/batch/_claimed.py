"""A call under its claim: run, and its end written down before anyone is told (D1, D2)."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from toolbatch.core import InvalidInputError, SideEffectState, ToolError
from toolbatch.observe import log_event
from toolbatch.ports import (
    MAX_OPERATION_RESULT_BYTES,
    BackendResultError,
    BackendUnknownError,
    ClaimLostError,
    ClaimToken,
    NotApplied,
    OperationStore,
    ReplayPolicy,
)
from toolbatch.tools import Prepared, render_result

from ._execution import OUTCOME_UNKNOWN, Execution
from ._failures import is_a
from ._saved import Saved, read_result, saved_failure, saved_result

__all__ = ["IN_DOUBT", "ClaimedCall", "DurableOperationError", "not_started", "replayed", "tell_failed", "unknown_text"]

IN_DOUBT: Final = "It is not known whether it took effect: verify that before repeating it."
_EARLIER: Final = f"The last attempt at this call had no effect, but an earlier one may have had. {IN_DOUBT}"
_TOO_LARGE: Final = "The tool ran, but its result is too large to be saved."
_SAVED_TOO_LARGE: Final = saved_failure("invalid_result", _TOO_LARGE)


class DurableOperationError(ToolError):
    """A durable call has no result of its own: it was not run, or nobody can say how it ended.

    Its `code` is `outcome_unknown` (claimed before, and no result was saved), `operation_conflict` (the id is of another
    operation) or `checkpoint_failed` (the store could not be written).

    Attributes:
        side_effect_state: `not_started` where nothing was run for the operation, else `unknown`.
    """

    def __init__(
        self, message: str, code: str | None, side_effect_state: SideEffectState = "unknown", *, is_fatal: bool = False
    ) -> None:
        super().__init__(message, code, is_fatal=is_fatal)
        self.side_effect_state = side_effect_state


class ClaimedCall:
    """A call under its claim."""

    def __init__(
        self,
        bounded: Callable[[Awaitable[None]], Awaitable[None]],
        store: OperationStore,
        execution: Execution,
        call: Prepared,
        token: ClaimToken,
        *,
        is_innermost: bool,
    ) -> None:
        self._bounded = bounded
        self._store = store
        self._execution = execution
        self._call = call
        self._token = token
        self._is_innermost = is_innermost

    async def run(self, proceed: Callable[[], Awaitable[Any]], replay: ReplayPolicy) -> Any:
        """Run the tool, and write down how it ended before anyone is told."""
        execution = self._execution
        before = execution.attempts[-1:]
        counts = execution.entered_count, execution.not_applied_count
        execution.on_late = self._ended_late if self._is_innermost else None
        try:
            value = await proceed()
        except NotApplied as error:
            if not self._may_have_been_applied(*counts):
                await self._release()
            elif replay != "safe":
                raise DurableOperationError(_EARLIER, OUTCOME_UNKNOWN) from error
            raise
        except BackendResultError as error:  # the work is done; only its value could not come here (B23)
            with suppress(ClaimLostError):  # the host has settled it meanwhile, which stands
                await self._save(saved_failure(error.code or "invalid_result", error.message))
            raise
        except BaseException as error:
            if self._is_innermost and not self._was_entered(before):
                self._beside(self._release())
            elif replay != "safe" and not is_a(error, BackendUnknownError):  # which says it by itself
                execution.doubt = IN_DOUBT
            raise
        finally:
            execution.on_late = None
        try:
            result = self._result(value)
            await self._save(result)
        except ClaimLostError as error:
            return await self._settled_by_another(error)
        except BaseException as error:  # such as the time bound of what stands further out
            if replay != "safe" and not is_a(error, DurableOperationError):  # which says it by itself
                execution.doubt = IN_DOUBT
            raise
        if result is _SAVED_TOO_LARGE:  # what a crash would forget is not shown either
            raise ToolError.respond_to_model(_TOO_LARGE, "invalid_result")
        return value

    async def _save(self, result: bytes) -> None:
        try:
            await self._bounded(self._store.complete(self._token, result))
        except ClaimLostError:
            raise
        except Exception as error:
            raise self._failed(error) from error

    def _was_entered(self, before: tuple[Execution, ...]) -> bool:
        """Whether the tool's code was entered under this claim; certain, since what was not is withdrawn by now (B5)."""
        last = self._execution.attempts[-1:]
        return last != before and bool(last) and last[0].started

    def _may_have_been_applied(self, entered_before: int, not_applied_before: int) -> bool:
        """Whether `NotApplied` says less than all: what stands around the tool has run it several times, and not each has said so."""
        entered = self._execution.entered_count - entered_before
        return entered > 1 and entered > self._execution.not_applied_count - not_applied_before

    def _result(self, value: object) -> bytes:
        """Return what is saved of a value. One that can't be shown is saved as that: the work is done all the same (B23)."""
        execution, encode = self._execution, self._execution.engine.host.encode
        try:
            rendered = render_result(self._call.tool, value, encode=encode)
        except ToolError as error:
            return saved_failure(error.code or "invalid_result", error.message)
        result = saved_result(value, rendered, execution, encode)
        if len(result) > MAX_OPERATION_RESULT_BYTES:
            return _SAVED_TOO_LARGE
        execution.saved = Saved(value, rendered.content, rendered.meta)
        return result

    async def _settled_by_another(self, error: ClaimLostError) -> Any:
        """The host has settled the operation while its tool ran: what the host has saved stands."""
        try:
            record = await self._store.get(self._token.operation_id)
        except Exception:  # noqa: BLE001  whatever it is, nobody knows of a saved result
            raise self._failed(error) from error
        if record is None or record.result is None:
            raise self._failed(error) from error
        tell_failed("operation %s was reconciled while its tool ran; that stands", self._call.call.id, record.id)
        return replayed(self._execution, self._call, record.result)

    def _failed(self, error: BaseException) -> DurableOperationError:
        self._tell("the result of operation %s is not saved", error)
        return DurableOperationError(
            f"The tool ran, but its result could not be saved, and so is not shown. {IN_DOUBT}",
            "checkpoint_failed",
            is_fatal=True,
        )

    async def _release(self) -> None:
        try:
            await self._bounded(self._store.release(self._token))
        except Exception as error:  # noqa: BLE001  it stays unknown, which is safe
            self._tell("operation %s was not released", error)

    def _ended_late(self, succeeded: bool, value: object) -> None:  # noqa: FBT001  as an attempt reports it
        """The tool has ended, though nobody waits for it any more: the operation's end is known all the same."""
        if succeeded:
            self._beside(self._complete_late(self._result(value)))
        elif is_a(value, NotApplied):
            self._beside(self._release())

    async def _complete_late(self, result: bytes) -> None:
        try:
            await self._bounded(self._store.complete(self._token, result))
        except Exception as error:  # noqa: BLE001  it stays unknown, which is safe
            self._tell("the late result of operation %s is not saved", error)

    def _tell(self, message: str, error: BaseException) -> None:
        tell_failed(message, self._call.call.id, self._token.operation_id, error)

    def _beside(self, work: Any) -> None:
        engine = self._execution.engine
        if engine.loop.is_closed() or not engine.loop.is_running():
            work.close()
        else:
            engine.crew_of(self._execution).launch_side_task(work)


def replayed(execution: Execution, call: Prepared, result: bytes) -> Any:
    execution.is_replayed = True
    try:
        saved = read_result(result)
    except InvalidInputError as error:
        tell_failed("the saved result of call %s can't be read", execution.call.id, error=error)
        message = "The operation was done before, but its saved result can't be read. It was not run again."
        raise ToolError.respond_to_model(message, "invalid_result") from error
    if saved.failure is not None:
        raise ToolError.respond_to_model(saved.failure.message, saved.failure.code)
    if saved.said is not None or call.tool.render is None:
        execution.saved = saved  # else it is a value only, which the tool's own `render` is for
    saved.say(execution)
    return saved.value


def not_started(why: str, code: str) -> DurableOperationError:
    return DurableOperationError(f"The call was not executed: {why}.", code, "not_started")


def unknown_text(age: float | None = None) -> str:
    when = "" if age is None else f" {age:.0f} seconds ago"
    return (
        f"The outcome of this call is unknown: it was begun{when} and no result of it was saved, so it may have taken effect. It was "
        "not run again. Verify what has happened before repeating it."
    )


def tell_failed(
    message: str, call_id: str, operation_id: str | None = None, error: BaseException | None = None
) -> None:
    """Write into the log what could not be done with an operation."""
    named = operation_id or call_id
    log_event("operation_failed", message, named, exc_info=error, call_id=call_id, operation_id=operation_id)
