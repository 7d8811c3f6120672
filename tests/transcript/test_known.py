"""Given its snapshots, `repair` says of an open call what the batch knows: never more, and never less (C10, B5)."""

from typing import Any

import pytest

from tests.transcript.test_law import calls, close, result, user
from toolbatch import transcript
from toolbatch.core import InvalidTypeError, Snapshot, ToolCall, ToolCallClosure
from toolbatch.providers import openai_chat
from toolbatch.transcript import INTERRUPTED_TEXT, NOT_STARTED_TEXT


def batch(*ids: str, started: str = "", closure: ToolCallClosure | None = None) -> tuple[ToolCallClosure, Any]:
    """A batch of the calls that `calls(*ids)` announces, some of them started."""
    closure = closure or ToolCallClosure()
    handle = closure.begin([ToolCall(i, f"tool_{i}") for i in ids]).handle
    for call_id in started:
        closure.start(handle, call_id)
    return closure, handle


def snapshot(closure: ToolCallClosure) -> Snapshot:
    taken = closure.snapshot()
    assert taken is not None
    return taken


def test_an_open_batch_tells_what_was_started() -> None:
    """Not started is said where it is known; what was started is unknown (B5)."""
    closure, _ = batch("a", "b", started="a")
    view = transcript.repair([calls("a", "b")], "openai_chat", snapshots=[snapshot(closure)])
    assert view.messages[1:] == [result("a", INTERRUPTED_TEXT), result("b", NOT_STARTED_TEXT)]


def test_a_closed_batch_tells_the_same() -> None:
    """A close of the batch's own carries the side effects' state, whatever it was closed for (C9, C10)."""
    closure, handle = batch("a", "b", started="a")
    closure.close(handle, code="timeout", message="too slow", side_effect_state=None)
    view = transcript.repair([calls("a", "b")], "openai_chat", snapshots=[snapshot(closure)])
    assert view.messages[1:] == [result("a", INTERRUPTED_TEXT), result("b", NOT_STARTED_TEXT)]
    assert [(repair.action, repair.call_ids) for repair in view.repairs] == [("closed", ("a", "b"))]


def test_an_outcome_that_the_batch_has_is_written() -> None:
    """What was reported is no interruption: the success's content, the failure as the lane would export it (P4)."""
    closure, handle = batch("a", "b", "c", started="abc")
    closure.succeed(handle, "a", "4 degrees")
    closure.fail(handle, "b", "no such city")
    closure.close(handle)
    taken = snapshot(closure)
    view = transcript.repair([calls("a", "b", "c")], "openai_chat", snapshots=[taken])
    assert view.messages[1:3] == openai_chat.results(taken)[:2]
    assert view.messages[3] == close("c")
    assert [(repair.action, repair.call_ids) for repair in view.repairs] == [("filled", ("a", "b")), ("closed", ("c",))]


def test_a_failure_carries_the_lanes_mark_and_a_success_does_not() -> None:
    """Where a lane has an error mark, it is set for failures and closes only (P4)."""
    closure, handle = batch("a", "b", started="ab")
    closure.succeed(handle, "a", "fine")
    closure.fail(handle, "b", "bad")
    uses = [{"type": "tool_use", "id": i, "name": f"tool_{i}", "input": {}} for i in "ab"]
    view = transcript.repair([{"role": "assistant", "content": uses}], "anthropic", snapshots=[snapshot(closure)])
    assert [block.get("is_error") for block in view.messages[1]["content"]] == [None, True]


def test_a_reused_id_is_paired_from_the_end() -> None:
    """The last use is the last batch's; an earlier use that no batch is left for is unknown (FIELD 49)."""
    closure, handle = batch("a", started="a")
    closure.close(handle, side_effect_state=None)
    first = snapshot(closure)
    batch("a", closure=closure)
    listed = [calls("a"), calls("a"), calls("a")]
    view = transcript.repair(listed, "openai_chat", snapshots=[first, snapshot(closure)])
    assert [message["content"] for message in view.messages[1::2]] == [
        INTERRUPTED_TEXT,
        INTERRUPTED_TEXT,
        NOT_STARTED_TEXT,
    ]


def test_another_tool_with_the_same_id_is_another_call() -> None:
    """Names are compared, since ids repeat from conversation to conversation."""
    closure = ToolCallClosure()
    closure.begin([ToolCall("a", "another")])
    assert transcript.repair([calls("a")], "openai_chat", snapshots=[snapshot(closure)]).messages[1] == close("a")


def test_both_closes_are_closes() -> None:
    """A recorded result voids either; and the batch's word is not written twice (L2, L4)."""
    closure, _ = batch("a")
    once = transcript.repair([calls("a")], "openai_chat", snapshots=[snapshot(closure)]).messages
    assert transcript.repair(once, "openai_chat", snapshots=[snapshot(closure)]).messages is once
    assert transcript.repair([*once, user(), result("a", "x")], "openai_chat").messages == [
        calls("a"),
        result("a", "x"),
        user(),
    ]


@pytest.mark.parametrize("given", [None, {"calls": []}, "snapshot"])
def test_only_snapshots_made_here_count(given: Any) -> None:
    """A copy proves nothing (C15); the error names what was given."""
    with pytest.raises(InvalidTypeError, match="snapshots must be Snapshots made by a batch"):
        transcript.repair([calls("a")], "openai_chat", snapshots=[given])
