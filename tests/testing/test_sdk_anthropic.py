"""The real `anthropic` client on Messages."""

from collections.abc import Iterator

import anthropic
import pytest
from anthropic.types import MessageParam

from tests.testing.transcripts import Json, result, text, user
from toolbatch.testing import FakeProvider, Reply, ScriptedCall

CALLS = Reply(
    "Let me look.",
    [ScriptedCall("toolu_1", "weather", {"city": "Oslo"}), ScriptedCall("toolu_2", "time")],
    thinking="Two things.",
)
QUESTION: MessageParam = {"role": "user", "content": "Hi."}
ANSWERS = user(result("toolu_1", content="4"), result("toolu_2", content="no clock", is_error=True))


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider([CALLS, Reply("4 degrees.")]) as provider:
        yield provider


@pytest.fixture
def client(provider: FakeProvider) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=provider.anthropic_base_url, api_key="test", max_retries=0) as client:
        yield client


def ask(client: anthropic.Anthropic, *messages: object) -> anthropic.types.Message:
    history: list[object] = [QUESTION, *messages]
    return client.messages.create(model="m", max_tokens=64, messages=history)  # type: ignore[arg-type]


def test_a_turn_is_announced_answered_and_closed(provider: FakeProvider, client: anthropic.Anthropic) -> None:
    first = ask(client)
    assert first.stop_reason == "tool_use"
    assert [block.type for block in first.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block.input for block in first.content if block.type == "tool_use"] == [{"city": "Oslo"}, {}]
    second = ask(client, {"role": "assistant", "content": first.content}, ANSWERS)
    assert second.stop_reason == "end_turn"
    assert [block.text for block in second.content if block.type == "text"] == ["4 degrees."]
    assert (provider.rejected, provider.remaining) == ([], 0)


REFUSED: dict[str, tuple[Json, str]] = {
    "missing": (
        user(result("toolu_2")),
        (
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. "
            "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        ),
    ),
    "text first": (
        user(text("Well?"), result("toolu_1"), result("toolu_2")),
        (
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1, toolu_2. "
            "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        ),
    ),
    "unexpected": (
        user(result("toolu_1"), result("toolu_2"), result("toolu_3")),
        (
            "messages.2.content.2: unexpected `tool_use_id` found in `tool_result` blocks: toolu_3. "
            "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        ),
    ),
    "duplicate": (
        user(result("toolu_1"), result("toolu_2"), result("toolu_1")),
        (
            "messages.2.content.2: each tool_use must have a single result. "
            "Found multiple `tool_result` blocks with id: toolu_1"
        ),
    ),
    "an empty error": (
        user(result("toolu_1"), result("toolu_2", is_error=True)),
        "messages.2.content.1.tool_result: content cannot be empty if `is_error` is true",
    ),
}


@pytest.mark.parametrize(("answers", "message"), REFUSED.values(), ids=REFUSED)
def test_broken_answers_are_bad_requests_with_the_providers_body(
    provider: FakeProvider, client: anthropic.Anthropic, answers: Json, message: str
) -> None:
    first = ask(client)
    with pytest.raises(anthropic.BadRequestError) as refusal:
        ask(client, {"role": "assistant", "content": first.content}, answers)
    assert refusal.value.body == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": message},
        "request_id": "req_2",
    }
    assert refusal.value.request_id == "req_2"
    assert [request.error for request in provider.rejected] == [message]


def test_thinking_must_come_back_as_it_was(client: anthropic.Anthropic) -> None:
    blocks = [block.to_dict() for block in ask(client).content]
    blocks[0]["thinking"] = "Something else."
    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature` in `thinking` block"):
        ask(client, {"role": "assistant", "content": blocks}, ANSWERS)


def test_a_stream_brings_the_input_in_pieces(client: anthropic.Anthropic) -> None:
    stream = client.messages.create(model="m", max_tokens=64, messages=[QUESTION], stream=True)
    events = list(stream)
    assert (events[0].type, events[-2].type, events[-1].type) == ("message_start", "message_delta", "message_stop")
    starts = [event.content_block for event in events if event.type == "content_block_start"]
    assert [block.type for block in starts] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block.input for block in starts if block.type == "tool_use"] == [{}, {}]
    deltas = [event for event in events if event.type == "content_block_delta" and event.index == 2]
    parts = [event.delta.partial_json for event in deltas if event.delta.type == "input_json_delta"]
    assert "".join(parts) == '{"city": "Oslo"}'
    assert len(parts) > 1


async def test_the_asynchronous_stream_helper_puts_a_reply_together(provider: FakeProvider) -> None:
    async with anthropic.AsyncAnthropic(base_url=provider.anthropic_base_url, api_key="test", max_retries=0) as client:
        async with client.messages.stream(model="m", max_tokens=64, messages=[QUESTION]) as stream:
            first = await stream.get_final_message()
        assert [block.input for block in first.content if block.type == "tool_use"] == [{"city": "Oslo"}, {}]
        assert first.stop_reason == "tool_use"
        history: list[object] = [QUESTION, {"role": "assistant", "content": first.content}, ANSWERS]
        second = await client.messages.create(model="m", max_tokens=64, messages=history)  # type: ignore[arg-type]
    assert second.stop_reason == "end_turn"


def test_a_beta_request_is_judged_by_the_same_rules(client: anthropic.Anthropic) -> None:
    unanswered: list[object] = [
        QUESTION,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
    ]
    with pytest.raises(anthropic.BadRequestError, match="`tool_use` ids were found"):
        client.beta.messages.create(model="m", max_tokens=64, messages=unanswered)  # type: ignore[arg-type]


def cut() -> Reply:
    return Reply(calls=[ScriptedCall("toolu_1", "write", '{"path": "/a", "body": "hel')], stop="max_tokens")


def test_a_cut_call_is_an_empty_object_without_a_stream() -> None:
    with (
        FakeProvider([cut()]) as provider,
        anthropic.Anthropic(base_url=provider.anthropic_base_url, api_key="t") as client,
    ):
        message = ask(client)
    (block,) = message.content
    assert block.type == "tool_use"
    assert block.input == {}
    assert message.stop_reason == "max_tokens"


def test_a_cut_call_is_sent_as_it_is_in_a_stream() -> None:
    with (
        FakeProvider([cut()]) as provider,
        anthropic.Anthropic(base_url=provider.anthropic_base_url, api_key="t") as client,
        client.messages.stream(model="m", max_tokens=64, messages=[QUESTION]) as stream,
    ):
        message = stream.get_final_message()
    (block,) = message.content
    assert block.type == "tool_use"
    assert block.input == {"path": "/a"}  # the SDK makes a plausible object of it: only the stop reason tells
    assert message.stop_reason == "max_tokens"


@pytest.mark.parametrize("stream", [False, True])
def test_hosted_calls_go_through_as_they_are(stream: bool) -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    script = [Reply("Searching.", blocks=[search, found]), Reply("Done.")]
    with (
        FakeProvider(script) as provider,
        anthropic.Anthropic(base_url=provider.anthropic_base_url, api_key="t") as client,
    ):
        if stream:
            with client.messages.stream(model="m", max_tokens=64, messages=[QUESTION]) as events:
                first: anthropic.types.Message = events.get_final_message()
        else:
            first = ask(client)
        ask(client, {"role": "assistant", "content": first.content}, QUESTION)
    assert [block.type for block in first.content] == ["text", "server_tool_use", "web_search_tool_result"]
    assert [block.input for block in first.content if block.type == "server_tool_use"] == [{"query": "tides"}]
    assert provider.rejected == []


def test_a_custom_call_is_a_fault_of_the_script() -> None:
    script = [Reply(calls=[ScriptedCall("toolu_1", "sql", "select 1", custom=True)])]
    with (
        FakeProvider(script) as provider,
        anthropic.Anthropic(base_url=provider.anthropic_base_url, api_key="t", max_retries=0) as client,
        pytest.raises(anthropic.InternalServerError, match="has no custom tool calls"),
    ):
        ask(client)
    assert provider.rejected == []
