"""The real `openai` client on Responses."""

from collections.abc import AsyncIterator

import openai
import pytest
from openai.types.responses import Response, ResponseInputParam

from tests.testing.transcripts import Json, output_item
from toolbatch.testing import FakeProvider, Reply, ScriptedCall

CALLS = Reply(
    "Let me look.",
    [ScriptedCall("call_1", "weather", {"city": "Oslo"}), ScriptedCall("call_2", "sql", "select 1", custom=True)],
    thinking="Two things.",
)
ANSWERS: ResponseInputParam = [
    {"type": "function_call_output", "call_id": "call_1", "output": "4"},
    {"type": "custom_tool_call_output", "call_id": "call_2", "output": "1"},
]


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    async with FakeProvider([CALLS, Reply("Done.")]) as provider:
        yield provider


@pytest.fixture
async def client(provider: FakeProvider) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=provider.openai_base_url, api_key="test", max_retries=0) as client:
        yield client


def replayed(response: Response) -> list[Json]:
    return [item.to_dict() for item in response.output]


async def test_a_turn_goes_on_with_outputs_alone(provider: FakeProvider, client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(model="m", input="Hi.")
    assert [item.type for item in first.output] == ["reasoning", "message", "function_call", "custom_tool_call"]
    assert (first.status, first.output_text) == ("completed", "Let me look.")
    second = await client.responses.create(model="m", input=ANSWERS, previous_response_id=first.id)
    assert second.output_text == "Done."
    assert (provider.rejected, provider.remaining) == ([], 0)


async def test_a_turn_goes_on_with_the_whole_history(provider: FakeProvider, client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(model="m", input="Hi.", store=False)
    history: list[object] = [{"role": "user", "content": "Hi."}, *replayed(first), *ANSWERS]
    second = await client.responses.create(model="m", input=history)  # type: ignore[arg-type]
    assert second.output_text == "Done."


async def refused(client: openai.AsyncOpenAI, items: object, previous: str | None = None) -> str:
    with pytest.raises(openai.APIStatusError) as refusal:
        await client.responses.create(model="m", input=items, previous_response_id=previous)  # type: ignore[call-overload]
    assert isinstance(refusal.value.body, dict)
    assert refusal.value.body["type"] == "invalid_request_error"
    return str(refusal.value.body["message"])


async def test_the_server_remembers_what_must_be_answered(provider: FakeProvider, client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(model="m", input="Hi.")
    assert await refused(client, "And?", first.id) == "No tool output found for function call call_1."
    assert await refused(client, ANSWERS[:1], first.id) == "No tool output found for custom tool call call_2."
    assert await refused(client, [*ANSWERS, ANSWERS[0]], first.id) == "Duplicate tool output for call_id: call_1"
    assert await refused(client, ANSWERS) == "No tool call found for function call output with call_id call_1."
    assert await refused(client, [*replayed(first), *ANSWERS], first.id) == (
        "Duplicate item found with id rs_1. Remove duplicate items from your input and try again."
    )
    assert await refused(client, ANSWERS, "resp_9") == "Previous response with id 'resp_9' not found."
    assert len(provider.rejected) == 6
    assert provider.remaining == 1


async def test_answered_calls_stay_answered_down_the_chain(client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(model="m", input="Hi.")
    second = await client.responses.create(model="m", input=ANSWERS, previous_response_id=first.id)
    assert await refused(client, ANSWERS, second.id) == "Duplicate tool output for call_id: call_1"


async def test_reasoning_and_the_item_it_led_to_stay_together(client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(model="m", input="Hi.")
    reasoning, message, *calls = replayed(first)
    assert await refused(client, [message, *calls, *ANSWERS]) == (
        "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: 'rs_1'."
    )
    assert await refused(client, [reasoning, {"role": "user", "content": "And?"}]) == (
        "Item 'rs_1' of type 'reasoning' was provided without its required following item."
    )


async def test_stored_items_can_be_referred_to(provider: FakeProvider, client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(model="m", input="Hi.")
    references: list[Json] = [{"type": "item_reference", "id": item["id"]} for item in replayed(first)]
    assert await refused(client, references) == "No tool output found for function call call_1."
    assert await refused(client, [{"type": "item_reference", "id": "fc_9"}]) == "Item with id 'fc_9' not found."
    items: list[object] = [*references, *ANSWERS]
    assert (await client.responses.create(model="m", input=items)).output_text == "Done."  # type: ignore[arg-type]


async def test_what_is_not_stored_is_not_remembered(client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(model="m", input="Hi.", store=False)
    assert await refused(client, ANSWERS, first.id) == "Previous response with id 'resp_1' not found."


async def test_conversations_are_refused_in_so_many_words(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="keeps no conversations"):
        await client.responses.create(model="m", input="Hi.", conversation="conv_1")


async def test_a_stream_brings_numbered_events_and_whole_items(client: openai.AsyncOpenAI) -> None:
    stream = await client.responses.create(model="m", input="Hi.", stream=True)
    events = [event async for event in stream]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    opened = [event.item for event in events if event.type == "response.output_item.added"]
    done = [event.item for event in events if event.type == "response.output_item.done"]
    assert [item.type for item in opened] == ["reasoning", "message", "function_call", "custom_tool_call"]
    assert [item.arguments for item in opened if item.type == "function_call"] == [""]
    assert [item.arguments for item in done if item.type == "function_call"] == ['{"city": "Oslo"}']
    deltas = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
    assert "".join(deltas) == '{"city": "Oslo"}'
    assert len(deltas) > 1
    inputs = [event.delta for event in events if event.type == "response.custom_tool_call_input.delta"]
    assert "".join(inputs) == "select 1"


async def test_the_stream_helper_puts_a_reply_together(client: openai.AsyncOpenAI) -> None:
    async with client.responses.stream(model="m", input="Hi.") as stream:
        response = await stream.get_final_response()
    assert response.output_text == "Let me look."
    assert [item.call_id for item in response.output if item.type == "function_call"] == ["call_1"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_cut_reply_is_incomplete(stream: bool) -> None:
    reply = Reply(calls=[ScriptedCall("call_1", "f", '{"a": "cu')], stop="max_output_tokens")
    async with (
        FakeProvider([reply]) as provider,
        openai.AsyncOpenAI(base_url=provider.openai_base_url, api_key="test", max_retries=0) as client,
    ):
        if stream:
            events = [event async for event in await client.responses.create(model="m", input="Hi.", stream=True)]
            last = events[-1]
            assert last.type == "response.incomplete"
            response = last.response
        else:
            response = await client.responses.create(model="m", input="Hi.")
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"
    (call,) = response.output
    assert call.type == "function_call"
    assert (call.status, call.arguments) == ("incomplete", '{"a": "cu')


async def test_an_asynchronous_call_may_wait_for_a_later_request() -> None:
    waiting = ScriptedCall("call_1", "slow", extra={"async": True})
    async with (
        FakeProvider([Reply(calls=[waiting]), Reply("Still on it."), Reply("Done.")]) as provider,
        openai.AsyncOpenAI(base_url=provider.openai_base_url, api_key="test", max_retries=0) as client,
    ):
        first = await client.responses.create(model="m", input="Hi.")
        second = await client.responses.create(model="m", input="And?", previous_response_id=first.id)
        late: list[object] = [output_item("call_1")]
        third = await client.responses.create(model="m", input=late, previous_response_id=second.id)  # type: ignore[arg-type]
    assert third.output_text == "Done."


def test_hosted_calls_are_not_answered_and_the_plain_client_works() -> None:
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    }
    with (
        FakeProvider([Reply("Found.", blocks=[search]), Reply("Bye.")]) as provider,
        openai.OpenAI(base_url=provider.openai_base_url, api_key="test", max_retries=0) as client,
    ):
        first = client.responses.create(model="m", input="Hi.")
        assert [item.type for item in first.output] == ["message", "web_search_call"]
        assert client.responses.create(model="m", input="Bye.", previous_response_id=first.id).output_text == "Bye."
