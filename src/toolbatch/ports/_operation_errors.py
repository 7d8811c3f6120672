"""What operation stores raise.

They are told apart by whose fault it is: `OperationConflictError` is the host's scheme of ids, `ClaimLostError` the
claimant's lateness, `OperationStoreError` the disk's or the server's.
"""

from toolbatch.core import ToolbatchError, ToolError

__all__ = [
    "ClaimLostError",
    "NotApplied",
    "OperationConflictError",
    "OperationStoreClosedError",
    "OperationStoreError",
]


class OperationConflictError(ToolbatchError, ValueError):
    """An operation id was used again for another tool, other arguments or another identity. Nothing has changed (D1)."""


class ClaimLostError(ToolbatchError, RuntimeError):
    """The claim is no longer the caller's: its host, or one who took it over, settled it meanwhile. Nothing has changed."""


class OperationStoreError(ToolbatchError, RuntimeError):
    """The store can't be read or written. The message names it and says what to do.

    What was asked for is not done, unless the message says that this is not known; asking again is safe and tells. No
    operation may be run on a guess: without a stored claim nothing with effects starts (D2).
    """


class OperationStoreClosedError(OperationStoreError):
    """The store was closed, or belongs to the process that this one was forked from. Nothing was stored."""


class NotApplied(ToolError):  # noqa: N818  what a tool says of its effect, which is no error of the tool's
    """Raised by a tool that has failed before it had any effect: the model reads why, and the operation is free again.

    Without durable operations it is an ordinary `ToolError`. Raise it only where nothing can have happened outside: a refused
    connection, say, but never a time-out or a connection that broke.

    Args:
        message: What the model reads.
        code: The error's code; `not_applied` where `None`.
        is_fatal: Whether it ends the turn besides.
    """

    def __init__(self, message: str, code: str | None = None, *, is_fatal: bool = False) -> None:
        super().__init__(message, code or "not_applied", is_fatal=is_fatal)
