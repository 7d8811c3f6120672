"""The bounds of a closure: frozen, positive ints, and in force exactly at their number (C1)."""

from dataclasses import FrozenInstanceError, fields
from decimal import Decimal
from enum import IntEnum
from typing import Any

import pytest

from tests.core.kit import Equal, NoRepr, opened, states, view
from toolbatch.core import Accepted, InvalidInputError, InvalidTypeError, Limits, ToolCall, ToolCallClosure

NAMES = [field.name for field in fields(Limits)]


class One(IntEnum):
    """An int of a sort."""

    ONE = 1


def test_the_defaults() -> None:
    """The defaults are the promised ones (C1)."""
    assert {name: getattr(Limits(), name) for name in NAMES} == {
        "max_calls": 1000,
        "max_diagnostics": 100,
        "max_result_bytes": 1_048_576,
        "max_media_bytes": 20_971_520,
        "max_message_bytes": 4096,
        "max_id_bytes": 512,
        "max_name_bytes": 512,
        "max_code_bytes": 128,
    }
    assert ToolCallClosure().limits == Limits()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "value",
    [True, False, 1.0, float("nan"), "1", b"1", None, Decimal(1), One.ONE, [1], Equal(), NoRepr(), int],
    ids=type,
)
def test_a_bound_of_another_type_is_refused(name: str, value: Any) -> None:
    """What is no int, a bool and an IntEnum among them, raises a type error that names the bound (C1)."""
    with pytest.raises(InvalidTypeError, match=name):
        Limits(**{name: value})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1, -(10**5000)], ids=["0", "-1", "huge"])
def test_a_bound_below_one_is_refused(name: str, value: int) -> None:
    """Zero and less raise a value error that names the bound, even where the number can't be printed (C1)."""
    with pytest.raises(InvalidInputError, match=name):
        Limits(**{name: value})


@pytest.mark.parametrize("name", NAMES)
def test_one_and_more_than_anyone_needs_are_fine(name: str) -> None:
    """Every bound may be 1, and a bound without a practical meaning costs nothing."""
    assert getattr(Limits(**{name: 1}), name) == 1
    assert getattr(Limits(**{name: 10**30}), name) == 10**30


def test_limits_are_frozen() -> None:
    """A closure's limits can't change under it (C1)."""
    limits = Limits()
    with pytest.raises(FrozenInstanceError):
        limits.max_calls = 1  # type: ignore[misc]
    assert not hasattr(limits, "__dict__")


def test_limits_are_keyword_only() -> None:
    """Seven ints in a row can't be confused."""
    with pytest.raises(TypeError):
        Limits(1)  # type: ignore[call-arg]


def test_the_closure_shows_the_limits_in_force() -> None:
    """The very object that was given is in force."""
    limits = Limits(max_calls=3)
    assert ToolCallClosure(limits).limits is limits


@pytest.mark.parametrize("limits", [{}, {"max_calls": 1}, 5, True, "x", Limits, Equal(), NoRepr()], ids=type)
def test_a_closure_refuses_other_limits(limits: Any) -> None:
    """A dict of limits, or anything else, is refused at once and not at the first call (C1)."""
    with pytest.raises(InvalidTypeError, match="limits"):
        ToolCallClosure(limits)


@pytest.mark.parametrize("hook", [None, "json", 5, {}], ids=type)
def test_a_closure_refuses_an_encoder_that_can_not_be_called(hook: Any) -> None:
    """An encoder that is none is refused at once and not at the first result (C7)."""
    with pytest.raises(InvalidTypeError, match="encode"):
        ToolCallClosure(encode=hook)


@pytest.mark.parametrize(
    ("limit", "fits", "over"),
    [
        ("max_id_bytes", ("éé", "n"), ("ééa", "n")),
        ("max_name_bytes", ("i", "éé"), ("i", "ééa")),
        ("max_id_bytes", ("abcd", "n"), ("abcde", "n")),
        ("max_name_bytes", ("i", "😀"), ("i", "😀a")),
    ],
)
def test_ids_and_names_are_bounded_in_bytes(limit: str, fits: tuple[str, str], over: tuple[str, str]) -> None:
    """An id or a name of exactly its limit in UTF-8 bytes is taken, one byte more is refused by name (C1, C2)."""
    closure = ToolCallClosure(Limits(**{limit: 4}))
    assert closure.begin([ToolCall(*fits)]).generation == 1
    before = view(closure)
    with pytest.raises(InvalidInputError, match=r"5 bytes.*limit of 4"):
        closure.begin([ToolCall(*over)])
    assert view(closure) == before


def test_the_number_of_calls_is_bounded() -> None:
    """Exactly `max_calls` calls are taken, one more is refused, and the open batch stays open (C1, C2)."""
    closure = ToolCallClosure(Limits(max_calls=2))
    closure.begin([ToolCall("a", "t"), ToolCall("b", "t")])
    with pytest.raises(InvalidInputError, match="2 calls"):
        closure.begin([ToolCall("c", "t"), ToolCall("d", "t"), ToolCall("e", "t")])
    assert states(closure) == {"a": "pending", "b": "pending"}


def test_results_are_bounded_in_bytes() -> None:
    """A result of exactly `max_result_bytes` is taken; one more raises, and the call is still pending (C1, C7)."""
    closure, handle = opened("a", "b", limits=Limits(max_result_bytes=4))
    for over in ("abcde", "ééa", "😀a", [1, 2], {"": ""}):
        with pytest.raises(InvalidInputError, match="max_result_bytes"):
            closure.succeed(handle, "a", over)
        assert states(closure)["a"] == "pending"
    assert isinstance(closure.succeed(handle, "a", "éé"), Accepted)
    assert isinstance(closure.succeed(handle, "b", [10]), Accepted)


def test_codes_are_bounded_in_bytes() -> None:
    """A caller's code of exactly `max_code_bytes` is taken, one more raises (C1, C8)."""
    closure, handle = opened("a", limits=Limits(max_code_bytes=4))
    with pytest.raises(InvalidInputError, match="code"):
        closure.fail(handle, "a", "x", code="abcde")
    with pytest.raises(InvalidInputError, match="code"):
        closure.fail(handle, "a", "x", code="😀a")
    assert isinstance(closure.fail(handle, "a", "x", code="😀"), Accepted)
