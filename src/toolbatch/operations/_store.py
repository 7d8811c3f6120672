"""What every store does before and after its own work: checks what it is given, draws tokens, reads the clock."""

import asyncio
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, Self, TypeVar

from toolbatch.core import InvalidInputError, InvalidTypeError, preview, require_text
from toolbatch.ports import (
    MAX_OPERATION_ID_BYTES,
    MAX_OPERATION_RESULT_BYTES,
    Claim,
    ClaimToken,
    Operation,
    OperationRecord,
    OperationStoreError,
)

from . import _rules
from ._owners import this_owner
from ._rules import Rows, Ticket

__all__ = ["Kept", "Step", "Store", "answered", "seconds_since_epoch"]

T = TypeVar("T")

Step = partial[T]
"""One rule with its arguments but for the rows: what it is called with, within a transaction."""

_PURGED_AT_ONCE: Final = 1000
"""Rows that one step of a purge looks at, so that others' claims wait for no longer than that takes."""


class Kept(ABC):
    """Something that is open between `async with` and its end, or until `aclose`."""

    async def __aenter__(self) -> Self:
        """Make it ready."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close it."""
        await self.aclose()

    @abstractmethod
    async def aclose(self) -> None:
        """Carry out what was asked for, and end."""


class Store(Kept):
    """The methods of an `OperationStore`, over what a kind of store has to do by itself: see its docstring for promises.

    Args:
        now: The host's clock, in seconds since the epoch. It is read in the caller's thread.
        owner: What claims say of their claimant; `None` for this process's name, which `owner_state` understands.

    Raises:
        InvalidTypeError: `owner` is not a `str`.
        InvalidInputError: `owner` is blank, has more than 512 bytes, or a lone surrogate.
    """

    def __init__(self, *, now: Callable[[], float] = time.time, owner: str | None = None) -> None:
        self._now = now
        self._owner = None if owner is None else require_text(owner, "owner", MAX_OPERATION_ID_BYTES)

    @property
    def owner(self) -> str:
        """What this store's claims say of their claimant."""
        return self._owner or this_owner()

    async def claim(self, operation: Operation, *, taking_over: str | None = None) -> Claim:
        """Claim an operation, atomically; see `ports.OperationStore`, as for the other methods."""
        if not isinstance(operation, Operation):
            raise InvalidTypeError(f"operation must be an Operation, not {preview(operation)}")
        ticket = Ticket.draw(self.owner, self._now())
        token = ClaimToken(operation.id, ticket.claim, ticket.secret)
        step = partial(
            _rules.claim, operation=operation, ticket=ticket, taking_over=_optional(taking_over, "taking_over")
        )
        return await self._apply(operation.id, step, undo=self._releasing(token))

    async def complete(self, token: ClaimToken, result: bytes) -> None:
        """Save the result of a claimed operation."""
        step = partial(_rules.complete, token=_token(token), result=_result(result), now=self._now())
        await self._apply(token.operation_id, step)

    async def release(self, token: ClaimToken) -> None:
        """Give a claim back of which nothing has happened."""
        await self._apply(_token(token).operation_id, self._releasing(token))

    async def get(self, operation_id: str) -> OperationRecord | None:
        """Return what is stored of an operation."""
        return await self._apply(_id(operation_id), partial(_record, operation_id=operation_id))

    async def unresolved(
        self, *, prefix: str = "", claimed_before: float | None = None, limit: int = 1000
    ) -> tuple[OperationRecord, ...]:
        """List open claims, oldest first."""
        if prefix != "":
            require_text(prefix, "prefix", MAX_OPERATION_ID_BYTES)
        if type(limit) is not int or limit < 1:
            raise InvalidInputError(f"limit must be a positive int, not {preview(limit)}")
        before = None if claimed_before is None else seconds_since_epoch(claimed_before, "claimed_before")
        return await self._unresolved(prefix, before, limit)

    async def reconcile(self, operation_id: str, result: bytes, *, claim: str | None = None, by: str = "host") -> None:
        """Save, as the host, the result of an operation whose outcome was unknown."""
        step = partial(
            _rules.reconcile,
            operation_id=_id(operation_id),
            result=_result(result),
            claim=_optional(claim, "claim"),
            by=require_text(by, "by", MAX_OPERATION_ID_BYTES),
            now=self._now(),
        )
        await self._apply(operation_id, step)

    async def release_unknown(self, operation_id: str, *, claim: str | None = None) -> bool:
        """Free, as the host, an operation that certainly has not happened."""
        step = partial(_rules.release_unknown, operation_id=_id(operation_id), claim=_optional(claim, "claim"))
        return await self._apply(operation_id, step)

    async def purge(self, completed_before: float, *, unknown_claimed_before: float | None = None) -> int:
        """Forget operations that were completed before a time."""
        completed = seconds_since_epoch(completed_before, "completed_before")
        unknown = (
            -math.inf
            if unknown_claimed_before is None
            else seconds_since_epoch(unknown_claimed_before, "unknown_claimed_before")
        )
        after: str | None = ""
        purged = 0
        while after is not None:
            count, after = await self._purge(after, completed, unknown, _PURGED_AT_ONCE)
            purged += count
        return purged

    @abstractmethod
    async def _apply(self, operation_id: str, step: Step[T], *, undo: Step[None] | None = None) -> T:
        """Carry a step on one operation out in a durable transaction, even if the caller is cancelled.

        Args:
            operation_id: The only row that the step looks at.
            step: What to do. What it raises is its caller's alone.
            undo: What to do after it if its caller has left without its answer.
        """

    @abstractmethod
    async def _unresolved(self, prefix: str, claimed_before: float | None, limit: int) -> tuple[OperationRecord, ...]:
        """List open claims, oldest first."""

    @abstractmethod
    async def _purge(self, after: str, completed: float, unknown: float, most: int) -> tuple[int, str | None]:
        """Look at `most` rows behind the id `after`, and delete what was completed or claimed open before these times.

        Returns:
            How many were deleted, and behind which id to go on; `None` at the end.
        """

    @staticmethod
    def _releasing(token: ClaimToken) -> Step[None]:
        return partial(_rules.release, token=token)


async def answered(submit: "Callable[[asyncio.Future[Any] | None], None]", undo: Callable[[], None] | None) -> Any:
    """Submit a request and return its answer; undo it if its caller leaves without.

    Args:
        submit: Queues the request, to be answered by this future.
        undo: Queues what undoes it. Since that comes behind the request, it undoes it wherever it is: still in the queue, or
            done with its answer on the way here.
    """
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    submit(future)
    try:
        return await future
    except (asyncio.CancelledError, GeneratorExit):
        if undo is not None:
            with suppress(OperationStoreError):
                undo()
        raise


def _record(rows: Rows, operation_id: str) -> OperationRecord | None:
    row = rows.get(operation_id)
    return None if row is None else row.record()


def _id(value: object) -> str:
    return require_text(value, "an operation id", MAX_OPERATION_ID_BYTES)


def _optional(value: object, what: str) -> str | None:
    return None if value is None else require_text(value, what, MAX_OPERATION_ID_BYTES)


def _token(value: object) -> ClaimToken:
    if not isinstance(value, ClaimToken):
        raise InvalidTypeError(f"token must be the ClaimToken of a Claimed, not {preview(value)}")
    return value


def _result(value: object) -> bytes:
    if type(value) is not bytes:
        raise InvalidTypeError(f"result must be bytes of JSON, not {preview(value)}; canonical_json makes them")
    if len(value) > MAX_OPERATION_RESULT_BYTES:
        raise InvalidInputError(
            f"a result of {len(value)} bytes is over the limit of {MAX_OPERATION_RESULT_BYTES}; it is not saved"
        )
    return value


def seconds_since_epoch(value: object, what: str) -> float:
    """Return a time.

    Raises:
        InvalidTypeError: It is no number.
        InvalidInputError: It is not finite.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidTypeError(f"{what} must be a number of seconds since the epoch, not {preview(value)}")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if not math.isfinite(seconds):
        raise InvalidInputError(f"{what} must be finite, not {preview(value)}")
    return seconds
