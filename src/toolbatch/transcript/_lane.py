"""What the law asks of a lane."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from ._matching import Call, Matching, Result
from ._plan import Close, Plan

__all__ = ["Lane", "Located"]


class Lane(ABC):
    """One provider's shape of a transcript: read into the neutral view, and written back from a plan.

    Attributes:
        flat: Whether a call is a message of its own, so that its index is its position.
        anywhere: Whether the provider takes a result that does not stand right behind its turn.
    """

    flat: ClassVar[bool] = False

    anywhere: ClassVar[bool] = False

    @abstractmethod
    def read(self, messages: Sequence[Any], seen: Matching) -> None:
        """Tell `seen` of every turn and every result, in order.

        Raises:
            InvalidTypeError: A message is no message in any lane.
        """

    @abstractmethod
    def call_at(self, messages: Sequence[Any], position: int, index: int) -> Any:
        """Return a call as it stands in its message."""

    def result_at(self, messages: Sequence[Any], position: int, index: int) -> Any:  # noqa: ARG002  a result may be a block
        """Return a result as it stands in the messages."""
        return messages[position]

    @abstractmethod
    def is_close(self, result: Result) -> bool:
        """Whether a result is an interrupted close that the law wrote earlier."""

    @abstractmethod
    def name(self, call: Call) -> str:
        """Return the name of the tool that a call calls."""

    @abstractmethod
    def answer(self, messages: Sequence[Any], call: Call, close: Close) -> Any:
        """Return a new result for a call, in the lane's shape."""

    @abstractmethod
    def fold(self, results: Sequence[Result]) -> Any:
        """Return one result with the content of several."""

    @abstractmethod
    def apply(self, messages: Sequence[Any], plan: Plan) -> list[Any]:
        """Return the messages with the plan carried out. What the plan does not name keeps its identity."""

    def loses(self, results: Sequence[Result]) -> bool:  # noqa: ARG002  most lanes lose nothing
        """Whether folding these results leaves content out, because the lane's shape has room for one."""
        return False

    def only(self, results: Sequence[Result]) -> Any:
        """Return one result: the very object if there is one, else all folded."""
        return results[0].source if len(results) == 1 else self.fold(results)


class Located:
    """A lane's way to what it told a matching of, in one list of messages (`_matching.Sources`)."""

    __slots__ = ("_lane", "_messages", "flat")

    def __init__(self, lane: Lane, messages: Sequence[Any]) -> None:
        self._lane = lane
        self.flat = lane.flat
        self._messages = messages

    def call_at(self, position: int, index: int) -> Any:
        return self._lane.call_at(self._messages, position, index)

    def result_at(self, position: int, index: int) -> Any:
        return self._lane.result_at(self._messages, position, index)
