"""Writes replies as Converse responses: one object, or messages of AWS's binary event stream."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from toolbatch.testing._anthropic_blocks import sign
from toolbatch.testing._wire import Answer, Json, encode, pieces, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolbatch.testing._script import Reply, ScriptedCall

__all__ = ["bedrock_answer"]

_STRING = 7  # the type of a header's value


def bedrock_answer(reply: Reply, body: Json, serial: int) -> Answer:  # noqa: ARG001  a Converse response has no id
    """Write `reply` for the request `body`.

    Raises:
        ValueError: A call is `custom`; this lane has no custom calls.
    """
    if any(call.custom for call in reply.calls):
        raise ValueError("Converse has no custom tool calls: the reply was not sent")
    parts = [*_prose(reply), *[(_use(call), call.text) for call in reply.calls]]
    content = [block for block, _ in parts]
    spent, made = tokens(body.get("messages")), tokens(content)
    whole: Json = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": reply.stop or ("tool_use" if reply.calls else "end_turn"),
        "usage": {"inputTokens": spent, "outputTokens": made, "totalTokens": spent + made},
        "metrics": {"latencyMs": 1},
    }
    return Answer(whole, tuple(_frames(whole, parts)))


def _prose(reply: Reply) -> Iterator[tuple[Json, str]]:
    """The blocks before the calls, each with the input text that its stream carries."""
    if reply.thinking is not None:
        text = {"text": reply.thinking, "signature": sign(reply.thinking)}
        yield {"reasoningContent": {"reasoningText": text}}, ""
    if reply.text:
        yield {"text": reply.text}, ""
    for block in reply.blocks:
        use = block.get("toolUse")
        yield dict(block), encode(use["input"]) if isinstance(use, dict) and isinstance(use.get("input"), dict) else ""


def _use(call: ScriptedCall) -> Json:
    return {"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.object, **call.extra}}


def _frames(whole: Json, parts: list[tuple[Json, str]]) -> Iterator[bytes]:
    yield _event("messageStart", {"role": "assistant"})
    for index, (block, text) in enumerate(parts):
        place = {"contentBlockIndex": index}
        start, deltas = _opening(block, text)
        if start is not None:
            yield _event("contentBlockStart", {"start": start, **place})
        for delta in deltas:
            yield _event("contentBlockDelta", {"delta": delta, **place})
        yield _event("contentBlockStop", place)
    yield _event("messageStop", {"stopReason": whole["stopReason"]})
    yield _event("metadata", {"usage": whole["usage"], "metrics": whole["metrics"]})


def _opening(block: Json, text: str) -> tuple[Json | None, list[Json]]:
    """How a block opens in a stream, and the deltas that fill it. Only tools' blocks have an opening of their own."""
    if "text" in block:
        return None, [{"text": piece} for piece in pieces(block["text"])]
    if "reasoningContent" in block:
        reasoning = block["reasoningContent"]["reasoningText"]
        spoken = [{"reasoningContent": {"text": piece}} for piece in pieces(reasoning["text"])]
        return None, [*spoken, {"reasoningContent": {"signature": reasoning["signature"]}}]
    if "toolUse" in block:
        start = {name: value for name, value in block["toolUse"].items() if name != "input"}
        return {"toolUse": start}, [{"toolUse": {"input": piece}} for piece in pieces(text)]
    result = block["toolResult"]
    start = {name: value for name, value in result.items() if name != "content"}
    return {"toolResult": start}, [{"toolResult": result["content"]}]


def _event(kind: str, data: Json) -> bytes:
    """One message of the event stream: lengths, their checksum, headers, payload, the checksum of it all."""
    names = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(_header(name, value) for name, value in names.items())
    payload = encode(data).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack("!I", zlib.crc32(message))


def _header(name: str, value: str) -> bytes:
    return struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", _STRING, len(value)) + value.encode()
