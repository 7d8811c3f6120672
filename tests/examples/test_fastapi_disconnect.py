"""A client that leaves in the middle of a batch leaves a history that the endpoint takes."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest

from examples.fastapi_disconnect import SCRIPT, TOOLS, Chat, answer, main
from toolbatch.testing import FakeProvider, check_chat


@pytest.fixture
async def client() -> AsyncIterator[openai.AsyncOpenAI]:
    """A client of a provider that must not have refused anything."""
    async with (
        FakeProvider(SCRIPT) as provider,
        openai.AsyncOpenAI(base_url=provider.openai_base_url, api_key="test", max_retries=0) as client,
    ):
        yield client
        assert provider.rejected == []


def results(history: list[Any]) -> list[Any]:
    """What the model reads of each call."""
    return [json.loads(message["content"]) for message in history if message["role"] == "tool"]


async def test_a_browser_leaves_and_comes_back(nothing_left: None) -> None:
    """Over real HTTP: what was done is kept, what was cut off is said to be, and the follow-up is answered."""
    history = await main()
    assert check_chat(history) is None
    assert [message["role"] for message in history] == ["user", "assistant", "tool", "tool", "user", "assistant"]
    done, cut_off = results(history)
    assert done == {"city": "Oslo", "celsius": 18}
    assert (cut_off["error"]["code"], cut_off["error"]["side_effect_state"]) == ("request_aborted", "unknown")


async def test_left_at_a_yield(client: openai.AsyncOpenAI, nothing_left: None) -> None:
    """A generator that is closed where it stands saves the turn too, and is free for the next question."""
    chat = Chat()
    stream = answer(client, chat, "Book a hotel in Oslo.")
    assert await anext(stream) == "calling weather\n"
    await stream.aclose()  # type: ignore[attr-defined]  # it is a generator, declared as what Starlette takes
    assert [result["error"]["code"] for result in results(chat.history)] == ["request_aborted"] * 2
    assert check_chat(chat.history) is None
    assert len([line async for line in answer(client, chat, "Is it booked?")]) == 1
    assert check_chat(chat.history) is None


async def test_left_while_tools_run(
    monkeypatch: pytest.MonkeyPatch, client: openai.AsyncOpenAI, nothing_left: None
) -> None:
    """A task that is cancelled while it waits for tools saves the turn, and ends as cancelled."""
    entered = asyncio.Event()

    async def book_hotel(city: str) -> None:
        entered.set()
        await asyncio.Event().wait()

    monkeypatch.setitem(TOOLS, "book_hotel", book_hotel)
    chat = Chat()

    async def read() -> None:
        async for _ in answer(client, chat, "Book a hotel in Oslo."):
            pass

    reading = asyncio.create_task(read())
    await entered.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert results(chat.history)[1]["error"]["code"] == "request_aborted"
    assert check_chat(chat.history) is None
    assert not chat.lock.locked()
