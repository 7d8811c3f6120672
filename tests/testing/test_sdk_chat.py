"""The real `openai` client on Chat Completions."""

from collections.abc import Iterator

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from toolbatch.testing import FakeProvider, Reply, ScriptedCall

CALLS = Reply(
    "Let me look.",
    [
        ScriptedCall("call_1", "weather", {"city": "Oslo"}),
        ScriptedCall("call_2", "time"),
        ScriptedCall("call_3", "f", '{"cut'),
    ],
)
QUESTION: ChatCompletionMessageParam = {"role": "user", "content": "Hi."}


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider([CALLS, Reply("4 degrees.")]) as provider:
        yield provider


@pytest.fixture
def client(provider: FakeProvider) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=provider.openai_base_url, api_key="test", max_retries=0) as client:
        yield client


def result(call_id: str) -> ChatCompletionMessageParam:
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}


def test_a_turn_is_announced_answered_and_closed(provider: FakeProvider, client: openai.OpenAI) -> None:
    first = client.chat.completions.create(model="m", messages=[QUESTION]).choices[0]
    assert first.finish_reason == "tool_calls"
    assert first.message.content == "Let me look."
    calls = [call for call in first.message.tool_calls or [] if call.type == "function"]
    assert [(call.id, call.function.name) for call in calls] == [
        ("call_1", "weather"),
        ("call_2", "time"),
        ("call_3", "f"),
    ]
    assert [call.function.arguments for call in calls] == ['{"city": "Oslo"}', "{}", '{"cut']

    # The SDK's own message goes back as it came.
    answers = [result(call.id) for call in calls]
    history: list[object] = [QUESTION, first.message, *answers]
    second = client.chat.completions.create(model="m", messages=history)  # type: ignore[arg-type]
    assert second.choices[0].message.content == "4 degrees."
    assert second.choices[0].finish_reason == "stop"
    assert provider.rejected == []
    assert provider.remaining == 0


def test_a_missing_result_is_a_bad_request_with_the_providers_body(
    provider: FakeProvider, client: openai.OpenAI
) -> None:
    message = client.chat.completions.create(model="m", messages=[QUESTION]).choices[0].message
    history: list[object] = [QUESTION, message, result("call_2")]
    with pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(model="m", messages=history)  # type: ignore[arg-type]
    assert refusal.value.body == {
        "message": (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: call_1, call_3"
        ),
        "type": "invalid_request_error",
        "param": "messages.[2].role",
        "code": None,
    }
    (rejected,) = provider.rejected
    assert rejected.path == "/v1/chat/completions"
    assert rejected.rejection is not None
    assert rejected.rejection.rule == "missing_result"
    assert len(rejected.body["messages"]) == 3
    assert provider.remaining == 1  # a refused request takes nothing from the script


def test_a_stream_brings_calls_in_fragments(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="m", messages=[QUESTION], stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    fragments = [f for chunk in chunks for choice in chunk.choices for f in choice.delta.tool_calls or []]
    named = [f for f in fragments if f.id is not None]
    assert [(f.index, f.id, f.function and f.function.name) for f in named] == [
        (0, "call_1", "weather"),
        (1, "call_2", "time"),
        (2, "call_3", "f"),
    ]
    of_first = [f.function.arguments or "" for f in fragments if f.index == 0 and f.function]
    assert "".join(of_first) == '{"city": "Oslo"}'
    assert len(of_first) > 2
    assert [c.finish_reason for chunk in chunks for c in chunk.choices if c.finish_reason] == ["tool_calls"]
    assert [chunk.usage is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].choices == []


def test_a_stream_that_is_refused_is_a_bad_request(provider: FakeProvider, client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="must be a response to a preceeding message"):
        client.chat.completions.create(model="m", messages=[QUESTION, result("call_1")], stream=True)
    assert provider.rejected[0].stream


async def test_the_asynchronous_stream_helper_puts_a_reply_together(provider: FakeProvider) -> None:
    async with (
        openai.AsyncOpenAI(base_url=provider.openai_base_url, api_key="test", max_retries=0) as client,
        client.chat.completions.stream(model="m", messages=[QUESTION]) as stream,
    ):
        completion = await stream.get_final_completion()
    message = completion.choices[0].message
    assert message.content == "Let me look."
    assert [call.function.arguments for call in message.tool_calls or []] == ['{"city": "Oslo"}', "{}", '{"cut']


async def test_custom_calls_and_raw_calls_go_through_as_they_are() -> None:
    raw = {"id": "call_0", "type": "function", "function": {"name": "", "arguments": "{}"}}
    reply = Reply(calls=[ScriptedCall("call_1", "sql", "select 1", custom=True)], blocks=[raw], stop="length")
    async with (
        FakeProvider([reply, reply]) as provider,
        openai.AsyncOpenAI(base_url=provider.openai_base_url, api_key="test", max_retries=0) as client,
    ):
        choice = (await client.chat.completions.create(model="m", messages=[QUESTION])).choices[0]
        stream = await client.chat.completions.create(model="m", messages=[QUESTION], stream=True)
        fragments = [f.to_dict() async for chunk in stream for f in chunk.choices[0].delta.tool_calls or []]
    assert choice.finish_reason == "length"
    assert [call.to_dict() for call in choice.message.tool_calls or []] == [
        raw,
        {"id": "call_1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}},
    ]
    custom = [f["custom"] for f in fragments if f["index"] == 1]
    assert isinstance(custom[0], dict)
    assert custom[0]["name"] == "sql"
    assert "".join(part["input"] for part in custom if isinstance(part, dict)) == "select 1"
