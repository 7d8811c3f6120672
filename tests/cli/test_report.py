"""`toolbatch report` on the command line: what it reads, writes and says, and how it ends."""

import asyncio
import io
import json
import os
import pty
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest

from tests.batch.kit import boom, calls, instant
from toolbatch import JsonLinesSink, ToolBatch, ToolCall
from toolbatch.cli import main
from toolbatch.core import Closed, CloseReason, Failed, Succeeded
from toolbatch.observe import RunLog, read_run
from toolbatch.operations import SqliteJournal
from toolbatch.ports import AnnouncedRecord, ClosedRecord, JournalRecord, SettledRecord, StaleResult, StartedRecord

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def log(here: Path) -> str:
    """A run log of two batches, of the runs `one` and `two`."""

    async def work() -> None:
        async with RunLog("run.jsonl") as log:
            for run_id in ("one", "two"):
                async with ToolBatch(calls(f"{run_id}.a", f"{run_id}.b"), observers=[log], run_id=run_id) as batch:
                    batch.start(f"{run_id}.a", instant)
                    batch.start(f"{run_id}.b", boom)

    asyncio.run(work())
    return "run.jsonl"


def test_a_run_log_becomes_a_page(log: str, capsys: Captured) -> None:
    """Exit code 0, the page in the file, and nothing to be said of a file that is whole."""
    assert main(["report", log, "-o", "page.html"]) == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.count('<tr class="call"') == 4
    assert "4 calls in 2 batches" in page
    assert capsys.readouterr() == ("", "")


def test_it_writes_to_standard_output(log: str, capsys: Captured) -> None:
    """Without a file, or with -, the page can be piped on; the same file gives the same bytes."""
    assert main(["report", log]) == 0
    first = capsys.readouterr().out
    assert main(["report", log, "-o", "-"]) == 0
    assert capsys.readouterr().out == first
    assert first.startswith("<!doctype html>")


def test_it_reads_standard_input(log: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """- is standard input; a journal can't come from there."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(Path(log).read_bytes())))
    assert main(["report", "-"]) == 0
    assert "standard input" in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"SQLite format 3\0...")))
    assert main(["report", "-"]) == 2
    assert "name its file" in capsys.readouterr().err


def test_a_drawing_alone(log: str, capsys: Captured) -> None:
    """`--svg`: one SVG document that needs nothing else."""
    assert main(["report", log, "--svg"]) == 0
    root = ET.fromstring(capsys.readouterr().out)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"tool_one.a", "tool_two.b", "succeeded", "failed", "Generation 1"} <= set(words)


def test_json_has_all_that_is_known(log: str, capsys: Captured) -> None:
    """`--json`: every call, whatever the limit, as one object."""
    assert main(["report", log, "--json", "--limit", "1"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(asdict(read_run(log))))


def test_only_one_run(log: str, capsys: Captured) -> None:
    """`--run-id` leaves the batches of other runs out; one that is not there is an error that names those that are."""
    assert main(["report", log, "--json", "--run-id", "two"]) == 0
    (batch,) = json.loads(capsys.readouterr().out)["batches"]
    assert [call["call_id"] for call in batch["calls"]] == ["two.a", "two.b"]
    assert main(["report", log, "--json", "--run-id", "three"]) == 2
    assert capsys.readouterr().err == "toolbatch: run.jsonl: has no batch of run 'three'; its runs are one, two\n"


def test_a_limit(log: str, capsys: Captured) -> None:
    """`--limit` bounds what is shown, which is said; 0 is no bound; anything but a count is refused."""
    assert main(["report", log, "--limit", "1"]) == 0
    captured = capsys.readouterr()
    assert captured.out.count('<tr class="call"') == 1
    assert captured.err.startswith("toolbatch: 1 of 4 calls are shown")
    assert main(["report", log, "--limit", "0"]) == 0
    captured = capsys.readouterr()
    assert (captured.out.count('<tr class="call"'), captured.err) == (4, "")
    for bad in ("-1", "x", "1.5"):
        with pytest.raises(SystemExit) as stopped:
            main(["report", log, "--limit", bad])
        assert stopped.value.code == 2
        assert f"argument --limit: must be 0 or a whole number above it, not {bad}" in capsys.readouterr().err


def test_what_the_file_lacks_is_said(log: str, capsys: Captured) -> None:
    """A torn last line, as a crash leaves it: the report is made, and says so, on the page and beside it."""
    whole = Path(log).read_bytes()
    Path(log).write_bytes(whole[:-20])
    assert main(["report", log]) == 0
    captured = capsys.readouterr()
    assert captured.err.splitlines() == [
        "toolbatch: It was not ended in order: its process died, or goes on. What has no outcome had none by then.",
        "toolbatch: 1 record could not be read, as a crash leaves them.",
    ]
    assert captured.out.count('class="note"') == 2


def test_an_audit_file(here: Path, capsys: Captured) -> None:
    """B7: a file of `JsonLinesSink` shows the late results that it has."""
    stale = StaleResult(
        call_id="a", name="fetch", generation=3, execution_id="e1", reason="run_closed", observed_status="success", answered_as="timeout",
        exception_type=None, started_at=1.8e9, closed_at=1.8e9 + 2, settled_at=1.8e9 + 5, late_by=3.0,
    )  # fmt: skip
    JsonLinesSink("late.jsonl")(stale)
    assert main(["report", "late.jsonl"]) == 0
    page = capsys.readouterr().out
    assert "running for 2 s; ran on for 3 s after its outcome; timed out" in page


def test_an_empty_file(here: Path, capsys: Captured) -> None:
    """Nothing happened yet: a page that says so."""
    Path("empty.jsonl").touch()
    for form in ([], ["--svg"], ["--json"]):
        assert main(["report", "empty.jsonl", *form]) == 0
    assert "0 calls in 0 batches" in capsys.readouterr().out


async def journal(path: str) -> None:
    """A journal of two runs, one of which goes on or has crashed."""
    announced = (
        ToolCall("a", "pay", {"amount": 5}),
        ToolCall("b", "pay", '{"amount": 7}'),
        ToolCall("c", "pay"),
        ToolCall("d", "pay"),
        ToolCall("e", "pay"),
    )
    timeout = Closed("cancelled", "timeout", "too slow", "unknown")
    denied = Closed("error", "denied", "NOT EXECUTED: no.", "not_started")
    written: list[JournalRecord] = [
        AnnouncedRecord(batch_id="b1", at=1.8e9, run_id="one", generation=1, calls=announced),
        StartedRecord(batch_id="b1", at=1.8e9 + 1, call_id="a", operation_id="op"),
        StartedRecord(batch_id="b1", at=1.8e9 + 1, call_id="b"),
        StartedRecord(batch_id="b1", at=1.8e9 + 1, call_id="c"),
        SettledRecord(batch_id="b1", at=1.8e9 + 2, call_id="a", settlement=Succeeded("paid sk-123")),
        SettledRecord(batch_id="b1", at=1.8e9 + 3, call_id="b", settlement=timeout),
        SettledRecord(batch_id="b1", at=1.8e9 + 3, call_id="c", settlement=Failed("tool_error", "no money")),
        SettledRecord(batch_id="b1", at=1.8e9 + 3, call_id="d", settlement=denied),
        SettledRecord(
            batch_id="b1", at=1.8e9 + 3, call_id="e", settlement=Closed("error", "not_started", "never", "not_started")
        ),
        ClosedRecord(batch_id="b1", at=1.8e9 + 3, reason=CloseReason("complete")),
        AnnouncedRecord(batch_id="b2", at=1.8e9 + 5, run_id="two", generation=1, calls=(ToolCall("x", "pay"),)),
        StartedRecord(batch_id="b2", at=1.8e9 + 6, call_id="x"),
    ]
    async with SqliteJournal(path) as journal:
        await journal.append(written)


def test_a_journal(here: Path, capsys: Captured) -> None:
    """D4: what a journal knows is drawn like a run log, and nothing in it is changed; contents only where they are asked for."""
    asyncio.run(journal("journal.db"))
    before = Path("journal.db").read_bytes()
    assert main(["report", "journal.db", "--json"]) == 0
    text = capsys.readouterr().out
    assert "sk-123" not in text
    first, second = json.loads(text)["batches"]
    assert [call["status"] for call in first["calls"]] == ["succeeded", "timed_out", "failed", "denied", "not_started"]
    assert [call["completion"] for call in first["calls"]] == [
        "settled",
        "unknown",
        "settled",
        "not_started",
        "not_started",
    ]
    assert {(call["arguments"], call["content"]) for call in first["calls"]} == {(None, None)}
    assert (first["begun_at"], first["closed_at"], first["run_id"]) == (1.8e9, 1.8e9 + 3, "one")
    assert (second["closed_at"], second["calls"][0]["status"], second["calls"][0]["started_at"]) == (
        None,
        None,
        1.8e9 + 6,
    )
    assert main(["report", "journal.db"]) == 0
    captured = capsys.readouterr()
    assert captured.out.count('<tr class="call"') == 6
    assert "sk-123" not in captured.out
    assert "It was not ended in order" in captured.err
    assert main(["report", "journal.db", "--content", "--json"]) == 0
    calls = json.loads(capsys.readouterr().out)["batches"][0]["calls"]
    assert (calls[0]["arguments"], calls[0]["content"]) == ('{"amount":5}', "paid sk-123")
    assert (calls[1]["arguments"], calls[1]["content"]) == ('{"amount": 7}', "too slow")
    assert Path("journal.db").read_bytes() == before


def test_the_journal_of_a_session(here: Path, capsys: Captured) -> None:
    """A batch that keeps a journal needs no other record to be looked at."""

    async def work() -> None:
        async with (
            SqliteJournal("journal.db") as own,
            ToolBatch(calls("a", "b", "c"), journal=own, run_id="r") as batch,
        ):
            batch.start("a", instant)
            batch.start("b", boom)

    asyncio.run(work())
    assert main(["report", "journal.db", "--json", "--run-id", "r"]) == 0
    (batch,) = json.loads(capsys.readouterr().out)["batches"]
    assert [call["status"] for call in batch["calls"]] == ["succeeded", "failed", "not_started"]
    assert [call["started_at"] is None for call in batch["calls"]] == [False, False, True]
    assert batch["code"] == "not_started"


def test_a_damaged_journal(here: Path, capsys: Captured) -> None:
    """A batch whose records can't be read is counted, and the others are shown; a database without a journal is refused."""
    import sqlite3

    asyncio.run(journal("journal.db"))
    with sqlite3.connect("journal.db") as database:
        database.execute("UPDATE record SET body = '{' WHERE batch = 'b1' AND kind = 'closed'")
    database.close()
    assert main(["report", "journal.db", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["unreadable"], len(found["batches"])) == (1, 1)
    with sqlite3.connect("other.db") as database:
        database.execute("CREATE TABLE record (x)")
    database.close()
    assert main(["report", "other.db"]) == 2
    assert "holds no journal" in capsys.readouterr().err
    damaged = Path("journal.db").read_bytes().replace(b"CREATE TABLE record", b"CREATE T\xfeBLE record")
    Path("journal.db").write_bytes(damaged)  # SQLite quotes that byte in its complaint, and it is no text
    assert main(["report", "journal.db"]) == 2
    assert "holds no journal" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b'{"role": "user", "content": "hi"}\n', b"\x00\x01\x02\n", b"hello\nworld\n"])
def test_files_of_another_kind(here: Path, capsys: Captured, content: bytes) -> None:
    """Exit code 2, the file's name and what it should have been; no output is made."""
    Path("other").write_bytes(content)
    assert main(["report", "other", "-o", "page.html"]) == 2
    assert capsys.readouterr().err.startswith("toolbatch: other: is neither a run log")
    assert not Path("page.html").exists()


def test_files_that_cant_be_read_or_written(here: Path, log: str, capsys: Captured) -> None:
    """Exit code 2, with the file's name and what the system says."""
    assert main(["report", "missing.jsonl"]) == 2
    assert capsys.readouterr().err == "toolbatch: missing.jsonl: can't be read: No such file or directory\n"
    assert main(["report", "."]) == 2
    assert "Is a directory" in capsys.readouterr().err
    assert main(["report", log, "-o", "missing/page.html"]) == 2
    assert "missing/page.html: can't be written" in capsys.readouterr().err


def test_a_page_is_not_for_a_terminal(log: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without -o on a terminal it says what to do; JSON is fine there."""
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal, os.fdopen(master, "rb"):
        monkeypatch.setattr(sys, "stdout", terminal)
        assert main(["report", log]) == 2
        monkeypatch.undo()
    assert "-o" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["drawsvg", "jinja2"])
def test_without_the_extra(log: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """What has to be installed is named; JSON needs none of it."""
    for name in [name for name in sys.modules if name.startswith("toolbatch.cli._report_")]:
        if name.endswith(("_chart", "_page")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["report", log]) == 2
    assert capsys.readouterr().err == (
        f"toolbatch: a report is drawn with what `pip install toolbatch[report]` brings; {missing} is missing\n"
    )
    assert main(["report", log, "--json"]) == 0
