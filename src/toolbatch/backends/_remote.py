"""A call as its tool sees it where the batch is not: in a worker's process, or on another machine."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, final

from toolbatch.core import InvalidTypeError, ToolCall, preview
from toolbatch.ports import CallFacts, CallNote

from ._body import as_text

__all__ = ["RemoteCall"]


@final
class RemoteCall:
    """Keeps `RunningCall`'s promises with facts that were sent, and sends back what the tool says.

    Args:
        facts: The call.
        seconds: How long it may take from now, `None` for any time.
        say: Sends a note to where the batch is. What comes of it is not known here, so a note that the batch refuses is logged there.
    """

    def __init__(self, facts: CallFacts, seconds: float | None, say: Callable[[CallNote], None]) -> None:
        self._facts = facts
        self._say = say
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._cancelled = threading.Event()

    # -- for those who run the tool ------------------------------------------------------------------------------------

    def stop(self) -> None:
        """The tool is asked to stop."""
        self._cancelled.set()

    # -- for the tool --------------------------------------------------------------------------------------------------

    @property
    def call(self) -> ToolCall:
        """As `RunningCall.call`."""
        return self._facts.call

    @property
    def call_id(self) -> str:
        """As `RunningCall.call_id`."""
        return self._facts.call.id

    @property
    def name(self) -> str:
        """As `RunningCall.name`."""
        return self._facts.call.name

    @property
    def generation(self) -> int:
        """As `RunningCall.generation`."""
        return self._facts.generation

    @property
    def run_id(self) -> str | None:
        """As `RunningCall.run_id`."""
        return self._facts.run_id

    @property
    def execution_id(self) -> str:
        """As `RunningCall.execution_id`."""
        return self._facts.execution_id

    @property
    def idempotency_key(self) -> str:
        """As `RunningCall.idempotency_key`: the one of where the batch is."""
        return self._facts.idempotency_key

    @property
    def deadline(self) -> float | None:
        """When the call will be given up, on this process's `time.monotonic`; `None` for never."""
        return self._deadline

    def remaining(self) -> float | None:
        """As `RunningCall.remaining`."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    @property
    def is_cancelled(self) -> bool:
        """As `RunningCall.is_cancelled`."""
        return self._cancelled.is_set()

    @property
    def cancel_event(self) -> threading.Event:
        """As `RunningCall.cancel_event`."""
        return self._cancelled

    @property
    def logger(self) -> "logging.LoggerAdapter[logging.Logger]":
        """As `RunningCall.logger`: this process's own."""
        extra = {"call_id": self.call_id, "tool_name": self.name, "execution_id": self.execution_id}
        return logging.LoggerAdapter(logging.getLogger("toolbatch.tool"), extra)

    def progress(self, content: Any) -> None:
        """As `RunningCall.progress`."""
        self._say(CallNote("progress", (as_text(content),)))

    def pending(self, content: Any) -> None:
        """As `RunningCall.pending`."""
        self._say(CallNote("pending", (as_text(content),)))

    def conclude_turn(self) -> None:
        """As `RunningCall.conclude_turn`."""
        self._say(CallNote("conclude_turn", ()))

    def add_context(self, text: str) -> None:
        """As `RunningCall.add_context`.

        Raises:
            InvalidTypeError: It is no text.
        """
        if not isinstance(text, str):
            raise InvalidTypeError(f"added context must be a str, not {preview(text)}")
        self._say(CallNote("add_context", (text,)))

    def report_failure(self, message: str, code: str | None = None) -> None:
        """As `RunningCall.report_failure`."""
        self._say(CallNote("report_failure", (message, code)))

    def __repr__(self) -> str:
        return f"<RemoteCall of {self.call_id} ({self.name})>"
