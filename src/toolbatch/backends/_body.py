"""Running a tool's function here, whatever kind of function it is."""

import inspect
from collections.abc import AsyncGenerator, Callable
from typing import Any

from toolbatch.core import EncodingError, encode
from toolbatch.ports import CallNote

__all__ = ["as_text", "finish", "is_unfinished"]


def is_unfinished(value: object) -> bool:
    """Whether what a function has returned must still be run in a loop: it is awaitable, or an async generator."""
    try:
        return inspect.isawaitable(value) or inspect.isasyncgen(value)
    except Exception:  # noqa: BLE001  a value may be anything at all
        return False


async def finish(value: Any, say: Callable[[CallNote], None]) -> Any:
    """Return what a function's value comes to: awaited, or drained with every item but the last as progress (FIELD 42)."""
    if not is_unfinished(value):
        return value
    return await (_drained(value, say) if inspect.isasyncgen(value) else value)


async def _drained(items: AsyncGenerator[Any, Any], say: Callable[[CallNote], None]) -> Any:
    seen: list[Any] = []
    try:
        async for item in items:
            if seen:
                note = _progress(seen.pop())
                if note is not None:
                    say(note)
            seen.append(item)
    finally:
        await items.aclose()
    return seen.pop() if seen else None


def _progress(content: Any) -> CallNote | None:
    """Return the note of a tool's progress, or `None` where that has no text."""
    try:
        return CallNote("progress", (as_text(content),))
    except EncodingError:
        return None


def as_text(content: Any) -> str:
    """Return content as the text that is sent: a `str` as it is, anything else as JSON.

    Raises:
        EncodingError: It has no JSON form.
    """
    return content if isinstance(content, str) else encode(content)
