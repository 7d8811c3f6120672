"""A whole agent: tools of every kind, a policy, a person who approves, a budget, progress on the screen, a job that ends later.

Run it with `python examples/agent.py`. The model is a script, played by a local provider that is as strict as the real one; the client
is the real `anthropic` one. Put another `base_url` and model there, and it is an agent. `Agent.run` is all of it; the rest is
its tools.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that a script finds its neighbours

from anthropic import AsyncAnthropic
from pydantic import BaseModel, Field

from toolbatch import Image, Text, Tool, ToolBatch, ToolCatalog, ToolSession, current_call, tool
from toolbatch.output import MemorySpillStore, OutputBudget
from toolbatch.ports import ApprovalRequest, ApprovalRequested, Approve, CallProgress, CallSettled, Deny
from toolbatch.providers import anthropic
from toolbatch.testing import FakeProvider, Reply, ScriptedCall
from toolbatch.tools import (
    Accept,
    InteractiveApprovals,
    Interceptor,
    Prepared,
    Replace,
    ToolResult,
    ToolSuccess,
    Verdict,
)

SECRET = "sk-live-1234"  # noqa: S105  what the redaction below is there for
PIXEL = bytes.fromhex("89504e470d0a1a0a")


class Flight(BaseModel):
    """What a model must say of a flight."""

    to: str
    seats: Annotated[int, Field(ge=1, le=9)] = 1


class Office:
    """Tools with state: an object's methods."""

    def __init__(self) -> None:
        self.booked: list[Flight] = []
        self.notes: dict[str, str] = {}
        self.report_printed = asyncio.Event()

    @tool(needs_approval=lambda arguments: arguments["flight"].seats > 1)
    async def book(self, flight: Flight) -> dict[str, Any]:
        """Book a flight. More than one seat needs an approval."""
        self.booked.append(flight)
        return {"booked": flight, "key": current_call().idempotency_key[:8]}

    @tool(resources=lambda arguments: arguments["name"])
    def write_note(self, name: str, text: str) -> str:
        """Write a note. A plain function: it runs in a thread; two calls never write one note at once."""
        self.notes[name] = text
        return f"{len(text)} characters"

    @tool
    async def search(self, query: str) -> AsyncGenerator[str, None]:
        """Search the web. What it yields first is progress; the last value is the result."""
        yield f"asking for {query}"
        yield "half of the answers are here"
        yield "\n".join(f"{number}. {query} in the year {number}" for number in range(1000, 2000))

    @tool
    async def look(self) -> list[Text | Image]:
        """Take a picture."""
        return [Text("From the window:"), Image.of(PIXEL, "image/png")]

    @tool
    async def print_report(self) -> str:
        """Print the report. It answers at once, and finishes later."""
        current_call().pending("accepted; the printer is warming up")
        await self.report_printed.wait()
        return "the report is printed"

    @tool
    async def read_settings(self) -> str:
        """Read the settings."""
        return f"language=en\napi_key={SECRET}"

    @tool
    async def done(self, summary: str) -> str:
        """Say that everything is done."""
        current_call().conclude_turn()
        return summary


async def forward(**arguments: Any) -> Any:
    """Stands for a remote server, whose tool has a JSON Schema and no signature."""
    return {"converted": arguments["amount"] * 11.7}


CONVERT = Tool.from_schema(
    "convert",
    {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]},
    forward,
    description="Convert euros to crowns.",
)


class Redaction(Interceptor):
    """Keeps secrets out of everything that leaves a tool, whichever it is."""

    async def after(self, call: Prepared, result: ToolResult, proceed: Callable[[], Awaitable[Verdict]]) -> Verdict:  # noqa: ARG002
        """Put a clean text in the place of one with a secret."""
        shown = result.content if isinstance(result, ToolSuccess) else result.message
        if isinstance(shown, str) and SECRET in shown:
            return Replace(shown.replace(SECRET, "[redacted]"))
        return await proceed() if shown else Accept()


def person(request: ApprovalRequest, approvals: InteractiveApprovals) -> None:
    """Stands for a person with two buttons."""
    seats = request.arguments["flight"].seats
    approvals.resolve(request.call_id, Approve() if seats <= 2 else Deny(f"{seats} seats are too many"))


class Agent:
    """A conversation that goes on until the model has nothing to run, or a tool has said that all is done."""

    def __init__(self, client: AsyncAnthropic, office: Office) -> None:
        self.client = client
        self.catalog = ToolCatalog(
            [
                office.book,
                office.write_note,
                office.search,
                office.look,
                office.print_report,
                office.read_settings,
                office.done,
                CONVERT,
            ]
        )
        self.approvals = InteractiveApprovals(lambda request: person(request, self.approvals))
        self.messages: list[Any] = []
        self.screen: list[str] = []

    async def run(self, question: str) -> None:
        """Answer one question."""
        self.messages.append({"role": "user", "content": question})
        async with ToolSession(
            tools=self.catalog,
            call_timeout=5,
            interceptors=[Redaction()],
            approvals=self.approvals,
            budget=OutputBudget(200, store=MemorySpillStore()),
        ) as session:
            concluded = False
            while not concluded:
                response = await self.client.messages.create(
                    model="fake",
                    max_tokens=1000,
                    messages=self.messages,
                    tools=self.catalog.schemas("anthropic"),
                )
                async with session.batch(anthropic.calls(response), timeout=30) as batch:
                    watcher = asyncio.create_task(self.watch(batch))
                    batch.start_all()
                    snapshot = await batch.snapshot()
                    await watcher
                anthropic.extend(self.messages, response, snapshot)
                self.messages += anthropic.notes(session.late_notes())
                concluded = batch.concluded or not snapshot.calls

    async def watch(self, batch: ToolBatch) -> None:
        """Show what happens while it happens."""
        async for event in batch.events():
            match event:
                case CallProgress():
                    self.screen.append(f"  {event.tool_name}: {event.content}")
                case ApprovalRequested():
                    self.screen.append(f"  {event.request.tool_name} waits for a person")
                case CallSettled():
                    self.screen.append(f"  {event.outcome.tool_name}: {event.outcome.status}")
                case _:
                    pass


SCRIPT = [
    Reply(
        "I look around.",
        [
            ScriptedCall("c1", "search", {"query": "tulips"}),
            ScriptedCall("c2", "write_note", {"name": "todo", "text": "book"}),
            ScriptedCall("c3", "write_note", {"name": "todo", "text": "book two seats"}),
            ScriptedCall("c4", "look"),
            ScriptedCall("c5", "print_report"),
            ScriptedCall("c6", "read_settings"),
            ScriptedCall("c7", "convert", {"amount": 100}),
        ],
    ),
    Reply(
        "Now I book.",
        [
            ScriptedCall("c8", "book", {"flight": {"to": "Oslo", "seats": 2}}),
            ScriptedCall("c9", "book", {"flight": {"to": "Oslo", "seats": 9}}),
            ScriptedCall("c10", "book", {"flight": {"to": "Oslo", "seats": 0}}),
            ScriptedCall("c11", "bok", {"flight": {"to": "Oslo"}}),
        ],
    ),
    Reply("That is all.", [ScriptedCall("c12", "done", {"summary": "two seats to Oslo"})]),
]


async def main() -> None:
    """Run the agent, and show what came of it."""
    office = Office()
    async with (
        FakeProvider(SCRIPT) as provider,
        AsyncAnthropic(base_url=provider.anthropic_base_url, api_key="example", max_retries=0) as client,
    ):
        agent = Agent(client, office)
        asyncio.get_running_loop().call_later(0.05, office.report_printed.set)
        await agent.run("Book a flight to Oslo for us.")
    print("\n".join(agent.screen))
    for message in agent.messages:
        if message["role"] == "user" and isinstance(message["content"], list):
            for block in message["content"]:
                print("the model reads:", " ".join(str(block.get("content", block.get("text"))).split())[:110])
    print(f"\n{len(office.booked)} flight booked, {len(provider.requests)} requests, {len(provider.rejected)} refused")


if __name__ == "__main__":
    os.environ["no_proxy"] = "127.0.0.1"  # where a proxy is set, the client must not look for the provider behind it
    asyncio.run(main())
