"""OpenTelemetry: the tree of spans for every way in which a call can go, and the metrics beside it (O1, O3, B11)."""

import asyncio
import subprocess
import sys
import threading
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.metrics.export import Histogram
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from tests.batch.kit import Stubborn, boom, calls, instant, turn
from tests.observe.spans import Memory, facts
from toolbatch import ToolBatch, ToolCall, ToolCatalog, ToolError, ToolSession, current_call, tool
from toolbatch.core import InvalidInputError, InvalidTypeError
from toolbatch.observe import OpenTelemetry, continued_trace
from toolbatch.ports import ApprovalRequest, Approve, Deny, StaleResult, trace_carrier
from toolbatch.tools import InteractiveApprovals, Interceptor

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def memory() -> Memory:
    """Telemetry without content."""
    return Memory()


async def fast() -> str:
    """Answer at once."""
    return "done"


async def test_a_success(memory: Memory) -> None:
    """One span a call by the conventions, below the batch's, below the host's; without arguments and results."""
    with memory.tracer.start_as_current_span("host"):
        call = ToolCall("call_1", "look", '{"secret": "s3"}')
        async with ToolBatch([call], run_id="run 7", observers=[memory.observer]) as batch:
            batch.start("call_1", fast)
    assert memory.tree() == ["host", "  tool_batch", "    execute_tool look succeeded"]
    span = memory.span("execute_tool look")
    assert span.kind is SpanKind.INTERNAL
    assert span.status.status_code is StatusCode.UNSET
    outcome = batch.outcomes["call_1"]
    given = dict(facts(span))
    assert given.pop("toolbatch.execution.duration") == outcome.duration
    assert 0 <= given.pop("toolbatch.queue.duration") < 1
    assert given == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.type": "function",
        "toolbatch.call.id": "call_1",
        "toolbatch.execution.id": outcome.execution_id,
        "toolbatch.generation": 1,
        "toolbatch.run.id": "run 7",
        "toolbatch.status": "succeeded",
        "toolbatch.completion": "settled",
        "toolbatch.cancellation": "none",
    }
    assert [event.name for event in span.events] == ["toolbatch.started"]
    assert facts(memory.span("tool_batch")) == {
        "toolbatch.generation": 1,
        "toolbatch.run.id": "run 7",
        "toolbatch.call.count": 1,
        "toolbatch.close.status": "complete",
    }
    assert "s3" not in str([span.to_json() for span in memory.spans])


@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize("kind", ["coroutine", "thread", "awaitable", "generator", "tool", "awaitable from a thread"])
async def test_what_a_tool_does_is_below_its_call(memory: Memory, kind: str, guided: bool) -> None:
    """The tool's own spans have its call's span as their parent, in the loop and in threads, with the host's baggage (B11)."""
    seen: list[object] = []

    def work() -> str:
        with memory.tracer.start_as_current_span("inside"):
            seen.append(baggage.get_baggage("user"))
        return "done"

    async def coroutine() -> str:
        await asyncio.sleep(0)
        return work()

    async def generator() -> Any:
        yield "half"
        yield work()

    def from_thread() -> Any:
        return coroutine()

    kinds: dict[str, Any] = {
        "coroutine": lambda: coroutine,
        "thread": lambda: work,
        "awaitable": coroutine,
        "generator": lambda: generator,
        "tool": lambda: tool(coroutine),
        "awaitable from a thread": lambda: from_thread,
    }
    token = context.attach(baggage.set_baggage("user", "u1"))
    try:
        interceptors = [Interceptor(), Passes()] if guided else []
        async with ToolBatch(calls("a", "b"), observers=[memory.observer], interceptors=interceptors) as batch:
            batch.start("a", kinds[kind]())
            batch.start("b", fast)
    finally:
        context.detach(token)
    assert memory.tree() == [
        "tool_batch",
        "  execute_tool tool_a succeeded",
        "    inside",
        "  execute_tool tool_b succeeded",
    ]
    assert seen == ["u1"]
    assert not trace.get_current_span().get_span_context().is_valid, "the host's own context is as it was"


class Passes(Interceptor):
    """Does nothing, but makes calls go through stages."""

    async def around(self, call: Any, proceed: Any) -> Any:
        return await proceed()


@pytest.mark.parametrize(
    ("fn", "kind", "status"),
    [
        (boom, "ValueError", "failed"),
        (lambda: failing(ToolError("no such file", "not_found")), "not_found", "failed"),
        (lambda: failing(TimeoutError()), "TimeoutError", "failed"),
        (lambda: reporting(), "tool_error", "failed"),
        (lambda: object(), "invalid_result", "failed"),
        (lambda: failing(asyncio.CancelledError()), None, "cancelled"),
    ],
)
async def test_a_failure(memory: Memory, fn: Any, kind: str | None, status: str) -> None:
    """A failure has status ERROR and a kind of few, and not its message, which may hold a secret (FIELD 115)."""
    async with ToolBatch(calls("a"), observers=[memory.observer]) as batch:
        batch.start("a", fn)
    span = memory.call("a")
    assert facts(span)["toolbatch.status"] == status
    assert facts(span).get("error.type") == kind
    assert span.status.status_code is (StatusCode.UNSET if kind is None else StatusCode.ERROR)
    assert span.status.description == kind
    assert all(event.name != "exception" for event in span.events)
    assert memory.points("toolbatch.calls") == [({"gen_ai.tool.name": "tool_a", "toolbatch.status": status}, 1)]


async def failing(error: BaseException) -> None:
    """Fail."""
    raise error


async def reporting() -> str:
    """Return a value, and say that it has failed (O4)."""
    current_call().report_failure("broken")
    return "text for the model"


async def test_a_timeout_and_the_end_that_follows_it(memory: Memory) -> None:
    """A timeout is told at once; when the tool has stopped, that is a span of its own, linked to the call's."""
    async with ToolBatch(calls("a"), observers=[memory.observer]) as batch:
        batch.start("a", forever, timeout=0.02)
    assert memory.tree() == ["tool_batch", "  execute_tool tool_a timed_out", "    late_end tool_a timed_out"]
    span, end = memory.call("a"), memory.span("late_end tool_a")
    given = facts(span)
    assert (given["toolbatch.timeout"], given["toolbatch.code"], given["error.type"]) == (0.02, "timeout", "timeout")
    assert given["toolbatch.completion"] == "unknown"
    assert "toolbatch.cancellation" not in given, "it is asked to stop once it has its outcome"
    assert (facts(end)["toolbatch.completion"], facts(end)["toolbatch.cancellation"]) == ("settled", "acknowledged")
    assert [link.context for link in end.links] == [span.context]
    assert span.end_time is not None
    assert end.start_time is not None
    assert span.end_time <= end.start_time
    assert memory.points("toolbatch.late_results") == []


async def forever() -> None:
    """Wait until it is cancelled."""
    await asyncio.Event().wait()


async def test_a_late_result(memory: Memory) -> None:
    """A tool that ignores its timeout and answers later has its end in the trace, with how late it was (B7)."""
    stubborn = Stubborn()
    async with ToolSession(observers=[memory.observer], audit_size=1) as session:
        async with session.batch(calls("a", "b"), timeout=0.3) as batch:
            batch.start("a", stubborn)
            batch.start("b", stubborn)
        assert memory.tree()[0] == "tool_batch", "the batch's span does not wait for it"
        stubborn.release.set()
    end, other = (span for span in memory.spans if span.name.startswith("late_end"))
    assert facts(end)["toolbatch.observed_status"] == "success"
    assert facts(end)["toolbatch.answered_as"] == "timeout"
    late_by = facts(end)["toolbatch.late_by"]
    assert end.end_time is not None
    assert end.start_time is not None
    assert (end.end_time - end.start_time) / 1e9 == pytest.approx(late_by, abs=0.001)
    assert (facts(end)["toolbatch.audit.kept"], facts(other)["toolbatch.audit.kept"]) == (True, False)
    assert [facts(span)["gen_ai.tool.name"] for span in (end, other)] == ["tool_a", "tool_b"]
    assert end.links[0].context == memory.call("a").context == end.parent
    assert memory.points("toolbatch.late_results") == [
        ({"gen_ai.tool.name": "tool_a", "toolbatch.observed_status": "success"}, 1),
        ({"gen_ai.tool.name": "tool_b", "toolbatch.observed_status": "success"}, 1),
    ]
    assert memory.points("toolbatch.audit.dropped") == [({"gen_ai.tool.name": "tool_b"}, 1)]


async def test_calls_that_are_cancelled_superseded_or_never_started(memory: Memory) -> None:
    """Each call has its one span and its honest status, and none of these is an error of the tool's (B5)."""
    async with ToolSession(observers=[memory.observer]) as session, session.batch(calls("a", "b", "c")) as batch:
        batch.start("a", forever)
        batch.start("b", forever)
        await turn(2)
        batch.cancel("a", code="user_said_no")
        async with session.batch(calls("d")):
            pass
    statuses = {facts(memory.call(call_id))["toolbatch.status"] for call_id in "abc"}
    assert statuses == {"cancelled"}
    shown = [facts(memory.call(call_id)) for call_id in "abcd"]
    assert [given["toolbatch.code"] for given in shown] == ["user_said_no", "superseded", "superseded", "not_started"]
    assert [given["toolbatch.completion"] for given in shown] == ["unknown", "unknown", "not_started", "not_started"]
    assert all(memory.call(call_id).status.status_code is StatusCode.UNSET for call_id in "abcd")
    assert all("error.type" not in given for given in shown)
    first, second = (span for span in memory.spans if span.name == "tool_batch")
    assert (facts(first)["toolbatch.code"], facts(first)["toolbatch.generation"]) == ("superseded", 1)
    assert (facts(second)["error.type"], second.status.status_code) == ("not_started", StatusCode.ERROR)


async def test_queued_calls(memory: Memory) -> None:
    """A call's span begins when it is handed over; how long it waited for its place is in it (B13)."""
    gate = asyncio.Event()

    async def hold() -> None:
        await gate.wait()

    async with ToolBatch(calls("a", "b", "c"), max_concurrency=1, observers=[memory.observer]) as batch:
        batch.start("a", hold)
        batch.start("b", fast)
        batch.start("c", fast)
        await asyncio.sleep(0.05)
        gate.set()
        await turn(3)
        batch.close()
    first, second = memory.call("a"), memory.call("b")
    assert facts(first)["toolbatch.queue.duration"] < facts(second)["toolbatch.queue.duration"]
    assert facts(second)["toolbatch.queue.duration"] > 0.04
    (entered,) = second.events
    assert second.start_time is not None
    assert (entered.timestamp - second.start_time) / 1e9 == pytest.approx(facts(second)["toolbatch.queue.duration"])
    durations = memory.points("gen_ai.execute_tool.duration")
    assert {point[0]["gen_ai.tool.name"] for point in durations} >= {"tool_a", "tool_b"}


async def test_a_queued_call_that_is_never_run(memory: Memory) -> None:
    """It has a span without an entry, and the time of its tool is not measured (B13)."""
    async with ToolBatch(calls("a", "b"), max_concurrency=1, observers=[memory.observer]) as batch:
        batch.start("a", forever)
        batch.start("b", fast)
        await turn(2)
        batch.close()
    span = memory.call("b")
    assert facts(span)["toolbatch.completion"] == "not_started"
    assert "toolbatch.queue.duration" not in facts(span)
    assert span.events == ()
    assert [point[0]["gen_ai.tool.name"] for point in memory.points("gen_ai.execute_tool.duration")] == ["tool_a"]


async def test_calls_that_cant_be_run(memory: Memory) -> None:
    """Malformed and unknown calls have a span; a name that the model made up is no time series (P6, T5)."""
    announced = [ToolCall("a", "instant", '{"x": '), ToolCall("b", "invented"), ToolCall("c", "instant", "{}")]
    async with ToolBatch(announced, tools={"instant": instant}, observers=[memory.observer]) as batch:
        batch.start_all()
    assert facts(memory.call("a"))["error.type"] == "malformed_arguments"
    assert facts(memory.call("b"))["error.type"] == "unknown_tool"
    assert memory.call("b").name == "execute_tool invented"
    assert sorted(point[0]["gen_ai.tool.name"] for point in memory.points("toolbatch.calls")) == [
        "_OTHER",
        "instant",
        "instant",
    ]
    assert len(memory.points("gen_ai.execute_tool.duration")) == 1


async def test_approvals(memory: Memory) -> None:
    """A call that waits for a person says so; one that is denied is no error, and policies run below the call's span (T7)."""

    class Policy(Interceptor):
        async def before(self, call: Any, proceed: Any) -> Any:
            with memory.tracer.start_as_current_span("policy"):
                return await proceed()

    def decide(request: ApprovalRequest) -> None:
        approvals.resolve(request.call_id, Approve() if request.call_id == "a" else Deny("no"))

    approvals = InteractiveApprovals(decide)

    @tool(needs_approval=True)
    async def pay() -> str:
        """Pays."""
        return "paid"

    async with ToolBatch(
        [ToolCall("a", "pay", "{}"), ToolCall("b", "pay", "{}")],
        tools=ToolCatalog([pay]),
        approvals=approvals,
        interceptors=[Policy()],
        observers=[memory.observer],
    ) as batch:
        batch.start_all()
    assert memory.tree() == [
        "tool_batch",
        "  execute_tool pay succeeded",
        "    policy",
        "  execute_tool pay denied",
        "    policy",
    ]
    denied = memory.call("b")
    assert denied.status.status_code is StatusCode.UNSET
    assert [event.name for event in denied.events] == ["toolbatch.approval_requested"]
    assert facts(denied)["gen_ai.tool.description"] == "Pays."
    assert [event.name for event in memory.call("a").events] == ["toolbatch.approval_requested", "toolbatch.started"]


async def test_nested_batches(memory: Memory) -> None:
    """A batch inside of a tool is below that tool's call, also from a thread with a loop of its own (FIELD 22, 25)."""

    async def inner() -> str:
        async with ToolBatch(calls("x"), observers=[memory.observer]) as batch:
            batch.start("x", fast)
        return "done"

    def in_a_thread() -> str:
        return asyncio.run(inner())

    async with ToolBatch(calls("a", "b"), observers=[memory.observer]) as batch:
        batch.start("a", inner)
        await batch_turns(batch, "a")
        batch.start("b", in_a_thread)
    below = ["    tool_batch", "      execute_tool tool_x succeeded"]
    assert memory.tree() == [
        "tool_batch",
        "  execute_tool tool_a succeeded",
        *below,
        "  execute_tool tool_b succeeded",
        *below,
    ]


async def batch_turns(batch: ToolBatch, call_id: str) -> None:
    """Let the loop go round until a call has its outcome."""
    while call_id not in batch.outcomes:
        await asyncio.sleep(0)


async def test_an_answer_for_now(memory: Memory) -> None:
    """A call that goes on behind a placeholder is counted once, as what it became; its end is in the trace (O6)."""
    gate = asyncio.Event()

    async def job() -> str:
        current_call().pending("job 17")
        await gate.wait()
        return "printed"

    async with ToolSession(observers=[memory.observer]) as session:
        async with session.batch(calls("a")) as batch:
            batch.start("a", job)
        assert facts(memory.call("a"))["toolbatch.status"] == "pending"
        assert memory.points("toolbatch.calls") == []
        gate.set()
        await turn(3)
    assert memory.tree() == ["tool_batch", "  execute_tool tool_a pending", "    late_end tool_a succeeded"]
    assert memory.points("toolbatch.calls") == [
        ({"gen_ai.tool.name": "tool_a", "toolbatch.status": "succeeded"}, 1),
    ]


async def test_attempts_of_one_call_are_one_span(memory: Memory) -> None:
    """What an interceptor runs again is below the one span of its call (T6)."""

    class Twice(Interceptor):
        async def around(self, call: Any, proceed: Any) -> Any:
            try:
                return await proceed()
            except ValueError:
                return await proceed()

    tries: list[int] = []

    async def flaky() -> str:
        with memory.tracer.start_as_current_span(f"try {len(tries)}"):
            tries.append(1)
            if len(tries) == 1:
                raise ValueError
        return "done"

    async with ToolBatch(calls("a"), interceptors=[Twice()], observers=[memory.observer]) as batch:
        batch.start("a", flaky)
    assert memory.tree() == ["tool_batch", "  execute_tool tool_a succeeded", "    try 0", "    try 1"]


async def test_content_when_asked_for() -> None:
    """Arguments, results, progress, messages and exceptions are recorded where the host says so, cut to a bound."""
    memory = Memory(content=True, max_content_bytes=30)

    async def talk(x: int) -> Any:
        yield f"half of {x}"
        yield "é" * 40

    announced = [ToolCall("a", "talk", '{"x": 1}'), ToolCall("b", "boom", {"y": 2}), ToolCall("c", "odd", {"z": 2j})]
    async with ToolBatch(
        announced, tools={"talk": talk, "boom": bad, "odd": bad}, observers=[memory.observer]
    ) as batch:
        batch.start_all()
    said, failed = memory.call("a"), memory.call("b")
    assert facts(said)["gen_ai.tool.call.arguments"] == '{"x": 1}'
    assert facts(said)["gen_ai.tool.call.result"] == "é" * 13 + "..."
    (progress,) = [event for event in said.events if event.name == "toolbatch.progress"]
    assert progress.attributes == {"toolbatch.progress.content": "half of 1"}
    assert facts(failed)["gen_ai.tool.call.arguments"] == '{"y":2}'
    assert failed.status.description == "bad password=hunter2"
    (error,) = [event for event in failed.events if event.name == "exception"]
    assert error.attributes is not None
    assert (error.attributes["exception.type"], error.attributes["exception.message"]) == (
        "ValueError",
        "bad password=hunter2",
    )
    assert len(str(error.attributes["exception.stacktrace"]).encode()) <= 30
    assert facts(memory.call("c"))["gen_ai.tool.call.arguments"] == "(not JSON)"


async def bad(**_: object) -> None:
    """Fail with a secret in the message."""
    raise ValueError("bad password=hunter2")


async def test_text_that_no_exporter_could_send() -> None:
    """Lone surrogates, control characters, huge names and exceptions that can't be shown cost no span (LANES 3)."""
    memory = Memory(content=True)

    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    async def raising() -> None:
        raise Hostile

    async def surrogates() -> None:
        raise ValueError("\ud800")

    announced = [ToolCall("a\x1b[2J", "n" * 500, {"\ud800": "\udfff"}), ToolCall("b", "\x00\x07 <b>")]
    async with ToolBatch(announced, run_id="r\ud800", observers=[memory.observer]) as batch:
        batch.start("a\x1b[2J", raising)
        batch.start("b", surrogates)
    assert len(memory.spans) == 3
    for span in memory.spans:
        span.to_json().encode()
        for event in span.events:
            str(event.attributes).encode()
        str(dict(facts(span))).encode()
        assert span.end_time is not None


class Broken(SpanProcessor):
    """A processor that always raises."""

    def on_start(self, span: Span, parent_context: object = None) -> None:
        raise RuntimeError("on_start is broken")

    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError("on_end is broken")


async def test_telemetry_that_fails_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever the SDK or an exporter raises is logged, and calls are run and answered all the same (O3)."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Broken())
    async with ToolBatch(calls("a"), observers=[OpenTelemetry(tracer_provider=provider)]) as batch:
        batch.start("a", fast)
    assert batch.outcomes["a"].status == "succeeded"
    names = {getattr(record, "event_name", None) for record in caplog.records}
    assert names == {"observer_failed"}


async def test_without_a_provider_nothing_is_recorded() -> None:
    """Without an SDK all of it is free of effects, and where the host does not sample there are no spans."""
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    for observer in (OpenTelemetry(), OpenTelemetry(tracer_provider=provider, content=True)):
        async with ToolBatch(calls("a", "b"), observers=[observer]) as batch:
            batch.start("a", fast)
            batch.start("b", threading.get_ident)
        assert [outcome.status for outcome in batch.outcomes.values()] == ["succeeded", "succeeded"]


async def test_ids_are_those_that_the_model_gave(memory: Memory) -> None:
    """Where ours had to differ, the convention's attribute has the provider's, as the model's own spans do (P6)."""
    async with ToolBatch([ToolCall("ours", "t", wire_id="theirs")], observers=[memory.observer]) as batch:
        batch.start("ours", fast)
    given = facts(memory.span("execute_tool t"))
    assert (given["gen_ai.tool.call.id"], given["toolbatch.call.id"]) == ("theirs", "ours")


async def test_a_long_description_is_cut(memory: Memory) -> None:
    """Text that describes is bounded as names and ids are."""

    @tool
    async def wordy() -> str:
        return "done"

    wordy = replace(wordy, description="é" * 5000)
    async with ToolBatch([ToolCall("a", "wordy", "{}")], tools={"wordy": wordy}, observers=[memory.observer]) as batch:
        batch.start_all()
    assert facts(memory.call("a"))["gen_ai.tool.description"] == "é" * 510 + "..."


async def test_a_turn_without_calls(memory: Memory) -> None:
    """It has nothing to show, and no span."""
    async with ToolBatch([], observers=[memory.observer]):
        pass
    assert memory.spans == []


async def test_one_observer_for_many_sessions(memory: Memory) -> None:
    """Sessions that run at once under one observer don't mix: the same ids and generations have their own spans (FIELD 49)."""

    async def conversation(name: str) -> None:
        with memory.tracer.start_as_current_span(name):
            async with ToolSession(observers=[memory.observer], run_id=name) as session:
                for _ in range(2):
                    async with session.batch(calls("a")) as batch:
                        batch.start("a", fast)
                        await asyncio.sleep(0)

    await asyncio.gather(conversation("one"), conversation("two"))
    each = ["  tool_batch", "    execute_tool tool_a succeeded"]
    assert memory.tree() == ["one", *each, *each, "two", *each, *each]
    traces: dict[object, set[object]] = {}
    for span in memory.spans:
        assert span.context is not None
        if span.name != "host" and "toolbatch.run.id" in facts(span):
            traces.setdefault(span.context.trace_id, set()).add(facts(span)["toolbatch.run.id"])
    assert sorted(map(len, traces.values())) == [1, 1]


async def test_a_session_can_be_watched_later(memory: Memory) -> None:
    """`observe` takes effect for the open batch and later ones, until it is undone."""
    async with ToolSession() as session:
        async with session.batch(calls("a", "b")) as batch:
            batch.start("a", fast)
            stop = session.observe(memory.observer)
            batch.start("b", fast)
        async with session.batch(calls("c")) as batch:
            batch.start("c", fast)
        stop()
        stop()
        async with session.batch(calls("d")) as batch:
            batch.start("d", fast)
    assert {facts(span).get("toolbatch.call.id") for span in memory.spans} == {None, "a", "b", "c"}
    with pytest.raises(InvalidTypeError, match="an observer must be a function of one BatchOpened, not 7"):
        session.observe(7)  # type: ignore[arg-type]


async def test_the_trace_goes_on_in_another_process(memory: Memory) -> None:
    """What a backend sends along makes the call's span the parent of spans elsewhere, and is gone afterwards (B11)."""
    sent: list[dict[str, str]] = []

    async def tool_body() -> None:
        sent.append(dict(trace_carrier.get()))

    async with ToolBatch(calls("a"), observers=[memory.observer]) as batch:
        batch.start("a", tool_body)
    assert trace_carrier.get() == {}, "the host's own context has none"

    def there() -> None:
        trace_carrier.set(sent[0])
        with continued_trace(), memory.tracer.start_as_current_span("elsewhere"):
            pass
        assert not trace.get_current_span().get_span_context().is_valid

    thread = threading.Thread(target=there)  # with an empty context, as another process has
    thread.start()
    thread.join()
    assert memory.tree() == ["tool_batch", "  execute_tool tool_a succeeded", "    elsewhere"]
    with continued_trace():
        assert not trace.get_current_span().get_span_context().is_valid, "nothing is traced here"


@pytest.mark.parametrize(
    ("bound", "error"),
    [(0, InvalidInputError), (-1, InvalidInputError), (True, InvalidTypeError), ("1", InvalidTypeError)],
)
def test_a_bound_that_cant_be_used(bound: Any, error: type[Exception]) -> None:
    """A bound must be a positive int; the message has the value."""
    with pytest.raises(error, match=str(bound)):
        OpenTelemetry(content=True, max_content_bytes=bound)


def test_without_opentelemetry() -> None:
    """Where it is not installed, the error says what to install; `toolbatch.observe` itself needs nothing of it."""
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from toolbatch.observe import OpenTelemetry, continued_trace\n"
        "with continued_trace(): pass\n"
        "try: OpenTelemetry()\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "OpenTelemetry() needs the package opentelemetry-api: pip install 'toolbatch[otel]'\n"


async def test_durations_are_measured_as_the_conventions_say(memory: Memory) -> None:
    """The tool's own time, in seconds, in the conventions' buckets, with the kind of error where there was one."""
    async with ToolBatch(calls("a", "b"), observers=[memory.observer]) as batch:
        batch.start("a", fast)
        batch.start("b", boom)
    (metric,) = memory.metrics("gen_ai.execute_tool.duration")
    assert metric.unit == "s"
    assert isinstance(metric.data, Histogram)
    common = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.type": "function"}
    first, second = metric.data.data_points
    assert first.attributes == {**common, "gen_ai.tool.name": "tool_a"}
    assert second.attributes == {**common, "gen_ai.tool.name": "tool_b", "error.type": "ValueError"}
    assert first.sum == batch.outcomes["a"].duration
    assert list(first.explicit_bounds)[:3] == [0.01, 0.02, 0.04]
    assert first.explicit_bounds[-1] == 81.92


def test_names_that_models_invent_are_few_time_series(memory: Memory) -> None:
    """Beyond a thousand names the rest is one series: a metric's attributes must not grow for ever."""
    from toolbatch.observe._otel_metrics import Meters

    meters = Meters(memory.meter_provider)
    late = StaleResult(
        call_id="a", name="", generation=1, execution_id="e", reason="run_closed", answered_as="timeout",
        observed_status="success", exception_type=None, started_at=0.0, closed_at=0.0, settled_at=1.0, late_by=1.0,
    )  # fmt: skip
    for number in range(1500):
        meters.late(replace(late, name=f"n{number}"), kept=True)
    points = memory.points("toolbatch.late_results")
    assert len(points) == 1001
    assert [count for given, count in points if given["gen_ai.tool.name"] == "_OTHER"] == [500]
