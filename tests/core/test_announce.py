"""What `begin` takes and refuses: all of it is checked before anything changes (C2, C3)."""

from collections import UserDict, deque
from collections.abc import Iterator
from enum import StrEnum
from itertools import count
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from tests.core.kit import BLANK, LONE, NOT_TEXT, Equal, HostileText, NoRepr, opened, shown, view
from toolbatch.core import (
    CallProblem,
    InvalidInputError,
    InvalidTypeError,
    Limits,
    ToolbatchError,
    ToolCall,
    ToolCallClosure,
)


def entries(call_id: Any = "a", name: Any = "t") -> list[Any]:
    """One call in each form in which it may be announced."""
    return [
        ToolCall(call_id, name),
        {"id": call_id, "name": name},
        UserDict({"id": call_id, "name": name}),
        MappingProxyType({"id": call_id, "name": name}),
        SimpleNamespace(id=call_id, name=name),
    ]


def refused(calls: Any, error: type[ToolbatchError], match: str | None = None, limits: Limits | None = None) -> None:
    """Assert that beginning with `calls` raises, on a fresh closure and on one with an open batch, and changes nothing."""
    fresh = ToolCallClosure(limits)
    with pytest.raises(error, match=match):
        fresh.begin(calls() if callable(calls) else calls)
    assert fresh.snapshot() is None
    assert fresh.active_generation is None
    closure, handle = opened("a", "b", limits=limits)
    closure.start(handle, "b")
    before = view(closure)
    with pytest.raises(error, match=match):
        closure.begin(calls() if callable(calls) else calls)
    assert view(closure) == before
    assert closure.active_generation == 1
    assert closure.succeed(handle, "a", "still open").accepted
    assert closure.begin([]).generation == 2


@pytest.mark.parametrize("form", range(5))
def test_each_form_of_a_call_is_taken(form: int) -> None:
    """A ToolCall, any mapping and any object with an id and a name are one and the same call (C2)."""
    closure = ToolCallClosure()
    closure.begin([entries("i", "n")[form]])
    call = shown(closure).calls[0].call
    assert type(call) is ToolCall
    assert (call.id, call.name) == ("i", "n")


@pytest.mark.parametrize(
    "make",
    [list, tuple, deque, iter, dict.fromkeys, set, frozenset, lambda calls: (call for call in calls)],
    ids=["list", "tuple", "deque", "iterator", "dict keys", "set", "frozenset", "generator"],
)
def test_each_iterable_of_calls_is_taken(make: Any) -> None:
    """Calls may come in any iterable, those without an order of their own in the order of their iteration (C2)."""
    calls = [ToolCall("a", "t"), ToolCall("b", "t")]
    given = make(calls)
    if isinstance(given, dict):
        given = given.keys()
    closure = ToolCallClosure()
    expected = [call.id for call in given] if isinstance(given, (set, frozenset)) else ["a", "b"]
    closure.begin(given)
    assert [call.id for call in shown(closure).calls] == expected


def test_no_calls_make_a_batch_too() -> None:
    """A batch of no calls is valid: it can be sealed at once (C2)."""
    closure = ToolCallClosure()
    begun = closure.begin([])
    assert (begun.generation, begun.superseded) == (1, None)
    assert shown(closure).calls == ()
    sealed = closure.seal(begun.handle)
    assert sealed is shown(closure)
    assert shown(closure).closed


@pytest.mark.parametrize("calls", [None, 5, True, object(), Equal(), NoRepr(), "ab", "", b"ab", {}, {"id": "a", "name": "t"}, MappingProxyType({}), ToolCall("a", "t"), SimpleNamespace(id="a", name="t"), ToolCall], ids=lambda calls: type(calls).__name__)  # fmt: skip
def test_what_is_no_iterable_of_calls_is_refused(calls: Any) -> None:
    """One call alone, a mapping, text and everything that can't be iterated raise a type error (C2)."""
    refused(calls if not callable(calls) else lambda: calls, InvalidTypeError, "iterable of tool calls")


@pytest.mark.parametrize("entry", [None, 5, True, 1.5, "ab", b"ab", [], ["a", "t"], ("a", "t")], ids=repr)
def test_an_entry_that_can_not_be_a_call_is_refused(entry: Any) -> None:
    """A scalar or a sequence among the calls raises a type error that says which one (C2)."""
    refused([ToolCall("c", "t"), entry], InvalidTypeError, r"calls\[1\]")


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"id": "a"},
        {"name": "t"},
        object(),
        SimpleNamespace(id="a"),
        SimpleNamespace(name="t"),
        object.__new__(ToolCall),
        NoRepr(),
    ],
    ids=range(8),
)
def test_an_entry_without_an_id_or_a_name_is_refused(entry: Any) -> None:
    """What lacks one of the two raises a value error that says which entry and which field (C2)."""
    refused(
        [ToolCall("c", "t"), entry],
        InvalidInputError,
        r"calls\[1\] has no (id|name): .*; a lane's calls\(\) reads a response",
    )


@pytest.mark.parametrize("field", ["id", "name"])
@pytest.mark.parametrize("form", range(5))
@pytest.mark.parametrize("value", NOT_TEXT, ids=type)
def test_an_id_or_name_of_another_type_is_refused(field: str, form: int, value: Any) -> None:
    """Ids and names are text, in whatever form the call is given; unhashable ones fail no other way (C2)."""
    entry = entries(call_id=value)[form] if field == "id" else entries(name=value)[form]
    refused([entry], InvalidTypeError, rf"calls\[0\].{field} must be a str")


@pytest.mark.parametrize("field", ["id", "name"])
@pytest.mark.parametrize("form", range(5))
@pytest.mark.parametrize(
    "value",
    [*BLANK, *LONE, "x" * 9, "é" * 5, HostileText(""), HostileText("x" * 9)],
    ids=lambda value: ascii(str.__str__(value)),
)
def test_an_id_or_name_that_can_not_be_used_is_refused(field: str, form: int, value: str) -> None:
    """Blank, no UTF-8, or over its limit: a value error that names the field (C2)."""
    entry = entries(call_id=value)[form] if field == "id" else entries(name=value)[form]
    refused([entry], InvalidInputError, rf"calls\[0\].{field}", Limits(max_id_bytes=8, max_name_bytes=8))


@pytest.mark.parametrize("first", range(5))
@pytest.mark.parametrize("second", range(5))
def test_an_id_announced_twice_is_refused(first: int, second: int) -> None:
    """Two calls of one id can't both be answered, in whatever forms they come (C2)."""
    refused(
        [entries("x")[first], ToolCall("c", "t"), entries("x", "other")[second]],
        InvalidInputError,
        r"calls\[2\].id 'x' was announced before",
    )
    refused([entries("x")[first], entries(HostileText("x"))[second]], InvalidInputError, "announced before")


def test_ids_that_differ_are_different() -> None:
    """Ids are compared as they are: case, blanks around them and Unicode forms count."""
    closure = ToolCallClosure()
    ids = ["a", "A", " a", "a ", "\u00e9", "e\u0301"]
    closure.begin([ToolCall(call_id, "t") for call_id in ids])
    assert [call.id for call in shown(closure).calls] == ids


def test_an_endless_iterator_is_read_to_the_limit_and_no_further() -> None:
    """An iterator without an end can't hang `begin`: it is asked for one call more than fits (C2)."""
    asked: list[int] = []

    def endless() -> Iterator[ToolCall]:
        for number in count():
            asked.append(number)
            yield ToolCall(f"c{number}", "t")

    refused(endless, InvalidInputError, "more than 5 calls", Limits(max_calls=5))
    assert max(asked) == 5


class Broken(Exception):
    """What a caller's iterator or property raises."""


@pytest.mark.parametrize("error", [Broken(), ValueError("v"), KeyboardInterrupt()], ids=type)
def test_what_the_callers_code_raises_passes_and_changes_nothing(error: BaseException) -> None:
    """An iterator, a mapping or a property that raises is the caller's affair: its exception passes untouched (C2, C14)."""

    def breaks_off() -> Iterator[ToolCall]:
        yield ToolCall("c", "t")
        raise error

    class Property:
        name = "t"

        @property
        def id(self) -> str:
            raise error

    class Table(UserDict[str, str]):
        def get(self, key: str, default: Any = None) -> Any:
            raise error

    closure, _ = opened()
    before = view(closure)
    for calls in (breaks_off(), [Property()], [Table()]):
        with pytest.raises(type(error)) as caught:
            closure.begin(calls)
        assert caught.value is error
        assert view(closure) == before


def test_hostile_text_becomes_plain() -> None:
    """Ids and names of a subclass of `str` are held as plain ones: none of their methods runs, now or later (C14)."""
    HostileText.called.clear()
    for entry in entries(HostileText("i"), HostileText("n")):
        closure = ToolCallClosure()
        handle = closure.begin([entry]).handle
        answer = closure.succeed(handle, HostileText("i"), HostileText("content"))
        assert answer.to_dict()["settlement"]["content"] == "content"
        assert type(answer.call_id) is str
        call = shown(closure).calls[0]
        assert type(call.id) is type(call.name) is str
        assert type(call.to_dict()["settlement"]["content"]) is str
    assert HostileText.called == []


def test_a_call_keeps_all_it_says_when_its_text_is_made_plain() -> None:
    """A ToolCall whose id is an enum's member is the same call with a plain id: problem, wire id and the rest stay (P6)."""

    class Name(StrEnum):
        LOOKUP = "lookup"

    problem = CallProblem("response_truncated", "cut off")
    given = [
        ToolCall(Name.LOOKUP, "t", '{"a": 1}', wire_id="w", kind="custom", echo={"k": "v"}),
        ToolCall("i", Name.LOOKUP, {"b": 2}, problem=problem),
    ]
    closure = ToolCallClosure()
    closure.begin(given)
    for before, after in zip(given, shown(closure).calls, strict=True):
        assert type(after.call.id) is type(after.call.name) is str
        assert after.call == before


def test_a_tool_call_is_kept_as_the_object_it_is() -> None:
    """What the host announced is what it finds in the snapshot."""
    call = ToolCall("i", "n", {"a": 1}, wire_id="w")
    closure = ToolCallClosure()
    closure.begin([call])
    assert shown(closure).calls[0].call is call


@pytest.mark.parametrize(
    "form",
    [
        lambda arguments: {"id": "i", "name": "n", "arguments": arguments},
        lambda arguments: SimpleNamespace(id="i", name="n", arguments=arguments),
    ],
    ids=["mapping", "object"],
)
def test_arguments_come_along(form: Any) -> None:
    """The arguments of a mapping or an object are announced too, text as text; of a wrong type they are refused (C2)."""
    closure = ToolCallClosure()
    closure.begin([form('{"a": 1}')])
    assert shown(closure).calls[0].call.arguments == {"a": 1}
    assert shown(closure).calls[0].call.raw_arguments == '{"a": 1}'
    closure.begin([form({"b": 2})])
    assert shown(closure).calls[0].call.arguments == {"b": 2}
    closure.begin([form(None)])
    assert shown(closure).calls[0].call.arguments == {}
    refused([form(5)], InvalidTypeError, "arguments")


@pytest.mark.parametrize(
    "state", ["later", "", "Unknown", 0, False, 1, [], Equal(), HostileText("later"), b"unknown"], ids=type
)
def test_a_side_effect_state_that_there_is_not_is_refused(state: Any) -> None:
    """What a superseded batch shall say is checked before the new calls are read (C3, C10)."""
    closure, _ = opened()
    before = view(closure)
    with pytest.raises(InvalidInputError, match="side_effect_state"):
        closure.begin(iter(lambda: pytest.fail("the calls were read"), None), side_effect_state=state)
    assert view(closure) == before
