"""Every error that toolbatch raises, by whose fault it is.

A tool's failure is an outcome, never an exception. What is raised is the caller's mistake, or ends the turn on purpose::

    ToolbatchError
    |-- InvalidInputError (ValueError)       a value that can't be used; the message names it, nothing has changed
    |   `-- EncodingError                    a result that can't be written as strict JSON, or is over its limit
    |-- InvalidTypeError (TypeError)         likewise, where the type is wrong
    |-- ProviderMismatchError (ValueError)   a provider's message is not what the caller said it would be
    |-- ToolError                              raised by a tool on purpose: an answer for the model, or the end of the turn
    |   |-- ToolTimeoutError (TimeoutError)  what stands around a tool sees of the tool's own time bound
    |   |-- NotApplied                       a tool has failed before it had any effect
    |   |-- DurableOperationError            a durable call has no result of its own
    |   `-- BackendError                     a backend could not bring back what a tool has said
    |       |-- BackendNotStartedError (NotApplied)  it was never entered
    |       |   `-- NotSendableError         its function or arguments can't be sent to a worker
    |       |-- BackendUnknownError          it may have been entered
    |       |   |-- ClaimedBeforeError       another run has claimed the operation
    |       |   `-- WorkerKilledError        its worker has died or was killed
    |       `-- BackendResultError           it has ended, and its result can't be brought back
    |           |-- ResultTooLargeError      likewise, over the bound
    |           `-- ResultNotSendableError   likewise, since nothing can carry it
    |-- RemoteToolError                      stands for a worker's exception that could not be sent
    |-- BatchStateError (RuntimeError)       the object is not in a state in which this call has a meaning
    |   `-- BatchClosedError                 new work for a batch that has given all its answers; nothing was run
    |-- OperationConflictError (ValueError)  one operation's id for another's arguments, or another's identity
    |-- ClaimLostError (RuntimeError)        a claim is no longer the claimant's
    |-- OperationStoreError (RuntimeError)   a store could not do what it was asked; the message says what stands
    |   `-- OperationStoreClosedError        it was closed before
    `-- WrongThreadError (RuntimeError)      an object that lives in one thread was used from another
"""

__all__ = [
    "BatchClosedError",
    "BatchStateError",
    "EncodingError",
    "InvalidInputError",
    "InvalidTypeError",
    "ProviderMismatchError",
    "ToolError",
    "ToolbatchError",
    "WrongThreadError",
]


class ToolbatchError(Exception):
    """Base of all errors raised by toolbatch."""


class InvalidInputError(ToolbatchError, ValueError):
    """A value given by the caller can't be used. The state is as it was."""


class EncodingError(InvalidInputError):
    """A result is not strict JSON or is over `Limits.max_result_bytes`. The call is still pending (C7)."""


class InvalidTypeError(ToolbatchError, TypeError):
    """A value given by the caller is of the wrong type. The state is as it was."""


class ProviderMismatchError(ToolbatchError, ValueError):
    """A provider's response is not what the caller was promised, such as another tool than the forced one (P7)."""


class ToolError(ToolbatchError):
    """A tool's own word about its failure (T4). Make one with `respond_to_model` or `fatal`, so that it is a choice.

    Attributes:
        message: What the model reads, whatever `error_detail` says of other exceptions.
        code: The error's code; `None` for the default.
        is_fatal: Whether it ends the turn instead of being the call's answer alone.
    """

    def __init__(self, message: str, code: str | None = None, *, is_fatal: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.is_fatal = is_fatal

    @classmethod
    def respond_to_model(cls, message: str, code: str | None = None) -> "ToolError":
        """Return the ordinary failure: the model reads `message` as the call's error, and the turn goes on."""
        return cls(message, code)

    @classmethod
    def fatal(cls, message: str, code: str | None = None) -> "ToolError":
        """Return the failure that ends the turn: the batch closes as error/`batch_failed`, and its exit raises this."""
        return cls(message, code, is_fatal=True)


class BatchStateError(ToolbatchError, RuntimeError):
    """The object was used before it was entered, after it was left, or twice. The state is as it was."""


class BatchClosedError(BatchStateError):
    """New work was asked of a batch that is closed or replaced. Nothing was run (B15)."""


class WrongThreadError(ToolbatchError, RuntimeError):
    """A closure or batch was used from a thread other than its own (C18). The state is as it was."""
