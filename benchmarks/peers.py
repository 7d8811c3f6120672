"""The same no-op batch in other frameworks: what their tool execution costs, against a whole ToolBatch.

Each framework's own executor is called directly, on the calls of one answer of a model, so that nothing else is measured: no
model, no request, no parsing of arguments that its caller has done before. Tracing is off. All tools take nothing, do
nothing and are coroutine functions. Three executors are no public names; peers.txt pins the versions where they are.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from toolbatch import ToolCall

from ._measure import FULL, LOOPS, QUICK, Effort, compare, looped
from ._report import Row, Table, micro, page, write
from ._sides import announce, require_equal, with_toolbatch

__all__ = ["PEERS", "main", "run"]

Execute = Callable[[], Coroutine[Any, Any, list[tuple[str, str]]]]
"""Runs the batch once, and returns the id and the text of each result."""


async def no_op() -> str:
    """Do nothing."""
    return "done"


async def toolbatch(calls: Sequence[ToolCall]) -> Execute:
    """Return our side: `ToolBatch`, a timeout for each call, `snapshot()`, `openai_chat.results`."""

    async def execute() -> list[tuple[str, str]]:
        messages = await with_toolbatch(calls, no_op)
        return [(message["tool_call_id"], message["content"]) for message in messages]

    return execute


async def pydantic_ai(calls: Sequence[ToolCall]) -> Execute:
    """`pydantic_ai._tool_execution.process_tool_calls`, with what a real run on a `FunctionModel` hands to it."""
    from dataclasses import replace

    import pydantic_ai._agent_graph as graph  # type: ignore[import-not-found,unused-ignore]
    from pydantic_ai import Agent
    from pydantic_ai.messages import (  # type: ignore[import-not-found,unused-ignore]
        ModelResponse,
        TextPart,
        ToolCallPart,
    )
    from pydantic_ai.models.function import FunctionModel  # type: ignore[import-not-found,unused-ignore]

    def answer(messages: list[Any], _info: object) -> Any:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart(call.name, {}, tool_call_id=call.id) for call in calls])
        return ModelResponse(parts=[TextPart("done")])

    process = graph.process_tool_calls
    given: dict[str, Any] = {}

    def noting(tool_manager: Any, **kwargs: Any) -> Any:
        # A copy: at its end the run takes the context away from its own.
        given.update(kwargs, tool_manager=replace(tool_manager))
        return process(tool_manager, **kwargs)

    graph.process_tool_calls = noting
    try:
        agent = Agent(FunctionModel(answer), tools=[no_op])
        await agent.run("go")
    finally:
        graph.process_tool_calls = process

    async def execute() -> list[tuple[str, str]]:
        parts: list[Any] = []
        async for _ in process(**{**given, "output_parts": parts, "output_final_result": None}):
            pass
        return [(part.tool_call_id, part.content) for part in parts]

    return execute


async def openai_agents(calls: Sequence[ToolCall]) -> Execute:
    """`agents.run_internal.tool_execution.execute_function_tool_calls`."""
    from agents import (  # type: ignore[import-not-found,unused-ignore]
        Agent,
        RunConfig,
        RunContextWrapper,
        RunHooks,
        function_tool,
        set_tracing_disabled,
    )
    from agents.run_internal.agent_bindings import bind_public_agent  # type: ignore[import-not-found,unused-ignore]
    from agents.run_internal.run_steps import ToolRunFunction  # type: ignore[import-not-found,unused-ignore]
    from agents.run_internal.tool_execution import (  # type: ignore[import-not-found,unused-ignore]
        execute_function_tool_calls,
    )
    from openai.types.responses import ResponseFunctionToolCall

    set_tracing_disabled(disabled=True)
    tool = function_tool(no_op)
    bindings = bind_public_agent(Agent(name="bench", tools=[tool]))
    announced = [
        ResponseFunctionToolCall(type="function_call", call_id=call.id, name=call.name, arguments="{}")
        for call in calls
    ]

    async def execute() -> list[tuple[str, str]]:
        results, _, _ = await execute_function_tool_calls(
            bindings=bindings,
            tool_runs=[ToolRunFunction(tool_call=call, function_tool=tool) for call in announced],
            hooks=RunHooks(),
            context_wrapper=RunContextWrapper(context=None),
            config=RunConfig(tracing_disabled=True),
        )
        done: list[Any] = list(results)
        return [(result.run_item.raw_item["call_id"], result.output) for result in done]

    return execute


async def langgraph(calls: Sequence[ToolCall]) -> Execute:
    """`ToolNode.ainvoke`, with the runtime that a graph gives it."""
    from langchain_core.messages import AIMessage  # type: ignore[import-not-found,unused-ignore]
    from langchain_core.tools import StructuredTool  # type: ignore[import-not-found,unused-ignore]
    from langgraph.prebuilt import ToolNode  # type: ignore[import-not-found,unused-ignore]
    from langgraph.runtime import Runtime  # type: ignore[import-not-found,unused-ignore]

    node = ToolNode([StructuredTool.from_function(coroutine=no_op, name="no_op", description="Do nothing.")])
    message = AIMessage("", tool_calls=[{"name": call.name, "args": {}, "id": call.id} for call in calls])
    config: Any = {"configurable": {"__pregel_runtime": Runtime()}}

    async def execute() -> list[tuple[str, str]]:
        output = await node.ainvoke({"messages": [message]}, config)
        return [(result.tool_call_id, result.content) for result in output["messages"]]

    return execute


async def anthropic(calls: Sequence[ToolCall]) -> Execute:
    """The runner's own `_generate_tool_call_response`, after one reply of a fake transport. It runs tools one by one."""
    import httpx2  # type: ignore[import-not-found,unused-ignore]
    from anthropic import AsyncAnthropic, beta_async_tool

    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "fake",
        "content": [{"type": "tool_use", "id": call.id, "name": call.name, "input": {}} for call in calls],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    transport = httpx2.MockTransport(lambda _request: httpx2.Response(200, json=reply))
    client = AsyncAnthropic(api_key="none", http_client=httpx2.AsyncClient(transport=transport))
    runner = client.beta.messages.tool_runner(
        model="fake",
        max_tokens=1,
        messages=[{"role": "user", "content": "go"}],
        tools=[beta_async_tool(no_op)],
        max_iterations=1,
    )
    await runner.until_done()

    async def execute() -> list[tuple[str, str]]:
        response: Any = await runner._generate_tool_call_response()  # the public method remembers its answer
        return [(block["tool_use_id"], block["content"]) for block in response["content"]]

    return execute


async def bare_tasks(calls: Sequence[ToolCall]) -> Execute:
    """Return what no executor that runs tools side by side can go below: one task for each, and nothing else."""

    async def execute() -> list[tuple[str, str]]:
        texts = await asyncio.gather(*[no_op() for _ in calls])
        return [(call.id, text) for call, text in zip(calls, texts, strict=True)]

    return execute


PEERS: Final[dict[str, Callable[[Sequence[ToolCall]], Coroutine[Any, Any, Execute]]]] = {
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
    "LangGraph's ToolNode": langgraph,
    "Anthropic's runner": anthropic,
}

_BARE: Final = "(bare tasks)"

_GOAL: Final = 0.1
_COLUMNS: Final = (
    "calls",
    "framework",
    "toolbatch, us: min / median",
    "theirs, us: min / median",
    "times ours",
    "CPU ratio",
)


def run(effort: Effort, names: Sequence[str] = tuple(PEERS)) -> Table:
    """Measure each framework against a ToolBatch, in turns, on asyncio."""
    sizes = (8,) if effort.quick else (8, 64)
    with asyncio.Runner(loop_factory=LOOPS["asyncio"]) as runner:
        rows = [row for size in sizes for row in _rows(runner, size, names, effort)]
    return Table(
        "A batch of no-op tools in other frameworks",
        "Times are of a batch, each framework in turns with a whole `ToolBatch` and its export. Only their tool execution is\n"
        "measured: `ToolNode.ainvoke`; pydantic-ai's `process_tool_calls` with what a run handed to it; openai-agents'\n"
        "`execute_function_tool_calls`; the Anthropic runner's `_generate_tool_call_response`, which awaits one tool after the\n"
        "other, without tasks, timeouts or cancellation. The goal is about the cheapest of a size; the others inform. Bare tasks\n"
        "are no framework: `asyncio.gather` over the tools, the least that running them side by side costs.",
        "at least 10 times less than the best of them, that is a CPU ratio of at most 0.1",
        _COLUMNS,
        rows,
    )


def _rows(runner: asyncio.Runner, size: int, names: Sequence[str], effort: Effort) -> list[Row]:
    calls = announce(size)
    ours = runner.run(toolbatch(calls))
    expected = runner.run(ours())
    rows = []
    for name, make in [*[(name, PEERS[name]) for name in names], (_BARE, bare_tasks)]:
        theirs = runner.run(make(calls))
        require_equal(expected, runner.run(theirs()))
        comparison = compare(
            looped(runner, _repeated(ours)), looped(runner, _repeated(theirs)), effort, rounds=min(effort.rounds, 15)
        )
        times = f"{1 / comparison.ratio:.1f}"
        cells = (f"{size}", name, micro(comparison.ours), micro(comparison.theirs), times, f"{comparison.ratio:.3f}")
        rows.append(Row(cells, comparison.ratio, None))
    best = max(rows[:-1], key=lambda row: row.figure)
    return [row._replace(goal=_GOAL) if row is best else row for row in rows]


def _repeated(execute: Execute) -> Callable[[int], Coroutine[Any, Any, None]]:
    async def work(times: int) -> None:
        for _ in range(times):
            await execute()

    return work


_PACKAGES: Final = (
    "toolbatch",
    "pydantic-ai-slim",
    "openai-agents",
    "langgraph",
    "langgraph-prebuilt",
    "langchain-core",
    "anthropic",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which to run: {', '.join(PEERS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="only try the code: the figures mean nothing")
    parser.add_argument("--write", action="store_true", help="write this part of benchmarks/RESULTS.md")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in PEERS]
    if unknown:
        parser.error(f"{unknown[0]!r} is not measured here; there are {', '.join(PEERS)}")
    if options.write and (options.quick or options.names):
        parser.error("--write is for a full run of all peers")
    table = run(QUICK if options.quick else FULL, options.names or tuple(PEERS))
    print(table.markdown())
    if options.write:
        write("peers", page([table], _PACKAGES, "python -m benchmarks.peers --write"))


if __name__ == "__main__":
    main(sys.argv[1:])
