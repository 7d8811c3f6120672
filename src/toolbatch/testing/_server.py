"""An HTTP server that ends when it is told to, whatever its clients do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from starlette.applications import Starlette

__all__ = ["Server"]

_GRACE = 0.5  # seconds that open responses get to end by themselves


class Server(uvicorn.Server):
    """A server that waits for an event, where uvicorn looks ten times a second, and that never waits for clients."""

    def __init__(self, app: Starlette, ready: Callable[[], None]) -> None:
        # h11 and asyncio's own loop: what runs must not depend on which accelerators are installed.
        config = uvicorn.Config(
            app, http="h11", loop="asyncio", ws="none", lifespan="off", log_config=None, access_log=False
        )
        config.load()  # imports: before the loop runs, so that they don't block it
        super().__init__(config)
        self._ready = ready
        self.stop = asyncio.Event()

    async def main_loop(self) -> None:
        self._ready()
        await self.on_tick(0)  # the date header
        await self.stop.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()  # idle ones close now, busy ones after their response
        await self._let_tasks_end()
        # A client that holds a stream open without reading it would keep us for ever, so its connection is cut. To the
        # task that writes, this looks like a client that went away, and it ends by itself.
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await self._let_tasks_end()
        await asyncio.sleep(0)  # aborted transports close their sockets on the next turn of the loop
        for sock in sockets or []:
            sock.close()

    async def _let_tasks_end(self) -> None:
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_GRACE)
