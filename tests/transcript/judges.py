"""Other people's judges, and ours: each says whether it takes a list, and none of them knows the transcript law."""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import toolrepair  # type: ignore[import-untyped]
import turnsafe
from anthropic.types import MessageParam
from mistral_common.exceptions import MistralCommonException
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
from mistral_common.tokens.tokenizers.base import TokenizerVersion
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from toolbatch.testing import check_anthropic, check_chat, check_responses

Json = dict[str, Any]
Judge = Callable[[list[Json]], object]
"""Returns what it has against a list; nothing if it takes it."""

_CHAT: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
_RESPONSES: TypeAdapter[Any] = TypeAdapter(list[ResponseInputItemParam])
_ANTHROPIC: TypeAdapter[Any] = TypeAdapter(list[MessageParam])
_VALIDATOR = get_validator(TokenizerVersion("v13"), ValidationMode.serving)


def mistral(messages: list[Json]) -> object:
    """mistral-common v13, which takes any id. It lets an assistant speak last in a mode of its own only."""
    if messages[-1]["role"] == "assistant":
        messages = [*messages, {"role": "user", "content": "Hi."}]
    try:
        _VALIDATOR.validate_request(ChatCompletionRequest.from_openai(messages=messages, model="m"))
    except MistralCommonException as error:
        return error
    return None


def turnsafe_openai(messages: list[Json]) -> object:
    report = turnsafe.validate(messages, provider="openai")
    return None if report.ok else report.errors


def turnsafe_anthropic(messages: list[Json]) -> object:
    report = turnsafe.validate(messages, provider="anthropic")
    return None if report.ok else report.errors


def toolrepair_openai(messages: list[Json]) -> object:
    return toolrepair.validate(messages, format="openai")


def toolrepair_anthropic(messages: list[Json]) -> object:
    # It knows nothing of merging: lists with one role twice in a row are not its own.
    if any(left["role"] == right["role"] for left, right in pairwise(messages)):
        return None
    return toolrepair.validate(messages, format="anthropic")


def _exhaust(value: Any) -> object:
    """Read lazily validated fields to their end: only then are they checked."""
    if isinstance(value, dict):
        for entry in value.values():
            _exhaust(entry)
    elif isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        for entry in value:
            _exhaust(entry)
    return None


def sdk_chat(messages: list[Json]) -> object:
    return _exhaust(_CHAT.validate_python(messages))


def sdk_responses(messages: list[Json]) -> object:
    return _exhaust(_RESPONSES.validate_python(messages))


def sdk_anthropic(messages: list[Json]) -> object:
    return _exhaust(_ANTHROPIC.validate_python(messages))


def gemini_rules(contents: list[Json]) -> object:
    """The two refusals of LANES 4: as many responses as calls, and the response content right behind the call's."""
    for index, content in enumerate(contents):
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        answers = _gemini_answers(contents[index + 1]) if index + 1 < len(contents) else []
        if (
            content["role"] == "model"
            and calls
            and Counter(c["id"] for c in calls) != Counter(a["id"] for a in answers)
        ):
            return f"contents[{index}]: the number of function response parts is not that of the function call parts"
        before = contents[index - 1] if index else {"role": "none", "parts": []}
        if _gemini_answers(content) and not any("functionCall" in part for part in before["parts"]):
            return f"contents[{index}]: function response turn does not come immediately after a function call turn"
    return None


def _gemini_answers(content: Json) -> list[Json]:
    return [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]


def bedrock_rules(messages: list[Json]) -> object:
    """The two refusals of LANES 5: results for exactly the ids of the turn before, at the head of the message."""
    for before, message in pairwise([{"role": "none", "content": []}, *messages, {"role": "none", "content": []}]):
        uses = [block["toolUse"]["toolUseId"] for block in before["content"] if "toolUse" in block]
        results = [block["toolResult"]["toolUseId"] for block in message["content"] if "toolResult" in block]
        if Counter(uses) != Counter(results):
            return f"Expected toolResult blocks for the following Ids: {uses}, got {results}"
        if any("toolResult" not in block for block in message["content"][: len(results)]):
            return "toolResult blocks must come first"
    return None


def langchain_rules(messages: list[Json]) -> object:
    """Each calling message is followed by one ToolMessage a call, and no other ToolMessage is there."""
    open_ids: list[str] = []
    for message in messages:
        if message["type"] == "tool":
            if message["tool_call_id"] not in open_ids:
                return f"ToolMessage {message['tool_call_id']} answers nothing here"
            open_ids.remove(message["tool_call_id"])
        elif open_ids:
            return f"no ToolMessage for {open_ids}"
        if message["type"] == "ai":
            open_ids = [call["id"] for call in message["tool_calls"]]
    return open_ids


JUDGES: dict[str, list[Judge]] = {
    "openai_chat": [check_chat, mistral, turnsafe_openai, toolrepair_openai, sdk_chat],
    "openai_responses": [check_responses, sdk_responses],
    "anthropic": [check_anthropic, turnsafe_anthropic, toolrepair_anthropic, sdk_anthropic],
    "gemini": [gemini_rules],
    "bedrock": [bedrock_rules],
    "langchain": [langchain_rules],
}
