"""Bedrock: responses to calls, turns back to the conversation."""

import copy
import json
from typing import Any

import pytest

from tests.providers.google_and_aws import SERVICE, USER, bedrock_refused, collect, converse, every_order, settled, use
from toolbatch.core import (
    InvalidInputError,
    InvalidTypeError,
    ProviderMismatchError,
    ToolbatchError,
    ToolCall,
    ToolCallClosure,
)
from toolbatch.ports import LateNote
from toolbatch.providers import bedrock

extended = collect(bedrock, bedrock_refused)
TEXT = {"text": "Let me look."}
REASONED = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}}
REDACTED = {"reasoningContent": {"redactedContent": b"\x00\xff"}}
HOSTED = use("srv_1", "nova_code", {"code": "1"}, type="server_tool_use")
FOUND = {
    "toolResult": {"toolUseId": "srv_1", "content": [{"text": "1"}], "type": "nova_code_result", "status": "success"}
}
CACHE = {"cachePoint": {"type": "default"}}


def code(one: ToolCall) -> str | None:
    return None if one.problem is None else one.problem.code


def run(turn: list[Any]) -> list[Any]:
    """The results of a conversation's last turn."""
    return [block["toolResult"] for block in turn[-1]["content"] if "toolResult" in block]


# --- responses to calls


def test_a_response_and_its_message() -> None:
    """What boto3 returns, and its message alone, are read alike (P1)."""
    response = converse(TEXT, use("a", "lookup", {"q": "é", "n": [1]}), use("b"))
    before = copy.deepcopy(response)
    calls = bedrock.calls(response)
    assert [(one.id, one.name, one.arguments, one.problem) for one in calls] == [
        ("a", "lookup", {"q": "é", "n": [1]}, None),
        ("b", "lookup", {}, None),
    ]
    assert bedrock.calls(response["output"]["message"]) == calls
    assert response == before


STRANGERS = [
    None,
    "text",
    1,
    {},
    {"output": {}},
    {"output": {"message": {"role": "user", "content": []}}},
    {"role": "assistant", "content": "text"},
    {"role": "user", "content": []},
    object(),
    [1],
]


@pytest.mark.parametrize("stranger", STRANGERS, ids=str)
def test_no_response(stranger: Any) -> None:
    """What is no response of this lane is the caller's mistake, and is named."""
    with pytest.raises(InvalidTypeError, match="response must be what converse returns"):
        bedrock.calls(stranger)


def test_a_message_of_another_lane() -> None:
    """Anthropic's own messages look alike, but for the type that each block has."""
    message = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
    with pytest.raises(InvalidTypeError, match="read it with anthropic"):
        bedrock.calls(message)


def test_what_is_no_call() -> None:
    """Reasoning, text, and tools that the server runs are not calls (P3)."""
    response = converse(REASONED, REDACTED, TEXT, HOSTED, FOUND, use("a"))
    assert [one.id for one in bedrock.calls(response)] == ["a"]
    assert bedrock.calls(converse(TEXT, stop="end_turn")) == []


def test_forced_tool() -> None:
    """`expect` passes the forced tool and refuses another, and none (P7)."""
    assert len(bedrock.calls(converse(use("a"), use("b")), expect="lookup")) == 2
    with pytest.raises(ProviderMismatchError, match=r"'search'.*'lookup'"):
        bedrock.calls(converse(use("a")), expect="search")
    with pytest.raises(ProviderMismatchError, match="no tool"):
        bedrock.calls(converse(TEXT), expect="lookup")


REASONS = {
    "max_tokens": "response_truncated",
    "stop_sequence": "response_truncated",
    "malformed_tool_use": "response_truncated",
    "malformed_model_output": "response_truncated",
    "model_context_window_exceeded": "response_truncated",
    "guardrail_intervened": "response_truncated",
    "content_filtered": "response_truncated",
    "end_turn": "not_requested",
    "a_reason_of_next_year": "not_requested",
}


@pytest.mark.parametrize(("reason", "problem"), REASONS.items(), ids=REASONS)
def test_calls_that_may_not_run(reason: str, problem: str) -> None:
    """Only `tool_use` asks for tools; all else is announced and answered, never run (P6, LANES 5 and 14.4)."""
    response = converse(use("a", "delete", {"path": "/"}), use("b"), stop=reason)
    assert [code(one) for one in bedrock.calls(response)] == [problem] * 2
    assert len(run(extended(response))) == 2


def test_every_reason_of_the_api_is_decided() -> None:
    """Of the reasons that botocore knows, one lets calls run; a message alone has none."""
    reasons = SERVICE.shape_for("StopReason").enum
    free = [reason for reason in reasons if code(bedrock.calls(converse(use("a"), stop=reason))[0]) is None]
    assert free == ["tool_use"]
    assert code(bedrock.calls(converse(use("a"))["output"]["message"])[0]) is None


def test_a_harness_may_have_run_it() -> None:
    """Beside `end_turn` the model reads that the tool was not run here, and nothing of whether it ran elsewhere is denied."""
    (one,) = bedrock.calls(converse(use("a"), stop="end_turn"))
    assert one.problem is not None
    assert "it has run it" in one.problem.message


BAD_INPUT = ['{"x": "cut', "nope", "[1]", "null", [1], 3, {"x": float("nan")}, {"x": object()}]


@pytest.mark.parametrize("value", BAD_INPUT, ids=str)
def test_input_that_is_no_object(value: Any) -> None:
    """It is announced with a problem, and goes back as an object: `Provide a json object for the field` (LANES 14.3)."""
    (one,) = bedrock.calls(converse(use("a", "f", value)))
    assert code(one) == "malformed_arguments"
    assert list(extended(converse(use("a", "f", value)))[1]["content"][0]["toolUse"]["input"]) == ["INVALID_JSON"]


@pytest.mark.parametrize("value", [None, "", " "])
def test_no_input(value: Any) -> None:
    """No input means no arguments (T5)."""
    block = use("a")
    block["toolUse"]["input"] = value
    (one,) = bedrock.calls(converse(block))
    assert (one.arguments, one.problem) == ({}, None)
    assert extended(converse(block), "x")[1]["content"] == [use("a")]


@pytest.mark.parametrize("name", [None, "", " ", 7, "nö name", "db.query", "n" * 700])
def test_names_that_no_tool_can_have(name: Any) -> None:
    """Such a call has no tool to run, and its name is put right in the turn (LANES 14.7)."""
    turn = extended(converse(use("a", name)))
    assert len(run(turn)) == 1


@pytest.mark.parametrize("hostile", ["x", 1, [], True])
def test_calls_that_are_no_objects(hostile: Any) -> None:
    """Whatever stands where a call should is announced, and answered."""
    assert len(run(extended(converse({"toolUse": hostile})))) == 1


# --- turns


def test_a_turn() -> None:
    """Blocks keep their places, reasoning and hosted ones to the byte; one user message holds all results and no more (P2)."""
    blocks = [REASONED, REDACTED, TEXT, HOSTED, FOUND, use("a", "f", {"x": [1]}), use("b"), CACHE]
    response = converse(*blocks)
    before = copy.deepcopy(response)
    turn = extended(response, "4 degrees", ValueError("no"))
    assert turn[1] == {"role": "assistant", "content": blocks}
    assert turn[2] == {
        "role": "user",
        "content": [
            {"toolResult": {"toolUseId": "a", "content": [{"text": "4 degrees"}]}},
            {
                "toolResult": {
                    "toolUseId": "b",
                    "content": [{"text": '{"error":{"code":"tool_error","message":"no"}}'}],
                    "status": "error",
                }
            },
        ],
    }
    assert len(turn) == 3
    assert response == before
    turn[1]["content"][5]["toolUse"]["input"]["x"].append(2)
    assert response == before


def test_blank_text_stays_out() -> None:
    """Models send blank text beside their calls, and the API does not take it back."""
    assert extended(converse({"text": " \n"}, use("a")))[1]["content"] == [use("a")]
    assert extended(converse({"text": ""}, stop="end_turn")) == [USER]


def test_order_is_the_announcements() -> None:
    """Whatever finishes first, the message is the same (C16; FIELD 59)."""
    calls = bedrock.calls(converse(use("a"), use("b"), use("c")))
    assert len({json.dumps(bedrock.message(snapshot)) for snapshot in every_order(calls)}) == 1


def test_the_mark_of_failures() -> None:
    """Failures have it, successes have none, and models that know no mark get none: they read the text (P4)."""
    response = converse(use("a"), use("b"), use("c"))
    first, second, third = run(extended(response, "x", ValueError("no")))
    assert ["status" in first, second["status"], third["status"]] == [False, "error", "error"]
    bare = extended(response, "x", ValueError("no"), status=False)
    assert not any("status" in result for result in run(bare))
    assert bedrock_refused(bare, "writer.palmyra-x5-v1:0") is None
    assert [result["content"] for result in run(bare)] == [result["content"] for result in (first, second, third)]


def test_ids_that_can_not_stay_are_ours_on_both_sides() -> None:
    """Missing, repeated, overlong and foreign ids: each call has its own answer under one id (P6, FIELD 51)."""
    wire_ids = ["a", "a", None, "", " ", "null", 0, "x" * 64, "x" * 65, "functions.f:0", "a|b", "é", "\ud800"]
    turn = extended(converse(*[use(wire_id) for wire_id in wire_ids]), *range(13))
    announced = [block["toolUse"]["toolUseId"] for block in turn[1]["content"]]
    assert [result["toolUseId"] for result in run(turn)] == announced
    assert len(set(announced)) == 13
    assert [announced[position] for position in (0, 7, 9)] == ["a", "x" * 64, "functions.f:0"]


def test_ids_are_unique_over_the_conversation() -> None:
    """Models that count from the same id in every turn are put right, turn after turn, the same way each time (FIELD 49)."""
    response = converse(use("call_0"), use("call_1"))
    histories: list[list[Any]] = [[USER], [USER]]
    for history in histories:
        for _ in range(4):
            extended(response, "x", "y", history=history)
            history.append({"role": "assistant", "content": [TEXT]})
            history.append(USER)
    assert histories[0] == histories[1]
    ids = [
        block["toolUse"]["toolUseId"] for message in histories[0] for block in message["content"] if "toolUse" in block
    ]
    assert len(set(ids)) == 8
    assert ids[:2] == ["call_0", "call_1"]


def test_bare_results_mirror_the_provider() -> None:
    """Without `extend` the message has the provider's ids, so the results have them too."""
    snapshot = settled(bedrock.calls(converse(use("a"), use("a"), use("a|b"))), 1, 2, 3)
    assert [block["toolResult"]["toolUseId"] for block in bedrock.results(snapshot)] == ["a", "a", "a|b"]
    assert bedrock.message(snapshot) == {"role": "user", "content": bedrock.results(snapshot)}
    assert bedrock.results(settled([])) == []


@pytest.mark.parametrize("content", [[], [{"toolResult": {"toolUseId": "z", "content": []}}], [TEXT]], ids=str)
def test_no_turn_goes_behind_an_open_one(content: list[Any]) -> None:
    """Behind another turn the API does not take the missing results any more."""
    history: list[Any] = [USER, {"role": "assistant", "content": [use("a"), HOSTED]}]
    history += [{"role": "user", "content": content}] if content else []
    before = list(history)
    with pytest.raises(InvalidInputError, match=r"calls without a result: \['a'\]"):
        bedrock.extend(history, converse(TEXT))
    assert history == before


def test_a_hosted_call_is_not_open() -> None:
    """What the server runs needs no answer of ours, behind it or later."""
    history: list[Any] = [USER, {"role": "assistant", "content": [HOSTED, FOUND, TEXT]}, USER]
    bedrock.extend(history, converse(TEXT))
    assert len(history) == 4


def test_errors_leave_the_list_as_it_was() -> None:
    """Everything is computed before the list is touched (P2)."""
    response = converse(use("a"))
    calls = bedrock.calls(response)
    opened = ToolCallClosure()
    opened.begin(calls)
    messages: list[Any] = [USER]
    bad: list[tuple[Any, Any, type[ToolbatchError], str]] = [
        (response, opened.snapshot(), InvalidInputError, "close or seal"),
        (response, None, InvalidInputError, "no snapshot"),
        (None, settled(calls), InvalidTypeError, "response must be"),
        (response, settled([ToolCall("z", "lookup")]), InvalidInputError, "another response"),
        (converse(use("a"), {"odd": float("nan")}), settled(calls), InvalidInputError, "nan"),
        (converse(use("a"), {"odd": {1}}), settled(calls), InvalidTypeError, "no JSON form"),
    ]
    for given, snapshot, error, match in bad:
        with pytest.raises(error, match=match):
            bedrock.extend(messages, given, snapshot)
    with pytest.raises(InvalidInputError, match="media must be one of nested, after, text"):
        bedrock.extend(messages, response, settled(calls), media="beside")  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="messages must be a list"):
        bedrock.extend((), response, settled(calls))  # type: ignore[arg-type]
    assert messages == [USER]
    assert messages[0] is USER


def test_late_notes_are_a_message_of_the_users() -> None:
    """Late results are new content, behind the assistant's next message, since roles alternate (B20)."""
    assert bedrock.notes([]) == []
    (note,) = bedrock.notes([LateNote(call_id="a", name="lookup", generation=1, content="found it")])
    assert "found it" in note["content"][0]["text"]
    turn = extended(converse(use("a")), "x")
    assert bedrock_refused([*turn, {"role": "assistant", "content": [TEXT]}, note]) is None
