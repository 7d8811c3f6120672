"""A whole agent loop in 20 lines of plain asyncio: the history stays valid, whatever the tools do."""

import asyncio
from collections.abc import Callable
from typing import Any

from openai import AsyncOpenAI

from toolbatch import ToolBatch
from toolbatch.providers import openai_chat
from toolbatch.testing import FakeProvider, Reply, ScriptedCall


async def weather(city: str) -> dict[str, Any]:
    """A tool that works."""
    return {"city": city, "celsius": 18}


async def trains(to: str) -> str:
    """A tool that hangs."""
    await asyncio.sleep(3600)
    return f"Trains to {to}: every hour."


TOOLS: dict[str, Callable[..., Any]] = {"weather": weather, "trains": trains}


# The 20 lines.
async def answer(client: AsyncOpenAI, history: list[Any], question: str) -> str:
    """Let the model call tools until it has an answer to the question."""
    history.append({"role": "user", "content": question})
    while True:
        response = await client.chat.completions.create(model="fake", messages=history)
        batch = ToolBatch(openai_chat.calls(response), tools=TOOLS, call_timeout=0.2)
        try:
            async with batch:
                batch.start_all()
        finally:  # also after a cancellation: then the calls that were running are answered as cancelled
            if batch.result is not None:
                openai_chat.extend(history, response, batch.result)
        if not batch.outcomes:  # no calls: this is the answer
            return response.choices[0].message.content or ""


async def main() -> list[Any]:
    """Ask one question, and show the history that it leaves."""
    script = [
        Reply(
            calls=[
                ScriptedCall("call_1", "weather", {"city": "Oslo"}),
                ScriptedCall("call_2", "trains", {"to": "Oslo"}),
            ]
        ),
        Reply("18 degrees. I could not find out about trains."),
    ]
    history: list[Any] = []
    async with (
        FakeProvider(script) as provider,
        AsyncOpenAI(base_url=provider.openai_base_url, api_key="demo", max_retries=0) as client,
    ):
        await answer(client, history, "Shall I go to Oslo?")
    for message in history:
        calls = ", ".join(call["function"]["name"] for call in message.get("tool_calls", []))
        print(f"{message['role']:>9}  {message['content'] or f'calls {calls}'}")
    return history


if __name__ == "__main__":
    asyncio.run(main())
