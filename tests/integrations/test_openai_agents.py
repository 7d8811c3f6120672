"""The Agents SDK: its items, and an agent whose function tools run in batches, on the SDK's own scripted model."""

import asyncio
import datetime as dt
import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    FunctionToolCustomDataContext,
    ModelResponse,
    RunConfig,
    RunContextWrapper,
    Runner,
    ToolCallItem,
    ToolCallOutputItem,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputImage,
    Usage,
    function_tool,
)
from agents import Tool as AgentTool
from agents.exceptions import MaxTurnsExceeded, UserError
from agents.run_internal.items import drop_orphan_function_calls
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext

from tests.batch.clock import now, turned
from tests.batch.kit import Hung, Stubborn, breathe, forever, turn
from tests.integrations.test_langchain import closed
from toolbatch import Document, Image, StaleResult, ToolBatch, ToolCall, ToolError, current_call, tool
from toolbatch.batch import DurableOperations
from toolbatch.core import InvalidInputError, InvalidTypeError, ProviderMismatchError
from toolbatch.integrations import _openai_agents_tools, openai_agents
from toolbatch.integrations.openai_agents import batched, distinct_ids
from toolbatch.operations import MemoryOperationStore
from toolbatch.ports import LateNote
from toolbatch.testing import check_responses
from toolbatch.tools import Interceptor, Replace

Asked = tuple[str, Any, str]
CONFIG = RunConfig(tracing_disabled=True, tool_not_found_behavior="return_error_to_model", group_id="g")


def said(text: str) -> Any:
    """The model's words."""
    return assistant_message(text, item_id="msg_1")


def scripted(*turns: Sequence[Asked]) -> ScriptedModel:
    """A model that announces these turns' calls (name, arguments, id) and then is done."""
    steps: list[Any] = [
        [
            function_call(name, arguments, call_id=i, item_id=f"fc_{n}_{at}")
            for at, (name, arguments, i) in enumerate(asked)
        ]
        for n, asked in enumerate(turns)
    ]
    return ScriptedModel([*steps, [said("Done.")]])


async def run(model: ScriptedModel, tools: list[AgentTool], **more: Any) -> list[dict[str, Any]]:
    """Run an agent to its end; every input that its model was sent must be lawful. Return the tools' outputs."""
    result = await Runner.run(Agent("a", model=distinct_ids(model), tools=tools), "Hi.", run_config=CONFIG, **more)
    assert result.final_output == "Done."
    for sent in model.calls:
        given: Any = sent.input if isinstance(sent.input, list) else [{"role": "user", "content": sent.input}]
        assert check_responses(given) is None
        assert drop_orphan_function_calls(list(given)) == list(given)
    return outputs(result.to_input_list())


def outputs(items: Sequence[Any]) -> list[dict[str, Any]]:
    """The output items of calls."""
    return [item for item in items if item.get("type") == "function_call_output"]


def error(item: dict[str, Any]) -> Any:
    """What the model reads of a failure."""
    return json.loads(item["output"])["error"]


@function_tool
async def fast(x: int = 0) -> Any:
    """Answer at once."""
    return {"x": x}


@function_tool(failure_error_function=None)
async def boom() -> Any:
    """Fail."""
    raise RuntimeError("boom password=hunter2")


@function_tool
async def hang() -> Any:
    """Wait for ever, and obey."""
    await forever()


# -- items -------------------------------------------------------------------------------------------------------------------


def asked(*calls: Asked) -> ModelResponse:
    """A response of the SDK's that announces these calls."""
    output = [
        function_call(name, arguments, call_id=i, item_id=f"fc_{at}") for at, (name, arguments, i) in enumerate(calls)
    ]
    return ModelResponse(output=[said("."), *output], usage=Usage(), response_id=None)


def test_items_of_every_kind_are_read() -> None:
    """A model's response, run items and raw items announce the same calls (P1, LANES 12)."""
    response = asked(("f", {"x": 1}, "a"), ("g", "{", "b"))
    calls = openai_agents.calls(response)
    assert [(each.id, each.name, each.arguments) for each in calls] == [("a", "f", {"x": 1}), ("b", "g", {})]
    assert calls[1].problem is not None
    items: Any = [ToolCallItem(agent=Agent("a"), raw_item=item) for item in response.output[1:]]  # type: ignore[arg-type]
    assert openai_agents.calls(items) == calls
    assert openai_agents.calls(response.output) == calls
    with pytest.raises(ProviderMismatchError):
        openai_agents.calls(response, expect="f")
    with pytest.raises(InvalidTypeError, match="must be a ModelResponse"):
        openai_agents.calls(5)


def test_a_turn_is_extended() -> None:
    """The response's items and one output a call are appended, in the API's shape; what does not pair is refused."""
    response = asked(("f", {"x": 1}, "a"), ("f", {}, "a"))
    history: list[Any] = [{"role": "user", "content": "Hi."}]
    with pytest.raises(InvalidInputError):
        openai_agents.extend(history, response)
    openai_agents.extend(history, response, closed(openai_agents.calls(response), "1", "2"))
    assert check_responses(history) is None
    assert [item["output"] for item in outputs(history)] == ["1", "2"]
    assert openai_agents.results(closed([ToolCall("z", "f")], "x")) == [
        {"type": "function_call_output", "call_id": "z", "output": "x"}
    ]
    (note,) = openai_agents.notes([LateNote(call_id="a", name="f", generation=1, content="found")])
    assert "found" in str(note)


def test_run_items_are_answered_or_refused() -> None:
    """Each `ToolCallItem` gets its `ToolCallOutputItem`, of its agent, with the host's `meta`; unpaired ones are refused."""
    owner: Any = Agent("owner")
    response = asked(("f", {}, "a"), ("g", {}, "b"))
    items: Any = [ToolCallItem(agent=owner, raw_item=item) for item in response.output[1:]]  # type: ignore[arg-type]
    snapshot = closed(openai_agents.calls(items), {"n": 1}, "2")
    made = openai_agents.output_items(items, snapshot, meta={"a": {"rows": 1}, "b": 5})
    assert all(isinstance(each, ToolCallOutputItem) and each.agent is owner for each in made)
    assert [(each.call_id, each.output) for each in made] == [("a", '{"n":1}'), ("b", "2")]
    assert [each.custom_data for each in made] == [{"rows": 1}, {"meta": 5}]
    with pytest.raises(InvalidInputError, match="another response"):
        openai_agents.output_items(items[:1], snapshot)
    message: Any = ToolCallItem(agent=owner, raw_item=response.output[0])  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="no function"):
        openai_agents.output_items([message, *items], snapshot)


# -- the agent: FIELD's work ---------------------------------------------------------------------------------------------------


async def test_a_one_tool_raises(nothing_left: None) -> None:
    """A, 115: siblings finish and the run goes on, also where the SDK would end it; its redacted default text stays the host's."""

    @function_tool
    async def discreet() -> Any:
        """Fail discreetly."""
        raise RuntimeError("hunter2")

    a, b, c = await run(
        scripted([("boom", {}, "a"), ("fast", {"x": 1}, "b"), ("discreet", {}, "c")]), batched([boom, fast, discreet])
    )
    assert error(a) == {"code": "tool_error", "message": "boom password=hunter2"}
    assert b["output"] == '{"x":1}'
    assert "hunter2" not in c["output"]


@turned
async def test_b_c_timeouts_hold_against_a_tool_that_swallows_cancellation() -> None:
    """B, C: the answer is there at the timeout, the tool's own or the batch's; the late value is evidence and no success."""
    late: list[StaleResult] = []
    body = Stubborn("late-value")

    @function_tool(timeout=0.2)
    async def stubborn() -> Any:
        """Swallow cancellations."""
        return await body()

    tools = batched([stubborn, hang, fast], call_timeout=0.3, teardown_timeout=0.05, audit_sinks=[late.append])
    a, b, c = await run(scripted([("stubborn", {}, "a"), ("hang", {}, "b"), ("fast", {}, "c")]), tools)
    assert now() == 0.3
    assert [error(each)["message"] for each in (a, b)] == [
        f"Tool call timed out after {bound} seconds." for bound in (0.2, 0.3)
    ]
    assert error(a)["side_effect_state"] == "unknown"
    assert c["output"] == '{"x":0}'
    body.release.set()
    await turn(20)
    assert [(stale.call_id, stale.observed_status) for stale in late] == [("a", "success")]


@turned
async def test_f_a_synchronous_tool_cannot_hold_the_turn() -> None:
    """F: a sync function of ours runs in a daemon thread and is told of honestly; the SDK's own goes on unseen."""
    late: list[StaleResult] = []
    body, other = Hung("late-value"), Hung()

    @tool(timeout=0.2)
    def ours() -> Any:
        """Block."""
        return body()

    @function_tool
    def theirs() -> Any:
        """Block."""
        return other()

    @function_tool
    async def watch() -> str:
        """Keep the clock from jumping until the threads are there."""
        while not (body.entered.is_set() and other.entered.is_set()):
            await breathe()
        return "seen"

    tools = batched([ours, theirs, watch], call_timeout=0.3, teardown_timeout=0, audit_sinks=[late.append])
    a, b, c = await run(scripted([("ours", {}, "a"), ("theirs", {}, "b"), ("watch", {}, "c")]), tools)
    assert [error(each)["code"] for each in (a, b)] == ["timeout", "timeout"]
    assert c["output"] == "seen"
    body.release.set()
    other.release.set()
    while not late:
        await breathe()
    assert [(stale.call_id, stale.observed_status) for stale in late] == [("a", "success")]


class Opaque:
    """A value that has no JSON form."""


async def test_d_results_are_json_and_never_a_repr(nothing_left: None) -> None:
    """D: what has a JSON form has it, what has none is an answer, and the SDK's structured outputs stay what they are."""

    @function_tool
    async def dated() -> Any:
        """Give a date."""
        return {"when": dt.date(2026, 1, 2), "type": "text"}

    @function_tool
    async def weird() -> Any:
        """Give something odd."""
        return {"x": Opaque()}

    @function_tool
    async def nothing() -> Any:
        """Give nothing."""

    @function_tool
    async def shot() -> Any:
        """Give a picture."""
        return [{"type": "text", "text": "see"}, ToolOutputImage(image_url="https://example.org/a.png")]

    model = scripted([(name, {}, name) for name in ("dated", "weird", "nothing", "shot")])
    a, b, c, d = await run(model, batched([dated, weird, nothing, shot]))
    assert a["output"] == '{"when":"2026-01-02","type":"text"}'
    assert error(b)["code"] == "invalid_result"
    assert c["output"] == "null"
    assert [entry["type"] for entry in d["output"]] == ["input_text", "input_image"]


@turned
async def test_e_a_stop_passes_through_and_no_tool_survives() -> None:
    """E, 2: the run is cancelled at once, and its tools are asked to stop; what they do later is evidence (B6, B10)."""
    late: list[StaleResult] = []
    body = Stubborn("late-value")
    outcomes: list[Any] = []

    @function_tool
    async def stubborn() -> Any:
        """Swallow cancellations."""
        return await body()

    tools = batched([stubborn, hang], teardown_timeout=0.05, audit_sinks=[late.append], on_outcome=outcomes.append)
    task = asyncio.ensure_future(run(scripted([("stubborn", {}, "a"), ("hang", {}, "b")]), tools))
    while not body.entered:
        await turn()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelling() == 1
    await asyncio.sleep(0.1)
    assert {outcome.call_id: outcome.status for outcome in outcomes} == {"a": "cancelled", "b": "cancelled"}
    body.release.set()
    await turn(20)
    assert [stale.call_id for stale in late] == ["a"]


async def test_e_in_your_own_loop_a_stop_loses_nothing(nothing_left: None) -> None:
    """E: where the loop is the host's, the SDK's own model and items go on after a stop: every call has its answer."""
    model = scripted([("fast", {"x": 1}, "a"), ("hang", {}, "b")])
    items: list[Any] = [{"role": "user", "content": "Hi."}]
    settings: Any = {
        "system_instructions": None,
        "model_settings": None,
        "tools": [],
        "output_schema": None,
        "handoffs": [],
        "tracing": None,
        "previous_response_id": None,
        "conversation_id": None,
        "prompt": None,
    }

    async def instant(x: int) -> int:
        return x

    async def step() -> None:
        from agents import ModelSettings, ModelTracing

        response = await model.get_response(
            input=items, **{**settings, "model_settings": ModelSettings(), "tracing": ModelTracing.DISABLED}
        )
        batch = ToolBatch(openai_agents.calls(response), tools={"fast": instant, "hang": forever})
        try:
            async with batch:
                batch.start_all()
        finally:
            if batch.result is not None:
                openai_agents.extend(items, response, batch.result)

    task = asyncio.ensure_future(step())
    await turn(10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    a, b = outputs(items)
    assert a["output"] == "1"
    assert error(b)["code"] == "request_aborted"
    await step()
    assert check_responses(items) is None


async def test_g_h_what_cannot_run_is_answered(nothing_left: None) -> None:
    """G, H: malformed arguments run nothing, an unknown tool is the run's to answer, and a cut item is not run (LANES 14.4)."""
    ran: list[int] = []

    @function_tool
    async def noted(x: int = 0) -> str:
        """Note."""
        ran.append(x)
        return "noted"

    model = scripted([("noted", '{"x": ', "a"), ("nope", {}, "b")])
    a, b = await run(model, batched([noted]))
    assert error(a)["code"] == "malformed_arguments"
    assert "not found" in b["output"]
    cut: Any = function_call("noted", {"x": 9}, call_id="c", item_id="fc_c")
    model = ScriptedModel([[cut.model_copy(update={"status": "incomplete"})], [said("Done.")]])
    (c,) = await run(model, batched([noted]))
    assert error(c)["code"] == "response_truncated"
    assert ran == []


@pytest.mark.parametrize("streamed", [False, True])
async def test_i_two_calls_with_one_id_both_run(streamed: bool, nothing_left: None) -> None:
    """I, 49, 51: the SDK ends a run for a repeated id; with distinct ids both run, streamed or not, over turns too."""
    model = scripted(
        [("fast", {"x": 1}, "same"), ("fast", {"x": 2}, "same"), ("fast", {"x": 3}, "")], [("fast", {"x": 4}, "same")]
    )
    agent: Agent[Any] = Agent("a", model=distinct_ids(model), tools=batched([fast]))
    if streamed:
        result: Any = Runner.run_streamed(agent, "Hi.", run_config=CONFIG)
        told, seen = [], []
        async for event in result.stream_events():
            if event.type == "run_item_stream_event" and event.item.type == "tool_call_item":
                told.append(event.item.call_id)
            elif event.type == "raw_response_event" and getattr(event.data, "item", None) is not None:
                seen.append(getattr(event.data.item, "call_id", None))
        assert [call_id for call_id in seen if call_id] == [call_id for call_id in told for _ in ("added", "done")]
    else:
        result = await Runner.run(agent, "Hi.", run_config=CONFIG)
        told = [item.call_id for item in result.new_items if item.type == "tool_call_item"]
    found = outputs(result.to_input_list())
    assert [item["output"] for item in found] == [f'{{"x":{n}}}' for n in (1, 2, 3, 4)]
    assert told == [item["call_id"] for item in found]
    assert len(set(told)) == 4
    assert check_responses(result.to_input_list()) is None


async def test_a_model_with_distinct_ids_is_left_alone() -> None:
    """Nothing is copied where nothing is wrong; the rest of the model's interface is its own."""
    response = asked(("f", {}, "a"))
    model = ScriptedModel([response])
    wrapped = distinct_ids(model)
    given: Any = dict.fromkeys(["output_schema", "previous_response_id", "conversation_id", "prompt"])
    from agents import ModelSettings, ModelTracing

    same = await wrapped.get_response(
        None, "Hi.", ModelSettings(), [], handoffs=[], tracing=ModelTracing.DISABLED, **given
    )
    assert same.output == response.output
    await wrapped.close()
    with pytest.raises(InvalidTypeError, match="'gpt-5'"):
        distinct_ids("gpt-5")  # type: ignore[arg-type]


@turned
async def test_j_results_are_in_the_order_of_announcement() -> None:
    """J: slow first, fast second."""

    @function_tool
    async def slow() -> str:
        """Take a second."""
        await asyncio.sleep(1)
        return "slow"

    found = await run(scripted([("slow", {}, "a"), ("fast", {}, "b")]), batched([slow, fast]))
    assert [item["output"] for item in found] == ["slow", '{"x":0}']


async def test_63_65_cancelled_and_grouped_errors_end_their_own_call(nothing_left: None) -> None:
    """63, 65: a sibling that raises CancelledError, and a group of errors, are one call's end each."""

    @function_tool(failure_error_function=None)
    async def quits() -> Any:
        """Quit."""
        raise asyncio.CancelledError

    @function_tool(failure_error_function=None)
    async def group() -> Any:
        """Fail in a group."""
        raise ExceptionGroup("many", [ValueError("leaf")])

    a, b, c = await run(
        scripted([("quits", {}, "a"), ("group", {}, "b"), ("fast", {}, "c")]), batched([quits, group, fast])
    )
    assert (error(a)["code"], error(b)["message"]) == ("cancelled", "leaf")
    assert c["output"] == '{"x":0}'


async def test_the_sdks_own_exceptions_pass_through(nothing_left: None) -> None:
    """A guardrail's tripwire or a sub-agent's limit ends the run as the host has arranged it; so does a fatal ToolError of ours."""

    @function_tool(failure_error_function=None)
    async def limited() -> Any:
        """Reach a limit."""
        raise MaxTurnsExceeded("enough")

    @function_tool(failure_error_function=None)
    async def fatal() -> Any:
        """End it."""
        raise ToolError.fatal("no money left")

    with pytest.raises(MaxTurnsExceeded, match="enough"):
        await run(scripted([("limited", {}, "a")]), batched([limited]))
    with pytest.raises(Exception, match="no money left"):
        await run(scripted([("fatal", {}, "a")]), batched([fatal]))
    assert issubclass(ToolInputGuardrailTripwireTriggered, Exception)


async def test_a_tools_own_timeout_rules_stay(nothing_left: None) -> None:
    """Who formats timeouts or wants them raised is heard: the bound stays the SDK's."""

    def told(_context: Any, _error: Exception) -> str:
        return "too slow, sorry"

    @function_tool(timeout=0.01, timeout_error_function=told)
    async def formatted() -> Any:
        """Hang."""
        await forever()

    (a,) = await run(scripted([("formatted", {}, "a")]), batched([formatted], teardown_timeout=0))
    assert a["output"] == "too slow, sorry"


# -- toolbatch's own tools -----------------------------------------------------------------------------------------------------


@tool(meta=lambda rows: {"count": len(rows)}, render=lambda rows: f"{len(rows)} rows", strict=True)
async def rows(n: int) -> list[int]:
    """Make rows."""
    return list(range(n))


@tool(meta=lambda _value: 7)
def where() -> list[str]:
    """Tell the thread."""
    return [threading.current_thread().name, current_call().run_id or "-"]


@tool
async def picture() -> Any:
    """Paint."""
    return ["see", Image.of(b"png", "image/png"), Document.of(b"%PDF", "application/pdf", "a.pdf")]


@tool(needs_approval=lambda arguments: arguments["n"] > 1)
async def risky(n: int) -> str:
    """Be risky."""
    return f"done {n}"


async def test_toolbatchs_own_tools(nothing_left: None) -> None:
    """Declared with their schema, checked, rendered, in our threads; parts are the SDK's outputs, `meta` its custom data."""
    tools: Any = batched([rows, where, picture])
    assert (tools[0].name, tools[0].description, tools[0].strict_json_schema) == ("rows", "Make rows.", True)
    assert tools[0].params_json_schema["additionalProperties"] is False
    model = scripted([("rows", {"n": 2}, "a"), ("where", {}, "b"), ("picture", {}, "c"), ("rows", {"n": "x"}, "d")])
    result = await Runner.run(Agent("a", model=model, tools=tools), "Hi.", run_config=CONFIG)
    found = {item["call_id"]: item["output"] for item in outputs(result.to_input_list())}
    assert (found["a"], found["b"]) == ("2 rows", '["toolbatch-tool","g"]')
    assert [entry["type"] for entry in found["c"]] == ["input_text", "input_image", "input_file"]
    assert json.loads(found["d"])["error"]["code"] == "invalid_arguments"
    data = {item.call_id: item.custom_data for item in result.new_items if isinstance(item, ToolCallOutputItem)}
    assert (data["a"], data["b"], data["c"]) == ({"count": 2}, {"meta": 7}, None)
    assert check_responses(result.to_input_list()) is None


async def test_an_own_tool_asks_for_approval_in_the_sdks_way(nothing_left: None) -> None:
    """What needs an approval interrupts the run, and runs once it is given (T7); what is refused is not asked about."""
    model = scripted([("risky", {"n": 1}, "a"), ("risky", {"n": 2}, "b"), ("risky", {"n": "x"}, "c")])
    agent = Agent[Any]("a", model=model, tools=batched([risky]))
    first = await Runner.run(agent, "Hi.", run_config=CONFIG)
    (pending,) = first.interruptions
    state = first.to_state()
    state.approve(pending)
    second = await Runner.run(agent, state, run_config=CONFIG)
    found = {item["call_id"]: item["output"] for item in outputs(second.to_input_list())}
    assert (found["a"], found["b"]) == ("done 1", "done 2")
    assert json.loads(found["c"])["error"]["code"] == "invalid_arguments"


async def test_what_an_interceptor_replaces_escapes_nowhere(nothing_left: None) -> None:
    """T6: the tool's own value is not sent where the host's policy has put another in its place."""

    @function_tool
    async def leaky() -> Any:
        """Leak."""
        return ToolOutputImage(image_url="https://example.org/hunter2")

    class Redact(Interceptor):
        async def after(self, call: Any, result: Any, proceed: Any) -> Any:
            return Replace("[gone]")

    (a,) = await run(scripted([("leaky", {}, "a")]), batched([leaky], interceptors=[Redact()]))
    assert a["output"] == "[gone]"


async def test_outside_of_a_run(monkeypatch: pytest.MonkeyPatch, nothing_left: None) -> None:
    """A tool that is invoked without the model's item knows its call by the context; custom data that nobody fetches is bounded."""
    monkeypatch.setattr(_openai_agents_tools, "_MAX_META", 1)
    (made,) = batched([where])
    assert isinstance(made, FunctionTool)
    for call_id in ("a", "b"):
        context: Any = ToolContext(None, tool_name="where", tool_call_id=call_id, tool_arguments="{}")
        assert await made.on_invoke_tool(context, "{}") == '["toolbatch-tool","-"]'
    assert made.custom_data_extractor is not None
    found = {}
    for call_id in ("a", "b"):
        context = ToolContext(None, tool_name="where", tool_call_id=call_id, tool_arguments="{}")
        found[call_id] = made.custom_data_extractor(FunctionToolCustomDataContext(context, made, "", {}))
    assert found == {"a": None, "b": {"meta": 7}}


def test_the_originals_are_left_alone() -> None:
    """Tools are copied: the same ones can serve another agent without batches."""
    (made,) = batched([fast])
    assert isinstance(made, FunctionTool)
    assert made is not fast
    assert made.on_invoke_tool is not fast.on_invoke_tool
    assert (made.name, made.params_json_schema) == (fast.name, fast.params_json_schema)


def test_what_it_refuses() -> None:
    """What is no tool, an output schema that no failure can satisfy, and options that can't be used."""
    with pytest.raises(InvalidTypeError, match="FunctionTool or a Tool"):
        batched([print])  # type: ignore[list-item]
    with pytest.raises(InvalidInputError, match="call_timeout"):
        batched([fast], call_timeout=-1)

    async def invoke(context: RunContextWrapper[Any], arguments: str) -> str:
        return "{}"

    typed = FunctionTool(
        "typed",
        "",
        {"type": "object", "properties": {}, "additionalProperties": False, "required": []},
        invoke,
        output_json_schema={"type": "object", "properties": {}, "additionalProperties": False, "required": []},
    )
    with pytest.raises(InvalidInputError, match="typed has an output schema"):
        batched([typed])


async def test_durable_operations_are_of_the_runs_group() -> None:
    """It names the run; without it the error says what is missing."""
    paid: list[int] = []

    @function_tool(failure_error_function=None)
    async def pay(n: int) -> str:
        """Pay."""
        paid.append(n)
        return f"paid {n}"

    tools = batched([pay], interceptors=[DurableOperations(MemoryOperationStore(), tenant="t")])
    for group in (None, "conversation-1", "conversation-1"):
        model = ScriptedModel([[function_call("pay", {"n": 1}, call_id="a")], [assistant_message("Done.")]])
        run = Runner.run(
            Agent("a", model=model, tools=[*tools]), "Pay.", run_config=RunConfig(tracing_disabled=True, group_id=group)
        )
        if group is None:
            with pytest.raises(UserError, match="group_id"):
                await run
        else:
            outputs = [item.output for item in (await run).new_items if isinstance(item, ToolCallOutputItem)]
            assert outputs == ["paid 1"]
    assert paid == [1]
