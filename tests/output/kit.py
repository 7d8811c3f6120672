"""Stores that fail in every way, and looks at what a process has."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolbatch.output import MemorySpillStore
from toolbatch.ports import SpillRecord, SpillSlice

__all__ = [
    "LONG",
    "FakeStore",
    "Loud",
    "children",
    "in_a_child",
    "kept",
    "locator_in",
    "open_files",
    "threads",
    "warnings_of",
]

LONG = "".join(f"line {number} output\n" for number in range(5000))
"""A text of some 80 thousand characters, which is counted at once."""


class FakeStore:
    """A store whose `save` does what a test wants.

    Args:
        save: Is awaited, and its answer returned.
    """

    def __init__(self, save: Callable[[str], Any]) -> None:
        self._save = save
        self.saved: list[str] = []

    async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
        self.saved.append(text)
        answer = self._save(text)
        record: SpillRecord = await answer if asyncio.iscoroutine(answer) else answer
        return record

    async def read(self, locator: str, *, offset: int, limit: int) -> SpillSlice | None:
        return None


class Loud(str):
    """A text whose methods raise."""

    __slots__ = ()

    def __len__(self) -> int:
        raise RuntimeError("hostile")

    def __str__(self) -> str:
        raise RuntimeError("hostile")

    def __getitem__(self, key: Any) -> str:
        raise RuntimeError("hostile")


def locator_in(shown: str) -> str:
    """The locator that a shown text names."""
    return shown.partition('locator "')[2].partition('"')[0]


def children() -> set[int]:
    """The children of this process, those included that have ended and were not waited for."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # a thread that has just ended
            found.update(map(int, (task / "children").read_text().split()))
    return found


def open_files() -> set[str]:
    """What the files that this process holds open are."""
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.add(str(link.readlink()))
        except OSError:  # the one that lists them
            continue
    return found


def threads() -> list[threading.Thread]:
    """The threads of output budgets and stores."""
    return [thread for thread in threading.enumerate() if thread.name == "toolbatch-output"]


def warnings_of(caplog: Any) -> list[str]:
    """What `toolbatch.output` has warned of."""
    return [record.getMessage() for record in caplog.records if record.name == "toolbatch.output"]


async def kept(store: MemorySpillStore, locator: str) -> str:
    """The whole of a saved text."""
    piece = await store.read(locator, offset=0, limit=10**9)
    assert piece is not None
    return piece.text


def in_a_child(act: Callable[[], None]) -> int:
    """Fork, act, and return the child's exit code: 0 where nothing was raised."""
    pid = os.fork()
    if pid == 0:
        code = 1
        signal.alarm(30)  # one that hangs is ended by the system
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
