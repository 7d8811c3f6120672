"""Metrics of calls: how long tools take, how calls end, what comes late, what the audit channel could not hold."""

from typing import TYPE_CHECKING, Final

from opentelemetry import metrics

from toolbatch.core import Settlement, cut
from toolbatch.ports import ExecutionOutcome, StaleResult

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

__all__ = ["Meters", "error_type", "type_name"]

_BOUNDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Seconds: the buckets that the conventions give for durations."""

_OTHER: Final = "_OTHER"  # OpenTelemetry's word for a value beyond the known ones
_MAX_ERROR: Final = 256  # bytes, here as below
_MAX_NAME: Final = 512
_MAX_TOOLS: Final = 1000
"""Tool names that are told apart. Models invent names, and each would be a time series for ever."""


class Meters:
    """The instruments. One set serves any number of batches.

    Args:
        provider: Where metrics go; the global one where `None`.
    """

    def __init__(self, provider: "MeterProvider | None") -> None:
        meter = metrics.get_meter("toolbatch", meter_provider=provider)
        self._duration = meter.create_histogram(
            "gen_ai.execute_tool.duration",
            unit="s",
            description="The time that a tool's code took, to its end or to its call's outcome.",
            explicit_bucket_boundaries_advisory=_BOUNDS,
        )
        self._calls = meter.create_counter("toolbatch.calls", unit="{call}", description="Calls by how they ended.")
        self._late = meter.create_counter(
            "toolbatch.late_results", unit="{result}", description="Tools that ended after their call had its outcome."
        )
        self._dropped = meter.create_counter(
            "toolbatch.audit.dropped",
            unit="{result}",
            description="Late results that the audit channel had no room for.",
        )
        self._names: set[str] = set()

    def settled(self, outcome: ExecutionOutcome, settlement: Settlement) -> None:
        """Count a call that has its outcome; one that is answered for now is counted at its end (O6)."""
        if outcome.status == "pending":
            return
        self.finished(outcome, error_type(outcome, settlement), is_known=settlement.code != "unknown_tool")

    def finished(self, outcome: ExecutionOutcome, error: str | None, *, is_known: bool = True) -> None:
        """Count a call once."""
        name = self._known(outcome.tool_name) if is_known else _OTHER
        self._calls.add(1, {"gen_ai.tool.name": name, "toolbatch.status": outcome.status})
        if outcome.duration is not None:  # it was entered
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": name,
                "gen_ai.tool.type": "function",
            }
            if error is not None:
                attributes["error.type"] = cut(error, _MAX_ERROR)
            self._duration.record(outcome.duration, attributes)

    def late(self, stale: StaleResult, *, kept: bool) -> None:
        """Count a late result."""
        name = self._known(stale.name)
        self._late.add(1, {"gen_ai.tool.name": name, "toolbatch.observed_status": stale.observed_status})
        if not kept:
            self._dropped.add(1, {"gen_ai.tool.name": name})

    def _known(self, name: str) -> str:
        name = cut(name, _MAX_NAME)
        if name not in self._names:
            if len(self._names) >= _MAX_TOOLS:
                return _OTHER
            self._names.add(name)
        return name


def error_type(outcome: ExecutionOutcome, settlement: Settlement | None) -> str | None:
    """Return what kind of error a call ended in; `None` for none. Few kinds: no message is in it."""
    if outcome.status not in ("failed", "timed_out"):
        return None
    code = None if settlement is None else settlement.code
    if outcome.exception is not None and code in (None, "tool_error"):
        return type_name(outcome.exception)
    return code or "tool_error"


def type_name(error: BaseException) -> str:
    """Return the full name of an exception's class, `ValueError` for a built-in one."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
