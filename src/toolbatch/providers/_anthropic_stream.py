"""Anthropic Messages as a stream."""

from typing import Any, Final, final

from toolbatch.core import InvalidInputError, preview

from ._anthropic_turn import read_turn
from ._plain import field, items
from ._read import Turn
from ._replay import arguments_object
from ._stream import DEFAULT_MAX_CHARS, arguments_of, kept, kept_members, reason_of, weight
from ._stream_blocks import Block, BlockCollector, asks_for_tools

__all__ = ["StreamCollector"]

_CALL: Final = "tool_use"
_OTHERS: Final = ("message_stop", "ping")
_TEXTS: Final = {"text_delta": "text", "thinking_delta": "thinking"}
_SAID: Final = {"signature_delta": ("signature",), "compaction_delta": ("content", "encrypted_content")}
_FILLS: Final = {  # which block a delta goes into
    "text_delta": "text",
    "citations_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "compaction_delta": "compaction",
    "input_json_delta": _CALL,
}
_LAST_SAID: Final = ("stop_reason", "stop_sequence", "stop_details", "container")
_LAST_SAID_BESIDE: Final = ("context_management", "input_transformations")
_THINKING: Final = ("thinking", "redacted_thinking")
_HOSTED_USES: Final = ("server_tool_use", "mcp_tool_use")


@final
class StreamCollector(BlockCollector):
    """Puts a stream of the Messages API together.

        collector = anthropic.StreamCollector()
        async for event in await client.messages.create(..., stream=True):
            collector.add(event)
        calls = collector.calls()
        ...
        anthropic.extend(messages, collector.response(), batch.result)

    An event is a `RawMessageStreamEvent`, an event of the SDK's `.stream()` helper, or the data of a server-sent event.

    A call is over when its block closes. That says nothing of a response that is cut off at its token limit: its last block
    closes too, and only the stop reason, which comes last, tells. But input that is one whole JSON object was not cut.

    Input is read when its block is complete, and never in part: what is no JSON object stays text, and is answered as
    `malformed_arguments`. (The SDK's own accumulator makes a valid object of the half of one, LANES 14.4.)

    Of a message that broke off, thinking at its end is left out of `response`, and so are uses of hosted tools that have no
    result: with either in it, every later request would be refused.

    A stream that goes on for ever ends at `max_chars`, about, in characters, as in every lane (`Collector`).
    """

    def __init__(self, *, max_chars: int = DEFAULT_MAX_CHARS) -> None:
        super().__init__(max_chars=max_chars)
        self._head: dict[str, Any] | None = None
        self._said: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}

    def _take(self, event: Any) -> bool:
        index = field(event, "index")
        match field(event, "type"):
            case "message_start":
                self._start(field(event, "message"))
            case "content_block_start":
                self._begin(index, field(event, "content_block"))
            case "content_block_delta":
                self._fill(index, field(event, "delta"))
            case "content_block_stop":
                self._close(index)
            case "message_delta":
                self._finish(event)
            case "error":
                self._report(field(event, "error"))
            case other:
                return other in _OTHERS
        return True

    def _start(self, message: object) -> None:
        if self._head is not None:
            raise InvalidInputError(
                f"a second message_start came, of {preview(field(message, 'id'))}: each response needs a new StreamCollector"
            )
        self._head = kept_members(message, "content", "usage", *(() if self._is_new() else ("id",)))
        self._usage = kept_members(field(message, "usage"))
        self._grow(weight(self._head) + weight(self._usage))
        for index, block in enumerate(items(field(message, "content"))):
            self._begin(index, block)

    def _begin(self, index: object, content_block: object) -> Block:
        fields = kept_members(content_block, *_TEXTS.values())
        is_call = fields.get("type") == _CALL
        begun = self._begun(index, fields, {"type": _CALL}, fields.get("id")) if is_call else None
        if begun is not None:
            return begun
        block = self._open(index, fields, is_call=is_call)
        for name in _TEXTS.values():
            self._write(block, name, field(content_block, name))
        return block

    def _fill(self, index: object, delta: object) -> None:
        kind = field(delta, "type")
        opens = _FILLS.get(kind) if isinstance(kind, str) else None
        if opens is None:
            return
        block = self._find(index) or self._begin(index, {"type": opens})  # where its start is lost
        own = block.fields.get("type")
        if kind == "input_json_delta":
            if own in _TEXTS.values():
                return
            self._write(block, "input", field(delta, "partial_json"))
        elif own != opens:
            return
        elif kind in _TEXTS:
            self._write(block, _TEXTS[kind], field(delta, _TEXTS[kind]))
        elif kind == "citations_delta":
            self._cite(block, kept(field(delta, "citation")))
        else:
            said = {name: kept(field(delta, name)) for name in _SAID[kind]}
            self._grow(weight(said))
            block.fields |= said

    def _cite(self, block: Block, citation: object) -> None:
        self._grow(weight(citation))
        if not isinstance(block.fields.get("citations"), list):
            block.fields["citations"] = []
        block.fields["citations"].append(citation)

    def _finish(self, event: object) -> None:
        said = {name: field(field(event, "delta"), name) for name in _LAST_SAID}
        said |= {name: field(event, name) for name in _LAST_SAID_BESIDE}
        said["stop_reason"] = reason_of(said["stop_reason"], self._said.get("stop_reason"), asks_for_tools)
        said = {name: kept(value) for name, value in said.items() if value is not None}
        usage = {name: value for name, value in kept_members(field(event, "usage")).items() if value is not None}
        self._grow(weight(said) + weight(usage))
        self._said |= said
        self._usage |= usage  # totals so far: what is not said again stands
        self._stopped = "stop_reason" in self._said

    def _whole(self) -> dict[str, Any]:
        blocks = self._blocks if self.finished else self._unbroken()
        head = {"type": "message", "role": "assistant", **kept_members(self._head), **kept_members(self._said)}
        return {
            **head,
            "content": [_built(block) for block in blocks],
            "stop_reason": self._stop_reason(self._said.get("stop_reason")),
            "usage": kept(self._usage),
        }

    def _unbroken(self) -> list[Block]:
        """Return the blocks of a message that broke off, without those that no later request may have."""
        answers = [block.fields.get("tool_use_id") for block in self._blocks if block.is_closed]
        answered = {use_id for use_id in answers if isinstance(use_id, str)}
        blocks = [
            block
            for block in self._blocks
            if block.fields.get("type") in ("text", _CALL)
            or (block.is_closed and (block.fields.get("type") not in _HOSTED_USES or _use_id(block) in answered))
        ]
        while blocks and blocks[-1].fields.get("type") in _THINKING:
            del blocks[-1]  # "The final block in an assistant message cannot be `thinking`"
        return blocks

    def _only(self, position: int) -> dict[str, Any]:
        *before, last = self._uses[: position + 1]
        stubs = [{"type": _CALL, "id": block.fields.get("id"), "name": None, "input": None} for block in before]
        message = {"role": "assistant", "stop_reason": "tool_use", "content": [*stubs, _built(last)]}
        return {"id": (self._head or {}).get("id"), **message}

    def _turn(self, response: dict[str, Any]) -> Turn:
        return read_turn(response)


def _use_id(block: Block) -> str | None:
    use_id = block.fields.get("id")
    return use_id if isinstance(use_id, str) else None


def _built(block: Block) -> dict[str, Any]:
    """Return a block as a whole message has it."""
    whole = kept_members(block.fields)
    for name in block.buffers:
        text = block.text(name)
        if name != "input":
            whole[name] = text
        elif text.strip():  # else it has none, or what its start said
            whole["input"] = arguments_of(text) if whole.get("type") == _CALL else arguments_object(text)
    return whole
