"""What a host may put around its tools: policies before, wrappers around, sanitisation after (T6)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, final

from toolbatch.core import Part, ToolError
from toolbatch.ports import Deny

from ._prepare import Prepared, Refused

__all__ = [
    "Accept",
    "Allow",
    "Ask",
    "Block",
    "Decision",
    "Interceptor",
    "Replace",
    "ToolFailure",
    "ToolResult",
    "ToolSuccess",
    "ToolTimeoutError",
    "Verdict",
]


@final
@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run."""


@final
@dataclass(frozen=True, slots=True)
class Ask:
    """Whoever approves calls is asked (T7).

    Attributes:
        reason: Why, for that person; `None` for nothing.
    """

    reason: str | None = None


Decision = Allow | Ask | Deny
"""What `before` says of a call."""


@final
@dataclass(frozen=True, slots=True)
class ToolSuccess:
    """A tool's result, ready for the model.

    Attributes:
        value: What the tool, or the innermost `around` that changed it, returned.
        content: What the model will get: text, or parts.
        meta: What the host is told of it.
    """

    value: Any
    content: str | tuple[Part, ...]
    meta: Any = None


@final
@dataclass(frozen=True, slots=True)
class ToolFailure:
    """A call that ran and failed.

    Attributes:
        code: `timeout`, `invalid_result`, the tool's own code, or `tool_error`.
        message: What the model will read.
        error: What was raised, whole.
    """

    code: str
    message: str
    error: BaseException


ToolResult = ToolSuccess | ToolFailure
"""How a call that ran has ended, before `after` has looked at it."""


@final
@dataclass(frozen=True, slots=True)
class Accept:
    """The result stands."""


@final
@dataclass(frozen=True, slots=True)
class Replace:
    """The model gets this instead: a success stays one, a failure stays one, with the code `denied`.

    It is a boundary: value, metadata, exception and added context of the original are dropped everywhere.

    Attributes:
        content: What the model gets; of a failure its text.
        meta: What the host is told instead.
    """

    content: str | tuple[Part, ...]
    meta: Any = None


@final
@dataclass(frozen=True, slots=True)
class Block:
    """The model reads that the result was withheld: an error. The original is dropped everywhere, as by `Replace`.

    Attributes:
        message: What the model reads.
        code: The error's code.
    """

    message: str
    code: str = "denied"


Verdict = Accept | Replace | Block
"""What `after` says of a result."""


class ToolTimeoutError(ToolError, TimeoutError):
    """The tool's own time is over. Raised by `proceed` in `around`, while the tool itself is being stopped.

    Attributes:
        seconds: The bound.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Tool call timed out after {seconds:g} seconds.", "timeout")
        self.seconds = seconds


class Interceptor:
    """Sees every call of a batch. Derive from it and override what you need; all three are asynchronous.

    Of several, the first is outermost: it sees a call first and its result last. `proceed()` asks the next one, and the last
    one's asks the tool itself. Each call has its own chain, and chains of different calls run at the same time.

    In all three, `current_call()` has the call's identity (T11).
    """

    async def before(self, call: Prepared | Refused, proceed: Callable[[], Awaitable[Decision]]) -> Decision:  # noqa: ARG002
        """Say whether the call may run. Malformed calls and those of unknown tools come here too, and can't be allowed.

        What it raises denies the call: a policy that failed allows nothing. A fatal `ToolError` ends the turn.
        """
        return await proceed()

    async def around(self, call: Prepared, proceed: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ARG002
        """Run the tool by `proceed()`, and return its value, or another; not at all, or again, as the host means it.

        `proceed()` raises what the tool raised, and `ToolTimeoutError` when the tool's own time is over, which is counted for
        each run of it. What this raises is the call's failure.

        It runs nothing, and raises `CancelledError`, once the call has its outcome by a close, a deadline or a cancellation, or this
        function has returned. A run that still goes on then is asked to stop. What a run has said through `current_call()` besides
        its value is forgotten when another begins.
        """
        return await proceed()

    async def after(self, call: Prepared, result: ToolResult, proceed: Callable[[], Awaitable[Verdict]]) -> Verdict:  # noqa: ARG002
        """Say whether the result stands. What it raises blocks the result.

        What it has not seen does not reach the model either: progress of a call that is cut off, and late results. But a placeholder
        does, `current_call().pending(...)`: the tool says it while there is no result, and this sees the result that follows.
        """
        return await proceed()
