"""AWS Bedrock Converse: `toolUse` blocks last in the assistant's content, `toolResult` blocks first in the one next user message.

A `reasoningContent` is a barrier. A `cachePoint` is a marker: behind the calls it is no content, and it stays with the block
in front of it. Rules: LANES 5.
"""

from collections.abc import Sequence
from typing import Any, final

from ._block_lane import BlockLane
from ._fold import joined
from ._matching import Matching
from ._plan import Close, Note
from ._read import changed, entries, field, key_of, members, word
from ._segments import is_tidy
from ._texts import is_close_text, told, written
from ._turns import NOWHERE, Call, Key, Result

__all__ = ["Bedrock"]

_HOSTED = "server_tool_use"


@final
class Bedrock(BlockLane):
    """The lane."""

    def read(self, messages: Sequence[Any], seen: Matching) -> None:
        turn = NOWHERE
        for position, message in enumerate(messages):
            if type(message) is not dict:
                message = members(message, position)
            role, content = message.get("role"), message.get("content")
            if not isinstance(content, (list, tuple)):
                turn = seen.tail = NOWHERE
            elif role == "assistant":
                turn = seen.tail = self._calls(content, position, seen)
            else:
                seen.tail = _results(content, position, turn, seen)
                turn = NOWHERE  # all results are in one message: the next one is too late
        seen.run = turn

    def _calls(self, content: Sequence[Any], position: int, seen: Matching) -> int:
        keys: list[Key] = []
        indices: list[int] = []
        for index, block in enumerate(content):
            use = field(block, "toolUse")
            if use is not None and field(use, "type") != _HOSTED:
                keys.append(key_of(field(use, "toolUseId")))
                indices.append(index)
        if not keys:
            return NOWHERE
        turn = seen.turn(position, keys, indices)
        if not is_tidy(content, self.kind):
            seen.untidy.add(turn)
        return turn

    def is_close(self, result: Result) -> bool:
        content = field(field(result.source, "toolResult"), "content")
        return isinstance(content, (list, tuple)) and len(content) == 1 and is_close_text(field(content[0], "text"))

    def name(self, call: Call) -> str:
        return word(field(call.source, "toolUse"), "name")

    def answer(self, messages: Sequence[Any], call: Call, close: Close) -> Any:  # noqa: ARG002
        call_id = field(field(call.source, "toolUse"), "toolUseId")
        result: dict[str, Any] = {"toolUseId": call_id, "content": [{"text": close.text}]}
        return {"toolResult": {**result, "status": "error"} if close.failed else result}

    def fold(self, results: Sequence[Result]) -> Any:
        inner = [field(result.source, "toolResult") for result in results]
        failures = [field(result, "status") == "error" for result in inner]
        content = joined([field(result, "content") or [] for result in inner], failures, self.text)
        more = self.kept_members(inner)
        if any(failures) and not all(failures):
            more["status"] = "success"
        outer = self.kept_members([result.source for result in results])
        return changed(results[0].source, {**outer, "toolResult": changed(inner[0], {**more, "content": content})})

    def kind(self, block: Any) -> str:
        use = field(block, "toolUse")
        if use is not None:
            return "content" if field(use, "type") == _HOSTED else "call"
        if field(block, "reasoningContent") is not None:
            return "barrier"
        return "marker" if field(block, "cachePoint") is not None else "content"

    def is_result(self, block: Any) -> bool:
        return field(block, "toolResult") is not None

    def text(self, text: str) -> Any:
        return {"text": text}

    def told(self, notes: Sequence[Note]) -> list[Any]:
        entries = [
            (self.name(note.call), note.call.label, _content(field(note.result.source, "toolResult"))) for note in notes
        ]
        content = told(entries, self.text)
        return [self.text(content)] if isinstance(content, str) else content


def _results(content: Sequence[Any], position: int, run: int, seen: Matching) -> int:
    for index, block in enumerate(content):
        result = field(block, "toolResult")
        if result is not None:
            seen.answer(key_of(field(result, "toolUseId")), position, index, run)
        elif field(block, "cachePoint") is None:
            run = NOWHERE
    return run


def _content(result: object) -> Any:
    """Return a result's content as a user message takes it: JSON is for results alone."""
    parts = []
    for part in entries(field(result, "content")):
        data = field(part, "json")
        parts.append(part if data is None else {"text": written(data)})
    texts = [field(part, "text") for part in parts]
    return "\n".join(texts) if all(isinstance(text, str) for text in texts) else parts
