"""A snapshot is one moment for ever, in the order of announcement; and nothing else can be exported (C12, C15, C16)."""

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from itertools import permutations
from typing import Any

import pytest

from tests.core.kit import Equal, NoRepr, opened, shown
from toolbatch.core import (
    CallSnapshot,
    Cancelled,
    Closed,
    CloseReason,
    Failed,
    InvalidInputError,
    InvalidTypeError,
    Snapshot,
    Succeeded,
    ToolCall,
    ToolCallClosure,
    require_closed,
)


def closed_snapshot() -> Snapshot:
    """A closed batch of one success and one synthetic outcome."""
    closure, handle = opened("a", "b")
    closure.succeed(handle, "a", "x")
    snapshot = closure.close(handle)
    assert isinstance(snapshot, Snapshot)
    return snapshot


def test_before_the_first_batch_there_is_none() -> None:
    """Nothing begun is `None`, not an empty batch (C12)."""
    assert ToolCallClosure().snapshot() is None


def test_a_snapshot_says_all_of_an_open_batch() -> None:
    """Generation, calls in the order of announcement, and no close reason while it is open (C12)."""
    closure, handle = opened("z", "a", "m")
    closure.start(handle, "a")
    closure.cancel(handle, "m", "stop", "code")
    closure.succeed(handle, "z", [1])
    snapshot = shown(closure)
    assert (snapshot.generation, snapshot.closed, snapshot.close_reason) == (1, False, None)
    assert [(call.id, call.name, call.state, call.settlement) for call in snapshot.calls] == [
        ("z", "tool_z", "success", Succeeded("[1]")),
        ("a", "tool_a", "pending", None),
        ("m", "tool_m", "cancelled", Cancelled("code", "stop")),
    ]
    assert [(call.id, settlement) for call, settlement in snapshot.settled()] == [
        ("z", Succeeded("[1]")),
        ("m", Cancelled("code", "stop")),
    ]
    assert repr(snapshot) == "<Snapshot of generation 1: open, 2 of 3 calls settled>"


def test_a_snapshot_as_data() -> None:
    """`to_dict` gives JSON-ready data in the vectors' shape, for every kind of outcome (C12)."""
    closure, handle = opened("s", "f", "c", "p")
    closure.succeed(handle, "s", "x")
    closure.fail(handle, "f", "m", "k")
    closure.cancel(handle, "c", "m", "k")
    open_data = shown(closure).to_dict()
    assert (open_data["closed"], open_data["close_reason"], open_data["calls"][3]) == (
        False,
        None,
        {"id": "p", "name": "tool_p", "state": "pending", "settlement": None},
    )
    closure.close(handle, "error", "k", "m", "not_started")
    data = shown(closure).to_dict()
    assert data == {
        "generation": 1,
        "closed": True,
        "close_reason": {"status": "error", "code": "k", "message": "m", "side_effect_state": "not_started"},
        "calls": [
            {"id": "s", "name": "tool_s", "state": "success", "settlement": {"status": "success", "content": "x", "provenance": "reported"}},
            {"id": "f", "name": "tool_f", "state": "error", "settlement": {"status": "error", "code": "k", "message": "m", "provenance": "reported"}},
            {"id": "c", "name": "tool_c", "state": "cancelled", "settlement": {"status": "cancelled", "code": "k", "message": "m", "provenance": "reported"}},
            {"id": "p", "name": "tool_p", "state": "error", "settlement": {"status": "error", "code": "k", "message": "m", "provenance": "synthetic", "side_effect_state": "not_started"}},
        ],
        "diagnostics": [],
        "diagnostics_dropped": 0,
    }  # fmt: skip
    assert json.loads(json.dumps(data)) == data
    assert CloseReason("complete").to_dict() == {"status": "complete"}
    partial = Closed("cancelled", "k", "m", "unknown", "so far").to_dict()
    assert partial["partial"] == "so far"


def test_each_outcome_says_what_it_is() -> None:
    """Status and provenance belong to the kind of outcome, and outcomes compare by what they say."""
    assert (Succeeded("x").status, Succeeded("x").provenance) == ("success", "reported")
    assert (Failed("k", "m").status, Failed("k", "m").provenance) == ("error", "reported")
    assert (Cancelled("k", "m").status, Cancelled("k", "m").provenance) == ("cancelled", "reported")
    closed = Closed("error", "k", "m", "unknown")
    assert (closed.status, closed.provenance, closed.partial) == ("error", "synthetic", None)
    different: list[object] = [Failed("k", "m"), Cancelled("k", "m"), closed, Succeeded("m")]
    assert len(set(different)) == 4
    with pytest.raises(FrozenInstanceError):
        closed.code = "other"  # type: ignore[misc]


def test_a_snapshot_does_not_follow_its_batch() -> None:
    """What happens afterwards shows in later snapshots only (C12)."""
    closure, handle = opened("a", "b")
    snapshots = [shown(closure)]
    steps: list[Any] = [
        lambda: closure.start(handle, "a"),
        lambda: closure.seal(handle),
        lambda: closure.succeed(handle, "a", "x"),
        lambda: closure.close_call(handle, "b"),
        lambda: closure.seal(handle),
        lambda: closure.succeed(handle, "a", "late"),
        lambda: closure.begin([]),
    ]
    dumps = [json.dumps(snapshots[0].to_dict())]
    for step in steps:
        step()
        snapshots.append(shown(closure))
        dumps.append(json.dumps(snapshots[-1].to_dict()))
        assert [json.dumps(snapshot.to_dict()) for snapshot in snapshots] == dumps
    assert len(
        {(snapshot.generation, dump, snapshot.calls) for snapshot, dump in zip(snapshots, dumps, strict=True)}
    ) == len(dumps)


def test_a_snapshot_read_late_shows_its_own_moment() -> None:
    """Its records may be built when they are first read: they show the moment of the snapshot all the same (C12)."""
    closure, handle = opened("a", "b")
    before = shown(closure)
    closure.start(handle, "b")
    closure.succeed(handle, "a", "x")
    closure.close(handle)
    closure.begin([])
    assert [(call.state, call.started, call.settlement) for call in before.calls] == [("pending", False, None)] * 2
    assert before.settled() == []
    assert before.calls is before.calls


def test_data_of_a_snapshot_is_the_callers_own() -> None:
    """Changing what `to_dict` and `settled` gave changes neither the snapshot nor the batch (C12)."""
    closure, handle = opened("a")
    closure.succeed(handle, "a", "x")
    closure.succeed(handle, "a", "x")
    snapshot = shown(closure)
    before = json.dumps(snapshot.to_dict())
    data = snapshot.to_dict()
    data["calls"][0]["settlement"]["content"] = "forged"
    data["calls"].clear()
    data["diagnostics"].clear()
    list(snapshot.settled()).clear()
    assert json.dumps(snapshot.to_dict()) == before


def test_a_snapshot_is_immutable() -> None:
    """Nothing of it can be set or deleted, and its parts are frozen too (C12)."""
    snapshot = closed_snapshot()
    for name in ("generation", "closed", "_view", "other"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(snapshot, name, None)
    with pytest.raises(AttributeError, match="immutable"):
        del snapshot._view
    assert isinstance(snapshot.calls, tuple)
    assert isinstance(snapshot.diagnostics, tuple)
    with pytest.raises(FrozenInstanceError):
        snapshot.calls[0].state = "pending"  # type: ignore[misc]
    assert snapshot.close_reason is not None
    with pytest.raises(FrozenInstanceError):
        snapshot.close_reason.status = "complete"  # type: ignore[misc]


def test_the_same_moment_is_the_same_snapshot() -> None:
    """While nothing has changed, asking again gives the same object; a rejection is a change, an accepted one too."""
    closure, handle = opened("a", "b")
    first = shown(closure)
    assert shown(closure) is first
    for change in (
        lambda: closure.start(handle, "a"),
        lambda: closure.succeed(handle, "a", "x"),
        lambda: closure.succeed(handle, "a", "x"),
        lambda: closure.close(handle),
    ):
        change()
        assert shown(closure) is not first
        first = shown(closure)


def test_a_copy_of_a_snapshot_is_itself() -> None:
    """An immutable thing needs no copy, and a pickled one would prove nothing (C15)."""
    snapshot = closed_snapshot()
    assert copy.copy(snapshot) is snapshot
    assert copy.deepcopy([snapshot])[0] is snapshot
    with pytest.raises(InvalidTypeError, match="to_dict"):
        pickle.dumps(snapshot)


def test_nobody_else_makes_a_snapshot() -> None:
    """The constructor refuses, whatever it is given (C15)."""
    with pytest.raises(InvalidTypeError, match="made by a closure"):
        Snapshot()


# -- exports -------------------------------------------------------------------------------------------------------------


class Trap:
    """Fails the test when anything of it is read."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"{name} was read")


class TrapDict(dict[str, Any]):
    """A dict that fails the test when it is read."""

    def __getitem__(self, key: str) -> Any:
        raise AssertionError(f"{key} was read")

    def get(self, key: str, default: Any = None) -> Any:
        raise AssertionError(f"{key} was read")


def claims_to_be_a_snapshot() -> Any:
    """An object that gives itself out for a snapshot, and fails the test when anything else is read."""

    class Claims:
        def __getattribute__(self, name: str) -> Any:
            if name == "__class__":
                return Snapshot
            raise AssertionError(f"{name} was read")

    claims = Claims()
    assert isinstance(claims, Snapshot)
    return claims


def subclassed() -> Any:
    """An instance of a subclass, which may say anything."""

    class Sub(Snapshot):  # type: ignore[misc]
        __slots__ = ()

        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"{name} was read")

    return object.__new__(Sub)


UNTRUSTED: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "number": lambda: 5,
    "text": lambda: "snapshot",
    "dict": lambda: TrapDict(closed=True),
    "list": list,
    "trap": Trap,
    "lying class": claims_to_be_a_snapshot,
    "subclass": subclassed,
    "the class": lambda: Snapshot,
    "equal to all": Equal,
    "no repr": NoRepr,
    "one call": lambda: CallSnapshot(ToolCall("a", "t"), "success", False, Succeeded("x")),
    "its data": lambda: closed_snapshot().to_dict(),
    "empty": lambda: object.__new__(Snapshot),
}


@pytest.mark.parametrize("make", UNTRUSTED)
def test_what_was_not_made_here_is_refused_unread(make: str) -> None:
    """Only a snapshot made here can be exported: anything else raises before any of its attributes are read (C15)."""
    with pytest.raises(InvalidTypeError, match="Snapshot"):
        require_closed(UNTRUSTED[make]())


def test_an_open_batch_can_not_be_exported() -> None:
    """An open snapshot is refused with what to do, also when all its calls are settled (C15)."""
    closure, handle = opened("a")
    with pytest.raises(InvalidInputError, match="close or seal"):
        require_closed(closure.snapshot())
    closure.succeed(handle, "a", "x")
    with pytest.raises(InvalidInputError, match="close or seal"):
        require_closed(closure.snapshot())
    sealed = closure.seal(handle)
    assert require_closed(sealed) is sealed
    assert require_closed(closed_snapshot()).closed


def test_the_order_of_finishing_can_not_be_seen() -> None:
    """The calls of a closed batch are the same bytes in whatever order they finished (C16)."""
    reports: dict[str, Any] = {
        "a": lambda closure, handle: closure.succeed(handle, "a", {"set": {3, 1, 2}, "é": 1.5}),
        "b": lambda closure, handle: closure.fail(handle, "b", "broke"),
        "c": lambda closure, handle: closure.cancel(handle, "c"),
        "d": lambda closure, handle: closure.close_call(handle, "d", "error", "timeout"),
    }
    dumps = set()
    for order in permutations(reports):
        closure, handle = opened("d", "a", "e", "c", "b")
        for call_id in order:
            reports[call_id](closure, handle)
        closed = closure.close(handle)
        assert isinstance(closed, Snapshot)
        dumps.add(json.dumps([call.to_dict() for call in closed.calls]))
        dumps.add(
            json.dumps(
                [
                    {"id": call.id, "name": call.name, "state": end.status, "settlement": end.to_dict()}
                    for call, end in closed.settled()
                ]
            )
        )
    assert len(dumps) == 1
