"""What holds for every lane's stream, however a response is cut, wherever it breaks off, and whatever else comes in it."""

import copy
import json
import random
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.providers.streams import STREAMS, Called, Cut, Json, Said, StreamLane, Turn
from tests.providers.support import settled
from toolbatch.core import InvalidInputError, InvalidTypeError, ToolCall

EACH = pytest.mark.parametrize("lane", STREAMS, ids=lambda lane: lane.name)
# Without the phase that explains a failure: it traces every line, and takes minutes.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
SLOW = settings(deadline=None, max_examples=60, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])

SOUND = st.characters(exclude_categories=["Cs"])
ANY = st.characters()  # of all categories, lone surrogates too


def paired(text: str) -> str:
    """A text in which two halves that stand together are one character, as JSON has it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def texts(letters: Any = ANY, **size: Any) -> st.SearchStrategy[str]:
    """Texts of all sorts, many with characters that are two in UTF-16."""
    return st.text(st.one_of(st.sampled_from('ab"\\{}[]\n😀é'), letters), **size).map(paired)


def values(letters: Any, *, empty: bool = True) -> st.SearchStrategy[Any]:
    """JSON values."""
    least = 0 if empty else 1
    return st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | texts(letters, max_size=6),
        lambda inner: (
            st.lists(inner, min_size=least, max_size=3)
            | st.dictionaries(texts(letters, max_size=3), inner, min_size=least, max_size=3)
        ),
        max_leaves=5,
    )


IDS = ["", " ", "null", "a", "b", "call_0", None, "x" * 41, "x" * 65, "x" * 513, "f:0", "日本"]
NAMES = ["lookup", "", None, "a.b", "n" * 129, "n" * 513, "f"]
NOT_OBJECTS = [
    "",
    " ",
    "{}",
    '{"x":',
    "[1]",
    "null",
    '"x"',
    "nope",
    '{"x":1} ',
    '{"a":"\\ud83d\\ude00"}',
    '{"x":1}{"y":2}',
    "}{",
]


@cache
def turns(lane: StreamLane, *, hostile: bool = True, stopped: bool = False) -> st.SearchStrategy[Turn]:
    """Turns that the lane can carry whole; hostile ones have any id and name, and any text for arguments."""
    letters = ANY if hostile else SOUND
    arguments: st.SearchStrategy[Any] = st.dictionaries(texts(letters, max_size=4), values(letters), max_size=3)
    if lane.carries_text and hostile:
        arguments = st.one_of(arguments, st.sampled_from(NOT_OBJECTS), texts(letters, max_size=6))
    ids: st.SearchStrategy[Any] = st.text("abc123", min_size=9, max_size=9)
    names: st.SearchStrategy[Any] = st.sampled_from(["f", "lookup"])
    if hostile:
        ids, names = (
            st.sampled_from(IDS) | texts(letters, max_size=70),
            st.sampled_from(NAMES) | texts(letters, max_size=9),
        )
    thinking = st.builds(Said, texts(letters, min_size=1, max_size=20), st.sampled_from([None, "c2ln", "YWJj"]))
    return st.builds(
        Turn,
        st.none() | thinking,
        texts(letters, max_size=20),
        st.lists(st.builds(Called, ids, names, arguments), max_size=4).map(lambda calls: once(lane, calls)),
        st.sampled_from(lane.cuts) if stopped else st.none(),
        st.booleans(),
    )


def once(lane: StreamLane, calls: list[Called]) -> list[Called]:
    """Calls of which none is said twice where that would be one."""
    first = {one.call_id: one for one in reversed(calls)}
    return [one for one in calls if lane.name != "gemini" or one.call_id in ("", None) or first[one.call_id] is one]


cuts = st.builds(Cut, st.lists(st.integers(0, 4), max_size=4), st.booleans(), st.booleans())


def fair(lane: StreamLane, turn: Turn, cut: Cut) -> Cut:
    """The same cut, but for what would not be legal of this turn: names that are said again behind what looks like an end."""
    odd = lane.carries_text and any(isinstance(one.arguments, str) for one in turn.calls)
    return Cut(cut.sizes, cut.together, cut.repeats and not odd)


def essence(lane: StreamLane, response: Json) -> Any:
    """A response without what says nothing of the turn."""
    if lane.name in ("openai_chat", "mistral"):
        (choice,) = response["choices"]
        body = {name: value for name, value in choice["message"].items() if value not in (None, "")}
        return choice["finish_reason"], body
    if lane.name == "openai_responses":
        return response["status"], response.get("incomplete_details"), response["output"]
    if lane.name == "gemini":
        (candidate,) = response["candidates"]
        return candidate["content"], candidate["finishReason"], response["responseId"]
    return response


def cut_into_events(lane: StreamLane, turn: Turn, cut: Cut) -> list[Any]:
    return list(lane.events(turn, fair(lane, turn, cut)))


@EACH
@SLOW
@given(data=st.data(), cut=cuts)
def test_a_stream_says_what_the_whole_response_says(lane: StreamLane, data: Any, cut: Cut) -> None:
    """The same calls, ids, names and problems, and the same response; and what is returned early is what comes out."""
    turn = data.draw(turns(lane))
    whole = lane.whole(turn)
    collector, early = lane.collected(cut_into_events(lane, turn, cut))
    calls = collector.calls()
    assert calls == lane.module.calls(whole)
    assert len(calls) == len(turn.calls)
    assert essence(lane, collector.response()) == essence(lane, whole)
    assert collector.finished
    assert collector.error is None
    assert early == [call for call in calls if call.problem is None and call.arguments]


@EACH
@SLOW
@given(data=st.data(), cut=cuts)
def test_a_response_that_was_cut_off_runs_nothing(lane: StreamLane, data: Any, cut: Cut) -> None:
    """The stop reason decides (LANES 14.4, 14.5, 14.15); only what was started early keeps its word, as it was returned."""
    turn = data.draw(turns(lane, stopped=True))
    collector, early = lane.collected(cut_into_events(lane, turn, cut))
    calls = collector.calls()
    assert calls == lane.module.calls(lane.whole(turn))
    assert all(call.problem for call in calls)
    assert collector.finished
    started = {call.id: call for call in early[::2]}
    answered = collector.calls(started=started.keys())
    assert [call.id for call in answered] == [call.id for call in calls]
    for call, truncated in zip(answered, calls, strict=True):
        assert call == started.get(call.id, truncated)


@EACH
@settings(SLOW, max_examples=25)
@given(data=st.data(), cut=cuts)
def test_a_stream_that_breaks_off_runs_nothing_and_loses_nothing(lane: StreamLane, data: Any, cut: Cut) -> None:
    """After each event: all calls that began are there, none can be run, and the turn that is written is taken (P6)."""
    turn = data.draw(turns(lane))
    if lane.name == "mistral":  # its judges read no thinking
        turn = replace(turn, thinking=None)
    events = cut_into_events(lane, turn, cut)
    collector = lane.module.StreamCollector()
    early: list[ToolCall] = []
    count = 0
    for event in events:
        early += collector.add(copy.deepcopy(event))
        if collector.finished:
            break
        calls = collector.calls()
        assert len(calls) >= count
        count = len(calls)
        assert {call.problem.code for call in calls if call.problem} <= {"response_truncated"}
        assert all(call.problem for call in calls)
        assert lane.module.calls(collector.response()) == calls
        assert [call.id for call in early] == [call.id for call in calls if call.id in {one.id for one in early}]
    else:
        raise AssertionError("the stream had no end")
    assert count == len(turn.calls) or lane.name == "ollama"  # its calls can come with the end
    stopped = data.draw(st.integers(0, len(events) - 1))
    taken = turn_of(lane, lane.collected(events[:stopped])[0])
    if taken[-1].get("role") in ("assistant", "model"):
        taken.append(lane.user)
    assert lane.refused(taken) is None
    json.dumps(taken, ensure_ascii=False, allow_nan=False, default=repr).encode()


def turn_of(lane: StreamLane, collector: Any) -> list[Any]:
    """A conversation of a user's message and the collected turn, with a result for each call, whatever the call has."""
    history: list[Any] = [lane.user]
    calls = collector.calls()
    lane.module.extend(history, collector.response(), settled(calls, lambda _: "closed"))
    return history


@EACH
@settings(SLOW, max_examples=30)
@given(data=st.data(), cut=cuts)
def test_events_are_read_in_every_form(lane: StreamLane, data: Any, cut: Cut) -> None:
    """JSON text, bytes, dicts, the SDK's objects and their dumps."""
    turn = data.draw(turns(lane, hostile=False))
    if lane.name == "ollama":  # the SDK's objects have no ids
        turn = replace(turn, calls=[replace(one, call_id=None) for one in turn.calls])
    cut = Cut([size * 2 for size in cut.sizes] if not any(map(wide, said(turn))) else (), cut.together, cut.repeats)
    events = cut_into_events(lane, turn, cut)
    calls = lane.module.calls(lane.whole(turn))
    forms: list[list[Any]] = [events, [json.dumps(event).encode() for event in events]]
    forms.append(["", *[f" {json.dumps(event)}\n" for event in events], "[DONE]", "[DONE]", " \n"])
    if lane.sdk is not None:
        made = [lane.sdk(event) for event in events]
        forms += [made, [one.model_dump(warnings=False) for one in made]]
        forms.append([one.model_dump(warnings=False, exclude_unset=True) for one in made])
        forms.append([one.model_dump(warnings=False, mode="json", by_alias=True) for one in made])
    for form in forms:
        collector, early = lane.collected(form)
        assert collector.calls() == calls
        assert early == [call for call in calls if call.arguments]
        assert turn_of(lane, collector) == turn_of(lane, lane.collected(events)[0])


def said(turn: Turn) -> list[str]:
    """All texts of a turn."""
    arguments = [json.dumps(one.arguments, ensure_ascii=False) for one in turn.calls]
    return [turn.text, *arguments, *([turn.thinking.text] if turn.thinking else [])]


def wide(text: str) -> bool:
    """Whether there is a character in it that is two in UTF-16."""
    return any(ord(letter) > 0xFFFF for letter in text)


# -- hostile streams --------------------------------------------------------------------------------------------------

DEEP: Any = json.loads("[" * 400 + "]" * 400)
NOISE = st.one_of(
    values(ANY),
    st.sampled_from(
        [float("nan"), float("inf"), -1, 0, True, DEEP, {"type": "function"}, [{}], [None], {}, "", "a", 10**30]
    ),
)


def spoil(rng: random.Random, value: Any, noise: Any) -> Any:
    """A copy of a JSON value in which one thing is another."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        name = rng.choice(sorted(value))
        if rng.random() < 0.15:
            return {key: entry for key, entry in value.items() if key != name}
        return {**value, name: spoil(rng, value[name], noise)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        place = rng.randrange(len(value))
        return [*value[:place], spoil(rng, value[place], noise), *value[place + 1 :]]
    return noise


@EACH
@settings(SLOW, max_examples=150)
@given(data=st.data(), cut=cuts, seed=st.integers(), noise=st.lists(NOISE, min_size=1, max_size=6))
def test_a_hostile_stream_raises_nothing_that_is_not_documented(
    lane: StreamLane, data: Any, cut: Cut, seed: int, noise: list[Any]
) -> None:
    """Spoiled, doubled, missing and shuffled events: `add` says what it can't read, and the rest stands.

    And what was returned early is there in the end, the same, or with a problem: no id is ever another call's.
    """
    rng = random.Random(seed)
    events = [copy.deepcopy(event) for event in lane.events(data.draw(turns(lane)), cut)]
    for piece in noise:
        place = rng.randrange(len(events))
        match rng.randrange(5):
            case 0:
                events.insert(place, copy.deepcopy(events[rng.randrange(len(events))]))
            case 1 if len(events) > 1:
                del events[place]
            case 2:
                other = rng.randrange(len(events))
                events[place], events[other] = events[other], events[place]
            case _:
                events[place] = spoil(rng, events[place], piece)
    collector = lane.module.StreamCollector()
    early: list[ToolCall] = []
    for event in events:
        try:
            early += collector.add(event)
        except (InvalidInputError, InvalidTypeError):
            assert not collector.finished
    try:
        calls = collector.calls()
    except InvalidTypeError:  # nothing of it was known
        assert not early
        return
    assert lane.module.calls(collector.response()) == calls
    if not collector.finished:
        assert all(call.problem for call in calls)
    assert len({call.id for call in early}) == len(early)
    final = {call.id: call for call in calls}
    if lane.name != "anthropic" or collector.response()["stop_reason"] not in ("pause_turn", "compaction"):
        for call in early:
            assert final[call.id] == call or final[call.id].problem
    snapshot = settled(calls)
    history: list[Any] = [lane.user]
    try:
        lane.module.extend(history, collector.response(), snapshot)
    except (InvalidInputError, InvalidTypeError):
        assert history == [
            lane.user
        ]  # what is no JSON in it can't be sent back: the lane's own word, as of a whole response
