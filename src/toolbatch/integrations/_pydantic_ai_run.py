"""An agent of pydantic-ai whose tools run through batches: a capability, pydantic-ai's own way to change how an agent works.

Why a capability, and no toolset around the agent's toolsets: its hooks see every tool of the agent, wherever it comes from; they
see the model's response, whose ids must be put right before pydantic-ai refuses them; and they see a run that was cancelled,
whose history they can complete. pydantic-ai begins a response's calls one by one, by itself, with barriers of its own between
them, so each call is a batch of one here, and a turn's time is a deadline that its batches share.
"""

import asyncio
import copy
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any, Final, Self, Unpack

from pydantic_ai import Agent, RunContext, ToolDefinition
from pydantic_ai.capabilities import AbstractCapability, WrapToolExecuteHandler
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    RunCancelled,
    SkipToolExecution,
    ToolFailed,
    ToolFailedError,
    ToolRetryError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.messages import (
    AgentStreamEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
)
from pydantic_ai.tools import ToolDenied
from pydantic_ai.toolsets import AbstractToolset

from toolbatch.batch.kit import seconds
from toolbatch.core import (
    CallProblem,
    Cancelled,
    Closed,
    Encoder,
    Failed,
    Settlement,
    ToolCall,
    encode,
)
from toolbatch.ports import AuditSink, NotApplied
from toolbatch.providers.kit import failure_text
from toolbatch.tools import AnyTool, Tools

from ._pydantic_ai_messages import answered_in_order, content_of, media_of, return_part, truncation, used_ids, with_ids
from ._pydantic_ai_toolset import OwnTools, threads_of_call
from ._runner import CallOptions, Runner, only_settlement, unshowable
from ._threads import CallThreads

__all__ = ["BatchTools"]

_WAITS: Final = (CallDeferred, ApprovalRequired, RunCancelled, SkipToolExecution)
"""Ways in which pydantic-ai leaves a tool that has not failed."""

_PASSING: Final = (*_WAITS, ModelRetry, ToolRetryError, ToolFailed, ToolFailedError, UsageLimitExceeded, UserError)
"""What is pydantic-ai's to deal with, and no failure of the tool that a batch should put into words."""

_NEVER_BEGAN: Final = CallProblem("not_started", "The run ended before this tool call began.")


class _AwaitsApproval(NotApplied):
    """Stands for `ApprovalRequired` in a batch: the tool has done nothing yet, and a durable operation is free for when it may."""


class BatchTools(AbstractCapability[Any]):
    """Runs an agent's tools through batches: `Agent(model, capabilities=[BatchTools(call_timeout=5)])`.

    It is for tools of every toolset of the agent, and for toolbatch's own `Tool`s that it is given. What it changes: a tool that
    raises is that call's failure, and its siblings and the run go on (`outcome="failed"`); a timeout holds against a tool that
    will not stop, whose late value never becomes a result; a value that can't be shown is an answer (`invalid_result`); calls
    that share an id, or have none, get ids of ours; the calls of a response that was cut off are answered and never run. A
    cancelled run's history says of each call what is known of it, side effects included, where pydantic-ai says "interrupted".

    pydantic-ai's own signals pass through: `ModelRetry`, `ToolFailed`, deferred calls and approvals, usage limits, an exhausted
    retry budget. A sync tool runs in a daemon thread of ours. What it can't do: the calls of one response can't cancel their
    siblings (`on_error`), since pydantic-ai begins each by itself.

    Args:
        tools: toolbatch's tools for the agent, with their own timeout, rendering and `meta` (which becomes the `metadata`).
            One that needs an approval asks for it in pydantic-ai's way.
        timeout: Seconds for all calls of one response, from the first that runs.
        audit_sinks: Who is handed each late result as it comes (B7).
        id: The capability's id, as pydantic-ai uses it.
        **options: Options of every `ToolBatch`.

    Raises:
        InvalidInputError: An option can't be used.
        InvalidTypeError: An option is of a wrong type.
    """

    def __init__(
        self,
        tools: Iterable[AnyTool] | Tools = (),
        *,
        timeout: float | None = None,
        audit_sinks: Iterable[AuditSink] = (),
        id: str | None = None,  # noqa: A002  the framework's name
        **options: Unpack[CallOptions],
    ) -> None:
        self.id = id
        self._own = OwnTools(tools.values() if isinstance(tools, Tools) else tools)
        self._timeout = None if timeout is None else seconds(timeout, "timeout")
        self._encode: Encoder = options.get("encode", encode)
        more = (*options.get("cancel_exceptions", ()), *_WAITS, _AwaitsApproval)
        self._runner = Runner(audit_sinks, {**options, "cancel_exceptions": more}, named_by="a conversation_id")
        self._begin_run()

    def _begin_run(self) -> None:
        self._step: int | None = None  # the run's step, of which what follows is
        self._deadline: float | None = None
        self._ended: dict[str, ToolReturnPart] = {}  # what calls answered: pydantic-ai may not have taken it

    # -- pydantic-ai's hooks ---------------------------------------------------------------------------------------------

    async def for_run(self, ctx: RunContext[Any]) -> Self:  # noqa: ARG002  the framework's
        """Return a copy with room for what is known of one run."""
        own = copy.copy(self)
        own._begin_run()
        return own

    def get_toolset(self) -> AbstractToolset[Any] | None:
        """Return toolbatch's own tools, if there are any."""
        return self._own if self._own.tools else None

    async def after_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: Any,  # noqa: ARG002  the framework's
        response: ModelResponse,
    ) -> ModelResponse:
        """Give calls ids that are distinct, and were not used before in the conversation (P6)."""
        return with_ids(response, used_ids(ctx.messages))[0]

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:
        """Run one call as a batch, and return or raise what pydantic-ai makes the call's answer of."""
        if self._step != ctx.run_step:
            self._begin_step(ctx.run_step)
        problem = truncation(_last_response(ctx.messages))
        announced = ToolCall(call.tool_call_id, call.tool_name, args, problem=problem)
        one = _OneCall(ctx, handler, self._encode)
        batch = self._runner.batch([announced], deadline=self._deadline, run_id=ctx.conversation_id or ctx.run_id)
        try:
            async with batch:
                if batch.calls:
                    own = self._own.tools.get(tool_def.name)
                    bound = tool_def.timeout if own is None or tool_def.timeout is not None else own.timeout
                    batch.start(announced.id, one.run, args, timeout=bound)
        finally:
            if batch.result is not None:
                self._ended[announced.id] = one.part(announced, only_settlement(batch))
        return one.answer(only_settlement(batch))

    @property
    def has_wrap_run_event_stream(self) -> bool:
        """No: the hook below wants to know how a node ended, not its events, so no run has to be streamed for it."""
        return False

    async def wrap_run_event_stream(
        self, ctx: RunContext[Any], *, stream: AsyncIterable[AgentStreamEvent]
    ) -> AsyncIterator[AgentStreamEvent]:
        """Complete the history of a run that ends while its tools run: the one hook that sees it after pydantic-ai has."""
        has_ended = False
        try:
            async for event in stream:
                yield event
            has_ended = True
        finally:
            aclose = getattr(stream, "aclose", None)
            if aclose is not None:
                await aclose()
            if not has_ended:
                self._complete(ctx.messages, ctx)

    def _begin_step(self, step: int) -> None:
        self._step = step
        self._ended.clear()
        if self._timeout is not None:
            self._deadline = asyncio.get_running_loop().time() + self._timeout

    def _complete(self, messages: list[ModelMessage], ctx: RunContext[Any]) -> None:
        """Put what is known of each unanswered call where pydantic-ai would say that it was interrupted."""
        if len(messages) < 2:
            return
        response, request = messages[-2:]
        if (
            not (isinstance(response, ModelResponse) and isinstance(request, ModelRequest))
            or request.state != "interrupted"
        ):
            return
        answered = {part.tool_call_id for part in request.parts if isinstance(part, ToolReturnPart)}
        missing = {}
        for part in response.parts:
            if isinstance(part, ToolCallPart) and part.tool_call_id not in answered:
                known = self._ended.get(part.tool_call_id)
                if known is None and _is_function(ctx, part.tool_name):
                    settlement = Closed("error", _NEVER_BEGAN.code, _NEVER_BEGAN.message, "not_started")
                    known = return_part(
                        ToolCall(part.tool_call_id, part.tool_name), part.tool_call_id, settlement, None
                    )
                if known is not None:
                    missing[part.tool_call_id] = known
        messages[-1] = answered_in_order(response, request, missing)


def _last_response(messages: list[ModelMessage]) -> ModelResponse | None:
    return next((message for message in reversed(messages) if isinstance(message, ModelResponse)), None)


def _is_function(ctx: RunContext[Any], name: str) -> bool:
    found = None if ctx.tool_manager is None else ctx.tool_manager.get_tool_def(name)
    return found is not None and found.kind == "function"


class _OneCall:
    """One call's way through a batch: what pydantic-ai's handler gave, beside what the batch was told of it."""

    def __init__(self, ctx: RunContext[Any], handler: WrapToolExecuteHandler, encoder: Encoder) -> None:
        self._ctx = ctx
        self._handler = handler
        self._encode = encoder
        self._value: Any = None  # what the handler returned
        self._shown: Any = None  # what the batch was told of it
        self._passing: Exception | None = None  # what is pydantic-ai's to deal with

    async def run(self, args: dict[str, Any]) -> Any:
        """Run the tool, hooks of other capabilities and all; return what the model will read, for the batch to judge."""
        threads = CallThreads()
        token = threads_of_call.set(threads)
        try:
            with Agent.using_thread_executor(threads):
                self._value = await self._handler(args)
        except asyncio.CancelledError:
            self._value = await threads.outlast()
        except ApprovalRequired as error:
            self._passing = error
            raise _AwaitsApproval("It waits for an approval.") from error
        except _PASSING as error:
            self._passing = error
            raise
        except UnexpectedModelBehavior as error:
            # Where retries are left, it is a sub-agent's end, and so a failure of the tool; else the run's own.
            if self._ctx.retry >= self._ctx.max_retries:
                self._passing = error
            raise
        finally:
            threads_of_call.reset(token)
        self._shown = self._show(self._value)
        return self._shown

    def _show(self, value: Any) -> Any:
        returned = value.return_value if isinstance(value, ToolReturn) else value
        try:
            part = ToolReturnPart(self._ctx.tool_name or "", returned)
            data, files = [entry for entry in part.content_items() if entry not in part.files], part.files
            if files:
                return media_of(files, data or None, self._encode)
            text = returned if isinstance(returned, str) else self._encode(returned)
            part.model_response_str()  # pydantic-ai's own encoder takes it as well, or would end the run later
        except Exception as error:
            raise unshowable(self._ctx.tool_name or "The tool", error) from error
        return text

    def answer(self, settlement: Settlement) -> Any:
        """Return or raise what pydantic-ai makes the call's answer of."""
        if settlement.content is not None:
            return self._value if self._stands(settlement) else _replaced(settlement)
        if self._passing is not None and isinstance(settlement, Failed | Cancelled) and settlement.code != "denied":
            raise self._passing
        if settlement.code == "denied":
            return ToolDenied(failure_text(settlement))
        raise ToolFailed(failure_text(settlement))

    def part(self, call: ToolCall, settlement: Settlement) -> ToolReturnPart:
        """Return the answer as it stands in a history."""
        if settlement.content is None or not self._stands(settlement):
            return return_part(call, call.id, settlement, None)
        value = self._value if isinstance(self._value, ToolReturn) else ToolReturn(self._value)
        return ToolReturnPart(call.name, value.return_value, call.id, metadata=value.metadata)

    def _stands(self, settlement: Settlement) -> bool:
        """Whether the call was settled with what the tool gave, and not with what an interceptor or budget made of it (T6)."""
        return bool(self._shown == (settlement.content if settlement.parts is None else settlement.parts))


def _replaced(settlement: Settlement) -> Any:
    return settlement.content if settlement.parts is None else content_of(settlement.parts)
