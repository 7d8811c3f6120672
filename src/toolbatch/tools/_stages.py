"""The stages of a call after `prepare`, each usable alone: authorize, dispatch, finalize (T3, T6, T7).

They know no batch, no deadline and no outcome: whoever runs them decides what their answers mean for a call.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast, final

from toolbatch.core import CallProblem, InvalidTypeError, Part, ToolError, as_parts, preview
from toolbatch.ports import Abort, ApprovalBroker, ApprovalRequest, Approve, Deny

from ._interceptors import (
    Accept,
    Allow,
    Ask,
    Block,
    Decision,
    Interceptor,
    Replace,
    ToolFailure,
    ToolResult,
    ToolSuccess,
    Verdict,
)
from ._prepare import Prepared, Refused

__all__ = ["NOT_EXECUTED", "Hooks", "authorize", "dispatch", "finalize"]

NOT_EXECUTED = "NOT EXECUTED"
_log = logging.getLogger("toolbatch.tools")
_T = TypeVar("_T")
_Hook = Callable[..., Awaitable[Any]]


@final
@dataclass(frozen=True, slots=True)
class Hooks:
    """Interceptors, sorted by what they do: one that overrides nothing of a stage costs that stage nothing.

    Attributes:
        before: The `before`s, outermost first.
        around: Likewise.
        after: Likewise.
    """

    before: tuple[_Hook, ...] = ()
    around: tuple[_Hook, ...] = ()
    after: tuple[_Hook, ...] = ()

    @classmethod
    def of(cls, interceptors: Iterable[Interceptor]) -> "Hooks":
        """Read interceptors.

        Raises:
            InvalidTypeError: One is none.
        """
        given = list(interceptors)
        for interceptor in given:
            if not isinstance(interceptor, Interceptor):
                raise InvalidTypeError(f"interceptors must be objects of Interceptor, not {preview(interceptor)}")
        before, around, after = (
            tuple(getattr(interceptor, stage) for interceptor in given if _overrides(interceptor, stage))
            for stage in ("before", "around", "after")
        )
        return cls(before, around, after)

    def __bool__(self) -> bool:
        return bool(self.before or self.around or self.after)


def _overrides(interceptor: Interceptor, stage: str) -> bool:
    # By what will be called, which may be the instance's own: a policy must not be passed over in silence.
    return getattr(getattr(interceptor, stage), "__func__", None) is not getattr(Interceptor, stage)


async def _chain(hooks: Sequence[_Hook], given: tuple[object, ...], innermost: Callable[[], Awaitable[_T]]) -> _T:
    if not hooks:
        return await innermost()
    return cast(_T, await hooks[0](*given, partial(_chain, hooks[1:], given, innermost)))


# -- authorize -----------------------------------------------------------------------------------------------------------


async def authorize(
    call: Prepared | Refused,
    hooks: Hooks = Hooks(),
    *,
    request: Callable[[str | None], ApprovalRequest] | None = None,
    approvals: ApprovalBroker | None = None,
) -> Prepared | Refused | Abort:
    """Ask the policies, then whoever approves. Nothing has been run after it.

    Args:
        call: What `prepare` returned. A `Refused` one is shown to the policies too, and stays refused.
        hooks: The policies.
        request: Makes what the broker is shown, from a policy's reason; one with what the call says of itself where `None`.
        approvals: Who is asked; nobody where `None`, and then a call that needs it is denied.

    Returns:
        The call if it may run; a `Refused` one to be answered with its problem; an `Abort` that ends the turn.

    Raises:
        ToolError: A fatal one, of a policy or the broker.
    """
    try:
        decision = await _chain(hooks.before, (call,), partial(_own_word, call)) if hooks.before else _judged(call)
    except Exception as error:  # noqa: BLE001  a policy that failed allows nothing
        return _failed_closed(call, "the host's policy for it failed", error)
    if isinstance(decision, Deny):
        return _denied(call, decision.code, decision.reason or "the host's policy does not allow it")
    if not isinstance(decision, (Allow, Ask)):
        wrong = InvalidTypeError(f"before must return Allow, Ask or Deny, not {preview(decision)}")
        return _failed_closed(call, "the host's policy for it failed", wrong)
    if isinstance(call, Refused) or isinstance(decision, Allow):
        return call
    if approvals is None:
        why = f"{call.call.name} needs the approval of a person, and nobody can give it here. Go on without it"
        return _denied(call, "denied", why)
    return await _approved(call, approvals, (request or partial(_request, call))(decision.reason))


async def _own_word(call: Prepared | Refused) -> Decision:
    return _judged(call)


def _judged(call: Prepared | Refused) -> Decision:
    return Ask() if isinstance(call, Prepared) and call.needs_approval else Allow()


def _request(call: Prepared, reason: str | None) -> ApprovalRequest:
    return ApprovalRequest(
        execution_id=call.call.id,
        call_id=call.call.id,
        tool_name=call.call.name,
        arguments=call.shown_arguments(),
        reason=reason,
    )


async def _approved(call: Prepared, approvals: ApprovalBroker, request: ApprovalRequest) -> Prepared | Refused | Abort:
    try:
        answer = await approvals.decide(request)
    except Exception as error:  # noqa: BLE001  a broker that failed has approved nothing
        return _failed_closed(call, "the approval of a person could not be asked for", error)
    match answer:
        case Approve():
            return call
        case Deny():
            return _denied(call, answer.code, answer.reason or "a person was asked, and denied it")
        case Abort():
            return answer
        case _:
            wrong = InvalidTypeError(f"a broker must return Approve, Deny or Abort, not {preview(answer)}")
            return _failed_closed(call, "the approval of a person could not be asked for", wrong)


def _failed_closed(call: Prepared | Refused, why: str, error: Exception) -> Refused:
    if isinstance(error, ToolError):
        if error.is_fatal:
            raise error
        return _denied(call, error.code or "denied", error.message)
    _log.error("%s of tool %s was denied: %s", call.call.id, call.call.name, why, exc_info=error)
    return _denied(call, "denied", why)


def _denied(call: Prepared | Refused, code: str, why: str) -> Refused:
    why = why if isinstance(why, str) else preview(why)  # whatever a policy has given, the denial stands
    text = why if why.endswith((".", "!", "?")) else f"{why}."
    return Refused(call.call, call.tool, CallProblem(code, f"{NOT_EXECUTED}: {text}"))


# -- dispatch ------------------------------------------------------------------------------------------------------------


async def dispatch(call: Prepared, run: Callable[[], Awaitable[Any]], hooks: Hooks = Hooks()) -> Any:
    """Run the tool inside of what stands around it, and return the value that comes out.

    Args:
        call: What `authorize` returned.
        run: Runs the tool once, with its own time bound, and returns its value or raises what it raised.
        hooks: What stands around it.

    Raises:
        BaseException: What the tool raised, or what stands around it.
    """
    return await _chain(hooks.around, (call,), run)


# -- finalize ------------------------------------------------------------------------------------------------------------


async def finalize(call: Prepared, result: ToolResult, hooks: Hooks = Hooks()) -> tuple[ToolResult, bool]:
    """Let the policies look at the result, and return what becomes of it, and whether that is still the original.

    Args:
        call: What was run.
        result: How it ended.
        hooks: The policies.

    Raises:
        ToolError: A fatal one, of a policy.
    """
    try:
        verdict: Verdict = await _chain(hooks.after, (call, result), _accept)
        match verdict:
            case Accept():
                return result, True
            case Replace():
                return _replaced(result, verdict), False
            case Block():
                return _withheld(verdict.code, verdict.message), False
            case _:
                raise InvalidTypeError(f"after must return Accept, Replace or Block, not {preview(verdict)}")
    except ToolError as error:
        if error.is_fatal:
            raise
        return _withheld(error.code or "denied", error.message), False
    except Exception:  # noqa: BLE001  a policy that failed has let nothing through
        _log.exception("the result of call %s of tool %s was withheld: its policy failed", call.call.id, call.call.name)
        return _withheld(
            "denied", "The tool ran; its result was withheld, because the host's policy for it failed."
        ), False


async def _accept() -> Verdict:
    return Accept()


def _withheld(code: str, message: str) -> ToolFailure:
    return ToolFailure(code, message, ToolError(message, code))


def _replaced(result: ToolResult, verdict: Replace) -> ToolResult:
    content: str | tuple[Part, ...] | None = (
        verdict.content if isinstance(verdict.content, str) else as_parts(verdict.content)
    )
    if content is None:
        raise InvalidTypeError(f"the content of Replace must be text or parts, not {preview(verdict.content)}")
    if isinstance(result, ToolSuccess):
        return ToolSuccess(content, content, verdict.meta)
    text = content if isinstance(content, str) else None
    return _withheld("denied", text or "The tool failed; the host's policy withheld how.")
