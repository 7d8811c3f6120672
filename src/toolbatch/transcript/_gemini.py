"""Google Gemini: `functionCall` parts of a model content, `functionResponse` parts in the one next content.

Ids are optional, so results pair by id, or else by name and order. A part's `thoughtSignature` goes where its part goes; a
thought, and a signed part that is no call, are barriers. Keys may be camelCase (the wire) or snake_case (`model_dump()`), and
the SDK's objects are read too. Rules: LANES 4.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, final

from ._block_lane import BlockLane
from ._matching import Matching
from ._plan import Close, Note
from ._read import changed, entries, field, key_of, like, members, word
from ._segments import is_tidy
from ._texts import SECOND_RESULT_TEXT, is_close_text, joiner, told, written
from ._turns import NOWHERE, Call, Key, Result

__all__ = ["Gemini"]

_CALL: Final = ("functionCall", "function_call")
_RESPONSE: Final = ("functionResponse", "function_response")
_SIGNATURE: Final = ("thoughtSignature", "thought_signature")


def _either(part: object, names: tuple[str, str]) -> Any:
    if type(part) is dict:  # nearly all parts; a look-up each instead of a walk through both readers
        found = part.get(names[0])
        return found if found is not None else part.get(names[1])
    found = field(part, names[0])
    return found if found is not None else field(part, names[1])


@final
class Gemini(BlockLane):
    """The lane."""

    key: ClassVar[str] = "parts"
    leads: ClassVar[bool] = False
    alone: ClassVar[bool] = True

    def read(self, messages: Sequence[Any], seen: Matching) -> None:
        turn = NOWHERE
        for position, message in enumerate(messages):
            if type(message) is not dict:
                message = members(message, position)
            role, parts = message.get("role"), message.get("parts")
            if not isinstance(parts, (list, tuple)):
                turn = seen.tail = NOWHERE
            elif role == "model":
                turn = seen.tail = self._calls(parts, position, seen)
            else:
                seen.tail = _responses(parts, position, turn, seen)
                turn = NOWHERE  # all results are in one content: the next one is too late
        seen.run = turn

    def _calls(self, parts: Sequence[Any], position: int, seen: Matching) -> int:
        keys: list[Key] = []
        indices: list[int] = []
        names: list[str] = []
        for index, part in enumerate(parts):
            call = _either(part, _CALL)
            if call is not None:
                keys.append(key_of(field(call, "id")))
                indices.append(index)
                names.append(word(call, "name"))
        if not keys:
            return NOWHERE
        turn = seen.turn(position, keys, indices, names)
        if not is_tidy(parts, self.kind):
            seen.untidy.add(turn)
        return turn

    def is_close(self, result: Result) -> bool:
        response = field(_either(result.source, _RESPONSE), "response")
        return is_close_text(field(response, "error"))

    def name(self, call: Call) -> str:
        return call.name

    def answer(self, messages: Sequence[Any], call: Call, close: Close) -> Any:  # noqa: ARG002
        facts: dict[str, Any] = {
            "name": self.name(call),
            "response": {"error" if close.failed else "output": close.text},
        }
        if call.key is not None:
            facts["id"] = call.key
        style = 1 if field(call.source, _CALL[1]) is not None and isinstance(call.source, dict) else 0
        return like(call.source, {_RESPONSE[style]: facts})

    def fold(self, results: Sequence[Result]) -> Any:
        inner = [_either(result.source, _RESPONSE) for result in results]
        updates: dict[str, object] = {
            **self.kept_members(inner),
            "response": _folded([_response(one) for one in inner]),
        }
        media = [part for one in inner for part in entries(field(one, "parts"))]
        if media:
            updates["parts"] = media
        first = results[0].source
        style = _RESPONSE[0] if field(first, _RESPONSE[0]) is not None else _RESPONSE[1]
        outer = self.kept_members([result.source for result in results])
        return changed(first, {**outer, style: changed(inner[0], updates)})

    def kind(self, block: Any) -> str:
        if _either(block, _CALL) is not None:
            return "call"
        return "barrier" if field(block, "thought") or _either(block, _SIGNATURE) is not None else "content"

    def is_result(self, block: Any) -> bool:
        return _either(block, _RESPONSE) is not None

    def text(self, text: str) -> Any:
        return {"text": text}

    def filled(self, message: Any, blocks: list[Any]) -> Any:
        # The SDK sends a dict among a content object's parts as an empty part; in a content that is a dict it takes both.
        if not isinstance(message, Mapping) and any(isinstance(block, Mapping) for block in blocks):
            return {"role": field(message, "role"), "parts": blocks}
        return changed(message, {"parts": blocks})

    def made(self, sample: Any, blocks: list[Any]) -> Any:
        return self.filled(like(sample, {"role": "user", "parts": []}), blocks)

    def told(self, notes: Sequence[Note]) -> list[Any]:
        sources = [note.result.source for note in notes]
        entries = [
            (self.name(note.call), note.call.label, _content(_either(source, _RESPONSE)))
            for note, source in zip(notes, sources, strict=True)
        ]
        content = told(entries, self.text)
        blocks = [self.text(content)] if isinstance(content, str) else content
        return [like(sources[0], block) if isinstance(block, dict) else block for block in blocks]


def _responses(parts: Sequence[Any], position: int, run: int, seen: Matching) -> int:
    for index, part in enumerate(parts):
        response = _either(part, _RESPONSE)
        if response is None:
            run = NOWHERE
        else:
            seen.answer(key_of(field(response, "id")), position, index, run, word(response, "name"))
    return run


def _response(inner: object) -> dict[str, Any]:
    response = field(inner, "response")
    if isinstance(response, Mapping):
        return dict(response)
    return {} if response is None else {"output": response}


def _folded(responses: list[dict[str, Any]]) -> dict[str, Any]:
    """Return responses as one object: under their one key if all have the same with a text, else as a list under `output`."""
    keys = {tuple(response) for response in responses}
    if len(keys) == 1 and len(responses[0]) == 1:
        (key,) = responses[0]
        texts = [response[key] for response in responses]
        if all(isinstance(text, str) for text in texts):
            return {key: joiner(SECOND_RESULT_TEXT).join(texts)}
    entries: list[Any] = []
    for response in responses:
        value = response["output"] if set(response) == {"output"} else response
        entries += [SECOND_RESULT_TEXT, value] if entries else [value]
    return {"output": entries}


def _content(inner: object) -> Any:
    """Return a response as content of a user's: its text, or a text and its media."""
    response = _response(inner)
    value = response["output"] if set(response) == {"output"} else response
    media = entries(field(inner, "parts"))
    return [{"text": written(value)}, *media] if media else written(value)
