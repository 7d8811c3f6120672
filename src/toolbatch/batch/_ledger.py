"""What one batch writes into its journal, in order and in groups. Settling never waits for it; showing and starting do (D4)."""

import asyncio
import secrets
import time
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from toolbatch.core import Snapshot, ToolError
from toolbatch.observe import log_event
from toolbatch.ports import (
    AnnouncedRecord,
    ClosedRecord,
    Journal,
    JournaledBatch,
    JournalRecord,
    ResumedRecord,
    SettledRecord,
    StartedRecord,
)

from ._claimed import not_started
from ._failures import read_failure

if TYPE_CHECKING:
    from ._engine import Engine
    from ._execution import Execution
    from ._options import BatchOptions
    from ._resume import Saved

__all__ = ["Ledger", "open_ledger"]

_SECONDS: Final = 30.0
"""That one write may take before the journal counts as broken."""


class _Close(NamedTuple):
    """A batch is closed: what that says of each call is written out beside the loop's more urgent work."""

    snapshot: Snapshot
    at: float


def open_ledger(engine: "Engine", options: "BatchOptions", saved: "Saved") -> "Ledger | None":
    """Return the ledger of a batch, `None` where it has no journal."""
    if options.journal is None:
        return None
    previous = options.resume if isinstance(options.resume, JournaledBatch) else None
    known = () if previous is None else previous.settled.keys() & saved.keys()
    return Ledger(engine, options.journal, options.run_id or "", None if previous is None else previous.batch_id, known)


class Ledger:
    """Writes one batch's records. All of it is used in the loop's thread.

    Invariant: records reach the journal in the order in which they were put here, and after a failure none does.

    Args:
        engine: The batch.
        journal: Where to.
        run_id: The run.
        batch_id: The batch's name in the journal, where that has it already; `None` for a new one.
        known: The calls whose outcome is recorded, and stands.
    """

    def __init__(
        self, engine: "Engine", journal: Journal, run_id: str, batch_id: str | None, known: Iterable[str]
    ) -> None:
        self._engine = weakref.ref(engine)
        self._journal = journal
        self._run_id = run_id
        self._is_resumed = batch_id is not None
        self._known = set(known)
        self.batch_id = batch_id or _new_id()
        self._queue: list[JournalRecord | _Close] = []
        self._put_count = 0
        self._written_count = 0
        self._is_writing = False
        self._waiters: dict[asyncio.Future[None], int] = {}  # with the count that each waits for
        self.failure: ToolError | None = None

    # -- what happens ------------------------------------------------------------------------------------------------

    def begin(self, engine: "Engine") -> None:
        """The batch has begun, or goes on."""
        at = engine.clock.wall(engine.loop.time())
        if self._is_resumed:
            self._put(ResumedRecord(batch_id=self.batch_id, at=at, generation=engine.generation))
            return
        calls = tuple(execution.call for execution in engine.executions.values())
        self._put(
            AnnouncedRecord(
                batch_id=self.batch_id, at=at, run_id=self._run_id, generation=engine.generation, calls=calls
            )
        )

    def settled(self, engine: "Engine", execution: "Execution") -> None:
        """A call has its outcome."""
        call_id, settlement = execution.call.id, execution.settlement
        if call_id not in self._known and settlement is not None:
            self._known.add(call_id)
            at = engine.clock.wall(execution.closed_at or engine.loop.time())
            self._put(SettledRecord(batch_id=self.batch_id, at=at, call_id=call_id, settlement=settlement))

    def closed(self, engine: "Engine", snapshot: Snapshot, closed_at: float) -> None:
        """The batch is closed."""
        self._put(_Close(snapshot, engine.clock.wall(closed_at)))

    async def started(self, engine: "Engine", execution: "Execution") -> None:
        """A tool's code is about to be entered: return once that is on disk.

        Raises:
            DurableOperationError: It can't be written. The code must not be entered.
        """
        at = engine.clock.wall(engine.loop.time())
        call_id, operation_id = execution.call.id, execution.operation_id
        self._put(StartedRecord(batch_id=self.batch_id, at=at, call_id=call_id, operation_id=operation_id))
        try:
            await self.written()
        except ToolError as error:
            raise not_started("its start can't be recorded", "checkpoint_failed") from error

    async def written(self) -> None:
        """Wait until all that was put here so far is on disk.

        Raises:
            ToolError: It can't be written; fatal, code `checkpoint_failed`.
        """
        target = self._put_count
        while self.failure is None and self._written_count < target:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters[waiter] = target
            try:
                await waiter
            finally:
                del self._waiters[waiter]
        if self.failure is not None:
            raise ToolError.fatal(self.failure.message, self.failure.code) from self.failure.__cause__

    # -- writing -----------------------------------------------------------------------------------------------------

    def _put(self, record: "JournalRecord | _Close") -> None:
        if self.failure is not None:
            return
        self._put_count += 1
        self._queue.append(record)
        engine = self._engine()
        if self._is_writing or engine is None or engine.loop.is_closed():
            return
        self._is_writing = True
        crew = engine.crew if engine.host.crew is None or engine.host.crew.closed else engine.host.crew
        crew.launch_side_task(self._write())

    async def _write(self) -> None:
        try:
            while self._queue and self.failure is None:
                group, self._queue = self._queue, []
                async with asyncio.timeout(_SECONDS):
                    await self._journal.append(list(self._records(group)))
                self._written_count += len(group)
                self._wake()
        except BaseException as error:
            self._fail(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._is_writing = False
            self._wake()

    def _records(self, group: "Iterable[JournalRecord | _Close]") -> Iterable[JournalRecord]:
        for record in group:
            if not isinstance(record, _Close):
                yield record
                continue
            for call, settlement in record.snapshot.settled():
                if call.id not in self._known:
                    self._known.add(call.id)
                    yield SettledRecord(batch_id=self.batch_id, at=record.at, call_id=call.id, settlement=settlement)
            reason = record.snapshot.close_reason
            assert reason is not None  # noqa: S101  a batch is concluded with a closed snapshot only
            yield ClosedRecord(batch_id=self.batch_id, at=record.at, reason=reason)

    def _fail(self, error: BaseException) -> None:
        """Nothing starts any more, and the turn is over: what would follow could not be resumed."""
        why = read_failure(error, "message").message
        what = "did not answer in time" if isinstance(error, TimeoutError) else f"can't be written: {why}"
        self.failure = ToolError.fatal(f"The turn was ended, since its journal {what}", "checkpoint_failed")
        self.failure.__cause__ = error
        engine = self._engine()
        generation = None if engine is None else engine.generation
        log_event(
            "journal_failed",
            "batch %s can't be written into its journal",
            self.batch_id,
            exc_info=error,
            batch_id=self.batch_id,
            generation=generation,
        )
        if engine is not None:
            engine.fatal = engine.fatal or self.failure
            engine.close("error", "checkpoint_failed", "The turn ended, since its journal can't be written.", None)

    def _wake(self) -> None:
        for waiter, target in self._waiters.items():
            if not waiter.done() and (self._written_count >= target or self.failure is not None):
                waiter.set_result(None)


def _new_id() -> str:
    return f"{time.time_ns() // 1_000_000:012x}-{secrets.token_hex(6)}"
