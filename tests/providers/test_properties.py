"""What holds for any list of calls, however hostile, and any outcomes."""

import copy
import json
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.providers.outcomes import ended, outcomes
from tests.providers.support import ANTHROPIC, LANES, RESPONSES, Lane, exhaust, settled
from toolbatch.core import InvalidTypeError, ToolCall

EACH_LANE = pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)

SURROGATES = st.characters()  # of all categories, lone surrogates too
ids = st.one_of(
    st.sampled_from(["", " ", "null", "a", "b", "call_0", None, 0, "x" * 41, "x" * 65, "x" * 513, "f:0", "日本"]),
    st.text(SURROGATES, max_size=70),
)
names = st.one_of(
    st.sampled_from(["lookup", "", None, "a.b", "n" * 65, "n" * 513, "f"]), st.text(SURROGATES, max_size=9)
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(SURROGATES, max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(SURROGATES, max_size=3), inner, max_size=2),
    max_leaves=4,
)
texts = st.one_of(st.sampled_from(["", "{}", '{"x":1}', '{"x":', "[1]", "null"]), st.text(SURROGATES, max_size=9))
announced = st.lists(st.tuples(ids, names, st.one_of(texts, values)), max_size=6)
failures = st.lists(st.sampled_from(["error", "cancelled", "closed"]), min_size=6, max_size=6)
endings = st.lists(outcomes, min_size=6, max_size=6)
DECLARED = re.compile(r"[a-zA-Z0-9_-]{1,64}")

CODE = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
PROGRAM = {"type": "program", "caller_id": "prog_1"}
FACTS: dict[str, list[dict[str, Any]]] = {
    "chat": [{}, {"custom": True}],
    "responses": [{}, {"custom": True}, {"caller": PROGRAM}, {"namespace": "crm"}, {"async": True}],
    "anthropic": [{}, {"caller": CODE}, {"caller": {"type": "direct"}}, {"toolset_name": "browser"}],
}
facts = st.lists(st.integers(0, 4), min_size=6, max_size=6)
TOOLS = [{"type": "function", "name": "lookup", "output_schema": {"type": "object"}}]


def announce(lane: Lane, call: tuple[Any, Any, Any], fact: int) -> dict[str, Any]:
    """A call with one of the facts about it that must travel back."""
    call_id, name, arguments = call
    more = dict(FACTS[lane.name][fact % len(FACTS[lane.name])])
    if not more.pop("custom", False):
        return {**lane.announce(call_id, name, arguments), **more}
    if lane is RESPONSES:
        return {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": arguments}
    return {"type": "custom", "id": call_id, "custom": {"name": name, "input": arguments}}


def respond(lane: Lane, calls: list[Any], told: Sequence[int] = (0,) * 6) -> dict[str, Any]:
    announced_calls = [announce(lane, call, fact) for call, fact in zip(calls, told, strict=False)]
    return lane.respond(*announced_calls, **({"tools": TOOLS} if lane is RESPONSES else {}))


def possible(calls: Sequence[ToolCall], ends: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """The same endings, but what has no tool was not run: nobody can declare a tool of such a name."""
    rows = zip(calls, ends, strict=False)
    return [end if call.problem is None and DECLARED.fullmatch(call.name) else ("closed", None) for call, end in rows]


@EACH_LANE
@settings(deadline=None)
@given(calls=announced, told=facts, ends=endings, turns=st.integers(1, 3))
def test_turns_obey_the_lanes_rules(
    lane: Lane, calls: list[Any], told: list[int], ends: list[tuple[str, Any]], turns: int
) -> None:
    """Ids distinct and in the alphabet, results adjacent, one a call, in order, whatever a result is made of: every judge
    accepts every turn (P2, P5, P6)."""
    response = respond(lane, calls, told)
    messages: list[Any] = [{"role": "user", "content": "Hi."}]
    before = repr(response)
    for _ in range(turns):
        announced_calls = lane.module.calls(response)
        assert len(announced_calls) == len(calls)
        lane.extended(response, ended(announced_calls, possible(announced_calls, ends)), messages)
        if calls:
            assert lane.refused(messages) is None
    assert repr(response) == before
    exhaust(lane.adapter.validate_python(messages))
    json.dumps(messages, ensure_ascii=False, allow_nan=False).encode()
    check_pairs(lane, messages, turns * len(calls))


def check_pairs(lane: Lane, messages: list[Any], expected: int) -> None:
    """Calls and results of all turns, in order, are the same ids."""
    if lane is ANTHROPIC:
        blocks = [block for entry in messages[1:] for block in entry["content"]]
        called = [block["id"] for block in blocks if block["type"] == "tool_use"]
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert len(set(called)) == len(called)
    elif lane is RESPONSES:
        called = [entry["call_id"] for entry in messages[1:] if not entry["type"].endswith("_output")]
        answered = [entry["call_id"] for entry in messages[1:] if entry["type"].endswith("_output")]
    else:
        called = [call["id"] for entry in messages for call in entry.get("tool_calls", ())]
        answered = [entry["tool_call_id"] for entry in messages if entry["role"] == "tool"]
    assert called == answered
    assert len(called) == expected


@EACH_LANE
@settings(deadline=None, max_examples=50)
@given(calls=announced, ends=failures, seed=st.integers())
def test_exports_do_not_depend_on_the_order_of_settling(
    lane: Lane, calls: list[Any], ends: list[str], seed: int
) -> None:
    """Whatever finishes first, results and turn are byte-identical (C16)."""
    response = respond(lane, calls)
    announced_calls = lane.module.calls(response)
    order = list(range(len(calls)))
    random.Random(seed).shuffle(order)
    straight, shuffled = [settled(announced_calls, ends.__getitem__, way) for way in (None, order)]
    assert json.dumps(lane.module.results(straight)) == json.dumps(lane.module.results(shuffled))
    assert json.dumps(lane.extended(response, straight)) == json.dumps(lane.extended(response, shuffled))


@EACH_LANE
@settings(deadline=None, max_examples=50)
@given(calls=announced)
def test_the_sdks_objects_are_read_like_the_wire(lane: Lane, calls: list[Any]) -> None:
    """Four forms of one hostile response give the same ids, names and problems."""
    finite = [[i, n, a if isinstance(a, str) else None] for i, n, a in calls]
    wire = respond(lane, finite)
    first, *others = [lane.module.calls(form) for form in lane.forms(copy.deepcopy(wire))]
    assert others == [first] * 3


@EACH_LANE
@settings(deadline=None)
@given(response=values | st.dictionaries(st.sampled_from(["role", "choices", "output", "content", "type"]), values))
def test_strangers_raise_one_error_or_none(lane: Lane, response: Any) -> None:
    """Whatever JSON comes, a reader returns calls or names its mistake."""
    try:
        calls = lane.module.calls(response)
    except InvalidTypeError:
        return
    settled(calls)
