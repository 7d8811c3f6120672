"""The benchmark compares like with like: both sides keep the same results, and both refuse a second claim."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks import operations
from tests.operations import pg
from tests.operations.kit import completed
from toolbatch.operations import SqliteOperationStore
from toolbatch.ports import Operation


@pytest.mark.parametrize("log", [False, True])
async def test_both_sides_keep_the_result_in_a_file(tmp_path: Path, log: bool) -> None:
    """And notice what was claimed before."""
    for side in operations._sqlite(log=log)(str(tmp_path)):
        async with side as ledger:
            await ledger("t/r/1")
            with pytest.raises(AssertionError):
                await ledger("t/r/1")
    async with SqliteOperationStore(tmp_path / "ours.db") as store:
        asked = Operation("t/r/1", "pay", {"amount": 50, "to": "t/r/1"})
        assert await completed(store, asked) == operations.RESULT
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as look:
        assert look.execute("SELECT result FROM operation").fetchall() == [(operations.RESULT,)]


async def test_both_sides_keep_the_result_on_a_server(postgres: pg.Server, schema: str) -> None:
    """Likewise."""
    for side in operations._postgres(2, schema)(postgres.dsn):
        async with side as ledger:
            await ledger("t/r/1")
            with pytest.raises(AssertionError):
                await ledger("t/r/1")
