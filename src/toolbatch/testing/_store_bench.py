"""What the checks of operation stores are written with: a place, a clock, and questions that raise what they find."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, TypeAlias, TypeVar

from toolbatch.ports import Claimed, Completed, Operation, OperationRecord, OperationStore, Unknown

__all__ = [
    "OTHER", "RESULT", "MakeStore", "Place", "an_operation", "equal", "granted", "record_of", "refused", "require", "result_of",
    "told_unknown",
]  # fmt: skip

T = TypeVar("T")

MakeStore: TypeAlias = Callable[[str, Callable[[], float]], AbstractAsyncContextManager[OperationStore]]
"""Makes a store from the name of a place and a clock. A new name is an empty place; the same name is the same place."""

RESULT: Final = b'{"paid":true}'
OTHER: Final = b'{"paid":false}'


class Place:
    """A new place, and the clock of the stores on it."""

    def __init__(self, make_store: MakeStore, name: str) -> None:
        self._make_store = make_store
        self._name = name
        self.now = 1_000_000.0

    def store(self) -> AbstractAsyncContextManager[OperationStore]:
        """Return a store on it."""
        return self._make_store(self._name, lambda: self.now)

    @asynccontextmanager
    async def with_unknown(self, asked: Operation) -> AsyncIterator[tuple[OperationStore, Claimed, Unknown]]:
        """Open a store on it in which somebody has claimed the operation."""
        async with self.store() as store:
            claim = await granted(store, asked)
            yield store, claim, await told_unknown(store, asked)


def require(condition: object, promise: str) -> None:
    """Raise an AssertionError with the promise, unless it is kept. An `assert` would not be there under `python -O`."""
    if not condition:
        raise AssertionError(promise)


def equal(actual: object, expected: object, promise: str = "") -> None:
    """Raise an AssertionError that shows both, unless they are equal."""
    if actual != expected:
        raise AssertionError(f"{promise or 'an answer'}: it was to be {expected!r:.1000}, not {actual!r:.1000}")


def an_operation(name: str = "run/1", **options: Any) -> Operation:
    """Return an operation; two of one name are the same."""
    return Operation(name, "pay", {"amount": 50, "to": "x"}, **options)


async def granted(store: OperationStore, asked: Operation, **options: Any) -> Claimed:
    """Claim it, which has to be granted."""
    return _of_type(Claimed, asked, await store.claim(asked, **options))


async def told_unknown(store: OperationStore, asked: Operation, **options: Any) -> Unknown:
    """Claim it, which has to be refused."""
    return _of_type(Unknown, asked, await store.claim(asked, **options))


async def result_of(store: OperationStore, asked: Operation) -> bytes:
    """Claim it, which has to tell the result."""
    return _of_type(Completed, asked, await store.claim(asked)).result


async def record_of(store: OperationStore, name: str) -> OperationRecord:
    """Return what is stored of it, which has to be something."""
    record = await store.get(name)
    if record is None:
        raise AssertionError(f"operation {name!r} was to be in the store")
    return record


async def refused(error: type[Exception], call: Awaitable[object]) -> None:
    """Await a call that has to raise an error of this type."""
    try:
        answer = await call
    except error:
        return
    raise AssertionError(f"{error.__name__} was to be raised, but the store said {answer!r:.2000}")


def _of_type(kind: type[T], asked: Operation, answer: object) -> T:
    if isinstance(answer, kind):
        return answer
    raise AssertionError(f"a claim of {asked.id!r} was to be answered {kind.__name__}, not {answer!r:.2000}")
