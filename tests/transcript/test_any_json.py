"""Whatever a store holds: the law reads it, says what is wrong with its turns, and never fails on what it does not know."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transcript.kit import frozen
from toolbatch import transcript
from toolbatch.core import InvalidInputError
from toolbatch.transcript import LANES, LaneName

EACH_LANE = pytest.mark.parametrize("lane", LANES)

_WORDS = [
    "role",
    "type",
    "id",
    "call_id",
    "tool_call_id",
    "tool_use_id",
    "toolUseId",
    "name",
    "content",
    "parts",
    "tool_calls",
    "invalid_tool_calls",
    "function",
    "function_call",
    "functionCall",
    "functionResponse",
    "function_response",
    "toolUse",
    "toolResult",
    "arguments",
    "args",
    "input",
    "output",
    "response",
    "text",
    "error",
    "status",
    "is_error",
    "caller",
    "async",
    "execution",
    "cachePoint",
    "thought",
    "thoughtSignature",
]
_VALUES = [
    "assistant",
    "user",
    "tool",
    "model",
    "system",
    "human",
    "ai",
    "function",
    "a",
    "b",
    "tool_use",
    "tool_result",
    "text",
    "thinking",
    "function_call",
    "reasoning",
    "function_call_output",
    "computer_call",
    "computer_call_output",
    "item_reference",
    "shell_call",
    "shell_call_output",
    "program",
    "message",
]
scalars = st.none() | st.booleans() | st.integers(-1, 2) | st.floats(allow_nan=False) | st.sampled_from(["", *_VALUES])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_WORDS), inner, max_size=5),
    max_leaves=8,
)
messages = st.dictionaries(st.sampled_from(_WORDS), values, max_size=6)


@EACH_LANE
@settings(deadline=None, max_examples=40)
@given(listed=st.lists(messages, max_size=6))
def test_any_json_is_read(lane: LaneName, listed: list[Any]) -> None:
    """Any list of objects is checked and repaired: what comes out is lawful, the input is as it was (L1, L4)."""
    before = frozen(listed)
    view = transcript.repair(listed, lane)
    assert listed == before
    assert transcript.check(view.messages, lane) == []
    assert transcript.repair(view.messages, lane).messages is view.messages
    assert all(str(found) for found in (*transcript.check(listed, lane), *view.repairs))


@EACH_LANE
@settings(deadline=None, max_examples=25)
@given(listed=st.lists(messages, max_size=6), sent=st.integers(0, 6))
def test_any_json_is_appended_to(lane: LaneName, listed: list[Any], sent: int) -> None:
    """Nothing that was sent changes, and a second time nothing changes at all (B20)."""
    sent = min(sent, len(listed))
    view = transcript.repair(listed, lane, sent=sent)
    assert all(one is other for one, other in zip(view.messages, listed[:sent], strict=False))
    assert transcript.repair(view.messages, lane, sent=sent).messages is view.messages


@EACH_LANE
@settings(deadline=None, max_examples=25)
@given(listed=st.lists(messages, max_size=6))
def test_any_json_has_arguments_and_a_lane(lane: LaneName, listed: list[Any]) -> None:
    """The other readers do not fail either, but for a list that has no lane."""
    view = transcript.repair_arguments(listed, lane)
    assert transcript.repair_arguments(view.messages, lane).messages is view.messages
    try:
        assert transcript.detect(listed) in LANES
    except InvalidInputError:
        assert listed
