"""Operations, their ids and fingerprints: equal ones are equal whatever order they came in, and nothing hostile gets through."""

import json
import pickle
from dataclasses import FrozenInstanceError
from datetime import date
from enum import Enum
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from toolbatch.core import EncodingError, InvalidInputError, InvalidTypeError
from toolbatch.operations import operation_id
from toolbatch.ports import MAX_OPERATION_ID_BYTES, ClaimToken, Operation, canonical_json

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def shuffled(value: Any) -> Any:
    """The same JSON value with its members in another order."""
    if isinstance(value, dict):
        return {name: shuffled(value[name]) for name in reversed(value)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


class Colour(Enum):
    """A value that JSON has no form for."""

    RED = "red"


# -- canonical JSON ----------------------------------------------------------------------------------------------------------


@for_all(values)
def test_the_order_of_members_makes_no_difference(value: Any) -> None:
    """Nor does a round trip through anybody's JSON."""
    assert canonical_json(value) == canonical_json(shuffled(value)) == canonical_json(json.loads(json.dumps(value)))


@for_all(values)
def test_canonical_json_is_json_of_the_same_value(value: Any) -> None:
    """It reads back as equal, and writing that again gives the same bytes."""
    read = json.loads(canonical_json(value))
    assert read == value
    assert canonical_json(read) == canonical_json(value)


@for_all(values, values)
def test_different_values_have_different_bytes(one: Any, two: Any) -> None:
    """Equal bytes mean equal JSON, with `true` told from 1."""
    if canonical_json(one) == canonical_json(two):
        assert json.dumps(shuffled(one)) == json.dumps(shuffled(two)) or one == two


@pytest.mark.parametrize(
    ("value", "bytes_"),
    [
        ({"b": 1, "a": {"d": 2, "c": 3}}, b'{"a":{"c":3,"d":2},"b":1}'),
        ([1.0, 1, -0.0, 1.5, 1e16], b"[1,1,0,1.5,10000000000000000]"),
        ([True, 1], b"[true,1]"),
        (10**30, b"1000000000000000000000000000000"),
        ("é€", "\"é€\"".encode()),
        ({date(2026, 1, 2), date(2026, 1, 1)}, b'["2026-01-01","2026-01-02"]'),
        ({"colour": Colour.RED}, b'{"colour":"red"}'),
    ],
)  # fmt: skip
def test_canonical_json_of(value: Any, bytes_: bytes) -> None:
    """Sorted members, whole numbers as integers, all digits, UTF-8, and what the core's encoder converts."""
    assert canonical_json(value) == bytes_


def deep() -> list[Any]:
    """A list in a list, too often."""
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


def circular() -> list[Any]:
    """A list that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        object(),
        deep(),
        circular(),
        "\ud800",
        {"\ud800": 1},
        {1: "a", "1": "b"},
        10**5000,
        {(): 1},
    ],
    ids=range(10),
)
def test_what_is_not_json_is_refused(value: Any) -> None:
    """Two members of one name included, of which a reader would lose one."""
    with pytest.raises(EncodingError):
        canonical_json(value)
    with pytest.raises(EncodingError):
        Operation("t/r/1", "pay", value)


# -- operations -----------------------------------------------------------------------------------------------------------------


def test_a_fingerprint_is_of_tool_arguments_and_identity() -> None:
    """Of nothing else, and of each of them apart from the others."""
    base = Operation("t/r/1", "pay", {"a": 1, "b": 2}, identity={"u": 1})
    same = Operation(
        "t/r/2", "pay", {"b": 2, "a": 1}, identity={"u": 1.0}, replay="safe", idempotency_key="k", summary="s"
    )
    assert base.fingerprint == same.fingerprint
    assert len(base.fingerprint) == 32
    others = [
        Operation("t/r/1", "pay2", {"a": 1, "b": 2}, identity={"u": 1}),
        Operation("t/r/1", "pay", {"a": 1, "b": 3}, identity={"u": 1}),
        Operation("t/r/1", "pay", {"a": 1, "b": 2}, identity={"u": 2}),
        Operation("t/r/1", "pay", {"a": 1, "b": 2}),
        Operation("t/r/1", "pay", {"u": 1}, identity={"a": 1, "b": 2}),
        Operation("t/r/1", "pay"),
    ]
    assert len({base.fingerprint, *(other.fingerprint for other in others)}) == 7


def test_no_arguments_are_an_empty_object() -> None:
    """As for the tool (T5)."""
    assert Operation("t/r/1", "pay") == Operation("t/r/1", "pay", {})


def test_a_summary_is_cut() -> None:
    """At 2,048 bytes, on a character."""
    made = Operation("t/r/1", "pay", {"text": "é" * 5000})
    assert made.summary.startswith('{"text":"ééé')
    assert 2040 < len(made.summary.encode()) <= 2048
    assert Operation("t/r/1", "pay", {"card": "4111"}, summary="").summary == ""
    assert Operation("t/r/1", "pay", summary="a\0b\ud800").summary == "a\ufffdb\ufffd"


def test_an_operation_can_t_be_changed() -> None:
    """Nor by changing what it was made of."""
    arguments = {"a": 1}
    made = Operation("t/r/1", "pay", arguments)
    before = made.fingerprint
    arguments["a"] = 2
    assert made.fingerprint == before
    with pytest.raises(FrozenInstanceError):
        made.id = "another"  # type: ignore[misc]


@pytest.mark.parametrize("bad", ["", " ", "x" * 513, "é" * 257, "a\0b", "a\nb", "\x7f", "\ud800"])
def test_a_label_that_can_t_be_used_is_refused(bad: str) -> None:
    """Ids, tool names and keys are text of at most 512 bytes that can be stored and shown anywhere."""
    for given in ((bad, "pay", None), ("t/r/1", bad, None), ("t/r/1", "pay", bad)):
        with pytest.raises(InvalidInputError):
            Operation(given[0], given[1], idempotency_key=given[2])


@pytest.mark.parametrize("bad", [None, 1, b"id", ["id"]])
def test_a_label_of_another_type_is_refused(bad: Any) -> None:
    """With the type's name."""
    with pytest.raises(InvalidTypeError):
        Operation(bad, "pay")
    with pytest.raises(InvalidTypeError):
        Operation("t/r/1", bad)
    with pytest.raises(InvalidTypeError):
        Operation("t/r/1", "pay", summary=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", ["always", "", None, 1, ["safe"]])
def test_a_policy_that_there_isn_t_is_refused(bad: Any) -> None:
    """And those that there are are named."""
    with pytest.raises(InvalidInputError, match="never, if_not_started, safe"):
        Operation("t/r/1", "pay", replay=bad)


def test_labels_lose_their_subclass() -> None:
    """A str whose methods could run later is not kept."""

    class Text(str):
        __slots__ = ()

        def encode(self, *_: Any, **__: Any) -> bytes:
            raise AssertionError("hostile")

    made = Operation(Text("t/r/1"), Text("pay"))
    assert type(made.id) is type(made.tool) is str


def test_an_exception_of_the_arguments_own_passes() -> None:
    """It is the host's value, and its fault to see."""

    class Hostile:
        def model_dump(self, **_: Any) -> object:
            raise LookupError

    with pytest.raises(LookupError):
        Operation("t/r/1", "pay", {"a": Hostile()})


def test_a_token_can_travel_and_shows_no_secret() -> None:
    """A tool that runs in another process completes with it."""
    token = ClaimToken("t/r/1", "claim", "secret")
    assert pickle.loads(pickle.dumps(token)) == token
    assert "secret" not in repr(token)


# -- ids ----------------------------------------------------------------------------------------------------------------------

parts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip)


@for_all(st.tuples(parts, parts, parts), st.tuples(parts, parts, parts))
def test_two_scopes_never_have_one_id(one: tuple[str, str, str], two: tuple[str, str, str]) -> None:
    """Whatever slashes and percent signs their names have; and each id can be used."""
    first = operation_id(tenant=one[0], run=one[1], call=one[2])
    second = operation_id(tenant=two[0], run=two[1], call=two[2])
    assert (first == second) is (one == two)
    assert Operation(first, "pay").id == first


def test_ids_of_a_run_share_its_prefix() -> None:
    """And those of another run do not."""
    prefix = operation_id(tenant="acme", run="2026/11", call="")
    assert prefix == "acme/2026%2F11/"
    assert operation_id(tenant="acme", run="2026/11", call="call_1") == "acme/2026%2F11/call_1"
    assert not operation_id(tenant="acme", run="2026/111", call="call_1").startswith(prefix)


@pytest.mark.parametrize(
    "bad", [{"tenant": ""}, {"run": " "}, {"call": " "}, {"call": "x" * 600}, {"run": "/" * 200}, {"call": "\ud800"}]
)
def test_a_part_that_can_t_be_used_is_refused(bad: dict[str, str]) -> None:
    """Also where the whole has more than 512 bytes only once it is written."""
    with pytest.raises(InvalidInputError):
        operation_id(**{"tenant": "t", "run": "r", "call": "c", **bad})
    longest = operation_id(tenant="t", run="r", call="c" * (MAX_OPERATION_ID_BYTES - 4))
    assert len(longest) == MAX_OPERATION_ID_BYTES
