"""What the tests of durable operations and journals share: a ledger of payments, stores and journals that fail, short ways to run."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

from tests.batch.kit import check_batch
from toolbatch import Snapshot, ToolBatch, ToolCall, current_call
from toolbatch.batch import DurableOperations
from toolbatch.operations import MemoryJournal, MemoryOperationStore
from toolbatch.ports import (
    Claim,
    Claimed,
    ClaimToken,
    JournalRecord,
    Operation,
    OperationStore,
    OperationStoreError,
)

__all__ = [
    "RUN",
    "Bank",
    "FaultyJournal",
    "FaultyStore",
    "call",
    "durable",
    "executed",
    "run_durable",
    "state",
]

RUN = "run-1"


class Bank:
    """A tool that pays, and knows what it has paid.

    Attributes:
        paid: The calls that were paid, in order.
        keys: The idempotency key of each call that was entered.
        entered: Is set when a payment is under way.
        release: Lets payments end; set unless a test clears it.
        fails: What a payment raises instead of returning.
    """

    def __init__(self, fails: BaseException | None = None) -> None:
        self.paid: list[str] = []
        self.keys: dict[str, str] = {}
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.release.set()
        self.fails = fails

    async def __call__(self, amount: int = 50) -> dict[str, Any]:
        context = current_call()
        self.paid.append(context.call_id)
        self.keys[context.call_id] = context.idempotency_key
        self.entered.set()
        await self.release.wait()
        if self.fails is not None:
            raise self.fails
        return {"paid": amount, "to": "ä"}


class FaultyStore:
    """A store in memory that does what a test tells it to at each step.

    Attributes:
        inner: The store.
        log: What was asked, in order.
        on: What to await before a step is done, by the step's name; what that raises the caller gets.
        on_answer: The same, after the step was done.
    """

    def __init__(self) -> None:
        self.inner = MemoryOperationStore()
        self.log: list[str] = []
        self.on: dict[str, Callable[[], Awaitable[None]]] = {}
        self.on_answer: dict[str, Callable[[], Awaitable[None]]] = {}

    owner = "the test"

    async def claim(self, operation: Operation, *, taking_over: str | None = None) -> Claim:
        await self._step("claim", self.on)
        claim = await self.inner.claim(operation, taking_over=taking_over)
        try:
            await self._step("claimed", self.on_answer)
        except asyncio.CancelledError:
            if isinstance(claim, Claimed):  # as the port has it: its caller has left
                await self.inner.release(claim.token)
            raise
        return claim

    async def complete(self, token: ClaimToken, result: bytes) -> None:
        try:
            await self._step("complete", self.on)
        except asyncio.CancelledError:
            await self.inner.complete(token, result)  # as the port has it: once asked, it is carried out
            raise
        await self.inner.complete(token, result)
        await self._step("completed", self.on_answer)

    async def release(self, token: ClaimToken) -> None:
        await self._step("release", self.on)
        await self.inner.release(token)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.inner.aclose()

    def breaks(self, *steps: str) -> Self:
        """Raise what a store that is down raises, at these steps."""

        async def fail() -> None:
            raise OperationStoreError("the disk is gone")

        for step in steps:
            self.on[step] = self.on_answer[step] = fail
        return self

    async def _step(self, name: str, steps: dict[str, Callable[[], Awaitable[None]]]) -> None:
        self.log.append(name)
        if name in steps:
            await steps[name]()
        await asyncio.sleep(0)


class FaultyJournal:
    """A journal in memory that does what a test tells it to.

    Attributes:
        inner: The journal.
        on_append: What to await before records are written, with the records.
        written: The kinds of records that are on disk, in order.
    """

    def __init__(self) -> None:
        self.inner = MemoryJournal()
        self.on_append: Callable[[Sequence[JournalRecord]], Awaitable[None]] | None = None
        self.written: list[str] = []

    async def append(self, records: Sequence[JournalRecord]) -> None:
        if self.on_append is not None:
            await self.on_append(records)
        await asyncio.sleep(0)
        await self.inner.append(records)
        self.written += [type(record).__name__.removesuffix("Record").lower() for record in records]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def breaks(self, kind: str = "") -> Self:
        """Raise what a journal that is down raises, from the first record of a kind on."""

        async def fail(records: Sequence[JournalRecord]) -> None:
            if any(type(record).__name__.lower().startswith(kind) for record in records):
                raise OperationStoreError("the disk is full")

        self.on_append = fail
        return self


def call(call_id: str = "a", name: str = "pay", **arguments: Any) -> ToolCall:
    """A call."""
    return ToolCall(call_id, name, arguments)


def durable(store: OperationStore | FaultyStore, **options: Any) -> DurableOperations:
    """The interceptor."""
    return DurableOperations(store, tenant="t", **options)


async def run_durable(
    store: OperationStore | FaultyStore | DurableOperations,
    tool: Any,
    *calls: ToolCall,
    run_id: str | None = RUN,
    **options: Any,
) -> ToolBatch:
    """Run calls of one tool to their end, check what holds of every batch, and return the batch."""
    announced = list(calls) or [call()]
    hook = store if isinstance(store, DurableOperations) else durable(store)
    options.setdefault("interceptors", [hook])
    tools = {one.name: tool for one in announced}
    async with ToolBatch(announced, tools=tools, run_id=run_id, **options) as batch:
        batch.start_all()
        await batch.snapshot()
    check_batch(batch, [one.id for one in announced])
    return batch


def executed(batch: ToolBatch) -> list[dict[str, Any]]:
    """What the model gets of the calls, as data."""
    snapshot: Snapshot | None = batch.result
    assert snapshot is not None
    calls: list[dict[str, Any]] = snapshot.to_dict()["calls"]
    return calls


async def state(store: OperationStore | FaultyStore, call_id: str = "a") -> str:
    """What a store knows of a call's operation: free, open, or its result."""
    record = await store.get(f"t/{RUN}/{call_id}")
    if record is None:
        return "free"
    return "open" if record.result is None else str(record.result.decode())
