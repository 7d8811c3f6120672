"""The tool by which a model reads what was saved (G4)."""

from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Annotated, Any, Final, Protocol

from toolbatch.core import InvalidInputError, InvalidTypeError, ToolError, cut, preview, sound
from toolbatch.ports import SpillSlice, SpillStore

from ._locators import require_size
from ._search import INVALID, search

__all__ = ["Reader", "make_reader"]

_MAX_ECHO: Final = 200  # bytes of a locator that isn't one
_PIECE: Final = 1 << 18  # characters that a search asks of the store at a time


class Reader(Protocol):
    """What `make_reader` returns: an async function of the name `read_tool_output`."""

    def __call__(
        self, locator: str, offset: int = ..., limit: int = ..., pattern: str = ...
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """Read or search."""
        ...


def make_reader(
    store: SpillStore, *, default_limit: int = 8000, max_limit: int = 32_000, search_seconds: float = 5.0
) -> Reader:
    """Return the function `read_tool_output`, which reads from a store; `tool(make_reader(store), budget_exempt=True)` is its tool.

    Its results are bounded by themselves, so that they need no budget: a read by `max_limit`, a search by 200 matches, 16,000
    characters and `search_seconds`. A search runs in a process of its own, which is killed when its time is over or the call is
    cancelled; it takes about 30 ms, and as much again for each 3 MB of text.

    Args:
        store: Where the texts are.
        default_limit: Characters of a read that asks for no number.
        max_limit: Characters of one read at most; who asks for more gets so many.
        search_seconds: How long a search may take.

    Raises:
        InvalidInputError: A bound is too small, or the default is over the maximum.
        InvalidTypeError: A bound is no number.
    """
    require_size(default_limit, "default_limit")
    require_size(max_limit, "max_limit")
    if default_limit > max_limit:
        raise InvalidInputError(f"default_limit must be at most max_limit, which {default_limit} > {max_limit} is not")
    if isinstance(search_seconds, bool) or not isinstance(search_seconds, int | float):
        raise InvalidTypeError(f"search_seconds must be a number of seconds, not {preview(search_seconds)}")
    if not 0 < search_seconds < float("inf"):
        raise InvalidInputError(f"search_seconds must be more than 0 and finite, not {search_seconds!r}")

    async def read_tool_output(
        locator: Annotated[str, "The locator printed with the shortened result."],
        offset: Annotated[int, "Character offset to start from; with a pattern, matches before it are left out."] = 0,
        limit: Annotated[int, "Characters to read."] = default_limit,
        pattern: Annotated[str, "Regular expression (Python's), matched against each line; empty to read."] = "",
    ) -> dict[str, Any]:
        """Read or search the full output of an earlier tool call that was too large to show in full.

        Pass the locator from that result. Use offset and limit to page through the text, or a pattern to find matching lines.
        """
        _check(locator, offset, limit, pattern)
        if pattern:
            return await _search(store, locator, offset, pattern, search_seconds)
        return await _read(store, locator, offset, min(limit, max_limit))

    return read_tool_output


class _GoneError(Exception):
    """The text was let go of while it was searched."""


def _check(locator: object, offset: object, limit: object, pattern: object) -> None:
    for value, what in ((locator, "locator"), (pattern, "pattern")):
        if not isinstance(value, str):
            raise ToolError.respond_to_model(f"{what} must be a string, not {preview(value)}.", INVALID)
    for value, what, least in ((offset, "offset", 0), (limit, "limit", 1)):
        if type(value) is not int or value < least:
            raise ToolError.respond_to_model(
                f"{what} must be a whole number of at least {least}, not {preview(value)}.", INVALID
            )


async def _slice(store: SpillStore, locator: str, offset: int, limit: int) -> SpillSlice | None:
    piece = await store.read(locator, offset=offset, limit=limit)
    if piece is None:
        return None
    if not isinstance(piece, SpillSlice) or len(piece.text) > limit:
        raise InvalidTypeError(
            f"a SpillStore's read must return a SpillSlice of at most {limit} characters, not {preview(piece)}"
        )
    if not piece.text and offset < piece.total_chars:
        raise InvalidInputError(f"a SpillStore's read returned nothing at {offset} of {piece.total_chars} characters")
    return piece


async def _read(store: SpillStore, locator: str, offset: int, limit: int) -> dict[str, Any]:
    piece = await _slice(store, locator, offset, limit)
    if piece is None:
        return _unknown(locator)
    end = piece.offset + len(piece.text)
    return {
        "locator": locator,
        "text": sound(piece.text),
        "offset": piece.offset,
        "next_offset": end if end < piece.total_chars else None,
        "total_chars": piece.total_chars,
    }


async def _search(store: SpillStore, locator: str, offset: int, pattern: str, seconds: float) -> dict[str, Any]:
    first = await _slice(store, locator, 0, _PIECE)
    if first is None:
        return _unknown(locator)
    try:
        async with aclosing(_pieces(store, locator, first)) as pieces:
            found = await search(pieces, pattern, start=offset, seconds=seconds)
    except _GoneError:
        return _unknown(locator)
    rest = found.next_offset
    answer: dict[str, Any] = {
        "locator": locator,
        "matches": [match._asdict() for match in found.matches],
        "next_offset": rest if rest is not None and rest < first.total_chars else None,
        "total_chars": first.total_chars,
    }
    if found.is_stopped:
        answer["stopped"] = (
            f"The search was stopped, and the text was not searched from offset {rest} on: this pattern takes more than "
            f"{seconds:g} seconds, or too much memory. Use a simpler one, or go on from that offset."
        )
    return answer


async def _pieces(store: SpillStore, locator: str, first: SpillSlice) -> AsyncGenerator[str, None]:
    piece: SpillSlice | None = first
    offset = 0
    while piece is not None:
        yield piece.text
        offset += len(piece.text)
        if offset >= piece.total_chars:
            return
        piece = await _slice(store, locator, offset, _PIECE)
    raise _GoneError


def _unknown(locator: str) -> dict[str, Any]:
    return {
        "locator": cut(locator, _MAX_ECHO),
        "error": "No saved output has this locator; it may have expired. "
        "If you still need it, run the original call again, more narrowly.",
    }
