"""The run log: everything that happens is in the file, nobody waits for the disk, and nothing of it can hurt a batch."""

import asyncio
import fcntl
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.batch.kit import Stubborn, boom, calls, forever, instant, turn
from toolbatch import ToolBatch, ToolCall, ToolCatalog, ToolSession, current_call, tool
from toolbatch.core import BatchStateError, InvalidInputError, InvalidTypeError
from toolbatch.observe import CallRecord, RunLog, read_run
from toolbatch.ports import Approve
from toolbatch.tools import InteractiveApprovals


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that is not there yet."""
    return tmp_path / "run.jsonl"


def entries(path: Path) -> list[dict[str, Any]]:
    """The file's lines; each must be whole."""
    assert path.read_bytes().endswith(b"\n")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def by_id(path: Path, generation: int = 1) -> dict[str, CallRecord]:
    """The calls of one batch."""
    (batch,) = [batch for batch in read_run(path).batches if batch.generation == generation]
    return {call.call_id: call for call in batch.calls}


def log_threads() -> list[threading.Thread]:
    """The threads of logs that have not ended."""
    return [thread for thread in threading.enumerate() if thread.name == "toolbatch-run-log"]


async def test_everything_that_happens_is_in_the_file(path: Path) -> None:
    """B7, O1, O3: announced, handed over, started, settled and late calls of a session, with times that fit."""
    late = Stubborn()
    async with RunLog(path) as log, ToolSession(observers=[log], run_id="r1", max_concurrency=3) as session:
        async with session.batch(calls("a", "b", "c", "d", "e")) as batch:
            batch.start("a", instant)
            batch.start("b", boom)
            batch.start("c", late, timeout=0.01)
            batch.start("d", instant)
        late.release.set()
    assert log.dropped == 0
    run = read_run(path)
    assert (run.unreadable, run.unknown, run.dropped, run.cut_off) == (0, 0, 0, 0)
    (record,) = run.batches
    assert (record.generation, record.run_id, record.status, record.code) == (1, "r1", "error", "not_started")
    found = by_id(path)
    assert list(found) == ["a", "b", "c", "d", "e"]
    assert {name: call.status for name, call in found.items()} == {
        "a": "succeeded", "b": "failed", "c": "timed_out", "d": "succeeded", "e": "not_started",
    }  # fmt: skip
    outcomes = batch.outcomes
    assert {name: call.execution_id for name, call in found.items()} == {
        name: outcome.execution_id for name, outcome in outcomes.items()
    }
    assert record.begun_at is not None
    assert record.closed_at is not None
    for name in "abcd":
        call = found[name]
        steps = [record.begun_at, call.admitted_at, call.started_at, call.settled_at, record.closed_at]
        moments = [moment for moment in steps if moment is not None]
        assert len(moments) == 5
        assert all(later > earlier - 0.005 for earlier, later in pairwise(moments))  # two clocks
        assert call.started_at == outcomes[name].started_at
    assert found["b"].exception_type == "ValueError"
    assert (found["c"].timeout, found["c"].side_effect_state, found["c"].completion) == (0.01, "unknown", "settled")
    assert found["c"].late is not None
    assert (found["c"].late.observed_status, found["c"].late.answered_as) == ("success", "timeout")
    assert found["c"].ended_at is not None
    assert found["c"].settled_at is not None
    assert found["c"].ended_at > found["c"].settled_at
    assert (found["e"].started_at, found["e"].admitted_at, found["e"].side_effect_state) == (None, None, "not_started")


async def test_every_line_says_what_it_is(path: Path) -> None:
    """Each line has the form's version, an event, a time and its log; those of a batch name the batch."""
    async with RunLog(path) as log, ToolBatch(calls("a"), observers=[log]) as batch:
        batch.start("a", instant)
    lines = entries(path)
    assert [line["event"] for line in lines] == ["opened", "begun", "admitted", "started", "settled", "closed", "left"]
    assert {line["toolbatch"] for line in lines} == {1}
    assert len({line["log"] for line in lines}) == 1
    assert len({line["batch"] for line in lines[1:-1]}) == 1
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
    assert all(line["call_id"] == "a" and line["tool_name"] == "tool_a" for line in lines[2:5])
    assert lines[5]["calls"] == []  # its lines have told it all


SECRET = "sk-123"


async def tells(key: str) -> str:
    """Report, and answer."""
    current_call().progress(f"progress {key}")
    return f"result {key}"


async def fails(key: str) -> str:
    """Raise."""
    raise ValueError(f"message {key}")


async def one_of_each(log: RunLog, **options: Any) -> None:
    """A batch whose arguments, progress, result, message and late result hold a secret."""
    late = Stubborn(f"late {SECRET}")
    async with ToolSession(observers=[log], **options) as session:
        announced = [
            ToolCall("a", "tells", {"key": SECRET}),
            ToolCall("b", "fails", f'{{"key": "{SECRET}"}}'),
            ToolCall("c", "late"),
        ]
        async with session.batch(
            announced, tools={"tells": tells, "fails": fails, "late": late}, call_timeout=0.05
        ) as batch:
            batch.start_all()
        late.release.set()


async def test_no_content_unless_asked(path: Path) -> None:
    """Neither arguments nor results, messages and progress texts are in the file, even where the session keeps late content."""
    async with RunLog(path) as log:
        await one_of_each(log)
    assert SECRET not in path.read_text()
    assert not [line for line in entries(path) if "content" in line or "arguments" in str(line)]
    assert by_id(path)["a"].progress == 1


async def test_content_is_bounded(path: Path) -> None:
    """Where it is asked for, each text has at most so many bytes."""
    async with RunLog(path, content_bytes=14) as log:
        await one_of_each(log, keep_content=True)
    found = by_id(path)
    assert found["a"].arguments == '{"key":"sk-...'
    assert found["b"].arguments == '{"key": "sk...'
    assert (found["a"].content, found["a"].last_progress) == ("result sk-123", "progress sk...")
    assert found["b"].content == "message sk-123"
    assert found["c"].late is not None
    assert found["c"].late.content == "late sk-123"


async def test_arguments_of_a_host_that_have_no_json_form(path: Path) -> None:
    """The log is evidence: what can't be encoded is shown as well as can be."""
    odd = ToolCall("a", "t", {"of": object})
    async with RunLog(path, content_bytes=100) as log, ToolBatch([odd], observers=[log]) as batch:
        batch.start("a", instant)
    assert by_id(path)["a"].arguments == "{'of': <class 'object'>}"


async def test_approvals_and_newer_batches(path: Path) -> None:
    """T7, C3: a call's wait for a person is there, and a batch that a newer one replaced says so."""

    @tool(needs_approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    approvals = InteractiveApprovals()
    async with (
        RunLog(path) as log,
        ToolSession(tools=ToolCatalog([pay]), approvals=approvals, observers=[log]) as session,
    ):
        async with session.batch([ToolCall("a", "pay")]) as batch:
            batch.start_all()
            while not approvals.pending():
                await asyncio.sleep(0)
            approvals.resolve("a", Approve())
        async with session.batch(calls("b")) as older:
            older.start("b", forever)
            await turn(3)
            async with session.batch(calls("c")) as newer:
                newer.start("c", instant)
    paid = by_id(path)["a"]
    assert paid.asked_at is not None
    assert paid.started_at is not None
    assert paid.asked_at <= paid.started_at
    replaced = by_id(path, 2)["b"]
    assert (replaced.status, replaced.code, replaced.cancellation) == ("cancelled", "superseded", "acknowledged")
    assert replaced.ended_at is not None
    assert [batch.code for batch in read_run(path).batches] == [None, "superseded", None]


async def test_calls_that_a_batch_takes_over(path: Path) -> None:
    """T7: of a resumed batch, outcomes that an earlier one gave are in the file, and said to be that."""
    async with ToolBatch(calls("a", "b")) as batch:
        batch.start("a", instant)
        await turn(3)
        first = batch.close()
    async with (
        RunLog(path, content_bytes=50) as log,
        ToolBatch(calls("a", "b"), observers=[log], resume=first) as batch,
    ):
        batch.start("b", instant)
    found = by_id(path)
    assert (found["a"].status, found["a"].resumed, found["a"].content) == ("succeeded", True, "done")
    assert (found["b"].status, found["b"].resumed) == ("succeeded", False)


async def test_batches_within_batches_and_one_after_another(path: Path) -> None:
    """Every batch is told apart, also lone ones, which are all generation 1."""

    async def nested() -> str:
        async with ToolBatch(calls("x"), observers=[log]) as inner:
            inner.start("x", instant)
        return "done"

    async with RunLog(path) as log:
        for _ in range(2):
            async with ToolBatch(calls("a"), observers=[log]) as batch:
                batch.start("a", nested)
        async with ToolBatch([], observers=[log]):
            pass
    batches = read_run(path).batches
    assert [[call.call_id for call in batch.calls] for batch in batches] == [["a"], ["x"], ["a"], ["x"], []]
    assert all(batch.status == "complete" for batch in batches)


async def test_a_disk_that_hangs_holds_up_nobody(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The batch goes on; what finds no room is counted; leaving waits no longer than it is told, and the loop runs meanwhile."""
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)  # a few dozen lines, however many of them are dropped
    try:
        async with RunLog(path, size=50, close_timeout=0.05) as log:
            for _ in range(1000):  # far more than a pipe holds
                async with ToolBatch(calls("a"), observers=[log]) as batch:
                    batch.start("a", instant)
        assert log.dropped > 1000
        told = [re.sub(r"about \d+", "some", record.getMessage()) for record in caplog.records]
        assert told == [
            f"the run log {path} drops lines: 50 lines wait to be written",
            f"the run log {path} was left with some lines not written",
        ]
        os.set_blocking(reader, True)
        text = b""
        while chunk := os.read(reader, 1 << 16):  # until the thread has written what was left, and closed
            text += chunk
    finally:
        os.close(reader)
    run = read_run(text.splitlines(keepends=True))
    assert run.dropped == log.dropped
    assert run.lines + run.dropped == 5002
    assert run.unreadable == 0
    for thread in log_threads():
        thread.join(20)


async def test_a_disk_that_is_full(caplog: pytest.LogCaptureFixture) -> None:
    """Every line that can't be written is counted, the log says so once, and the batch never hears of it."""
    async with RunLog("/dev/full") as log, ToolBatch(calls("a"), observers=[log]) as batch:
        batch.start("a", instant)
    assert batch.result is not None
    assert batch.result.calls[0].state == "success"
    assert log.dropped == 7
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("toolbatch.run_log", logging.WARNING)
    assert "No space left" in record.getMessage()


async def test_a_file_that_ends_in_a_torn_line(path: Path) -> None:
    """What a crash cut off does not spoil the next log's first line."""
    path.write_bytes(b'{"toolbatch":1,"ev')
    async with RunLog(path) as log, ToolBatch(calls("a"), observers=[log]) as batch:
        batch.start("a", instant)
    run = read_run(path)
    assert (run.lines, run.unreadable, len(run.batches)) == (8, 1, 1)


PROGRAM = """
import asyncio, sys
from toolbatch import ToolBatch, ToolCall
from toolbatch.observe import RunLog
async def main(path, number):
    async def echo(): return "x"
    async with RunLog(path) as log:
        for _ in range(100):
            async with ToolBatch([ToolCall(f"{number}-{i}", "t" * 50) for i in range(3)], observers=[log]) as batch:
                for call in batch.calls:
                    batch.start(call.id, echo)
asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def test_several_processes_write_to_one_file(path: Path) -> None:
    """No line is torn, and each log's batches are whole."""
    processes = [subprocess.Popen([sys.executable, "-c", PROGRAM, path, str(number)]) for number in range(3)]
    assert [process.wait(50) for process in processes] == [0, 0, 0]
    run = read_run(path)
    assert (run.unreadable, run.unknown, run.cut_off, run.dropped) == (0, 0, 0, 0)
    assert Counter(batch.log for batch in run.batches).most_common()[-1][1] == 100
    assert len({batch.log for batch in run.batches}) == 3
    for batch in run.batches:
        assert len({call.call_id.split("-")[0] for call in batch.calls}) == 1
        assert [call.status for call in batch.calls] == ["succeeded"] * 3


CRASH = """
import asyncio, os, signal, sys
from toolbatch import ToolBatch, ToolCall
from toolbatch.observe import RunLog
async def main(path):
    async def dies():
        while b'"event":"started"' not in open(path, "rb").read():
            await asyncio.sleep(0.001)
        os.kill(os.getpid(), signal.SIGKILL)
    async with RunLog(path) as log, ToolBatch([ToolCall("a", "dies"), ToolCall("b", "never")], observers=[log]) as batch:
        batch.start("a", dies)
asyncio.run(main(sys.argv[1]))
"""


def test_what_a_killed_process_leaves(path: Path) -> None:
    """D4's question, asked of the log: what was announced and what had begun is there, without an outcome."""
    assert subprocess.run([sys.executable, "-c", CRASH, path], check=False, timeout=50).returncode == -signal.SIGKILL
    run = read_run(path)
    assert (run.unreadable, run.cut_off) == (0, 1)
    (batch,) = run.batches
    assert (batch.closed_at, batch.status) == (None, None)
    first, second = batch.calls
    assert first.started_at is not None
    assert (first.status, first.settled_at, second.status, second.started_at) == (None, None, None, None)


async def test_a_log_that_is_not_open_harms_nothing(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Before it was entered the log says why nothing is written; after it was left, lines are only counted."""
    log = RunLog(path)
    async with ToolBatch(calls("a"), observers=[log]) as batch:
        batch.start("a", instant)
    assert batch.result is not None
    assert not path.exists()
    assert any(record.exc_info and isinstance(record.exc_info[1], BatchStateError) for record in caplog.records)
    caplog.clear()
    async with log:
        pass
    async with ToolBatch(calls("a"), observers=[log]) as batch:
        batch.start("a", instant)
    assert log.dropped == 5
    assert [line["event"] for line in entries(path)] == ["opened", "left"]
    assert [record.getMessage() for record in caplog.records] == [f"the run log {path} drops lines: it is closed"]
    with pytest.raises(BatchStateError, match="entered before"):
        await log.__aenter__()


def test_it_can_be_used_without_a_loop(path: Path) -> None:
    """`with` around a whole program: everything is written when it is left, and its thread has ended."""

    async def main() -> None:
        async with ToolBatch(calls("a"), observers=[log]) as batch:
            batch.start("a", instant)

    with RunLog(str(path)) as log:
        asyncio.run(main())
    assert entries(path)[-1]["event"] == "left"
    for thread in log_threads():
        thread.join(20)
    assert log_threads() == []


async def test_leaving_while_cancelled_or_closed(path: Path) -> None:
    """B10, B18: a cancellation passes through, and an async generator's end awaits nothing; the file is written all the same."""

    async def works() -> None:
        async with RunLog(path):
            await forever()

    task = asyncio.ensure_future(works())
    await turn(2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    async def generator() -> AsyncGenerator[int, None]:
        async with RunLog(path):
            yield 1

    stream = generator()
    await anext(stream)
    with pytest.raises(StopIteration):
        stream.aclose().send(None)  # ends in one step
    for thread in log_threads():
        thread.join(20)
    assert Counter(line["event"] for line in entries(path)) == {"opened": 2, "left": 2}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"path": None}, InvalidTypeError),
        ({"path": 3}, InvalidTypeError),
        ({"content_bytes": -1}, InvalidInputError),
        ({"content_bytes": True}, InvalidTypeError),
        ({"content_bytes": 1.0}, InvalidTypeError),
        ({"size": 0}, InvalidInputError),
        ({"size": "1"}, InvalidTypeError),
        ({"close_timeout": -1}, InvalidInputError),
        ({"close_timeout": float("nan")}, InvalidInputError),
        ({"close_timeout": float("inf")}, InvalidInputError),
        ({"close_timeout": False}, InvalidTypeError),
        ({"close_timeout": None}, InvalidTypeError),
    ],
)
def test_options_that_cant_be_used(path: Path, options: dict[str, Any], error: type[Exception]) -> None:
    """Each is named, and no file is made."""
    with pytest.raises(error, match=next(iter(options))):
        RunLog(**{"path": path, **options})
    assert not path.exists()


def test_a_file_that_cant_be_opened(tmp_path: Path) -> None:
    """Entering raises what the system says, and no thread is left."""
    with pytest.raises(FileNotFoundError), RunLog(tmp_path / "missing" / "run.jsonl"):
        pass
    assert log_threads() == []


async def test_names_that_are_hard_to_write(path: Path) -> None:
    """Line ends, quotes and separators in ids and names stay within their line and come back as they were."""
    name = 'a\n"\u2028\\\u202e</script>'
    odd: Any = type("\u202e\n" * 2000, (Exception,), {})

    async def raises() -> None:
        raise odd

    run_id = f"{name}\ud800"
    async with RunLog(path) as log, ToolBatch([ToolCall(name, name)], observers=[log], run_id=run_id) as batch:
        batch.start(name, raises)
    (record,) = read_run(path).batches
    assert record.run_id == f"{name}\ufffd"
    assert (record.calls[0].call_id, record.calls[0].tool_name) == (name, name)
    assert len(record.calls[0].exception_type or "") < 600
    assert len(path.read_bytes().split(b"\n")) == 8
