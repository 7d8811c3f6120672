"""Cohere's v2 chat as a stream."""

from io import StringIO
from typing import Any, Final, final

from toolbatch.core import InvalidInputError

from ._cohere_turn import read_turn
from ._plain import field, members
from ._read import Turn
from ._stream import DEFAULT_MAX_CHARS, Collector, kept, reason_of, text_of_buffer, weight
from ._stream_calls import Slots, each

__all__ = ["StreamCollector"]

_PART: Final = 1024  # what a part of the content weighs beside its text
_OTHERS: Final = ("content-end", "citation-end", "debug")


@final
class StreamCollector(Collector):
    """Puts a stream of `chat_stream` together (v2).

        collector = cohere.StreamCollector()
        async for event in client.v2.chat_stream(...):
            collector.add(event)
        calls = collector.calls()
        ...
        cohere.extend(messages, collector.response(), batch.result)

    An event is the SDK's, or the data of a server-sent event. A call is over when its `tool-call-end` comes. A response that
    ends with `ERROR` has the reason in `error`.

    A stream that goes on for ever ends at `max_chars`, about, in characters, as in every lane (`Collector`).
    """

    def __init__(self, *, max_chars: int = DEFAULT_MAX_CHARS) -> None:
        super().__init__(max_chars=max_chars)
        self._has_begun = False
        self._id: str | None = None
        self._plan: StringIO | None = None
        self._parts: list[tuple[str, StringIO]] = []
        self._part_at: dict[int, tuple[str, StringIO]] = {}
        self._slots = Slots(self._grow, self._unchanged)
        self._citations: list[Any] = []
        self._finish_reason: Any = None
        self._usage: Any = None

    def _take(self, event: Any) -> bool:
        kind, delta = field(event, "type"), field(event, "delta")
        message, index = field(delta, "message"), field(event, "index")
        match kind:
            case "message-start":
                self._start(event)
            case "content-start" | "content-delta":
                self._fill(index, field(message, "content"), begins=kind == "content-start")
            case "tool-plan-delta":
                self._plan = self._plan or StringIO()
                self._write(self._plan, field(message, "tool_plan"))
            case "tool-call-start" | "tool-call-delta":
                for entry in each(field(message, "tool_calls")):
                    fragment = {**members(entry), "index": index}
                    self._end(self._slots.take(fragment, begins=kind == "tool-call-start"))
            case "tool-call-end":
                slot = self._slots.at(index)
                self._end([] if slot is None else [slot.position])
            case "citation-start":
                citations = [kept(citation) for citation in each(field(message, "citations"))]
                self._grow(weight(citations))
                self._citations += citations
            case "message-end":
                self._finish(delta)
            case _:
                return kind in _OTHERS
        return True

    def _start(self, event: object) -> None:
        if self._has_begun:
            raise InvalidInputError("a second message-start came: each response needs a new StreamCollector")
        self._has_begun = True
        if self._is_new() and isinstance(field(event, "id"), str):
            self._id = field(event, "id")

    def _fill(self, index: object, content: object, *, begins: bool) -> None:
        kind = "thinking" if field(content, "type") == "thinking" or field(content, "thinking") is not None else "text"
        part = self._part_at.get(index) if isinstance(index, int) else self._parts[-1] if self._parts else None
        if part is None or begins or part[0] != kind:
            self._grow(_PART)
            part = (kind, StringIO())
            self._parts.append(part)
            if isinstance(index, int):
                self._part_at[index] = part
        self._write(part[1], field(content, kind))

    def _write(self, buffer: StringIO, text: object) -> None:
        if isinstance(text, str):
            self._grow(len(text))
            buffer.write(text)

    def _finish(self, delta: object) -> None:
        self._finish_reason = reason_of(field(delta, "finish_reason"), self._finish_reason, _runs)
        self._stopped = self._finish_reason is not None
        if field(delta, "error"):
            self._report(field(delta, "error"))
        if field(delta, "usage") is not None:
            self._usage = kept(field(delta, "usage"))

    def _whole(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant"}
        if self._slots.slots:
            message["tool_calls"] = [slot.entry() for slot in self._slots.slots]
        if self._plan is not None:
            message["tool_plan"] = text_of_buffer(self._plan)
        if self._parts:
            message["content"] = [{"type": kind, kind: text_of_buffer(text)} for kind, text in self._parts]
        if self._citations:
            message["citations"] = kept(self._citations)
        reason = self._stop_reason(self._finish_reason)
        return {"id": self._id, "finish_reason": reason, "message": message, "usage": kept(self._usage)}

    def _only(self, position: int) -> dict[str, Any]:
        *before, last = self._slots.slots[: position + 1]
        calls = [*[slot.stub() for slot in before], last.entry()]
        return {"id": self._id, "finish_reason": "TOOL_CALL", "message": {"role": "assistant", "tool_calls": calls}}

    def _is_over(self, position: int) -> bool:
        return self._slots.slots[position].is_whole

    def _turn(self, response: dict[str, Any]) -> Turn:
        return read_turn(response)


def _runs(reason: object) -> bool:
    return reason in ("TOOL_CALL", "COMPLETE")
