"""An agent that dies in the middle of a payment, and goes on without paying twice.

Run it with `python examples/durable_agent.py`. It needs no network: the agent runs in a process of its own, which kills itself right after the
bank has taken the money and before anybody could write that down. A second process goes on with the turn:

- the payment that was finished has its saved result;
- the one that nobody knows about is looked up at the bank, by its idempotency key, and not made again;
- the mail that had not been started is sent.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from toolbatch import ToolCatalog, ToolSession, current_call, tool
from toolbatch.batch import DurableOperations
from toolbatch.operations import SqliteJournal, SqliteOperationStore
from toolbatch.ports import Done, NotDone, OperationRecord, Resolution, StillUnknown
from toolbatch.providers import openai_chat

RUN = "invoices-of-november"

RESPONSE: dict[str, Any] = {
    "choices": [
        {
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "pay", "arguments": '{"invoice": "A-17"}'},
                    },
                    {
                        "id": "call_2",
                        "type": "function",
                        "function": {"name": "pay", "arguments": '{"invoice": "B-4"}'},
                    },
                    {"id": "call_3", "type": "function", "function": {"name": "mail", "arguments": '{"to": "boss"}'}},
                ],
            },
        }
    ]
}
"""What the model has answered: two payments, and a mail when they are done."""


class Bank:
    """A bank, far away: what it has booked stays booked, whoever dies here. It knows each payment by its idempotency key."""

    def __init__(self, folder: Path) -> None:
        self._book = folder / "the bank's book.jsonl"

    def pay(self, invoice: str, key: str) -> dict[str, Any]:
        """Book a payment."""
        payment = {"invoice": invoice, "number": len(self.payments()) + 1, "key": key}
        with self._book.open("a", encoding="utf-8") as book:
            book.write(f"{json.dumps(payment)}\n")
        return self.receipt(payment)

    def payments(self) -> list[dict[str, Any]]:
        """Everything that was booked."""
        lines = self._book.read_text(encoding="utf-8").splitlines() if self._book.exists() else []
        return [json.loads(line) for line in lines]

    def find(self, key: str | None) -> dict[str, Any] | None:
        """What was booked under a key."""
        return next((self.receipt(payment) for payment in self.payments() if payment["key"] == key), None)

    @staticmethod
    def receipt(payment: dict[str, Any]) -> dict[str, Any]:
        """What the payer gets."""
        return {"paid": payment["invoice"], "receipt": payment["number"]}


def tools_of(bank: Bank, *, dies_at: str | None) -> ToolCatalog:
    """The agent's tools; the process is killed once the bank has booked the payment of `dies_at`."""

    @tool(parallel=False)
    async def pay(invoice: str) -> dict[str, Any]:
        """Pay an invoice."""
        receipt = bank.pay(invoice, current_call().idempotency_key)
        if invoice == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)  # the bank has the order; its answer reaches nobody
        return receipt

    @tool(parallel=False)
    async def mail(to: str) -> str:
        """Send a mail."""
        return f"mailed to {to}"

    return ToolCatalog([pay, mail])


async def agent(folder: Path, *, dies_at: str | None = None) -> list[dict[str, Any]]:
    """Run the turn, or go on with it where the process before this one died; return the messages for the model."""
    bank = Bank(folder)

    async def ask_the_bank(record: OperationRecord) -> Resolution:
        if record.tool != "pay":
            return StillUnknown("only payments can be looked up")
        receipt = bank.find(record.idempotency_key)
        return NotDone() if receipt is None else Done(json.dumps(receipt).encode())

    async with SqliteOperationStore(folder / "operations.db") as store, SqliteJournal(store) as journal:
        operations = DurableOperations(store, tenant="acme", resolver=ask_the_bank)
        previous = await journal.last(RUN)  # None the first time
        calls = openai_chat.calls(RESPONSE) if previous is None else list(previous.calls)
        async with (
            ToolSession(
                tools=tools_of(bank, dies_at=dies_at), interceptors=[operations], journal=journal, run_id=RUN
            ) as session,
            session.batch(calls, resume=previous) as batch,
        ):
            batch.start_all()
            snapshot = await batch.snapshot()
        return openai_chat.results(snapshot)


async def die(folder: Path) -> int:
    """Run the agent in a process that is killed; return how it ended."""
    process = await asyncio.create_subprocess_exec(sys.executable, __file__, str(folder))
    return await process.wait()


async def main() -> list[dict[str, Any]]:
    """Let one agent die, and another one go on."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        ended = await die(folder)
        print(f"The first agent was killed (exit code {ended}) in the middle of a payment.")
        async with SqliteOperationStore(folder / "operations.db") as store:
            for record in await store.unresolved():
                print(f"Nobody knows what became of {record.id}: {record.tool} {record.summary}")
        print("The second agent goes on:")
        messages = await agent(folder)
        for message in messages:
            print(f"  {message['tool_call_id']}  {message['content']}")
        paid = [payment["invoice"] for payment in Bank(folder).payments()]
        print(
            f"The bank has booked {', '.join(paid)}: {len(paid)} payments, {len(paid) - len(set(paid))} of them twice."
        )
    return messages


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(agent(Path(sys.argv[1]), dies_at="B-4"))
    else:
        asyncio.run(main())
