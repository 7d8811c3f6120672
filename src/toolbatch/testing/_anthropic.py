"""The rules of Anthropic Messages.

`check_anthropic` goes through the list three times: every message alone (its shape), ids over the whole request, then
the turns. Messages of one role in a row are one turn, because the API merges them. Paths in the error texts still count
the messages as they were sent. Within a pass the first message that breaks a rule decides.
Sources: the documentation of handle-tool-calls and parallel-tool-use, and error texts quoted in public reports.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from toolbatch.testing._anthropic_blocks import (
    SERVER_USES,
    Block,
    invalid,
    is_server_result,
    message_fault,
    tools_fault,
)
from toolbatch.testing._rejection import Rejection

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["check_anthropic", "check_anthropic_body"]

_THINKING = ("thinking", "redacted_thinking")


def check_anthropic_body(body: dict[str, object]) -> Rejection | None:
    """Check a whole request body of `POST /v1/messages`."""
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            return invalid("bad_request", name, "Field required")
    max_tokens = body["max_tokens"]
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool):
        return invalid("bad_request", "max_tokens", "Input should be a valid integer")
    if max_tokens < 1:
        return invalid("bad_request", "max_tokens", "must be greater than or equal to 1")
    fault = tools_fault(body.get("tools")) or check_anthropic(body["messages"])
    return fault or _container_fault(body)


def check_anthropic(messages: object) -> Rejection | None:
    """Judge a `messages` list as the Messages endpoint does.

    Args:
        messages: The list, of the types that JSON has.

    Returns:
        The first broken rule, or `None` if the list would be accepted.
    """
    if not isinstance(messages, list):
        return invalid("bad_request", "messages", "Input should be a valid list")
    if not messages:
        return invalid("bad_request", "messages", "at least one message is required")
    for index, message in enumerate(messages):
        fault = message_fault(message, index, last=index == len(messages) - 1)
        if fault is not None:
            return fault
    if messages[0]["role"] != "user":
        return invalid("bad_request", "messages", 'first message must use the "user" role')
    return _id_faults(messages) or _turn_faults(_turns(messages))


@dataclass(slots=True)
class _Turn:
    """Messages of one role in a row, as the API sees them: merged."""

    role: str
    blocks: list[tuple[int, int, Block]] = field(default_factory=list)  # message index, block index, block

    def of_type(self, *kinds: str) -> Iterator[tuple[int, int, Block]]:
        return (entry for entry in self.blocks if entry[2]["type"] in kinds)


def _turns(messages: list[Block]) -> list[_Turn]:
    turns: list[_Turn] = []
    for index, message in enumerate(messages):
        if not turns or turns[-1].role != message["role"]:
            turns.append(_Turn(role=str(message["role"])))
        turns[-1].blocks += [(index, position, block) for position, block in enumerate(_blocks(message["content"]))]
    return turns


def _blocks(content: object) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def _id_faults(messages: list[Block]) -> Rejection | None:
    """Check ids over the whole request: calls are unique, and a hosted result has its hosted call before it."""
    client: set[object] = set()
    hosted: set[object] = set()
    for index, message in enumerate(messages):
        for position, block in enumerate(_blocks(message["content"])):
            kind, path = block["type"], f"messages.{index}.content.{position}"
            if kind == "tool_use":
                if block["id"] in client:
                    return invalid("duplicate_call", path, "`tool_use` ids must be unique")
                client.add(block["id"])
            elif kind in SERVER_USES:
                hosted.add(block["id"])
            elif is_server_result(kind) and block["tool_use_id"] not in hosted:
                use = "mcp_tool_use" if kind == "mcp_tool_result" else "server_tool_use"
                problem = (
                    f"unexpected `tool_use_id` found in `{kind}` blocks: {block['tool_use_id']}. "
                    f"Each `{kind}` block must have a corresponding `{use}` block before it."
                )
                return invalid("server_tool", path, problem)
    return None


def _turn_faults(turns: list[_Turn]) -> Rejection | None:
    nothing = _Turn(role="none")
    for before, turn, after in zip([nothing, *turns], turns, [*turns[1:], nothing], strict=False):
        if turn.role == "assistant":
            fault = _unanswered_fault(turn, after) or _order_fault(turn) or _server_fault(turn, after)
        else:
            fault = _results_fault(before, turn)
        if fault is not None:
            return fault
    return None


def _order_fault(turn: _Turn) -> Rejection | None:
    """Check that nothing but calls and thinking stands behind the first call of an assistant turn."""
    for (_, _, block), (index, _, after) in pairwise(turn.blocks):
        if block["type"] != "tool_use" or after["type"] in ("tool_use", *_THINKING):
            continue
        if after["type"] == "text":
            # What newer models answer; it speaks of a prefill, for to them the calls have been left behind.
            text = (
                "This model does not support assistant message prefill. The conversation must end with a user message."
            )
            return Rejection(rule="misplaced_content", message=text)
        return _missing("misplaced_content", index, [str(use["id"]) for _, _, use in turn.of_type("tool_use")])
    if turn.blocks and turn.blocks[-1][2]["type"] in _THINKING:
        index, _, block = turn.blocks[-1]
        problem = f"The final block in an assistant message cannot be `{block['type']}`."
        return invalid("bad_content", f"messages.{index}", problem)
    return None


def _unanswered_fault(turn: _Turn, after: _Turn) -> Rejection | None:
    """Check that every call has its result among those that open the next user turn."""
    leading: set[object] = set()
    for _, _, block in after.blocks if after.role == "user" else []:
        if block["type"] != "tool_result":
            break
        leading.add(block["tool_use_id"])
    open_calls = [(index, str(use["id"])) for index, _, use in turn.of_type("tool_use") if use["id"] not in leading]
    if not open_calls:
        return None
    results = {block["tool_use_id"] for _, _, block in after.of_type("tool_result")}
    # "tool_result blocks must come FIRST": a result behind other content is there, and does not count.
    rule: Literal["missing_result", "misplaced_content"]
    rule = "misplaced_content" if all(use_id in results for _, use_id in open_calls) else "missing_result"
    return _missing(rule, open_calls[0][0], [use_id for _, use_id in open_calls])


def _missing(rule: Literal["missing_result", "misplaced_content"], index: int, ids: list[str]) -> Rejection:
    problem = (
        f"`tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(ids)}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )
    return invalid(rule, f"messages.{index}", problem)


def _server_fault(turn: _Turn, after: _Turn) -> Rejection | None:
    """Check that a hosted call without its hosted result is left pending: last in the list, or before results alone.

    The documentation of handle-tool-calls: results alone let the provider go on with its own tool; any other content
    ends the assistant's turn, and then the hosted call is unresolved.
    """
    resolved = {block["tool_use_id"] for _, _, block in turn.blocks if is_server_result(block["type"])}
    pending = [(index, use) for index, _, use in turn.of_type(*SERVER_USES) if use["id"] not in resolved]
    only_results = all(block["type"] == "tool_result" for _, _, block in after.blocks)
    if not pending or not after.blocks or (after.role == "user" and only_results):
        return None
    index, use = pending[0]
    result = "mcp_tool_result" if use["type"] == "mcp_tool_use" else f"{use.get('name')}_tool_result"
    if str(use.get("name")).startswith("tool_search_tool"):
        result = "tool_search_tool_result"  # its two searches share one type of result
    problem = f"`{use.get('name')}` tool use with id `{use['id']}` was found without a corresponding `{result}` block"
    return invalid("server_tool", f"messages.{index}", problem)


def _results_fault(before: _Turn, turn: _Turn) -> Rejection | None:
    """Check that every result in a user turn answers a call of the turn before it, once."""
    uses = {use["id"]: use for _, _, use in before.of_type("tool_use")} if before.role == "assistant" else {}
    answered: set[object] = set()
    for index, position, result in turn.of_type("tool_result"):
        use_id, path = result["tool_use_id"], f"messages.{index}.content.{position}"
        if use_id not in uses:
            problem = (
                f"unexpected `tool_use_id` found in `tool_result` blocks: {use_id}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
            return invalid("unknown_result_id" if uses else "orphan_result", path, problem)
        if use_id in answered:
            problem = f"each tool_use must have a single result. Found multiple `tool_result` blocks with id: {use_id}"
            return invalid("duplicate_result", path, problem)
        answered.add(use_id)
        if result.get("toolset_name") != uses[use_id].get("toolset_name"):
            problem = f"`toolset_name` does not match the `tool_use` block with id {use_id}"  # own words
            return invalid("result_kind", f"{path}.tool_result.toolset_name", problem)
    waiting = [use_id for use_id, use in uses.items() if _programmatic(use)]
    return _only_results_fault(turn, waiting) if waiting else None


def _only_results_fault(turn: _Turn, waiting: list[object]) -> Rejection | None:
    """Check an answer to code that is waiting for its tools: it may hold results and nothing else, and those text."""
    for index, position, block in turn.blocks:
        path = f"messages.{index}.content.{position}"
        if block["type"] != "tool_result":
            problem = "only `tool_result` blocks may answer tool uses that code execution is waiting for"  # own words
            return invalid("misplaced_content", path, problem)
        kinds = {part["type"] for part in _blocks(block.get("content"))}
        if block["tool_use_id"] in waiting and not kinds <= {"text"}:
            problem = "all content must be type `text` where code execution is waiting for it"  # own words
            return invalid("bad_content", f"{path}.tool_result", problem)
    return None


def _programmatic(use: Block) -> bool:
    caller = use.get("caller")
    return isinstance(caller, dict) and str(caller.get("type", "")).startswith("code_execution")


def _container_fault(body: dict[str, object]) -> Rejection | None:
    """Check that results for waiting code say in which container it waits."""
    messages = body["messages"]
    turns = _turns(messages) if isinstance(messages, list) else []
    if len(turns) < 2 or turns[-1].role != "user" or body.get("container"):
        return None
    if not any(_programmatic(use) for _, _, use in turns[-2].of_type("tool_use")):
        return None
    text = "container_id is required when there are pending tool uses generated by code execution with tools."
    return Rejection(rule="bad_request", message=text)
