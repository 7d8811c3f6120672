"""What is special about each lane's stream: what its events leave out, say twice, or say of the server's own doings."""

import base64
import copy
from typing import Any

import pytest
from google.genai import types
from mistralai.client.models import ConversationEvents

from tests.providers.streams import Called, Cut, Json, Said, Turn, responses_events, stream
from tests.providers.support import settled
from toolbatch.core import InvalidInputError
from toolbatch.providers import anthropic, bedrock, cohere, gemini, mistral, ollama, openai_responses

X = '{"x":1}'


def fed(module: Any, *events: Any) -> tuple[Any, list[str]]:
    """A collector that was fed with these events, and the names of the calls that it returned."""
    collector = module.StreamCollector()
    return collector, [call.name for event in copy.deepcopy(events) for call in collector.add(event)]


def codes(collector: Any) -> list[str | None]:
    return [call.problem and call.problem.code for call in collector.calls()]


def turn_of(module: Any, collector: Any) -> list[Any]:
    """What `extend` writes of the collected turn."""
    messages: list[Any] = []
    module.extend(messages, collector.response(), settled(collector.calls(), lambda _: "closed"))
    return messages


# -- Responses --------------------------------------------------------------------------------------------------------


def created(**more: Any) -> Json:
    return {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": [], **more}}


def completed(*output: Any, status: str = "completed", **more: Any) -> Json:
    response = {"id": "resp_1", "status": status, "output": list(output), **more}
    return {"type": f"response.{status}", "response": response}


def call(call_id: str, name: Any = "f", arguments: Any = X, **more: Any) -> Json:
    item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": arguments}
    return {**item, "status": "completed", **more}


def item(kind: str, index: int, said: Any) -> Json:
    return {"type": f"response.output_item.{kind}", "output_index": index, "item": said}


def opened(said: Json) -> Json:
    return {**said, "arguments": "", "status": "in_progress"}


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}


def test_responses_an_item_that_is_done_is_a_call_that_is_over() -> None:
    """Not the event that ends its arguments, which has neither name nor `call_id`; and not before what stands before it."""
    args = {"type": "response.function_call_arguments.done", "item_id": "fc_a", "output_index": 0, "arguments": X}
    collector, early = fed(openai_responses, created(), item("added", 0, opened(call("a"))), args)
    assert (early, codes(collector)) == ([], ["response_truncated"])
    assert collector.calls()[0].arguments == {"x": 1}
    assert [one.id for one in collector.add(item("done", 0, call("a")))] == ["a"]
    collector, early = fed(openai_responses, created(), item("added", 0, REASONING), item("done", 1, call("b")))
    assert early == []
    assert [one.id for one in collector.add(item("done", 0, REASONING))] == ["b"]


@pytest.mark.parametrize("output", [[], None], ids=["empty", "none"])
def test_responses_the_last_event_may_have_no_output(output: Any) -> None:
    """Some servers leave it empty: then the stream's items are the response, in their places."""
    end = completed()
    end["response"]["output"] = output
    events = [created(), item("done", 1, call("b")), item("done", 0, REASONING), end]
    collector, early = fed(openai_responses, *events)
    assert (early, codes(collector), collector.finished) == (["f"], [None], True)
    assert [one["type"] for one in collector.response()["output"]] == ["reasoning", "function_call"]
    collector, _ = fed(openai_responses, created(), item("done", 0, REASONING), end)
    assert collector.response()["output"] == [REASONING]


def test_responses_the_last_event_is_the_response_where_nothing_was_streamed() -> None:
    """A reader that came late gets it whole; nothing is early before the end."""
    collector, early = fed(openai_responses, item("done", 3, call("b")), completed(REASONING, call("a"), call("b")))
    assert early == ["f", "f"]
    assert [one.id for one in collector.calls()] == ["a", "b"]


def test_responses_a_call_that_was_streamed_is_never_lost() -> None:
    """The last event lacks it, or says it otherwise: it was returned, so it stays, beside what else there is."""
    for last in (call("b"), call("a", arguments='{"x":2}')):
        collector, early = fed(openai_responses, created(), item("done", 0, call("a")), completed(last, call("c")))
        assert early[0] == "f"
        ids = [one.id for one in collector.calls()]
        assert ids == (["a", "b", "c"] if last["call_id"] == "b" else ["a", "c"])
        assert collector.calls()[0].arguments == {"x": 1}


def test_responses_a_call_that_was_returned_keeps_its_id_and_its_arguments() -> None:
    """Whatever the last event puts before it, or says of it again; and what it lacks of others is there too."""
    again = item("done", 0, call("", arguments='{"x":2}'))
    collector, early = fed(
        openai_responses, created(), item("done", 0, call("")), again, completed(call("z"), call(""))
    )
    assert early == ["f", "f"]
    assert [one.arguments for one in collector.calls()] == [{"x": 1}] * 2
    assert [one.id for one in collector.calls()] == list(collector._announced)
    collector, early = fed(openai_responses, created(), item("done", 3, call("b")), completed(call("a")))
    assert [one.id for one in collector.calls()] == ["b", "a"]


def test_responses_places_may_be_skipped_doubled_or_missing() -> None:
    """An item at a taken place goes to the end; one said twice is one; one without a place comes behind the others."""
    events = [created(), item("added", 0, None), item("added", 0, opened(call("a"))), item("done", 0, call("a"))]
    events += [item("done", 0, call("a")), item("added", 0, opened(call("b"))), item("done", 0, call("c", "g"))]
    loose = {"type": "response.output_item.done", "item": call("d", "h")}
    collector, early = fed(openai_responses, *events, loose, completed())
    assert [one.id for one in collector.calls()] == ["a", "b", "c", "d"]
    assert codes(collector) == [None, "response_truncated", None, None]  # `b` was never done
    assert early == ["f", "g", "h"]
    odd = [item("done", 0, {"id": "x"}), item("done", -1, call("z")), item("done", 2, call("a"))]
    collector, early = fed(openai_responses, created(), *odd, completed({}))
    assert [one.id for one in collector.calls()] == ["z", "a"]


def test_responses_a_call_whose_start_is_lost_is_announced() -> None:
    """It has no name, and is answered."""
    delta = {"type": "response.function_call_arguments.delta", "item_id": "fc_a", "output_index": 0, "delta": X}
    collector, _ = fed(openai_responses, created(), delta, delta | {"item_id": None, "delta": " "})
    assert [(one.name, one.arguments) for one in collector.calls()] == [("unnamed_tool", {"x": 1})]
    assert codes(collector) == ["response_truncated"]
    custom = {"type": "response.custom_tool_call_input.delta", "item_id": "ctc_a", "output_index": 0, "delta": "select"}
    collector, _ = fed(openai_responses, custom)
    assert [(one.kind, one.arguments) for one in collector.calls()] == [("custom", {"input": "select"})]


def test_responses_an_id_of_ours_does_not_change_when_the_response_gets_its_own() -> None:
    """A call without an id was returned before the response had one: what its id was made from stays."""
    collector, early = fed(openai_responses, item("done", 0, call("")), created(), completed(call("")))
    assert early == ["f"]
    assert collector.calls() == list(collector._announced.values())
    assert "id" not in collector.response()


def test_responses_a_server_may_begin_with_output() -> None:
    """Items in the first event are there; their deltas may have neither place nor id."""
    begun = {"type": "message", "id": "msg_1", "role": "assistant", "content": [], "status": "in_progress"}
    text = {"type": "response.output_text.delta", "delta": "Hm."}
    collector, _ = fed(openai_responses, created(output=[begun]), created(output=[begun]), text)
    (one,) = collector.response()["output"]
    assert one["content"] == [{"type": "output_text", "text": "Hm.", "annotations": []}]
    late = [item("done", 0, {**begun, "status": "completed"}), text, text | {"type": "response.refusal.delta"}]
    done = {"type": "response.function_call_arguments.delta", "item_id": "fc_a", "delta": "more"}
    collector, early = fed(openai_responses, created(), *late, item("done", 1, call("a")), done, completed())
    assert (early, codes(collector)) == (["f"], [None])
    assert collector.response()["output"][0]["content"] == []


@pytest.mark.parametrize("status", ["incomplete", "failed", "cancelled"])
def test_responses_that_did_not_complete_run_nothing(status: str) -> None:
    """The status decides, whatever was done before; a failure says why."""
    error = {"error": {"code": "server_error", "message": "Oh."}} if status == "failed" else {}
    collector, early = fed(
        openai_responses, created(), item("done", 0, call("a")), completed(call("a"), status=status, **error)
    )
    assert early == ["f"]
    assert (codes(collector), collector.finished) == (["response_truncated"], True)
    assert collector.error == ("Oh." if error else None)
    assert collector.response()["status"] == status


def test_responses_an_item_that_is_incomplete_is_not_run() -> None:
    """Beside others that are complete, in a response that says it is."""
    half = call("a", arguments='{"x":', status="incomplete")
    collector, early = fed(openai_responses, created(), item("done", 0, half), item("done", 1, call("b")), completed())
    assert (early, codes(collector)) == (["f"], ["response_truncated", None])


def test_responses_what_breaks_off_has_no_item_that_would_be_refused() -> None:
    """Half a hosted call and reasoning at the end go; half a message stays, and so does reasoning before a call."""
    text = {
        "type": "response.output_text.delta",
        "item_id": "msg_1",
        "output_index": 1,
        "content_index": 0,
        "delta": "Hm.",
    }
    refusal = {
        "type": "response.refusal.delta",
        "item_id": "msg_1",
        "output_index": 1,
        "content_index": 1,
        "delta": "No.",
    }
    begun = {"type": "message", "id": "msg_1", "role": "assistant", "content": [], "status": "in_progress"}
    search = {"type": "web_search_call", "id": "ws_1", "status": "in_progress"}
    events = [created(), item("done", 0, REASONING), item("added", 1, begun), text, refusal]
    collector, _ = fed(
        openai_responses, *events, item("done", 2, {**REASONING, "id": "rs_2"}), item("added", 3, search)
    )
    assert collector.response()["output"] == [
        REASONING,
        {
            **begun,
            "status": "incomplete",
            "content": [
                {"type": "output_text", "text": "Hm.", "annotations": []},
                {"type": "refusal", "refusal": "No."},
            ],
        },
    ]
    assert collector.response()["status"] == "in_progress"
    collector, _ = fed(openai_responses, created(), item("done", 0, REASONING), item("added", 1, opened(call("a"))))
    assert [one["type"] for one in collector.response()["output"]] == ["reasoning", "function_call"]


def test_responses_what_a_program_called_keeps_what_must_travel_back() -> None:
    """`caller`, `namespace` and `async` are on the early call as on the last one (LANES 14.12)."""
    caller = {"type": "program", "caller_id": "prog_1"}
    tool = {"type": "function", "name": "f", "output_schema": {"type": "object"}}
    said = call("a", caller=caller, namespace="n", **{"async": True})
    collector = openai_responses.StreamCollector()
    collector.add(created(tools=[tool]))
    (early,) = collector.add(item("done", 0, said))
    collector.add(completed(said, tools=[tool]))
    assert collector.calls() == [early]
    assert early.echo["openai_responses"]["caller"] == caller
    assert early.echo["openai_responses"]["async"] is True


# -- Anthropic --------------------------------------------------------------------------------------------------------


def start(index: int, **block: Any) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **said: Any) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": said}


def stop(index: int) -> Json:
    return {"type": "content_block_stop", "index": index}


def use(index: int, call_id: str = "toolu_1", name: str = "f", text: str = X) -> list[Json]:
    opening = start(index, type="tool_use", id=call_id, name=name, input={})
    return [opening, delta(index, type="input_json_delta", partial_json=text), stop(index)]


def ended(reason: Any = "tool_use", **more: Any) -> Json:
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None, **more},
        "usage": {"output_tokens": 7},
    }


BEGUN = {
    "type": "message_start",
    "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": {"input_tokens": 3}},
}


def test_anthropic_a_paused_turn_announces_nothing_and_goes_back_as_it_is() -> None:
    """Calls are there, and not to be run now (LANES 14.15); a hosted use without its result is what the pause is about."""
    hosted = start(0, type="server_tool_use", id="srvtoolu_1", name="web_search", input={})
    collector, early = fed(anthropic, BEGUN, hosted, stop(0), *use(1), ended("pause_turn"))
    assert (early, collector.calls(), collector.finished) == (["f"], [], True)
    assert [block["type"] for block in collector.response()["content"]] == ["server_tool_use", "tool_use"]
    assert collector.calls(started=[]) == []


def test_anthropic_blocks_are_told_apart_without_an_index() -> None:
    """One index for all: each start is a block of its own, and deltas go into the last of them."""
    events = [event | {"index": 0} for event in [*use(0, "a"), *use(1, "b", "g")]]
    without = [{name: said for name, said in event.items() if name != "index"} for event in events]
    for form in (events, without):
        collector, early = fed(anthropic, BEGUN, *form, ended())
        assert early == ["f", "g"]
        assert [one.arguments for one in collector.calls()] == [{"x": 1}] * 2


def test_anthropic_a_server_may_send_a_block_whole() -> None:
    """Input, text, citations and blocks at the start, and no delta at all; or starts that are lost."""
    citation = {"type": "char_location", "cited_text": "a"}
    whole = {**BEGUN, "message": {**BEGUN["message"], "content": [{"type": "text", "text": "Hm."}]}}  # type: ignore[dict-item]
    events = [start(1, type="tool_use", id="a", name="f", input={"x": 1}), stop(1)]
    events += [start(2, type="text", text="So", citations=None), delta(2, type="text_delta", text="!")]
    events += [delta(2, type="citations_delta", citation=citation)]
    events += [delta(3, type="thinking_delta", thinking="Oh"), delta(3, type="signature_delta", signature="s")]
    events += [delta(4, type="text_delta", text="lost"), delta(5, type="input_json_delta", partial_json=X)]
    collector, early = fed(anthropic, whole, *events, ended())
    assert early == ["f"]
    assert collector.response()["content"] == [
        {"type": "text", "text": "Hm."},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
        {"type": "text", "text": "So!", "citations": [citation]},
        {"type": "thinking", "thinking": "Oh", "signature": "s"},
        {"type": "text", "text": "lost"},
        {"type": "tool_use", "input": {"x": 1}},
    ]
    assert codes(collector) == [None, "unknown_tool"]


@pytest.mark.parametrize("name", ["anthropic", "bedrock", "cohere"])
@pytest.mark.parametrize("order", [[0, 0, 1, 2], [1, 0, 2], [1, 2, 0]])
def test_a_start_that_comes_late_or_twice_is_of_its_call(name: str, order: list[int]) -> None:
    """It begins no second call: the one without input would be run without any."""
    events = {"anthropic": use(0), "bedrock": bedrock_use(0), "cohere": cohere_use(0)}[name]
    ends = {
        "anthropic": ended(),
        "bedrock": RUN,
        "cohere": {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
    }
    collector, _ = fed(stream(name).module, *[events[place] for place in order], ends[name])
    (one,) = collector.calls()
    assert (one.name, one.arguments, one.problem, one.wire_id) == ("f", {"x": 1}, None, None)


def test_anthropic_input_is_a_tools() -> None:
    """A delta of input for a text gives it no member that every later request would be refused for."""
    text = [start(0, type="text", text="Hm."), delta(0, type="input_json_delta", partial_json="{}"), stop(0)]
    collector, _ = fed(anthropic, BEGUN, *text, ended("end_turn"))
    assert collector.response()["content"] == [{"type": "text", "text": "Hm."}]


@pytest.mark.parametrize("name", ["anthropic", "bedrock"])
def test_a_block_that_closed_does_not_change(name: str) -> None:
    """What is added to it is refused; blank input is none. A block that never closes is over when the next one begins."""
    if name == "anthropic":
        begun, more = use(0), [delta(0, type="input_json_delta", partial_json=text) for text in (" ", "}")]
        text = start(1, type="text", text="")
    else:
        begun, more = bedrock_use(0), [block(0, {"toolUse": {"input": text}})[0] for text in (" ", "}")]
        text = {"contentBlockDelta": {"delta": {"text": "A"}, "contentBlockIndex": 1}}
    module = stream(name).module
    collector, early = fed(module, *begun, more[0])
    assert early == ["f"]
    with pytest.raises(InvalidInputError, match="was added to call 1"):
        collector.add(more[1])
    assert codes(collector) == ["response_truncated"]
    assert fed(module, *begun[:-1], text)[1] == ["f"]


@pytest.mark.parametrize("text", ['{"x":', "[1]", "nope", '{"x":1}{'])
def test_input_that_is_no_object_is_answered(text: str) -> None:
    """In the lanes whose whole responses have an object there, too (LANES 14.3)."""
    for module, events in ((anthropic, [*use(0, text=text), ended()]), (bedrock, [*bedrock_use(0, text), RUN])):
        collector, early = fed(module, *events)
        assert (early, codes(collector), collector.finished) == ([], ["malformed_arguments"], True)
        assert text.replace('"', "") in str(turn_of(module, collector)[0]).replace('"', "").replace("\\", "")


def test_anthropic_what_is_said_of_the_message_comes_last() -> None:
    """Totals and facts of the last event stand in for the first one's; what is not said again stays."""
    last = {**ended(container={"id": "c_1"}), "context_management": {"applied_edits": []}}
    compaction = [
        start(0, type="compaction", content=None),
        delta(0, type="compaction_delta", content="So far.", encrypted_content="e"),
    ]
    collector, _ = fed(
        anthropic, BEGUN, *compaction, stop(0), delta(0, type="signature_delta", signature="x"), *use(1), last
    )
    response = collector.response()
    assert response["usage"] == {"input_tokens": 3, "output_tokens": 7}
    assert (response["container"], response["context_management"]) == ({"id": "c_1"}, {"applied_edits": []})
    assert response["content"][0] == {"type": "compaction", "content": "So far.", "encrypted_content": "e"}


def test_anthropic_what_breaks_off_has_no_block_that_would_be_refused() -> None:
    """Thinking at the end, and hosted uses without a result; what stands before text or a call stays."""
    thought = [start(0, type="thinking", thinking="", signature=""), delta(0, type="thinking_delta", thinking="Hm.")]
    signed = [*thought, delta(0, type="signature_delta", signature="s"), stop(0)]
    redacted = start(1, type="redacted_thinking", data="x")
    assert fed(anthropic, BEGUN, *thought)[0].response()["content"] == []
    assert fed(anthropic, BEGUN, *signed, redacted, stop(1))[0].response()["content"] == []
    cut = fed(anthropic, BEGUN, *signed, *use(1)[:2])[0]
    assert [block["type"] for block in cut.response()["content"]] == ["thinking", "tool_use"]
    assert codes(cut) == ["response_truncated"]
    hosted = [start(1, type="server_tool_use", id="s1", name="web_search", input={}), stop(1)]
    found = [start(2, type="web_search_tool_result", tool_use_id="s1", content=[]), stop(2)]
    text = [start(3, type="text", text="A")]
    assert [block["type"] for block in fed(anthropic, BEGUN, *signed, *hosted, *text)[0].response()["content"]] == [
        "thinking",
        "text",
    ]
    kept = fed(anthropic, BEGUN, *signed, *hosted, *found, *text)[0].response()["content"]
    assert [block["type"] for block in kept] == ["thinking", "server_tool_use", "web_search_tool_result", "text"]
    assert turn_of(anthropic, fed(anthropic, BEGUN)[0]) == []


def test_anthropic_hosted_input_that_can_not_be_read_is_still_an_object() -> None:
    """Text in its place would be refused for ever."""
    hosted = [
        start(0, type="server_tool_use", id="s1", name="f", input={}),
        delta(0, type="input_json_delta", partial_json="{"),
    ]
    collector, _ = fed(anthropic, BEGUN, *hosted, stop(0), ended("end_turn"))
    assert collector.response()["content"][0]["input"] == {"INVALID_JSON": "{"}


# -- Gemini -----------------------------------------------------------------------------------------------------------


def chunk(*parts: Any, finish: Any = None, **more: Any) -> Json:
    return {
        "candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}],
        "responseId": "r",
        **more,
    }


def piece(path: Any = None, more: bool = True, **said: Any) -> Json:
    partial = {"partialArgs": [{"jsonPath": path, **said}]} if path is not None else {}
    return {"functionCall": {**partial, **({"willContinue": True} if more else {})}}


BEGINS = {"functionCall": {"name": "f", "willContinue": True}, "thoughtSignature": "c2ln"}


def test_gemini_a_signature_keeps_to_its_part() -> None:
    """ "Don't merge one part with a signature with another part without one": text around it stays apart (LANES 4)."""
    parts = [
        {"text": "a"},
        {"text": "b"},
        {"text": "c", "thoughtSignature": "s"},
        {"text": "d"},
        {"text": "e", "thought": True},
    ]
    collector, _ = fed(
        gemini, *map(chunk, [*parts, {"text": "f", "thought": True}, {"text": "g", "thought": False}, {"text": "h"}])
    )
    said = collector.response()["candidates"][0]["content"]["parts"]
    assert [part["text"] for part in said] == ["ab", "c", "d", "ef", "gh"]


def test_gemini_parts_of_other_kinds_come_whole() -> None:
    """What the server ran itself stands in its place, and divides the text around it."""
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    parts = [{"text": "a"}, code, {"text": "b"}, {"functionCall": {"name": "f", "args": {"x": 1}}}, {"text": "c"}]
    collector, early = fed(gemini, *map(chunk, parts), chunk(finish="STOP"))
    assert early == ["f"]
    assert collector.response()["candidates"][0]["content"]["parts"] == parts


def test_gemini_may_say_its_finish_reason_in_every_chunk() -> None:
    """Old models do; a later reason stands in for an earlier one."""
    calls = [{"functionCall": {"name": name, "args": {"x": 1}}} for name in ("f", "g")]
    collector, early = fed(gemini, *[chunk(part, finish="STOP") for part in calls])
    assert (early, codes(collector)) == (["f", "g"], [None, None])
    collector.add(chunk(finish="MAX_TOKENS"))
    assert codes(collector) == ["response_truncated"] * 2


@pytest.mark.parametrize("reason", ["FINISH_REASON_UNSPECIFIED", "CONTINUATION", None])
def test_gemini_some_reasons_are_no_end(reason: Any) -> None:
    """More is to come, or nobody knows."""
    collector, _ = fed(gemini, chunk({"functionCall": {"name": "f"}}, finish=reason))
    assert not collector.finished
    collector.add(chunk({"functionCall": {"name": "g"}}, finish="STOP"))
    assert [one.name for one in collector.calls()] == ["f", "g"]
    assert collector.finished


def test_gemini_a_call_in_pieces() -> None:
    """Each value at its path, text behind text; over when a piece comes without `willContinue` (Vertex AI)."""
    pieces = [
        piece("$.city", stringValue="Os", willContinue=True),
        piece("$.city", stringValue="lo"),
        piece("$['a b'][0].n", numberValue=3.0),
        piece('$["a b"][1]', numberValue=0.5),
        piece("$.yes", boolValue=False),
        piece("none", nullValue="NULL_VALUE"),
        piece("$.nothing_yet", willContinue=True),
    ]
    collector, early = fed(gemini, chunk(BEGINS), *map(chunk, pieces))
    assert (early, codes(collector)) == ([], ["response_truncated"])
    (call,) = collector.add(chunk({"functionCall": {}}))
    assert call.arguments == {"city": "Oslo", "a b": [{"n": 3}, 0.5], "yes": False, "none": None}
    assert collector.add(chunk({"functionCall": {}}, finish="STOP")) == []
    (part,) = collector.response()["candidates"][0]["content"]["parts"]
    assert part == {"thoughtSignature": "c2ln", "functionCall": {"name": "f", "args": call.arguments}}


@pytest.mark.parametrize(
    "path", ["$", "", "$..a", "$.a[", "$[*]", "$.a[7]", "$.x.y", "$.x[0]", 7, "$" + ".a" * 65, "$['a\"]"]
)
def test_gemini_a_value_without_a_place_is_not_run(path: Any) -> None:
    """A path that names no one place, or one where something else is: the model is told, and no list grows to it."""
    steps = [
        chunk(BEGINS),
        chunk(piece("$.x", numberValue=1)),
        chunk(piece(path, stringValue="s")),
        chunk({"functionCall": {}}),
    ]
    collector, early = fed(gemini, *steps, chunk(finish="STOP"))
    assert (early, codes(collector)) == ([], ["malformed_arguments"])
    assert turn_of(gemini, collector)[0]["parts"][0]["functionCall"]["args"].keys() == {"INVALID_JSON"}


def test_gemini_a_call_in_pieces_that_never_ends_is_not_run() -> None:
    """Another begins before its end, or the response ends: it may be half of one."""
    collector, early = fed(
        gemini,
        chunk(BEGINS),
        chunk(piece("$.x", numberValue=1)),
        chunk(BEGINS),
        chunk(piece("$.x", False, numberValue=2)),
    )
    collector.add(chunk(finish="STOP"))
    assert (early, codes(collector)) == (["f"], ["response_truncated", None])
    same = {"functionCall": {"id": "a", "name": "f", "willContinue": True}}
    collector, early = fed(
        gemini, chunk(same), chunk(same | {"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}})
    )
    assert (early, len(collector.calls())) == (["f"], 1)


def test_gemini_the_same_call_twice_is_one() -> None:
    """With its id; without one they are two, and so are two that differ."""
    one = {"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}}
    other = {"functionCall": {"id": "a", "name": "f", "args": {"x": 2}}}
    nameless = {"functionCall": {"name": "f", "args": {"x": 1}}}
    collector, early = fed(
        gemini, chunk(one, one), chunk(one), chunk(other), chunk(nameless), chunk(nameless, finish="STOP")
    )
    assert early == ["f"] * 4
    assert [call.arguments["x"] for call in collector.calls()] == [1, 2, 1, 1]


def test_gemini_reads_the_first_candidate_and_a_blocked_prompt() -> None:
    """Others are another's history; a prompt that was blocked has no candidate at all."""
    second = chunk({"functionCall": {"name": "g"}}, finish="STOP")
    second["candidates"][0]["index"] = 1
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "responseId": "r"}
    collector, _ = fed(gemini, second)
    assert (collector.calls(), collector.finished) == ([], False)
    collector, _ = fed(gemini, blocked)
    assert collector.calls() == []
    assert collector.response() == {**blocked, "candidates": []}


def test_gemini_the_sdks_objects_have_bytes() -> None:
    """Signatures and pieces as the SDK parses them come back as the wire's text."""
    lane = stream("gemini")
    turn = Turn(
        Said("Hm.", base64.b64encode(b"\xfb\xff").decode()), "", [Called("a", "f", {"n": 3, "s": "text", "z": None})]
    )
    events = [
        types.GenerateContentResponse.model_validate(event) for event in lane.events(turn, Cut([2], repeats=True))
    ]
    for form in (events, [event.model_dump() for event in events]):
        collector, early = lane.collected(form)
        assert early == collector.calls()
        assert early[0].arguments == {"n": 3, "s": "text", "z": None}
        assert isinstance(early[0].arguments["n"], int)
        (content, *_) = turn_of(gemini, collector)
        assert types.Content.model_validate(content).parts[-1].thought_signature == b"\xfb\xff"  # type: ignore[index]


# -- Bedrock ----------------------------------------------------------------------------------------------------------


def block(index: int, *deltas: Any, start: Any = None) -> list[Json]:
    place = {"contentBlockIndex": index}
    opening = [] if start is None else [{"contentBlockStart": {"start": start, **place}}]
    return [*opening, *[{"contentBlockDelta": {"delta": one, **place}} for one in deltas], {"contentBlockStop": place}]


def bedrock_use(index: int, text: str = X, **more: Any) -> list[Json]:
    return block(
        index, {"toolUse": {"input": text}}, start={"toolUse": {"toolUseId": f"t{index}", "name": "f", **more}}
    )


def cohere_use(index: int, text: str = X) -> list[Json]:
    entry = {"id": f"t{index}", "type": "function", "function": {"name": "f", "arguments": ""}}
    bodies: list[tuple[str, Json]] = [("start", entry), ("delta", {"function": {"arguments": text}})]
    events: list[Json] = [
        {"type": f"tool-call-{kind}", "index": index, "delta": {"message": {"tool_calls": body}}}
        for kind, body in bodies
    ]
    return [*events, {"type": "tool-call-end", "index": index}]


RUN = {"messageStop": {"stopReason": "tool_use", "additionalModelResponseFields": {"a": 1}}}


def test_bedrock_blocks_of_every_kind() -> None:
    """Bytes stay bytes and are joined; citations stand with their text; what the server ran has its result."""
    events: list[Json] = [{"messageStart": {"role": "assistant"}}]
    events += block(
        0, {"reasoningContent": {"redactedContent": b"\x00"}}, {"reasoningContent": {"redactedContent": b"\xff"}}
    )
    events += block(1, {"text": "As "}, {"citation": {"title": "T"}}, {"text": "said."})
    image = {"image": {"source": {"bytes": b"PN"}}}
    events += block(2, image, {"image": {"source": {"bytes": b"G"}}}, start={"image": {"format": "png"}})
    events += bedrock_use(3, "{", type="server_tool_use")
    results = [{"toolResult": [{"text": "o"}, {"text": "k"}]}, {"toolResult": [{"json": {"n": 1}}, {"text": "."}]}]
    events += block(4, *results, start={"toolResult": {"toolUseId": "t3", "status": "success"}})
    events += block(5, {"aLaterOne": {}}, start={"aLaterOne": {"x": 1}})
    events += bedrock_use(6)
    collector, early = fed(bedrock, *events, RUN, {"metadata": {"usage": {"inputTokens": 1}}})
    assert early == ["f"]
    response = collector.response()
    assert response["output"]["message"]["content"] == [
        {"reasoningContent": {"redactedContent": b"\x00\xff"}},
        {"citationsContent": {"content": [{"text": "As said."}], "citations": [{"title": "T"}]}},
        {"image": {"format": "png", "source": {"bytes": b"PNG"}}},
        {"toolUse": {"toolUseId": "t3", "name": "f", "type": "server_tool_use", "input": {"INVALID_JSON": "{"}}},
        {
            "toolResult": {
                "toolUseId": "t3",
                "status": "success",
                "content": [{"text": "ok"}, {"json": {"n": 1}}, {"text": "."}],
            }
        },
        {"aLaterOne": {"x": 1}},
        {"toolUse": {"toolUseId": "t6", "name": "f", "input": {"x": 1}}},
    ]
    assert response["additionalModelResponseFields"] == {"a": 1}
    assert response["usage"] == {"inputTokens": 1}


def test_bedrock_what_breaks_off_has_no_block_that_would_be_refused() -> None:
    """Reasoning at the end, and what the server was running."""
    reasoning = block(0, {"reasoningContent": {"text": "Hm."}})
    assert fed(bedrock, *reasoning)[0].response()["output"]["message"]["content"] == []
    hosted = bedrock_use(1, type="server_tool_use")
    collector, _ = fed(bedrock, *reasoning, *hosted, *block(2, {"text": "A"})[:1], *bedrock_use(3)[:2])
    kinds = [next(iter(one)) for one in collector.response()["output"]["message"]["content"]]
    assert kinds == ["reasoningContent", "text", "toolUse"]
    assert codes(collector) == ["response_truncated"]


def test_bedrock_base64_stays_text() -> None:
    """Raw JSON has text where boto3 has bytes."""
    events = block(0, {"reasoningContent": {"redactedContent": "AA=="}})
    collector, _ = fed(bedrock, *events, *bedrock_use(1), RUN)
    assert collector.response()["output"]["message"]["content"][0] == {"reasoningContent": {"redactedContent": "AA=="}}


# -- Mistral's conversations, Cohere, Ollama --------------------------------------------------------------------------


def said(kind: str, **more: Any) -> Json:
    return {"event": kind, "data": {"type": kind, **more}}


def conversation() -> list[Json]:
    tool = {"id": "tx_1", "name": "web_search", "output_index": 0}
    text = {"id": "msg_1", "output_index": 1, "model": "m", "role": "assistant"}
    one = {"id": "fc_1", "name": "f", "tool_call_id": "aaaaaaaaa", "output_index": 2}
    two = {"id": "fc_2", "name": "g", "tool_call_id": "bbbbbbbbb", "output_index": 3, "confirmation_status": "pending"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return [
        said("conversation.response.started", conversation_id="conv_1"),
        said("tool.execution.started", **tool, arguments='{"q"'),
        said("tool.execution.delta", **tool, arguments=":1}"),
        said("tool.execution.done", **tool, info={"n": 1}),
        said("message.output.delta", **text, content="Let me "),
        said("message.output.delta", **text, content={"type": "text", "text": "look."}),
        said("function.call.delta", **one, arguments='{"x"'),
        said("function.call.delta", **one, arguments=":1}"),
        said("function.call.delta", **two, arguments="{}"),
        said("conversation.response.done", usage=usage),
    ]


@pytest.mark.parametrize("as_objects", [False, True])
def test_mistral_conversations_are_put_together(as_objects: bool) -> None:
    """Entries in their order; what waits for an approval is no call, and what the server ran none of ours."""
    events: list[Any] = conversation()
    if as_objects:
        events = [ConversationEvents.model_validate(event) for event in events]
    collector, early = fed(mistral, *events)
    assert (early, collector.finished) == (["f"], True)
    assert [(one.id, one.arguments) for one in collector.calls()] == [("aaaaaaaaa", {"x": 1})]
    response = collector.response()
    assert response["conversation_id"] == "conv_1"
    search, text, one, two = response["outputs"]
    assert (search["type"], search["arguments"], search["info"]) == ("tool.execution", '{"q":1}', {"n": 1})
    assert text["content"] == [{"type": "text", "text": "Let me look."}]
    assert (one["tool_call_id"], one["arguments"], two["confirmation_status"]) == ("aaaaaaaaa", X, "pending")
    with pytest.raises(InvalidInputError, match="came after the end"):
        collector.add(conversation()[4])


def test_mistral_what_waits_for_an_approval_has_no_place_among_the_calls() -> None:
    """It comes first, and the call behind it is the first one all the same."""
    first = {
        "id": "fc_0",
        "name": "g",
        "tool_call_id": "bbbbbbbbb",
        "output_index": 0,
        "confirmation_status": "pending",
    }
    begun, *others = conversation()
    collector, early = fed(mistral, begun, said("function.call.delta", **first, arguments=""), *others)
    assert early == ["f"]
    assert [one.name for one in collector.calls()] == ["f"]


def test_mistral_conversations_that_break_off_run_nothing() -> None:
    """Entries have no stop reason; the collector's mark is read all the same, and what the server was running is left out."""
    for end in range(7, len(conversation())):
        collector, early = fed(mistral, *conversation()[:end])
        assert (early, collector.finished) == ([], False)
        assert codes(collector) == ["response_truncated"]
    collector, _ = fed(mistral, *conversation()[:3])
    assert collector.response()["outputs"] == []
    collector, _ = fed(mistral, *conversation()[:-1], said("conversation.response.error", message="Oh.", code=1))
    assert (collector.error, codes(collector)) == ("Oh.", ["response_truncated"])
    with pytest.raises(InvalidInputError, match="a second response"):
        collector.add(conversation()[0])


def test_mistral_thinking_goes_on_from_chunk_to_chunk() -> None:
    """Chunks of one kind are one; text that began as text becomes a chunk when another kind comes (LANES 6)."""

    def content(value: Any) -> Json:
        return {"id": "c", "choices": [{"index": 0, "delta": {"content": value}, "finish_reason": None}]}

    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "H"}]}
    picture = {"type": "image_url", "image_url": "https://example.org/a"}
    signed = {"type": "thinking", "thinking": [{"type": "text", "text": "m."}], "signature": "s"}
    events = map(
        content,
        ["So", ": ", [thought], [signed], [picture, picture], "Look", ".", "", [{"type": "text", "text": " Now"}]],
    )
    collector, _ = fed(mistral, *events)
    assert collector.response()["choices"][0]["message"]["content"] == [
        {"type": "text", "text": "So: "},
        {"type": "thinking", "signature": "s", "thinking": [{"type": "text", "text": "Hm."}]},
        picture,
        picture,
        {"type": "text", "text": "Look. Now"},
    ]
    collector, _ = fed(mistral, content([thought]), content(""))
    assert [one["type"] for one in collector.response()["choices"][0]["message"]["content"]] == ["thinking"]


def test_cohere_keeps_the_plan_and_the_citations() -> None:
    """Both travel back (LANES 7). Calls in lists, parts without a start, and a call that no event ends are read too."""
    citation = {"start": 0, "end": 2, "text": "As", "sources": []}
    entry = {"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}
    events: list[Json] = [
        {"type": "message-start", "id": "m"},
        {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I will."}}},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"thinking": "Hm."}}}},
        {"type": "content-start", "index": 1, "delta": {"message": {"content": {"type": "text", "text": "As"}}}},
        {"type": "citation-start", "index": 0, "delta": {"message": {"citations": citation}}},
        {"type": "citation-end", "index": 0},
        {"type": "debug", "prompt": "..."},
        {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": [entry]}}},
        {"type": "tool-call-delta", "index": 0, "delta": {"message": {"tool_calls": {"function": {"arguments": X}}}}},
        {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": {**entry, "id": "b"}}}},
    ]
    collector, early = fed(cohere, *events)
    assert early == ["f"]
    assert collector.response()["message"] == {
        "role": "assistant",
        "tool_plan": "I will.",
        "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "As"}],
        "citations": [citation],
        "tool_calls": [{**entry, "function": {"name": "f", "arguments": X}}, {**entry, "id": "b"}],
    }
    assert codes(collector) == ["response_truncated"] * 2
    collector.add({"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}})
    assert [call.id for call in collector.calls()] == ["a", "b"]


def test_cohere_a_start_is_a_start() -> None:
    """Also at an index that something has already, and without an id to tell it by."""
    entry = {"type": "function", "function": {"name": "f", "arguments": ""}}
    text = {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": "A"}}}}
    begun = {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": entry}}}
    more = {"type": "tool-call-delta", "index": 0, "delta": {"message": {"tool_calls": {"function": {"arguments": X}}}}}
    collector, _ = fed(cohere, text, text, begun, begun, more)
    assert [part["text"] for part in collector.response()["message"]["content"]] == ["A", "A"]
    assert [one.arguments for one in collector.calls()] == [{}, {"x": 1}]


def test_cohere_may_leave_out_the_index() -> None:
    """Then an event is about the call, or the part, that began last."""
    entry = {"id": "a", "type": "function", "function": {"name": "f"}}
    collector, early = fed(
        cohere,
        {"type": "content-delta", "delta": {"message": {"content": {"text": "A"}}}},
        {"type": "content-delta", "delta": {"message": {"content": {"text": "s", "type": "text"}}}},
        {"type": "tool-call-end"},
        {"type": "tool-call-start", "delta": {"message": {"tool_calls": entry}}},
        {"type": "tool-call-delta", "delta": {"message": {"tool_calls": {"function": {"arguments": X}}}}},
        {"type": "tool-call-end"},
    )
    assert early == ["f"]
    assert collector.response()["message"]["content"] == [{"type": "text", "text": "As"}]


def test_ollama_knows_its_end_by_done() -> None:
    """Also where an old server gives no reason."""
    part = {
        "created_at": "t",
        "message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
    }
    collector, _ = fed(ollama, {**part, "done": False})
    assert codes(collector) == ["response_truncated"]
    collector.add({"done": True, "message": {"role": "assistant", "content": ""}})
    assert codes(collector) == [None]


def test_the_whole_of_a_turn_can_be_read_from_its_events() -> None:
    """The kit's own check: what the tests cut is what they compare with."""
    events = list(responses_events(Turn(text="Hm."), Cut([1])))
    assert [event["delta"] for event in events if event["type"] == "response.output_text.delta"] == ["H", "m", "."]
