"""The same batch in other frameworks: what their tool execution costs, against a whole ToolBatch.

Each framework's own executor is called directly, on the calls of one answer of a model, so that nothing else is measured: no
model, no request, no parsing of arguments that its caller has done before. Tracing is off. All tools are coroutine functions:
one that takes and does nothing, and one with two typed arguments. Some executors are no public names; peers.txt pins the versions
where they are.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from toolbatch import ToolBatch, ToolCall, ToolCatalog, tool
from toolbatch.core import encode
from toolbatch.providers import openai_chat

from ._measure import FULL, LOOPS, QUICK, Comparison, Effort, compare, looped
from ._report import Row, Table, micro, page, write
from ._sides import LIMITS, TIMEOUT, announce, require_equal, with_toolbatch

__all__ = ["PEERS", "main", "run"]

Execute = Callable[[], Coroutine[Any, Any, list[tuple[str, str]]]]
"""Runs the batch once, and returns the id and the text of each result."""


Fn = Callable[..., Coroutine[Any, Any, str]]


async def no_op() -> str:
    """Do nothing."""
    return "done"


async def add(x: int, y: int = 1) -> str:
    """Add two numbers."""
    return str(x + y)


async def toolbatch(calls: Sequence[ToolCall], fn: Fn) -> Execute:
    """Return our side: `ToolBatch`, a timeout for each call, `snapshot()`, `openai_chat.results`."""

    async def execute() -> list[tuple[str, str]]:
        messages = await with_toolbatch(calls, fn)
        return [(message["tool_call_id"], message["content"]) for message in messages]

    return execute


async def toolbatch_tools(calls: Sequence[ToolCall], fn: Fn) -> Execute:
    """Return our side with a `ToolCatalog` and `start_all`: names are looked up, arguments checked and converted."""
    catalog = ToolCatalog([tool(fn)])

    async def execute() -> list[tuple[str, str]]:
        async with ToolBatch(calls, tools=catalog, call_timeout=TIMEOUT, limits=LIMITS) as batch:
            batch.start_all()
            snapshot = await batch.snapshot()
        return [(message["tool_call_id"], message["content"]) for message in openai_chat.results(snapshot)]

    return execute


async def pydantic_ai(calls: Sequence[ToolCall], fn: Fn) -> Execute:
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
            return ModelResponse(
                parts=[ToolCallPart(call.name, dict(call.arguments), tool_call_id=call.id) for call in calls]
            )
        return ModelResponse(parts=[TextPart("done")])

    process = graph.process_tool_calls
    given: dict[str, Any] = {}

    def noting(tool_manager: Any, **kwargs: Any) -> Any:
        # A copy: at its end the run takes the context away from its own.
        given.update(kwargs, tool_manager=replace(tool_manager))
        return process(tool_manager, **kwargs)

    graph.process_tool_calls = noting
    try:
        agent = Agent(FunctionModel(answer), tools=[fn])
        await agent.run("go")
    finally:
        graph.process_tool_calls = process

    async def execute() -> list[tuple[str, str]]:
        parts: list[Any] = []
        async for _ in process(**{**given, "output_parts": parts, "output_final_result": None}):
            pass
        return [(part.tool_call_id, part.content) for part in parts]

    return execute


async def openai_agents(calls: Sequence[ToolCall], fn: Fn) -> Execute:
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
    wrapped = function_tool(fn)
    bindings = bind_public_agent(Agent(name="bench", tools=[wrapped]))
    announced = [
        ResponseFunctionToolCall(
            type="function_call", call_id=call.id, name=call.name, arguments=encode(call.arguments)
        )
        for call in calls
    ]

    async def execute() -> list[tuple[str, str]]:
        results, _, _ = await execute_function_tool_calls(
            bindings=bindings,
            tool_runs=[ToolRunFunction(tool_call=call, function_tool=wrapped) for call in announced],
            hooks=RunHooks(),
            context_wrapper=RunContextWrapper(context=None),
            config=RunConfig(tracing_disabled=True),
        )
        done: list[Any] = list(results)
        return [(result.run_item.raw_item["call_id"], result.output) for result in done]

    return execute


async def langgraph(calls: Sequence[ToolCall], fn: Fn) -> Execute:
    """`ToolNode.ainvoke`, with the runtime that a graph gives it."""
    from langchain_core.messages import AIMessage  # type: ignore[import-not-found,unused-ignore]
    from langchain_core.tools import StructuredTool  # type: ignore[import-not-found,unused-ignore]
    from langgraph.prebuilt import ToolNode  # type: ignore[import-not-found,unused-ignore]
    from langgraph.runtime import Runtime  # type: ignore[import-not-found,unused-ignore]

    node = ToolNode([StructuredTool.from_function(coroutine=fn)])
    message = AIMessage(
        "", tool_calls=[{"name": call.name, "args": dict(call.arguments), "id": call.id} for call in calls]
    )
    config: Any = {"configurable": {"__pregel_runtime": Runtime()}}

    async def execute() -> list[tuple[str, str]]:
        output = await node.ainvoke({"messages": [message]}, config)
        return [(result.tool_call_id, result.content) for result in output["messages"]]

    return execute


async def anthropic(calls: Sequence[ToolCall], fn: Fn) -> Execute:
    """The runner's own `_generate_tool_call_response`, after one reply of a fake transport. It runs tools one by one."""
    import httpx2  # type: ignore[import-not-found,unused-ignore]
    from anthropic import AsyncAnthropic, beta_async_tool

    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "fake",
        "content": [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)} for call in calls
        ],
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
        tools=[beta_async_tool(fn)],
        max_iterations=1,
    )
    await runner.until_done()

    async def execute() -> list[tuple[str, str]]:
        response: Any = await runner._generate_tool_call_response()  # the public method remembers its answer
        return [(block["tool_use_id"], block["content"]) for block in response["content"]]

    return execute


async def bare_tasks(calls: Sequence[ToolCall], fn: Fn) -> Execute:
    """Return what no executor that runs tools side by side can go below: one task for each, and nothing else."""

    async def execute() -> list[tuple[str, str]]:
        texts = await asyncio.gather(*[fn(**call.arguments) for call in calls])
        return [(call.id, text) for call, text in zip(calls, texts, strict=True)]

    return execute


async def agent_framework(calls: Sequence[ToolCall], fn: Fn) -> Execute:
    """`agent_framework._tools._try_execute_function_call_groups`, as a chat client calls it."""
    import agent_framework._tools as tools  # type: ignore[import-not-found,unused-ignore]
    from agent_framework import Content  # type: ignore[import-not-found,unused-ignore]

    contents = [
        Content.from_function_call(call_id=call.id, name=call.name, arguments=encode(call.arguments)) for call in calls
    ]
    config = tools.normalize_function_invocation_configuration(None)
    wrapped = [tools.tool(fn, approval_mode="never_require")]

    async def execute() -> list[tuple[str, str]]:
        groups, _ = await tools._try_execute_function_call_groups({}, contents, wrapped, config)
        return [(result.call_id, result.result) for group in groups for result in group]

    return execute


Make = Callable[[Sequence[ToolCall], Fn], Coroutine[Any, Any, Execute]]

PEERS: Final[dict[str, Make]] = {
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
    "LangGraph's ToolNode": langgraph,
    "Anthropic's runner": anthropic,
    "Microsoft Agent Framework": agent_framework,
}

_BARE: Final = "(bare tasks)"
_OURS: Final = "(bare ToolBatch)"
_SIDE_BY_SIDE: Final = frozenset(PEERS) - {"Anthropic's runner"}

_NO_OP_GOAL: Final = 0.1
_TYPED_GOAL: Final = 0.2
_COLUMNS: Final = (
    "calls",
    "framework",
    "toolbatch, us: min / median",
    "theirs, us: min / median",
    "times ours",
    "CPU ratio",
)


def run(effort: Effort, names: Sequence[str] = tuple(PEERS)) -> list[Table]:
    """Measure each framework against a ToolBatch, in turns, on asyncio: tools that do nothing, then typed ones."""
    sizes = (8,) if effort.quick else (8, 64)
    with asyncio.Runner(loop_factory=LOOPS["asyncio"]) as runner:
        bare = [
            row for size in sizes for row in _rows(runner, announce(size), no_op, toolbatch, names, _NO_OP_GOAL, effort)
        ]
        typed = [row for size in sizes for row in _typed_rows(runner, _announce_typed(size), names, effort)]
    return [
        Table(
            "A batch of no-op tools in other frameworks",
            "Times are of a batch, each framework in turns with a whole `ToolBatch` and its export. Only their tool execution is\n"
            "measured: `ToolNode.ainvoke`; pydantic-ai's `process_tool_calls` with what a run handed to it; openai-agents'\n"
            "`execute_function_tool_calls`; Agent Framework's `_try_execute_function_call_groups`; the Anthropic runner's\n"
            "`_generate_tool_call_response`, which awaits one tool after the other, without tasks, timeouts or cancellation. The goal\n"
            "is about the cheapest of a size; the others inform. Bare tasks are no framework: `asyncio.gather` over the tools, the\n"
            "least that running them side by side costs.",
            "at least 10 times less than the best of them, that is a CPU ratio of at most 0.1",
            _COLUMNS,
            bare,
        ),
        Table(
            "A batch of typed tools in other frameworks",
            "The same with a tool of two typed arguments. Ours: `ToolBatch(tools=catalog)`, `start_all`, its export: names looked up,\n"
            "arguments checked and converted by pydantic. The stages alone are what that takes beyond a bare `ToolBatch` with the same\n"
            "function, the last row; the goal is about them, and the best of the frameworks that run calls side by side.",
            "the stages of a call take at least 5 times less than the best of them, that is a CPU ratio of at most 0.2",
            (*_COLUMNS, "stages alone"),
            typed,
        ),
    ]


def _typed_rows(runner: asyncio.Runner, calls: Sequence[ToolCall], names: Sequence[str], effort: Effort) -> list[Row]:
    """Return the rows of typed tools, each with the share that the stages have in its ratio."""
    rows = _rows(runner, calls, add, toolbatch_tools, names, 1.0, effort)
    ours, bare = runner.run(toolbatch_tools(calls, add)), runner.run(toolbatch(calls, add))
    comparison = compare(
        looped(runner, _repeated(ours)), looped(runner, _repeated(bare)), effort, rounds=min(effort.rounds, 15)
    )
    share = max(0.0, 1 - 1 / comparison.ratio)
    found = [row._replace(cells=(*row.cells, f"{row.figure * share:.3f}"), goal=None) for row in rows]
    best = max((row for row in found if row.cells[1] in _SIDE_BY_SIDE), key=lambda row: row.figure, default=None)
    staged = [row._replace(figure=row.figure * share, goal=_TYPED_GOAL) if row is best else row for row in found]
    return [*staged, Row((*_cells(_OURS, calls, comparison), ""), comparison.ratio, None)]


def _announce_typed(count: int) -> list[ToolCall]:
    return [ToolCall(f"call_{number:06}", "add", '{"x":1,"y":2}') for number in range(count)]


def _rows(
    runner: asyncio.Runner,
    calls: Sequence[ToolCall],
    fn: Fn,
    make_ours: Make,
    names: Sequence[str],
    goal: float,
    effort: Effort,
) -> list[Row]:
    ours = runner.run(make_ours(calls, fn))
    expected = runner.run(ours())
    rows = []
    for name, make in [*[(name, PEERS[name]) for name in names], (_BARE, bare_tasks)]:
        theirs = runner.run(make(calls, fn))
        require_equal(expected, runner.run(theirs()))
        comparison = compare(
            looped(runner, _repeated(ours)), looped(runner, _repeated(theirs)), effort, rounds=min(effort.rounds, 15)
        )
        rows.append(Row(_cells(name, calls, comparison), comparison.ratio, None))
    best = max(rows[:-1], key=lambda row: row.figure)
    return [row._replace(goal=goal) if row is best else row for row in rows]


def _cells(name: str, calls: Sequence[ToolCall], comparison: Comparison) -> tuple[str, ...]:
    ratio = comparison.ratio
    sides = micro(comparison.ours), micro(comparison.theirs)
    return (f"{len(calls)}", name, *sides, f"{1 / ratio:.1f}", f"{ratio:.3f}")


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
    "agent-framework-core",
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
    tables = run(QUICK if options.quick else FULL, options.names or tuple(PEERS))
    for table in tables:
        print(table.markdown())
    if options.write:
        write("peers", page(tables, _PACKAGES, "python -m benchmarks.peers --write"))


if __name__ == "__main__":
    main(sys.argv[1:])
