"""What every lane's export shares: which snapshots may leave, and what a failed call says to the model."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from toolbatch.core import (
    CallSnapshot,
    Closed,
    InvalidInputError,
    InvalidTypeError,
    Part,
    Settlement,
    Snapshot,
    ToolCall,
    encode,
    preview,
    require_closed,
    sound,
)
from toolbatch.ports import LATE_HEAD, LateNote, late_line

__all__ = ["Answer", "answers", "exported", "failure_text", "late_text", "require_list"]


class Answer(NamedTuple):
    """One call with what the model reads of its outcome.

    Attributes:
        call: The call.
        text: The success's content, or the failure as JSON (P4).
        failed: Whether it is a failure: an error or a cancellation.
        parts: What a rich success is made of, for `place` in `_content.py`; `None` for all else (P5).
        ran: Whether its tool was entered, as far as the core was told. A success has run.
    """

    call: ToolCall
    text: str
    failed: bool
    parts: tuple[Part, ...] | None
    ran: bool


def failure_text(settlement: Settlement) -> str:
    """Return what the model reads of a call that did not succeed, as JSON (P4). Never empty.

    `side_effect_state` is there for synthetic outcomes only: of a reported failure the tool has said what there is.
    """
    if settlement.message is None:
        raise TypeError("a success has content of its own")
    # Member by member: text is the encoder's fast path, five times faster than an object, and the bytes are the same.
    members = [f'"code":{encode(settlement.code)}', f'"message":{encode(settlement.message)}']
    if isinstance(settlement, Closed):
        members.append(f'"side_effect_state":{encode(settlement.side_effect_state)}')
        if settlement.partial is not None:
            members.append(f'"partial":{encode(settlement.partial)}')
    return f'{{"error":{{{",".join(members)}}}}}'


def exported(snapshot: Snapshot) -> list[tuple[ToolCall, str, bool, tuple[Part, ...] | None]]:
    """Return each call with its text, whether it failed, and its parts, in the order of announcement (C16).

    Parts are there of a rich success only, else `None`. Its text says all of them in words, without the contents of files:
    a lane that can send some asks `place` of `_content.py` (P5).

    Raises:
        InvalidTypeError: It is not a snapshot made here (C15).
        InvalidInputError: It is open: some calls have no outcome yet.
    """
    rows: list[tuple[ToolCall, str, bool, tuple[Part, ...] | None]] = []
    # A close gives its pending calls one shared settlement, and encoding costs far more than all else here.
    texts: dict[int, str] = {}
    for call, end in require_closed(snapshot).settled():
        content = end.content
        if content is not None:
            rows.append((call, content, False, end.parts))
            continue
        if id(end) not in texts:
            texts[id(end)] = failure_text(end)
        rows.append((call, texts[id(end)], True, None))
    return rows


def answers(calls: Sequence[ToolCall], snapshot: Snapshot | None) -> list[Answer]:
    """Return the outcome of each of the response's calls, in the response's order.

    Args:
        calls: What the response announces.
        snapshot: The closed snapshot of the batch that those calls made; `None` where there are no calls.

    Raises:
        InvalidTypeError: The snapshot was not made here (C15).
        InvalidInputError: It is open, or missing, or it is not a snapshot of exactly these calls. An id alone does not tell: some
            gateways count from `call_0` in every turn (FIELD 49), so the names must agree too.
    """
    if snapshot is None:
        if calls:
            raise InvalidInputError(
                f"the response announces {_listed(calls)}, and there is no snapshot to answer them from: run a batch of its "
                "calls, and leave it, first"
            )
        return []
    ends = {row[0].id: row[1:] for row in exported(snapshot)}
    rows: dict[str, CallSnapshot] = {row.id: row for row in snapshot.calls}
    announced = {call.id: call.name for call in calls}
    if announced != {row.id: row.name for row in rows.values()}:
        raise InvalidInputError(
            f"the snapshot is of another response: it answers {_listed(rows.values())}, "
            f"the response announces {_listed(calls)}; the calls must come from this lane's calls(response)"
        )
    return [Answer(call, *ends[call.id], _surely_ran(rows[call.id])) for call in calls]


def _surely_ran(row: CallSnapshot) -> bool:
    # A reported failure may be a host's own word for a tool that there isn't.
    return row.state == "success" or (type(row.settlement) is Closed and row.started)


def _listed(calls: Iterable[ToolCall | CallSnapshot]) -> str:
    return preview([f"{call.id} ({call.name})" for call in calls], 1000)


def require_list(messages: object) -> list[Any]:
    """Return the caller's own list, to be appended to in place.

    Raises:
        InvalidTypeError: It is not a `list`.
    """
    if not isinstance(messages, list):
        raise InvalidTypeError(f"messages must be a list, which is appended to in place, not {preview(messages)}")
    return messages


def late_text(late: Sequence[LateNote]) -> str | None:
    """Return what the model reads of late results, or `None` where there are none.

    It is new content for a later turn: a turn that was sent is never rewritten, which would break prompt caches and
    signed reasoning (B20).

    Raises:
        InvalidTypeError: A note has no text to give.
    """
    parts = [LATE_HEAD]
    for note in late:
        if not isinstance(note.content, str):
            raise InvalidTypeError(
                f"the late result of call {note.call_id!r} must be text, not {preview(note.content)}"
            )
        parts.append(f"{late_line(note.name, note.call_id, note.generation)}\n{sound(note.content)}")
    return "\n\n".join(parts) if len(parts) > 1 else None
