"""What the law writes into a transcript by itself: the closes, the text between two results, the news of a late one.

A text here is part of what models read and of what prompt caches keep, so a change of one is a change for every user.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from toolbatch.core import ToolbatchError, encode, preview
from toolbatch.ports import LATE_HEAD, late_line

__all__ = [
    "INTERRUPTED_TEXT",
    "NOT_STARTED_TEXT",
    "SECOND_RESULT_TEXT",
    "is_close_text",
    "joiner",
    "separator",
    "told",
    "written",
]

INTERRUPTED_TEXT: Final = (
    "This tool call was interrupted: no result was recorded for it. Its outcome is unknown, and the tool may have run in "
    "part or in full. Check its effects before you rely on them or call it again."
)
"""The close of a call of which nothing is known (L2). The same in every lane."""

NOT_STARTED_TEXT: Final = "This tool call was interrupted before its tool was started: the tool did not run."
"""The close of a call that a batch's snapshot proves not to have been started."""

SECOND_RESULT_TEXT: Final = "[another result was recorded for this same call:]"
"""What stands between two results recorded for one call, when they are folded into one."""

_CLOSES: Final = frozenset({INTERRUPTED_TEXT, NOT_STARTED_TEXT})


def is_close_text(text: object) -> bool:
    """Whether `text` is, to the letter, a close that the law wrote earlier."""
    return isinstance(text, str) and text in _CLOSES


def separator(*, failed: bool, mixed: bool) -> str:
    """Return what stands before the next of several results of one call.

    Args:
        failed: Whether the next one carries the lane's error mark.
        mixed: Whether some of the call's results carry it and some do not. One mark can't say both, so the text does.
    """
    if not mixed:
        return SECOND_RESULT_TEXT
    return f"{SECOND_RESULT_TEXT[:-2]}, {'as an error' if failed else 'as a success'}:]"


def joiner(text: str) -> str:
    """Return a separator as it stands inside one text."""
    return f"\n\n{text}\n\n"


def written(value: object) -> str:
    """Return what a result says as text: a text itself, else its JSON, or a bounded `repr` where it has none."""
    if isinstance(value, str):
        return value
    try:
        return encode(value)
    except ToolbatchError:
        return preview(value, 10_000)


def told(entries: Sequence[tuple[str, str, Any]], part: Callable[[str], Any]) -> str | list[Any]:
    """Return new content that tells of late results: a text if all are texts, else a list of parts.

    Args:
        entries: The tool's name, the call's label, and the result's content: a text or a list of parts.
        part: How the lane writes a text as a part.
    """
    lines = [late_line(name, label) for name, label, _ in entries]
    contents = [content for _, _, content in entries]
    if all(isinstance(content, str) for content in contents):
        return "\n\n".join([LATE_HEAD, *(f"{line}\n{content}" for line, content in zip(lines, contents, strict=True))])
    parts = [part(LATE_HEAD)]
    for line, content in zip(lines, contents, strict=True):
        parts.append(part(line))
        parts += content if isinstance(content, (list, tuple)) else [part(written(content))] if content else []
    return parts
