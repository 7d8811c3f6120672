"""What the model reads when it names a tool that is not there (T5)."""

from collections.abc import Iterable
from difflib import get_close_matches

from toolbatch.core import sound

__all__ = ["UNKNOWN", "near_names", "unknown_tool_message"]

UNKNOWN = "unknown_tool"
"""The code of a call of a tool that is not there (T4)."""

_MAX_NAME = 128  # no tool has a longer one; comparing costs by the product of both lengths
_MAX_LISTED = 20


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three of the `known` names that look like `name`, the most alike first. Case is no difference."""
    by_key: dict[str, str] = {}
    for candidate in sorted(known):
        by_key.setdefault(candidate.casefold(), candidate)
    return [by_key[key] for key in get_close_matches(name[:_MAX_NAME].casefold(), by_key, n=3)]


def unknown_tool_message(name: str, known: Iterable[str]) -> str:
    """Return an answer that the model can act on: the near names, or all of them while they are few."""
    names = sorted(known)
    if not names:
        hint = "There are no tools now: answer without one."
    elif near := near_names(name, names):
        hint = f"Did you mean {' or '.join(near)}?"
    else:
        more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
        hint = f"The tools are: {', '.join(names[:_MAX_LISTED])}{more}."
    short = name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}..."
    return f"There is no tool named {sound(short)!r}, so nothing was run. {hint}"
