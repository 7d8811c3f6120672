"""What a report needs of a journal's file beside a journal: all that is in it, while its process may go on.

No part of what is promised to users: it changes when the journal does.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final

from toolbatch.ports import JournaledBatch, OperationStoreError

from ._journal_rows import COLUMNS, JournalRow, batch_of

__all__ = ["batches_on_file", "is_database"]

_READ: Final = (
    f"SELECT {COLUMNS} FROM record JOIN batch ON batch.id = record.batch ORDER BY announced_at, batch.id, number"  # noqa: S608
)


def is_database(head: bytes) -> bool:
    """Whether a file that begins like this is one of SQLite's."""
    return head.startswith(b"SQLite format 3\0")


def batches_on_file(path: str) -> list[JournaledBatch | None]:
    """Return all batches of an SQLite journal, oldest first, and change nothing in it; `None` for one that can't be read.

    Raises:
        OperationStoreError: There is no journal that can be read.
    """
    try:
        connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        with closing(connection):
            rows = map(JournalRow._make, connection.execute(_READ))
            return [_batch_or_none(list(own)) for _, own in groupby(rows, attrgetter("batch"))]
    except (sqlite3.Error, UnicodeDecodeError) as error:  # its complaint may quote what is no text
        raise OperationStoreError(f"{path}: holds no journal that can be read: {error}") from None


def _batch_or_none(rows: Sequence[JournalRow]) -> JournaledBatch | None:
    try:
        return batch_of(rows)
    except OperationStoreError:
        return None
