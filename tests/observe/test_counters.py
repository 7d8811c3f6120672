"""Counters of one tool (O5)."""

from typing import get_args

import pytest

from toolbatch import ToolCounters
from toolbatch.ports import ExecutionStatus

STATUSES: tuple[ExecutionStatus, ...] = get_args(ExecutionStatus)


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("started", [False, True])
def test_one_execution_is_one_count(status: ExecutionStatus, started: bool) -> None:
    """An execution counts once by how it ended, and once as started if its code was entered (O5)."""
    counters = ToolCounters()
    counters.count(status, started=started)
    shown = counters.to_dict()
    assert {name for name, number in shown.items() if number} == {status} | ({"started"} if started else set())
    assert sum(shown.values()) == 1 + started


def test_counts_add_up() -> None:
    """Counts of many executions add up, and their data is detached."""
    counters = ToolCounters()
    for _ in range(3):
        counters.count("succeeded", started=True)
    counters.count("timed_out", started=False)
    shown = counters.to_dict()
    shown["succeeded"] = 100
    assert counters.to_dict() == {
        "started": 3, "succeeded": 3, "failed": 0, "cancelled": 0, "timed_out": 1, "denied": 0, "not_started": 0, "pending": 0, "late": 0,
    }  # fmt: skip


def test_what_was_pending_is_counted_as_what_it_became() -> None:
    """O6: the placeholder is no success, and the end is counted once."""
    counters = ToolCounters()
    counters.count("pending", started=True)
    assert (counters.pending, counters.succeeded, counters.started) == (1, 0, 1)
    counters.finish("succeeded")
    assert (counters.pending, counters.succeeded, counters.started) == (0, 1, 1)
