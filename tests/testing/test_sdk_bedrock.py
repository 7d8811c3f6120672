"""The real `boto3` client on Converse, with a batch between its rounds."""

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

import boto3  # type: ignore[import-untyped]
import httpx
import pytest
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import ClientError, ParamValidationError  # type: ignore[import-untyped]

from tests.testing.transcripts import Json
from toolbatch import Document, Image, ToolBatch
from toolbatch.providers import bedrock
from toolbatch.testing import FakeProvider, Reply, ScriptedCall

OSLO = ScriptedCall("tooluse_1", "weather", {"city": "Oslo"})
ROME = ScriptedCall("tooluse_2", "weather", {"city": "Rome"})
TOOL_CONFIG: Json = {"tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": {"type": "object"}}}}]}
CLAUDE = "anthropic.claude-sonnet-4-5-v1:0"


def connect(provider: FakeProvider) -> Any:
    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=provider.bedrock_endpoint_url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"max_attempts": 0}),
    )


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider([Reply("Let me look.", [OSLO, ROME], thinking="Two."), Reply("4 degrees.")]) as provider:
        yield provider


@pytest.fixture
def client(provider: FakeProvider) -> Iterator[Any]:
    client = connect(provider)
    yield client
    client.close()


def question() -> list[Any]:
    return [{"role": "user", "content": [{"text": "Hi."}]}]


def ask(client: Any, messages: list[Any], model: str = CLAUDE) -> Json:
    answer: Json = client.converse(modelId=model, messages=messages, toolConfig=TOOL_CONFIG)
    return answer


def refused(client: Any, messages: list[Any], model: str = CLAUDE) -> str:
    """The sentence of a 400."""
    with pytest.raises(client.exceptions.ValidationException) as refusal:
        ask(client, messages, model)
    assert refusal.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    return str(refusal.value.response["Error"]["Message"])


async def weather(city: str) -> object:
    if city == "Rome":
        raise LookupError("no such station")
    return {"city": city, "degrees": 4}


async def picture(city: str) -> object:
    return [f"{city}:", Image.of(b"\x89PNG", "image/png"), Document.of(b"%PDF", "application/pdf", f"{city}.pdf")]


async def silence() -> str:
    return ""


TOOLS: Any = {"weather": weather, "picture": picture, "silence": silence}


async def test_round_after_round_with_a_batch_between() -> None:
    """The client's own dicts go into a batch and back, until the model is done; every round is one that the API accepts."""
    script = [
        Reply("Let me look.", [OSLO, ROME], thinking="Two."),
        Reply(calls=[ScriptedCall("tooluse_1", "picture", {"city": "Bergen"}), ScriptedCall("a", "no.such.tool")]),
        Reply(calls=[ScriptedCall("b", "picture", {"city": "Bergen"}), ScriptedCall("c", "silence")]),
        Reply(calls=[ScriptedCall("d", "weather", {"city": "cut"})], stop="max_tokens"),
        Reply(calls=[ScriptedCall("e", "weather", {"city": "Oslo"})], stop="end_turn"),
        Reply("4 degrees."),
    ]
    messages = question()
    async with FakeProvider(script) as provider:
        client = connect(provider)
        while True:
            response = await asyncio.to_thread(ask, client, messages)
            calls = bedrock.calls(response)
            if not calls:
                break
            async with ToolBatch(calls, tools=TOOLS, timeout=5) as batch:
                batch.start_all()
            bedrock.extend(messages, response, batch.result)
        client.close()
    assert response["output"]["message"]["content"] == [{"text": "4 degrees."}]
    assert (provider.rejected, provider.remaining) == ([], 0)
    sent = provider.requests[-1].body["messages"]
    answers = [[block["toolResult"] for block in message["content"]] for message in sent[2::2]]
    assert answers[0] == [
        {"toolUseId": "tooluse_1", "content": [{"text": '{"city":"Oslo","degrees":4}'}]},
        {
            "toolUseId": "tooluse_2",
            "content": [{"text": '{"error":{"code":"tool_error","message":"no such station"}}'}],
            "status": "error",
        },
    ]
    assert answers[1][0]["toolUseId"] == sent[3]["content"][0]["toolUse"]["toolUseId"] != "tooluse_1"
    assert answers[1][0]["content"][1]["image"]["source"]["bytes"] == base64.b64encode(b"\x89PNG").decode()
    assert "unknown_tool" in answers[1][1]["content"][0]["text"]
    names = [answers[turn][0]["content"][2]["document"]["name"] for turn in (1, 2)]
    assert names == ["Bergen pdf", "Bergen pdf (2)"]
    assert answers[2][1]["content"] == [{"text": "[the result is empty]"}]
    assert "response_truncated" in answers[3][0]["content"][0]["text"]
    assert "not_requested" in answers[4][0]["content"][0]["text"]


async def test_data_goes_and_comes_as_data(provider: FakeProvider, client: Any) -> None:
    """What a tool returned as an object is that object on the wire, if the lane is told that the model reads it."""
    value = {"whole": 3, "part": 0.1, "text": "é", "none": None, "many": [True, {"deep": -2.5e-7}]}
    messages = question()
    response = await asyncio.to_thread(ask, client, messages)
    async with ToolBatch(bedrock.calls(response), tools={"weather": lambda city: value}) as batch:
        batch.start_all()
    bedrock.extend(messages, response, batch.result, data=True)
    await asyncio.to_thread(ask, client, messages, "mistral.mistral-large-2407-v1:0")
    sent = provider.requests[-1].body["messages"][2]["content"]
    assert [block["toolResult"]["content"] for block in sent] == [[{"json": value}]] * 2
    assert provider.rejected == []


def answered(response: Json, *blocks: Json) -> list[Any]:
    """A conversation with the assistant's own message and these blocks behind it."""
    return [*question(), response["output"]["message"], {"role": "user", "content": list(blocks)}]


def result(use_id: str, *content: Json, **more: Any) -> Json:
    return {"toolResult": {"toolUseId": use_id, "content": list(content) or [{"text": "4"}], **more}}


FIRST, SECOND = result("tooluse_1"), result("tooluse_2")
REFUSED: dict[str, tuple[list[Json], str]] = {
    "one missing": ([SECOND], "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_1"),
    "words alone": (
        [{"text": "Well?"}],
        "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_1, tooluse_2",
    ),
    "one too many": (
        [FIRST, SECOND, result("tooluse_3")],
        "The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of previous turn.",
    ),
    "one twice": (
        [FIRST, SECOND, FIRST],
        "The toolResult blocks at messages.2.content contain duplicate Ids: tooluse_1",
    ),
    "data that is a list": (
        [FIRST, result("tooluse_2", {"json": [1]})],
        (
            "The format of the value at messages.2.content.1.toolResult.content.0.json is invalid. Provide a json object for the "
            "field and try again."
        ),
    ),
    "another id": (
        [FIRST, result("a|b")],
        (
            "1 validation error detected: Value 'a|b' at 'messages.3.member.content.2.member.toolResult.toolUseId' failed to "
            "satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.:-]+"
        ),
    ),
    "blank text": (
        [FIRST, SECOND, {"text": " "}],
        (
            "The text field in the ContentBlock object at messages.2.content.2 is blank. Add text to the text field, and try "
            "again."
        ),
    ),
}


@pytest.mark.parametrize(("blocks", "message"), REFUSED.values(), ids=REFUSED)
def test_broken_answers_are_validation_exceptions_with_the_apis_text(
    provider: FakeProvider, client: Any, blocks: list[Json], message: str
) -> None:
    """The client raises what it raises for the API, and the record has why."""
    first = ask(client, question())
    assert refused(client, answered(first, *blocks)) == message
    assert [request.error for request in provider.rejected] == [message]


def test_the_mark_that_some_models_refuse(client: Any) -> None:
    """Writer's models know no status; a lane that is told so leaves it out."""
    first = ask(client, question())
    marked = answered(first, FIRST, result("tooluse_2", status="error"))
    writer = "writer.palmyra-x5-v1:0"
    assert (
        refused(client, marked, writer) == "This model doesn't support the status field. Remove status and try again."
    )
    assert ask(client, answered(first, FIRST, SECOND), writer)["stopReason"] == "end_turn"


def test_tools_must_be_declared_to_the_end(client: Any) -> None:
    """A request without `toolConfig` is refused as long as there are results in it."""
    first = ask(client, question())
    with pytest.raises(client.exceptions.ValidationException, match="The toolConfig field must be defined"):
        client.converse(modelId=CLAUDE, messages=answered(first, FIRST, SECOND))


def test_reasoning_must_come_back_as_it_was(client: Any) -> None:
    """A signature is good for its own text only."""
    first = ask(client, question())
    messages = answered(first, FIRST, SECOND)
    messages[1]["content"][0]["reasoningContent"]["reasoningText"]["text"] = "Three."
    assert "Invalid `signature` in `thinking` block" in refused(client, messages)


def stream(client: Any, messages: list[Any]) -> list[Json]:
    answer = client.converse_stream(modelId=CLAUDE, messages=messages, toolConfig=TOOL_CONFIG)
    return list(answer["stream"])


def test_a_stream_brings_the_input_in_pieces(client: Any) -> None:
    """The client decodes the binary stream, checksums and all: names and ids first, then the input as text."""
    events = stream(client, question())
    assert [next(iter(event)) for event in (events[0], events[-2], events[-1])] == [
        "messageStart",
        "messageStop",
        "metadata",
    ]
    starts = [event["contentBlockStart"] for event in events if "contentBlockStart" in event]
    assert starts == [
        {"start": {"toolUse": {"toolUseId": "tooluse_1", "name": "weather"}}, "contentBlockIndex": 2},
        {"start": {"toolUse": {"toolUseId": "tooluse_2", "name": "weather"}}, "contentBlockIndex": 3},
    ]
    deltas = [event["contentBlockDelta"] for event in events if "contentBlockDelta" in event]
    pieces = [delta["delta"]["toolUse"]["input"] for delta in deltas if delta["contentBlockIndex"] == 2]
    assert "".join(pieces) == '{"city": "Oslo"}'
    assert len(pieces) > 1
    said = "".join(delta["delta"].get("text", "") for delta in deltas)
    assert said == "Let me look."
    assert events[-2] == {"messageStop": {"stopReason": "tool_use"}}


def test_hosted_calls_go_through_as_they_are() -> None:
    """In one answer and in a stream, a hosted tool's call and result keep their types."""
    use = {"toolUse": {"toolUseId": "s", "name": "nova_code", "input": {"code": "1"}, "type": "server_tool_use"}}
    found = {"toolResult": {"toolUseId": "s", "content": [{"text": "1"}], "type": "nova_code_result"}}
    reply = Reply("Running.", blocks=[use, found])
    with FakeProvider([reply, reply, Reply("Done.")]) as provider:
        client = connect(provider)
        first = ask(client, question())
        assert first["output"]["message"]["content"] == [{"text": "Running."}, use, found]
        events = stream(client, question())
        assert bedrock.calls(first) == []
        messages = question()
        bedrock.extend(messages, first)
        ask(client, [*messages, *question()])
        client.close()
    starts = [event["contentBlockStart"]["start"] for event in events if "contentBlockStart" in event]
    assert [start.get("toolUse", start.get("toolResult"))["type"] for start in starts] == [
        "server_tool_use",
        "nova_code_result",
    ]
    assert provider.rejected == []


def test_a_cut_call_is_an_empty_object_without_a_stream() -> None:
    """Only a stream can carry arguments that are no JSON."""
    cut = Reply(calls=[ScriptedCall("a", "write", '{"path": "/a", "body": "hel')], stop="max_tokens")
    with FakeProvider([cut, cut]) as provider:
        client = connect(provider)
        response = ask(client, question())
        events = stream(client, question())
        client.close()
    assert response["output"]["message"]["content"][0]["toolUse"]["input"] == {}
    pieces = [
        event["contentBlockDelta"]["delta"]["toolUse"]["input"] for event in events if "contentBlockDelta" in event
    ]
    assert "".join(pieces) == '{"path": "/a", "body": "hel'


def test_a_script_that_the_lane_can_not_play() -> None:
    """A custom call is a fault of the script, and the end of the script is one too."""
    with FakeProvider([Reply(calls=[ScriptedCall("a", "sql", "select 1", custom=True)])]) as provider:
        client = connect(provider)
        for problem in ("has no custom tool calls", "script has ended"):
            with pytest.raises(client.exceptions.InternalServerException, match=problem):
                ask(client, question())
        client.close()
    assert provider.rejected == []


def test_what_the_client_itself_refuses(provider: FakeProvider, client: Any) -> None:
    """The client checks shapes before it sends: such a request never reaches the API."""
    with pytest.raises(ParamValidationError):
        ask(client, [{"role": "user", "content": [{"toolResult": {"content": []}}]}])
    assert provider.requests == []


def test_refusals_that_no_rule_owns(client: Any) -> None:
    """Keys, routes and bodies are refused in this API's shape; a bearer token is a key as well."""
    with pytest.raises(ClientError) as lost:
        client.invoke_model(modelId="m", body=b"{}")
    assert lost.value.response["Error"]["Code"] == "ResourceNotFoundException"
    with FakeProvider([Reply("ok")]) as provider:
        url = f"{provider.url}/model/m/converse"
        body = {"messages": question()}
        keyless = httpx.post(url, json=body)
        broken = httpx.post(url, content=b"{", headers={"authorization": "Bearer test"})
        bearer = httpx.post(url, json=body, headers={"authorization": "Bearer test"})
    assert [keyless.status_code, broken.status_code, bearer.status_code] == [403, 400, 200]
    assert keyless.headers["x-amzn-errortype"] == "AccessDeniedException"
    assert broken.json() == {"message": "Malformed input request, please reformat your input and try again."}
