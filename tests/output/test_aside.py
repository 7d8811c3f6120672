"""The thread beside the loop: order, errors, cancellation, loops that are gone, and an end of it."""

import asyncio
import gc
import threading
import weakref

import pytest

from tests.output.kit import in_a_child, threads
from toolbatch.output._aside import Aside, NoThreadError


async def test_it_returns_and_raises_what_the_function_does() -> None:
    """In order, and in one thread that is not the loop's."""
    aside = Aside()
    seen: list[tuple[int, int]] = []

    def note(number: int) -> int:
        seen.append((number, threading.get_ident()))
        return number

    answers = await asyncio.gather(*(aside.run(lambda number=number: note(number)) for number in range(20)))  # type: ignore[misc]
    assert answers == list(range(20)) == [number for number, _ in seen]
    assert len({thread for _, thread in seen}) == 1
    assert seen[0][1] != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await aside.run(lambda: 1 // 0)
    assert await aside.run(lambda: "it goes on") == "it goes on"


async def test_two_of_them_do_not_wait_for_each_other() -> None:
    """A function that hangs stops the functions behind it only."""
    go_on = threading.Event()
    first, second = Aside(), Aside()
    hanging = asyncio.ensure_future(first.run(lambda: go_on.wait(30)))
    behind = asyncio.ensure_future(first.run(lambda: "behind"))
    assert await second.run(lambda: "beside") == "beside"
    assert not behind.done()
    go_on.set()
    assert (await hanging, await behind) == (True, "behind")


async def test_who_is_cancelled_leaves_and_what_waits_is_not_called() -> None:
    """The one that runs goes on unheard, the ones behind it are dropped if nobody waits for them."""
    aside = Aside()
    begun, go_on = threading.Event(), threading.Event()
    called: list[str] = []

    def work() -> None:
        begun.set()
        go_on.wait(30)
        called.append("first")

    running = asyncio.ensure_future(aside.run(work))
    waiting = asyncio.ensure_future(aside.run(lambda: called.append("second")))
    await asyncio.to_thread(begun.wait)
    for task in (running, waiting):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    go_on.set()
    await aside.run(lambda: called.append("third"))
    assert called == ["first", "third"]


def test_a_loop_that_is_gone_is_not_told() -> None:
    """What ends after its loop was closed disturbs nobody."""
    aside = Aside()
    begun, go_on = threading.Event(), threading.Event()

    async def leave() -> None:
        task = asyncio.ensure_future(aside.run(lambda: _hold(begun, go_on)))
        await asyncio.to_thread(begun.wait)
        task.cancel()

    asyncio.run(leave())
    go_on.set()
    assert asyncio.run(aside.run(lambda: "here")) == "here"


def test_its_thread_ends_and_comes_again() -> None:
    """Idle, it is gone; it keeps neither the last value nor its owner alive."""
    aside = Aside(idle_seconds=0)

    class Value:
        pass

    others = set(threads())
    for _ in range(3):
        value = weakref.ref(asyncio.run(aside.run(Value)))
        for thread in set(threads()) - others:
            thread.join(10)
        gc.collect()
        assert set(threads()) <= others
        assert value() is None
    own = weakref.ref(aside)
    del aside
    gc.collect()
    assert own() is None


async def test_an_idle_thread_keeps_nothing_alive() -> None:
    """The last function, and the text in it, may be large."""
    aside = Aside(idle_seconds=60)

    class Text:
        pass

    text = Text()
    own = weakref.ref(text)
    await aside.run(lambda text=text: None)  # type: ignore[misc]
    del text
    while own() is not None:
        gc.collect()
        await asyncio.sleep(0.001)
    aside._idle_seconds = 0
    await aside.run(lambda: None)


async def test_where_no_thread_can_be_made_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function is not called then, and not later either."""
    aside = Aside()
    called: list[str] = []
    with monkeypatch.context() as context:
        context.setattr(threading.Thread, "start", _refuse)
        with pytest.raises(NoThreadError):
            await aside.run(lambda: called.append("refused"))
    await aside.run(lambda: called.append("later"))
    assert called == ["later"]


def _hold(begun: threading.Event, go_on: threading.Event) -> None:
    begun.set()
    go_on.wait(30)


def _refuse(self: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_forked_child_has_a_thread_of_its_own() -> None:
    """Even if the parent's was at work, with its lock held, when the process was forked."""
    aside = Aside()
    begun, go_on = threading.Event(), threading.Event()

    async def hold() -> None:
        task = asyncio.ensure_future(aside.run(lambda: _hold(begun, go_on)))
        await asyncio.to_thread(begun.wait)
        with aside._changed:
            assert in_a_child(_in_the_child) == 0
        go_on.set()
        await task

    def _in_the_child() -> None:
        asyncio.events._set_running_loop(None)  # the parent's is still said to be running
        assert asyncio.new_event_loop().run_until_complete(aside.run(lambda: 7)) == 7

    asyncio.run(hold())
