"""One group of steps on PostgreSQL: in one statement what goes as expected; else rows are locked and read, and the rules decide.

Statements and their order are what was measured: isolation is READ COMMITTED, so that a row whose insertion lost against another
process's can be read afterwards; rows are locked in the order of their ids, so that two groups wait for each other in one
direction.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from toolbatch.ports import MAX_OPERATION_RESULT_BYTES

from . import _rules
from ._rules import Row
from ._store import Step

if TYPE_CHECKING:
    import asyncio
    from contextlib import AbstractAsyncContextManager

__all__ = ["MOST_BYTES_AT_ONCE", "Answer", "Connection", "Request", "Statements", "carry_out"]

MOST_BYTES_AT_ONCE: Final = MAX_OPERATION_RESULT_BYTES
"""Of results or records in one statement, unless one alone has more: the server ends a connection that sends it a gigabyte."""

_TYPES: Final = {
    "fingerprint": "bytea",
    "attempt": "int",
    "claimed_at": "float8",
    "completed_at": "float8",
    "result": "bytea",
}
_COMPLETED: Final = ("id", "secret", "completed_at", "result")
_CHANGING: Final = Row._fields[Row._fields.index("claim") :]


class Connection(Protocol):
    """What is used of a connection of asyncpg, which has no types of its own."""

    def transaction(self) -> "AbstractAsyncContextManager[object]":
        """Return a block that is a transaction."""
        ...

    async def execute(self, statement: str, *values: object) -> object:
        """Execute a statement."""
        ...

    async def fetch(self, statement: str, *values: object) -> list[Any]:
        """Execute it and return its rows."""
        ...

    async def fetchrow(self, statement: str, *values: object) -> Any:
        """Execute it and return its first row."""
        ...

    async def fetchval(self, statement: str, *values: object) -> Any:
        """Execute it and return its first value."""
        ...

    async def close(self, *, timeout: float) -> None:
        """Take leave of the server."""
        ...

    def terminate(self) -> None:
        """Drop the connection."""
        ...


class Request(NamedTuple):
    """A step on one operation, and who waits for its answer: `None` for nobody."""

    operation_id: str
    step: Step[Any]
    future: "asyncio.Future[Any] | None"

    @property
    def size(self) -> int:
        """How many bytes of result it sends."""
        return len(self.step.keywords.get("result", b""))


class Answer(NamedTuple):
    """What a step returned or raised."""

    value: Any
    error: BaseException | None


class Statements:
    """The statements, for one schema."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        table, columns = f"{schema}.operation", ", ".join(Row._fields)
        self.at_once = (
            f"WITH added AS (INSERT INTO {table} ({columns}) SELECT * FROM {_unnest(Row._fields)} "  # noqa: S608
            "ON CONFLICT (id) DO NOTHING RETURNING id), "
            f"wanted AS (SELECT * FROM {_unnest(_COMPLETED, after=len(Row._fields))} AS wanted ({', '.join(_COMPLETED)})), "
            f"locked AS MATERIALIZED (SELECT old.id FROM {table} AS old JOIN wanted USING (id) "
            "WHERE old.secret = wanted.secret AND old.completed_at IS NULL ORDER BY old.id FOR UPDATE OF old), "
            f"completed AS (UPDATE {table} AS old SET completed_at = wanted.completed_at, result = wanted.result "
            "FROM wanted JOIN locked USING (id) WHERE old.id = wanted.id RETURNING old.id) "
            "SELECT id FROM added UNION ALL SELECT id FROM completed"
        )
        self.lock = f"SELECT {columns} FROM {table} WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE"  # noqa: S608
        self.there = f"SELECT id FROM {table} WHERE id = ANY($1::text[])"  # noqa: S608
        self.not_locked = f"SELECT id FROM {table} WHERE id = ANY($1::text[]) FOR UPDATE SKIP LOCKED"  # noqa: S608
        self.add = (
            f"INSERT INTO {table} ({columns}) SELECT * FROM {_unnest(Row._fields)} ON CONFLICT (id) DO NOTHING "  # noqa: S608
            "RETURNING id"
        )
        changes = ", ".join(f"{name} = new.{name}" for name in _CHANGING)
        names = ", ".join(("id", *_CHANGING))
        self.update = (
            f"UPDATE {table} AS old SET {changes} FROM {_unnest(('id', *_CHANGING))} AS new ({names}) "  # noqa: S608
            "WHERE old.id = new.id"
        )
        self.delete = f"DELETE FROM {table} WHERE id = ANY($1::text[])"  # noqa: S608
        self.unresolved = (
            f"SELECT {columns} FROM {table} WHERE completed_at IS NULL AND claimed_at < $1 AND starts_with(id, $2) "  # noqa: S608
            "ORDER BY claimed_at, id LIMIT $3"
        )
        self.purge = (
            f"WITH walked AS (SELECT id FROM {table} WHERE id > $1 ORDER BY id LIMIT $2), gone AS ("  # noqa: S608
            f"DELETE FROM {table} AS old USING walked WHERE old.id = walked.id AND CASE WHEN old.completed_at IS NULL "
            "THEN old.claimed_at < $3 ELSE old.completed_at < $4 END RETURNING old.id) "
            "SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM walked), (SELECT max(id) FROM walked)"
        )


def _unnest(names: Iterable[str], after: int = 0) -> str:
    arrays = (f"${place}::{_TYPES.get(name, 'text')}[]" for place, name in enumerate(names, after + 1))
    return f"unnest({', '.join(arrays)})"


class _Rows:
    """The rows of one operation, for the rules: at most one, as it was read and as it is to be."""

    def __init__(self, row: Row | None) -> None:
        self.row = row

    def get(self, operation_id: str) -> Row | None:
        del operation_id  # the only one there is
        return self.row

    def add(self, row: Row) -> Row | None:
        if self.row is not None:
            return self.row
        self.row = row
        return None

    def update(self, row: Row) -> None:
        self.row = row

    def delete(self, operation_id: str) -> None:
        del operation_id
        self.row = None


async def carry_out(connection: Connection, statements: Statements, requests: Sequence[Request]) -> list[Answer]:
    """Carry a group out, durable when this returns, and return its answers in its order.

    What goes as nearly all does, a claim of what is free and a completion of what is claimed, takes one statement. The rest
    takes a transaction. What the connection raises leaves any of it done or not; doing it again comes to the same as once.
    """
    waiting: defaultdict[str, list[int]] = defaultdict(list)
    for place, request in enumerate(requests):
        waiting[request.operation_id].append(place)
    answers = await _at_once(connection, statements, requests, waiting)
    for place in answers:
        del waiting[requests[place].operation_id]
    if waiting:
        async with connection.transaction():
            while waiting:
                lost = await _in_turn(connection, statements, requests, waiting, answers)
                waiting = defaultdict(list, {name: places for name, places in waiting.items() if name in lost})
    return [answers[place] for place in range(len(requests))]


async def _at_once(
    connection: Connection, statements: Statements, requests: Sequence[Request], waiting: Mapping[str, Sequence[int]]
) -> dict[int, Answer]:
    """Insert claims where there is no row, and results where there is the token's, and answer those for which that did it."""
    tried: dict[str, tuple[int, Answer]] = {}
    new: list[Row] = []
    results: list[tuple[object, ...]] = []
    for name, places in waiting.items():
        step = requests[places[0]].step
        if len(places) > 1:
            continue  # what comes second depends on what the first did
        if step.func is _rules.claim:
            rows = _Rows(None)
            tried[name] = (places[0], Answer(step(rows), None))  # what the rule says where there is no row
            new += [] if rows.row is None else [rows.row]
        elif step.func is _rules.complete and step.keywords["token"].secret != _rules.NOBODY:
            given = step.keywords
            tried[name] = (places[0], Answer(None, None))
            results.append((name, given["token"].secret, given["now"], given["result"]))
    if not tried:
        return {}
    columns = [*_columns(sorted(new), len(Row._fields)), *_columns(results, len(_COMPLETED))]
    return dict(tried[found["id"]] for found in await connection.fetch(statements.at_once, *columns))


def _columns(rows: Sequence[tuple[object, ...]], width: int) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]


async def _in_turn(
    connection: Connection,
    statements: Statements,
    requests: Sequence[Request],
    waiting: Mapping[str, Sequence[int]],
    answers: dict[int, Answer],
) -> set[str]:
    """Read and lock the rows, let the rules decide, and write; return the ids that another process was first to insert."""
    before = {found["id"]: Row(*found) for found in await connection.fetch(statements.lock, sorted(waiting))}
    after: dict[str, Row | None] = {}
    for operation_id, places in waiting.items():
        rows = _Rows(before.get(operation_id))
        answers.update((place, _answer(requests[place].step, rows)) for place in places)
        after[operation_id] = rows.row
    return await _write(connection, statements, before, after)


def _answer(step: Step[Any], rows: _Rows) -> Answer:
    try:
        return Answer(step(rows), None)
    except Exception as error:  # noqa: BLE001  a refusal is its caller's alone: the others' steps stand
        return Answer(None, error)


async def _write(
    connection: Connection,
    statements: Statements,
    before: Mapping[str, Row],
    after: Mapping[str, Row | None],
) -> set[str]:
    """Write what has changed; return the ids that another process was first to insert."""
    new = sorted(row for name, row in after.items() if row is not None and name not in before)
    changed = [row for name, row in after.items() if row is not None and name in before and row != before[name]]
    gone = [name for name, row in after.items() if row is None and name in before]
    lost = set()
    if new:
        added = await connection.fetch(statements.add, *_columns(new, len(Row._fields)))
        lost = {row.id for row in new} - {found["id"] for found in added}
    if changed:
        columns = _columns([(row.id, *row[-len(_CHANGING) :]) for row in changed], 1 + len(_CHANGING))
        await connection.execute(statements.update, *columns)
    if gone:
        await connection.execute(statements.delete, gone)
    return lost
