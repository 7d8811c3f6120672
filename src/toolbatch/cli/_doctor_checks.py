"""What can be checked on this machine: versions, the event loop, threads, SQLite and the disk below it."""

import asyncio
import os
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Literal

from toolbatch.batch import MAX_LET_GO, MAX_THREADS
from toolbatch.operations import may_share_wal

__all__ = ["Finding", "Judgement", "installed", "local_findings"]

Judgement = Literal["ok", "info", "warn", "fail"]
"""Whether it is as it should be, is only told, should be thought about, or stands in the way."""

_NEEDED: Final = ("anyio", "pydantic")
_OPTIONAL: Final = (
    "uvloop", "rich", "docstring_parser", "jsonschema", "opentelemetry-api", "opentelemetry-sdk", "asyncpg", "temporalio",
    "openai", "anthropic", "google-genai", "boto3", "mistralai", "cohere", "ollama", "mcp",
    "langchain-core", "langgraph", "pydantic-ai-slim", "openai-agents",
)  # fmt: skip
_BUSY: Final = 0.1  # seconds: later than this a deadline is named in the log (B14)
_MEMORY_DISKS: Final = ("tmpfs", "ramfs")
_NETWORK_DISKS: Final = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: What.
        judgement: How it is.
        found: What was found, in a few words.
        advice: What to do, where something is to be done.
    """

    name: str
    judgement: Judgement
    found: str
    advice: str = ""

    def printable(self) -> "Finding":
        """Return the same without what would do something to a terminal: a server's words are its own."""
        return replace(self, found=_printable(self.found), advice=_printable(self.advice))

    def to_dict(self) -> dict[str, str]:
        """Return JSON-ready data."""
        return asdict(self)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def local_findings(folder: str) -> Iterator[Finding]:
    """Look at this machine.

    Args:
        folder: Where a SQLite store would be.
    """
    yield _python()
    yield from _packages()
    yield _loop()
    yield from _threads()
    yield _sqlite_version()
    yield from _disk(folder)


def installed(name: str) -> str | None:
    """Return a package's version, without importing it; `None` where it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _python() -> Finding:
    found = (
        f"{platform.python_implementation()} {platform.python_version()} on {platform.system()} {platform.machine()}"
    )
    if sys.implementation.name != "cpython":
        return Finding("python", "warn", found, "toolbatch is tested on CPython only")
    return Finding("python", "ok", found)


def _packages() -> Iterator[Finding]:
    yield Finding("toolbatch", "ok", installed("toolbatch") or "not installed as a package")
    for name in _NEEDED:
        version = installed(name)
        if version is None:
            yield Finding(name, "fail", "not installed", f"pip install {name}")
        else:
            yield Finding(name, "ok", version)
    found = {name: installed(name) for name in _OPTIONAL}
    shown = ", ".join(f"{name} {version}" for name, version in found.items() if version is not None)
    yield Finding("extras", "info", shown or "none installed")


def _loop() -> Finding:
    """Run a loop as `asyncio.run` would, and look how late its timers are: a machine that is too busy delays deadlines (B14)."""

    async def look() -> tuple[str, float]:
        loop = asyncio.get_running_loop()
        late = 0.0
        for _ in range(20):
            due = loop.time() + 0.005
            await asyncio.sleep(0.005)
            late = max(late, loop.time() - due)
        return f"{type(loop).__module__}.{type(loop).__qualname__}", late

    kind, late = asyncio.run(look())
    found = f"{kind}, timers at most {late * 1000:.1f} ms late"
    if late > _BUSY:
        return Finding(
            "event loop", "warn", found, "this machine is too busy to keep deadlines; give it more processor time"
        )
    return Finding("event loop", "ok", found)


def _threads() -> Iterator[Finding]:
    needed = MAX_THREADS + MAX_LET_GO
    found = f"up to {MAX_THREADS} for tools, and {MAX_LET_GO} that hang"
    limits = dict(_thread_bounds())
    tight = {what: limit for what, limit in limits.items() if limit < needed + 64}
    shown = "".join(f"; {what} {limit}" for what, limit in limits.items())
    if tight:
        what = min(tight, key=tight.__getitem__)
        advice = f"raise {what} to {needed + 64} at least: tools that are plain functions run in threads (B1)"
        yield Finding("threads", "warn", f"{found}{shown}", advice)
    else:
        yield Finding("threads", "ok", f"{found}{shown}")
    files = _open_files()
    if files is not None and files < 1024:
        yield Finding(
            "open files", "warn", f"at most {files}", "raise it with `ulimit -n 4096`: each connection is one"
        )
    elif files is not None:
        yield Finding("open files", "ok", f"at most {files}")


def _thread_bounds() -> Iterator[tuple[str, int]]:
    for path, what in (("/sys/fs/cgroup/pids.max", "pids.max"), ("/proc/sys/kernel/threads-max", "threads-max")):
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if text.isdigit():
            yield what, int(text)
    limit = _limit("RLIMIT_NPROC")
    if limit is not None:
        yield "ulimit -u", limit


def _open_files() -> int | None:
    return _limit("RLIMIT_NOFILE")


def _limit(name: str) -> int | None:
    try:
        import resource
    except ImportError:  # on Windows
        return None
    number: Any = getattr(resource, name, None)
    if number is None:
        return None
    soft, _ = resource.getrlimit(number)
    return None if soft in (resource.RLIM_INFINITY, -1) else soft


def _sqlite_version() -> Finding:
    found = f"{sqlite3.sqlite_version}, threadsafety {sqlite3.threadsafety}"
    if sqlite3.threadsafety < 1:
        return Finding("sqlite", "fail", found, "this SQLite can't be used by threads; install one that can")
    if not may_share_wal():
        advice = (
            "it can damage a WAL file that is shared (the WAL-reset bug), so a shared store uses a slower journal; "
            "use a Python with SQLite 3.51.3, 3.50.7 or 3.44.6"
        )
        return Finding("sqlite", "warn", found, advice)
    return Finding("sqlite", "ok", found)


def _disk(folder: str) -> Iterator[Finding]:
    """Look at the folder of a store: what it is on, and whether what was committed there is on disk (D1)."""
    place = Path(folder)
    if not place.is_dir():
        advice = "name the folder that it is in" if place.exists() else "make it, or name another with --store"
        yield Finding("store", "fail", f"{folder} is no folder", advice)
        return
    kind = _file_system(place)
    try:
        with tempfile.TemporaryDirectory(prefix=".toolbatch-doctor-", dir=place) as scratch:
            mode, milliseconds = _commits(Path(scratch))
    except (OSError, sqlite3.Error) as error:
        yield Finding("store", "fail", f"{folder} on {kind}: {error}", "give this user the right to write there")
        return
    found = f"{folder} on {kind}, journal {mode}, a commit takes {milliseconds:.2f} ms"
    if kind in _NETWORK_DISKS:
        yield Finding("store", "fail", found, "SQLite is not safe on a network disk; use a local one, or PostgreSQL")
    elif kind in _MEMORY_DISKS:
        yield Finding("store", "warn", found, "this disk is memory: what is saved there is gone with the power")
    elif mode != "wal":
        yield Finding("store", "warn", found, "this disk has no WAL mode, so commits are slower")
    elif milliseconds < 0.02:
        yield Finding("store", "warn", found, "too fast to be true: this disk may not keep what it says it has written")
    else:
        yield Finding("store", "ok", found)


def _commits(scratch: Path) -> tuple[str, float]:
    with closing(sqlite3.connect(scratch / "try.db", isolation_level=None)) as connection:
        mode = str(connection.execute("PRAGMA journal_mode=WAL").fetchone()[0])
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE t (x)")
        took = []
        for number in range(10):
            begun = time.perf_counter()
            connection.execute("INSERT INTO t VALUES (?)", (number,))
            took.append(time.perf_counter() - begun)
    return mode, sorted(took)[len(took) // 2] * 1000


def _file_system(place: Path) -> str:
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "a disk of unknown kind"
    at = os.path.realpath(place)
    fields = [line.split() for line in mounts]
    above = [(len(f[1]), f[2]) for f in fields if len(f) > 2 and _is_below(at, f[1].replace("\\040", " "))]
    return max(above)[1] if above else "a disk of unknown kind"


def _is_below(path: str, mount: str) -> bool:
    return mount in ("/", path) or path.startswith(f"{mount}/")
