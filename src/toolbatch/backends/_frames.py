"""Messages between a process and its worker, over a socket of their own: what tools print can't get between them.

A message is one byte that says what it is, eight bytes of length, and that many bytes of pickle.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final, NamedTuple

from toolbatch.ports import CallFacts

__all__ = ["HEAD", "SECONDS", "Ending", "Frames", "Kind", "Order", "ProtocolFault", "Settings", "packed"]

HEAD: Final = struct.Struct(">BQ")

SECONDS: Final = struct.Struct(">d")
"""How long a call may take; not a number for any time."""


class Kind(IntEnum):
    """What a message is."""

    SETTINGS = 1  # to the worker, first: `Settings`
    READY = 2  # from the worker: it can take calls; `None`, or why it can't
    CALL = 3  # to the worker: how long it may take, as `SECONDS`, and an `Order`
    NOTE = 4  # from the worker: a `CallNote`
    RETURNED = 5  # from the worker: the tool's value
    RAISED = 6  # from the worker: an `Ending` of the tool's
    REFUSED = 7  # from the worker: why the tool was not entered
    TOO_LARGE = 8  # from the worker: the tool ran, and why its value can't be sent
    NOT_SENDABLE = 9  # likewise
    STOP = 10  # to the worker: ask the running tool to stop; empty


class Settings(NamedTuple):
    """What a worker must know before its first call.

    Attributes:
        path: Where modules are imported from.
        folder: The working folder.
        argv: The host program's arguments.
        main: How the host's main module is loaded, if a function of it is called: `("name", ...)`, `("path", ...)` or `None`.
        memory: Bytes of address space; `None` for the system's own bound.
        cpu_seconds: Seconds of processor time for each call; `None` for any.
        preload: Modules to import at once.
    """

    path: list[str]
    folder: str
    argv: list[str]
    main: tuple[str, str] | None
    memory: int | None
    cpu_seconds: float | None
    preload: tuple[str, ...]


class Order(NamedTuple):
    """One call, on its way to a worker.

    Attributes:
        fn: The function.
        args: Its positional arguments.
        kwargs: Its named ones.
        facts: The call that is answered.
        values: Context variables and their values: module, name, value.
        limit: The most bytes that its value may take.
    """

    fn: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    facts: CallFacts
    values: tuple[tuple[str, str, Any], ...]
    limit: int


class Ending(NamedTuple):
    """What a tool has raised, on its way back.

    Attributes:
        type_name: Its class.
        message: Its text.
        pickled: The exception itself; `None` where that can't be sent.
        is_cancellation: Whether the tool ended as cancelled.
    """

    type_name: str
    message: str
    pickled: bytes | None
    is_cancellation: bool


class ProtocolFault(Exception):  # noqa: N818  it ends the worker and reaches nobody
    """What was sent is no message, or one that is longer than it may be."""


def packed(kind: Kind, data: bytes) -> bytes:
    """Return a message."""
    return HEAD.pack(kind, len(data)) + data


class Frames:
    """Messages as they come in, piece by piece.

    Args:
        limit: The longest that one may be, in bytes without its head; the longest that is kept.
    """

    __slots__ = ("_data", "_limit")

    def __init__(self, limit: int) -> None:
        self._data = bytearray()
        self._limit = limit

    def feed(self, data: bytes) -> Iterator[tuple[Kind, bytes]]:
        """Yield the messages that are complete with this piece.

        Raises:
            ProtocolFault: The other side sends what it must not.
        """
        self._data += data
        while len(self._data) >= HEAD.size:
            number, length = HEAD.unpack_from(self._data)
            if length > self._limit:
                raise ProtocolFault(f"a message of {length:,} bytes, more than the {self._limit:,} that are allowed")
            try:
                kind = Kind(number)
            except ValueError:
                raise ProtocolFault(f"{number} is no kind of message") from None
            end = HEAD.size + length
            if len(self._data) < end:
                return
            message = bytes(memoryview(self._data)[HEAD.size : end])
            del self._data[:end]
            yield kind, message
