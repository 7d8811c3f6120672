"""What the streams in chat's shape share: choices whose deltas make a message."""

from collections.abc import Sequence
from io import StringIO
from typing import Any, Final

from toolbatch.core import InvalidInputError, preview

from ._chat_shape import runs
from ._plain import OBJECT, field, items, members
from ._stream import DEFAULT_MAX_CHARS, Collector, kept, reason_of, text_of_buffer, weight
from ._stream_calls import Grow, Slots, Unchanged, each

__all__ = ["ChatCollector", "Content", "Tree", "built", "merge"]

_HEAD: Final = ("created", "model", "service_tier", "system_fingerprint", "usage")
_CHOICE_WEIGHT: Final = 4096
_MAX_DEPTH: Final = 32
_CHOICE: Final = ("index", "delta", "message", "finish_reason")
_LABELS: Final = frozenset(("id", "index", "type", "role", "format", "signature"))  # said anew, and not continued

Tree = dict[str, Any]
"""An object that is being put together: its texts are buffers."""


def merge(tree: Tree, delta: object, grow: Grow, *without: str, depth: int = 0) -> None:
    """Add a delta's members to `tree`: text goes on, lists go on, objects are merged, all else is said anew.

    That is what the `openai` SDK does (`lib/streaming/_deltas.py`), but for ids and numbers, which it adds up. What is nested
    deeper than any message comes whole, so that what was put together can be read again from anywhere.
    """
    for name, value in members(delta).items():
        if value is not None and name not in without:
            if name not in tree:
                grow(weight(name))
            tree[name] = _merged(tree.get(name), name, value, grow, depth)


def _merged(old: Any, name: str, value: object, grow: Grow, depth: int) -> Any:
    if depth == _MAX_DEPTH:
        copy = kept(value)
        grow(weight(copy))
        return copy
    if hasattr(value, "__dict__") and not isinstance(value, (str, *OBJECT)):
        value = members(value)
    if isinstance(value, str) and name not in _LABELS and (old is None or isinstance(old, StringIO)):
        buffer = StringIO() if old is None else old
        grow(len(value))
        buffer.write(value)
        return buffer
    if isinstance(value, OBJECT) and (old is None or isinstance(old, dict)):
        tree: Tree = {} if old is None else old
        merge(tree, value, grow, depth=depth + 1)
        return tree
    if isinstance(value, (list, tuple)) and (old is None or isinstance(old, list)):
        more = [kept(entry) for entry in value]
        grow(weight(more))
        entries = [] if old is None else old
        entries += more
        return entries
    return kept(value) if old is None or not isinstance(old, (StringIO, dict, list)) else old


def built(value: Any, depth: int = 0) -> Any:
    """Return what was put together, as new, plain data."""
    if isinstance(value, StringIO):
        return text_of_buffer(value)
    if isinstance(value, dict) and depth <= _MAX_DEPTH:
        return {kept(name): built(entry, depth + 1) for name, entry in value.items()}
    return kept(value)


class Content:
    """A message's content: text, or a list of chunks, of which the same kind goes on in the next delta (Mistral)."""

    __slots__ = ("_chunks", "_grow", "_text")

    def __init__(self, grow: Grow) -> None:
        self._grow = grow
        self._text: StringIO | None = None
        self._chunks: list[tuple[Any, Tree, Any]] = []  # kind, its members, and its text or its own chunks

    def take(self, value: object) -> None:
        """Add what a delta has of it."""
        if isinstance(value, str) and not self._chunks:
            self._text = self._text or StringIO()
            self._grow(len(value))
            self._text.write(value)
        elif isinstance(value, str):
            if value:  # an empty one stands beside the finish reason
                self._take_chunk({"type": "text", "text": value})
        else:
            for entry in items(value):
                if self._text is not None:  # what was text alone is the first chunk
                    self._chunks.append(("text", {"type": "text"}, self._text))
                    self._text = None
                self._take_chunk(entry)

    def _take_chunk(self, entry: object) -> None:
        fields = members(entry)
        kind = fields.get("type")
        body = fields.get(kind) if kind in ("text", "thinking") else None
        if kind == "text" and not isinstance(body, str):
            body = None
        if not self._chunks or self._chunks[-1][0] != kind or body is None:
            self._grow(weight(""))
            inner = StringIO() if kind == "text" else Content(self._grow) if body is not None else None
            self._chunks.append((kind if body is not None else None, {}, inner))
        _, rest, inner = self._chunks[-1]
        merge(rest, {name: value for name, value in fields.items() if body is None or name != kind}, self._grow)
        if isinstance(inner, Content):
            inner.take(body)
        elif isinstance(inner, StringIO) and isinstance(body, str):
            self._grow(len(body))
            inner.write(body)

    def built(self) -> str | list[Any] | None:
        """Return it as new, plain data; `None` where there was none."""
        if self._text is not None:
            return text_of_buffer(self._text)
        if not self._chunks:
            return None
        return [
            {
                **built(rest),
                **({} if inner is None else {kind: inner.built() if isinstance(inner, Content) else built(inner)}),
            }
            for kind, rest, inner in self._chunks
        ]


class _Choice:
    """One choice that is being put together."""

    __slots__ = ("_content", "_grow", "_message", "_rest", "finish_reason", "slots")

    def __init__(self, grow: Grow, unchanged: Unchanged) -> None:
        grow(_CHOICE_WEIGHT)
        self._grow = grow
        self._content = Content(grow)
        self._message: Tree = {}
        self._rest: Tree = {}  # such as log probabilities
        self.slots = Slots(grow, unchanged)
        self.finish_reason: Any = None

    def take(self, choice: object) -> list[int]:
        """Add a choice of a chunk, and return the positions of calls that are over with it."""
        delta = _delta(choice)
        self._content.take(field(delta, "content"))
        merge(self._message, delta, self._grow, "content", "tool_calls")
        ended = [position for entry in each(field(delta, "tool_calls")) for position in self.slots.take(entry)]
        merge(self._rest, choice, self._grow, *_CHOICE)
        self.finish_reason = reason_of(field(choice, "finish_reason"), self.finish_reason, runs)
        return ended

    def whole(self, index: int, finish_reason: object) -> dict[str, Any]:
        """Return it as a whole response's choice."""
        message = {"role": "assistant", "content": self._content.built(), **built(self._message)}
        if self.slots.slots:
            message["tool_calls"] = [slot.entry() for slot in self.slots.slots]
        return {"index": index, "message": message, "finish_reason": finish_reason, **built(self._rest)}


def _free(_position: int | None, _text: str | None) -> bool:
    """Let calls change: none of this choice is ever returned early."""
    return False


def _delta(choice: object) -> object:
    delta = field(choice, "delta")  # `message` is of a server that was asked for a stream and sent the whole
    return field(choice, "message") if delta is None else delta


class ChatCollector(Collector):
    """A stream of chunks with choices. What the lane's own class says of the options and of the calls goes for all of them."""

    def __init__(self, *, max_chars: int = DEFAULT_MAX_CHARS) -> None:
        super().__init__(max_chars=max_chars)
        self._id: str | None = None
        self._head: Tree = {}
        self._choices: dict[int, _Choice] = {}

    def _take(self, event: Any) -> bool:
        error, choices = field(event, "error"), field(event, "choices")
        if error:  # first: a finish reason in the same chunk does not make the response whole
            self._report(error)
        if isinstance(choices, (list, tuple)):
            self._take_head(event, choices)
            self._take_choices(choices)
        return isinstance(choices, (list, tuple)) or bool(error)

    def _take_choices(self, choices: Sequence[object]) -> None:
        for choice in choices:
            number = field(choice, "index")
            index = number if isinstance(number, int) else 0
            if index not in self._choices:
                self._choices[index] = _Choice(self._grow, _free if self._choices else self._unchanged)
            ended = self._choices[index].take(choice)
            if self._choices[index] is self._main():
                self._end(ended)
        self._stopped = bool(self._choices) and self._main().finish_reason is not None

    def _take_head(self, event: object, choices: Sequence[object]) -> None:
        chunk_id = field(event, "id")
        if isinstance(chunk_id, str) and chunk_id:
            if self._id is None and self._is_new():
                self._id = chunk_id
            elif self._stopped and chunk_id != self._id and any(map(_has_more, choices)):
                raise InvalidInputError(
                    f"{preview(event, 200)} is of another response than {preview(self._id)}, which has ended: "
                    "each response needs a new StreamCollector"
                )
        for name in _HEAD:
            value = field(event, name)
            if value is not None:
                self._head[name] = kept(value)

    def _main(self) -> _Choice:
        return next(iter(self._choices.values()))

    def _whole(self) -> dict[str, Any]:
        begun = self._choices or {0: _Choice(self._grow, _free)}
        choices = [choice.whole(index, self._stop_reason(choice.finish_reason)) for index, choice in begun.items()]
        return {"id": self._id, "object": "chat.completion", **kept(self._head), "choices": choices}

    def _only(self, position: int) -> dict[str, Any]:
        slots = self._main().slots.slots[: position + 1]
        calls = [*[slot.stub() for slot in slots[:-1]], slots[-1].entry()]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        return {"id": self._id, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}

    def _is_over(self, position: int) -> bool:
        slots = self._main().slots.slots
        return position < len(slots) and slots[position].is_whole  # behind them is `function_call`, which stands alone


def _has_more(choice: object) -> bool:
    delta = _delta(choice)
    return bool(field(delta, "content") or field(delta, "tool_calls"))
