"""Which fragment belongs to which call: what servers behind gateways do to the rule "by index" (LANES 14.11)."""

import json
import time
from typing import Any

import pytest
from mistralai.client.models import CompletionEvent

from tests.providers.streams import Json, chat_chunk, stream
from tests.providers.support import settled
from toolbatch.core import InvalidInputError, ToolCall
from toolbatch.providers import mistral, openai_chat

CHAT = stream("openai_chat")
X = '{"x":1}'
Y = '{"y":2}'


def part(index: Any = None, call_id: Any = None, name: Any = None, arguments: Any = None, **more: Any) -> Json:
    """One entry of a delta's `tool_calls`; what is `None` is not there."""
    function = {"name": name, "arguments": arguments}
    entry = {
        "index": index,
        "id": call_id,
        "function": {key: said for key, said in function.items() if said is not None},
    }
    return {key: said for key, said in entry.items() if said is not None} | more


def chunks(*groups: Any, finish: Any = "tool_calls") -> list[Json]:
    """A chunk for each entry, or for each list of entries, and one with the finish reason."""
    deltas = [{"tool_calls": group if isinstance(group, list) else [group]} for group in groups]
    return [*map(chat_chunk, deltas), chat_chunk({}, finish)]


def read(*groups: Any) -> list[Any]:
    """What becomes of the fragments: the provider's id, name and arguments of each call, or its problem's code."""
    collector, early = CHAT.collected(chunks(*groups))
    calls: list[ToolCall] = collector.calls()
    assert early == [call for call in calls if call.problem is None and call.arguments and call.kind == "function"]
    ids = [call.id if call.wire_id is None else call.wire_id for call in calls]
    said = [call.problem.code if call.problem else call.arguments for call in calls]
    return [list(row) for row in zip(ids, [call.name for call in calls], said, strict=True)]


ONE = [["a", "f", {"x": 1}]]
TWO = [["a", "f", {"x": 1}], ["b", "g", {"y": 2}]]
STREAMS: dict[str, tuple[list[Any], list[Any]]] = {
    "as it should be": ([part(0, "a", "f", ""), part(0, arguments='{"x"'), part(0, arguments=":1}")], ONE),
    "two, one behind the other": ([part(0, "a", "f", ""), part(0, arguments=X), part(1, "b", "g", Y)], TWO),
    "two, mixed": (
        [part(0, "a", "f", '{"x"'), part(1, "b", "g", '{"y"'), part(0, arguments=":1}"), part(1, arguments=":2}")],
        TWO,
    ),
    "two in one chunk": ([[part(0, "a", "f", X), part(1, "b", "g", Y)]], TWO),
    "two fragments of one call in the first chunk": ([[part(0, "a", "f"), part(0, arguments=X)]], ONE),
    "counted from one": ([part(1, "a", "f", X), part(2, "b", "g", Y)], TWO),
    "the index is text": ([part("0", "a", "f", X), part("1", "b", "g", Y)], TWO),
    "no index, one call": ([part(None, "a", "f", '{"x"'), part(None, arguments=":1}")], ONE),
    "no index, whole calls": ([part(None, "a", "f", X), part(None, "b", "g", Y)], TWO),
    "no index, fragments by id": (
        [part(None, "a", "f", '{"x"'), part(None, "b", "g", '{"y"'), part(None, "a", None, ":1}"), part(None, "b", None, ":2}")],
        TWO,
    ),
    "no index, no id": ([part(None, None, "f", X), part(None, None, "g", Y)], [["", "f", {"x": 1}], ["", "g", {"y": 2}]]),
    "no index at first": ([part(None, "a", "f"), part(0, arguments=X), part(1, "b", "g", Y)], TWO),
    "no index at first, and then another call": ([part(None, "a", "f", X), part(0, "b", "g", Y)], TWO),
    "no index later": ([part(0, "a", "f"), part(None, arguments=X), part(1, "b", "g"), part(None, arguments=Y)], TWO),
    "one index for all, ids differ": ([part(0, "a", "f", X), part(0, "b", "g", Y)], TWO),
    "one index for all, and one tool": (
        [part(0, "a", "f", '{"x":'), part(0, arguments="1}"), part(0, "b", "f", Y)],
        [["a", "f", {"x": 1}], ["b", "f", {"y": 2}]],
    ),
    "one index for all, and the first was cut": (
        [part(0, "a", "f", '{"x'), part(0, "b", "g", Y)],
        [["a", "f", "malformed_arguments"], ["b", "g", {"y": 2}]],
    ),
    "one index for all, no ids": (
        [part(0, "", "f", X), part(0, "", "f", Y), part(0, "", "g", X)],
        [["", "f", {"x": 1}], ["", "f", {"y": 2}], ["", "g", {"x": 1}]],
    ),
    "one index for all, the SDK's null ids": (
        [part(0, "null", "f", X), part(0, "null", "f", Y)],
        [["null", "f", {"x": 1}], ["null", "f", {"y": 2}]],
    ),
    "one id at two indexes": (
        [part(0, "a", "f", X), part(1, "a", "f", X)],
        [["a", "f", {"x": 1}], ["a", "f", {"x": 1}]],
    ),
    "one id at one index, two calls": (
        [part(0, "a", "f", X), part(0, "a", "f", Y)],
        [["a", "f", {"x": 1}], ["a", "f", {"y": 2}]],
    ),
    "the whole call once more": ([part(0, "a", "f", '{"x"'), part(0, arguments=":1}"), part(0, "a", "f", X)], ONE),
    "the whole object once more": ([part(0, "a", "f", {"x": 1}), part(0, "a", "f", {"x": 1})], ONE),
    "id and name on all": ([part(0, "a", "f", '{"x"'), part(0, "a", "f", ":1"), part(0, "a", "f", "}"), part(0, "a", "f", "")], ONE),
    "name on all, no id": ([part(0, None, "f", '{"x"'), part(0, None, "f", ":1}")], [["", "f", {"x": 1}]]),
    "the id comes last": ([part(0, None, "f", '{"x"'), part(0, None, None, ":1}"), part(0, "a")], ONE),
    "the id is blank at first": ([part(0, "", "f"), part(0, "a", None, X)], ONE),
    "the id is blank later": ([part(0, "a", "f"), part(0, "", None, X)], ONE),
    "the id is another on each fragment": ([part(0, "a", "f"), part(0, "b", None, '{"x"'), part(0, "c", None, ":1}")], ONE),
    "the id in two": ([part(0, "call_"), part(0, "7", None, None), part(0, None, "f", X)], [["call_7", "f", {"x": 1}]]),
    "the name in two": ([part(0, "a", "get_"), part(0, None, "weather"), part(0, None, None, X)], [["a", "get_weather", {"x": 1}]]),
    "the name in two, and the id on both": ([part(0, "a", "get_"), part(0, "a", "it", X)], [["a", "get_it", {"x": 1}]]),
    "the name comes last": ([part(0, "a", None, X), part(0, None, "f", "")], ONE),
    "the name comes behind half the arguments": ([part(0, "a", None, '{"x"'), part(0, None, "f", ":1}")], ONE),
    "another name, no id": ([part(0, None, "f", '{"x'), part(0, None, "g", Y)], [["", "f", "malformed_arguments"], ["", "g", {"y": 2}]]),
    "a new id without a name": ([part(0, "a", "f", X), part(0, "b"), part(0, None, "g"), part(0, None, None, Y)], TWO),
    "arguments as an object": ([part(0, "a", "f", {"x": 1}), part(1, "b", "g", {"y": 2})], TWO),
    "arguments as an object, no ids, one index": (
        [part(0, None, "f", {"x": 1}), part(0, None, "f", {"x": 1})],
        [["", "f", {"x": 1}], ["", "f", {"x": 1}]],
    ),
    "an object, and more": ([part(0, "a", "f", {}), part(0, None, None, X)], [["a", "f", "malformed_arguments"]]),
    "text, and an object": ([part(0, "a", "f", '{"x"'), part(0, None, None, {"y": 1})], [["a", "f", "malformed_arguments"]]),
    "a list": ([part(0, "a", "f", [1])], [["a", "f", "malformed_arguments"]]),
    "a placeholder first": ([part(0, "a", "f", "{}"), part(0, None, None, X)], [["a", "f", "malformed_arguments"]]),
    "two objects": ([part(0, "a", "f", X), part(0, None, None, Y)], [["a", "f", "malformed_arguments"]]),
    "empty fragments": ([part(0), part(0, "a", "f", ""), part(0, "", "", ""), part(0), part(0, None, None, X), part(0)], ONE),
    "nothing at all": ([part(), {}, {"index": 0, "type": "function"}, {"function": {}}, None, "", 7], []),
    "braces in text": ([part(0, "a", "f", '{"x":"}'), part(0, "a", "f", '{\\'), part(0, "a", "f", '"}{"}')], [["a", "f", {"x": '}{"}{'}]]),
    "an escape in two": ([part(0, "a", "f", '{"x":"\\'), part(0, "a", "f", '"}'), part(0, "a", "f", '"}')], [["a", "f", {"x": '"}'}]]),
    "no index and no arguments at first, and then another call": (
        [part(None, None, "f"), part(0, None, "g", Y)],
        [["", "f", {}], ["", "g", {"y": 2}]],
    ),
    "the SDK's null id at first": ([part(0, "null", "f"), part(0, "a", None, X)], ONE),
    "no name at all": ([part(0, "a", None, X)], [["a", "unnamed_tool", "unknown_tool"]]),
    "a number for an id": ([part(0, 7, "f", X), part(1, 8, "g", Y)], [["", "f", {"x": 1}], ["", "g", {"y": 2}]]),
}  # fmt: skip


@pytest.mark.parametrize("case", STREAMS)
def test_each_fragment_finds_its_call(case: str) -> None:
    """Nothing is lost, nothing is put into another call, and what can't be told is answered and not run."""
    fragments, calls = STREAMS[case]
    assert read(*fragments) == calls


def test_a_call_is_over_when_the_next_begins() -> None:
    """That is the lane's only sign before the finish reason; half an object, or none, waits."""
    collector = openai_chat.StreamCollector()
    steps: list[tuple[Any, list[str]]] = [
        (part(0, "a", "f", '{"x":'), []),
        (part(0, None, None, "1}"), []),
        (part(1, "b", "g", '{"y"'), ["a"]),
        (part(2, "c", "h", ""), []),
        (part(3, "d", "i", X), []),
        (part(1, None, None, ":2}"), []),
        (part(4, "e", "j", "[1]"), ["d"]),
    ]
    for entry, names in steps:
        (chunk, _) = chunks(entry)
        assert [call.id for call in collector.add(chunk)] == names
    assert [call.id for call in collector.add(chat_chunk({}, "tool_calls"))] == ["b"]
    assert [call.id for call in collector.calls()] == ["a", "b", "c", "d", "e"]


def test_custom_and_legacy_calls() -> None:
    """Free text shows no end, so it is never early; `function_call` is a call where `tool_calls` are missing."""
    custom = {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "select"}}
    more = {"index": 0, "custom": {"input": " {}"}}
    collector, early = CHAT.collected(chunks({"index": 0, **custom}, more, part(1, "b", "g", Y)))
    sql, other = collector.calls()
    assert (sql.id, sql.kind, sql.arguments) == ("a", "custom", {"input": "select {}"})
    assert early == [other]
    legacy = [chat_chunk({"function_call": said}) for said in ({"name": "f", "arguments": ""}, {"arguments": X})]
    collector, early = CHAT.collected([*legacy, chat_chunk({}, "function_call")])
    (call,) = collector.calls()
    assert (call.name, call.arguments, early) == ("f", {"x": 1}, [])
    messages: list[Any] = []
    openai_chat.extend(messages, collector.response(), settled([call]))
    assert [message["role"] for message in messages] == ["assistant", "function"]


def test_what_stands_beside_a_call_travels_back() -> None:
    """Gemini's signature on its compatible endpoint, on the call and on its function, whichever fragment brings it."""
    signature = {"google": {"thought_signature": "c2ln"}}
    collector, _ = CHAT.collected(
        chunks(
            part(0, "a", "f", ""),
            part(0, None, None, X, extra_content=signature, type="function"),
            part(0, None, None, "", extra_content=None),
            part(0, None, None, "", extra_content={"google": {}}),
        )
    )
    (entry,) = collector.response()["choices"][0]["message"]["tool_calls"]
    assert entry == {
        "id": "a",
        "type": "function",
        "extra_content": signature,
        "function": {"name": "f", "arguments": X},
    }


def test_what_else_a_delta_has_is_put_together() -> None:
    """Text goes on, lists go on, objects are merged, labels are said anew: as the SDK does, but for ids and numbers."""

    class Said:
        def __init__(self, **said: Any) -> None:
            self.__dict__ = said

    deltas: list[Any] = [
        {"role": "assistant", "audio": {"id": "audio_1", "data": "AA", "transcript": "H"}, "reasoning": "h"},
        {
            "role": "assistant",
            "audio": Said(id="audio_1", data="BB", transcript="i"),
            "reasoning": "m",
            "refusal": None,
        },
        {"audio": {"expires_at": 7}, "annotations": [{"type": "url_citation"}], "reasoning": {"not": "text"}},
        {"audio": {"expires_at": 8}, "annotations": [{"type": "file"}], "flag": True, "score": 0.5},
        {"audio": "not an object", "annotations": "not a list", "flag": False},
    ]
    events = [chat_chunk(delta) for delta in deltas]
    events[0]["choices"][0]["logprobs"] = {"content": [{"token": "a"}], "refusal": None}
    events[1]["choices"][0]["logprobs"] = {"content": [{"token": "b"}]}
    collector, _ = CHAT.collected([*events, chat_chunk({}, "stop")])
    (choice,) = collector.response()["choices"]
    assert choice["message"] == {
        "role": "assistant",
        "content": None,
        "audio": {"id": "audio_1", "data": "AABB", "transcript": "Hi", "expires_at": 8},
        "reasoning": "hm",
        "annotations": [{"type": "url_citation"}, {"type": "file"}],
        "flag": False,
        "score": 0.5,
    }
    assert choice["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}]}


def test_calls_behind_the_finish_reason_are_announced() -> None:
    """Some servers say the reason first. They are not early any more, but they are there, and whole."""
    events = [*chunks(part(0, "a", "f", X)), chat_chunk({"tool_calls": [part(1, "b", "g", Y)]})]
    collector, early = CHAT.collected(events)
    assert [call.id for call in early] == ["a"]
    assert [(call.id, call.problem) for call in collector.calls()] == [("a", None), ("b", None)]


def test_what_was_returned_can_not_change() -> None:
    """A stream that adds to a call that was over contradicts itself: it is told, and nothing more of it is run."""
    collector = openai_chat.StreamCollector()
    first, second, _ = chunks(part(0, "a", "f", X), part(1, "b", "g", ""))
    assert collector.add(first) == []
    (early,) = collector.add(second)
    collector.add(
        chat_chunk({"tool_calls": [part(0, "a", "f", " \n"), part(0, "", "", "")]})
    )  # blank: nothing is added
    with pytest.raises(InvalidInputError, match="was added to call 1 of the response"):
        collector.add(chat_chunk({"tool_calls": [part(0, None, None, Y)]}))
    collector.add(chat_chunk({}, "tool_calls"))
    assert not collector.finished
    assert [call.problem and call.problem.code for call in collector.calls()] == ["response_truncated"] * 2
    assert collector.calls(started=["a"])[0] == early


def test_an_id_that_comes_too_late_is_not_taken() -> None:
    """The call was returned under an id of ours, and may be running: that is what it stays."""
    collector = openai_chat.StreamCollector()
    first, second, end = chunks(part(0, None, "f", X), part(1, "b", "g", Y))
    collector.add(first)
    (early,) = collector.add(second)
    collector.add(chat_chunk({"tool_calls": [part(0, "late")]}))
    collector.add(end)
    assert collector.calls()[0] == early
    assert early.wire_id == ""


def test_an_id_that_runs_is_never_another_calls() -> None:
    """Of a repeated id the first call keeps its own; but not if it gets it when the second one runs under it already."""
    collector = openai_chat.StreamCollector()
    first, second, third, _ = chunks(part(0, None, "f", '{"x":'), part(1, "a", "g", Y), part(2, "b", "h", Y))
    early = [call for event in (first, second, third) for call in collector.add(event)]
    assert [(call.id, call.name) for call in early] == [("a", "g")]
    collector.add(chat_chunk({"tool_calls": [part(0, "a", None, "1}")]}, "tool_calls"))
    announced = collector.calls(started=["a"])
    assert [(call.name, call.arguments) for call in announced] == [("f", {"x": 1}), ("g", {"y": 2}), ("h", {"y": 2})]
    assert announced[1] is early[0]
    half = openai_chat.StreamCollector()
    for event in chunks(part(0, "a", "f"), part(1, "ab", "g", Y), part(2, "c", "h", Y), finish=None):
        half.add(event)
    half.add(chat_chunk({"tool_calls": [part(0, "b"), part(0, None, None, X)]}, "tool_calls"))
    assert [(call.id, call.name) for call in half.calls(started=["ab"])] == [("a", "f"), ("ab", "g"), ("c", "h")]


def test_what_is_nested_too_deeply_can_be_read_from_anywhere() -> None:
    """A response that could be put together can be asked for, however full the stack is then."""

    def down(depth: int) -> Any:
        return collector.response() if depth == 0 else down(depth - 1)

    deep: Json = {}
    for _ in range(470):
        deep = {"a": deep}
    collector = openai_chat.StreamCollector()
    collector.add(chat_chunk({"reasoning_details": deep}))
    collector.add(chat_chunk({"reasoning_details": {"b": 1}}))
    (choice,) = down(300)["choices"]
    assert choice["message"]["reasoning_details"]["b"] == 1


def test_several_choices_are_kept_and_one_is_read() -> None:
    """Only one can become history: that which began first."""

    def choice(index: int, delta: Json, finish: Any = None) -> Json:
        return {**chat_chunk({}), "choices": [{"index": index, "delta": delta, "finish_reason": finish}]}

    events = [
        choice(0, {"content": "A", "tool_calls": [part(0, "a", "f", X)]}),
        choice(1, {"tool_calls": [part(0, "b", "g", Y), part(1, "c", "h", Y)]}),
        choice(1, {}, "tool_calls"),
    ]
    collector, early = CHAT.collected(events)
    assert (early, collector.finished) == ([], False)
    assert [call.id for call in collector.add(choice(0, {}, "tool_calls"))] == ["a"]
    collector.add(choice(1, {"tool_calls": [part(0, None, None, "more")]}))
    assert [call.id for call in collector.calls()] == ["a"]
    assert [one["index"] for one in collector.response()["choices"]] == [0, 1]


def test_a_chunk_behind_the_end_may_have_another_id() -> None:
    """Some servers give each chunk its own; only one that has something in it is of another response."""
    events = [*chunks(part(0, "a", "f", X)), {"id": "", "choices": [], "usage": {}}, {"id": "another", "choices": []}]
    collector, _ = CHAT.collected([*events, {**chat_chunk({}), "id": "another"}])
    assert collector.finished
    assert collector.response()["id"] == "chatcmpl-1"


def test_one_object_for_a_list() -> None:
    """A server may send one call without the list around it, and the whole message where a delta was due."""
    message = {"role": "assistant", "content": "Hm.", "tool_calls": part(None, "a", "f", X)}
    whole = {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    collector, early = CHAT.collected([whole])
    assert [call.id for call in early] == ["a"]
    assert collector.response()["choices"][0]["message"]["content"] == "Hm."


def test_the_mistral_sdks_marks_are_not_taken_for_facts() -> None:
    """Its objects say index 0 and id `"null"` where the server said nothing: whole calls are told apart all the same."""
    entries: list[Json] = [
        {"function": {"name": "f", "arguments": X}},
        {"function": {"name": "f", "arguments": {"y": 2}}},
    ]
    events: list[Json] = [{"delta": {"tool_calls": [entry]}, "index": 0, "finish_reason": None} for entry in entries]
    events.append({"delta": {"content": ""}, "index": 0, "finish_reason": "tool_calls"})
    made = [CompletionEvent.model_validate({"data": {"id": "c", "model": "m", "choices": [one]}}) for one in events]
    collector = mistral.StreamCollector()
    early = [call for event in made for call in collector.add(event)]
    assert [call.arguments for call in collector.calls()] == [{"x": 1}, {"y": 2}]
    assert early == collector.calls()


@pytest.mark.parametrize("repeats", [False, True])
def test_the_cost_of_a_fragment_does_not_grow(repeats: bool) -> None:
    """Each character is looked at once, however a call is cut: four times the fragments take about four times as long."""

    def seconds(count: int) -> float:
        text = json.dumps({"x": "}{" * count})
        call_id, name = ("a", "f") if repeats else (None, None)
        rest = [chunks(part(0, call_id, name, letter))[0] for letter in text[1:]]
        events = [chunks(part(0, "a", "f", text[0]))[0], *rest, chat_chunk({}, "tool_calls")]
        start = time.process_time()
        collector, _ = CHAT.collected(events)
        spent = time.process_time() - start
        assert [call.arguments for call in collector.calls()] == [{"x": "}{" * count}]
        return spent

    short, long = min(seconds(1500) for _ in range(3)), min(seconds(6000) for _ in range(2))
    assert long < 9 * short


def test_a_head_start_is_for_the_first_hundred() -> None:
    """The rest comes when the response has ended: else the n-th call would cost n."""
    entries = [part(number, f"call_{number}", "f", X) for number in range(2000)]
    collector = openai_chat.StreamCollector()
    *events, end = chunks(*entries)
    early = [call for event in events for call in collector.add(event)]
    assert [call.id for call in early] == [f"call_{number}" for number in range(100)]
    assert len(collector.add(end)) == 1900
    assert len(collector.calls()) == 2000
