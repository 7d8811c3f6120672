"""Seed 004: a deadline covers the whole operation, only safe methods are tried again, and nothing is sent after a cancellation."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from examples._serving import serving
from examples.http_tool import ATTEMPTS, Server, Service
from toolbatch import Snapshot, ToolBatch, ToolCall, ToolCatalog


@pytest.fixture
async def server() -> AsyncIterator[tuple[Server, str]]:
    """A running server, and its URL."""
    bad = Server()
    async with serving(bad.app) as url:
        try:
            yield bad, url
        finally:
            bad.token.set()
            bad.stop.set()


def read(*paths: str) -> list[ToolCall]:
    """One call a path."""
    return [ToolCall(path, "read", {"path": path}) for path in paths]


def ends(snapshot: Snapshot) -> dict[str, str | None]:
    """How each call ended: `None` for a success."""
    return {call.id: None if call.settlement is None else call.settlement.code for call in snapshot.calls}


@pytest.mark.parametrize("phase", ["token", "headers", "body", "back-off"])
async def test_the_bound_covers(phase: str, server: tuple[Server, str]) -> None:
    """The call ends as `timeout` when its time is over, wherever it is by then, and nothing is sent after it."""
    bad, url = server
    path = {"token": "fine", "headers": "silent", "body": "dripping", "back-off": "down"}[phase]
    if phase != "token":
        bad.token.set()
    service = Service(url, pause=30 if phase == "back-off" else 0.01)
    quick = service.read.replace(timeout=0.3)
    async with ToolBatch(read(path), tools=ToolCatalog([quick])) as batch:
        batch.start_all()
        assert ends(await batch.snapshot()) == {path: "timeout"}
    assert batch.outcomes[path].completion == "settled"
    sent = list(bad.seen)
    assert len(sent) == (0 if phase == "token" else 1)
    bad.token.set()
    await asyncio.sleep(0.2)  # long enough for whatever would still be sent
    assert bad.seen == sent
    await service.close()


async def test_a_call_that_is_given_up_does_not_cancel_the_token_of_the_others(server: tuple[Server, str]) -> None:
    """A shared wait is shared: whoever is cancelled leaves it to the others."""
    bad, url = server
    service = Service(url)
    async with ToolBatch(read("fine", "flaky"), tools=ToolCatalog([service.read.replace(timeout=20)])) as batch:
        batch.start_all()
        await asyncio.sleep(0.05)
        batch.cancel("fine")
        bad.token.set()
        assert ends(await batch.snapshot()) == {"fine": "cancelled", "flaky": None}
    assert "GET fine" not in bad.seen
    await service.close()


async def test_only_safe_methods_are_tried_again(server: tuple[Server, str]) -> None:
    """A failed read is repeated, up to a bound; an order never is, whatever came of it."""
    bad, url = server
    bad.token.set()
    service = Service(url, pause=0.001)
    order = ToolCall("order", "order", {"path": "down", "item": "tulips"})
    async with ToolBatch([*read("down", "missing"), order], tools=ToolCatalog([service.read, service.order])) as batch:
        batch.start_all()
        assert ends(await batch.snapshot()) == {"down": "tool_error", "missing": "http", "order": "tool_error"}
    assert (bad.seen.count("GET down"), bad.seen.count("GET missing"), bad.seen.count("POST down")) == (ATTEMPTS, 1, 1)
    await service.close()


async def test_a_service_that_is_gone_is_an_error_for_the_model() -> None:
    """A connection that is refused is tried again as often, and then is the call's error."""
    service = Service("http://127.0.0.1:9", pause=0.001)
    async with ToolBatch(read("fine"), tools=ToolCatalog([service.read.replace(timeout=20)])) as batch:
        batch.start_all()
        assert ends(await batch.snapshot()) == {"fine": "tool_error"}
    await service.close()
