"""What a collector does with events that are no events, streams that go wrong, and callers who make mistakes: in every lane."""

import copy
import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from tests.providers.streams import STREAMS, Called, Cut, Json, StreamLane, Turn, chat_chunk, stream
from tests.providers.support import settled
from toolbatch import ToolBatch
from toolbatch.core import InvalidInputError, InvalidTypeError, ProviderMismatchError
from toolbatch.providers import mcp, openai_chat

EACH = pytest.mark.parametrize("lane", STREAMS, ids=lambda lane: lane.name)
TURN = Turn(None, "Let me look.", [Called("aaaaaaaaa", "f", {"x": 1}), Called("bbbbbbbbb", "g", {"y": "two"})])
CUT = Cut([4])


def events(lane: StreamLane, turn: Turn = TURN) -> list[Json]:
    return list(lane.events(turn, CUT))


def codes(collector: Any) -> list[str | None]:
    return [call.problem and call.problem.code for call in collector.calls()]


# -- events that are none ---------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("event", [None, True, 7, 0.5, [], [{}], (), {1}, frozenset()])
def test_what_can_be_no_event_is_the_callers_mistake(lane: StreamLane, event: Any) -> None:
    """It is named, and the response counts as broken off: what should have been in its place is missing."""
    collector = lane.module.StreamCollector()
    with pytest.raises(InvalidTypeError, match="event must be"):
        collector.add(event)
    for rest in events(lane):
        assert collector.add(rest) == []
    assert not collector.finished
    assert codes(collector) == ["response_truncated"] * 2


@EACH
@pytest.mark.parametrize("data", ["{", "data: {}", '{"type": "ping"', "[1]", "7", "null", b"\xff", "[" * 100_000])
def test_data_that_is_no_json_object_is_told(lane: StreamLane, data: Any) -> None:
    """A line cut by a lost connection, a field name left in, a depth that no reader takes: nothing behind it is trusted."""
    collector = lane.module.StreamCollector()
    first, *rest = events(lane)
    collector.add(first)
    with pytest.raises(InvalidInputError):
        collector.add(data)
    for event in rest:
        collector.add(event)
    assert not collector.finished
    assert codes(collector) == ["response_truncated"] * 2


@EACH
def test_blank_data_and_strangers_are_passed_over(lane: StreamLane) -> None:
    """Keep-alives, and types that the lane does not know yet, change nothing."""
    collector = lane.module.StreamCollector()
    odd: list[Any] = [
        "",
        " \n",
        b"",
        bytearray(b" "),
        {},
        {"type": "of a later version"},
        {"of": {"a": "later one"}},
        object(),
    ]
    for event in events(lane):
        for stranger in odd:
            assert collector.add(stranger) == []
        collector.add(event)
    assert collector.finished
    assert codes(collector) == [None, None]


@EACH
def test_a_line_of_the_wire_is_told(lane: StreamLane) -> None:
    """Who feeds lines as they come from the socket reads what to do."""
    with pytest.raises(InvalidInputError, match="give what is behind 'data:'"):
        lane.module.StreamCollector().add(f"data: {json.dumps(events(lane)[0])}")


@EACH
def test_a_stream_of_another_lane_is_told(lane: StreamLane) -> None:
    """Silence would make it a turn without calls. A stream of nothing is one."""
    assert lane.module.StreamCollector().calls() == []
    other = stream("bedrock" if lane.name != "bedrock" else "cohere")
    collector, early = lane.collected(events(other))
    assert early == []
    for ask in (collector.calls, collector.response):
        with pytest.raises(
            InvalidTypeError, match=r"none of the events was one of this lane's stream.*calls\(\) reads it"
        ):
            ask()


class Evil:
    """An object whose attributes raise."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


@EACH
def test_an_object_that_can_not_be_read_is_told(lane: StreamLane) -> None:
    """Whatever it raises, the caller gets one kind of error, and nothing after it is run. Bedrock's events are dicts alone."""
    collector = lane.module.StreamCollector()
    if lane.name == "bedrock":
        assert collector.add(Evil()) == []
        return
    with pytest.raises(InvalidInputError, match="can't be read"):
        collector.add(Evil())
    assert not collector.finished


# -- ends -------------------------------------------------------------------------------------------------------------


@EACH
def test_the_end_is_an_end(lane: StreamLane) -> None:
    """Behind `[DONE]` comes nothing; a second `[DONE]` and blank data are nothing."""
    collector = lane.module.StreamCollector()
    for event in [*events(lane), "[DONE]", b"[DONE]", "", " [DONE]\n"]:
        collector.add(event)
    assert collector.finished
    with pytest.raises(InvalidInputError, match="each response needs a new StreamCollector"):
        collector.add(events(lane)[0])
    assert not collector.finished


ENDS = ("response.completed", "message_delta", "messageStop", "message-end")


def endless(lane: StreamLane) -> list[Json]:
    """The events of a response without those that say how it ended."""

    def says_end(event: Json) -> bool:
        one = (event.get("choices") or event.get("candidates") or [event])[0]
        said = one.get("finish_reason") or one.get("finishReason") or one.get("done_reason")
        return bool(said or event.get("type") in ENDS or "messageStop" in event)

    return [event for event in events(lane) if not says_end(event)]


@EACH
def test_done_is_no_stop_reason(lane: StreamLane) -> None:
    """A server that ends a stream without saying why has cut it (LANES 14.11)."""
    assert 0 < len(events(lane)) - len(endless(lane)) <= 2
    collector, _ = lane.collected([*endless(lane), "[DONE]"])
    assert not collector.finished
    assert codes(collector) == ["response_truncated"] * 2


OTHER = {"id": "another", "responseId": "another"}


@EACH
def test_a_second_response_is_not_taken_for_the_first(lane: StreamLane) -> None:
    """One collector for two turns would run the first one's calls again."""
    again = []
    for event in events(lane):
        other = {**event, **{name: said for name, said in OTHER.items() if name in event}}
        if "response" in event:
            other = {**event, "response": {**event["response"], "id": "another"}}
        again.append(other)
    collector, early = lane.collected(events(lane))
    assert len(early) == 2
    with pytest.raises(InvalidInputError, match=r"another response|second|came after the end"):
        for event in again:
            assert collector.add(event) == []
    assert len(collector.calls()) == 2


def reasons(value: Any, to: Any) -> Any:
    """A copy of an event in which each reason why the response ended is another."""
    if isinstance(value, dict):
        named = ("finish_reason", "finishReason", "stop_reason", "stopReason")
        return {name: to if name in named else reasons(entry, to) for name, entry in value.items()}
    return [reasons(entry, to) for entry in value] if isinstance(value, list) else value


@EACH
@pytest.mark.parametrize("blank", ["", " ", "null"])
def test_a_blank_reason_is_none(lane: StreamLane, blank: str) -> None:
    """Some servers fill the field in every chunk; a stream that breaks off then has not ended."""
    collector, _ = lane.collected([reasons(event, blank) for event in endless(lane)])
    assert not collector.finished
    assert codes(collector) == ["response_truncated"] * 2
    if lane.name not in ("openai_responses", "ollama"):  # they have no such field
        collector, _ = lane.collected([reasons(event, blank) for event in events(lane)])
        assert not collector.finished
        assert codes(collector) == ["response_truncated"] * 2


@EACH
def test_what_was_cut_off_does_not_become_whole(lane: StreamLane) -> None:
    """A server that says the usual reason behind the true one runs nothing with it."""
    turn = Turn(calls=[Called("aaaaaaaaa", "f", {"x": 1})], stop=lane.cuts[0])
    cut = list(lane.events(turn, Cut()))
    usual = [event for event in lane.events(replace(turn, stop=None), Cut()) if event not in cut]
    assert usual
    collector, _ = lane.collected(cut)
    assert codes(collector) == ["response_truncated"]
    with suppress(InvalidInputError):
        for event in usual:
            collector.add(event)
    assert codes(collector) == ["response_truncated"]


def test_a_reason_beside_an_error_is_no_end() -> None:
    """A gateway that closes the choice in the chunk with the server's error: what came before is not whole."""
    chunk = {**chat_chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}]})}
    chunk["choices"][0]["finish_reason"] = "tool_calls"
    collector, early = stream("openai_chat").collected([{**chunk, "error": {"message": "Overloaded."}}])
    assert (early, collector.finished, collector.error) == ([], False, "Overloaded.")
    assert codes(collector) == ["response_truncated"]


# -- bounds -----------------------------------------------------------------------------------------------------------


@EACH
def test_a_stream_without_an_end_comes_to_one(lane: StreamLane) -> None:
    """Text or arguments, in one piece or in many: over the bound it is refused, for ever, and what came before is answered."""
    for said in (Turn(text="x" * 9000), Turn(calls=[*TURN.calls, Called("ccccccccc", "h", {"x": "y" * 9000})])):
        for cut in (Cut(), Cut([50])):
            collector = lane.module.StreamCollector(max_chars=8000)
            rest = iter(lane.events(said, cut))
            with pytest.raises(InvalidInputError, match="max_chars, which is 8000"):
                for event in rest:
                    collector.add(event)
            for event in rest:
                with suppress(InvalidInputError):
                    assert collector.add(event) == []
            assert not collector.finished
            assert len(json.dumps(collector.response())) < 12_000
            assert {call.problem.code for call in collector.calls()} <= {"response_truncated"}


@EACH
@pytest.mark.parametrize(
    ("bound", "error"),
    [
        (0, InvalidInputError),
        (-1, InvalidInputError),
        (1.5, InvalidTypeError),
        (True, InvalidTypeError),
        (None, InvalidTypeError),
    ],
)
def test_a_bound_that_can_not_be_used_is_named(lane: StreamLane, bound: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="max_chars must be"):
        lane.module.StreamCollector(max_chars=bound)


def test_the_bound_counts_what_small_things_weigh() -> None:
    """Not only text takes memory: endless calls, choices, blocks and members are bounded too."""
    hollow: dict[str, Any] = {
        "openai_chat": lambda number: {**chat_chunk({}), "choices": [{"index": number, "delta": {"tool_calls": []}}]},
        "openai_responses": lambda number: {"type": "response.output_item.added", "output_index": number, "item": {"type": "a"}},
        "anthropic": lambda number: {"type": "content_block_start", "index": number, "content_block": {"type": "text"}},
        "gemini": lambda _: {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}}]},
        "bedrock": lambda number: {"contentBlockStart": {"start": {"toolUse": {}}, "contentBlockIndex": number}},
        "mistral": lambda number: chat_chunk({f"member {number}": 1}),
        "cohere": lambda number: {"type": "content-start", "index": number, "delta": {"message": {"content": {"type": "text"}}}},
        "ollama": lambda _: {"message": {"tool_calls": [{"function": {"name": "f"}}]}},
    }  # fmt: skip
    for lane in STREAMS:
        collector = lane.module.StreamCollector(max_chars=100_000)
        with pytest.raises(InvalidInputError, match="max_chars"):
            for number in range(20_000):
                collector.add(hollow[lane.name](number))


# -- the provider's own errors ----------------------------------------------------------------------------------------

ERRORS: dict[str, Json] = {
    "openai_chat": {"error": {"message": "Overloaded.", "code": 529}},
    "openai_responses": {"type": "error", "code": "server_error", "message": "Overloaded.", "param": None},
    "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded."}},
    "gemini": {"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}},
    "bedrock": {"modelStreamErrorException": {"message": "Overloaded.", "originalStatusCode": 500}},
    "mistral": {"error": {"message": "Overloaded."}},
    "cohere": {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "Overloaded."}},
    "ollama": {"error": "Overloaded."},
}


@EACH
def test_an_error_in_the_stream_is_kept_and_nothing_is_run(lane: StreamLane) -> None:
    """`add` goes on, as the SDK's own exception would have ended the loop: all calls are there to be answered."""
    collector, early = lane.collected([*endless(lane), ERRORS[lane.name]])
    assert collector.error == "Overloaded."
    assert collector.finished is (lane.name == "cohere")  # where it is how the response ended
    assert all(call.id in ("aaaaaaaaa", "bbbbbbbbb") for call in early)
    assert codes(collector) == ["response_truncated"] * 2


@EACH
def test_an_error_outlasts_an_end_that_comes_behind_it(lane: StreamLane) -> None:
    """Gateways end a stream as usual after the server's error; what came before it is not whole all the same."""
    if lane.name == "cohere":
        return  # its error is the end
    rest = [event for event in events(lane) if event not in endless(lane)]
    collector, _ = lane.collected([*endless(lane), ERRORS[lane.name], *rest])
    assert (collector.error, collector.finished) == ("Overloaded.", False)
    assert codes(collector) == ["response_truncated"] * 2
    collector, _ = lane.collected([*events(lane), ERRORS[lane.name]])
    assert (collector.error, collector.finished) == ("Overloaded.", True)
    assert codes(collector) == [None, None]


def test_an_interrupt_in_the_middle_of_an_event_leaves_nothing_to_run() -> None:
    """Ctrl-C passes through, and what it left half-read counts as broken off."""

    class Interrupted:
        @property
        def choices(self) -> Any:
            raise KeyboardInterrupt

    collector, _ = stream("openai_chat").collected(events(stream("openai_chat")))
    with pytest.raises(KeyboardInterrupt):
        collector.add(Interrupted())
    assert codes(collector) == ["response_truncated"] * 2


def test_an_error_is_kept_within_a_bound_and_the_first_is_the_cause() -> None:
    collector = openai_chat.StreamCollector()
    collector.add({"error": {"message": "é" * 100_000}})
    collector.add({"error": "another"})
    assert collector.error is not None
    assert len(collector.error.encode()) <= 1000
    assert collector.error.startswith("éé")
    collector = openai_chat.StreamCollector()
    collector.add({"error": {"code": 7}})
    assert collector.error == '{"code":7}'


# -- asking -----------------------------------------------------------------------------------------------------------


@EACH
def test_a_forced_choice_is_checked_at_the_end(lane: StreamLane) -> None:
    """As of a whole response: another tool's name raises before anything of the batch runs (P7)."""
    collector, _ = lane.collected(events(lane))
    with pytest.raises(ProviderMismatchError, match="'f' and nothing else"):
        collector.calls(expect="f")
    with pytest.raises(ProviderMismatchError, match="calls no tool"):
        lane.collected(events(lane, Turn(text="Hm.")))[0].calls(expect="f")
    one, _ = lane.collected(events(lane, Turn(calls=[Called("aaaaaaaaa", "f", {})])))
    assert [call.name for call in one.calls(expect="f")] == ["f"]


@EACH
async def test_a_call_that_was_started_is_answered_with_what_it_did(lane: StreamLane) -> None:
    """The response turns out to be cut off: one call has run, and the model must not read that it was not (P6)."""
    stopped = Turn(TURN.thinking, TURN.text, TURN.calls, lane.cuts[0])
    collector, early = lane.collected(events(lane, stopped))
    first = early[0]
    assert {call.problem is not None for call in collector.calls()} == {True}
    calls = collector.calls(started=[first.id])
    async with ToolBatch(calls) as batch:
        assert [call.id for call in batch.calls] == [first.id]
        batch.start(first.id, lambda: "done")
    assert batch.result is not None
    assert [row.state for row in batch.result.calls] == ["success", "error"]
    messages = [lane.user]
    lane.module.extend(messages, collector.response(), batch.result)
    assert lane.refused(messages) is None


@EACH
@pytest.mark.parametrize("started", [["c"], ["aaaaaaaaa", 7], "ab", [None]])
def test_an_id_that_was_never_returned_is_named(lane: StreamLane, started: Any) -> None:
    collector, _ = lane.collected(events(lane))
    with pytest.raises(InvalidInputError, match=r"was returned by add\(\)"):
        collector.calls(started=started)


@EACH
def test_what_is_returned_is_the_callers_own(lane: StreamLane) -> None:
    """Events may be changed behind it, and so may a response: the next one is as it was. It may be asked at any time."""
    collector = lane.module.StreamCollector()
    for event in copy.deepcopy(events(lane)):
        own = copy.deepcopy(event)
        collector.add(own)
        spoil(own)
        spoil(collector.response())
        collector.calls()
    assert codes(collector) == [None, None]
    assert [call.arguments for call in collector.calls()] == [{"x": 1}, {"y": "two"}]
    spoil(collector.response())
    assert collector.response() == lane.collected(events(lane))[0].response()


def spoil(value: Any) -> None:
    """Empty everything that can be emptied."""
    for entry in list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ():
        spoil(entry)
    if isinstance(value, (dict, list)):
        value.clear()


@EACH
def test_a_stream_without_calls_is_a_turn(lane: StreamLane) -> None:
    collector, early = lane.collected(events(lane, Turn(text="Hello.")))
    assert (early, collector.calls(), collector.finished) == ([], [], True)
    messages = [lane.user]
    lane.module.extend(messages, collector.response())
    assert len(messages) == 2


@EACH
def test_a_call_without_arguments_has_no_head_start(lane: StreamLane) -> None:
    """Nothing tells it from one whose arguments have not come yet; it is in `calls`, and the others are not held up."""
    turn = Turn(calls=[Called("aaaaaaaaa", "f", {}), *TURN.calls[1:]])
    for cut in (CUT, Cut(together=True)):
        collector, early = lane.collected(list(lane.events(turn, cut)))
        assert [call.name for call in early] == ["g"]
        assert [call.name for call in collector.calls()] == ["f", "g"]


def test_a_half_of_a_character_in_each_event() -> None:
    """A server that cuts a surrogate pair in two sends one character: in text, in a name and in arguments (LANES 14.2)."""
    lane = stream("openai_chat")
    turn = Turn(None, "a😀b", [Called("a", "😀", {"😀": "😀"})])
    collector, _ = lane.collected(list(lane.events(turn, Cut([1]))))
    assert collector.response()["choices"][0]["message"]["content"] == "a😀b"
    assert collector.calls()[0].arguments == {"😀": "😀"}
    assert collector.calls() == openai_chat.calls(lane.whole(turn))
    messages: list[Any] = []
    openai_chat.extend(messages, collector.response(), settled(collector.calls()))
    json.dumps(messages, ensure_ascii=False).encode()


def deep(levels: int) -> Json:
    """An object in an object, and so on."""
    value: Json = {}
    for _ in range(levels):
        value = {"x": value}
    return value


@pytest.mark.parametrize("arguments", [{"x": object()}, {"x": float("nan")}, {"x": {1: b"bytes"}}, object(), deep(500)])
def test_arguments_that_are_no_json_are_no_reason_to_lose_a_call(arguments: Any) -> None:
    """A host that puts events together by itself may put anything into them: the call is announced, and answered."""
    call = {"function": {"name": "f", "arguments": arguments}}
    for lane, event in (
        ("ollama", {"message": {"tool_calls": [call]}, "done": True}),
        ("openai_chat", chat_chunk({"tool_calls": [call]}, "stop")),
    ):
        collector, early = stream(lane).collected([event])
        assert collector.finished
        assert early == []
        assert codes(collector) == ["malformed_arguments"]


def test_mcp_has_no_stream_of_a_model() -> None:
    """`tools/call` and sampling answer whole."""
    assert not hasattr(mcp, "StreamCollector")
