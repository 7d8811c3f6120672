"""The sans-IO state machine: one closure holds one active batch, and gives every call in it exactly one outcome.

The caller's own code can run inside our calls: an iterator, a property, `__str__`, an encoder (C14). So each operation
does three things in this order: look whether it can take effect, read what the caller gave, and only then look again
and commit, by assignments that run nobody's code.
"""

from _thread import get_ident  # an identity, to compare; no thread is made or waited for here
from collections.abc import Iterable, Mapping
from typing import Any, Final, final

from ._announce import read_calls
from ._answers import Accepted, Begun, Rejected
from ._calls import BatchHandle
from ._encode import Encoder, encode
from ._errors import InvalidInputError, InvalidTypeError, WrongThreadError
from ._limits import Limits
from ._reader import CANCELLED_MESSAGE, Reader, observe, require_side_effects
from ._run import CLOSES, NO_RUN, Run
from ._settlements import Cancelled, Closed, Failed, Settlement, SideEffectState
from ._snapshots import CloseStatus, Diagnostic, RejectionReason, Snapshot
from ._table import Input
from ._text import cut, exact, preview, require_text

__all__ = ["ToolCallClosure"]

_REPORTS: Final = {"success": Input.SUCCEED, "error": Input.FAIL, "cancelled": Input.CANCEL}
_DEFAULT_LIMITS: Final = Limits()
_SUPERSEDED_MESSAGE: Final = "Tool call was superseded by a newer generation."


@final
class ToolCallClosure:
    """Gives every announced call exactly one terminal outcome, and refuses whatever comes late.

    It has no event loop, clock or thread. It belongs to the thread that first calls `begin`; from any other thread
    every operation raises `WrongThreadError` and changes nothing (C18).

    Args:
        limits: Bounds on what is accepted and kept; the defaults of `Limits` where `None`.
        encode: Turns a success's value into JSON text (C7); the built-in strict encoder unless a host has its own.

    Raises:
        InvalidTypeError: `limits` is not a `Limits`, or `encode` can't be called.
    """

    __slots__ = ("_limits", "_owner", "_read", "_run")

    def __init__(self, limits: Limits | None = None, encode: Encoder = encode) -> None:
        if limits is not None and not isinstance(limits, Limits):
            raise InvalidTypeError(f"limits must be a Limits, not {preview(limits)}")
        if not callable(encode):
            raise InvalidTypeError(f"encode must be a function from a value to JSON text, not {preview(encode)}")
        self._limits = limits or _DEFAULT_LIMITS
        self._read = Reader(self._limits, encode)
        self._owner: int | None = None
        self._run = NO_RUN

    @property
    def limits(self) -> Limits:
        """The bounds in force."""
        return self._limits

    @property
    def active_generation(self) -> int | None:
        """The number of the latest batch, open or closed; `None` before the first."""
        return self._run.generation or None

    # -- beginning ---------------------------------------------------------------------------------------------------

    def begin(self, calls: Iterable[object], *, side_effect_state: SideEffectState | None = "unknown") -> Begun:
        """Start the next generation; a batch that is still open is closed as cancelled/`superseded` first (C2, C3).

        Args:
            calls: `ToolCall`s, or mappings or objects with `id` and `name`; none at all is valid.
            side_effect_state: What the superseded batch's pending calls say; `None` for what is known of each.

        Raises:
            InvalidTypeError: `calls` or one of them is of a wrong type. The active batch is as it was.
            InvalidInputError: A call is blank, repeated, too long or one too many, or reading the calls began another
                batch, which stands. The active batch is as it was.
        """
        self._check_thread()
        effects = require_side_effects(side_effect_state)
        before = self._run.generation
        announced = read_calls(calls, self._limits)
        replaced = self._run
        if replaced.generation != before:
            raise InvalidInputError(
                f"generation {replaced.generation} began while these calls were being read; it stands"
            )
        superseded = None
        if replaced.close_reason is None:
            message = cut(_SUPERSEDED_MESSAGE, self._limits.max_message_bytes)
            replaced.close("cancelled", "superseded", message, effects)
            superseded = replaced.view()
        self._owner = get_ident()
        self._run = run = Run(before + 1, announced)
        return Begun(run.generation, run.handle, superseded, announced)

    # -- reports of one call -----------------------------------------------------------------------------------------

    def start(self, handle: BatchHandle, call_id: str) -> Accepted | Rejected:
        """Take note that a call's execution began, so that closing it says `unknown` and not `not_started` (C10).

        Being told twice changes nothing. A call that has its outcome keeps it: `Rejected`, and nothing may be run.

        Raises:
            InvalidTypeError: `call_id` is not a `str`.
            InvalidInputError: `call_id` is blank or over its limit.
        """
        found = self._find(handle, call_id, None)
        return found if isinstance(found, Rejected) else self._commit(handle, call_id, found, Input.START, None)

    def start_many(self, handle: BatchHandle, began: bytes) -> bool:
        """Do what `start` does for a whole batch at a fraction of its cost: right before it is closed, say.

        A call that has its outcome keeps it, and no diagnostic is kept of it.

        Args:
            handle: The batch's handle.
            began: One byte a call, in order of announcement: 1 if its execution has begun, else 0.

        Returns:
            False if nothing was done, since the batch is closed or replaced.

        Raises:
            InvalidTypeError: `began` is not `bytes`.
            InvalidInputError: It is not one 0 or 1 a call. Nothing has changed.
        """
        self._check_thread()
        run = self._run
        if handle is not run.handle or run.close_reason is not None:
            return False
        if type(began) is not bytes:
            raise InvalidTypeError(f"began must be bytes, not {preview(began)}")
        if len(began) != len(run.announced) or began.strip(b"\x00\x01"):
            raise InvalidInputError(
                f"began must be a 0 or 1 for each of {len(run.announced)} calls, not {preview(began)}"
            )
        run.begun(began)
        return True

    def progress(self, handle: BatchHandle, call_id: str, content: object) -> Accepted | Rejected:
        """Keep what a pending call reports, in case it is cut off: its synthetic outcome will carry it (B19).

        All reports of a call are kept together up to `Limits.max_message_bytes`; the oldest go first.

        Raises:
            EncodingError: `content` is neither text nor JSON. The state is as it was.
            InvalidTypeError: `call_id` is not a `str`.
            InvalidInputError: `call_id` is blank or over its limit.
        """
        found = self._find(handle, call_id, None)
        if isinstance(found, Rejected):
            return found
        text = self._read.report(content)
        found = self._find(handle, call_id, None)
        if isinstance(found, Rejected):
            return found
        self._run.keep_partial(found, text, self._limits.max_message_bytes)
        return Accepted(self._run.generation, exact(call_id), None)

    def hold(self, handle: BatchHandle, call_id: str, reason: str | None) -> Accepted | Rejected:
        """Note that a pending call waits for the host, such as for an approval; `None` that it waits no longer (T7).

        Should it be closed meanwhile, by whatever it is, its message begins with `reason`, cut like any message.

        Raises:
            InvalidTypeError: `call_id` is not a `str`.
            InvalidInputError: `call_id` is blank or over its limit.
        """
        found = self._find(handle, call_id, None)
        if isinstance(found, Rejected):
            return found
        text = self._read.message(reason, "")
        found = self._find(handle, call_id, None)
        if isinstance(found, Rejected):
            return found
        if text:
            self._run.holds[found] = text, self._limits.max_message_bytes
        else:
            self._run.holds.pop(found, None)
        return Accepted(self._run.generation, exact(call_id), None)

    def settle(self, handle: BatchHandle, call_id: str, outcome: Mapping[str, Any]) -> Accepted | Rejected:
        """Give a call the outcome that a mapping describes: `status`, and `content` or `code` and `message`.

        Raises:
            InvalidTypeError: `outcome` is not a mapping, or `call_id` is not a `str`. The call is still pending.
            InvalidInputError: Its status or code can't be used. The call is still pending.
            EncodingError: Its content can't be encoded. The call is still pending.
        """
        self._check_thread()
        found = self._find(handle, call_id, observe(outcome))
        if isinstance(found, Rejected):
            return found
        settlement = self._read.outcome(outcome)
        return self._commit(handle, call_id, found, _REPORTS[settlement.status], settlement)

    def succeed(self, handle: BatchHandle, call_id: str, content: object) -> Accepted | Rejected:
        """Give a call its result: text as it is, parts as parts (P5), anything else as compact JSON from this moment (C7).

        Raises:
            EncodingError: The content is not strict JSON, mixes parts with data, or is over `max_result_bytes` or
                `max_media_bytes`. The call is still pending.
            InvalidTypeError: `call_id` is not a `str`.
            InvalidInputError: `call_id` is blank or over its limit.
        """
        found = self._find(handle, call_id, "success")
        if isinstance(found, Rejected):
            return found
        settlement = self._read.success(content)
        return self._commit(handle, call_id, found, Input.SUCCEED, settlement)

    def fail(self, handle: BatchHandle, call_id: str, error: object, code: str | None = None) -> Accepted | Rejected:
        """Give a call its error: an exception's message and nothing else of it, or text (C8).

        Raises:
            InvalidInputError: `code` is blank or over its limit, or `call_id` is. The call is still pending.
            InvalidTypeError: `call_id` or `code` is not a `str`.
        """
        found = self._find(handle, call_id, "error")
        if isinstance(found, Rejected):
            return found
        settlement = Failed(self._read.code(code, "tool_error"), self._read.message(error, "None"))
        return self._commit(handle, call_id, found, Input.FAIL, settlement)

    def cancel(
        self, handle: BatchHandle, call_id: str, message: str | None = None, code: str | None = None
    ) -> Accepted | Rejected:
        """Note that the tool itself ended as cancelled.

        Raises:
            InvalidInputError: `code` is blank or over its limit, or `call_id` is. The call is still pending.
            InvalidTypeError: `call_id` or `code` is not a `str`.
        """
        found = self._find(handle, call_id, "cancelled")
        if isinstance(found, Rejected):
            return found
        settlement = Cancelled(self._read.code(code, "cancelled"), self._read.message(message, CANCELLED_MESSAGE))
        return self._commit(handle, call_id, found, Input.CANCEL, settlement)

    # -- closing -----------------------------------------------------------------------------------------------------

    def close_call(
        self,
        handle: BatchHandle,
        call_id: str,
        status: CloseStatus = "cancelled",
        code: str | None = None,
        message: str | None = None,
        side_effect_state: SideEffectState | None = "unknown",
    ) -> Accepted | Rejected:
        """Give one pending call a synthetic outcome and leave the batch open (C9). It answers like `settle`.

        Args:
            handle: The batch's handle.
            call_id: The call.
            status: What the call becomes.
            code: Why; `status` where `None`.
            message: What the model may read; a standard text where `None`.
            side_effect_state: `None` for what is known: `unknown` if the call was started, else `not_started`.

        Raises:
            InvalidInputError: A value can't be used. The call is still pending.
            InvalidTypeError: A value is of a wrong type. The call is still pending.
        """
        found = self._find(handle, call_id, None)
        if isinstance(found, Rejected):
            return found
        status, code, message, effects = self._read.closing(status, code, message, side_effect_state)
        found = self._find(handle, call_id, status)
        if isinstance(found, Rejected):
            return found
        known = effects or self._run.known(found)
        settlement = self._run.closed(found, Closed(status, code, message, known))
        return self._commit(handle, call_id, found, CLOSES[status], settlement)

    def close(
        self,
        handle: BatchHandle,
        status: CloseStatus = "cancelled",
        code: str | None = None,
        message: str | None = None,
        side_effect_state: SideEffectState | None = "unknown",
    ) -> Snapshot | Rejected:
        """Give every pending call a synthetic outcome, freeze the batch, and return its snapshot (C9).

        Settled calls stay as they are. On a closed batch it changes nothing and returns its snapshot.

        Args:
            handle: The batch's handle.
            status: What the pending calls become.
            code: Why; `status` where `None`.
            message: What the model may read; a standard text where `None`.
            side_effect_state: The same for all, or `None` for what is known of each.

        Raises:
            InvalidInputError: A value can't be used. The batch is still open.
            InvalidTypeError: A value is of a wrong type. The batch is still open.
        """
        settled = self._closed_or_stale(handle)
        if settled is not None:
            return settled
        status, code, message, effects = self._read.closing(status, code, message, side_effect_state)
        settled = self._closed_or_stale(handle)
        if settled is not None:
            return settled
        self._run.close(status, code, message, effects)
        return self._run.view()

    def seal(self, handle: BatchHandle) -> Snapshot | Rejected:
        """Freeze a batch whose calls are all settled, as `complete`; else answer `pending_calls` (C11)."""
        settled = self._closed_or_stale(handle)
        if settled is not None:
            return settled
        if self._run.pending:
            return self._reject("pending_calls", None, self._run.generation, None)
        self._run.seal()
        return self._run.view()

    def snapshot(self) -> Snapshot | None:
        """Return the active batch as it stands, immutable and detached; `None` before the first `begin` (C12)."""
        self._check_thread()
        return self._run.view() if self._run.generation else None

    # -- look, and look again ----------------------------------------------------------------------------------------

    def _find(self, handle: BatchHandle, call_id: str, observed: str | None) -> int | Rejected:
        """Return the position of a call that is pending, or why nothing can be done, in the order of C5."""
        if self._owner != get_ident():
            self._check_thread()
        run = self._run
        if handle is run.handle and type(call_id) is str:
            position = run.positions.get(call_id)
            if position is not None and run.settlements[position] is None:
                return position
        # Everything below ends in a refusal, which alone pays for reading what the caller gave.
        call_id = require_text(call_id, "call_id", self._limits.max_id_bytes)
        if handle is not run.handle:
            return self._reject("stale_generation", call_id, _generation_of(handle), observed)
        if run.close_reason is not None:
            return self._reject("run_closed", call_id, run.generation, observed)
        position = run.positions.get(call_id)
        if position is None:
            return self._reject("unknown_call", call_id, run.generation, None)
        if run.settlements[position] is None:
            return position
        return self._reject("duplicate_settlement", call_id, run.generation, None)

    def _commit(
        self, handle: BatchHandle, call_id: str, position: int, event: Input, settlement: Settlement | None
    ) -> Accepted | Rejected:
        """Look again, since the caller's code may have run, then move the call by its table and by nothing else."""
        run = self._run
        if handle is run.handle and run.close_reason is None and run.move(position, event, settlement):
            # As `Accepted(...)`, without the generated constructor, which costs as much again.
            return tuple.__new__(Accepted, (run.generation, run.announced[position].id, settlement))
        call_id = exact(call_id)
        observed = None if settlement is None else settlement.status
        if handle is not run.handle:
            return self._reject("stale_generation", call_id, handle.generation, observed)
        if run.close_reason is not None:
            return self._reject("run_closed", call_id, run.generation, observed)
        return self._reject("duplicate_settlement", call_id, run.generation, observed)

    def _closed_or_stale(self, handle: BatchHandle) -> Snapshot | Rejected | None:
        self._check_thread()
        run = self._run
        if handle is not run.handle:
            return self._reject("stale_generation", None, _generation_of(handle), None)
        return None if run.close_reason is None else run.view()

    def _reject(
        self, reason: RejectionReason, call_id: str | None, generation: int | None, observed: str | None
    ) -> Rejected:
        self._run.note(Diagnostic(reason, call_id, generation, observed), self._limits.max_diagnostics)
        return Rejected(reason, call_id, generation, observed)

    def _check_thread(self) -> None:
        if self._owner is not None and self._owner != get_ident():
            raise WrongThreadError(
                "this closure belongs to the thread that began its first batch; hand the work over to it"
            )


def _generation_of(handle: object) -> int | None:
    """Return the generation that any object claims to be of, for the diagnostic; a property that raises claims nothing."""
    try:
        generation = getattr(handle, "generation", None)
    except Exception:  # noqa: BLE001  a hostile handle is rejected like any other
        return None
    return generation if type(generation) is int and generation > 0 else None
