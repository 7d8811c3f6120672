"""Calls out of fragments, for the lanes in chat's shape: which fragment belongs to which call (LANES 14.11).

The rule is: by index, with the id and the name on the first fragment only. Servers behind gateways break it in every way that
there is, so each fragment is also asked whether it can be a part of the call that has its index, and begins another if not.
"""

import re
from collections.abc import Callable, Mapping
from io import StringIO
from typing import Any, Final, NamedTuple

from ._ids import is_blank
from ._plain import OBJECT, field, items, members
from ._read import as_text
from ._stream import kept, text_of_buffer, weight

__all__ = ["Grow", "Slot", "Slots", "Unchanged", "each"]

_MARKS: Final = re.compile(r'[\\"{}\[\]]')
_OWN: Final = ("index", "id", "function", "custom")
_MAX_LABEL: Final = 4096  # an id or a name of that length can't be used anyway, and need not grow
Grow = Callable[[int], None]
Unchanged = Callable[[int | None, str | None], bool]
_CALL: Final = 1024  # what a call weighs beside its text


def each(value: object) -> list[Any]:
    """Return the entries of an array, one object alone as the one entry (Cohere, some gateways), or none."""
    if value and (isinstance(value, OBJECT) or hasattr(value, "__dict__")):  # Mistral's mark for "not sent" is false
        return [value]
    return items(value)


class _Fragment(NamedTuple):
    """One entry of a delta's `tool_calls`, with every field as it came."""

    place: int | str | None
    wire_id: object
    name: object
    arguments: object
    is_custom: bool
    extra: Mapping[str, Any]
    inner: Mapping[str, Any]

    @property
    def has_arguments(self) -> bool:
        return bool(self.arguments.strip()) if isinstance(self.arguments, str) else self.arguments is not None

    @property
    def is_hollow(self) -> bool:
        return self.wire_id is None and self.name is None and self.arguments is None


def _fragment(entry: object) -> _Fragment:
    fields = members(entry)
    is_custom = field(entry, "type") == "custom" or (fields.get("function") is None and "custom" in fields)
    inner = members(fields.get("custom" if is_custom else "function"))
    key = "input" if is_custom else "arguments"
    index = fields.get("index")
    return _Fragment(
        index if isinstance(index, (int, str)) and not isinstance(index, bool) else None,
        kept(fields.get("id")),
        kept(inner.get("name")),
        _arguments(inner.get(key)),
        is_custom,
        {name: kept(value) for name, value in fields.items() if name not in _OWN},
        {name: kept(value) for name, value in inner.items() if name not in ("name", key)},
    )


def _arguments(value: object) -> object:
    if value is None or isinstance(value, str):
        return value
    return kept(value) if isinstance(value, OBJECT) else as_text(value)


class _Braces:
    """Whether the text so far is one JSON object or array from its first to its last brace: read once, however it is cut."""

    __slots__ = ("_depth", "_escaped", "_quoted", "closed")

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = False
        self._escaped = False
        self.closed = False

    def feed(self, text: str) -> None:
        """Read on."""
        skipped = 1 if self._escaped else 0  # up to here, characters are escaped
        for mark in _MARKS.finditer(text):
            if mark.start() < skipped:
                continue
            sign = mark[0]
            if self._quoted:
                self._quoted = sign != '"'
                if sign == "\\":
                    skipped = mark.start() + 2
            elif sign == '"':
                self._quoted = True
            elif sign in "{[":
                self._depth += 1
            elif sign in "}]":
                self._depth -= 1
                self.closed = self._depth == 0
        self._escaped = skipped > len(text)


class Slot:
    """A call that is being put together.

    Attributes:
        position: Its place among the calls of the message.
    """

    __slots__ = (
        *("_braces", "_custom", "_extra", "_grow", "_id", "_inner", "_name", "_object", "_size", "_text", "_unchanged"),
        "position",
    )

    def __init__(self, position: int, grow: Grow, unchanged: Unchanged) -> None:
        grow(_CALL)
        self.position = position
        self._unchanged = unchanged
        self._grow = grow
        self._id: object = None
        self._name: object = None
        self._custom = False
        self._extra: dict[str, Any] = {}  # of the entry: what travels back with it, such as a signature
        self._inner: dict[str, Any] = {}  # of its `function` or `custom`
        self._object: Any = None  # arguments that came as one object
        self._text: StringIO | None = None
        self._size = 0
        self._braces = _Braces()

    @property
    def wire_id(self) -> object:
        """The provider's id so far, of any type."""
        return self._id

    @property
    def is_named(self) -> bool:
        """Whether its name has come."""
        return bool(self._name)

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are one JSON object from its first brace to its last: nothing can follow.

        The free text of a custom call has no such sign.
        """
        return not self._custom and (self._object is not None or self._braces.closed)

    def belongs(self, fragment: _Fragment) -> bool:
        """Whether a fragment that comes under this call's index can be a part of it. If not, it begins another call."""
        known = not is_blank(self._id) and not is_blank(fragment.wire_id)
        if known and self._id != fragment.wire_id:
            # Another id is another call (Grok, Gemini's compatible endpoint), and a call has a name. Without one it is an id
            # that is new on each fragment, or the second half of one.
            return not fragment.name and not self.is_whole
        if not (fragment.name and self._name and self._size):
            return True
        if fragment.name != self._name:
            return False
        # A name that stands on every fragment; but an object that is whole leaves nothing for this one to be a part of.
        return not (self.is_whole and fragment.has_arguments) or (known and self._repeats(fragment.arguments))

    def is_begun_by(self, fragment: _Fragment) -> bool:
        """Whether the first fragment of a call, as the stream says, is this one's: it comes late, or twice."""
        if not self._name and is_blank(self._id):
            return not self._unchanged(self.position, None)
        is_same = not is_blank(self._id) and (self._id, self._name) == (fragment.wire_id, fragment.name)
        return is_same and not (self._size or fragment.has_arguments)

    def _repeats(self, arguments: object) -> bool:
        if not isinstance(arguments, str):
            return bool(arguments == self._object)
        return self._text is not None and len(arguments) == self._size and arguments == text_of_buffer(self._text)

    def take(self, fragment: _Fragment) -> None:
        """Add a fragment that `belongs`."""
        if fragment.name and self._name and fragment.has_arguments and self.is_whole:
            return  # the whole call, sent once more
        self._take_id(fragment)
        self._take_name(fragment.name)
        self._custom = self._custom or fragment.is_custom
        for holder, more in ((self._extra, fragment.extra), (self._inner, fragment.inner)):
            for name, value in more.items():
                if holder.get(name) is None:
                    self._grow(weight(name) + weight(value))
                    holder[name] = value
        self._take_arguments(fragment.arguments)

    def _take_id(self, fragment: _Fragment) -> None:
        wire_id = fragment.wire_id
        if is_blank(self._id):
            if wire_id is not None and not self._unchanged(self.position, None):
                self._grow(weight(wire_id))
                self._id = wire_id
        elif isinstance(self._id, str) and isinstance(wire_id, str) and wire_id != self._id and not is_blank(wire_id):
            is_rest = not (fragment.name or fragment.has_arguments or self._size)  # nothing else is in the fragment
            if is_rest and len(self._id) < _MAX_LABEL and not self._unchanged(self.position, None):
                self._grow(len(wire_id))
                self._id += wire_id

    def _take_name(self, name: object) -> None:
        if name is None or name == self._name:
            return
        if not self._name:
            self._grow(weight(name))
            self._name = name
        elif isinstance(self._name, str) and isinstance(name, str) and not self._size and len(self._name) < _MAX_LABEL:
            self._grow(len(name))
            self._name += name

    def _take_arguments(self, arguments: object) -> None:
        if arguments is None or self._unchanged(self.position, as_text(arguments)):
            return
        if not isinstance(arguments, str):
            if self._text is None and self._object is None:
                self._size = weight(arguments)
                self._grow(self._size)
                self._object = arguments
                return
            arguments = as_text(arguments)
        if self._object is not None:  # nothing can follow an object; as text, the lane will say so
            first, self._object, self._size = as_text(self._object), None, 0
            self._write(first)
        self._write(arguments)

    def _write(self, text: str) -> None:
        self._grow(len(text))
        if self._text is None:
            self._text = StringIO()
        self._text.write(text)
        self._size += len(text)
        self._braces.feed(text)

    def entry(self) -> dict[str, Any]:
        """Return the call as an entry of a whole message's `tool_calls`."""
        arguments = self._object
        if self._text is not None:
            arguments = text_of_buffer(self._text)
        kind, key = ("custom", "input") if self._custom else ("function", "arguments")
        inner = {**self._inner, "name": self._name, key: arguments}
        return {"id": self._id, "type": kind, **self._extra, kind: inner}

    def stub(self) -> dict[str, Any]:
        """Return no more of it than its id."""
        return {"id": self._id, "type": "function", "function": {"name": None, "arguments": None}}


class Slots:
    """The calls of one message, in the order in which they began."""

    __slots__ = ("_at", "_grow", "_ids", "_loose", "_unchanged", "slots")

    def __init__(self, grow: Grow, unchanged: Unchanged) -> None:
        self.slots: list[Slot] = []
        self._grow = grow
        self._unchanged = unchanged
        self._at: dict[int | str, Slot] = {}
        self._ids: dict[str, Slot] = {}
        self._loose: Slot | None = None  # begun without an index, and maybe gone on with one

    def take(self, entry: object, *, begins: bool = False) -> list[int]:
        """Add one entry of a delta's `tool_calls`, and return the positions of calls that are over with it: one or none.

        Args:
            entry: The entry: an SDK's object or a dict.
            begins: Whether the stream says that it is the first of its call.
        """
        fragment = _fragment(entry)
        slot = self._target(fragment)
        ended: list[int] = []
        if slot is None or not (slot.is_begun_by(fragment) if begins else slot.belongs(fragment)):
            if fragment.is_hollow:
                return []
            if self.slots and self.slots[-1].is_whole:
                ended.append(len(self.slots) - 1)
            slot = Slot(len(self.slots), self._grow, self._unchanged)
            self.slots.append(slot)
            self._loose = slot if fragment.place is None else None
        if fragment.place is not None:
            self._at[fragment.place] = slot
        slot.take(fragment)
        if isinstance(slot.wire_id, str):
            self._ids[slot.wire_id] = slot
        return ended

    def _target(self, fragment: _Fragment) -> Slot | None:
        if fragment.place is not None:
            loose, self._loose = self._loose, None
            slot = self._at.get(fragment.place)
            if slot is None and loose is not None and not (fragment.name and loose.is_named):
                slot = loose
            return slot
        if isinstance(fragment.wire_id, str) and not is_blank(fragment.wire_id) and fragment.wire_id in self._ids:
            return self._ids[fragment.wire_id]
        return self.slots[-1] if self.slots else None

    def at(self, place: object) -> Slot | None:
        """Return the call that has that index now: the last one, where there is no index."""
        if isinstance(place, (int, str)):
            return self._at.get(place)
        return self.slots[-1] if self.slots else None
