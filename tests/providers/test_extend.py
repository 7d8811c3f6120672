"""The assistant turn and its results: faithful, in order, and acceptable to a strict server."""

import copy
import json
from types import SimpleNamespace
from typing import Any

import pytest
from anthropic.types import Message
from openai.types.chat import ParsedChatCompletion
from openai.types.responses import ParsedResponse

from tests.providers.support import (
    ANTHROPIC,
    CHAT,
    LANES,
    RESPONSES,
    USER,
    Lane,
    chat,
    chat_call,
    exhaust,
    item,
    message,
    responses,
    settled,
    use,
)
from toolbatch.core import InvalidInputError, InvalidTypeError, Snapshot, ToolbatchError, ToolCall, ToolCallClosure
from toolbatch.providers import anthropic, openai_chat, openai_responses

EACH_LANE = pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "eA=="}
TEXT = {"type": "text", "text": "Let me look."}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "eA=="}
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []}


def accepted(lane: Lane, messages: list[Any]) -> None:
    assert lane.refused(messages) is None
    exhaust(lane.adapter.validate_python(messages))
    json.dumps(messages, allow_nan=False).encode()


@EACH_LANE
def test_every_form_gives_the_same_turn(lane: Lane) -> None:
    """Wire JSON, the SDK's object and its dumps go back as the same messages, which every judge accepts."""
    wire = lane.respond(lane.call("a"), lane.call("b"))
    before = copy.deepcopy(wire)
    first, *others = [lane.extended(form) for form in lane.forms(wire)]
    accepted(lane, first)
    assert others == [first] * 3
    assert wire == before


def test_chat_turn() -> None:
    """Only what the endpoint takes back goes back; the rest of a response is not input."""
    response = chat(
        chat_call("a", arguments=' {"x": 1}'),
        content="Let me look.",
        annotations=[],
        audio={"id": "audio_1", "data": "x", "expires_at": 1, "transcript": "t"},
        reasoning="hm",
    )
    wanted = {
        "role": "assistant",
        "content": "Let me look.",
        "audio": {"id": "audio_1"},
        "tool_calls": [chat_call("a", arguments=' {"x": 1}')],
    }
    assert CHAT.extended(response) == [
        USER,
        wanted,
        {"role": "tool", "tool_call_id": "a", "content": '{"position":0}'},
    ]


def test_chat_turn_without_calls() -> None:
    """A turn without calls is appended alone, and never without content, which the endpoint requires."""
    assert CHAT.extended(chat(content="Hello.", finish_reason="stop"))[1:] == [
        {"role": "assistant", "content": "Hello."}
    ]
    assert CHAT.extended(chat())[1:] == [{"role": "assistant", "content": ""}]
    refusal = {"role": "assistant", "content": None, "refusal": "No."}
    assert CHAT.extended(chat(refusal="No."))[1:] == [refusal]


def test_chat_custom_and_legacy() -> None:
    """Custom calls and the deprecated one go back in their own forms."""
    custom = {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "select"}}
    turn = CHAT.extended(chat(custom, chat_call("b")))
    assert turn[1]["tool_calls"][0] == custom
    accepted(CHAT, turn)
    legacy = CHAT.extended(chat(function_call={"name": "no.such", "arguments": ""}), settled_unrun(chat_legacy()))
    assert legacy[1]["function_call"] == {"name": "no_such", "arguments": "{}"}
    assert "tool_calls" not in legacy[1]
    assert legacy[2]["name"] == "no_such"
    accepted(CHAT, legacy)


def chat_legacy() -> list[ToolCall]:
    return openai_chat.calls(chat(function_call={"name": "no.such", "arguments": ""}))


def settled_unrun(calls: list[ToolCall]) -> Snapshot:
    return settled(calls, lambda _: "closed")


def test_sdk_helper_fields_stay_out() -> None:
    """`parse()` adds fields of the SDK's own to its objects; no API takes them."""
    entry = chat_call("a")
    entry["function"]["parsed_arguments"] = {"x": 1}
    entry["index"] = 0
    parsed: Any = ParsedChatCompletion.construct(**chat(entry, parsed=None))
    for response in (parsed, parsed.model_dump()):
        assert CHAT.extended(response)[1]["tool_calls"] == [chat_call("a")]
    said = {**SAID, "content": [{"type": "output_text", "text": "t", "annotations": [], "parsed": {"x": 1}}]}
    answer: Any = ParsedResponse.construct(**responses(said, item("a", parsed_arguments={"x": 1})))
    for response in (answer, answer.model_dump()):
        turn = RESPONSES.extended(response)
        assert turn[1]["content"] == [{"type": "output_text", "text": "t", "annotations": []}]
        assert turn[2] == item("a")


def test_responses_turn() -> None:
    """Items keep their places, reasoning and hosted ones to the byte; outputs follow in the calls' order."""
    program = {"type": "program", "caller_id": "p"}
    call = item("a", id="fc_1", status="completed", caller=program, namespace="crm")
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    }
    custom = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "b", "name": "sql", "input": "{"}
    output = [REASONING, call, SAID, search, custom]
    wire, made, full, sparse = RESPONSES.forms(responses(*output))
    accepted(RESPONSES, RESPONSES.extended(full))  # which has nulls inside hosted items that the server never sent
    for form in (wire, made, sparse):
        turn = RESPONSES.extended(form)
        assert turn == [
            USER,
            *output,
            {"type": "function_call_output", "call_id": "a", "output": '{"position":0}', "caller": program},
            {"type": "custom_tool_call_output", "call_id": "b", "output": '{"position":1}'},
        ]
        accepted(RESPONSES, turn)


def test_responses_asynchronous_under_its_wire_name() -> None:
    """The SDK calls it `async_`; the API does not know that word."""
    for form in RESPONSES.forms(responses(item("a", **{"async": True}))):
        assert RESPONSES.extended(form)[1] == item("a", **{"async": True})


@pytest.mark.parametrize("item_id", ["call_1", "", 7, "fc_" + "x" * 70, None])
def test_responses_item_ids_that_the_api_refuses(item_id: Any) -> None:
    """An item's own id is optional on input, so one that a gateway made up stays out."""
    turn = RESPONSES.extended(responses(item("a", id=item_id)))
    assert "id" not in turn[1]
    accepted(RESPONSES, turn)


def test_anthropic_turn() -> None:
    """Blocks keep their places, signed and hosted ones to the byte; one user message holds all results and no more."""
    blocks = [THINKING, REDACTED, TEXT, SEARCH, FOUND, use("a", toolset_name="browser"), use("b", "f", {"x": [1]})]
    for form in ANTHROPIC.forms(message(*blocks)):
        turn = ANTHROPIC.extended(form, settled(anthropic.calls(form), ["success", "error"].__getitem__))
        assert turn[1] == {"role": "assistant", "content": blocks}
        assert [block["tool_use_id"] for block in turn[2]["content"]] == ["a", "b"]
        assert {block["type"] for block in turn[2]["content"]} == {"tool_result"}
        assert len(turn) == 3
        accepted(ANTHROPIC, turn)


def test_anthropic_hosted_call_still_running() -> None:
    """In a mixed turn only client calls are answered, with nothing else in the message (LANES 3)."""
    turn = ANTHROPIC.extended(message(SEARCH, use("a")))
    assert [block["tool_use_id"] for block in turn[2]["content"]] == ["a"]
    accepted(ANTHROPIC, turn)


@pytest.mark.parametrize("reason", ["pause_turn", "compaction"])
def test_anthropic_paused_turn_goes_back_unchanged(reason: str) -> None:
    """It is resent as it is, with no results."""
    response = message(TEXT, use("no:good", "no.name", "text"), SEARCH, stop_reason=reason)
    turn = ANTHROPIC.extended(response)
    assert turn == [USER, {"role": "assistant", "content": response["content"]}]


def test_anthropic_blank_text_stays_out() -> None:
    """The API sends blank text blocks and refuses them; a message of nothing is not sent at all."""
    blank = {"type": "text", "text": "", "citations": None}
    turn = ANTHROPIC.extended(message(blank, use("a")))
    assert turn[1]["content"] == [use("a")]
    accepted(ANTHROPIC, turn)
    assert ANTHROPIC.extended(message(blank, stop_reason="end_turn")) == [USER]
    assert ANTHROPIC.extended({"role": "assistant", "content": " "}) == [USER]
    assert ANTHROPIC.extended({"role": "assistant", "content": "Hi"})[1] == {"role": "assistant", "content": "Hi"}


@EACH_LANE
def test_ids_are_put_right_on_both_sides(lane: Lane) -> None:
    """Ids that the server would refuse are ours in the turn and in the results; good ones stay (P6; FIELD 51, 55, 56)."""
    wire_ids = ["a", "a", None, "", "null", 5, "x" * 600, "é\ud800"]
    response = lane.respond(*[lane.call(call_id) for call_id in wire_ids])
    ids = [call.id for call in lane.module.calls(response)]
    turn = lane.extended(response)
    accepted(lane, turn)
    assert ids[0] == "a"
    announced = json.dumps(turn[:2] if lane is not RESPONSES else turn[: 1 + len(ids)])
    answered = json.dumps(turn[2:] if lane is not RESPONSES else turn[1 + len(ids) :])
    assert all(f'"{call_id}"' in announced and f'"{call_id}"' in answered for call_id in ids)


@pytest.mark.parametrize("as_objects", [False, True])
def test_anthropic_ids_are_unique_over_the_request(as_objects: bool) -> None:
    """Gateways that count from the same id in every turn are put right, turn after turn (FIELD 49, 52)."""
    response = message(use("list_0", arguments={"turn": 1}), use("list_1"))
    messages: list[Any] = [USER]
    for _ in range(4):
        ANTHROPIC.extended(response, messages=messages)
        if as_objects:
            content = Message.model_validate(message(*messages[-2]["content"])).content
            messages[-2] = {"role": "assistant", "content": content}
    plain = [
        {**entry, "content": [b if isinstance(b, dict) else b.model_dump(exclude_unset=True) for b in entry["content"]]}
        if isinstance(entry["content"], list)
        else entry
        for entry in messages
    ]
    accepted(ANTHROPIC, plain)
    uses = [b["id"] for entry in plain[1::2] for b in entry["content"]]
    assert len(set(uses)) == 8
    assert uses[:2] == ["list_0", "list_1"]
    assert ANTHROPIC.extended(response, messages=[*plain]) == ANTHROPIC.extended(response, messages=[*plain])


@pytest.mark.parametrize("lane", [CHAT, RESPONSES], ids=lambda lane: lane.name)
def test_repeated_ids_over_turns_stay_elsewhere(lane: Lane) -> None:
    """Chat and Responses match within the turn, so there an id may come again (FIELD 53)."""
    messages: list[Any] = [USER]
    for _ in range(3):
        lane.extended(lane.respond(lane.call("call_0")), messages=messages)
    accepted(lane, messages)
    assert json.dumps(messages).count('"call_0"') == 6


BROKEN = ['{"x": "cut', "nope", "[1]", "null", '"text"', '{"x": NaN}', "\ud800", [1], 3]


@EACH_LANE
@pytest.mark.parametrize("value", BROKEN)
def test_broken_arguments_are_replaced_on_replay(lane: Lane, value: Any) -> None:
    """A strict server would refuse the conversation for ever; the model still sees what it wrote (LANES 14.3)."""
    response = lane.respond(lane.call("a", "lookup", value))
    turn = lane.extended(response, settled_unrun(lane.module.calls(response)))
    accepted(lane, turn)
    sent = replayed(lane, turn)
    assert list(sent) == ["INVALID_JSON"]
    if isinstance(value, str):
        assert sent["INVALID_JSON"] == value.replace("\ud800", "\ufffd")


def replayed(lane: Lane, turn: list[Any]) -> dict[str, Any]:
    """The arguments of the turn's first call, as a server reads them."""
    if lane is ANTHROPIC:
        return dict(turn[1]["content"][0]["input"])
    holder = turn[1] if lane is RESPONSES else turn[1]["tool_calls"][0]["function"]
    return dict(json.loads(holder["arguments"]))


@EACH_LANE
@pytest.mark.parametrize("value", ["", " ", None])
def test_no_arguments_are_an_empty_object(lane: Lane, value: Any) -> None:
    """Some servers refuse an empty text where they read JSON (LANES 14.2)."""
    announced = lane.call("a")
    announced.get("function", announced)["input" if lane is ANTHROPIC else "arguments"] = value
    assert replayed(lane, lane.extended(lane.respond(announced))) == {}


@EACH_LANE
def test_arguments_of_the_other_kind(lane: Lane) -> None:
    """A dict where text belongs, or text where a dict belongs, goes back in the lane's form."""
    value: Any = '{"x":1}' if lane is ANTHROPIC else {"x": 1}
    turn = lane.extended(lane.respond(lane.call("a", "lookup", value)))
    assert replayed(lane, turn) == {"x": 1}
    accepted(lane, turn)


def test_input_that_is_not_finite() -> None:
    """NaN in an object is not JSON, and never leaves (B23)."""
    turn = ANTHROPIC.extended(message(use("a", arguments={"x": float("nan")})))
    assert list(turn[1]["content"][0]["input"]) == ["INVALID_JSON"]
    with pytest.raises(InvalidInputError, match="nan"):
        ANTHROPIC.extended(message({**TEXT, "odd": float("nan")}, use("a")))


@EACH_LANE
@pytest.mark.parametrize("name", ["multi_tool_use.parallel", "", None, "näme", "n" * 700, "a b"])
def test_names_that_no_tool_can_have(lane: Lane, name: Any) -> None:
    """A made-up name is refused when it is read back, so it is put right in the turn (LANES 14.7)."""
    response = lane.respond(lane.call("a", name))
    accepted(lane, lane.extended(response, settled_unrun(lane.module.calls(response))))


@EACH_LANE
def test_the_name_of_a_tool_that_ran_stays(lane: Lane) -> None:
    """The server took the tool's declaration under that name, so the model must find it under that name."""
    turn = lane.extended(lane.respond(lane.call("a", "db.query")))
    assert '"db.query"' in json.dumps(turn)


@EACH_LANE
def test_errors_leave_the_list_as_it_was(lane: Lane) -> None:
    """Everything is computed before the list is touched (P2)."""
    response = lane.respond(lane.call("a"), lane.call("b"))
    calls = lane.module.calls(response)
    open_batch = ToolCallClosure()
    open_batch.begin(calls)
    messages: list[Any] = [USER]
    bad: list[tuple[Any, Any, type[ToolbatchError], str]] = [
        (response, open_batch.snapshot(), InvalidInputError, "close or seal"),
        (response, None, InvalidInputError, "no snapshot"),
        (None, settled(calls), InvalidTypeError, "response must be"),
        (response, settled(calls[:1]), InvalidInputError, r"answers \['a \(lookup\)'\].*announces .*'b \(lookup\)'"),
        (response, settled([*calls, ToolCall("c", "f")]), InvalidInputError, r"'c \(f\)'"),
        (response, settled([calls[0], ToolCall("b", "other")]), InvalidInputError, r"'b \(other\)'"),
        (lane.respond(), settled(calls), InvalidInputError, "another response"),
    ]
    for given, snapshot, error, text in bad:
        with pytest.raises(error, match=text):
            lane.module.extend(messages, given, snapshot)
        assert messages == [USER]
    for no_list in ((USER,), None, "x", {"role": "user"}):
        with pytest.raises(InvalidTypeError, match="messages must be a list"):
            lane.module.extend(no_list, response, settled(calls))


@EACH_LANE
def test_the_order_is_the_responses(lane: Lane) -> None:
    """A host may have announced the calls in another order; the turn decides (FIELD 59)."""
    response = lane.respond(lane.call("a"), lane.call("b"))
    calls = lane.module.calls(response)
    turn = lane.extended(response, settled(calls[::-1]))
    assert json.dumps(turn).rindex('"a"') < json.dumps(turn).rindex('"b"')
    accepted(lane, turn)


@EACH_LANE
def test_messages_are_left_alone(lane: Lane) -> None:
    """What is in the list keeps its identity, be it of the SDK or of nobody."""
    before: list[Any] = [USER, SimpleNamespace(role="user", content=[SimpleNamespace(type="text", text="x")]), object()]
    messages = [*before]
    lane.extended(lane.respond(lane.call("a")), messages=messages)
    assert all(now is then for now, then in zip(messages, before, strict=False))


def test_the_turn_is_detached() -> None:
    """What is appended shares nothing with the response."""
    response = message(use("a", arguments={"x": [1]}))
    turn = ANTHROPIC.extended(response)
    turn[1]["content"][0]["input"]["x"].append(2)
    assert response["content"][0]["input"] == {"x": [1]}
    output = responses(REASONING, item("a"))
    RESPONSES.extended(output)[1]["summary"].append(1)
    assert output["output"][0]["summary"] == []


def test_what_has_no_json_form() -> None:
    """A turn that can't be written raises; nothing is guessed."""
    with pytest.raises(InvalidTypeError, match="no JSON form"):
        openai_responses.extend([], responses(SimpleSlots()), settled([]))


class SimpleSlots:
    """An item of a type, and of no fields that could be found."""

    __slots__ = ()
    type = "reasoning"


@pytest.mark.parametrize(
    ("lane", "response"),
    [
        (openai_chat, {"role": "assistant", "content": "Hello."}),
        (
            openai_responses,
            [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}],
        ),
        (anthropic, {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}),
    ],
)
def test_a_response_without_calls_needs_no_snapshot(lane: Any, response: Any) -> None:
    """The last turn of a conversation has no calls, and nothing to be answered from; its message is appended."""
    messages: list[Any] = []
    lane.extend(messages, response)
    assert [message["role"] for message in messages] == ["assistant"]


@pytest.mark.parametrize("lane", [openai_chat, openai_responses, anthropic])
def test_calls_without_a_snapshot_are_refused(lane: Any) -> None:
    """A batch that was never closed has no result; extending from it says what to do, and appends nothing."""
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    response: Any = {
        openai_chat: {
            "role": "assistant",
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}],
        },
        openai_responses: [call],
        anthropic: {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
    }[lane]
    messages: list[Any] = []
    with pytest.raises(InvalidInputError, match="no snapshot"):
        lane.extend(messages, response, None)
    assert messages == []


@pytest.mark.parametrize("kind", ["thinking", "redacted_thinking"])
def test_thinking_behind_which_nothing_came_is_left_out(kind: str) -> None:
    """LANES 3: a turn that was cut off in its thinking would be refused for ever; what stands before it stays."""
    block = {"type": kind, "thinking": "hm", "signature": "s"} if kind == "thinking" else {"type": kind, "data": "x"}
    for before in ([], [{"type": "text", "text": "Well."}]):
        messages: list[Any] = [{"role": "user", "content": "Hi."}]
        response = {"role": "assistant", "stop_reason": "max_tokens", "content": [*before, block]}
        anthropic.extend(messages, response)
        assert messages[1:] == ([{"role": "assistant", "content": before}] if before else [])


def test_responses_an_item_id_used_before_is_left_out() -> None:
    """Some servers count the ids of items anew in each turn, or give all of a turn's calls one: the endpoint refuses those."""
    turn = responses(item("a", id="fc_0"), item("b", id="fc_0"))
    history: list[Any] = [USER]
    for _ in range(2):
        RESPONSES.extended(turn, messages=history)
    assert RESPONSES.refused(history) is None
    assert [one.get("id") for one in history if one.get("type") == "function_call"] == ["fc_0", None, None, None]
