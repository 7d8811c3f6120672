"""The loop in 20 lines, on calls that go well and on those that don't."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest

from examples.plain_asyncio import TOOLS, answer, main
from toolbatch.testing import FakeProvider, Reply, ScriptedCall, check_chat


@asynccontextmanager
async def talking(*script: Reply) -> AsyncIterator[openai.AsyncOpenAI]:
    """A client of a provider that plays `script` and must not have refused anything."""
    async with (
        FakeProvider(script) as provider,
        openai.AsyncOpenAI(base_url=provider.openai_base_url, api_key="test", max_retries=0) as client,
    ):
        yield client
        assert provider.rejected == []


async def test_main(nothing_left: None) -> None:
    """The history has a result for the tool that works and for the one that hangs, and the endpoint takes it."""
    history = await main()
    assert check_chat(history) is None
    assert [message["role"] for message in history] == ["user", "assistant", "tool", "tool", "assistant"]
    assert json.loads(history[2]["content"]) == {"city": "Oslo", "celsius": 18}
    assert json.loads(history[3]["content"])["error"]["code"] == "timeout"


async def test_a_turn_of_nothing_but_malformed_calls(nothing_left: None) -> None:
    """Calls that can't be run are answered and the loop goes on: `start_all` finds nothing to start (P6)."""
    history: list[Any] = []
    async with talking(Reply(calls=[ScriptedCall("call_1", "weather", '{"city": "Os')]), Reply("Sorry.")) as client:
        assert await answer(client, history, "Shall I go?") == "Sorry."
    assert check_chat(history) is None
    assert json.loads(history[2]["content"])["error"]["code"] == "malformed_arguments"


async def test_a_stop_leaves_a_history_that_goes_on(monkeypatch: pytest.MonkeyPatch, nothing_left: None) -> None:
    """After a cancellation in the middle of the tools, the next question is accepted."""
    entered = asyncio.Event()

    async def trains(to: str) -> None:
        entered.set()
        await asyncio.Event().wait()

    monkeypatch.setitem(TOOLS, "trains", trains)
    history: list[Any] = []
    async with talking(Reply(calls=[ScriptedCall("call_1", "trains", {"to": "Oslo"})]), Reply("Nothing.")) as client:
        turn = asyncio.create_task(answer(client, history, "Is there a train?"))
        await entered.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert json.loads(history[-1]["content"])["error"]["code"] == "request_aborted"
        assert await answer(client, history, "What did you find?") == "Nothing."
    assert check_chat(history) is None
