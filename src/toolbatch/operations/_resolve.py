"""Asking the outside world what became of an operation, and writing down what it says."""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from toolbatch.core import InvalidInputError, InvalidTypeError, preview
from toolbatch.ports import (
    ClaimLostError,
    Done,
    NotDone,
    OperationRecord,
    OperationResolver,
    OperationStore,
    Resolution,
    StillUnknown,
)

from ._owners import owner_state

__all__ = ["resolve"]

_MIN_AGE: Final = 300.0


async def resolve(
    store: OperationStore,
    resolver: OperationResolver,
    operation_id: str,
    *,
    claimant_ended: bool = False,
    min_age: float = _MIN_AGE,
    now: Callable[[], float] = time.time,
    by: str = "resolver",
) -> Resolution:
    """Ask what became of an operation whose outcome is unknown, and reconcile or release it accordingly (D2).

    A host calls this when it resumes a run, from time to time for everything in `store.unresolved()`, or for a person who
    asks; no store does it by itself. The resolver is not asked about what is completed.

    `NotDone` is only believed where nothing can still be under way: the host says that the claimant has ended, its process
    is gone, or the claim is at least `min_age` old and not of a process that is known to run. It frees nothing whose stored
    policy is `never`.

    Args:
        store: Where the operation is.
        resolver: Who is asked.
        operation_id: The operation.
        claimant_ended: Whether the host knows that whoever claimed it is no longer at work on it.
        min_age: Seconds after which a request of a claimant that can't be looked at has arrived if it ever will.
        now: The host's clock, as the store's.
        by: Kept as who reconciled it.

    Returns:
        `Done` once its result is saved, `NotDone` once it is free, `StillUnknown` with the reason where nothing has changed.

    Raises:
        InvalidInputError: The store has no such operation.
        InvalidTypeError: The resolver returned something else.
        OperationStoreError: The store can't be read or written.
        Exception: Whatever the resolver raised; the operation is still unknown.
    """
    record = await _get(store, operation_id)
    if record.result is not None:
        return Done(record.result)
    answer = await resolver(record)
    with suppress(ClaimLostError):  # somebody was faster, and what they said stands
        match answer:
            case Done(result):
                await store.reconcile(record.id, result, claim=record.claim, by=by)
                return answer
            case NotDone():
                doubt = _doubt(record, math.inf if claimant_ended else now() - record.claimed_at, min_age)
                if doubt:
                    return StillUnknown(doubt)
                await store.release_unknown(record.id, claim=record.claim)
                return answer
            case StillUnknown():
                return answer
            case _:
                raise InvalidTypeError(f"a resolver must return Done, NotDone or StillUnknown, not {preview(answer)}")
    current = await store.get(operation_id)
    if current is not None and current.result is not None:
        return Done(current.result)
    return StillUnknown("the operation was claimed anew while the resolver was asked")


async def _get(store: OperationStore, operation_id: str) -> OperationRecord:
    record = await store.get(operation_id)
    if record is None:
        raise InvalidInputError(f"there is no operation {preview(operation_id)} in the store; nothing was resolved")
    return record


def _doubt(record: OperationRecord, age: float, min_age: float) -> str:
    """Return why `NotDone` can't free the operation now; "" if it can."""
    if record.replay == "never":
        return "it was not done, but its policy is never: only a person may release it"
    state = owner_state(record.owner)
    if age == math.inf or state == "gone" or (state == "unknown" and age >= min_age):
        return ""
    return f"it was claimed {age:.0f} s ago by {record.owner!r} ({state.replace('_', ' ')}), who may yet do it"
