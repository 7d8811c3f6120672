"""Bedrock Converse as a stream."""

from io import StringIO
from typing import Any, Final, final

from toolbatch.core import InvalidInputError

from ._bedrock_turn import read_turn
from ._plain import OBJECT, field, items, members
from ._read import Turn
from ._replay import arguments_object
from ._stream import DEFAULT_MAX_CHARS, arguments_of, kept, kept_members, reason_of, text_of_buffer, weight
from ._stream_blocks import Block, BlockCollector, asks_for_tools

__all__ = ["StreamCollector"]

_HOSTED: Final = "server_tool_use"
_FILLS: Final = {"citation": "text"}  # which block a delta goes into, where it has another name


@final
class StreamCollector(BlockCollector):
    """Puts a stream of `converse_stream` together.

        response = client.converse_stream(...)
        collector = bedrock.StreamCollector()
        for event in response["stream"]:
            collector.add(event)
        calls = collector.calls()
        ...
        bedrock.extend(messages, collector.response(), batch.result)

    An event is one of boto3's, a dict with one member, or the same as JSON text. An exception that is an event
    (`throttlingException`, `modelStreamErrorException`) is kept as `error`; boto3 raises those by itself.

    A call is over when its block closes. That says nothing of a response that is cut off at its token limit: its last block
    closes too, and only the stop reason, which comes last, tells. But input that is one whole JSON object was not cut.

    Input is read when its block is complete, and never in part: what is no JSON object stays text, and is answered as
    `malformed_arguments`. Of a message that broke off, reasoning at its end is left out of `response`, and so are uses of
    hosted tools that have no result: with either in it, every later request would be refused.

    A stream that goes on for ever ends at `max_chars`, about, in characters, as in every lane (`Collector`).
    """

    def __init__(self, *, max_chars: int = DEFAULT_MAX_CHARS) -> None:
        super().__init__(max_chars=max_chars)
        self._role: object = None
        self._stop: dict[str, Any] = {}
        self._metadata: dict[str, Any] = {}

    def _take(self, event: Any) -> bool:
        if not isinstance(event, OBJECT):
            return False
        taken = [self._take_member(str(name), value) for name, value in event.items() if value is not None]
        return any(taken)

    def _take_member(self, name: str, value: object) -> bool:
        index = field(value, "contentBlockIndex")
        match name:
            case "messageStart":
                if self._role is not None:
                    raise InvalidInputError("a second messageStart came: each response needs a new StreamCollector")
                self._role = kept(field(value, "role"))
            case "contentBlockStart":
                for kind, start in members(field(value, "start")).items():
                    self._begin(index, str(kind), start)
            case "contentBlockDelta":
                for kind, delta in members(field(value, "delta")).items():
                    self._fill(index, str(kind), delta)
            case "contentBlockStop":
                self._close(index)
            case "messageStop":
                reason = reason_of(field(value, "stopReason"), self._stop.get("stopReason"), asks_for_tools)
                self._stop |= self._said(value, "additionalModelResponseFields")
                self._stop |= {} if reason is None else {"stopReason": reason}
                self._stopped = reason is not None
            case "metadata":
                self._metadata |= self._said(value, "usage", "metrics", "trace", "performanceConfig", "serviceTier")
            case _ if name.endswith("Exception"):
                self._report(value)
            case _:
                return False
        return True

    def _said(self, value: object, *names: str) -> dict[str, Any]:
        said = {name: kept(field(value, name)) for name in names if field(value, name) is not None}
        self._grow(weight(said))
        return said

    def _begin(self, index: object, kind: str, start: object) -> Block:
        fields = {"kind": kind, "start": kept_members(start), "pieces": []}
        is_call = kind == "toolUse" and field(start, "type") != _HOSTED
        lost = {"kind": kind, "start": {}, "pieces": []}
        begun = self._begun(index, fields, lost, field(start, "toolUseId")) if is_call else None
        return begun or self._open(index, fields, is_call=is_call)

    def _fill(self, index: object, kind: str, delta: object) -> None:
        block = self._find(index) or self._begin(index, _FILLS.get(kind, kind), {})  # text has no start of its own
        match block.fields["kind"], kind:
            case "text", "text":
                self._write(block, "text", delta)
            case "toolUse", "toolUse":
                self._write(block, "input", field(delta, "input"))
            case "reasoningContent", "reasoningContent":
                self._write(block, "text", field(delta, "text"))
                self._write(block, "signature", field(delta, "signature"))
                self._keep(block, field(delta, "redactedContent"))
            case "toolResult", "toolResult":
                for entry in items(delta):
                    self._keep_result(block, entry)
            case "image", "image":
                self._keep(block, field(field(delta, "source"), "bytes"))
            case "text", "citation":
                self._keep(block, delta)
            case _:
                pass

    def _keep_result(self, block: Block, entry: object) -> None:
        text, pieces = field(entry, "text"), block.fields["pieces"]
        if not isinstance(text, str):
            self._keep(block, entry)
            return
        if not pieces or not isinstance(pieces[-1], StringIO):
            self._grow(weight({}))
            pieces.append(StringIO())
        self._grow(len(text))
        pieces[-1].write(text)

    def _keep(self, block: Block, piece: object) -> None:
        if piece is not None:
            copy = kept(piece)
            self._grow(weight(copy))
            block.fields["pieces"].append(copy)

    def _whole(self) -> dict[str, Any]:
        blocks = self._blocks if self.finished else self._unbroken()
        message = {"role": "assistant", "content": [_built(block) for block in blocks]}
        stop = {**kept_members(self._stop), "stopReason": self._stop_reason(self._stop.get("stopReason"))}
        return {"output": {"message": message}, **stop, **kept_members(self._metadata)}

    def _unbroken(self) -> list[Block]:
        """Return the blocks of a message that broke off, without those that no later request may have."""
        answered = {
            _use_id(block) for block in self._blocks if block.fields["kind"] == "toolResult" and block.is_closed
        }
        blocks = [
            block
            for block in self._blocks
            if block.fields["kind"] == "text"
            or block.position is not None
            or (block.is_closed and (block.fields["kind"] != "toolUse" or _use_id(block) in answered))
        ]
        while blocks and blocks[-1].fields["kind"] == "reasoningContent":
            del blocks[-1]
        return blocks

    def _only(self, position: int) -> dict[str, Any]:
        *before, last = self._uses[: position + 1]
        stubs = [{"toolUse": {"toolUseId": block.fields["start"].get("toolUseId")}} for block in before]
        message = {"role": "assistant", "content": [*stubs, _built(last)]}
        return {"output": {"message": message}, "stopReason": "tool_use"}

    def _turn(self, response: dict[str, Any]) -> Turn:
        return read_turn(response)


def _use_id(block: Block) -> str | None:
    use_id = block.fields["start"].get("toolUseId")
    return use_id if isinstance(use_id, str) else None


def _built(block: Block) -> dict[str, Any]:
    """Return a block as a whole message has it."""
    kind, pieces = block.fields["kind"], block.fields["pieces"]
    start = kept_members(block.fields["start"])
    match kind:
        case "text" if pieces:
            return {"citationsContent": {"content": [{"text": block.text("text")}], "citations": _copies(pieces)}}
        case "text":
            return {"text": block.text("text")}
        case "toolUse":
            return {"toolUse": {**start, "input": _input(block.text("input"), hosted=block.position is None)}}
        case "toolResult":
            return {"toolResult": {**start, "content": _copies(pieces)}}
        case "reasoningContent" if pieces:
            return {"reasoningContent": {"redactedContent": _joined(pieces)}}
        case "reasoningContent":
            parts = {name: block.text(name) for name in ("text", "signature") if name in block.buffers}
            return {"reasoningContent": {"reasoningText": {"text": "", **parts}}}
        case "image":
            return {"image": {**start, "source": {"bytes": _joined(pieces)}}}
        case _:
            return {kind: start}


def _input(text: str, *, hosted: bool) -> dict[str, Any] | str:
    if not text.strip():
        return {}
    return arguments_object(text) if hosted else arguments_of(text)


def _copies(pieces: list[Any]) -> list[Any]:
    return [{"text": text_of_buffer(piece)} if isinstance(piece, StringIO) else kept(piece) for piece in pieces]


def _joined(pieces: list[Any]) -> Any:
    """Return bytes, or the base64 text of raw JSON, that came in pieces."""
    if all(isinstance(piece, bytes) for piece in pieces):
        return b"".join(pieces)
    return "".join(piece for piece in pieces if isinstance(piece, str))
