"""What a batch can be told, checked where it is given."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, cast

from toolbatch.core import InvalidInputError, InvalidTypeError, Snapshot, preview
from toolbatch.output import OutputBudget
from toolbatch.ports import ApprovalBroker, BatchObserver, EventObserver, Journal, JournaledBatch, OutcomeObserver
from toolbatch.tools import Hooks, Interceptor

from ._execution import NEVER
from ._failures import ErrorDetail
from ._reading import mount

__all__ = ["DEFAULT_TEARDOWN", "BatchOptions", "BatchSettings", "OnError", "Tools", "reusable", "seconds"]

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


class BatchSettings(TypedDict, total=False):
    """What a batch can be told, as `ToolBatch` documents it."""

    tools: Tools | None
    timeout: float | None
    deadline: float | None
    call_timeout: float | None
    teardown_timeout: float
    max_concurrency: int | None
    on_error: OnError
    run_id: str | None
    error_detail: ErrorDetail
    cancel_exceptions: tuple[type[BaseException], ...]
    interceptors: Iterable[Interceptor]
    approvals: ApprovalBroker | None
    budget: OutputBudget | None
    on_outcome: OutcomeObserver | None
    on_late: OutcomeObserver | None
    on_event: EventObserver | None
    observers: Iterable[BatchObserver]
    resume: Snapshot | JournaledBatch | Mapping[str, Any] | None
    journal: Journal | None


@dataclass(slots=True, kw_only=True)
class BatchOptions:
    """A batch's options, checked; `NEVER` where there is no bound. Made by `read`."""

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
    hooks: Hooks
    approvals: ApprovalBroker | None
    budget: OutputBudget | None
    on_outcome: OutcomeObserver | None
    on_late: OutcomeObserver | None
    on_event: EventObserver | None
    observers: tuple[BatchObserver, ...]
    resume: Snapshot | JournaledBatch | Mapping[str, Any] | None
    journal: Journal | None
    is_guided: bool = field(init=False)  # every call goes through stages, whatever its tool says

    def __post_init__(self) -> None:
        self.is_guided = bool(self.hooks) or self.budget is not None or self.journal is not None

    @classmethod
    def read(cls, settings: BatchSettings) -> "BatchOptions":
        """Check settings as a caller gives them.

        Raises:
            InvalidInputError: One can't be used, or there is none of that name.
            InvalidTypeError: One is of a wrong type.
        """
        unknown = sorted(settings.keys() - BatchSettings.__annotations__.keys())
        if unknown:
            raise InvalidInputError(
                f"a batch has no option {unknown[0]!r}; it has {', '.join(sorted(BatchSettings.__annotations__))}"
            )
        tools, budget = _tools(settings.get("tools")), _budget(settings.get("budget"))
        mount(tools, budget)
        return cls(
            tools=tools,
            timeout=_bound(settings.get("timeout"), "timeout"),
            deadline=_moment(settings.get("deadline")),
            call_timeout=_bound(settings.get("call_timeout"), "call_timeout"),
            teardown_timeout=seconds(settings.get("teardown_timeout", DEFAULT_TEARDOWN), "teardown_timeout"),
            max_concurrency=_concurrency(settings.get("max_concurrency")),
            on_error=_on_error(settings.get("on_error", "continue")),
            run_id=_run_id(settings.get("run_id")),
            error_detail=_error_detail(settings.get("error_detail", "message")),
            cancel_exceptions=_exceptions(settings.get("cancel_exceptions", ())),
            hooks=_hooks(settings.get("interceptors", ())),
            approvals=_broker(settings.get("approvals")),
            budget=budget,
            on_outcome=_observer(settings.get("on_outcome"), "on_outcome"),
            on_late=_observer(settings.get("on_late"), "on_late"),
            on_event=_observer(settings.get("on_event"), "on_event"),
            observers=_observers(settings.get("observers", ())),
            resume=settings.get("resume"),
            journal=_journal(settings.get("journal")),
        )


def reusable(settings: BatchSettings) -> BatchSettings:
    """Return settings that can be read for each of many batches: an iterator's policies would be gone after the first."""
    kept = {name: tuple(value) if isinstance(value, Iterator) else value for name, value in settings.items()}
    return cast("BatchSettings", kept)


def _tools(tools: Tools | None) -> Tools | None:
    if tools is not None and not isinstance(tools, Mapping):
        raise InvalidTypeError(
            f"tools must be a mapping from names to functions, such as ToolCatalog([...]), not {preview(tools)}"
        )
    if type(tools) is dict:
        for name, fn in tools.items():
            if not callable(fn):
                raise InvalidTypeError(f"tools[{preview(name)}] must be a function or a Tool, not {preview(fn)}")
    return tools


def _bound(value: object, what: str) -> float:
    return NEVER if value is None else seconds(value, what)


def _moment(value: object) -> float:
    if value is None:
        return NEVER
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:  # noqa: PLR0124  NaN
        raise InvalidTypeError(f"deadline must be a time of the loop's clock or None, not {preview(value)}")
    return NEVER if value >= _LONG else float(max(value, -_LONG))


def _concurrency(value: object) -> float:
    if value is None:
        return NEVER
    if type(value) is not int:
        raise InvalidTypeError(f"max_concurrency must be a positive int or None, not {preview(value)}")
    if value < 1:
        raise InvalidInputError(f"max_concurrency must be at least 1, not {value}")
    return value


def _on_error(value: OnError) -> OnError:
    if value not in ("continue", "cancel_siblings"):
        raise InvalidInputError(f"on_error must be continue or cancel_siblings, not {preview(value)}")
    return value


def _run_id(value: object) -> str | None:
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise InvalidInputError(f"run_id must be non-blank text or None, not {preview(value)}")
    return value


def _error_detail(value: ErrorDetail) -> ErrorDetail:
    if value not in ("message", "type") and not callable(value):
        raise InvalidInputError(f"error_detail must be message, type or a function, not {preview(value)}")
    return value


def _exceptions(value: object) -> tuple[type[BaseException], ...]:
    if not isinstance(value, tuple):
        raise InvalidTypeError(f"cancel_exceptions must be a tuple of exception classes, not {preview(value)}")
    for kind in value:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise InvalidTypeError(f"cancel_exceptions must be exception classes, not {preview(kind)}")
    return value


def _hooks(value: object) -> Hooks:
    if isinstance(value, Interceptor) or not isinstance(value, Iterable):
        raise InvalidTypeError(f"interceptors must be a list of interceptors, not {preview(value)}")
    return Hooks.of(value)


def _broker(value: Any) -> ApprovalBroker | None:
    if value is None or callable(getattr(value, "decide", None)):
        return cast("ApprovalBroker | None", value)
    raise InvalidTypeError(f"approvals must be a broker with an async decide(request), not {preview(value)}")


def _journal(value: Any) -> Journal | None:
    if value is None or callable(getattr(value, "append", None)):
        return cast("Journal | None", value)
    raise InvalidTypeError(f"journal must be a Journal with an async append(records), not {preview(value)}")


def _budget(value: object) -> OutputBudget | None:
    if value is None or isinstance(value, OutputBudget):
        return value
    raise InvalidTypeError(f"budget must be an OutputBudget or None, not {preview(value)}")


def _observers(value: object) -> tuple[BatchObserver, ...]:
    if not isinstance(value, Iterable):
        raise InvalidTypeError(f"observers must be a list of functions of one BatchOpened, not {preview(value)}")
    return tuple(_observer(one, "an observer of batches") for one in value)


def _observer(observer: Any, what: str) -> Any:
    if observer is not None and not callable(observer):
        raise InvalidTypeError(f"{what} must be a function of one argument, not {preview(observer)}")
    return observer
