"""The law rule by rule, in short lists: attribution, moving, folding, closes, run ownership, open turns, context elsewhere."""

import copy
from typing import Any

import pytest

from tests.transcript.kit import Json, frozen
from toolbatch import transcript
from toolbatch.core import InvalidInputError, InvalidTypeError
from toolbatch.transcript import INTERRUPTED_TEXT, LANES, SECOND_RESULT_TEXT, LaneName, Repair

FOLD = f"\n\n{SECOND_RESULT_TEXT}\n\n"


def user(text: str = "Hi.") -> Json:
    return {"role": "user", "content": text}


def calls(*ids: Any, **more: Any) -> Json:
    entries = [{"id": i, "type": "function", "function": {"name": f"tool_{i}", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": entries, **more}


def result(call_id: Any, content: Any = "ok") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def close(call_id: str) -> Json:
    return result(call_id, INTERRUPTED_TEXT)


def chat(*messages: Json, **options: Any) -> list[Any]:
    """The repaired list of a chat."""
    return transcript.repair(list(messages), "openai_chat", **options).messages


def forms(*messages: Json) -> list[str]:
    """What breaks the law in a chat."""
    return [violation.form for violation in transcript.check(list(messages), "openai_chat")]


# -- attribution ------------------------------------------------------------------------------------------------------------


def test_a_result_belongs_to_the_nearest_earlier_turn_with_its_id() -> None:
    """A result behind the second use is the second's; the first use is closed, never handed the later success (L3)."""
    turn, again = calls("a"), calls("a")
    assert chat(user(), turn, again, result("a", "x")) == [user(), turn, close("a"), again, result("a", "x")]


def test_a_result_between_two_uses_is_the_first_ones() -> None:
    """It moves to the first use, although the id comes again later (L3, L7)."""
    listed = [calls("a"), user("wait"), result("a", "1"), calls("a"), result("a", "2")]
    assert chat(*listed) == [listed[0], listed[2], listed[1], *listed[3:]]


def test_a_result_in_front_of_its_call_answers_nothing() -> None:
    """Recorded ahead of its call, it is left out, and the call is closed (L2)."""
    assert chat(user(), result("a"), calls("a")) == [user(), calls("a"), close("a")]
    assert forms(user(), result("a"), calls("a")) == ["orphan_result", "missing_result"]


def test_a_late_result_moves_across_whole_turns() -> None:
    """Past other turns with calls and answers of their own, to right behind its call, as the same object (L2, L4)."""
    late = result("a", "late")
    listed = [user(), calls("a"), user("next"), calls("b"), result("b"), user("and"), late]
    view = chat(*listed)
    assert view == [listed[0], listed[1], late, *listed[2:6]]
    assert view[2] is late


def test_a_result_in_the_run_of_another_turn_is_late() -> None:
    """It stands among results, but not among those of its own turn (L2)."""
    listed = [calls("a"), user(), calls("b"), result("a"), result("b")]
    assert forms(*listed) == ["late_result"]
    assert chat(*listed) == [calls("a"), result("a"), user(), calls("b"), result("b")]


# -- several results --------------------------------------------------------------------------------------------------------


def test_a_recorded_result_voids_a_close() -> None:
    """Wherever they stand: a close says only that nothing was recorded, so beside a result it says nothing (L2)."""
    assert chat(calls("a"), close("a"), result("a", "x")) == [calls("a"), result("a", "x")]
    assert chat(calls("a"), result("a", "x"), close("a")) == [calls("a"), result("a", "x")]
    assert chat(calls("a"), close("a"), user(), result("a", "x")) == [calls("a"), result("a", "x"), user()]


def test_a_close_that_is_voided_is_reported_by_id() -> None:
    """A result never disappears without its repair saying which; and a void close is no loss (L5)."""
    view = transcript.repair([calls("a"), close("a"), user(), result("a", "x")], "openai_chat")
    assert [(repair.form, repair.call_ids, repair.action) for repair in view.repairs] == [
        ("late_result", ("a",), "moved"),
        ("duplicate_result", ("a",), "voided"),
    ]
    both = [calls("a", "b"), close("a"), result("a"), result("b", "1"), result("b", "2")]
    assert [(repair.call_ids, repair.action) for repair in transcript.repair(both, "openai_chat").repairs] == [
        (("a",), "voided"),
        (("b",), "folded"),
    ]
    assert not view.lossy


def test_three_results_are_folded_in_their_order() -> None:
    """Texts are joined, and rich content makes a list of parts (L2)."""
    assert chat(calls("a"), result("a", "1"), user(), result("a", "2"), result("a", "3"))[1] == result(
        "a", f"1{FOLD}2{FOLD}3"
    )
    part = {"type": "text", "text": "2"}
    folded = [{"type": "text", "text": "1"}, {"type": "text", "text": SECOND_RESULT_TEXT}, part]
    assert chat(calls("a"), result("a", "1"), result("a", [part])) == [calls("a"), result("a", folded)]


def test_a_mark_that_only_some_results_carry_is_told_in_the_text() -> None:
    """One mark can't say of two results that one failed: the fold is no error, and its text says which is (L2)."""
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
    failed = {"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True}
    fine = {"type": "tool_result", "tool_use_id": "a", "content": "yes"}
    (block,) = transcript.repair([use, {"role": "user", "content": [failed, fine]}], "anthropic").messages[1]["content"]
    assert block["is_error"] is False
    assert block["content"] == "no\n\n[another result was recorded for this same call, as a success:]\n\nyes"
    both = transcript.repair([use, {"role": "user", "content": [failed, failed]}], "anthropic").messages[1]["content"]
    assert both == [{**failed, "content": f"no{FOLD}no"}]


def test_a_repeated_call_keeps_the_first_and_every_result() -> None:
    """The second call with the id is left out, which is a loss; the results of both are folded (L2, L5)."""
    view = transcript.repair([calls("a", "a"), result("a", "1"), result("a", "2")], "openai_chat")
    assert view.messages == [calls("a"), result("a", f"1{FOLD}2")]
    assert view.lossy


@pytest.mark.parametrize(("first", "second", "folded"), [
    ({"output": "1"}, {"output": "2"}, {"output": f"1{FOLD}2"}),
    ({"error": "1"}, {"error": "2"}, {"error": f"1{FOLD}2"}),
    ({"output": 1}, {"output": [2]}, {"output": [1, SECOND_RESULT_TEXT, [2]]}),
    ({"output": "1"}, {"error": "2"}, {"output": ["1", SECOND_RESULT_TEXT, {"error": "2"}]}),
    ({"a": 1}, {"a": 2}, {"output": [{"a": 1}, SECOND_RESULT_TEXT, {"a": 2}]}),
])  # fmt: skip
def test_gemini_folds_objects(first: Json, second: Json, folded: Json) -> None:
    """A response has to stay an object: texts under one key are joined, all else becomes a list under `output` (L6)."""
    call = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
    answers = [{"functionResponse": {"name": "f", "response": response}} for response in (first, second)]
    view = transcript.repair([call, {"role": "user", "parts": answers}], "gemini").messages
    assert view[1] == {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": folded}}]}


# -- lanes ------------------------------------------------------------------------------------------------------------------


def test_gemini_pairs_without_ids_by_name_and_order() -> None:
    """Three calls of two tools: each response answers the first call of its name that waits (FIELD 61)."""
    model = {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}} for name in ("f", "g", "f")]}
    answers = [
        {"functionResponse": {"name": name, "response": {"output": name + x}}} for name, x in (("g", ""), ("f", "1"))
    ]
    view = transcript.repair([model, {"role": "user", "parts": answers}], "gemini")
    responses = [part["functionResponse"] for part in view.messages[1]["parts"]]
    assert [one["response"] for one in responses] == [{"output": "f1"}, {"output": "g"}, {"error": INTERRUPTED_TEXT}]
    assert "id" not in responses[2]
    assert view.repairs[0].call_ids == ("f",)


def test_gemini_takes_a_response_whose_id_was_dropped() -> None:
    """The SDK's own helper loses the id (LANES 4): a response without one answers a call that has one."""
    model = {"role": "model", "parts": [{"functionCall": {"name": "f", "id": "c1", "args": {}}}]}
    answer = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "x"}}}]}
    assert transcript.check([model, answer], "gemini") == []


def test_snake_case_and_camel_case_are_both_gemini() -> None:
    """What `model_dump()` of the SDK writes is read, and closed, in its own style (LANES 4)."""
    model = {"role": "model", "parts": [{"function_call": {"name": "f", "id": "c1", "args": {}}}]}
    closed = {"function_response": {"name": "f", "response": {"error": INTERRUPTED_TEXT}, "id": "c1"}}
    assert transcript.repair([model], "gemini").messages == [model, {"role": "user", "parts": [closed]}]


def test_bedrock_keeps_a_marker_behind_its_block() -> None:
    """A cachePoint is no content, and goes where the block in front of it goes (case 64)."""
    point = {"cachePoint": {"type": "default"}}
    use = {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}
    message = {"role": "assistant", "content": [use, point, {"text": "x"}]}
    answer = {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "ok"}]}}]}
    assert transcript.repair([message, answer], "bedrock").messages[0]["content"] == [{"text": "x"}, use, point]


def test_bedrock_lets_a_marker_stand_among_results() -> None:
    """It is no content there either: the results behind it still lead the message (case 64)."""
    point = {"cachePoint": {"type": "default"}}
    uses = [{"toolUse": {"toolUseId": i, "name": "f", "input": {}}} for i in "ab"]
    done = [{"toolResult": {"toolUseId": i, "content": [{"text": "ok"}]}} for i in "ab"]
    listed = [{"role": "assistant", "content": uses}, {"role": "user", "content": [done[0], point, done[1]]}]
    assert transcript.check(listed, "bedrock") == []


def test_anthropics_close_names_the_toolset_of_its_call() -> None:
    """The result of a toolset's member must name the same toolset: "the API rejects a mismatch" (LANES 3)."""
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}, "toolset_name": "files"}
    view = transcript.repair([user(), {"role": "assistant", "content": [use]}], "anthropic").messages
    assert view[2]["content"][0]["toolset_name"] == "files"


@pytest.mark.parametrize(("lane", "thought", "calls_of", "speech"), [
    ("bedrock", {"reasoningContent": {"reasoningText": {"text": "two", "signature": "s"}}},
     lambda i: {"toolUse": {"toolUseId": i, "name": "f", "input": {}}}, {"text": "x"}),
    ("gemini", {"text": "two", "thought": True}, lambda i: {"functionCall": {"id": i, "name": "f"}}, {"text": "x"}),
    ("gemini", {"text": "", "thoughtSignature": "c2ln"}, lambda i: {"functionCall": {"id": i, "name": "f"}}, {"text": "x"}),
    ("langchain", {"type": "thinking", "thinking": "two", "signature": "s"},
     lambda i: {"type": "tool_use", "id": i, "name": "f", "input": {}}, {"type": "text", "text": "x"}),
])  # fmt: skip
def test_thinking_divides_calls_in_every_lane(lane: LaneName, thought: Json, calls_of: Any, speech: Json) -> None:
    """A signed block between two calls stays between them; text moves within its segment only (case 51, L6)."""
    entries = [{"id": i, "name": "f", "args": {}} for i in "ab"] if lane == "langchain" else None

    def message(*blocks: Json) -> Json:
        if entries is not None:
            return {"type": "ai", "content": list(blocks), "tool_calls": entries}
        return (
            {"role": "model", "parts": list(blocks)}
            if lane == "gemini"
            else {"role": "assistant", "content": list(blocks)}
        )

    def untidy(listed: list[Json]) -> bool:
        return "trailing_text" in [violation.form for violation in transcript.check(listed, lane)]

    one, two = calls_of("a"), calls_of("b")
    assert not untidy([message(one, thought, two)])
    assert not untidy([message(one, thought, speech, two)])
    assert transcript.repair([message(one, speech, thought, two)], lane).messages[0] == message(
        speech, one, thought, two
    )


def test_gemini_does_not_mix_responses_with_text() -> None:
    """A content that is written anew holds responses only, and what else it held follows in one of its own (LANES 4)."""
    model = {"role": "model", "parts": [{"functionCall": {"id": "a", "name": "f"}}]}
    answer = {"functionResponse": {"id": "a", "name": "f", "response": {}}}
    orphan = {"functionResponse": {"id": "z", "name": "g", "response": {}}}
    mixed = {"role": "user", "parts": [answer, {"text": "x"}]}
    assert transcript.check([model, mixed], "gemini") == []
    view = transcript.repair([model, {"role": "user", "parts": [answer, orphan, {"text": "x"}]}], "gemini").messages
    assert view == [model, {"role": "user", "parts": [answer]}, {"role": "user", "parts": [{"text": "x"}]}]


@pytest.mark.parametrize(("lane", "call", "answer"), [
    ("anthropic", {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
     {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}),
    ("gemini", {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
     {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}),
])  # fmt: skip
def test_a_message_that_moves_as_a_whole_is_the_same_object(lane: LaneName, call: Json, answer: Json) -> None:
    """A user message in which only the late results stand is moved itself; where others follow, a copy keeps its members (L4)."""
    spoken = {"role": "model", "parts": [{"text": "x"}]} if lane == "gemini" else {"role": "assistant", "content": "x"}
    view = transcript.repair([call, spoken, answer], lane).messages
    assert view == [call, answer, spoken]
    assert view[1] is answer


def test_responses_with_reasoning_are_not_put_in_order() -> None:
    """Items that the model made are never moved against each other once one of them is signed (case 47, L6)."""
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    note = {"type": "message", "role": "assistant", "content": "x"}
    output = {"type": "function_call_output", "call_id": "a", "output": "ok"}
    assert transcript.check([user(), reasoning, call, note, output], "openai_responses") == []
    assert transcript.repair([user(), reasoning, call, note], "openai_responses").messages[3:5] == [
        note,
        {"type": "function_call_output", "call_id": "a", "output": INTERRUPTED_TEXT},
    ]


def test_an_asynchronous_call_may_wait() -> None:
    """It may be answered in a later request, wherever that is (LANES 2); two answers are folded where the first stands."""
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "async": True}
    output = {"type": "function_call_output", "call_id": "a", "output": "1"}
    assert transcript.check([user(), call, user(), output], "openai_responses") == []
    assert transcript.check([user(), call, user()], "openai_responses") == []
    folded = transcript.repair([user(), call, user(), output, user(), output], "openai_responses").messages
    assert folded == [user(), call, user(), {**output, "output": f"1{FOLD}1"}, user()]


@pytest.mark.parametrize("kind", ["function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call",
                                  "apply_patch_call", "tool_search_call"])  # fmt: skip
def test_every_kind_of_call_is_closed_in_its_own_shape(kind: str) -> None:
    """The close is lawful, the strict provider takes it, and a recorded result voids it like any other (L2, L6)."""
    from toolbatch.testing import check_responses

    fields: dict[str, Json] = {
        "function_call": {"name": "f", "arguments": "{}"},
        "custom_tool_call": {"name": "f", "input": "x"},
        "tool_search_call": {"execution": "client"},
    }
    call = {"type": kind, "call_id": "a", **fields.get(kind, {})}
    view = transcript.repair([user(), call], "openai_responses").messages
    assert check_responses(view) is None
    assert transcript.check(view, "openai_responses") == []
    if kind != "tool_search_call":
        real = {**view[2], "output": [] if kind == "shell_call" else {} if kind == "computer_call" else "real"}
        assert transcript.repair([*view, user(), real], "openai_responses").messages == [user(), call, real, user()]


def test_a_programs_call_is_closed_for_its_program() -> None:
    """The caller is named again, and the output is an object, which the program can read (LANES 2)."""
    caller = {"type": "program", "caller_id": "prg_1"}
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "caller": caller}
    view = transcript.repair([user(), call], "openai_responses").messages
    assert view[2]["caller"] == caller
    assert view[2]["output"].startswith('{"error":"')
    real = {**view[2], "output": "1"}
    assert transcript.repair([*view, real], "openai_responses").messages == [user(), call, real]


def test_calls_come_last_where_the_last_reasoning_has_left_with_a_repeated_call() -> None:
    """L2, L4: what is left holds no barrier any more, so it is put in order at once, not the next time."""
    first, second = ({"type": "function_call", "call_id": i, "name": "f", "arguments": "{}"} for i in "ab")
    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hm.", "annotations": []}],
    }
    outputs = [{"type": "function_call_output", "call_id": i, "output": "ok"} for i in "ab"]
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    listed = [user(), first, said, second, reasoning, dict(second), *outputs]
    view = transcript.repair(listed, "openai_responses").messages
    assert view == [user(), said, first, second, *outputs]
    assert transcript.repair(view, "openai_responses").messages is view


def test_a_reasoning_item_leaves_with_the_repeated_call_that_it_led_to() -> None:
    """Alone it would be refused: it was "provided without its required following item" (LANES 2)."""
    from toolbatch.testing import check_responses

    reasoning = [{"type": "reasoning", "id": f"rs_{n}", "summary": []} for n in (1, 2)]
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "a", "output": "ok"}
    view = transcript.repair([user(), reasoning[0], call, reasoning[1], call, output], "openai_responses")
    assert view.messages == [user(), reasoning[0], call, output]
    assert view.lossy
    assert check_responses(view.messages) is None


def test_langchain_drops_a_repeated_call_from_both_places() -> None:
    """The call stands in the content and in `tool_calls`; the repeated one leaves both (case 56)."""
    block = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    call = {"name": "f", "args": {}, "id": "a", "type": "tool_call"}
    message = {
        "type": "ai",
        "content": [block, block],
        "tool_calls": [call, call],
        "invalid_tool_calls": [{**call, "args": "{"}],
    }
    answer = {"type": "tool", "content": "ok", "tool_call_id": "a"}
    view = transcript.repair([message, answer], "langchain").messages
    assert view == [{"type": "ai", "content": [block], "tool_calls": [call], "invalid_tool_calls": []}, answer]


def test_a_call_without_an_id_is_paired_by_order() -> None:
    """Gateways send empty ids: two such calls are two calls, and their results answer them in order (LANES 14.6)."""
    assert forms(calls("", ""), result(""), result("")) == []
    assert forms(calls("", ""), result("")) == ["missing_result"]


def test_a_legacy_call_is_closed_in_its_own_shape() -> None:
    """`function_call` has no ids: its close is a `function` message with its name (case 60)."""
    message = {"role": "assistant", "content": None, "function_call": {"name": "fact", "arguments": "{}"}}
    assert chat(message, user()) == [message, {"role": "function", "name": "fact", "content": INTERRUPTED_TEXT}, user()]


# -- run ownership, open turns, context elsewhere ----------------------------------------------------------------------------


def test_missing_results_of_earlier_runs_are_marked() -> None:
    """By the message's identity, not by its place or its value; late results are not marked (L5)."""
    before, here = calls("a"), calls("a")
    view = transcript.repair([user(), before, user(), here], "openai_chat", prior_messages=[before])
    assert [(repair.form, repair.before_run) for repair in view.repairs] == [
        ("missing_result", True),
        ("missing_result", False),
    ]
    unmarked = transcript.repair([user(), before, user(), here], "openai_chat", prior_messages=[copy.deepcopy(before)])
    assert [repair.before_run for repair in unmarked.repairs] == [False, False]
    assert unmarked.messages == view.messages


def test_one_turn_of_items_can_belong_to_two_runs() -> None:
    """In Responses the items of calls are the messages: those that stood before are reported apart (L5)."""
    items = [{"type": "function_call", "call_id": i, "name": "f", "arguments": "{}"} for i in "ab"]
    view = transcript.repair(items, "openai_responses", prior_messages=items[:1])
    assert [(repair.call_ids, repair.before_run) for repair in view.repairs] == [(("a",), True), (("b",), False)]


@pytest.mark.parametrize("tail", [[], [result("a")]])
def test_an_open_last_turn_can_be_left_alone(tail: list[Json]) -> None:
    """While nothing but results stands behind it, it can still be executed or approved (L7, case 2)."""
    listed = [user(), calls("a", "b"), *tail]
    assert transcript.repair(listed, "openai_chat", repair_last=False).messages is listed
    assert transcript.check(listed, "openai_chat", repair_last=False) == []
    assert transcript.check(listed, "openai_chat") != []


def test_a_turn_that_the_user_spoke_behind_is_not_open() -> None:
    """It can't be executed any more, so it is closed all the same; and an open one still has its other faults mended (L7)."""
    assert chat(calls("a"), user(), repair_last=False) == [calls("a"), close("a"), user()]
    assert chat(calls("a", "b"), result("b", "1"), result("b", "2"), repair_last=False) == [
        calls("a", "b"),
        result("b", f"1{FOLD}2"),
    ]


def test_an_earlier_open_turn_is_closed() -> None:
    """Only the last turn is left alone (L7)."""
    assert chat(calls("a"), calls("b"), repair_last=False) == [calls("a"), close("a"), calls("b")]


def test_orphans_stay_where_context_is_on_the_server() -> None:
    """With `previous_response_id` the call lives there; the caller says so (L7, case 16)."""
    output = {"type": "function_call_output", "call_id": "gone", "output": "x"}
    listed = [output, user()]
    assert transcript.repair(listed, "openai_responses", server_context=True).messages is listed
    assert transcript.repair(listed, "openai_responses").messages == [user()]
    named = {"type": "function_call_output", "name": "timer", "output": "x"}  # an output that reports for no call
    assert transcript.check([named, user()], "openai_responses") == []


# -- messages as objects ----------------------------------------------------------------------------------------------------


def test_sdk_objects_are_read_and_kept() -> None:
    """An SDK's message among dicts: read by its attributes, kept by identity, copied as what it is (L4)."""
    from openai.types.chat import ChatCompletionMessage

    message = ChatCompletionMessage.model_validate(calls("a", "a"))
    view = transcript.repair([user(), message, result("a")], "openai_chat").messages
    assert isinstance(view[1], ChatCompletionMessage)
    assert [call.id for call in view[1].tool_calls or []] == ["a"]
    lawful = [user(), ChatCompletionMessage.model_validate(calls("a")), result("a")]
    assert transcript.repair(lawful, "openai_chat").messages is lawful


def test_content_blocks_may_be_objects() -> None:
    """`{"role": "assistant", "content": response.content}` is what most people store (LANES 14.1)."""
    from anthropic.types import TextBlock, ToolUseBlock

    use = ToolUseBlock(type="tool_use", id="a", name="f", input={})
    text = TextBlock(type="text", text="x")
    view = transcript.repair([{"role": "assistant", "content": [use, text]}, user("y")], "anthropic").messages
    assert view[0]["content"] == [text, use]
    assert view[1]["content"][0]["tool_use_id"] == "a"


# -- mistakes ---------------------------------------------------------------------------------------------------------------


def test_an_unknown_lane_is_named() -> None:
    """The error names the lane that was given and those that there are."""
    for lane in ("openai", None, ["anthropic"]):
        with pytest.raises(InvalidInputError, match=r"openai_chat.*not"):
            transcript.check([], lane)  # type: ignore[arg-type]


@pytest.mark.parametrize("messages", [None, "text", {}, (), 1, iter([])])
def test_messages_must_be_a_list(messages: Any) -> None:
    """Nothing else can come back as the same object; the error names what was given."""
    with pytest.raises(InvalidTypeError, match="messages must be a list of messages, not"):
        transcript.repair(messages, "openai_chat")


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("entry", [None, "text", 3, ["x"], b"x"])
def test_a_message_must_be_a_mapping_or_an_object(lane: LaneName, entry: Any) -> None:
    """The error names the place and the value, and nothing is lost."""
    listed = [{"role": "user", "type": "human", "content": "x"}, entry]
    before = frozen(listed)
    with pytest.raises(InvalidTypeError, match=r"messages\[1\] must be a mapping"):
        transcript.repair(listed, lane)
    assert listed == before


@pytest.mark.parametrize("sent", [-1, 3, True, None, "1"])
def test_sent_must_be_a_number_of_messages(sent: Any) -> None:
    """The error names the value and what it may be."""
    with pytest.raises(InvalidInputError, match="between 0 and the 2 messages"):
        transcript.repair([user(), user()], "openai_chat", sent=sent)


def test_repairs_and_violations_read_as_sentences() -> None:
    """Each names the message, the call and what was done."""
    listed = [user(), calls("a"), user(), result("b")]
    assert [str(violation) for violation in transcript.check(listed, "openai_chat")] == [
        "messages[1]: a has no result",
        "messages[3]: the result of b answers no earlier call",
    ]
    repairs = transcript.repair(listed, "openai_chat").repairs
    assert [str(repair) for repair in repairs] == [
        "messages[1]: a has no result: closed as interrupted",
        "messages[3]: the result of b answers no earlier call: left out",
    ]
    assert isinstance(repairs[0], Repair)
    assert [repair.action for repair in repairs] == ["closed", "left_out"]


@pytest.mark.parametrize("lane", LANES)
def test_an_empty_list_is_lawful(lane: LaneName) -> None:
    """Nothing was said, nothing is wrong."""
    empty: list[Any] = []
    assert transcript.repair(empty, lane).messages is empty
