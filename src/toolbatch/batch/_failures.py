"""What an exception of a tool means: the model's text, and what else must follow. Nothing in here can fail (B21)."""

import asyncio
import concurrent.futures
import inspect
from collections.abc import Callable, Iterator
from types import CoroutineType
from typing import Literal, NamedTuple, NoReturn, TypeGuard, TypeVar

from toolbatch.core import ToolError

__all__ = ["ErrorDetail", "Failure", "discard", "is_a", "is_awaitable", "read_failure", "throw"]

E = TypeVar("E", bound=BaseException)

ErrorDetail = Literal["message", "type"] | Callable[[BaseException], str]
"""What the model reads of an exception: its message, its type's name, or what a function makes of it (B21)."""

_MAX_LEAVES = 20

_PASSES_THROUGH = (KeyboardInterrupt, SystemExit)
_CANCELLATIONS = (asyncio.CancelledError, concurrent.futures.CancelledError)


class Failure(NamedTuple):
    """What an exception means.

    Attributes:
        is_cancellation: The tool ended as cancelled, which is no error.
        code: The error's code.
        message: What the model reads; never empty.
        fatal: The `ToolError` that ends the turn, if there is one.
        passes_through: The exception that must pass through the event loop, if there is one.
    """

    is_cancellation: bool
    code: str | None
    message: str
    fatal: ToolError | None = None
    passes_through: BaseException | None = None


def is_a(error: object, kinds: type[E] | tuple[type[E], ...]) -> TypeGuard[E]:
    """Whether an exception is of a class; isinstance() would ask it for its `__class__`, and that may raise."""
    return issubclass(type(error), kinds)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    waiting = [error]  # and no recursion: a group may be deeper than the stack
    while waiting:
        member = waiting.pop()
        if is_a(member, BaseExceptionGroup):
            waiting.extend(reversed(member.exceptions))
        else:
            yield member


def _text(error: BaseException, detail: ErrorDetail) -> str:
    name = type(error).__name__
    if detail == "type" and not is_a(error, ToolError):
        return name
    try:
        text = error.message if is_a(error, ToolError) else detail(error) if callable(detail) else str(error)
    except BaseException:  # noqa: BLE001  a message that can't be made must not hide that the tool failed
        return name
    return text if isinstance(text, str) and text.strip() else name


def read_failure(
    error: BaseException, detail: ErrorDetail, cancel_exceptions: tuple[type[BaseException], ...] = ()
) -> Failure:
    """Say what a tool's exception means.

    A group is one error whose message joins its leaves'; cancellations among them are ignored, and a group of nothing
    else is a cancellation (B4).
    """
    try:
        return _read(error, detail, cancel_exceptions)
    except Exception:  # noqa: BLE001  an exception's own attributes may raise
        return Failure(is_cancellation=False, code=None, message=type(error).__name__)


def _read(error: BaseException, detail: ErrorDetail, cancel_exceptions: tuple[type[BaseException], ...]) -> Failure:
    cancellations = _CANCELLATIONS + cancel_exceptions
    leaves = list(_leaves(error))
    errors = [leaf for leaf in leaves if not is_a(leaf, cancellations)]
    if not errors:
        return Failure(is_cancellation=True, code=None, message="Tool call was cancelled.")
    texts = [_text(leaf, detail) for leaf in errors[:_MAX_LEAVES]]
    if len(errors) > _MAX_LEAVES:
        texts.append(f"and {len(errors) - _MAX_LEAVES} more")
    own = next((leaf for leaf in errors if is_a(leaf, ToolError)), None)
    fatal = next((leaf for leaf in errors if is_a(leaf, ToolError) and leaf.is_fatal), None)
    passing = next((leaf for leaf in errors if is_a(leaf, _PASSES_THROUGH)), None)
    code = (fatal or own or ToolError("")).code
    return Failure(is_cancellation=False, code=code, message="; ".join(texts), fatal=fatal, passes_through=passing)


def discard(value: object) -> None:
    """Close a coroutine that will not be run, so that nobody warns that it was never awaited (B9). One that runs is someone's."""
    # isinstance() would ask the value itself, which may be anything
    if type(value) is CoroutineType and inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
        value.close()


def is_awaitable(value: object) -> bool:
    """Whether a value can be awaited; one that raises when it is asked can't."""
    try:
        return inspect.isawaitable(value)
    except Exception:  # noqa: BLE001  a value may be anything at all
        return False


def throw(error: BaseException) -> NoReturn:
    """Raise `error`: for `call_soon`, where what must pass through the loop is raised."""
    raise error
