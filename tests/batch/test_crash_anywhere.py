"""A process that dies after any one write, of any batch: the one that goes on with it tells the truth and does nothing twice."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.batch.clock import run
from tests.batch.durable import RUN, FaultyJournal, FaultyStore, durable
from tests.batch.kit import forever
from toolbatch import ToolCall, ToolSession, current_call, tool
from toolbatch.operations._rules import Row
from toolbatch.ports import ClaimToken, JournaledBatch, JournalRecord, NotApplied, Operation

Temper = Literal["returns", "returns late", "raises", "has done nothing", "hangs", "reads", "is safe"]
TEMPERS: tuple[Temper, ...] = ("returns", "returns late", "raises", "has done nothing", "hangs", "reads", "is safe")


class Moment(NamedTuple):
    """What is on disk, and what has happened outside, at one moment.

    Attributes:
        records: The journal.
        rows: The store.
        entered: How often the code of each call was entered so far.
        undone: The calls that have said that they have done nothing.
    """

    records: tuple[JournalRecord, ...]
    rows: dict[str, Row]
    entered: Counter[str]
    undone: frozenset[str]


class World:
    """One disk and one outside, and what they were after each write."""

    def __init__(self, start: Moment | None = None) -> None:
        self.store = FaultyStore()
        self.journal = FaultyJournal()
        self.entered: Counter[str] = Counter()
        self.undone: set[str] = set()
        self.moments: list[Moment] = []
        self._watch()
        if start is not None:
            self.store.inner._rows.kept.update(start.rows)
            self.records = list(start.records)
            self.entered += start.entered
        else:
            self.records = []

    def _watch(self) -> None:
        append, claim = self.journal.inner.append, self.store.inner.claim
        complete, release = self.store.inner.complete, self.store.inner.release

        async def appending(records: Sequence[JournalRecord]) -> None:
            for record in records:  # one by one: a crash may leave fewer, though our journals would not
                await append([record])
                self.records.append(record)
                self._note()

        async def claiming(operation: Operation, *, taking_over: str | None = None) -> Any:
            answer = await claim(operation, taking_over=taking_over)
            self._note()
            return answer

        async def completing(token: ClaimToken, result: bytes) -> None:
            await complete(token, result)
            self._note()

        async def releasing(token: ClaimToken) -> None:
            await release(token)
            self._note()

        self.journal.inner.append = appending  # type: ignore[method-assign]
        self.store.inner.claim = claiming  # type: ignore[method-assign]
        self.store.inner.complete = completing  # type: ignore[method-assign]
        self.store.inner.release = releasing  # type: ignore[method-assign]

    def _note(self) -> None:
        rows = dict(self.store.inner._rows.kept)
        self.moments.append(Moment(tuple(self.records), rows, Counter(self.entered), frozenset(self.undone)))

    def tools(self, tempers: Sequence[Temper]) -> dict[str, Any]:
        """A tool for each temper, which notes that it was entered."""

        def made(temper: Temper) -> Any:
            async def work() -> str:
                name = current_call().call_id
                self.entered[name] += 1
                await asyncio.sleep(1 if temper == "returns late" else 0)
                if temper == "hangs":
                    await forever()
                if temper == "raises":
                    raise ConnectionError("reset")
                if temper == "has done nothing":
                    self.undone.add(name)
                    raise NotApplied("nothing was sent")
                return f"did {name}"

            return tool(work, name=temper.replace(" ", "_"), timeout=5)

        return {temper.replace(" ", "_"): made(temper) for temper in tempers}

    async def turn(
        self, calls: Sequence[ToolCall], tempers: Sequence[Temper], resume: JournaledBatch | None
    ) -> dict[str, Any]:
        """Run the calls, or go on with them, and return what the model gets."""
        hook = durable(self.store, replay={"is_safe": "safe"}, read_only={"reads"})
        async with (
            ToolSession(tools=self.tools(tempers), interceptors=[hook], journal=self.journal, run_id=RUN) as session,
            session.batch(calls, resume=resume) as batch,
        ):
            batch.start_all()
            snapshot = await batch.snapshot()
        return {one["id"]: one["settlement"] for one in snapshot.to_dict()["calls"]}


def judge(moment: Moment, tempers: dict[str, Temper], ends: dict[str, Any], world: World) -> None:
    """Compare what the second process says with what had happened when the first one died."""
    known = JournaledBatch(moment.records).settled
    for call_id, temper in tempers.items():
        end, before, now = ends[call_id], moment.entered[call_id], world.entered[call_id]
        if call_id in known:
            assert end == known[call_id].settlement.to_dict(), "an outcome that was written has changed"
            assert now == before, "what had its outcome was run again"
        if temper in ("reads", "is safe"):
            continue  # may be run as often as it likes
        row = moment.rows.get(f"t/{RUN}/{call_id}")
        if before and call_id not in moment.undone:
            assert now == before, "what had been entered was entered again"
        if call_id not in known and row is not None and row.result is not None:
            assert end["content"] == f"did {call_id}", "a saved result is not told"
            assert now == before
        if call_id not in known and row is not None and row.result is None:
            assert end["code"] == "outcome_unknown"
            assert now == before
        if call_id not in known and row is None:
            assert now == before + 1, "what is free was not run"


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(TEMPERS), min_size=1, max_size=4))
def test_whenever_it_dies_nothing_is_done_twice_and_nothing_is_made_up(chosen: list[Temper]) -> None:
    """After each single write of a batch of any calls, the disk is handed to a second process."""
    calls = [ToolCall(f"c{number}", temper.replace(" ", "_")) for number, temper in enumerate(chosen)]
    tempers = {call.id: temper for call, temper in zip(calls, chosen, strict=True)}
    world = World()
    run(world.turn(calls, chosen, None))
    assert len(world.moments) > len(calls)
    for moment in world.moments:
        second = World(moment)
        second.undone |= moment.undone

        async def go_on(second: World = second, moment: Moment = moment) -> dict[str, Any]:
            for record in moment.records:
                await FaultyJournal.append(second.journal, [record])
            second.records = list(moment.records)
            previous = await second.journal.last(RUN)
            return await second.turn(previous.calls, chosen, previous)

        judge(moment, tempers, run(go_on()), second)
