"""Writes replies as Responses: one object, or events with sequence numbers."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from toolbatch.testing._wire import Answer, Json, event, pieces, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolbatch.testing._script import Reply, ScriptedCall

__all__ = ["responses_answer"]


def responses_answer(reply: Reply, body: Json, serial: int) -> Answer:
    """Write `reply` for the request `body`, the `serial`-th that was accepted."""
    items = list(_items(reply, serial))
    if reply.stop and items and "status" in items[-1]:
        items[-1]["status"] = "incomplete"  # the item that the limit cut
    spent, made = tokens(body.get("input")), tokens(items)
    whole: Json = {
        "id": f"resp_{serial}",
        "object": "response",
        "created_at": 0,
        "status": "incomplete" if reply.stop else "completed",
        "error": None,
        "incomplete_details": {"reason": reply.stop} if reply.stop else None,
        "instructions": body.get("instructions"),
        "metadata": body.get("metadata") or {},
        "model": body.get("model", ""),
        "output": items,
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "store": body.get("store", True),
        "temperature": body.get("temperature", 1.0),
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p", 1.0),
        "truncation": "disabled",
        "usage": {
            "input_tokens": spent,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": made,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": spent + made,
        },
    }
    return Answer(whole, tuple(_frames(whole)))


def _items(reply: Reply, serial: int) -> Iterator[Json]:
    if reply.thinking is not None:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        yield {"type": "reasoning", "id": f"rs_{serial}", "summary": summary}
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        yield {"type": "message", "id": f"msg_{serial}", "role": "assistant", "status": "completed", "content": [part]}
    for block in reply.blocks:
        yield dict(block)
    for index, call in enumerate(reply.calls):
        yield _call(call, f"{serial}_{index}")


def _call(call: ScriptedCall, suffix: str) -> Json:
    if call.custom:
        item: Json = {"type": "custom_tool_call", "id": f"ctc_{suffix}", "call_id": call.id, "name": call.name}
        return {**item, "input": call.text, **call.extra}
    item = {"type": "function_call", "id": f"fc_{suffix}", "call_id": call.id, "name": call.name}
    return {**item, "arguments": call.text, "status": "completed", **call.extra}


def _frames(whole: Json) -> Iterator[str]:
    begun = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    end = "response.incomplete" if whole["status"] == "incomplete" else "response.completed"
    events: list[Json] = [{"type": "response.created", "response": begun}]
    events.append({"type": "response.in_progress", "response": begun})
    for index, item in enumerate(whole["output"]):
        events += _item_events(item, index)
    events.append({"type": end, "response": whole})
    for data, number in zip(events, count(), strict=False):
        yield event({**data, "sequence_number": number})


def _item_events(item: Json, index: int) -> Iterator[Json]:
    """An item opens empty, is filled, and closes whole: the closing event is the one to act on."""
    opened = {**item, "status": "in_progress"} if "status" in item else dict(item)
    position = {"output_index": index, "item_id": item.get("id", "")}
    filling: Iterator[Json] = iter(())
    match item.get("type"):
        case "message":
            opened["content"] = []
            filling = _text_events(item, position)
        case "reasoning":
            opened["summary"] = []
            filling = _summary_events(item, position)
        case "function_call":
            opened["arguments"] = ""
            filling = _argument_events(item, "arguments", "response.function_call_arguments", position)
        case "custom_tool_call":
            opened["input"] = ""
            filling = _argument_events(item, "input", "response.custom_tool_call_input", position)
        case _:
            pass  # a hosted item comes whole
    yield {"type": "response.output_item.added", "output_index": index, "item": opened}
    yield from filling
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _text_events(item: Json, position: Json) -> Iterator[Json]:
    for number, part in enumerate(item["content"]):
        place = {**position, "content_index": number}
        yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **place, "part": part}


def _summary_events(item: Json, position: Json) -> Iterator[Json]:
    for number, part in enumerate(item.get("summary") or []):
        place = {**position, "summary_index": number}
        yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **place, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **place, "part": part}


def _argument_events(item: Json, key: str, name: str, position: Json) -> Iterator[Json]:
    for piece in pieces(item[key]):
        yield {"type": f"{name}.delta", **position, "delta": piece}
    # No name and no call_id here: a client must keep them from the item that was added.
    yield {"type": f"{name}.done", **position, key: item[key]}
