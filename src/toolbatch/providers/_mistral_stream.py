"""Mistral as a stream: chat completions, and conversations."""

from typing import Any, Final, final

from toolbatch.core import InvalidInputError, preview

from ._mistral_turn import read_turn
from ._plain import field, members
from ._read import Turn
from ._stream import DEFAULT_MAX_CHARS, kept, kept_members, weight
from ._stream_calls import Slot, Slots, each
from ._stream_chat import ChatCollector, Content, Tree, built, merge

__all__ = ["StreamCollector"]

_ENTRY: Final = 1024  # what an entry weighs beside its text
_RESPONSE: Final = "conversation.response"
_MESSAGE: Final = "message.output"
_CALL: Final = "function.call"
_KINDS: Final = (_MESSAGE, _CALL, "tool.execution", "agent.handoff")
_OWN: Final = ("type", "content", "output_index", "content_index", "created_at")
_CALL_OWN: Final = (*_OWN, "tool_call_id", "name", "arguments")


class _Entry:
    """An entry of a conversation that is being put together. A call is in `slot`, a message's content in `content`."""

    __slots__ = ("content", "fields", "is_done", "kind", "slot")

    def __init__(self, kind: str, content: Content | None, slot: Slot | None) -> None:
        self.kind = kind
        self.fields: Tree = {}
        self.content = content
        self.slot = slot
        self.is_done = False

    @property
    def is_pending(self) -> bool:
        """Whether a call waits for an approval, and is none until then."""
        return self.fields.get("confirmation_status") == "pending"

    def whole(self) -> dict[str, Any]:
        """Return it as it stands in a whole response."""
        entry = {"object": "entry", "type": self.kind, **built(self.fields)}
        if self.content is not None:
            entry |= {"role": "assistant", "content": self.content.built() or ""}
        if self.slot is not None:
            call = self.slot.entry()
            entry |= {"tool_call_id": call["id"], **call["function"]}
        return entry


@final
class StreamCollector(ChatCollector):
    """Puts a stream of Mistral's together: of `chat.stream_async`, or of a conversation.

        collector = mistral.StreamCollector()
        async for event in await client.chat.stream_async(...):
            collector.add(event)
        calls = collector.calls()
        ...
        mistral.extend(messages, collector.response(), batch.result)

    An event is a `CompletionEvent`, its `CompletionChunk`, a conversation's event, or the data of a server-sent event, the last
    of which is `[DONE]` in a chat. All choices are put together; the one that begins first is read for calls.

    Calls mostly come whole, and the SDK gives each the index 0, and the id `"null"`, where the server sent none. So a fragment
    with another id and a name, or with a name and arguments behind a whole object, begins a call of its own (LANES 14.11).

    A call is over when its arguments are one whole JSON object, and the next call begins or the finish reason comes; in a
    conversation, when the response is done.

    A stream that goes on for ever ends at `max_chars`, about, in characters, as in every lane (`Collector`).
    """

    def __init__(self, *, max_chars: int = DEFAULT_MAX_CHARS) -> None:
        super().__init__(max_chars=max_chars)
        self._conversation: dict[str, Any] | None = None
        self._entries: list[_Entry] = []
        self._at: dict[tuple[str, str | int | None], _Entry] = {}
        self._called = Slots(self._grow, lambda _position, _text: False)

    def _take(self, event: Any) -> bool:
        data = field(event, "data")
        data = event if data is None else data
        kind = field(data, "type")
        if not isinstance(kind, str):
            return super()._take(data)
        if kind.startswith(_RESPONSE):
            self._take_response(kind, data)
        elif kind.rpartition(".")[0] in _KINDS:
            self._take_entry(kind.rpartition(".")[0], kind.rpartition(".")[2], data)
        else:
            return False
        return True

    def _take_response(self, kind: str, data: object) -> None:
        conversation_id = field(data, "conversation_id")
        if kind.endswith(".started") and self._conversation is not None:
            raise InvalidInputError(
                f"a second response of {preview(conversation_id)} began: each needs a new StreamCollector"
            )
        self._conversation = self._conversation or {}
        said = {"conversation_id": conversation_id, "usage": field(data, "usage")}
        self._conversation |= {name: kept(value) for name, value in said.items() if value is not None}
        if kind.endswith(".error"):
            self._report(data)
        self._stopped = self._stopped or kind.endswith(".done")

    def _take_entry(self, kind: str, step: str, data: object) -> None:
        if self._stopped:
            raise InvalidInputError(
                f"{preview(data, 200)} came after the end: each response needs a new StreamCollector"
            )
        self._conversation = self._conversation or {}
        entry_id, index = field(data, "id"), field(data, "output_index")
        key = entry_id if isinstance(entry_id, str) else index if isinstance(index, int) else None
        entry = self._at.get((kind, key))
        if kind == _CALL:
            function = {name: field(data, name) for name in ("name", "arguments")}
            self._called.take({"index": key, "id": field(data, "tool_call_id"), "function": function})
            slot = self._called.at(key)
            entry = self._begin(kind, key, slot) if entry is None or entry.slot is not slot else entry
        elif entry is None:
            entry = self._begin(kind, key)
        content = field(data, "content")
        if entry.content is not None and content is not None:
            entry.content.take(content if isinstance(content, str) else each(content))
        entry.is_done = entry.is_done or step == "done"
        self._note(entry, data)

    def _begin(self, kind: str, key: str | int | None, slot: Slot | None = None) -> _Entry:
        self._grow(_ENTRY)
        entry = _Entry(kind, Content(self._grow) if kind == _MESSAGE else None, slot)
        self._entries.append(entry)
        self._at[kind, key] = entry
        return entry

    def _note(self, entry: _Entry, data: object) -> None:
        """Keep the other members of an event: what is said again is the same, but for the arguments of the server's own tools."""
        for name, value in members(data).items():
            if name in (_CALL_OWN if entry.kind == _CALL else _OWN) or value is None:
                continue
            if name == "arguments":
                merge(entry.fields, {name: value}, self._grow)
            elif entry.fields.get(name) != value:
                self._grow(weight(name) + weight(kept(value)))
                entry.fields[name] = kept(value)

    def _whole(self) -> dict[str, Any]:
        if self._conversation is None:
            return super()._whole()
        entries = [
            entry for entry in self._entries if self.finished or entry.is_done or entry.kind in (_MESSAGE, _CALL)
        ]
        head = {"object": _RESPONSE, **kept_members(self._conversation)}
        stop = {} if self.finished else {"finish_reason": self._stop_reason(None)}  # a conversation has no such thing
        return {**head, **stop, "outputs": [entry.whole() for entry in entries]}

    def _is_over(self, position: int) -> bool:
        if self._conversation is None:
            return super()._is_over(position)
        slots = [entry.slot for entry in self._entries if entry.kind == _CALL and not entry.is_pending]
        slot = slots[position]
        return slot is not None and slot.is_whole

    def _turn(self, response: dict[str, Any]) -> Turn:
        return read_turn(response)
