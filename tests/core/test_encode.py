"""The one encoder: strict, compact, deterministic JSON of whatever a tool may return, or a clear refusal (C7, T9)."""

import json
import math
from collections import OrderedDict, UserDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from pydantic.dataclasses import dataclass as pydantic_dataclass

from toolbatch.core import EncodingError, encode


class Colour(Enum):
    RED = "red"
    PAIR = (1, 2)


class Level(IntEnum):
    HIGH = 3


class Word(StrEnum):
    YES = "yes"


@dataclass
class Point:
    x: int
    y: Any = None


@dataclass(frozen=True, slots=True)
class Slotted:
    name: str
    when: date


class Pair(NamedTuple):
    left: int
    right: str


class Inner(BaseModel):
    when: datetime
    tags: set[str] = set()


class Model(BaseModel):
    inner: Inner
    price: Decimal = Field(serialization_alias="Price")


@pydantic_dataclass
class Checked:
    n: int


class Table(Mapping[str, int]):
    """A mapping that is no dict."""

    def __getitem__(self, key: str) -> int:
        return {"one": 1, "two": 2}[key]

    def __iter__(self) -> Iterator[str]:
        return iter(("two", "one"))

    def __len__(self) -> int:
        return 2


CONVERSIONS = [
    (None, "null"),
    (True, "true"),
    (0, "0"),
    (-1.5, "-1.5"),
    (1e300, "1e+300"),
    (10**30, "1" + "0" * 30),
    ('a"\n', '"a\\"\\n"'),
    ("é😀\u2028", '"é😀\u2028"'),
    ([1, (2, "x")], '[1,[2,"x"]]'),
    ({"b": 1, "a": {}}, '{"b":1,"a":{}}'),
    ({1: "i", 1.5: "f", None: "n"}, '{"1":"i","1.5":"f","null":"n"}'),
    ({True: 1, False: 0}, '{"true":1,"false":0}'),
    (OrderedDict(z=1, y=2), '{"z":1,"y":2}'),
    (UserDict({"k": [1]}), '{"k":[1]}'),
    (Table(), '{"two":2,"one":1}'),
    (Point(1, Point(2)), '{"x":1,"y":{"x":2,"y":null}}'),
    (Slotted("n", date(2024, 2, 29)), '{"name":"n","when":"2024-02-29"}'),
    (Pair(1, "r"), '[1,"r"]'),
    (Inner(when=datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), tags={"t"}), '{"when":"2024-01-02T03:04:05Z","tags":["t"]}'),
    (Checked(4), '{"n":4}'),
    (datetime(2024, 1, 2, 3, 4, 5, 678, UTC), '"2024-01-02T03:04:05.000678+00:00"'),
    (datetime.fromisoformat("2024-01-02"), '"2024-01-02T00:00:00"'),
    (date(2024, 1, 2), '"2024-01-02"'),
    (time(3, 4, tzinfo=timezone(timedelta(hours=2))), '"03:04:00+02:00"'),
    (timedelta(minutes=1, milliseconds=500), "60.5"),
    (timedelta(days=-1), "-86400.0"),
    (UUID(int=5), '"00000000-0000-0000-0000-000000000005"'),
    (Decimal("1.10"), '"1.10"'),
    (PurePosixPath("/a/b"), '"/a/b"'),
    (PureWindowsPath("c:\\a"), '"c:\\\\a"'),
    (Path("a"), '"a"'),
    (Colour.RED, '"red"'),
    (Colour.PAIR, "[1,2]"),
    (Level.HIGH, "3"),
    (Word.YES, '"yes"'),
    ({"k": Colour.RED, Word.YES: Level.HIGH}, '{"k":"red","yes":3}'),
    ({3, 1, 2}, "[1,2,3]"),
    (frozenset({"b", "a"}), '["a","b"]'),
    ({frozenset({2}), frozenset({1, 3})}, "[[1,3],[2]]"),
    ({Colour.RED, date(2024, 1, 2)}, '["2024-01-02","red"]'),
    (set(), "[]"),
    (b"\x00\xff", '"AP8="'),
    (bytearray(b"hi"), '"aGk="'),
    (memoryview(b"hi"), '"aGk="'),
    (memoryview(b"abcd")[::2], '"YWM="'),
    (b"", '""'),
]


@pytest.mark.parametrize(("value", "text"), CONVERSIONS, ids=lambda value: type(value).__name__)
def test_each_documented_conversion(value: Any, text: str) -> None:
    """Every type that T9 names has its one form, compact, in order, non-ASCII kept (C7, T9)."""
    assert encode(value) == text
    assert encode([value]) == f"[{text}]"
    json.loads(text)


def test_a_model_is_written_by_its_own_rules() -> None:
    """A pydantic model says itself how its fields look in JSON (T9)."""
    model = Model(inner=Inner(when=datetime(2024, 1, 2, tzinfo=UTC)), price=Decimal("1.50"))
    assert json.loads(encode(model)) == model.model_dump(mode="json")


def nested(depth: int) -> list[Any]:
    """A list in a list, so many times."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def in_itself(kind: str) -> Any:
    """A value that holds itself."""
    if kind == "list":
        items: list[Any] = [1]
        items.append(items)
        return items
    if kind == "dict":
        table: dict[str, Any] = {}
        table["self"] = [table]
        return table
    point = Point(1)
    point.y = {"deep": [point]}
    return point


async def coroutine() -> None:
    """A function that was not awaited."""


REFUSED: list[Any] = [
    object(), print, int, Point, Colour, Model, Ellipsis, 1j, range(3), iter([1]), (n for n in [1]), {"k": object()}, [1, {2: print}],
    {(1, 2): 3}, {b"k": 1}, {Colour.RED: 1}, {date(2024, 1, 2): 1}, {frozenset(): 1}, {"k": [object()]}, Point(1, object()), {print},
    math.nan, math.inf, -math.inf, [math.nan], {"k": math.inf}, {math.nan: 1}, {-math.inf: 1}, Point(1, math.nan), {math.nan}, {1: {math.inf: 2}},
    10**5000, [-(10**5000)], {"k": 10**5000}, {10**5000: 1},
    nested(100_000), {"k": nested(100_000)}, Point(1, nested(100_000)),
    in_itself("list"), in_itself("dict"), in_itself("dataclass"), [in_itself("dict")], coroutine,
]  # fmt: skip


@pytest.mark.parametrize("value", REFUSED, ids=lambda value: type(value).__name__)
def test_what_is_not_json_is_refused(value: Any) -> None:
    """No form, circular, NaN or infinite in values and keys, too big, too deep, keys that are no text: an EncodingError (C7)."""
    with pytest.raises(EncodingError) as caught:
        encode(value)
    assert len(str(caught.value)) < 1000


def test_a_refusal_says_what_and_why() -> None:
    """The message shows the value and its type, and what to do instead."""
    with pytest.raises(EncodingError, match=r"1j of type complex has no JSON form; return plain data"):
        encode({"deep": [1j]})
    with pytest.raises(EncodingError, match=r"\[nan\] can't be written as JSON: .*not JSON compliant") as caught:
        encode([math.nan])
    assert isinstance(caught.value.__cause__, ValueError)


class Raises:
    """A value whose own method raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def model_dump(self, *, mode: str) -> Any:
        raise self.error


@dataclass
class RaisingField:
    """A dataclass, one field of which is a property that raises."""

    error: Any

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if name == "error":
            raise value
        return value


class RaisingMapping(dict[str, Any]):
    """A dict whose items can't be listed."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(a=1)
        self.error = error

    def items(self) -> Any:
        raise self.error


@pytest.mark.parametrize("kind", [Raises, RaisingField, RaisingMapping])
@pytest.mark.parametrize(
    "error", [KeyError("k"), OSError("disk"), RuntimeError("r"), KeyboardInterrupt(), AssertionError()]
)
def test_what_a_values_own_method_raises_passes_untouched(kind: Any, error: BaseException) -> None:
    """The caller's exception is not wrapped, not replaced and not swallowed (C7, C14)."""
    with pytest.raises(type(error)) as caught:
        encode({"deep": [kind(error)]})
    assert caught.value is error


@pytest.mark.parametrize("kind", [Raises, RaisingField, RaisingMapping])
@pytest.mark.parametrize("error", [TypeError("t"), ValueError("v"), RecursionError("deep")])
def test_what_json_raises_too_is_the_cause_of_the_refusal(kind: Any, error: Exception) -> None:
    """A type, value or recursion error can't be told from JSON's own: it is kept as the cause."""
    with pytest.raises(EncodingError) as caught:
        encode({"deep": [kind(error)]})
    assert caught.value.__cause__ is error


def test_a_models_method_is_looked_up_on_its_type() -> None:
    """An attribute of an instance that happens to be called so is data of its own, not a rule."""

    class Odd:
        def __init__(self) -> None:
            self.model_dump = lambda **_: {"a": 1}

    with pytest.raises(EncodingError):
        encode(Odd())


members = st.one_of(st.integers(), st.text(max_size=5), st.dates(), st.booleans(), st.binary(max_size=4))


@given(st.lists(members, max_size=8), st.randoms())
def test_equal_sets_have_one_text(items: list[Any], order: Any) -> None:
    """The order in which a set was filled can't be read from its text (C16)."""
    unique = [item for number, item in enumerate(items) if item not in items[:number]]
    shuffled = list(unique)
    order.shuffle(shuffled)
    first, second = frozenset(unique), frozenset(shuffled)
    assert encode(first) == encode(second)
    assert encode({first, frozenset({"x"})}) == encode({frozenset({"x"}), second})


def test_sets_in_sets_cost_no_more_than_they_say() -> None:
    """A set forty deep is written at once: the work grows with its text, and doesn't double with each level."""
    value: Any = frozenset()
    for _ in range(40):
        value = frozenset({value})
    assert encode(value) == "[" * 41 + "]" * 41


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(plain)
def test_plain_data_comes_back_as_it_was(value: Any) -> None:
    """What JSON can hold is held without loss, in a text with no blanks between its parts (C7)."""
    text = encode(value)
    assert json.loads(text) == value
    assert text == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def test_later_changes_do_not_reach_the_text() -> None:
    """The text is made at once: a value that changes afterwards has no way back into it (C7)."""
    value = {"list": [1]}
    text = encode(value)
    value["list"].append(2)
    assert text == '{"list":[1]}'


@dataclass
class WithDefault:
    shown: int
    also: list[int] = field(default_factory=list, repr=False, compare=False)


def test_every_field_of_a_dataclass_is_written() -> None:
    """What `repr` and comparison leave out is data all the same; attributes that are no fields are not."""
    value = WithDefault(1, [2])
    value.extra = 3  # type: ignore[attr-defined]
    assert encode(value) == '{"shown":1,"also":[2]}'
