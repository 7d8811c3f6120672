"""ToolSession: what a whole agent run shares - generations, late results, tools, defaults."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Unpack, final

from toolbatch.core import BatchStateError, Encoder, InvalidTypeError, Limits, encode, preview
from toolbatch.observe import ToolCounters
from toolbatch.ports import AuditSink, BatchObserver, LateNote

from ._audit import AuditChannel
from ._batch import ToolBatch
from ._crew import Crew
from ._host import Host
from ._leaving import leave
from ._options import BatchOptions, BatchSettings, reusable
from ._watching import watch

__all__ = ["ToolSession"]


@final
class ToolSession:
    """Holds what outlives a batch: one closure, the audit channel, tools, limits, and tools that run on (B8).

    One session serves one conversation: a newer batch supersedes an older one that is still open, so two users who shared a
    session would cut each other off. A batch of a session never waits for tools that it cut off: the session owns them, and
    waits for them at its own exit.

    Args:
        tools: A `ToolCatalog`, or functions by tool name, for `start_all` of its batches.
        teardown_timeout: Seconds that leaving the session waits for tools that were asked to stop.
        audit_size: How many late results the audit channel holds.
        audit_sinks: Who is handed each late result as it comes.
        keep_content: Whether late results keep their content (bounded), for the channel and `late_notes`.
        limits: Bounds on calls and results, for all batches.
        encode: Turns results into JSON text, instead of the built-in encoder.
        **batch_defaults: Options of `ToolBatch` for every batch that does not say otherwise.

    Raises:
        InvalidInputError: An option can't be used, or there is none of that name.
        InvalidTypeError: An option is of a wrong type.
    """

    __slots__ = ("_defaults", "_host", "_teardown_timeout")

    def __init__(
        self,
        *,
        audit_size: int = 1000,
        audit_sinks: Iterable[AuditSink] = (),
        keep_content: bool = False,
        limits: Limits | None = None,
        encode: Encoder = encode,
        **batch_defaults: Unpack[BatchSettings],
    ) -> None:
        self._defaults = reusable(batch_defaults)
        self._teardown_timeout = BatchOptions.read(self._defaults).teardown_timeout
        self._host = Host(
            limits=limits, encode=encode, audit_size=audit_size, audit_sinks=audit_sinks, keep_content=keep_content
        )

    async def __aenter__(self) -> "ToolSession":
        """Open the session.

        Raises:
            BatchStateError: It was entered before.
        """
        if self._host.crew is not None:
            raise BatchStateError("this ToolSession was entered before; make a new one for each agent run")
        self._host.crew = Crew(asyncio.get_running_loop())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close a batch that is still open, wait for tools that wind down at most `teardown_timeout`, end the channel.

        Raises:
            asyncio.CancelledError: The task was cancelled while it waited here.
        """
        crew = self._entered()
        current = self._host.current
        if current is not None:
            current.close("cancelled", "request_aborted", "The session ended before this tool call completed.", None)
            leave(current)  # also one that was closed before, whose placeholders go on
        crew.stop_all()
        try:
            if not isinstance(error, GeneratorExit):
                await crew.wait(self._teardown_timeout)
        finally:
            crew.closed = True
            crew.let_go()
            self._host.audit.close()

    def batch(self, calls: Iterable[object], **options: Unpack[BatchSettings]) -> ToolBatch:
        """Return the next generation's batch, to be entered with `async with`. Entering it supersedes an open one.

        Args:
            calls: As for `ToolBatch`.
            **options: As for `ToolBatch`, but for `limits` and `encode`, which are the session's.

        Raises:
            BatchStateError: The session was not entered, or was left.
            InvalidInputError: An option can't be used, or there is none of that name.
            InvalidTypeError: An option is of a wrong type.
        """
        if self._entered().closed:
            raise BatchStateError("this ToolSession was left; make a new one for each agent run")
        return ToolBatch.in_session(self._host, calls, BatchOptions.read({**self._defaults, **options}))

    def observe(self, observer: BatchObserver, /) -> Callable[[], None]:
        """Have every batch watched from now on, the open one too; returns what ends that for later batches.

        It comes on top of the `observers` that a batch is given, and can be called before the session is entered.

        Raises:
            InvalidTypeError: `observer` can't be called.
        """
        if not callable(observer):
            raise InvalidTypeError(f"an observer must be a function of one BatchOpened, not {preview(observer)}")
        host, entry = self._host, partial(observer)  # its own, since one observer may be given twice
        host.observers = (*host.observers, entry)
        if host.current is not None and host.current.result is None:
            watch(host.current, [entry])

        def stop() -> None:
            host.observers = tuple(one for one in host.observers if one is not entry)

        return stop

    @property
    def audit(self) -> AuditChannel:
        """The audit channel of all batches (B7)."""
        return self._host.audit

    @property
    def counters(self) -> Mapping[str, ToolCounters]:
        """How often each tool ran and how it went, by tool name, over all batches (O5)."""
        return self._host.counters()

    @property
    def running(self) -> int:
        """How many tools that were cut off have not ended yet."""
        return 0 if self._host.crew is None else len(self._host.crew.running)

    def late_notes(self) -> list[LateNote]:
        """Return late successes that came since the last time, to be given to the model as new content (B20).

        Each lane's `notes` writes them as a message of a later turn. A turn already sent is never rewritten: that would
        break prompt caches and signed reasoning.

        Raises:
            InvalidInputError: The session does not keep content.
        """
        return self._host.late_notes()

    def _entered(self) -> Crew:
        if self._host.crew is None:
            raise BatchStateError(
                "this ToolSession was not entered; use it inside `async with ToolSession(...) as session:`"
            )
        return self._host.crew
