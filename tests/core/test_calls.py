"""Calls as a model announces them, and the handle that proves who began the batch (C4, P6, T5)."""

import copy
import json
import pickle
from dataclasses import FrozenInstanceError
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.kit import NOT_TEXT, Equal, HostileText, NoRepr, opened, view
from toolbatch.core import Accepted, BatchHandle, CallProblem, InvalidTypeError, Rejected, ToolCall


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"a": [1, null]}', {"a": [1, None]}),
        ("{}", {}),
        ("", {}),
        (" \n", {}),
        ('{"é": "😀"}', {"é": "😀"}),
        ('{"a": 1, "a": 2}', {"a": 2}),
    ],
)
def test_argument_text_is_read(text: str, arguments: dict[str, Any]) -> None:
    """The provider's text is read and kept; blank text is a call without arguments (T5)."""
    call = ToolCall("i", "n", text)
    assert call.arguments == arguments
    assert call.raw_arguments == text
    assert call.problem is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1', "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('{"a": ' + "1" * 5000 + "}", "not valid JSON"),
        ("[1]", "must be a JSON object"),
        ("null", "must be a JSON object"),
        ('"text"', "must be a JSON object"),
        ("5", "must be a JSON object"),
    ],
    ids=range(10),
)
def test_bad_argument_text_is_a_problem_of_the_call(text: str, says: str) -> None:
    """What is no JSON object never raises: the call is announced with a problem that the model can act on (P6)."""
    call = ToolCall("i", "n", text)
    assert call.arguments == {}
    assert call.raw_arguments == text
    assert call.problem is not None
    assert call.problem.code == "malformed_arguments"
    assert says in call.problem.message
    assert "Call it again" in call.problem.message
    assert len(call.problem.message) < 600


@given(st.text())
def test_no_argument_text_raises(text: str) -> None:
    """Any text at all either is an object, is blank, or is a problem (P6)."""
    call = ToolCall("i", "n", text)
    try:
        value = json.loads(text)
    except ValueError:
        value = {} if not text.strip() else None
    assert (call.problem is None) == isinstance(value, dict)


def test_a_problem_that_is_known_already_wins() -> None:
    """A lane that saw the response cut off says so, whatever else is wrong with the text (P6)."""
    known = CallProblem("response_truncated", "cut off")
    assert ToolCall("i", "n", "{", problem=known).problem is known
    assert ToolCall("i", "n", "{}", problem=known).problem is known


@pytest.mark.parametrize(
    "arguments", [5, True, 1.5, b"{}", [], [("a", 1)], ("a",), {"a"}, object(), Equal(), NoRepr()], ids=type
)
def test_arguments_of_another_type_are_the_callers_mistake(arguments: Any) -> None:
    """Arguments that are neither a mapping nor text raise a type error."""
    with pytest.raises(InvalidTypeError, match="arguments"):
        ToolCall("i", "n", arguments)


def test_arguments_are_detached_at_the_top() -> None:
    """Keys that the caller adds later are not announced."""
    given_arguments = {"a": 1}
    call = ToolCall("i", "n", given_arguments)
    given_arguments["b"] = 2
    assert call.arguments == {"a": 1}
    assert call.raw_arguments is None


def test_argument_text_is_kept_plain() -> None:
    """Text of a subclass is kept as a plain `str`, none of whose methods are the caller's."""
    HostileText.called.clear()
    call = ToolCall("i", "n", HostileText('{"a": 1}'))
    assert type(call.raw_arguments) is str
    assert call.arguments == {"a": 1}
    assert HostileText.called == []


@pytest.mark.parametrize("value", NOT_TEXT, ids=type)
def test_any_id_and_name_can_be_held(value: Any) -> None:
    """An odd response can be read and shown: `begin` decides about ids and names, not the constructor (P6)."""
    call = ToolCall(value, value)
    assert call.id is value
    assert call.name is value


def test_a_call_is_immutable() -> None:
    """No field can be set, added or deleted."""
    call = ToolCall("i", "n")
    with pytest.raises(FrozenInstanceError):
        call.id = "j"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del call.id
    assert not hasattr(call, "__dict__")


def test_calls_compare_by_what_they_say_and_can_be_members_of_sets() -> None:
    """Two equal calls are equal and hash alike, although their arguments are dicts."""
    one, two = ToolCall("i", "n", {"a": [1]}), ToolCall("i", "n", {"a": [1]})
    assert one == two
    assert len({one, two}) == 1
    assert one != ToolCall("i", "n", {"a": [2]})
    assert one != ToolCall("i", "n", {"a": [1]}, kind="custom")


def test_a_call_keeps_what_its_lane_gave_it() -> None:
    """Wire id, kind and echo are held for the lane; without any the echo is empty."""
    call = ToolCall("i", "n", wire_id="w", kind="custom", echo={"caller": {"type": "direct"}})
    assert (call.wire_id, call.kind, call.echo) == ("w", "custom", {"caller": {"type": "direct"}})
    plain = ToolCall("i", "n")
    assert (plain.wire_id, plain.kind, plain.echo, plain.arguments, plain.problem) == (None, "function", {}, {}, None)


# -- handles -------------------------------------------------------------------------------------------------------------


def forgeries(handle: BatchHandle) -> list[Any]:
    """All that looks like the handle and is not it."""
    lookalike: Any = object.__new__(BatchHandle)
    object.__setattr__(lookalike, "_generation", handle.generation)
    return [
        BatchHandle(handle.generation), lookalike, object.__new__(BatchHandle), SimpleNamespace(generation=handle.generation),
        {"generation": handle.generation}, handle.generation, repr(handle), Equal(), None, [], type(handle), opened()[1],
    ]  # fmt: skip


OPERATIONS: dict[str, Any] = {
    "start": lambda closure, handle: closure.start(handle, "a"),
    "progress": lambda closure, handle: closure.progress(handle, "a", "p"),
    "settle": lambda closure, handle: closure.settle(handle, "a", {"status": "success", "content": "x"}),
    "succeed": lambda closure, handle: closure.succeed(handle, "a", "x"),
    "fail": lambda closure, handle: closure.fail(handle, "a", "x"),
    "cancel": lambda closure, handle: closure.cancel(handle, "a"),
    "close_call": lambda closure, handle: closure.close_call(handle, "a"),
    "close": lambda closure, handle: closure.close(handle),
    "seal": lambda closure, handle: closure.seal(handle),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_only_the_handle_itself_opens_the_batch(operation: str) -> None:
    """Equal copies, forged objects, dicts and numbers are answered with `stale_generation`, and change nothing (C4)."""
    closure, handle = opened("a")
    before = view(closure)
    for forged in forgeries(handle):
        answer = OPERATIONS[operation](closure, forged)
        assert isinstance(answer, Rejected)
        assert answer.reason == "stale_generation"
        assert view(closure) == before
    assert not isinstance(OPERATIONS[operation](closure, handle), Rejected) or operation == "seal"


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("claim", "believed"),
    [
        (1, 1),
        (7, 7),
        (0, None),
        (-1, None),
        (True, None),
        (1.0, None),
        ("1", None),
        (None, None),
        ([1], None),
        (Equal(), None),
    ],
)
def test_a_rejection_says_what_generation_was_claimed(operation: str, claim: Any, believed: int | None) -> None:
    """A positive int is worth noting as the generation that a handle spoke of, anything else is not (C5, C13)."""
    closure, _ = opened("a")
    answer = OPERATIONS[operation](closure, SimpleNamespace(generation=claim))
    assert answer.generation == believed
    assert type(answer.generation) is type(believed)


class RaisingHandle:
    """A handle that can't be asked."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    @property
    def generation(self) -> int:
        raise self.error


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_handle_that_raises_is_rejected_like_any_other(operation: str) -> None:
    """A forged handle can't turn a rejection into an exception (C5)."""
    closure, _ = opened("a")
    answer = OPERATIONS[operation](closure, RaisingHandle(RuntimeError("boom")))
    assert (answer.reason, answer.generation) == ("stale_generation", None)


def test_what_must_end_the_program_passes_through_a_rejection() -> None:
    """A KeyboardInterrupt that comes while a handle is read is not swallowed, and nothing is noted."""
    closure, _ = opened("a")
    before = shown_diagnostics(closure)
    with pytest.raises(KeyboardInterrupt):
        closure.succeed(RaisingHandle(KeyboardInterrupt()), "a", "x")  # type: ignore[arg-type]
    assert shown_diagnostics(closure) == before


def shown_diagnostics(closure: Any) -> Any:
    """The diagnostics as data."""
    return closure.snapshot().to_dict()["diagnostics"]


def test_a_handle_is_immutable() -> None:
    """Neither its number nor anything else can be set or deleted (C4)."""
    _, handle = opened()
    for name in ("generation", "_generation", "other"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(handle, name, 2)
    with pytest.raises(AttributeError, match="immutable"):
        del handle._generation
    assert handle.generation == 1
    assert repr(handle) == "<BatchHandle of generation 1>"


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda handle: pickle.loads(pickle.dumps(handle))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_copy_opens_nothing(copied: Any) -> None:
    """A handle can't be copied or pickled into another one that works (C4)."""
    closure, handle = opened("a")
    try:
        other = copied(handle)
    except AttributeError:
        return
    assert isinstance(closure.succeed(other, "a", "x"), Rejected)


def test_an_old_handle_stays_useless_for_ever() -> None:
    """Each generation has its own handle, and the one before speaks for nobody (C2, C4)."""
    closure, first = opened("a")
    second = closure.begin([ToolCall("a", "t")]).handle
    assert first is not second
    late = closure.succeed(first, "a", "x")
    assert late == Rejected("stale_generation", "a", 1, "success")
    assert isinstance(closure.succeed(second, "a", "x"), Accepted)
