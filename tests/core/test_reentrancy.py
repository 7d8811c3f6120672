"""The caller's code runs inside our calls: what it does to the closure stands, and ours answers with what fits (C14).

A systematic matrix: each place where the caller's code can run, in each operation, times each thing that it can do there.
"""

from collections import UserDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.core.kit import states
from toolbatch.core import (
    Accepted,
    BatchHandle,
    Closed,
    Failed,
    InvalidInputError,
    Rejected,
    Snapshot,
    Succeeded,
    ToolCall,
    ToolCallClosure,
    encode,
)

Fire = Callable[[], None]


class Boom(Exception):
    """What the caller's code raises."""


# -- places where the caller's code runs -------------------------------------------------------------------------------------


class Text:
    """Runs code when it is made text."""

    def __init__(self, fire: Fire) -> None:
        self.fire = fire

    def __str__(self) -> str:
        self.fire()
        return "text"


class Trouble(Exception):
    """An exception that runs code when its message is read."""

    def __init__(self, fire: Fire) -> None:
        super().__init__()
        self.fire = fire

    def __str__(self) -> str:
        self.fire()
        return "text"


class TextOfASubclass(str):
    """Text that runs code when it is asked for its text."""

    __slots__ = ("fire",)
    fire: Fire

    def __str__(self) -> str:
        self.fire()
        return "text"


@dataclass
class Property:
    """A dataclass whose field is a property that runs code."""

    fire: Any

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if name != "fire":
            return value
        value()
        return 1


class Model:
    """Dumps itself like a model, and runs code there."""

    def __init__(self, fire: Fire) -> None:
        self.fire = fire

    def model_dump(self, *, mode: str) -> Any:
        self.fire()
        return {"mode": mode}


class Items(dict[str, Any]):
    """A dict that runs code when its items are listed."""

    def __init__(self, fire: Fire) -> None:
        super().__init__(a=1)
        self.fire = fire

    def items(self) -> Any:
        self.fire()
        return super().items()


class Injected:
    """Only the injected encoder can write it, and runs code there."""

    def __init__(self, fire: Fire) -> None:
        self.fire = fire


class Outcome(UserDict[str, Any]):
    """A mapping that runs code when `key` is read."""

    def __init__(self, fire: Fire, key: str, data: dict[str, Any]) -> None:
        super().__init__(data)
        self.fire, self.key = fire, key

    def __getitem__(self, key: str) -> Any:
        if key == self.key:
            self.fire()
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self.data else default


class Shows:
    """An object of the wrong type that runs code when it is shown in our error."""

    def __init__(self, fire: Fire) -> None:
        self.fire = fire

    def __repr__(self) -> str:
        self.fire()
        return "shown"


def subclass_of_text(fire: Fire) -> Any:
    """Text whose `__str__` runs code."""
    text = TextOfASubclass("raw")
    text.fire = fire
    return text


VALUES: dict[str, Callable[[Fire], Any]] = {
    "property": Property, "model_dump": Model, "items": Items, "encoder": Injected, "deep": lambda fire: [{"k": Property(fire)}],
}  # fmt: skip
MESSAGES: dict[str, Callable[[Fire], Any]] = {"__str__": Text, "exception": Trouble, "subclass": subclass_of_text}

Outer = Callable[[ToolCallClosure, BatchHandle, Fire], Any]


def with_value(make: Callable[[Fire], Any]) -> dict[str, Outer]:
    """The operations that write a value."""
    return {
        "succeed": lambda closure, handle, fire: closure.succeed(handle, "a", make(fire)),
        "settle": lambda closure, handle, fire: closure.settle(
            handle, "a", {"status": "success", "content": make(fire)}
        ),
        "progress": lambda closure, handle, fire: closure.progress(handle, "a", make(fire)),
    }


def with_message(make: Callable[[Fire], Any]) -> dict[str, Outer]:
    """The operations that read a message."""
    return {
        "fail": lambda closure, handle, fire: closure.fail(handle, "a", make(fire)),
        "cancel": lambda closure, handle, fire: closure.cancel(handle, "a", make(fire)),
        "settle error": lambda closure, handle, fire: closure.settle(
            handle, "a", {"status": "error", "message": make(fire)}
        ),
        "close_call": lambda closure, handle, fire: closure.close_call(handle, "a", "error", message=make(fire)),
        "close": lambda closure, handle, fire: closure.close(handle, "error", message=make(fire)),
    }


def with_mapping(key: str, data: dict[str, Any]) -> Outer:
    """A `settle` of a mapping that runs code when `key` is read."""
    return lambda closure, handle, fire: closure.settle(handle, "a", Outcome(fire, key, data))


OUTER: dict[str, Outer] = {
    **{f"{name} {kind}": outer for kind, make in VALUES.items() for name, outer in with_value(make).items()},
    **{f"{name} {kind}": outer for kind, make in MESSAGES.items() for name, outer in with_message(make).items()},
    **{
        f"settle mapping {key}": with_mapping(key, {"status": "success", "content": "x"})
        for key in ("status", "content")
    },
    **{
        f"settle error mapping {key}": with_mapping(key, {"status": "error", "code": "c", "message": "x"})
        for key in ("status", "code", "message")
    },
}


# -- what it can do there ----------------------------------------------------------------------------------------------------


class Done:
    """What the nested action did and was answered."""

    answer: Any = None
    fired = 0


def succeed_same(closure: ToolCallClosure, handle: BatchHandle) -> Any:
    return closure.succeed(handle, "a", "nested")


def fail_same(closure: ToolCallClosure, handle: BatchHandle) -> Any:
    return closure.settle(handle, "a", {"status": "error", "message": "nested"})


def close_same(closure: ToolCallClosure, handle: BatchHandle) -> Any:
    return closure.close_call(handle, "a", "cancelled", "nested")


def succeed_other(closure: ToolCallClosure, handle: BatchHandle) -> Any:
    return closure.succeed(handle, "b", "nested")


def close(closure: ToolCallClosure, handle: BatchHandle) -> Any:
    return closure.close(handle, "cancelled", "nested")


def settle_all_and_seal(closure: ToolCallClosure, handle: BatchHandle) -> Any:
    closure.succeed(handle, "a", "nested")
    closure.succeed(handle, "b", "nested")
    return closure.seal(handle)


def begin(closure: ToolCallClosure, handle: BatchHandle) -> Any:
    return closure.begin([ToolCall("a", "newer"), ToolCall("n", "newer")])


def begin_twice(closure: ToolCallClosure, handle: BatchHandle) -> Any:
    closure.begin([])
    return closure.begin([ToolCall("a", "newer"), ToolCall("n", "newer")])


def start(closure: ToolCallClosure, handle: BatchHandle) -> Any:
    return closure.start(handle, "a")


def progress(closure: ToolCallClosure, handle: BatchHandle) -> Any:
    return closure.progress(handle, "a", "nested progress")


def look(closure: ToolCallClosure, handle: BatchHandle) -> Any:
    return closure.snapshot()


Action = Callable[[ToolCallClosure, BatchHandle], Any]
SETTLES_SAME: list[Action] = [succeed_same, fail_same, close_same]
CLOSES: list[Action] = [close, settle_all_and_seal]
BEGINS: list[Action] = [begin, begin_twice]
HARMLESS: list[Action] = [succeed_other, start, progress, look]
ACTIONS: list[Action] = [*SETTLES_SAME, *CLOSES, *BEGINS, *HARMLESS]


def prepared(action: Action, then_raise: bool) -> tuple[ToolCallClosure, BatchHandle, Fire, Done]:
    """A closure with an open batch of `a` and `b`, and code that does `action` to it, once."""

    def own(value: object) -> str:
        if isinstance(value, Injected):
            value.fire()
            return '"injected"'
        return encode(value)

    closure, done = ToolCallClosure(encode=own), Done()
    handle = closure.begin([ToolCall("a", "t"), ToolCall("b", "t")]).handle

    def fire() -> None:
        if done.fired:
            return
        done.fired = 1
        done.answer = action(closure, handle)
        if then_raise:
            raise Boom

    return closure, handle, fire, done


def outcomes(closure: ToolCallClosure) -> dict[str, Any]:
    """The outcome of each call of the active batch."""
    snapshot = closure.snapshot()
    assert snapshot is not None
    return {call.id: call.settlement for call in snapshot.calls}


def still_works(closure: ToolCallClosure, handle: BatchHandle) -> None:
    """Whatever happened, what is settled stays so, and the active batch can be finished and replaced."""
    generation, before = closure.active_generation, outcomes(closure)
    assert generation is not None
    snapshot = closure.snapshot()
    assert snapshot is not None
    superseded = closure.begin([ToolCall("z", "t")]).superseded
    assert (superseded is None) == snapshot.closed
    if superseded is not None:
        for call in superseded.calls:
            assert call.settlement is not None
            assert before[call.id] in (None, call.settlement)
    assert closure.active_generation == generation + 1
    assert states(closure) == {"z": "pending"}
    assert closure.succeed(handle, "a", "late").to_dict()["reason"] == "stale_generation"


def nested_stands(closure: ToolCallClosure, action: Action, done: Done) -> None:
    """What the nested action was answered is what the closure holds afterwards."""
    if action in BEGINS:
        assert closure.active_generation == done.answer.generation
        assert outcomes(closure) == {"a": None, "n": None}
    elif action in CLOSES:
        assert isinstance(done.answer, Snapshot)
        assert outcomes(closure) == {call.id: call.settlement for call in done.answer.calls}
    elif action in SETTLES_SAME or action is succeed_other:
        assert isinstance(done.answer, Accepted)
        assert outcomes(closure)[done.answer.call_id] == done.answer.settlement
    elif action is start:
        snapshot = closure.snapshot()
        assert snapshot is not None
        assert snapshot.calls[0].started


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
@pytest.mark.parametrize("outer", OUTER)
def test_what_the_callers_code_does_stands_and_ours_answers_what_fits(outer: str, action: Action) -> None:
    """The nested change wins; ours is rejected for the reason that then holds, or accepted where nothing stands against it."""
    closure, handle, fire, done = prepared(action, then_raise=False)
    answer = OUTER[outer](closure, handle, fire)
    assert done.fired, "the hook was never run"
    nested_stands(closure, action, done)
    if outer.startswith("close "):
        closes_whole_batch(closure, action, done, answer)
    elif action in BEGINS:
        assert isinstance(answer, Rejected)
        assert (answer.reason, answer.call_id, answer.generation) == ("stale_generation", "a", 1)
    elif action in CLOSES:
        assert isinstance(answer, Rejected)
        assert (answer.reason, answer.generation) == ("run_closed", 1)
    elif action in SETTLES_SAME:
        assert isinstance(answer, Rejected)
        assert (answer.reason, answer.generation) == ("duplicate_settlement", 1)
    else:
        assert isinstance(answer, Accepted)
        assert outcomes(closure)["a"] is answer.settlement
        assert (answer.settlement is None) == outer.startswith("progress")
    still_works(closure, handle)


def closes_whole_batch(closure: ToolCallClosure, action: Action, done: Done, answer: Any) -> None:
    """A close answers with the batch as it then is: closed by the nested action, or now."""
    if action in BEGINS:
        assert isinstance(answer, Rejected)
        assert (answer.reason, answer.generation) == ("stale_generation", 1)
        return
    assert isinstance(answer, Snapshot)
    assert answer is closure.snapshot()
    assert all(outcomes(closure).values())
    if action in CLOSES:
        assert answer is done.answer
    else:
        synthetic = Closed("error", "error", "text", "unknown", "nested progress" if action is progress else None)
        untouched = {"b"} if action in SETTLES_SAME else {"a"} if action is succeed_other else {"a", "b"}
        for call_id in untouched - {"b"} if action is progress else untouched:
            assert outcomes(closure)[call_id] == synthetic


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
@pytest.mark.parametrize("outer", OUTER)
def test_what_was_done_before_an_exception_stays(outer: str, action: Action) -> None:
    """If the caller's code raises after changing state, its exception passes untouched and its change stays."""
    closure, handle, fire, done = prepared(action, then_raise=True)
    with pytest.raises(Boom):
        OUTER[outer](closure, handle, fire)
    nested_stands(closure, action, done)
    if action in HARMLESS:
        assert outcomes(closure)["a"] is None
    still_works(closure, handle)


# -- beginning -------------------------------------------------------------------------------------------------------------


def from_iterator(fire: Fire) -> Any:
    def calls() -> Iterator[ToolCall]:
        yield ToolCall("x", "t")
        fire()
        yield ToolCall("y", "t")

    return calls()


def from_iter(fire: Fire) -> Any:
    class Calls:
        def __iter__(self) -> Iterator[ToolCall]:
            fire()
            return iter([ToolCall("x", "t"), ToolCall("y", "t")])

    return Calls()


def at_the_end(fire: Fire) -> Any:
    def calls() -> Iterator[ToolCall]:
        yield from (ToolCall("x", "t"), ToolCall("y", "t"))
        fire()

    return calls()


def from_property(fire: Fire) -> Any:
    class Call:
        id = "y"

        @property
        def name(self) -> str:
            fire()
            return "t"

    return [ToolCall("x", "t"), Call()]


def from_mapping(fire: Fire) -> Any:
    return [ToolCall("x", "t"), Outcome(fire, "id", {"id": "y", "name": "t"})]


def from_arguments(fire: Fire) -> Any:
    class Arguments(UserDict[str, Any]):
        def keys(self) -> Any:
            fire()
            return super().keys()

    return [ToolCall("x", "t"), {"id": "y", "name": "t", "arguments": Arguments(k=1)}]


ANNOUNCED: list[Callable[[Fire], Any]] = [
    from_iterator,
    from_iter,
    at_the_end,
    from_property,
    from_mapping,
    from_arguments,
]


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
@pytest.mark.parametrize("calls", ANNOUNCED, ids=lambda calls: calls.__name__)
def test_begin_replaces_what_it_then_finds_or_raises(calls: Callable[[Fire], Any], action: Action) -> None:
    """A batch begun while calls were read stands, and ours raises; any other change is part of what ours replaces."""
    closure, handle, fire, done = prepared(action, then_raise=False)
    if action in BEGINS:
        with pytest.raises(InvalidInputError, match="it stands"):
            closure.begin(calls(fire))
        assert done.fired
        nested_stands(closure, action, done)
        still_works(closure, handle)
        return
    begun = closure.begin(calls(fire))
    assert done.fired
    assert begun.generation == closure.active_generation == 2
    assert states(closure) == {"x": "pending", "y": "pending"}
    if action in CLOSES:
        assert begun.superseded is None
    else:
        assert begun.superseded is not None
        ends = {call.id: call.settlement for call in begun.superseded.calls}
        if action in SETTLES_SAME or action is succeed_other:
            assert ends[done.answer.call_id] == done.answer.settlement
        assert all(ends.values())
    still_works(closure, begun.handle)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
@pytest.mark.parametrize("calls", ANNOUNCED, ids=lambda calls: calls.__name__)
def test_a_begin_whose_reading_raises_begins_nothing(calls: Callable[[Fire], Any], action: Action) -> None:
    """The caller's exception passes, what its code did before stays, and no batch of ours has begun."""
    closure, handle, fire, done = prepared(action, then_raise=True)
    with pytest.raises(Boom):
        closure.begin(calls(fire))
    nested_stands(closure, action, done)
    assert "x" not in states(closure)
    still_works(closure, handle)


def test_the_very_first_begin_may_be_overtaken_too() -> None:
    """A batch begun while the first calls of all are read is the first, and it stands."""
    closure = ToolCallClosure()

    def calls() -> Iterator[ToolCall]:
        closure.begin([ToolCall("inner", "t")])
        yield ToolCall("outer", "t")

    with pytest.raises(InvalidInputError, match="generation 1 began"):
        closure.begin(calls())
    assert states(closure) == {"inner": "pending"}
    assert closure.active_generation == 1


def test_invalid_calls_change_nothing_but_what_their_reading_changed() -> None:
    """A bad call after a nested close raises, and the close stands (C2)."""
    closure, handle, fire, done = prepared(close, then_raise=False)

    def calls() -> Iterator[ToolCall]:
        fire()
        yield ToolCall("", "t")

    with pytest.raises(InvalidInputError, match="blank"):
        closure.begin(calls())
    nested_stands(closure, close, done)
    assert closure.active_generation == 1
    still_works(closure, handle)


# -- handles, and values that are shown in our errors ------------------------------------------------------------------------


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
@pytest.mark.parametrize("operation", ["succeed", "fail", "start", "progress", "close_call", "close", "seal"])
def test_a_forged_handle_is_rejected_whatever_its_property_does(operation: str, action: Action) -> None:
    """Reading the generation that a forged handle claims may do anything; the answer is a rejection all the same."""
    closure, handle, fire, done = prepared(action, then_raise=False)

    class Forged:
        @property
        def generation(self) -> int:
            fire()
            return 1

    given: tuple[str, ...] = {
        "succeed": ("a", "x"),
        "fail": ("a", "x"),
        "progress": ("a", "x"),
        "start": ("a",),
        "close_call": ("a",),
    }.get(operation, ())
    answer = getattr(closure, operation)(Forged(), *given)
    assert isinstance(answer, Rejected)
    assert (answer.reason, answer.generation) == ("stale_generation", 1)
    assert done.fired
    nested_stands(closure, action, done)
    snapshot = closure.snapshot()
    assert snapshot is not None
    assert snapshot.diagnostics[-1].reason == "stale_generation"
    still_works(closure, handle)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
@pytest.mark.parametrize(
    "operation",
    [
        lambda closure, handle, bad: closure.succeed(handle, bad, "x"),
        lambda closure, handle, bad: closure.fail(handle, "a", "x", bad),
        lambda closure, handle, bad: closure.settle(handle, "a", bad),
        lambda closure, handle, bad: closure.settle(handle, "a", {"status": bad}),
        lambda closure, handle, bad: closure.succeed(handle, "a", bad),
        lambda closure, handle, bad: closure.close(handle, bad),
        lambda closure, handle, bad: closure.close(handle, side_effect_state=bad),
        lambda closure, handle, bad: closure.close_call(handle, "a", bad),
        lambda closure, handle, bad: closure.begin(bad),
        lambda closure, handle, bad: closure.begin([bad]),
        lambda closure, handle, bad: closure.begin([{"id": bad, "name": "t"}]),
        lambda closure, handle, bad: closure.begin([], side_effect_state=bad),
    ],
    ids=range(12),
)
def test_showing_a_bad_value_in_an_error_may_do_anything(operation: Any, action: Action) -> None:
    """A `repr` that changes the closure while our error is made changes what it changes; the error is raised all the same."""
    closure, handle, fire, done = prepared(action, then_raise=False)
    with pytest.raises((TypeError, ValueError)):
        operation(closure, handle, Shows(fire))
    assert done.fired
    nested_stands(closure, action, done)
    still_works(closure, handle)


@pytest.mark.parametrize("depth", [1, 5, 20])
def test_reports_inside_reports(depth: int) -> None:
    """However deep they nest, the innermost report is the first outcome and all others are duplicates (C6)."""
    closure, handle, _, _ = prepared(look, then_raise=False)
    answers: list[Any] = []

    def report(level: int) -> None:
        if level:
            answers.append(closure.fail(handle, "a", Text(lambda: report(level - 1))))
        else:
            answers.append(closure.succeed(handle, "a", "innermost"))

    report(depth)
    assert [answer.accepted for answer in answers] == [True] + [False] * depth
    assert {answer.reason for answer in answers[1:]} == {"duplicate_settlement"}
    assert {answer.observed_status for answer in answers[1:]} == {"error"}
    assert outcomes(closure)["a"] == Succeeded("innermost")


def test_a_start_between_looking_and_closing_counts() -> None:
    """A call that began while a close was being read is closed as `unknown` (C10)."""
    for outer in ("close", "close_call"):
        closure, handle, fire, _ = prepared(start, then_raise=False)
        if outer == "close":
            closure.close(handle, message=Text(fire), side_effect_state=None)  # type: ignore[arg-type]
        else:
            closure.close_call(handle, "a", message=Text(fire), side_effect_state=None)  # type: ignore[arg-type]
        closed = outcomes(closure)["a"]
        assert isinstance(closed, Closed)
        assert closed.side_effect_state == "unknown"


def test_progress_between_looking_and_closing_counts() -> None:
    """What a call reports while its close is being read is in its outcome (B19)."""
    closure, handle, fire, _ = prepared(progress, then_raise=False)
    closure.close_call(handle, "a", message=Text(fire))  # type: ignore[arg-type]
    closed = outcomes(closure)["a"]
    assert isinstance(closed, Closed)
    assert closed.partial == "nested progress"


def test_an_outcome_that_changes_its_mind_is_taken_as_it_is_read_last() -> None:
    """A mapping whose status differs at each reading gives one sound outcome or raises, never a mixture."""

    class Fickle(UserDict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            if key == "status":
                return statuses.pop(0) if statuses else "error"
            return super().get(key, default)

    closure, handle, _, _ = prepared(look, then_raise=False)
    statuses = ["success", "error"]
    answer = closure.settle(handle, "a", Fickle(message="m"))
    assert isinstance(answer, Accepted)
    assert answer.settlement == Failed("error", "m")
    statuses = ["error", "nonsense"]
    with pytest.raises(InvalidInputError):
        closure.settle(handle, "b", Fickle(message="m"))
    assert outcomes(closure)["b"] is None
