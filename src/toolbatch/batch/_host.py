"""What outlives a batch: one closure, the audit channel, counters, late notes (B8). A session has one; so has a lone batch."""

import asyncio
import inspect
import secrets
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from toolbatch.core import (
    Begun,
    Encoder,
    InvalidInputError,
    Limits,
    RejectionReason,
    ToolCall,
    ToolCallClosure,
    as_parts,
    cut,
    encode,
    preview,
    text_of,
)
from toolbatch.observe import ToolCounters, log_event
from toolbatch.ports import AuditSink, BatchObserver, ExecutionStatus, LateNote, StaleResult

from ._audit import AuditChannel
from ._execution import Execution, Phase
from ._failures import throw
from ._launching import advance
from ._watching import tell_late

if TYPE_CHECKING:
    from ._attempt import Attempt
    from ._crew import Crew
    from ._engine import Engine

__all__ = ["Host"]

_MAX_BAD_CALLS = 1000
"""How many different bad calls a session remembers; the oldest are forgotten."""


class Host:
    """Holds what a session's batches share.

    Args:
        limits: As for `ToolCallClosure`.
        encode: As for `ToolCallClosure`.
        audit_size: As for `AuditChannel`.
        audit_sinks: As for `AuditChannel`.
        keep_content: Whether late results keep their content, for the audit channel and `late_notes`.
    """

    __slots__ = (
        "_bad_calls",
        "_counters",
        "_engines",
        "_scope",
        "audit",
        "closure",
        "crew",
        "current",
        "encode",
        "has_placeholders",
        "keep_content",
        "locked",
        "notes",
        "observers",
        "run_id",
    )

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        encode: Encoder = encode,
        audit_size: int = 1000,
        audit_sinks: Iterable[AuditSink] = (),
        keep_content: bool = False,
    ) -> None:
        self.closure = ToolCallClosure(limits, encode)
        self.encode = encode
        self.audit = AuditChannel(audit_size, audit_sinks)
        self.keep_content = keep_content
        self._counters: defaultdict[str, ToolCounters] = defaultdict(ToolCounters)
        self.notes: deque[LateNote] = deque(maxlen=audit_size)
        self.current: Engine | None = None
        self._engines: list[Engine] = []  # those whose executions are not in the counters yet
        self.run_id: str | None = None  # of the latest batch
        self.observers: tuple[BatchObserver, ...] = ()  # of all batches of a session, from now on
        self.locked: set[str] = set()  # the resources that calls have to themselves (T8)
        self.crew: Crew | None = None  # a session's: it takes over what its batches leave running
        self.has_placeholders = False  # a call was answered by one: its result will come as a late note (O6)
        self._bad_calls: dict[int, int] = {}
        self._scope: str | None = None

    @property
    def scope(self) -> str:
        """Stands in for the run's name in idempotency keys, where there is none."""
        self._scope = self._scope or secrets.token_hex(8)
        return self._scope

    def begin(self, engine: "Engine", calls: Iterable[object]) -> Begun:
        """Begin the next generation for `engine`; one that is open is superseded by it, and told so."""
        before = self.current
        withdrawn = before.ascertain() if before is not None and before.result is None else []
        try:
            begun = self.closure.begin(calls, side_effect_state=None)
        except BaseException:
            if before is not None:
                before.restore(withdrawn)
            raise
        if before is not None:
            if begun.superseded is not None:
                before.conclude(begun.superseded)
            if self.crew is not None:
                before.crew.hand_over(self.crew)  # now, since the older batch may be left after the session
        self.current = engine
        self.run_id = engine.options.run_id
        self._engines.append(engine)
        return begun

    def late(
        self,
        execution: Execution,
        reason: RejectionReason,
        observed: Literal["success", "error", "cancelled"],
        value: object,
    ) -> None:
        """Record a report that came after its call's outcome (B7)."""
        closed_at = execution.closed_at or 0.0
        late_by = max(0.0, (execution.ended_at or closed_at) - closed_at)
        settled_wall = time.time()
        # It is for the model in the end, who must read nothing that the host's policies would have replaced (T6).
        may_keep = self.keep_content and not execution.engine.options.hooks.after
        content = self._kept(value) if observed == "success" and may_keep else None
        call = execution.call
        generation = execution.engine.generation
        self._counters[call.name].late += 1
        if content is not None:
            self._note(execution, content)
        stale = StaleResult(
            call_id=call.id,
            name=call.name,
            generation=generation,
            execution_id=execution.id,
            reason=reason,
            answered_as=getattr(execution.settlement, "code", None) or "success",
            observed_status=observed,
            exception_type=None if execution.exception is None else type(execution.exception).__name__,
            started_at=execution.started_wall,
            closed_at=settled_wall - late_by,
            settled_at=settled_wall,
            late_by=late_by,
            content=content,
        )
        tell_late(execution.engine, stale, kept=self.audit.put(stale))

    def note(self, execution: Execution, value: object) -> None:
        """Keep the result of a call that was answered with a placeholder, for the model (O6)."""
        content = self._kept(value)
        if content is None:
            content = f"The result of {execution.call.name} can't be shown."
        self._note(execution, content)

    def _note(self, execution: Execution, content: str) -> None:
        call, generation = execution.call, execution.engine.generation
        self.notes.append(LateNote(call_id=call.id, name=call.name, generation=generation, content=content))

    def has_moved_on(self, engine: "Engine") -> bool:
        """Whether a result of this batch has nowhere to go: its session was left, its batch replaced while open, its run is over."""
        reason = None if engine.result is None else engine.result.close_reason
        if reason is not None and reason.code == "superseded":
            return True
        return self.crew is None or self.crew.closed or self.run_id != engine.run_id

    def count_end(self, engine: "Engine", name: str, final: ExecutionStatus) -> None:
        """Count how a call ended that was answered with a placeholder; once (O5, O6)."""
        if engine not in self._engines and self.crew is not None:
            self._counters[name].finish(final)  # else it is counted when the batch is left

    def publish(self, observer: Callable[[Any], Awaitable[None] | None], event: object, crew: "Crew") -> None:
        """Tell an observer of an outcome or another event; what it raises is contained, now or in its own task (O3)."""
        try:
            told = observer(event)
            if told is not None and inspect.isawaitable(told):  # the usual answer first: three a call come this way
                crew.launch_side_task(_contained(told, event))
        except (KeyboardInterrupt, SystemExit) as error:
            crew.loop.call_soon(throw, error)  # it passes through the loop, and leaves our accounts right
        except BaseException:  # noqa: BLE001  contained, and told of
            log_event("observer_failed", "an observer failed on %s", preview(event, 200), exc_info=True)

    def late_notes(self) -> list[LateNote]:
        """Return the late successes since the last time."""
        if not self.keep_content and not self.has_placeholders:
            raise InvalidInputError("late notes need the results' content: make the session with keep_content=True")
        notes = list(self.notes)
        self.notes.clear()
        return notes

    def unlock(
        self, loop: asyncio.AbstractEventLoop, names: frozenset[str], going: "list[Attempt]", patience: float
    ) -> None:
        """Give resources free when the code that has them ends, or after `patience` seconds, since it may never end (B6)."""

        def ended() -> None:
            if all(attempt.phase is Phase.ENDED for attempt in going) and not loop.is_closed():
                free()

        def free() -> None:
            for attempt in going:
                attempt.on_end = None
            if timer is not None:
                timer.cancel()
            self.locked.difference_update(names)
            for engine in list(self._engines):
                advance(engine)

        def give_up() -> None:
            log_event(
                "resources_freed",
                "resources %s are free, though a tool that was stopped may still use them",
                sorted(names),
                resources=sorted(names),
            )
            free()

        timer = loop.call_later(patience, give_up) if going else None
        for attempt in going:
            attempt.on_end = ended
        if not going:
            free()

    def count_repeats(self, call: ToolCall, code: str) -> int:
        """Return how often this same bad call was answered in the same way before, and count it (T3)."""
        key = hash((code, call.name, call.raw_arguments or _shown(call.arguments)))
        seen = self._bad_calls.pop(key, 0)
        self._bad_calls[key] = seen + 1
        if len(self._bad_calls) > _MAX_BAD_CALLS:
            del self._bad_calls[next(iter(self._bad_calls))]
        if seen and seen & (seen + 1) == 0:  # the 2nd, 4th, 8th ... time
            log_event(
                "repeated_bad_call",
                "the model has made the same bad call of %s %d times: %s",
                call.name,
                seen + 1,
                code,
                tool_name=call.name,
                code=code,
                times=seen + 1,
            )
        return seen

    def release(self, engine: "Engine") -> None:
        """Let a batch go that is left: none of its calls will get an outcome any more. A session counts them now (O5)."""
        if engine in self._engines:
            self._engines.remove(engine)
            if self.crew is not None:
                _count(engine, self._counters)
        if self.current is engine:
            self.current = None

    def counters(self, lone: "Engine | None" = None) -> Mapping[str, ToolCounters]:
        """Return the counters by tool, up to this moment; with those of a lone batch, which are not kept here."""
        counters: defaultdict[str, ToolCounters] = defaultdict(ToolCounters)
        for name, counted in self._counters.items():
            counters[name] = replace(counted)
        if lone is not None and lone not in self._engines:
            _count(lone, counters)
        for engine in self._engines:
            _count(engine, counters)
        return dict(counters)

    def _kept(self, value: Any) -> str | None:
        try:
            parts = as_parts(value)
            text = text_of(parts) if parts else value if isinstance(value, str) else self.encode(value)
            return cut(text, self.closure.limits.max_result_bytes)
        except Exception:  # noqa: BLE001  evidence that can't be written down is still evidence that it came
            return None


def _shown(arguments: object) -> str:
    try:
        return repr(arguments)
    except Exception:  # noqa: BLE001  they may be nested too deeply, or hold anything
        return preview(arguments)


def _count(engine: "Engine", counters: defaultdict[str, ToolCounters]) -> None:
    engine.settle_accounts()
    for execution in engine.executions.values():
        if execution.settlement is not None and not (execution.is_resumed or execution.is_replayed):
            counters[execution.call.name].count(execution.status(), started=execution.started)


async def _contained(told: Awaitable[None], event: object) -> None:
    try:
        await told
    except asyncio.CancelledError:
        raise
    except (KeyboardInterrupt, SystemExit) as error:
        asyncio.get_running_loop().call_soon(throw, error)
    except BaseException:  # noqa: BLE001  contained, and told of
        log_event("observer_failed", "an observer failed on %s", preview(event, 200), exc_info=True)
