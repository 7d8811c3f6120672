"""The one pass: which result answers which call.

A lane reads its messages from first to last and tells a `Matching` of each turn that announces calls (`turn`) and of each
result (`answer`). Both are decided at once, from what stood before, so the pass is linear and never looks back:

- a result belongs to the *nearest earlier* turn that emitted its id (L3): the table of ids holds each id's latest call;
- it is *at home* if nothing but results stands between that turn and it. The lane knows where that run of results ends,
  and says so with every result.

`check` and `repair` read the same `Matching`, so they never disagree.

Nearly all turns of nearly all transcripts are lawful, and of those nobody asks anything. So the pass writes numbers into
columns; `Turn`, `Call` and `Result` are made afterwards, of the turns that are mended. (An object a call and a result costs
three times as much, and the garbage collector then makes long lists dearer still: it is not linear.)
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import zip_longest

from ._turns import NOWHERE, Call, Key, Place, Result, Sources, Turn, label_of

__all__ = ["Matching"]


class Matching:
    """What the pass found, in the order of the transcript. Turns and calls are numbers here, each counted from 0.

    Attributes:
        sources: Where the lane finds what it tells of.
        run: The number of the turn whose results could still follow the last message without a gap.
        tail: The number of the turn behind which there is nothing but results: while it has open calls, it can still be
            executed.
        opaque: Whether part of the context is on the server, so that an orphan may answer a call that is not seen (L7).
        border: How many messages were sent already: no turn goes on across it.
        positions: The index of each turn's (first) message.
        orphans: Results that answer no earlier call.
        untidy: Turns in which something that may be moved stands behind a call.
        repeats: Calls that carry an id of their turn again, by turn.
        strange: Calls whose first result is late, or that have several, by turn; a call may be there more than once.
        optional: Calls that need not be answered at once (LANES 2).
    """

    def __init__(self, sources: Sources, *, opaque: bool = False, border: int = 0) -> None:
        self.sources = sources
        self.run = self.tail = NOWHERE
        self.opaque = opaque
        self.border = border
        self.orphans: list[Result] = []
        self.untidy: set[int] = set()
        self.repeats: dict[int, list[int]] = {}
        self.strange: dict[int, list[int]] = {}
        self.optional: set[int] = set()
        # One entry a turn: the index of its message, and its first call.
        self.positions: list[int] = []
        self._first_calls: list[int] = []
        # One entry a call: its id, and the position of its first result.
        self._keys: list[Key] = []
        self._firsts: list[int] = []
        # What only some turns have: the places of their calls where these are not just counted, the message behind their end.
        self._indices: dict[int, Sequence[int]] = {}
        self._ends: dict[int, int] = {}
        # What only some calls have: their first result's index where it is not 0 and its run where it is not home, the
        # other results, the tool's name.
        self._first_indices: dict[int, int] = {}
        self._strays: dict[int, int] = {}
        self._more: dict[int, list[Place]] = {}
        self._names: dict[int, str] = {}
        # Where results look for their calls, and where the calls of the latest turn begin.
        self._latest: dict[Key, int] = {}
        self._start = 0
        self._named: dict[str, _Queue] = {}
        self._loose: dict[str, _Queue] = {}

    def turn(self, position: int, keys: Sequence[Key], indices: Sequence[int] = (), names: Sequence[str] = ()) -> int:
        """Take a turn with its calls, and return its number.

        Args:
            position: The index of its message.
            keys: The ids of its calls; `None` for one that is paired by name and order.
            indices: The place of each within the message, where they are not just counted from 0.
            names: The tool's name for each, where the lane pairs by it.
        """
        number, start = len(self.positions), len(self._keys)
        self._start = start
        self.positions.append(position)
        self._first_calls.append(start)
        self._keys += keys
        self._firsts += [NOWHERE] * len(keys)
        if indices:
            self._indices[number] = indices
        latest = self._latest
        for call, key in enumerate(keys, start):
            if key is not None:
                known = latest.setdefault(key, call)
                if known < start:
                    latest[key] = call
                elif known < call:
                    self.repeats.setdefault(number, []).append(call)
        if names or None in keys:
            self._name(number, keys, names)
        return number

    def may_wait(self, turn: int, call: int) -> None:
        """Say that one of a turn's calls, by its number there, need not be answered at once."""
        self.optional.add(self._first_calls[turn] + call)

    def end(self, turn: int, position: int) -> None:
        """Say that a turn goes on to the message in front of `position`."""
        self._ends[turn] = position

    def answer(self, key: Key, position: int, index: int, run: int, name: str = "") -> None:
        """Take a result, and find the call that it answers.

        Args:
            key: The id that it carries.
            position: The index of its message.
            index: Its place within the message.
            run: The number of the latest turn if nothing but results stands between it and this one, else `NOWHERE`.
            name: The tool's name, where the lane pairs by it.
        """
        call = self._latest.get(key, NOWHERE)
        if call < 0:
            call = self._by_order(key, name)
            if call < 0:
                self.orphans.append(Result(key, name, position, index, NOWHERE, self.sources))
                return
        firsts = self._firsts
        if firsts[call] >= 0:
            self._more.setdefault(call, []).append((position, index, run))
            self.strange.setdefault(self._turn_of(call), []).append(call)
            return
        firsts[call] = position
        if index:
            self._first_indices[call] = index
        if run < 0 or call < self._start:
            self._strays[call] = run
            if call not in self.optional:
                self.strange.setdefault(self._turn_of(call), []).append(call)

    def is_latest(self, call: Call) -> bool:
        """Whether a result at the end of what was read would answer this call, and not a later one with its id."""
        known = self._latest.get(call.key)
        return known is not None and self.index(self._turn_of(known), known) == call.index

    def unanswered(self) -> dict[int, list[int]]:
        """Return the calls that must be answered at once and are not, in order, by turn."""
        found: dict[int, list[int]] = {}
        excused = self.optional.union(*self.repeats.values())
        firsts, starts, call = self._firsts, self._first_calls, NOWHERE
        while True:  # `index` looks through a column at C's speed; nearly always there is nothing to find
            try:
                call = firsts.index(NOWHERE, call + 1)
            except ValueError:
                return found
            if call not in excused:
                found.setdefault(bisect_right(starts, call) - 1, []).append(call)

    def calls(self, turn: int) -> list[int]:
        """Return a turn's calls, each id once."""
        again = frozenset(self.repeats.get(turn, ()))
        return [call for call in self._all_calls(turn) if call not in again]

    def label(self, call: int) -> str:
        """Return what reports name a call by."""
        key = self._keys[call]
        return key if type(key) is str else label_of(key, self._names.get(call, ""))

    def index(self, turn: int, call: int) -> int:
        """Return the place of a turn's call within its message."""
        place, indices = call - self._first_calls[turn], self._indices.get(turn)
        return place if indices is None else indices[place]

    def places(self, turn: int, call: int) -> list[Place]:
        """Return where the results of a turn's call stand, in the order in which they were recorded."""
        first = self._firsts[call]
        if first < 0:
            return []
        return [(first, self._first_indices.get(call, 0), self._strays.get(call, turn)), *self._more.get(call, ())]

    def results(self, turn: int, call: int) -> list[Result]:
        """Return the results of a turn's call as objects."""
        key, name = self._keys[call], self._names.get(call, "")
        return [Result(key, name, *place, self.sources) for place in self.places(turn, call)]

    def turn_at(self, number: int) -> Turn:
        """Return a turn as an object."""
        position = self.positions[number]
        turn = Turn(number, position, self._ends.get(number, position + 1))
        again = frozenset(self.repeats.get(number, ()))
        for call in self._all_calls(number):
            index = self.index(number, call)
            where = index if self.sources.flat else position
            made = Call(self._keys[call], self._names.get(call, ""), where, index, self.sources)
            if call in again:
                turn.repeats.append(made)
                continue
            turn.calls.append(made)
            made.required = call not in self.optional
            made.places = self.places(number, call)
        return turn

    def all_turns(self) -> list[Turn]:
        """Return every turn."""
        return list(map(self.turn_at, range(len(self.positions))))

    def _turn_of(self, call: int) -> int:
        return bisect_right(self._first_calls, call) - 1

    def _all_calls(self, turn: int) -> range:
        starts = self._first_calls
        return range(starts[turn], starts[turn + 1] if turn + 1 < len(starts) else len(self._keys))

    def _name(self, turn: int, keys: Sequence[Key], names: Sequence[str]) -> None:
        """Let results without an id find calls: by name, among those of the nearest earlier turn that has the name."""
        start, again = self._start, frozenset(self.repeats.get(turn, ()))
        for call, (key, name) in enumerate(zip_longest(keys, names, fillvalue=""), start):
            if call in again:
                continue
            self._names[call] = name
            for table in (self._named, self._loose) if key is None else (self._named,):
                queue = table.get(name)
                if queue is None or queue.calls[0] < start:
                    table[name] = _Queue(call)
                else:
                    queue.calls.append(call)

    def _by_order(self, key: Key, name: str) -> int:
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

    __slots__ = ("_next", "calls")

    def __init__(self, call: int) -> None:
        self.calls = [call]
        self._next = 0

    def waiting(self, firsts: list[int]) -> int:
        """Return the first call without a result. Answered ones are passed once in all, so the pass stays linear."""
        calls = self.calls
        while self._next < len(calls) and firsts[calls[self._next]] >= 0:
            self._next += 1
        return calls[self._next] if self._next < len(calls) else NOWHERE
