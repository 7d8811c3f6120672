"""What a batch can be told, checked where it is given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from toolbatch.core import InvalidInputError, InvalidTypeError, preview
from toolbatch.ports import OutcomeObserver

from ._execution import NEVER
from ._failures import ErrorDetail

__all__ = ["DEFAULT_TEARDOWN", "BatchOptions", "OnError", "Tools", "seconds"]

DEFAULT_TEARDOWN = 1.0
"""Seconds that the exit of a batch or session waits for tools that were asked to stop, unless it is told otherwise."""

_LONG = 1e15  # seconds, beyond which a bound is none

OnError = Literal["continue", "cancel_siblings"]

Tools = Mapping[str, Callable[..., Any]]
"""Tools by name, for `start_all`."""


def seconds(value: object, what: str) -> float:
    """Return a duration: an int or float of at least 0, infinity for none.

    Raises:
        InvalidTypeError: It is no number (a bool is not a number here).
        InvalidInputError: It is negative or NaN.
    """
    if type(value) is float and value >= 0:  # NaN is not
        return value
    if type(value) is int and 0 <= value < _LONG:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidTypeError(f"{what} must be a number of seconds or None, not {preview(value)}")
    if value < 0 or value != value:  # noqa: PLR0124  NaN alone is not itself
        raise InvalidInputError(f"{what} must be at least 0 seconds, not {preview(value)}")
    return NEVER if value >= _LONG else float(value)


def _moment(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:  # noqa: PLR0124  NaN
        raise InvalidTypeError(f"deadline must be a time of the loop's clock or None, not {preview(value)}")
    return NEVER if value >= _LONG else float(max(value, -_LONG))


def _concurrency(value: object) -> float:
    if type(value) is not int:
        raise InvalidTypeError(f"max_concurrency must be a positive int or None, not {preview(value)}")
    if value < 1:
        raise InvalidInputError(f"max_concurrency must be at least 1, not {value}")
    return value


def _check_observer(observer: object, what: str) -> None:
    if not callable(observer):
        raise InvalidTypeError(f"{what} must be a function of one outcome, not {preview(observer)}")


@dataclass(slots=True, kw_only=True)
class BatchOptions:
    """A batch's options, as `ToolBatch` documents them, checked; `NEVER` where there is no bound. Made by `read`."""

    tools: Tools | None
    timeout: float
    deadline: float
    call_timeout: float
    teardown_timeout: float
    max_concurrency: float
    on_error: OnError
    run_id: str | None
    error_detail: ErrorDetail
    cancel_exceptions: tuple[type[BaseException], ...]
    on_outcome: OutcomeObserver | None
    on_late: OutcomeObserver | None

    @classmethod
    def read(
        cls,
        *,
        tools: Tools | None = None,
        timeout: float | None = None,
        deadline: float | None = None,
        call_timeout: float | None = None,
        teardown_timeout: float = DEFAULT_TEARDOWN,
        max_concurrency: int | None = None,
        on_error: OnError = "continue",
        run_id: str | None = None,
        error_detail: ErrorDetail = "message",
        cancel_exceptions: tuple[type[BaseException], ...] = (),
        on_outcome: OutcomeObserver | None = None,
        on_late: OutcomeObserver | None = None,
    ) -> "BatchOptions":
        """Check options as a caller gives them.

        Raises:
            InvalidInputError: One can't be used.
            InvalidTypeError: One is of a wrong type.
        """
        if tools is not None and not isinstance(tools, Mapping):
            raise InvalidTypeError(f"tools must be a mapping from names to functions, not {preview(tools)}")
        if type(tools) is dict:
            for name, fn in tools.items():
                if not callable(fn):
                    raise InvalidTypeError(f"tools[{preview(name)}] must be a function or a Tool, not {preview(fn)}")
        if on_error not in ("continue", "cancel_siblings"):
            raise InvalidInputError(f"on_error must be continue or cancel_siblings, not {preview(on_error)}")
        if error_detail not in ("message", "type") and not callable(error_detail):
            raise InvalidInputError(f"error_detail must be message, type or a function, not {preview(error_detail)}")
        if run_id is not None and (not isinstance(run_id, str) or not run_id.strip()):
            raise InvalidInputError(f"run_id must be non-blank text or None, not {preview(run_id)}")
        if on_outcome is not None:
            _check_observer(on_outcome, "on_outcome")
        if on_late is not None:
            _check_observer(on_late, "on_late")
        if not isinstance(cancel_exceptions, tuple):
            raise InvalidTypeError(
                f"cancel_exceptions must be a tuple of exception classes, not {preview(cancel_exceptions)}"
            )
        for kind in cancel_exceptions:
            if not (isinstance(kind, type) and issubclass(kind, BaseException)):
                raise InvalidTypeError(f"cancel_exceptions must be exception classes, not {preview(kind)}")
        return cls(
            tools=tools,
            timeout=NEVER if timeout is None else seconds(timeout, "timeout"),
            deadline=NEVER if deadline is None else _moment(deadline),
            call_timeout=NEVER if call_timeout is None else seconds(call_timeout, "call_timeout"),
            teardown_timeout=seconds(teardown_timeout, "teardown_timeout"),
            max_concurrency=NEVER if max_concurrency is None else _concurrency(max_concurrency),
            on_error=on_error,
            run_id=run_id,
            error_detail=error_detail,
            cancel_exceptions=tuple(cancel_exceptions),
            on_outcome=on_outcome,
            on_late=on_late,
        )

    @classmethod
    def names(cls) -> frozenset[str]:
        """The names of all options."""
        return frozenset(field.name for field in fields(cls))
