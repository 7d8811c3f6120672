"""Our backends keep the port's promises, as the checks that are public ask of every backend; and the checks are not asleep."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import pytest

from tests.backends import temporal
from toolbatch.backends import LoopBackend, ProcessBackend, RemoteCall, ThreadBackend
from toolbatch.core import ToolError
from toolbatch.ports import (
    BackendNotStartedError,
    BackendResultError,
    BackendUnknownError,
    CallFacts,
    Enforcement,
    ExecutionBackend,
    Invocation,
    remote_call,
)
from toolbatch.testing import BACKEND_TOOLS, BACKEND_VARIABLE, check_backend
from toolbatch.tools import tool

FORCED = Enforcement(cancellation="forced")


async def test_the_loop_keeps_the_promises() -> None:
    """All but leaving the loop free while a synchronous tool runs."""
    await check_backend(LoopBackend, context=True, blocking=False)


async def test_threads_keep_the_promises() -> None:
    """All."""
    await check_backend(ThreadBackend, context=True)


async def test_processes_keep_the_promises() -> None:
    """All, with a cancellation that nothing survives."""
    await check_backend(lambda: ProcessBackend(1, context_vars=[BACKEND_VARIABLE], output="discard"), context=True)


async def test_processes_that_are_replaced_all_the_time_keep_the_promises() -> None:
    """With a few calls a worker, and some time to stop."""
    await check_backend(lambda: ProcessBackend(1, max_calls=20, grace=0.05, output="discard"))


async def test_temporal_keeps_the_promises(temporal_server: str) -> None:
    """With synchronous tools in threads of the worker."""
    tools = [tool(fn) for fn in BACKEND_TOOLS]
    async with temporal.serving(temporal_server, tools, context_vars=[BACKEND_VARIABLE]) as (client, queue):
        await check_backend(
            lambda: temporal.backend(client, queue, context_vars=[BACKEND_VARIABLE]), context=True, many=16
        )


# -- each broken promise is noticed -----------------------------------------------------------------------------------------


class Wrapped:
    """A backend like another, but for what a test changes."""

    def __init__(self, inner: ExecutionBackend) -> None:
        self.inner = inner
        self.name = "wrapped"
        self.enforces = inner.enforces

    def require(self, fn: Callable[..., Any], /) -> None:
        """As the other."""
        self.inner.require(fn)

    async def run(self, invocation: Invocation, /) -> Any:
        """As the other."""
        return await self.inner.run(invocation)

    async def __aenter__(self) -> Self:
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.inner.__aexit__(*exc_info)


class TextOnly(Wrapped):
    """Returns the text of every value."""

    async def run(self, invocation: Invocation, /) -> Any:
        """Run."""
        return str(await super().run(invocation))


class Twice(Wrapped):
    """Begins twice."""

    async def run(self, invocation: Invocation, /) -> Any:
        """Run."""
        invocation.begin()
        return await super().run(invocation)


class NeverBegins(Wrapped):
    """Does not say that the tool begins."""

    async def run(self, invocation: Invocation, /) -> Any:
        """Run."""
        return await super().run(replace(invocation, begin=lambda: 30.0))


class Mute(Wrapped):
    """Loses what tools say."""

    async def run(self, invocation: Invocation, /) -> Any:
        """Run."""

        def elsewhere() -> Any:
            remote_call.set(RemoteCall(invocation.facts, 30.0, lambda _: None))
            return invocation.fn(*invocation.args, **invocation.kwargs)

        return await super().run(replace(invocation, fn=elsewhere, args=(), kwargs={}))


class Impostor(Wrapped):
    """Gives every tool the same call."""

    async def run(self, invocation: Invocation, /) -> Any:
        """Run."""

        def elsewhere() -> Any:
            facts = CallFacts(call=invocation.facts.call, execution_id="one", idempotency_key="for all")
            remote_call.set(RemoteCall(facts, 30.0, invocation.say))
            return invocation.fn(*invocation.args, **invocation.kwargs)

        return await super().run(replace(invocation, fn=elsewhere, args=(), kwargs={}))


class Blamed(Wrapped):
    """Takes a tool's failure for its own."""

    async def run(self, invocation: Invocation, /) -> Any:
        """Run."""
        try:
            return await super().run(invocation)
        except BackendNotStartedError:
            raise
        except Exception as error:
            raise BackendUnknownError("something failed.") from error


class Wordy(Wrapped):
    """Takes every exception for a word to the model."""

    async def run(self, invocation: Invocation, /) -> Any:
        """Run."""
        try:
            return await super().run(invocation)
        except ToolError:
            raise
        except Exception as error:
            raise ToolError(f"{type(error).__name__}") from error


class AlwaysOpen(Wrapped):
    """Runs before it was entered, and after it was left."""

    async def run(self, invocation: Invocation, /) -> Any:
        """Run."""
        async with LoopBackend() as inner:
            return await inner.run(invocation)


class OneAtATime(Wrapped):
    """Refuses what it has no place for."""

    is_busy = False

    async def run(self, invocation: Invocation, /) -> Any:
        """Run."""
        if self.is_busy:
            raise BackendNotStartedError("there is no place.")
        self.is_busy = True
        try:
            await asyncio.sleep(0)
            return await super().run(invocation)
        finally:
            self.is_busy = False


class Hasty(Wrapped):
    """Ends a cancelled run before its tool has ended."""

    async def run(self, invocation: Invocation, /) -> Any:
        """Run."""
        task = asyncio.ensure_future(super().run(invocation))
        await asyncio.wait([task])
        return task.result()


class Deaf(Wrapped):
    """Tells no tool that it was cancelled."""

    async def run(self, invocation: Invocation, /) -> Any:
        """Run."""
        task = asyncio.ensure_future(super().run(invocation))
        while not task.done():
            try:
                await asyncio.wait([task], timeout=0.5)
            except asyncio.CancelledError:
                continue
        return task.result()


class Late(Wrapped):
    """Runs what was cancelled before it had begun."""

    async def run(self, invocation: Invocation, /) -> Any:
        """Run."""
        try:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            invocation.fn(*invocation.args, **invocation.kwargs)
            raise
        return await super().run(invocation)


class Boastful(Wrapped):
    """Says that it can force what it can't."""

    def __init__(self, inner: ExecutionBackend) -> None:
        super().__init__(inner)
        self.enforces = FORCED


class Strict(Wrapped):
    """Refuses results for no reason."""

    async def run(self, invocation: Invocation, /) -> Any:
        """Run."""
        value = await super().run(invocation)
        if invocation.tool_name == "large":
            raise BackendResultError("it is not liked.")
        return value


class Forgetful(Wrapped):
    """Loses context variables."""

    async def run(self, invocation: Invocation, /) -> Any:
        """Run."""
        BACKEND_VARIABLE.set("its default")
        return await super().run(invocation)


BROKEN = [
    TextOnly, Twice, NeverBegins, Mute, Impostor, Blamed, Wordy, AlwaysOpen, OneAtATime, Deaf, Hasty, Late, Boastful, Strict, Forgetful,
]  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_broken_promise_is_noticed(broken: type[Wrapped], monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend with one promise that is not kept fails the checks, and the failure names the check."""
    monkeypatch.setattr("toolbatch.testing._backend_checks.SECONDS", 2.0)
    with pytest.raises(Exception) as failure:
        await check_backend(lambda: broken(LoopBackend()), context=True, blocking=False)
    assert any(note.startswith("in the check ") for note in failure.value.__notes__)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left)


async def test_what_is_not_broken_is_not_complained_of() -> None:
    """The wrapper itself keeps the promises."""
    await check_backend(lambda: Wrapped(LoopBackend()), context=True, blocking=False)
