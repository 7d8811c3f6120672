"""Runs the server on a loop of its own, in a thread of its own: independent of the loop that is being tested."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolbatch.testing._script import RecordedRequest, ScriptPlayer
    from toolbatch.testing._server import Server

__all__ = ["ServerThread"]


class ServerThread:
    """One server on 127.0.0.1 and a port that the system picks.

    Attributes:
        ready: Done when requests are taken; fails if the server can't be started.
        ended: Done when the server has ended and its sockets are closed.
    """

    def __init__(self, player: ScriptPlayer, requests: list[RecordedRequest]) -> None:
        self.ready: Future[None] = Future()
        self.ended: Future[None] = Future()
        self._player = player
        self._requests = requests
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Server | None = None
        self._unwanted = False
        self._thread = threading.Thread(target=self._run, name="toolbatch-fake-provider", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the server to end, at whatever point it is."""
        self._unwanted = True
        if self._loop is not None and self._server is not None:
            with suppress(RuntimeError):  # the loop is closed: it has ended by itself, and `ended` says why
                self._loop.call_soon_threadsafe(self._server.stop.set)

    def join(self) -> None:
        """Wait for the thread itself. After `ended`, which its last statement sets, that takes no time."""
        self._thread.join()

    async def join_async(self) -> None:
        """Do the same without holding up the loop."""
        while self._thread.is_alive():  # noqa: ASYNC110 - a thread has nothing left to set an event with at its very end
            await asyncio.sleep(0)

    def _run(self) -> None:
        try:
            self._serve()
        except BaseException as exc:  # noqa: BLE001 - carried over to the thread that waits
            self._socket.close()
            if isinstance(exc, ImportError):
                exc.add_note("The fake provider needs the extra: pip install toolbatch[testing]")
            if not self.ready.done():
                self.ready.set_exception(exc)
            self.ended.set_exception(exc)
        else:
            self.ended.set_result(None)

    def _serve(self) -> None:
        # Imported here for two reasons: the checks must work where the `testing` extra is not installed, and
        # imports read files, which would block the loop of a test that enters `async with`.
        from toolbatch.testing._app import Desk, make_app
        from toolbatch.testing._server import Server

        self._server = Server(make_app(Desk(self._player, self._requests)), self._on_ready)
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            self._loop = runner.get_loop()
            runner.run(self._server.serve(sockets=[self._socket]))

    def _on_ready(self) -> None:
        self.ready.set_result(None)
        if self._unwanted and self._server is not None:  # `stop` came before there was a loop to tell
            self._server.stop.set()
