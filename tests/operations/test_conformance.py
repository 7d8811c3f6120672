"""Our stores keep the port's promises, as the checks that are public ask of every store; and the checks are not asleep."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolbatch.operations import MemoryOperationStore, SqliteOperationStore, _database, _memory, _rules
from toolbatch.operations._rules import Row, Rows, Ticket
from toolbatch.ports import Claim, Claimed, ClaimToken, Operation
from toolbatch.testing import check_store


async def test_the_store_in_memory_keeps_the_promises() -> None:
    """All but those of durable stores."""
    await check_store(lambda _place, now: MemoryOperationStore(now=now), durable=False)


async def test_the_sqlite_store_keeps_the_promises(tmp_path: Path) -> None:
    """Those of durable stores too."""
    await check_store(lambda place, now: SqliteOperationStore(tmp_path / place, now=now))


async def test_the_exclusive_sqlite_store_keeps_the_promises(tmp_path: Path) -> None:
    """All but sharing its file, which it refuses."""
    await check_store(lambda place, now: SqliteOperationStore(tmp_path / place, exclusive=True, now=now), durable=False)


async def test_a_shared_write_ahead_log_keeps_the_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What newer versions of SQLite use works the same in every respect that can be tried with an older one."""
    monkeypatch.setattr(_database, "may_share_wal", lambda: True)
    await check_store(lambda place, now: SqliteOperationStore(tmp_path / place, now=now))


# -- each broken rule is noticed --------------------------------------------------------------------------------------------


def claim_again(rows: Rows, operation: Operation, ticket: Ticket, taking_over: str | None) -> Claim:
    """Grants what is unknown."""
    row = rows.get(operation.id)
    if row is not None and row.completed_at is None:
        rows.delete(row.id)
    return RULES.claim(rows, operation, ticket, taking_over)


def claim_blindly(rows: Rows, operation: Operation, ticket: Ticket, taking_over: str | None) -> Claim:
    """Takes any arguments for the same."""
    row = rows.get(operation.id)
    if row is not None:
        rows.update(row._replace(fingerprint=operation.fingerprint))
        rows.delete(row.id)
        rows.add(row._replace(fingerprint=operation.fingerprint))
    return RULES.claim(rows, operation, ticket, taking_over)


def claim_by_the_current_policy(rows: Rows, operation: Operation, ticket: Ticket, taking_over: str | None) -> Claim:
    """Forgets what was stored."""
    row = rows.get(operation.id)
    if row is not None and row.completed_at is None and row.fingerprint == operation.fingerprint:
        rows.delete(row.id)
        rows.add(row._replace(replay=operation.replay))
    return RULES.claim(rows, operation, ticket, taking_over)


def claim_over_anything(rows: Rows, operation: Operation, ticket: Ticket, taking_over: str | None) -> Claim:
    """Takes over whatever claim there is."""
    row = rows.get(operation.id)
    return RULES.claim(rows, operation, ticket, row.claim if row and taking_over else taking_over)


def claim_without_age(rows: Rows, operation: Operation, ticket: Ticket, taking_over: str | None) -> Claim:
    """Tells the time of asking as that of the claim."""
    answer = RULES.claim(rows, operation, ticket, taking_over)
    row = rows.get(operation.id)
    if not isinstance(answer, Claimed) and row is not None and row.completed_at is None:
        rows.update(row._replace(claimed_at=ticket.now))
    return answer


def complete_for_anyone(rows: Rows, token: ClaimToken, result: bytes, now: float) -> None:
    """Does not look at the secret."""
    row = rows.get(token.operation_id)
    RULES.complete(rows, ClaimToken(token.operation_id, token.claim, row.secret) if row else token, result, now)


def complete_again(rows: Rows, token: ClaimToken, result: bytes, now: float) -> None:
    """Lets a second result replace the first."""
    row = rows.get(token.operation_id)
    if row is not None and row.secret == token.secret:
        rows.update(row._replace(result=result, completed_at=now))
    else:
        RULES.complete(rows, token, result, now)


def complete_nothing(rows: Rows, token: ClaimToken, result: bytes, now: float) -> None:
    """Says so and does not."""


def release_for_anyone(rows: Rows, token: ClaimToken) -> None:
    """Does not look at the secret."""
    row = rows.get(token.operation_id)
    if row is not None:
        rows.delete(row.id)


def release_what_was_taken_over(rows: Rows, token: ClaimToken) -> None:
    """Forgets the earlier attempt."""
    row = rows.get(token.operation_id)
    if row is not None and row.secret == token.secret and row.completed_at is None:
        rows.delete(row.id)
    else:
        RULES.release(rows, token)


def release_nothing(rows: Rows, token: ClaimToken) -> None:
    """Says so and does not."""


def reconcile_any_claim(rows: Rows, operation_id: str, result: bytes, claim: str | None, by: str, now: float) -> None:
    """Does not look which claim it is."""
    RULES.reconcile(rows, operation_id, result, None, by, now)


def reconcile_over_a_result(
    rows: Rows, operation_id: str, result: bytes, claim: str | None, by: str, now: float
) -> None:
    """Replaces what was known."""
    row = rows.get(operation_id)
    if row is not None and row.completed_at is not None:
        rows.update(row._replace(result=result))
    else:
        RULES.reconcile(rows, operation_id, result, claim, by, now)


def release_the_completed(rows: Rows, operation_id: str, claim: str | None) -> bool:
    """Frees what has happened."""
    row = rows.get(operation_id)
    if row is not None and row.completed_at is not None:
        rows.delete(operation_id)
        return True
    return RULES.release_unknown(rows, operation_id, claim)


def release_any_claim(rows: Rows, operation_id: str, claim: str | None) -> bool:
    """Does not look which claim it is."""
    return RULES.release_unknown(rows, operation_id, None)


class RULES:
    """The right ones."""

    claim = staticmethod(_rules.claim)
    complete = staticmethod(_rules.complete)
    release = staticmethod(_rules.release)
    reconcile = staticmethod(_rules.reconcile)
    release_unknown = staticmethod(_rules.release_unknown)


BROKEN: dict[str, list[Callable[..., Any]]] = {
    "claim": [
        claim_again,
        claim_blindly,
        claim_by_the_current_policy,
        claim_over_anything,
        claim_without_age,
    ],
    "complete": [complete_for_anyone, complete_again, complete_nothing],
    "release": [release_for_anyone, release_what_was_taken_over, release_nothing],
    "reconcile": [reconcile_any_claim, reconcile_over_a_result],
    "release_unknown": [release_the_completed, release_any_claim],
}


@pytest.mark.parametrize(("name", "rule"), [(name, rule) for name, rules in BROKEN.items() for rule in rules])
def test_a_broken_rule_is_noticed(name: str, rule: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A store with one rule that is wrong fails the checks, and the failure names the check."""
    monkeypatch.setattr(_rules, name, rule)
    with pytest.raises(Exception) as failure:
        asyncio.run(check_store(lambda _place, now: MemoryOperationStore(now=now), durable=False))
    assert any(note.startswith("in the check ") for note in failure.value.__notes__)


def _listing(change: Callable[[list[Row]], list[Row]]) -> Callable[..., Any]:
    async def unresolved(self: MemoryOperationStore, prefix: str, claimed_before: float | None, limit: int) -> object:
        rows = list(self._rows.kept.values())
        return tuple(row.record() for row in change(rows)[:limit])

    return unresolved


async def _purging_all(self: MemoryOperationStore, after: str, completed: float, unknown: float, most: int) -> object:
    count = len(self._rows.kept)
    self._rows.kept.clear()
    return count, None


async def _purging_nothing(self: MemoryOperationStore, *_arguments: object) -> object:
    return 0, None


async def _keeping_on(self: MemoryOperationStore) -> None:
    """Closes nothing."""


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("_unresolved", _listing(lambda rows: [row for row in rows if row.completed_at is None][::-1])),
        ("_unresolved", _listing(lambda rows: rows)),
        ("_unresolved", _listing(lambda rows: [])),
        ("_purge", _purging_all),
        ("_purge", _purging_nothing),
        ("aclose", _keeping_on),
    ],
)
async def test_a_broken_method_is_noticed(
    name: str, method: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listing, retention and closing are checked as well."""
    monkeypatch.setattr(_memory.MemoryOperationStore, name, method)
    with pytest.raises(AssertionError):
        await check_store(lambda _place, now: MemoryOperationStore(now=now), durable=False)


async def test_a_store_that_is_not_durable_is_noticed() -> None:
    """A place in memory does not keep what is in it."""
    with pytest.raises(AssertionError, match="was to be"):
        await check_store(lambda _place, now: MemoryOperationStore(now=now))
