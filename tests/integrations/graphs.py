"""A real LangGraph graph around a `BatchToolNode`: a scripted chat model of LangChain's, which also is a strict reader."""

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt.chat_agent_executor import _validate_chat_history

from toolbatch import transcript
from toolbatch.integrations.langgraph import BatchToolNode, tools_condition

__all__ = ["State", "agent", "answers", "ask", "call", "thread"]


class State(MessagesState, total=False):
    """What the graph keeps."""

    found: str
    other: str


def call(name: str, call_id: str | None, **args: Any) -> dict[str, Any]:
    """An entry of `tool_calls`."""
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def thread(name: str = "t") -> RunnableConfig:
    """The configuration of a conversation."""
    return {"configurable": {"thread_id": name}}


def agent(node: Any, *turns: Sequence[dict[str, Any]] | AIMessage, checkpointer: Any = None, **more: Any) -> Any:
    """A graph whose model announces these turns' calls one after the other, and then says that it is done.

    Before each of its answers the model reads the conversation as LangGraph's own agent does, and by our law: a call without an
    answer, or anything else out of place, fails the graph.
    """
    said = [turn if isinstance(turn, AIMessage) else AIMessage("", tool_calls=list(turn)) for turn in turns]
    model = FakeMessagesListChatModel(responses=[*said, AIMessage("Done.")])

    async def respond(state: State) -> dict[str, Any]:
        _validate_chat_history(state["messages"])
        assert transcript.check(state["messages"], "langchain") == []
        return {"messages": [await model.ainvoke(state["messages"])]}

    def respond_at_once(state: State) -> dict[str, Any]:
        _validate_chat_history(state["messages"])
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(State)
    graph.add_node("model", RunnableLambda(respond_at_once, afunc=respond))
    graph.add_node("tools", node)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=checkpointer or InMemorySaver(), **more)


async def ask(graph: Any, text: str = "Hi.", config: RunnableConfig | None = None, **state: Any) -> list[BaseMessage]:
    """Say something in the conversation, and return all of its messages."""
    done = await graph.ainvoke({"messages": [HumanMessage(text)], **state}, config or thread())
    messages: list[BaseMessage] = done["messages"]
    return messages


def answers(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    """The tools' results."""
    return [message for message in messages if isinstance(message, ToolMessage)]


def node(*tools: Any, **options: Any) -> BatchToolNode:
    """The node under test."""
    return BatchToolNode(tools, **options)
