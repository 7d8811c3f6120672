"""An agent run in a process of its own, with durable operations and a journal: run by the tests that kill it.

It goes on where the process before it died. What has happened outside - a payment made, an answer shown to the model - is a line of
the log, which stays when the process is killed.
"""

import asyncio
import json
import os
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from toolbatch import ToolCall, ToolSession, current_call
from toolbatch.batch import DurableOperations
from toolbatch.operations import PostgresJournal, PostgresOperationStore, SqliteJournal, SqliteOperationStore
from toolbatch.ports import Journal, OperationStore

RUN = "run-1"
CALLS = 6


def calls_of(turn: int) -> list[ToolCall]:
    """What the model announces in a turn: payments, and a look at something."""
    pays = [ToolCall(f"{turn:04}-{number}", "pay", {"amount": number}) for number in range(CALLS - 1)]
    return [*pays, ToolCall(f"{turn:04}-look", "look")]


@asynccontextmanager
async def kept_at(place: str) -> AsyncIterator[tuple[OperationStore, Journal]]:
    """The store and the journal at a place: a folder, or a database and a schema."""
    if place.startswith("postgresql:"):
        dsn, _, schema = place.partition("#")
        async with PostgresOperationStore(dsn, schema=schema, connections=1) as server:
            yield server, PostgresJournal(server)
    else:
        async with SqliteOperationStore(f"{place}/operations.db") as store, SqliteJournal(store) as journal:
            yield store, journal


async def main(place: str, log: str, turns: int) -> None:
    """Run the agent to its last turn."""
    lines = os.open(log, os.O_WRONLY | os.O_APPEND)

    async def pay(amount: int) -> dict[str, Any]:
        os.write(lines, f"paid {current_call().call_id} {current_call().idempotency_key}\n".encode())
        for _ in range(random.randrange(1, 5)):
            await asyncio.sleep(random.choice([0, 0.004]))
        return {"paid": amount, "by": os.getpid()}

    def look() -> str:
        return "looked"

    async with kept_at(place) as (store, journal):
        hook = DurableOperations(store, tenant="t", read_only={"look"})
        tools: dict[str, Any] = {"pay": pay, "look": look}
        async with ToolSession(tools=tools, interceptors=[hook], journal=journal, run_id=RUN) as session:
            done = len(await journal.batches(RUN))
            last = await journal.last(RUN)
            turn = max(0, done - 1)
            while turn < turns:
                resume = last if turn == done - 1 else None
                async with session.batch(calls_of(turn), resume=resume) as batch:
                    batch.start_all()
                    snapshot = await batch.snapshot()
                shown = json.dumps(snapshot.to_dict()["calls"])
                os.write(lines, f"shown {turn} {shown}\n".encode())
                turn += 1


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
