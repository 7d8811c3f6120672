"""Why a turn is incomplete, written on the turn itself (L9): for the people who read a stored transcript.

The model has been told already, by the results. A stamp is a member of our own in the assistant's message, so it goes through
a store and back. Providers refuse members that they do not know: send `unstamped(messages)`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, get_args

from toolbatch.core import InvalidInputError, InvalidTypeError, preview

from ._read import field, require_messages

__all__ = ["STAMP_KEY", "Cause", "Stamp", "stamp", "stamps_of", "unstamped"]

Cause = Literal["truncated", "unnamed", "bad_frame", "missing_result"]
"""Calls whose arguments were cut off; calls without a tool's name; frames of the stream that were no JSON; calls that were
closed because no result was recorded."""

STAMP_KEY: Final = "toolbatch_incomplete"
"""The member that holds the stamps."""

_CAUSES: Final = get_args(Cause)


@dataclass(frozen=True, slots=True)
class Stamp:
    """One cause, and how often.

    Attributes:
        cause: Why the turn is incomplete.
        count: How many calls, or frames, are concerned; at least 1.

    Raises:
        InvalidInputError: The cause is none of `Cause`, or the count is not a positive int.
    """

    cause: Cause
    count: int = 1

    def __post_init__(self) -> None:
        if self.cause not in _CAUSES:
            raise InvalidInputError(f"cause must be one of {', '.join(_CAUSES)}, not {preview(self.cause)}")
        if not _positive(self.count):
            raise InvalidInputError(f"count must be a positive int, not {preview(self.count)}")


def stamp(message: Mapping[str, Any], *stamps: Stamp) -> dict[str, Any]:
    """Return a copy of a message with stamps; counts of one cause add up. Without stamps, a plain copy.

    Raises:
        InvalidTypeError: `message` is not a mapping: an SDK's object has no room for a member of ours.
    """
    if not isinstance(message, Mapping):
        raise InvalidTypeError(
            f"only a mapping can be stamped, not {preview(message)} of type {type(message).__name__}"
        )
    counts: dict[Cause, int] = {}
    for entry in (*stamps_of(message), *stamps):
        counts[entry.cause] = counts.get(entry.cause, 0) + entry.count
    if not counts:
        return dict(message)
    return {**message, STAMP_KEY: [{"cause": cause, "count": count} for cause, count in counts.items()]}


def stamps_of(message: object) -> tuple[Stamp, ...]:
    """Return a message's stamps. A store may hold anything: what is no stamp of ours reads as none."""
    written = field(message, STAMP_KEY)
    if not isinstance(written, (list, tuple)):
        return ()
    found = [(field(entry, "cause"), field(entry, "count")) for entry in written]
    return tuple(
        Stamp(cast("Cause", cause), count)
        for cause, count in found
        if isinstance(cause, str) and cause in _CAUSES and _positive(count)
    )


def unstamped(messages: list[Any]) -> list[Any]:
    """Return the messages without stamps, to be sent: the same list if it has none, and the same objects but for the stamped.

    Raises:
        InvalidTypeError: `messages` is not a list.
    """
    if not any(isinstance(message, Mapping) and STAMP_KEY in message for message in require_messages(messages)):
        return messages
    return [
        {name: value for name, value in message.items() if name != STAMP_KEY}
        if isinstance(message, Mapping) and STAMP_KEY in message
        else message
        for message in messages
    ]


def _positive(count: object) -> bool:
    return isinstance(count, int) and not isinstance(count, bool) and count > 0
