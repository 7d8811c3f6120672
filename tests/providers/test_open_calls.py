"""Responses' async calls: the only ones that a turn may leave open, and how their outputs come later (LANES 2)."""

import json
from collections.abc import Sequence
from typing import Any

import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.providers.outcomes import PNG, ended, outcomes, succeeded
from tests.providers.support import RESPONSES, USER, exhaust, item, responses
from toolbatch.core import (
    Image,
    InvalidInputError,
    InvalidTypeError,
    Snapshot,
    ToolbatchError,
    ToolCall,
    ToolCallClosure,
)
from toolbatch.providers import openai_responses
from toolbatch.testing import FakeProvider, Reply, ScriptedCall

LATER = {"async": True}
IMAGE = Image.of(PNG, "image/png")


def job(call_id: Any, name: str = "lookup") -> dict[str, Any]:
    return item(call_id, name, **LATER)


def output(call_id: str, text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def accepted(messages: list[Any]) -> None:
    assert RESPONSES.refused(messages) is None
    exhaust(RESPONSES.adapter.validate_python(messages))
    json.dumps(messages, allow_nan=False).encode()


def split(response: Any) -> tuple[list[ToolCall], list[ToolCall]]:
    """The response's calls: those to be answered now, and those that may stay open."""
    calls = openai_responses.calls(response)
    later = [call for call in calls if openai_responses.may_stay_open(call)]
    return [call for call in calls if call not in later], later


@pytest.mark.parametrize("flag", [True, False, None, 1, "true", {}])
def test_which_calls_may_stay_open(flag: Any) -> None:
    """Those whose item says `async`, and no others: a server takes nothing else for it."""
    custom = {"type": "custom_tool_call", "call_id": "b", "name": "sql", "input": "", "async": flag}
    wire, *sdk = RESPONSES.forms(responses(item("a", **{"async": flag}), custom, item("c")))
    for form in [wire, *(sdk if isinstance(flag, bool) else ())]:  # the SDK's objects read other values as they like
        calls = openai_responses.calls(form)
        assert [openai_responses.may_stay_open(call) for call in calls] == [flag is True, flag is True, False]


def test_a_call_of_another_lane_may_not() -> None:
    """Only this lane knows such calls."""
    assert not openai_responses.may_stay_open(ToolCall("a", "f", echo={"other": {"async": True}}))
    assert not openai_responses.may_stay_open(ToolCall("a", "f"))


def test_an_output_comes_later_under_its_own_id() -> None:
    """The turn has the call and no output for it; turns go by; then the output, of any content, closes it."""
    messages: list[Any] = [USER]
    response = responses(item("a"), job("b"))
    now, later = split(response)
    openai_responses.extend(messages, response, succeeded(now, "1"), leave_open=later)
    assert messages == [USER, item("a"), job("b"), output("a", "1")]
    accepted(messages)
    for _ in range(2):
        RESPONSES.extended(responses(item("a")), messages=messages)
        accepted(messages)
    late = openai_responses.late_results(messages, [succeeded(later, [IMAGE])])
    assert [(entry["call_id"], entry["output"][0]["type"]) for entry in late] == [("b", "input_image")]
    messages += late
    accepted(messages)
    with pytest.raises(InvalidInputError, match="no function call 'b'"):
        openai_responses.late_results(messages, [succeeded(later, "again")])


def test_a_turn_of_open_calls_alone_needs_no_snapshot() -> None:
    """There is nothing to answer yet; the host need not run an empty batch."""
    response = responses(job("a"), job("b"))
    _, later = split(response)
    messages: list[Any] = [USER]
    openai_responses.extend(messages, response, leave_open=later)
    assert messages == [USER, job("a"), job("b")]
    accepted(messages)
    messages += openai_responses.late_results(messages, [succeeded(later[1:], "2"), succeeded(later[:1], "1")])
    assert messages[3:] == [output("b", "2"), output("a", "1")]
    accepted(messages)


def test_a_tool_that_waits_is_answered_behind_what_it_waited_for() -> None:
    """ "Deliver results before wait status": the model that goes on has read them (OpenAI's guide to async tools)."""
    messages: list[Any] = [USER]
    response = responses(job("a"))
    _, (first,) = split(response)
    openai_responses.extend(messages, response, leave_open=[first])
    response = responses(job("b"), item("w", "wait"))
    (wait,), (second,) = split(response)
    late = [succeeded([first], "1"), succeeded([second], "2")]
    openai_responses.extend(messages, response, succeeded([wait], "done"), leave_open=[second], late=late)
    assert messages[2:] == [
        job("b"),
        item("w", "wait"),
        output("a", "1"),
        output("b", "2"),
        output("w", "done"),
    ]
    accepted(messages)


def test_async_calls_may_be_answered_at_once() -> None:
    """The host decides; nothing is left open by itself."""
    turn = RESPONSES.extended(responses(job("a"), item("b")))
    assert [entry.get("call_id") for entry in turn] == [None, "a", "b", "a", "b"]
    accepted(turn)


def test_free_form_calls_too() -> None:
    """They have an output type of their own, late as at once."""
    custom = {"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "select 1", **LATER}
    messages: list[Any] = [USER]
    _, later = split(responses(custom))
    openai_responses.extend(messages, responses(custom), leave_open=later)
    messages += openai_responses.late_results(messages, [succeeded(later, "1")])
    assert messages[1:] == [custom, {"type": "custom_tool_call_output", "call_id": "a", "output": "1"}]
    accepted(messages)


@pytest.mark.parametrize("wire_id", ["x" * 66, "", None, "null"])
def test_ids_that_the_server_would_refuse(wire_id: Any) -> None:
    """Ours stands in the turn, so it stands in the late output; who has no copy of the turn sends theirs (P6)."""
    response = responses(job(wire_id))
    _, later = split(response)
    messages: list[Any] = [USER]
    openai_responses.extend(messages, response, leave_open=later)
    snapshot = succeeded(later, "1")
    messages += openai_responses.late_results(messages, [snapshot])
    assert [entry["call_id"] for entry in messages[1:]] == [later[0].id] * 2
    accepted(messages)
    assert openai_responses.results(snapshot)[0]["call_id"] == (wire_id or later[0].id)


def test_an_id_that_is_still_open_is_not_used_again() -> None:
    """A gateway that counts from the same id in every turn: the new call gets an id of ours, the open one keeps its own."""
    messages: list[Any] = [USER]
    response = responses(job("call_0"))
    _, later = split(response)
    openai_responses.extend(messages, response, leave_open=later)
    for _ in range(2):
        RESPONSES.extended(responses(item("call_0")), messages=messages)
        accepted(messages)
    messages += openai_responses.late_results(messages, [succeeded(later, "late")])
    accepted(messages)
    called = [entry["call_id"] for entry in messages if entry.get("type") == "function_call"]
    assert called[0] == "call_0"
    assert "call_0" not in called[1:]
    assert messages[-1] == output("call_0", "late")


def test_names_of_open_calls() -> None:
    """The server took the tool's declaration under its name, so that stays; a call that can't run has no such tool behind it."""
    response = responses(job("a", "db.query"), item("b", "db.query", "{cut", **LATER))
    _, later = split(response)
    messages: list[Any] = []
    openai_responses.extend(messages, response, leave_open=later)
    assert [entry["name"] for entry in messages] == ["db.query", "db_query"]
    assert json.loads(messages[1]["arguments"]) == {"INVALID_JSON": "{cut"}


def unfinished(calls: Sequence[ToolCall]) -> Snapshot:
    closure = ToolCallClosure()
    closure.begin(calls)
    snapshot = closure.snapshot()
    assert snapshot is not None
    return snapshot


def test_mistakes_leave_the_list_as_it_was() -> None:
    """What may not stay open, what was not left open, and what is answered twice."""
    response = responses(item("a"), job("b"))
    (now,), (later,) = split(response)
    both = succeeded([now, later], "1", "2")
    one = succeeded([now], "1")
    other = ToolCall("b", "other", echo=later.echo)
    messages: list[Any] = [USER, job("b")]
    bad: list[tuple[Any, dict[str, Any], type[ToolbatchError], str]] = [
        (one, {"leave_open": [now]}, InvalidInputError, "only calls of async tools"),
        (None, {"leave_open": [ToolCall("c", "f")]}, InvalidInputError, "no call of the response"),
        (one, {"leave_open": [other]}, InvalidInputError, "no call of the response"),
        (one, {"leave_open": ["b"]}, InvalidInputError, "no call of the response"),
        (one, {"leave_open": [later]}, InvalidInputError, "an open call with that id"),
        (one, {}, InvalidInputError, "another response"),
        (both, {"late": [succeeded([now], "1")]}, InvalidInputError, "no function call 'a'"),
        (
            both,
            {"late": [succeeded([ToolCall("b", "f", kind="custom")], "1")]},
            InvalidInputError,
            "no custom call 'b'",
        ),
        (both, {"late": [unfinished([later])]}, InvalidInputError, "close or seal"),
        (both, {"late": [{}]}, InvalidTypeError, "Snapshot"),
    ]
    for snapshot, more, error, text in bad:
        with pytest.raises(error, match=text):
            openai_responses.extend(messages, response, snapshot, **more)
        assert messages == [USER, job("b")]
    messages = [USER]
    with pytest.raises(InvalidInputError, match="another response"):  # answered now and left open
        openai_responses.extend(messages, response, both, leave_open=[later])
    assert messages == [USER]
    twice = [succeeded([later], "1")] * 2
    with pytest.raises(InvalidInputError, match="no function call 'b'"):
        openai_responses.late_results([job("b")], twice)
    with pytest.raises(InvalidTypeError, match="messages must be a list"):
        openai_responses.late_results((), [])  # type: ignore[arg-type]


def test_what_stands_in_a_conversation_is_only_read() -> None:
    """Objects of the SDK's, of nobody's, and ids of any type; a half-broken history opens nothing."""
    sdk = RESPONSES.forms(responses(job("a")))[1].output
    history: list[Any] = [
        *sdk,
        {"type": ["x"]},
        object(),
        None,
        {"type": "function_call", "call_id": [], "async": True},
    ]
    _, later = split(responses(job("a")))
    (late,) = openai_responses.late_results(history, [succeeded(later, "1")])
    assert late["call_id"] == "a"


@settings(deadline=None)
@given(
    turns=st.lists(
        st.lists(st.tuples(st.sampled_from(["a", "b", "x" * 66, None]), st.booleans()), max_size=3), max_size=4
    ),
    ends=st.lists(outcomes, min_size=12, max_size=12),
    choices=st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_any_order_of_late_outputs(
    turns: list[list[tuple[Any, bool]]], ends: list[tuple[str, Any]], choices: list[bool]
) -> None:
    """Whatever is left open and whenever it ends, every request is accepted and every call is answered once."""
    messages: list[Any] = [USER]
    waiting: list[ToolCall] = []
    left, flips = iter(ends), iter(choices)
    for announced in turns:
        response = responses(*[job(call_id) if later else item(call_id) for call_id, later in announced])
        calls = openai_responses.calls(response)
        open_ids = {call.id for call in waiting}
        leave = [
            call
            for call in calls
            if openai_responses.may_stay_open(call) and next(flips, True) and call.id not in open_ids
        ]
        now = [call for call in calls if call not in leave]
        due = [call for call in waiting if next(flips, True)]
        late = [ended([call], [next(left)]) for call in due]
        snapshot = ended(now, [next(left) for _ in now])
        openai_responses.extend(messages, response, snapshot, leave_open=leave, late=late)
        accepted(messages)
        waiting = [call for call in waiting if call not in due] + leave
    messages += openai_responses.late_results(messages, [succeeded([call], "late") for call in waiting])
    accepted(messages)
    called = [entry["call_id"] for entry in messages if entry.get("type") == "function_call"]
    answered = [entry["call_id"] for entry in messages if entry.get("type") == "function_call_output"]
    assert sorted(called) == sorted(answered)


def test_a_server_that_keeps_the_conversation() -> None:
    """The real client and a strict server: turns go by, then the output goes to the latest one, under the call's own id."""
    script = [Reply("Started.", [ScriptedCall("call_1", "lookup", extra=LATER)]), Reply("Meanwhile."), Reply("Done.")]
    with FakeProvider(script) as provider, openai.OpenAI(base_url=provider.openai_base_url, api_key="test") as client:
        first = client.responses.create(model="m", input="Hi.")
        (call,) = openai_responses.calls(first)
        assert openai_responses.may_stay_open(call)
        second = client.responses.create(model="m", input="And?", previous_response_id=first.id)
        late: Any = openai_responses.results(succeeded([call], [IMAGE]))
        third = client.responses.create(model="m", input=late, previous_response_id=second.id)
        assert third.output_text == "Done."
        assert provider.rejected == []


def test_a_server_that_is_sent_the_whole_conversation() -> None:
    """The same without a server's memory: `extend` leaves the call open, `late_results` closes it."""
    script = [Reply("Started.", [ScriptedCall("call_1", "lookup", extra=LATER)]), Reply("Meanwhile."), Reply("Done.")]
    with FakeProvider(script) as provider, openai.OpenAI(base_url=provider.openai_base_url, api_key="test") as client:
        messages: list[Any] = [USER]
        response = client.responses.create(model="m", input=messages, store=False)
        _, later = split(response)
        openai_responses.extend(messages, response, leave_open=later)
        openai_responses.extend(messages, client.responses.create(model="m", input=messages, store=False))
        messages += openai_responses.late_results(messages, [succeeded(later, [IMAGE])])
        assert client.responses.create(model="m", input=messages, store=False).output_text == "Done."
        assert provider.rejected == []
