"""Sinks of the audit channel: a log record and a JSON line for every late result (B7)."""

import json
import logging
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.batch.clock import turned
from tests.batch.kit import Stubborn, calls
from toolbatch import AuditChannel, JsonLinesSink, LoggingSink, StaleResult, ToolSession


def stale(call_id: str = "a", content: str | None = None) -> StaleResult:
    """A late result."""
    return StaleResult(
        call_id=call_id, name="tötöl", generation=3, execution_id="e1", reason="stale_generation", observed_status="error", answered_as="superseded",
        exception_type="ValueError", started_at=1.5, closed_at=2.0, settled_at=3.25, late_by=1.25, content=content,
    )  # fmt: skip


def test_a_log_record_a_result(caplog: pytest.LogCaptureFixture) -> None:
    """Each late result is one warning of `toolbatch.audit`, with its fields in the record (B7)."""
    LoggingSink()(stale())
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("toolbatch.audit", logging.WARNING)
    assert record.getMessage() == (
        "late error from tötöl (call a, generation 3), 1.250 s after it was answered as superseded"
    )
    assert record.__dict__["stale_result"] == asdict(stale())


def test_another_logger_and_level(caplog: pytest.LogCaptureFixture) -> None:
    """A host may name the logger and the level (B7)."""
    caplog.set_level(logging.DEBUG, "mine")
    LoggingSink(logging.getLogger("mine"), logging.DEBUG)(stale())
    assert [(record.name, record.levelno) for record in caplog.records] == [("mine", logging.DEBUG)]


def test_a_line_a_result(tmp_path: Path) -> None:
    """Each late result is one line of strict JSON, appended in order, whole at once (B7)."""
    path = tmp_path / "late.jsonl"
    sink = JsonLinesSink(path)
    assert not path.exists(), "nothing is written before there is something"
    sink(stale("a", "zeilen\numbruch"))
    first = path.read_bytes()
    assert first.endswith(b"\n")
    assert first.count(b"\n") == 1
    sink(stale("b"))
    JsonLinesSink(str(path))(stale("c"))
    lines = path.read_text("utf-8").splitlines()
    assert [json.loads(line)["call_id"] for line in lines] == ["a", "b", "c"]
    known = {name: value for name, value in asdict(stale("a", "zeilen\numbruch")).items() if value is not None}
    assert json.loads(lines[0]) == {"toolbatch": 1, "event": "late", "at": 3.25, "kept": True, **known}
    assert "tötöl" in lines[0]
    path.rename(tmp_path / "rotated.jsonl")
    sink(stale("d"))
    assert len(path.read_text("utf-8").splitlines()) == 1, "the file may be rotated"


def test_a_file_that_cant_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What the file sink raises is contained by the channel, and the record is still there (B7)."""
    channel = AuditChannel(10, [JsonLinesSink(tmp_path / "missing" / "late.jsonl")])
    channel.put(stale())
    assert channel.drain() == [stale()]
    assert "JsonLinesSink" in caplog.text


@turned
async def test_a_session_feeds_its_sinks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Callback, log and file are each handed every late result of a session, once (B7)."""
    seen: list[StaleResult] = []
    path = tmp_path / "late.jsonl"
    tools = [Stubborn() for _ in range(3)]
    async with ToolSession(audit_size=1, audit_sinks=[seen.append, LoggingSink(), JsonLinesSink(path)]) as session:
        async with session.batch(calls("a", "b", "c"), timeout=1) as batch:
            for call_id, tool in zip("abc", tools, strict=True):
                batch.start(call_id, tool)
        for tool in tools:
            tool.release.set()
    assert [record.call_id for record in seen] == ["a", "b", "c"]
    assert [json.loads(line)["call_id"] for line in path.read_text().splitlines()] == ["a", "b", "c"]
    assert sum(record.name == "toolbatch.audit" for record in caplog.records) == 3
    assert len(session.audit.drain()) == 1
    assert session.audit.dropped == 2
