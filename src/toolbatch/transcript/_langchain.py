"""LangChain's messages: `AIMessage.tool_calls`, one `ToolMessage` a result; as objects, or as their `model_dump()`.

Calls that LangChain could not parse (`invalid_tool_calls`) are sent to providers all the same, so they need an answer too.
A call may stand in the content as well, as Anthropic's block: that is the same call, and there text may stand behind it.
Shapes: LANES 10.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from toolbatch.core import InvalidTypeError, preview

from ._fold import folded, joined
from ._matching import Matching
from ._message_lane import MessageLane
from ._openai_chat import text_of
from ._plan import Close, Note
from ._read import changed, entries, field, key_of, members, word
from ._segments import arranged, is_tidy
from ._texts import is_close_text, told
from ._turns import NOWHERE, Call, Result, Turn

__all__ = ["LangChain"]

_AI: Final = ("ai", "AIMessageChunk")
_TOOL: Final = ("tool", "ToolMessageChunk")
_CALL_BLOCKS: Final = ("tool_use", "tool_call")
_BARRIERS: Final = ("thinking", "redacted_thinking", "reasoning", "reasoning_content")


def _kind(block: object) -> str:
    kind = field(block, "type")
    return "call" if kind in _CALL_BLOCKS else "barrier" if kind in _BARRIERS else "content"


@final
class LangChain(MessageLane):
    """The lane."""

    def read(self, messages: Sequence[Any], seen: Matching) -> None:
        run = NOWHERE
        for position, message in enumerate(messages):
            if type(message) is not dict:
                message = members(message, position)
            kind = message.get("type")
            if kind in _TOOL:
                seen.answer(key_of(message.get("tool_call_id")), position, 0, run)
            elif kind in _AI:
                good, bad, content = (
                    message.get("tool_calls"),
                    message.get("invalid_tool_calls"),
                    message.get("content"),
                )
                run = _announced(position, good, bad, content, seen)
            else:
                run = NOWHERE
        seen.run = seen.tail = run

    def call_at(self, messages: Sequence[Any], position: int, index: int) -> Any:
        key, place = ("tool_calls", index) if index >= 0 else ("invalid_tool_calls", -1 - index)
        return field(messages[position], key)[place]

    def is_result(self, message: Any) -> bool:
        return field(message, "type") in _TOOL

    def is_close(self, result: Result) -> bool:
        return is_close_text(text_of(field(result.source, "content")))

    def name(self, call: Call) -> str:
        return word(call.source, "name")

    def answer(self, messages: Sequence[Any], call: Call, close: Close) -> Any:
        facts = {"content": close.text, "tool_call_id": "" if call.key is None else call.key, "name": self.name(call)}
        status = {"status": "error"} if close.failed else {}
        return _like(messages[call.position], "ToolMessage", {"type": "tool", **facts, **status})

    def fold(self, results: Sequence[Result]) -> Any:
        sources = [result.source for result in results]
        failures = [field(source, "status") == "error" for source in sources]
        content = joined([field(source, "content") for source in sources], failures, _part)
        mixed = any(failures) and not all(failures)
        return folded(sources, "content", content, {"status": "success"} if mixed else None)

    def mended(self, messages: Sequence[Any], turn: Turn) -> dict[int, list[Any]]:
        message, again = messages[turn.position], {call.index for call in turn.repeats}
        good, bad = entries(field(message, "tool_calls")), entries(field(message, "invalid_tool_calls"))
        updates: dict[str, object] = {}
        if any(index >= 0 for index in again):
            updates["tool_calls"] = [entry for index, entry in enumerate(good) if index not in again]
        if any(index < 0 for index in again):
            updates["invalid_tool_calls"] = [entry for index, entry in enumerate(bad) if -1 - index not in again]
        content = field(message, "content")
        if isinstance(content, list):
            updates["content"] = arranged(content, _kind, _repeated(content))
        return {turn.position: [changed(message, updates)]}

    def note(self, messages: Sequence[Any], notes: Sequence[Note]) -> Any:
        entries = [
            (self.name(note.call), note.call.label, field(note.result.source, "content") or "") for note in notes
        ]
        content = told(entries, _part)
        return _like(messages[notes[0].call.position], "HumanMessage", {"type": "human", "content": content})


def _announced(position: int, good: Any, bad: Any, content: object, seen: Matching) -> int:
    keys = [key_of(field(entry, "id")) for entry in entries(good)]
    indices = [*range(len(keys))]
    for index, entry in enumerate(entries(bad)):
        key = key_of(field(entry, "id"))
        if key is not None:  # one without an id can't be answered, and no integration sends it as a call
            keys.append(key)
            indices.append(-1 - index)
    if not keys:
        return NOWHERE
    turn = seen.turn(position, keys, indices)
    if isinstance(content, list) and not is_tidy(content, _kind):
        seen.untidy.add(turn)
    return turn


def _repeated(content: Sequence[Any]) -> set[int]:
    """Return the places of blocks that announce an id of the content again."""
    ids: set[object] = set()
    again: set[int] = set()
    for index, block in enumerate(content):
        key = key_of(field(block, "id")) if _kind(block) == "call" else None
        if key is not None:
            if key in ids:
                again.add(index)
            ids.add(key)
    return again


def _like(sample: object, kind: str, data: dict[str, Any]) -> Any:
    """Return a message as a dict beside dicts, as LangChain's own beside its objects.

    Raises:
        InvalidTypeError: The list holds objects that are not LangChain's.
    """
    if isinstance(sample, Mapping):
        return data
    # Where its objects are, its module is loaded; it is not imported here, so that nobody else pays for it.
    make = getattr(sys.modules.get("langchain_core.messages"), kind, None)
    if make is None:
        raise InvalidTypeError(
            f"the list holds {preview(sample)}, which is neither a dict nor LangChain's, so no {kind} can be made beside it"
        )
    return make(**{name: value for name, value in data.items() if name != "type"})


def _part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
