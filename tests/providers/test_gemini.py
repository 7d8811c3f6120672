"""Gemini: responses to calls, turns back to the conversation."""

import base64
import copy
import json
from types import SimpleNamespace
from typing import Any

import pytest
from google.genai import types

from tests.providers.google_and_aws import (
    ASKED,
    call,
    candidate,
    collect,
    every_order,
    gemini_forms,
    gemini_refused,
    settled,
)
from toolbatch.core import (
    InvalidInputError,
    InvalidTypeError,
    ProviderMismatchError,
    ToolbatchError,
    ToolCall,
    ToolCallClosure,
)
from toolbatch.ports import LateNote
from toolbatch.providers import gemini

extended = collect(gemini, gemini_refused)
SIGNATURE = base64.b64encode(b"\xfb\xff signed").decode()
THOUGHT = {"text": "Hm.", "thought": True}
TEXT = {"text": "Let me look."}
SEARCH = {"toolCall": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"search_query": "q", "n_o": None}}}
FOUND = {"toolResponse": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"found_it": []}}}
CODE = {"executableCode": {"language": "PYTHON", "code": "1"}}
RAN = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}


def code(one: ToolCall) -> str | None:
    return None if one.problem is None else one.problem.code


def run(turn: list[Any]) -> list[Any]:
    """The results of a conversation's only turn."""
    return [part["functionResponse"] for part in turn[2]["parts"]]


# --- responses to calls


def test_every_form_gives_the_same_calls() -> None:
    """Wire JSON, the SDK's object and its dumps are one response, and so are their contents alone (P1)."""
    wire = candidate(THOUGHT, call("a", args={"q": "é", "n": [1]}), call(None), call("b", "other"))
    before = copy.deepcopy(wire)
    forms = gemini_forms(wire)
    contents = [forms[1].candidates[0].content, forms[2]["candidates"][0]["content"], wire["candidates"][0]["content"]]
    first, *others = [gemini.calls(form) for form in forms]
    assert [(one.name, one.arguments, one.problem) for one in first] == [
        ("lookup", {"q": "é", "n": [1]}, None),
        ("lookup", {}, None),
        ("other", {}, None),
    ]
    assert others == [first] * 4
    for content in contents:
        assert [(one.name, one.arguments) for one in gemini.calls(content)] == [(o.name, o.arguments) for o in first]
    assert wire == before


@pytest.mark.parametrize(
    "stranger",
    [
        None,
        "text",
        1,
        {},
        {"choices": []},
        {"candidates": []},
        object(),
        [1],
        {"role": "user", "parts": [{"text": ""}]},
    ],
)
def test_no_response(stranger: Any) -> None:
    """What is no response of this lane is the caller's mistake, and is named."""
    with pytest.raises(InvalidTypeError, match="response must be a GenerateContentResponse"):
        gemini.calls(stranger)


def test_what_is_no_call() -> None:
    """Thoughts, text, and what the server runs itself are not calls (P3)."""
    parts = (THOUGHT, TEXT, SEARCH, FOUND, CODE, RAN, {"inlineData": {"mimeType": "image/png", "data": "eA=="}})
    for form in gemini_forms(candidate(*parts, call("a"))):
        assert [one.id for one in gemini.calls(form)] == ["a"]
    assert gemini.calls(candidate(TEXT)) == []


def test_responses_that_a_filter_emptied() -> None:
    """A blocked prompt has no candidates, and a filtered candidate no content: neither announces a call."""
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {}}
    made = types.GenerateContentResponse.model_validate(blocked)
    for form in (blocked, made, made.model_dump()):
        assert gemini.calls(form) == []
    filtered = {"candidates": [{"finishReason": "SAFETY", "index": 0}]}
    assert gemini.calls(filtered) == []
    history: list[Any] = [ASKED]
    gemini.extend(history, filtered)
    gemini.extend(history, blocked)
    assert history == [ASKED]


@pytest.mark.parametrize("empty", [
    {"usageMetadata": {"totalTokenCount": 3}, "modelVersion": "gemini-3", "responseId": "r"},
    {"candidates": [], "usageMetadata": {"totalTokenCount": 3}, "responseId": "r"},
])  # fmt: skip
def test_a_response_without_a_candidate_is_one(empty: dict[str, Any]) -> None:
    """The server sends such ones at times, and a stream may break off behind one: there is nothing to call or to append."""
    made = types.GenerateContentResponse.model_validate(empty)
    for form in (empty, made, made.model_dump()):
        history: list[Any] = [ASKED]
        assert gemini.calls(form) == []
        gemini.extend(history, form)
        collector = gemini.StreamCollector()
        collector.add(form)
        assert (collector.calls(), collector.finished) == ([], False)
        gemini.extend(history, collector.response())
        assert history == [ASKED]


def test_the_first_candidate_only() -> None:
    """Of several candidates one becomes history (LANES 14.8)."""
    response = candidate(call("a"))
    response["candidates"] += candidate(call("b"))["candidates"]
    assert [one.id for one in gemini.calls(response)] == ["a"]


def test_forced_tool() -> None:
    """`expect` passes the forced tool and refuses another, and none (P7)."""
    assert len(gemini.calls(candidate(call("a"), call(None)), expect="lookup")) == 2
    with pytest.raises(ProviderMismatchError, match=r"'search'.*'lookup'"):
        gemini.calls(candidate(call("a")), expect="search")
    with pytest.raises(ProviderMismatchError, match="no tool"):
        gemini.calls(candidate(TEXT), expect="lookup")


def test_ids_that_are_not_there() -> None:
    """Three calls of one tool without ids are three calls, and the same ones when the response is read again (FIELD 55)."""
    response = candidate(*[call(None, args={"city": city}) for city in ("Oslo", "Rome", "Oslo")])
    first, again = gemini.calls(response), gemini.calls(copy.deepcopy(response))
    assert len({one.id for one in first}) == 3
    assert first == again
    assert gemini.calls({**response, "responseId": "resp_2"}) != first


RUN = [None, "STOP", "stop", "FINISH_REASON_UNSPECIFIED", types.FinishReason.STOP, 1]


@pytest.mark.parametrize("reason", RUN)
def test_calls_that_may_run(reason: Any) -> None:
    """A turn with calls ends with `STOP`; a part of a stream has no reason yet."""
    (one,) = gemini.calls(candidate(call("a"), finish=reason))
    assert one.problem is None


CUT = {
    "MAX_TOKENS": "response_truncated",
    "MALFORMED_FUNCTION_CALL": "response_truncated",
    "MALFORMED_RESPONSE": "response_truncated",
    "SAFETY": "response_truncated",
    "RECITATION": "response_truncated",
    "CONTINUATION": "response_truncated",
    "MODEL_ARMOR": "response_truncated",
    "UNEXPECTED_TOOL_CALL": "not_requested",
    "TOO_MANY_TOOL_CALLS": "not_requested",
    "MISSING_THOUGHT_SIGNATURE": "not_requested",
    "OTHER": "not_requested",
    "A_REASON_OF_NEXT_YEAR": "not_requested",
}


@pytest.mark.parametrize(("reason", "problem"), CUT.items(), ids=CUT)
def test_calls_that_may_not_run(reason: str, problem: str) -> None:
    """Whatever else a response ended with calls its calls off: they are announced and answered, never run (P6, LANES 14.4)."""
    response = candidate(call("a", args={"path": "/"}), call("b"), finish=reason)
    for form in gemini_forms(response) if reason in types.FinishReason.__members__ else [response]:
        assert [code(one) for one in gemini.calls(form)] == [problem] * 2
        assert len(run(extended(form))) == 2


def test_every_reason_of_the_sdk_is_decided() -> None:
    """Of the reasons that the SDK knows, two let calls run."""
    free = [r.value for r in types.FinishReason if code(gemini.calls(candidate(call("a"), finish=r))[0]) is None]
    assert free == ["FINISH_REASON_UNSPECIFIED", "STOP"]


@pytest.mark.parametrize(
    "fragment", [{"willContinue": True}, {"partialArgs": [{"jsonPath": "$.x", "stringValue": "a"}]}]
)
def test_pieces_of_a_call(fragment: dict[str, Any]) -> None:
    """A call out of the middle of a stream is not whole, and goes back without the marks of one (LANES 4)."""
    part = call("a", args={"x": 1})
    part["functionCall"].update(fragment)
    for form in gemini_forms(candidate(part)):
        (one,) = gemini.calls(form)
        assert code(one) == "response_truncated"
        assert extended(form)[1]["parts"] == [call("a", args={"x": 1})]


BAD_ARGS = ['{"x": "cut', "nope", "[1]", "null", [1], 3, {"x": float("nan")}, {"x": object()}]


@pytest.mark.parametrize("args", BAD_ARGS, ids=str)
def test_arguments_that_are_no_object(args: Any) -> None:
    """They are announced with a problem, and go back as an object: the server would refuse the turn for ever (LANES 14.3)."""
    part = {"functionCall": {"id": "a", "name": "f", "args": args}, "thoughtSignature": SIGNATURE}
    (one,) = gemini.calls(candidate(part))
    assert code(one) == "malformed_arguments"
    sent = extended(candidate(part))[1]["parts"][0]
    assert list(sent["functionCall"]["args"]) == ["INVALID_JSON"]
    assert sent["thoughtSignature"] == SIGNATURE


@pytest.mark.parametrize("name", [None, "", " ", 7, "nö name", "1st", "n" * 700])
def test_names_that_no_tool_can_have(name: Any) -> None:
    """Such a call has no tool to run; its name is put right on both sides, and never empty (LANES 14.7)."""
    part = {"functionCall": {"id": "a", "name": name}}
    turn = extended(candidate(part))
    sent = turn[1]["parts"][0]["functionCall"]["name"]
    assert run(turn)[0]["name"] == sent
    types.FunctionDeclaration.model_validate({"name": sent})
    assert sent[0].isalpha() or sent[0] == "_"
    assert len(sent) <= 128


def test_names_that_gemini_knows_stay() -> None:
    """Dots and colons are letters of a name here, though the tool did not run."""
    turn = extended(candidate(call("a", "default_api:files.read")))
    assert turn[1]["parts"][0]["functionCall"]["name"] == run(turn)[0]["name"] == "default_api:files.read"


@pytest.mark.parametrize("hostile", ["x", 1, [], True])
def test_calls_that_are_no_objects(hostile: Any) -> None:
    """Whatever stands where a call should is announced, and answered."""
    turn = extended(candidate({"functionCall": hostile}))
    assert len(run(turn)) == 1


# --- turns


def test_every_form_gives_the_same_turn() -> None:
    """Signed and hosted parts go back to the byte, whatever they came in, and text or bytes alike (L6, LANES 14.12)."""
    hollow = {"text": ""}
    parts = [THOUGHT, TEXT, SEARCH, FOUND, CODE, RAN, call("a", args={"snake_case": 1}, thoughtSignature=SIGNATURE)]
    wire = candidate(*parts, call(None, "other"), hollow)
    before = copy.deepcopy(wire)
    turns = [extended(form, {"t": 1}, ValueError("no")) for form in gemini_forms(wire)]
    assert turns[0][1] == {"role": "model", "parts": [*parts, call(None, "other")]}
    sent = [types.Content.model_validate(turn[1]) for turn in turns]
    assert all(one == sent[0] for one in sent)
    assert sent[0].parts is not None
    assert sent[0].parts[6].thought_signature == b"\xfb\xff signed"
    assert [turn[2:] for turn in turns] == [turns[0][2:]] * len(turns)
    assert wire == before


def test_what_the_sdk_makes_of_a_turn_is_the_turn() -> None:
    """The SDK reads every turn as contents of its own, and dumps them as they were."""
    turn = extended(candidate(THOUGHT, call("a", args={"x": 1}, thoughtSignature=SIGNATURE), call(None)), {"t": 1}, "x")
    for content in turn:
        made = types.Content.model_validate(content)
        dumped = made.model_dump(mode="json", by_alias=True, exclude_none=True)
        assert types.Content.model_validate(dumped) == made


def test_a_signature_beside_empty_text_stays() -> None:
    """Gemini puts a signature beside an empty text at times; that part is not hollow."""
    signed = {"text": "", "thoughtSignature": SIGNATURE}
    assert extended(candidate(call("a"), signed))[1]["parts"] == [call("a"), signed]


def test_a_turn_without_anything_is_not_sent() -> None:
    """A content needs a part that holds something: `contents.parts must not be empty`."""
    history: list[Any] = [ASKED]
    gemini.extend(history, candidate({"text": ""}, {}, {"text": "", "thought": True}))
    assert history == [ASKED]


def test_results_stand_alone_in_one_content() -> None:
    """One content of the user's, one part a call, in the calls' order, and nothing else in it (P2, FIELD 61)."""
    response = candidate(call(None, args={"n": 1}), call("b"), call(None, args={"n": 3}))
    turn = extended(response, {"n": 1}, RuntimeError("no"), {"n": 3})
    assert len(turn) == 3
    assert turn[2] == {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "lookup", "response": {"n": 1}}},
            {
                "functionResponse": {
                    "id": "b",
                    "name": "lookup",
                    "response": {"error": {"code": "tool_error", "message": "no"}},
                }
            },
            {"functionResponse": {"name": "lookup", "response": {"n": 3}}},
        ],
    }


def test_order_is_the_announcements() -> None:
    """Whatever finishes first, the bytes are the same: without ids the order is all there is (C16, FIELD 61)."""
    calls = gemini.calls(candidate(call(None), call(None), call(None)))
    assert len({json.dumps(gemini.message(snapshot)) for snapshot in every_order(calls)}) == 1


def test_a_closed_call_says_what_is_known() -> None:
    """A synthetic outcome has its side effects' state under the lane's own error mark (P4)."""
    (first,) = run(extended(candidate(call("a"))))
    assert first["response"] == {
        "error": {"code": "timeout", "message": "Out of time.", "side_effect_state": "not_started"}
    }


@pytest.mark.parametrize("wire_id", [None, "", 0, ["a"]])
def test_a_call_without_an_id_is_answered_without(wire_id: Any) -> None:
    """Our own id never leaves: the call had none to pair with."""
    part = call("a")
    part["functionCall"]["id"] = wire_id
    turn = extended(candidate(part), "x")
    assert "id" not in turn[1]["parts"][0]["functionCall"]
    assert "id" not in run(turn)[0]
    assert "id" not in gemini.results(settled(gemini.calls(candidate(part)), "x"))[0]["functionResponse"]


def test_ids_that_can_not_stay_are_ours_on_both_sides() -> None:
    """Repeated, blank, `"null"` and overlong ids: each call has its own answer under one id (P6, FIELD 51)."""
    wire_ids = ["a", "a", " ", "null", "x" * 600, "é", "\ud800"]
    turn = extended(candidate(*[call(wire_id) for wire_id in wire_ids]), *range(7))
    announced = [part["functionCall"]["id"] for part in turn[1]["parts"]]
    assert [one["id"] for one in run(turn)] == announced
    assert len(set(announced)) == 7
    assert (announced[0], announced[5]) == ("a", "é")


def test_bare_results_mirror_the_provider() -> None:
    """Without `extend` the content has the provider's ids and names, so the results have them too."""
    calls = gemini.calls(candidate(call("a"), call("a", "näme"), call(None)))
    results = [part["functionResponse"] for part in gemini.results(settled(calls, 1, 2, 3))]
    assert [(one.get("id"), one["name"]) for one in results] == [("a", "lookup"), ("a", "näme"), (None, "lookup")]


def test_message_is_the_one_content() -> None:
    """`message` holds what `results` gives, for whoever keeps the model's content by himself."""
    snapshot = settled(gemini.calls(candidate(call("a"))), "x")
    assert gemini.message(snapshot) == {"role": "user", "parts": gemini.results(snapshot)}
    assert gemini.results(settled([])) == []


def test_ids_may_come_again_in_the_next_turn() -> None:
    """Gemini pairs a turn with the one before it, so an id may recur (FIELD 49, 53)."""
    history: list[Any] = [ASKED]
    for _ in range(3):
        extended(candidate(call("f:0")), "x", history=history)
    assert json.dumps(history).count('"f:0"') == 6


def test_a_conversation_of_the_sdks_objects() -> None:
    """The list may hold the SDK's contents, and even bare text; it is read and left alone."""
    history: list[Any] = ["Hi.", types.Content(role="user", parts=[types.Part(text="Hm.")])]
    response = types.GenerateContentResponse.model_validate(candidate(call("a"), call(None)))
    gemini.extend(history, response, settled(gemini.calls(response), 1, 2))
    history[2:] = [types.Content.model_validate(content) for content in history[2:]]
    gemini.extend(history, candidate(TEXT))
    assert len(history) == 5


UNANSWERED: dict[str, list[Any]] = {
    "nothing": [],
    "another id": [{"functionResponse": {"id": "z", "name": "lookup", "response": {}}}],
    "two other ids": [{"functionResponse": {"id": other, "name": "lookup", "response": {}}} for other in ("y", "z")],
    "too few": [{"functionResponse": {"name": "lookup", "response": {}}}],
    "another name": [{"functionResponse": {"name": n, "response": {}}} for n in ("lookup", "other")],
}


@pytest.mark.parametrize("parts", UNANSWERED.values(), ids=UNANSWERED)
@pytest.mark.parametrize("as_objects", [False, True])
def test_no_turn_goes_behind_an_open_one(parts: list[Any], as_objects: bool) -> None:
    """Behind another turn no server takes the missing results any more."""
    history: list[Any] = [ASKED, {"role": "model", "parts": [call("a"), call(None)]}]
    history += [{"role": "user", "parts": parts}] if parts else []
    if as_objects:
        history = [types.Content.model_validate(content) for content in history]
    before = list(history)
    with pytest.raises(InvalidInputError, match="calls without a result"):
        gemini.extend(history, candidate(TEXT))
    assert history == before


def test_results_in_snake_case_count() -> None:
    """A conversation may hold what `model_dump()` made of it."""
    response = {"id": "a", "name": "lookup", "response": {}}
    history: list[Any] = [
        ASKED,
        {"role": "model", "parts": [{"function_call": {"id": "a", "name": "lookup"}}]},
        {"role": "user", "parts": [{"function_response": response}]},
    ]
    gemini.extend(history, candidate(TEXT))
    assert history[-1] == {"role": "model", "parts": [TEXT]}


def test_errors_leave_the_list_as_it_was() -> None:
    """Everything is computed before the list is touched (P2)."""
    response = candidate(call("a"))
    calls = gemini.calls(response)
    opened = ToolCallClosure()
    opened.begin(calls)
    messages: list[Any] = [ASKED]
    bad: list[tuple[Any, Any, type[ToolbatchError], str]] = [
        (response, opened.snapshot(), InvalidInputError, "close or seal"),
        (response, None, InvalidInputError, "no snapshot"),
        (None, settled(calls), InvalidTypeError, "response must be"),
        (response, settled([ToolCall("z", "lookup")]), InvalidInputError, "another response"),
        (candidate(call("a"), {"odd": float("nan")}), settled(calls), InvalidInputError, "nan"),
        (candidate(call("a"), {"odd": object}), settled(calls), InvalidTypeError, "no JSON form"),
    ]
    for given, snapshot, error, match in bad:
        with pytest.raises(error, match=match):
            gemini.extend(messages, given, snapshot)
    with pytest.raises(InvalidInputError, match="media must be one of nested, referenced, after"):
        gemini.extend(messages, response, settled(calls), media="beside")  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="messages must be a list"):
        gemini.extend((), response, settled(calls))  # type: ignore[arg-type]
    assert messages == [ASKED]
    assert messages[0] is ASKED


def test_objects_of_no_sdk() -> None:
    """Plain objects with the SDK's attributes are read as well: some gateways have classes of their own."""
    content = SimpleNamespace(
        role="model", parts=[SimpleNamespace(function_call=SimpleNamespace(name="f", args={"x": 1}))]
    )
    response = SimpleNamespace(candidates=[SimpleNamespace(content=content, finish_reason="STOP")])
    (one,) = gemini.calls(response)
    assert (one.name, one.arguments) == ("f", {"x": 1})
    assert extended(response, "x")[1]["parts"] == [{"functionCall": {"name": "f", "args": {"x": 1}}}]


def test_late_notes_are_a_content_of_the_users() -> None:
    """Late results are new content, behind the turn that was sent (B20)."""
    assert gemini.notes([]) == []
    (note,) = gemini.notes([LateNote(call_id="a", name="lookup", generation=1, content="found it")])
    assert note["role"] == "user"
    assert "found it" in note["parts"][0]["text"]
    assert gemini_refused([*extended(candidate(call("a")), "x"), note]) is None
