"""A journal in PostgreSQL: in an operation store's schema, over its connections (D4)."""

import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast, final

from toolbatch.core import InvalidInputError, InvalidTypeError, preview
from toolbatch.ports import JournalRecord

from ._journal import BaseJournal
from ._journal_rows import COLUMNS, JournalRow, rows_of
from ._pg_group import MOST_BYTES_AT_ONCE
from ._postgres import PostgresOperationStore

if TYPE_CHECKING:
    from ._pg_group import Connection

__all__ = ["PostgresJournal"]


@final
class PostgresJournal(BaseJournal):
    """Keeps the journal of batches in PostgreSQL, committed, and by that on the disk, before it is told.

    Args:
        store: In whose schema, over whose connections. It has to be closed by itself, after the journal.

    Raises:
        InvalidTypeError: It is no `PostgresOperationStore`.
    """

    def __init__(self, store: PostgresOperationStore) -> None:
        if not isinstance(store, PostgresOperationStore):
            raise InvalidTypeError(f"store must be a PostgresOperationStore, not {preview(store)}")
        self._store = store

    async def aclose(self) -> None:
        """Do nothing: the connections are the store's."""

    async def _append(self, records: Sequence[JournalRecord]) -> None:
        entry = secrets.token_hex(8)  # once, since a connection that breaks has it asked again
        refusal = await self._store.ask(lambda connection, sql: _append(connection, sql.schema, records, entry))
        if refusal is not None:
            raise refusal

    async def _rows(self, batch_id: str) -> Sequence[JournalRow]:
        found = await self._store.ask(
            lambda connection, sql: connection.fetch(
                f"SELECT {COLUMNS} FROM {sql.schema}.record AS record "  # noqa: S608  our own names
                f"JOIN {sql.schema}.batch AS batch ON batch.id = record.batch WHERE record.batch = $1 ORDER BY number",
                batch_id,
            )
        )
        return [JournalRow(*row) for row in found]

    async def _names(self, run_id: str, most: int | None) -> Sequence[str]:
        found = await self._store.ask(
            lambda connection, sql: connection.fetch(
                f"SELECT id FROM {sql.schema}.batch AS batch WHERE run = $1 ORDER BY "  # noqa: S608
                # By no time: clocks are set back.
                f"(SELECT min(number) FROM {sql.schema}.record AS record WHERE record.batch = batch.id) DESC LIMIT $2",
                run_id,
                most,
            )
        )
        return [row[0] for row in found]

    async def _unfinished(self, limit: int) -> Sequence[str]:
        found = await self._store.ask(
            lambda connection, sql: connection.fetch(
                f"SELECT run FROM {sql.schema}.batch WHERE closed_at IS NULL GROUP BY run "  # noqa: S608
                "ORDER BY min(announced_at), min(id) LIMIT $1",
                limit,
            )
        )
        return [row[0] for row in found]

    async def _purge(self, before: float, most: int) -> int:
        found = await self._store.ask(
            lambda connection, sql: connection.fetch(
                f"DELETE FROM {sql.schema}.batch WHERE id IN "  # noqa: S608
                f"(SELECT id FROM {sql.schema}.batch WHERE closed_at < $1 LIMIT $2) RETURNING 1",
                before,
                most,
            )
        )
        return len(found)

    def __repr__(self) -> str:
        return f"<PostgresJournal in {self._store!r}>"


async def _append(
    connection: "Connection", schema: str, records: Sequence[JournalRecord], entry: str
) -> Exception | None:
    """Write records in one transaction; return why that can't be, which is the caller's fault and not the connection's."""
    names = sorted({str(getattr(record, "batch_id", "")) for record in records})
    async with connection.transaction():
        if await connection.fetchval(f"SELECT 1 FROM {schema}.record WHERE entry = $1", f"{entry}-0"):  # noqa: S608
            return None  # it was committed before, and its answer was lost
        known = {row[0] for row in await connection.fetch(f"SELECT id FROM {schema}.batch WHERE id = ANY($1)", names)}  # noqa: S608
        try:
            rows = rows_of(records, known.__contains__)
        except (InvalidInputError, TypeError) as error:
            return error
        for row in rows:
            await _note(connection, schema, row)
        for portion in _portions([(f"{entry}-{number}", row) for number, row in enumerate(rows)]):
            columns: list[list[Any]] = [list(column) for column in zip(*(row for _, row in portion), strict=True)]
            await connection.execute(
                f"INSERT INTO {schema}.record (entry, batch, kind, at, body) SELECT entry, batch, kind, at, body FROM "  # noqa: S608
                "unnest($1::text[], $2::text[], $3::text[], $4::float8[], $5::bytea[]) WITH ORDINALITY "
                "AS new (entry, batch, kind, at, body, place) ORDER BY place",
                [name for name, _ in portion],
                columns[0],
                columns[1],
                columns[2],
                cast("Any", columns[4]),
            )
    return None


def _portions(rows: Sequence[tuple[str, JournalRow]]) -> Iterator[list[tuple[str, JournalRow]]]:
    """Yield rows together for as long as one statement may carry them."""
    portion: list[tuple[str, JournalRow]] = []
    size = 0
    for name, row in rows:
        if portion and size + len(row.body) > MOST_BYTES_AT_ONCE:
            yield portion
            portion, size = [], 0
        portion.append((name, row))
        size += len(row.body)
    yield portion


async def _note(connection: "Connection", schema: str, row: JournalRow) -> None:
    if row.kind == "announced":
        await connection.execute(
            f"INSERT INTO {schema}.batch (id, run, announced_at) VALUES ($1, $2, $3)",  # noqa: S608
            row.batch,
            row.run,
            row.at,
        )
    elif row.kind in ("closed", "resumed"):
        await connection.execute(
            f"UPDATE {schema}.batch SET closed_at = $2 WHERE id = $1",  # noqa: S608
            row.batch,
            row.at if row.kind == "closed" else None,
        )
