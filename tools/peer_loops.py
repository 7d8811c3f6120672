"""The same turn in several systems' own loops, for tools/compare_peers.py. Each SDK is imported where it is used."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from toolbatch import ToolBatch, ToolCatalog, tool
from toolbatch.providers import openai_chat

__all__ = ["LOOPS", "Call", "Loop", "NoBound", "NoText", "Results", "Tool"]

Tool = Callable[..., Awaitable[Any]]
Results = list[tuple[str, str]]
"""What the model is sent for each call: the id, and the text."""


class Call(NamedTuple):
    """A call as the model announces it, arguments as text."""

    id: str
    name: str
    arguments: str = "{}"


Loop = Callable[[Sequence[Call], Mapping[str, Tool], float | None], Awaitable[Results]]


class NoBound(Exception):  # noqa: N818  no error: the system has no bound of time for a tool
    """A bound was asked for, and the system has none for a tool."""


class NoText(Exception):  # noqa: N818  no error: arguments are objects in this API
    """Arguments that are no JSON were asked for, and this API carries objects."""


async def by_hand(calls: Sequence[Call], tools: Mapping[str, Tool], timeout: float | None) -> Results:
    """What people write: a task group, `asyncio.timeout` a call, `json.dumps`, errors as text."""

    async def one(call: Call) -> str:
        try:
            async with asyncio.timeout(timeout):
                value = await tools[call.name](**json.loads(call.arguments))
            return value if isinstance(value, str) else json.dumps(value)
        except Exception as error:  # noqa: BLE001  a tool may raise anything
            return f"Error: {error!r}"

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(call)) for call in calls]
    return [(call.id, task.result()) for call, task in zip(calls, tasks, strict=True)]


async def langgraph(calls: Sequence[Call], tools: Mapping[str, Tool], timeout: float | None) -> Results:
    """`ToolNode` in a graph. What can't be parsed is an `invalid_tool_call` there, as LangChain's models make it."""
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.tools import StructuredTool
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    if timeout is not None:
        raise NoBound
    good: list[Any] = []
    bad: list[Any] = []
    for call in calls:
        try:
            good.append({"name": call.name, "args": json.loads(call.arguments), "id": call.id})
        except ValueError:
            bad.append(
                {"name": call.name, "args": call.arguments, "id": call.id, "error": None, "type": "invalid_tool_call"}
            )
    asked = AIMessage("", tool_calls=good, invalid_tool_calls=bad)

    def model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [asked if len(state["messages"]) == 1 else AIMessage("done")]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode([StructuredTool.from_function(coroutine=fn) for fn in tools.values()]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    state = await graph.compile().ainvoke({"messages": [("user", "go")]})
    return [
        (message.tool_call_id, str(message.content))
        for message in state["messages"]
        if isinstance(message, ToolMessage)
    ]


async def pydantic_ai(calls: Sequence[Call], tools: Mapping[str, Tool], timeout: float | None) -> Results:
    """An agent on a `FunctionModel`."""
    from pydantic_ai import Agent
    from pydantic_ai import Tool as AgentTool
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    sent: Results = []

    def answer(messages: list[Any], _info: object) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(
                parts=[ToolCallPart(call.name, call.arguments, tool_call_id=call.id) for call in calls]
            )
        if not sent:
            sent.extend((part.tool_call_id, part.model_response_str()) for part in messages[2].parts)
        return ModelResponse(parts=[TextPart("done")])

    made: Any = [AgentTool(fn, timeout=timeout) for fn in tools.values()]
    await Agent(FunctionModel(answer), tools=made).run("go")
    return sent


async def openai_agents(calls: Sequence[Call], tools: Mapping[str, Tool], timeout: float | None) -> Results:
    """`Runner.run` on a `ScriptedModel`."""
    from agents import Agent, RunConfig, Runner, function_tool
    from agents.testing import ScriptedModel, assistant_message
    from openai.types.responses import ResponseFunctionToolCall

    made: Any = [function_tool(fn, timeout=timeout) for fn in tools.values()]
    asked: Any = [
        ResponseFunctionToolCall(type="function_call", call_id=call.id, name=call.name, arguments=call.arguments)
        for call in calls
    ]
    agent = Agent("agent", model=ScriptedModel([asked, [assistant_message("done")]]), tools=made)
    run = await Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True))
    items: Any = run.to_input_list()
    return [(item["call_id"], str(item["output"])) for item in items if item.get("type") == "function_call_output"]


async def agent_framework(calls: Sequence[Call], tools: Mapping[str, Tool], timeout: float | None) -> Results:
    """An `Agent` on a chat client of our own, with the framework's layer that runs tools."""
    import agent_framework as maf  # type: ignore[import-not-found,unused-ignore]

    if timeout is not None:
        raise NoBound
    sent: Results = []

    class Scripted(maf.FunctionInvocationLayer, maf.BaseChatClient):  # type: ignore[misc,unused-ignore]
        async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
            del stream, options, kwargs
            found = [part for message in messages for part in message.contents if part.type == "function_result"]
            if not found:
                asked = [
                    maf.Content.from_function_call(call_id=call.id, name=call.name, arguments=call.arguments)
                    for call in calls
                ]
                return maf.ChatResponse(messages=[maf.Message(role="assistant", contents=asked)])
            sent.extend((part.call_id, str(part.result)) for part in found)
            return maf.ChatResponse(messages=[maf.Message(role="assistant", contents=["done"])])

    made = [maf.tool(fn, approval_mode="never_require") for fn in tools.values()]
    await maf.Agent(Scripted(), tools=made).run("go")
    return sent


async def anthropic(calls: Sequence[Call], tools: Mapping[str, Tool], timeout: float | None) -> Results:
    """The SDK's tool runner, on a transport that plays the server."""
    import anthropic as sdk
    import httpx2

    if timeout is not None:
        raise NoBound
    if any(not _is_json(call.arguments) for call in calls):
        raise NoText
    sent: list[Any] = []
    blocks = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)} for call in calls
    ]
    replies = [(blocks, "tool_use"), ([{"type": "text", "text": "done"}], "end_turn")]

    def serve(request: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(request.content))
        content, reason = replies[len(sent) - 1]
        head = {
            "id": f"msg_{len(sent)}",
            "type": "message",
            "role": "assistant",
            "model": "fake",
            "stop_sequence": None,
        }
        usage = {"input_tokens": 1, "output_tokens": 1}
        return httpx2.Response(200, json={**head, "content": content, "stop_reason": reason, "usage": usage})

    transport = httpx2.MockTransport(serve)
    async with sdk.AsyncAnthropic(api_key="none", http_client=httpx2.AsyncClient(transport=transport)) as client:
        made: Any = [sdk.beta_async_tool(fn) for fn in tools.values()]
        runner = client.beta.messages.tool_runner(
            model="fake", max_tokens=100, messages=[{"role": "user", "content": "go"}], tools=made
        )
        await runner.until_done()
    return [(block["tool_use_id"], str(block["content"])) for block in sent[1]["messages"][-1]["content"]]


async def toolbatch(calls: Sequence[Call], tools: Mapping[str, Tool], timeout: float | None) -> Results:
    """`ToolBatch`, and the lane of Chat Completions."""
    announced = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]
    response = {"role": "assistant", "tool_calls": announced}
    messages: list[Any] = []
    catalog = ToolCatalog([tool(fn) for fn in tools.values()])
    async with ToolBatch(openai_chat.calls(response), tools=catalog, call_timeout=timeout) as batch:
        batch.start_all()
    openai_chat.extend(messages, response, batch.result)
    return [(message["tool_call_id"], message["content"]) for message in messages if message["role"] == "tool"]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


LOOPS: Mapping[str, Loop] = {
    "LangGraph's ToolNode": langgraph,
    "pydantic-ai": pydantic_ai,
    "OpenAI Agents SDK": openai_agents,
    "Microsoft Agent Framework": agent_framework,
    "Anthropic's runner": anthropic,
    "a TaskGroup by hand": by_hand,
    "toolbatch": toolbatch,
}
