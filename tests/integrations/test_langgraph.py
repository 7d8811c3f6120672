"""A LangGraph graph whose tools run through a batch: whatever they do, the next model call reads a lawful conversation."""

import asyncio
import contextvars
import datetime as dt
import json
import threading
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal, NoReturn

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolCallId
from langchain_core.tools import tool as lc_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.prebuilt import InjectedState, InjectedStore, ToolNode, ToolRuntime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Send, interrupt

from tests.batch.clock import now, turned
from tests.batch.kit import Hung, Stubborn, breathe, forever, turn
from tests.integrations.graphs import State, agent, answers, ask, call, node, thread
from toolbatch import ExecutionOutcome, Limits, StaleResult, ToolError, ToolSession, current_call, tool
from toolbatch.batch import DurableOperations
from toolbatch.core import BatchStateError, InvalidInputError, InvalidTypeError
from toolbatch.integrations.langgraph import BatchToolNode, tools_condition
from toolbatch.operations import MemoryOperationStore
from toolbatch.tools import Interceptor, Replace


@lc_tool
async def fast(x: int = 0) -> str:
    """Answer at once."""
    return f"fast {x}"


@lc_tool
async def boom() -> NoReturn:
    """Fail."""
    raise RuntimeError("boom password=hunter2")


@lc_tool
async def hang() -> NoReturn:
    """Wait for ever, and obey."""
    await forever()


def error(message: ToolMessage) -> Any:
    """What the model reads of a failure."""
    assert message.status == "error"
    return json.loads(str(message.content))["error"]


def stubborn_tool(body: Stubborn | Hung, name: str = "stubborn") -> BaseTool:
    """A LangChain tool that does what `body` does, in the loop or in a thread."""
    if isinstance(body, Hung):

        @lc_tool(name)
        def blocking() -> Any:
            """Block."""
            return body()

        return blocking

    @lc_tool(name)
    async def swallowing() -> Any:
        """Swallow cancellations."""
        return await body()

    return swallowing


# -- FIELD: the same work ---------------------------------------------------------------------------------------------------


async def test_a_one_tool_raises(nothing_left: None) -> None:
    """A, 62: the run goes on, siblings finish, and the model reads what went wrong; or only its type, on demand."""
    messages = await ask(agent(node(fast, boom), [call("boom", "a"), call("fast", "b")]))
    assert [message.tool_call_id for message in answers(messages)] == ["a", "b"]
    assert error(answers(messages)[0]) == {"code": "tool_error", "message": "boom password=hunter2"}
    assert (answers(messages)[1].content, messages[-1].content) == ("fast 0", "Done.")
    discreet = await ask(agent(node(boom, error_detail="type"), [call("boom", "a")]))
    assert error(answers(discreet)[0])["message"] == "RuntimeError"


@turned
async def test_b_c_timeouts_hold_against_a_tool_that_swallows_cancellation() -> None:
    """B, C: the answer is there at the timeout, whatever the tool does; its late value is evidence and no result."""
    late: list[StaleResult] = []
    body = Stubborn("late-value")
    tools = node(fast, hang, stubborn_tool(body), call_timeout=0.2, teardown_timeout=0.05, audit_sinks=[late.append])
    messages = await ask(agent(tools, [call("hang", "a"), call("stubborn", "b"), call("fast", "c")]))
    assert now() == 0.25
    assert [error(message)["code"] for message in answers(messages)[:2]] == ["timeout", "timeout"]
    assert error(answers(messages)[1])["side_effect_state"] == "unknown"
    assert answers(messages)[2].content == "fast 0"
    body.release.set()
    await turn(20)
    assert [(stale.call_id, stale.observed_status) for stale in late] == [("b", "success")]


@turned
async def test_f_a_synchronous_tool_cannot_hold_the_turn() -> None:
    """F: a plain function runs in our thread; the turn goes on at its timeout, and what it returns later is evidence."""
    late: list[StaleResult] = []
    body = Hung("late-value")

    @lc_tool
    async def watch() -> str:
        """Keep the clock from jumping until the thread is there."""
        while not body.entered.is_set():
            await breathe()
        return "seen"

    tools = node(stubborn_tool(body), watch, call_timeout=0.2, teardown_timeout=0, audit_sinks=[late.append])
    messages = await ask(agent(tools, [call("stubborn", "a"), call("watch", "b")]))
    assert error(answers(messages)[0])["code"] == "timeout"
    assert answers(messages)[1].content == "seen"
    body.release.set()
    while not late:
        await breathe()
    assert late[0].observed_status == "success"


@turned
async def test_the_batch_has_a_deadline_too() -> None:
    """35: no tool has a timeout of its own, and the turn ends all the same."""
    messages = await ask(agent(node(hang, fast, timeout=0.3), [call("hang", "a"), call("fast", "b")]))
    assert now() == 0.3
    assert error(answers(messages)[0])["code"] == "timeout"
    assert answers(messages)[1].content == "fast 0"


class Opaque:
    """A value that has no JSON form."""


async def test_d_results_are_json_and_never_a_repr(nothing_left: None) -> None:
    """D, 68, 71: what has a JSON form has it; what has none is an error that says the tool ran; siblings live."""

    @lc_tool
    async def dated() -> Any:
        """Give a date."""
        return {"when": dt.date(2026, 1, 2), "tags": {"b", "a"}}

    @lc_tool
    def weird() -> Any:
        """Give something odd."""
        return {"x": Opaque()}

    @lc_tool
    async def nan() -> Any:
        """Give no number."""
        return {"x": float("nan")}

    @lc_tool(response_format="content_and_artifact")
    async def both() -> Any:
        """Give both."""
        return {"n": 1}, ["raw"]

    asked = [call("dated", "a"), call("weird", "b"), call("nan", "c"), call("both", "d"), call("fast", "e")]
    messages = await ask(agent(node(dated, weird, nan, both, fast), asked))
    a, b, c, d, e = answers(messages)
    assert a.content == '{"when":"2026-01-02","tags":["a","b"]}'
    assert (error(b)["code"], error(c)["code"]) == ("invalid_result", "invalid_result")
    assert "weird ran" in error(b)["message"]
    assert (d.content, d.artifact) == ('{"n":1}', ["raw"])
    assert e.content == "fast 0"


@pytest.mark.parametrize("in_thread", [False, True])
@turned
async def test_e_a_stop_loses_nothing(in_thread: bool) -> None:
    """E, 5, 15, 98: after a stop the answers of finished tools and of the others are stored, and the next turn is lawful."""
    unsaved: list[Any] = []
    body: Any = Hung() if in_thread else Stubborn()
    tools = node(fast, hang, stubborn_tool(body), teardown_timeout=0.05, on_unsaved=lambda *what: unsaved.append(what))
    graph = agent(tools, [call("fast", "a"), call("hang", "b"), call("stubborn", "c")])
    task = asyncio.ensure_future(ask(graph))
    while not (body.entered.is_set() if in_thread else body.entered):
        await turn()
    await turn(20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    ((messages, config),) = unsaved
    assert config["configurable"]["thread_id"] == "t"
    await graph.aupdate_state(thread(), {"messages": messages}, as_node="tools")
    body.release.set()
    await turn(20)
    later = await ask(graph, "And now?")
    assert [(message.tool_call_id, message.status) for message in answers(later)] == [
        ("a", "success"),
        ("b", "error"),
        ("c", "error"),
    ]
    assert answers(later)[0].content == "fast 0"
    assert {error(message)["code"] for message in answers(later)[1:]} == {"request_aborted"}
    assert {error(message)["side_effect_state"] for message in answers(later)[1:]} == {"unknown"}


async def test_the_host_may_fail_at_storing(caplog: pytest.LogCaptureFixture, nothing_left: None) -> None:
    """What `on_unsaved` raises is logged, and the cancellation passes through untouched (B10)."""

    def broken(*_: Any) -> None:
        raise OSError("disk full")

    body = Stubborn()
    tools = node(stubborn_tool(body), on_unsaved=broken, teardown_timeout=0)
    task = asyncio.ensure_future(ask(agent(tools, [call("stubborn", "a")])))
    while not body.entered:
        await turn()
    body.release.set()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "disk full" in caplog.text


async def test_g_h_what_cannot_run_is_answered(nothing_left: None) -> None:
    """G, H, LANES 14.14: malformed arguments, an unknown tool, and a message of nothing but what LangChain could not parse."""
    wrong = {"name": "fast", "args": '{"x": 1', "id": "m", "error": None, "type": "invalid_tool_call"}
    mixed = AIMessage("", tool_calls=[call("fsat", "u"), call("fast", "v", x="many")], invalid_tool_calls=[wrong])
    only = AIMessage("", invalid_tool_calls=[{**wrong, "id": None}])
    messages = await ask(agent(node(fast), mixed, only))
    codes = [error(message)["code"] for message in answers(messages)]
    assert codes == ["unknown_tool", "invalid_arguments", "malformed_arguments", "malformed_arguments"]
    assert "Did you mean fast?" in error(answers(messages)[0])["message"]
    complaint = error(answers(messages)[1])["message"]
    assert "x: Input should be a valid integer" in complaint
    assert "it was 'many'" in complaint
    assert all(isinstance(each, AIMessage) and not each.invalid_tool_calls for each in messages[1:6:4])


async def test_i_two_calls_with_one_id_both_run(nothing_left: None) -> None:
    """I, 51, 55: repeated and missing ids are ours in the results and, under its own id, in the model's message."""
    asked = [call("fast", "same", x=1), call("fast", "same", x=2), call("fast", None, x=3), call("fast", "", x=4)]
    messages = await ask(agent(node(fast), asked, [call("fast", "same", x=5)]))
    assert [message.content for message in answers(messages)] == ["fast 1", "fast 2", "fast 3", "fast 4", "fast 5"]
    ids = [message.tool_call_id for message in answers(messages)]
    assert len(set(ids)) == 5
    assert ids[0] == "same"
    said = [message for message in messages if isinstance(message, AIMessage)]
    assert [each["id"] for message in said for each in message.tool_calls] == ids
    assert len(said) == 3


@turned
async def test_j_results_are_in_the_order_of_announcement() -> None:
    """J, 59, 61: slow first, fast second; the model reads them as it asked for them."""

    @lc_tool
    async def slow() -> str:
        """Take a second."""
        await asyncio.sleep(1)
        return "slow"

    messages = await ask(agent(node(slow, fast), [call("slow", "a"), call("fast", "b")]))
    assert [message.content for message in answers(messages)] == ["slow", "fast 0"]


async def test_a_truncated_response_runs_nothing(nothing_left: None) -> None:
    """LANES 14.4: LangChain completes cut arguments, and only the stop reason tells."""
    cut = AIMessage("", tool_calls=[call("fast", "a")], response_metadata={"finish_reason": "length"})
    (answer,) = answers(await ask(agent(node(fast), cut)))
    assert error(answer)["code"] == "response_truncated"


async def test_63_a_tool_that_cancels_itself_cancels_nobody(nothing_left: None) -> None:
    """63: a tool's own CancelledError is its call's end, not the graph's."""

    @lc_tool
    async def quits() -> None:
        """Quit."""
        raise asyncio.CancelledError

    messages = await ask(agent(node(quits, fast), [call("quits", "a"), call("fast", "b")]))
    assert error(answers(messages)[0])["code"] == "cancelled"
    assert answers(messages)[1].content == "fast 0"


# -- what ToolNode injects and hands on --------------------------------------------------------------------------------------


async def test_state_store_runtime_and_id_are_injected_and_cannot_be_forged(nothing_left: None) -> None:
    """ToolNode's contract: what a tool asks for by annotation is the graph's; what the model wrote there is dropped."""
    seen: dict[str, Any] = {}

    @lc_tool
    async def inspect_all(
        x: int,
        state: Annotated[dict[str, Any], InjectedState],
        found: Annotated[str, InjectedState("found")],
        store: Annotated[BaseStore, InjectedStore()],
        call_id: Annotated[str, InjectedToolCallId],
        runtime: ToolRuntime,
        config: RunnableConfig,
    ) -> str:
        """See everything."""
        seen.update(locals())
        await store.aput(("a",), "k", {"v": x})
        return "seen"

    graph = agent(node(inspect_all), [call("inspect_all", "a", x=1, found="forged")], store=(store := InMemoryStore()))
    messages = await ask(graph, found="real", config={**thread(), "tags": ["mine"]})
    assert answers(messages)[0].content == "seen"
    assert (seen["x"], seen["found"], seen["call_id"]) == (1, "real", "a")
    assert len(seen["state"]["messages"]) == 2
    assert (seen["runtime"].tool_call_id, seen["runtime"].state["found"]) == ("a", "real")
    assert seen["config"]["configurable"]["thread_id"] == "t"
    assert "mine" in seen["config"]["tags"]
    item = await store.aget(("a",), "k")
    assert item is not None
    assert item.value == {"v": 1}


async def test_what_cannot_be_injected_fails_its_own_call(nothing_left: None) -> None:
    """A field that the state does not have fails the one call, not the turn; nothing injected is told of bad arguments."""

    @lc_tool
    async def needs(x: int, missing: Annotated[str, InjectedState("missing")]) -> str:
        """Need a field."""
        return missing

    @lc_tool
    async def secretive(x: int, found: Annotated[int, InjectedState("found")]) -> str:
        """Get a field of another type."""
        return str(found)

    tools = node(needs, secretive, fast)
    asked = [call("needs", "a", x=1), call("secretive", "b", x="?"), call("fast", "c")]
    messages = await ask(agent(tools, asked), found="hunter2")
    a, b, c = answers(messages)
    assert error(a)["code"] == "tool_error"
    assert "x: Input should be" in error(b)["message"]
    assert "hunter2" not in error(b)["message"]
    assert "found" not in error(b)["message"]
    assert c.content == "fast 0"


class Heard(AsyncCallbackHandler):
    """Writes down what LangChain tells of tools."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    async def on_tool_start(self, serialized: Any, input_str: str, **more: Any) -> None:
        self.told.append((f"start {serialized['name']}", more["inputs"]))

    async def on_tool_end(self, output: Any, **more: Any) -> None:
        self.told.append(("end", getattr(output, "content", output)))

    async def on_tool_error(self, error: BaseException, **more: Any) -> None:
        self.told.append(("error", str(error)))


@tool(meta=lambda value: {"double": value * 2})
async def ours(n: int) -> int:
    """Count."""
    if n < 0:
        raise ValueError("negative")
    return n


@tool
def ours_in_thread(n: int) -> int:
    """Count in a thread."""
    if n < 0:
        raise ValueError("negative")
    return n


@tool
async def ours_by_step(n: int) -> Any:
    """Count step by step."""
    if n < 0:
        raise ValueError("negative")
    for i in range(n):
        yield i


@pytest.mark.parametrize("of", [ours, ours_in_thread, ours_by_step], ids=lambda each: each.name)
async def test_callbacks_hear_of_our_tools_as_of_langchains(of: Any, nothing_left: None) -> None:
    """A trace shows a `Tool` of ours as it shows LangChain's: started with its arguments, ended or failed."""
    heard = Heard()
    graph = agent(node(of, fast), [call(of.name, "a", n=3), call(of.name, "b", n=-1)])
    await ask(graph, config={**thread(), "callbacks": [heard]})
    assert sorted(map(str, heard.told)) == sorted(
        map(
            str,
            [
                (f"start {of.name}", {"n": 3}),
                (f"start {of.name}", {"n": -1}),
                ("end", 2 if of is ours_by_step else 3),
                ("error", "negative"),
            ],
        )
    )


async def test_what_a_tool_of_ours_starts_is_its_child(nothing_left: None) -> None:
    """Runnables that a `Tool` invokes are traced below it, since it runs with its own callbacks in the context."""
    parents: dict[str, Any] = {}

    class Tree(BaseCallbackHandler):
        def on_tool_start(
            self, serialized: Any, input_str: str, *, run_id: Any, parent_run_id: Any = None, **more: Any
        ) -> None:
            parents[serialized["name"]] = (run_id, parent_run_id)

    @tool
    async def outer() -> str:
        """Run another."""
        return str(await fast.ainvoke({"x": 1}))

    messages = await ask(agent(node(outer), [call("outer", "a")]), config={**thread(), "callbacks": [Tree()]})
    assert answers(messages)[0].content == "fast 1"
    assert parents["fast"][1] == parents["outer"][0]


class Shout(BaseTool):
    """A tool that is a class, with a synchronous body only."""

    name: str = "shout"
    description: str = "Shout."

    def _run(self, text: str) -> str:
        return f"{text.upper()} in {threading.current_thread().name}"


async def test_synchronous_tools_run_in_our_threads(nothing_left: None) -> None:
    """Functions and classes without a coroutine run in a daemon thread of ours, with the starter's context (B9, B11, 99)."""
    who = contextvars.ContextVar("who", default="nobody")

    @lc_tool
    def whoami() -> str:
        """Tell."""
        return f"{who.get()} in {threading.current_thread().name}"

    who.set("me")
    messages = await ask(agent(node(whoami, Shout()), [call("whoami", "a"), call("shout", "b", text="hi")]))
    assert [message.content for message in answers(messages)] == ["me in toolbatch-tool", "HI in toolbatch-tool"]


async def test_blocks_of_a_langchain_tool_arrive_as_they_are(nothing_left: None) -> None:
    """Images and other blocks reach the graph untouched; the batch's bounds hold for them; what is no JSON is an answer."""
    blocks: list[Any] = [
        {"type": "text", "text": "see"},
        {"type": "image", "base64": "cG5n", "mime_type": "image/png"},
        {"type": "image", "url": "https://example.org/a.png"},
        {"type": "file", "base64": "JVBERg==", "mime_type": "application/pdf"},
        {"type": "file", "url": "https://example.org/a.pdf"},
        {"type": "image_url", "image_url": {"url": "https://example.org/b.png"}},
        {"type": "image", "source": "an older dialect"},
        "and text",
    ]

    @lc_tool
    async def shot() -> Any:
        """Give blocks."""
        return blocks

    @lc_tool
    async def odd() -> Any:
        """Give a block that is no JSON."""
        return [{"type": "json", "json": Opaque()}]

    @lc_tool
    async def nothing() -> Any:
        """Give no blocks."""
        return []

    asked = [call("shot", "a"), call("odd", "b"), call("nothing", "c")]
    a, b, c = answers(await ask(agent(node(shot, odd, nothing), asked)))
    assert a.content == blocks
    assert error(b)["code"] == "invalid_result"
    assert (c.content, c.status) == ([], "success")
    small = Limits(max_result_bytes=10)
    (cut,) = answers(await ask(agent(node(shot, limits=small), [call("shot", "a")])))
    assert error(cut)["code"] == "invalid_result"


class Raw(BaseTool):
    """A tool that gives what no tool of LangChain's may give."""

    name: str = "raw"
    description: str = "Be raw."

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return 5

    def _run(self) -> None:
        raise AssertionError


async def test_a_response_of_another_kind_fails_its_call_only(nothing_left: None) -> None:
    """What ToolNode would end the graph for is one call's error."""
    a, b = answers(await ask(agent(node(Raw(), fast), [call("raw", "a"), call("fast", "b")])))
    assert "must return a ToolMessage, a Command" in error(a)["message"]
    assert b.content == "fast 0"


async def test_a_tool_keeps_its_own_message(nothing_left: None) -> None:
    """A message that a tool returned is not changed under its hands, and is bound to the call whatever id it has."""
    mine = ToolMessage("mine", tool_call_id="another")

    @lc_tool
    async def own() -> Any:
        """Give a message."""
        return mine

    (a,) = answers(await ask(agent(node(own), [call("own", "a")])))
    assert (a.content, a.tool_call_id, a.name) == ("mine", "a", "own")
    assert (mine.tool_call_id, mine.name) == ("another", None)


async def test_tools_of_both_kinds_keep_their_own_rules(nothing_left: None) -> None:
    """A `Tool`'s checks, approval and artifact; a LangChain tool's own error message, which counts as a failure (O4)."""
    outcomes: list[ExecutionOutcome] = []

    @tool(needs_approval=True)
    async def risky() -> str:
        """Be risky."""
        return "done"

    @lc_tool
    async def careful() -> str:
        """Fail with words."""
        from langchain_core.tools import ToolException

        raise ToolException("not today")

    careful.handle_tool_error = True
    asked = [call("ours", "a", n=2), call("ours", "b", n="x"), call("risky", "c"), call("careful", "d")]
    messages = await ask(agent(node(ours, risky, careful, on_outcome=outcomes.append), asked))
    a, b, c, d = answers(messages)
    assert (a.content, a.artifact) == ("2", {"double": 4})
    assert (error(b)["code"], error(c)["code"]) == ("invalid_arguments", "denied")
    assert (d.content, d.status) == ("not today", "error")
    assert {outcome.call_id: outcome.status for outcome in outcomes}["d"] == "failed"


@turned
async def test_tools_that_run_alone_do() -> None:
    """T8: a `Tool` that is not parallel overlaps with none of LangChain's either."""
    running: list[str] = []
    overlaps: list[list[str]] = []

    async def during(name: str) -> str:
        running.append(name)
        overlaps.append(list(running))
        await asyncio.sleep(1)
        running.remove(name)
        return name

    @tool(parallel=False)
    async def alone() -> str:
        """Run alone."""
        return await during("alone")

    @lc_tool
    async def other() -> str:
        """Run beside."""
        return await during("other")

    await ask(agent(node(alone, other), [call("other", "a"), call("alone", "b"), call("other", "c")]))
    assert [names for names in overlaps if "alone" in names and len(names) > 1] == []


async def test_what_an_interceptor_replaces_escapes_nowhere(nothing_left: None) -> None:
    """T6: a replaced result takes the tool's artifact, its command and its state update with it."""

    @lc_tool(response_format="content_and_artifact")
    async def leaky() -> Any:
        """Leak."""
        return "hunter2", {"secret": "hunter2"}

    @lc_tool
    async def commanding(call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Leak by a command."""
        return Command(update={"found": "hunter2", "messages": [ToolMessage("hunter2", tool_call_id=call_id)]})

    class Redact(Interceptor):
        async def after(self, call: Any, result: Any, proceed: Any) -> Any:
            return Replace("[gone]")

    tools = node(leaky, commanding, interceptors=[Redact()])
    graph = agent(tools, [call("leaky", "a"), call("commanding", "b")])
    messages = await ask(graph)
    assert [message.content for message in answers(messages)] == ["[gone]", "[gone]"]
    assert "hunter2" not in str((await graph.aget_state(thread())).values)


# -- commands, interrupts, Send ----------------------------------------------------------------------------------------------


async def test_commands_update_the_state_and_answer_their_call(nothing_left: None) -> None:
    """A tool may update the state and say where to go; its message answers the call, beside its siblings'."""

    @lc_tool
    async def remember(what: str, call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Remember."""
        return Command(update={"found": what, "messages": [ToolMessage("kept", tool_call_id=call_id)]})

    @lc_tool
    async def silent() -> Any:
        """Say nothing."""
        return Command(update={"found": "x"})

    @lc_tool
    async def jump() -> Any:
        """Go on."""
        return Command(goto="model")

    @lc_tool
    async def two(call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Give a list."""
        return [Command(update={"other": "z"}), ToolMessage("listed", tool_call_id=call_id)]

    @lc_tool
    async def twice(call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Answer twice."""
        return [ToolMessage("1", tool_call_id=call_id), ToolMessage("2", tool_call_id=call_id)]

    tools = node(remember, silent, jump, two, twice, fast)
    asked = [
        call("fast", "f"),
        call("remember", "a", what="k"),
        call("two", "b"),
        call("silent", "c"),
        call("twice", "d"),
        call("jump", "e"),
    ]
    graph = agent(tools, asked)
    messages = await ask(graph)
    told = {message.tool_call_id: message for message in answers(messages)}
    assert [told[i].content for i in "fab"] == ["fast 0", "kept", "listed"]
    assert (told["a"].name, told["b"].name) == ("remember", "two")
    assert {error(told[i])["code"] for i in "cde"} == {"tool_error"}
    assert "exactly one" in error(told["c"])["message"]
    state = await graph.aget_state(thread())
    assert (state.values["found"], state.values["other"]) == ("k", "z")


async def test_a_tool_may_clear_the_conversation(nothing_left: None) -> None:
    """Where a command removes all messages, its call goes with them and needs no answer."""

    @lc_tool
    async def forget() -> Any:
        """Forget."""
        return Command(update={"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]})

    messages = await ask(agent(node(forget), [call("forget", "a")]))
    assert [message.content for message in messages] == ["Done."]


async def test_commands_to_the_parent_graph_are_obeyed_together(nothing_left: None) -> None:
    """Two hand-overs in one turn: LangGraph obeys one command that leaves the graph, so both are in it, updates too."""

    def hands_over(name: str) -> BaseTool:
        @lc_tool(f"to_{name}")
        async def to_other(call_id: Annotated[str, InjectedToolCallId]) -> Any:
            """Hand over."""
            message = ToolMessage(f"to {name}", tool_call_id=call_id)
            return Command(graph=Command.PARENT, goto=name, update={"messages": [message]})

        return to_other

    said = AIMessage("", tool_calls=[call("to_one", "a"), call("to_two", "b")])
    inner = StateGraph(MessagesState).add_node("tools", node(hands_over("one"), hands_over("two")))
    inner.add_edge(START, "tools")
    visited: list[str] = []
    outer = StateGraph(MessagesState).add_node("inner", inner.compile())
    for name in ("one", "two"):
        outer.add_node(name, lambda _state, name=name: visited.append(name))
    outer.add_edge(START, "inner")
    state = await outer.compile().ainvoke({"messages": [HumanMessage("Hi."), said]})
    assert sorted(visited) == ["one", "two"]
    assert [message.content for message in answers(state["messages"])] == ["to one", "to two"]
    visited.clear()
    alone = AIMessage("", tool_calls=[call("to_two", "a")])
    state = await outer.compile().ainvoke({"messages": [HumanMessage("Hi."), alone]})
    assert visited == ["two"]
    assert [message.content for message in answers(state["messages"])] == ["to two"]


async def test_an_interrupt_pauses_the_graph_and_nothing_is_lost(nothing_left: None) -> None:
    """`interrupt()` in a tool is no error: siblings end first, and the resumed node runs again with the same keys (B22)."""
    keys: list[str] = []
    ran: list[str] = []

    @lc_tool
    async def approve() -> str:
        """Ask."""
        return f"you said {interrupt('sure?')}"

    @lc_tool
    async def pay() -> str:
        """Pay."""
        await turn(5)
        keys.append(current_call().idempotency_key)
        ran.append("pay")
        return "paid"

    unsaved: list[Any] = []
    graph = agent(
        node(approve, pay, on_unsaved=lambda *what: unsaved.append(what)), [call("approve", "a"), call("pay", "b")]
    )
    paused = await graph.ainvoke({"messages": [HumanMessage("Hi.")]}, thread())
    assert [each.value for each in paused["__interrupt__"]] == ["sure?"]
    assert (ran, unsaved) == (["pay"], [])
    done = await graph.ainvoke(Command(resume="yes"), thread())
    assert [message.content for message in answers(done["messages"])] == ["you said yes", "paid"]
    assert len(keys) == 2
    assert len(set(keys)) == 1


@pytest.mark.parametrize("replay", ["if_not_started", "safe"])
async def test_with_durable_operations_the_second_run_repeats_nothing(
    replay: Literal["if_not_started", "safe"], nothing_left: None
) -> None:
    """Siblings have their saved answers; what has interrupted the graph may be run again if it is said to be safe."""
    ran: list[str] = []

    @lc_tool
    async def approve() -> str:
        """Ask."""
        ran.append("approve")
        return f"you said {interrupt('sure?')}"

    @lc_tool
    async def pay() -> str:
        """Pay."""
        ran.append("pay")
        return "paid"

    operations = DurableOperations(MemoryOperationStore(), tenant="t", replay={"approve": replay})
    graph = agent(node(approve, pay, interceptors=[operations]), [call("approve", "a"), call("pay", "b")])
    paused = await graph.ainvoke({"messages": [HumanMessage("Hi.")]}, thread())
    assert [each.value for each in paused["__interrupt__"]] == ["sure?"]
    done = await graph.ainvoke(Command(resume="yes"), thread())
    asked, paid = answers(done["messages"])
    assert (paid.content, ran.count("pay")) == ("paid", 1)
    if replay == "safe":
        assert asked.content == "you said yes"
    else:
        assert json.loads(str(asked.content))["error"]["code"] == "outcome_unknown"
        assert ran.count("approve") == 1


async def _asks() -> str:
    """Ask."""
    return f"you said {interrupt('sure?')}"


def _asks_in_a_thread() -> str:
    """Ask."""
    return f"you said {interrupt('sure?')}"


async def _asks_in_items() -> AsyncIterator[str]:
    """Ask."""
    yield f"you said {interrupt('sure?')}"


_ours: Any = tool(name="approve")


@pytest.mark.parametrize(
    "approve",
    [
        _ours(_asks),
        _ours(_asks_in_a_thread),
        _ours(_asks_in_items),
        lc_tool("approve")(_asks),
        lc_tool("approve")(_asks_in_a_thread),
    ],
    ids=["ours", "ours in a thread", "ours in items", "LangChain's", "LangChain's in a thread"],
)
async def test_every_kind_of_tool_may_interrupt(approve: Any, nothing_left: None) -> None:
    """A tool that interrupts the graph has not failed: with `cancel_siblings`, too, the others run to their ends first."""
    ended: list[str] = []

    @lc_tool
    async def slow() -> str:
        """Take some turns."""
        await turn(20)
        ended.append("slow")
        return "slow"

    graph = agent(node(approve, slow, on_error="cancel_siblings"), [call("approve", "a"), call("slow", "b")])
    paused = await graph.ainvoke({"messages": [HumanMessage("Hi.")]}, thread())
    assert [each.value for each in paused["__interrupt__"]] == ["sure?"]
    assert ended == ["slow"]
    done = await graph.ainvoke(Command(resume="yes"), thread())
    assert [message.content for message in answers(done["messages"])] == ["you said yes", "slow"]


@turned
async def test_an_interrupt_that_comes_too_late_is_none() -> None:
    """A call that was given up has its answer: what its tool asks for while it is cleaning up does not pause the graph."""

    @lc_tool
    async def asks_late() -> Any:
        """Ask when it is over."""
        try:
            await forever()
        finally:
            interrupt("late?")

    messages = await ask(agent(node(asks_late, call_timeout=0.2), [call("asks_late", "a")]))
    assert error(answers(messages)[0])["code"] == "timeout"
    assert messages[-1].content == "Done."


async def test_calls_dispatched_by_send_are_stored_one_by_one(nothing_left: None) -> None:
    """Each `Send` is a run of its own: after an interrupt only the interrupted one runs again, with the state injected."""
    ran: list[str] = []

    @lc_tool
    async def approve(found: Annotated[str, InjectedState("found")]) -> str:
        """Ask."""
        return f"{found}: {interrupt('sure?')}"

    @lc_tool
    async def pay() -> str:
        """Pay."""
        ran.append("pay")
        return "paid"

    said = AIMessage("", tool_calls=[call("approve", "a"), call("pay", None), call("nope", "c")])
    graph = StateGraph(State).add_node("tools", node(approve, pay)).add_node("start", lambda _: {"messages": [said]})
    graph.add_edge(START, "start")
    graph.add_conditional_edges(
        "start", lambda state: [Send("tools", [each]) for each in state["messages"][-1].tool_calls]
    )
    app = graph.compile(checkpointer=InMemorySaver())
    await app.ainvoke({"messages": [HumanMessage("Hi.")], "found": "f"}, thread())
    done = await app.ainvoke(Command(resume="yes"), thread())
    assert ran == ["pay"]
    told = {message.name: message for message in answers(done["messages"])}
    assert (told["approve"].content, told["pay"].content) == ("f: yes", "paid")
    assert error(told["nope"])["code"] == "unknown_tool"


async def test_a_call_with_its_state_beside_it(nothing_left: None) -> None:
    """The payload that LangChain's agent dispatches, with the state in it."""

    @lc_tool
    async def tell(found: Annotated[str, InjectedState("found")]) -> str:
        """Tell."""
        return found

    payload = {"__type": "tool_call_with_context", "tool_call": call("tell", "a"), "state": {"found": "beside"}}
    graph = (
        StateGraph(State).add_node("tools", node(tell)).add_conditional_edges(START, lambda _: [Send("tools", payload)])
    )
    state = await graph.compile().ainvoke({"messages": [], "found": "graph's"})
    assert answers(state["messages"])[0].content == "beside"


async def test_a_state_that_is_a_list(nothing_left: None) -> None:
    """Where the state is the messages themselves, so is the update; a command may bring a list and no dict."""

    @lc_tool
    async def listed(call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Give a list."""
        return Command(update=[ToolMessage("listed", tool_call_id=call_id)])

    @lc_tool
    async def mapped(call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Give a dict."""
        return Command(update={"messages": [ToolMessage("mapped", tool_call_id=call_id)]})

    messages_alone: Any = Annotated[list[Any], add_messages]
    graph = StateGraph(messages_alone)
    graph.add_node("tools", node(fast, listed, mapped)).add_edge(START, "tools").add_edge("tools", END)
    asked = AIMessage("", tool_calls=[call("fast", "a"), call("listed", "b"), call("mapped", "c")])
    state: Any = await graph.compile().ainvoke([HumanMessage("Hi."), asked])
    told = {message.tool_call_id: message for message in answers(state)}
    assert (told["a"].content, told["b"].content) == ("fast 0", "listed")
    assert "list of messages" in error(told["c"])["message"]


async def test_only_calls_without_an_answer_run(nothing_left: None) -> None:
    """A turn that was stored in part is completed: what has its answer is not run a second time."""
    ran: list[int] = []

    @lc_tool
    async def once(x: int) -> str:
        """Run once."""
        ran.append(x)
        return f"{x}"

    said = AIMessage("", tool_calls=[call("once", "a", x=1), call("once", "b", x=2)])
    graph = StateGraph(MessagesState).add_node("tools", node(once)).add_edge(START, "tools")
    state = await graph.compile().ainvoke({"messages": [said, ToolMessage("1", tool_call_id="a")]})
    assert ran == [2]
    assert [message.content for message in answers(state["messages"])] == ["1", "2"]


# -- sessions, endings, refusals ------------------------------------------------------------------------------------------


@turned
async def test_a_session_waits_for_nobody_and_hears_of_late_results() -> None:
    """B6, B7, 43: in a session a turn does not wait for what it cut off, and late successes can be told later (B20)."""
    body = Stubborn("found")
    async with ToolSession(keep_content=True, teardown_timeout=10) as session:
        found: list[Any] = []

        def find(config: RunnableConfig) -> ToolSession:
            found.append(config["configurable"]["thread_id"])
            return session

        graph = agent(
            node(stubborn_tool(body), fast, session=find, call_timeout=0.2),
            [call("stubborn", "a")],
            [call("fast", "b")],
        )
        messages = await ask(graph)
        assert now() == 0.2
        assert found == ["t", "t"]
        assert [message.status for message in answers(messages)] == ["error", "success"]
        body.release.set()
        await turn(10)
        assert [note.content for note in session.late_notes()] == ["found"]


async def test_a_session_is_refused_where_it_would_cut_siblings_off(nothing_left: None) -> None:
    """Calls that `Send` dispatched are batches of their own; in one session the newer would supersede the older."""
    async with ToolSession() as session:
        graph = StateGraph(MessagesState).add_node("tools", node(fast, session=session))
        graph.add_conditional_edges(START, lambda _: [Send("tools", [call("fast", "a")])])
        with pytest.raises(InvalidInputError, match="supersede"):
            await graph.compile().ainvoke({"messages": []})
        sunk = agent(node(fast, session=session, audit_sinks=[print]), [call("fast", "a")])
        with pytest.raises(InvalidInputError, match="audit_sinks"):
            await ask(sunk)


async def test_a_fatal_error_ends_the_graph_and_its_answers_are_handed_over(nothing_left: None) -> None:
    """B4: a tool's fatal ToolError is raised by the graph; what the other calls answered can be stored."""
    unsaved: list[Any] = []

    @tool
    async def fatal() -> None:
        """End it."""
        await turn(10)
        raise ToolError.fatal("no money left", "broke")

    @lc_tool
    async def remember(call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Remember."""
        return Command(update={"found": "x", "messages": [ToolMessage("kept", tool_call_id=call_id)]})

    tools = node(remember, fatal, on_unsaved=lambda messages, _config: unsaved.extend(messages))
    graph = agent(tools, [call("remember", "a"), call("remember", "a"), call("fatal", "b")])
    with pytest.raises(ToolError, match="no money left"):
        await ask(graph)
    assert [message.type for message in unsaved] == ["ai", "tool", "tool", "tool"]
    assert [message.content for message in unsaved[1:3]] == ["kept", "kept"]
    assert error(unsaved[3])["code"] == "broke"
    await graph.aupdate_state(thread(), {"messages": unsaved}, as_node="tools")
    assert (await ask(graph, "Well?"))[-1].content == "Done."


def test_a_graph_without_a_loop() -> None:
    """`graph.invoke` works too, on a loop of the node's own; inside a running loop the error says what to call."""
    asked = [call("fast", "a", x=1), call("ours_in_thread", "b", n=2), call("boom", "c")]
    graph = agent(node(fast, ours_in_thread, boom), asked)
    done = graph.invoke({"messages": [HumanMessage("Hi.")]}, thread())
    assert [message.content for message in answers(done["messages"])][:2] == ["fast 1", "2"]

    async def inside() -> None:
        with pytest.raises(BatchStateError, match="ainvoke"):
            node(fast).invoke({"messages": []})

    asyncio.run(inside())


async def test_it_is_a_tool_node() -> None:
    """Whoever asks for a ToolNode's tools, to bind them to a model, gets LangChain tools of both kinds."""
    made = node(fast, ours, lambda_like)
    assert isinstance(made, ToolNode)
    assert (made.name, sorted(made.tools_by_name)) == ("tools", ["fast", "lambda_like", "ours"])
    assert all(isinstance(each, BaseTool) for each in made.tools_by_name.values())


def lambda_like(x: int) -> int:
    """Be a plain function."""
    return x


def test_what_it_refuses() -> None:
    """Options that can't be used, two tools of one name, and ToolNode's own hooks are refused when the node is made."""
    with pytest.raises(InvalidInputError, match="timeout"):
        node(fast, timeout=-1)
    with pytest.raises(InvalidInputError, match="two tools are named 'fast'"):
        node(fast, fast)
    with pytest.raises(InvalidInputError, match="run_id can't be given here"):
        node(fast, run_id="r")
    with pytest.raises(InvalidInputError, match="no option 'handle_tool_errors'"):
        BatchToolNode([fast], handle_tool_errors=True)  # type: ignore[call-arg]
    with pytest.raises(InvalidTypeError, match="StaleResult"):
        node(fast, audit_sinks=[5])
    for tools in (fast, "fast", None):
        with pytest.raises(InvalidTypeError, match="tools must be a list of tools"):
            BatchToolNode(tools)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="a tool must be LangChain's, toolbatch's or a function, not 5"):
        BatchToolNode([fast, 5])  # type: ignore[list-item]


async def test_input_without_calls(nothing_left: None) -> None:
    """A message without calls gives an empty update; what has no message of the model's says so."""
    graph = StateGraph(MessagesState).add_node("tools", node(fast)).add_edge(START, "tools").compile()
    state = await graph.ainvoke({"messages": [AIMessage("Hi.")]})
    assert len(state["messages"]) == 1
    with pytest.raises(InvalidInputError, match="no AIMessage"):
        await graph.ainvoke({"messages": [HumanMessage("Hi.")]})
    with pytest.raises(InvalidTypeError, match="'messages'"):
        await node(fast).ainvoke({"other": []})


def test_the_condition_routes_to_the_node_for_broken_calls_too() -> None:
    """A message of nothing but `invalid_tool_calls` has to be answered as well; LangGraph's own condition ends there."""
    broken = AIMessage(
        "", invalid_tool_calls=[{"name": "f", "args": "{", "id": "a", "error": None, "type": "invalid_tool_call"}]
    )
    assert tools_condition({"messages": [broken]}) == "tools"
    assert tools_condition([AIMessage("", tool_calls=[call("f", "a")])]) == "tools"
    assert tools_condition({"chat": [AIMessage("Hi.")]}, messages_key="chat") == "__end__"
    with pytest.raises(InvalidInputError, match="no messages"):
        tools_condition({"messages": []})
