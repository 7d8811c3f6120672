"""Checks that an operation store keeps its promises: run them on your own store, as toolbatch does on its own (D1-D3).

A call of the checks, for a store whose places are files of a folder, with its clock as an argument::

    await check_store(lambda place, now: MyStore(folder / place, clock=now))
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from toolbatch.core import InvalidInputError, InvalidTypeError
from toolbatch.ports import (
    MAX_OPERATION_RESULT_BYTES,
    Claimed,
    Completed,
    Operation,
    OperationStore,
    OperationStoreClosedError,
)
from toolbatch.testing import _store_claims
from toolbatch.testing._store_bench import (
    OTHER,
    RESULT,
    MakeStore,
    Place,
    an_operation,
    equal,
    granted,
    record_of,
    refused,
    require,
    result_of,
    told_unknown,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["check_store"]

_SECONDS_TO_GIVE_BACK: Final = 20.0


async def check_store(make_store: MakeStore, *, durable: bool = True) -> None:
    """Run every check on stores of the caller's making. It takes some seconds.

    Args:
        make_store: Makes a store from the name of a place and a clock. A new name is an empty place, the same name the same
            one. Each store is entered, used and left in the running loop; the clock stands still unless a check moves it.
        durable: Whether a place keeps what is in it: between stores on it, one after the other and at the same time.

    Raises:
        AssertionError: A promise is not kept; its note names the check.
        Exception: What the store raised without having promised to; likewise.
    """
    for check in _store_claims.CHECKS + _CHECKS + (_DURABLE_CHECKS if durable else ()):
        try:
            await check(Place(make_store, f"check-{next(_numbers)}"))
        except Exception as error:
            error.add_note(f"in the check {check.__name__.strip('_')!r} of {check.__module__}")
            raise


_numbers = count(1)


async def _any_text_is_an_id(place: Place) -> None:
    names = ["x" * 512, "ä/€/😀", "'; DROP TABLE operation; --", "%_\\", '"', "a", "A", "\u0061\u0308"]
    async with place.store() as store:
        for name in names:
            await store.complete((await granted(store, an_operation(name, summary=name))).token, name.encode())
        for name in names:
            equal(await result_of(store, an_operation(name)), name.encode())
            record = await record_of(store, name)
            equal((record.id, record.summary), (name, name))


async def _bad_input_changes_nothing(place: Place) -> None:
    no_operation: tuple[Any, ...] = ("run/1", None, 1)
    no_bytes: tuple[Any, ...] = ("text", None, {}, bytearray(b"1"))
    no_limit: tuple[Any, ...] = (0, -1, True, 1.5)
    async with place.with_unknown(an_operation()) as (store, claim, _):
        for bad in no_operation:
            await refused(InvalidTypeError, store.claim(bad))
            await refused(InvalidTypeError, store.complete(bad, RESULT))
            await refused(InvalidTypeError, store.release(bad))
        for bad in no_bytes:
            await refused(InvalidTypeError, store.complete(claim.token, bad))
            await refused(InvalidTypeError, store.reconcile("run/1", bad))
        await refused(InvalidInputError, store.complete(claim.token, bytes(MAX_OPERATION_RESULT_BYTES + 1)))
        for name in ("", " ", "x" * 513, "\ud800"):
            await refused(InvalidInputError, store.get(name))
            await refused(InvalidInputError, store.release_unknown(name))
        for bad in no_limit:
            await refused(InvalidInputError, store.unresolved(limit=bad))
        for time in (float("nan"), float("inf"), 10**400):
            await refused(InvalidInputError, store.purge(time))
        await told_unknown(store, an_operation())
        await store.complete(claim.token, RESULT)


async def _a_claim_whose_caller_left_is_given_back(place: Place) -> None:
    async with place.store() as store:
        for turns in range(12):
            operation = an_operation(f"run/{turns}")
            if await _left_after(turns, store.claim(operation)):
                await _in_the_end(Claimed, store, operation)


async def _a_completion_whose_caller_left_is_carried_out(place: Place) -> None:
    async with place.store() as store:
        for turns in range(1, 12):
            operation = an_operation(f"run/{turns}")
            await _left_after(turns, store.complete((await granted(store, operation)).token, RESULT))
            await _in_the_end(Completed, store, operation)


async def _left_after(turns: int, call: Awaitable[object]) -> bool:
    """Cancel a call after so many turns of the loop; return whether it had not ended before."""
    task = asyncio.ensure_future(call)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return task.cancelled()


async def _in_the_end(kind: type[object], store: OperationStore, operation: Operation) -> None:
    """Ask until the answer is of that kind."""
    async with asyncio.timeout(_SECONDS_TO_GIVE_BACK):
        while not isinstance(await store.claim(operation), kind):  # noqa: ASYNC110  a store tells by its answers only
            await asyncio.sleep(0)


async def _closing_answers_what_was_asked(place: Place) -> None:
    async with place.store() as store:
        asked = [asyncio.ensure_future(store.claim(an_operation(f"run/{number}"))) for number in range(300)]
        await asyncio.sleep(0)
        await asyncio.gather(store.aclose(), store.aclose())
        answers = await asyncio.gather(*asked)
        require(all(isinstance(answer, Claimed) for answer in answers), "what was asked before is carried out")
        calls: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: store.claim(an_operation()),
            lambda: store.get("run/1"),
            store.unresolved,
            lambda: store.purge(0.0),
        )
        for call in calls:
            await refused(OperationStoreClosedError, call())
        await store.aclose()


async def _a_place_keeps_what_is_in_it(place: Place) -> None:
    async with place.store() as store:
        lost = await granted(store, an_operation("run/1"))
        await store.complete((await granted(store, an_operation("run/2"))).token, RESULT)
        records = [await store.get(name) for name in ("run/1", "run/2")]
    async with place.store() as store:
        equal([await store.get(name) for name in ("run/1", "run/2")], records)
        equal((await told_unknown(store, an_operation("run/1"))).claim, lost.token.claim)
        equal(await result_of(store, an_operation("run/2")), RESULT)
        await store.complete(lost.token, OTHER)  # a token is good for as long as its claim
        equal(await result_of(store, an_operation("run/1")), OTHER)


async def _stores_on_one_place_know_of_each_other(place: Place) -> None:
    operations = [an_operation(f"run/{number}") for number in range(60)]
    async with place.store() as one, place.store() as two:
        answers = await asyncio.gather(*(store.claim(operation) for operation in operations for store in (one, two)))
        claims = [answer for answer in answers if isinstance(answer, Claimed)]
        equal(len(claims), len(operations), "each operation was to be claimed once")
        await asyncio.gather(*(one.complete(claim.token, RESULT) for claim in claims))
        results = await asyncio.gather(*(result_of(two, operation) for operation in operations))
        equal(set(results), {RESULT})


_CHECKS: Final = (
    _any_text_is_an_id,
    _bad_input_changes_nothing,
    _a_claim_whose_caller_left_is_given_back,
    _a_completion_whose_caller_left_is_carried_out,
    _closing_answers_what_was_asked,
)

_DURABLE_CHECKS: Final = (_a_place_keeps_what_is_in_it, _stores_on_one_place_know_of_each_other)
