"""Lanes in which every result is a message of its own: Chat Completions, Responses, LangChain."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from ._lane import Lane
from ._plan import Note, Plan
from ._turns import NOWHERE, Turn

__all__ = ["MessageLane", "spliced"]


def spliced(messages: Sequence[Any], puts: dict[int, list[Any]], replaced: dict[int, list[Any]]) -> list[Any]:
    """Return `messages` with some replaced and others put in.

    Args:
        messages: The list, which stays as it is.
        puts: What to put in front of the message at an index; the length of the list is its end.
        replaced: What stands for the message at an index: nothing, or one or more messages.
    """
    view: list[Any] = []
    done = 0
    for index in sorted({*puts, *replaced}):
        view += messages[done:index]
        view += puts.get(index, ())
        done = index
        if index in replaced:
            view += replaced[index]
            done = index + 1
    view += messages[done:]
    return view


class MessageLane(Lane):
    """What these lanes share: how a plan is carried out."""

    @abstractmethod
    def mended(self, messages: Sequence[Any], turn: Turn) -> dict[int, list[Any]]:
        """Return what stands for a turn's messages, by index, with its calls last and each id once."""

    @abstractmethod
    def is_result(self, message: Any) -> bool:
        """Whether a message is a result."""

    @abstractmethod
    def note(self, messages: Sequence[Any], notes: Sequence[Note]) -> Any:
        """Return a user message that tells of late results."""

    def apply(self, messages: Sequence[Any], plan: Plan) -> list[Any]:
        puts: dict[int, list[Any]] = {}
        replaced: dict[int, list[Any]] = {position: [] for position, _ in plan.taken}
        for turn in plan.turns:
            replaced |= self.mended(messages, turn)
        for batch in plan.batches:
            puts.setdefault(batch.at, []).extend(batch.answers)
        for (position, _), result in plan.in_place.items():
            replaced[position] = [result]
        for position, notes in _placed(messages, plan.notes, self.is_result).items():
            puts.setdefault(position, []).append(self.note(messages, notes))
        return spliced(messages, puts, replaced)


def _placed(messages: Sequence[Any], notes: Sequence[Note], is_result: Callable[[Any], bool]) -> dict[int, list[Note]]:
    """Return notes by where they go: where the result stood, or behind the run of another turn's results that it is in."""
    placed: dict[int, list[Note]] = {}
    ends: dict[int, int] = {}
    for note in notes:
        position, run = note.result.position, note.result.run
        if run != NOWHERE:
            if run not in ends:
                ends[run] = _end_of_run(messages, position, is_result)
            position = ends[run]
        placed.setdefault(position, []).append(note)
    return placed


def _end_of_run(messages: Sequence[Any], position: int, is_result: Callable[[Any], bool]) -> int:
    """Return the index behind the results that stand one behind the other from `position` on."""
    while position < len(messages) and is_result(messages[position]):
        position += 1
    return position
