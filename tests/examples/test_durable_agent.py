"""An agent that is killed in mid-payment goes on, verifies, and pays nothing twice (D1, D2, D4)."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from examples import durable_agent
from examples.durable_agent import Bank, agent, die
from toolbatch.operations import SqliteOperationStore


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_the_second_agent_pays_nothing_twice(tmp_path: Path) -> None:
    """The finished payment has its saved result, the unknown one the bank's word, and the mail is sent now; once more changes nothing."""
    assert asyncio.run(die(tmp_path)) == -signal.SIGKILL
    assert [payment["invoice"] for payment in Bank(tmp_path).payments()] == ["A-17", "B-4"]

    async def unknown() -> list[str]:
        async with SqliteOperationStore(tmp_path / "operations.db") as store:
            return [record.id for record in await store.unresolved()]

    assert asyncio.run(unknown()) == [f"acme/{durable_agent.RUN}/call_2"]
    for _ in range(2):
        messages = asyncio.run(agent(tmp_path))
        contents = {message["tool_call_id"]: message["content"] for message in messages}
        assert json.loads(contents["call_1"]) == {"paid": "A-17", "receipt": 1}
        assert json.loads(contents["call_2"]) == {"paid": "B-4", "receipt": 2}
        assert contents["call_3"] == "mailed to boss"
    assert len(Bank(tmp_path).payments()) == 2
    assert asyncio.run(unknown()) == []


def test_an_agent_that_is_not_killed_needs_none_of_it(tmp_path: Path) -> None:
    """The same turn in one go has the same results."""
    assert [message["tool_call_id"] for message in asyncio.run(agent(tmp_path))] == ["call_1", "call_2", "call_3"]
    assert len(Bank(tmp_path).payments()) == 2
