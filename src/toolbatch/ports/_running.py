"""A call whose code is running, as its tool sees it and as a backend carries it elsewhere: identity out, notes back (T11, B22)."""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol, final, get_args

from toolbatch.core import ToolCall

__all__ = ["NOTES", "CallFacts", "CallNote", "CancelEvent", "NoteKind", "RunningCall", "remote_call"]

NoteKind = Literal["progress", "pending", "conclude_turn", "add_context", "report_failure"]

NOTES: Final[tuple[NoteKind, ...]] = get_args(NoteKind)
"""What a tool may say of its own call besides its result: methods of `RunningCall`."""


class CallNote(NamedTuple):
    """Something that a tool has said of its own call, on its way to where the batch is.

    Attributes:
        what: The method of `RunningCall` that was called.
        args: Its arguments: text and `None` only, so that every backend can carry them.
    """

    what: NoteKind
    args: tuple[str | None, ...]


class CancelEvent(Protocol):
    """What tells a synchronous tool that it should stop: a `threading.Event`, as far as a tool may use it."""

    def is_set(self) -> bool:
        """Whether the tool was asked to stop."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is asked to, at most so many seconds; say whether it was."""
        ...


class RunningCall(Protocol):
    """One call, seen from inside its tool: what `current_call()` returns, in the batch's process and in a backend's worker."""

    @property
    def call(self) -> ToolCall:
        """The call as the model announced it."""
        ...

    @property
    def call_id(self) -> str:
        """The call's id."""
        ...

    @property
    def name(self) -> str:
        """The tool's name."""
        ...

    @property
    def generation(self) -> int:
        """The batch's number within its session."""
        ...

    @property
    def run_id(self) -> str | None:
        """The host's name of the run, if it gave one."""
        ...

    @property
    def execution_id(self) -> str:
        """The execution's id, as in its outcome."""
        ...

    @property
    def deadline(self) -> float | None:
        """When the call will be given up, on the clock of the loop or of the worker; `None` for never."""
        ...

    def remaining(self) -> float | None:
        """Return the seconds left until the deadline, at least 0; `None` where there is none."""
        ...

    @property
    def is_cancelled(self) -> bool:
        """Whether the tool was asked to stop."""
        ...

    @property
    def cancel_event(self) -> CancelEvent:
        """Is set when the tool is asked to stop."""
        ...

    @property
    def idempotency_key(self) -> str:
        """A key to pass on to the service that does the work (B22)."""
        ...

    @property
    def logger(self) -> Any:
        """A logger (`logging.LoggerAdapter`) whose records carry `call_id`, `tool_name` and `execution_id`."""
        ...

    def progress(self, content: Any) -> None:
        """Report what there is so far (B19)."""
        ...

    def pending(self, content: Any) -> None:
        """Answer the call now with a placeholder, and go on (O6)."""
        ...

    def conclude_turn(self) -> None:
        """Say that with this call's result the turn is done (T10)."""
        ...

    def add_context(self, text: str) -> None:
        """Give the host something for the conversation besides the result (T10)."""
        ...

    def report_failure(self, message: str, code: str | None = None) -> None:
        """Say that this execution failed, though the tool will return a value of its own (O4)."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """What a tool may know of its call, as a value that can be sent. All of it was fixed when the call was admitted (O7).

    Attributes:
        call: The call as the model announced it.
        generation: The batch's number within its session.
        run_id: The host's name of the run, if it gave one.
        execution_id: Unique over processes: which execution this is.
        idempotency_key: The same for the same run, call id, tool and arguments (B22).
    """

    call: ToolCall
    generation: int = 1
    run_id: str | None = None
    execution_id: str
    idempotency_key: str

    @classmethod
    def of(cls, call: RunningCall) -> "CallFacts":
        """Return the facts of a call that is running here."""
        return cls(
            call=call.call,
            generation=call.generation,
            run_id=call.run_id,
            execution_id=call.execution_id,
            idempotency_key=call.idempotency_key,
        )


remote_call: ContextVar[RunningCall] = ContextVar("toolbatch_remote_call")
"""The call whose tool is running here, where no batch is: a backend's worker sets it, and `current_call()` returns it there (X2)."""
