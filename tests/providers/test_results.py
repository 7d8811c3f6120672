"""Snapshots to payloads: the shapes, the failure content, and what never leaves."""

import json
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from tests.providers.support import ANTHROPIC, CHAT, LANES, RESPONSES, Lane, chat, item, responses, settled, use
from toolbatch.core import InvalidInputError, InvalidTypeError, Snapshot, ToolCall, ToolCallClosure, encode
from toolbatch.ports import LateNote
from toolbatch.providers import anthropic, gemini, openai_chat, openai_responses

if TYPE_CHECKING:
    from anthropic.types import MessageParam, ToolResultBlockParam
    from google.genai.types import ContentDict
    from openai.types.chat import ChatCompletionMessageParam
    from openai.types.responses import ResponseInputItemParam

CALLS = [ToolCall("a", "f"), ToolCall("b", "f"), ToolCall("c", "f"), ToolCall("d", "f")]
OUTCOMES = ["success", "error", "closed", "started"]
TEXTS = [
    '{"position":0}',
    '{"error":{"code":"tool_error","message":"failed at 1"}}',
    '{"error":{"code":"timeout","message":"Out of time.","side_effect_state":"not_started"}}',
    '{"error":{"code":"timeout","message":"Out of time.","side_effect_state":"unknown"}}',
]


@pytest.fixture
def snapshot() -> Snapshot:
    return settled(CALLS, OUTCOMES.__getitem__)


def test_chat_shape(snapshot: Snapshot) -> None:
    """One tool message a call; the lane has no error mark."""
    wanted = [{"role": "tool", "tool_call_id": i, "content": t} for i, t in zip("abcd", TEXTS, strict=True)]
    assert openai_chat.results(snapshot) == wanted


def test_responses_shape(snapshot: Snapshot) -> None:
    """One output item a call; `status` is no error mark and stays out."""
    wanted = [{"type": "function_call_output", "call_id": i, "output": t} for i, t in zip("abcd", TEXTS, strict=True)]
    assert openai_responses.results(snapshot) == wanted


def test_anthropic_shape(snapshot: Snapshot) -> None:
    """One block a call, and `is_error` on failures only (P4)."""
    wanted: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": i, "content": t} for i, t in zip("abcd", TEXTS, strict=True)
    ]
    for block in wanted[1:]:
        block["is_error"] = True
    assert anthropic.results(snapshot) == wanted
    assert anthropic.message(snapshot) == {"role": "user", "content": wanted}


def test_results_go_where_the_sdks_types_stand(snapshot: Snapshot) -> None:
    """What is to be sent fits the SDKs' own parameters without a cast: mypy fails if it doesn't."""
    late = [LateNote(call_id="a", name="f", generation=1, content="found")]
    chat_messages: list[ChatCompletionMessageParam] = [*openai_chat.results(snapshot), *openai_chat.notes(late)]
    items: list[ResponseInputItemParam] = openai_responses.results(snapshot)
    blocks: list[ToolResultBlockParam] = anthropic.results(snapshot)
    messages: list[MessageParam] = [anthropic.message(snapshot), *anthropic.notes(late)]
    content: ContentDict = gemini.message(snapshot)
    assert (len(chat_messages), len(items), len(blocks), len(messages), content["role"]) == (5, 4, 4, 2, "user")


@pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)
@pytest.mark.parametrize("message", ["", 'quote " and \\ and \n', "日本語 🙂", "\x00\x1f\u2028"])
def test_failure_content_is_the_encoders_own(lane: Lane, message: str) -> None:
    """A failure's text is what the core's one encoder makes of the whole object, to the byte."""
    closure = ToolCallClosure()
    handle = closure.begin([ToolCall("a", "f"), ToolCall("b", "f")]).handle
    closure.progress(handle, "b", "half " + message)
    closure.fail(handle, "a", message, code="co de")
    closure.close(handle, code="timeout", message=message)
    made = closure.snapshot()
    assert made is not None
    texts = [entry.get("content", entry.get("output")) for entry in lane.module.results(made)]
    reported = {"code": "co de", "message": json.loads(texts[0])["error"]["message"]}
    synthetic = {"code": "timeout", "message": message, "side_effect_state": "unknown", "partial": "half " + message}
    assert texts == [encode({"error": reported}), encode({"error": synthetic})]


@pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)
def test_order_is_the_announcements(lane: Lane) -> None:
    """Whatever finishes first, the bytes are the same: models pair results by position (C16; FIELD 59, 61)."""
    seen = {
        json.dumps(lane.module.results(settled(CALLS, OUTCOMES.__getitem__, order)))
        for order in permutations(range(len(CALLS)))
    }
    assert len(seen) == 1


@pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)
def test_empty_success_and_empty_batch(lane: Lane) -> None:
    """An empty text is a fine success, and a batch of no calls has no results."""
    closure = ToolCallClosure()
    handle = closure.begin([ToolCall("a", "f")]).handle
    closure.succeed(handle, "a", "")
    sealed = closure.seal(handle)
    assert isinstance(sealed, Snapshot)
    (entry,) = lane.module.results(sealed)
    assert "" in (entry.get("content"), entry.get("output"))
    assert "is_error" not in entry
    assert lane.module.results(settled([])) == []


class Trap:
    """An object that must not be looked at."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)


@pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)
def test_only_closed_snapshots_leave(lane: Lane) -> None:
    """An open snapshot and a stranger raise before anything of them is read (C15)."""
    closure = ToolCallClosure()
    closure.begin(CALLS)
    with pytest.raises(InvalidInputError, match="close or seal"):
        lane.module.results(closure.snapshot())
    for stranger in (None, {}, [], Trap(), object()):
        with pytest.raises(InvalidTypeError):
            lane.module.results(stranger)


@pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)
def test_bare_results_mirror_the_provider(lane: Lane) -> None:
    """Without `extend` the assistant turn has the provider's ids, so the results have them too (P6, FIELD 51)."""
    ids = ["a", "a", "x" * 70 if lane is not ANTHROPIC else "functions.f:0"]
    calls = lane.module.calls(lane.respond(*[lane.call(call_id) for call_id in ids]))
    results = lane.module.results(settled(calls))
    key = {"chat": "tool_call_id", "responses": "call_id", "anthropic": "tool_use_id"}[lane.name]
    assert [entry[key] for entry in results] == ids
    (nameless,) = lane.module.calls(lane.respond(lane.call(None)))
    assert lane.module.results(settled([nameless]))[0][key] == nameless.id


def test_chat_legacy_result() -> None:
    """The deprecated `function_call` has no id: role `function` and its name answer it (LANES 14.13)."""
    response = chat(function_call={"name": "f", "arguments": "{}"}, finish_reason="function_call")
    results = openai_chat.results(settled(openai_chat.calls(response)))
    assert results == [{"role": "function", "name": "f", "content": '{"position":0}'}]


def test_responses_custom_and_caller() -> None:
    """A custom call has its own output type, and a program's call gets its `caller` back; the model's need not."""
    program = {"type": "program", "caller_id": "prog_1"}
    response = responses(
        {"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "select 1"},
        item("b", caller=program),
        item("c", caller={"type": "direct"}),
    )
    calls = openai_responses.calls(response)
    first, second, third = openai_responses.results(settled(calls))
    assert first["type"] == "custom_tool_call_output"
    assert second["caller"] == program
    assert "caller" not in third
    second["caller"]["caller_id"] = "changed"
    assert openai_responses.results(settled(calls))[1]["caller"] == program


def test_anthropic_toolset() -> None:
    """A toolset member's result names its toolset: the API rejects a mismatch."""
    response = ANTHROPIC.respond(use("a", toolset_name="browser"), use("b"))
    first, second = anthropic.results(settled(anthropic.calls(response)))
    assert first["toolset_name"] == "browser"
    assert "toolset_name" not in second


def test_lanes_do_not_read_each_others_echo() -> None:
    """A snapshot can be exported by another lane: what one echoes is nothing to the others."""
    calls = [
        *anthropic.calls(ANTHROPIC.respond(use("a", toolset_name="browser", caller={"type": "program"}))),
        *openai_responses.calls(RESPONSES.respond(item("b", caller={"type": "program", "caller_id": "p"}))),
        *openai_chat.calls(CHAT.respond(function_call={"name": "f", "arguments": ""})),
    ]
    snapshot = settled(calls)
    assert [set(entry) for entry in openai_chat.results(snapshot)][:2] == [{"role", "tool_call_id", "content"}] * 2
    assert [set(entry) for entry in openai_responses.results(snapshot)][::2] == [{"type", "call_id", "output"}] * 2
    assert [set(entry) for entry in anthropic.results(snapshot)][1:] == [{"type", "tool_use_id", "content"}] * 2
