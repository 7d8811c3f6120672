"""Tools in processes: whatever they do there, the host knows what became of their calls, and nothing of them stays."""

import asyncio
import gc
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.backends import tools
from tests.backends.kit import Ask, Bench, Witness, ended, open_files, processes, script
from toolbatch.backends import ProcessBackend, _child, _pool
from toolbatch.core import BatchStateError, InvalidInputError, InvalidTypeError, ToolError
from toolbatch.ports import (
    BackendNotStartedError,
    BackendUnknownError,
    CallNote,
    NotApplied,
    NotSendableError,
    RemoteToolError,
    ResultNotSendableError,
    WorkerKilledError,
)
from toolbatch.testing import _backend_tools

# -- workers that die --------------------------------------------------------------------------------------------------------


async def test_a_worker_that_is_killed_leaves_the_outcome_unknown() -> None:
    """A call in the middle of which the process is killed is never told as failed, and another worker takes the next one."""
    async with processes() as backend, Witness.listening() as witness:
        asked = Ask(_backend_tools.block, {"port": witness.port})
        run = Bench(backend).start(asked)
        await witness.line()
        os.kill(backend.pids[0], signal.SIGKILL)
        error = await ended(run)
        assert isinstance(error, WorkerKilledError)
        assert (error.code, error.effects, asked.begun) == ("outcome_unknown", "unknown", 1)
        assert "SIGKILL" in error.message
        assert "not known" in error.message
        assert await Bench(backend).run(_backend_tools.add, a=1) == 2


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        (tools.exit_now, {"code": 0}, "exit code 0"),
        (tools.exit_now, {"code": 7}, "exit code 7"),
        (tools.close_everything, {}, "was killed"),
        (tools.scribble, {}, "it has sent"),
    ],
)
async def test_a_worker_that_ends_itself_leaves_the_outcome_unknown(
    tool: Any, arguments: dict[str, Any], says: str
) -> None:
    """Likewise where the tool itself ends the process, closes its socket, or writes to it."""
    async with processes() as backend:
        with pytest.raises(WorkerKilledError, match=says):
            await Bench(backend).run(tool, **arguments)
        assert await Bench(backend).run(_backend_tools.add, a=1) == 2


async def test_a_tool_that_calls_exit_has_failed_and_ends_nobody() -> None:
    """`SystemExit` was meant for a process of the tool's own: it is the tool's failure, and not the host's end."""
    async with processes() as backend:
        before = await Bench(backend).run(tools.pid)
        with pytest.raises(ToolError, match="SystemExit: 3"):
            await Bench(backend).run(tools.exit_politely)
        assert await Bench(backend).run(tools.pid) == before


async def test_what_a_tool_has_forked_does_not_answer_for_it_or_for_the_next_call() -> None:
    """A child that comes to the tool's end goes: its word would be taken for that of whichever call runs then."""
    async with processes() as backend, Witness.listening() as witness:
        asked = Ask(tools.returns_twice, {"port": witness.port})
        assert await Bench(backend).ask(asked) == "the parent's"
        child = await witness.line()
        run = Bench(backend).start(Ask(tools.wait_for_word, {"port": witness.port}))
        line = await witness.line()
        child.let_go()
        await child.gone()
        line.let_go()
        assert await run == "heard"
        assert await Bench(backend).run(_backend_tools.add, a=1) == 2
        assert asked.notes == []


async def test_an_exception_that_can_not_be_asked_what_it_is_is_the_tools_failure() -> None:
    """And does not end the worker."""
    async with processes() as backend:
        before = await Bench(backend).run(tools.pid)
        with pytest.raises(RemoteToolError, match="x"):
            await Bench(backend).run(tools.fail_opaquely)
        assert await Bench(backend).run(tools.pid) == before


@pytest.mark.parametrize("how", [SystemExit, asyncio.CancelledError, tools.Unspeakable])
async def test_a_result_that_raises_where_it_is_read_is_one_that_can_not_be_sent(how: type[BaseException]) -> None:
    """It ends no host, is no cancellation, and is told with what is known: the tool ran to its end."""
    async with processes() as backend:
        with pytest.raises(ResultNotSendableError, match=how.__name__):
            await Bench(backend).run(tools.lay_trap, how=how)


async def test_a_tool_that_wants_too_much_memory_fails_alone() -> None:
    """The bound is the worker's: `MemoryError` is the tool's failure."""
    async with processes(memory=2 << 30) as backend:
        with pytest.raises(MemoryError):
            await Bench(backend).run(tools.eat_memory)
        assert await Bench(backend).run(_backend_tools.add, a=1) == 2


async def test_a_tool_that_uses_too_much_processor_time_is_killed() -> None:
    """By the system, and the message says so."""
    async with processes(cpu_seconds=0.1) as backend:
        assert await Bench(backend).run(_backend_tools.add, a=1) == 2
        with pytest.raises(WorkerKilledError, match=r"more than 0\.1 seconds of processor time"):
            await Bench(backend).run(tools.spin)


# -- cancellation ------------------------------------------------------------------------------------------------------------


async def test_children_and_grandchildren_die_with_the_tool() -> None:
    """What a tool has started and forked is gone when its cancelled run has ended."""
    async with processes() as backend, Witness.listening() as witness:
        run = Bench(backend).start(Ask(tools.with_children, {"port": witness.port, "exits": False}))
        lines = [await witness.line() for _ in range(3)]
        run.cancel()
        assert isinstance(await ended(run), asyncio.CancelledError)
        for line in lines:
            await line.gone()


async def test_children_die_with_a_worker_that_ends_itself() -> None:
    """A process that dies by itself takes its group with it, though its children hold its socket open."""
    async with processes() as backend, Witness.listening() as witness:
        run = Bench(backend).start(Ask(tools.with_children, {"port": witness.port, "exits": True}))
        lines = [await witness.line() for _ in range(3)]
        for line in lines:
            line.let_go()
        assert isinstance(await ended(run), WorkerKilledError)
        for line in lines:
            await line.gone()


async def test_what_a_tool_leaves_behind_ends_with_its_worker() -> None:
    """A program that outlived its tool is killed when the worker is let go."""
    async with Witness.listening() as witness:
        async with processes() as backend:
            assert await Bench(backend).run(tools.leave_child, port=witness.port) == "left"
            line = await witness.line()
        await line.gone()


async def test_a_tool_that_ignores_every_signal_is_killed_after_its_grace() -> None:
    """Grace is an offer."""
    async with processes(grace=0.05) as backend, Witness.listening() as witness:
        run = Bench(backend).start(Ask(tools.ignore_sigterm, {"port": witness.port}))
        line = await witness.line()
        run.cancel()
        assert isinstance(await ended(run), asyncio.CancelledError)
        await line.gone()


async def test_grace_lets_an_asynchronous_tool_clean_up() -> None:
    """It is cancelled in its own loop first."""
    async with processes(grace=30.0) as backend, Witness.listening() as witness:
        run = Bench(backend).start(Ask(_backend_tools.hold, {"port": witness.port}))
        line = await witness.line()
        run.cancel()
        assert isinstance(await ended(run), asyncio.CancelledError)
        assert await line.hear() == "cleaned up"


@pytest.mark.parametrize(("tool", "value"), [(tools.listen, "heard"), (tools.swallow, "swallowed")])
async def test_what_ends_in_its_grace_with_a_value_is_told_so(tool: Any, value: str) -> None:
    """A cancelled run tells the tool's true end: no cancellation where there was none."""
    async with processes(grace=30.0) as backend, Witness.listening() as witness:
        run = Bench(backend).start(Ask(tool, {"port": witness.port}))
        line = await witness.line()
        run.cancel()
        assert await run == value
        await line.gone()
        assert await Bench(backend).run(_backend_tools.add, a=1) == 2


async def test_being_cancelled_again_ends_the_grace() -> None:
    """Who is in a hurry asks twice."""
    async with processes(grace=50.0) as backend, Witness.listening() as witness:
        run = Bench(backend).start(Ask(tools.ignore_sigterm, {"port": witness.port}))
        line = await witness.line()
        run.cancel()
        await asyncio.sleep(0)
        run.cancel()
        assert isinstance(await ended(run), asyncio.CancelledError)
        await line.gone()


async def test_what_waits_for_a_worker_ends_at_once_and_never_runs() -> None:
    """A cancelled run that had no worker yet was not begun; the one that has it is not disturbed."""
    async with processes() as backend, Witness.listening() as witness:
        first = Bench(backend).start(Ask(_backend_tools.block, {"port": witness.port}))
        line = await witness.line()
        waiting = [Ask(_backend_tools.mark, {"port": witness.port, "number": number}) for number in range(3)]
        runs = [Bench(backend).start(asked) for asked in waiting]
        await asyncio.sleep(0)
        runs[1].cancel()
        assert isinstance(await ended(runs[1]), asyncio.CancelledError)
        line.let_go()
        assert [await first, await runs[0], await runs[2]] == ["done", 0, 2]
        assert [asked.begun for asked in waiting] == [1, 0, 1]
        assert sorted(await witness.marks()) == [0, 2]


# -- what is sent ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fn", "arguments", "value"), tools.KINDS[:-2])
async def test_functions_of_every_kind_are_found(fn: Any, arguments: dict[str, Any], value: object) -> None:
    """By their module and name: under a decorator, as methods, as partials, as objects."""
    async with processes() as backend:
        asked = Ask(_backend_tools.echo, arguments)
        assert await backend.run(replace(asked.invocation, fn=fn)) == value


def local() -> Any:
    """Make functions that no worker can find."""

    def inner() -> None: ...

    return inner


@pytest.mark.parametrize("fn", [local(), lambda: 1])
async def test_what_can_not_be_found_elsewhere_is_refused_early(fn: Any) -> None:
    """A lambda, or a function of a function: when the tool is made, and all the same when it is run."""
    backend = processes()
    with pytest.raises(InvalidTypeError, match="top level"):
        backend.require(fn)
    async with backend:
        asked = Ask(_backend_tools.echo, {"value": fn})
        with pytest.raises(NotSendableError, match=r"echo can't be sent .*top level"):
            await Bench(backend).ask(asked)
        assert asked.begun == 0


@pytest.mark.parametrize(
    ("value", "says"),
    [(threading.Lock(), "pickle"), (b"x" * 5000, "4,000 bytes"), ((_ for _ in ()), "generator")],
)
async def test_arguments_that_can_not_be_sent_are_refused(value: object, says: str) -> None:
    """Nothing is begun, and an operation that was claimed for it is free."""
    async with processes(max_result_bytes=4000) as backend:
        asked = Ask(_backend_tools.echo, {"value": value})
        with pytest.raises(NotSendableError, match=says) as refusal:
            await Bench(backend).ask(asked)
        assert asked.begun == 0
        assert isinstance(refusal.value, NotApplied)
        assert refusal.value.message.startswith("NOT EXECUTED: ")


class Unmakeable:
    """Can be pickled, and not made again."""

    def __reduce__(self) -> Any:
        return _raise, ()


def _raise() -> None:
    raise KeyError("gone")


async def test_arguments_that_can_not_be_made_in_the_worker_are_refused() -> None:
    """The worker says so before it enters the tool."""
    async with processes() as backend:
        with pytest.raises(NotSendableError, match="KeyError"):
            await Bench(backend).run(_backend_tools.echo, value=Unmakeable())
        assert await Bench(backend).run(_backend_tools.add, a=1) == 2


async def test_an_exception_keeps_its_type_and_tells_where_it_was_raised() -> None:
    """As far as it can be sent; the traceback is a note, which no model reads."""
    async with processes() as backend:
        with pytest.raises(ValueError) as plain:
            await Bench(backend).run(_backend_tools.fail_plainly, message="no")
        assert str(plain.value) == "no"
        assert "fail_plainly" in "".join(plain.value.__notes__)
        with pytest.raises(RemoteToolError) as odd:
            await Bench(backend).run(_backend_tools.fail_oddly)
        assert odd.value.type_name == "_OddError"


async def test_progress_comes_before_the_result() -> None:
    """The items of an async generator, in their order."""
    async with processes() as backend:
        asked = Ask(tools.count, {"to": 4})
        assert await Bench(backend).ask(asked) == 3
        assert asked.notes == [CallNote("progress", (str(number),)) for number in range(3)]


# -- how many ----------------------------------------------------------------------------------------------------------------


async def test_many_calls_share_few_workers() -> None:
    """64 calls over 2 processes."""
    async with processes(2) as backend:
        pids = await asyncio.gather(*(Bench(backend).start(Ask(tools.pid, {})) for _ in range(64)))
        assert set(pids) <= set(backend.pids)
        assert len(backend.pids) <= 2


async def test_a_worker_is_replaced_after_so_many_calls() -> None:
    """And the old one is gone."""
    async with processes(max_calls=2) as backend:
        pids = [await Bench(backend).run(tools.pid) for _ in range(4)]
        assert pids[0] == pids[1] != pids[2] == pids[3]
        assert not Path(f"/proc/{pids[0]}").exists()


async def test_a_worker_that_can_t_begin_a_call_is_replaced() -> None:
    """An earlier tool may have spoilt it, and would keep every later call from being run."""
    async with processes() as backend:
        spoilt = await Bench(backend).run(tools.pid)
        await Bench(backend).run(tools.lose_path)
        with pytest.raises(NotSendableError, match="can't run the call"):
            await Bench(backend).run(tools.pid)
        assert await Bench(backend).run(tools.pid) != spoilt


async def test_nothing_is_left_behind() -> None:
    """No process, no zombie, no open file, whatever happened to the workers."""
    await _use_all(Witness.listening())
    gc.collect()
    before = open_files()
    pids = await _use_all(Witness.listening())
    gc.collect()
    assert open_files() <= before  # what earlier tests have left may be closed meanwhile
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not [child for child in _child._alive if child.exit_code is None]


async def _use_all(listening: Any) -> list[int]:
    async with listening as witness, processes(2) as backend:
        pids = [await Bench(backend).run(tools.pid)]
        await ended(Bench(backend).start(Ask(tools.exit_now, {"code": 1})))
        run = Bench(backend).start(Ask(_backend_tools.block, {"port": witness.port}))
        await witness.line()
        pids += backend.pids
        run.cancel()
        await ended(run)
        last = Bench(backend).start(Ask(_backend_tools.block, {"port": witness.port}))
        await witness.line()
        pids += backend.pids
    assert isinstance(await ended(last), BackendUnknownError)
    return pids


# -- workers that can't be started -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [({"preload": ["no_such_module"]}, "no_such_module"), ({"start_timeout": 0.001}, "")],
)
async def test_a_worker_that_can_not_start_is_told_at_once(options: dict[str, Any], says: str) -> None:
    """When the backend is entered, where it keeps one warm; else to the call that needs it, which was not begun."""
    with pytest.raises(BackendNotStartedError, match=f"can't be started.*{says}"):
        async with processes(**options):
            pass
    async with processes(warm=0, **options) as backend:
        for _ in range(2):
            await Bench(backend).refused(Ask(_backend_tools.add, {"a": 1}))


async def test_a_system_without_processes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """To each call that waits."""

    def refuse(output: str) -> None:
        raise OSError("no more processes")

    async with processes(warm=0) as backend:
        monkeypatch.setattr(_pool, "launch", refuse)
        asks = [Ask(_backend_tools.add, {"a": 1}) for _ in range(3)]
        errors = [await ended(run) for run in [Bench(backend).start(asked) for asked in asks]]
        assert all(
            isinstance(error, BackendNotStartedError) and "no more processes" in error.message for error in errors
        )
        assert [asked.begun for asked in asks] == [0, 0, 0]


async def test_entering_can_be_cancelled_at_any_moment() -> None:
    """And leaves no process behind."""
    for turns in range(0, 40, 8):
        backend = processes()
        task = asyncio.ensure_future(backend.__aenter__())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        await backend.__aexit__()
    assert not [child for child in _child._alive if child.exit_code is None]


async def test_a_worker_that_dies_while_it_is_handed_over_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call has not begun by then, and gets another one."""
    really: Any = vars(_child.Child)["is_usable"]
    looks = iter([False])

    def look(child: _child.Child) -> bool:
        if next(looks, True):
            return bool(really.fget(child))
        child.kill()
        return False

    async with processes() as backend:
        before = backend.pids
        monkeypatch.setattr(_child.Child, "is_usable", property(look))
        assert [await Bench(backend).run(tools.pid)] != before


async def test_a_backend_that_could_not_be_entered_is_closed() -> None:
    """Nobody waits for a worker that will never come."""
    backend = processes(preload=["no_such_module"])
    with pytest.raises(BackendNotStartedError):
        await backend.__aenter__()
    await Bench(backend).refused(Ask(_backend_tools.add, {"a": 1}))


# -- options and states ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"workers": 0}, InvalidInputError), ({"workers": True}, InvalidTypeError), ({"warm": -1}, InvalidInputError),
        ({"max_calls": 0}, InvalidInputError), ({"grace": -1}, InvalidInputError), ({"grace": "1"}, InvalidTypeError),
        ({"grace": float("nan")}, InvalidInputError), ({"memory": 0}, InvalidInputError), ({"cpu_seconds": 0}, InvalidInputError),
        ({"max_result_bytes": 1.5}, InvalidTypeError), ({"start_timeout": float("inf")}, InvalidInputError),
        ({"context_vars": [1]}, InvalidTypeError),
    ],
)  # fmt: skip
def test_options_that_can_not_be_used_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    """The message names the option."""
    with pytest.raises(error, match=next(iter(options))):
        ProcessBackend(**options)


def test_a_context_variable_that_nobody_could_find_is_refused() -> None:
    """It must be at a module's top level."""
    from contextvars import ContextVar

    with pytest.raises(InvalidInputError, match="top level"):
        ProcessBackend(context_vars=[ContextVar("hidden")])


async def test_a_backend_is_entered_once() -> None:
    """And left for good."""
    async with processes() as backend:
        with pytest.raises(BatchStateError, match="entered before"):
            await backend.__aenter__()


async def test_a_backend_belongs_to_its_loop() -> None:
    """Asked from another one it refuses, and nothing is begun."""
    async with processes(warm=0) as backend:
        asked = Ask(_backend_tools.add, {"a": 1})
        with pytest.raises(BackendNotStartedError, match="another event loop"):
            await asyncio.to_thread(lambda: asyncio.run(backend.run(asked.invocation)))
        assert asked.begun == 0


# -- programs ----------------------------------------------------------------------------------------------------------------

HOST = """
import asyncio, os, signal, sys
from tests.backends.kit import Ask, Bench, processes
from toolbatch.testing import _backend_tools

async def main(port, how):
    backend = processes()
    await backend.__aenter__()
    run = Bench(backend).start(Ask(_backend_tools.block, {"port": port}))
    await asyncio.to_thread(sys.stdin.readline) if how == "wait" else None
    while not run.done():
        await asyncio.sleep(0.01)
        if os.path.exists(sys.argv[3]):
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            return

if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.parametrize("how", ["end", "kill"])
async def test_workers_end_with_their_host(how: str, tmp_path: Path) -> None:
    """Whether it ends without closing its backend, or is killed in the middle of a call."""
    async with Witness.listening() as witness:
        host = script(HOST, witness.port, how, tmp_path / "go", folder=tmp_path)
        line = await witness.line()
        (tmp_path / "go").touch()
        await line.gone()
        await asyncio.to_thread(host.communicate)


MAIN = """
import asyncio, sys
from tests.backends.kit import Ask, Bench, processes

class Point:
    def __init__(self, x): self.x = x

def move(point, by): return Point(point.x + by)

async def main():
    async with processes() as backend:
        moved = await Bench(backend).run(move, point=Point(1), by=2)
        print(type(moved) is Point, moved.x)

{guard}asyncio.run(main())
"""


async def test_tools_and_values_of_the_main_module_are_found(tmp_path: Path) -> None:
    """As with `multiprocessing`."""
    host = script(MAIN.format(guard="if __name__ == '__main__': "), folder=tmp_path)
    output, errors = await asyncio.to_thread(host.communicate)
    assert (output, host.returncode) == ("True 3\n", 0), errors


async def test_a_main_module_without_its_guard_is_told_of_it(tmp_path: Path) -> None:
    """A worker that loads it does not begin another program."""
    host = script(MAIN.format(guard=""), folder=tmp_path)
    _, errors = await asyncio.to_thread(host.communicate)
    assert host.returncode == 1
    assert "if __name__ == '__main__'" in errors


FORK = """
import asyncio, os, sys
from tests.backends.kit import Ask, processes
from toolbatch.ports import BackendNotStartedError
from toolbatch.testing import _backend_tools

async def main():
    async with processes() as backend:
        child = os.fork()
        if child == 0:
            try:
                await backend.run(Ask(_backend_tools.add, {"a": 1}).invocation)
            except BackendNotStartedError as error:
                os._exit(0 if "forked" in error.message else 1)
            os._exit(2)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), await backend.run(Ask(_backend_tools.add, {"a": 1}).invocation))

if __name__ == "__main__":
    asyncio.run(main())
"""


async def test_a_forked_child_leaves_its_parents_workers_alone(tmp_path: Path) -> None:
    """It is told to make its own."""
    host = script(FORK, folder=tmp_path)
    output, errors = await asyncio.to_thread(host.communicate)
    assert output == "0 2\n", errors
