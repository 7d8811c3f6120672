"""Responses to calls: every form of a response, every way in which a call can be bad."""

import copy
import re
from types import SimpleNamespace
from typing import Any

import pytest
from anthropic.types import ToolUseBlock

from tests.providers.streams import STREAMS, StreamLane
from tests.providers.support import (
    ANTHROPIC,
    CHAT,
    LANES,
    RESPONSES,
    Lane,
    chat,
    chat_call,
    item,
    message,
    responses,
    settled,
    use,
)
from toolbatch.core import InvalidTypeError, ProviderMismatchError, ToolCall
from toolbatch.providers import anthropic, openai_chat, openai_responses

OURS = re.compile(r"[a-zA-Z0-9_-]{1,40}")
EACH_LANE = pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)


def code(call: ToolCall) -> str | None:
    return None if call.problem is None else call.problem.code


def arguments(lane: Lane, value: dict[str, Any]) -> Any:
    """Good arguments in the lane's own form."""
    return value if lane is ANTHROPIC else '{"q":"é","n":[1]}'


@EACH_LANE
def test_every_form_gives_the_same_calls(lane: Lane) -> None:
    """Wire JSON, the SDK's object and its dumps are one response (P1)."""
    wire = lane.respond(
        lane.call("a", "lookup", arguments(lane, {"q": "é", "n": [1]})),
        lane.call("a"),
        lane.call(None),
        lane.call("b", ""),
    )
    before = copy.deepcopy(wire)
    first, *others = [lane.module.calls(form) for form in lane.forms(wire)]
    assert [call.name for call in first] == ["lookup", "lookup", "lookup", "unnamed_tool"]
    assert first[0].arguments == {"q": "é", "n": [1]}
    assert others == [first] * 3
    assert wire == before


@EACH_LANE
def test_bare_turns(lane: Lane) -> None:
    """The assistant turn alone will do: a message, or a list of items."""
    wire = lane.respond(lane.call("a"))
    bare: dict[str, Any] = {
        "chat": chat(chat_call("a"))["choices"][0]["message"],
        "responses": wire.get("output"),
        "anthropic": {"role": "assistant", "content": wire.get("content")},
    }
    assert [call.id for call in lane.module.calls(bare[lane.name])] == ["a"]
    (sdk,) = [form for form in lane.forms(wire) if not isinstance(form, dict)]
    part = {"chat": lambda: sdk.choices[0].message, "responses": lambda: sdk.output, "anthropic": lambda: sdk}
    assert [call.id for call in lane.module.calls(part[lane.name]())] == ["a"]


def test_dicts_with_the_sdks_blocks_in_them() -> None:
    """`{"role": "assistant", "content": response.content}` is how many keep a turn."""
    block = ToolUseBlock(type="tool_use", id="a", name="f", input={"x": 1})
    (call,) = anthropic.calls({"role": "assistant", "content": [block]})
    assert (call.id, call.arguments) == ("a", {"x": 1})


@EACH_LANE
@pytest.mark.parametrize(
    "stranger", [None, "text", 1, {}, {"choices": []}, {"error": {}}, object(), [1], {"role": "user"}]
)
def test_no_response(lane: Lane, stranger: Any) -> None:
    """What is no response of this lane is the caller's mistake, and is named."""
    with pytest.raises(InvalidTypeError, match="response must be"):
        lane.module.calls(stranger)


@pytest.mark.parametrize("lane", STREAMS, ids=lambda lane: lane.name)
def test_what_is_no_response_yet_is_told_what_to_do(lane: StreamLane) -> None:
    """A request that nobody awaited, and a stream of either kind: the two mistakes of a first program."""

    async def request() -> Any:
        return None

    async def events() -> Any:
        yield None

    waiting = request()
    with pytest.raises(InvalidTypeError, match=r"response must be .*; await it first"):
        lane.module.calls(waiting)
    waiting.close()
    streams: list[Any] = [events(), iter([])]
    for stream in streams:
        with pytest.raises(InvalidTypeError, match=r"response must be .*StreamCollector"):
            lane.module.calls(stream)


def test_what_is_no_call() -> None:
    """Hosted calls, reasoning and text are not calls (P3)."""
    items = [{"type": kind, "id": "x"} for kind in ("reasoning", "web_search_call", "mcp_call", "message", "program")]
    assert [call.id for call in openai_responses.calls(responses(*items, item("a")))] == ["a"]
    kinds = ("text", "thinking", "server_tool_use", "mcp_tool_use", "web_search_tool_result", "redacted_thinking")
    blocks = [{"type": kind, "id": "x", "name": "f", "input": {}, "text": "t"} for kind in kinds]
    assert [call.id for call in anthropic.calls(message(*blocks, use("a")))] == ["a"]
    assert openai_chat.calls(chat(content="Hello.", finish_reason="stop")) == []
    assert anthropic.calls({"role": "assistant", "content": "Hello."}) == []


def test_custom_calls_are_text() -> None:
    """Free-form input is never read as JSON, even where it looks so."""
    custom = {"id": "a", "type": "custom", "custom": {"name": "sql", "input": '{"x": '}}
    for form in CHAT.forms(chat(custom)):
        (call,) = openai_chat.calls(form)
        assert (call.kind, call.arguments, call.problem) == ("custom", {"input": '{"x": '}, None)
    entry = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "a", "name": "sql", "input": "[1]"}
    for form in RESPONSES.forms(responses(entry)):
        (call,) = openai_responses.calls(form)
        assert (call.kind, call.arguments) == ("custom", {"input": "[1]"})
    (untyped,) = openai_chat.calls(chat({"id": "a", "custom": {"name": "sql"}}))
    assert (untyped.kind, untyped.arguments) == ("custom", {"input": ""})


def test_chat_legacy_function_call() -> None:
    """The deprecated single call is announced, unless the same message says it in `tool_calls`."""
    legacy = {"name": "f", "arguments": '{"x":1}'}
    response = {**chat(function_call=legacy, finish_reason="function_call")}
    for form in CHAT.forms(response):
        (call,) = openai_chat.calls(form)
        assert (call.name, call.arguments, call.wire_id) == ("f", {"x": 1}, "")
    assert len(openai_chat.calls(chat(chat_call(), function_call=legacy))) == 1


def test_chat_reads_the_first_choice_only() -> None:
    """Of n choices one becomes history (LANES 14.8)."""
    response = chat(chat_call("a"))
    response["choices"].append({"index": 1, "message": {"role": "assistant", "tool_calls": [chat_call("b")]}})
    assert [call.id for call in openai_chat.calls(response)] == ["a"]


def test_responses_echo() -> None:
    """`async`, `namespace` and `caller` travel with the call, as the SDK names them too."""
    facts = {"async": True, "namespace": "crm", "caller": {"type": "program", "caller_id": "p"}}
    for form in RESPONSES.forms(responses(item("a", **facts))):
        (call,) = openai_responses.calls(form)
        assert call.echo == {"openai_responses": facts}


@EACH_LANE
def test_forced_tool(lane: Lane) -> None:
    """`expect` passes the forced tool and refuses another, none, and one too many (P7)."""
    module = lane.module
    assert len(module.calls(lane.respond(lane.call("a"), lane.call("b")), expect="lookup")) == 2
    with pytest.raises(ProviderMismatchError, match=r"'search'.*'lookup'"):
        module.calls(lane.respond(lane.call("a")), expect="search")
    with pytest.raises(ProviderMismatchError, match="other"):
        module.calls(lane.respond(lane.call("a"), lane.call("b", "other")), expect="lookup")
    with pytest.raises(ProviderMismatchError, match="no tool"):
        module.calls(lane.respond(), expect="lookup")
    with pytest.raises(InvalidTypeError):
        module.calls(lane.respond(), expect=1)


@EACH_LANE
@pytest.mark.parametrize("text", ['{"city": "San Fra', "{", "nope", '{"x": NaN}', "{'x': 1}", '{"a":1}{"b":2}'])
def test_malformed_arguments(lane: Lane, text: str) -> None:
    """Cut or broken JSON is announced, and carries why it must not run (FIELD 78, 79; T5)."""
    (call,) = lane.module.calls(lane.respond(lane.call("a", "delete", text)))
    assert (code(call), call.arguments, call.raw_arguments) == ("malformed_arguments", {}, text)


@EACH_LANE
@pytest.mark.parametrize("value", ["null", "[]", '"x"', "1", '"{\\"a\\":1}"', [1], 1, True, "[" + "9," * 5000 + "9]"])
def test_arguments_that_are_no_object(lane: Lane, value: Any) -> None:
    """Valid JSON is not enough, and a huge payload is not echoed whole (FIELD 81)."""
    (call,) = lane.module.calls(lane.respond(lane.call("a", "f", value)))
    assert code(call) == "malformed_arguments"
    assert call.problem is not None
    assert len(call.problem.message) < 500


@EACH_LANE
@pytest.mark.parametrize("value", ["", "  ", None])
def test_no_arguments(lane: Lane, value: Any) -> None:
    """No text means no arguments, which is a call like any other (FIELD 78, T5)."""
    announced = lane.call("a")
    holder = announced.get("function", announced)
    holder["input" if lane is ANTHROPIC else "arguments"] = value
    (call,) = lane.module.calls(lane.respond(announced))
    assert (call.arguments, call.problem) == ({}, None)


def test_arguments_as_objects_and_not_finite() -> None:
    """Some gateways send a dict where text belongs; NaN is not JSON in either form."""
    assert openai_chat.calls(chat(chat_call(arguments={"x": 1})))[0].arguments == {"x": 1}
    (call,) = anthropic.calls(message(use("a", arguments={"x": [float("nan")]})))
    assert code(call) == "malformed_arguments"


def test_arguments_are_detached() -> None:
    """A tool that changes its arguments can't change the response that `extend` sends back."""
    response = message(use("a", arguments={"x": [1]}))
    anthropic.calls(response)[0].arguments["x"].append(2)
    assert response["content"][0]["input"] == {"x": [1]}


@EACH_LANE
@pytest.mark.parametrize("name", [None, "", " \n", 7, "n" * 600, "bad\ud800"])
def test_names_that_can_not_be_used(lane: Lane, name: Any) -> None:
    """A call without a usable name is announced under one that is, and not run (P6, LANES 14.7)."""
    (call,) = lane.module.calls(lane.respond(lane.call("a", name)))
    assert code(call) == "unknown_tool"
    settled([call])  # the core takes it
    if not isinstance(name, str) or not name.strip():
        assert call.name == "unnamed_tool"


@pytest.mark.parametrize("odd", [float("nan"), "deep"])
def test_what_can_not_travel_back_is_no_reason_to_lose_a_call(odd: Any) -> None:
    """A `caller` that JSON can't hold is left out of `echo`; the call is there, and so are its other facts (P6)."""
    caller: Any = {"tool_id": odd}
    for _ in range(5000 if odd == "deep" else 0):
        caller = {"type": caller}
    (call,) = anthropic.calls(message(use(caller=caller, toolset_name="files")))
    assert call.echo == {"anthropic": {"toolset_name": "files"}}
    (call,) = openai_responses.calls(responses(item(caller=caller, namespace="n")))
    assert call.echo == {"openai_responses": {"namespace": "n"}}


@EACH_LANE
def test_entries_that_are_no_calls_at_all(lane: Lane) -> None:
    """A null or a text in the place of a chat call is a call without a name; elsewhere it has no type, so is none."""
    if lane is CHAT:
        assert [code(call) for call in openai_chat.calls(chat(None, "x", {}))] == ["unknown_tool"] * 3
    elif lane is ANTHROPIC:
        assert anthropic.calls(message(None, "x", {})) == []


@EACH_LANE
def test_ids(lane: Lane) -> None:
    """Missing, blank, repeated and foreign ids get ours: distinct, safe everywhere, and theirs is kept (P6; FIELD 51, 55)."""
    wire_ids = ["a", None, "", "  ", "null", "a", 7, "é\ud800", "a"]
    response = lane.respond(*[lane.call(call_id) for call_id in wire_ids])
    calls = lane.module.calls(response)
    ids = [call.id for call in calls]
    assert len(set(ids)) == len(ids)
    assert ids[0] == "a"
    assert calls[0].wire_id is None
    for call, wire_id in list(zip(calls, wire_ids, strict=True))[1:]:
        assert OURS.fullmatch(call.id)
        assert call.wire_id == (wire_id if isinstance(wire_id, str) else "")
    assert lane.module.calls(copy.deepcopy(response)) == calls  # stable on replay
    other = {**response, "id": "another"}
    assert {call.id for call in lane.module.calls(other)} & set(ids) == {"a"}


@pytest.mark.parametrize(
    ("lane", "kept", "replaced"),
    [
        (CHAT, "é" * 40, "x" * 41),
        (RESPONSES, "é" * 64, "x" * 65),
        (ANTHROPIC, "x" * 512, "x" * 513),
        (ANTHROPIC, "functions-f_0", "functions.f:0"),
    ],
)
def test_length_and_alphabet(lane: Lane, kept: str, replaced: str) -> None:
    """Each lane has its own bound on ids (LANES 1 to 3)."""
    first, second = lane.module.calls(lane.respond(lane.call(kept), lane.call(replaced)))
    assert (first.id, first.wire_id) == (kept, None)
    assert OURS.fullmatch(second.id)
    assert second.wire_id == replaced


@EACH_LANE
def test_our_id_gives_way_to_theirs(lane: Lane) -> None:
    """A provider's id that happens to be the one we would make stays the provider's."""
    (made, _) = lane.module.calls(lane.respond(lane.call(None), lane.call("b")))
    again = lane.module.calls(lane.respond(lane.call(None), lane.call(made.id)))
    assert again[1].id == made.id
    assert again[0].id not in (made.id, "b")


@pytest.mark.parametrize("reason", ["length", "content_filter", "max_tokens", "error"])
def test_chat_cut_off(reason: str) -> None:
    """A response that was cut off announces calls that may not run, with whatever arguments (P6)."""
    calls = openai_chat.calls(chat(chat_call("a"), chat_call("b", arguments='{"x'), finish_reason=reason))
    assert [code(call) for call in calls] == ["response_truncated"] * 2


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "function_call", None, "eos", 3])
def test_chat_not_cut_off(reason: Any) -> None:
    """`stop` with calls is what many servers say (LANES 14.5)."""
    assert [code(call) for call in openai_chat.calls(chat(chat_call("a"), finish_reason=reason))] == [None]


@pytest.mark.parametrize(
    ("response", "codes"),
    [
        (
            responses(item("a"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
            ["response_truncated"],
        ),
        (responses(item("a"), status="incomplete", incomplete_details={"reason": "new"}), ["response_truncated"]),
        (responses(item("a"), status="failed"), ["response_truncated"]),
        (responses(item("a"), status="cancelled"), ["response_truncated"]),
        (responses(item("a"), status="in_progress"), ["response_truncated"]),
        (responses(item("a"), item("b", status="incomplete")), [None, "response_truncated"]),
        (responses(item("a", status="in_progress")), [None]),
        ([item("a", status="in_progress"), item("b", status="completed")], ["response_truncated", None]),
        (responses(item("a"), status=None), [None]),
    ],
)
def test_responses_cut_off(response: Any, codes: list[str | None]) -> None:
    """The response's status counts for all its calls, an item's for itself (P6)."""
    assert [code(call) for call in openai_responses.calls(response)] == codes


STOPPED = ["end_turn", "max_tokens", "stop_sequence", "refusal", "model_context_window_exceeded", "something_new"]


@pytest.mark.parametrize("reason", STOPPED)
def test_anthropic_stopped(reason: str) -> None:
    """Only `tool_use` asks for tools to be run; the SDK makes cut input look whole (LANES 3)."""
    for form in ANTHROPIC.forms(message(use("a", arguments={"path": "/a"}), stop_reason=reason)):
        (call,) = anthropic.calls(form)
        cut = reason in ("max_tokens", "stop_sequence", "model_context_window_exceeded")
        assert code(call) == ("response_truncated" if cut else "not_requested")
    texts = {anthropic.calls(message(use("a"), stop_reason=other))[0].problem for other in STOPPED}
    assert len(texts) == len(STOPPED)


@pytest.mark.parametrize("reason", ["pause_turn", "compaction"])
def test_anthropic_paused(reason: str) -> None:
    """A paused turn is resent as it is: there is nothing to run and nothing to answer."""
    assert anthropic.calls(message(use("a"), stop_reason=reason)) == []


@pytest.mark.parametrize("reason", ["tool_use", None])
def test_anthropic_not_stopped(reason: str | None) -> None:
    """A message without a stop reason is taken to be whole."""
    assert [code(call) for call in anthropic.calls(message(use("a"), stop_reason=reason))] == [None]


def test_objects_of_no_sdk() -> None:
    """Attributes are all that is asked of an object."""
    function = SimpleNamespace(name="f", arguments="{}")
    entry = SimpleNamespace(id="a", type="function", function=function)
    body = SimpleNamespace(role="assistant", content=None, tool_calls=[entry])
    assert [call.name for call in openai_chat.calls(body)] == ["f"]
    assert CHAT.extended(body)[1]["tool_calls"] == [chat_call("a", "f")]


def test_a_message_of_another_lane_is_not_a_turn_without_calls() -> None:
    """Read by the wrong lane, calls would go unanswered without a word; the error names the right one (P1)."""
    theirs: Any = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
    with pytest.raises(InvalidTypeError, match="read it with anthropic"):
        openai_chat.calls(theirs)
    ours: Any = {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "type": "function", "function": {}}]}
    with pytest.raises(InvalidTypeError, match="read it with openai_chat"):
        anthropic.calls(ours)
