"""The one pass: which result answers which call.

A lane reads its messages from first to last and tells a `Matching` of each turn that announces calls (`turn`, `call`) and of
each result (`answer`). Both are decided at once, from what stood before, so the pass is linear and never looks back:

- a result belongs to the *nearest earlier* turn that emitted its id (L3): the table of ids holds each id's latest call;
- it is *at home* if nothing but results stands between that turn and it. The lane knows where that run of results ends,
  and says so with every result.

`check` and `repair` read the same `Matching`, so they never disagree.

Nearly all turns of nearly all transcripts are lawful, and of those nobody asks anything. So the pass writes numbers into
columns; `Turn`, `Call` and `Result` are made afterwards, of the turns in which something is wrong. (An object a call and a
result costs three times as much, and the garbage collector then makes long lists dearer still: it is not linear.)
"""

from collections.abc import Hashable, Iterator
from typing import Any, Final, Protocol

__all__ = ["NOWHERE", "Call", "Matching", "Result", "Sources", "Turn"]

NOWHERE: Final = -1
"""No turn: something else than a result stood between, or there has been none."""


class Turn:
    """What announces calls: an assistant message, or in Responses a run of items made by the model.

    Attributes:
        number: Its number in the transcript.
        position: The index of its (first) message.
        end: The index behind its (last) message: where its results belong.
        calls: Its calls, each id once.
        repeats: Later calls that carry an id of this turn again.
        tidy: Whether nothing that may be moved stands behind a call.
    """

    __slots__ = ("calls", "end", "number", "position", "repeats", "tidy")

    def __init__(self, number: int, position: int, end: int, *, tidy: bool) -> None:
        self.number = number
        self.position = position
        self.end = end
        self.calls: list[Call] = []
        self.repeats: list[Call] = []
        self.tidy = tidy


class Sources(Protocol):
    """Where a lane finds what it told the matching of.

    Attributes:
        flat: Whether a call is a message of its own, so that its index is its position.
    """

    flat: bool

    def call_at(self, position: int, index: int) -> Any:
        """Return a call as it stands in its message."""

    def result_at(self, position: int, index: int) -> Any:
        """Return a result as it stands."""


class Result:
    """One recorded result.

    Attributes:
        key: The id that it carries.
        name: The tool's name, where the lane pairs by it.
        position: The index of its message.
        index: Its place within the message.
        run: The number of the turn that it follows with nothing but results between, or `NOWHERE`.
    """

    __slots__ = ("_sources", "index", "key", "name", "position", "run")

    def __init__(self, key: Hashable, name: Hashable, position: int, index: int, run: int, sources: Sources) -> None:
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
        return _label(self.key, self.name)


class Call:
    """One announced call.

    Attributes:
        key: Its id, or `None` where it has none and is paired by name and order.
        name: What results without an id may find it by; `None` where only the id counts.
        position: The index of its message.
        index: Its place within the message.
        required: Whether it must be answered at once. An asynchronous call may be answered later (LANES 2).
        places: Where its results stand, in the order in which they were recorded: position, index and run of each.
    """

    __slots__ = ("_results", "_sources", "index", "key", "name", "places", "position", "required")

    def __init__(self, key: Hashable, name: Hashable, position: int, index: int, sources: Sources) -> None:
        self.key = key
        self.name = name
        self.position = position
        self.index = index
        self.required = True
        self.places: list[tuple[int, int, int]] = []
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
        return _label(self.key, self.name)


def _label(key: Hashable, name: Hashable) -> str:
    """Return an id, or the tool's name where there is none."""
    if key is not None:
        return str(key)
    return name if isinstance(name, str) else ""


class Matching:
    """What the pass found, in the order of the transcript.

    Attributes:
        run: The number of the turn whose results could still follow the last message without a gap.
        tail: The number of the turn behind which there is nothing but results: while it has open calls, it can still be
            executed.
        opaque: Whether part of the context is on the server, so that an orphan may answer a call that is not seen (L7).
        border: How many messages were sent already: no turn goes on across it.
        orphans: Results that answer no earlier call: their key, name, position and index.
    """

    def __init__(self, *, opaque: bool = False, border: int = 0) -> None:
        self.run = self.tail = NOWHERE
        self.opaque = opaque
        self.border = border
        self.orphans: list[tuple[Hashable, Hashable, int, int]] = []
        # One entry a turn.
        self._positions: list[int] = []
        self._first_calls: list[int] = []
        # One entry a call: its id, its turn, its place there, and the position of its first result.
        self._keys: list[Hashable] = []
        self._turns: list[int] = []
        self._indices: list[int] = []
        self._firsts: list[int] = []
        # What only some turns and calls have: the first result's index where it is not 0, its run where it is not home, ...
        self._first_indices: dict[int, int] = {}
        self._strays: dict[int, int] = {}
        self._more: dict[int, list[tuple[int, int, int]]] = {}
        self._ends: dict[int, int] = {}
        self._untidy: set[int] = set()
        self._faulty: set[int] = set()
        self._repeats: set[int] = set()
        self._optional: set[int] = set()
        self._names: dict[int, Hashable] = {}
        # Where results look for their calls.
        self._latest: dict[Hashable, int] = {}
        self._named: dict[Hashable, _Queue] = {}
        self._loose: dict[Hashable, _Queue] = {}

    def turn(self, position: int) -> int:
        """Take a turn, and return its number. Its calls follow, one by one."""
        number = len(self._positions)
        self._positions.append(position)
        self._first_calls.append(len(self._keys))
        return number

    def call(self, turn: int, key: Hashable, index: int, name: Hashable = None, *, required: bool = True) -> None:
        """Take a call of the turn that was taken last."""
        call = len(self._keys)
        self._keys.append(key)
        self._turns.append(turn)
        self._indices.append(index)
        self._firsts.append(NOWHERE)
        if key is not None:
            known = self._latest.get(key, NOWHERE)
            if known >= 0 and self._turns[known] == turn:
                self._repeats.add(call)
                self._faulty.add(turn)
                return
            self._latest[key] = call
        if not required:
            self._optional.add(call)
        if key is None or name is not None:
            self._names[call] = name
            self._by_name(call, turn, name, loose=key is None)

    def untidy(self, turn: int) -> None:
        """Say that something which may be moved stands behind a call of the turn."""
        self._untidy.add(turn)

    def end(self, turn: int, position: int) -> None:
        """Say that a turn goes on to the message in front of `position`."""
        self._ends[turn] = position

    def answer(self, key: Hashable, position: int, index: int, run: int, name: Hashable = None) -> None:
        """Take a result, and find the call that it answers."""
        call = self._latest.get(key, NOWHERE) if key is not None else NOWHERE
        if call < 0:
            call = self._by_order(key, name)
            if call < 0:
                self.orphans.append((key, name, position, index))
                return
        turn = self._turns[call]
        if self._firsts[call] >= 0:
            self._more.setdefault(call, []).append((position, index, run))
            self._faulty.add(turn)
            return
        self._firsts[call] = position
        if index:
            self._first_indices[call] = index
        if run != turn:
            self._strays[call] = run
            if call not in self._optional:
                self._faulty.add(turn)

    def position_of(self, turn: int) -> int | None:
        """Return the index of a turn's message; `None` for `NOWHERE`."""
        return None if turn < 0 else self._positions[turn]

    def is_latest(self, call: Call) -> bool:
        """Whether a result at the end of what was read would answer this call, and not a later one with its id."""
        known = self._latest.get(call.key)
        return known is not None and self._indices[known] == call.index

    def faulty_turns(self, sources: Sources) -> Iterator[Turn]:
        """Yield the turns in which something is wrong, each made when it is asked for."""
        numbers = self._faulty | self._untidy
        firsts, start = self._firsts, 0
        while True:  # `index` looks through a column at C's speed; nearly always there is nothing to find
            try:
                start = firsts.index(NOWHERE, start)
            except ValueError:
                break
            if start not in self._optional:
                numbers.add(self._turns[start])
            start += 1
        return (self._made_turn(number, sources) for number in sorted(numbers))

    def all_turns(self, sources: Sources) -> list[Turn]:
        """Return every turn."""
        return [self._made_turn(number, sources) for number in range(len(self._positions))]

    def orphan_results(self, sources: Sources) -> list[Result]:
        """Return the results that answer no earlier call, in the order of the transcript."""
        return [Result(key, name, position, index, NOWHERE, sources) for key, name, position, index in self.orphans]

    def _made_turn(self, number: int, sources: Sources) -> Turn:
        place = self._positions[number]
        turn = Turn(number, place, self._ends.get(number, place + 1), tidy=number not in self._untidy)
        stop = self._first_calls[number + 1] if number + 1 < len(self._first_calls) else len(self._keys)
        for entry in range(self._first_calls[number], stop):
            index = self._indices[entry]
            call = Call(self._keys[entry], self._names.get(entry), index if sources.flat else place, index, sources)
            if entry in self._repeats:
                turn.repeats.append(call)
                continue
            turn.calls.append(call)
            call.required = entry not in self._optional
            if self._firsts[entry] >= 0:
                first = (self._firsts[entry], self._first_indices.get(entry, 0), self._strays.get(entry, number))
                call.places = [first, *self._more.get(entry, ())]
        return turn

    def _by_name(self, call: int, turn: int, name: Hashable, *, loose: bool) -> None:
        """Let results without an id find a call: by name, among those of the nearest earlier turn that has the name."""
        for table in (self._named, self._loose) if loose else (self._named,):
            queue = table.get(name)
            if queue is None or queue.turn != turn:
                table[name] = _Queue(turn, call)
            else:
                queue.calls.append(call)

    def _by_order(self, key: Hashable, name: Hashable) -> int:
        """Pair a result that has no id, or an id that no call has, by name and order.

        One without an id answers the first call of its name that waits, or else the last one again. One with an id can
        only be for a call without, and only for one that waits: ids that differ are different calls.
        """
        queue = (self._named if key is None else self._loose).get(name)
        if queue is None:
            return NOWHERE
        waiting = queue.waiting(self._firsts)
        return queue.calls[-1] if waiting < 0 and key is None else waiting


class _Queue:
    """Calls of one turn and one name, in order."""

    __slots__ = ("_next", "calls", "turn")

    def __init__(self, turn: int, call: int) -> None:
        self.turn = turn
        self.calls = [call]
        self._next = 0

    def waiting(self, firsts: list[int]) -> int:
        """Return the first call without a result. Answered ones are passed once in all, so the pass stays linear."""
        calls = self.calls
        while self._next < len(calls) and firsts[calls[self._next]] >= 0:
            self._next += 1
        return calls[self._next] if self._next < len(calls) else NOWHERE
