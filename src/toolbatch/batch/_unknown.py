"""What the model reads when it names a tool that is not there (T5)."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["unknown_tool_message"]


def unknown_tool_message(name: str, known: Iterable[str]) -> str:
    """Return an answer that the model can act on: the near names, or all of them while they are few."""
    names = sorted(known)
    near = get_close_matches(name, names, n=3)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"The tools are: {', '.join(names[:20])}."
    return f"There is no tool named {name!r}, so nothing was run. {hint}"
