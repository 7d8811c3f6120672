"""What can be seen of a batch from outside, at any time and without an await."""

from collections.abc import Iterable, Mapping
from typing import Any

from toolbatch.core import Snapshot
from toolbatch.observe import ToolCounters
from toolbatch.ports import ExecutionOutcome

from ._accounts import outcomes
from ._audit import AuditChannel
from ._engine import Engine
from ._execution import Execution
from ._host import Host

__all__ = ["BatchView"]


class BatchView:
    """A batch as its owner may look at it. `ToolBatch` is the one there is."""

    __slots__ = ("_engine", "_host")
    _engine: Engine | None
    _host: Host

    @property
    def result(self) -> Snapshot | None:
        """The closed snapshot, or `None` before the batch is closed. Right without an await, in a `finally` too (B18)."""
        return None if self._engine is None else self._engine.result

    @property
    def outcomes(self) -> dict[str, ExecutionOutcome]:
        """What is known now of each call's execution, by call id; a call appears once it has its outcome (O1)."""
        return {} if self._engine is None else outcomes(self._engine)

    @property
    def audit(self) -> AuditChannel:
        """The audit channel: the session's, or this batch's own (B7)."""
        return self._host.audit

    @property
    def counters(self) -> Mapping[str, ToolCounters]:
        """How often each tool ran and how it went, by tool name: of the session, or of this batch (O5)."""
        return self._host.counters(self._engine if self._host.crew is None else None)

    @property
    def meta(self) -> dict[str, Any]:
        """What each tool's `meta` says of its result, by call id: for the host, and never shown to the model (T9)."""
        executions = () if self._engine is None else self._engine.executions.values()
        return {execution.call.id: execution.meta for execution in executions if execution.meta is not None}

    @property
    def concluded(self) -> bool:
        """Whether a call that succeeded has said that the turn is done; false until the whole batch is settled (T10)."""
        return any(execution.concludes and execution.status() == "succeeded" for execution in self._settled())

    @property
    def added_context(self) -> dict[str, list[str]]:
        """What calls gave the host besides their results, by call id; empty until the whole batch is settled (T10)."""
        return {
            execution.call.id: list(execution.added)
            for execution in self._settled()
            if execution.added and execution.settlement is not None and execution.settlement.provenance == "reported"
        }

    def _settled(self) -> Iterable[Execution]:
        if self._engine is None or self._engine.result is None:
            return ()
        self._engine.settle_accounts()
        return self._engine.executions.values()

    @property
    def generation(self) -> int | None:
        """The batch's number within its session, from 1; `None` before it is entered."""
        return None if self._engine is None else self._engine.generation

    def __repr__(self) -> str:
        engine = self._engine
        if engine is None or engine.result is not None:
            return "<ToolBatch, not entered>" if engine is None else f"<ToolBatch, {engine.result!r}>"
        return f"<ToolBatch of generation {engine.generation}, open, {len(engine.executions)} calls>"
