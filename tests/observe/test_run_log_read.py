"""Reading a run log: whatever is in the file, what can be understood is understood, and what can't be is counted."""

import io
import json
import random
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolbatch import JsonLinesSink, StaleResult
from toolbatch.core import InvalidTypeError
from toolbatch.observe import BatchRecord, CallRecord, LateRecord, RunRecord, read_run

EVENTS = (
    "opened",
    "begun",
    "admitted",
    "approval",
    "started",
    "progress",
    "settled",
    "closed",
    "ended",
    "late",
    "left",
)


def line(event: str, /, **members: Any) -> bytes:
    """One line of this version."""
    return json.dumps({"toolbatch": 1, "event": event, **members}).encode() + b"\n"


def run_of(log: str, calls: int = 2) -> list[bytes]:
    """A whole run: one batch of calls, each of which succeeded."""
    own: Any = {"log": log, "batch": f"{log}-1"}
    ids = [f"{log}{number}" for number in range(calls)]
    return [
        line("opened", at=1.0, log=log),
        line(
            "begun", at=2.0, **own, generation=1, run_id=None, calls=[{"id": call_id, "name": "t"} for call_id in ids]
        ),
        *(line("started", at=3.0, **own, call_id=call_id, execution_id=f"x{call_id}") for call_id in ids),
        *(
            line("settled", at=4.0, **own, call_id=call_id, execution_id=f"x{call_id}", status="succeeded")
            for call_id in ids
        ),
        line("closed", at=5.0, **own, status="complete", calls=[]),
        line("left", at=6.0, log=log, dropped=0),
    ]


def stale() -> StaleResult:
    """A late result."""
    return StaleResult(
        call_id="a", name="t", generation=3, execution_id="e1", reason="stale_generation", observed_status="error", answered_as="superseded",
        exception_type="ValueError", started_at=1.5, closed_at=2.0, settled_at=3.25, late_by=1.25, content="text",
    )  # fmt: skip


def test_a_file_and_its_lines_are_the_same(tmp_path: Path) -> None:
    """A path, as text or not, and lines give one record; blank lines are nothing."""
    lines = run_of("a")
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"\n" + b"\n".join(lines))
    assert read_run(path) == read_run(str(path)) == read_run(lines)
    (batch,) = read_run(lines).batches
    assert (batch.begun_at, batch.closed_at, batch.status, batch.generation) == (2.0, 5.0, "complete", 1)
    assert [(call.call_id, call.tool_name, call.status) for call in batch.calls] == [
        ("a0", "t", "succeeded"),
        ("a1", "t", "succeeded"),
    ]


@pytest.mark.parametrize("source", [None, 3, b"{}", bytearray(b"{}"), ["{}"], [b"{}", None], io.StringIO("{}")])
def test_what_is_no_source(source: Any) -> None:
    """The type is named; bytes are not taken for lines, and neither is text."""
    with pytest.raises(InvalidTypeError, match="source"):
        read_run(source)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """What the system says passes through."""
    with pytest.raises(FileNotFoundError):
        read_run(tmp_path / "missing")


def test_a_file_cut_at_every_byte() -> None:
    """A crash tears the last line at most: every whole line before it counts, and nothing raises."""
    whole = b"".join(run_of("a"))
    for end in range(len(whole)):
        text = whole[:end]
        run = read_run(text.splitlines(keepends=True))
        # Without its line end the last line may still be a whole object.
        whole_lines = text.count(b"\n") + (text.endswith(b"}") and json_object(text.rsplit(b"\n", 1)[-1]))
        assert run.lines - run.unreadable == whole_lines
        assert run.unreadable <= 1


def json_object(text: bytes) -> bool:
    """Whether it is one."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


@given(st.randoms(use_true_random=False))
@settings(deadline=None)
def test_logs_in_one_file_are_told_apart(chance: random.Random) -> None:
    """However the lines of several logs are mixed, each batch is as it is alone."""
    logs = [run_of("a"), run_of("b", 3), run_of("c", 0)]
    queues = [list(log) for log in logs]
    mixed = []
    while any(queues):
        queue = chance.choice([queue for queue in queues if queue])
        mixed.append(queue.pop(0))
    run = read_run(mixed)
    alone = [batch for log in logs for batch in read_run(log).batches]
    assert sorted(run.batches, key=repr) == sorted(alone, key=repr)
    assert (run.cut_off, run.unreadable) == (0, 0)


@given(st.randoms(use_true_random=False), st.integers(0, 8))
@settings(deadline=None)
def test_lines_that_are_lost(chance: random.Random, many: int) -> None:
    """Whatever lines are missing, the rest is read, and no call is invented or turned into another."""
    lines = run_of("a")
    kept = [line for at, line in enumerate(lines) if at not in chance.sample(range(len(lines)), many)]
    run = read_run(kept)
    assert len(run.batches) <= 1
    assert all(call.call_id in ("a0", "a1") for batch in run.batches for call in batch.calls)
    assert run.unreadable == run.unknown == 0


def test_later_versions_and_events_are_counted() -> None:
    """Keys that are not known are skipped; lines of a later version and unknown events are left out, and said to be."""
    lines = [
        *run_of("a")[:-1],
        line(
            "started", at=3.0, log="a", batch="a-1", call_id="a0", execution_id="xa0", colour="blue", nested={"x": [1]}
        ),
        line("teleported", at=3.0, log="a", batch="a-1", call_id="a0"),
        json.dumps({"toolbatch": 2, "event": "settled", "call_id": "a0", "status": "failed"}).encode(),
        *run_of("a")[-1:],
    ]
    run = read_run(lines)
    assert (run.unknown, run.unreadable) == (2, 0)
    assert run.batches == read_run(run_of("a")).batches


@pytest.mark.parametrize(
    "text",
    [b"{", b"[]", b"null", b"{}", b'{"toolbatch":0}', b'{"toolbatch":true,"event":"left"}', b'{"toolbatch":"1","event":"left"}', b"\xff\xfe", b"[" * 100_000, b'{"toolbatch":1,"event":"left","at":' + b"9" * 5000 + b"}", b'{"role":"user","content":"hi"}'],
)  # fmt: skip
def test_what_is_no_line_of_a_run_log(text: bytes) -> None:
    """It is counted as unreadable, and harms nothing around it."""
    run = read_run([*run_of("a"), text])
    assert run.unreadable == 1
    assert run.batches == read_run(run_of("a")).batches


ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.just(10**400), st.floats(), st.text(), st.sampled_from(["a", "b", "a-1", "success", "settled"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["id", "name", "state", "code"]), inner, max_size=3)),
    max_leaves=5,
)  # fmt: skip
KEYS = sorted({"log", "batch", "calls", "at", "id", "dropped", *(field.name for kind in (CallRecord, BatchRecord, LateRecord, StaleResult) for field in fields(kind))})  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.dictionaries(st.sampled_from(KEYS), ANYTHING)), max_size=8))
@settings(deadline=None)
def test_any_value_in_any_place(lines: list[tuple[str, dict[str, Any]]]) -> None:
    """A value of the wrong type is as if it were not there: nothing raises, and every field is of its own type."""
    run = read_run([line(event, **{**members, "event": event, "toolbatch": 1}) for event, members in lines])
    assert run.lines == len(lines)
    assert run.unreadable == run.unknown == 0
    check_types(run)


def check_types(run: RunRecord) -> None:
    """Every field holds what its class says, and every time is one that a calendar has."""
    assert run.dropped >= 0
    for batch in run.batches:
        owners: list[BatchRecord | CallRecord | LateRecord] = [batch, *batch.calls]
        for owner in (*owners, *(call.late for call in batch.calls if call.late is not None)):
            for field in fields(owner):
                value, kind = getattr(owner, field.name), str(field.type)
                allowed: dict[str, Any] = {"str": str, "float": float, "int": int, "bool": bool}
                if value is None:
                    assert "None" in kind, field.name
                elif kind.split(" ", maxsplit=1)[0] in allowed:
                    assert type(value) is allowed[kind.split(" ", maxsplit=1)[0]], field.name
                if isinstance(value, float):
                    assert 0 <= value < 300_000_000_000
                if isinstance(value, str):
                    value.encode()  # no lone surrogate


@pytest.mark.parametrize("at", ["-1", "1e300", "Infinity", "NaN", "true", '"1"', "null", "[1]", "1" + "0" * 400])
def test_times_that_no_calendar_has(at: str) -> None:
    """They are not known; nor is a count of lost lines that is negative."""
    lines = [line("begun", at="?", log="a", batch="a-1", calls=[]), line("left", log="a", dropped=-3)]
    run = read_run([text.replace(b'"?"', at.encode()) for text in lines])
    assert run.batches[0].begun_at is None
    assert (run.dropped, run.unreadable, run.cut_off) == (0, 0, 0)


def test_late_results_of_a_sink(tmp_path: Path) -> None:
    """B7: a file of `JsonLinesSink` is a run log of late results, and one that an older sink wrote is read as well."""
    path = tmp_path / "late.jsonl"
    JsonLinesSink(path)(stale())
    written = read_run(path)
    older = read_run([json.dumps(asdict(stale())).encode()])
    assert written.batches == older.batches
    (batch,) = written.batches
    (call,) = batch.calls
    assert (batch.generation, call.call_id, call.tool_name, call.execution_id) == (3, "a", "t", "e1")
    assert (batch.begun_at, call.status) == (None, "cancelled")
    assert (call.started_at, call.settled_at, call.ended_at, call.code) == (1.5, 2.0, 3.25, "superseded")
    assert call.late == LateRecord(
        at=3.25, late_by=1.25, observed_status="error", answered_as="superseded", reason="stale_generation", exception_type="ValueError", content="text",
    )  # fmt: skip


def test_one_late_result_told_twice() -> None:
    """A sink and a log may write to one file: it is one call."""
    own: Any = {"log": "a", "batch": "a-1"}
    told = {
        "call_id": "a0",
        "name": "t",
        "execution_id": "xa0",
        "observed_status": "success",
        "late_by": 2.0,
        "settled_at": 6.0,
    }
    run = read_run([*run_of("a"), line("late", at=6.0, **own, **told), line("late", at=6.0, **told)])
    (batch,) = run.batches
    assert [call.late is not None for call in batch.calls] == [True, False]


def test_what_a_log_lost_and_whether_it_ended() -> None:
    """Lines that a writer dropped are added up; a log without its last line was cut off, or goes on."""
    run = read_run(
        [
            line("opened", log="a"),
            line("left", log="a", dropped=3),
            line("opened", log="b"),
            line("left", log="c", dropped=4),
        ]
    )
    assert (run.dropped, run.cut_off, run.batches) == (7, 1, ())


def test_a_placeholder_that_was_filled_later() -> None:
    """O6: the status is the latest that is known."""
    own: Any = {"log": "a", "batch": "a-1", "call_id": "a0", "execution_id": "xa0"}
    run = read_run([
        *run_of("a", 1)[:3],
        line("settled", at=4.0, **own, status="pending", completion="unknown", started_at=3.0, duration=1.0),
        line("ended", at=9.0, **own, status="succeeded", completion="settled", started_at=3.0, duration=6.0),
    ])  # fmt: skip
    (call,) = run.batches[0].calls
    assert (call.status, call.settled_at, call.ended_at, call.duration) == ("succeeded", 4.0, 9.0, 6.0)


def test_a_tool_starts_after_its_approval() -> None:
    """T7: a start comes from the event loop's clock, which may lag behind the log's; the order holds all the same."""
    own: Any = {"log": "a", "batch": "a-1", "call_id": "a0", "execution_id": "xa0"}
    run = read_run([
        *run_of("a", 1)[:2],
        line("approval", at=3.002, **own),
        line("started", at=3.003, **own),
        line("settled", at=4.0, **own, status="succeeded", completion="settled", started_at=3.001, duration=0.5),
    ])  # fmt: skip
    (call,) = run.batches[0].calls
    assert (call.asked_at, call.started_at, call.ended_at) == (3.002, 3.002, 3.502)


def test_texts_are_bounded() -> None:
    """A line may be long; what is kept of a text in it is not."""
    own: Any = {"log": "a", "batch": "a-1"}
    run = read_run([line("begun", at=1.0, **own, calls=[{"id": "a", "name": "\ud800" + "x" * 1_000_000}])])
    name = run.batches[0].calls[0].tool_name
    assert name.startswith("\ufffdxxx")
    assert len(name) <= 1 << 16


def test_the_form_is_written_down() -> None:
    """docs/report.md names every event that is read, and no other, in order."""
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    table = text.split("| event | when |", 1)[1]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == EVENTS
    lines = [line(event, at=1.0, log="a", batch="a-1", call_id="a") for event in EVENTS]
    assert read_run(lines).unknown == 0


def test_lines_that_never_end(tmp_path: Path) -> None:
    """A file without line ends is read in pieces that memory has room for."""
    path = tmp_path / "zeros"
    with path.open("wb") as file:
        file.truncate((1 << 26) + 100)  # sparse: it takes no room
    run = read_run(path)
    assert (run.lines, run.unreadable) == (2, 2)
