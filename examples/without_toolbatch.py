"""The agent loop as it is often written by hand, and what each API says once the user has pressed Stop.

The loops look right: calls run side by side, each has a timeout, exceptions become results. But when the task is cancelled,
the calls are in the history and their results are not, and every later request of the conversation is refused.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import anthropic
import openai

from toolbatch.testing import FakeProvider, Reply, ScriptedCall

History = list[Any]
Tools = dict[str, Callable[..., Awaitable[str]]]


async def run_tool(tools: Tools, name: str, arguments: Any) -> str:
    """Run one call; whatever goes wrong becomes text that the model can read. A cancellation is no `Exception`."""
    try:
        async with asyncio.timeout(30):
            return await tools[name](**arguments)
    except Exception as error:  # noqa: BLE001  a tool may raise anything
        return f"Error: {error}"


async def chat(client: openai.AsyncOpenAI, history: History, tools: Tools) -> None:
    """Run an agent on Chat Completions."""
    while True:
        response = await client.chat.completions.create(model="fake", messages=history)
        message = response.choices[0].message
        history.append(message)
        calls = [call for call in message.tool_calls or [] if call.type == "function"]
        if not calls:
            return
        results = await asyncio.gather(
            *(run_tool(tools, call.function.name, json.loads(call.function.arguments)) for call in calls)
        )
        for call, result in zip(calls, results, strict=True):
            history.append({"role": "tool", "tool_call_id": call.id, "content": result})


async def responses(client: openai.AsyncOpenAI, history: History, tools: Tools) -> None:
    """Run an agent on Responses."""
    while True:
        response = await client.responses.create(model="fake", input=history, store=False)
        history += response.output
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run_tool(tools, call.name, json.loads(call.arguments))) for call in calls]
        for call, task in zip(calls, tasks, strict=True):
            history.append({"type": "function_call_output", "call_id": call.call_id, "output": task.result()})


async def messages(client: anthropic.AsyncAnthropic, history: History, tools: Tools) -> None:
    """Run an agent on Messages."""
    while True:
        response = await client.messages.create(model="fake", max_tokens=1000, messages=history)
        history.append({"role": "assistant", "content": response.content})
        calls = [block for block in response.content if block.type == "tool_use"]
        if not calls:
            return
        results = await asyncio.gather(*(run_tool(tools, call.name, call.input) for call in calls))
        blocks = [
            {"type": "tool_result", "tool_use_id": call.id, "content": result}
            for call, result in zip(calls, results, strict=True)
        ]
        history.append({"role": "user", "content": blocks})


async def press_stop_and_go_on(agent: Callable[[History, Tools], Awaitable[None]]) -> str:
    """Cancel a turn while its tools run, say something new, and return what the API answers."""
    running = asyncio.Event()

    async def book_hotel(city: str) -> str:
        running.set()
        await asyncio.sleep(3600)
        return f"Hotel in {city} booked."

    history: History = [{"role": "user", "content": "Book me a hotel in Oslo."}]
    turn = asyncio.ensure_future(agent(history, {"book_hotel": book_hotel}))
    await running.wait()
    turn.cancel()  # the user presses Stop
    await asyncio.wait([turn])

    history.append({"role": "user", "content": "Stop. Did you book anything?"})
    try:
        await agent(history, {"book_hotel": book_hotel})
    except (openai.BadRequestError, anthropic.BadRequestError) as refused:
        return f"{refused.status_code}: {refused.response.json()['error']['message']}"
    return "accepted"


async def refusals() -> dict[str, str]:
    """Return what each API answers to the request after the Stop."""
    booking = Reply(calls=[ScriptedCall("call_1", "book_hotel", {"city": "Oslo"})])
    async with (
        FakeProvider(lambda _request: booking) as provider,
        openai.AsyncOpenAI(base_url=provider.openai_base_url, api_key="demo", max_retries=0) as openai_client,
        anthropic.AsyncAnthropic(
            base_url=provider.anthropic_base_url, api_key="demo", max_retries=0
        ) as anthropic_client,
    ):
        return {
            "Chat Completions": await press_stop_and_go_on(lambda *turn: chat(openai_client, *turn)),
            "Responses": await press_stop_and_go_on(lambda *turn: responses(openai_client, *turn)),
            "Messages": await press_stop_and_go_on(lambda *turn: messages(anthropic_client, *turn)),
        }


def main() -> None:
    """Show what each API answers."""
    print("A loop written by hand. The user pressed Stop while a tool was running; the next request gets:\n")
    for api, answer in asyncio.run(refusals()).items():
        print(f"{api}\n    {answer}\n")


if __name__ == "__main__":
    main()
