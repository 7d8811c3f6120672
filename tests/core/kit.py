"""What the tests of the core share: an opened batch, all that can be seen of it, and hostile values."""

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from toolbatch.core import BatchHandle, Encoder, Limits, Snapshot, ToolCall, ToolCallClosure, encode


def opened(*ids: str, limits: Limits | None = None, encode: Encoder = encode) -> tuple[ToolCallClosure, BatchHandle]:
    """A closure whose first batch announced `ids` (`a` and `b` unless told), and its handle."""
    closure = ToolCallClosure(limits, encode=encode)
    return closure, closure.begin([ToolCall(call_id, f"tool_{call_id}") for call_id in ids or ("a", "b")]).handle


def view(closure: ToolCallClosure) -> dict[str, Any]:
    """All that can be seen of the active batch, but for how often the closure was asked in vain."""
    snapshot = closure.snapshot()
    assert snapshot is not None
    shown = snapshot.to_dict()
    del shown["diagnostics"], shown["diagnostics_dropped"]
    return {**shown, "started": [call.started for call in snapshot.calls]}


def shown(closure: ToolCallClosure) -> Snapshot:
    """The snapshot of a closure that has begun."""
    snapshot = closure.snapshot()
    assert snapshot is not None
    return snapshot


def states(closure: ToolCallClosure) -> dict[str, str]:
    """Where each call stands."""
    return {call.id: call.state for call in shown(closure).calls}


class HostileText(str):
    """Text that is text, but whose every method says that it was called."""

    __slots__ = ()
    called: ClassVar[list[str]] = []


def _trap(name: str) -> Callable[..., NoReturn]:
    def method(*_: object) -> NoReturn:
        HostileText.called.append(name)
        raise AssertionError(f"{name} of the caller's text was called")

    return method


for _name in (
    "__str__", "__repr__", "__eq__", "__ne__", "__lt__", "__hash__", "__bool__", "__len__", "__iter__", "__contains__", "__getitem__",
    "__add__", "__format__", "encode", "strip", "isascii", "isspace", "startswith", "lower",
):  # fmt: skip
    setattr(HostileText, _name, _trap(_name))


class Equal:
    """Claims to be equal to anything."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


class NoRepr:
    """Can't be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


NOT_TEXT: tuple[Any, ...] = (
    None, 0, 1, True, 1.5, float("nan"), b"a", bytearray(b"a"), ["a"], ("a",), {"a"}, {"a": 1}, {}, [], object(), NoRepr(), Equal(), str,
)  # fmt: skip
"""Values that are no `str`, unhashable ones and one that can't be shown among them."""

BLANK = ("", " ", "\t\n", "\u00a0", "\u2003\u2028")
"""Texts with nothing to see."""

LONE = ("\ud800", "a\udfff", "\udc00\ud800 b")
"""Texts with a lone surrogate: Python has them, UTF-8 and the providers don't."""
