"""B19, T10, O6: events and progress for user interfaces, what a tool gives besides its result, and answers for now."""

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.batch.clock import turned
from tests.batch.kit import Stubborn, boom, calls, check_batch, code, codes, content, forever, instant, totals, turn
from tests.batch.stages import Before
from toolbatch import (
    ExecutionOutcome,
    Tool,
    ToolBatch,
    ToolCall,
    ToolCatalog,
    ToolError,
    ToolSession,
    current_call,
    tool,
)
from toolbatch.core import Closed, EncodingError, InvalidInputError, InvalidTypeError, Limits
from toolbatch.ports import (
    ApprovalRequested,
    Approve,
    BatchClosed,
    BatchEvent,
    CallProgress,
    CallSettled,
    CallStarted,
    Deny,
)
from toolbatch.tools import FixedApprovals, Interceptor


def short(event: BatchEvent) -> str:
    """An event in a word or two."""
    match event:
        case CallStarted() | CallProgress():
            return f"{type(event).__name__} {event.call_id} {getattr(event, 'content', '')}".strip()
        case CallSettled():
            return f"CallSettled {event.outcome.call_id} {event.outcome.status}"
        case ApprovalRequested():
            return f"ApprovalRequested {event.request.call_id}"
        case _:
            return type(event).__name__


async def streaming() -> AsyncGenerator[str, None]:
    """Stream progress; the last value is the result."""
    yield "one"
    yield "two"
    yield "result"


@turned
@pytest.mark.parametrize("guided", [False, True])
async def test_the_stream_tells_all_that_happens_in_order(guided: bool) -> None:
    """B19: starts, progress, outcomes and the close, of every kind of tool, with or without interceptors."""
    seen: list[str] = []

    async def watch(stream: Any) -> None:
        seen.extend([short(event) async for event in stream])

    async with ToolBatch(calls("a", "b", "c"), interceptors=[Passes()] if guided else []) as batch:
        watcher = asyncio.ensure_future(watch(batch.events()))
        batch.start("a", streaming)
        batch.start("b", boom)
        await turn(5)
        batch.close()
    await watcher
    assert [event for event in seen if " a" in event] == [
        "CallStarted a", "CallProgress a one", "CallProgress a two", "CallSettled a succeeded",
    ]  # fmt: skip
    assert [event for event in seen if " b" in event] == ["CallStarted b", "CallSettled b failed"]
    assert [event for event in seen if " c" in event] == ["CallSettled c cancelled"]
    assert seen[-1] == "BatchClosed"
    assert content(check_batch(batch, ["a", "b", "c"]), "a") == "result"


class Passes(Interceptor):
    """Does nothing, but makes calls go through stages."""

    async def around(self, call: Any, proceed: Any) -> Any:
        return await proceed()


@turned
async def test_an_observer_hears_the_same() -> None:
    """B19: `on_event` is told in the loop's thread, of threads and approvals too; one that raises harms nothing."""
    seen: list[str] = []
    here = threading.get_ident()

    def observe(event: BatchEvent) -> None:
        assert threading.get_ident() == here
        seen.append(short(event))
        raise RuntimeError("a screen that fails")

    def in_thread() -> str:
        current_call().progress({"half": True})
        return "done"

    catalog = ToolCatalog([tool(name="t", needs_approval=True)(in_thread)])
    async with ToolBatch(
        [ToolCall("a", "t")], tools=catalog, approvals=FixedApprovals(Approve()), on_event=observe
    ) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert codes(snapshot) == {"a": "success"}
    assert seen == [
        "ApprovalRequested a", "CallStarted a", 'CallProgress a {"half":true}', "CallSettled a succeeded", "BatchClosed",
    ]  # fmt: skip


@turned
async def test_a_slow_reader_loses_progress_and_nothing_else() -> None:
    """B19: the stream never holds up a batch; the oldest reports go, and are counted."""

    async def talks() -> str:
        for number in range(10):
            current_call().progress(str(number))
        return "done"

    async with ToolBatch(calls("a")) as batch:
        stream = batch.events(size=3)
        batch.start("a", talks)
    seen = [short(event) async for event in stream]
    assert seen == [
        "CallStarted a", "CallProgress a 7", "CallProgress a 8", "CallProgress a 9", "CallSettled a succeeded", "BatchClosed",
    ]  # fmt: skip
    assert stream.dropped == 7
    assert [event async for event in batch.events()] == [BatchClosed(batch.result)]  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="size"):
        batch.events(size=0)
    with pytest.raises(InvalidTypeError, match="size"):
        batch.events(size=True)


@turned
async def test_a_cancelled_reader_loses_no_event() -> None:
    """B10: who stops reading, and goes on later, finds everything there."""
    async with ToolBatch(calls("a")) as batch:
        stream = batch.events()
        reader = asyncio.ensure_future(anext(stream))
        await turn(2)
        reader.cancel()
        await asyncio.wait([reader])
        batch.start("a", instant)
    assert [short(event) async for event in stream] == ["CallStarted a", "CallSettled a succeeded", "BatchClosed"]


@turned
async def test_progress_becomes_the_partial_content_of_a_cut_off_call() -> None:
    """B19: of a guided call too."""

    async def half() -> None:
        current_call().progress("half")
        await asyncio.Event().wait()

    async with ToolBatch(calls("a"), interceptors=[Passes()], timeout=5) as batch:
        batch.start("a", half)
        snapshot = await batch.snapshot()
    settlement = snapshot.calls[0].settlement
    assert isinstance(settlement, Closed)
    assert settlement.partial == "half"


# -- what a tool gives besides its result --------------------------------------------------------------------------------


@turned
@pytest.mark.parametrize("guided", [False, True])
async def test_a_tool_may_conclude_the_turn_and_add_context(guided: bool) -> None:
    """T10: the caller learns of both only after the whole batch is settled."""

    async def finish() -> str:
        current_call().conclude_turn()
        current_call().add_context("file contents")
        current_call().add_context("more")
        return "done"

    def in_thread() -> str:
        current_call().add_context("from a thread")
        return "done"

    async with ToolBatch(calls("a", "b", "c"), interceptors=[Passes()] if guided else []) as batch:
        batch.start("a", finish)
        batch.start("b", in_thread)
        while len(batch.outcomes) < 2:
            await asyncio.sleep(0.01)
        assert (batch.concluded, batch.added_context) == (False, {})
        batch.start("c", instant)
    assert batch.concluded
    assert batch.added_context == {"a": ["file contents", "more"], "b": ["from a thread"]}


@turned
@pytest.mark.parametrize("how", ["raises", "reports", "times out", "is cancelled"])
async def test_a_failure_cannot_conclude_the_turn(how: str) -> None:
    """T10: the model must hear of it."""

    async def t() -> str:
        current_call().conclude_turn()
        if how == "raises":
            raise ValueError
        if how == "reports":
            current_call().report_failure("no")
            return "x"
        await asyncio.Event().wait()
        raise AssertionError

    async with ToolBatch(calls("a"), timeout=5) as batch:
        batch.start("a", t)
        if how == "is cancelled":
            await turn(3)
            batch.cancel("a")
        await batch.snapshot()
    assert not batch.concluded


@turned
async def test_added_context_is_text_and_bounded() -> None:
    """T10: bad input gets a clear error, and what was added before stays."""

    async def t() -> str:
        call = current_call()
        call.add_context("1234")
        with pytest.raises(InvalidTypeError):
            call.add_context(5)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match="max_result_bytes"):
            call.add_context("é" * 10)
        call.add_context("\ud800")
        return "done"

    async with ToolBatch(calls("a"), limits=Limits(max_result_bytes=10)) as batch:
        batch.start("a", t)
    assert batch.added_context == {"a": ["1234", "\ufffd"]}


# -- the same bad call again ---------------------------------------------------------------------------------------------


@turned
@pytest.mark.parametrize("guided", [False, True])
async def test_repeats_of_the_same_bad_call_are_counted(guided: bool, caplog: pytest.LogCaptureFixture) -> None:
    """T3: the host sees how often a model has made the same mistake; another mistake is another count."""
    caplog.set_level(logging.WARNING)

    @tool
    async def t(x: int) -> int:
        """T."""
        return x

    seen: list[tuple[int, int]] = []
    options: Any = {"interceptors": [Passes()]} if guided else {}
    async with ToolSession(tools=ToolCatalog([t]), **options) as session:
        for turn_number in range(5):
            async with session.batch(
                [
                    ToolCall(f"a{turn_number}", "t", '{"x":"a"}'),
                    ToolCall(f"b{turn_number}", "t", f'{{"x":[{turn_number}]}}'),
                ]
            ) as batch:
                batch.start_all()
                await batch.snapshot()
            seen.append((batch.outcomes[f"a{turn_number}"].repeats, batch.outcomes[f"b{turn_number}"].repeats))
    assert seen == [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0)]
    assert caplog.text.count("the model has made the same bad call of t") == 2


@turned
async def test_what_was_denied_is_no_bad_call() -> None:
    """T3: a model that asks again for what it may not do, under whatever code, has made no mistake."""

    async def deny() -> Deny:
        return Deny("no", "own_code")

    async with ToolSession(interceptors=[Before(deny)]) as session:
        for _ in range(3):
            async with session.batch(calls("a")) as batch:
                batch.start("a", instant)
            assert batch.outcomes["a"].repeats == 0


@turned
@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize(("message", "code_"), [(5, None), (object(), "own"), ("no", ""), ("no", "x" * 1000)])
async def test_a_validator_that_misbehaves_still_gives_an_answer(guided: bool, message: Any, code_: Any) -> None:
    """B21, T5: what it raises refuses the call, whatever it has for words."""

    def validator(arguments: Any) -> None:
        raise ToolError(message, code_)

    made = Tool.from_schema("t", {}, instant, validator=validator)
    options: Any = {"interceptors": [Passes()]} if guided else {}
    async with ToolBatch([ToolCall("a", "t")], tools=ToolCatalog([made]), **options) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert snapshot.calls[0].state == "error"
    assert (batch.outcomes["a"].status, batch.outcomes["a"].started) == ("failed", False)


# -- answers for now -----------------------------------------------------------------------------------------------------


def job(release: asyncio.Event, end: Any = "job done") -> Any:
    """A tool that answers at once and finishes later."""

    async def start_job() -> Any:
        current_call().pending("accepted, job 17")
        await release.wait()
        if isinstance(end, BaseException):
            raise end
        return end

    return start_job


@turned
@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize("end", ["job done", ValueError("broke")])
async def test_a_call_answers_now_and_finishes_later(guided: bool, end: Any) -> None:
    """O6: the placeholder is no success, the end is counted once, and the result comes as a late note of a later turn."""
    release = asyncio.Event()
    late: list[str] = []
    options: Any = {"interceptors": [Passes()]} if guided else {}
    async with ToolSession(call_timeout=5, on_late=lambda outcome: late.append(outcome.status), **options) as session:
        async with session.batch(calls("a", "b")) as batch:
            batch.start("a", job(release, end))
            batch.start("b", instant)
            snapshot = await batch.snapshot()
        assert content(snapshot, "a") == "accepted, job 17"
        assert (batch.outcomes["a"].status, batch.outcomes["a"].completion) == ("pending", "unknown")
        assert batch.outcomes["a"].cancellation == "none"
        assert {name: count for name, count in totals(session).items() if count} == {
            "started": 2,
            "succeeded": 1,
            "pending": 1,
        }
        async with session.batch(calls("c")) as later:
            later.start("c", instant)
            await asyncio.sleep(100)
            release.set()
            await turn(5)
        final = "failed" if isinstance(end, Exception) else "succeeded"
        assert (batch.outcomes["a"].status, batch.outcomes["a"].completion) == (final, "settled")
        (note,) = session.late_notes()
        assert (note.call_id, note.generation) == ("a", 1)
        assert note.content == (
            "job done" if final == "succeeded" else '{"error":{"code":"tool_error","message":"broke"}}'
        )
        assert late == [final]
        counted = {name: count for name, count in totals(session).items() if count}
        assert counted == {
            "started": 3,
            "succeeded": 2 + (final == "succeeded"),
            **({"failed": 1} if final == "failed" else {}),
        }
        assert session.audit.drain() == []
        assert session.late_notes() == []
    assert code(snapshot, "a") == "success"


@turned
@pytest.mark.parametrize("how", ["superseded", "other run", "cancelled", "session left", "no session"])
async def test_a_result_that_has_nowhere_to_go_is_evidence(how: str) -> None:
    """O6: where the session has moved on or its scope has changed, the result is dropped to the audit channel, not to the model."""
    release = asyncio.Event()
    stubborn = Stubborn()

    async def t() -> Any:
        current_call().pending("for now")
        return await stubborn() if how in ("session left", "no session") else await job(release)()

    if how == "no session":
        async with ToolBatch(calls("a"), teardown_timeout=1) as batch:
            batch.start("a", t)
            await batch.snapshot()
        stubborn.release.set()
        await turn(5)
        assert len(batch.audit.drain()) == 1
        return
    session = ToolSession(run_id="1", teardown_timeout=1)
    async with session:
        async with session.batch(calls("a", *(["b"] if how == "superseded" else []))) as batch:
            batch.start("a", t)
            await turn(3)
            if how == "cancelled":
                assert not batch.cancel("a").accepted
            if how == "superseded":
                async with session.batch([]):
                    pass
        if how == "other run":
            async with session.batch([], run_id="2"):
                pass
        if how != "session left":
            release.set()
            await turn(5)
            stale = session.audit.drain()
            assert [record.reason for record in stale] == ([] if how == "cancelled" else ["stale_generation"])
            assert session.late_notes() == []
            assert batch.outcomes["a"].status == ("cancelled" if how == "cancelled" else "succeeded")
    stubborn.release.set()
    await turn(5)
    if how == "session left":
        assert [record.reason for record in session.audit.drain()] == ["stale_generation"]
        assert totals(session)["pending"] == 0


@turned
async def test_a_placeholder_that_cannot_be_shown_is_none() -> None:
    """C7, O6: the tool hears of it, and the call is still pending."""

    async def t() -> str:
        with pytest.raises(EncodingError):
            current_call().pending(object())
        current_call().pending("one")
        current_call().pending("two")
        return "x"

    async with ToolBatch(calls("a")) as batch:
        batch.start("a", t)
        assert content(await batch.snapshot(), "a") == "one"


@turned
async def test_a_thread_answers_for_now() -> None:
    """O6: from a thread too; session exit waits for it like for any tool."""
    entered, release = threading.Event(), threading.Event()

    def t() -> str:
        current_call().pending("soon")
        entered.set()
        release.wait(20)
        return "late"

    async with ToolSession(teardown_timeout=30) as session:
        async with session.batch(calls("a")) as batch:
            batch.start("a", t)
            assert content(await batch.snapshot(), "a") == "soon"
        release.set()
        while session.running:
            await asyncio.sleep(0.01)
        (note,) = session.late_notes()
        assert note.content == "late"


@pytest.mark.parametrize("closer", ["on_event", "on_outcome"])
@turned
async def test_what_an_observer_brings_about_is_told_after_its_cause(closer: str) -> None:
    """An observer that closes the batch at an outcome: every other one hears of that outcome first, and of the close last (B19)."""
    seen: list[str] = []

    def on_event(event: BatchEvent) -> None:
        seen.append(short(event))
        if closer == "on_event" and isinstance(event, CallSettled):
            batch.close()

    def on_outcome(_: ExecutionOutcome) -> None:
        if closer == "on_outcome":
            batch.close()

    batch = ToolBatch(calls("a", "b"), on_event=on_event, on_outcome=on_outcome)
    async with batch:
        events = batch.events()
        batch.start("b", forever)
        batch.start("a", instant)
        await batch.snapshot()
    expected = ["CallStarted b", "CallStarted a", "CallSettled a succeeded", "CallSettled b cancelled", "BatchClosed"]
    assert seen == expected
    assert [short(event) async for event in events] == expected
