"""An agent of pydantic-ai whose tools run through batches: one works, one raises, one will not stop, and two calls share an id."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from toolbatch import tool
from toolbatch.integrations.pydantic_ai import BatchTools


async def weather(city: str) -> dict[str, int]:
    """Look up the weather. A tool of pydantic-ai's, which works."""
    return {"celsius": 18 if city == "Oslo" else 21}


async def hotels(city: str) -> str:
    """Look for hotels. It raises."""
    raise ConnectionError(f"the hotel service does not know {city}")


@tool(timeout=0.2)
async def trains(to: str) -> str:
    """Look for trains. A tool of toolbatch's, which hangs and does not care to be cancelled."""
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        await asyncio.sleep(0.1)
    return f"Trains to {to}: every hour."


# What a model would say. pydantic-ai alone would end the run: for the repeated id, and for the tool that raises.
def respond(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Announce four calls, then answer."""
    if len(messages) > 1:
        return ModelResponse(parts=[TextPart("18 degrees there, 21 here. I could find out about nothing else.")])
    return ModelResponse(
        parts=[
            ToolCallPart("weather", {"city": "Oslo"}, "call_0"),
            ToolCallPart("weather", {"city": "Rome"}, "call_0"),
            ToolCallPart("hotels", {"city": "Oslo"}, "call_1"),
            ToolCallPart("trains", {"to": "Oslo"}, "call_2"),
        ]
    )


async def main() -> list[ModelMessage]:
    """Ask one question, and show what became of the calls."""
    batches = BatchTools([trains], timeout=30, call_timeout=5)
    agent = Agent(FunctionModel(respond), tools=[weather, hotels], capabilities=[batches])
    result = await agent.run("Shall I go to Oslo?")
    for message in result.all_messages():
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                print(f"{part.tool_name:>8} {part.outcome}: {part.model_response_str(wrap_if_error=False)}")
    print(result.output)
    return result.all_messages()


if __name__ == "__main__":
    asyncio.run(main())
