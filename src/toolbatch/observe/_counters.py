"""How often each tool ran and how it went. An execution is counted once (O5)."""

from dataclasses import asdict, dataclass

from toolbatch.ports import ExecutionStatus

__all__ = ["ToolCounters"]


@dataclass(slots=True)
class ToolCounters:
    """One tool's counts.

    Attributes:
        started: Its code was entered.
        succeeded: It answered in time.
        failed: It raised, its answer could not be shown, or it reported a failure.
        cancelled: It was stopped, superseded, aborted, or cancelled itself.
        timed_out: A deadline passed.
        denied: It was not allowed to run.
        not_started: Nobody started it.
        pending: It was answered with a placeholder and has not ended yet (O6).
        late: It ended after its call had its outcome (in addition to one of the above).
    """

    started: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    timed_out: int = 0
    denied: int = 0
    not_started: int = 0
    pending: int = 0
    late: int = 0

    def count(self, status: ExecutionStatus, *, started: bool) -> None:
        """Count one execution by how it ended for the caller."""
        setattr(self, status, getattr(self, status) + 1)
        self.started += started

    def finish(self, status: ExecutionStatus) -> None:
        """Count the end of one that was counted as pending."""
        self.pending -= 1
        setattr(self, status, getattr(self, status) + 1)

    def to_dict(self) -> dict[str, int]:
        """Return JSON-ready data."""
        return asdict(self)
