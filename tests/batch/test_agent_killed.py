"""An agent that is killed at random moments and started again: nothing is paid twice, nothing that was shown is lost (D1, D2, D4)."""

import asyncio
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.batch import agent_process
from tests.operations import pg
from tests.operations.conftest import postgres
from tests.operations.kit import start

__all__ = ["postgres"]

TURNS = 120
MOST_KILLED = 9
"""Each costs the start of another interpreter; after that it may come to its end."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is one: a kill can't show more than that, and more is killed in the same time."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as made:
        yield Path(made)


def live_and_die(place: str, log: Path) -> int:
    """Start the agent, kill it, start it again, until it is through; return how often it was killed."""
    killed = 0
    while True:
        size = log.stat().st_size
        agent = start(agent_process.__file__, place, log, TURNS)
        assert agent.stderr is not None
        with agent.stderr as errors:
            while agent.poll() is None and log.stat().st_size == size:
                time.sleep(0.002)  # it is still importing
            try:
                agent.wait(random.uniform(0, 0.08) if killed < MOST_KILLED else 60)
            except subprocess.TimeoutExpired:
                agent.send_signal(signal.SIGKILL)
                agent.wait()
                killed += 1
                continue
            assert agent.returncode == 0, errors.read().decode()
            return killed


async def what_is_kept(place: str) -> tuple[dict[str, str | None], dict[str, Any]]:
    """The results in the store, `None` for what is open, and the outcomes in the journal; both by call id."""
    results: dict[str, str | None] = {}
    outcomes: dict[str, Any] = {}
    async with agent_process.kept_at(place) as (store, journal):
        for batch in await journal.batches(agent_process.RUN):
            assert not batch.is_open
            outcomes |= {call_id: record.settlement.to_dict() for call_id, record in batch.settled.items()}
            for call in batch.calls:
                record = await store.get(f"t/{agent_process.RUN}/{call.id}")
                if record is not None:
                    results[call.id] = None if record.result is None else record.result.decode()
    return results, outcomes


@pytest.mark.timeout(180)
def test_an_agent_that_is_killed_pays_nothing_twice_and_forgets_nothing(folder: Path) -> None:
    """However often; and what it can't know it says to be unknown."""
    check(str(folder), folder / "log")


@pytest.mark.timeout(180)
def test_an_agent_on_a_server_pays_nothing_twice_and_forgets_nothing(folder: Path, postgres: pg.Server) -> None:
    """The same on PostgreSQL."""
    check(f"{postgres.dsn}#agent", folder / "log")


def check(place: str, log: Path) -> None:
    """Kill an agent, and compare what has happened with what it says."""
    log.touch()
    killed = live_and_die(place, log)
    results, outcomes = asyncio.run(what_is_kept(place))
    lines = [line.split(" ", 2) for line in log.read_text(encoding="utf-8").splitlines()]
    paid = Counter(call_id for word, call_id, _ in lines if word == "paid")
    assert set(paid.values()) == {1}, "a payment was made twice"
    assert len(outcomes) == TURNS * agent_process.CALLS
    shown = [
        (call["id"], call["settlement"]) for word, _, text in lines if word == "shown" for call in json.loads(text)
    ]
    assert {call_id for call_id, _ in shown} == outcomes.keys()
    unknown = 0
    for call_id, settlement in shown:
        assert settlement == outcomes[call_id], f"{call_id} was shown otherwise before"
        if call_id.endswith("look"):
            assert settlement["content"] == "looked"
        elif settlement["status"] == "success":
            assert settlement["content"] == results[call_id]
            assert paid[call_id] == 1
        else:
            assert settlement["code"] == "outcome_unknown"
            assert results[call_id] is None
            unknown += 1
    assert killed == MOST_KILLED
    assert unknown > 0, "no kill came while a payment was under way: the test has shown nothing"
