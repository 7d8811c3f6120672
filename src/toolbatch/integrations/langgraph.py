"""LangGraph: a graph's tools run through a `ToolBatch`.

    graph = StateGraph(MessagesState)
    graph.add_node("model", call_model)
    graph.add_node("tools", BatchToolNode(tools, timeout=30, call_timeout=5))
    graph.add_conditional_edges("model", tools_condition)

`BatchToolNode` stands where a `ToolNode` does, and is one. What it changes: siblings of a tool that raises go on, a tool that
will not stop delays nobody, and calls that LangChain could not parse are answered too.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Unpack

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as langchain_tool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt import ToolNode

from toolbatch.batch import ToolBatch, ToolSession
from toolbatch.core import BatchStateError, InvalidInputError, InvalidTypeError, ToolCall, encode, preview
from toolbatch.ports import AuditSink
from toolbatch.providers.kit import field
from toolbatch.tools import AnyTool, Tool

from ._langgraph_run import Seized, SeizedError, Turn, in_langchain, in_toolbatch, seize, with_json
from ._langgraph_turn import combined, read_input
from ._runner import Runner, TurnOptions, log, result_of
from .langchain import structured_tool

__all__ = ["BatchToolNode", "tools_condition"]

Sessions = ToolSession | Callable[[RunnableConfig], ToolSession]
"""A conversation's session, or what finds it by the configuration of a run."""


class BatchToolNode(ToolNode):
    """Runs the calls of a graph's last `AIMessage` in one `ToolBatch`, and gives each exactly one `ToolMessage`.

    It takes what `ToolNode` takes: tools of LangChain's and plain functions, and toolbatch's `Tool`s beside them; a state, a list
    of messages, or calls dispatched by `Send`; injected state, store and `ToolRuntime`; callbacks and configuration. Tools may
    return `Command`s, and `interrupt()` pauses the graph as it does in any node: when it goes on, LangGraph runs the node again,
    with all of its calls. A tool's `idempotency_key` is then the same as before. Where that is not enough, dispatch each call by
    `Send("tools", [call])`: LangGraph stores each result by itself, and runs only the others again. Or keep the calls in a store, by
    `DurableOperations`: a tool that interrupts has to be `safe` or `read_only` there, and of a `Command` only its answer is saved.

    Differences from `ToolNode`: a tool that raises is an error for the model (`error_detail` says how much of it), its siblings
    run on; ids that are missing or repeated become ours, in the model's message too, which is replaced under its own id, as the
    reducer `add_messages` does it (not where each call comes by `Send`, as in `create_react_agent`: a node sees one call then,
    answers each of two calls with one id, and leaves the id). There is no `handle_tool_errors`, `wrap_tool_call` or `awrap_tool_call`: use `on_outcome`, or
    wrap the tool. A synchronous tool runs in a thread of ours, which never keeps the process from ending.

    Args:
        tools: Tools of LangChain's, functions to make such of, and toolbatch's `Tool`s, which bring their own timeout.
        session: The conversation's `ToolSession`, or what finds it by the run's configuration. Its batch waits for no tool that
            it cut off, and its audit channel hears of late results. Not for calls dispatched by `Send`: each is a batch, and a
            newer batch supersedes the older.
        on_unsaved: Is handed the messages that the graph will not store, because the node was cancelled or a tool's fatal
            error ends it: for `graph.aupdate_state(config, {"messages": messages}, as_node="tools")`. What it raises is logged.
        audit_sinks: Who is handed each late result as it comes, where there is no session.
        name: As in `ToolNode`.
        tags: As in `ToolNode`.
        messages_key: As in `ToolNode`.
        **options: Options of every `ToolBatch`.

    Raises:
        InvalidInputError: An option can't be used, or there is none of that name, or two tools have one name.
        InvalidTypeError: An option or a tool is of a wrong type.
    """

    def __init__(
        self,
        tools: Sequence[BaseTool | AnyTool | Callable[..., Any]],
        *,
        session: Sessions | None = None,
        on_unsaved: Callable[[list[BaseMessage], RunnableConfig], object] | None = None,
        audit_sinks: Iterable[AuditSink] = (),
        name: str = "tools",
        tags: list[str] | None = None,
        messages_key: str = "messages",
        **options: Unpack[TurnOptions],
    ) -> None:
        if isinstance(tools, str) or not isinstance(tools, Sequence):
            raise InvalidTypeError(f"tools must be a list of tools, not {preview(tools)}")
        shown = [_langchain_tool(item) for item in tools]
        names = [item.name for item in shown]
        twice = next((each for each in names if names.count(each) > 1), None)
        if twice is not None:
            raise InvalidInputError(f"two tools are named {twice!r}; give one of them another name")
        super().__init__(
            shown, name=name, tags=tags, handle_tool_errors=False, messages_key=messages_key, awrap_tool_call=seize
        )
        self._own_tools: dict[str, AnyTool] = {item.name: item for item in tools if isinstance(item, Tool)}
        encoder = options.get("encode", encode)
        self._run_tools = {name: with_json(tool, encoder) for name, tool in self.tools_by_name.items()}
        self._session = session
        self._on_unsaved = on_unsaved
        # An interrupt is LangGraph's way out of a node: neither the tool's failure nor an answer for the model.
        more = (*options.get("cancel_exceptions", ()), GraphBubbleUp)
        self._runner = Runner(
            audit_sinks, {**options, "cancel_exceptions": more}, named_by="a graph with a checkpointer and a thread_id"
        )

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002  LangChain's name
        """Run the calls, and return the graph's update.

        Raises:
            InvalidInputError: There is no `AIMessage` in the input.
            InvalidTypeError: The input has none of the shapes that a tool node takes.
            ToolError: A tool's fatal one (B4).
            GraphBubbleUp: A tool has interrupted the graph, or sends a command to its parent. The other calls have ended.
            asyncio.CancelledError: The graph was cancelled. `on_unsaved` has the answers.
        """
        turn = Turn(read_input(input, self._messages_key), ensure_config(config), self._messages_key)
        batch = self._batch(turn)
        try:
            async with batch:
                for call in batch.calls:
                    if call.name in self.tools_by_name and call.name not in self._own_tools:
                        turn.seized[call.id] = await self._seize(turn, call, kwargs)
                batch.start_all()
        except BaseException:
            self._tell_unsaved(turn, batch)
            raise
        if turn.bubble is not None:
            raise turn.bubble
        return combined(turn.outputs(result_of(batch), batch.meta), turn.given, self._messages_key)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002  LangChain's name
        """As `ainvoke`, on an event loop of its own: for `graph.invoke`, which runs nodes outside of any.

        Raises:
            BatchStateError: An event loop runs in this thread: use the graph's `ainvoke`.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.ainvoke(input, config, **kwargs))
        raise BatchStateError("an event loop runs in this thread: use the graph's ainvoke or astream, not invoke")

    def _batch(self, turn: Turn) -> ToolBatch:
        more: dict[str, Any] = {"tools": _TurnTools(self._run_tools, self._own_tools, turn)}
        if turn.run_id is not None:  # else a session's own name stands
            more["run_id"] = turn.run_id
        if self._session is None:
            return self._runner.batch(turn.given.calls, **more)
        if turn.given.kind == "tool_calls":
            raise InvalidInputError(
                "calls dispatched by Send can't share a session: each is a batch of its own, and would supersede the others"
            )
        session = self._session if isinstance(self._session, ToolSession) else self._session(turn.config)
        return self._runner.batch_in(session, turn.given.calls, **more)

    async def _seize(self, turn: Turn, call: ToolCall, more: Mapping[str, Any]) -> Seized:
        """Let `ToolNode` inject state, store and runtime into a call of a LangChain tool, and stop before it is run."""
        try:
            await super().ainvoke(turn.payload(call), turn.config, **more)
        except SeizedError as seized:
            return seized.arguments, seized.config
        except Exception as error:  # noqa: BLE001  what can't be injected fails its own call only
            return error
        raise AssertionError("ToolNode ran a tool that it was not to run")

    def _tell_unsaved(self, turn: Turn, batch: ToolBatch) -> None:
        if self._on_unsaved is None or batch.result is None:
            return
        try:
            self._on_unsaved(turn.messages(batch.result, batch.meta), turn.config)
        except Exception:  # noqa: BLE001  the host's code must not stand before what ended the node
            log.exception("on_unsaved failed; the answers of %d calls are stored nowhere", len(turn.given.calls))


def tools_condition(state: Any, messages_key: str = "messages") -> Literal["tools", "__end__"]:
    """Route to `tools` if the last message announces calls; also those that LangChain could not parse.

    LangGraph's function of this name ends the graph for a message of nothing but `invalid_tool_calls`, and nobody answers them.

    Args:
        state: The graph's state, or its messages.
        messages_key: Where the messages are.

    Raises:
        InvalidInputError: There are no messages.
    """
    messages = state if isinstance(state, list) else field(state, messages_key)
    if not messages:
        raise InvalidInputError(f"there are no messages under {messages_key!r} to find calls in")
    last = messages[-1]
    return "tools" if field(last, "tool_calls") or field(last, "invalid_tool_calls") else "__end__"


def _langchain_tool(item: BaseTool | AnyTool | Callable[..., Any]) -> BaseTool:
    if isinstance(item, Tool):
        return structured_tool(item)
    if isinstance(item, BaseTool):
        return item
    if not callable(item):
        raise InvalidTypeError(f"a tool must be LangChain's, toolbatch's or a function, not {preview(item)}")
    return langchain_tool(item)


class _TurnTools(Mapping[str, Callable[..., Any]]):
    """The node's tools by name, each as it runs in this turn. Most of them are not called, so none is made before it is."""

    def __init__(self, found: Mapping[str, BaseTool], own: Mapping[str, AnyTool], turn: Turn) -> None:
        self._found = found
        self._own = own
        self._turn = turn

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name in self._own:
            return in_toolbatch(self._own[name], self._turn)
        return in_langchain(self._found[name], self._turn)

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)
