"""What the law asks of a lane."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from ._matching import Matching
from ._plan import Close, Plan
from ._turns import Call, Result, Sources

__all__ = ["Lane"]


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

    def sources(self, messages: Sequence[Any]) -> Sources:
        """Return the way to what `read` tells of, in these messages."""
        return Sources(self.flat, partial(self.call_at, messages), partial(self.result_at, messages))

    def only(self, results: Sequence[Result]) -> Any:
        """Return one result: the very object if there is one, else all folded."""
        return results[0].source if len(results) == 1 else self.fold(results)
