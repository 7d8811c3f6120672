"""Whatever JSON object a model sends: it is what pydantic says it is, or it is refused and the tool never ran."""

import string
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, ValidationError

from tests.tools.kit import Colour, Filter, Node, Point, refusal
from toolbatch.core import ToolCall, encode
from toolbatch.tools import Prepared, ToolCatalog, prepare, tool


class Expected(BaseModel):
    """The parameters of `target` as a model that pydantic's users would write."""

    model_config = ConfigDict(extra="forbid")
    a: int
    b: str | None = None
    c: Colour = Colour.RED
    d: list[int] | dict[str, bool] = []
    e: Point | None = None
    f: Filter | Node | None = None
    g: Literal["x", 1] = "x"


@dataclass
class Seen:
    """What the tool was run with."""

    values: dict[str, Any] | None = None


SEEN = Seen()
UNSET = Expected.model_construct(a=0)


@tool
def target(
    a: int,
    b: str | None = None,
    c: Colour = Colour.RED,
    d: list[int] | dict[str, bool] = [],  # noqa: B006
    e: Point | None = None,
    f: Filter | Node | None = None,
    g: Literal["x", 1] = "x",
) -> None:
    """Be called."""
    SEEN.values = {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f, "g": g}


CATALOG = ToolCatalog([target])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.sampled_from(["red", "blue", "x", "1", "2.0", "true", ""]) | st.text()
KEYS = st.sampled_from(["a", "b", "c", "d", "e", "f", "g", "x", "y", "name", "limit", "value", "children"]) | st.text(
    max_size=3
)
ANY = st.recursive(
    SCALARS | WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
LIKELY = st.fixed_dictionaries(
    {"a": st.integers() | ANY},
    optional={
        "b": WORDS | ANY,
        "c": WORDS,
        "d": st.lists(st.integers()) | st.dictionaries(WORDS, st.booleans()) | ANY,
        "e": st.fixed_dictionaries({"x": st.integers()}, optional={"y": ANY}),
        "f": st.fixed_dictionaries({"name": WORDS})
        | st.fixed_dictionaries({"value": st.integers()}, optional={"children": ANY}),
        "g": WORDS | SCALARS,
    },
)


@settings(max_examples=300, deadline=None)
@given(arguments=LIKELY | st.dictionaries(KEYS, ANY, max_size=5))
def test_arguments_are_what_pydantic_says(arguments: dict[str, Any]) -> None:
    """T1, T4, T5: the same values as a hand-written model gives, or `invalid_arguments` with a bounded text; never both."""
    SEEN.values = None
    before = encode(arguments)
    ready = prepare(ToolCall("c", "target", arguments), CATALOG)
    assert SEEN.values is None
    assert encode(arguments) == before
    try:
        expected = Expected.model_validate_json(before)
    except ValidationError:
        assert not isinstance(ready, Prepared)
        assert ready.problem.code == "invalid_arguments"
        assert len(ready.problem.message) < 4096
        ready.problem.message.encode()
    else:
        assert isinstance(ready, Prepared)
        ready.fn(*ready.args, **ready.kwargs)
        assert SEEN.values == vars(expected)


@settings(max_examples=200, deadline=None)
@given(
    text=st.text() | st.text(alphabet='{}[]":,a1 \\ntrue', max_size=20) | LIKELY.map(encode).map(lambda text: text[:-1])
)
def test_any_text_is_answered(text: str) -> None:
    """T5: text that is no JSON object never runs the tool, and never raises."""
    SEEN.values = None
    ready = prepare(ToolCall("c", "target", text), CATALOG)
    if not isinstance(ready, Prepared):
        assert ready.problem.code in {"malformed_arguments", "invalid_arguments"}
    assert SEEN.values is None


DEEP: Any = 1
for _ in range(900):
    DEEP = [DEEP]
CIRCLE: dict[str, Any] = {}
CIRCLE["a"] = CIRCLE
HOSTILE: list[dict[str, Any]] = [
    {"a": DEEP},
    {"b": "x" * 5_000_000},
    {"a": 10**5000},
    {"a": 1, "b": "\ud800"},
    {f"k{n}": n for n in range(50_000)},
    {"\ud800" * 5000: 1},
    {"a": ["\U0001f600" * 5000] * 100},
    {"a": 1, "d": dict.fromkeys(string.ascii_letters, "\U0001f600" * 1000)},
    CIRCLE,
    {"a": 1, "e": object()},
    {"a": float("nan")},
]


@pytest.mark.parametrize("arguments", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_arguments_are_answered_shortly(arguments: dict[str, Any]) -> None:
    """T4, C8: huge, deep, circular, half a character, a host's object: one bounded answer that can be sent."""
    refusal(target, arguments).encode()


def test_a_validator_that_fails_is_the_models_business_only_by_type() -> None:
    """B21: a ValueError in a validator is meant for the model; another exception may hold the host's secrets."""
    from pydantic import field_validator

    class Checked(BaseModel):
        value: int

        @field_validator("value")
        @classmethod
        def check(cls, value: int) -> int:
            if value == 1:
                raise ValueError("must not be 1")
            raise RuntimeError("secret")

    @tool
    def fn(item: Checked) -> None: ...

    assert "item.value: Value error, must not be 1 (it was 1)" in refusal(fn, {"item": {"value": 1}})
    message = refusal(fn, {"item": {"value": 2}})
    assert "RuntimeError" in message
    assert "secret" not in message


def test_many_problems_are_counted() -> None:
    """T4: the first eight are told, the rest counted, and the advice at the end stays."""

    @tool
    def fn(items: list[int]) -> None: ...

    message = refusal(fn, {"items": ["x" * 500] * 100})
    assert message.count("\n- ") == 9
    assert "- and 92 more" in message
    assert message.endswith("Call it again with corrected ones.")
