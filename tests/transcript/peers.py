"""Other repairers, each as a function from a list of messages to a list of messages of the same lane."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import toolrepair  # type: ignore[import-untyped]
import turnsafe

from toolbatch.transcript import INTERRUPTED_TEXT

Json = dict[str, Any]
Repairer = Callable[[list[Json], str], list[Json]]

PYDANTIC_AI_CLOSE = "The tool call was interrupted before a result was produced."


def by_turnsafe(messages: list[Json], lane: str) -> list[Json]:
    """turnsafe 0.1.0, with its own text for a missing result put in the place of ours."""
    repaired = turnsafe.repair(copy.deepcopy(messages), provider="openai" if lane == "openai_chat" else "anthropic")
    return _with_our_close(repaired, turnsafe.DEFAULT_PLACEHOLDER)


def by_tool_call_repair(messages: list[Json], lane: str) -> list[Json]:
    """tool-call-repair 0.1.0, told to close calls rather than to drop them."""
    form = "openai" if lane == "openai_chat" else "anthropic"
    repaired = toolrepair.repair(copy.deepcopy(messages), format=form, strategy="synthesize")
    return _with_our_close(repaired, toolrepair.PLACEHOLDER)


def by_pydantic_ai(messages: list[Json], _: str) -> list[Json]:
    """pydantic-ai 2.68.0's `repair_messages`, on a chat told in its messages and told back."""
    pai = pytest.importorskip("pydantic_ai.messages")
    repaired = pai.repair_messages([_to_pydantic_ai(pai, message) for message in messages])
    return _with_our_close(_from_pydantic_ai(repaired), PYDANTIC_AI_CLOSE)


def _to_pydantic_ai(pai: Any, message: Json) -> Any:
    role, content = message["role"], message.get("content") or ""
    if role == "assistant":
        parts: list[Any] = [pai.TextPart(content)] if content else []
        for call in message.get("tool_calls", ()):
            parts += [pai.ToolCallPart(call["function"]["name"], call["function"]["arguments"], call["id"])]
        return pai.ModelResponse(parts or [pai.TextPart("")])
    if role == "tool":
        return pai.ModelRequest([pai.ToolReturnPart("f", content, message["tool_call_id"])])
    return pai.ModelRequest([pai.SystemPromptPart(content) if role == "system" else pai.UserPromptPart(content)])


def _from_pydantic_ai(history: list[Any]) -> list[Json]:
    messages: list[Json] = []
    for entry in history:
        calls = []
        text = None
        for part in entry.parts:
            if part.part_kind == "tool-call":
                function = {"name": part.tool_name, "arguments": part.args}
                calls.append({"id": part.tool_call_id, "type": "function", "function": function})
            elif part.part_kind == "text":
                text = (text or "") + part.content
            elif part.part_kind == "tool-return":
                messages.append({"role": "tool", "tool_call_id": part.tool_call_id, "content": part.content})
            else:
                role = "system" if part.part_kind == "system-prompt" else "user"
                messages.append({"role": role, "content": part.content})
        if entry.kind == "response":
            messages.append({"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})})
    return messages


def _with_our_close(value: list[Any], theirs: str) -> list[Any]:
    return [_replaced(entry, theirs) for entry in value]


def _replaced(value: Any, theirs: str) -> Any:
    if isinstance(value, list):
        return [_replaced(entry, theirs) for entry in value]
    if isinstance(value, dict):
        return {key: _replaced(entry, theirs) for key, entry in value.items()}
    return INTERRUPTED_TEXT if value == theirs else value
