"""A LangGraph agent whose tools run through a batch: one works, one raises, one will not stop, and one call can't be parsed."""

import asyncio

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool as langchain_tool
from langgraph.graph import START, MessagesState, StateGraph

from toolbatch import tool
from toolbatch.integrations.langgraph import BatchToolNode, tools_condition


@langchain_tool
async def weather(city: str) -> dict[str, int]:
    """Look up the weather. A tool of LangChain's, which works."""
    return {"celsius": 18 if city == "Oslo" else 21}


@langchain_tool
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


# What a model would say.
ASKED = AIMessage(
    "",
    tool_calls=[
        {"name": "weather", "args": {"city": "Oslo"}, "id": "call_1"},
        {"name": "hotels", "args": {"city": "Oslo"}, "id": "call_2"},
        {"name": "trains", "args": {"to": "Oslo"}, "id": "call_3"},
    ],
    invalid_tool_calls=[
        {"name": "weather", "args": '{"city": "Be', "id": "call_4", "error": None, "type": "invalid_tool_call"}
    ],
)
MODEL = FakeMessagesListChatModel(responses=[ASKED, AIMessage("18 degrees. I could find out about nothing else.")])


async def call_model(state: MessagesState) -> dict[str, list[AnyMessage]]:
    """Ask the model."""
    return {"messages": [await MODEL.ainvoke(state["messages"])]}


async def main() -> list[AnyMessage]:
    """Ask one question, and show the conversation that it leaves."""
    graph = StateGraph(MessagesState)
    graph.add_node("model", call_model)
    graph.add_node("tools", BatchToolNode([weather, hotels, trains], timeout=30, call_timeout=5))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    state = await graph.compile().ainvoke({"messages": [HumanMessage("Shall I go to Oslo?")]})
    messages: list[AnyMessage] = state["messages"]
    for message in messages:
        mark = f" {message.status}" if isinstance(message, ToolMessage) else ""
        print(f"{message.type:>5}{mark}: {message.text or 'calls tools'}")
    return messages


if __name__ == "__main__":
    asyncio.run(main())
