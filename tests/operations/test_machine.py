"""Random lives of a store against a model of six lines a rule: whatever is asked in whatever order, the answers are the same.

Invariants: what was granted is granted to nobody else until it is released or taken over; a result stays as it was first saved;
the listing of open claims is what the model has open.
"""

import asyncio
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.operations.kit import pay
from toolbatch.core import InvalidInputError
from toolbatch.operations import MemoryOperationStore, SqliteOperationStore
from toolbatch.ports import (
    REPLAY_POLICIES,
    Claimed,
    ClaimLostError,
    ClaimToken,
    Completed,
    OperationConflictError,
    OperationStore,
    ReplayPolicy,
    Unknown,
)

T = TypeVar("T")

ids = st.sampled_from(["t/a/1", "t/a/2", "t/b/1"])
amounts = st.sampled_from([50, 50, 50, 51])
policies = st.sampled_from(REPLAY_POLICIES)
results = st.sampled_from([b"1", b"2"])
positions = st.integers(0, 30)


@dataclass(frozen=True)
class Kept:
    """What the model knows of an operation."""

    amount: int
    policy: ReplayPolicy
    token: ClaimToken
    alive: bool
    attempt: int
    since: float
    result: bytes | None = None
    done_at: float = 0.0


class Life(RuleBasedStateMachine):
    """A store in memory, and what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.now = 1000.0
        self.model: dict[str, Kept] = {}
        self.tokens: list[ClaimToken] = []
        self.store = self.make()
        self.run(self.store.__aenter__())

    def make(self) -> OperationStore:
        """Make the store."""
        return MemoryOperationStore(now=lambda: self.now)

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Await a call."""
        return self.runner.run(call)

    def teardown(self) -> None:
        """Close all."""
        self.run(self.store.aclose())
        self.runner.close()

    def known(self, claim: Claimed, kept: Kept) -> None:
        """Note a claim that was granted."""
        self.tokens.append(claim.token)
        self.model[claim.token.operation_id] = replace(kept, token=claim.token, alive=True, since=self.now)

    @rule(id=ids, amount=amounts, policy=policies, over=st.sampled_from(["nothing", "this", "another"]))
    def claim(self, id: str, amount: int, policy: ReplayPolicy, over: str) -> None:
        """Ask for an operation, perhaps to take a claim over."""
        there = self.model.get(id)
        taking_over = {"nothing": None, "another": "another", "this": there.token.claim if there else "x"}[over]
        asked = self.store.claim(pay(id, policy, amount), taking_over=taking_over)
        if there is not None and there.amount != amount:
            with pytest.raises(OperationConflictError):
                self.run(asked)
            return
        answer = self.run(asked)
        if there is None:
            assert isinstance(answer, Claimed)
            self.known(answer, Kept(amount, policy, answer.token, alive=True, attempt=1, since=self.now))
        elif there.result is not None:
            assert answer == Completed(result=there.result, completed_at=there.done_at, completed_by=None)
        elif over == "this" and there.policy == policy == "safe":
            assert isinstance(answer, Claimed)
            self.known(answer, replace(there, attempt=there.attempt + 1))
        else:
            assert isinstance(answer, Unknown)
            assert (answer.claim, answer.attempt) == (there.token.claim, there.attempt)
            assert answer.age == self.now - there.since
            assert (answer.replay == "safe") is (there.policy == policy == "safe")

    @precondition(lambda self: self.tokens)
    @rule(position=positions, result=results)
    def complete(self, position: int, result: bytes) -> None:
        """Save a result by some token that was ever granted."""
        token = self.tokens[position % len(self.tokens)]
        there = self.model.get(token.operation_id)
        if there is None or there.token != token or not there.alive or there.result not in (None, result):
            with pytest.raises(ClaimLostError):
                self.run(self.store.complete(token, result))
            return
        self.run(self.store.complete(token, result))
        if there.result is None:
            self.model[token.operation_id] = replace(there, result=result, done_at=self.now)

    @precondition(lambda self: self.tokens)
    @rule(position=positions)
    def release(self, position: int) -> None:
        """Release by some token that was ever granted."""
        token = self.tokens[position % len(self.tokens)]
        there = self.model.get(token.operation_id)
        if there is not None and there.token == token and not there.alive:
            self.run(self.store.release(token))
            return
        if there is not None and (there.token != token or there.result is not None):
            with pytest.raises(ClaimLostError):
                self.run(self.store.release(token))
            return
        self.run(self.store.release(token))
        if there is not None and there.attempt == 1:
            del self.model[token.operation_id]
        elif there is not None:
            self.model[token.operation_id] = replace(there, alive=False)

    @rule(id=ids, result=results, guarded=st.booleans())
    def reconcile(self, id: str, result: bytes, guarded: bool) -> None:
        """Say, as the host, how it ended."""
        there = self.model.get(id)
        asked = self.store.reconcile(id, result, claim="another" if guarded else None)
        if there is None:
            with pytest.raises(InvalidInputError):
                self.run(asked)
        elif there.result not in (None, result) or (guarded and there.result is None):
            with pytest.raises(ClaimLostError):
                self.run(asked)
        else:
            self.run(asked)
            if there.result is None:
                # A host's word is told as such, which the model leaves out: it forgets the operation and its record.
                record = self.run(self.store.get(id))
                assert record is not None
                assert (record.result, record.completed_by) == (result, "host")
                self.now += 1
                assert self.run(self.store.purge(self.now)) >= 1
                self.forget(self.now, -1.0)
                del self.model[id]

    @rule(id=ids, guarded=st.booleans())
    def release_unknown(self, id: str, guarded: bool) -> None:
        """Say, as the host, that it has not happened."""
        there = self.model.get(id)
        asked = self.store.release_unknown(id, claim="another" if guarded else None)
        if there is not None and (there.result is not None or guarded):
            with pytest.raises(ClaimLostError):
                self.run(asked)
            return
        assert self.run(asked) is (there is not None)
        self.model.pop(id, None)

    @rule(id=ids)
    def get(self, id: str) -> None:
        """Look at one."""
        record, there = self.run(self.store.get(id)), self.model.get(id)
        assert (record is None) is (there is None)
        if record is not None and there is not None:
            assert (record.claim, record.attempt, record.result) == (there.token.claim, there.attempt, there.result)

    @rule(age=st.integers(0, 5), unknown_too=st.booleans())
    def purge(self, age: int, unknown_too: bool) -> None:
        """Forget what is old."""
        before = self.now - age
        unknown = before if unknown_too else None
        count = len(self.model)
        self.forget(before, -1.0 if unknown is None else unknown)
        assert self.run(self.store.purge(before, unknown_claimed_before=unknown)) == count - len(self.model)

    def forget(self, completed: float, unknown: float) -> None:
        """The same in the model."""
        self.model = {
            id: there
            for id, there in self.model.items()
            if (there.since >= unknown if there.result is None else there.done_at >= completed)
        }

    @rule(id=ids, turns=st.integers(0, 5))
    def leave(self, id: str, turns: int) -> None:
        """Ask for an operation, and leave before the answer or not."""

        async def leaving() -> object:
            task = asyncio.ensure_future(self.store.claim(pay(id)))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            if task.cancelled():
                await self.store.get("behind it in the queue")
                return None
            return task.exception() or task.result()

        answer = self.run(leaving())
        if isinstance(answer, Claimed):
            self.known(answer, Kept(50, "if_not_started", answer.token, alive=True, attempt=1, since=self.now))

    @rule(seconds=st.integers(1, 3))
    def wait(self, seconds: int) -> None:
        """Let time pass."""
        self.now += seconds

    @invariant()
    def open_claims_are_listed(self) -> None:
        """What the model has open, oldest first."""
        open_ = {id: there for id, there in self.model.items() if there.result is None}
        listed = [record.id for record in self.run(self.store.unresolved())]
        assert listed == sorted(open_, key=lambda id: (open_[id].since, id))


class SqliteLife(Life):
    """The same with a file, which is closed and opened now and then."""

    exclusive = False

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        super().__init__()

    def make(self) -> OperationStore:
        return SqliteOperationStore(
            Path(self.folder.name) / "operations.db", exclusive=self.exclusive, now=lambda: self.now
        )

    @rule()
    def reopen(self) -> None:
        """Close it and open it again."""
        self.run(self.store.aclose())
        self.store = self.make()

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


class ExclusiveLife(SqliteLife):
    """The same with a write-ahead log."""

    exclusive = True


TestMemory = Life.TestCase
TestMemory.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestSqlite = SqliteLife.TestCase
TestSqlite.settings = settings(max_examples=12, stateful_step_count=30, deadline=None)
TestExclusive = ExclusiveLife.TestCase
TestExclusive.settings = settings(max_examples=12, stateful_step_count=30, deadline=None)
