"""Batches run tools in their backends, and what becomes of them there is the call's outcome (B5, B11, B13, O1, O2)."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.backends import temporal, tools
from tests.backends.kit import Witness, processes
from toolbatch import ToolBatch, ToolCall, ToolCatalog, tool
from toolbatch.backends import LoopBackend, ThreadBackend
from toolbatch.batch import DurableOperations
from toolbatch.batch._placed import placed
from toolbatch.core import Closed, Failed, InvalidTypeError, Succeeded
from toolbatch.operations import MemoryOperationStore
from toolbatch.ports import CallProgress, CallStarted, ExecutionBackend
from toolbatch.testing import BACKEND_VARIABLE, _backend_tools
from toolbatch.tools import Interceptor

BACKENDS: dict[str, Callable[[], ExecutionBackend]] = {
    "loop": LoopBackend,
    "thread": ThreadBackend,
    "process": lambda: processes(context_vars=[BACKEND_VARIABLE]),
}


def catalog(backend: ExecutionBackend, *functions: Any) -> ToolCatalog:
    """Tools that run there."""
    return ToolCatalog([tool(fn, backend=backend) for fn in functions])


async def the_key(run_id: str) -> Any:
    """The idempotency key of a call without any backend."""
    async with ToolBatch([ToolCall("c1", "key")], tools=ToolCatalog([tool(tools.key)]), run_id=run_id) as batch:
        batch.start_all()
        return (await batch.snapshot()).calls[0].settlement


@pytest.mark.parametrize("name", BACKENDS)
async def test_the_call_is_the_same_wherever_it_runs(name: str) -> None:
    """Identity, idempotency key and context variables arrive, and what the tool says comes back (B11, B22, T10)."""
    async with BACKENDS[name]() as backend:
        BACKEND_VARIABLE.set("mine")
        calls = [
            ToolCall("c1", "key"),
            ToolCall("c2", "speak", {"fails": True}),
            ToolCall("c3", "facts"),
            ToolCall("c4", "add", {"a": 1}),
            ToolCall("c5", "speak", {"fails": False}),
        ]
        places = catalog(backend, tools.key, tools.speak, _backend_tools.facts, _backend_tools.add)
        async with ToolBatch(calls, tools=places, run_id="r1", timeout=30) as batch:
            events = batch.events()
            batch.start_all()
            snapshot = await batch.snapshot()
        key, speak, facts, add, well = (call.settlement for call in snapshot.calls)
        assert key == await the_key("r1")
        assert speak == well == Succeeded("said")
        assert isinstance(facts, Succeeded)
        assert '"variable":"mine"' in facts.content
        assert '"has_time":true' in facts.content
        assert add == Succeeded("2")
        assert batch.concluded
        assert batch.added_context["c5"] == ["a hint"]
        assert [batch.outcomes[name].status for name in ("c2", "c5")] == [
            "failed",
            "succeeded",
        ]  # as they said of themselves
        told = [event async for event in events]
        assert [event.content for event in told if isinstance(event, CallProgress)] == ['{"half":true}'] * 2
        assert sorted(event.call_id for event in told if isinstance(event, CallStarted)) == [
            "c1",
            "c2",
            "c3",
            "c4",
            "c5",
        ]


async def test_temporal_gets_the_call_too(temporal_server: str) -> None:
    """With arguments as the model gave them, and the same idempotency key."""
    async with AsyncExitStack() as stack:
        worker = temporal.serving(temporal_server, [tool(tools.key), tool(tools.decorated.fn)])
        client, queue = await stack.enter_async_context(worker)
        backend = await stack.enter_async_context(temporal.backend(client, queue))
        calls = [ToolCall("c1", "key"), ToolCall("c2", "decorated", '{"a": "21"}')]
        places = catalog(backend, tools.key, tools.decorated.fn)
        async with ToolBatch(calls, tools=places, run_id="r1", timeout=30) as batch:
            batch.start_all()
            key, doubled = (call.settlement for call in (await batch.snapshot()).calls)
        assert key == await the_key("r1")
        assert doubled == Succeeded("42")


# -- deadlines ---------------------------------------------------------------------------------------------------------------


async def test_a_deadline_settles_at_once_and_the_process_is_dead_afterwards() -> None:
    """Settled first, as unknown; then killed, which the outcome says once it is true (O2)."""
    async with processes() as backend, Witness.listening() as witness:
        call = ToolCall("c1", "spin_at", {"port": witness.port})
        async with ToolBatch([call], tools=catalog(backend, tools.spin_at)) as batch:
            batch.start_all()
            line = await witness.line()
            (pid,) = backend.pids
            batch.cancel("c1")
            snapshot = await batch.snapshot()
            assert batch.outcomes["c1"].completion == "unknown"
        settlement = snapshot.calls[0].settlement
        assert isinstance(settlement, Closed)
        assert settlement.side_effect_state == "unknown"
        await line.gone()
        outcome = batch.outcomes["c1"]
        assert (outcome.completion, outcome.cancellation) == ("settled", "acknowledged")
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_loop_in_a_tool_ends_with_its_time() -> None:
    """The processor is free again after the call's time, whatever the tool does."""
    async with processes() as backend:
        async with ToolBatch([ToolCall("c1", "spin")], tools=catalog(backend, tools.spin), call_timeout=0.2) as batch:
            batch.start_all()
            snapshot = await batch.snapshot()
        assert getattr(snapshot.calls[0].settlement, "code", None) == "timeout"
        outcome = batch.outcomes["c1"]
        assert (outcome.status, outcome.completion, outcome.cancellation) == ("timed_out", "settled", "acknowledged")


async def test_what_waited_for_a_worker_is_not_started() -> None:
    """A close tells those calls apart that have begun from those that only waited (B5, B13)."""
    async with processes() as backend, Witness.listening() as witness:
        calls = [ToolCall(f"c{number}", "block", {"port": witness.port}) for number in range(4)]
        async with ToolBatch(calls, tools=catalog(backend, _backend_tools.block)) as batch:
            batch.start_all()
            await witness.line()
            snapshot = batch.close(side_effect_state=None)
        effects = [getattr(call.settlement, "side_effect_state", None) for call in snapshot.calls]
        assert effects == ["unknown", "not_started", "not_started", "not_started"]
        assert [outcome.started for outcome in batch.outcomes.values()] == [True, False, False, False]
        assert [outcome.completion for outcome in batch.outcomes.values()] == ["settled", *["not_started"] * 3]
        assert witness._lines.empty()


async def test_a_calls_time_begins_with_its_tool() -> None:
    """Not while it waits for a worker (B13)."""
    async with processes() as backend, Witness.listening() as witness:
        places = catalog(backend, _backend_tools.block, _backend_tools.add)
        calls = [ToolCall("c1", "block", {"port": witness.port}), ToolCall("c2", "add", {"a": 1})]
        async with ToolBatch(calls, tools=places, call_timeout=0.5) as batch:
            batch.start_all()
            snapshot = (
                await batch.snapshot()
            )  # the first is killed after its time, and another worker started, which takes as long
        first, second = (call.settlement for call in snapshot.calls)
        assert getattr(first, "code", None) == "timeout"
        assert second == Succeeded("2")


# -- what else can happen ----------------------------------------------------------------------------------------------------


async def test_a_lost_worker_is_an_unknown_outcome() -> None:
    """The model reads that it must be verified; the host sees the exception."""
    async with processes() as backend, Witness.listening() as witness:
        call = ToolCall("c1", "block", {"port": witness.port})
        async with ToolBatch([call], tools=catalog(backend, _backend_tools.block)) as batch:
            batch.start_all()
            await witness.line()
            os.kill(backend.pids[0], signal.SIGKILL)
            settlement = (await batch.snapshot()).calls[0].settlement
        assert isinstance(settlement, Closed)
        assert (settlement.status, settlement.code, settlement.side_effect_state) == (
            "error",
            "outcome_unknown",
            "unknown",
        )
        assert "verify" in settlement.message
        assert batch.outcomes["c1"].status == "failed"
        assert type(batch.outcomes["c1"].exception).__name__ == "WorkerKilledError"


async def test_a_backend_that_is_not_open_starts_nothing() -> None:
    """The call fails, and its outcome says that its tool never began."""
    places = catalog(processes(), _backend_tools.add)
    async with ToolBatch([ToolCall("c1", "add", {"a": 1})], tools=places) as batch:
        batch.start_all()
        settlement = (await batch.snapshot()).calls[0].settlement
    assert isinstance(settlement, Failed)
    assert settlement.code == "backend_unavailable"
    assert settlement.message.startswith("NOT EXECUTED: the process backend is not open")
    assert (batch.outcomes["c1"].started, batch.outcomes["c1"].completion) == (False, "not_started")


async def test_claims_say_of_each_call_what_is_known() -> None:
    """Completed where it has a result, open where it is lost or was killed, and free where it only waited for a worker (D2)."""
    async with processes() as backend, MemoryOperationStore() as store, Witness.listening() as witness:
        calls = [
            ToolCall("done", "add", {"a": 1}),
            ToolCall("lost", "exit_now", {"code": 3}),
            ToolCall("killed", "block", {"port": witness.port}),
            ToolCall("waited", "block", {"port": witness.port}),
        ]
        places = catalog(backend, _backend_tools.add, tools.exit_now, _backend_tools.block)
        claims = DurableOperations(store, tenant="acme")
        async with ToolBatch(calls, tools=places, interceptors=[claims], run_id="r1") as batch:
            batch.start_all()
            await witness.line()
            batch.close(side_effect_state=None)
        assert [record.id for record in await store.unresolved()] == ["acme/r1/lost", "acme/r1/killed"]
        done = await store.get("acme/r1/done")
        assert done is not None
        assert done.result == b"2"
        assert await store.get("acme/r1/waited") is None


class TryAgain(Interceptor):
    """Runs a tool a second time after a timeout."""

    async def around(self, call: Any, proceed: Any) -> Any:
        """Run it."""
        try:
            return await proceed()
        except TimeoutError:
            return await proceed()


async def test_a_policy_may_run_it_again_in_another_worker() -> None:
    """The first one is dead by then, and its lines are cut."""
    async with processes() as backend, Witness.listening() as witness:
        call = ToolCall("c1", "block", {"port": witness.port})
        places = catalog(backend, _backend_tools.block)
        async with ToolBatch([call], tools=places, interceptors=[TryAgain()], call_timeout=0.5) as batch:
            batch.start_all()
            first = await witness.line()
            await first.gone()
            (await witness.line()).let_go()
            settlement = (await batch.snapshot()).calls[0].settlement
        assert settlement == Succeeded("done")
        outcome = batch.outcomes["c1"]
        assert (outcome.started, outcome.status) == (True, "succeeded")


async def test_the_hosts_own_start_runs_there_too() -> None:
    """`batch.start` with a tool, by name and by position."""
    async with processes() as backend:
        add = tool(_backend_tools.add, backend=backend)
        async with ToolBatch([ToolCall("c1", "add"), ToolCall("c2", "add")]) as batch:
            batch.start("c1", add, a=1)
            batch.start("c2", add, 2, b=3)
            assert [call.settlement for call in (await batch.snapshot()).calls] == [Succeeded("2"), Succeeded("5")]


async def test_outside_of_a_batch_a_tool_runs_there_too() -> None:
    """A framework may call it; nothing is known of a call then, and its time is the tool's."""
    async with processes() as backend:
        run = placed(tool(_backend_tools.facts, backend=backend, timeout=5), {})
        told = await asyncio.create_task(run())
        assert (told["name"], told["has_time"]) == ("facts", True)


# -- the option --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [1, "process", object(), LoopBackend])
def test_what_is_no_backend_is_refused(wrong: Any) -> None:
    """A class of backends is none either."""
    with pytest.raises(InvalidTypeError, match="backend must be an ExecutionBackend"):
        tool(_backend_tools.add, backend=wrong)


def test_a_tool_that_no_worker_can_find_is_refused_where_it_is_made() -> None:
    """Before any call of it."""

    def local() -> None: ...

    with pytest.raises(InvalidTypeError, match=r"local can't be found .*top level"):
        tool(local, backend=processes())


def test_without_a_backend_nothing_stands_around_the_function() -> None:
    """`placed` is the function itself, and `replace` takes a backend away."""
    backend = LoopBackend()
    made = tool(_backend_tools.add, backend=backend)
    assert made.backend is backend
    assert placed(made, None) is not made.fn
    plain = made.replace(backend=None)
    assert placed(plain, None) is plain.fn is _backend_tools.add
    assert made(1) == 2  # called, it is the function itself
