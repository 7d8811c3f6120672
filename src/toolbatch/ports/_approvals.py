"""What a person's decision on a call looks like, and who is asked for it (T7)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, final

__all__ = ["Abort", "ApprovalBroker", "ApprovalDecision", "ApprovalRequest", "Approve", "Deny"]


@final
@dataclass(frozen=True, slots=True)
class Approve:
    """The call may run, as it was shown."""


@final
@dataclass(frozen=True, slots=True)
class Deny:
    """The call may not run. The model reads that, and goes on.

    Attributes:
        reason: What the model reads of why; `None` for nothing.
        code: The error's code: `denied`, or what says it better.
    """

    reason: str | None = None
    code: str = "denied"


@final
@dataclass(frozen=True, slots=True)
class Abort:
    """The call may not run, and the turn ends: its batch closes, and its exit raises a fatal `ToolError`.

    Attributes:
        reason: Why, for the host; `None` for nothing.
    """

    reason: str | None = None


ApprovalDecision = Approve | Deny | Abort
"""A person's answer, or a policy's."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """One call that waits for a decision. Nothing of it was run.

    Attributes:
        execution_id: Unique over processes: what tells two requests apart whatever their call ids are.
        call_id: The call.
        tool_name: Its tool.
        arguments: The arguments that will be run if it is approved, checked, by parameter; a copy.
        reason: Why someone is asked, where an interceptor said so.
        generation: The batch's number within its session.
        run_id: The host's name of the run, if it gave one.
    """

    execution_id: str
    call_id: str
    tool_name: str
    arguments: Mapping[str, Any] = field(hash=False)
    reason: str | None = None
    generation: int = 1
    run_id: str | None = None


class ApprovalBroker(Protocol):
    """Asks whoever decides. `FixedApprovals` and `InteractiveApprovals` are ready-made ones."""

    async def decide(self, request: ApprovalRequest, /) -> ApprovalDecision:
        """Return the decision on one call.

        It is called in the batch's loop, once for each call that needs a decision, for several calls at once. When the call
        gets its outcome otherwise - by a close, a deadline, a newer batch - this is cancelled, and must give up its request. What
        it raises denies the call.
        """
        ...
