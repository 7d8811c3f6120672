"""OpenAI Responses as a stream."""

from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any, Final, final

from toolbatch.core import InvalidInputError, preview

from ._openai_responses_turn import read_turn
from ._plain import field, items
from ._read import Turn
from ._stream import DEFAULT_MAX_CHARS, Collector, kept, kept_members, reason_of, text_of_buffer, weight

__all__ = ["StreamCollector"]

_ITEM: Final = 1024  # what an item weighs beside its text
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_ENDS: Final = ("completed", "incomplete", "failed", "cancelled")
_ARGUMENTS: Final = {  # the call that an event fills, and with what
    "response.function_call_arguments.delta": ("function_call", "delta"),
    "response.custom_tool_call_input.delta": ("custom_tool_call", "delta"),
    "response.function_call_arguments.done": ("function_call", "arguments"),
    "response.custom_tool_call_input.done": ("custom_tool_call", "input"),
}
_TEXTS: Final = {
    "response.output_text.delta": ("output_text", "text"),
    "response.refusal.delta": ("refusal", "refusal"),
}


class _Item:
    """An output item: as it was added, with what came since, until it comes as a whole.

    Attributes:
        index: Its place in the output.
        fields: Its members at its start, or all of them where `is_done`.
        is_done: Whether it came as a whole.
        arguments: The text of a call's arguments so far.
        parts: The texts of a message so far, by place and type: the member that is the text, and the text.
    """

    __slots__ = ("arguments", "fields", "index", "is_done", "parts")

    def __init__(self, index: int, fields: dict[str, Any]) -> None:
        self.index = index
        self.fields = fields
        self.is_done = False
        self.arguments: StringIO | None = None
        self.parts: dict[tuple[int, str], tuple[str, StringIO]] = {}

    @property
    def kind(self) -> Any:
        """The item's type."""
        return self.fields.get("type")

    @property
    def is_call(self) -> bool:
        """Whether it is a client's call."""
        return isinstance(self.kind, str) and self.kind in _CALLS

    def is_same(self, fields: dict[str, Any]) -> bool:
        """Whether `fields` are of this item: a call is known by its `call_id`, all else by its `id`."""
        key = "call_id" if self.is_call else "id"
        known = self.fields.get(key)
        return bool(self.kind == fields.get("type") and (known is None or known == fields.get(key)))

    def whole(self) -> dict[str, Any]:
        """Return it as it stands in a whole response."""
        copy = kept_members(self.fields)
        if self.is_done:
            return copy
        if self.is_call:
            if self.arguments is not None:
                copy[_CALLS[self.kind]] = text_of_buffer(self.arguments)
        elif self.parts:
            copy["content"] = [
                {"type": kind, name: text_of_buffer(text), **({"annotations": []} if name == "text" else {})}
                for (_, kind), (name, text) in sorted(self.parts.items(), key=lambda part: part[0])
            ]
            copy["role"] = "assistant"
        return {**copy, "status": "incomplete"}


@final
class StreamCollector(Collector):
    """Puts a stream of the Responses API together.

        collector = openai_responses.StreamCollector()
        async for event in await client.responses.create(..., stream=True):
            collector.add(event)
        calls = collector.calls()
        ...
        openai_responses.extend(items, collector.response(), batch.result)

    An event is a `ResponseStreamEvent`, an event of the SDK's `.stream()` helper, or the data of a server-sent event.

    A call is over when its item is done: that event brings it whole, and it is known where in the output it stands once all
    items before it are done too. The other events that end its arguments have no name and no `call_id`.

    The output of the last event (`response.completed` and its like) is the response's, unless it lacks items that the stream
    brought, as some servers' does.

    Of a response that broke off (`status` stays `in_progress`), items that were not done are left out of `response`, but for
    calls and messages, and so is reasoning at its end: with these in it, every later request would be refused.

    A stream that goes on for ever ends at `max_chars`, about, in characters, as in every lane (`Collector`).
    """

    def __init__(self, *, max_chars: int = DEFAULT_MAX_CHARS) -> None:
        super().__init__(max_chars=max_chars)
        self._head: dict[str, Any] = {}
        self._final: list[dict[str, Any]] | None = None
        self._items: list[_Item] = []
        self._at: dict[int, _Item] = {}
        self._ids: dict[str, _Item] = {}
        self._ready: list[_Item] = []  # calls that are done, and before which nothing is missing
        self._next = 0  # the first place in the output that is not done
        self._top = -1  # the last place in the output

    def _take(self, event: Any) -> bool:
        kind = field(event, "type")
        if kind == "error":
            self._report(event if field(event, "error") is None else field(event, "error"))
            return True
        if not isinstance(kind, str) or not kind.startswith("response."):
            return False
        if field(event, "response") is not None:
            self._take_response(field(event, "response"), kind.removeprefix("response."))
        elif kind == "response.output_item.added":
            self._add(event)
        elif kind == "response.output_item.done":
            self._complete(event)
        elif kind in _ARGUMENTS:
            self._fill_call(event, *_ARGUMENTS[kind])
        elif kind in _TEXTS:
            self._fill_text(event, *_TEXTS[kind])
        return True

    def _take_response(self, response: object, kind: str) -> None:
        fields = kept_members(response, "output")
        known = self._head.get("id")
        if known is not None and fields.get("id") not in (None, known):
            raise InvalidInputError(
                f"{preview(fields['id'])} is another response than {preview(known)}: each needs a new StreamCollector"
            )
        if known is None and not self._is_new():
            fields.pop("id", None)
        output = [kept_members(item) for item in items(field(response, "output"))]
        self._grow(weight(fields) + weight(output))
        before = self._head.get("status") if self._stopped else None
        self._head |= fields
        if kind in _ENDS:
            said = fields["status"] if fields.get("status") in _ENDS else kind
            self._head["status"] = reason_of(said, before, _runs)
            self._final = output
            self._stopped = True
            if fields.get("error"):
                self._report(fields["error"])
            return
        for index, item in enumerate(output):
            if index not in self._at:
                self._new(index, item)

    def _new(self, index: int | None, fields: dict[str, Any]) -> _Item:
        """Begin an item. One at a place that is taken goes to the end: what stands before it keeps its place."""
        self._grow(_ITEM + weight(fields))
        place = index if index is not None and index not in self._at else self._top + 1
        self._top = max(self._top, place)
        item = _Item(place, fields)
        self._items.append(item)
        self._at[place] = item
        for key in ("id", "call_id"):
            if isinstance(fields.get(key), str) and fields[key]:
                self._ids[fields[key]] = item
        return item

    def _add(self, event: object) -> None:
        index, fields = _place(event), kept_members(field(event, "item"))
        known = None if index is None else self._at.get(index)
        if fields and (known is None or not known.is_same(fields)):
            self._new(index, fields)

    def _complete(self, event: object) -> None:
        index, fields = _place(event), kept_members(field(event, "item"))
        item = self._ids.get(str(fields.get("id"))) if index is None else self._at.get(index)
        if item is None or not item.is_same(fields):
            item = self._new(index, fields)
        elif not item.is_done:
            self._grow(weight(fields))
            item.fields = fields
        item.is_done = True
        while self._next in self._at and self._at[self._next].is_done:
            if self._at[self._next].is_call:
                self._ready.append(self._at[self._next])
                self._end([len(self._ready) - 1])
            self._next += 1

    def _find(self, event: object, kind: str) -> _Item:
        """Return the item that an event fills; a new one where its start is lost."""
        item_id, index = field(event, "item_id"), _place(event)
        item = self._ids.get(item_id) if isinstance(item_id, str) else None
        if item is None and index is not None:
            item = self._at.get(index)
        elif item is None and self._items:
            item = self._items[-1]
        if item is None or item.kind != kind:
            item = self._new(index, {"type": kind, "id": kept(item_id)})
        return item

    def _fill_call(self, event: object, kind: str, name: str) -> None:
        text, item = field(event, name), self._find(event, kind)
        if isinstance(text, str) and not item.is_done:
            self._grow(len(text))
            if item.arguments is None or name != "delta":  # an event that ends the arguments has all of them
                item.arguments = StringIO()
            item.arguments.write(text)

    def _fill_text(self, event: object, kind: str, name: str) -> None:
        delta, place = field(event, "delta"), field(event, "content_index")
        item = self._find(event, "message")
        if isinstance(delta, str) and not item.is_done:
            key = (place if isinstance(place, int) else 0, kind)
            if key not in item.parts:
                self._grow(_ITEM)
                item.parts[key] = (name, StringIO())
            self._grow(len(delta))
            item.parts[key][1].write(delta)

    def _whole(self) -> dict[str, Any]:
        streamed = sorted(self._items, key=lambda item: item.index)
        if self._final is None:
            output = _unbroken(streamed)
        else:
            output = _agreed([kept_members(item) for item in self._final], streamed, self._ready)
        output = [item for item in output if item.get("type") is not None]  # what has none is no item
        status = self._head.get("status") if self.finished else "in_progress"
        return {"object": "response", **kept_members(self._head), "status": status, "output": output}

    def _only(self, position: int) -> dict[str, Any]:
        *before, last = self._ready[: position + 1]
        stubs = [
            {"type": item.kind, "call_id": item.fields.get("call_id"), "name": None, _CALLS[item.kind]: None}
            for item in before
        ]
        return {**self._head, "status": "completed", "output": [*stubs, last.whole()]}

    def _turn(self, response: dict[str, Any]) -> Turn:
        return read_turn(response)


def _runs(status: object) -> bool:
    return status == "completed"


def _place(event: object) -> int | None:
    index = field(event, "output_index")
    return index if isinstance(index, int) and index >= 0 else None


def _unbroken(streamed: Sequence[_Item]) -> list[dict[str, Any]]:
    """Return the output of a response that broke off, without the items that no later request may have."""
    output = [item.whole() for item in streamed if item.is_done or item.is_call or item.parts]
    while output and output[-1].get("type") == "reasoning":
        del output[-1]  # "was provided without its required following item"
    return output


def _agreed(final: list[dict[str, Any]], streamed: Sequence[_Item], ready: Sequence[_Item]) -> list[dict[str, Any]]:
    """Return the output that the last event says, if it has every call that the stream brought, as it brought it.

    Those that are `ready`, which may have been returned, must be its first ones, as ids of ours depend on their places.
    """
    said = [_facts(item) for item in final if item.get("type") in tuple(_CALLS)]
    done = [_facts(item.fields) for item in streamed if item.is_done and item.is_call]
    rest = iter(said)
    is_kept = said[: len(ready)] == [_facts(item.fields) for item in ready] and all(one in rest for one in done)
    if final and is_kept:
        return final
    known = {_label(item.fields) for item in streamed}
    return [item.whole() for item in streamed] + [item for item in final if _label(item) not in known]


def _label(item: Mapping[str, Any]) -> str:
    return repr((item.get("type"), item.get("call_id") or item.get("id")))


def _facts(item: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(item.get(name) for name in ("type", "call_id", "name", "arguments", "input"))
