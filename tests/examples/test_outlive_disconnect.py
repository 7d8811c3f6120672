"""A run that belongs to the application goes on when its request is gone."""

import asyncio
import json

import httpx
import openai

from examples._serving import serving
from examples.outlive_disconnect import SCRIPT, Chat, main, make_app
from toolbatch.testing import FakeProvider, check_chat


async def test_the_answer_is_there_on_the_next_request(nothing_left: None) -> None:
    """The tool's own result is in the history: the disconnect has cut nothing off."""
    history, answer = await main()
    assert answer == "Your hotel in Oslo is booked."
    assert [message["role"] for message in history] == ["user", "assistant", "tool", "assistant"]
    assert history[2]["content"] == "Hotel in Oslo booked."
    assert check_chat(history) is None


async def test_a_shutdown_answers_the_calls_of_runs_that_nobody_watches(nothing_left: None) -> None:
    """An application that ends cancels its runs, and each leaves a history that the endpoint takes."""
    entered = asyncio.Event()

    async def book_hotel(city: str) -> None:
        entered.set()
        await asyncio.Event().wait()

    chats = {"1": Chat()}
    async with (
        FakeProvider(SCRIPT) as provider,
        openai.AsyncOpenAI(base_url=provider.openai_base_url, api_key="test", max_retries=0) as client,
        serving(make_app(client, {"book_hotel": book_hotel}, chats)) as url,
        httpx.AsyncClient(base_url=url) as browser,
    ):
        async with browser.stream("POST", "/chats/1", params={"question": "Book a hotel in Oslo."}):
            await entered.wait()
        await chats["1"].abandoned.wait()
        run = chats["1"].run
        assert run is not None
        assert not run.done()
    assert run.cancelled()
    history = chats["1"].history
    assert json.loads(history[-1]["content"])["error"]["code"] == "request_aborted"
    assert check_chat(history) is None
