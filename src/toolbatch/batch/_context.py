"""What a running tool can learn and say about its own call, through `current_call()`."""

import hashlib
import logging
import threading
from typing import Any, cast

from toolbatch.core import (
    BatchStateError,
    CallProblem,
    InvalidInputError,
    InvalidTypeError,
    ToolCall,
    byte_length,
    encode,
    preview,
    sound,
)
from toolbatch.ports import remote_call

from ._execution import NEVER, Execution, current_execution
from ._placeholders import answer_for_now

__all__ = ["CallContext", "current_call"]


def current_call() -> "CallContext":
    """Return the context of the call whose tool is running here, in the loop, in a thread, or in a backend's worker.

    In a worker that is another process it is a stand-in with the same members: what the tool says is sent to where the batch is.

    Raises:
        BatchStateError: No tool of a batch is running here.
    """
    execution = current_execution.get(None)
    if execution is not None:
        return CallContext(execution)
    call = remote_call.get(None)
    if call is None:
        raise BatchStateError("current_call() was called outside of a tool that a batch runs")
    return cast(CallContext, call)


class CallContext:
    """One call, seen from inside its tool (T11). Its identity was fixed when the call was admitted (O7)."""

    __slots__ = ("_execution",)

    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    @property
    def call(self) -> ToolCall:
        """The call as the model announced it."""
        return self._execution.call

    @property
    def call_id(self) -> str:
        """The call's id."""
        return self._execution.call.id

    @property
    def name(self) -> str:
        """The tool's name."""
        return self._execution.call.name

    @property
    def generation(self) -> int:
        """The batch's number within its session."""
        return self._execution.engine.generation

    @property
    def run_id(self) -> str | None:
        """The host's name of the run, if it gave one."""
        return self._execution.engine.run_id

    @property
    def execution_id(self) -> str:
        """The execution's id, as in its outcome."""
        return self._execution.id

    @property
    def deadline(self) -> float | None:
        """When the call will be given up, on the loop's clock; `None` for never."""
        return None if self._execution.deadline == NEVER else self._execution.deadline

    def remaining(self) -> float | None:
        """Return the seconds left until the deadline, at least 0; `None` where there is none. Works in threads."""
        deadline = self.deadline
        return None if deadline is None else max(0.0, deadline - self._execution.engine.clock.now())

    @property
    def is_cancelled(self) -> bool:
        """Whether the tool was asked to stop."""
        return self._execution.stop_requested

    @property
    def cancel_event(self) -> threading.Event:
        """Is set when the tool is asked to stop: for synchronous tools, which can't be interrupted (B6)."""
        execution = self._execution
        if execution.cancel_event is None:
            # Published first and looked at second, by both sides: one of the two always sees the other.
            execution.cancel_event = threading.Event()
            if execution.stop_requested:
                execution.cancel_event.set()
        return execution.cancel_event

    @property
    def idempotency_key(self) -> str:
        """A key to pass on to the service that does the work: 64 hexadecimal characters (B22).

        It is the same for the same run, call id, tool and arguments: over retries, timeouts and a resume. Without a
        `run_id` the run is this batch or session, so a resumed process has another key: give one for payments. Read it
        before changing arguments that were announced as a dict: it is of the arguments as they are when it is first read.
        """
        execution = self._owner
        if execution.key is None:
            execution.key = _key(execution.call, execution.engine.scope)
        return execution.key

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose records carry `call_id`, `tool_name` and `execution_id`."""
        extra = {"call_id": self.call_id, "tool_name": self.name, "execution_id": self.execution_id}
        return logging.LoggerAdapter(logging.getLogger("toolbatch.tool"), extra)

    def progress(self, content: Any) -> None:
        """Report what there is so far. If the call is cut off, its outcome carries it, bounded and as `partial` (B19).

        Works in threads. After the call's outcome it does nothing.

        Raises:
            EncodingError: `content` is neither text nor JSON.
        """
        try:
            engine = self._execution.engine
        except BatchStateError:
            return  # a task that outlived its tool, and the batch with it
        text = content if isinstance(content, str) else engine.host.encode(content)
        engine.clock.call(engine.report_progress, self._execution, text)

    def pending(self, content: Any) -> None:
        """Answer the call now with a placeholder, such as "accepted, job 17 is running", and go on (O6).

        The model reads the placeholder as the call's result. What the tool returns or raises later is one of the session's
        `late_notes`; or only evidence in the audit channel, if there is no session, it was left, a newer batch replaced this one while it
        was open, or the run has changed. Neither the call's time bound nor the batch's close stops it any more: `batch.cancel` does,
        and the session's exit. After the call's outcome this does nothing. Works in threads.

        Raises:
            EncodingError: `content` has no JSON form or is too long. In a thread it is logged instead.
        """
        try:
            engine = self._execution.engine
        except BatchStateError:
            return
        engine.clock.call(answer_for_now, engine, self._owner, self._execution, content)

    def conclude_turn(self) -> None:
        """Say that with this call's result the turn is done, and the model need not be asked again (T10).

        The caller sees it as `batch.concluded`, once the whole batch is settled, and only if this call succeeds.
        """
        if self._owner.settlement is None and not self._execution.is_silent:
            self._owner.concludes = True

    def add_context(self, text: str) -> None:
        """Give the host something for the conversation besides the result: a file's contents, a hint (T10).

        The caller finds it in `batch.added_context`, once the whole batch is settled; never the model by itself. After the call's
        outcome this does nothing.

        Raises:
            InvalidTypeError: It is no text.
            InvalidInputError: With what was added before it is over `Limits.max_result_bytes`. Nothing was added.
        """
        if not isinstance(text, str):
            raise InvalidTypeError(f"added context must be a str, not {preview(text)}")
        owner = self._owner
        if owner.settlement is not None or self._execution.is_silent:
            return
        added = [] if owner.added is None else owner.added
        limit = owner.engine.closure.limits.max_result_bytes
        if sum(map(byte_length, map(sound, [*added, text]))) > limit:
            raise InvalidInputError(f"added context is over max_result_bytes, which is {limit}")
        owner.added = [*added, sound(text)]

    @property
    def _owner(self) -> Execution:
        return getattr(self._execution, "owner", self._execution)

    def report_failure(self, message: str, code: str | None = None) -> None:
        """Say that this execution failed, though the tool will return a value of its own (O4).

        The model reads the value; the outcome says `failed`. It concerns this call only, and after its outcome it does
        nothing.
        """
        if self._execution.is_silent:
            return
        if (
            self._owner.settlement is None or self._owner.is_pending
        ):  # after its outcome it would contradict what was told of it
            self._owner.failure = CallProblem(code or "tool_error", message)

    def __repr__(self) -> str:
        return f"<CallContext of {self.call_id} ({self.name})>"


def _key(call: ToolCall, scope: str) -> str:
    given = call.arguments
    if call.raw_arguments is not None:  # read again, since the tool may have changed what it was handed
        given = ToolCall(call.id, call.name, call.raw_arguments).arguments
    try:
        arguments = encode({name: given[name] for name in sorted(given)})
    except ValueError:  # arguments that the host itself made of something else than JSON
        arguments = repr(sorted(given.items()))
    identity = encode([scope, call.id, call.name, arguments])
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
