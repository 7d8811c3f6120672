"""Tools on workers of a real Temporal server: killed workers, a killed server, duplicates, and claims in the worker."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from tests.backends import temporal, tools
from tests.backends.kit import ROOT, Ask, Bench, Witness, ended, processes
from tests.backends.temporal import backend, serving
from toolbatch.backends import temporal_worker
from toolbatch.core import Image, InvalidInputError, ToolError
from toolbatch.operations import MemoryOperationStore
from toolbatch.ports import (
    BackendNotStartedError,
    BackendUnknownError,
    Claimed,
    Enforcement,
    NotApplied,
    NotSendableError,
    Operation,
    RemoteToolError,
    ResultTooLargeError,
)
from toolbatch.testing import BACKEND_TOOLS, BACKEND_VARIABLE, _backend_tools
from toolbatch.tools import tool

TOOLS = [tool(fn) for fn in BACKEND_TOOLS]

WORKER = """
import asyncio, sys
from temporalio.client import Client
from toolbatch.backends import temporal_worker
from toolbatch.testing import BACKEND_TOOLS
from toolbatch.tools import tool

async def main(address, queue):
    client = await Client.connect(address)
    async with temporal_worker(client, queue, [tool(fn) for fn in BACKEND_TOOLS], heartbeat_seconds=0.2):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main(*sys.argv[1:]))
"""


@asynccontextmanager
async def worker_process(address: str, queue: str) -> AsyncIterator["subprocess.Popen[str]"]:
    """A worker in a process of its own."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, address, queue],
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert await asyncio.to_thread(process.stdout.readline) == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


async def test_a_killed_worker_is_told_as_unknown(temporal_server: str) -> None:
    """By the missing heartbeat, without another worker; and another worker does not run the call again."""
    client, queue = await Client.connect(temporal_server), temporal.new_queue()
    async with backend(client, queue, heartbeat_timeout=1.0) as place, Witness.listening() as witness:
        asked = Ask(_backend_tools.block, {"port": witness.port})
        async with worker_process(temporal_server, queue) as process:
            run = Bench(place).start(asked)
            line = await witness.line()
            process.send_signal(signal.SIGKILL)
            await line.gone()
            error = await ended(run)
        assert isinstance(error, BackendUnknownError)
        assert "no sign of life" in error.message
        async with temporal_worker(client, queue, TOOLS):
            assert await Bench(place).run(_backend_tools.add, a=1) == 2
            with pytest.raises(BackendUnknownError):  # nothing starts it anew, whoever asks
                await Bench(place).ask(asked)
            assert witness._lines.empty()


async def test_a_killed_server_that_comes_back_loses_nothing(tmp_path: Path) -> None:
    """The call goes on meanwhile, runs once, and its result arrives."""
    server = temporal.Server(tmp_path)
    try:
        client = await server.start()
        queue = temporal.new_queue()
        worker = temporal_worker(client, queue, TOOLS, heartbeat_seconds=0.2, shutdown_seconds=0.0)
        async with worker, backend(client, queue) as place, Witness.listening() as witness:
            run = Bench(place).start(Ask(_backend_tools.block, {"port": witness.port}))
            line = await witness.line()
            server.kill()
            await server.start()
            line.let_go()
            assert await run == "done"
            assert witness._lines.empty()
    finally:
        server.kill()


async def test_nobody_takes_the_call(temporal_server: str) -> None:
    """Then it was not started, and an operation that was claimed for it is free."""
    client = await Client.connect(temporal_server)
    async with backend(client, temporal.new_queue(), queue_timeout=0.2) as place:
        with pytest.raises(BackendNotStartedError, match="no worker") as refusal:
            await Bench(place).run(_backend_tools.add, a=1)
        assert isinstance(refusal.value, NotApplied)


async def test_a_call_that_takes_too_long_is_unknown(temporal_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server keeps the bound, even if this process does not."""
    monkeypatch.setattr("toolbatch.backends._temporal_activity._LAST_WORDS_SECONDS", 0.0)
    async with AsyncExitStack() as stack, Witness.listening() as witness:
        client, queue = await stack.enter_async_context(serving(temporal_server, TOOLS))
        place = await stack.enter_async_context(backend(client, queue, longest=0.5))
        run = Bench(place).start(Ask(_backend_tools.hold, {"port": witness.port}))
        line = await witness.line()
        error = await ended(run)
        assert isinstance(error, BackendUnknownError)
        assert "time was over" in error.message
        await line.gone()  # with its next heartbeat the worker hears of it


async def test_the_same_call_is_run_once_and_told_twice(temporal_server: str) -> None:
    """As when a process that died asks again in another one: the first run's result is its result."""
    async with serving(temporal_server, TOOLS) as (client, queue), Witness.listening() as witness:
        asked = Ask(_backend_tools.mark, {"port": witness.port, "number": 7})
        async with backend(client, queue) as one, backend(client, queue) as other:
            assert await Bench(one).ask(asked) == 7
            assert await Bench(other).ask(asked) == 7
            both = await asyncio.gather(
                *(Bench(place).start(Ask(_backend_tools.add, {"a": 1})) for place in (one, other))
            )
        assert both == [2, 2]
        assert await witness.marks() == [7]


async def test_a_host_that_tries_again_gets_another_attempt(temporal_server: str) -> None:
    """Where it is known how the first has ended; its own retries are policies, not accidents."""
    async with serving(temporal_server, TOOLS) as (client, queue), Witness.listening() as witness:
        asked = Ask(_backend_tools.mark, {"port": witness.port, "number": 1})
        async with backend(client, queue) as place:
            assert [await Bench(place).ask(asked) for _ in range(2)] == [1, 1]
        assert await witness.marks() == [1, 1]


async def test_arguments_that_are_too_large_never_leave(temporal_server: str) -> None:
    """A cluster would refuse them later, and more darkly."""
    client = await Client.connect(temporal_server)
    async with backend(client, "nobody") as place:
        asked = Ask(_backend_tools.echo, {"value": 1})
        for value, says in (("x" * 3_000_000, "1,900,000"), (object(), "object"), ("\ud800", "surrogate")):
            asked = Ask(_backend_tools.echo, {"value": value})
            with pytest.raises(NotSendableError, match=says):
                await Bench(place).ask(asked)
            assert asked.begun == 0
        positional = replace(asked.invocation, arguments=None)
        with pytest.raises(NotSendableError, match="by position"):
            await place.run(positional)


async def test_a_result_that_is_too_large_is_told_so(temporal_server: str) -> None:
    """The tool ran; the engine never sees its value."""
    async with serving(temporal_server, TOOLS) as (client, queue), backend(client, queue) as place:
        with pytest.raises(ResultTooLargeError, match="1,900,000"):
            await Bench(place).run(_backend_tools.large, size=3_000_000)


def picture() -> list[Any]:
    """Return a picture."""
    return ["see", Image.of(b"\x89PNG\r\n\x1a\n", "image/png")]


async def test_parts_arrive_as_parts(temporal_server: str) -> None:
    """And not as their JSON."""
    async with serving(temporal_server, [tool(picture)]) as (client, queue), backend(client, queue) as place:
        text, image = await Bench(place).run(picture)
        assert (text.text, image) == ("see", Image.of(b"\x89PNG\r\n\x1a\n", "image/png"))


async def test_what_the_worker_does_not_know_is_not_started(temporal_server: str) -> None:
    """Another tool, arguments that its own check refuses, a variable that it was not told of."""
    async with serving(temporal_server, TOOLS) as (client, queue):
        async with backend(client, queue) as place:
            with pytest.raises(BackendNotStartedError, match="no tool 'pid'"):
                await Bench(place).run(tools.pid)
            with pytest.raises(BackendNotStartedError, match=r"(?s)check of the arguments.*size"):
                await Bench(place).run(_backend_tools.large, size="many")
        async with backend(client, queue, context_vars=[BACKEND_VARIABLE]) as place:
            BACKEND_VARIABLE.set("mine")
            with pytest.raises(BackendNotStartedError, match="BACKEND_VARIABLE"):
                await Bench(place).run(_backend_tools.add, a=1)


async def test_leaving_the_backend_leaves_the_outcome_unknown(temporal_server: str) -> None:
    """What runs goes on elsewhere."""
    async with serving(temporal_server, TOOLS, shutdown_seconds=0.0) as (client, queue), Witness.listening() as witness:
        async with backend(client, queue) as place:
            run = Bench(place).start(Ask(_backend_tools.hold, {"port": witness.port}))
            await witness.line()
        assert isinstance(await ended(run), BackendUnknownError)


async def test_a_worker_that_is_shut_down_does_not_tell_a_cancellation_for_a_result(temporal_server: str) -> None:
    """Its tool was stopped, and not by the caller: how far it got is not known."""
    async with AsyncExitStack() as stack, Witness.listening() as witness:
        client, queue = await stack.enter_async_context(serving(temporal_server, TOOLS, shutdown_seconds=0.1))
        async with backend(client, queue) as place:
            run = Bench(place).start(Ask(_backend_tools.hold, {"port": witness.port}))
            line = await witness.line()
            await stack.aclose()
            await line.gone()
            assert isinstance(await ended(run), BackendUnknownError)


async def test_synchronous_tools_can_be_killed_in_the_worker(temporal_server: str) -> None:
    """Where the worker has processes for them: cancellation is forced then, and the host may say so."""
    async with AsyncExitStack() as stack, Witness.listening() as witness:
        killable = await stack.enter_async_context(processes())
        worker = serving(temporal_server, [tool(tools.spin_at)], sync_backend=killable)
        client, queue = await stack.enter_async_context(worker)
        forced = Enforcement(cancellation="forced")
        place = await stack.enter_async_context(backend(client, queue, enforces=forced))
        assert place.enforces is forced
        run = Bench(place).start(Ask(tools.spin_at, {"port": witness.port}))
        line = await witness.line()
        run.cancel()
        assert isinstance(await ended(run), asyncio.CancelledError)
        await line.gone()


async def test_a_synchronous_tool_hears_of_its_cancellation(temporal_server: str) -> None:
    """By its cancel event, with the worker's heartbeat; what it returns then is its end."""
    async with AsyncExitStack() as stack, Witness.listening() as witness:
        client, queue = await stack.enter_async_context(serving(temporal_server, [tool(tools.listen)]))
        place = await stack.enter_async_context(backend(client, queue))
        run = Bench(place).start(Ask(tools.listen, {"port": witness.port}))
        await witness.line()
        run.cancel()
        assert await run == "heard"


async def test_who_does_not_want_to_wait_for_the_end_cancels_again(temporal_server: str) -> None:
    """How the call ended is not known then."""
    async with AsyncExitStack() as stack, Witness.listening() as witness:
        client, queue = await stack.enter_async_context(serving(temporal_server, TOOLS))
        place = await stack.enter_async_context(backend(client, queue))
        run = Bench(place).start(Ask(_backend_tools.refuse_to_stop, {"port": witness.port}))
        line = await witness.line()
        run.cancel()
        await asyncio.sleep(0)
        run.cancel()
        assert isinstance(await ended(run), BackendUnknownError)
        line.let_go()
        await line.gone()


# -- claims in the worker ----------------------------------------------------------------------------------------------------


def by_run(facts: Any) -> str:
    """The host's id of an operation."""
    return f"tenant/{facts.run_id}/{facts.call.id}"


def refuse() -> None:
    """Fail before anything has happened."""
    raise NotApplied("the shop is closed")


async def test_the_worker_claims_and_completes_the_operation(temporal_server: str) -> None:
    """Around the tool: who asks again, for whatever reason, gets the saved result, and the tool is not run."""
    async with MemoryOperationStore() as store, Witness.listening() as witness:
        async with serving(temporal_server, TOOLS, store=store) as (client, queue):
            asked = Ask(_backend_tools.mark, {"port": witness.port, "number": 3})
            async with backend(client, queue, operation_id=by_run) as place:
                assert await Bench(place).ask(asked) == 3
                assert await Bench(place).ask(asked) == 3  # another attempt, answered by the store
            record = await store.get(by_run(asked.facts))
            assert record is not None
            assert (record.result, record.idempotency_key) == (b"3", asked.facts.idempotency_key)
        assert await witness.marks() == [3]


async def test_an_operation_that_somebody_else_has_begun_is_unknown(temporal_server: str) -> None:
    """Its tool is not run."""
    async with MemoryOperationStore() as store, Witness.listening() as witness:
        async with serving(temporal_server, TOOLS, store=store) as (client, queue):
            arguments = {"port": witness.port, "number": 3}
            asked = Ask(_backend_tools.mark, arguments)
            assert isinstance(await store.claim(Operation(by_run(asked.facts), "mark", arguments)), Claimed)
            async with backend(client, queue, operation_id=by_run) as place:
                with pytest.raises(BackendUnknownError, match="was begun"):
                    await Bench(place).ask(asked)
                await store.reconcile(by_run(asked.facts), b'{"reconciled":true}')
                assert await Bench(place).ask(asked) == {"reconciled": True}
            async with backend(client, queue, operation_id=by_run) as another_host:
                assert await Bench(another_host).ask(asked) == {"reconciled": True}
        assert await witness.marks() == []


async def test_a_tool_that_has_not_applied_gives_its_claim_back(temporal_server: str) -> None:
    """One that failed otherwise does not."""
    async with MemoryOperationStore() as store, AsyncExitStack() as stack:
        worker = serving(temporal_server, [*TOOLS, tool(refuse)], store=store)
        client, queue = await stack.enter_async_context(worker)
        place = await stack.enter_async_context(backend(client, queue, operation_id=by_run))
        released, kept = Ask(refuse, {}), Ask(_backend_tools.fail_plainly, {"message": "no"})
        with pytest.raises(ToolError, match="the shop is closed"):
            await Bench(place).ask(released)
        with pytest.raises(RemoteToolError, match="no"):
            await Bench(place).ask(kept)
        assert await store.get(by_run(released.facts)) is None
        assert [record.id for record in await store.unresolved()] == [by_run(kept.facts)]


async def test_a_store_that_is_closed_lets_nothing_start(temporal_server: str) -> None:
    """No claim, no effect."""
    async with MemoryOperationStore() as store:
        pass
    async with serving(temporal_server, TOOLS, store=store) as (client, queue), backend(client, queue) as place:
        with pytest.raises(BackendNotStartedError, match="can't be claimed"):
            await Bench(place).run(_backend_tools.add, a=1)


# -- options -----------------------------------------------------------------------------------------------------------------


async def test_two_tools_of_one_name_are_refused(temporal_server: str) -> None:
    """A worker would run one for the other."""
    client = await Client.connect(temporal_server)
    with pytest.raises(InvalidInputError, match="two tools are called add"):
        async with temporal_worker(client, "queue", [TOOLS[2], TOOLS[2]]):
            pass


@pytest.mark.parametrize(
    "options", [{"queue_timeout": 0}, {"longest": -1}, {"heartbeat_timeout": 0}, {"max_payload_bytes": 0}]
)
async def test_options_that_can_not_be_used_are_refused(options: dict[str, Any], temporal_server: str) -> None:
    """The message names the option."""
    client = await Client.connect(temporal_server)
    with pytest.raises(InvalidInputError, match=next(iter(options))):
        backend(client, "queue", **options)
    with pytest.raises(InvalidInputError, match="task_queue"):
        backend(client, "")
