"""Mistral, Cohere, Ollama and MCP for the tests that hold for all of them: their wires, their SDKs, and who judges a turn."""

import base64
import copy
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import toolrepair  # type: ignore[import-untyped]
import turnsafe
from cohere import V2ChatResponse
from cohere.core.unchecked_base_model import construct_type
from cohere.types import AssistantChatMessageV2, ToolChatMessageV2, UserChatMessageV2
from mcp.server.validation import validate_tool_use_result_messages
from mcp_types import CreateMessageResultWithTools, SamplingMessage
from mcp_types.methods import parse_server_request
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
from mistral_common.tokens.tokenizers.base import TokenizerVersion
from mistralai.client.models import (
    ChatCompletionRequestMessage,
    ChatCompletionResponse,
    ConversationResponse,
    InputEntries,
)
from ollama import ChatResponse
from ollama._client import _copy_messages
from pydantic import TypeAdapter

from tests.providers.support import settled
from toolbatch.core import Snapshot
from toolbatch.providers import cohere, mcp, mistral, ollama
from toolbatch.testing import check_chat

Json = dict[str, Any]

TOKENIZERS = tuple(version for version in TokenizerVersion if version not in (TokenizerVersion.v1, TokenizerVersion.v2))
_CHAT: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionRequestMessage])
_ENTRIES: TypeAdapter[Any] = TypeAdapter(list[InputEntries])
_COHERE: dict[str, Any] = {"user": UserChatMessageV2, "assistant": AssistantChatMessageV2, "tool": ToolChatMessageV2}


def chat_call(call_id: Any = "a", name: Any = "lookup", arguments: Any = "{}") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def mistral_chat(*entries: Any, finish_reason: Any = "tool_calls", **message: Any) -> Json:
    """A ChatCompletionResponse as the wire carries it, with these tool calls."""
    body = {"role": "assistant", "content": "", "tool_calls": list(entries), **message}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    head = {"id": "cmpl-1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    return {**head, "choices": [{"index": 0, "finish_reason": finish_reason, "message": body}]}


def entry(call_id: Any = "a", name: Any = "lookup", arguments: Any = "{}", **more: Any) -> Json:
    call = {"object": "entry", "type": "function.call", "id": "fc_1", "tool_call_id": call_id, "name": name}
    return {**call, "arguments": arguments, **more}


def conversation(*outputs: Any) -> Json:
    """A ConversationResponse as the wire carries it, with these entries."""
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    head = {"object": "conversation.response", "conversation_id": "conv_1", "usage": usage}
    return {**head, "outputs": list(outputs)}


def cohere_chat(*entries: Any, finish_reason: Any = "TOOL_CALL", **message: Any) -> Json:
    """A V2ChatResponse as the wire carries it, with these tool calls."""
    body = {"role": "assistant", "tool_plan": "I will look.", "tool_calls": list(entries), **message}
    return {"id": "co_1", "finish_reason": finish_reason, "message": body}


def ollama_call(call_id: Any = None, name: Any = "lookup", arguments: Any = None) -> Json:
    function = {"name": name, "arguments": {} if arguments is None else arguments}
    return {"function": function} if call_id is None else {"id": call_id, "function": function}


def ollama_chat(*entries: Any, done_reason: Any = "stop", **message: Any) -> Json:
    """A ChatResponse as the wire carries it, with these tool calls."""
    body = {"role": "assistant", "content": "", "tool_calls": list(entries), **message}
    return {
        "model": "m",
        "created_at": "2026-11-30T00:00:00Z",
        "message": body,
        "done": True,
        "done_reason": done_reason,
    }


def use(call_id: Any = "a", name: Any = "lookup", arguments: Any = None, **more: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {} if arguments is None else arguments, **more}


def sampled(*content: Any, stop_reason: Any = "toolUse") -> Json:
    """A CreateMessageResultWithTools as the wire carries it, with these blocks."""
    return {"role": "assistant", "content": list(content), "model": "m", "stopReason": stop_reason}


def mistral_refused(messages: list[Any], versions: tuple[TokenizerVersion, ...] = TOKENIZERS) -> object:
    """Mistral's own validators, as the server runs them, and the SDK's types."""
    _CHAT.validate_python(messages)
    for version in versions:
        request: Any = ChatCompletionRequest.from_openai(messages=copy.deepcopy(messages), model="m")
        get_validator(version, ValidationMode.serving).validate_request(request)
    return None


def entries_refused(entries: list[Any]) -> object:
    """The SDK's types, and the chat rules' counterpart: ids of nine, and a result for each call, in order, behind them all."""
    _ENTRIES.validate_python(entries)
    waiting: list[str] = []
    for each in entries:
        if each["type"] == "function.call":
            waiting.append(each["tool_call_id"])
        elif each["type"] == "function.result":
            if not waiting or each["tool_call_id"] != waiting.pop(0):
                return f"result out of place: {each}"
            if re.fullmatch("[a-zA-Z0-9]{9}", each["tool_call_id"]) is None:
                return f"id: {each}"
        elif waiting and each["type"] == "message.input":
            return f"no result for {waiting}"
    return waiting or None


def cohere_refused(messages: list[Any]) -> object:
    """The SDK's types, checked for once, and the rules of OpenAI, whose words Command A uses (LANES 7)."""
    short: dict[str, str] = {}
    projected: list[Json] = []
    for message in messages:
        _COHERE[message["role"]].model_validate(message)
        each = {key: copy.deepcopy(value) for key, value in message.items() if key in ("role", "content", "tool_calls")}
        for call in each.get("tool_calls", ()):
            call["id"] = short.setdefault(call["id"], f"call_{len(short)}")
        if message["role"] == "tool":
            each["tool_call_id"] = short[message["tool_call_id"]]
            each["content"] = _cohere_text(message["content"])
        elif message["role"] == "assistant" and isinstance(message.get("content"), list):
            each["content"] = "".join(block.get("text", "thinking") for block in message["content"])
        projected.append(each)
    strangers = turnsafe.validate(projected, provider="openai").errors or toolrepair.validate(
        projected, format="openai"
    )
    return check_chat(projected) or strangers or None


def _cohere_text(content: str | list[Json]) -> str:
    if isinstance(content, str):
        assert content.strip()
        return content
    assert content
    for block in content:
        assert block["text"].strip() if block["type"] == "text" else isinstance(block["document"]["data"], dict)
    return "blocks"


def ollama_refused(messages: list[Any]) -> object:
    """A result for each call, in order, under its name and never blank; arguments are objects, images base64."""
    waiting: list[str] = []
    for message, sent in zip(messages, _copy_messages(messages), strict=True):
        on_the_wire = sent.model_dump(exclude_none=True)
        if message["role"] == "tool":
            if not waiting or message["tool_name"] != waiting.pop(0):
                return f"result out of place: {message}"
            if not on_the_wire.get("content", "").strip():
                return f"the result vanished: {message}"
            if [base64.b64decode(image, validate=True) for image in on_the_wire.get("images", ())].count(b""):
                return f"an empty image: {message}"
        elif waiting:
            return f"no result for {waiting}"
        waiting += [call["function"]["name"] for call in on_the_wire.get("tool_calls", ())]
    return waiting or None


def sampling_refused(messages: list[Any]) -> object:
    """The wire's names and types, and the SDK's own check on every prefix; and ids that are distinct over the whole request."""
    made = [SamplingMessage.model_validate(message) for message in messages]
    for end in range(1, len(made) + 1):
        validate_tool_use_result_messages(made[:end])
    blocks = [block for message in made for block in message.content_as_list]
    uses = [block.id for block in blocks if block.type == "tool_use"]
    answers = [block.tool_use_id for block in blocks if block.type == "tool_result"]
    if len(set(uses)) != len(uses) or uses != answers:
        return f"{uses} are answered by {answers}"
    parse_server_request("sampling/createMessage", "2025-11-25", {"messages": messages, "maxTokens": 1})
    return None


@dataclass(frozen=True)
class Wire:
    """One form of turn with its SDK and its judges."""

    name: str
    module: ModuleType
    respond: Callable[..., Json]
    announce: Callable[..., Json]  # id, name, arguments -> the wire's form of one call
    sdk: Callable[[Json], Any]
    refused: Callable[[list[Any]], object]  # None where every judge accepts
    user: Json
    has_ids: bool = True

    def forms(self, wire: Json) -> list[Any]:
        """The same response as wire JSON, as the SDK's object, and as that object's dumps."""
        made = self.sdk(copy.deepcopy(wire))
        # Cohere's objects take any value and hand no options on to those inside them.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [wire, made, *[made.model_dump(**how) for how in ({}, {"exclude_unset": True}, {"by_alias": True})]]

    def extended(self, response: Any, snapshot: Snapshot | None = None, messages: list[Any] | None = None) -> list[Any]:
        """A conversation of one user message and the turn."""
        history: list[Any] = [self.user] if messages is None else messages
        self.module.extend(history, response, snapshot or settled(self.module.calls(response)))
        return history


_USER: Json = {"role": "user", "content": "Hi."}
MISTRAL = Wire(
    "mistral", mistral, mistral_chat, chat_call, ChatCompletionResponse.model_validate, mistral_refused, _USER
)
ENTRIES = Wire(
    "mistral-entries",
    mistral,
    conversation,
    entry,
    ConversationResponse.model_validate,
    entries_refused,
    {"type": "message.input", **_USER},
)
COHERE = Wire(
    "cohere",
    cohere,
    cohere_chat,
    chat_call,
    lambda wire: construct_type(type_=V2ChatResponse, object_=wire),
    cohere_refused,
    _USER,
)
OLLAMA = Wire(
    "ollama",
    ollama,
    ollama_chat,
    ollama_call,
    ChatResponse.model_validate,
    ollama_refused,
    _USER,
    has_ids=False,
)
SAMPLING = Wire(
    "mcp",
    mcp,
    sampled,
    use,
    CreateMessageResultWithTools.model_validate,
    sampling_refused,
    {"role": "user", "content": {"type": "text", "text": "Hi."}},
)
WIRES = (MISTRAL, ENTRIES, COHERE, OLLAMA, SAMPLING)
