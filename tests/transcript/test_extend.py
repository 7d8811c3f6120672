"""ToolBatch meets the law: `extend` appends no turn behind one that still waits, and what it appends is lawful (P2, L2)."""

from types import ModuleType
from typing import Any

import pytest

from tests.transcript.kit import frozen
from toolbatch import transcript
from toolbatch.core import InvalidInputError, Snapshot, ToolCallClosure
from toolbatch.providers import anthropic, openai_chat, openai_responses
from toolbatch.transcript import LaneName

USER = {"role": "user", "content": "Hi."}


def chat(call_id: str) -> Any:
    return {"role": "assistant", "content": None, "tool_calls": [
        {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}]}  # fmt: skip


def responses(call_id: str) -> Any:
    return [{"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}]


def message(call_id: str) -> Any:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": "f", "input": {}}]}


NAMES: dict[ModuleType, LaneName] = {
    openai_chat: "openai_chat",
    openai_responses: "openai_responses",
    anthropic: "anthropic",
}
LANES = [(openai_chat, chat), (openai_responses, responses), (anthropic, message)]
EACH = pytest.mark.parametrize(("lane", "turn"), LANES, ids=["openai_chat", "openai_responses", "anthropic"])


def settled(lane: ModuleType, response: Any) -> Snapshot:
    """The closed snapshot of a response's batch."""
    closure = ToolCallClosure()
    handle = closure.begin(lane.calls(response)).handle
    closure.close(handle)
    snapshot = closure.snapshot()
    assert snapshot is not None
    return snapshot


def stored(response: Any) -> list[Any]:
    """A conversation whose last turn was stored without its results."""
    return [USER, *(response if isinstance(response, list) else [response])]


@EACH
@pytest.mark.parametrize("behind", [[], [USER]], ids=["at the end", "behind the user"])
def test_extend_refuses_to_leave_a_turn_unanswered(lane: ModuleType, turn: Any, behind: list[Any]) -> None:
    """No provider would take the list, now or later. The error names the calls and what to do; nothing was appended."""
    messages = [*stored(turn("open")), *behind]
    before = frozen(messages)
    response = turn("next")
    with pytest.raises(InvalidInputError, match=r"calls without a result: \['open'\].*transcript.repair"):
        lane.extend(messages, response, settled(lane, response))
    assert messages == before


STRANGE: list[Any] = [
    {"role": "tool", "tool_call_id": {"a": 1}, "content": ""},
    {"type": "function_call_output", "call_id": ["a"], "output": ""},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": {"a": 1}, "content": ""}]},
]


@EACH
def test_what_is_no_id_answers_nothing(lane: ModuleType, turn: Any) -> None:
    """A store may hold a dict in an id's place, of a call or of a result: the turn waits, and no other error is raised."""
    response = turn("next")
    for history in (stored(turn({"a": 1})), [*stored(turn("open")), *STRANGE]):
        with pytest.raises(InvalidInputError, match="calls without a result"):
            lane.extend(history, response, settled(lane, response))


@EACH
def test_what_repair_gives_can_be_extended(lane: ModuleType, turn: Any) -> None:
    """And the whole is lawful: two turns, each with its answer (L2)."""
    name: LaneName = NAMES[lane]
    messages = transcript.repair(stored(turn("open")), name).messages
    response = turn("next")
    lane.extend(messages, response, settled(lane, response))
    assert transcript.check(messages, name) == []


@EACH
def test_appending_a_turn_twice_is_noticed(lane: ModuleType, turn: Any) -> None:
    """The host stored the assistant's message by itself, then called `extend`: the turn would stand there twice."""
    response = turn("a")
    with pytest.raises(InvalidInputError, match="without a result"):
        lane.extend(stored(response), response, settled(lane, response))


def test_an_asynchronous_call_may_be_open() -> None:
    """Its output may come in a later request (LANES 2)."""
    (item,) = responses("open")
    messages = [USER, {**item, "async": True}]
    openai_responses.extend(messages, responses("next"), settled(openai_responses, responses("next")))
    assert [entry.get("call_id") for entry in messages] == [None, "open", "next", "next"]
