"""Who keeps claims, and who can be asked what became of an operation."""

from typing import Protocol, Self

from ._operations import Claim, ClaimToken, Operation, OperationRecord, Resolution

__all__ = ["OperationResolver", "OperationStore"]


class OperationStore(Protocol):
    """Claims operations durably. `testing.check_store` checks that a store keeps these promises.

    Every method raises `OperationStoreError` when the store can't be reached or written, and
    `OperationStoreClosedError` after `aclose`. A call that is cancelled ends at once with `CancelledError`; what it asked
    for may be done all the same, but a claim whose caller has left is given back, since nothing was run under it.
    """

    @property
    def owner(self) -> str:
        """What this store's claims say of their claimant."""
        ...

    async def claim(self, operation: Operation, *, taking_over: str | None = None) -> Claim:
        """Claim an operation, atomically: of all who ever ask for one id, exactly one is told `Claimed`.

        It is on disk before it returns. It must not be part of a transaction of the host's, which could be undone.

        Args:
            operation: What is to be run.
            taking_over: The `claim` of an `Unknown` answer: take that very claim over if it is still open, and both the
                stored and this operation's policy are `safe`. The one who had it can then no longer complete.

        Raises:
            OperationConflictError: The id is stored with another fingerprint.
        """
        ...

    async def complete(self, token: ClaimToken, result: bytes) -> None:
        """Save the result of a claimed operation. It is on disk before this returns (D1).

        The same result twice is no error, so that it may be repeated when its answer was lost. Once called it is carried
        out, even if the caller is cancelled.

        Args:
            token: Of the claim.
            result: Bytes of JSON, at most 64 MiB; stores give them back as they are.

        Raises:
            ClaimLostError: The claim is not the token's any more, or has another result.
            InvalidInputError: The result is too large.
        """
        ...

    async def release(self, token: ClaimToken) -> None:
        """Give a claim back of which nothing has happened: the operation is free again. Repeating it is no error.

        A claim that had taken over an unknown one becomes unknown again instead: the earlier one may have had an effect.

        Raises:
            ClaimLostError: The claim is not the token's any more, or is completed.
        """
        ...

    async def get(self, operation_id: str) -> OperationRecord | None:
        """Return what is stored of an operation, `None` if nothing is."""
        ...

    async def unresolved(
        self, *, prefix: str = "", claimed_before: float | None = None, limit: int = 1000
    ) -> tuple[OperationRecord, ...]:
        """List open claims, oldest first: what runs now, and what a host has to reconcile.

        Args:
            prefix: Only ids that begin with this, such as those of one run.
            claimed_before: Only claims older than this time.
            limit: At most so many.
        """
        ...

    async def reconcile(self, operation_id: str, result: bytes, *, claim: str | None = None, by: str = "host") -> None:
        """Save, as the host, the result of an operation whose outcome was unknown. The same result twice is no error.

        Args:
            operation_id: The operation.
            result: As for `complete`.
            claim: The claim that was looked at; another one is then left alone. `None` for whatever claim there is.
            by: Who says so, kept as `completed_by`.

        Raises:
            ClaimLostError: There is another claim than `claim`, or another result.
            InvalidInputError: There is no such operation.
        """
        ...

    async def release_unknown(self, operation_id: str, *, claim: str | None = None) -> bool:
        """Free, as the host, an operation that certainly has not happened. Its claimant can no longer complete it.

        Args:
            operation_id: The operation.
            claim: As for `reconcile`.

        Returns:
            Whether there was a claim to release.

        Raises:
            ClaimLostError: There is another claim than `claim`, or the operation is completed.
        """
        ...

    async def purge(self, completed_before: float, *, unknown_claimed_before: float | None = None) -> int:
        """Forget operations that were completed before a time; their ids are then free, as if never used.

        Args:
            completed_before: The time.
            unknown_claimed_before: Also forget open claims older than this, whatever came of them. Never by default.

        Returns:
            How many operations were forgotten.
        """
        ...

    async def aclose(self) -> None:
        """Carry out what was asked for, and end. Everything that is asked for later is refused. Repeating it is no error."""
        ...

    async def __aenter__(self) -> Self:
        """Make the store ready, so that what is wrong with it is told now and not at the first claim."""
        ...

    async def __aexit__(self, *exc_info: object) -> None:
        """Close it."""
        ...


class OperationResolver(Protocol):
    """Asks the outside world whether an operation has happened, by `record.idempotency_key` or what else it has.

    The host calls it, through `operations.resolve`: when a run is resumed, from a periodic sweep over `unresolved`, or for
    a person who asks. No store calls it, and no claim waits for it.
    """

    async def __call__(self, record: OperationRecord, /) -> Resolution:
        """Say what became of the operation. What this raises leaves it unknown, and reaches the caller."""
        ...
