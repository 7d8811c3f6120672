"""What the streams' tests share: one turn of a model in every lane, as a whole response and cut into the lane's events.

The cutting is the test's: `Cut` says where texts break, in UTF-16 code units, so that surrogate pairs break too.
"""

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from types import ModuleType
from typing import Any

from anthropic._models import construct_type as construct_anthropic
from anthropic.types import RawMessageStreamEvent
from cohere import V2ChatStreamResponse
from cohere.core.unchecked_base_model import construct_type as construct_cohere
from google.genai.types import GenerateContentResponse
from mistralai.client.models import CompletionEvent
from ollama import ChatResponse
from openai._models import construct_type as construct_openai
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

from tests.providers.google_and_aws import bedrock_refused, candidate, gemini_refused
from tests.providers.support import ANTHROPIC, CHAT, RESPONSES, chat, message, responses
from tests.providers.wires import COHERE, OLLAMA, TOKENIZERS, cohere_chat, mistral_chat, mistral_refused, ollama_chat
from toolbatch.core import ToolCall
from toolbatch.providers import (
    anthropic,
    bedrock,
    cohere,
    gemini,
    mistral,
    ollama,
    openai_chat,
    openai_responses,
)

Json = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """Text of the model, or its thinking with a signature."""

    text: str
    signature: str | None = None


@dataclass(frozen=True)
class Called:
    """A call; arguments are an object, or text that is none where the lane has text."""

    call_id: Any
    name: Any
    arguments: Any


@dataclass(frozen=True)
class Turn:
    """What a model says in one response."""

    thinking: Said | None = None
    text: str = ""
    calls: Sequence[Called] = ()
    stop: Any = None
    hosted: bool = False


@dataclass(frozen=True)
class Cut:
    """How a response is cut into events.

    Attributes:
        sizes: The lengths of pieces of text, in UTF-16 code units, again and again; nothing at all leaves texts whole.
        together: Whether what may share an event does.
        repeats: Whether the fragments of a call repeat its id and its name.
    """

    sizes: Sequence[int] = ()
    together: bool = False
    repeats: bool = False

    def pieces(self, text: str) -> list[str]:
        """Cut a text; at least one piece, and empty ones among them where a size is 0."""
        if not any(self.sizes):
            return [text]
        raw = text.encode("utf-16-le", "surrogatepass")
        units = [chr(int.from_bytes(raw[at : at + 2], "little")) for at in range(0, len(raw), 2)]
        pieces: list[str] = []
        for size in cycle(self.sizes):
            if not units and pieces:
                return pieces
            pieces.append("".join(units[:size]))
            del units[:size]
        raise AssertionError("cycle() of a size that is not 0 ends")


def text_of(arguments: Any) -> str:
    """A call's arguments as text."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


# -- Chat Completions, and Mistral, which is in its shape -------------------------------------------------------------


def chat_whole(turn: Turn) -> Json:
    calls = [
        {"id": one.call_id, "type": "function", "function": {"name": one.name, "arguments": text_of(one.arguments)}}
        for one in turn.calls
    ]
    more = {"tool_calls": calls} if calls else {}
    if turn.thinking:
        more["reasoning_content"] = turn.thinking.text  # type: ignore[assignment]
    whole = chat(finish_reason=turn.stop or ("tool_calls" if calls else "stop"))
    body = {"role": "assistant", "content": turn.text or None, **more}
    whole["choices"][0]["message"] = body
    return whole


def chat_chunk(delta: Json, finish_reason: Any = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [choice]}


def call_fragments(turn: Turn, cut: Cut) -> list[Json]:
    fragments = []
    for index, one in enumerate(turn.calls):
        label = {"id": one.call_id, "type": "function"}
        for number, piece in enumerate(cut.pieces(text_of(one.arguments))):
            first = number == 0 or cut.repeats
            function = {**({"name": one.name} if first else {}), "arguments": piece}
            fragments.append({"index": index, **(label if first else {}), "function": function})
    return fragments


def chat_events(turn: Turn, cut: Cut) -> Iterator[Json]:
    yield chat_chunk({"role": "assistant", "content": None if turn.calls else ""})
    if turn.thinking:
        for piece in cut.pieces(turn.thinking.text):
            yield chat_chunk({"reasoning_content": piece})
    for piece in cut.pieces(turn.text) if turn.text else ():
        yield chat_chunk({"content": piece})
    fragments = call_fragments(turn, cut)
    if cut.together and fragments:
        yield chat_chunk({"tool_calls": fragments})
    else:
        for fragment in fragments:
            yield chat_chunk({"tool_calls": [fragment]})
    yield chat_chunk({}, turn.stop or ("tool_calls" if turn.calls else "stop"))
    yield {**chat_chunk({}), "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


def mistral_whole(turn: Turn) -> Json:
    whole = chat_whole(replace(turn, thinking=None))
    body: Json = whole["choices"][0]["message"]
    if turn.thinking:
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": turn.thinking.text}]}
        body["content"] = [thinking, *([{"type": "text", "text": turn.text}] if turn.text else [])]
    return {**mistral_chat(), "choices": whole["choices"]}


def mistral_events(turn: Turn, cut: Cut) -> Iterator[Json]:
    thoughts = cut.pieces(turn.thinking.text) if turn.thinking else []
    chunks = [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]} for piece in thoughts]
    for event in [chat_chunk({"content": [chunk]}) for chunk in chunks] + list(
        chat_events(replace(turn, thinking=None), cut)
    ):
        yield {**event, "id": "cmpl-1", "object": "chat.completion.chunk"}


def mistral_sdk(event: Json) -> CompletionEvent:
    """The SDK's event of a chunk. It demands a name in each fragment of a call, so its server sends a blank one."""
    data = copy.deepcopy(event)
    for choice in data["choices"]:
        for fragment in choice["delta"].get("tool_calls", ()):
            fragment["function"].setdefault("name", "")
    return CompletionEvent.model_validate({"data": data})


# -- Responses --------------------------------------------------------------------------------------------------------


def responses_whole(turn: Turn) -> Json:
    output: list[Json] = []
    if turn.thinking:
        summary = [{"type": "summary_text", "text": turn.thinking.text}]
        output.append(
            {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": turn.thinking.signature}
        )
    if turn.hosted:
        action = {"type": "search", "query": "q"}
        output.append({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": action})
    if turn.text:
        part = {"type": "output_text", "text": turn.text, "annotations": []}
        output.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    for number, one in enumerate(turn.calls):
        call = {"type": "function_call", "id": f"fc_{number}", "call_id": one.call_id, "name": one.name}
        output.append({**call, "arguments": text_of(one.arguments), "status": "completed"})
    details = {"incomplete_details": {"reason": turn.stop}} if turn.stop else {}
    return responses(*output, status="incomplete" if turn.stop else "completed", **details)


def responses_events(turn: Turn, cut: Cut) -> Iterator[Json]:
    whole = responses_whole(turn)
    begun = {**whole, "status": "in_progress", "output": []}
    begun.pop("incomplete_details", None)
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        opened = {**item, "status": "in_progress"}
        filling: list[Json] = []
        if item["type"] == "function_call":
            opened["arguments"] = ""
            name = "response.function_call_arguments"
            filling = [{"type": f"{name}.delta", **place, "delta": piece} for piece in cut.pieces(item["arguments"])]
            filling.append({"type": f"{name}.done", **place, "arguments": item["arguments"]})
        elif item["type"] == "message":
            opened["content"] = []
            part = {"content_index": 0, "part": {"type": "output_text", "text": "", "annotations": []}}
            filling = [{"type": "response.content_part.added", **place, **part}]
            text = item["content"][0]["text"]
            deltas = [{"content_index": 0, "delta": piece, "logprobs": []} for piece in cut.pieces(text)]
            filling += [{"type": "response.output_text.delta", **place, **delta} for delta in deltas]
        yield {"type": "response.output_item.added", "output_index": index, "item": opened}
        yield from filling
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{whole['status']}", "response": {**whole, **({"output": []} if cut.together else {})}}


# -- Anthropic --------------------------------------------------------------------------------------------------------


def anthropic_whole(turn: Turn) -> Json:
    blocks: list[Json] = []
    if turn.thinking:
        blocks.append({"type": "thinking", "thinking": turn.thinking.text, "signature": turn.thinking.signature or ""})
    if turn.hosted:
        blocks.append({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "é"}})
        blocks.append({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []})
    if turn.text:
        blocks.append({"type": "text", "text": turn.text, "citations": None})
    blocks += [{"type": "tool_use", "id": one.call_id, "name": one.name, "input": one.arguments} for one in turn.calls]
    return message(*blocks, stop_reason=turn.stop or ("tool_use" if turn.calls else "end_turn"))


def anthropic_events(turn: Turn, cut: Cut) -> Iterator[Json]:
    whole = anthropic_whole(turn)
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    yield {"type": "ping"}
    for index, block in enumerate(whole["content"]):
        opened: Json = dict(block)
        deltas: list[Json] = []
        if "input" in block:
            opened["input"] = {}
            if block["input"] != {} or not cut.together:  # no arguments are no deltas, or the text of none
                text = text_of(block["input"])
                deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in cut.pieces(text)]
        elif block["type"] in ("text", "thinking"):
            kind = block["type"]
            opened[kind] = ""
            deltas = [{"type": f"{kind}_delta", kind: piece} for piece in cut.pieces(block[kind])]
            if kind == "thinking":
                opened["signature"] = ""
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
        yield {"type": "content_block_start", "index": index, "content_block": opened}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


# -- Gemini -----------------------------------------------------------------------------------------------------------


def gemini_whole(turn: Turn) -> Json:
    parts: list[Json] = []
    if turn.thinking:
        parts.append({"text": turn.thinking.text, "thought": True})
    if turn.text:
        parts.append({"text": turn.text})
    if turn.thinking and turn.thinking.signature:
        parts.append({"text": "", "thoughtSignature": turn.thinking.signature})
    for one in turn.calls:
        facts = {"id": one.call_id, "name": one.name, "args": one.arguments}
        signature = turn.thinking.signature if turn.thinking else None
        part: Json = {"functionCall": {key: value for key, value in facts.items() if value is not None}}
        parts.append({**part, **({"thoughtSignature": signature} if signature else {})})
    return candidate(*parts, finish=turn.stop or "STOP")


def gemini_events(turn: Turn, cut: Cut) -> Iterator[Json]:
    whole = gemini_whole(turn)
    (one,) = whole["candidates"]
    parts: list[Json] = []
    for part in one["content"]["parts"]:
        if part.get("text"):
            parts += [{**part, "text": piece} for piece in cut.pieces(part["text"])]
        elif "functionCall" in part and cut.repeats and can_be_pieces(part["functionCall"].get("args")):
            parts += call_in_pieces(part, cut)
        else:
            parts.append(part)
    groups = [parts] if cut.together else [[part] for part in parts]
    for group in groups:
        yield candidate(*group, finish=None)
    yield candidate(finish=one["finishReason"], usageMetadata={"totalTokenCount": 1})


def can_be_pieces(args: Any) -> bool:
    """Whether arguments can be said as values at paths: nothing in them is empty, and no key has both quotes in it."""
    if isinstance(args, dict):
        return bool(args) and all(
            not ("'" in key and '"' in key) and can_be_pieces(value) for key, value in args.items()
        )
    return bool(args) and all(map(can_be_pieces, args)) if isinstance(args, list) else True


def call_in_pieces(part: Json, cut: Cut) -> Iterator[Json]:
    """A call as Vertex AI sends it on request: the name, the values at their paths, and the end."""
    call = {name: value for name, value in part["functionCall"].items() if name != "args"}
    yield {**part, "functionCall": {**call, "willContinue": True}}
    for path, value in leaves("$", part["functionCall"]["args"]):
        for piece in cut.pieces(value) if isinstance(value, str) else [value]:
            kind = "string" if isinstance(piece, str) else "bool" if isinstance(piece, bool) else "number"
            said = {"nullValue": None} if piece is None else {f"{kind}Value": piece}
            yield {"functionCall": {"partialArgs": [{"jsonPath": path, **said}], "willContinue": True}}
    yield {"functionCall": {}}


def leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, entry in value.items():
            quote = '"' if "'" in key else "'"
            plain = key.isascii() and key.isidentifier()
            yield from leaves(f"{path}.{key}" if plain else f"{path}[{quote}{key}{quote}]", entry)
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from leaves(f"{path}[{number}]", entry)
    else:
        yield path, value


# -- Bedrock ----------------------------------------------------------------------------------------------------------


def bedrock_whole(turn: Turn) -> Json:
    blocks: list[Json] = []
    if turn.thinking:
        reasoning = {"text": turn.thinking.text, "signature": turn.thinking.signature or ""}
        blocks.append({"reasoningContent": {"reasoningText": reasoning}})
    if turn.hosted:
        use = {"toolUseId": "srv_1", "name": "nova_code", "input": {"code": "1"}, "type": "server_tool_use"}
        result = {"toolUseId": "srv_1", "type": "nova_code_result", "content": [{"text": "1é"}, {"json": {"n": 1}}]}
        blocks += [{"toolUse": use}, {"toolResult": result}]
    if turn.text:
        blocks.append({"text": turn.text})
    for one in turn.calls:
        blocks.append({"toolUse": {"toolUseId": one.call_id, "name": one.name, "input": one.arguments}})
    body = {"role": "assistant", "content": blocks}
    stop = turn.stop or ("tool_use" if turn.calls else "end_turn")
    return {"output": {"message": body}, "stopReason": stop, "usage": {"inputTokens": 1}, "metrics": {"latencyMs": 1}}


def bedrock_events(turn: Turn, cut: Cut) -> Iterator[Json]:
    whole = bedrock_whole(turn)
    yield {"messageStart": {"role": "assistant"}}
    for index, block in enumerate(whole["output"]["message"]["content"]):
        place = {"contentBlockIndex": index}
        deltas: list[Json] = []
        start: Json | None = None
        match block:
            case {"text": text}:
                deltas = [{"text": piece} for piece in cut.pieces(text)]
            case {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}:
                deltas = [{"reasoningContent": {"text": piece}} for piece in cut.pieces(text)]
                deltas.append({"reasoningContent": {"signature": signature}})
            case {"toolResult": {"content": content, **rest}}:
                start = {"toolResult": rest}
                for piece in cut.pieces(content[0]["text"]):
                    deltas.append({"toolResult": [{"text": piece}]})
                deltas.append({"toolResult": content[1:]})
            case {"toolUse": {"input": arguments, **rest}}:
                start = {"toolUse": rest}
                if arguments != {} or not cut.together:
                    deltas = [{"toolUse": {"input": piece}} for piece in cut.pieces(text_of(arguments))]
            case _:
                raise AssertionError(block)
        if start is not None:
            yield {"contentBlockStart": {"start": start, **place}}
        for delta in deltas:
            yield {"contentBlockDelta": {"delta": delta, **place}}
        yield {"contentBlockStop": place}
    yield {"messageStop": {"stopReason": whole["stopReason"]}}
    yield {"metadata": {"usage": whole["usage"], "metrics": whole["metrics"]}}


# -- Cohere and Ollama ------------------------------------------------------------------------------------------------


def cohere_whole(turn: Turn) -> Json:
    body = chat_whole(turn)["choices"][0]["message"]
    more: Json = {"tool_calls": body["tool_calls"]} if turn.calls else {}
    content = []
    if turn.thinking:
        content.append({"type": "thinking", "thinking": turn.thinking.text})
    if turn.text and not turn.calls:
        content.append({"type": "text", "text": turn.text})
    if content:
        more["content"] = content
    if turn.text and turn.calls:
        more["tool_plan"] = turn.text
    whole = cohere_chat(finish_reason=turn.stop or ("TOOL_CALL" if turn.calls else "COMPLETE"))
    return {**whole, "message": {"role": "assistant", **more}, "usage": {"tokens": {"input_tokens": 1}}}


def cohere_events(turn: Turn, cut: Cut) -> Iterator[Json]:
    whole = cohere_whole(turn)
    body = whole["message"]

    def event(kind: str, index: int | None = None, **said: Any) -> Json:
        place = {} if index is None else {"index": index}
        return {"type": kind, **place, **({"delta": {"message": said}} if said else {})}

    yield {"type": "message-start", "id": whole["id"], "delta": {"message": {"role": "assistant"}}}
    for piece in cut.pieces(body["tool_plan"]) if "tool_plan" in body else ():
        yield event("tool-plan-delta", tool_plan=piece)
    for index, part in enumerate(body.get("content", ())):
        kind = part["type"]
        yield event("content-start", index, content={"type": kind, kind: ""})
        for piece in cut.pieces(part[kind]):
            yield event("content-delta", index, content={kind: piece})
        yield event("content-end", index)
    for index, call in enumerate(body.get("tool_calls", ())):
        function = {**call["function"], "arguments": ""}
        yield event("tool-call-start", index, tool_calls={**call, "function": function})
        for piece in cut.pieces(call["function"]["arguments"]):
            yield event("tool-call-delta", index, tool_calls={"function": {"arguments": piece}})
        yield event("tool-call-end", index)
    delta = {"finish_reason": whole["finish_reason"], "usage": whole["usage"]}
    yield {"type": "message-end", "id": whole["id"], "delta": delta}


def ollama_whole(turn: Turn) -> Json:
    calls = [
        {
            **({} if one.call_id is None else {"id": one.call_id}),
            "function": {"name": one.name, "arguments": one.arguments},
        }
        for one in turn.calls
    ]
    more: Json = {"tool_calls": calls} if calls else {}
    if turn.thinking:
        more["thinking"] = turn.thinking.text
    whole = ollama_chat(done_reason=turn.stop or "stop")
    return {**whole, "message": {"role": "assistant", "content": turn.text, **more}}


def ollama_events(turn: Turn, cut: Cut) -> Iterator[Json]:
    whole = ollama_whole(turn)
    head = {"model": whole["model"], "created_at": whole["created_at"], "done": False}
    body = whole["message"]
    for piece in cut.pieces(turn.thinking.text) if turn.thinking else ():
        yield {**head, "message": {"role": "assistant", "content": "", "thinking": piece}}
    for piece in cut.pieces(turn.text):
        yield {**head, "message": {"role": "assistant", "content": piece}}
    calls = body.get("tool_calls", [])
    for group in [calls] if cut.together and calls else [[call] for call in calls]:
        yield {**head, "message": {"role": "assistant", "content": "", "tool_calls": group}}
    end = {"role": "assistant", "content": ""}
    yield {**head, "created_at": "later", "done": True, "done_reason": whole["done_reason"], "message": end}


# -- the lanes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StreamLane:
    """One lane's streams.

    Attributes:
        name: Its name.
        module: The lane.
        whole: A turn as one response.
        events: The same as events.
        sdk: An event as the SDK's own object; `None` where the SDK has dicts.
        carries_text: Whether arguments are text on the wire, so that those that are no object come through whole.
        cuts: Stop reasons of responses that were cut off.
        refused: What judges have against a conversation; `None` where nothing.
        user: A user's message, to begin with.
        skipped: Members of a response that say nothing of the turn.
    """

    name: str
    module: ModuleType
    whole: Callable[[Turn], Json]
    events: Callable[[Turn, Cut], Iterator[Json]]
    sdk: Callable[[Json], Any] | None
    carries_text: bool
    cuts: Sequence[str]
    refused: Callable[[list[Any]], object]
    user: Json = field(default_factory=lambda: {"role": "user", "content": "Hi."})

    def collected(self, events: Sequence[Any], **options: Any) -> tuple[Any, list[ToolCall]]:
        """A collector that was fed with these events, and the calls that it returned early."""
        collector = self.module.StreamCollector(**options)
        early = [call for event in events for call in collector.add(event)]
        return collector, early


def _made(kind: Any, construct: Any, name: str = "value") -> Callable[[Json], Any]:
    return lambda event: construct(type_=kind, **{name: copy.deepcopy(event)})


STREAMS = (
    StreamLane(
        "openai_chat",
        openai_chat,
        chat_whole,
        chat_events,
        _made(ChatCompletionChunk, construct_openai),
        True,
        ("length", "content_filter"),
        CHAT.refused,
    ),
    StreamLane(
        "openai_responses",
        openai_responses,
        responses_whole,
        responses_events,
        _made(ResponseStreamEvent, construct_openai),
        True,
        ("max_output_tokens", "content_filter"),
        RESPONSES.refused,
    ),
    StreamLane(
        "anthropic",
        anthropic,
        anthropic_whole,
        anthropic_events,
        _made(RawMessageStreamEvent, construct_anthropic),
        False,
        ("max_tokens", "refusal"),
        ANTHROPIC.refused,
    ),
    StreamLane(
        "gemini",
        gemini,
        gemini_whole,
        gemini_events,
        GenerateContentResponse.model_validate,
        False,
        ("MAX_TOKENS", "SAFETY"),
        gemini_refused,
        {"role": "user", "parts": [{"text": "Hi."}]},
    ),
    StreamLane(
        "bedrock",
        bedrock,
        bedrock_whole,
        bedrock_events,
        None,
        False,
        ("max_tokens", "guardrail_intervened"),
        bedrock_refused,
        {"role": "user", "content": [{"text": "Hi."}]},
    ),
    StreamLane(
        "mistral",
        mistral,
        mistral_whole,
        mistral_events,
        mistral_sdk,
        True,
        ("length", "error"),
        # The oldest tokenizer takes no text beside calls; what a model with that one never says is no fault of the lane's.
        lambda messages: mistral_refused(messages, tuple(one for one in TOKENIZERS if one.name != "v3")),
    ),
    StreamLane(
        "cohere",
        cohere,
        cohere_whole,
        cohere_events,
        _made(V2ChatStreamResponse, construct_cohere, "object_"),
        True,
        ("MAX_TOKENS", "ERROR"),
        COHERE.refused,
    ),
    StreamLane(
        "ollama",
        ollama,
        ollama_whole,
        ollama_events,
        ChatResponse.model_validate,
        False,
        ("length",),
        OLLAMA.refused,
    ),
)


def stream(lane: str) -> StreamLane:
    """The lane of that name."""
    return next(one for one in STREAMS if one.name == lane)
