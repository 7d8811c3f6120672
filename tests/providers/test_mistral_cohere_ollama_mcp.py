"""What holds in Mistral, Cohere, Ollama and MCP alike: reading in every form, hostile calls, and turns that judges accept."""

import copy
import json
import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.providers.outcomes import ended
from tests.providers.support import settled
from tests.providers.test_properties import announced, endings, ids, names, possible, values
from tests.providers.wires import ENTRIES, MISTRAL, OLLAMA, SAMPLING, WIRES, Wire, chat_call
from toolbatch.core import InvalidInputError, InvalidTypeError, ProviderMismatchError, ToolCall, ToolCallClosure
from toolbatch.ports import LateNote
from toolbatch.providers import anthropic, openai_chat

EACH = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
OURS = re.compile(r"[a-zA-Z0-9_-]{1,40}")
MODULES = pytest.mark.parametrize("module", sorted({wire.module for wire in WIRES}, key=str), ids=lambda m: m.__name__)


def code(call: ToolCall) -> str | None:
    return None if call.problem is None else call.problem.code


@EACH
def test_every_form_is_one_response(wire: Wire) -> None:
    """Wire JSON, the SDK's object and its dumps give the same calls and the same turn, and are not changed (P1)."""
    response = wire.respond(
        wire.announce("a" if wire.has_ids else None, "lookup", {"q": "é", "n": [1]}),
        wire.announce("a" if wire.has_ids else None, "lookup", {}),
    )
    if wire.name == "cohere":
        response["message"]["tool_calls"].append({"id": "b", "type": "function"})
    before = copy.deepcopy(response)
    first, *others = [wire.module.calls(form) for form in wire.forms(response)]
    assert first[0].arguments == {"q": "é", "n": [1]}
    assert others == [first] * 4
    turn, *turns = [wire.extended(form) for form in wire.forms(response)]
    assert turns == [turn] * 4
    assert wire.refused(turn) is None
    assert response == before


@EACH
@pytest.mark.parametrize("stranger", [None, "text", 1, {}, {"choices": []}, {"error": {}}, object(), {"role": "user"}])
def test_no_response(wire: Wire, stranger: Any) -> None:
    """What is no response of this lane is the caller's mistake, and is named."""
    with pytest.raises(InvalidTypeError, match="response must be"):
        wire.module.calls(stranger)


@EACH
def test_forced_tool(wire: Wire) -> None:
    """`expect` passes the forced tool and refuses another, none, and one too many (P7)."""
    module = wire.module
    assert len(module.calls(wire.respond(wire.announce("a"), wire.announce("b")), expect="lookup")) == 2
    for announced_names in ([], ["search"], ["lookup", "search"]):
        response = wire.respond(*[wire.announce(f"a{n}", name) for n, name in enumerate(announced_names)])
        with pytest.raises(ProviderMismatchError):
            module.calls(response, expect="lookup")


@EACH
@pytest.mark.parametrize("text", ['{"city": "San Fra', "nope", '{"x": NaN}', '{"a":1}{"b":2}', "null", "[]", '"x"'])
def test_malformed_arguments(wire: Wire, text: str) -> None:
    """Cut, broken or no object: announced, answered, never run, and put right on its way back (FIELD 78, 79, 81; T5)."""
    response = wire.respond(wire.announce("a", "delete", text))
    (call,) = wire.module.calls(response)
    assert (code(call), call.arguments, call.raw_arguments) == ("malformed_arguments", {}, text)
    turn = wire.extended(response, settled([call], lambda _: "closed"))
    assert wire.refused(turn) is None
    assert "INVALID_JSON" in json.dumps(turn)


@EACH
@pytest.mark.parametrize("value", ["", "  ", None])
def test_no_arguments(wire: Wire, value: Any) -> None:
    """No text means no arguments, which is a call like any other (FIELD 78, T5)."""
    announced_call = wire.announce("a")
    holder = announced_call.get("function", announced_call)
    holder["input" if wire is SAMPLING else "arguments"] = value
    response = wire.respond(announced_call)
    (call,) = wire.module.calls(response)
    assert (call.arguments, call.problem) == ({}, None)
    assert wire.refused(wire.extended(response)) is None


@EACH
@pytest.mark.parametrize("name", [None, "", " \n", 7, "n" * 600, "bad\ud800", "multi_tool_use.parallel"])
def test_names_that_can_not_be_used(wire: Wire, name: Any) -> None:
    """A call without a usable name is announced under one that is, and goes back under one that no server refuses (P6)."""
    response = wire.respond(wire.announce("a", name))
    calls = wire.module.calls(response)
    assert code(calls[0]) == (None if name == "multi_tool_use.parallel" else "unknown_tool")
    assert wire.refused(wire.extended(response, settled(calls, lambda _: "closed"))) is None


@EACH
def test_ids(wire: Wire) -> None:
    """Missing, blank, repeated and foreign ids get ours, which are the same when the response is read again (P6; FIELD 51, 55)."""
    wire_ids = ["abcdefghi", None, "", "  ", "null", "abcdefghi", 7, "é\ud800", "abcdefghi"]
    response = wire.respond(*[wire.announce(call_id) for call_id in wire_ids])
    calls = wire.module.calls(response)
    made = [call.id for call in calls]
    assert len(set(made)) == len(made)
    assert (made[0], calls[0].wire_id) == ("abcdefghi", None)
    for call, wire_id in list(zip(calls, wire_ids, strict=True))[1:]:
        assert OURS.fullmatch(call.id)
        assert call.wire_id == (wire_id if isinstance(wire_id, str) else "")
    assert wire.module.calls(copy.deepcopy(response)) == calls
    assert wire.refused(wire.extended(response)) is None


@EACH
def test_two_calls_with_one_id_get_their_own_answers(wire: Wire) -> None:
    """Both run, and each result stands behind its own call (FIELD 51; I in the measured systems)."""
    response = wire.respond(wire.announce("a", "f"), wire.announce("a", "g"))
    turn = wire.extended(response, ended(wire.module.calls(response), [("success", "of f"), ("success", "of g")]))
    text = json.dumps(turn)
    assert text.index("of f") < text.index("of g")
    assert wire.refused(turn) is None


@EACH
def test_ids_that_restart_every_turn(wire: Wire) -> None:
    """Gateways count from `lookup:0` in each turn; the conversation stays lawful, and results stay apart (FIELD 49, 53)."""
    messages: list[Any] = [wire.user]
    for turn in range(3):
        response = wire.respond(wire.announce("lookup:0", "lookup", {"turn": turn}))
        calls = wire.module.calls(response)
        wire.extended(response, ended(calls, [("success", f"turn {turn}")]), messages)
        assert wire.refused(messages) is None
    assert len(messages) == 7


@EACH
def test_arguments_are_detached(wire: Wire) -> None:
    """A tool that changes its arguments can't change the response that `extend` sends back."""
    response = wire.respond(wire.announce("a", "lookup", {"x": [1]}))
    before = copy.deepcopy(response)
    wire.module.calls(response)[0].arguments["x"].append(2)
    assert response == before


@EACH
def test_unclosed_foreign_and_missing_snapshots(wire: Wire) -> None:
    """Each is named, and the list stays as it was (C15, P2)."""
    response = wire.respond(wire.announce("a", "lookup"))
    closure = ToolCallClosure()
    closure.begin(wire.module.calls(response))
    other = settled([ToolCall("z", "lookup")])
    messages: list[Any] = [wire.user]
    for snapshot in (closure.snapshot(), other, None):
        with pytest.raises(InvalidInputError):
            wire.module.extend(messages, response, snapshot)
    with pytest.raises(InvalidTypeError):
        wire.module.extend((wire.user,), response, settled(wire.module.calls(response)))
    assert messages == [wire.user]


@MODULES
def test_only_closed_snapshots_leave(module: Any) -> None:
    """An open snapshot and a stranger are refused before anything of them is read (C15)."""
    closure = ToolCallClosure()
    closure.begin([ToolCall("a", "f")])
    with pytest.raises(InvalidInputError, match="close or seal"):
        module.results(closure.snapshot())
    for stranger in (None, {}, object()):
        with pytest.raises(InvalidTypeError):
            module.results(stranger)
    assert module.results(settled([])) == []


@EACH
def test_an_unanswered_turn_is_not_buried(wire: Wire) -> None:
    """Behind another turn no server takes a result any more, so `extend` refuses, and names what is missing.

    An earlier turn with the same ids has its results: they answer nothing here (FIELD 49).
    """
    response = wire.respond(wire.announce("abcdefghi", "lookup"), wire.announce("ihgfedcba", "search"))
    messages = wire.extended(response, messages=wire.extended(response))
    if wire is SAMPLING:
        missing = messages[-1]["content"].pop()["toolUseId"]
    else:
        missing = "search" if wire is OLLAMA else "ihgfedcba"
        messages.pop()
    before = copy.deepcopy(messages)
    with pytest.raises(InvalidInputError, match=missing):
        wire.extended(response, messages=messages)
    assert messages == before


@EACH
def test_without_calls(wire: Wire) -> None:
    """A turn without calls needs no snapshot, and is appended alone."""
    response: Any = {
        "mistral": MISTRAL.respond(content="Hello.", tool_calls=None, finish_reason="stop"),
        "mistral-entries": ENTRIES.respond({"type": "message.output", "role": "assistant", "content": "Hello."}),
        "cohere": {"message": {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}},
        "ollama": OLLAMA.respond(content="Hello."),
        "mcp": {"role": "assistant", "content": {"type": "text", "text": "Hello."}, "model": "m"},
    }[wire.name]
    assert wire.module.calls(response) == []
    messages: list[Any] = [wire.user]
    wire.module.extend(messages, response)
    assert "Hello." in json.dumps(messages[1])
    assert len(messages) == 2


@MODULES
def test_late_results_are_new_content(module: Any) -> None:
    """One user message, or nothing where nothing is late (B20)."""
    assert module.notes([]) == []
    (note,) = module.notes([LateNote(call_id="a", name="lookup", generation=1, content="42 \ud800")])
    assert note["role"] == "user"
    assert "42 \ufffd" in json.dumps(note, ensure_ascii=False)


@EACH
def test_other_lanes_messages_are_refused(wire: Wire) -> None:
    """A message of Anthropic's read as this lane's would lose its calls without a word."""
    stranger = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
    if wire is SAMPLING:
        assert anthropic.calls(stranger) == [ToolCall("a", "f", {})]  # the same shape, and the same meaning
        return
    with pytest.raises(InvalidTypeError, match="Anthropic's"):
        wire.module.calls(stranger)


def test_lanes_do_not_read_each_others_echo() -> None:
    """A snapshot can be exported by another lane: what one echoes is nothing to the others."""
    calls = [
        *ENTRIES.module.calls(ENTRIES.respond(ENTRIES.announce("abcdefghi"))),
        *SAMPLING.module.calls(SAMPLING.respond(SAMPLING.announce("b"))),
    ]
    snapshot = settled(calls)
    assert [set(entry) for entry in openai_chat.results(snapshot)] == [{"role", "tool_call_id", "content"}] * 2
    assert MISTRAL.module.results(snapshot)[1]["role"] == "tool"
    assert "content" in SAMPLING.module.results(snapshot)[0]
    assert "toolUseId" not in SAMPLING.module.results(snapshot)[0]


@EACH
@settings(deadline=None)
@given(calls=announced, ends=endings, turns=st.integers(1, 3))
def test_turns_obey_the_lanes_rules(wire: Wire, calls: list[Any], ends: list[Any], turns: int) -> None:
    """Any calls, any ids, any outcomes, rich ones too: every judge accepts every turn, and the turn is strict JSON (P2, P5, P6)."""
    response = wire.respond(*[wire.announce(*call) for call in calls])
    before = repr(response)
    messages: list[Any] = [wire.user]
    for _ in range(turns):
        announced_calls = wire.module.calls(response)
        assert len(announced_calls) == len(calls)
        wire.extended(response, ended(announced_calls, possible(announced_calls, ends)), messages)
        assert wire.refused(messages) is None
    assert repr(response) == before
    json.dumps(messages, ensure_ascii=False, allow_nan=False).encode()


@EACH
@settings(deadline=None, max_examples=50)
@given(calls=announced, ends=endings, seed=st.integers())
def test_exports_do_not_depend_on_the_order_of_settling(
    wire: Wire, calls: list[Any], ends: list[Any], seed: int
) -> None:
    """Whatever finishes first, results and turn are byte-identical (C16; FIELD 59, 61)."""
    response = wire.respond(*[wire.announce(*call) for call in calls])
    announced_calls = wire.module.calls(response)
    order = list(range(len(calls)))
    random.Random(seed).shuffle(order)
    told = {call.id: end for call, end in zip(announced_calls, ends, strict=False)}
    snapshots = []
    for way in (sorted(order), order):
        closure = ToolCallClosure()
        handle = closure.begin(announced_calls).handle
        for position in way:
            call_id = announced_calls[position].id
            if told[call_id][0] == "success":
                closure.succeed(handle, call_id, told[call_id][1])
        snapshots.append(closure.close(handle, code="timeout"))
    straight, shuffled = snapshots
    assert json.dumps(wire.module.results(straight)) == json.dumps(wire.module.results(shuffled))
    assert json.dumps(wire.extended(response, straight)) == json.dumps(wire.extended(response, shuffled))  # type: ignore[arg-type]  # closed


@EACH
@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_strangers_raise_one_error_or_none(wire: Wire, data: st.DataObject) -> None:
    """Whatever JSON comes, a reader returns calls or names its mistake."""
    keys = ["role", "choices", "outputs", "message", "content", "type", "method", "params", "name", "tool_calls"]
    response = data.draw(values | st.dictionaries(st.sampled_from(keys), values | st.just("assistant")))
    try:
        calls = wire.module.calls(response)
    except InvalidTypeError:
        return
    settled(calls)


@settings(deadline=None, max_examples=50)
@given(calls=st.lists(st.tuples(ids, names), max_size=5))
def test_cohere_sdk_objects_are_read_like_the_wire(calls: list[Any]) -> None:
    """Its models check nothing, so any hostile response can come as an object."""
    wire = next(wire for wire in WIRES if wire.name == "cohere")
    response = wire.respond(*[chat_call(*call) for call in calls])
    first, *others = [wire.module.calls(form) for form in wire.forms(response)]
    assert others == [first] * 4
