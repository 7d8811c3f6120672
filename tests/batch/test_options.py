"""Options are checked where they are given; what is not said has no bound (B1)."""

import inspect
from typing import Any

import pytest

from toolbatch import InvalidTypeError, ToolBatch, ToolSession
from toolbatch.batch._execution import NEVER
from toolbatch.batch._options import DEFAULT_TEARDOWN, BatchOptions, BatchSettings


def test_what_is_not_said_has_no_bound() -> None:
    """Every option has a default, and no bound applies that was not asked for."""
    options = BatchOptions.read({})
    assert (options.timeout, options.deadline, options.call_timeout, options.max_concurrency) == (NEVER,) * 4
    assert options.teardown_timeout == DEFAULT_TEARDOWN > 0
    assert (options.on_error, options.error_detail, options.tools, options.run_id) == (
        "continue",
        "message",
        None,
        None,
    )


def test_numbers_become_floats() -> None:
    """Durations may be ints or floats, zero and infinity included."""
    options = BatchOptions.read(
        {"timeout": 5, "call_timeout": 0, "teardown_timeout": 0.5, "deadline": -3, "max_concurrency": 1}
    )
    assert (options.timeout, options.call_timeout, options.teardown_timeout, options.deadline) == (5.0, 0.0, 0.5, -3.0)
    assert all(type(value) is float for value in (options.timeout, options.call_timeout, options.deadline))
    assert BatchOptions.read({"timeout": float("inf")}).timeout == NEVER


def test_names_are_what_a_batch_takes() -> None:
    """A session knows every option of a batch but those that are its own."""
    settings = set(BatchSettings.__annotations__)
    assert set(inspect.signature(ToolBatch).parameters) == {"calls", "limits", "encode", "settings"}
    own = {"audit_size", "audit_sinks", "keep_content", "limits", "encode", "batch_defaults"}
    assert set(inspect.signature(ToolSession).parameters) == own
    for name in settings:
        assert f"        {name}: " in (ToolBatch.__doc__ or ""), f"{name} is not documented"


def test_a_list_of_tools_is_told_its_catalog() -> None:
    """A list of tools is the nearest mistake, so the error says what to make of it."""
    tools: Any = []
    with pytest.raises(
        InvalidTypeError, match=r"tools must be a mapping .* such as ToolCatalog\(\[\.\.\.\]\), not \[\]"
    ):
        BatchOptions.read({"tools": tools})
