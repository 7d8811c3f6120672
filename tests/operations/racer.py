"""A process that races for operations until all are claimed: run by the tests that kill it.

It appends a line to the log before it runs an operation and one after its completion was acknowledged. What is written to
a file stays when the process is killed: only the machine's end would lose it.
"""

import asyncio
import os
import random
import sys

from toolbatch.operations import PostgresOperationStore, SqliteOperationStore
from toolbatch.ports import Claimed, Operation, OperationStore

CALLERS = 8


def store_at(place: str) -> OperationStore:
    """Return the store: a file, or a database and a schema."""
    if place.startswith("postgresql:"):
        dsn, _, schema = place.partition("#")
        return PostgresOperationStore(dsn, schema=schema, connections=1, timeout=45.0)
    return SqliteOperationStore(place, lock_timeout=30.0)


async def main(place: str, log: str, count: int) -> None:
    """Race."""
    lines = os.open(log, os.O_WRONLY | os.O_APPEND)
    async with store_at(place) as store:
        numbers = iter(random.sample(range(count), count))

        async def caller() -> None:
            for number in numbers:
                name = f"t/run/{number:04}"
                claim = await store.claim(Operation(name, "pay", {"number": number}))
                if isinstance(claim, Claimed):
                    os.write(lines, f"ran {name} {os.getpid()}\n".encode())
                    await store.complete(claim.token, f"{os.getpid()}".encode())
                    os.write(lines, f"completed {name} {os.getpid()}\n".encode())

        await asyncio.gather(*(caller() for _ in range(CALLERS)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
