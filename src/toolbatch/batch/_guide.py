"""Taking one call through its stages inside a batch: policies, approval, its turn, the tool, policies again, the budget (T3).

A call without policies, approval, locks or budget never comes here: `_drive.py` runs it alone. Here the call has a task of its
own, which awaits the host's policies; each run of its tool is an `Attempt` beside it, with the tool's time bound, which is innermost
(T6). The outcome is still decided in one place, `Engine.feed`.
"""

from asyncio import CancelledError, Future
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from toolbatch.core import Part, ToolError
from toolbatch.observe import log_event
from toolbatch.output import OutputBudget
from toolbatch.ports import Abort, ApprovalBroker, ApprovalDecision, ApprovalRequest
from toolbatch.tools import (
    NOT_EXECUTED,
    AnyTool,
    Prepared,
    Refused,
    ToolFailure,
    ToolResult,
    ToolSuccess,
    ToolTimeoutError,
    authorize,
    dispatch,
    finalize,
    render_result,
)

from ._accounts import publish_late
from ._attempt import Attempt
from ._claimed import DurableOperationError
from ._drive import was_thrown_in
from ._execution import NEVER, Execution, Phase
from ._failures import discard, is_a, read_failure
from ._launching import give_place, run, take_place
from ._placeholders import give_up
from ._reports import raised, returned

if TYPE_CHECKING:
    from ._drive import Work
    from ._engine import Engine

__all__ = ["Guided", "guide"]

_NO_BUDGET = OutputBudget(None)
"""For tools that have a budget of their own, in batches that have none."""


class Guided(NamedTuple):
    """A call that goes through stages.

    Attributes:
        call: What `prepare` found.
        work: How its tool is run, once; `None` for a refused call.
    """

    call: Prepared | Refused
    work: "Work | None"

    @property
    def tool(self) -> AnyTool | None:
        """Its tool, where there is one of its name."""
        return self.call.tool


async def guide(engine: "Engine", execution: Execution, guided: Guided) -> None:
    """Take one call through its stages, and settle it. It raises nothing."""
    if not engine.enter(execution):
        return
    try:
        conclude = await _through(engine, execution, guided)
        if _is_too_late(execution):
            _tell_too_late(engine, execution)
        else:
            conclude()
    except BaseException as error:
        if was_thrown_in(execution, error):
            raise
        if _is_too_late(execution, error) and not is_a(error, (KeyboardInterrupt, SystemExit)):
            _tell_too_late(engine, execution)
        else:
            raised(engine, execution, error)  # whatever the host's policies raise is the call's outcome (B4)
    for attempt in execution.attempts:
        attempt.forget()
    if any(attempt.was_left for attempt in execution.attempts):
        publish_late(engine, execution)  # if all of it has ended in the meantime
    execution.fold()


def _is_too_late(execution: Execution, error: BaseException | None = None) -> bool:
    """Whether the call is over and its guide has nothing to add: what counts as late is what the tool says, once."""
    return execution.is_over and (bool(execution.attempts) or is_a(error, CancelledError))


def _tell_too_late(engine: "Engine", execution: Execution) -> None:
    engine.end(execution)
    engine.settle_accounts()
    for attempt in execution.attempts:
        attempt.lost(engine)
    give_up(engine, execution)
    publish_late(engine, execution)


async def _through(engine: "Engine", execution: Execution, guided: Guided) -> Callable[[], object]:
    """Return what settles the call."""
    try:
        admitted = await _admit(engine, execution, guided.call)
    except BaseException as error:
        if was_thrown_in(execution, error) or execution.is_over:
            raise
        if is_a(error, (Exception, KeyboardInterrupt, SystemExit)):
            raise  # it ends the turn
        message = "%s was denied: deciding on it failed"
        log_event("decision_failed", message, execution.call.id, exc_info=error, **execution.identity)
        return partial(_answer, engine, execution, "denied", f"{NOT_EXECUTED}: deciding on it failed.")
    if isinstance(admitted, Abort):
        return partial(_abort, engine, execution, admitted)
    if isinstance(admitted, Refused) or guided.work is None:
        problem = admitted.problem if isinstance(admitted, Refused) else guided.call.problem  # type: ignore[union-attr]
        return partial(_answer, engine, execution, problem.code, problem.message)
    try:
        result = await _run(engine, execution, admitted, guided.work)
    except BaseException:
        if engine.options.hooks.after:
            execution.added = None  # no policy will see it
        raise
    final, is_original = await _judged(engine, execution, admitted, result)
    if not is_original:
        execution.forget()
    if isinstance(final, ToolSuccess):
        execution.meta = final.meta
        return partial(returned, engine, execution, await _shortened(engine, execution, admitted.tool, final.content))
    return partial(_fail, engine, execution, final, result)


async def _judged(
    engine: "Engine", execution: Execution, call: Prepared, result: ToolResult
) -> tuple[ToolResult, bool]:
    """Ask the policies about a result, and say whether it is still the original."""
    try:
        return await finalize(call, result, engine.options.hooks)
    except BaseException as error:
        if was_thrown_in(execution, error):
            raise
        execution.forget()
        if execution.is_over or is_a(error, (Exception, KeyboardInterrupt, SystemExit)):
            raise  # it ends the turn
        message = "the result of %s was withheld: deciding on it failed"
        log_event("decision_failed", message, execution.call.id, exc_info=error, **execution.identity)
        withheld = "The tool ran; its result was withheld, because the host's policy for it failed."
        return ToolFailure("denied", withheld, error), False


async def _admit(engine: "Engine", execution: Execution, call: Prepared | Refused) -> Prepared | Refused | Abort:
    """Ask the policies and the broker. A decision on a call that has its outcome by now means nothing."""
    broker = None if engine.options.approvals is None else _Parking(engine, execution, engine.options.approvals)
    request = partial(_request, engine, execution, call)
    admitted = await authorize(call, engine.options.hooks, request=request, approvals=broker)
    _require_open(execution)
    return admitted


def _require_open(execution: Execution) -> None:
    if execution.is_over:
        # It was cancelled, and someone on the way has kept that to himself.
        raise CancelledError(f"call {execution.call.id} is over; nothing was run")


def _require_turn(execution: Execution) -> None:
    if not execution.may_run:
        raise CancelledError(f"the turn of call {execution.call.id} is over; nothing was run")
    _require_open(execution)


async def _run(engine: "Engine", execution: Execution, call: Prepared, work: "Work") -> ToolResult:
    """Run the tool inside of what stands around it, when it is its turn, and make its end ready for the policies."""
    await take_place(engine, execution, work)
    execution.may_run = True
    try:
        value = await dispatch(call, partial(_run_once, engine, execution, work), engine.options.hooks)
    except BaseException as error:
        if was_thrown_in(execution, error):
            raise
        return _failure(engine, error)  # a failure is an answer, for the policies first
    finally:
        execution.may_run = False
        if not engine.loop.is_closed():
            for attempt in execution.attempts:
                attempt.leave(engine, "cancelled", "Tool call was cancelled.")  # which `around` has walked away from
        give_place(engine, execution, work)
    saved = execution.saved
    if saved is not None and saved.content is not None and value is saved.value:
        return ToolSuccess(value, saved.content, saved.meta)
    try:
        rendered = render_result(call.tool, value, encode=engine.host.encode)
    except ToolError as error:
        discard(value)
        return _failure(engine, error)
    return ToolSuccess(value, rendered.content, rendered.meta)


async def _run_once(engine: "Engine", execution: Execution, work: "Work") -> Any:
    _require_turn(execution)
    if engine.ledger is not None:
        await engine.ledger.started(engine, execution)
        _require_turn(execution)  # much can have happened meanwhile
    report: Future[tuple[bool, Any]] = engine.loop.create_future()
    attempt = Attempt(execution, report)
    _add(execution, attempt)
    run(engine, attempt, work)
    value = None
    try:
        succeeded, value = await report
        if succeeded:
            return value
        raise value
    except CancelledError:  # the call is over, or what stands around the tool waits no longer
        attempt.leave(engine, "cancelled", "Tool call was cancelled.")
        raise
    finally:
        del value, report  # an exception leads back here by its traceback


def _add(execution: Execution, new: Attempt) -> None:
    if execution.attempts:  # what an attempt that was given up has said of the call counts no more
        execution.failure, execution.added, execution.concludes = None, None, False
    for attempt in execution.attempts:
        if attempt.phase is Phase.ENDED:
            attempt.forget()
    execution.attempts = (*(attempt for attempt in execution.attempts if attempt.phase is not Phase.ENDED), new)
    execution.work = None  # an awaitable is the attempt's now


async def _shortened(
    engine: "Engine", execution: Execution, tool: AnyTool, content: str | tuple[Part, ...]
) -> str | tuple[Part, ...]:
    """Return what the model is shown of a result (G1)."""
    budget = engine.options.budget or _NO_BUDGET
    if tool.budget_exempt or budget.is_within(content, max_tokens=tool.max_output_tokens):
        return content
    left = engine.deadline - engine.loop.time()
    return await budget.fit(
        content,
        tool_name=tool.name,
        call_id=execution.call.id,
        max_tokens=tool.max_output_tokens,
        within=None if left == NEVER else max(0.0, left),
    )


def _failure(engine: "Engine", error: BaseException) -> ToolFailure:
    if is_a(error, ToolTimeoutError):
        return ToolFailure("timeout", error.message, error)  # whatever other TimeoutErrors mean to the host
    failure = read_failure(error, engine.options.error_detail, engine.options.cancel_exceptions)
    if failure.is_cancellation or failure.passes_through is not None:
        raise error
    return ToolFailure(failure.code or "tool_error", failure.message, error)


def _answer(engine: "Engine", execution: Execution, code: str, message: str) -> None:
    engine.end(execution)
    engine.answer(execution, code, message)


def _abort(engine: "Engine", execution: Execution, abort: Abort) -> None:
    given = abort.reason if isinstance(abort.reason, str) else None
    reason = given or f"the approval of {execution.call.name} was answered with the end of the turn"
    _answer(engine, execution, "aborted_before_dispatch", f"{NOT_EXECUTED}: the turn was ended before it could run.")
    engine.end_turn(ToolError.fatal(reason, "aborted"))


def _fail(engine: "Engine", execution: Execution, final: ToolFailure, result: ToolResult) -> None:
    """Settle a call that failed: as its tool's own error, or as what the policies have made of it."""
    was_fatal = isinstance(result, ToolFailure) and is_a(result.error, ToolError) and result.error.is_fatal
    if final is result and is_a(final.error, ToolTimeoutError):
        engine.end(execution)
        engine.close_call(execution, "timeout", final.message)
    elif final is result and is_a(final.error, DurableOperationError) and not execution.is_pending:
        _answer_durable(engine, execution, final.error)
    elif final is result:
        raised(engine, execution, final.error)
    else:
        raised(engine, execution, ToolError(final.message, final.code, is_fatal=was_fatal))


def _answer_durable(engine: "Engine", execution: Execution, error: DurableOperationError) -> None:
    """Settle a call that has no result of its own, with what is known of its effects (D2)."""
    engine.end(execution)
    execution.is_answered = not execution.is_over
    execution.exception = error
    effects = "unknown" if execution.started or execution.was_begun else error.side_effect_state
    engine.feed(execution, engine.closure.close_call, "error", error.code, error.message, effects)
    if error.is_fatal:
        engine.end_turn(error)


class _Parking:
    """A broker that notes which call waits for it: closing the batch then says that it was not executed (T7)."""

    def __init__(self, engine: "Engine", execution: Execution, broker: ApprovalBroker) -> None:
        self._engine = engine
        self._execution = execution
        self._broker = broker

    async def decide(self, request: ApprovalRequest, /) -> ApprovalDecision:
        """Wait for the decision."""
        _require_open(self._execution)
        self._engine.park(self._execution, request)
        try:
            _require_open(self._execution)  # observers are told of the request, and may have closed the batch
            return await self._broker.decide(request)
        finally:
            self._engine.unpark(self._execution)


def _request(engine: "Engine", execution: Execution, call: Prepared | Refused, reason: str | None) -> ApprovalRequest:
    return ApprovalRequest(
        execution_id=execution.id,
        call_id=execution.call.id,
        tool_name=execution.call.name,
        arguments=call.shown_arguments() if isinstance(call, Prepared) else {},
        reason=reason,
        generation=engine.generation,
        run_id=engine.run_id,
    )
