"""The order within an assistant message: calls come last (L2), and nothing signed is moved against a call (L6).

A *barrier* is a block that its provider signs or orders: thinking, reasoning. It divides the message into segments; within a
segment, what is no call moves in front of the calls, each kind in its own order. A *marker* is no content: it belongs to
the block in front of it and goes where that goes.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

__all__ = ["Kind", "arranged", "is_tidy"]

Kind = Literal["call", "content", "barrier", "marker"]


def is_tidy(blocks: Sequence[Any], kind_of: Callable[[Any], str]) -> bool:
    """Whether no block that may be moved stands behind a call of its segment."""
    behind = False
    for block in blocks:
        kind = kind_of(block)
        if kind == "call":
            behind = True
        elif kind == "barrier":
            behind = False
        elif behind and kind == "content":
            return False
    return True


def arranged(blocks: Sequence[Any], kind_of: Callable[[Any], str], without: Collection[int] = ()) -> list[Any]:
    """Return the blocks in a stable order with calls last in each segment, without those at some indices."""
    view: list[Any] = []
    content: list[Any] = []
    calls: list[Any] = []
    last = view
    for index, block in enumerate(blocks):
        if index in without:
            continue
        kind = kind_of(block)
        if kind == "barrier":
            view += [*content, *calls, block]
            content, calls, last = [], [], view
        else:
            if kind != "marker":
                last = calls if kind == "call" else content
            last.append(block)
    return [*view, *content, *calls]
