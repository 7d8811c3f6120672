"""What tests of backends share."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from toolbatch.backends import ProcessBackend
from toolbatch.testing._backend_bench import Ask, Bench, Witness

__all__ = ["ROOT", "Ask", "Bench", "Witness", "ended", "open_files", "processes", "script"]

ROOT = Path(__file__).resolve().parent.parent.parent


def processes(workers: int = 1, **options: Any) -> ProcessBackend:
    """A backend whose tools are not heard."""
    return ProcessBackend(workers, output="discard", **options)


async def ended(run: "asyncio.Task[Any]") -> BaseException | None:
    """Wait for a run's end; return what it raised."""
    await asyncio.wait([run])
    return asyncio.CancelledError() if run.cancelled() else run.exception()


def open_files() -> int:
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def script(code: str, *arguments: object, folder: Path) -> "subprocess.Popen[str]":
    """Start a program of its own, as a file, with the main module that files have."""
    file = folder / "program.py"
    file.write_text(code, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, str(file), *map(str, arguments)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
