"""Checks that an execution backend keeps its promises: run them on your own, as toolbatch does on its own (X1, X2).

A call of the checks, for a backend that carries the context variables that it is told of::

    await check_backend(lambda: MyBackend(context_vars=[BACKEND_VARIABLE]), context=True)
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from toolbatch.core import ToolError
from toolbatch.ports import (
    BackendError,
    BackendUnknownError,
    CallNote,
    ResultNotSendableError,
    ResultTooLargeError,
)
from toolbatch.testing import _backend_tools as tools
from toolbatch.testing._backend_bench import SECONDS, Ask, Bench, Line, MakeBackend, Witness
from toolbatch.testing._store_bench import equal, require

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["check_backend"]

_VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    2**60,
    1.5,
    "",
    'ä😀 \\ " \n',
    [1, [2, {"a": None}]],
    {},
    {"": [], "b": "c"},
    "long" * 20_000,
)
_TURNS: Final = 8


async def check_backend(
    make_backend: MakeBackend, *, context: bool = False, blocking: bool = True, many: int = 64
) -> None:
    """Run every check on backends of the caller's making. It takes some seconds.

    The tools that are run are `BACKEND_TOOLS`. They connect to this process by the machine's loopback, so workers must be on it.

    Args:
        make_backend: Makes a backend that was not entered. Each is entered, used and left in the running loop, or only looked at.
        context: Whether the backend carries the context variable `BACKEND_VARIABLE`.
        blocking: Whether a synchronous tool leaves the event loop free while it runs.
        many: How many calls are asked of it at once.

    Raises:
        AssertionError: A promise is not kept; its note names the check.
        Exception: What the backend raised without having promised to; likewise.
    """

    async def many_run_at_once(make_one: MakeBackend) -> None:
        await _each_run_gets_its_own(make_one, many)

    checks = [*_CHECKS, many_run_at_once]
    checks += (_CONTEXT_CHECKS if context else ()) + (_BLOCKING_CHECKS if blocking else ())
    for check in checks:
        try:
            async with asyncio.timeout(SECONDS):
                await check(make_backend)
        except Exception as error:
            error.add_note(f"in the check {check.__name__.strip('_')!r} of {check.__module__}")
            raise


async def _values_come_back(make_backend: MakeBackend) -> None:
    async with make_backend() as backend:
        bench = Bench(backend)
        for number, value in enumerate(_VALUES):
            answer = await bench.run(tools.echo if number % 2 else tools.echo_later, value=value)
            equal((type(answer), answer), (type(value), value), "a value that is JSON comes back as it was")
        equal(
            [await bench.run(tools.add, a=1), await bench.run(tools.add, a=1, b=5)],
            [2, 6],
            "arguments go by their names",
        )


async def _a_tools_own_failure_is_raised(make_backend: MakeBackend) -> None:
    async with make_backend() as backend:
        bench = Bench(backend)
        for code in (None, "sold_out"):
            error = await bench.raises(ToolError, Ask(tools.fail, {"message": "no más", "code": code}))
            require(not isinstance(error, BackendError), "what a tool raises is the tool's failure, not the backend's")
            equal(
                (getattr(error, "message", ""), getattr(error, "code", "")),
                ("no más", code),
                "a tool's word to the model",
            )
        plain = await bench.raises(Exception, Ask(tools.fail_plainly, {"message": "out of paper"}))
        require(not isinstance(plain, ToolError), "an ordinary exception is no word to the model")
        equal(str(plain), "out of paper", "an exception's message")
        odd = await bench.raises(Exception, Ask(tools.fail_oddly, {}))
        require(not isinstance(odd, BackendError), "an exception that can't be sent is the tool's failure all the same")
        equal(await bench.run(tools.add, a=1), 2, "after failures it goes on")


async def _the_tool_knows_its_call(make_backend: MakeBackend) -> None:
    async with make_backend() as backend:
        asked = Ask(tools.facts, {})
        told = await Bench(backend).ask(asked)
        told.pop("variable")
        facts = asked.facts
        known = {
            "call_id": facts.call.id, "name": "facts", "generation": 3, "run_id": facts.run_id, "execution_id": facts.execution_id,
            "idempotency_key": facts.idempotency_key, "has_time": True,
        }  # fmt: skip
        equal(told, known, "what a tool knows of its call")


async def _what_a_tool_says_arrives(make_backend: MakeBackend) -> None:
    async with make_backend() as backend:
        asked = Ask(tools.say, {})
        equal(await Bench(backend).ask(asked), "said")
        expected = [
            CallNote("conclude_turn", ()), CallNote("add_context", ("a hint",)), CallNote("report_failure", ("it failed", "partly")),
        ]  # fmt: skip
        equal(asked.notes, expected, "what a tool has said by the time its run has ended")


async def _a_beginning_is_told_once(make_backend: MakeBackend) -> None:
    async with make_backend() as backend:
        for tool, arguments in (
            (tools.add, {"a": 1}),
            (tools.fail, {"message": "no"}),
            (tools.echo_later, {"value": 1}),
        ):
            asked = Ask(tool, arguments)
            await asyncio.gather(Bench(backend).ask(asked), return_exceptions=True)
            equal(asked.begun, 1, "a run begins once")


async def _nothing_starts_outside_of_its_block(make_backend: MakeBackend) -> None:
    backend = make_backend()
    await Bench(backend).refused(Ask(tools.add, {"a": 1}))
    async with backend:
        pass
    await Bench(backend).refused(Ask(tools.add, {"a": 1}))


async def _each_run_gets_its_own(make_backend: MakeBackend, many: int) -> None:
    async with make_backend() as backend:
        runs = [Bench(backend).start(Ask(tools.echo, {"value": number})) for number in range(many)]
        equal(await asyncio.gather(*runs), list(range(many)), "each run gets its own value")


async def _what_can_not_be_shown_is_said_so(make_backend: MakeBackend) -> None:
    async with make_backend() as backend:
        bench = Bench(backend)
        await _shown_or(ResultNotSendableError, bench, Ask(tools.unshowable, {}))
        await _shown_or(ResultTooLargeError, bench, Ask(tools.large, {"size": 100_000}, limit=1000))
        equal(await bench.run(tools.large, size=100_000), "x" * 100_000)
        equal(await bench.run(tools.loud), "quiet", "what tools print is nobody's result")


async def _shown_or(error: type[Exception], bench: Bench, asked: Ask) -> None:
    try:
        await bench.ask(asked)
    except error:
        equal(asked.begun, 1, "what ran to its end has begun")


async def _a_cancelled_tool_has_ended(make_backend: MakeBackend) -> None:
    async with make_backend() as backend, Witness.listening() as witness:
        run = Bench(backend).start(Ask(tools.hold, {"port": witness.port}))
        line = await witness.line()
        run.cancel()
        require(await _ended(run) is asyncio.CancelledError, "a tool that ends by its cancellation ends its run so")
        if backend.enforces.cancellation == "cooperative":
            equal(await line.hear(), "cleaned up", "a tool that can be asked is asked")
        await line.gone()
        equal(await Bench(backend).run(tools.add, a=1), 2, "after a cancellation it goes on")


async def _a_tool_that_refuses_to_stop(make_backend: MakeBackend) -> None:
    async with make_backend() as backend, Witness.listening() as witness:
        run = Bench(backend).start(Ask(tools.refuse_to_stop, {"port": witness.port}))
        await _is_stopped_or_awaited(backend.enforces.cancellation == "forced", run, await witness.line(), says_so=True)


async def _a_tool_that_blocks(make_backend: MakeBackend) -> None:
    async with make_backend() as backend, Witness.listening() as witness:
        run = Bench(backend).start(Ask(tools.block, {"port": witness.port}))
        await _is_stopped_or_awaited(
            backend.enforces.cancellation == "forced", run, await witness.line(), says_so=False
        )


async def _is_stopped_or_awaited(is_forced: bool, run: asyncio.Task[Any], line: Line, *, says_so: bool) -> None:  # noqa: FBT001
    run.cancel()
    if is_forced:
        require(await _ended(run) is asyncio.CancelledError, "what was stopped by force has ended by that")
    else:
        if says_so:
            equal(await line.hear(), "cancelled", "a tool that can be asked is asked")
        await asyncio.sleep(0)
        require(not run.done(), "a run does not end before its tool, whoever cancels it")
        line.let_go()
        equal(await run, "done", "what ended otherwise than by its cancellation is told as that")
    await line.gone()


async def _cancelling_at_any_moment(make_backend: MakeBackend) -> None:
    async with make_backend() as backend, Witness.listening() as witness:
        bench = Bench(backend)
        asks = [Ask(tools.mark, {"port": witness.port, "number": number}) for number in range(_TURNS)]
        for turns, asked in enumerate(asks):
            run = bench.start(asked)
            for _ in range(turns):
                await asyncio.sleep(0)
            run.cancel()
            require(
                await _ended(run) in (None, asyncio.CancelledError, BackendUnknownError),
                "a cancelled run ends in order",
            )
        equal(await bench.run(tools.mark, port=witness.port, number=_TURNS), _TURNS, "after all of them it goes on")
        never = {number for number, asked in enumerate(asks) if asked.begun == 0}
        require(never.isdisjoint(await witness.marks()), "what was not begun was not run")


async def _leaving_stops_what_it_can(make_backend: MakeBackend) -> None:
    async with Witness.listening() as witness:
        backend = make_backend()
        async with backend:
            run = Bench(backend).start(Ask(tools.hold, {"port": witness.port}))
            line = await witness.line()
        if backend.enforces.cancellation == "forced":
            await line.gone()
        run.cancel()
        ended = await _ended(run)
        require(
            ended is asyncio.CancelledError or (ended and issubclass(ended, BackendUnknownError)), "it has no result"
        )


async def _ended(run: asyncio.Task[Any]) -> type[BaseException] | None:
    """Wait for a run's end, and return the type of what it raised."""
    await asyncio.wait([run])
    if run.cancelled():
        return asyncio.CancelledError
    error = run.exception()
    return None if error is None else type(error)


async def _named_variables_are_carried(make_backend: MakeBackend) -> None:
    async with make_backend() as backend:
        for value in ("one", "two"):
            token = tools.BACKEND_VARIABLE.set(value)
            equal((await Bench(backend).run(tools.facts))["variable"], value, "a context variable's value")
            tools.BACKEND_VARIABLE.reset(token)
        equal(
            (await Bench(backend).run(tools.facts))["variable"], "its default", "one run's value is not the next one's"
        )


_CHECKS: Final[tuple[Callable[[MakeBackend], Awaitable[None]], ...]] = (
    _values_come_back,
    _a_tools_own_failure_is_raised,
    _the_tool_knows_its_call,
    _what_a_tool_says_arrives,
    _a_beginning_is_told_once,
    _nothing_starts_outside_of_its_block,
    _what_can_not_be_shown_is_said_so,
    _a_cancelled_tool_has_ended,
    _a_tool_that_refuses_to_stop,
    _cancelling_at_any_moment,
    _leaving_stops_what_it_can,
)

_CONTEXT_CHECKS: Final[tuple[Callable[[MakeBackend], Awaitable[None]], ...]] = (_named_variables_are_carried,)
_BLOCKING_CHECKS: Final[tuple[Callable[[MakeBackend], Awaitable[None]], ...]] = (_a_tool_that_blocks,)
