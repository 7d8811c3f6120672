"""LangChain's messages, read and written: what `langchain` and `langgraph` share.

An `AIMessage` has its calls in two lists: those whose arguments LangChain could parse (`tool_calls`), and those it could not
(`invalid_tool_calls`), which are sent to providers all the same and so need an answer too (LANES 10). Between the two the
model's own order is lost; LangChain's provider packages send them in this order. A chunk has them in one list, as text.
"""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from toolbatch.core import CallProblem, Data, Document, Image, InvalidTypeError, Part, ToolCall, Url, preview
from toolbatch.providers.kit import (
    FILTERED,
    TOKEN_LIMIT,
    Answer,
    Block,
    Carrier,
    Draft,
    IdRule,
    Turn,
    arguments_object,
    arguments_text,
    content_of,
    cut_off,
    document_text,
    field,
    items,
    not_requested,
    place,
    replay_name,
)

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, ToolMessage

__all__ = ["answer_message", "blocks_of", "is_ai", "is_tool_message", "mended", "read_turn", "used_ids"]

_IDS: Final = IdRule()  # whichever provider made an id takes it back
_MAX_NAME: Final = 64
_AI: Final = ("ai", "AIMessageChunk")
_TOOL: Final = ("tool", "ToolMessageChunk")

# LangChain passes on the provider's own word, under the provider's own name.
_REASON_KEYS: Final = ("finish_reason", "stop_reason", "stopReason", "done_reason", "finishReason")
_UNFINISHED: Final = cut_off("the response was read before it was finished, so the arguments may be incomplete")
_FAILED: Final = cut_off("the model's server ended the response before it was complete")
_STOPPED: Final = cut_off("the response was cut off at a stop sequence, so the arguments may be incomplete")
_MALFORMED: Final = cut_off("the provider says that the model wrote a malformed call")
_NOT_ALLOWED: Final = not_requested(
    "the server found a call, or more calls, than it allows", "Continue with fewer calls of declared tools, or without."
)
_PAUSED: Final = not_requested(
    "the response was paused before its end", "If it is still needed, call the tool again and wait for its result."
)
_REFUSED: Final = not_requested(
    "the response ended as a refusal", "Do not call it again unless the user asks for something else."
)
_REASONS: Final[Mapping[str, CallProblem]] = {
    **dict.fromkeys(
        ("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "continuation"),
        TOKEN_LIMIT,
    ),
    **dict.fromkeys(
        ("content_filter", "content_filtered", "safety", "recitation", "language", "blocklist", "prohibited_content"),
        FILTERED,
    ),
    **dict.fromkeys(
        ("spii", "escalation", "model_armor", "image_safety", "guardrail_intervened", "error_toxic"), FILTERED
    ),
    **dict.fromkeys(
        ("malformed_function_call", "malformed_response", "malformed_tool_use", "malformed_model_output"), _MALFORMED
    ),
    **dict.fromkeys(("unexpected_tool_call", "too_many_tool_calls"), _NOT_ALLOWED),
    **dict.fromkeys(("pause_turn", "compaction"), _PAUSED),
    **dict.fromkeys(("error", "timeout", "failed", "cancelled", "incomplete"), _FAILED),
    **dict.fromkeys(("in_progress", "queued"), _UNFINISHED),
    "stop_sequence": _STOPPED,
    "refusal": _REFUSED,
}


def is_ai(message: object) -> bool:
    """Whether a message is the model's."""
    return field(message, "type") in _AI


def is_tool_message(message: object) -> bool:
    """Whether a message is a tool's result."""
    return field(message, "type") in _TOOL


def read_turn(message: object) -> Turn:
    """Return what the model's message announces.

    Raises:
        InvalidTypeError: It is not the model's message.
    """
    if not is_ai(message):
        raise InvalidTypeError(f"response must be an AIMessage or its model_dump(), not {preview(message)}")
    truncated = _truncation(message)
    drafts = [
        Draft(field(call, "id"), field(call, "name"), field(call, "args"), truncated=truncated)
        for call in _announced(message)
    ]
    return Turn(message, field(message, "id"), _IDS, drafts)


def _announced(message: object) -> list[Any]:
    # A chunk's parsed arguments are a guess that completes what was cut off; its text is what the model wrote.
    chunks = items(field(message, "tool_call_chunks"))
    return chunks or [*items(field(message, "tool_calls")), *items(field(message, "invalid_tool_calls"))]


def _truncation(message: object) -> CallProblem | None:
    """Return why the calls may not be run, though they look whole: only the stop reason tells (LANES 14.4)."""
    metadata = field(message, "response_metadata")
    reasons = [field(metadata, key) for key in _REASON_KEYS]
    reasons += [field(field(metadata, "incomplete_details"), "reason"), field(metadata, "status")]
    given = [reason.lower() for reason in reasons if isinstance(reason, str)]
    for reason in given:
        for word, problem in _REASONS.items():
            if reason == word * (len(reason) // len(word)) and reason:  # a sum of chunks joins what each of them says
                return problem
    is_chunk = field(message, "type") == "AIMessageChunk" and field(message, "tool_call_chunks")
    # LangChain marks the last chunk of every stream, so a sum without that mark is of a stream that was cut.
    if is_chunk and not given and hasattr(message, "chunk_position") and field(message, "chunk_position") != "last":
        return _UNFINISHED
    return None


def used_ids(messages: Sequence[object]) -> set[str]:
    """Return the ids of all calls in a conversation: some providers want them unique over the whole of it."""
    ids = [field(call, "id") for message in messages if is_ai(message) for call in _announced(message)]
    return {call_id for call_id in ids if isinstance(call_id, str)}


# -- results ---------------------------------------------------------------------------------------------------------------


def answer_message(
    call: ToolCall,
    call_id: str,
    text: str,
    failed: bool,  # noqa: FBT001  as exported
    parts: Sequence[Part] | None,
    artifact: Any,
) -> "ToolMessage":
    """Return one call's answer."""
    from langchain_core.messages import ToolMessage

    content: Any = text if parts is None else blocks_of(parts, call.name, call_id)
    status: Any = "error" if failed else "success"
    return ToolMessage(content=content, tool_call_id=call_id, name=call.name, status=status, artifact=artifact)


def blocks_of(parts: Sequence[Part], name: str, call_id: str) -> str | list[Block]:
    """Return parts as LangChain's standard content blocks, which each provider's package turns into what it can send."""
    return content_of(place(parts, _CARRIER, name, call_id).inside, lambda text: {"type": "text", "text": text})


def _nest(part: Part) -> Block | None:
    if isinstance(part, Image):
        return {"type": "image", **_source(part.source)}
    if not isinstance(part, Document) or document_text(part) is not None:
        return None
    kind = (part.source.media_type or "").partition("/")[0]
    name = {} if part.name is None else {"extras": {"filename": part.name}}
    return {"type": kind if kind in ("audio", "video") else "file", **_source(part.source), **name}


def _source(source: Data | Url) -> Block:
    # No `id`: LangChain's own factories make a random one, and the same batch must give the same bytes (C16).
    if isinstance(source, Data):
        return {"base64": source.base64, "mime_type": source.media_type}
    return {"url": source.url} if source.media_type is None else {"url": source.url, "mime_type": source.media_type}


_CARRIER: Final = Carrier(nest=_nest)

# -- the model's turn, on its way back -------------------------------------------------------------------------------------


def mended(turn: Turn, answers: Sequence[Answer], ids: Sequence[str]) -> "AIMessage":
    """Return the model's message as it can stand in a conversation: the same object where nothing is wrong with it.

    Where an id is missing or repeated, it is ours; arguments that are no JSON object become one, `{"INVALID_JSON": text}`, so
    that `invalid_tool_calls` is empty; a chunk becomes a message. What stands in the content as well is changed alike.
    """
    from langchain_core.messages import AIMessage, AIMessageChunk, message_chunk_to_message

    message = turn.source
    if not isinstance(message, AIMessage):
        raise InvalidTypeError(f"response must be LangChain's AIMessage to stand in messages, not {preview(message)}")
    written = [
        {
            "name": replay_name(answer, _MAX_NAME),
            "args": arguments_object(draft.arguments),
            "id": call_id,
            "type": "tool_call",
        }
        for draft, answer, call_id in zip(turn.drafts, answers, ids, strict=True)
    ]
    if isinstance(message, AIMessageChunk):
        message = cast("AIMessage", message_chunk_to_message(message))
    elif not message.invalid_tool_calls and written == message.tool_calls:
        return message
    content = _content(message.content, turn.drafts, written)
    extra = {name: value for name, value in message.additional_kwargs.items() if name != "tool_calls"}
    changes = {"tool_calls": written, "invalid_tool_calls": [], "content": content, "additional_kwargs": extra}
    return message.model_copy(update=changes)


_CALL_BLOCKS: Final = {
    "tool_use": "id",
    "tool_call": "id",
    "invalid_tool_call": "id",
    "function_call": "call_id",
}
"""Blocks of the content that are a call once more, and where each has the call's id."""


def _content(content: Any, drafts: Sequence[Draft], written: Sequence[Mapping[str, Any]]) -> Any:
    if not isinstance(content, list):
        return content
    waiting: defaultdict[object, deque[Mapping[str, Any]]] = defaultdict(deque)
    for draft, call in zip(drafts, written, strict=True):
        waiting[draft.wire_id or None].append(call)
    return [_block(block, waiting) for block in content]


def _block(block: Any, waiting: Mapping[object, deque[Mapping[str, Any]]]) -> Any:
    kind = field(block, "type")
    key = _CALL_BLOCKS.get(kind) if isinstance(kind, str) else None
    if key is None or not isinstance(block, dict):
        return block
    calls = waiting.get(block.get(key) or None)
    if not calls:
        return block
    call = calls.popleft()
    if kind == "tool_use":
        return {**block, "id": call["id"], "name": call["name"], "input": call["args"]}
    if kind == "function_call":
        text = arguments_text(call["args"])
        return {**block, "call_id": call["id"], "name": call["name"], "arguments": text}
    rest = {name: value for name, value in block.items() if name != "error"}
    return {**rest, "type": "tool_call", "id": call["id"], "name": call["name"], "args": call["args"]}
