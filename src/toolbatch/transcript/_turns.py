"""What a matching found, as objects: turns, their calls, and the results of these. Made of what is faulty, on demand."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from toolbatch.core import preview

__all__ = ["NOWHERE", "Call", "Key", "Place", "Result", "Sources", "Turn", "label_of"]

NOWHERE: Final = -1
"""No turn: something else than a result stood between, or there has been none."""


Key = str | int | None
"""A wire id; `None` where there is none to pair by."""

Place = tuple[int, int, int]
"""Where a result stands: the index of its message, its place within it, and the number of the turn that it follows with nothing
but results between, or `NOWHERE`."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a lane finds what it told a matching of.

    Attributes:
        flat: Whether a call is a message of its own, so that its index is its position.
        call_at: From a call's position and index to the call as it stands in its message.
        result_at: From a result's position and index to the result as it stands.
    """

    flat: bool
    call_at: Callable[[int, int], Any]
    result_at: Callable[[int, int], Any]


def label_of(key: Key, name: str) -> str:
    """Return what reports name a call or a result by: its id, or the tool's name where there is none."""
    if key is None:
        return name
    return key if isinstance(key, str) else preview(key)


class Result:
    """One recorded result.

    Attributes:
        key: The id that it carries.
        name: The tool's name, where the lane pairs by it; else empty.
        position: The index of its message.
        index: Its place within the message.
        run: The number of the turn that it follows with nothing but results between, or `NOWHERE`.
    """

    __slots__ = ("_sources", "index", "key", "name", "position", "run")

    def __init__(self, key: Key, name: str, position: int, index: int, run: int, sources: Sources) -> None:
        self.key = key
        self.name = name
        self.position = position
        self.index = index
        self.run = run
        self._sources = sources

    @property
    def source(self) -> Any:
        """The result as it stands: a message, an item or a block."""
        return self._sources.result_at(self.position, self.index)

    @property
    def label(self) -> str:
        """What reports name it by."""
        return label_of(self.key, self.name)


class Call:
    """One announced call.

    Attributes:
        key: Its id, or `None` where it has none and is paired by name and order.
        name: What results without an id may find it by; empty where only the id counts.
        position: The index of its message.
        index: Its place within the message.
        required: Whether it must be answered at once. An asynchronous call may be answered later (LANES 2).
        places: Where its results stand, in the order in which they were recorded.
    """

    __slots__ = ("_results", "_sources", "index", "key", "name", "places", "position", "required")

    def __init__(self, key: Key, name: str, position: int, index: int, sources: Sources) -> None:
        self.key = key
        self.name = name
        self.position = position
        self.index = index
        self.required = True
        self.places: list[Place] = []
        self._results: list[Result] | None = None
        self._sources = sources

    @property
    def results(self) -> list[Result]:
        """Its results, in the order in which they were recorded."""
        if self._results is None:
            self._results = [Result(self.key, self.name, *place, self._sources) for place in self.places]
        return self._results

    @property
    def source(self) -> Any:
        """The call as it stands in the message."""
        return self._sources.call_at(self.position, self.index)

    @property
    def label(self) -> str:
        """What reports name it by."""
        return label_of(self.key, self.name)


class Turn:
    """What announces calls: an assistant message, or in Responses a run of items made by the model.

    Attributes:
        number: Its number in the transcript.
        position: The index of its (first) message.
        end: The index behind its (last) message: where its results belong.
        calls: Its calls, each id once.
        repeats: Later calls that carry an id of this turn again.
    """

    __slots__ = ("calls", "end", "number", "position", "repeats")

    def __init__(self, number: int, position: int, end: int) -> None:
        self.number = number
        self.position = position
        self.end = end
        self.calls: list[Call] = []
        self.repeats: list[Call] = []
