"""Where the whole text of a result goes that is too long to be shown, and how it is read back (G3)."""

from dataclasses import dataclass
from typing import Protocol

__all__ = ["SpillRecord", "SpillSlice", "SpillStore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillRecord:
    """A text that was saved.

    Attributes:
        locator: By which it is read. The model sees it and copies it out, so it is short: 1 to 128 characters of printable
            ASCII, without blanks and quotation marks.
        total_chars: The text's length in characters (code points).
        retrieval: One sentence that tells the model how to get the rest. The store writes it, since only the store knows
            what its locators are. At most 500 characters.
    """

    locator: str
    total_chars: int
    retrieval: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillSlice:
    """A piece of a saved text.

    Attributes:
        text: The characters, as they were saved.
        offset: Where the piece begins, in characters.
        total_chars: The whole text's length in characters.
    """

    text: str
    offset: int
    total_chars: int


class SpillStore(Protocol):
    """Keeps whole texts for a while. `testing.check_spill_store` checks that a store keeps these promises.

    Offsets and lengths are in characters: code points, as `len` of a `str` counts them. Methods never block the event loop,
    may be called at the same time, and end at once when they are cancelled.

    A locator is all that is needed to read a text, so it must not be possible to find one by trying: not by counting up, and not
    from another locator.
    """

    async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
        """Save a text. The whole of it can be read from the moment this returns, until the store lets go of it.

        Every text may be saved, lone surrogates and NUL included, and is given back as it was. Each save has a locator of its
        own, for the same text too, and no locator is ever used again. A text that is longer than all that the store keeps is
        kept all the same, until the next one: the model is about to be told where it is.

        Args:
            text: What to save.
            tool_name: Of the call, for the host's eyes.
            call_id: Likewise.

        Raises:
            Exception: It could not be saved. The model is then shown a text without a locator (G1).
        """
        ...

    async def read(self, locator: str, *, offset: int, limit: int) -> SpillSlice | None:
        """Read a piece of a saved text.

        Args:
            locator: Any text at all: models invent some.
            offset: Where to begin, at least 0. Past the end it is the end, and the piece is empty.
            limit: At most so many characters, at least 1. Fewer come at the end only.

        Returns:
            The piece, or `None` where there is no such text, or not any more.

        Raises:
            Exception: The store can't be read now.
        """
        ...
