"""A FastAPI endpoint that streams, and whose client leaves while tools run: the history stays valid.

Starlette cancels the response's task when the client leaves. Whether that finds the generator waiting for tools
(`CancelledError`) or standing at a `yield` (`GeneratorExit`), leaving the batch answers every call, and the `finally` saves
the turn. No answer is lost and the next request is accepted.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that a script finds its neighbours

from examples._serving import serving
from toolbatch import ToolBatch
from toolbatch.providers import openai_chat
from toolbatch.testing import FakeProvider, Reply, ScriptedCall


async def weather(city: str) -> dict[str, Any]:
    """Answers at once."""
    return {"city": city, "celsius": 18}


async def book_hotel(city: str) -> str:
    """Takes longer than the client's patience."""
    await asyncio.sleep(3600)
    return f"Hotel in {city} booked."


TOOLS = {"weather": weather, "book_hotel": book_hotel}


@dataclass
class Chat:
    """One conversation. The lock keeps a request from reading the history before the last one has saved its turn."""

    history: list[Any] = field(default_factory=list)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


async def answer(client: AsyncOpenAI, chat: Chat, question: str) -> AsyncIterator[str]:
    """Run the agent, and tell the client line by line how far it is."""
    async with chat.lock:
        chat.history.append({"role": "user", "content": question})
        while True:
            response = await client.chat.completions.create(model="fake", messages=chat.history)
            batch = ToolBatch(openai_chat.calls(response), tools=TOOLS)
            try:
                async with batch:
                    batch.start_all()
                    for call in batch.calls:
                        yield f"calling {call.name}\n"
                    snapshot = await batch.snapshot()
            finally:
                # No `await` here: after a cancellation or a GeneratorExit it might never come back. To save the history
                # in a database, hand it to a task or a queue of the application's.
                if batch.result is not None:
                    openai_chat.extend(chat.history, response, batch.result)
            if not snapshot.calls:
                yield f"{response.choices[0].message.content}\n"
                return


def make_app(client: AsyncOpenAI, chats: dict[str, Chat]) -> FastAPI:
    """Make the application."""
    app = FastAPI()

    @app.post("/chats/{chat_id}")
    async def ask(chat_id: str, question: str) -> StreamingResponse:
        chat = chats.setdefault(chat_id, Chat())
        return StreamingResponse(answer(client, chat, question), media_type="text/plain")

    return app


SCRIPT = [
    Reply(
        calls=[
            ScriptedCall("call_1", "weather", {"city": "Oslo"}),
            ScriptedCall("call_2", "book_hotel", {"city": "Oslo"}),
        ]
    ),
    Reply("The booking was interrupted. Please check with the hotel before we try again."),
]


async def main() -> list[Any]:
    """Leave in the middle of an answer, come back, and return the history that was kept."""
    chats: dict[str, Chat] = {}
    async with (
        FakeProvider(SCRIPT) as provider,
        AsyncOpenAI(base_url=provider.openai_base_url, api_key="demo", max_retries=0) as client,
        serving(make_app(client, chats)) as url,
        httpx.AsyncClient(base_url=url) as browser,
    ):
        async with browser.stream("POST", "/chats/1", params={"question": "Book a hotel in Oslo."}) as response:
            async for line in response.aiter_lines():
                print(f"browser: {line}")
                if line == "calling book_hotel":
                    break
        print("browser: [closes the tab]")

        print(f"browser: {(await browser.post('/chats/1', params={'question': 'Is it booked?'})).text}")
        print(f"provider: {len(provider.requests)} requests, {len(provider.rejected)} refused. The history:\n")

    for message in chats["1"].history:
        called = ", ".join(call["function"]["name"] for call in message.get("tool_calls", []))
        print(f"{message['role']:>9}  {message['content'] or f'[calls {called}]'}")
    return chats["1"].history


if __name__ == "__main__":
    asyncio.run(main())
