"""Who watches whole batches: telemetry, live views, run logs. One watcher a batch, so that nothing has to be told apart by number."""

from collections.abc import Callable, Mapping
from contextvars import Context, ContextVar
from dataclasses import dataclass
from types import MappingProxyType

from toolbatch.core import ToolCall

from ._audit import StaleResult
from ._events import BatchEvent
from ._outcomes import ExecutionOutcome

__all__ = ["BatchObserver", "BatchOpened", "BatchWatcher", "CallAdmitted", "trace_carrier"]

trace_carrier: ContextVar[Mapping[str, str]] = ContextVar("toolbatch_trace_carrier", default=MappingProxyType({}))
"""The W3C headers of the trace that the call here belongs to, by lower-case name; empty where it is not traced.

A backend that runs a tool elsewhere sends them along, and sets them there before it enters the tool (B11).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOpened:
    """A batch has begun; nothing of it was run or answered yet.

    Attributes:
        generation: The batch's number within its session.
        run_id: The host's name of the run, if it gave one.
        calls: What the model announced, in order.
    """

    generation: int
    run_id: str | None
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAdmitted:
    """The host has handed a call over to be run: at once, when there is a place, or after its stages.

    Attributes:
        call: The call as the model announced it.
        execution_id: The execution, as in its outcome.
        description: What its tool says it is for; `None` where it is a bare function.
    """

    call: ToolCall
    execution_id: str
    description: str | None


class BatchWatcher:
    """Sees one batch. Derive from it and override what you need; all of it is called in the loop's thread, in order.

    None of it may wait. What it raises is logged and contained: neither the batch nor other watchers are affected (O3).
    """

    def prepare(self, admitted: CallAdmitted, context: Context, /) -> None:
        """A call is about to be run in `context`, in the loop or in a thread: set there what its code is to find (B11).

        Everything of the call runs in it: its policies, its tool, each attempt. It is the call's own copy.
        """

    def event(self, event: BatchEvent, /) -> None:
        """Something has happened. `BatchClosed` is the last."""

    def ended(self, outcome: ExecutionOutcome, /) -> None:
        """The code of a call has ended after its outcome: by the request to stop, or late (O3)."""

    def late(self, stale: StaleResult, /, *, kept: bool) -> None:
        """A late result came; `kept` is false where the audit channel had no room for it (B7)."""


BatchObserver = Callable[[BatchOpened], BatchWatcher | None]
"""Is asked at the beginning of each batch for who shall watch it; `None` for nobody."""
