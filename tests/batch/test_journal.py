"""A batch in its journal: written before it is acted on, and gone on with after a crash as it was (D4)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.batch.clock import ClockLoop, run, turned
from tests.batch.durable import RUN, Bank, FaultyJournal, FaultyStore, call, durable, executed
from tests.batch.kit import code, codes, effects, forever, message, result_of, totals, turn
from tests.batch.stages import After, Around, Proceed, decides, judges
from toolbatch import (
    BatchClosedError,
    Image,
    InvalidInputError,
    InvalidTypeError,
    Snapshot,
    Text,
    ToolBatch,
    ToolCall,
    ToolError,
    ToolSession,
    current_call,
)
from toolbatch.core import CallProblem, Closed, CloseReason, Data, Settlement, Succeeded
from toolbatch.operations import MemoryJournal, MemoryOperationStore, SqliteJournal, SqliteOperationStore
from toolbatch.ports import (
    Abort,
    AnnouncedRecord,
    ApprovalDecision,
    ApprovalRequest,
    ClosedRecord,
    Deny,
    Journal,
    JournaledBatch,
    JournalRecord,
    NotApplied,
    Operation,
    OperationStoreError,
    ResumedRecord,
    SettledRecord,
    StartedRecord,
)
from toolbatch.tools import Accept, Ask, Block, ToolResult, Verdict


class Crash(Exception):
    """Stands for the end of the process: what would come next is not done."""


def kinds(batch: JournaledBatch | None) -> list[str]:
    """The kinds of a batch's records, with their calls."""
    assert batch is not None
    names = []
    for record in batch.records:
        kind = type(record).__name__.removesuffix("Record").lower()
        names.append(f"{kind} {record.call_id}" if isinstance(record, StartedRecord | SettledRecord) else kind)
    return names


async def through(
    journal: Journal | FaultyJournal, tools: dict[str, Any], *calls: ToolCall, **options: Any
) -> ToolBatch:
    """Run calls in a session of their own, and return their batch."""
    options.setdefault("run_id", RUN)
    async with ToolSession(tools=tools, journal=journal, **options) as session, session.batch(calls) as batch:
        batch.start_all()
        await batch.snapshot()
    return batch


async def last(journal: Journal | FaultyJournal, run_id: str = RUN) -> JournaledBatch:
    """The latest batch of the run."""
    found: JournaledBatch | None = await journal.last(run_id)
    assert found is not None
    return found


def crashed(batch: JournaledBatch, after: int) -> JournaledBatch:
    """What the journal would have had if the process had died after so many records."""
    return JournaledBatch(batch.records[:after])


async def never(**_: Any) -> NoReturn:
    """A tool that must not be run again."""
    raise AssertionError("it was run again")


# -- what is written, and when ---------------------------------------------------------------------------------------------


async def test_everything_is_written_in_its_order() -> None:
    """The announcement first, each start before its outcome, the close last."""
    journal, bank = FaultyJournal(), Bank()
    batch = await through(journal, {"pay": bank}, call("a", amount=1), call("b", amount=2))
    written = await last(journal)
    assert kinds(written)[0] == "announced"
    assert sorted(kinds(written)[1:3]) == ["started a", "started b"]
    assert kinds(written)[-1] == "closed"
    assert [(one.id, one.name, one.arguments) for one in written.calls] == [
        ("a", "pay", {"amount": 1}),
        ("b", "pay", {"amount": 2}),
    ]
    ends = {call_id: record.settlement.to_dict() for call_id, record in written.settled.items()}
    assert ends == {one["id"]: one["settlement"] for one in executed(batch)}
    assert written.closed is not None
    assert written.closed.reason == result_of(batch).close_reason
    times = [record.at for record in written.records]
    assert times == sorted(times)


async def test_a_batch_is_on_disk_before_any_tool_starts() -> None:
    """Its own start is, too; whoever looks from inside a tool finds both."""
    journal, seen = FaultyJournal(), []

    async def look() -> None:
        seen.append(list(journal.written))

    await through(journal, {"pay": look}, call())
    assert seen == [["announced", "started"]]


async def test_an_outcome_is_on_disk_before_it_is_shown() -> None:
    """`snapshot()` waits for it, while the batch is settled long since."""
    journal, gate = FaultyJournal(), asyncio.Event()

    async def wait(records: Sequence[JournalRecord]) -> None:
        if any(isinstance(record, SettledRecord) for record in records):
            await gate.wait()

    journal.on_append = wait
    async with ToolBatch([call()], tools={"pay": Bank()}, journal=journal, run_id=RUN) as batch:
        batch.start_all()
        shown = asyncio.ensure_future(batch.snapshot())
        while batch.result is None:
            await asyncio.sleep(0)
        await turn(20)
        assert not shown.done()
        gate.set()
        assert code(await shown, "a") == "success"
        assert journal.written[-2:] == ["settled", "closed"]


async def test_leaving_waits_until_all_is_on_disk() -> None:
    """Also where nobody has asked for the snapshot."""
    journal = FaultyJournal()
    async with ToolBatch([call()], tools={"pay": Bank()}, journal=journal, run_id=RUN) as batch:
        batch.start_all()
    assert journal.written == ["announced", "started", "settled", "closed"]


async def test_leaving_a_batch_of_a_session_waits_as_well() -> None:
    """Though it waits for nothing else that runs on."""
    journal = FaultyJournal()
    async with ToolSession(tools={"pay": Bank()}, journal=journal, run_id=RUN) as session:
        async with session.batch([call()]) as batch:
            batch.start_all()
        assert journal.written == ["announced", "started", "settled", "closed"]


async def test_a_run_that_was_walked_away_from_is_not_entered() -> None:
    """What stands around the tool has returned while the start was being written: nobody may begin then (T6)."""
    journal, bank, left = FaultyJournal(), Bank(), []

    async def walk_away(proceed: Proceed) -> str:
        left.append(asyncio.ensure_future(proceed()))
        await asyncio.sleep(0)
        return "done without it"

    async def take_time(_: ToolResult) -> Verdict:
        await turn(20)
        return Accept()

    await through(journal, {"pay": bank}, call(), interceptors=[After(take_time), Around(walk_away)])
    await asyncio.wait(left)
    assert left[0].cancelled()
    assert bank.paid == []


async def test_what_is_cut_off_and_what_can_t_be_run_is_written_too() -> None:
    """Every announced call has its outcome there."""
    journal = FaultyJournal()
    calls = [call("a", "wait"), ToolCall("b", "wait", "not json"), call("c", "nobody"), call("d", "wait")]
    async with ToolBatch(calls, tools={"wait": forever}, journal=journal, run_id=RUN) as batch:
        batch.start("a", forever)
        await turn(10)
        batch.close()
        snapshot = await batch.snapshot()
    written = await last(journal)
    assert {one: record.settlement for one, record in written.settled.items()} == {
        one.id: one.settlement for one in snapshot.calls
    }
    assert kinds(written)[-1] == "closed"
    assert list(written.started) == ["a"]


async def test_an_abort_is_written_as_what_it_is() -> None:
    """The exception passes through as ever, and what the calls became is on disk."""
    journal = FaultyJournal()
    with pytest.raises(Crash):
        async with ToolBatch([call("a", "wait")], tools={"wait": forever}, journal=journal, run_id=RUN) as batch:
            batch.start_all()
            await turn(10)
            raise Crash
    written = await last(journal)
    assert written.closed is not None
    assert written.closed.reason.code == "batch_failed"


async def test_a_superseded_batch_is_written_to_its_end() -> None:
    """Each batch has a name of its own."""
    journal = FaultyJournal()
    async with (
        ToolSession(tools={"wait": forever}, journal=journal, run_id=RUN) as session,
        session.batch([call("a", "wait")]) as older,
    ):
        older.start_all()
        await turn(10)
        async with session.batch([call("b", "wait")]) as newer:
            newer.close()
    batches = await journal.batches(RUN)
    assert [one.calls[0].id for one in batches] == ["a", "b"]
    assert [one.closed.reason.code for one in batches if one.closed] == ["superseded", "cancelled"]


async def test_a_pause_is_on_disk_before_it_is_shown() -> None:
    """What it closes as waiting can be asked again, perhaps by another process."""
    journal = FaultyJournal()
    async with ToolBatch([call()], tools={"pay": Bank()}, journal=journal, run_id=RUN) as batch:
        snapshot = await batch.pause()
        assert journal.written == ["announced", "settled", "closed"]
    assert effects(snapshot, "a") == "not_started"


# -- the journal fails -----------------------------------------------------------------------------------------------------


async def test_a_journal_that_is_down_lets_nothing_start(caplog: pytest.LogCaptureFixture) -> None:
    """All calls are answered as not started, and the turn ends."""
    journal, bank = FaultyJournal().breaks(), Bank()
    with pytest.raises(ToolError, match="the disk is full") as caught:
        async with ToolBatch([call("a"), call("b")], tools={"pay": bank}, journal=journal, run_id=RUN) as batch:
            batch.start_all()
    assert (caught.value.code, caught.value.is_fatal) == ("checkpoint_failed", True)
    assert bank.paid == []
    snapshot = result_of(batch)
    assert codes(snapshot) == {"a": "checkpoint_failed", "b": "checkpoint_failed"}
    assert effects(snapshot, "a") == "not_started"
    assert "can't be written into its journal" in caplog.text


async def test_a_start_that_can_t_be_written_is_none() -> None:
    """The tool's code is not entered, and the turn ends."""
    journal, bank = FaultyJournal().breaks("started"), Bank()
    with pytest.raises(ToolError, match="the disk is full"):
        await through(journal, {"pay": bank}, call())
    assert bank.paid == []


async def test_an_outcome_that_can_t_be_written_is_not_shown() -> None:
    """`snapshot()` raises; what memory knows stays in `result`, for the host."""
    journal, bank = FaultyJournal().breaks("settled"), Bank()
    batch = ToolBatch([call()], tools={"pay": bank}, journal=journal, run_id=RUN)
    with pytest.raises(ToolError, match="the disk is full"):
        async with batch:
            batch.start_all()
            with pytest.raises(ToolError) as caught:
                await batch.snapshot()
            assert caught.value.code == "checkpoint_failed"
    assert code(result_of(batch), "a") == "success"
    assert kinds(await last(journal)) == ["announced", "started a"]


async def test_a_journal_that_fails_in_mid_turn_ends_it() -> None:
    """Nothing starts after the first record that could not be written; what runs is closed as unknown."""
    journal, bank = FaultyJournal().breaks("settled"), Bank()
    with pytest.raises(ToolError):
        async with ToolBatch(
            [call("a"), call("b", "wait")], tools={"pay": bank, "wait": forever}, journal=journal, run_id=RUN
        ) as batch:
            batch.start("b", forever)
            await turn(10)
            batch.start("a", bank)
            with pytest.raises(ToolError):
                await batch.snapshot()
    assert (code(result_of(batch), "b"), effects(result_of(batch), "b")) == ("checkpoint_failed", "unknown")


@turned
async def test_a_journal_that_hangs_is_bounded() -> None:
    """After half a minute it counts as broken."""
    journal, bank = FaultyJournal(), Bank()

    async def hang(_: Sequence[JournalRecord]) -> None:
        await forever()

    journal.on_append = hang
    with pytest.raises(ToolError, match="did not answer in time"):
        async with ToolBatch([call()], tools={"pay": bank}, journal=journal, run_id=RUN) as batch:
            batch.start_all()
    assert bank.paid == []
    assert effects(result_of(batch), "a") == "not_started"


async def test_a_journal_may_fail_in_any_way() -> None:
    """Also with an error that has no text: nobody waits for ever."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    journal = FaultyJournal()

    async def fail(_: Sequence[JournalRecord]) -> None:
        raise Mute

    journal.on_append = fail
    with pytest.raises(ToolError, match="Mute"):
        await through(journal, {"pay": Bank()}, call())


async def test_a_thousand_starts_are_written_in_a_few_groups() -> None:
    """While one group is being written the next one gathers."""
    journal, appends = FaultyJournal(), []

    async def count(records: Sequence[JournalRecord]) -> None:
        appends.append(len(records))

    journal.on_append = count
    await through(journal, {"pay": Bank()}, *(call(str(number)) for number in range(500)))
    assert sum(appends) == 1002
    assert len(appends) < 20


async def test_arguments_without_a_json_form_can_t_be_announced() -> None:
    """Only a host can announce such; after a crash nobody could run them."""
    with pytest.raises(ToolError, match="JSON"):
        await through(MemoryJournal(), {"pay": Bank()}, ToolCall("a", "pay", {"amount": object()}))


async def test_a_batch_of_no_calls_is_written_too() -> None:
    """As any other."""
    journal = FaultyJournal()
    await through(journal, {})
    assert journal.written == ["announced", "closed"]


async def test_what_is_recorded_needs_a_run() -> None:
    """Or nobody would find it again."""
    with pytest.raises(InvalidInputError, match="run_id"):
        await through(MemoryJournal(), {"pay": Bank()}, call(), run_id=None)
    with pytest.raises(InvalidTypeError, match="journal"):
        ToolBatch([call()], journal=object())  # type: ignore[arg-type]


async def test_a_task_that_runs_already_can_t_be_written_down_first() -> None:
    """It is refused."""
    async with ToolBatch([call()], journal=MemoryJournal(), run_id=RUN) as batch:
        task = asyncio.ensure_future(forever())
        with pytest.raises(InvalidTypeError, match="runs already"):
            batch.start("a", task)
        task.cancel()
        await asyncio.wait([task])


# -- going on ----------------------------------------------------------------------------------------------------------------


async def resumed(batch: JournaledBatch, tools: dict[str, Any], **options: Any) -> ToolBatch:
    """Go on with a batch in another session, as another process would."""
    async with ToolSession(tools=tools, **options) as session, session.batch(batch.calls, resume=batch) as again:
        again.start_all()
        await again.snapshot()
    return again


async def test_a_batch_that_had_ended_is_the_same_again() -> None:
    """Byte for byte, whatever its outcomes were; nothing is run, and nothing is told or counted again."""

    async def draw() -> list[Any]:
        return [Text("see \\ud800"), Image(Data(b"png", "image/png"))]

    async def slow() -> NoReturn:
        current_call().progress("half")
        await forever()

    journal, told = MemoryJournal(), list[Any]()
    tools: dict[str, Any] = {
        "pay": Bank(),
        "fail": Bank(ValueError("bröke")),
        "draw": draw,
        "slow": slow,
        "stop": Bank(asyncio.CancelledError()),
    }
    calls = [call(name, name) for name in tools]
    odd = ToolCall("odd", "pay", '{"amount": "\\ud800')
    async with (
        ToolSession(tools=tools, journal=journal, run_id=RUN) as session,
        session.batch([*calls, odd]) as first,
    ):
        first.start_all()
        await turn(20)
        first.close()
        snapshot = await first.snapshot()
    again = await resumed(await last(journal), dict.fromkeys(tools, never), on_outcome=told.append)
    assert executed(again) == snapshot.to_dict()["calls"]
    assert told == []
    assert totals(again) == {}
    assert all(outcome.resumed for outcome in again.outcomes.values())


async def test_what_never_started_is_run_and_what_had_started_is_unknown() -> None:
    """Without a store nobody can say more; the model reads that it must verify before repeating."""
    journal, bank = MemoryJournal(), Bank()
    await through(journal, {"pay": bank}, call("a"), call("b"), call("c"))
    whole = await last(journal)
    records: list[JournalRecord] = [
        record
        for record in whole.records
        if isinstance(record, AnnouncedRecord)
        or (isinstance(record, StartedRecord) and record.call_id in "ab")
        or (isinstance(record, SettledRecord) and record.call_id == "a")
    ]
    bank.paid.clear()
    told: list[str] = []
    batch = await resumed(
        JournaledBatch(records),
        {"pay": bank},
        on_outcome=lambda outcome: told.append(f"{outcome.call_id} {outcome.status}"),
    )
    snapshot = result_of(batch)
    assert told == ["b failed", "c succeeded"]  # nobody was told of b before the crash
    assert bank.paid == ["c"]
    assert codes(snapshot) == {"a": "success", "b": "outcome_unknown", "c": "success"}
    assert effects(snapshot, "b") == "unknown"
    assert "Verify" in message(snapshot, "b")
    outcomes = batch.outcomes
    assert [outcomes[one].resumed for one in "abc"] == [True, True, False]
    assert (outcomes["b"].status, outcomes["b"].started, outcomes["b"].completion) == ("failed", True, "unknown")


async def test_a_resumed_batch_goes_on_in_its_journal() -> None:
    """Under its own name: what it adds is there after the next crash, and what was there is not written twice."""
    journal, bank = MemoryJournal(), Bank()
    async with ToolBatch([call("a"), call("b")], tools={"pay": bank}, journal=journal, run_id=RUN) as batch:
        batch.start("a", bank)
        await turn(20)
        open_one = await last(journal)
        assert open_one.is_open
    assert await journal.unfinished() == ()
    before = JournaledBatch([record for record in open_one.records if not isinstance(record, ClosedRecord)])
    other = MemoryJournal()
    await other.append(before.records)
    assert await other.unfinished() == (RUN,)
    again = await resumed(await last(other), {"pay": bank}, journal=other)
    assert codes(result_of(again)) == {"a": "success", "b": "success"}
    assert kinds(await last(other)) == [
        "announced",
        "started a",
        "settled a",
        "resumed",
        "started b",
        "settled b",
        "closed",
    ]
    assert (await last(other)).batch_id == before.batch_id
    third = await resumed(await last(other), {"pay": never}, journal=other)
    assert executed(third) == executed(again)
    assert await other.unfinished() == ()


async def test_each_prefix_of_a_journal_is_a_batch_that_tells_the_truth() -> None:
    """Wherever the process dies: no outcome that was written is lost, and nothing that had started is run again."""
    journal, bank = MemoryJournal(), Bank()
    await through(journal, {"pay": bank}, *(call(one) for one in "abcd"))
    whole = await last(journal)
    for count in range(1, len(whole.records) + 1):
        cut = crashed(whole, count)
        bank.paid.clear()
        again = await resumed(cut, {"pay": bank})
        assert set(bank.paid).isdisjoint(cut.started)
        for one in executed(again):
            if one["id"] in cut.settled:
                assert one["settlement"] == cut.settled[one["id"]].settlement.to_dict()
            elif one["id"] in cut.started:
                assert one["settlement"]["code"] == "outcome_unknown"
            else:
                assert one["id"] in bank.paid


async def test_each_prefix_with_a_store_has_every_result_that_was_saved() -> None:
    """A claim knows more than a start: a result that was saved and not told is told now."""
    journal, store, bank = MemoryJournal(), MemoryOperationStore(), Bank()
    hooks = [durable(store)]
    first = await through(journal, {"pay": bank}, *(call(one) for one in "abc"), interceptors=hooks)
    whole = await last(journal)
    assert {record.operation_id for record in whole.started.values()} == {f"t/{RUN}/{one}" for one in "abc"}
    for count in range(1, len(whole.records) + 1):
        again = await resumed(crashed(whole, count), {"pay": never}, interceptors=hooks)
        assert executed(again) == executed(first)


async def test_a_start_under_a_claim_goes_by_the_claim() -> None:
    """Open: unknown. Free, since the tool has said that nothing happened, or a person has: run. Without its store: unknown."""
    journal, bank = MemoryJournal(), Bank()
    store = MemoryOperationStore()
    hooks = [durable(store)]
    await through(journal, {"pay": bank}, call(), interceptors=hooks)
    started = crashed(await last(journal), 2)
    assert kinds(started) == ["announced", "started a"]

    other = MemoryOperationStore()
    await other.claim(Operation(f"t/{RUN}/a", "pay", {}))
    open_claim = await resumed(started, {"pay": never}, interceptors=[durable(other)])
    assert code(result_of(open_claim), "a") == "outcome_unknown"
    await other.release_unknown(f"t/{RUN}/a")
    bank.paid.clear()
    freed = await resumed(started, {"pay": bank}, interceptors=[durable(other)])
    assert (code(result_of(freed), "a"), bank.paid) == ("success", ["a"])
    for options in ({}, {"interceptors": [durable(store, call_key=lambda one: "other")]}):
        alone = await resumed(started, {"pay": never}, **options)
        assert code(result_of(alone), "a") == "outcome_unknown"


class Says:
    """A broker that decides as it was told to, or never."""

    def __init__(self, decision: ApprovalDecision | None) -> None:
        self._decision = decision

    async def decide(self, request: ApprovalRequest, /) -> ApprovalDecision:
        return self._decision or await forever()


async def begun_and_killed(**options: Any) -> tuple[MemoryJournal, JournaledBatch, MemoryOperationStore]:
    """A payment was begun under its claim, and its process was killed before anything else was written."""
    journal, store = MemoryJournal(), MemoryOperationStore()
    await through(journal, {"pay": Bank()}, call(), interceptors=[durable(store, **options)])
    started = crashed(await last(journal), 2)
    journal = MemoryJournal()
    await journal.append(started.records)
    other = MemoryOperationStore()
    await other.claim(Operation(f"t/{RUN}/a", "pay", {}))
    return journal, started, other


async def _close(batch: ToolBatch) -> None:
    batch.close("cancelled", "request_aborted")


async def _cancel(batch: ToolBatch) -> None:
    batch.cancel("a")


async def _start_and_pause(batch: ToolBatch) -> None:
    batch.start_all()
    await batch.pause()


async def _leave(batch: ToolBatch) -> None:
    """Nothing is started."""


async def _start(batch: ToolBatch) -> None:
    batch.start_all()


@pytest.mark.parametrize(
    ("tools", "options", "do"),
    [
        ({"pay": never}, {}, _close),
        ({"pay": never}, {}, _cancel),
        ({"pay": never}, {}, _leave),
        ({"pay": never}, {"interceptors": [decides(Ask())], "approvals": Says(None)}, _start_and_pause),
        ({"pay": never}, {}, _start),
        ({"other": never}, {}, _start),
        ({"pay": never}, {"interceptors": [decides(Deny("not today"))]}, _start),
        ({"pay": never}, {"interceptors": [decides(Ask())]}, _start),
        ({"pay": never}, {"interceptors": [decides(Ask())], "approvals": Says(Abort("no more"))}, _start),
    ],
)
async def test_what_was_begun_before_a_crash_is_never_told_as_not_started(
    tools: dict[str, Any], options: dict[str, Any], do: Callable[[ToolBatch], Awaitable[None]]
) -> None:
    """Whatever ends the call before its claim could be asked: it was begun, and the next process must still know that."""
    journal, started, store = await begun_and_killed()
    down = FaultyStore().breaks("claim")
    down.inner = store
    options = {**options, "interceptors": [*options.get("interceptors", []), durable(down)]}
    batch = ToolBatch(started.calls, tools=tools, journal=journal, resume=started, **options)
    with suppress(ToolError):
        async with batch:
            await do(batch)
    result = result_of(batch)
    assert effects(result, "a") == "unknown"
    assert message(result, "a").startswith("The outcome of this call is unknown")
    outcome = batch.outcomes["a"]
    assert (outcome.started, outcome.completion) == (True, "unknown")
    assert outcome.status in ("failed", "cancelled")
    assert (await last(journal)).started.keys() == {"a"}


async def test_what_was_begun_before_a_crash_is_not_told_as_not_started_where_the_journal_fails() -> None:
    """The host may still use `result`."""
    journal, started, store = await begun_and_killed()
    broken = FaultyJournal().breaks("resumed")
    broken.inner = journal
    batch = ToolBatch(
        started.calls, tools={"pay": never}, journal=broken, resume=started, interceptors=[durable(store)]
    )
    with pytest.raises(ToolError, match="journal"):
        async with batch:
            batch.start_all()
    assert effects(result_of(batch), "a") == "unknown"


async def test_a_claim_says_what_a_start_before_a_crash_could_not() -> None:
    """Free: it was surely not done, so what keeps it from running now is the whole truth. The same for what has no effects."""
    _, started, store = await begun_and_killed()
    await store.release_unknown(f"t/{RUN}/a")

    async def refuse(proceed: Proceed) -> Any:
        raise NotApplied("the account is locked")

    hooks = [durable(store), Around(refuse)]
    freed = await resumed(started, {"pay": never}, interceptors=hooks)
    assert (code(result_of(freed), "a"), message(result_of(freed), "a")) == ("not_applied", "the account is locked")
    read = ToolBatch(
        started.calls, tools={"pay": never}, resume=started, interceptors=[durable(store, read_only={"pay"})]
    )
    async with read:
        pass
    assert effects(result_of(read), "a") == "not_started"


@pytest.mark.parametrize("options", [{"read_only": {"pay"}}, {"replay": "safe"}])
async def test_what_may_run_twice_is_run_again(options: dict[str, Any]) -> None:
    """A read that a crash has cut off is simply made again."""
    journal, bank = MemoryJournal(), Bank()
    hooks = [durable(MemoryOperationStore(), **options)]
    await through(journal, {"pay": bank}, call())  # without a claim, as a tool without effects is run
    started = crashed(await last(journal), 2)
    again = await resumed(started, {"pay": bank}, interceptors=hooks)
    assert (code(result_of(again), "a"), bank.paid) == ("success", ["a", "a"])


async def test_a_batch_that_was_closed_goes_on_like_a_snapshot() -> None:
    """What its close cut off before it had started may run; the rest stands."""
    journal, bank = MemoryJournal(), Bank()
    async with ToolSession(tools={"pay": bank}, journal=journal, run_id=RUN) as session:
        async with session.batch([call("a"), call("b")]) as batch:
            batch.start("a", bank)
            await turn(20)
            await batch.pause()
        async with session.batch([call("a"), call("b")], resume=await last(journal)) as again:
            again.start_all()
            snapshot = await again.snapshot()
    assert codes(snapshot) == {"a": "success", "b": "success"}
    assert bank.paid == ["a", "b"]
    assert kinds(await last(journal))[-4:] == ["resumed", "started b", "settled b", "closed"]


async def test_a_resumed_batch_has_its_own_run_and_calls() -> None:
    """Another run would mean other operations and keys; other calls are another batch."""
    journal = MemoryJournal()
    await through(journal, {"pay": Bank()}, call())
    batch = await last(journal)
    with pytest.raises(InvalidInputError, match="of run 'run-1'"):
        await resumed(batch, {"pay": never}, run_id="run-2")
    with pytest.raises(InvalidInputError, match="other calls"):
        async with ToolBatch([call("z")], resume=batch):
            raise AssertionError
    again = await resumed(batch, {"pay": never})
    assert again.outcomes["a"].run_id == RUN


async def test_a_batch_of_another_journal_is_not_gone_on_with() -> None:
    """Its records would have no beginning there."""
    journal = MemoryJournal()
    await through(journal, {"pay": Bank()}, call())
    with pytest.raises(ToolError, match="not in this journal"):
        await resumed(await last(journal), {"pay": never}, journal=MemoryJournal())


async def test_the_idempotency_key_is_the_same_after_a_crash() -> None:
    """It is of the run, which the journal knows (B22)."""
    journal, bank, again = MemoryJournal(), Bank(), Bank()
    await through(journal, {"pay": bank}, call())
    await resumed(crashed(await last(journal), 1), {"pay": again})
    assert bank.keys == again.keys


async def test_what_a_policy_withheld_is_withheld_in_the_journal() -> None:
    """It has what the model was shown, and nothing else."""
    journal = MemoryJournal()
    batch = await through(journal, {"pay": Bank()}, call(), interceptors=[judges(Block("secret"))])
    written = (await last(journal)).settled["a"].settlement
    assert written == result_of(batch).calls[0].settlement
    assert "paid" not in str(written)


async def test_calls_come_back_with_all_that_their_lane_needs() -> None:
    """The provider's ids, what is to be echoed, free-form input, and arguments that are no JSON."""
    journal = MemoryJournal()
    calls = (
        ToolCall("a", "pay", '{"amount": 1}', wire_id="w", echo={"lane": {"caller": {"type": "x"}}}),
        ToolCall("b", "pay", {"input": "x"}, kind="custom"),
        ToolCall("c", "pay", "not json \udce4"),
        ToolCall("d", "pay", None, problem=CallProblem("response_truncated", "cut off")),
    )
    await through(journal, {"pay": Bank()}, *calls)
    assert (await last(journal)).calls == calls


def test_records_that_make_no_batch_are_refused() -> None:
    """A journal of another program, or one that lost its beginning."""
    announced = AnnouncedRecord(batch_id="b", at=1.0, run_id=RUN, generation=1, calls=(call(),))
    started = StartedRecord(batch_id="b", at=2.0, call_id="a")
    bad: list[list[JournalRecord]] = [
        [],
        [started],
        [announced, announced, started],
        [announced, StartedRecord(batch_id="c", at=2.0, call_id="a")],
        [announced, StartedRecord(batch_id="b", at=2.0, call_id="z")],
    ]
    for records in bad:
        with pytest.raises(InvalidInputError):
            JournaledBatch(records)
    assert "open, 0 of 1" in repr(JournaledBatch([announced, started]))
    closed = ResumedRecord(batch_id="b", at=3.0, generation=2)
    assert JournaledBatch([announced, closed]).is_open


def test_records_are_read_as_what_they_mean() -> None:
    """The first outcome stands; a stop before the start is none; what a close cut off, and was gone on with, is open."""
    ids: dict[str, Any] = {"batch_id": "b", "at": 1.0}
    announced = AnnouncedRecord(**ids, run_id=RUN, generation=1, calls=(call("a"), call("b")))

    def settled(call_id: str, end: Settlement) -> SettledRecord:
        return SettledRecord(**ids, call_id=call_id, settlement=end)

    def started(call_id: str) -> StartedRecord:
        return StartedRecord(**ids, call_id=call_id)

    first, second = Succeeded("1"), Succeeded("2")
    assert JournaledBatch([announced, settled("a", first), settled("a", second)]).settled["a"].settlement == first
    stopped = Closed("cancelled", "approval_pending", "waits", "not_started")
    closed = ClosedRecord(**ids, reason=CloseReason("cancelled", "approval_pending", "waits", "not_started"))
    resumed_at = ResumedRecord(**ids, generation=1)
    records: list[JournalRecord] = [announced, settled("a", first), started("b"), settled("b", stopped), closed]
    paused = JournaledBatch(records)
    assert (dict(paused.started), set(paused.settled), paused.is_open) == ({}, {"a", "b"}, False)
    going = JournaledBatch([*records, resumed_at])
    assert (set(going.settled), going.is_open) == ({"a"}, True)
    by_hand = Closed("cancelled", "cancelled", "stopped by a person", "not_started")
    kept = JournaledBatch([announced, settled("a", by_hand), settled("b", stopped), closed, resumed_at])
    assert set(kept.settled) == {"a"}


# -- cancellation at every moment --------------------------------------------------------------------------------------------


def test_cut_off_at_any_moment_the_journal_never_claims_too_little() -> None:
    """At every turn of the loop: a tool that was entered has its start on disk, and the batch can be gone on with."""
    entered_at_some = False
    for when in range(1, 30):
        journal, loop, bank = FaultyJournal(), ClockLoop(), list[str]()

        async def pay(bank: list[str] = bank) -> str:
            bank.append("in")
            await turn(2)
            return "paid"

        async def main(
            journal: FaultyJournal = journal, loop: ClockLoop = loop, when: int = when, pay: Any = pay
        ) -> None:
            task = asyncio.current_task()
            assert task is not None
            loop.hooks[loop.turns + when] = task.cancel
            async with ToolBatch([call()], tools={"pay": pay}, journal=journal, run_id=RUN) as batch:
                batch.start_all()
                await batch.snapshot()

        async def whole(main: Any = main) -> None:
            with suppress(asyncio.CancelledError):
                await asyncio.ensure_future(main())
            await turn(20)

        run(whole(), loop)
        found = asyncio.run(journal.last(RUN))
        entered_at_some |= bool(bank)
        if bank:
            assert "a" in found.started
        if found is not None:
            assert found.closed is not None
            assert set(found.settled) == {"a"}
    assert entered_at_some


async def test_a_generator_that_is_closed_leaves_what_it_can(nothing_left: None) -> None:
    """On `GeneratorExit` nothing is awaited (B18); the session writes what is left."""
    journal = FaultyJournal()

    async def stream(session: ToolSession) -> Any:
        async with session.batch([call("a", "wait")]) as batch:
            batch.start_all()
            yield batch
            await batch.snapshot()

    async with ToolSession(tools={"wait": forever}, journal=journal, run_id=RUN) as session:
        items = stream(session)
        batch = await anext(items)
        await items.aclose()
        assert result_of(batch).closed
    assert journal.written[-1] == "closed"


# -- real files --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_shared", [False, True])
async def test_a_file_keeps_a_batch_for_another_process(tmp_path: Path, is_shared: bool) -> None:
    """In a file of its own, or in that of the claims; the same as in memory."""
    bank = Bank()

    async def once(
        tool: Any, resume: JournaledBatch | None, calls: Sequence[ToolCall]
    ) -> tuple[Snapshot, JournaledBatch]:
        async with (
            SqliteOperationStore(tmp_path / "operations.db") as store,
            SqliteJournal(store if is_shared else tmp_path / "journal.db") as journal,
        ):
            found = await journal.last(RUN) if resume is not None else None
            hooks = [durable(store)]
            async with (
                ToolSession(tools={"pay": tool}, journal=journal, interceptors=hooks, run_id=RUN) as session,
                session.batch(calls, resume=found) as batch,
            ):
                batch.start_all()
                snapshot = await batch.snapshot()
            return snapshot, await last(journal)

    calls = [call(str(number), amount=number) for number in range(20)]
    first, written = await once(bank, None, calls)
    again, rewritten = await once(never, written, written.calls)
    assert again.to_dict()["calls"] == first.to_dict()["calls"]
    assert rewritten.records[: len(written.records)] == written.records
    assert len(bank.paid) == 20


async def test_a_file_that_is_gone_ends_the_turn(tmp_path: Path) -> None:
    """And says which file it was."""
    bank = Bank()
    async with (
        SqliteJournal(tmp_path / "journal.db") as journal,
        ToolSession(tools={"pay": bank}, journal=journal, run_id=RUN) as session,
    ):
        (tmp_path / "journal.db").rename(tmp_path / "elsewhere.db")
        with pytest.raises(ToolError, match=r"journal\.db.*was removed or replaced"):
            async with session.batch([call()]) as batch:
                with suppress(BatchClosedError):
                    batch.start_all()
    assert bank.paid == []
    with pytest.raises(OperationStoreError):
        await journal.last(RUN)
