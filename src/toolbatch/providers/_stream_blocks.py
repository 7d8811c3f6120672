"""What the streams of blocks share: blocks that open, are filled, and close (Anthropic, Bedrock)."""

from io import StringIO
from typing import Any, Final

from ._stream import DEFAULT_MAX_CHARS, Collector, text_of_buffer, weight

__all__ = ["Block", "BlockCollector", "asks_for_tools"]

_BLOCK: Final = 1024  # what a block weighs beside its text


class Block:
    """A content block that is being put together.

    Attributes:
        fields: Its members as they came at its start, or were said since, without those that are buffers.
        buffers: What its deltas go on with, by name; `input` is the text of JSON.
        position: Which of the calls it is; `None` if it is none.
        is_closed: Whether its end has come.
    """

    __slots__ = ("buffers", "fields", "is_closed", "position")

    def __init__(self, fields: dict[str, Any], position: int | None) -> None:
        self.fields = fields
        self.buffers: dict[str, StringIO] = {}
        self.position = position
        self.is_closed = False

    def text(self, name: str) -> str:
        """Return what was written to a buffer; nothing where there is none."""
        buffer = self.buffers.get(name)
        return "" if buffer is None else text_of_buffer(buffer)


class BlockCollector(Collector):
    """A stream of blocks. What the lane's own class says of the options goes for both lanes."""

    def __init__(self, *, max_chars: int = DEFAULT_MAX_CHARS) -> None:
        super().__init__(max_chars=max_chars)
        self._blocks: list[Block] = []
        self._uses: list[Block] = []
        self._at: dict[int | str, Block] = {}

    def _open(self, index: object, fields: dict[str, Any], *, is_call: bool = False) -> Block:
        """Begin a block, also where another one has that index: that one is over then, as far as deltas go."""
        self._grow(_BLOCK + weight(fields))
        if self._uses:
            self._end_call(self._uses[-1])  # the model has gone on
        block = Block(fields, len(self._uses) if is_call else None)
        self._blocks.append(block)
        if is_call:
            self._uses.append(block)
        if isinstance(index, (int, str)):
            self._at[index] = block
        return block

    def _begun(self, index: object, fields: dict[str, Any], lost: dict[str, Any], call_id: object) -> Block | None:
        """Return the call whose start this is, where it comes behind its first delta, or twice; `None` where it begins one.

        Taken for another call, the first would be one without input, and would be run.

        Args:
            index: The block's index.
            fields: Its members.
            lost: What a call has whose start has not come.
            call_id: The call's id.
        """
        block = self._at.get(index) if isinstance(index, (int, str)) else None
        if block is None or block.position is None:
            return None
        if block.fields == lost and not self._unchanged(block.position, None):
            self._grow(weight(fields))
            block.fields |= fields
            return block
        is_twice = bool(call_id) and block.fields == fields and not (block.buffers or block.is_closed)
        return block if is_twice else None

    def _find(self, index: object) -> Block | None:
        """Return the block that an event is about: the last one, where it does not say."""
        if isinstance(index, (int, str)):
            return self._at.get(index)
        return self._blocks[-1] if self._blocks else None

    def _write(self, block: Block, name: str, text: object) -> None:
        """Add a delta's text to one of a block's buffers."""
        if isinstance(text, str) and not self._unchanged(block.position, text):
            self._grow(len(text))
            block.buffers.setdefault(name, StringIO()).write(text)

    def _close(self, index: object) -> None:
        """Take note of a block's end."""
        block = self._find(index)
        if block is not None:
            block.is_closed = True
            self._end_call(block)

    def _end_call(self, block: Block) -> None:
        if block.position is not None:
            self._end([block.position])


def asks_for_tools(reason: object) -> bool:
    """Whether a response with this stop reason waits for its calls to be run: only one does."""
    return reason == "tool_use"
