"""Streams of the real clients: against the strict fake provider where there is one, else as their servers would send them.

Where an SDK has an accumulator of its own, the collector says the same as that.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import anthropic as anthropic_sdk
import boto3  # type: ignore[import-untyped]
import cohere as cohere_sdk
import httpx
import httpx2
import ollama as ollama_sdk
import openai
import pytest
from anthropic.lib.streaming._messages import accumulate_event
from botocore.config import Config  # type: ignore[import-untyped]
from google import genai
from google.genai import types
from hypothesis import given, settings
from mistralai.client import Mistral
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses._responses import ResponseStreamState

from tests.providers.streams import Called, Cut, Json, StreamLane, Turn, stream
from tests.providers.support import settled
from tests.providers.test_stream_properties import SLOW, cuts, paired, turns
from toolbatch import ToolBatch
from toolbatch.providers import anthropic, openai_responses
from toolbatch.testing import FakeProvider, Reply, ScriptedCall

CALLS = Reply(
    "Let me look.",
    [
        ScriptedCall("call_1", "weather", {"city": "Oslo"}),
        ScriptedCall("call_2", "time"),
        ScriptedCall("call_1", "weather", {"city": "Rome"}),
        ScriptedCall("call_3", "weather", '{"city": "Par'),
    ],
    thinking="Two things.",
)
CUT = Reply(calls=[ScriptedCall("call_4", "weather", {"city": "Oslo"})], stop="length")
LAST = Reply("4 degrees.")
STOPS = {
    "anthropic": "max_tokens",
    "bedrock": "max_tokens",
    "openai_responses": "max_output_tokens",
    "gemini": "MAX_TOKENS",
}


async def weather(city: str) -> object:
    return {"city": city, "degrees": 4}


TOOLS: Any = {"weather": weather, "time": lambda: "noon"}

Events = Callable[[list[Any]], AsyncIterator[Any]]


def key(provider: FakeProvider) -> dict[str, Any]:
    return {"base_url": provider.openai_base_url, "api_key": "test", "max_retries": 0}


async def chat_stream(provider: FakeProvider, messages: list[Any]) -> AsyncIterator[Any]:
    async with openai.AsyncOpenAI(**key(provider)) as client:
        answer: Any = await client.chat.completions.create(model="m", messages=messages, stream=True)
        async for event in answer:
            yield event


async def chat_data(provider: FakeProvider, messages: list[Any]) -> AsyncIterator[Any]:
    """No SDK: the lines of the wire."""
    async with httpx.AsyncClient(headers={"authorization": "Bearer test"}) as client:
        body = {"model": "m", "messages": messages, "stream": True, "stream_options": {"include_usage": True}}
        async with client.stream("POST", f"{provider.openai_base_url}/chat/completions", json=body) as answer:
            async for line in answer.aiter_lines():
                yield line.removeprefix("data:")


async def responses_stream(provider: FakeProvider, messages: list[Any]) -> AsyncIterator[Any]:
    async with openai.AsyncOpenAI(**key(provider)) as client:
        answer: Any = await client.responses.create(model="m", input=messages, stream=True)
        async for event in answer:
            yield event


async def anthropic_stream(provider: FakeProvider, messages: list[Any]) -> AsyncIterator[Any]:
    async with anthropic_sdk.AsyncAnthropic(
        base_url=provider.anthropic_base_url, api_key="test", max_retries=0
    ) as client:
        answer: Any = await client.messages.create(model="m", max_tokens=64, messages=messages, stream=True)
        async for event in answer:
            yield event


async def gemini_stream(provider: FakeProvider, messages: list[Any]) -> AsyncIterator[Any]:
    options = types.HttpOptions(base_url=provider.gemini_base_url)
    with genai.Client(api_key="test", http_options=options) as client:
        for event in client.models.generate_content_stream(model="gemini-3-pro", contents=messages):
            yield event


async def bedrock_stream(provider: FakeProvider, messages: list[Any]) -> AsyncIterator[Any]:
    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=provider.bedrock_endpoint_url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"max_attempts": 0}),
    )
    tool = {"toolSpec": {"name": "weather", "inputSchema": {"json": {"type": "object"}}}}
    answer = client.converse_stream(
        modelId="anthropic.claude-sonnet-4-5-v1:0", messages=messages, toolConfig={"tools": [tool]}
    )
    try:
        for event in answer["stream"]:
            yield event
    finally:
        answer["stream"].close()
        client.close()


STRICT: dict[str, tuple[str, Callable[[FakeProvider, list[Any]], AsyncIterator[Any]]]] = {
    "openai_chat": ("openai_chat", chat_stream),
    "openai_chat, its wire": ("openai_chat", chat_data),
    "openai_responses": ("openai_responses", responses_stream),
    "anthropic": ("anthropic", anthropic_stream),
    "gemini": ("gemini", gemini_stream),
    "bedrock": ("bedrock", bedrock_stream),
}


async def collect(lane: StreamLane, events: AsyncIterator[Any], limit: int | None = None) -> Any:
    """A collector that was fed with a stream, or with as much of it as came before it was given up."""
    collector = lane.module.StreamCollector()
    count = 0
    async for event in events:
        if count == limit:
            await events.aclose()  # type: ignore[attr-defined]  # it is a generator
            break
        collector.add(event)
        count += 1
    return collector


async def answer(lane: StreamLane, collector: Any, messages: list[Any]) -> list[Any]:
    """Run a batch of the collected calls, append the turn, and return the codes that the model reads."""
    calls = collector.calls()
    async with ToolBatch(calls, tools=TOOLS, timeout=5) as batch:
        batch.start_all()
    assert batch.result is not None
    lane.module.extend(messages, collector.response(), batch.result)
    return [row.settlement and row.settlement.code for row in batch.result.calls]


@pytest.mark.parametrize("client", STRICT)
@pytest.mark.filterwarnings("default:datetime.datetime.utcnow:DeprecationWarning")
async def test_round_after_round_through_a_stream(client: str) -> None:
    """Calls with and without arguments, twice the same id, cut-off ones and cut-off responses: the provider takes each turn."""
    name, events = STRICT[client]
    lane = stream(name)
    cut = Reply(calls=CUT.calls, stop=STOPS.get(name, CUT.stop))
    messages = [lane.user]
    async with FakeProvider([CALLS, cut, LAST]) as provider:
        collector = await collect(lane, events(provider, messages))
        odd = "malformed_arguments" if name != "gemini" else None  # whose server has parsed them
        assert (await answer(lane, collector, messages))[:3] == [None, None, None]
        assert [call.problem and call.problem.code for call in collector.calls()] == [None, None, None, odd]
        collector = await collect(lane, events(provider, messages))
        assert await answer(lane, collector, messages) == ["response_truncated"]
        collector = await collect(lane, events(provider, messages))
        assert collector.finished
        assert collector.calls() == []
        assert (provider.rejected, provider.remaining) == ([], 0)


@pytest.mark.parametrize("client", STRICT)
@pytest.mark.parametrize("limit", [0, 3, 7, 12, 16])
async def test_a_stream_given_up_leaves_a_turn_that_is_taken(client: str, limit: int) -> None:
    """Wherever the reader stops, the next request is one that the provider accepts, and no tool has run (P6, FIELD 8)."""
    name, events = STRICT[client]
    lane = stream(name)
    messages = [lane.user]
    async with FakeProvider([CALLS, LAST]) as provider:
        collector = await collect(lane, events(provider, messages), limit)
        if not collector.finished:
            codes = await answer(lane, collector, messages)
            assert set(codes) <= {"response_truncated"}
            if messages[-1].get("role") in ("assistant", "model") and "tool_calls" not in messages[-1]:
                messages.append(lane.user)
            await collect(lane, events(provider, messages))
        assert provider.rejected == []


# -- clients whose servers the fake does not play ----------------------------------------------------------------------

TURN = Turn(None, "Let me look.", [Called("aaaaaaaaa", "weather", {"city": "Oslo"}), Called("bbbbbbbbb", "time", {})])


def frames(lane: StreamLane, turn: Turn) -> bytes:
    """A turn as the server sends it: server-sent events, or lines of JSON."""
    # The SDK of Mistral demands a name in each fragment of a call.
    lines = [json.dumps(event) for event in lane.events(turn, Cut([3], repeats=lane.name == "mistral"))]
    if lane.name == "ollama":
        return "".join(f"{line}\n" for line in lines).encode()
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()


async def mistral_events(lane: StreamLane, messages: list[Any], turn: Turn) -> AsyncIterator[Any]:
    def handle(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=frames(lane, turn), headers={"content-type": "text/event-stream"})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(handle)) as http:
        events: Any = await Mistral(api_key="none", async_client=http).chat.stream_async(model="m", messages=messages)
        async for event in events:
            yield event


async def cohere_events(lane: StreamLane, messages: list[Any], turn: Turn) -> AsyncIterator[Any]:
    def handle(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=frames(lane, turn), headers={"content-type": "text/event-stream"})

    async with httpx.AsyncClient(transport=httpx.MockTransport(handle)) as http:
        client = cohere_sdk.AsyncClientV2(api_key="none", httpx_client=http)
        async for event in client.chat_stream(model="m", messages=messages):
            yield event


async def ollama_events(lane: StreamLane, messages: list[Any], turn: Turn) -> AsyncIterator[Any]:
    def handle(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=frames(lane, turn))

    client = ollama_sdk.AsyncClient(transport=httpx.MockTransport(handle))
    async for event in await client.chat(model="m", messages=messages, stream=True):
        yield event


PLAYED = {"mistral": mistral_events, "cohere": cohere_events, "ollama": ollama_events}


@pytest.mark.parametrize("name", PLAYED)
@pytest.mark.filterwarnings("ignore:.*pydantic:UserWarning")
async def test_the_clients_own_events_are_read(name: str) -> None:
    """Two rounds through the client: the calls of the first are answered in the second, which its own types take."""
    lane = stream(name)
    messages = [lane.user]
    collector = await collect(lane, PLAYED[name](lane, messages, TURN))
    assert [(call.name, call.arguments) for call in collector.calls()] == [("weather", {"city": "Oslo"}), ("time", {})]
    assert await answer(lane, collector, messages) == [None, None]
    assert lane.refused(messages) is None
    last = await collect(lane, PLAYED[name](lane, messages, Turn(None, "4 degrees.")))
    assert last.finished
    assert last.calls() == []


# -- the SDKs' own accumulators ---------------------------------------------------------------------------------------


async def helped(manager: Any, collector: Any, final: Callable[[Any], Awaitable[Any]]) -> Any:
    """Feed a collector with what an SDK's helper yields, and return what the helper makes of it."""
    async with manager as events:
        async for event in events:
            collector.add(event)
        return await final(events)


def turn_of(module: Any, response: Any) -> list[Any]:
    """What `extend` writes of a response."""
    messages: list[Any] = []
    module.extend(messages, response, settled(module.calls(response)))
    return messages


@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "anthropic"])
async def test_the_helpers_events_give_what_the_helper_gives(name: str) -> None:
    """The events of `.stream()` are read as well as the plain ones, and both make one response."""
    lane = stream(name)
    messages: Any = [lane.user]
    reply = Reply("Let me look.", CALLS.calls[:2], thinking="Hm.")
    collector = lane.module.StreamCollector()
    async with FakeProvider([reply]) as provider, openai.AsyncOpenAI(**key(provider)) as client:
        claude = anthropic_sdk.AsyncAnthropic(base_url=provider.anthropic_base_url, api_key="test", max_retries=0)
        if name == "openai_chat":
            chat = client.chat.completions.stream(model="m", messages=messages)
            final = await helped(chat, collector, lambda events: events.get_final_completion())
        elif name == "openai_responses":
            responses = client.responses.stream(model="m", input=messages)
            final = await helped(responses, collector, lambda events: events.get_final_response())
        else:
            blocks = claude.messages.stream(model="m", max_tokens=64, messages=messages)
            final = await helped(blocks, collector, lambda events: events.get_final_message())
        await claude.close()
    assert collector.calls() == lane.module.calls(final)
    assert turn_of(lane.module, collector.response()) == turn_of(lane.module, final)


def joined(value: Any) -> Any:
    """A value in which halves of characters that stand together are one, as in the whole: the SDKs leave them apart."""
    if isinstance(value, str):
        return paired(value)
    if isinstance(value, dict):
        return {joined(name): joined(entry) for name, entry in value.items() if entry is not None}
    return [joined(entry) for entry in value] if isinstance(value, list) else value


@settings(SLOW, max_examples=40)
@given(turn=turns(stream("openai_chat"), hostile=False), cut=cuts)
def test_the_message_is_that_of_openais_accumulator(turn: Turn, cut: Cut) -> None:
    """Text, reasoning and calls, however they are cut; the SDK repeats a repeated id, so none is repeated."""
    lane = stream("openai_chat")
    assert lane.sdk is not None
    state = ChatCompletionStreamState()
    events = [lane.sdk(event) for event in lane.events(turn, Cut(cut.sizes, cut.together))]
    for event in events:
        state.handle_chunk(event)
    collector, _ = lane.collected(events)
    message: Json = state.get_final_completion().choices[0].message.to_dict()
    for call in message.get("tool_calls") or ():
        call.pop("index")
        call["function"].pop("parsed_arguments", None)
    message.pop("parsed", None)
    (choice,) = collector.response()["choices"]
    assert joined(choice["message"]) == joined(message)
    assert choice["finish_reason"] == state.current_completion_snapshot.choices[0].finish_reason


@settings(SLOW, max_examples=40)
@given(turn=turns(stream("openai_responses"), hostile=False), cut=cuts)
def test_the_response_is_that_of_openais_accumulator(turn: Turn, cut: Cut) -> None:
    """Items in their places, whole; the SDK takes no id twice."""
    lane = stream("openai_responses")
    assert lane.sdk is not None
    turn = replace(turn, calls=[replace(one, call_id=f"call_{place}") for place, one in enumerate(turn.calls)])
    events = [lane.sdk(event) for event in lane.events(turn, Cut(cut.sizes))]
    state: Any = ResponseStreamState(input_tools=openai.omit, text_format=openai.omit)
    for event in events:
        state.handle_event(event)
    collector, _ = lane.collected(events)
    assert openai_responses.calls(collector.response()) == openai_responses.calls(state._completed_response)
    assert turn_of(openai_responses, collector.response()) == turn_of(openai_responses, state._completed_response)


@settings(SLOW, max_examples=40)
@given(turn=turns(stream("anthropic"), hostile=False), cut=cuts)
def test_the_message_is_that_of_anthropics_accumulator(turn: Turn, cut: Cut) -> None:
    """Thinking with its signature, hosted blocks, text and calls whose input came to its end."""
    lane = stream("anthropic")
    assert lane.sdk is not None
    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    whole = Cut([2 * size for size in cut.sizes], cut.together) if turn_is_narrow(turn) else Cut(together=cut.together)
    events = [lane.sdk(event) for event in lane.events(turn, whole)]
    for event in events:
        snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)
    collector, _ = lane.collected(events)
    response = collector.response()
    assert joined(response["content"]) == joined([block.to_dict() for block in snapshot.content])
    assert (response["stop_reason"], response["id"]) == (snapshot.stop_reason, snapshot.id)
    assert response["usage"] == snapshot.usage.to_dict()


def turn_is_narrow(turn: Turn) -> bool:
    """Whether no character in it is two in UTF-16: the SDK can't take half of one in a call's input."""
    return all(ord(letter) <= 0xFFFF for one in turn.calls for letter in json.dumps(one.arguments, ensure_ascii=False))


def test_a_half_of_an_input_is_none() -> None:
    """The SDK's accumulator makes a valid object of input that was cut; the collector runs nothing of it (LANES 14.4)."""
    lane = stream("anthropic")
    call = Called("toolu_1", "write", {"path": "/a", "content": "hello"})
    events = list(
        lane.events(Turn(calls=[call], stop="tool_use"), Cut([26]))
    )  # a gateway that lies about its stop reason
    cut = [event for event in events if event.get("delta", {}).get("partial_json", "").find('lo"}') < 0]
    assert len(cut) == len(events) - 1
    assert lane.sdk is not None
    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    for event in cut:
        snapshot = accumulate_event(event=lane.sdk(event), current_snapshot=snapshot, json_bufs=buffers)
    assert snapshot.content[0].input == {"path": "/a"}
    collector, early = lane.collected(cut)
    assert early == []
    (one,) = collector.calls()
    assert one.problem is not None
    assert one.problem.code == "malformed_arguments"
    messages: list[Any] = []
    anthropic.extend(messages, collector.response(), settled([one], lambda _: "closed"))
    assert messages[0]["content"][0]["input"] == {"INVALID_JSON": '{"path": "/a", "content": '}
