"""What the lanes' tests share: responses as servers send them, batches that end as told, and other people's judges."""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import toolrepair  # type: ignore[import-untyped]
import turnsafe
from anthropic.types import Message
from anthropic.types import MessageParam as AnthropicParam
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
from mistral_common.tokens.tokenizers.base import TokenizerVersion
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
from openai.types.responses import Response, ResponseInputItemParam
from pydantic import TypeAdapter

from toolbatch.core import Snapshot, ToolCall, ToolCallClosure
from toolbatch.providers import anthropic, openai_chat, openai_responses
from toolbatch.testing import check_anthropic, check_chat, check_responses

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "Hi."}


def chat(*entries: Any, finish_reason: Any = "tool_calls", **message: Any) -> Json:
    """A ChatCompletion as the wire carries it, with these tool calls."""
    body = {"role": "assistant", "content": None, "refusal": None, "tool_calls": list(entries), **message}
    choice = {"index": 0, "finish_reason": finish_reason, "logprobs": None, "message": body}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def chat_call(call_id: Any = "a", name: Any = "lookup", arguments: Any = "{}") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def responses(*output: Any, status: Any = "completed", **more: Any) -> Json:
    """A Response as the wire carries it, with these output items."""
    fixed: Json = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "tools": [],
        "tool_choice": "auto",
    }
    return {**fixed, "parallel_tool_calls": True, "status": status, "output": list(output), **more}


def item(call_id: Any = "a", name: Any = "lookup", arguments: Any = "{}", **more: Any) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **more}


def message(*content: Any, stop_reason: Any = "tool_use") -> Json:
    """A Message as Anthropic's wire carries it, with these blocks."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": usage}
    return {**head, "stop_reason": stop_reason, "stop_sequence": None, "content": list(content)}


def use(call_id: Any = "a", name: Any = "lookup", arguments: Any = None, **more: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {} if arguments is None else arguments, **more}


def settled(
    calls: Sequence[ToolCall], outcome: Callable[[int], str] = lambda _: "success", order: Iterable[int] | None = None
) -> Snapshot:
    """A closed snapshot of `calls`: each `success`, `error`, `cancelled`, or left to the close by `closed`."""
    closure = ToolCallClosure()
    handle = closure.begin(calls).handle
    for position in order if order is not None else range(len(calls)):
        call_id = calls[position].id
        match outcome(position):
            case "success":
                closure.succeed(handle, call_id, {"position": position})
            case "error":
                closure.fail(handle, call_id, f"failed at {position}")
            case "cancelled":
                closure.cancel(handle, call_id)
            case "started":
                closure.start(handle, call_id)
            case _:
                pass  # "closed": never started
    snapshot = closure.close(handle, code="timeout", message="Out of time.", side_effect_state=None)
    assert isinstance(snapshot, Snapshot)
    return snapshot


@dataclass(frozen=True)
class Lane:
    """One lane with its wire, its SDK and its judges."""

    name: str
    module: ModuleType
    respond: Callable[..., Json]
    announce: Callable[..., Json]  # id, name, arguments -> the wire's form of one call
    sdk: Any
    adapter: TypeAdapter[Any]
    refused: Callable[[list[Any]], object]  # None where every judge accepts

    def call(self, call_id: Any = "a", name: Any = "lookup", arguments: Any = None) -> Json:
        """One call; arguments as a dict where the lane carries one, else as text."""
        if arguments is None:
            return self.announce(call_id, name)
        return self.announce(call_id, name, arguments)

    def forms(self, wire: Json) -> list[Any]:
        """The same response as wire JSON, as the SDK's object, and as that object's dumps."""
        made = self.sdk.construct(**copy.deepcopy(wire))
        return [wire, made, made.model_dump(warnings=False), made.model_dump(exclude_unset=True, warnings=False)]

    def extended(self, response: Any, snapshot: Snapshot | None = None, messages: list[Any] | None = None) -> list[Any]:
        """A conversation of one user message and the turn."""
        history: list[Any] = [USER] if messages is None else messages
        self.module.extend(history, response, snapshot or settled(self.module.calls(response)))
        return history


def exhaust(value: Any) -> Any:
    """Read every lazy iterable that a TypeAdapter left unread: only then is what it holds checked."""
    if isinstance(value, dict):
        return {key: exhaust(entry) for key, entry in value.items()}
    if isinstance(value, (str, bytes, int, float)) or value is None:
        return value
    return [exhaust(entry) for entry in value] if isinstance(value, Iterable) else value


def _chat_refused(messages: list[Any]) -> object:
    custom = any(call.get("type") == "custom" for entry in messages for call in entry.get("tool_calls", ()))
    if not custom and not any("function_call" in entry for entry in messages):  # neither is in Mistral's model
        request: Any = ChatCompletionRequest.from_openai(messages=_without_files(messages), model="m")
        get_validator(TokenizerVersion("v13"), ValidationMode.serving).validate_request(request)
    return check_chat(messages) or _strangers(messages, "openai")


def _without_files(messages: list[Any]) -> list[Any]:
    """A copy with text in the place of files, which Mistral's model does not know; it judges the pairing."""
    copies = copy.deepcopy(messages)
    for entry in copies:
        if isinstance(entry.get("content"), list):
            text = {"type": "text", "text": "a file"}
            entry["content"] = [text if part["type"] == "file" else part for part in entry["content"]]
    return copies


def _strangers(messages: list[Any], provider: str) -> object:
    return (
        turnsafe.validate(messages, provider=provider).errors or toolrepair.validate(messages, format=provider) or None
    )


def _anthropic_refused(messages: list[Any]) -> object:
    return check_anthropic(messages) or _strangers(messages, "anthropic")


def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(list[kind])


CHAT = Lane("chat", openai_chat, chat, chat_call, ChatCompletion, _adapter(ChatCompletionMessageParam), _chat_refused)
RESPONSES = Lane(
    "responses", openai_responses, responses, item, Response, _adapter(ResponseInputItemParam), check_responses
)
ANTHROPIC = Lane("anthropic", anthropic, message, use, Message, _adapter(AnthropicParam), _anthropic_refused)
LANES = (CHAT, RESPONSES, ANTHROPIC)
