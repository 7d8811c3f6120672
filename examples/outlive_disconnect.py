"""A run that outlives its request: the client leaves, the tools go on, and the answer is there on the next request.

The agent runs in a task that belongs to the application, with its `ToolSession`. A request only watches it, through
`asyncio.shield`: when the request is cancelled, the run is not. Use this for work that must not stop half way; where a
closed tab should stop the work, see `fastapi_disconnect.py`.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that a script finds its neighbours

from examples._serving import serving
from toolbatch import ToolSession
from toolbatch.providers import openai_chat
from toolbatch.testing import FakeProvider, Reply, ScriptedCall

Tools = dict[str, Callable[..., Any]]


@dataclass
class Chat:
    """One conversation, and the run that works on its latest question."""

    history: list[Any] = field(default_factory=list)
    run: asyncio.Task[str] | None = None  # this reference also keeps the task alive
    abandoned: asyncio.Event = field(default_factory=asyncio.Event)  # a client has left without its answer


async def answer(client: AsyncOpenAI, tools: Tools, history: list[Any], question: str) -> str:
    """Run the agent. It knows nothing of requests."""
    history.append({"role": "user", "content": question})
    async with ToolSession(tools=tools, call_timeout=60) as session:
        while True:
            response = await client.chat.completions.create(model="fake", messages=history)
            batch = session.batch(openai_chat.calls(response))
            try:
                async with batch:
                    batch.start_all()
                    snapshot = await batch.snapshot()
            finally:  # the application's shutdown comes this way
                if batch.result is not None:
                    openai_chat.extend(history, response, batch.result)
            if not snapshot.calls:
                return response.choices[0].message.content or ""


async def watch(chat: Chat, run: asyncio.Task[str]) -> AsyncIterator[str]:
    """Stream the answer to whoever asked; when they leave, the run goes on."""
    try:
        yield "working on it\n"
        yield await asyncio.shield(run)
    except (asyncio.CancelledError, GeneratorExit):
        chat.abandoned.set()
        raise


def make_app(client: AsyncOpenAI, tools: Tools, chats: dict[str, Chat]) -> FastAPI:
    """Make the application."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        runs = [chat.run for chat in chats.values() if chat.run is not None]
        for run in runs:
            run.cancel()  # at shutdown; each run still answers its calls
        await asyncio.gather(*runs, return_exceptions=True)

    app = FastAPI(lifespan=lifespan)

    @app.post("/chats/{chat_id}")
    async def ask(chat_id: str, question: str) -> StreamingResponse:
        chat = chats.setdefault(chat_id, Chat())
        chat.run = asyncio.create_task(answer(client, tools, chat.history, question))
        return StreamingResponse(watch(chat, chat.run), media_type="text/plain")

    @app.get("/chats/{chat_id}")
    async def come_back(chat_id: str) -> str:
        run = chats[chat_id].run
        return "" if run is None else await asyncio.shield(run)

    return app


SCRIPT = [
    Reply(calls=[ScriptedCall("call_1", "book_hotel", {"city": "Oslo"})]),
    Reply("Your hotel in Oslo is booked."),
]


async def main() -> tuple[list[Any], str]:
    """Leave while a tool runs, come back, and return the history and the answer."""
    hotel_answers = asyncio.Event()

    async def book_hotel(city: str) -> str:
        await hotel_answers.wait()
        return f"Hotel in {city} booked."

    chats = {"1": Chat()}
    async with (
        FakeProvider(SCRIPT) as provider,
        AsyncOpenAI(base_url=provider.openai_base_url, api_key="demo", max_retries=0) as client,
        serving(make_app(client, {"book_hotel": book_hotel}, chats)) as url,
        httpx.AsyncClient(base_url=url) as browser,
    ):
        async with browser.stream("POST", "/chats/1", params={"question": "Book a hotel in Oslo."}) as response:
            print(f"browser: {await anext(response.aiter_lines())}")
        print("browser: [closes the tab]")
        await chats["1"].abandoned.wait()
        print("server:  the request was cancelled, its run goes on")

        hotel_answers.set()
        print("hotel:   booked")

        back = await browser.get("/chats/1")
        print(f"browser: [comes back] {back.json()}")
        print(f"provider: {len(provider.requests)} requests, {len(provider.rejected)} refused")
    return chats["1"].history, back.json()


if __name__ == "__main__":
    asyncio.run(main())
