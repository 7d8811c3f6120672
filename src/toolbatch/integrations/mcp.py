"""MCP: a batch whose tools are a server's, and a server whose tools run in batches.

As a client:

    async with Client(server) as client:
        tools = ToolCatalog(await tools_of(client))
        async with ToolBatch(calls, tools=tools, call_timeout=30) as batch:
            batch.start_all()

As a server:

    server = serve("weather", [look_up], call_timeout=30)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

Shapes: LANES 9, and the lane `toolbatch.providers.mcp`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Unpack

import mcp_types as types
from mcp import Client, ClientSession, MCPError
from mcp.server import Server, ServerRequestContext
from mcp.shared.dispatcher import ProgressFnT

from toolbatch.batch import CallContext, current_call
from toolbatch.core import BatchStateError, InvalidInputError, ToolbatchError
from toolbatch.ports import AuditSink, BackendUnknownError, CallProgress
from toolbatch.providers import mcp as lane
from toolbatch.providers.kit import field
from toolbatch.tools import AnyTool, Tool, ToolCatalog, ToolOptions, Tools, unknown_tool_message

from ._mcp_content import failure_of, is_failure, shown
from ._runner import CallOptions, Runner, log, result_of

__all__ = ["ToolHandlers", "serve", "tools_of"]

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_.:-]")  # in a `Tool`'s name
_MAX_NAME: Final = 128
_MAX_PAGES: Final = 100
_UNANSWERED: Final = (types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT)


# -- as a client -------------------------------------------------------------------------------------------------------------


async def tools_of(
    session: Client | ClientSession, *, prefix: str = "", **options: Unpack[ToolOptions]
) -> list[AnyTool]:
    """Return a server's tools, of all pages, each to be called over this session.

    A call that is cancelled or times out is cancelled at the server too, by a `notifications/cancelled` that the SDK sends; what
    the server makes of it is not known, so the side effects are `unknown`, as are those of a call whose connection is lost. Progress
    that the server tells is the call's progress (B19). A result with `isError` is a failure with the result's text; else the model gets its content as parts, and the host the
    structured content as `meta`. Arguments are checked by the server.

    The schema and the descriptions are the server's, and so is what they say of safety; `needs_approval=True` asks before
    every call. A tool whose declaration can't be used is left out, and logged. A `Client` answers what a server asks for in the
    middle of a call (elicitation, sampling) with its callbacks; over a bare `ClientSession` such a call fails.

    Args:
        session: A connected client, or its session.
        prefix: What to put before each name, to tell servers apart.
        **options: Options of every tool, as the attributes of `Tool`.

    Raises:
        InvalidInputError: An option can't be used, or the server's list has no end.
        InvalidTypeError: An option is of a wrong type.
        MCPError: The server refuses, or the connection is closed.
    """
    found: dict[str, AnyTool] = {}
    for declared in await _declared(session):
        name = _name(f"{prefix}{declared.name}", found)
        try:
            found[name] = _tool(session, name, declared, options)
        except ToolbatchError as error:
            _require_usable(options)  # an option of the host's is its own mistake, and no reason to leave a tool out
            log.warning("the server's tool %r is left out: %s", declared.name, error)
    return list(found.values())


async def _declared(session: Client | ClientSession) -> list[types.Tool]:
    declared: list[types.Tool] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        if isinstance(session, Client):
            page = await session.list_tools(cursor=cursor)
        else:
            page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        declared += page.tools
        if page.next_cursor is None or page.next_cursor == cursor:
            return declared
        cursor = page.next_cursor
    raise InvalidInputError(f"the server's list of tools has no end: {_MAX_PAGES} pages were read")


def _name(wanted: str, taken: Collection[str]) -> str:
    """Return a name that a `Tool` can have, and none has: another server's name may hold blanks, or be too long."""
    base = name = _ILLEGAL.sub("_", wanted)[:_MAX_NAME] or "tool"
    count = 2
    while name in taken:
        ending = f"_{count}"
        name = f"{base[: _MAX_NAME - len(ending)]}{ending}"
        count += 1
    return name


def _tool(session: Client | ClientSession, name: str, declared: types.Tool, options: ToolOptions) -> AnyTool:
    async def call(arguments: dict[str, Any]) -> types.CallToolResult:
        heard = _hears_progress()
        try:
            result = await session.call_tool(declared.name, arguments, progress_callback=heard)
        except MCPError as error:
            if (
                error.code in _UNANSWERED
            ):  # the request was sent, or may have been; a server that says so has not said more
                raise BackendUnknownError(f"The call to the MCP server ended with: {error.message}.") from error
            raise
        if is_failure(result):
            raise failure_of(result)
        return result

    given: ToolOptions = {"render": shown, "meta": _structured, **options}
    return Tool.from_schema(
        name,
        declared.input_schema,
        call,
        description=declared.description or declared.title or "",
        validator=_server_checks,
        unpack=False,
        **given,
    )


def _server_checks(arguments: Mapping[str, Any]) -> None:
    """Check nothing: the server does."""


def _require_usable(options: ToolOptions) -> None:
    Tool.from_schema("options", {}, _server_checks, validator=_server_checks, **options)


def _structured(result: object) -> Any:
    return field(result, "structured_content")


def _hears_progress() -> ProgressFnT | None:
    """Return what takes the server's progress to the call that is running here; `None` outside of a batch."""
    try:
        running = current_call()  # the SDK tells of progress in a task of its own, where nobody knows the call
    except BatchStateError:
        return None

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        _tell(running, progress, total, message)

    return heard


def _tell(running: CallContext, progress: float, total: float | None, message: str | None) -> None:
    number = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
    running.progress(f"{number}: {message}" if message else number)


# -- as a server -------------------------------------------------------------------------------------------------------------


class ToolHandlers:
    """Answers `tools/list` and `tools/call` with toolbatch's tools: `Server(name, on_list_tools=h.list_tools, on_call_tool=h.call_tool)`.

    Each call is a batch of one. A tool that raises, times out or will not stop is a result with `isError`; the client's
    `notifications/cancelled` closes the batch, and the tool is asked to stop. What a tool reports by `current_call().progress(...)`
    is sent on, if the client has asked for it.

    Args:
        tools: The tools: a catalog, which may change while the server runs, or tools or functions to make one of.
        audit_sinks: Who is handed each late result as it comes (B7).
        **options: Options of every `ToolBatch`; no durable operations, since nothing names a request's run.

    Raises:
        InvalidInputError: An option can't be used, or two tools have one name.
        InvalidTypeError: One can't be a tool, or an option is of a wrong type.
    """

    def __init__(
        self,
        tools: Tools | Iterable[AnyTool | Callable[..., Any]],
        *,
        audit_sinks: Iterable[AuditSink] = (),
        **options: Unpack[CallOptions],
    ) -> None:
        self._tools = tools if isinstance(tools, Tools) else ToolCatalog(tools)
        self._runner = Runner(audit_sinks, options, named_by=None)

    async def list_tools(
        self,
        context: ServerRequestContext[Any],  # noqa: ARG002  the SDK's
        params: types.PaginatedRequestParams | None,  # noqa: ARG002  likewise
    ) -> types.ListToolsResult:
        """Return the tools as they are now, on one page."""
        declared = [types.Tool.model_validate(schema) for schema in self._tools.schemas("mcp")]
        return types.ListToolsResult(tools=declared)

    async def call_tool(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Run a tool, and return its result; failures have `isError`.

        Raises:
            MCPError: There is no such tool: as the protocol wants it, an error of the request and no result.
            ToolError: A tool's fatal one (B4). The client reads its message.
            asyncio.CancelledError: The client has cancelled the request, or the connection was closed.
        """
        if params.name not in self._tools:
            raise MCPError(types.INVALID_PARAMS, unknown_tool_message(params.name, self._tools))
        batch = self._runner.batch(lane.calls(params), tools=self._tools)
        async with batch:
            events = batch.events()
            batch.start_all()
            reports = 0
            async for event in events:
                if isinstance(event, CallProgress):
                    reports += 1
                    await context.session.report_progress(reports, message=event.content)
        (result,) = lane.results(result_of(batch))
        return types.CallToolResult.model_validate(result)


def serve(
    name: str,
    tools: Tools | Iterable[AnyTool | Callable[..., Any]],
    *,
    version: str = "",
    instructions: str | None = None,
    audit_sinks: Iterable[AuditSink] = (),
    **options: Unpack[CallOptions],
) -> Server[Any]:
    """Return a server of these tools, to be run on any transport; `ToolHandlers` says how calls are answered.

    Args:
        name: The server's name.
        tools: As in `ToolHandlers`.
        version: The server's version.
        instructions: How to use its tools, for the client's model.
        audit_sinks: As in `ToolHandlers`.
        **options: As in `ToolHandlers`.

    Raises:
        InvalidInputError: As `ToolHandlers`.
        InvalidTypeError: As `ToolHandlers`.
    """
    handlers = ToolHandlers(tools, audit_sinks=audit_sinks, **options)
    return Server(
        name,
        version=version,
        instructions=instructions,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
    )
