"""What a run log says, put together: a run of batches of calls, as far as it is known."""

from dataclasses import dataclass

__all__ = ["BatchRecord", "CallRecord", "LateRecord", "RunRecord"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRecord:
    """A result that came after its call's outcome (B7). Each is `None` where the line does not say it.

    Attributes:
        at: When it came, in seconds since the epoch.
        late_by: Seconds from the outcome.
        observed_status: What the tool reported: `success`, `error` or `cancelled`.
        answered_as: What the call had been answered as.
        reason: Why the report was refused.
        exception_type: The class name of what the tool raised.
        content: The result's text, where the session kept it.
    """

    at: float | None = None
    late_by: float | None = None
    observed_status: str | None = None
    answered_as: str | None = None
    reason: str | None = None
    exception_type: str | None = None
    content: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One call, with all that was written of it. What is not known is `None`; times are in seconds since the epoch.

    Attributes:
        call_id: Its id.
        tool_name: Its tool; empty where no line names it.
        execution_id: The execution, as in its outcome.
        status: How it ended for the caller, as in `ExecutionOutcome`; where only its batch's close tells, `succeeded`, `failed`,
            `cancelled` or `not_started`; `None` where nothing says that it has ended.
        code: The code of its outcome.
        side_effect_state: What is known of the effects of a call that was closed: `unknown` or `not_started`.
        admitted_at: When the host handed it over to be run.
        asked_at: When it began to wait for an approval.
        started_at: When its tool's code was entered.
        settled_at: When it had its outcome.
        ended_at: When its tool's code had ended.
        duration: Seconds from the start to the end, or to the outcome where the end is unknown.
        timeout: The bound that fired, in seconds.
        deadline_late_by: By how many seconds a blocked event loop delayed that deadline.
        completion: Whether its code has ended: `not_started`, `unknown` or `settled`.
        cancellation: Whether it was asked to stop: `none`, `requested` or `acknowledged`.
        repeats: How often the session had seen the same bad call before.
        resumed: Whether its outcome is an earlier batch's.
        exception_type: The class name of what its tool raised.
        progress: How many progress reports came.
        last_progress: The last one's text, where content was kept.
        arguments: Its arguments as JSON text, where content was kept.
        content: Its result or message, where content was kept.
        late: The result that came too late, if one did.
    """

    call_id: str
    tool_name: str = ""
    execution_id: str | None = None
    status: str | None = None
    code: str | None = None
    side_effect_state: str | None = None
    admitted_at: float | None = None
    asked_at: float | None = None
    started_at: float | None = None
    settled_at: float | None = None
    ended_at: float | None = None
    duration: float | None = None
    timeout: float | None = None
    deadline_late_by: float | None = None
    completion: str | None = None
    cancellation: str | None = None
    repeats: int = 0
    resumed: bool = False
    exception_type: str | None = None
    progress: int = 0
    last_progress: str | None = None
    arguments: str | None = None
    content: str | None = None
    late: LateRecord | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRecord:
    """One batch, with its calls in the order of announcement.

    Attributes:
        log: Which of several logs in one file wrote it; `None` where that is not known.
        generation: Its number within its session; `None` where no line says it.
        run_id: The host's name of the run.
        begun_at: When it was announced, in seconds since the epoch; `None` where nothing says so.
        closed_at: When it was closed; `None` where nothing says so.
        status: What its close says: `complete`, `error` or `cancelled`.
        code: The code of its close.
        calls: Its calls.
    """

    log: str | None
    generation: int | None
    run_id: str | None
    begun_at: float | None
    closed_at: float | None
    status: str | None
    code: str | None
    calls: tuple[CallRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What a file says of one or more logs.

    Attributes:
        batches: The batches, in the order in which they began.
        lines: How many lines were read.
        unreadable: How many of them are not whole or not a run log's, as a crash leaves them.
        unknown: How many are of a later version, or of events that this one does not know; they were left out.
        dropped: How many lines the writers say they lost.
        cut_off: How many logs were not ended in order: the process died, or goes on.
    """

    batches: tuple[BatchRecord, ...]
    lines: int
    unreadable: int
    unknown: int
    dropped: int
    cut_off: int
