"""A server of toolbatch's tools over stdio, as a process of its own."""

import asyncio
import os
import signal

from mcp.server.stdio import stdio_server

from toolbatch import current_call, tool
from toolbatch.integrations.mcp import serve

stopped = asyncio.Event()


@tool
async def add(a: int, b: int) -> dict[str, int]:
    """Add."""
    current_call().progress("adding")
    return {"sum": a + b}


@tool
async def hang() -> None:
    """Hang until the client cancels."""
    try:
        await asyncio.Event().wait()
    finally:
        stopped.set()


@tool
async def was_stopped() -> bool:
    """Wait until `hang` was cancelled."""
    await stopped.wait()
    return True


@tool
async def die() -> None:
    """End the process in the middle of a call."""
    os.kill(os.getpid(), signal.SIGKILL)


async def main() -> None:
    """Serve until the client goes."""
    server = serve("stdio", [add, die, hang, was_stopped])
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
