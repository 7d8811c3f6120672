"""Writes replies as Anthropic messages: one object, or events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolbatch.testing._anthropic_blocks import sign
from toolbatch.testing._wire import Answer, Json, encode, event, pieces, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolbatch.testing._script import Reply, ScriptedCall

__all__ = ["anthropic_answer"]


def anthropic_answer(reply: Reply, body: Json, serial: int) -> Answer:
    """Write `reply` for the request `body`, the `serial`-th that was accepted.

    Raises:
        ValueError: A call is `custom`; this lane has no custom calls.
    """
    if any(call.custom for call in reply.calls):
        raise ValueError("the Messages API has no custom tool calls: the reply was not sent")
    parts = [*_prose(reply), *[(_use(call), call.text) for call in reply.calls]]
    stop = reply.stop or ("tool_use" if reply.calls else "end_turn")
    usage = {"input_tokens": tokens(body.get("messages")), "output_tokens": tokens([block for block, _ in parts])}
    whole: Json = {
        "id": f"msg_{serial}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", ""),
        "content": [block for block, _ in parts],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }
    return Answer(whole, tuple(_frames(whole, [text for _, text in parts])))


def _prose(reply: Reply) -> Iterator[tuple[Json, str]]:
    """The blocks before the calls, each with the input text that its stream carries."""
    if reply.thinking is not None:
        yield {"type": "thinking", "thinking": reply.thinking, "signature": sign(reply.thinking)}, ""
    if reply.text:
        yield {"type": "text", "text": reply.text, "citations": None}, ""
    for block in reply.blocks:
        arguments = block.get("input")
        yield dict(block), encode(arguments) if isinstance(arguments, dict) else ""


def _use(call: ScriptedCall) -> Json:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.object, **call.extra}


def _frames(whole: Json, inputs: list[str]) -> Iterator[str]:
    usage = whole["usage"]
    start = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield event({"type": "message_start", "message": start})
    yield event({"type": "ping"})
    for index, (block, text) in enumerate(zip(whole["content"], inputs, strict=True)):
        opening, deltas = _opening(block, text)
        yield event({"type": "content_block_start", "index": index, "content_block": opening})
        for delta in deltas:
            yield event({"type": "content_block_delta", "index": index, "delta": delta})
        yield event({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}})
    yield event({"type": "message_stop"})


def _opening(block: Json, text: str) -> tuple[Json, list[Json]]:
    """How a block opens in a stream, and the deltas that fill it."""
    kind = block.get("type")
    if kind == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    if kind == "thinking":
        deltas: list[Json] = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        signature = {"type": "signature_delta", "signature": block.get("signature", "")}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signature]
    if "input" in block:
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(text)]
    return block, []
