"""The strict fake provider, seen from a test."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self, final

from toolbatch.testing._script import RecordedRequest, Script, ScriptPlayer
from toolbatch.testing._thread import ServerThread

if TYPE_CHECKING:
    from concurrent.futures import Future
    from types import TracebackType

__all__ = ["FakeProvider"]

_PATIENCE = 10.0  # seconds to wait for the server's thread: far beyond what it takes


@final
class FakeProvider:
    """A local server that speaks five provider APIs, plays a script and refuses what a provider refuses.

    It is a context manager, plain or asynchronous; inside it the server runs on 127.0.0.1 and a free port, in a thread of
    its own. Real clients talk to it::

        with FakeProvider([Reply(calls=[ScriptedCall("call_1", "weather", {"city": "Oslo"})]), Reply("4 degrees.")]) as provider:
            client = openai.OpenAI(base_url=provider.openai_base_url, api_key="test", max_retries=0)

    A request that breaks a rule of its lane gets HTTP 400 with the provider's error body and takes nothing from the script.
    An accepted request takes the next reply. After the last one, every request gets HTTP 500 that says so.

    Attributes:
        requests: Every request so far, refused ones too, in the order in which they were answered.
    """

    def __init__(self, script: Script = ()) -> None:
        """Make a provider that is not running yet.

        Args:
            script: The replies, in order; or a function from the accepted request to its reply. The function is called
                in the server's thread and must not block; if it raises, the request gets HTTP 500 with the exception.
        """
        self.requests: list[RecordedRequest] = []
        self._player = ScriptPlayer(script)
        self._server: ServerThread | None = None

    @property
    def rejected(self) -> list[RecordedRequest]:
        """The requests that were refused for a fault of the client's."""
        return [request for request in self.requests if 400 <= request.status < 500]

    @property
    def remaining(self) -> int | None:
        """How many replies are left to give; `None` if the script is a function."""
        return self._player.remaining

    @property
    def url(self) -> str:
        """Where the server listens.

        Raises:
            RuntimeError: It isn't running.
        """
        if self._server is None:
            raise RuntimeError("the fake provider has no address outside of its `with` block")
        return f"http://127.0.0.1:{self._server.port}"

    @property
    def openai_base_url(self) -> str:
        """The `base_url` for an `openai` client."""
        return f"{self.url}/v1"

    @property
    def anthropic_base_url(self) -> str:
        """The `base_url` for an `anthropic` client."""
        return self.url

    @property
    def gemini_base_url(self) -> str:
        """The `base_url` in `http_options` for a `google-genai` client."""
        return self.url

    @property
    def bedrock_endpoint_url(self) -> str:
        """The `endpoint_url` for a `boto3` client of `bedrock-runtime`. Any credentials will do."""
        return self.url

    def __enter__(self) -> Self:
        server = self._start()
        try:
            server.ready.result(_PATIENCE)
        except BaseException:
            self._stop()  # `__exit__` will not be called
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        server = self._stop()
        server.ended.result(_PATIENCE)
        server.join()

    async def __aenter__(self) -> Self:
        server = self._start()
        try:
            await _done(server.ready)
        except BaseException:
            self._stop()  # `__aexit__` will not be called
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        server = self._stop()
        await _done(server.ended)
        await server.join_async()

    def _start(self) -> ServerThread:
        if self._server is not None:
            raise RuntimeError("the fake provider is running already")
        self._server = ServerThread(self._player, self.requests)
        self._server.start()
        return self._server

    def _stop(self) -> ServerThread:
        server, self._server = self._server, None
        if server is None:
            raise RuntimeError("the fake provider is not running")
        server.stop()
        return server


async def _done(future: Future[None]) -> None:
    """Wait for the server's thread. Shielded, because a cancelled future could not be set by the thread any more."""
    await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), _PATIENCE)
