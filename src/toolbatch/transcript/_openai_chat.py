"""OpenAI Chat Completions: `tool_calls` of an assistant message, one `tool` message a result, right behind it.

Calls stand in a field of their own, so no text can stand behind them. The legacy pair, `function_call` and a `function`
message, has no ids and is paired by name and order. Rules and shapes: LANES 1.
"""

from collections.abc import Sequence
from typing import Any, Final, final

from ._fold import folded, joined
from ._matching import Matching
from ._message_lane import MessageLane
from ._plan import Close, Note
from ._read import changed, entries, field, key_of, members, word
from ._texts import is_close_text, told
from ._turns import NOWHERE, Call, Key, Result, Turn

__all__ = ["OpenAIChat", "text_of"]

_LEGACY: Final = "function_call"
_LEGACY_INDEX: Final = -1


def text_of(content: object) -> object:
    """Return a content's text if it is one text, be it alone in a list of parts."""
    if isinstance(content, (list, tuple)) and len(content) == 1:
        return field(content[0], "text")
    return content


@final
class OpenAIChat(MessageLane):
    """The lane."""

    def read(self, messages: Sequence[Any], seen: Matching) -> None:
        run = NOWHERE
        for position, message in enumerate(messages):
            if type(message) is not dict:
                message = members(message, position)
            role = message.get("role")
            if role == "tool":
                key = message.get("tool_call_id")
                seen.answer(key if type(key) is str and key else key_of(key), position, 0, run)
            elif role == "assistant":
                calls, legacy = message.get("tool_calls"), message.get(_LEGACY)
                run = _announced(position, calls, legacy, seen) if calls or legacy else NOWHERE
            elif role == "function":
                seen.answer(None, position, 0, run, word(message, "name"))
            else:
                run = NOWHERE
        seen.run = seen.tail = run

    def call_at(self, messages: Sequence[Any], position: int, index: int) -> Any:
        message = messages[position]
        return field(message, _LEGACY) if index == _LEGACY_INDEX else field(message, "tool_calls")[index]

    def is_result(self, message: Any) -> bool:
        return field(message, "role") in ("tool", "function")

    def is_close(self, result: Result) -> bool:
        return is_close_text(text_of(field(result.source, "content")))

    def name(self, call: Call) -> str:
        if call.index == _LEGACY_INDEX:
            return call.name
        return word(field(call.source, "function") or field(call.source, "custom"), "name")

    def answer(self, messages: Sequence[Any], call: Call, close: Close) -> Any:  # noqa: ARG002
        if call.index == _LEGACY_INDEX:
            return {"role": "function", "name": self.name(call), "content": close.text}
        return {"role": "tool", "tool_call_id": field(call.source, "id"), "content": close.text}

    def fold(self, results: Sequence[Result]) -> Any:
        sources = [result.source for result in results]
        content = joined([field(source, "content") for source in sources], [False] * len(sources), _part)
        return folded(sources, "content", content)

    def mended(self, messages: Sequence[Any], turn: Turn) -> dict[int, list[Any]]:
        message, again = messages[turn.position], {call.index for call in turn.repeats}
        calls = [entry for index, entry in enumerate(entries(field(message, "tool_calls"))) if index not in again]
        return {turn.position: [changed(message, {"tool_calls": calls})]}

    def note(self, messages: Sequence[Any], notes: Sequence[Note]) -> Any:  # noqa: ARG002
        entries = [
            (self.name(note.call), note.call.label, field(note.result.source, "content") or "") for note in notes
        ]
        return {"role": "user", "content": told(entries, _part)}


def _announced(position: int, calls: object, legacy: object, seen: Matching) -> int:
    keys: list[Key] = []
    for entry in entries(calls):
        key = entry.get("id") if type(entry) is dict else field(entry, "id")
        keys.append(key if type(key) is str and key else key_of(key))
    if not legacy:
        return seen.turn(position, keys)
    names = [*[""] * len(keys), word(legacy, "name")]
    return seen.turn(position, [*keys, None], [*range(len(keys)), _LEGACY_INDEX], names)


def _part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
