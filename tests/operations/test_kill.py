"""Processes that race for the same operations and are killed at random moments: nothing is run twice, nothing told is lost.

A kill shows that claims are atomic and that what was acknowledged has left the process. It can't show that it has reached the
disk, since the system keeps what a killed process wrote: see test_power.py.
"""

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from tests.operations import pg, racer
from tests.operations.kit import start
from toolbatch.ports import Claimed, Completed, Operation, Unknown

PROCESSES = 8
OPERATIONS = 1000
MOST_KILLED = 10
"""In a round; each costs the start of another interpreter."""
SECONDS = 4.0
"""For how long rounds are begun."""


def race(place: str, log: Path) -> int:
    """Let them race, kill one after the other and start another in its place; return how many were killed."""
    log.touch()
    racers = [start(racer.__file__, place, log, OPERATIONS) for _ in range(PROCESSES)]
    killed = 0
    while any(one.poll() is None for one in racers):
        turn = random.randrange(PROCESSES)
        try:
            racers[turn].wait(random.uniform(0.01, 0.12))
        except subprocess.TimeoutExpired:
            if log.stat().st_size < 100 or killed >= MOST_KILLED:
                continue  # still importing, or near the end
            racers[turn].send_signal(signal.SIGKILL)
            racers[turn].wait()
            killed += 1
            _closed(racers[turn])
            racers[turn] = start(racer.__file__, place, log, OPERATIONS)
    for one in racers:
        assert one.returncode == 0, _closed(one)
        _closed(one)
    return killed


def _closed(process: "subprocess.Popen[bytes]") -> bytes:
    assert process.stderr is not None
    with process.stderr as errors:
        return errors.read()


async def judge(place: str, log: Path) -> int:
    """Compare what was run and told with what the store says; return how many outcomes are unknown."""
    lines = [line.split() for line in log.read_text(encoding="ascii").splitlines()]
    runs = Counter(name for word, name, _ in lines if word == "ran")
    told = {name: pid for word, name, pid in lines if word == "completed"}
    assert set(runs.values()) == {1}, "an operation was run twice"
    assert set(told) <= set(runs)
    unknown = 0
    async with racer.store_at(place) as store:
        for number in range(OPERATIONS):
            name = f"t/run/{number:04}"
            answer = await store.claim(Operation(name, "pay", {"number": number}))
            if name in told:
                assert isinstance(answer, Completed), f"{name} was told to be completed, and is {answer}"
                assert answer.result == told[name].encode()
            assert not isinstance(answer, Claimed), f"{name} is free, though all were claimed"
            unknown += isinstance(answer, Unknown)
    return unknown


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is one: syncing it takes no time, so more is killed in the same time."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as made:
        yield Path(made)


def check(folder: Path, places: Iterator[str]) -> None:
    """Eight processes of eight callers race for a thousand operations, round after round."""
    until = time.monotonic() + SECONDS
    killed = unknown = rounds = 0
    while rounds == 0 or time.monotonic() < until:
        place, log = next(places), folder / f"log-{rounds}"
        killed += race(place, log)
        unknown += asyncio.run(judge(place, log))
        rounds += 1
    assert killed > 0, f"{rounds} rounds were over before anything was killed"
    assert unknown <= killed * racer.CALLERS


@pytest.mark.timeout(300)
def test_what_is_killed_runs_nothing_twice_and_loses_nothing(folder: Path) -> None:
    """On one file."""
    check(folder, (str(folder / f"{number}.db") for number in count()))
    for file in folder.glob("*.db"):
        with closing(sqlite3.connect(file)) as look:
            assert look.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.timeout(300)
def test_what_is_killed_on_a_server_runs_nothing_twice_and_loses_nothing(folder: Path, postgres: pg.Server) -> None:
    """On one PostgreSQL."""
    check(folder, (f"{postgres.dsn}#race_{number}" for number in count()))
