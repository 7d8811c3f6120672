"""pydantic-ai's messages, and its agent with tools in batches: whatever tools do, `repair_messages` has nothing to repair."""

import asyncio
import datetime as dt
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai import (
    Agent,
    ApprovalRequired,
    BinaryContent,
    CancellationToken,
    ModelRetry,
    RunContext,
    capture_run_messages,
)
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import RunCancelled, ToolFailed, UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import (
    AudioUrl,
    DocumentUrl,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
    UserPromptPart,
    repair_messages,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved
from pydantic_ai.usage import UsageLimits

from tests.batch.clock import now, turned
from tests.batch.kit import Hung, Stubborn, breathe, forever, turn
from tests.integrations.test_langchain import closed
from toolbatch import (
    Document,
    Image,
    ResourceLink,
    StaleResult,
    ToolBatch,
    ToolCall,
    ToolError,
    Url,
    current_call,
    tool,
)
from toolbatch.batch import DurableOperations
from toolbatch.batch._threads import workers
from toolbatch.core import InvalidInputError, InvalidTypeError, ProviderMismatchError
from toolbatch.integrations import _threads, pydantic_ai
from toolbatch.integrations.pydantic_ai import BatchTools
from toolbatch.operations import MemoryOperationStore
from toolbatch.ports import LateNote
from toolbatch.tools import Interceptor, Replace

Asked = tuple[str, Any, str]


def response(*asked: Asked, **fields: Any) -> ModelResponse:
    """A response that announces these calls: name, arguments, id."""
    return ModelResponse(parts=[ToolCallPart(*each) for each in asked], **fields)


def scripted(*turns: Sequence[Asked] | ModelResponse) -> FunctionModel:
    """A model that announces these turns' calls and then is done; it refuses a conversation that would have to be repaired."""
    waiting = list(turns)

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert repair_messages(messages) == messages
        if not waiting:
            return ModelResponse(parts=[TextPart("Done.")])
        said = waiting.pop(0)
        return said if isinstance(said, ModelResponse) else response(*said)

    return FunctionModel(respond)


def returns(messages: Sequence[ModelMessage]) -> list[ToolReturnPart]:
    """The tools' results."""
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def error(part: ToolReturnPart) -> Any:
    """What the model reads of a failure."""
    assert part.outcome != "success"
    return json.loads(str(part.content))["error"]


async def fast(x: int = 0) -> dict[str, int]:
    """Answer at once."""
    return {"x": x}


async def boom() -> Any:
    """Fail."""
    raise RuntimeError("boom password=hunter2")


async def hang() -> Any:
    """Wait for ever, and obey."""
    await forever()


def agent(model: Any, *tools: Callable[..., Any], own: Sequence[Any] = (), **options: Any) -> Agent[None, Any]:
    """An agent with these tools under batches."""
    return Agent(model, tools=list(tools), capabilities=[BatchTools(own, **options)])


def body_tool(body: Stubborn | Hung) -> Callable[..., Any]:
    """A tool that does what `body` does, in the loop or in a thread."""

    async def stubborn() -> Any:
        """Swallow cancellations."""
        assert isinstance(body, Stubborn)
        return await body()

    def blocking() -> Any:
        """Block."""
        assert isinstance(body, Hung)
        return body()

    return stubborn if isinstance(body, Stubborn) else blocking


# -- messages ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dumped", [False, True])
def test_calls_are_read(dumped: bool) -> None:
    """Calls in their order; native calls, text and thinking are none; arguments as text, dict or nothing (P1, P3)."""
    said: Any = ModelResponse(
        parts=[
            ThinkingPart("hm"),
            ToolCallPart("f", '{"x": 1}', "a"),
            NativeToolCallPart("web_search", {}, "n"),
            TextPart("."),
            ToolCallPart("g", {"y": 2}, "b"),
            ToolCallPart("h", None, "c"),
            ToolCallPart("f", '{"x": ', "d"),
        ]
    )
    if dumped:
        (said,) = json.loads(ModelMessagesTypeAdapter.dump_json([said]))
    calls = pydantic_ai.calls(said)
    assert [(each.id, each.name, each.arguments) for each in calls] == [
        ("a", "f", {"x": 1}),
        ("b", "g", {"y": 2}),
        ("c", "h", {}),
        ("d", "f", {}),
    ]
    assert [each.problem and each.problem.code for each in calls] == [None, None, None, "malformed_arguments"]
    assert pydantic_ai.calls(said["parts"] if dumped else list(said.parts)) == calls
    with pytest.raises(ProviderMismatchError):
        pydantic_ai.calls(said, expect="f")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"finish_reason": "length"}, "response_truncated"),
        ({"finish_reason": "content_filter"}, "response_truncated"),
        ({"finish_reason": "error"}, "response_truncated"),
        ({"state": "incomplete"}, "response_truncated"),
        ({"state": "interrupted"}, "response_truncated"),
        ({"finish_reason": "tool_call"}, None),
        ({"finish_reason": "stop"}, None),
        ({}, None),
    ],
)
def test_a_cut_response_is_announced_and_not_run(fields: dict[str, Any], code: str | None) -> None:
    """Its calls look whole; the finish reason and the state tell (LANES 14.4)."""
    (call,) = pydantic_ai.calls(response(("f", {}, "a"), **fields))
    assert (call.problem and call.problem.code) == code


def test_a_suspended_response_announces_nothing() -> None:
    """It is resent as it is and goes on (LANES 14.15)."""
    assert pydantic_ai.calls(response(("f", {}, "a"), state="suspended")) == []


def test_other_objects_are_refused() -> None:
    """What is no response has no calls to read; the error shows it."""
    for wrong in (ModelRequest(parts=[]), None, "text", {"role": "assistant"}, 5):
        with pytest.raises(InvalidTypeError, match="must be a ModelResponse"):
            pydantic_ai.calls(wrong)


async def test_outcomes_are_pydantic_ais_words(nothing_left: None) -> None:
    """Each way for a call to end has its word, and errors for the provider are those that should be (LANES 11)."""
    said = response(
        *[
            ("f", "{" if each == "malformed" else {}, each)
            for each in ("ok", "malformed", "failed", "slow", "stopped", "never")
        ],
        ("g", {}, "unknown"),
        ("risky", {}, "denied"),
    )

    @tool(needs_approval=True)
    async def risky() -> None:
        """Be risky."""

    async with ToolBatch(pydantic_ai.calls(said), tools={"risky": risky}) as batch:
        batch.start("ok", fast)
        batch.start("failed", boom)
        batch.start("slow", hang, timeout=0)
        batch.cancel("stopped")
        batch.start("denied", risky)
    assert batch.result is not None
    found = {part.tool_call_id: part.outcome for part in pydantic_ai.results(batch.result)}
    assert found == {
        "ok": "success",
        "malformed": "retried",
        "failed": "failed",
        "slow": "failed",
        "stopped": "interrupted",
        "never": "interrupted",
        "unknown": "interrupted",
        "denied": "success",  # whoever starts a tool by hand has decided
    }
    async with ToolBatch(
        pydantic_ai.calls(response(("g", {}, "a"), ("risky", {}, "b"))), tools={"risky": risky}
    ) as batch:
        batch.start_all()
    assert batch.result is not None
    assert [part.outcome for part in pydantic_ai.request(batch.result).parts if isinstance(part, ToolReturnPart)] == [
        "retried",
        "denied",
    ]


def test_results_carry_metadata_and_media() -> None:
    """The host's `meta` is the metadata; parts are pydantic-ai's content; a failure is JSON (P4, P5)."""
    parts = [
        "see",
        Image.of(b"png", "image/png"),
        Image(Url("https://example.org/a.png", "image/png")),
        Document.of(b"%PDF", "application/pdf", "a.pdf"),
        Document(Url("https://example.org/a.pdf", "application/pdf")),
        Document(Url("https://example.org/a.wav", "audio/wav")),
        ResourceLink("https://example.org/r", "r"),
    ]
    snapshot = closed([ToolCall("a", "f"), ToolCall("b", "f", "{"), ToolCall("c", "f")], parts, None, {"n": 1})
    a, b, c = pydantic_ai.results(snapshot, meta={"c": {"rows": 1}})
    content: Any = a.content
    assert content[0] == "see"
    assert [type(entry) for entry in content] == [
        str,
        BinaryContent,
        ImageUrl,
        BinaryContent,
        DocumentUrl,
        AudioUrl,
        str,
    ]
    assert error(b)["code"] == "malformed_arguments"
    assert (c.content, c.metadata, c.outcome) == ('{"n":1}', {"rows": 1}, "success")
    assert (
        pydantic_ai.results(closed([ToolCall("a", "f")], [ResourceLink("https://example.org/r", "r")]))[0].content
        == '[resource "r": https://example.org/r]'
    )


def test_extend_puts_ids_right_on_both_sides() -> None:
    """Repeated, empty and reused ids are ours in the response and its results; a response that is right stays the object."""
    history: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Hi.")])]
    whole = response(("f", {}, "a"), ("g", "{", "b"))
    pydantic_ai.extend(history, whole, closed(pydantic_ai.calls(whole), "1"), meta={"a": 5})
    assert history[1] is whole
    again = response(("f", {}, "a"), ("f", {}, "x"), ("f", {}, "x"), ("f", {}, ""))
    pydantic_ai.extend(history, again, closed(pydantic_ai.calls(again), *"1234"))
    pydantic_ai.extend(history, ModelResponse(parts=[TextPart("Done.")]))
    assert [part.tool_call_id for part in again.parts if isinstance(part, ToolCallPart)] == ["a", "x", "x", ""]
    ids = [part.tool_call_id for message in history for part in message.parts if isinstance(part, ToolCallPart)]
    assert [part.tool_call_id for part in returns(history)] == ids
    assert len(set(ids)) == 6
    assert returns(history)[0].metadata == 5
    assert repair_messages(history) == history


def test_extend_refuses_what_it_cannot_answer() -> None:
    """An unanswered turn, a snapshot of other calls or none, no list, no object: the list stays as it was."""
    said = response(("f", {}, "a"))
    history: list[Any] = []
    with pytest.raises(InvalidInputError):
        pydantic_ai.extend(history, said)
    with pytest.raises(InvalidInputError, match="another response"):
        pydantic_ai.extend(history, said, closed([ToolCall("z", "f")], "x"))
    with pytest.raises(InvalidTypeError, match="must be a list"):
        pydantic_ai.extend((), said, closed([ToolCall("a", "f")], "x"))  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="ModelResponse to stand"):
        pydantic_ai.extend(history, list(said.parts), closed([ToolCall("a", "f")], "x"))
    with pytest.raises(InvalidTypeError):
        pydantic_ai.results(5)  # type: ignore[arg-type]
    assert history == []
    history = [said, ModelRequest(parts=[UserPromptPart("So?")])]
    with pytest.raises(InvalidInputError, match="'a'"):
        pydantic_ai.extend(history, ModelResponse(parts=[TextPart("Hm.")]))


def test_late_results_are_new_content() -> None:
    """A late success is told in the next request (B20)."""
    (note,) = pydantic_ai.notes([LateNote(call_id="a", name="f", generation=1, content="found")])
    assert "found" in str(note.content)
    assert pydantic_ai.notes([]) == []


asked = st.tuples(
    st.sampled_from(["f", "g.h", ""]),
    st.sampled_from([{}, {"x": 1}, '{"x": 1}', "{", "", "[1]", None]),
    st.sampled_from(["a", "b", "", "é"]),
)


@settings(deadline=None, max_examples=60)
@given(turns=st.lists(st.lists(asked, max_size=4), max_size=3), ends=st.integers(min_value=0, max_value=4))
def test_any_turns_make_a_history_that_needs_no_repair(turns: Any, ends: int) -> None:
    """Whatever a model announces and however its calls end, pydantic-ai's repair changes nothing (LANES 13)."""
    history: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Hi.")])]
    for each in turns:
        said = (
            response(
                *each,
            )
            if each
            else ModelResponse(parts=[TextPart(".")])
        )
        pydantic_ai.extend(history, said, closed(pydantic_ai.calls(said), *["x"] * ends))
        if not each:
            history.append(ModelRequest(parts=[UserPromptPart("Go on.")]))
    assert repair_messages(history) == history
    assert ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(history)) == history


# -- the agent: FIELD's work ---------------------------------------------------------------------------------------------------


async def test_a_one_tool_raises(nothing_left: None) -> None:
    """A, 65: the run goes on and siblings finish; a group of errors is one error; on demand only the type is told."""

    async def group() -> Any:
        """Fail in a group."""
        raise ExceptionGroup("many", [ValueError("leaf")])

    result = await agent(scripted([("boom", {}, "a"), ("fast", {}, "b"), ("group", {}, "c")]), boom, fast, group).run(
        "Hi."
    )
    a, b, c = returns(result.all_messages())
    assert (a.outcome, error(a)) == ("failed", {"code": "tool_error", "message": "boom password=hunter2"})
    assert (b.outcome, b.content) == ("success", {"x": 0})
    assert error(c)["message"] == "leaf"
    assert result.output == "Done."
    discreet = await agent(scripted([("boom", {}, "a")]), boom, error_detail="type").run("Hi.")
    assert error(returns(discreet.all_messages())[0])["message"] == "RuntimeError"


@turned
async def test_b_c_timeouts_hold_against_a_tool_that_swallows_cancellation() -> None:
    """B, C: the answer is there at the timeout; the late value is evidence, and nothing spins meanwhile (B17)."""
    late: list[StaleResult] = []
    body = Stubborn("late-value")
    model = scripted([("hang", {}, "a"), ("stubborn", {}, "b"), ("fast", {}, "c")])
    tools = agent(
        model, hang, body_tool(body), fast, call_timeout=0.2, teardown_timeout=0.05, audit_sinks=[late.append]
    )
    result = await tools.run("Hi.")
    assert now() == 0.25
    a, b, c = returns(result.all_messages())
    assert [(error(each)["code"], each.outcome) for each in (a, b)] == [("timeout", "failed")] * 2
    assert error(b)["side_effect_state"] == "unknown"
    assert c.content == {"x": 0}
    assert body.cancels <= 2
    body.release.set()
    await turn(20)
    assert [(stale.call_id, stale.observed_status) for stale in late] == [("b", "success")]


@turned
async def test_f_a_synchronous_tool_is_told_of_honestly() -> None:
    """F, O2: its thread works on, so the outcome says so, and what it returns later is evidence, its error too."""
    late: list[StaleResult] = []
    outcomes: list[Any] = []
    bodies = [Hung("late-value"), Hung(ValueError("late"))]

    def first() -> Any:
        """Block."""
        return bodies[0]()

    def second() -> Any:
        """Block."""
        return bodies[1]()

    async def watch() -> str:
        """Keep the clock from jumping until both threads are there."""
        while not all(body.entered.is_set() for body in bodies):
            await breathe()
        return "seen"

    model = scripted([("first", {}, "a"), ("second", {}, "b"), ("watch", {}, "c")])
    tools = agent(
        model,
        first,
        second,
        watch,
        call_timeout=0.2,
        teardown_timeout=0,
        audit_sinks=[late.append],
        on_outcome=outcomes.append,
    )
    a, b, c = returns((await tools.run("Hi.")).all_messages())
    assert [error(each)["code"] for each in (a, b)] == ["timeout", "timeout"]
    assert c.content == "seen"
    told = {outcome.call_id: (outcome.completion, outcome.cancellation) for outcome in outcomes}
    assert told["a"] == told["b"] == ("unknown", "none")
    for body in bodies:
        body.release.set()
    while len(late) < 2:
        await breathe()
    assert sorted((stale.call_id, stale.observed_status) for stale in late) == [("a", "success"), ("b", "error")]


@turned
async def test_a_turns_time_is_shared_by_its_calls() -> None:
    """35: the turn's deadline ends its calls together, counts anew in the next turn, and barriers do not stretch it."""
    model = scripted([("hang", {}, "a"), ("hang", {}, "b")], [("hang", {}, "c")])
    tools = Agent(model, capabilities=[BatchTools(timeout=0.3)])
    tools.tool_plain(sequential=True)(hang)
    result = await tools.run("Hi.")
    assert [error(part)["code"] for part in returns(result.all_messages())] == ["timeout"] * 3
    assert now() == 0.6


class Opaque:
    """A value that has no JSON form."""


async def test_d_results_that_are_no_json(nothing_left: None) -> None:
    """D, 68, 71: what has a JSON form is sent, NaN is no silent null, what has none ends neither run nor siblings."""

    async def dated() -> Any:
        """Give a date."""
        return {"when": dt.date(2026, 1, 2)}

    async def weird() -> Any:
        """Give something odd."""
        return {"x": Opaque()}

    async def nan() -> Any:
        """Give no number."""
        return {"x": float("nan")}

    async def surrogate() -> Any:
        """Give half a character."""
        return "\ud800"

    async def big() -> Any:
        """Give too much."""
        return "x" * 2_000_000

    model = scripted([(name, {}, name) for name in ("dated", "weird", "nan", "surrogate", "big", "fast")])
    result = await agent(model, dated, weird, nan, surrogate, big, fast).run("Hi.")
    parts = {part.tool_call_id: part for part in returns(result.all_messages())}
    assert parts["dated"].model_response_str() == '{"when":"2026-01-02"}'
    assert {error(parts[name])["code"] for name in ("weird", "nan", "surrogate", "big")} == {"invalid_result"}
    assert parts["fast"].outcome == "success"


async def test_an_encoder_of_the_hosts_cannot_end_the_run(nothing_left: None) -> None:
    """pydantic-ai encodes what a tool returned once more: what it can't take is that call's error, whatever `encode` made of it."""

    async def weird() -> Any:
        """Give something odd."""
        return {"x": Opaque()}

    model = scripted([("weird", {}, "a"), ("fast", {}, "b")])
    result = await agent(model, weird, fast, encode=lambda _: '"shown"').run("Hi.")
    parts = {part.tool_call_id: part for part in returns(result.all_messages())}
    assert error(parts["a"])["code"] == "invalid_result"
    assert parts["b"].outcome == "success"


async def test_media_pass_through(nothing_left: None) -> None:
    """Images and `ToolReturn`s arrive as the tool gave them."""

    async def shot() -> Any:
        """Give a picture."""
        return ["see", BinaryContent(b"png", media_type="image/png")]

    async def full() -> Any:
        """Give it all."""
        return ToolReturn("short", content="more", metadata={"m": 1})

    async def links() -> Any:
        """Give links."""
        return [
            ImageUrl("https://example.org/a.png"),
            DocumentUrl("https://example.org/a.pdf"),
            AudioUrl("https://example.org/x", media_type="?"),
        ]

    asked: list[Asked] = [("shot", {}, "a"), ("full", {}, "b"), ("links", {}, "c")]
    result = await agent(scripted(asked), shot, full, links).run("Hi.")
    a, b, c = returns(result.all_messages())
    assert [type(each) for each in c.files] == [ImageUrl, DocumentUrl, AudioUrl]
    assert a.content == ["see", BinaryContent(b"png", media_type="image/png")]
    assert (b.content, b.metadata) == ("short", {"m": 1})
    prompts = [
        part.content for message in result.all_messages() for part in message.parts if isinstance(part, UserPromptPart)
    ]
    assert prompts == ["Hi.", "more"]


@pytest.mark.parametrize("how", ["task", "token"])
@turned
async def test_e_2_98_a_stop_loses_nothing_and_says_what_is_known(how: str) -> None:
    """E, 2, 3, 98: cancelled from outside or by pydantic-ai's token: finished results stand, the others say what is known of
    their side effects, no task survives, and the next turn needs no repair (B9)."""
    body, started = Stubborn(), asyncio.Event()

    async def signal() -> Any:
        """Tell that it runs, and hang."""
        started.set()
        await forever()

    model = scripted([("fast", {}, "a"), ("signal", {}, "b"), ("stubborn", {}, "c"), ("alone", {}, "d")])
    tools = agent(model, fast, signal, body_tool(body), teardown_timeout=0.05)
    tools.tool_plain(name="alone", sequential=True)(fast)
    token = CancellationToken()
    with capture_run_messages() as captured:
        task = asyncio.ensure_future(tools.run("Hi.", cancellation_token=token))
        await started.wait()
        await turn(5)
        before = now()
        if how == "task":
            task.cancel()
        else:
            token.cancel()
        with pytest.raises(asyncio.CancelledError if how == "task" else RunCancelled):
            await task
    assert now() - before <= 0.1
    a, b, c, d = returns(captured)
    assert (a.outcome, a.content) == ("success", {"x": 0})
    assert {each.outcome for each in (b, c, d)} == {"interrupted"}
    assert [error(each)["side_effect_state"] for each in (b, c, d)] == ["unknown", "unknown", "not_started"]
    assert error(b)["code"] == "request_aborted"
    assert error(d)["code"] == "not_started"
    assert repair_messages(captured) == captured
    body.release.set()
    await turn(10)
    later = await agent(scripted()).run("And now?", message_history=captured)
    assert returns(later.all_messages()) == [a, b, c, d]


async def test_g_h_what_cannot_run_is_answered(nothing_left: None) -> None:
    """G, H: malformed arguments, an unknown tool and bad arguments are pydantic-ai's to answer; a cut response runs nothing."""
    ran: list[int] = []

    async def noted(x: int = 0) -> str:
        """Note."""
        ran.append(x)
        return "noted"

    model = scripted(
        [("noted", '{"x": ', "a"), ("nope", {}, "b"), ("noted", {"x": "?"}, "c")],
        response(("noted", {"x": 9}, "d"), finish_reason="length"),
    )
    result = await Agent(model, tools=[noted], capabilities=[BatchTools()], retries=3).run("Hi.")
    parts = returns(result.all_messages())
    assert [part.outcome for part in parts] == ["retried", "retried", "retried", "failed"]
    assert error(parts[3])["code"] == "response_truncated"
    assert ran == []


async def test_i_two_calls_with_one_id_both_run(nothing_left: None) -> None:
    """I, 49, 51, 52: pydantic-ai refuses repeated ids; they are ours before it sees them, over turns too."""
    model = scripted(
        [("fast", {"x": 1}, "same"), ("fast", {"x": 2}, "same"), ("fast", {"x": 3}, "")], [("fast", {"x": 4}, "same")]
    )
    result = await agent(model, fast).run("Hi.")
    assert [part.content for part in returns(result.all_messages())] == [{"x": 1}, {"x": 2}, {"x": 3}, {"x": 4}]
    assert len({part.tool_call_id for part in returns(result.all_messages())}) == 4


@turned
async def test_j_results_are_in_the_order_of_announcement() -> None:
    """J: slow first, fast second."""

    async def slow() -> str:
        """Take a second."""
        await asyncio.sleep(1)
        return "slow"

    result = await agent(scripted([("slow", {}, "a"), ("fast", {}, "b")]), slow, fast).run("Hi.")
    assert [part.content for part in returns(result.all_messages())] == ["slow", {"x": 0}]


async def test_22_63_who_cancels_itself_cancels_nobody(nothing_left: None) -> None:
    """22, 63: a sub-agent that cancels its own run, and a tool that raises CancelledError, end their own call only."""

    async def delegate(ctx: RunContext[None]) -> str:
        """Ask a sub-agent that gives up."""

        async def give_up(inner: RunContext[None]) -> str:
            inner.cancel()
            return "never read"

        return str((await Agent(scripted([("give_up", {}, "i")]), tools=[give_up]).run("Sub.")).output)

    async def quits() -> None:
        """Quit."""
        raise asyncio.CancelledError

    result = await agent(
        scripted([("delegate", {}, "a"), ("quits", {}, "b"), ("fast", {}, "c")]), delegate, quits, fast
    ).run("Hi.")
    a, b, c = returns(result.all_messages())
    assert a.outcome == "failed"
    assert error(b)["code"] == "cancelled"
    assert c.outcome == "success"


async def test_pydantic_ais_own_signals_pass_through(nothing_left: None) -> None:
    """ModelRetry, ToolFailed and approvals are pydantic-ai's to deal with, as if no batch were there."""

    async def retry(ctx: RunContext[None], x: int) -> str:
        """Ask again once."""
        if x == 1:
            raise ModelRetry("not one")
        return f"ok {x}"

    async def failed() -> Any:
        """Fail in pydantic-ai's words."""
        raise ToolFailed("gone for good")

    async def approve(ctx: RunContext[None]) -> str:
        """Ask first."""
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        return "approved"

    model = scripted([("retry", {"x": 1}, "a"), ("failed", {}, "b"), ("approve", {}, "c")], [("retry", {"x": 2}, "d")])

    async def yes(ctx: RunContext[None], requests: DeferredToolRequests) -> DeferredToolResults:
        return requests.build_results(approvals={call.tool_call_id: ToolApproved() for call in requests.approvals})

    tools = Agent(
        model, tools=[retry, failed, approve], capabilities=[BatchTools(), HandleDeferredToolCalls(handler=yes)]
    )
    parts = {part.tool_call_id: part for part in returns((await tools.run("Hi.")).all_messages())}
    assert (parts["a"].outcome, parts["b"].outcome, parts["c"].content) == ("retried", "failed", "approved")
    assert "gone for good" in str(parts["b"].content)
    assert "not one" in str(parts["a"].content)
    assert parts["d"].content == "ok 2"


async def test_what_ends_a_run_ends_it(nothing_left: None) -> None:
    """An exhausted retry budget, a usage limit, and a fatal ToolError of ours are no answers for the model."""

    async def never() -> Any:
        """Never be content."""
        raise ModelRetry("again")

    async def fatal() -> Any:
        """End it."""
        raise ToolError.fatal("no money left")

    async def over() -> str:
        """Spend all."""
        return str((await Agent(TestModel()).run("x", usage_limits=UsageLimits(request_limit=0))).output)

    with pytest.raises(UnexpectedModelBehavior, match="never"):
        await agent(scripted([("never", {}, "a")], [("never", {}, "b")]), never).run("Hi.")
    with pytest.raises(ToolError, match="no money left"):
        await agent(scripted([("fatal", {}, "a"), ("hang", {}, "b")]), fatal, hang).run("Hi.")
    with pytest.raises(UsageLimitExceeded):
        await agent(scripted([("over", {}, "a")]), over).run("Hi.")


async def test_a_run_that_ends_elsewhere_is_left_alone(nothing_left: None) -> None:
    """A model that fails after its tools were answered: the history has their results, and nothing was added."""
    turns = [response(("fast", {}, "a"))]

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if not turns:
            raise OSError("model is down")
        return turns.pop()

    with capture_run_messages() as captured, pytest.raises(OSError, match="model is down"):
        await agent(FunctionModel(respond), fast).run("Hi.")
    assert [part.outcome for part in returns(captured)] == ["success"]


async def test_a_sub_agent_that_fails_is_a_tool_that_fails(nothing_left: None) -> None:
    """A sub-agent's own trouble with its model is its call's failure, not the end of its caller."""

    async def delegate() -> str:
        """Ask a sub-agent whose model misbehaves."""
        broken = FunctionModel(lambda messages, info: ModelResponse(parts=[]))
        return str((await Agent(broken, retries=0).run("Sub.")).output)

    result = await agent(scripted([("delegate", {}, "a"), ("fast", {}, "b")]), delegate, fast).run("Hi.")
    assert [part.outcome for part in returns(result.all_messages())] == ["failed", "success"]


# -- toolbatch's own tools -----------------------------------------------------------------------------------------------------


@tool(meta=lambda rows: {"count": len(rows)}, render=lambda rows: f"{len(rows)} rows", timeout=5)
async def rows(n: int) -> list[int]:
    """Make rows."""
    return list(range(n))


@tool
def where() -> dict[str, str]:
    """Tell the thread."""
    return {"thread": threading.current_thread().name, "key": current_call().idempotency_key[:0]}


@tool
async def steps(n: int) -> Any:
    """Count."""
    for i in range(n):
        yield i


@tool
async def picture() -> Any:
    """Paint."""
    return Image.of(b"png", "image/png")


@tool(needs_approval=lambda arguments: arguments["n"] > 1)
async def risky(n: int) -> str:
    """Be risky."""
    return f"done {n}"


async def test_toolbatchs_own_tools(nothing_left: None) -> None:
    """Rendered, with metadata, checked, in daemon threads; data stays data in the history."""
    seen: list[AgentInfo] = []
    turns = [
        [
            ("rows", {"n": "2"}, "a"),
            ("where", {}, "b"),
            ("steps", {"n": 3}, "c"),
            ("picture", {}, "d"),
            ("rows", '{"n": "x"}', "e"),
            ("rows", "{", "f"),
        ]
    ]

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(info)
        return response(*turns.pop()) if turns else ModelResponse(parts=[TextPart("Done.")])

    result = await agent(FunctionModel(respond), own=[rows, where, steps, picture]).run("Hi.")
    parts = {part.tool_call_id: part for part in returns(result.all_messages())}
    assert (parts["a"].content, parts["a"].metadata) == ("2 rows", {"count": 2})
    assert parts["b"].content == {"thread": "toolbatch-tool", "key": ""}
    assert parts["c"].content == 2
    assert parts["d"].content == [BinaryContent(b"png", media_type="image/png")]
    assert "n: Input should be a valid integer" in str(parts["e"].content)
    assert "not valid JSON" in str(parts["f"].content)
    assert (parts["e"].outcome, parts["f"].outcome) == ("retried", "retried")
    declared = {each.name: each for each in seen[0].function_tools}
    assert declared["rows"].description == "Make rows."
    assert declared["rows"].parameters_json_schema == rows.schema


async def test_what_waits_for_an_approval_has_claimed_nothing(nothing_left: None) -> None:
    """Else a durable operation would be unknown by the time that it may be done."""
    paid: list[str] = []

    @tool(needs_approval=True)
    async def pay(n: int) -> str:
        """Pay."""
        paid.append(f"own {n}")
        return f"paid {n}"

    async def send(ctx: RunContext[None], n: int) -> str:
        """Send."""
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        paid.append(f"sent {n}")
        return f"sent {n}"

    store = MemoryOperationStore()
    capability = BatchTools([pay], interceptors=[DurableOperations(store, tenant="t")])
    agent = Agent(
        scripted([("pay", {"n": 1}, "a"), ("send", {"n": 2}, "b")]),
        tools=[send],
        capabilities=[capability],
        output_type=[str, DeferredToolRequests],
    )
    first = await agent.run("Hi.")
    assert await store.unresolved() == ()
    again = await agent.run(
        message_history=first.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={"a": True, "b": True}),
    )
    assert [(part.tool_call_id, part.content) for part in returns(again.all_messages())] == [
        ("a", "paid 1"),
        ("b", "sent 2"),
    ]
    assert sorted(paid) == ["own 1", "sent 2"]


async def test_an_own_tool_asks_for_approval_in_pydantic_ais_way(nothing_left: None) -> None:
    """What needs an approval is deferred, and runs once it is given (T7)."""
    tools = Agent(
        scripted([("risky", {"n": 1}, "a"), ("risky", {"n": 2}, "b")]),
        capabilities=[BatchTools([risky])],
        output_type=[str, DeferredToolRequests],
    )
    first = await tools.run("Hi.")
    assert isinstance(first.output, DeferredToolRequests)
    assert [call.tool_call_id for call in first.output.approvals] == ["b"]
    second = await tools.run(
        message_history=first.all_messages(), deferred_tool_results=DeferredToolResults(approvals={"b": True})
    )
    assert [part.content for part in returns(second.all_messages())] == ["done 1", "done 2"]


@turned
async def test_a_tools_own_timeout_comes_first() -> None:
    """A `Tool`'s timeout and pydantic-ai's own for a function hold before `call_timeout`."""

    @tool(timeout=0.1)
    async def ours() -> None:
        """Hang."""
        await forever()

    tools = Agent(scripted([("ours", {}, "a"), ("hang", {}, "b")]), capabilities=[BatchTools([ours], call_timeout=9)])
    tools.tool_plain(timeout=0.2)(hang)
    result = await tools.run("Hi.")
    assert [error(part)["message"] for part in returns(result.all_messages())] == [
        f"Tool call timed out after {bound} seconds." for bound in ("0.1", "0.2")
    ]
    assert now() == 0.2


async def test_what_an_interceptor_replaces_escapes_nowhere(nothing_left: None) -> None:
    """T6: a replaced result takes the tool's metadata and its extra content with it; a replaced signal its text."""

    async def leaky() -> Any:
        """Leak."""
        return ToolReturn("hunter2", content="hunter2", metadata={"s": "hunter2"})

    async def leaky_retry() -> Any:
        """Leak by a signal."""
        raise ModelRetry("hunter2")

    class Redact(Interceptor):
        async def after(self, call: Any, result: Any, proceed: Any) -> Any:
            return Replace("[gone]")

    result = await agent(
        scripted([("leaky", {}, "a"), ("leaky_retry", {}, "b")]), leaky, leaky_retry, interceptors=[Redact()]
    ).run("Hi.")
    assert "hunter2" not in str(result.all_messages())
    assert returns(result.all_messages())[0].content == "[gone]"


async def test_a_capability_serves_many_runs_at_once(nothing_left: None) -> None:
    """Each run has its own copy, and it can be given to a run instead of the agent."""
    shared = BatchTools()
    plain = Agent(tools=[fast, boom])
    runs = await asyncio.gather(
        *[
            plain.run("Hi.", model=scripted([("fast", {"x": n}, "a"), ("boom", {}, "b")]), capabilities=[shared])
            for n in range(3)
        ]
    )
    assert [returns(run.all_messages())[0].content for run in runs] == [{"x": 0}, {"x": 1}, {"x": 2}]


async def test_a_streamed_run(nothing_left: None) -> None:
    """Tools of a streamed run go through batches as well."""
    turns: list[list[Asked]] = [[("boom", "{}", "a"), ("fast", "{}", "b")]]

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> Any:
        from pydantic_ai.models.function import DeltaToolCall

        if not turns:
            yield "Done."
            return
        yield {at: DeltaToolCall(name, args, tool_call_id=i) for at, (name, args, i) in enumerate(turns.pop())}

    async with agent(FunctionModel(stream_function=stream), boom, fast).run_stream("Hi.") as run:
        assert await run.get_output() == "Done."
    assert [part.outcome for part in returns(run.all_messages())] == ["failed", "success"]


def test_a_function_that_was_cancelled_before_its_turn_never_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all threads are taken, what is cancelled in the queue is not run when one is free (B5)."""
    queued: list[Any] = []
    monkeypatch.setattr(workers, "submit", queued.append)
    ran: list[int] = []
    future = _threads.CallThreads().submit(ran.append, 1)
    future.cancel()
    queued[0].run_once()
    assert ran == []


def test_what_it_refuses() -> None:
    """Options that can't be used are refused when the capability is made."""
    with pytest.raises(InvalidInputError, match="call_timeout"):
        BatchTools(call_timeout=-1)
    with pytest.raises(InvalidInputError, match="timeout"):
        BatchTools(timeout=-1)
    with pytest.raises(InvalidInputError, match="run_id"):
        BatchTools(run_id="r")  # type: ignore[call-arg]
    with pytest.raises(InvalidInputError, match="named 'rows'"):
        BatchTools([rows, rows])
