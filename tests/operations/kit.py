"""What tests of operations share: operations, answers of the kind that is expected, and processes."""

import os
import subprocess
import sys
from pathlib import Path

from toolbatch.ports import Claimed, Completed, Operation, OperationStore, ReplayPolicy, Unknown

__all__ = ["RESULT", "SOURCE", "completed", "granted", "pay", "python", "start", "unknown"]

RESULT = b'{"paid":true}'
SOURCE = Path(__file__).resolve().parent.parent.parent / "src"
_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}


def pay(name: str = "t/run/1", replay: ReplayPolicy = "if_not_started", amount: int = 50) -> Operation:
    """An operation."""
    return Operation(name, "pay", {"amount": amount}, replay=replay)


async def granted(store: OperationStore, operation: Operation, taking_over: str | None = None) -> Claimed:
    """Claim it, which has to be granted."""
    answer = await store.claim(operation, taking_over=taking_over)
    assert isinstance(answer, Claimed), answer
    return answer


async def unknown(store: OperationStore, operation: Operation) -> Unknown:
    """Claim it, which has to be refused as unknown."""
    answer = await store.claim(operation)
    assert isinstance(answer, Unknown), answer
    return answer


async def completed(store: OperationStore, operation: Operation) -> bytes:
    """Claim it, which has to be answered with the result."""
    answer = await store.claim(operation)
    assert isinstance(answer, Completed), answer
    return answer.result


def start(script: object, *arguments: object) -> "subprocess.Popen[bytes]":
    """Start a script in a process of its own, to be killed at any moment; what it complains of can be read."""
    return subprocess.Popen(
        [sys.executable, str(script), *map(str, arguments)], env=_ENVIRONMENT, stderr=subprocess.PIPE
    )


def python(code: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run code in a process of its own, where warnings are errors."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        env=_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
