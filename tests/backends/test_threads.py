"""Tools in threads of their own, which nobody can stop, and the loop's, which needs nothing."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.backends import tools
from tests.backends.kit import Ask, Bench, Witness, ended, script
from toolbatch.backends import LoopBackend, ThreadBackend
from toolbatch.core import InvalidInputError
from toolbatch.ports import BackendNotStartedError, BackendUnknownError, CallNote
from toolbatch.testing import _backend_tools


async def test_there_are_only_so_many_threads() -> None:
    """More calls wait, in their order, and one that is cancelled while it waits is never begun."""
    async with ThreadBackend(1) as backend, Witness.listening() as witness:
        first = Bench(backend).start(Ask(_backend_tools.block, {"port": witness.port}))
        line = await witness.line()
        asks = [Ask(_backend_tools.add, {"a": number}) for number in range(3)]
        runs = [Bench(backend).start(asked) for asked in asks]
        await asyncio.sleep(0)
        runs[0].cancel()
        assert isinstance(await ended(runs[0]), asyncio.CancelledError)
        line.let_go()
        assert [await first, await runs[1], await runs[2]] == ["done", 2, 3]
        assert [asked.begun for asked in asks] == [0, 1, 1]


async def test_who_waits_for_a_thread_is_told_of_the_end() -> None:
    """Leaving the backend refuses what was not begun."""
    async with Witness.listening() as witness:
        async with ThreadBackend(1) as backend:
            first = Bench(backend).start(Ask(_backend_tools.block, {"port": witness.port}))
            line = await witness.line()
            waiting = Bench(backend).start(Ask(_backend_tools.add, {"a": 1}))
            await asyncio.sleep(0)
        assert isinstance(await ended(waiting), BackendNotStartedError)
        line.let_go()
        assert await first == "done"


async def test_a_thread_that_hangs_is_given_up_when_cancelled_again() -> None:
    """Its end is not known then, and is never told as cancelled."""
    async with ThreadBackend() as backend, Witness.listening() as witness:
        run = Bench(backend).start(Ask(_backend_tools.block, {"port": witness.port}))
        line = await witness.line()
        run.cancel()
        await asyncio.sleep(0)
        assert not run.done()
        run.cancel()
        assert isinstance(await ended(run), BackendUnknownError)
        line.let_go()
        await line.gone()


async def test_an_asynchronous_tool_has_a_loop_of_its_own() -> None:
    """So one that blocks its loop does not block ours."""
    async with ThreadBackend() as backend:
        asked = Ask(tools.count, {"to": 3})
        assert await Bench(backend).ask(asked) == 2
        assert asked.notes == [CallNote("progress", ("0",)), CallNote("progress", ("1",))]


async def test_a_system_without_threads_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call was not started, and its place is free."""

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async with ThreadBackend(1) as backend:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(BackendNotStartedError, match="no thread left"):
                await Bench(backend).run(_backend_tools.add, a=1)
        assert await Bench(backend).run(_backend_tools.add, a=1) == 2


@pytest.mark.parametrize("count", [0, -1, True, 1.5, "2"])
def test_a_bound_that_is_no_number_is_refused(count: Any) -> None:
    """It must be a positive int."""
    with pytest.raises(InvalidInputError, match="max_threads"):
        ThreadBackend(count)


async def test_the_loop_drains_a_generator() -> None:
    """Its last item is the result, the others are progress."""
    async with LoopBackend() as backend:
        asked = Ask(tools.count, {"to": 3})
        assert await Bench(backend).ask(asked) == 2
        assert asked.notes == [CallNote("progress", ("0",)), CallNote("progress", ("1",))]


HANGING = """
import asyncio, threading
from tests.backends.kit import Ask, Bench
from toolbatch.backends import ThreadBackend
from toolbatch.testing import _backend_tools

async def main():
    entered = threading.Event()
    def hang():
        entered.set()
        threading.Event().wait()
    async with ThreadBackend() as backend:
        from dataclasses import replace
        asked = replace(Ask(_backend_tools.add, {}).invocation, fn=hang)
        run = asyncio.ensure_future(backend.run(asked))
        await asyncio.to_thread(entered.wait)
        run.cancel()

asyncio.run(main())
print("over")
"""


async def test_a_thread_that_hangs_keeps_no_program_alive(tmp_path: Path) -> None:
    """It is a daemon, and the loop's end is its second cancellation (B9)."""
    program = script(HANGING, folder=tmp_path)
    output, errors = await asyncio.to_thread(program.communicate)
    assert (output, program.returncode) == ("over\n", 0), errors


def test_importing_toolbatch_loads_no_backend(tmp_path: Path) -> None:
    """Nor `subprocess`' heavier relatives, nor Temporal's client, even with the backends themselves."""
    code = "import sys, toolbatch; a = 'toolbatch.backends' in sys.modules; import toolbatch.backends; toolbatch.backends.TemporalBackend; "
    code += "print(a, [name for name in ('multiprocessing', 'temporalio', 'pydantic') if name in sys.modules])"
    program = script(code, folder=tmp_path)
    output, errors = program.communicate()
    assert output == "False []\n", errors
