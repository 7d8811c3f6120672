"""What the outside world says of an unknown operation is written down, and believed no further than it can be known."""

import os
import subprocess
import sys
from typing import Any

import pytest

from tests.operations.kit import RESULT, completed, granted, pay, unknown
from toolbatch.core import InvalidInputError, InvalidTypeError
from toolbatch.operations import MemoryOperationStore, owner_state, resolve, this_owner
from toolbatch.ports import Done, NotDone, OperationRecord, ReplayPolicy, Resolution, StillUnknown

NOW = 1_000_000.0


class World:
    """Answers as it is told to, and remembers what it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[OperationRecord] = []

    async def __call__(self, record: OperationRecord, /) -> Resolution:
        self.asked.append(record)
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: Resolution = self.answer
        return answer


class Interrupted(World):
    """While it is asked, somebody else settles the operation."""

    def __init__(self, answer: Resolution, meanwhile: Any) -> None:
        super().__init__(answer)
        self.meanwhile = meanwhile

    async def __call__(self, record: OperationRecord, /) -> Resolution:
        await self.meanwhile()
        return await super().__call__(record)


def store_of(owner: str | None = "another machine") -> MemoryOperationStore:
    """A store whose claims are somebody's."""
    return MemoryOperationStore(now=lambda: NOW, owner=owner)


def later(seconds: float) -> Any:
    """A clock."""
    return lambda: NOW + seconds


async def test_what_was_done_is_saved() -> None:
    """With who said so, and without asking again."""
    store, world = store_of(), World(Done(RESULT))
    await granted(store, pay())
    assert await resolve(store, world, "t/run/1", by="the bank") == Done(RESULT)
    assert await completed(store, pay()) == RESULT
    assert (record := await store.get("t/run/1")) is not None
    assert record.completed_by == "the bank"
    assert await resolve(store, world, "t/run/1") == Done(RESULT)
    assert [asked.id for asked in world.asked] == ["t/run/1"]


async def test_what_was_not_done_is_free() -> None:
    """Once nothing can be under way any more."""
    store = store_of()
    await granted(store, pay())
    assert await resolve(store, World(NotDone()), "t/run/1", now=later(300)) == NotDone()
    await granted(store, pay())


async def test_what_nobody_knows_stays_unknown() -> None:
    """With the reason."""
    store = store_of()
    await granted(store, pay())
    assert await resolve(store, World(StillUnknown("no such key")), "t/run/1") == StillUnknown("no such key")
    await unknown(store, pay())


async def test_a_young_claim_is_not_freed() -> None:
    """Its request may be on the way."""
    store = store_of()
    await granted(store, pay())
    answer = await resolve(store, World(NotDone()), "t/run/1", now=later(299))
    assert isinstance(answer, StillUnknown)
    assert "299 s ago by 'another machine'" in answer.reason
    await unknown(store, pay())
    assert await resolve(store, World(NotDone()), "t/run/1", min_age=299, now=later(299)) == NotDone()


async def test_a_claimant_that_runs_is_not_overruled() -> None:
    """However old its claim is, unless the host knows that it has ended."""
    store = store_of(None)
    await granted(store, pay())
    answer = await resolve(store, World(NotDone()), "t/run/1", now=later(1e9))
    assert isinstance(answer, StillUnknown)
    assert "this process" in answer.reason
    await unknown(store, pay())
    assert await resolve(store, World(NotDone()), "t/run/1", claimant_ended=True) == NotDone()
    await granted(store, pay())


async def test_a_claimant_that_has_died_is_overruled_at_once() -> None:
    """Its process is gone, so nothing of it is under way."""
    child = subprocess.run(
        [sys.executable, "-c", "from toolbatch.operations import this_owner; print(this_owner())"],
        capture_output=True,
        text=True,
        check=True,
    )
    store = store_of(child.stdout.strip())
    await granted(store, pay())
    assert await resolve(store, World(NotDone()), "t/run/1", now=later(0)) == NotDone()


@pytest.mark.parametrize("policy", ["never", "if_not_started", "safe"])
async def test_a_policy_of_never_leaves_it_to_a_person(policy: ReplayPolicy) -> None:
    """All others allow what is known not to have happened."""
    store = store_of()
    await granted(store, pay(replay=policy))
    answer = await resolve(store, World(NotDone()), "t/run/1", claimant_ended=True)
    assert isinstance(answer, StillUnknown) is (policy == "never")
    if policy == "never":
        await unknown(store, pay(replay=policy))
        assert await resolve(store, World(Done(RESULT)), "t/run/1") == Done(RESULT)


async def test_what_others_said_meanwhile_stands() -> None:
    """The claimant's own result, or a new claim, is not overwritten by an answer about the old one."""
    store = store_of()
    claim = await granted(store, pay())

    async def complete() -> None:
        await store.complete(claim.token, b"the claimant's")

    assert await resolve(store, Interrupted(Done(b"the world's"), complete), "t/run/1") == Done(b"the claimant's")
    assert await completed(store, pay()) == b"the claimant's"

    await granted(store, pay("t/run/2"))

    async def claim_anew() -> None:
        await store.release_unknown("t/run/2")
        await granted(store, pay("t/run/2"))

    answer = await resolve(store, Interrupted(NotDone(), claim_anew), "t/run/2", claimant_ended=True)
    assert answer == StillUnknown("the operation was claimed anew while the resolver was asked")
    await unknown(store, pay("t/run/2"))


async def test_what_a_resolver_raises_reaches_the_caller() -> None:
    """And leaves the operation unknown, as does an answer that is none."""
    store = store_of()
    await granted(store, pay())
    with pytest.raises(LookupError):
        await resolve(store, World(LookupError()), "t/run/1")
    with pytest.raises(InvalidTypeError, match="must return Done"):
        await resolve(store, World(None), "t/run/1")
    with pytest.raises(InvalidInputError, match="there is no operation"):
        await resolve(store, World(NotDone()), "t/run/2")
    await unknown(store, pay())


# -- owners --------------------------------------------------------------------------------------------------------------------


def test_this_process_knows_itself() -> None:
    """Its name tells host and process, and is the default of every store."""
    assert str(os.getpid()) in this_owner().split(" ")
    assert owner_state(this_owner()) == "this_process"
    assert MemoryOperationStore().owner == this_owner()


def test_a_process_that_runs_is_told_from_one_that_is_gone() -> None:
    """Also from one that waits to be reaped."""
    code = "from toolbatch.operations import this_owner; print(this_owner(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        owner = child.stdout.readline().strip()
        assert owner_state(owner) == "running"
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert owner_state(owner) == "gone"
    assert owner_state(owner) == "gone"


@pytest.mark.parametrize(
    ("place", "other", "state"),
    [
        (1, "a-name-that-was-changed", "running"),
        (2, "99999999", "gone"),
        (2, "../self", "unknown"),
        (3, "1", "gone"),
        (4, "another-boot", "gone"),
        (4, "-", "unknown"),
        (5, "4000000000", "unknown"),
    ],
)
def test_an_owner_is_judged_by_what_is_certain(place: int, other: str, state: str) -> None:
    """A later process of the same number is another; another boot of this machine is over; another container can't be seen."""
    parts = this_owner().split(" ")
    parts[place] = other
    if place == 4 and other != "-" and parts[6] == "-":
        state = "unknown"  # a machine without a name of its own
    assert owner_state(" ".join(parts)) == state


@pytest.mark.parametrize("place", [1, 6])
def test_another_machine_can_t_be_seen(place: int) -> None:
    """One whose boot is another's, and whose host or machine is too."""
    parts = this_owner().split(" ")
    parts[4], parts[place] = "another-boot", "elsewhere"
    assert owner_state(" ".join(parts)) == "unknown"


@pytest.mark.parametrize("name", ["worker-7", "", "process", "process a b c d e f", "process  " * 6])
def test_a_given_name_tells_nothing(name: str) -> None:
    """Only the host knows who that is."""
    assert owner_state(name) == "unknown"
