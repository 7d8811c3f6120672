"""What batches know of calls that a transcript leaves open: whether they were started, and how they ended."""

from collections.abc import Callable, Hashable, Iterable

from toolbatch.core import (
    CallSnapshot,
    Cancelled,
    Closed,
    Failed,
    InvalidTypeError,
    Snapshot,
    encode,
    preview,
)

from ._plan import Close
from ._texts import INTERRUPTED_TEXT, NOT_STARTED_TEXT
from ._turns import Call, Turn

__all__ = ["Known", "require_snapshots"]

_UNKNOWN = Close(INTERRUPTED_TEXT)


def require_snapshots(snapshots: Iterable[Snapshot]) -> tuple[Snapshot, ...]:
    """Return the caller's snapshots.

    Raises:
        InvalidTypeError: One is not a snapshot made here: a copy proves nothing (C15).
    """
    taken = tuple(snapshots)
    for snapshot in taken:
        if type(snapshot) is not Snapshot:  # isinstance() would read the object's __class__
            raise InvalidTypeError(f"snapshots must be Snapshots made by a batch, not {preview(snapshot)}")
    return taken


class Known:
    """The batches' word on each call.

    Ids can recur from turn to turn, and so can the names with them. The last uses of an id and the last batches that had it
    are therefore paired from the end; an earlier use that no batch is left for is unknown.

    Args:
        snapshots: Snapshots of the batches, oldest first.
        name: The lane's reading of a call's name.
        turns: How to get all turns, and so all uses of an id.
    """

    def __init__(
        self, snapshots: Iterable[Snapshot], name: Callable[[Call], str], turns: Callable[[], list[Turn]]
    ) -> None:
        self._rows: dict[tuple[int, int], CallSnapshot] = {}
        told: dict[tuple[Hashable, str], list[CallSnapshot]] = {}
        for snapshot in snapshots:
            for row in snapshot.calls:
                told.setdefault((row.call.wire_id or row.id, row.name), []).append(row)
        if not told:
            return
        for turn in reversed(turns()):
            for call in reversed(turn.calls):
                rows = told.get((call.key, name(call)))
                if rows:
                    self._rows[call.position, call.index] = rows.pop()

    def close(self, call: Call) -> Close:
        """Return what to answer an open call with."""
        row = self._rows.get((call.position, call.index))
        if row is None:
            return _UNKNOWN
        end = row.settlement
        if end is not None and end.content is not None:
            return Close(end.content, failed=False, known=True)
        if isinstance(end, (Failed, Cancelled)):
            # The same bytes as the lanes' own export of a reported failure (P4).
            return Close(encode({"error": {"code": end.code, "message": end.message}}), known=True)
        not_started = end.side_effect_state == "not_started" if isinstance(end, Closed) else not row.started
        return Close(NOT_STARTED_TEXT) if not_started else _UNKNOWN
