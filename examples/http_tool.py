"""HTTP tools with one deadline for the whole operation, retries of safe methods only, and none after a cancellation.

Run it with `python examples/http_tool.py`. The server is a local one that answers badly in every way there is.

A tool's time bound is on its task, so that it covers all that happens in there: waiting for a token, connecting, headers, the
body, and the pauses between attempts. No timeout of the HTTP client is needed for it, and no arithmetic. The retrying is a
library's (`tenacity`); when the call is given up, the task is cancelled and nothing is sent any more.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that a script finds its neighbours

import httpx
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import StreamingResponse
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_exponential, wait_random

from examples._serving import serving
from toolbatch import ToolBatch, ToolCall, ToolCatalog, ToolError, current_call, tool

ATTEMPTS = 4
PASSING = {429, 502, 503, 504}  # a later attempt may go better


def may_go_better(error: BaseException) -> bool:
    """Whether it is worth asking again."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code in PASSING
    return isinstance(error, httpx.TransportError)


class Service:
    """A remote service as tools. One client and one token for all calls.

    Args:
        url: Where it is.
        pause: Seconds of the first pause between attempts, at least; the next ones grow, and part of each is left to chance.
    """

    def __init__(self, url: str, *, pause: float = 0.05) -> None:
        # The call's bound is the only one: a timeout of the client's would cut off a call that has time left.
        self._client = httpx.AsyncClient(base_url=url, timeout=None, trust_env=False)  # noqa: S113  see above
        self._retrying = AsyncRetrying(
            retry=retry_if_exception(may_go_better),
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_exponential(multiplier=pause, max=2) + wait_random(0, pause),
            reraise=True,
        )
        self._token: asyncio.Task[str] | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._token is not None:
            self._token.cancel()
        await self._client.aclose()

    @tool(timeout=1)
    async def read(self, path: str) -> str:
        """Read something of the service. Reading changes nothing, so it may be tried again."""
        async for attempt in self._retrying.copy():
            with attempt:
                return await self._ask("GET", path)
        raise AssertionError("tenacity raises the last attempt's error")

    @tool(timeout=1)
    async def order(self, path: str, item: str) -> str:
        """Order something. Once: who can't know whether an order has arrived must not send it again."""
        # The service can tell a repeated order by this key, should the host ever decide to repeat one.
        return await self._ask(
            "POST", path, json={"item": item}, headers={"Idempotency-Key": current_call().idempotency_key}
        )

    async def _ask(self, method: str, path: str, *, headers: dict[str, str] | None = None, **options: Any) -> str:
        bearer = {"Authorization": f"Bearer {await self._signed_in()}"}
        response = await self._client.request(method, path, headers=bearer | (headers or {}), **options)
        if response.is_client_error and response.status_code not in PASSING:
            raise ToolError.respond_to_model(
                f"{method} {path}: {response.status_code} {response.reason_phrase}", "http"
            )
        response.raise_for_status()
        return response.text

    async def _signed_in(self) -> str:
        """Return the token. All calls wait for one request; a call that is given up does not cancel it for the others."""
        if self._token is None or (self._token.done() and self._token.exception() is not None):
            self._token = asyncio.create_task(self._sign_in())
        return await asyncio.shield(self._token)

    async def _sign_in(self) -> str:
        response = await self._client.post("/token")
        response.raise_for_status()
        return response.text


class Server:
    """A service that answers badly in every way there is.

    Attributes:
        seen: The requests that came, as `METHOD path`.
        token: Is set when tokens are given out.
    """

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.token = asyncio.Event()
        self.stop = asyncio.Event()
        self.app = FastAPI()
        self.app.post("/token")(self._token)
        self.app.get("/{kind}")(self._answer)
        self.app.post("/{kind}")(self._answer)

    async def _token(self) -> str:
        await self.token.wait()
        return "token"

    async def _answer(self, kind: str, request: Request) -> Any:
        self.seen.append(f"{request.method} {kind}")
        match kind:
            case "silent":  # never sends a header
                await self.stop.wait()
            case "dripping":  # sends headers, and a body that never ends
                return StreamingResponse(self._drip())
            case "flaky":  # works at the third attempt
                if self.seen.count(f"{request.method} flaky") < 3:
                    raise HTTPException(503)
            case "down":
                raise HTTPException(503)
            case "missing":
                raise HTTPException(404)
            case _:
                pass
        return "fine"

    async def _drip(self) -> AsyncIterator[bytes]:
        while not self.stop.is_set():
            yield b"."
            await asyncio.sleep(0.05)


async def main() -> None:
    """Ask for everything at once, with a second for each call."""
    server = Server()
    async with serving(server.app) as url:
        service = Service(url)
        server.token.set()
        paths = ["fine", "flaky", "down", "missing", "silent", "dripping"]
        calls = [ToolCall(path, "read", {"path": path}) for path in paths]
        calls.append(ToolCall("order", "order", {"path": "down", "item": "tulips"}))
        try:
            async with ToolBatch(calls, tools=ToolCatalog([service.read, service.order])) as batch:
                batch.start_all()
                snapshot = await batch.snapshot()
        finally:
            server.stop.set()
            await service.close()
    for call in snapshot.calls:
        method = "GET" if call.name == "read" else "POST"
        attempts = server.seen.count(f"{method} {call.call.arguments['path']}")
        end = call.settlement
        text = "open" if end is None else end.content or end.message or ""
        print(f"{call.id:10} {attempts} attempt(s): {text.splitlines()[0]}")


if __name__ == "__main__":
    asyncio.run(main())
