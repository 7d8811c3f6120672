"""What a claim, a completion and a release mean: decided here, for every store, over rows that the store keeps.

Each rule is one step of a store's transaction. It raises before it changes anything, so that a refusal undoes nothing else in
the same transaction, and carrying it out twice comes to the same as once, so that it can be repeated when its answer was lost.
"""

from dataclasses import dataclass
from secrets import token_hex
from typing import Final, NamedTuple, Protocol

from toolbatch.core import InvalidInputError, preview
from toolbatch.ports import (
    REPLAY_POLICIES,
    Claim,
    Claimed,
    ClaimLostError,
    ClaimToken,
    Completed,
    Operation,
    OperationConflictError,
    OperationRecord,
    ReplayPolicy,
    Unknown,
)

__all__ = ["NOBODY", "Row", "Rows", "Ticket", "claim", "complete", "reconcile", "release", "release_unknown"]


NOBODY: Final = "-"
"""The secret of a claim that nobody can complete any more."""


class Row(NamedTuple):
    """One stored operation: the fields of an `OperationRecord`, and the claimant's secret."""

    id: str
    tool: str
    fingerprint: bytes
    summary: str
    replay: ReplayPolicy
    idempotency_key: str | None
    claim: str
    secret: str
    owner: str
    attempt: int
    claimed_at: float
    completed_at: float | None = None
    completed_by: str | None = None
    result: bytes | None = None

    def record(self) -> OperationRecord:
        """Return what others may see of it."""
        fields = self._asdict()
        del fields["secret"]
        return OperationRecord(**fields)


class Rows(Protocol):
    """The rows that a step reads and changes, all within the store's transaction."""

    def get(self, operation_id: str) -> Row | None:
        """Return the row of that id."""
        ...

    def add(self, row: Row) -> Row | None:
        """Add a row, or return the one that its id has already."""
        ...

    def update(self, row: Row) -> None:
        """Replace the row of that id."""
        ...

    def delete(self, operation_id: str) -> None:
        """Take the row of that id away."""
        ...


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a claim is made with: drawn once, so that repeating the step asks for the same claim again."""

    claim: str
    secret: str
    owner: str
    now: float

    @classmethod
    def draw(cls, owner: str, now: float) -> "Ticket":
        """Return one that nobody else has."""
        drawn = token_hex(24)  # at once, since each drawing asks the system
        return cls(drawn[:16], drawn[16:], owner, now)


def claim(rows: Rows, operation: Operation, ticket: Ticket, taking_over: str | None) -> Claim:
    """Claim an operation, or say what there is."""
    new = Row(
        operation.id, operation.tool, operation.fingerprint, operation.summary, operation.replay,
        operation.idempotency_key, ticket.claim, ticket.secret, ticket.owner, 1, ticket.now,
    )  # fmt: skip
    row = rows.add(new)
    if row is None:
        return _claimed(operation.id, ticket, 1, ticket.now)
    if row.fingerprint != operation.fingerprint:
        raise _conflict(row, operation)
    if row.completed_at is not None and row.result is not None:
        return Completed(result=row.result, completed_at=row.completed_at, completed_by=row.completed_by)
    if row.secret == ticket.secret:
        return _claimed(row.id, ticket, row.attempt, row.claimed_at)
    replay = min(row.replay, operation.replay, key=REPLAY_POLICIES.index)
    if taking_over == row.claim and replay == "safe":
        taken = row._replace(
            claim=ticket.claim, secret=ticket.secret, owner=ticket.owner, attempt=row.attempt + 1, claimed_at=ticket.now
        )
        rows.update(taken)
        return _claimed(row.id, ticket, taken.attempt, ticket.now)
    return Unknown(
        claim=row.claim, owner=row.owner, claimed_at=row.claimed_at, age=max(0.0, ticket.now - row.claimed_at),
        attempt=row.attempt, replay=replay,
    )  # fmt: skip


def complete(rows: Rows, token: ClaimToken, result: bytes, now: float) -> None:
    """Save the claimant's result."""
    row = rows.get(token.operation_id)
    if row is None:
        raise ClaimLostError(f"the claim of operation {token.operation_id!r} was released; its result is not saved")
    if not _holds(token, row):
        raise _lost(row, "its result is not saved")
    if row.completed_at is None:
        rows.update(row._replace(completed_at=now, result=result))
    elif row.result != result:
        raise ClaimLostError(f"operation {row.id!r} is completed with another result, which stays")


def release(rows: Rows, token: ClaimToken) -> None:
    """Give the claimant's claim back."""
    row = rows.get(token.operation_id)
    if row is None or (row.secret == NOBODY and row.claim == token.claim):
        return
    if not _holds(token, row) or row.completed_at is not None:
        raise _lost(row, "nothing is released")
    if row.attempt == 1:
        rows.delete(row.id)
    else:  # an earlier attempt may have had an effect, so the operation must not be forgotten
        rows.update(row._replace(secret=NOBODY))


def reconcile(rows: Rows, operation_id: str, result: bytes, claim: str | None, by: str, now: float) -> None:
    """Save the host's result."""
    row = rows.get(operation_id)
    if row is None:
        raise InvalidInputError(f"there is no operation {preview(operation_id)} in the store; nothing was reconciled")
    if row.completed_at is not None:
        if row.result != result:
            raise ClaimLostError(f"operation {row.id!r} is already completed with another result, which stays")
        return
    if claim is not None and row.claim != claim:
        raise _lost(row, "nothing was reconciled")
    rows.update(row._replace(completed_at=now, completed_by=by, result=result))


def release_unknown(rows: Rows, operation_id: str, claim: str | None) -> bool:
    """Free an operation for the host."""
    row = rows.get(operation_id)
    if row is None:
        return False
    if row.completed_at is not None or (claim is not None and row.claim != claim):
        raise _lost(row, "nothing was released")
    rows.delete(operation_id)
    return True


def _holds(token: ClaimToken, row: Row) -> bool:
    return row.secret == token.secret != NOBODY


def _claimed(operation_id: str, ticket: Ticket, attempt: int, claimed_at: float) -> Claimed:
    token = ClaimToken(operation_id, ticket.claim, ticket.secret)
    return Claimed(token=token, attempt=attempt, claimed_at=claimed_at)


def _conflict(row: Row, operation: Operation) -> OperationConflictError:
    differs = (
        f"tool {row.tool!r}, not {operation.tool!r}" if row.tool != operation.tool else "other arguments or identity"
    )
    return OperationConflictError(
        f"operation id {row.id!r} was claimed before for {differs}; nothing was run. An id must name one operation only: "
        "build it from tenant, run and call"
    )


def _lost(row: Row, so: str) -> ClaimLostError:
    if row.completed_at is not None:
        return ClaimLostError(f"operation {row.id!r} is completed already; {so}")
    return ClaimLostError(f"operation {row.id!r} is claimed by {row.owner!r} as {row.claim}, not by this claim; {so}")
