"""Whole processes: what hangs does not keep them alive, what ends them is quiet, and Ctrl-C is an abort (B3, B4, B9)."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"

HEAD = """
import asyncio, os, signal, sys, threading, time
from toolbatch import ToolBatch, ToolCall, ToolSession, ToolError
calls = lambda *ids: [ToolCall(i, "tool_" + i) for i in ids]
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background has it ignored
async def forever(): await asyncio.Event().wait()
async def instant(): return "done"
def codes(batch):
    return {c.id: "success" if c.state == "success" else c.settlement.code for c in batch.result.calls}
"""


def python(code: str, *flags: str, interrupt: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; with `interrupt`, send it Ctrl-C once it has printed a line."""
    program = HEAD + textwrap.dedent(code)
    environment = {**os.environ, "PYTHONPATH": str(SRC), "PYTHONWARNINGS": "error"}
    command = [sys.executable, *flags, "-c", program]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        first = ""
        if interrupt:
            assert process.stdout is not None
            first = process.stdout.readline()
            process.send_signal(signal.SIGINT)
        try:
            out, error = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, first + out, error)


def quiet(done: subprocess.CompletedProcess[str]) -> None:
    """Check that stderr tells of nothing but, at most, the one traceback that ended the process."""
    for noise in ("never retrieved", "never awaited", "was destroyed", "Exception ignored", "ResourceWarning", "Fatal"):
        assert noise not in done.stderr, done.stderr


LOOPS = [pytest.param("asyncio.run", id="asyncio"), pytest.param("__import__('uvloop').run", id="uvloop")]


@pytest.mark.parametrize("run", LOOPS)
def test_a_hung_thread_does_not_keep_the_process(run: str) -> None:
    """A synchronous tool that never ends is let go, and the process ends (B9)."""
    done = python(f"""
        async def main():
            entered = threading.Event()
            def hang():
                entered.set()
                threading.Event().wait()
            async with ToolBatch(calls("a", "b"), timeout=0.3, teardown_timeout=0.05) as batch:
                batch.start("a", hang)
                batch.start("b", instant)
            print(entered.is_set(), codes(batch), batch.outcomes["a"].completion)
        {run}(main())
    """)
    assert (done.returncode, done.stderr) == (0, "tools were asked to stop, have not ended, and run on: tool_a\n")
    assert done.stdout == "True {'a': 'timeout', 'b': 'success'} unknown\n"


@pytest.mark.parametrize("run", LOOPS)
@pytest.mark.parametrize("where", ["async def tool():", "def tool():"], ids=["loop", "thread"])
def test_a_keyboard_interrupt_in_a_tool(where: str, run: str) -> None:
    """It ends the run as `KeyboardInterrupt`, with every call answered and no other noise (B4)."""
    done = python(f"""
        {where}
            raise KeyboardInterrupt("from the tool")
        async def main():
            global batch
            async with ToolBatch(calls("a", "b", "c")) as batch:
                batch.start("c", instant)
                await asyncio.sleep(0.01)
                batch.start("a", tool)
                batch.start("b", forever)
                await batch.snapshot()
                await forever()
        try:
            {run}(main())
        except KeyboardInterrupt:
            print("interrupted", codes(batch))
    """)
    assert done.stdout == "interrupted {'a': 'tool_error', 'b': 'batch_failed', 'c': 'success'}\n", done.stderr
    assert (done.returncode, done.stderr) == (0, "")


def test_a_system_exit_in_a_tool() -> None:
    """`SystemExit` ends the process with its code, quietly (B4)."""
    done = python("""
        async def tool():
            raise SystemExit(7)
        async def main():
            async with ToolBatch(calls("a", "b")) as batch:
                batch.start("a", tool)
                batch.start("b", forever)
                await batch.snapshot()
                await asyncio.sleep(1)
        asyncio.run(main())
    """)
    assert (done.returncode, done.stderr, done.stdout) == (7, "", "")


def test_ctrl_c() -> None:
    """Ctrl-C under `asyncio.run` aborts the request: every call is answered before the process ends (B3, FIELD 12)."""
    done = python(
        """
        async def main():
            global batch
            async with ToolBatch(calls("a", "b", "c")) as batch:
                batch.start("a", forever)
                batch.start("b", instant)
                await asyncio.sleep(0.01)
                print("ready", flush=True)
                await batch.snapshot()
        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            print(codes(batch), [c.settlement.to_dict().get("side_effect_state") for c in batch.result.calls])
    """,
        interrupt=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    aborted = "request_aborted"
    assert done.stdout == f"ready\n{ {'a': aborted, 'b': 'success', 'c': aborted} } ['unknown', None, 'not_started']\n"


@pytest.mark.parametrize("flags", [(), ("-X", "dev")], ids=["plain", "dev"])
def test_ending_with_tasks_that_were_let_go(flags: tuple[str, ...]) -> None:
    """A process that ends with tools still running, waiting or queued is quiet about them (B9)."""
    done = python(
        """
        async def swallow():
            try:
                await forever()
            except asyncio.CancelledError:
                await forever()
        async def main():
            async with ToolSession(teardown_timeout=0.02) as session:
                async with session.batch(calls("a", "b", "c", "d", "e"), timeout=0.05, max_concurrency=3) as batch:
                    batch.start("a", swallow)
                    batch.start("b", swallow())
                    batch.start("c", lambda: time.sleep(0.2))
                    batch.start("d", forever())
                    batch.start("e", forever)
            print(codes(batch))
        asyncio.run(main())
    """,
        *flags,
    )
    assert done.returncode == 0
    quiet(done)
    assert done.stderr == "tools were asked to stop, have not ended, and run on: tool_a, tool_b, tool_c\n"
    assert done.stdout.count("timeout") == 5


def test_a_loop_that_is_torn_down_around_a_batch() -> None:
    """A loop that is stopped and closed in the middle of a batch leaves no noise but the host's own (B9)."""
    done = python("""
        async def main():
            async with ToolBatch(calls("a", "b")) as batch:
                batch.start("a", forever)
                batch.start("b", forever())
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                raise LookupError("the host's own")
        try:
            asyncio.run(main())
        except LookupError:
            print("ended")
    """)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "ended\n")


def test_development_mode_is_clean() -> None:
    """A session with tools of every temper runs in development mode without one warning (B9)."""
    done = python(
        """
        import gc
        async def boom(): raise ValueError("x")
        async def items():
            yield 1
            yield 2
        async def main():
            async with ToolSession(keep_content=True) as session:
                for _ in range(3):
                    async with session.batch(calls(*"abcdefg"), timeout=0.1) as batch:
                        batch.start("a", instant)
                        batch.start("b", boom)
                        batch.start("c", lambda: 5)
                        batch.start("d", forever)
                        batch.start("e", items)
                        batch.start("f", asyncio.ensure_future(instant()))
                        batch.start("g", instant())
                        batch.cancel("g")
                        await batch.snapshot()
                async with session.batch(calls("a")) as batch:
                    batch.start("a", lambda: forever(), timeout=0.05)
            print(codes(batch))
        asyncio.run(main())
        gc.collect()
    """,
        "-X",
        "dev",
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "{'a': 'timeout'}\n")


def test_a_fork_has_threads_of_its_own() -> None:
    """A forked child runs synchronous tools though its parent's threads are gone (B9)."""
    done = python("""
        async def main(text):
            async with ToolBatch(calls("a")) as batch:
                batch.start("a", lambda: text)
            return batch.result.calls[0].settlement.content, batch.outcomes["a"].execution_id
        parent = asyncio.run(main("parent"))
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            got = asyncio.run(main("child"))
            print(got[0], got[1].split("-")[0] != parent[1].split("-")[0], flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(parent[0])
    """)
    assert (done.returncode, done.stdout) == (0, "child True\nparent\n"), done.stderr
