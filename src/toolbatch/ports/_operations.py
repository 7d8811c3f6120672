"""Durable claims: what is stored of an operation so that it is never run twice, and who may say how it ended.

Times are seconds since the epoch (UTC) by the host's clock. An operation is stored as a *claim* that is either *open* or
*completed*. An open claim is *unknown* to everyone but its claimant: whether that one still runs, has died, or has acted
and could not say so, a store can't know (D2).
"""

import hashlib
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, final

from toolbatch.core import InvalidInputError, InvalidTypeError, cut, preview, require_text, sound

from ._canonical import canonical_json

__all__ = [
    "MAX_OPERATION_ID_BYTES",
    "MAX_OPERATION_RESULT_BYTES",
    "REPLAY_POLICIES",
    "SAVED_MARK",
    "SAVED_VERSION",
    "Claim",
    "ClaimToken",
    "Claimed",
    "Completed",
    "Done",
    "NotDone",
    "Operation",
    "OperationRecord",
    "ReplayPolicy",
    "Resolution",
    "StillUnknown",
    "Unknown",
]

MAX_OPERATION_ID_BYTES: Final = 512
"""Of an operation id, in UTF-8 (D5). Tool names, keys and owners have the same bound."""

SAVED_MARK: Final = "toolbatch.result"
"""The member by which a saved result says that it is no bare value, but says what is one (D1)."""
SAVED_VERSION: Final = 1
"""What that member holds: how the rest is written."""
MAX_OPERATION_RESULT_BYTES: Final = 64 * 1024 * 1024
"""Of a saved result: more than any settlement under the default limits can have."""

_MAX_SUMMARY_BYTES: Final = 2048

ReplayPolicy = Literal["never", "if_not_started", "safe"]
"""Who may run an operation again whose outcome is not known; it is stored with the claim, and the stricter one wins (FIELD 93).

- `never`: nobody but a person, by `release_unknown`.
- `if_not_started`: also whoever knows that nothing happened: a claimant that releases its claim, a resolver that says
  `NotDone`, a resume that finds no claim. An open claim is not taken over.
- `safe`: also one who takes over an open claim, for what may happen twice: reads, and writes by idempotency key.
"""

REPLAY_POLICIES: Final[tuple[ReplayPolicy, ...]] = ("never", "if_not_started", "safe")
"""From the strictest on."""


def _label(value: object, what: str) -> str:
    text = require_text(value, what, MAX_OPERATION_ID_BYTES)
    if not text.isprintable() and any(character < " " or character == "\x7f" for character in text):
        raise InvalidInputError(f"{what} {preview(text)} has a control character; use printable text")
    return text


@final
@dataclass(frozen=True, slots=True, init=False)
class Operation:
    """One effect that must not happen twice: what a store is asked to claim (D1).

    Attributes:
        id: As given.
        tool: As given.
        fingerprint: SHA-256 (32 bytes) of the canonical JSON of `[tool, identity]` and of the arguments: it doesn't depend on the
            order of members. The same id with another fingerprint is a conflict.
        summary: What a person reads of it when they have to find out how it ended.
        replay: As given.
        idempotency_key: As given.

    Args:
        id: The host's id of the operation, at most 512 bytes, in the scope of its tenant and run; never the model's word
            (D5). `operations.operation_id` makes one. Ids that begin with the run are also the fastest ones.
        tool: The tool's name.
        arguments: Its arguments: any JSON value. They are not stored, but for the summary.
        identity: On whose behalf, as the authenticated host knows it: any JSON value.
        replay: Who may run it again when its outcome is not known.
        idempotency_key: What the tool passes on to the service that acts, which a resolver can ask for later (B22).
        summary: `None` for the arguments' JSON cut to 2,048 bytes; `""` where not even those may be stored.

    Raises:
        InvalidTypeError: A text is not a `str`.
        InvalidInputError: A text is blank, too long, or has a control character or a lone surrogate; the policy is none.
        EncodingError: The arguments or the identity are not strict JSON.
    """

    id: str
    tool: str
    fingerprint: bytes
    summary: str
    replay: ReplayPolicy
    idempotency_key: str | None

    def __init__(
        self,
        id: str,  # noqa: A002  the field's name in every store
        tool: str,
        arguments: object = None,
        *,
        identity: object = None,
        replay: ReplayPolicy = "if_not_started",
        idempotency_key: str | None = None,
        summary: str | None = None,
    ) -> None:
        if not isinstance(replay, str) or replay not in REPLAY_POLICIES:
            raise InvalidInputError(f"replay must be one of {', '.join(REPLAY_POLICIES)}, not {preview(replay)}")
        if summary is not None and not isinstance(summary, str):
            raise InvalidTypeError(f"summary must be a str or None, not {preview(summary)}")
        fill = object.__setattr__
        fill(self, "id", _label(id, "an operation id"))
        fill(self, "tool", _label(tool, "a tool's name"))
        text = canonical_json({} if arguments is None else arguments)
        request = b"%b%b" % (canonical_json([self.tool, identity]), text)
        fill(self, "fingerprint", hashlib.sha256(request).digest())
        told = text.decode() if summary is None else sound(summary).replace("\0", "\ufffd")
        fill(self, "summary", cut(told, _MAX_SUMMARY_BYTES))
        fill(self, "replay", replay)
        key = None if idempotency_key is None else _label(idempotency_key, "an idempotency key")
        fill(self, "idempotency_key", key)


@final
@dataclass(frozen=True, slots=True)
class ClaimToken:
    """Proof of having claimed: who has it may complete or release. It can be pickled, for a tool that runs elsewhere.

    Attributes:
        operation_id: The operation.
        claim: The claim's public name, as others see it in `Unknown` and `OperationRecord`.
        secret: What only the claimant has.
    """

    operation_id: str
    claim: str
    secret: str = field(repr=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The operation is the caller's to run, and of nobody else: this is on disk.

    Attributes:
        token: Proof of it, for `complete` and `release`.
        attempt: 1, and one more for each unknown claim that was taken over.
        claimed_at: When.
    """

    token: ClaimToken
    attempt: int
    claimed_at: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """The operation has its result: give that one, and run nothing.

    Attributes:
        result: As it was saved, to the byte.
        completed_at: When.
        completed_by: `None` for the claimant; else who reconciled it.
    """

    result: bytes = field(repr=False)
    completed_at: float
    completed_by: str | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Somebody has claimed the operation and saved no result: it may have happened, and is not run again (D2, FIELD 92).

    This is said at once, of a claimant that may still be at work as of one that has died, since no store can tell them
    apart. `owner` and `age` are for a host that can: `operations.owner_state` knows of owners on this machine.

    Attributes:
        claim: The claim's public name: what `taking_over`, and a host's `reconcile` or `release_unknown`, may refer to.
        owner: Who claimed it.
        claimed_at: When.
        age: Seconds since then, at least 0.
        attempt: As in `Claimed`.
        replay: The stricter of the stored and the asker's policy. Only where it is `safe` may the claim be taken over.
    """

    claim: str
    owner: str
    claimed_at: float
    age: float
    attempt: int
    replay: ReplayPolicy


Claim: TypeAlias = Claimed | Completed | Unknown
"""What a store answers to `claim`."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRecord:
    """All that is stored of an operation but the claimant's secret.

    Attributes:
        id: The operation's id.
        tool: The tool.
        fingerprint: Of tool, arguments and identity.
        summary: What a person reads of it.
        replay: The stored policy.
        idempotency_key: What a service that acted knows it by, or `None`.
        claim: The claim's public name.
        owner: Who claimed it.
        attempt: As in `Claimed`.
        claimed_at: When.
        completed_at: When its result was saved; `None` for an open claim, and then `result` is `None` too.
        completed_by: `None` for the claimant; else who reconciled it.
        result: The saved result.
    """

    id: str
    tool: str
    fingerprint: bytes
    summary: str
    replay: ReplayPolicy
    idempotency_key: str | None
    claim: str
    owner: str
    attempt: int
    claimed_at: float
    completed_at: float | None
    completed_by: str | None
    result: bytes | None = field(repr=False)

    @property
    def is_open(self) -> bool:
        """Whether no result is saved: its outcome is unknown to all but its claimant."""
        return self.completed_at is None


@final
@dataclass(frozen=True, slots=True)
class Done:
    """The outside world says that the operation has happened.

    Attributes:
        result: What it came to: bytes of JSON, to be saved as its result.
    """

    result: bytes = field(repr=False)


@final
@dataclass(frozen=True, slots=True)
class NotDone:
    """The outside world says that the operation has not happened, and that no request for it is under way."""


@final
@dataclass(frozen=True, slots=True)
class StillUnknown:
    """The outside world can't say either.

    Attributes:
        reason: Why, for a person.
    """

    reason: str = ""


Resolution: TypeAlias = Done | NotDone | StillUnknown
"""What a resolver says."""
