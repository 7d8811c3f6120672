"""A power cut, played back: what a process wrote and synced, as the system saw it, and the disks that could be left of it.

`strace` records every call by which a process changes files, with the data, in order. For a cut at any point of that record, a
disk is made that holds what was synced by then, and of the rest whatever the disk may have happened to write: nothing, all,
or some of it, a page or a half of one. New names and removals count only once their folder is synced, which is harsher than
most file systems.

It shows that each sync comes before the word that depends on it. It believes a sync: a disk that lies about it is not played.
"""

import random
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Call", "Disk", "is_possible", "record"]

_CALLS: Final = (
    "openat,open,creat,close,dup,dup2,dup3,write,pwrite64,pwritev,writev,fsync,fdatasync,ftruncate,fallocate,"
    "unlink,unlinkat,rename,renameat,renameat2"
)
_LINE: Final = re.compile(r"^(\d+)\s+(?:<\.\.\. )?(\w+)(\(| resumed>)(.*)$")
_TEXT: Final = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


class Call(NamedTuple):
    """A system call that has ended.

    Attributes:
        name: Which one.
        arguments: What stands between its brackets; texts as hexadecimal escapes.
        result: What it returned.
    """

    name: str
    arguments: str
    result: int

    @property
    def texts(self) -> list[bytes]:
        """Its arguments that are texts or data."""
        return [bytes.fromhex(text.replace("\\x", "")) for text in _TEXT.findall(self.arguments)]

    @property
    def numbers(self) -> list[int]:
        """Its arguments that are numbers, in order."""
        return [int(part) for part in _TEXT.sub("", self.arguments).split(",") if part.strip().lstrip("-").isdecimal()]


def is_possible() -> bool:
    """Whether this system can record system calls."""
    strace = shutil.which("strace")
    return strace is not None and not subprocess.run([strace, "-qq", "-o", "/dev/null", "true"], check=False).returncode


def record(command: Sequence[object], trace: Path, environment: dict[str, str]) -> list[Call]:
    """Run a command to its end and return its calls in the order in which they ended.

    A call of a thread that is interrupted by another's is noted where it ends: a sync counts from then on, and data that is
    being written counts, at its worst, from then on too.
    """
    strace = ["strace", "-f", "-qq", "-xx", "-s", "10000000", "-e", f"trace={_CALLS}", "-o", trace]
    run = subprocess.run(
        [*map(str, strace), *map(str, command)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert run.returncode == 0, run.stderr
    return list(_parse(trace.read_text(encoding="ascii").splitlines()))


def _parse(lines: Sequence[str]) -> Iterator[Call]:
    begun: dict[str, str] = {}
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            continue  # signals and exits
        thread, name, opening, rest = found.groups()
        if rest.endswith("<unfinished ...>"):
            begun[thread] = rest.removesuffix("<unfinished ...>")
            continue
        arguments, _, result = (begun.pop(thread, "") + rest if opening != "(" else rest).rpartition(" = ")
        yield Call(name, arguments.rstrip().removesuffix(")"), int(result.split()[0]))


@dataclass
class _File:
    """One file: what of it is on the disk, and what was done to it since."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)  # None: cut at that place

    def sync(self) -> None:
        self.durable = self._with(self.pending)
        self.pending = []

    def _with(self, changes: Sequence[tuple[int, bytes | None]]) -> bytearray:
        content = bytearray(self.durable)
        for at, data in changes:
            content.extend(bytes(max(0, at - len(content))))
            if data is None:
                del content[at:]
            else:
                content[at : at + len(data)] = data
        return content

    def after_a_cut(self, luck: random.Random | None) -> bytes:
        """What may be left: nothing that was not synced, or with luck some of it."""
        if luck is None:
            return bytes(self.durable)
        kept: list[tuple[int, bytes | None]] = []
        for at, data in self.pending:
            if luck.random() < 0.5:
                torn = data is not None and luck.random() < 0.2
                kept.append((at, data[: len(data) // 1024 * 512] if torn and data is not None else data))
        return bytes(self._with(kept))


class Disk:
    """A folder as the record makes it, call by call.

    Attributes:
        told: What the process has said so far, on its standard output.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, _File] = {}  # as the running system sees them
        self._durable: dict[str, _File] = {}  # as they are on the disk
        self._open: dict[int, _File | str] = {}
        self.told = ""

    def play(self, call: Call) -> bool:
        """Do what a call did; return whether it is a moment at which a cut can make a difference."""
        if call.result < 0:
            return False
        assert call.name not in (
            "writev",
            "pwritev",
            "fallocate",
            "rename",
            "renameat",
            "renameat2",
            "dup",
            "dup2",
            "dup3",
        ) or (str(self._folder).encode() not in b"".join(call.texts)), f"{call.name} is not played"
        match call.name:
            case "open" | "openat" | "creat":
                self._opened(call)
            case "close":
                self._open.pop(call.numbers[0], None)
            case "unlink" | "unlinkat":
                self._names.pop(self._name(call.texts[0]), None)
            case "write" if call.numbers[0] == 1:
                self.told += call.texts[0].decode()
            case "write" | "pwrite64" | "ftruncate" | "fsync" | "fdatasync":
                return self._changed(call)
            case _:
                pass
        return call.name == "write" and call.numbers[0] == 1

    def _opened(self, call: Call) -> None:
        path = call.texts[0].decode()
        if path == str(self._folder):
            self._open[call.result] = path
        elif path.startswith(f"{self._folder}/"):
            name = self._name(call.texts[0])
            self._open[call.result] = self._names.setdefault(name, _File())

    def _changed(self, call: Call) -> bool:
        numbers = call.numbers
        target = self._open.get(numbers[0])
        if target is None:
            return False
        if isinstance(target, str):  # the folder is synced: its names are what they are now
            self._durable = dict(self._names)
            return True
        match call.name:
            case "fsync" | "fdatasync":
                target.sync()
            case "ftruncate":
                target.pending.append((numbers[1], None))
            case "pwrite64":
                target.pending.append((numbers[-1], call.texts[0][: call.result]))
            case _:
                raise AssertionError(f"{call.name} is not played")
        return True

    def after_a_cut(self, folder: Path, luck: random.Random | None) -> None:
        """Write what may be left of the files into a folder: with no luck, only what was synced."""
        names = self._durable if luck is None or luck.random() < 0.5 else {**self._durable, **self._names}
        for name, file in names.items():
            if not name.endswith("-shm"):  # shared memory, which is made anew
                (folder / name).write_bytes(file.after_a_cut(luck))

    def _name(self, path: bytes) -> str:
        return path.decode().removeprefix(f"{self._folder}/")
