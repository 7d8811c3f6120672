"""The state machine alone, without a loop: what exactly-once costs."""

import json
from collections.abc import Sequence

from toolbatch import Snapshot, ToolCall
from toolbatch.core import ToolCallClosure
from toolbatch.providers import openai_chat

from ._measure import Effort, compare
from ._report import COLUMNS, Row, Table, cells
from ._sides import LIMITS, VALUE, Messages, announce, require_equal

__all__ = ["run"]


def run(effort: Effort) -> Table:
    """Measure it for batches of three sizes."""
    sizes = (1, 8) if effort.quick else (1, 8, 64, 1_000)
    return Table(
        "The core alone",
        "Ours: a `ToolCallClosure`, `begin`, `succeed` for each call, `seal`, `openai_chat.results`. Theirs: a dict that is\n"
        "asked before it is written, so that every announced call is answered once, and `json.dumps`. Times are of a batch.",
        "a CPU ratio of at most 1.2",
        ("calls", *COLUMNS),
        [_row(size, effort) for size in sizes],
    )


def with_core(calls: Sequence[ToolCall]) -> Messages:
    """Begin, settle each, seal, export."""
    closure = ToolCallClosure(LIMITS)
    handle = closure.begin(calls).handle
    for call in calls:
        closure.succeed(handle, call.id, VALUE)
    sealed = closure.seal(handle)
    assert isinstance(sealed, Snapshot)
    return openai_chat.results(sealed)


def with_dict(calls: Sequence[ToolCall]) -> Messages:
    """The same promises, for a caller who makes no mistakes."""
    texts: dict[str, str | None] = {}
    for call in calls:
        if call.id in texts:
            raise ValueError(f"{call.id} was announced before")
        texts[call.id] = None
    for call in calls:
        if texts[call.id] is None:
            texts[call.id] = json.dumps(VALUE)
    if None in texts.values():
        raise ValueError("a call is pending")
    return [{"role": "tool", "tool_call_id": call_id, "content": text} for call_id, text in texts.items()]


def _row(size: int, effort: Effort) -> Row:
    calls = announce(size)

    def ours(times: int) -> None:
        for _ in range(times):
            with_core(calls)

    def theirs(times: int) -> None:
        for _ in range(times):
            with_dict(calls)

    require_equal(with_core(calls), with_dict(calls))
    comparison = compare(ours, theirs, effort)
    return Row((f"{size:,}", *cells(comparison)), comparison.ratio, 1.2)
