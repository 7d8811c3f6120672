"""Writes replies as Chat Completions: one object, or chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolbatch.testing._wire import Answer, Json, encode, pieces, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolbatch.testing._script import Reply, ScriptedCall

__all__ = ["chat_answer"]


def chat_answer(reply: Reply, body: Json, serial: int) -> Answer:
    """Write `reply` for the request `body`, the `serial`-th that was accepted."""
    calls = [dict(block) for block in reply.blocks] + [_call(call) for call in reply.calls]
    message: Json = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if calls:
        message["tool_calls"] = calls
    elif not reply.text:
        message["content"] = ""
    finish = reply.stop or ("tool_calls" if calls else "stop")
    head: Json = {"id": f"chatcmpl-{serial}", "created": 0, "model": body.get("model", "")}
    usage = _usage(body, message)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
    return Answer(whole, tuple(_frames(head, message, calls, finish, usage if _wants_usage(body) else None)))


def _call(call: ScriptedCall) -> Json:
    if call.custom:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.text}, **call.extra}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}, **call.extra}


def _usage(body: Json, message: Json) -> Json:
    prompt, completion = tokens(body.get("messages")), tokens(message)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _wants_usage(body: Json) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _frames(head: Json, message: Json, calls: list[Json], finish: str, usage: Json | None) -> Iterator[str]:
    # With include_usage every chunk has the field, and only the last, which has no choices, fills it.
    common = {**head, "object": "chat.completion.chunk"} | ({"usage": None} if usage else {})

    def chunk(delta: Json, reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return f"data: {encode({**common, 'choices': [choice]})}\n\n"

    yield chunk({"role": "assistant", "content": None if calls else "", "refusal": None})
    for piece in pieces(message["content"] or ""):
        yield chunk({"content": piece})
    for index, call in enumerate(calls):
        for fragment in _fragments(call):
            yield chunk({"tool_calls": [{"index": index, **fragment}]})
    yield chunk({}, finish)
    if usage:
        yield f"data: {encode({**common, 'choices': [], 'usage': usage})}\n\n"
    yield "data: [DONE]\n\n"


def _fragments(call: Json) -> Iterator[Json]:
    """A call in fragments: id, type and name come once, in the first, and the text follows in pieces."""
    kind = call.get("type")
    key = {"function": "arguments", "custom": "input"}.get(str(kind), "")
    inner = call.get(str(kind))
    if not isinstance(inner, dict) or not isinstance(inner.get(key), str):
        yield call  # a raw entry of another shape is the script's own business
        return
    yield {**call, str(kind): {**inner, key: ""}}
    for piece in pieces(inner[key]):
        yield {str(kind): {key: piece}}
