"""What a tool may raise, and what becomes of it: its call's error, and nothing more (B4, B21)."""

import asyncio
import concurrent.futures
import logging
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from tests.batch.clock import ClockLoop, turned
from tests.batch.kit import Stubborn, calls, check_batch, code, codes, end, forever, instant, message, result_of, turn
from tests.batch.stages import Around, passes
from toolbatch import ToolBatch, ToolCall, ToolError, ToolSession
from toolbatch.batch import DurableOperations
from toolbatch.batch._failures import read_failure
from toolbatch.operations import MemoryOperationStore
from toolbatch.tools import Interceptor


class Silent(Exception):
    """No message."""


class Unspeakable(Exception):
    """Its text can't be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Opaque(Exception):
    """Nothing can be had of it, not even what it is."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("no attributes")


class Murderous(Exception):
    """Its text ends the process."""

    def __str__(self) -> str:
        raise SystemExit(3)


class Vanishing(Exception):
    """Its text is a cancellation."""

    def __str__(self) -> str:
        raise asyncio.CancelledError


class Foreign(BaseException):
    """An exception that is no `Exception`."""


class LibraryCancelled(Exception):
    """Another library's word for cancelled (FIELD 23)."""


def deep_group(depth: int) -> BaseExceptionGroup[Any]:
    """A group in a group in a group."""
    group: BaseExceptionGroup[Any] = ExceptionGroup("g", [ValueError("leaf")])
    for _ in range(depth):
        group = ExceptionGroup("g", [group])
    return group


def groups(*errors: BaseException) -> BaseExceptionGroup[BaseException]:
    """A group, nested once."""
    return BaseExceptionGroup("outer", [BaseExceptionGroup("inner", [*errors])])


CANCELLED = asyncio.CancelledError
RAISED: dict[str, tuple[Callable[[], BaseException], str, str]] = {
    "plain": (lambda: ValueError("no such city"), "tool_error", "no such city"),
    "no message": (Silent, "tool_error", "Silent"),
    "blank message": (lambda: ValueError("  "), "tool_error", "ValueError"),
    "str raises": (Unspeakable, "tool_error", "Unspeakable"),
    "str exits": (Murderous, "tool_error", "Murderous"),
    "str cancels": (Vanishing, "tool_error", "Vanishing"),
    "surrogates": (lambda: ValueError("\ud800"), "tool_error", "\ufffd"),
    "StopAsyncIteration": (lambda: StopAsyncIteration("end"), "tool_error", "async generator raised StopAsyncIteration|end"),
    "GeneratorExit": (GeneratorExit, "tool_error", "GeneratorExit"),
    "base exception": (lambda: Foreign("odd"), "tool_error", "odd"),
    "assertion": (AssertionError, "tool_error", "AssertionError"),
    "KeyError": (lambda: KeyError("x"), "tool_error", "'x'"),
    "timeout of its own": (TimeoutError, "tool_error", "TimeoutError"),
    "cancelled of its own": (CANCELLED, "cancelled", "Tool call was cancelled."),
    "future cancelled": (concurrent.futures.CancelledError, "cancelled", "Tool call was cancelled."),
    "library's cancelled": (LibraryCancelled, "cancelled", "Tool call was cancelled."),
    "group": (lambda: groups(ValueError("one"), KeyError("two")), "tool_error", "one; 'two'"),
    "group with a cancellation": (lambda: groups(CANCELLED(), ValueError("one")), "tool_error", "one"),
    "group of cancellations": (lambda: groups(CANCELLED(), CANCELLED()), "cancelled", "Tool call was cancelled."),
    "large group": (
        lambda: ExceptionGroup("g", [ValueError(str(n)) for n in range(50)]),
        "tool_error",
        "; ".join(map(str, range(20))) + "; and 30 more",
    ),
    "deep group": (lambda: deep_group(5000), "tool_error", "leaf"),
    "for the model": (lambda: ToolError.respond_to_model("try later", "busy"), "busy", "try later"),
    "for the model, without code": (lambda: ToolError.respond_to_model("try later"), "tool_error", "try later"),
    "for the model, blank": (lambda: ToolError.respond_to_model(""), "tool_error", "ToolError"),
    "code too long": (lambda: ToolError.respond_to_model("x", "c" * 500), "tool_error", "x"),
    "blank code": (lambda: ToolError.respond_to_model("x", " "), "tool_error", "x"),
    "in a group for the model": (lambda: groups(ToolError.respond_to_model("m", "c")), "c", "m"),
}  # fmt: skip


def raiser(make: Callable[[], BaseException], in_thread: bool) -> Callable[[], Any]:
    """A tool that raises."""

    def raises() -> NoReturn:
        raise make()

    async def raises_async() -> NoReturn:
        raise make()

    return raises if in_thread else raises_async


@pytest.mark.parametrize("in_thread", [False, True], ids=["loop", "thread"])
@pytest.mark.parametrize("kind", RAISED)
@turned
async def test_what_a_tool_raises(kind: str, in_thread: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever it raises is that call's outcome, its siblings run on, and the host is not touched (B4, B21, FIELD 63, 65, 66)."""
    caplog.set_level(logging.DEBUG)
    make, expected_code, text = RAISED[kind]
    async with ToolBatch(calls("a", "b"), cancel_exceptions=(LibraryCancelled,)) as batch:
        batch.start("a", raiser(make, in_thread))
        batch.start("b", instant)
        snapshot = await batch.snapshot()
    assert codes(check_batch(batch, ["a", "b"])) == {"a": expected_code, "b": "success"}
    assert message(snapshot, "a") in text.split("|")
    assert end(snapshot, "a").provenance == "reported"
    outcome = batch.outcomes["a"]
    assert outcome.status == ("cancelled" if expected_code == "cancelled" else "failed")
    assert (outcome.completion, outcome.cancellation) == ("settled", "none")
    assert type(outcome.exception) is type(make()), "the host gets the whole exception"
    host = asyncio.current_task()
    assert host is not None
    assert host.cancelling() == 0
    assert batch.audit.drain() == []


@pytest.mark.parametrize("in_thread", [False, True], ids=["loop", "thread"])
@turned
async def test_stop_iteration(in_thread: bool) -> None:
    """`StopIteration`, which can't leave a coroutine or a future, is an error like any other (B4)."""
    async with ToolBatch(calls("a")) as batch:
        batch.start("a", raiser(lambda: StopIteration("over"), in_thread))
        snapshot = await batch.snapshot()
    assert message(snapshot, "a") == ("over" if in_thread else "coroutine raised StopIteration")


async def test_a_tool_that_raises_generator_exit_at_once(nothing_left: None) -> None:
    """`GeneratorExit` of the tool's own is an error on every loop, with eager tasks too (B4, B12)."""
    async with ToolBatch(calls("a"), timeout=5) as batch:
        batch.start("a", raiser(GeneratorExit, in_thread=False))
        assert code(await batch.snapshot(), "a") == "tool_error"


@pytest.mark.parametrize("kind", RAISED)
@turned
async def test_what_a_tool_raises_too_late(kind: str) -> None:
    """After its outcome an exception is evidence for the audit, once, and changes nothing (B6, B7)."""
    make, expected_code, _ = RAISED[kind]
    stubborn = Stubborn(make())
    async with ToolSession() as session:
        async with session.batch(calls("a"), timeout=1, cancel_exceptions=(LibraryCancelled,)) as batch:
            batch.start("a", stubborn)
            snapshot = await batch.snapshot()
        stubborn.release.set()
    assert code(result_of(batch), "a") == "timeout"
    assert batch.result is snapshot
    late = session.audit.drain()
    if expected_code == "cancelled":
        assert late == [], "that it ended as cancelled after our cancellation is no news"
    else:
        assert [(stale.observed_status, stale.exception_type) for stale in late] == [
            ("error", type(stubborn.value).__name__)
        ]
    assert batch.outcomes["a"].completion == "settled"


DETAILS: list[tuple[Any, str]] = [
    ("message", "secret path"),
    ("type", "ValueError"),
    (lambda error: f"<{type(error).__name__}>", "<ValueError>"),
    (lambda error: "", "ValueError"),
    (lambda error: None, "ValueError"),
    (lambda error: 1 / 0, "ValueError"),
    (lambda error: raiser(KeyboardInterrupt, in_thread=True)(), "ValueError"),
]


@pytest.mark.parametrize(("detail", "text"), DETAILS)
@turned
async def test_error_detail(detail: Any, text: str) -> None:
    """What the model reads is a policy that can't itself fail; the host has the whole exception (B21)."""
    error = ValueError("secret path")
    async with ToolBatch(calls("a", "b"), error_detail=detail) as batch:
        batch.start("a", raiser(lambda: error, in_thread=False))
        batch.start("b", raiser(lambda: ToolError.respond_to_model("chosen"), in_thread=False))
        snapshot = await batch.snapshot()
    assert message(snapshot, "a") == text
    assert message(snapshot, "b") == "chosen", "a ToolError's message is meant for the model"
    assert batch.outcomes["a"].exception is error


@turned
async def test_the_log_has_the_whole_exception(caplog: pytest.LogCaptureFixture) -> None:
    """A failure is logged with its exception, for the host's eyes (B21)."""
    caplog.set_level(logging.INFO, "toolbatch")
    error = ValueError("x")
    async with ToolBatch(calls("a"), error_detail="type") as batch:
        batch.start("a", raiser(lambda: error, in_thread=False))
    (record,) = [record for record in caplog.records if record.exc_info]
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    assert record.getMessage() == "tool tool_a failed in call a"


class Breaks(logging.Filter):
    """A host's log filter that raises."""

    def filter(self, record: logging.LogRecord) -> bool:
        raise LookupError("the log is broken")


@turned
async def test_a_log_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    """A log that raises hides no failure and hangs no batch (B21)."""
    caplog.set_level(logging.INFO, "toolbatch")
    breaks = Breaks()
    logging.getLogger("toolbatch").addFilter(breaks)
    try:
        async with ToolBatch(calls("a"), timeout=10) as batch:
            batch.start("a", raiser(lambda: ValueError("x"), in_thread=False))
            snapshot = await batch.snapshot()
    finally:
        logging.getLogger("toolbatch").removeFilter(breaks)
    assert code(snapshot, "a") == "tool_error"


class LyingGroup(ExceptionGroup[Exception]):
    """A group whose members can't be had."""

    @property
    def exceptions(self) -> Any:
        raise RuntimeError("no members")


def test_reading_a_failure_never_fails() -> None:
    """Even of a group that can't be read there is something to say (B21)."""
    failure = read_failure(LyingGroup("x", [ValueError("y")]), "message")
    assert (failure.is_cancellation, failure.message) == (False, "LyingGroup")


@turned
async def test_a_fatal_tool_error() -> None:
    """A fatal `ToolError` closes the batch as `batch_failed`, and the exit raises it as it is (B4, T4)."""
    error = ToolError.fatal("the disk is gone", "disk")
    batch = ToolBatch(calls("a", "b", "c", "d"))
    with pytest.raises(ToolError) as caught:
        async with batch:
            batch.start("d", instant)
            await turn(2)
            batch.start("a", raiser(lambda: error, in_thread=False))
            batch.start("b", forever)
            snapshot = await batch.snapshot()
    assert caught.value is error
    assert codes(snapshot) == {"a": "disk", "b": "batch_failed", "c": "batch_failed", "d": "success"}
    assert end(snapshot, "b").status == "error"
    assert end(snapshot, "a").provenance == "reported"
    assert snapshot.close_reason is not None
    assert snapshot.close_reason.status == "error"


@turned
async def test_a_fatal_error_gives_way_to_the_bodys_own() -> None:
    """What the body raised passes through, and not a tool's fatal error; in a group a fatal leaf is fatal (B3, B4)."""
    with pytest.raises(LookupError):
        async with ToolBatch(calls("a")) as batch:
            batch.start("a", raiser(lambda: groups(ToolError.fatal("gone")), in_thread=False))
            await batch.snapshot()
            raise LookupError
    with pytest.raises(ToolError, match="gone"):
        async with ToolBatch(calls("a")) as batch:
            batch.start("a", raiser(lambda: groups(ValueError("x"), ToolError.fatal("gone", "f")), in_thread=False))
    assert code(result_of(batch), "a") == "f"


@turned
async def test_the_first_fatal_error_counts() -> None:
    """Of two fatal errors the first is raised; a late one is evidence and ends nothing (B4, B7)."""
    stubborn = Stubborn(ToolError.fatal("late"))
    async with ToolSession() as session:
        async with session.batch(calls("a"), timeout=1) as batch:
            batch.start("a", stubborn)
        async with session.batch(calls("a")) as second:
            second.start("a", forever)
            stubborn.release.set()
            await turn(3)
            assert second.result is None
            second.close()
    assert len(session.audit.drain()) == 1
    assert batch.outcomes["a"].status == "timed_out"


@turned
async def test_cancel_siblings() -> None:
    """With `cancel_siblings` the first failure cancels the others, each with its own honest outcome (B16)."""
    async with ToolBatch(
        calls("ok", "bad", "runs", "queued", "never"), on_error="cancel_siblings", max_concurrency=3
    ) as batch:
        batch.start("ok", instant)
        batch.start("runs", forever)
        batch.start("bad", raiser(lambda: ValueError("x"), in_thread=False))
        batch.start("queued", forever)
        snapshot = await batch.snapshot()
    failed = "sibling_failed"
    assert codes(snapshot) == {"ok": "success", "bad": "tool_error", "runs": failed, "queued": failed, "never": failed}
    states = {call.id: call.settlement.to_dict().get("side_effect_state") for call in snapshot.calls if call.settlement}
    assert states == {"ok": None, "bad": None, "runs": "unknown", "queued": "not_started", "never": "not_started"} or (
        states["queued"] == "unknown"  # a place came free before the failure
    )
    assert "tool_bad" in message(snapshot, "runs")
    assert batch.outcomes["runs"].cancellation == "acknowledged"


@pytest.mark.parametrize("how", ["timeout", "cancelled", "own cancellation", "continue"])
@turned
async def test_what_cancels_siblings(how: str) -> None:
    """A timeout is a failure; a cancellation is not; by default nothing cancels siblings (B4, B16, FIELD 62)."""
    async with ToolBatch(calls("a", "b"), on_error="continue" if how == "continue" else "cancel_siblings") as batch:
        batch.start("b", asyncio.sleep, 100)
        if how == "own cancellation":
            batch.start("a", raiser(CANCELLED, in_thread=False))
        elif how == "continue":
            batch.start("a", raiser(lambda: ValueError("x"), in_thread=False))
        else:
            batch.start("a", forever, timeout=10)
            await turn(2)
            if how == "cancelled":
                batch.cancel("a")
        snapshot = await batch.snapshot()
    assert (code(snapshot, "b") == "sibling_failed") == (how == "timeout")


@pytest.mark.parametrize("guided", [False, True])
async def test_cancel_siblings_and_a_call_that_cant_be_run(guided: bool, nothing_left: None) -> None:
    """A malformed call is the model's mistake and ran nothing: its siblings can be started and run (P6, B16)."""
    announced = [ToolCall("a", "tool_a", "{broken"), *calls("b")]
    hooks = [Around(passes)] if guided else []
    async with ToolBatch(announced, on_error="cancel_siblings", interceptors=hooks) as batch:
        for call in batch.calls:
            batch.start(call.id, instant)
        snapshot = await batch.snapshot()
    assert codes(snapshot) == {"a": "malformed_arguments", "b": "success"}


def _loop_run(make: Callable[[], BaseException], in_thread: bool, batches: list[ToolBatch]) -> None:
    async def main() -> None:
        batch = ToolBatch(calls("done", "a", "b"))
        batches.append(batch)
        async with batch:
            batch.start("done", instant)
            await turn(2)
            batch.start("a", raiser(make, in_thread))
            batch.start("b", forever)
            await batch.snapshot()
            await forever()

    with asyncio.Runner(loop_factory=ClockLoop) as runner:
        try:
            runner.run(main())
        finally:
            loop = runner.get_loop()
            assert isinstance(loop, ClockLoop)
            assert loop.complaints == []


@pytest.mark.parametrize("in_thread", [False, True], ids=["loop", "thread"])
@pytest.mark.parametrize("error", [KeyboardInterrupt("stop"), SystemExit(3), groups(ValueError("x"), SystemExit(3))])
def test_what_passes_through_the_loop(error: BaseException, in_thread: bool) -> None:
    """`KeyboardInterrupt` and `SystemExit` close the batch at once and come out of the loop (B4, FIELD 12)."""
    batches: list[ToolBatch] = []
    with pytest.raises((KeyboardInterrupt, SystemExit)) as caught:
        _loop_run(lambda: error, in_thread, batches)
    assert type(caught.value) in {type(error), SystemExit}
    (batch,) = batches
    snapshot = result_of(batch)
    assert codes(snapshot) == {"done": "success", "a": "tool_error", "b": "batch_failed"}
    assert end(snapshot, "b").status == "error"


async def fails_opaquely() -> NoReturn:
    """A tool."""
    raise Opaque("x")


def fails_opaquely_in_a_thread() -> NoReturn:
    """Another."""
    raise Opaque("x")


@pytest.mark.parametrize(
    "hook", [None, lambda: Around(passes), lambda: DurableOperations(MemoryOperationStore(), tenant="t")]
)
@pytest.mark.parametrize("fn", [fails_opaquely, fails_opaquely_in_a_thread])
async def test_an_exception_that_can_not_be_asked_what_it_is_settles_its_call(
    fn: Callable[[], Any], hook: Callable[[], Interceptor] | None
) -> None:
    """isinstance() asks the exception, and what that raises must neither leave the call pending nor take its place."""
    hooks = [] if hook is None else [hook()]
    async with asyncio.timeout(10):
        async with ToolBatch([ToolCall("a", "x")], tools={"x": fn}, interceptors=hooks, run_id="run") as batch:
            batch.start_all()
            snapshot = await batch.snapshot()
    assert code(snapshot, "a") == "tool_error"
    assert message(snapshot, "a").startswith("x")
