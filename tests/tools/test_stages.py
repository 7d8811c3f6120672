"""T3: each stage works by itself, without a batch: authorize, dispatch, finalize."""

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from toolbatch.core import CallProblem, Image, InvalidTypeError, Text, ToolCall, ToolError
from toolbatch.ports import Abort, ApprovalRequest, Approve, Deny
from toolbatch.tools import (
    NOT_EXECUTED,
    Accept,
    Allow,
    AnyTool,
    Ask,
    Block,
    FixedApprovals,
    Hooks,
    Interceptor,
    Prepared,
    Refused,
    Replace,
    ToolFailure,
    ToolSuccess,
    authorize,
    dispatch,
    finalize,
    prepare,
    tool,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def one(x: int = 1) -> int:
    """Return what it is given."""
    return x


CATALOG: dict[str, AnyTool] = {"t": tool(one, name="t"), "asks": tool(one, name="asks", needs_approval=True)}


def prepared(name: str = "t") -> Prepared:
    """A call that may run."""
    call = prepare(ToolCall("a", name), CATALOG)
    assert isinstance(call, Prepared)
    return call


REFUSED = Refused(ToolCall("a", "t"), None, CallProblem("unknown_tool", "no such tool"))


class Says(Interceptor):
    """Answers every stage with what it was made with."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def before(self, call: Any, proceed: Any) -> Any:
        return self.answer

    async def around(self, call: Any, proceed: Any) -> Any:
        return self.answer

    async def after(self, call: Any, result: Any, proceed: Any) -> Any:
        return self.answer


async def test_without_policies_a_call_is_what_it_was() -> None:
    """T3: nothing stands in the way, and a refused call stays refused."""
    call = prepared()
    assert await authorize(call) is call
    assert await authorize(REFUSED) is REFUSED
    assert await dispatch(call, lambda: asyncio.sleep(0, "value")) == "value"
    result = ToolSuccess(1, "1")
    assert await finalize(call, result) == (result, True)


async def test_a_tool_that_needs_approval_asks_for_it() -> None:
    """T7: the request shows the call as it will be run; nobody to ask means denied."""
    call = prepared("asks")
    shown: list[ApprovalRequest] = []

    class Broker:
        async def decide(self, request: ApprovalRequest, /) -> Any:
            shown.append(request)
            return Approve()

    assert await authorize(call, approvals=Broker()) is call
    assert [(request.call_id, request.tool_name, request.arguments, request.reason) for request in shown] == [
        ("a", "asks", {}, None)
    ]
    denied = await authorize(call)
    assert isinstance(denied, Refused)
    assert denied.problem.code == "denied"
    assert denied.problem.message.startswith(NOT_EXECUTED)


async def test_a_policy_may_ask_and_say_why() -> None:
    """T6, T7: its reason is for the person; `Abort` comes back as it is."""
    seen: list[str | None] = []

    class Broker:
        async def decide(self, request: ApprovalRequest, /) -> Any:
            seen.append(request.reason)
            return Abort("stop")

    hooks = Hooks.of([Says(Ask("looks odd"))])
    assert await authorize(prepared(), hooks, approvals=Broker()) == Abort("stop")
    assert seen == ["looks odd"]
    assert await authorize(prepared(), hooks, approvals=FixedApprovals(Approve())) == prepared()


async def test_a_policy_may_set_a_tools_own_wish_aside() -> None:
    """T6: the host's word is last."""
    assert isinstance(await authorize(prepared("asks"), Hooks.of([Says(Allow())])), Prepared)


async def test_a_refused_call_is_denied_or_stays_refused() -> None:
    """T6: it can't be allowed, and nobody is asked about it."""

    class Never:
        async def decide(self, request: ApprovalRequest, /) -> Any:
            raise AssertionError("asked")

    for answer in (Allow(), Ask()):
        assert await authorize(REFUSED, Hooks.of([Says(answer)]), approvals=Never()) is REFUSED
    denied = await authorize(REFUSED, Hooks.of([Says(Deny("no", "policy"))]))
    assert isinstance(denied, Refused)
    assert denied.problem == CallProblem("policy", "NOT EXECUTED: no.")


@pytest.mark.parametrize("stage", ["authorize", "finalize"])
async def test_a_fatal_error_of_a_policy_passes_through(stage: str) -> None:
    """T4: it ends the turn, and that is the caller's to do."""

    class Fatal(Interceptor):
        async def before(self, call: Any, proceed: Any) -> Any:
            raise ToolError.fatal("stop")

        async def after(self, call: Any, result: Any, proceed: Any) -> Any:
            raise ToolError.fatal("stop")

    hooks = Hooks.of([Fatal()])
    with pytest.raises(ToolError, match="stop"):
        await (
            authorize(prepared(), hooks) if stage == "authorize" else finalize(prepared(), ToolSuccess(1, "1"), hooks)
        )


async def test_cancellation_passes_through_every_stage() -> None:
    """B10: a policy that is cancelled is not one that failed."""

    class Cancelled(Interceptor):
        async def before(self, call: Any, proceed: Any) -> Any:
            raise asyncio.CancelledError

        async def around(self, call: Any, proceed: Any) -> Any:
            raise asyncio.CancelledError

        async def after(self, call: Any, result: Any, proceed: Any) -> Any:
            raise asyncio.CancelledError

    hooks = Hooks.of([Cancelled()])
    stages: list[Callable[[], Awaitable[Any]]] = [
        lambda: authorize(prepared(), hooks),
        lambda: dispatch(prepared(), lambda: asyncio.sleep(0), hooks),
        lambda: finalize(prepared(), ToolSuccess(1, "1"), hooks),
    ]
    for stage in stages:
        with pytest.raises(asyncio.CancelledError):
            await stage()


FAILURE = ToolFailure("tool_error", "broke", ValueError("broke"))


@pytest.mark.parametrize(
    ("verdict", "of_success", "of_failure"),
    [
        (Accept(), ("1", None), ("broke", "tool_error")),
        (Replace("clean"), ("clean", None), ("clean", "denied")),
        (Block("no", "policy"), ("no", "policy"), ("no", "policy")),
        (None, ("The tool ran; its result was withheld, because the host's policy for it failed.", "denied"), None),
        (
            Replace(cast(Any, 5)),
            ("The tool ran; its result was withheld, because the host's policy for it failed.", "denied"),
            None,
        ),
    ],
)
async def test_a_verdict_is_what_becomes_of_a_result(
    verdict: Any, of_success: tuple[str, str | None], of_failure: tuple[str, str] | None
) -> None:
    """T6: a success stays one when it is replaced, and a failure stays one; of what is replaced nothing is left."""
    for result, expected in ((ToolSuccess(1, "1", "meta"), of_success), (FAILURE, of_failure or of_success)):
        final, is_original = await finalize(prepared(), result, Hooks.of([Says(verdict)]))
        assert is_original == (verdict == Accept())
        if isinstance(final, ToolSuccess):
            assert (final.content, None) == expected
            assert final.meta == ("meta" if is_original else None)
        else:
            assert (final.message, final.code) == expected
            assert is_original or "broke" not in repr(final.error)


async def test_parts_may_be_put_in_place_of_a_result() -> None:
    """P5: and what stands for a failure is its text."""
    picture = Image.of(b"x", "image/png")
    hooks = Hooks.of([Says(Replace((Text("a"), picture)))])
    final, _ = await finalize(prepared(), ToolSuccess(1, "1"), hooks)
    assert isinstance(final, ToolSuccess)
    assert final.content == (Text("a"), picture)
    failed, _ = await finalize(prepared(), FAILURE, hooks)
    assert isinstance(failed, ToolFailure)
    assert failed.message == "The tool failed; the host's policy withheld how."


def test_hooks_take_interceptors_only_and_skip_what_they_don_t_override() -> None:
    """T6: a stage that nobody overrides costs nothing."""

    class OnlyAfter(Interceptor):
        async def after(self, call: Any, result: Any, proceed: Any) -> Any:
            return await proceed()

    hooks = Hooks.of([OnlyAfter(), Interceptor()])
    assert (len(hooks.before), len(hooks.around), len(hooks.after)) == (0, 0, 1)
    assert hooks
    assert not Hooks.of([Interceptor()])
    with pytest.raises(InvalidTypeError, match="Interceptor"):
        Hooks.of([object()])  # type: ignore[list-item]
