"""What the lanes' writers share: pieces of text, frames of a stream, counted tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Answer", "Json", "encode", "event", "pieces", "tokens"]

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """An accepted request's answer in both forms; a client asks for one of them."""

    whole: Json
    frames: tuple[str | bytes, ...]


def encode(value: Mapping[str, object]) -> str:
    """JSON on one line, as an event's data must be."""
    return json.dumps(value, separators=(",", ":"))


def event(data: Mapping[str, object]) -> str:
    """A server-sent event that is named after the type of its data."""
    return f"event: {data['type']}\ndata: {encode(data)}\n\n"


def pieces(text: str) -> Iterator[str]:
    """Cut a text into about three pieces, so that a client has something to put together. None for an empty text."""
    size = max(1, -(-len(text) // 3))
    for start in range(0, len(text), size):
        yield text[start : start + size]


def tokens(value: object) -> int:
    """A token count that is the same in every run: four characters are one, and nothing is free."""
    return max(1, len(json.dumps(value)) // 4)
