"""Places where tools are run: what is asked of them, what they promise, and how they say what became of a call (X1, X2)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, Self, final

from toolbatch.core import ToolbatchError, ToolError

from ._operation_errors import NotApplied
from ._running import CallFacts, CallNote

__all__ = [
    "BackendError",
    "BackendNotStartedError",
    "BackendResultError",
    "BackendUnknownError",
    "ClaimedBeforeError",
    "Enforcement",
    "ExecutionBackend",
    "Invocation",
    "NotSendableError",
    "RemoteToolError",
    "ResultNotSendableError",
    "ResultTooLargeError",
    "WorkerKilledError",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Enforcement:
    """What a backend enforces by itself, whatever its tools do; not what a policy has allowed them (X1, seed 003).

    Attributes:
        cancellation: `cooperative` where a tool that does not listen goes on; `forced` where it is dead by the time its
            cancellation has ended.
        filesystem: What a tool can reach of the host's files: all (`host`), a part that the backend keeps it in, or none.
        network: Likewise of the network.
        cleanup: `guaranteed` where nothing that a tool has started - threads, tasks, processes of any kind - outlives its
            forced end; `best_effort` where some of it may.
    """

    cancellation: Literal["cooperative", "forced"]
    filesystem: Literal["host", "restricted", "none"] = "host"
    network: Literal["host", "restricted", "none"] = "host"
    cleanup: Literal["best_effort", "guaranteed"] = "best_effort"


def _unbounded() -> None:
    return None


def _unheard(note: CallNote) -> None:
    del note


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One run of one tool, asked of a backend.

    Attributes:
        fn: The tool's function. Backends that run it elsewhere take one that can be found there by its module and name.
        args: Positional arguments of `fn`, checked and converted.
        kwargs: Named arguments of `fn`, likewise.
        tool_name: The tool's name, by which workers that have tools of their own know it.
        arguments: The arguments as they were given, by name, before they were converted: JSON, where a model gave them. `None` where
            the host has given others by position.
        facts: The call that is answered.
        max_result_bytes: A result that takes more bytes on its way is refused; `None` for the backend's own bound, and never more
            than that. Where nothing is sent, nothing is measured.
        begin: Must be called once, in the loop's thread, before anything may happen that could enter the tool, and not where it
            surely will not be entered. Returns the seconds that the tool may take from then on, `None` for any number.
        say: Is given, in the loop's thread, what the tool says of its own call while it runs. It raises nothing.
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    tool_name: str
    arguments: Mapping[str, Any] | None = None
    facts: CallFacts
    max_result_bytes: int | None = None
    begin: Callable[[], float | None] = _unbounded
    say: Callable[[CallNote], None] = _unheard


class ExecutionBackend(Protocol):
    """Runs tools somewhere. `testing.check_backend` checks that a backend keeps these promises.

    A backend is entered in the loop that it serves, and left there. Many calls may be asked of it at once; it may let some wait.
    """

    @property
    def name(self) -> str:
        """What it is called in logs, such as `process`."""
        ...

    @property
    def enforces(self) -> Enforcement:
        """What it enforces (X1)."""
        ...

    def require(self, fn: Callable[..., Any], /) -> None:
        """Check, as early as a tool is made, that the function is of a kind that can be run here. It is not run.

        Raises:
            InvalidTypeError: It never can; the message says why and what to do.
        """
        ...

    async def run(self, invocation: Invocation, /) -> Any:
        """Run a tool once, and return its value. It is never run a second time by itself.

        When this is cancelled, the tool is asked to stop, or stopped, and this ends when the tool has truly ended: with
        `CancelledError` where it ended by that, with its value or its exception where it ended otherwise, and with
        `BackendUnknownError` where that can't be known. What was waiting for a place ends at once, and will never run.

        Raises:
            BackendNotStartedError: The tool was not entered, and never will be.
            BackendUnknownError: It may have been entered, and how it ended is not known.
            BackendResultError: It ran to its end; its value can't be handed over.
            Exception: What the tool raised, or `RemoteToolError` where that could not be sent.
        """
        ...

    async def __aenter__(self) -> Self:
        """Make the backend ready, so that what is wrong with it is told now and not at the first call."""
        ...

    async def __aexit__(self, *exc_info: object) -> None:
        """Stop what still runs as far as it can be stopped, and end. What is asked for later is not started."""
        ...


class BackendError(ToolError):
    """A backend's word on a call that has no result of its tool's. The model reads the message.

    Args:
        why: One sentence, or more.

    Attributes:
        why: As given; the message says besides what follows.
        effects: Whether the tool may have had an effect: `not_started` (surely none), `unknown`, or `settled` (it ran to its end).
    """

    effects: ClassVar[Literal["not_started", "unknown", "settled"]]
    _before: ClassVar = ""
    _after: ClassVar = ""
    _code: ClassVar[str]

    def __init__(self, why: str) -> None:
        super().__init__(f"{self._before}{why}{self._after}", self._code)
        self.why = why

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.why,)


class BackendNotStartedError(BackendError, NotApplied):
    """The tool was not run and will not be: the backend is closed, has no worker, or can't take the call.

    It is a `NotApplied`: an operation that was claimed for the call is free again.
    """

    effects = "not_started"
    _before = "NOT EXECUTED: "
    _code = "backend_unavailable"


class NotSendableError(BackendNotStartedError):
    """The tool or its arguments can't be sent to where they would be run."""


class BackendUnknownError(BackendError):
    """The call was handed over, and how it ended is not known: it may have had its effect, or may still have it (D2)."""

    effects = "unknown"
    _after = " Whether it had an effect is not known: verify that before repeating it."
    _code = "outcome_unknown"


class ClaimedBeforeError(BackendUnknownError):
    """A store says that somebody else has begun the operation, and it has no result. This run of it has entered nothing (D2)."""


class WorkerKilledError(BackendUnknownError):
    """The process that ran the tool died in the middle of it."""


class BackendResultError(BackendError):
    """The tool ran to its end, and its value can't be handed over (B23)."""

    effects = "settled"
    _before = "The tool ran, but its result can't be shown: "
    _code = "invalid_result"


class ResultTooLargeError(BackendResultError):
    """The value takes more bytes than may be sent."""


class ResultNotSendableError(BackendResultError):
    """The value can't be sent at all."""


class RemoteToolError(ToolbatchError):
    """Stands for an exception of a tool that could not be sent back as it was.

    Attributes:
        type_name: The class of what the tool raised.
    """

    def __init__(self, message: str, type_name: str) -> None:
        super().__init__(message)
        self.type_name = type_name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.type_name)
