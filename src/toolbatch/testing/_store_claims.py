"""Checks of an operation store: what claimants and hosts are told, and what they can change."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any

from toolbatch.core import InvalidInputError
from toolbatch.ports import (
    REPLAY_POLICIES,
    Claimed,
    ClaimLostError,
    ClaimToken,
    Completed,
    Operation,
    OperationConflictError,
    Unknown,
)
from toolbatch.testing._store_bench import (
    OTHER,
    RESULT,
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

__all__ = ["CHECKS"]


async def _the_first_claim_is_the_only_one(place: Place) -> None:
    async with place.store() as store:
        first = await granted(store, an_operation())
        equal((first.attempt, first.claimed_at, first.token.operation_id), (1, place.now, "run/1"))
        place.now += 400_000_000.0  # a claim does not run out
        second = await told_unknown(store, an_operation())
        equal((second.owner, second.claim), (store.owner, first.token.claim))
        equal((second.claimed_at, second.age, second.attempt), (first.claimed_at, 400_000_000.0, 1))
        equal(await store.claim(an_operation()), second, "asking changes nothing")
        place.now -= 500_000_000.0
        equal((await told_unknown(store, an_operation())).age, 0.0, "a clock that was set back makes no age below 0")


async def _a_result_comes_back_as_it_was(place: Place) -> None:
    async with place.store() as store:
        for number, result in enumerate((RESULT, b"", b"\0\xff", b"x" * 1_000_000)):
            operation = an_operation(f"run/{number}")
            token = (await granted(store, operation)).token
            place.now += 1
            await store.complete(token, result)
            completed = Completed(result=result, completed_at=place.now, completed_by=None)
            equal(await store.claim(operation), completed)
            place.now += 1
            await store.complete(token, result)  # its answer may have been lost
            await refused(ClaimLostError, store.complete(token, OTHER))
            await refused(ClaimLostError, store.release(token))
            equal(await store.claim(operation), completed)


async def _an_id_names_one_operation(place: Place) -> None:
    others = (
        Operation("run/1", "pay", {"amount": 51, "to": "x"}),
        Operation("run/1", "refund", {"amount": 50, "to": "x"}),
        Operation("run/1", "pay", {"amount": 50, "to": "x"}, identity={"user": "eve"}),
    )
    same = Operation("run/1", "pay", {"to": "x", "amount": 50.0}, idempotency_key="k", summary="")
    async with place.store() as store:
        token = (await granted(store, an_operation())).token
        for other in others:
            await refused(OperationConflictError, store.claim(other))
        await told_unknown(store, same)
        await store.complete(token, RESULT)
        for other in others:
            await refused(OperationConflictError, store.claim(other))
        equal(await result_of(store, same), RESULT)


async def _of_many_claimants_one_is_told_so(place: Place) -> None:
    operations = [an_operation(f"run/{number}") for number in range(40)]
    async with place.store() as store:
        answers = await asyncio.gather(*(store.claim(operation) for operation in operations for _ in range(5)))
        claims = [answer for answer in answers if isinstance(answer, Claimed)]
        equal(len(claims), len(operations), "each operation was to be claimed once")
        require(all(isinstance(answer, Claimed | Unknown) for answer in answers), "nothing is completed yet")
        await asyncio.gather(*(store.complete(claim.token, RESULT) for claim in claims))
        results = await asyncio.gather(*(result_of(store, operation) for operation in operations))
        equal(set(results), {RESULT})


async def _only_the_claimant_completes_or_releases(place: Place) -> None:
    async with place.with_unknown(an_operation()) as (store, claim, _):
        true = claim.token
        for secret in ("", "-", "0" * 32, true.claim):
            forged = ClaimToken(true.operation_id, true.claim, secret)
            await refused(ClaimLostError, store.complete(forged, RESULT))
            await refused(ClaimLostError, store.release(forged))
        await refused(ClaimLostError, store.complete(ClaimToken("run/2", true.claim, true.secret), RESULT))
        await told_unknown(store, an_operation())
        await store.complete(true, RESULT)


async def _a_released_operation_is_free(place: Place) -> None:
    async with place.store() as store:
        token = (await granted(store, an_operation())).token
        await store.release(token)
        await store.release(token)  # its answer may have been lost
        equal(await store.get("run/1"), None)
        await refused(ClaimLostError, store.complete(token, RESULT))
        second = (await granted(store, Operation("run/1", "another"))).token
        require(second != token, "each claim has a token of its own")
        await refused(ClaimLostError, store.release(token))
        await store.complete(second, RESULT)


async def _the_stricter_policy_wins(place: Place) -> None:
    for stored, current in product(REPLAY_POLICIES, REPLAY_POLICIES):
        before = an_operation(f"run/{stored}/{current}", replay=stored)
        after = an_operation(before.id, replay=current)
        async with place.with_unknown(before) as (store, claim, _):
            unknown = await told_unknown(store, after)
            equal(unknown.replay, min(stored, current, key=REPLAY_POLICIES.index))
            await told_unknown(store, after, taking_over="another")
            if unknown.replay != "safe":
                await told_unknown(store, after, taking_over=unknown.claim)
                await store.complete(claim.token, RESULT)
                continue
            answers = await asyncio.gather(*(store.claim(after, taking_over=unknown.claim) for _ in range(5)))
            taken = [answer for answer in answers if isinstance(answer, Claimed)]
            equal([one.attempt for one in taken], [2], "one claim can be taken over once")
            await refused(ClaimLostError, store.complete(claim.token, OTHER))
            await store.complete(taken[0].token, RESULT)
            equal(await store.claim(after, taking_over=unknown.claim), await store.claim(after))


async def _releasing_what_was_taken_over_leaves_it_unknown(place: Place) -> None:
    operation = an_operation(replay="safe")
    async with place.with_unknown(operation) as (store, _, unknown):
        taken = await granted(store, operation, taking_over=unknown.claim)
        for _ in range(2):  # its answer may have been lost
            await store.release(taken.token)
        await told_unknown(store, operation)
        for secret in (taken.token.secret, "", "-", "0" * 32):  # nobody has it now
            token = ClaimToken(operation.id, taken.token.claim, secret)
            await refused(ClaimLostError, store.complete(token, RESULT))
        await granted(store, operation, taking_over=taken.token.claim)


async def _a_host_reconciles(place: Place) -> None:
    async with place.with_unknown(an_operation()) as (store, claim, unknown):
        await refused(ClaimLostError, store.reconcile("run/1", RESULT, claim="another"))
        await refused(InvalidInputError, store.reconcile("run/2", RESULT))
        place.now += 1
        await store.reconcile("run/1", RESULT, claim=unknown.claim, by="Ann")
        completed = Completed(result=RESULT, completed_at=place.now, completed_by="Ann")
        equal(await store.claim(an_operation()), completed)
        await store.reconcile("run/1", RESULT)
        await store.complete(claim.token, RESULT)  # the claimant, late and of the same mind
        await refused(ClaimLostError, store.reconcile("run/1", OTHER))
        await refused(ClaimLostError, store.complete(claim.token, OTHER))
        await refused(ClaimLostError, store.release_unknown("run/1"))
        equal(await store.claim(an_operation()), completed)


async def _a_host_releases(place: Place) -> None:
    async with place.with_unknown(an_operation(replay="never")) as (store, claim, unknown):
        await refused(ClaimLostError, store.release_unknown("run/1", claim="another"))
        equal(await store.release_unknown("run/1", claim=unknown.claim), expected=True)
        equal(await store.release_unknown("run/1"), expected=False)
        await refused(ClaimLostError, store.complete(claim.token, RESULT))
        await granted(store, an_operation())
        await refused(ClaimLostError, store.complete(claim.token, RESULT))


async def _records_tell_all_but_the_secret(place: Place) -> None:
    operation = an_operation(idempotency_key="key", replay="never", identity="Ann")
    async with place.with_unknown(operation) as (store, claim, _):
        record = await record_of(store, "run/1")
        for name in ("id", "tool", "fingerprint", "summary", "replay", "idempotency_key"):
            equal(getattr(record, name), getattr(operation, name), f"a record's {name} is the operation's")
        equal((record.claim, record.owner, record.attempt), (claim.token.claim, store.owner, 1))
        equal((record.claimed_at, record.completed_at, record.completed_by), (place.now, None, None))
        equal((record.is_open, record.result), (True, None))
        require(claim.token.secret not in repr(record), "a record does not show the secret")
        place.now += 1
        await store.complete(claim.token, RESULT)
        record = await record_of(store, "run/1")
        equal((record.is_open, record.completed_at, record.result), (False, place.now, RESULT))
        equal(await store.get("run/2"), None)


async def _open_claims_are_listed_oldest_first(place: Place) -> None:
    names = ["b/2", "b%/1", "b/1", "a/1"]
    async with place.store() as store:
        start = place.now
        for name in names:
            await granted(store, an_operation(name))
            place.now += 1
        await store.complete((await granted(store, an_operation("b/3"))).token, RESULT)

        async def listed(**options: Any) -> list[str]:
            return [record.id for record in await store.unresolved(**options)]

        equal(await listed(), names)
        equal(await listed(limit=2), names[:2])
        equal(await listed(prefix="b/"), ["b/2", "b/1"])
        equal(await listed(prefix="b/3"), [])
        equal(await listed(claimed_before=start + 2), names[:2])
        equal(await store.unresolved(prefix="a/1"), (await store.get("a/1"),))


async def _only_what_is_old_and_known_is_forgotten(place: Place) -> None:
    async with place.store() as store:

        async def fill(numbers: range) -> None:
            answers = await asyncio.gather(*(granted(store, an_operation(f"run/{number:04}")) for number in numbers))
            done = [claim.token for number, claim in zip(numbers, answers, strict=True) if number % 10]
            await asyncio.gather(*(store.complete(token, RESULT) for token in done))
            place.now += 1

        await fill(range(1500))
        await fill(range(1500, 2500))
        equal(await store.purge(place.now - 2), 0)
        equal(await store.purge(place.now - 1), 1350)
        equal(len(await store.unresolved()), 250)
        equal(await result_of(store, an_operation("run/1501")), RESULT)
        await granted(store, Operation("run/1499", "another"))
        equal(await store.purge(place.now - 1, unknown_claimed_before=place.now - 1), 150)
        equal(len(await store.unresolved()), 101)


CHECKS = (
    _the_first_claim_is_the_only_one,
    _a_result_comes_back_as_it_was,
    _an_id_names_one_operation,
    _of_many_claimants_one_is_told_so,
    _only_the_claimant_completes_or_releases,
    _a_released_operation_is_free,
    _the_stricter_policy_wins,
    _releasing_what_was_taken_over_leaves_it_unknown,
    _a_host_reconciles,
    _a_host_releases,
    _records_tell_all_but_the_secret,
    _open_claims_are_listed_oldest_first,
    _only_what_is_old_and_known_is_forgotten,
)
