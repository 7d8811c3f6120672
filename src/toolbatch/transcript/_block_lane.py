"""Lanes in which calls and results are blocks of messages: Anthropic, Bedrock, Gemini."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from ._lane import Lane
from ._message_lane import spliced
from ._plan import Batch, Note, Plan
from ._read import changed, field, fields
from ._segments import arranged
from ._turns import Result

__all__ = ["BlockLane"]


class BlockLane(Lane):
    """What these lanes share: how a plan is carried out.

    Attributes:
        key: The member that holds a message's blocks.
        leads: Whether results stand at the head of the next user message, if there is one; else they have one of their own.
        alone: Whether a message with results that is written anew holds nothing else.
    """

    key: ClassVar[str] = "content"
    leads: ClassVar[bool] = True
    alone: ClassVar[bool] = False

    @abstractmethod
    def kind(self, block: Any) -> str:
        """Return what a block of an assistant message is for the order of calls (`_segments.Kind`)."""

    @abstractmethod
    def is_result(self, block: Any) -> bool:
        """Whether a block is a client's result."""

    @abstractmethod
    def text(self, text: str) -> Any:
        """Return a block of text."""

    @abstractmethod
    def told(self, notes: Sequence[Note]) -> list[Any]:
        """Return blocks that tell of late results."""

    def call_at(self, messages: Sequence[Any], position: int, index: int) -> Any:
        return field(messages[position], self.key)[index]

    def result_at(self, messages: Sequence[Any], position: int, index: int) -> Any:
        return field(messages[position], self.key)[index]

    def blocks(self, message: Any) -> list[Any]:
        """Return a message's blocks. Text alone is one block, if it is not blank."""
        content = field(message, self.key)
        if isinstance(content, str):
            return [self.text(content)] if content else []
        return list(content) if isinstance(content, (list, tuple)) else []

    def is_user(self, message: Any) -> bool:
        """Whether results may lead this message."""
        return bool(field(message, "role") == "user")

    def filled(self, message: Any, blocks: list[Any]) -> Any:
        """Return a copy of a message that holds these blocks instead."""
        return changed(message, {self.key: blocks})

    def made(self, sample: Any, blocks: list[Any]) -> Any:  # noqa: ARG002  a lane of objects makes one like the sample
        """Return a new user message."""
        return {"role": "user", self.key: blocks}

    def apply(self, messages: Sequence[Any], plan: Plan) -> list[Any]:
        work = _Work(plan)
        puts: dict[int, list[Any]] = {}
        replaced: dict[int, list[Any]] = {}
        for turn in plan.turns:
            message, again = messages[turn.position], {call.index for call in turn.repeats}
            blocks = arranged(self.blocks(message), self.kind, again)
            replaced[turn.position] = [self.filled(message, blocks)]
        for batch in plan.batches:
            blocks = batch.answers
            if not blocks:
                continue
            if self.leads and batch.at < len(messages) and self.is_user(messages[batch.at]):
                work.heads[batch.at] = blocks
            else:
                puts[batch.at] = [self._own_message(messages, batch, blocks, work)]
        for position in {*work.taken, *work.heads}:
            replaced[position] = self._user_message(messages[position], position, work)
        return spliced(messages, puts, replaced)

    def _own_message(self, messages: Sequence[Any], batch: Batch, blocks: list[Any], work: "_Work") -> Any:
        """Return a message with results alone: the one that they all came in, a copy of it, or a new one."""
        for position, _ in batch.places:
            if position in work.used or position in work.noted:
                continue
            shell, taken = messages[position], work.taken.get(position, ())
            held = self.blocks(shell)
            if all(index in taken or self.kind(block) == "marker" for index, block in enumerate(held)):
                work.used.add(position)
                if len(held) == len(blocks) and all(map(_same, held, blocks)):
                    return shell
                return self.filled(shell, blocks)
        return self.made(messages[batch.position], blocks)

    def _user_message(self, message: Any, position: int, work: "_Work") -> list[Any]:
        """Return what stands for a message that loses results, or gets some: results first, then the rest in its order."""
        taken = work.taken.get(position, ())
        held = self.blocks(message)
        results: list[Any] = list(work.heads.get(position, ()))
        rest: list[Any] = []
        for index, block in enumerate(held):
            notes = work.notes.get((position, index))
            if notes:
                rest += self.told(notes)
            elif index in taken:
                continue
            elif self.is_result(block):
                results.append(block)
            else:
                rest.append(block)
        if not results and all(self.kind(block) == "marker" for block in rest):
            return []  # all that it held has gone elsewhere; a marker alone is no message
        if self.alone and results and rest:
            return [self.made(message, results), self.filled(message, rest)]
        blocks = results + rest
        if len(held) == len(blocks) and all(map(_same, held, blocks)):
            return [message]
        return [self.filled(message, blocks)]

    def kept_members(self, sources: Sequence[Any]) -> dict[str, object]:
        """Return members of later blocks that the first one does not have."""
        more: dict[str, object] = {}
        for later in sources[1:]:
            more.update({name: value for name, value in fields(later).items() if name not in fields(sources[0])})
        return more


class _Work:
    """What is taken from where, while a plan is carried out."""

    __slots__ = ("heads", "noted", "notes", "taken", "used")

    def __init__(self, plan: Plan) -> None:
        self.taken: dict[int, set[int]] = {}
        self.notes: dict[tuple[int, int], list[Note]] = {}
        self.heads: dict[int, list[Any]] = {}
        self.used: set[int] = set()
        for position, index in plan.taken:
            self.taken.setdefault(position, set()).add(index)
        for note in plan.notes:
            self.notes.setdefault(_place(note.result), []).append(note)
        self.noted = {position for position, _ in self.notes}


def _place(result: Result) -> tuple[int, int]:
    return result.position, result.index


def _same(one: object, other: object) -> bool:
    return one is other
