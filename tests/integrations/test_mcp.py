"""MCP on both sides: real clients and servers, over memory streams and the direct way in process, and once over stdio."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, ClientSession, MCPError, StdioServerParameters, stdio_client
from mcp.server import Server, ServerRequestContext
from mcp.shared.memory import create_client_server_memory_streams

from tests.batch.clock import now, turned
from tests.batch.kit import Hung, Stubborn, breathe, forever, turn
from tests.batch.stages import decides
from toolbatch import (
    Document,
    Image,
    Json,
    ResourceLink,
    StaleResult,
    Text,
    ToolBatch,
    ToolCall,
    ToolCatalog,
    ToolError,
    current_call,
    tool,
)
from toolbatch.batch import DurableOperations
from toolbatch.core import (
    Closed,
    Failed,
    InvalidInputError,
    InvalidTypeError,
    RichSucceeded,
    Settlement,
    Snapshot,
    Succeeded,
)
from toolbatch.integrations.mcp import ToolHandlers, serve, tools_of
from toolbatch.operations import MemoryJournal, MemoryOperationStore
from toolbatch.ports import Deny

MODES = ["legacy", "auto"]
"""JSON-RPC over memory streams after a handshake, and the direct way of the newest protocol."""


async def ran(tools: Any, *calls: ToolCall, **options: Any) -> dict[str, Settlement]:
    """Run these calls with these tools, and return how each ended."""
    async with ToolBatch(calls, tools=tools, **options) as batch:
        batch.start_all()
    assert batch.result is not None
    return ends(batch.result)


def ends(snapshot: Snapshot) -> dict[str, Settlement]:
    """How each call ended."""
    return {call.id: settlement for call, settlement in snapshot.settled()}


def answering(**results: types.CallToolResult) -> Server[Any]:
    """A server, not of ours, whose tools give these results."""

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in results])

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return results[params.name]

    return Server("foreign", on_list_tools=list_tools, on_call_tool=call_tool)


# -- as a client ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
async def test_a_batch_runs_a_servers_tools(mode: str, nothing_left: None) -> None:
    """Names, descriptions and schemas are the server's; results, failures and media arrive as what they are (P5)."""

    @tool
    async def look(city: str) -> dict[str, str]:
        """Look up the weather."""
        return {"city": city}

    @tool
    async def shot() -> Any:
        """Take a picture."""
        return ["see", Image.of(b"png", "image/png")]

    @tool
    async def boom() -> None:
        """Fail."""
        raise ValueError("boom")

    async with Client(serve("s", [look, shot, boom]), mode=mode) as client:
        tools = ToolCatalog(await tools_of(client, prefix="w."))
        assert list(tools) == ["w.look", "w.shot", "w.boom"]
        assert tools["w.look"].description == "Look up the weather."
        assert tools["w.look"].schema["required"] == ["city"]
        calls = [
            ToolCall("a", "w.look", {"city": "Oslo"}),
            ToolCall("b", "w.shot"),
            ToolCall("c", "w.boom"),
            ToolCall("d", "w.look", {"city": 3}),
        ]
        async with ToolBatch(calls, tools=tools) as batch:
            batch.start_all()
        assert batch.result is not None
        found = ends(batch.result)
        assert found["a"] == Succeeded('{"city":"Oslo"}')
        assert found["b"].parts == (Text("see"), Image.of(b"png", "image/png"))
        assert found["c"] == Failed("tool_error", "boom")
        assert found["d"].code == "invalid_arguments"
        assert batch.meta == {"a": {"city": "Oslo"}}
        assert (await tools["w.look"]({"city": "Rome"})).structured_content == {"city": "Rome"}


@pytest.mark.parametrize("mode", MODES)
@turned
async def test_39_a_call_that_times_out_is_cancelled_at_the_server(mode: str) -> None:
    """39, 41: one cancellation a call reaches the server, its late answer harms nobody, and the session goes on."""
    seen: list[str] = []

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="hang", input_schema={"type": "object"})])

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.arguments:
            return types.CallToolResult(content=[types.TextContent(text="still here")])
        try:
            await forever()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async with Client(Server("s", on_list_tools=list_tools, on_call_tool=call_tool), mode=mode) as client:
        tools = ToolCatalog(await tools_of(client))
        found = await ran(tools, *[ToolCall(f"c{n}", "hang") for n in range(50)], call_timeout=0.2)
        assert now() == 0.2
        assert {(end.code, end.side_effect_state) for end in found.values()} == {("timeout", "unknown")}
        await turn(20)
        assert seen == ["cancelled"] * 50
        again = await ran(tools, ToolCall("d", "hang", {"x": 1}))
        assert again["d"] == Succeeded("still here")


@pytest.mark.parametrize("mode", MODES)
@turned
async def test_a_host_that_is_cancelled_cancels_at_the_server(mode: str) -> None:
    """2: a stop by the host travels as far as the server, and passes through."""
    started, stopped = asyncio.Event(), asyncio.Event()

    @tool
    async def hang() -> None:
        """Hang."""
        started.set()
        try:
            await forever()
        finally:
            stopped.set()

    async with Client(serve("s", [hang]), mode=mode) as client:
        tools = ToolCatalog(await tools_of(client))
        batch = ToolBatch([ToolCall("a", "hang")], tools=tools)

        async def host() -> None:
            async with batch:
                batch.start_all()

        task = asyncio.ensure_future(host())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await stopped.wait()
        assert batch.result is not None
        assert ends(batch.result)["a"].code == "request_aborted"
        assert batch.outcomes["a"].cancellation == "acknowledged"


@pytest.mark.parametrize("mode", MODES)
@turned
async def test_a_servers_progress_is_the_calls(mode: str) -> None:
    """B19: what the server has told is in the outcome of a call that was cut off, with numbers, total and message."""

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="work", input_schema={"type": "object"})])

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        await context.session.report_progress(1)
        await context.session.report_progress(3, 10, "rows read")
        await forever()

    events: list[str] = []

    def hear(event: Any) -> None:
        if hasattr(event, "content"):
            events.append(event.content)

    async with Client(Server("s", on_list_tools=list_tools, on_call_tool=call_tool), mode=mode) as client:
        tools = ToolCatalog(await tools_of(client))
        found = await ran(tools, ToolCall("a", "work"), call_timeout=0.2, on_event=hear)
    assert events == ["1", "3 of 10: rows read"]
    assert isinstance(found["a"], Closed)
    assert found["a"].partial == "1\n3 of 10: rows read"


async def test_every_sort_of_content_is_read(nothing_left: None) -> None:
    """Text, images, audio, links and resources are parts; structured content alone is JSON; what is broken is data (LANES 9)."""
    blocks: list[Any] = [
        types.TextContent(text="see"),
        types.ImageContent(data="cG5n", mime_type="image/png"),
        types.AudioContent(data="UklGRg==", mime_type="audio/wav"),
        types.ResourceLink(
            uri="https://example.org/r", name="r", mime_type="text/plain; charset=utf-8", description=""
        ),
        types.EmbeddedResource(
            resource=types.TextResourceContents(uri="file:///a.txt", text="hi", mime_type="text/plain")
        ),
        types.EmbeddedResource(resource=types.BlobResourceContents(uri="file:///a.bin", blob="AAE=")),
        types.EmbeddedResource(resource=types.TextResourceContents(uri="file:///e.txt", text="")),
        types.ImageContent(data="not base64!", mime_type="image/png"),
    ]
    server = answering(
        all=types.CallToolResult(content=blocks),
        data=types.CallToolResult(content=[], structured_content={"n": [1]}),
        empty=types.CallToolResult(content=[]),
        both=types.CallToolResult(content=[types.TextContent(text="short")], structured_content={"long": True}),
    )
    async with Client(server) as client:
        tools = ToolCatalog(await tools_of(client))
        calls = [ToolCall(name, name) for name in ("all", "data", "empty", "both")]
        async with ToolBatch(calls, tools=tools) as batch:
            batch.start_all()
    assert batch.result is not None
    found = ends(batch.result)
    assert isinstance(found["all"], RichSucceeded)
    assert found["all"].parts[:7] == (
        Text("see"),
        Image.of(b"png", "image/png"),
        Document.of(b"RIFF", "audio/wav"),
        ResourceLink("https://example.org/r", "r", "text/plain"),
        Document.of(b"hi", "text/plain", "file:///a.txt"),
        Document.of(b"\x00\x01", "application/octet-stream", "file:///a.bin"),
        Text(""),
    )
    broken = found["all"].parts[7]
    assert isinstance(broken, Json)
    assert "not base64!" in broken.text
    assert found["data"].parts == (Json({"n": [1]}),)
    assert (found["empty"].content, found["both"].content) == ("", "short")
    assert batch.meta == {"data": {"n": [1]}, "both": {"long": True}}


async def test_failures_of_a_foreign_server(nothing_left: None) -> None:
    """`isError` is a failure with the server's words; so is a protocol error, and silence (LANES 9)."""
    server = answering(
        said=types.CallToolResult(content=[types.TextContent(text="no such city")], is_error=True),
        silent=types.CallToolResult(content=[], is_error=True),
        ours=types.CallToolResult(
            content=[types.TextContent(text='{"error":{"code":"busy","message":"later"}}')], is_error=True
        ),
        odd=types.CallToolResult(content=[types.TextContent(text='{"error":{"code":7,"message":" "}}')], is_error=True),
    )
    async with Client(server) as client:
        tools = ToolCatalog(await tools_of(client))
        found = await ran(tools, *[ToolCall(name, name) for name in tools])
        assert found["said"] == Failed("tool_error", "no such city")
        assert found["silent"].message == "The tool failed, and did not say why."
        assert found["ours"] == Failed("busy", "later")
        assert found["odd"].message == '{"error":{"code":7,"message":" "}}'
        gone = tools["said"]
    found = await ran({"said": gone}, ToolCall("a", "said"))  # the client has left
    assert found["a"].status == "error"


@pytest.mark.parametrize("mode", MODES)
async def test_all_pages_are_read_and_odd_tools_are_left_out(
    mode: str, nothing_left: None, caplog: pytest.LogCaptureFixture
) -> None:
    """Pagination; names that no provider takes are put right and called by their own; a schema that can't be used is logged."""
    called: list[str] = []
    pages: dict[str | None, Any] = {
        None: (
            [("a b", {"type": "object"}), ("bad", {"type": "object", "properties": {"q": {"$ref": "#/nowhere"}}})],
            "1",
        ),
        "1": ([("a_b", {"type": "object"}), ("x" * 200, {"type": "object"})], "2"),
        "2": ([("é", {"type": "object", "properties": {"q": {"$ref": "https://example.org/s"}}})], None),
    }

    async def list_tools(context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        rows, cursor = pages[None if params is None else params.cursor]
        return types.ListToolsResult(
            tools=[types.Tool(name=name, input_schema=schema) for name, schema in rows], next_cursor=cursor
        )

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        called.append(params.name)
        return types.CallToolResult(content=[])

    async with Client(Server("s", on_list_tools=list_tools, on_call_tool=call_tool), mode=mode) as client:
        tools = ToolCatalog(await tools_of(client, timeout=9))
        assert list(tools) == ["a_b", "a_b_2", "x" * 128]
        assert {each.timeout for each in tools.values()} == {9}
        await ran(tools, *[ToolCall(name, name) for name in tools])
    assert called == ["a b", "a_b", "x" * 200]
    assert "'bad' is left out" in caplog.text
    assert "'é' is left out" in caplog.text


async def test_a_list_without_an_end(nothing_left: None) -> None:
    """A server that pages for ever is refused; one that repeats its cursor has ended."""
    count = 0

    async def endless(context: Any, params: Any) -> types.ListToolsResult:
        nonlocal count
        count += 1
        return types.ListToolsResult(tools=[], next_cursor=f"{count}")

    async def stuck(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="a", input_schema={"type": "object"})], next_cursor="same")

    async with Client(Server("s", on_list_tools=endless)) as client:
        with pytest.raises(InvalidInputError, match="no end"):
            await tools_of(client)
    async with Client(Server("s", on_list_tools=stuck)) as client:
        assert [each.name for each in await tools_of(client)] == ["a", "a_2"]


async def test_the_hosts_own_mistakes_are_told(nothing_left: None) -> None:
    """An option that can't be used is the host's mistake, and no reason to leave tools out."""
    async with Client(serve("s", [forever])) as client:
        with pytest.raises(InvalidInputError, match="timeout"):
            await tools_of(client, timeout=-1)
        with pytest.raises(InvalidTypeError, match="parallel"):
            await tools_of(client, parallel="yes")  # type: ignore[arg-type]


async def test_a_bare_session_works_as_well(nothing_left: None) -> None:
    """Over memory streams, without the SDK's client around them."""

    @tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    server = serve("s", [add], version="1", instructions="Count with it.")
    async with create_client_server_memory_streams() as (client_streams, server_streams):
        running = asyncio.ensure_future(server.run(*server_streams, server.create_initialization_options()))
        async with ClientSession(*client_streams) as session:
            initialized = await session.initialize()
            assert initialized.instructions == "Count with it."
            tools = ToolCatalog(await tools_of(session))
            found = await ran(tools, ToolCall("a", "add", {"a": 1, "b": 2}))
            assert found["a"] == Succeeded("3")
    await running


# -- as a server ---------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def serving(*tools: Any, mode: str = "legacy", **options: Any) -> AsyncIterator[Client]:
    """A client of a server of ours."""
    async with Client(serve("s", list(tools), **options), mode=mode) as client:
        yield client


def text(result: types.CallToolResult) -> str:
    """What a result says."""
    return "".join(block.text for block in result.content if isinstance(block, types.TextContent))


@pytest.mark.parametrize("mode", MODES)
@turned
async def test_a_tool_that_will_not_stop_delays_no_answer(mode: str) -> None:
    """B, C: the client has its answer at the timeout, from the loop and from a thread; what comes late is evidence."""
    late: list[StaleResult] = []
    bodies: Any = Stubborn("late"), Hung("late")

    @tool
    async def stubborn() -> Any:
        """Swallow cancellations."""
        return await bodies[0]()

    @tool
    def blocking() -> Any:
        """Block."""
        return bodies[1]()

    @tool
    async def watch() -> str:
        """Keep the clock from jumping until the thread is there."""
        while not bodies[1].entered.is_set():
            await breathe()
        return threading.current_thread().name

    options: Any = {"call_timeout": 0.2, "teardown_timeout": 0.05, "audit_sinks": [late.append]}
    async with serving(stubborn, blocking, watch, mode=mode, **options) as client:
        results = await asyncio.gather(*[client.call_tool(name) for name in ("stubborn", "blocking", "watch")])
        assert now() == 0.25
        assert [result.is_error for result in results] == [True, True, False]
        assert all('"code":"timeout"' in text(result) for result in results[:2])
        for body in bodies:
            body.release.set()
        while len(late) < 2:
            await breathe()
    assert {(stale.name, stale.observed_status) for stale in late} == {("stubborn", "success"), ("blocking", "success")}


@pytest.mark.parametrize("mode", MODES)
async def test_42_progress_and_generators(mode: str, nothing_left: None) -> None:
    """42: an async generator's last item is the result, the others are progress; so is what a tool or its thread reports."""

    @tool
    async def steps() -> Any:
        """Count."""
        for n in range(3):
            yield {"n": n}

    @tool
    def threaded() -> str:
        """Report from a thread."""
        current_call().progress("half")
        return "done"

    heard: list[Any] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async with serving(steps, threaded, mode=mode) as client:
        result = await client.call_tool("steps", progress_callback=hear)
        assert (text(result), result.structured_content) == ('{"n":2}', {"n": 2})
        assert heard == [(1, '{"n":0}'), (2, '{"n":1}')]
        assert text(await client.call_tool("threaded", progress_callback=hear)) == "done"
        assert heard[2:] == [(1, "half")]
        assert text(await client.call_tool("threaded")) == "done"  # nobody asked for progress


async def test_progress_that_cannot_be_sent_fails_nothing(nothing_left: None) -> None:
    """A client that is rude to its own callback has its result all the same."""

    @tool
    async def chatty() -> str:
        """Report."""
        current_call().progress("x")
        await turn(5)
        return "done"

    async def rude(progress: float, total: float | None, message: str | None) -> None:
        raise OSError("rude")

    async with serving(chatty, mode="auto") as client:
        assert text(await client.call_tool("chatty", progress_callback=rude)) == "done"


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cancels_stops_the_tool(mode: str, nothing_left: None) -> None:
    """A request's cancellation closes its batch as aborted; the next request is answered."""
    outcomes: list[Any] = []
    started = asyncio.Event()

    @tool
    async def hang() -> None:
        """Hang."""
        started.set()
        await forever()

    async with serving(hang, mode=mode, on_outcome=outcomes.append) as client:
        task = asyncio.ensure_future(client.call_tool("hang"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not outcomes:
            await turn()
        assert (await client.call_tool("hang", {"x": 1})).is_error  # one it knows nothing of
    assert outcomes[0].status == "cancelled"


async def test_what_cannot_run_and_what_ends_a_request(nothing_left: None) -> None:
    """An unknown tool is an error of the request, as the protocol wants it; bad arguments are the model's to put right."""

    @tool
    async def fatal() -> None:
        """End it."""
        raise ToolError.fatal("no money left")

    @tool
    async def add(a: int) -> int:
        """Add."""
        return a

    async with serving(fatal, add) as client:
        with pytest.raises(MCPError, match="Did you mean add") as caught:
            await client.call_tool("ad")
        assert caught.value.code == types.INVALID_PARAMS
        result = await client.call_tool("add", {"a": "x"})
        assert result.is_error
        assert "a: Input should be a valid integer" in text(result)
        with pytest.raises(MCPError, match="no money left"):
            await client.call_tool("fatal")


async def test_a_catalog_may_change_while_the_server_runs(nothing_left: None) -> None:
    """T2: tools that come and go are listed and called as they are at that moment."""
    catalog = ToolCatalog()
    handlers = ToolHandlers(catalog)
    async with Client(
        Server("s", on_list_tools=handlers.list_tools, on_call_tool=handlers.call_tool), mode="legacy"
    ) as client:
        assert (await client.list_tools(cache_mode="refresh")).tools == []
        remove = catalog.register(tool(name="late")(lambda: "here"))
        (listed,) = (await client.list_tools(cache_mode="refresh")).tools
        assert (listed.name, text(await client.call_tool("late"))) == ("late", "here")
        remove()
        with pytest.raises(MCPError):
            await client.call_tool("late")


def test_what_a_server_refuses() -> None:
    """Bad options and two tools of one name are refused before anything is served."""
    with pytest.raises(InvalidInputError, match="call_timeout"):
        serve("s", [forever], call_timeout=-1)
    with pytest.raises(InvalidInputError, match="named 'forever'"):
        serve("s", [forever, forever])
    with pytest.raises(InvalidInputError, match="resume"):
        ToolHandlers([forever], resume=None)  # type: ignore[call-arg]


# -- over stdio ------------------------------------------------------------------------------------------------------------------


def test_over_stdio() -> None:
    """Two processes: results, progress, and a cancellation that the server's tool hears of."""
    asyncio.run(over_stdio())


def in_a_process() -> StdioServerParameters:
    """How to start the server."""
    script = Path(__file__).with_name("mcp_server.py")
    root = script.parent.parent.parent
    return StdioServerParameters(command=sys.executable, args=["-W", "error", str(script)], cwd=root)


def test_a_server_that_dies_leaves_the_outcome_unknown() -> None:
    """All that it was at work on may have had its effect; nothing of it is told as failed, and a durable operation stays open."""
    asyncio.run(dying())


async def dying() -> None:
    """The same on a loop."""
    store = MemoryOperationStore()
    async with Client(stdio_client(in_a_process())) as client:
        tools = ToolCatalog(await tools_of(client))
        hooks = [DurableOperations(store, tenant="t")]
        found = await ran(tools, ToolCall("a", "hang"), ToolCall("b", "die"), interceptors=hooks, run_id="run")
        for end in found.values():
            assert isinstance(end, Closed)
            assert (end.status, end.code, end.side_effect_state) == ("error", "outcome_unknown", "unknown")
            assert end.message.endswith("verify that before repeating it.")
        assert {record.id for record in await store.unresolved()} == {"t/run/a", "t/run/b"}


async def over_stdio() -> None:
    """The same on a loop."""
    async with Client(stdio_client(in_a_process())) as client:
        tools = ToolCatalog(await tools_of(client))
        heard: list[str] = []

        def hear(event: Any) -> None:
            if hasattr(event, "content"):
                heard.append(event.content)

        answered = asyncio.Semaphore(0)
        calls = [ToolCall("a", "add", {"a": 1, "b": 2}), ToolCall("b", "hang"), ToolCall("c", "add", {"a": "x"})]
        async with ToolBatch(calls, tools=tools, on_event=hear, on_outcome=lambda _: answered.release()) as batch:
            batch.start_all()
            await answered.acquire()
            await answered.acquire()
            batch.cancel("b")
        assert batch.result is not None
        found = ends(batch.result)
        assert found["a"] == Succeeded('{"sum":3}')
        assert (found["b"].code, found["c"].code) == ("cancelled", "invalid_arguments")
        assert heard == ["1: adding"]
        assert (await ran(tools, ToolCall("d", "was_stopped")))["d"] == Succeeded("true")


async def test_policies_that_can_be_read_once_hold_for_every_request() -> None:
    """Such as a generator: what it denies the first time it denies the second time, too."""
    async with Client(serve("s", [wait_for_nothing], interceptors=(one for one in [decides(Deny("no"))]))) as client:
        results = [await client.call_tool("wait_for_nothing", {}) for _ in range(2)]
    assert [result.is_error for result in results] == [True, True]


async def wait_for_nothing() -> str:
    """Return at once."""
    return "done"


@pytest.mark.parametrize("option", ["interceptors", "journal"])
def test_what_needs_a_run_is_refused_at_once(option: str) -> None:
    """And not by each request, whose client would lose its connection."""
    options: Any = {
        "interceptors": [DurableOperations(MemoryOperationStore(), tenant="t")] if option == "interceptors" else (),
        "journal": MemoryJournal() if option == "journal" else None,
    }
    with pytest.raises(InvalidInputError, match="nothing names the run"):
        serve("s", [wait_for_nothing], **options)
