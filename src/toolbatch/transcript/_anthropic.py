"""Anthropic Messages: `tool_use` blocks last in the assistant's content, `tool_result` blocks first in the next user message.

User messages in a row are one to the API, so results may go on from one to the next. Thinking blocks are barriers; what the
server runs itself (`server_tool_use`, `mcp_tool_use` and their results) is content like text. Rules: LANES 3.
"""

from collections.abc import Sequence
from typing import Any, Final, final

from ._block_lane import BlockLane
from ._fold import folded, joined
from ._matching import Matching
from ._openai_chat import text_of
from ._plan import Close, Note
from ._read import Members, field, key_of, members, word
from ._texts import is_close_text, told
from ._turns import NOWHERE, Call, Key, Result

__all__ = ["Anthropic"]

_BARRIERS: Final = ("thinking", "redacted_thinking", "compaction", "fallback")


@final
class Anthropic(BlockLane):
    """The lane."""

    def read(self, messages: Sequence[Any], seen: Matching) -> None:
        run = NOWHERE
        for position, message in enumerate(messages):
            if type(message) is not dict:
                message = members(message, position)
            role, content = message.get("role"), message.get("content")
            if role == "user" and isinstance(content, (list, tuple)):
                run = _results(content, position, run, seen)
            elif role == "assistant" and isinstance(content, (list, tuple)):
                run = _calls(content, position, seen)
            else:
                run = NOWHERE
        seen.run = seen.tail = run

    def is_close(self, result: Result) -> bool:
        return is_close_text(text_of(field(result.source, "content")))

    def name(self, call: Call) -> str:
        return word(call.source, "name")

    def answer(self, messages: Sequence[Any], call: Call, close: Close) -> Any:  # noqa: ARG002
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": field(call.source, "id"), "content": close.text}
        if close.failed:
            block["is_error"] = True
        toolset = field(call.source, "toolset_name")
        return block if toolset is None else {**block, "toolset_name": toolset}  # "the API rejects a mismatch"

    def fold(self, results: Sequence[Result]) -> Any:
        sources = [result.source for result in results]
        failures = [bool(field(source, "is_error")) for source in sources]
        content = joined([field(source, "content") for source in sources], failures, self.text)
        mixed = any(failures) and not all(failures)
        return folded(sources, "content", content, {"is_error": False} if mixed else None)

    def kind(self, block: Any) -> str:
        kind = field(block, "type")
        return "call" if kind == "tool_use" else "barrier" if kind in _BARRIERS else "content"

    def is_result(self, block: Any) -> bool:
        return bool(field(block, "type") == "tool_result")

    def text(self, text: str) -> Any:
        return {"type": "text", "text": text}

    def told(self, notes: Sequence[Note]) -> list[Any]:
        entries = [
            (self.name(note.call), note.call.label, field(note.result.source, "content") or "") for note in notes
        ]
        content = told(entries, self.text)
        return [self.text(content)] if isinstance(content, str) else content


def _calls(content: Sequence[Any], position: int, seen: Matching) -> int:
    keys: list[Key] = []
    indices: list[int] = []
    behind = untidy = False
    for index, block in enumerate(content):
        if type(block) is not dict:
            block = Members(block)
        kind = block.get("type")
        if kind == "tool_use":
            key = block.get("id")
            keys.append(key if type(key) is str and key else key_of(key))
            indices.append(index)
            behind = True
        elif kind in _BARRIERS:
            behind = False
        else:
            untidy |= behind
    if not keys:
        return NOWHERE
    turn = seen.turn(position, keys, indices)
    if untidy:
        seen.untidy.add(turn)
    return turn


def _results(content: Sequence[Any], position: int, run: int, seen: Matching) -> int:
    for index, block in enumerate(content):
        if type(block) is not dict:
            block = Members(block)
        if block.get("type") == "tool_result":
            key = block.get("tool_use_id")
            seen.answer(key if type(key) is str and key else key_of(key), position, index, run)
        else:
            run = NOWHERE
    return run
