"""Folding: several results of one call become one, and nothing that was recorded is withheld (L2)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._read import changed, fields
from ._texts import joiner, separator, written

__all__ = ["folded", "joined"]


def joined(contents: Sequence[Any], failures: Sequence[bool], part: Callable[[str], Any]) -> str | list[Any]:
    """Return several contents as one: a text if all are texts, else a list of parts in order.

    Args:
        contents: Texts, lists of parts, or nothing.
        failures: Which of them carry the lane's error mark.
        part: How the lane writes a text as a part.
    """
    mixed = any(failures) and not all(failures)
    between = [separator(failed=failed, mixed=mixed) for failed in failures]
    if all(isinstance(content, str) or content is None for content in contents):
        text = contents[0] or ""
        for content, words in zip(contents[1:], between[1:], strict=True):
            text += joiner(words) + (content or "")
        return text
    parts: list[Any] = []
    for position, (content, words) in enumerate(zip(contents, between, strict=True)):
        if position:
            parts.append(part(words))
        if isinstance(content, (list, tuple)):
            parts += content
        elif content:  # no lane takes a blank part of text
            parts.append(part(written(content)))
    return parts


def folded(results: Sequence[Any], key: str, content: object, updates: Mapping[str, object] | None = None) -> Any:
    """Return the first result with the folded content, and with the members that only later ones have.

    Args:
        results: The results, in order.
        key: The member that holds the content.
        content: The folded content.
        updates: Other members to set: the error mark.
    """
    more: dict[str, object] = {}
    for later in results[1:]:
        for name, value in fields(later).items():
            if name not in fields(results[0]) and name not in more:
                more[name] = value
    return changed(results[0], {**more, key: content, **(updates or {})})
