"""Writes replies as Gemini's responses: one object, or server-sent events of whole parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolbatch.testing._gemini_parts import sign
from toolbatch.testing._wire import Answer, Json, encode, pieces, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolbatch.testing._script import Reply, ScriptedCall

__all__ = ["gemini_answer"]


def gemini_answer(reply: Reply, body: Json, serial: int, model: str) -> Answer:
    """Write `reply` for the request `body` to `model`, the `serial`-th that was accepted.

    Raises:
        ValueError: A call is `custom`; this lane has no custom calls.
    """
    if any(call.custom for call in reply.calls):
        raise ValueError("generateContent has no custom tool calls: the reply was not sent")
    parts = list(_parts(reply, signed=reply.thinking is not None or model.startswith("gemini-3")))
    finish = reply.stop or "STOP"
    spent, made = tokens(body.get("contents")), tokens(parts)
    usage = {"promptTokenCount": spent, "candidatesTokenCount": made, "totalTokenCount": spent + made}
    tail: Json = {"usageMetadata": usage, "modelVersion": model, "responseId": f"resp_{serial}"}
    whole = {"candidates": [_candidate(parts, finish)], **tail}
    return Answer(whole, tuple(_frames(parts, finish, tail)))


def _parts(reply: Reply, *, signed: bool) -> Iterator[Json]:
    if reply.thinking is not None:
        yield {"text": reply.thinking, "thought": True}
    if reply.text:
        yield {"text": reply.text}
    for block in reply.blocks:
        yield dict(block)
    for position, call in enumerate(reply.calls):
        part: Json = {"functionCall": _call(call)}
        if signed and position == 0:  # of parallel calls the first alone is signed
            part["thoughtSignature"] = sign(call.name, part["functionCall"].get("args", {}))
        yield part


def _call(call: ScriptedCall) -> Json:
    facts: Json = {"id": call.id} if call.id else {}
    arguments = {"args": call.object} if call.object else {}  # a call without arguments has none at all
    return {**facts, "name": call.name, **arguments, **call.extra}


def _candidate(parts: list[Json], finish: str | None) -> Json:
    candidate: Json = {"content": {"parts": parts or [{"text": ""}], "role": "model"}, "index": 0}
    return candidate if finish is None else {**candidate, "finishReason": finish}


def _frames(parts: list[Json], finish: str, tail: Json) -> Iterator[str]:
    chunks = [chunk for part in parts for chunk in _chunks(part)] or [{"text": ""}]
    for position, chunk in enumerate(chunks):
        last = position == len(chunks) - 1
        yield f"data: {encode({'candidates': [_candidate([chunk], finish if last else None)], **tail})}\r\n\r\n"


def _chunks(part: Json) -> Iterator[Json]:
    """A text comes in pieces; every other part comes whole, in an event of its own."""
    if set(part) <= {"text", "thought"} and isinstance(part.get("text"), str):
        for piece in pieces(part["text"]):
            yield {**part, "text": piece}
    else:
        yield part
