"""After a power cut at any moment the file holds every claim, result and record that was told: see power.py for what that shows."""

import asyncio
import os
import random
import sys
import tempfile
from pathlib import Path

import pytest

from tests.operations import power
from tests.operations.kit import SOURCE
from toolbatch.operations import SqliteJournal, SqliteOperationStore
from toolbatch.ports import OperationStoreError

PROGRAM = """
import asyncio, os, sys
from toolbatch.operations import SqliteJournal, SqliteOperationStore, _database
from toolbatch.ports import AnnouncedRecord, Operation

path, exclusive, synchronous = sys.argv[1:]
_database._SETTINGS = tuple(
    f"PRAGMA synchronous = {synchronous}" if "synchronous" in setting else setting for setting in _database._SETTINGS
)

async def act(store, journal, number):
    record = AnnouncedRecord(batch_id=f"b/{number}", at=1.0, run_id="r" * 300, generation=1, calls=())
    await journal.append([record])
    os.write(1, f"announced b/{number}\\n".encode())
    claim = await store.claim(Operation(f"t/r/{number}", "pay"))
    os.write(1, f"claimed t/r/{number}\\n".encode())
    await store.complete(claim.token, f"result {number}".encode() * 100)
    os.write(1, f"completed t/r/{number}\\n".encode())

async def main():
    for first in (0, 20):
        async with SqliteOperationStore(path, exclusive=exclusive == "True") as store, SqliteJournal(store) as journal:
            for number in range(first, first + 5):
                await act(store, journal, number)
            await asyncio.gather(*(act(store, journal, number) for number in range(first + 5, first + 20)))

asyncio.run(main())
"""


async def missing(folder: Path, told: str, *, exclusive: bool) -> list[str]:
    """Open what a cut has left, and return what was told and is not there."""
    lost = []
    file = folder / "operations.db"
    async with SqliteOperationStore(file, exclusive=exclusive) as store, SqliteJournal(store) as journal:
        for line in told.splitlines():
            word, name = line.split()
            if word == "announced":
                lost += [] if await journal.read(name) is not None else [line]
                continue
            record = await store.get(name)
            number = name.rpartition("/")[2]
            if record is None or (word == "completed" and record.result != f"result {number}".encode() * 100):
                lost.append(line)
    return lost


def losses(tmp_path: Path, synchronous: str, *, exclusive: bool, all_of_first: int = 0) -> tuple[int, int]:
    """Record a run, cut it at every fifth moment and all of the first, and return how many disks there were and how many lost something."""
    memory = Path("/dev/shm")  # where the disks that are left are read: syncing takes no time there
    place = tmp_path / "place"
    place.mkdir()
    calls = power.record(
        [sys.executable, "-c", PROGRAM, place / "operations.db", exclusive, synchronous],
        tmp_path / "trace",
        {**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    disk = power.Disk(place)
    luck = random.Random(1)
    looked = lost = moment = 0
    for call in calls:
        if not disk.play(call):
            continue
        moment += 1
        if moment > all_of_first and moment % 5:
            continue
        for chance in (None, luck):
            with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as left:
                disk.after_a_cut(Path(left), chance)
                looked += 1
                try:
                    lost += bool(asyncio.run(missing(Path(left), disk.told, exclusive=exclusive)))
                except OperationStoreError:  # a damaged file loses what was told as well
                    lost += 1
    assert disk.told.count("completed") == 40
    return looked, lost


needs_strace = pytest.mark.skipif(not power.is_possible(), reason="strace is missing, or may not trace here")


@needs_strace
@pytest.mark.parametrize("exclusive", [False, True])
def test_a_power_cut_loses_nothing_that_was_told(tmp_path: Path, exclusive: bool) -> None:
    """With the rollback journal as with the write-ahead log, from the making of the file on."""
    looked, lost = losses(tmp_path, "EXTRA", exclusive=exclusive, all_of_first=50)
    assert looked > 100
    assert lost == 0, f"{lost} of {looked} disks have lost what was told"


@needs_strace
@pytest.mark.parametrize("exclusive", [False, True])
def test_the_play_notices_what_is_not_synced(tmp_path: Path, exclusive: bool) -> None:
    """Without syncs most disks lose something, so that the test above can fail."""
    looked, lost = losses(tmp_path, "OFF", exclusive=exclusive)
    assert lost > looked / 2


@needs_strace
def test_the_play_notices_what_is_synced_too_seldom(tmp_path: Path) -> None:
    """SQLite's usual setting for a write-ahead log syncs at checkpoints only."""
    looked, lost = losses(tmp_path, "NORMAL", exclusive=True)
    assert lost > looked / 2
