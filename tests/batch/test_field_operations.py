"""FIELD.md's L: what a crash must not make happen again. Each test cites its number and says it in a line."""

import asyncio
from typing import Any

import pytest

from tests.batch.durable import RUN, Bank, call, durable, executed
from tests.batch.kit import code, codes, content, effects, message
from tests.batch.stages import Around, Proceed
from toolbatch import ToolSession
from toolbatch.operations import MemoryJournal, MemoryOperationStore
from toolbatch.ports import Journal, JournaledBatch, Operation, OperationStore, ReplayPolicy


async def go_on(journal: Journal, tools: dict[str, Any], store: OperationStore | None = None) -> dict[str, Any]:
    """Go on with the run's last batch as another process does; return its outcomes."""
    previous = await journal.last(RUN)
    assert previous is not None
    hooks = [] if store is None else [durable(store)]
    async with (
        ToolSession(tools=tools, journal=journal, interceptors=hooks, run_id=RUN) as session,
        session.batch(previous.calls, resume=previous) as batch,
    ):
        batch.start_all()
        snapshot = await batch.snapshot()
    return {one["id"]: one["settlement"] for one in snapshot.to_dict()["calls"]}


@pytest.mark.parametrize("has_store", [False, True])
async def test_91_what_had_finished_before_the_crash_is_not_done_again(has_store: bool) -> None:
    """91: a crash with one of two finished; each call is on disk by itself, and not only the whole batch."""
    journal, store = MemoryJournal(), MemoryOperationStore() if has_store else None
    bank, slow = Bank(), Bank()
    slow.release.clear()
    hooks = [] if store is None else [durable(store)]
    async with (
        ToolSession(tools={"pay": bank, "slow": slow}, journal=journal, interceptors=hooks, run_id=RUN) as session,
        session.batch([call("a"), call("b", "slow"), call("c", "slow")]) as batch,
    ):
        batch.start("a", bank)
        batch.start("b", slow)
        await slow.entered.wait()
        on_disk = await journal.last(RUN)
        while on_disk is None or "a" not in on_disk.settled:  # until the disk has what memory has
            await asyncio.sleep(0)
            on_disk = await journal.last(RUN)
        died = MemoryJournal()  # the disk as the crash leaves it
        await died.append(on_disk.records)
        batch.close()
    again, rest = Bank(), Bank()
    third = await go_on(died, {"pay": again, "slow": rest}, store)
    assert third["a"]["content"] == '{"paid":50,"to":"ä"}'
    assert third["b"]["code"] == "outcome_unknown"
    assert third["b"]["side_effect_state"] == "unknown"
    assert (again.paid, rest.paid) == ([], ["c"])


async def test_92_a_retry_under_the_same_key_is_not_a_second_payment() -> None:
    """92: the first attempt lost its answer; the second of the same operation is unknown, and the model is told to verify."""
    store, bank = MemoryOperationStore(), Bank(fails=ConnectionError("connection reset by peer"))

    async def retry_three_times(proceed: Proceed) -> Any:
        for _ in range(2):
            try:
                return await proceed()
            except ConnectionError:
                continue
        return await proceed()

    hooks = [Around(retry_three_times), durable(store)]
    async with ToolSession(tools={"pay": bank}, interceptors=hooks, run_id=RUN) as session:
        async with session.batch([call()]) as batch:
            batch.start_all()
            snapshot = await batch.snapshot()
        assert (code(snapshot, "a"), effects(snapshot, "a")) == ("outcome_unknown", "unknown")
        assert "Verify what has happened before repeating it" in message(snapshot, "a")
        assert bank.paid == ["a"]
        (record,) = await store.unresolved()
        assert record.idempotency_key == bank.keys["a"]
        await store.reconcile(record.id, b'{"paid":50}')
        async with session.batch([call()]) as again:
            again.start_all()
            assert content(await again.snapshot(), "a") == '{"paid":50}'
    assert bank.paid == ["a"]


@pytest.mark.parametrize("stored", ["never", "if_not_started", "safe"])
@pytest.mark.parametrize("current", ["never", "if_not_started", "safe"])
async def test_93_a_started_call_runs_again_only_if_both_policies_say_so(
    stored: ReplayPolicy, current: ReplayPolicy
) -> None:
    """93: the policy is recorded with the claim, and the stricter of it and today's decides."""
    store, bank = MemoryOperationStore(), Bank()
    await store.claim(Operation(f"t/{RUN}/a", "pay", {}, replay=stored))
    async with (
        ToolSession(tools={"pay": bank}, interceptors=[durable(store, replay=current)], run_id=RUN) as session,
        session.batch([call()]) as batch,
    ):
        batch.start_all()
        snapshot = await batch.snapshot()
    runs_again = stored == current == "safe"
    assert codes(snapshot) == {"a": "success" if runs_again else "outcome_unknown"}
    assert bank.paid == (["a"] if runs_again else [])


async def test_what_never_started_is_free_whatever_the_policy() -> None:
    """An announced call that no start is written of has surely not happened: also one that may never be repeated runs."""
    journal, store, bank = MemoryJournal(), MemoryOperationStore(), Bank()
    async with ToolSession(tools={"pay": bank}, journal=journal, run_id=RUN) as session, session.batch([call()]):
        announced = await journal.last(RUN)
    assert announced is not None
    previous = JournaledBatch(announced.records[:1])
    async with (
        ToolSession(tools={"pay": bank}, interceptors=[durable(store, replay="never")]) as session,
        session.batch(previous.calls, resume=previous) as batch,
    ):
        batch.start_all()
        await batch.snapshot()
    assert [one["state"] for one in executed(batch)] == ["success"]
    assert bank.paid == ["a"]
