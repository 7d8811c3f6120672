"""The end of a conversation, before a turn is appended to it: its last turn must have all its answers.

Behind another turn no provider takes them any more, and every later request would be refused. Only the last turn is read,
so `extend` costs the same however long the conversation is; `toolbatch.transcript` is there for the whole of it.
"""

from collections.abc import Iterable

from toolbatch.core import InvalidInputError, preview

__all__ = ["require_answered"]


def require_answered(announced: Iterable[object], answered: Iterable[object]) -> None:
    """Refuse a conversation whose last turn has calls without a result.

    Args:
        announced: The ids of the last turn's calls.
        answered: The ids of the results behind it.

    Raises:
        InvalidInputError: A call has no result. Nothing was appended.
    """
    known = set(map(_key, answered))
    missing = [call_id for call_id in announced if _key(call_id) not in known]
    if missing:
        raise InvalidInputError(
            f"the last turn in messages has calls without a result: {preview(missing, 1000)}. No turn was appended behind it, "
            "since no provider would take the conversation then. Append those results first, or send what "
            "toolbatch.transcript.repair(messages, lane) gives"
        )


def _key(call_id: object) -> str | int | None:
    """Return an id as what results are found by: a stored conversation may hold anything in its place, a dict too."""
    return call_id if isinstance(call_id, (str, int)) else None
