"""Ollama's own chat endpoint as a stream."""

from io import StringIO
from typing import Any, Final, final

from toolbatch.core import InvalidInputError, preview

from ._chat_shape import runs
from ._ollama_turn import read_turn
from ._plain import field
from ._read import Turn
from ._stream import DEFAULT_MAX_CHARS, Collector, kept, kept_members, reason_of, text_of_buffer
from ._stream_calls import each

__all__ = ["StreamCollector"]

_TEXTS: Final = ("content", "thinking")
_HEAD: Final = ("model", "done", "prompt_eval_count", "eval_count", "total_duration")


@final
class StreamCollector(Collector):
    """Puts a stream of Ollama's chat endpoint together.

        collector = ollama.StreamCollector()
        async for part in await client.chat(..., stream=True):
            collector.add(part)
        calls = collector.calls()
        ...
        ollama.extend(messages, collector.response(), batch.result)

    An event is a `ChatResponse`, or one line of the wire's JSON. Each call comes whole in one of them, and is over then: the
    server has parsed it. What comes as a call's arguments is an object.

    A stream that goes on for ever ends at `max_chars`, about, in characters, as in every lane (`Collector`).
    """

    def __init__(self, *, max_chars: int = DEFAULT_MAX_CHARS) -> None:
        super().__init__(max_chars=max_chars)
        self._created: Any = None
        self._head: dict[str, Any] = {}
        self._texts: dict[str, StringIO] = {}
        self._entries: list[dict[str, Any]] = []

    def _take(self, event: Any) -> bool:
        error, message = field(event, "error"), field(event, "message")
        if error:
            self._report(error)
        if message is None and field(event, "done") is None:
            return bool(error)
        entries = each(field(message, "tool_calls"))
        if self._stopped and (entries or field(message, "content")):
            raise InvalidInputError(
                f"{preview(event, 200)} came after the end: each response needs a new StreamCollector"
            )
        if self._created is None and self._is_new():
            self._created = kept(field(event, "created_at"))
        reason = reason_of(field(event, "done_reason"), self._head.get("done_reason"), runs)
        self._head |= {name: kept(field(event, name)) for name in _HEAD if field(event, name) is not None}
        self._head |= {} if reason is None else {"done_reason": reason}
        for name in _TEXTS:
            text = field(message, name)
            if isinstance(text, str) and text:
                self._grow(len(text))
                self._texts.setdefault(name, StringIO()).write(text)
        for entry in entries:
            copy = {**kept_members(entry, "function"), "function": kept_members(field(entry, "function"))}
            self._entry(copy)
            self._entries.append(copy)
            self._end([len(self._entries) - 1])
        self._stopped = self._stopped or field(event, "done") is True
        return True

    def _whole(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        message |= {name: text_of_buffer(text) for name, text in self._texts.items()}
        if self._entries:
            message["tool_calls"] = kept(self._entries)
        head = {"created_at": self._created, **kept_members(self._head)}
        if not self.finished:
            head["done_reason"] = self._stop_reason(None)
        return {**head, "message": message}

    def _only(self, position: int) -> dict[str, Any]:
        stubs = [{"id": field(entry, "id"), "function": {}} for entry in self._entries[:position]]
        message = {"role": "assistant", "tool_calls": [*stubs, kept(self._entries[position])]}
        return {"created_at": self._created, "done_reason": "stop", "message": message}

    def _turn(self, response: dict[str, Any]) -> Turn:
        return read_turn(response)
