"""MCP: requests and their results, and the sampled turns of a server that runs its own tools."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    CreateMessageResultWithTools,
    JSONRPCRequest,
    ListToolsResult,
    SamplingCapability,
    SamplingMessage,
    SamplingToolsCapability,
    TextContent,
    Tool,
    ToolUseContent,
)
from mcp_types.methods import validate_server_result
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

from tests.providers.outcomes import PNG, ended, outcomes, succeeded
from tests.providers.support import settled
from tests.providers.test_properties import announced, endings, possible
from tests.providers.wires import SAMPLING, sampled, use
from toolbatch import ToolBatch
from toolbatch.core import Document, Image, InvalidTypeError, Json, ResourceLink, Snapshot, Text, Url
from toolbatch.providers import mcp

USER = SAMPLING.user
PICTURE = Image.of(PNG, "image/png")
PARAMS = {"name": "add", "arguments": {"a": 1}}


def request(call_id: Any = 1, params: Any = PARAMS) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "method": "tools/call", "params": params}


def result_of(*values: Any) -> dict[str, Any]:
    """The result of a request whose tool returned these parts, or this value."""
    value = values[0] if len(values) == 1 else list(values)
    result: dict[str, Any]
    (result,) = mcp.results(succeeded(mcp.calls(request()), value))
    for version in KNOWN_PROTOCOL_VERSIONS:
        validate_server_result("tools/call", version, result)
    assert CallToolResult.model_validate(result).model_dump(by_alias=True, exclude_unset=True) == result
    return result


@pytest.mark.parametrize(
    "form",
    [
        request("a"),
        JSONRPCRequest.model_validate(request("a")),
        JSONRPCRequest.model_validate(request("a")).model_dump(),
        [request("a")],
    ],
)
def test_json_rpc_requests(form: Any) -> None:
    """As JSON, as the SDK's object, or several in a list (P1)."""
    (call,) = mcp.calls(form)
    assert (call.id, call.name, call.arguments, call.problem) == ("a", "add", {"a": 1}, None)


@pytest.mark.parametrize(
    "form",
    [
        PARAMS,
        CallToolRequestParams.model_validate(PARAMS),
        CallToolRequestParams.model_validate(PARAMS).model_dump(),
        CallToolRequest(params=CallToolRequestParams.model_validate(PARAMS)),
        CallToolRequest(params=CallToolRequestParams.model_validate(PARAMS)).model_dump(),
        {"method": "tools/call", "params": PARAMS},
    ],
)
def test_requests_without_an_id(form: Any) -> None:
    """What a server's handler gets has none: ours is the same when it is read again (P1, P6)."""
    (call,) = mcp.calls(form)
    assert (call.name, call.arguments, call.wire_id) == ("add", {"a": 1}, "")
    assert mcp.calls(form) == [call]


def test_several_requests() -> None:
    """Ids of JSON-RPC are text or numbers; those that are the same as text, or missing, are told apart all the same (P6)."""
    requests = [request(3), request("3"), request(None), request(True), request("x", None), request("y", {"name": "f"})]
    calls = mcp.calls(requests)
    assert [call.id for call in calls][::4] == ["3", "x"]
    assert len({call.id for call in calls} - {"True"}) == 6
    assert [call.name for call in calls][-2:] == ["unnamed_tool", "f"]
    assert [call.problem is None for call in calls] == [True, True, True, True, False, True]
    results = mcp.results(succeeded(calls, *"abcdef"))
    assert [result["content"][0]["text"] for result in results] == list("abcdef")
    assert mcp.calls([]) == []


@pytest.mark.parametrize(
    "stranger",
    [
        {**request(), "method": "tools/list"},
        {**request(), "method": 7},
        {"name": "f", "inputSchema": {}},
        Tool(name="f", input_schema={}),
        {"name": "f", "type": "text"},
        ResourceLink("https://example.org", "f"),
        Path("f"),
        {"name": 7},
        [PARAMS, "text"],
        {"role": "user", "content": []},
        {"role": "assistant", "content": "text"},
        {"role": "assistant"},
    ],
)
def test_what_is_no_request(stranger: Any) -> None:
    """Another request, and what only has a name, run no tool."""
    with pytest.raises(InvalidTypeError, match="response must be a tools/call request or a sampled message"):
        mcp.calls(stranger)


def test_an_object_is_text_and_structured() -> None:
    """Clients read one or the other, so both are there; what is no object is text alone, as the older revisions want (LANES 9)."""
    assert result_of({"a": 1}) == {
        "content": [{"type": "text", "text": '{"a":1}'}],
        "structuredContent": {"a": 1},
        "resultType": "complete",
    }
    for value in ([1], "text", "", 7, None, {"n": 2**53 + 1}, "{", [Json([1])], [Json({}), Json({})], [Text("{}")]):
        assert "structuredContent" not in result_of(value)
    rich = result_of(Text("Look:"), Json({"a": 1}), PICTURE)
    assert [block["type"] for block in rich["content"]] == ["text", "text", "image"]
    assert rich["structuredContent"] == {"a": 1}


def test_every_part_is_carried() -> None:
    """Nothing has to be said in words: bytes are blocks, addresses are links (P5, LANES 9; FIELD 113)."""
    result = result_of(
        PICTURE,
        Document.of(b"RIFF", "audio/wav", "a.wav"),
        Document.of(b"%PDF", "application/pdf", "é/a.pdf"),
        Document.of(b"hello", "text/plain"),
        Document.of(b"\xff", "text/plain"),
        Image(Url("https://example.org/a.png", "image/png")),
        Document(Url("s3://bucket/a"), "a"),
        ResourceLink("db://table/1", "Row", "text/csv", "One row."),
    )
    image, audio, pdf, text, binary, picture, bucket, row = result["content"]
    assert image == {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
    assert audio == {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
    assert pdf["resource"]["blob"] == "JVBERg=="
    assert pdf["resource"]["uri"].endswith("/%C3%A9%2Fa.pdf")
    assert text["resource"]["text"] == "hello"
    assert "blob" in binary["resource"]
    assert len({block["resource"]["uri"] for block in (pdf, text, binary)}) == 3
    assert picture == {
        "type": "resource_link",
        "uri": "https://example.org/a.png",
        "name": "image",
        "mimeType": "image/png",
    }
    assert bucket == {"type": "resource_link", "uri": "s3://bucket/a", "name": "a"}
    assert row == {
        "type": "resource_link",
        "uri": "db://table/1",
        "name": "Row",
        "mimeType": "text/csv",
        "description": "One row.",
    }
    assert set(mcp.CARRIES.values()) == {"text", "nested"}


def test_a_failure_keeps_its_text() -> None:
    """`isError` marks it, and its content says what went wrong: other converters lose that (P4, LANES 9)."""
    calls = mcp.calls([request(1), request(2)])
    reported, synthetic = mcp.results(ended(calls, [("error", "no such row"), ("started", None)]))
    assert reported["isError"] is True
    assert json.loads(reported["content"][0]["text"])["error"] == {"code": "tool_error", "message": "no such row"}
    assert json.loads(synthetic["content"][0]["text"])["error"]["side_effect_state"] == "unknown"
    assert "structuredContent" not in reported
    for version in KNOWN_PROTOCOL_VERSIONS:
        validate_server_result("tools/call", version, reported)


@settings(deadline=None)
@given(calls=announced, ends=endings)
def test_results_are_valid_in_every_revision(calls: list[Any], ends: list[Any]) -> None:
    """Any requests, any outcomes: each gets one result that every revision of the protocol takes (P5, P6)."""
    requests = [request(call_id, {"name": name, "arguments": arguments}) for call_id, name, arguments in calls]
    announced_calls = mcp.calls(requests)
    assert len(announced_calls) == len(calls)
    results = mcp.results(ended(announced_calls, possible(announced_calls, ends)))
    assert len(results) == len(calls)
    for result in results:
        for version in KNOWN_PROTOCOL_VERSIONS:
            validate_server_result("tools/call", version, result)
        json.dumps(result, ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize("form", [request(), PARAMS, [request()], [], CallToolRequestParams.model_validate(PARAMS)])
def test_a_request_has_no_conversation(form: Any) -> None:
    """There is nothing to extend: it is answered with `results`, and the list stays as it was (P1)."""
    messages = [USER]
    with pytest.raises(InvalidTypeError, match="answer it with results"):
        mcp.extend(messages, form, settled(mcp.calls(form)))
    assert messages == [USER]


def test_a_sampled_turn() -> None:
    """Blocks go back under the wire's names, results in one message with nothing else, failures marked (P2, P4)."""
    said = {"type": "text", "text": "Let me look.", "annotations": {"lastModified": "2026"}, "_meta": {"k": 1}}
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    response = sampled(said, image, use("a", "f", {"mime_type": 1}, _meta={"cache": 1}), use("b", "g"))
    calls = mcp.calls(response)
    for form in SAMPLING.forms(response):
        turn: list[Any] = [USER]
        mcp.extend(turn, form, ended(calls, [("success", [Json({"x": 1}), PICTURE]), ("error", "no")]))
        assert turn[1] == {"role": "assistant", "content": response["content"]}
        assert SAMPLING.refused(turn) is None
        first, second = turn[2]["content"]
        assert [block["type"] for block in first.pop("content")] == ["text", "image"]
        assert first == {"type": "tool_result", "toolUseId": "a", "structuredContent": {"x": 1}}
        assert (second["toolUseId"], second["isError"]) == ("b", True)
        assert len(turn) == 3


def test_one_block_is_in_no_array() -> None:
    """Older revisions have one block a message; it stays one."""
    one = {"role": "assistant", "content": use("a"), "model": "m", "stopReason": "toolUse"}
    turn = SAMPLING.extended(one)
    assert turn[1] == {"role": "assistant", "content": use("a")}
    made = CreateMessageResultWithTools(
        role="assistant", model="m", content=ToolUseContent(name="lookup", id="a", input={}), stop_reason="toolUse"
    )
    assert SAMPLING.extended(made) == turn
    messages: list[Any] = [SamplingMessage(role="user", content=TextContent(text="Hi."))]
    mcp.extend(messages, made, settled(mcp.calls(made)))
    assert messages[1:] == turn[1:]
    with pytest.raises(Exception, match="without a result"):
        mcp.extend([turn[0], turn[1]], made, settled(mcp.calls(made)))


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("toolUse", None),
        ("tool_use", None),
        (None, None),
        ("maxTokens", "response_truncated"),
        ("stopSequence", "response_truncated"),
        ("endTurn", "not_requested"),
        ("something", "not_requested"),
    ],
)
def test_the_stop_reason_decides_what_may_run(reason: Any, code: str | None) -> None:
    """A message that ended otherwise than by asking for tools has calls that are answered and not run (P6)."""
    for form in SAMPLING.forms(sampled(use(), stop_reason=reason)):
        (call,) = mcp.calls(form)
        assert (call.problem.code if call.problem else None) == code


def test_ids_are_distinct_over_the_whole_request() -> None:
    """Whose model is behind the client is unknown, and one of them wants that (LANES 3; FIELD 58); bare results mirror the provider."""
    messages: list[Any] = [USER]
    for _ in range(3):
        SAMPLING.extended(sampled(use("a"), use("a"), use(None)), messages=messages)
    assert SAMPLING.refused(messages) is None
    calls = mcp.calls(sampled(use("a"), use("a"), use(None)))
    assert [block["toolUseId"] for block in mcp.results(settled(calls))] == ["a", "a", calls[2].id]


@settings(deadline=None, max_examples=50)
@given(ends=st.lists(outcomes, min_size=2, max_size=2))
def test_a_client_gets_what_a_tool_returned(ends: list[Any]) -> None:
    """What the SDK makes of a result is what was written: nothing is dropped on its way to the model (P5)."""
    for result in mcp.results(ended(mcp.calls([request(1), request(2)]), ends)):
        read = CallToolResult.model_validate(json.loads(json.dumps(result)))
        assert read.model_dump(by_alias=True, exclude_unset=True) == result
        assert read.is_error == result.get("isError", False)


TOOLS: dict[str, Any] = {
    "add": lambda a, b: {"sum": a + b},
    "photo": lambda: [Text("Look:"), PICTURE],
    "fail": lambda: 1 / 0,
}


async def run(calls: Any) -> Snapshot:
    batch = ToolBatch(calls, tools=TOOLS, timeout=5)
    async with batch:
        batch.start_all()
    assert batch.result is not None
    return batch.result


async def answer(_context: Any, params: CallToolRequestParams) -> CallToolResult:
    """A server's handler: one request is one batch."""
    (result,) = mcp.results(await run(mcp.calls(params)))
    return CallToolResult.model_validate(result)


async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name=name, input_schema={"type": "object"}) for name in TOOLS])


async def test_a_real_client_calls_a_real_server() -> None:
    """Objects, pictures, failures and unknown tools arrive at the client as they were written."""
    async with Client(Server("s", on_list_tools=list_tools, on_call_tool=answer)) as client:
        added = await client.call_tool("add", {"a": 1, "b": 2})
        assert (added.structured_content, added.is_error) == ({"sum": 3}, False)
        photo = await client.call_tool("photo")
        assert [block.type for block in photo.content] == ["text", "image"]
        for name, code in (("fail", "tool_error"), ("nothing", "unknown_tool")):
            failed = await client.call_tool(name)
            assert failed.is_error
            assert isinstance(failed.content[0], TextContent)
            assert json.loads(failed.content[0].text)["error"]["code"] == code


async def sample(context: Any, _params: CallToolRequestParams) -> CallToolResult:
    """A server's handler that samples with tools until the model is done."""
    messages: list[Any] = [USER]
    tools = (await list_tools(None, None)).tools
    while True:
        sent = [SamplingMessage.model_validate(message) for message in messages]
        response = await context.session.create_message(sent, max_tokens=9, tools=tools)
        calls = mcp.calls(response)
        mcp.extend(messages, response, await run(calls))
        if not calls:
            return CallToolResult(content=[TextContent(text=json.dumps(messages))])


@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")  # sampling is on its way out
async def test_a_real_server_samples_with_tools() -> None:
    """The SDK's own check of each request passes, and every call of the model's is answered."""
    announced_calls = sampled(use("a", "add", {"a": 1, "b": 2}), use("a", "fail"))
    replies = [announced_calls, sampled({"type": "text", "text": "3"}, stop_reason="endTurn")]
    seen: list[Any] = []

    async def model(_context: Any, params: Any) -> CreateMessageResultWithTools:
        seen.append(params.messages)
        return CreateMessageResultWithTools.model_validate(replies.pop(0))

    answering: Any = model  # the SDK's type has the result without tools only
    capabilities = SamplingCapability(tools=SamplingToolsCapability())
    server = Server("s", on_list_tools=list_tools, on_call_tool=sample)
    async with Client(server, sampling_callback=answering, sampling_capabilities=capabilities, mode="legacy") as client:
        result = await client.call_tool("ask")
    assert not result.is_error
    results = seen[1][2].content
    assert [block.is_error for block in results] == [None, True]
    assert results[0].structured_content == {"sum": 3}
    assert len({block.tool_use_id for block in results}) == 2
