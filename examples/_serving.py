"""Runs an ASGI application on 127.0.0.1 and a free port, for the examples of web endpoints."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[str]:
    """Serve `app` on this event loop, and give its URL."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # from here on requests wait until uvicorn takes them: nobody has to wait for it to start
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running
