"""The log: one record for each thing that matters, with its name and its fields, and nothing else (B14, B21)."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.batch.kit import Stubborn, boom, calls, forever, instant, turn
from toolbatch import LoggingSink, ToolBatch, ToolCall, ToolSession
from toolbatch.observe import LOG_EVENTS, LogEventName, log_event
from toolbatch.tools import Interceptor

SOURCE = Path(__file__).resolve().parents[2] / "src" / "toolbatch"


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The names of all records of ours, in order."""
    ours = [record for record in caplog.records if record.name.startswith("toolbatch")]
    return [record.__dict__["event_name"] for record in ours]


async def normal() -> None:
    """A run in which nothing happens that matters."""
    async with ToolSession(tools={"tool_a": instant, "tool_b": time.monotonic}, call_timeout=5) as session:
        for _ in range(2):
            async with session.batch(calls("a", "b"), timeout=5, max_concurrency=1) as batch:
                batch.start_all()
                await batch.snapshot()
    async with ToolBatch(calls("a")) as batch:
        batch.start("a", forever)
        await turn(2)
        batch.close()


async def call_timed_out() -> None:
    async with ToolBatch(calls("a", "b")) as batch:
        batch.start("a", forever, timeout=0.01)
        batch.start("b", instant)


async def guided_call_timed_out() -> None:
    async with ToolBatch(calls("a"), interceptors=[Around()]) as batch:
        batch.start("a", forever, timeout=0.01)


class Around(Interceptor):
    async def around(self, call: Any, proceed: Any) -> Any:
        return await proceed()


async def batch_timed_out() -> None:
    async with ToolBatch(calls("a", "b"), timeout=0.01) as batch:
        batch.start("a", forever)
        batch.start("b", forever)


async def tool_failed() -> None:
    async with ToolBatch(calls("a")) as batch:
        batch.start("a", boom)


async def late_result() -> None:
    tool = Stubborn()
    async with ToolSession() as session:
        async with session.batch(calls("a")) as batch:
            batch.start("a", tool)
            await turn(2)
            batch.close()
        tool.release.set()


async def audit_record_dropped() -> None:
    tools = [Stubborn() for _ in range(3)]
    async with ToolSession(audit_size=1, audit_sinks=[LoggingSink(logging.getLogger("mine"))]) as session:
        async with session.batch(calls("a", "b", "c")) as batch:
            for call_id, tool in zip("abc", tools, strict=True):
                batch.start(call_id, tool)
            await turn(2)
            batch.close()
        for tool in tools:
            tool.release.set()


async def loop_blocked() -> None:
    async with ToolBatch(calls("a", "b"), call_timeout=0.4) as batch:
        batch.start("a", forever)
        batch.start("b", forever)
        await turn(2)
        time.sleep(0.6)


async def teardown_given_up() -> None:
    tools = [Stubborn(), Stubborn()]
    async with ToolBatch(calls("a", "b"), teardown_timeout=0.01) as batch:
        for call_id, tool in zip("ab", tools, strict=True):
            batch.start(call_id, tool)
        await turn(2)
        batch.close()
    for tool in tools:
        tool.release.set()
    await turn(3)


async def session_gives_up() -> None:
    tool = Stubborn()
    async with ToolSession(teardown_timeout=0.01) as session, session.batch(calls("a")) as batch:
        batch.start("a", tool)
        await turn(2)
        batch.close()
    tool.release.set()
    await turn(3)


async def calls_not_started() -> None:
    async with ToolBatch(calls("a", "b")) as batch:
        waiters = [asyncio.ensure_future(batch.snapshot()) for _ in range(2)]
        await turn(2)
        batch.close()
        await asyncio.gather(*waiters)


async def observer_failed() -> None:
    async with ToolBatch(calls("a"), on_outcome=lambda _: 1 / 0) as batch:  # type: ignore[arg-type, return-value]
        batch.start("a", instant)


async def audit_sink_failed() -> None:
    tool = Stubborn()
    sinks: Any = [LoggingSink(logging.getLogger("mine")), lambda _: 1 / 0]
    async with ToolSession(audit_sinks=sinks) as session:
        async with session.batch(calls("a")) as batch:
            batch.start("a", tool)
            await turn(2)
            batch.close()
        tool.release.set()


async def decision_failed() -> None:
    class Cancels(Interceptor):
        async def before(self, call: Any, proceed: Any) -> Any:
            raise asyncio.CancelledError

    async with ToolBatch(calls("a"), interceptors=[Cancels()]) as batch:
        batch.start("a", instant)


async def repeated_bad_call() -> None:
    async with ToolSession(tools={"t": instant}) as session:
        for _ in range(3):
            async with session.batch([ToolCall("a", "t", "{")]) as batch:
                batch.start_all()


Scenario = Callable[[], Awaitable[None]]

CASES: list[tuple[Scenario, list[LogEventName], dict[str, object]]] = [
    (normal, [], {}),
    (call_timed_out, ["call_timed_out"], {"call_id": "a", "tool_name": "tool_a", "timeout": 0.01, "late_by": None}),
    (guided_call_timed_out, ["call_timed_out"], {"call_id": "a", "generation": 1, "timeout": 0.01}),
    (batch_timed_out, ["batch_timed_out"], {"timeout": pytest.approx(0.01), "open_calls": 2, "generation": 1}),
    (tool_failed, ["tool_failed"], {"call_id": "a", "tool_name": "tool_a", "generation": 1}),
    (late_result, ["late_result"], {"call_id": "a", "tool_name": "tool_a", "generation": 1}),
    (audit_record_dropped, ["audit_record_dropped"], {"call_id": "b", "audit_size": 1}),
    (loop_blocked, ["loop_blocked", "call_timed_out", "call_timed_out"], {"call_id": "a", "late_calls": 2}),
    (
        teardown_given_up,
        ["teardown_given_up", "late_result", "late_result"],
        {"call_ids": ["a", "b"], "tool_names": ["tool_a", "tool_b"], "count": 2},
    ),
    (session_gives_up, ["teardown_given_up", "late_result"], {"call_ids": ["a"], "count": 1}),
    (calls_not_started, ["calls_not_started"], {"call_ids": ["a", "b"], "count": 2, "generation": 1}),
    (observer_failed, ["observer_failed"], {}),
    (audit_sink_failed, ["audit_sink_failed"], {"call_id": "a", "tool_name": "tool_a"}),
    (decision_failed, ["decision_failed"], {"call_id": "a", "tool_name": "tool_a"}),
    (repeated_bad_call, ["repeated_bad_call"], {"tool_name": "t", "code": "malformed_arguments", "times": 2}),
]


@pytest.mark.parametrize(("scenario", "names", "fields"), CASES, ids=[case[0].__name__ for case in CASES])
async def test_each_thing_that_matters_is_one_record(
    scenario: Scenario, names: list[LogEventName], fields: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    """What happens is logged once, under its name, at its level, with the fields that are written down for it."""
    caplog.set_level(logging.DEBUG, "toolbatch")
    await scenario()
    assert said(caplog) == names
    for record in [one for one in caplog.records if one.name.startswith("toolbatch")]:
        name: LogEventName = record.__dict__["event_name"]
        assert record.levelno == LOG_EVENTS[name].level
        for field in LOG_EVENTS[name].fields:
            assert field in record.__dict__, f"{name} has no {field}"
        record.getMessage()
    if names:
        first = next(one for one in caplog.records if one.name.startswith("toolbatch"))
        assert {field: first.__dict__[field] for field in fields} == fields


async def test_a_late_result_is_logged_by_one_sink(caplog: pytest.LogCaptureFixture) -> None:
    """A `LoggingSink` of the host's takes the place of the built-in record, before the session and later (B7)."""
    caplog.set_level(logging.DEBUG)
    for given_later in (False, True):
        caplog.clear()
        tool = Stubborn()
        sink = LoggingSink(logging.getLogger("mine"))
        async with ToolSession(audit_sinks=[] if given_later else [sink]) as session:
            if given_later:
                session.audit.add_sink(sink)
            async with session.batch(calls("a")) as batch:
                batch.start("a", tool)
                await turn(2)
                batch.close()
            tool.release.set()
        late = [record for record in caplog.records if getattr(record, "event_name", None) == "late_result"]
        assert [(record.name, record.levelname) for record in late] == [("mine", "WARNING")]


def test_every_name_is_written_down() -> None:
    """The names of the type, of the table and of the source are the same, so that none is logged that nobody documents."""
    names = set(get_args(LogEventName))
    assert names == set(LOG_EVENTS)
    source = "".join(file.read_text("utf-8") for file in SOURCE.rglob("*.py") if file.name != "_logging.py")
    assert {name for name in names if f'"{name}"' not in source} == set()


def test_fields_are_no_attributes_that_records_have() -> None:
    """A field can't be named as one of a record's own attributes: Python would refuse to log it."""
    own = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}
    fields = {field for event in LOG_EVENTS.values() for field in event.fields} | {"event_name"}
    assert fields & own == set()


@pytest.mark.parametrize("where", ["filter", "handler"])
def test_a_log_that_fails_stops_nothing(where: str) -> None:
    """A filter or handler that raises is no reason not to do what was to be told of (B21)."""

    class Broken(logging.Handler):
        def handle(self, record: logging.LogRecord) -> bool:
            raise RuntimeError("no disk")

    def refuse(record: logging.LogRecord) -> bool:
        raise RuntimeError("no filter")

    logger, handler = logging.getLogger("toolbatch"), Broken()
    if where == "filter":
        logger.addFilter(refuse)
    else:
        logger.addHandler(handler)
    try:
        log_event("report_lost", "lost")
        log_event("report_lost", "lost %d %s", "too few")
    finally:
        logger.removeFilter(refuse)
        logger.removeHandler(handler)
