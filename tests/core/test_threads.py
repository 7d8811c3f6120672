"""A closure belongs to the thread that began its first batch: from any other it fails loudly and changes nothing (C18)."""

from collections.abc import Callable
from functools import partial
from threading import Barrier, Thread
from typing import Any

import pytest

from tests.core.kit import opened, shown
from toolbatch.core import BatchHandle, Snapshot, ToolCall, ToolCallClosure, WrongThreadError

OPERATIONS: dict[str, Callable[[ToolCallClosure, BatchHandle], Any]] = {
    "begin": lambda closure, _: closure.begin([ToolCall("x", "t")]),
    "start": lambda closure, handle: closure.start(handle, "a"),
    "start_many": lambda closure, handle: closure.start_many(handle, b"\x01"),
    "progress": lambda closure, handle: closure.progress(handle, "a", "p"),
    "settle": lambda closure, handle: closure.settle(handle, "a", {"status": "error"}),
    "succeed": lambda closure, handle: closure.succeed(handle, "a", "x"),
    "fail": lambda closure, handle: closure.fail(handle, "a", "x"),
    "cancel": lambda closure, handle: closure.cancel(handle, "a"),
    "close_call": lambda closure, handle: closure.close_call(handle, "a"),
    "close": lambda closure, handle: closure.close(handle),
    "seal": lambda closure, handle: closure.seal(handle),
    "snapshot": lambda closure, _: closure.snapshot(),
}


def elsewhere(work: Callable[[], Any]) -> Any:
    """Run `work` in another thread; return what it returned, or the exception that it raised."""
    result: list[Any] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            result.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    return result[0]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("closed", [False, True])
def test_another_thread_is_refused_loudly(operation: str, closed: bool) -> None:
    """Every operation raises in another thread, with a good handle and a bad one, and nothing is noted or changed (C18)."""
    closure, handle = opened("a", "b")
    if closed:
        closure.close(handle)
    before = shown(closure).to_dict()
    for given in (handle, BatchHandle(1)):
        error = elsewhere(partial(OPERATIONS[operation], closure, given))
        assert isinstance(error, WrongThreadError)
        assert "thread" in str(error)
    assert shown(closure).to_dict() == before
    assert closure.active_generation == 1


def test_the_owner_is_who_begins_first() -> None:
    """A closure made in one thread and first used in another belongs to the other (C18)."""
    closure = ToolCallClosure()
    assert closure.snapshot() is None
    begun = elsewhere(lambda: closure.begin([ToolCall("a", "t")]))
    assert begun.generation == 1
    for operation in OPERATIONS.values():
        with pytest.raises(WrongThreadError):
            operation(closure, begun.handle)


def test_a_refused_first_begin_owns_nothing() -> None:
    """A first `begin` that raises leaves the closure to whoever begins it (C2, C18)."""
    closure = ToolCallClosure()
    assert isinstance(elsewhere(lambda: closure.begin([ToolCall("", "t")])), ValueError)
    assert closure.begin([]).generation == 1


def test_a_snapshot_may_be_read_anywhere() -> None:
    """What is immutable needs no thread: exports can be made where it suits."""
    closure, handle = opened("a")
    closed = closure.close(handle)
    assert isinstance(closed, Snapshot)
    assert elsewhere(closed.to_dict) == closed.to_dict()


def test_nothing_is_corrupted_by_threads_that_try() -> None:
    """Threads hammering at a closure are all refused, every time, while its owner runs whole batches correctly (C18)."""
    closure, first = opened("a", "b")
    refused, wrong, stop = [0] * 4, [], False
    together = Barrier(5)

    def hammer(number: int) -> None:
        together.wait()
        while not stop or not refused[number]:
            for operation in OPERATIONS.values():
                try:
                    wrong.append(operation(closure, first))
                except WrongThreadError:
                    refused[number] += 1

    threads = [Thread(target=hammer, args=(number,), daemon=True) for number in range(4)]
    for thread in threads:
        thread.start()
    together.wait()
    try:
        for number in range(2, 300):
            begun = closure.begin([ToolCall("a", "t"), ToolCall("b", "t"), ToolCall("c", "t")])
            assert begun.generation == number
            assert closure.succeed(begun.handle, "a", str(number)).accepted
            assert closure.start(begun.handle, "b").accepted
            closed = closure.close(begun.handle, side_effect_state=None)
            assert isinstance(closed, Snapshot)
            ends = [call.settlement.to_dict() for call in closed.calls if call.settlement is not None]
            assert ends[0]["content"] == str(number)
            assert [end.get("side_effect_state") for end in ends] == [None, "unknown", "not_started"]
            assert closed.diagnostics == ()
    finally:
        stop = True
        for thread in threads:
            thread.join()
    assert wrong == []
    assert all(refused)
