"""What operation stores raise.

They are told apart by whose fault it is: `OperationConflictError` is the host's scheme of ids, `ClaimLostError` the
claimant's lateness, `OperationStoreError` the disk's or the server's.
"""

from toolbatch.core import ToolbatchError

__all__ = ["ClaimLostError", "OperationConflictError", "OperationStoreClosedError", "OperationStoreError"]


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
