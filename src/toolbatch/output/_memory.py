"""A spill store in this process's memory (G3)."""

import threading
from typing import final

from toolbatch.ports import SpillRecord, SpillSlice

from ._locators import new_locator, require_range, require_save, require_size, retrieval

__all__ = ["MemorySpillStore"]


@final
class MemorySpillStore:
    """Keeps texts in memory, the newest ones: when there are too many, or they are too long together, the oldest go first.

    One text that is longer than all that is allowed is kept all the same, alone, until the next one comes: the model has been told
    where it is. Another process, a forked child's included, doesn't see what is saved after it was made. May be used from
    several threads and event loops.

    A locator is 70 random bits: whoever hasn't been shown it can't find it by counting up or trying. Whoever has been, by
    whatever way, can read that text; where conversations must be kept apart even then, give each a store of its own.

    Args:
        max_entries: Texts kept.
        max_chars: Characters kept, all texts together.

    Raises:
        InvalidInputError: A bound is less than 1.
        InvalidTypeError: A bound is no int.
    """

    def __init__(self, *, max_entries: int = 64, max_chars: int = 32_000_000) -> None:
        require_size(max_entries, "max_entries")
        require_size(max_chars, "max_chars")
        self._max_entries = max_entries
        self._max_chars = max_chars
        self._texts: dict[str, str] = {}  # in the order in which they came
        self._held = 0  # invariant: characters in all of them
        self._lock = threading.Lock()

    async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
        """Save a text, as `SpillStore.save` promises.

        Raises:
            InvalidTypeError: A value is no text.
        """
        text = require_save(text, tool_name, call_id)
        with self._lock:
            self._make_room(len(text))
            locator = new_locator()
            self._texts[locator] = text
            self._held += len(text)
        return SpillRecord(locator=locator, total_chars=len(text), retrieval=retrieval(locator))

    async def read(self, locator: str, *, offset: int, limit: int) -> SpillSlice | None:
        """Read a piece of a text, as `SpillStore.read` promises.

        Raises:
            InvalidInputError: `offset` is negative, or `limit` less than 1.
            InvalidTypeError: A value is of a wrong type.
        """
        require_range(locator, offset, limit)
        text = self._texts.get(locator)
        if text is None:
            return None
        start = min(offset, len(text))
        return SpillSlice(text=text[start : start + limit], offset=start, total_chars=len(text))

    def _make_room(self, chars: int) -> None:
        texts = self._texts
        while texts and (len(texts) >= self._max_entries or self._held + chars > self._max_chars):
            self._held -= len(texts.pop(next(iter(texts))))

    def __repr__(self) -> str:
        return f"<MemorySpillStore of {len(self._texts)} texts, {self._held:,} characters>"
