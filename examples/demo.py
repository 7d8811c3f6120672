"""One conversation in which everything goes wrong that can go wrong, on the real `openai` and `anthropic` clients.

Run it with `make demo` or `python examples/demo.py`. The provider is a local one that is as strict as the real ones
(`toolbatch.testing.FakeProvider`): it needs no key and no network. `Conversation.answer` is the whole agent loop; all else
is the story around it.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that a script finds its neighbours

from examples._demo.lanes import Lane, chat_lane, messages_lane, responses_lane
from examples._demo.screen import Screen, Silent, Stage, Verdict, make_screen, rows_of
from examples._demo.script import SCRIPT
from examples._demo.tools import Agency
from examples.without_toolbatch import refusals
from toolbatch import ToolBatch, ToolSession
from toolbatch.testing import FakeProvider, RecordedRequest

PATIENCE = 20.0  # seconds for one conversation, which takes less than one


class BrokenPromiseError(Exception):
    """Something was not as toolbatch promises."""


def expect(what: str, found: object, wanted: object) -> None:
    """End the demo, saying what was found, unless it is what was promised."""
    if found != wanted:
        raise BrokenPromiseError(f"{what}: found {found!r} instead of {wanted!r}")


class Conversation:
    """A user, a model and a travel agency's tools, on one API."""

    def __init__(self, lane: Lane, session: ToolSession, agency: Agency, screen: Screen) -> None:
        self.lane = lane
        self.session = session
        self.agency = agency
        self.screen = screen
        self.history: list[Any] = []
        self.batch: ToolBatch | None = None  # the latest
        self.ends: dict[str, str] = {}  # what became of each call, by its id

    async def answer(self, history: list[Any], **options: Any) -> None:
        """Let the model call tools until it has an answer: the agent loop."""
        tools, timeouts = self.agency.tools, self.agency.timeouts
        while True:
            response = await self.lane.send(history)
            batch = self.batch = self.session.batch(self.lane.format.calls(response), **options)
            try:
                async with batch:
                    for call in batch.calls:
                        batch.start(call.id, tools[call.name], timeout=timeouts.get(call.name), **call.arguments)
                    snapshot = await batch.snapshot()
            finally:  # however the batch was left, its result has an answer for every call
                if batch.result is not None:
                    self.lane.format.extend(history, response, batch.result)
            if not snapshot.calls:
                self.screen.says("model", self.lane.text(response))
                return
            self.show(batch)
            if snapshot.close_reason and snapshot.close_reason.code == "superseded":
                return  # the newer request goes on instead

    async def play(self) -> None:
        """Tell the whole story."""
        async with asyncio.timeout(PATIENCE):
            try:
                await self.four_tools_at_once()
                await self.the_user_presses_stop()
                await self.the_user_edits_the_question()
                await self.late_results()
            finally:
                self.agency.everyone_answers()  # so that nothing is left running where the story broke off

    async def four_tools_at_once(self) -> None:
        """Four tools run side by side: one blocks, one raises, one is too slow and can't be stopped."""
        self.screen.scene(1, "Four tools at once: one blocks a thread, one raises, one is too slow and won't stop")
        self.says(self.history, "Plan my Saturday in Oslo.")
        await self.answer(self.history)
        expect("four tools at once", self.take_ends(4), ["success", "success", "tool_error", "timeout"])
        expect("how many tools still run", self.session.running, 1)

    async def the_user_presses_stop(self) -> None:
        """The turn's task is cancelled while two tools run and a third waits; the conversation goes on."""
        self.screen.scene(2, "The user presses Stop in the middle of a turn, and the conversation goes on")
        self.says(self.history, "Book a hotel and a table for two, and order tulips.")
        turn = asyncio.create_task(self.answer(self.history, max_concurrency=2))
        await self.agency.hotel_asked.wait()
        await self.agency.restaurant_asked.wait()

        self.screen.says("user", "[presses Stop]")
        self.screen.says("app", "Cancels the turn's task. The history is complete all the same:")
        turn.cancel()
        await asyncio.wait([turn])
        expect("how the turn's task ended", "cancelled" if turn.cancelled() else "otherwise", "cancelled")
        if self.batch is not None:
            self.show(self.batch)
        expect("the turn that was stopped", self.take_ends(3), ["request_aborted"] * 3)

        self.says(self.history, "What is booked now?")
        await self.answer(self.history)

    async def the_user_edits_the_question(self) -> None:
        """A newer request has calls to run while the older one's tool still runs: the older one is superseded."""
        self.screen.scene(3, "The user edits the question: a newer request supersedes the older one")
        older = list(self.history)
        self.says(older, "Find flights to Paris.")
        superseded = asyncio.create_task(self.answer(older))
        await self.agency.airline_asked.wait()

        self.says(self.history, "No: find flights to Rome.")
        await self.answer(self.history)
        await superseded
        expect("the older and the newer turn", self.take_ends(2), ["superseded", "success"])

        self.screen.says("app", "The older branch is complete too, and the user can go back to it:")
        self.says(older, "And Paris?")
        await self.answer(older)

    async def late_results(self) -> None:
        """The tools that would not stop end at last: in the audit channel, and in no history."""
        self.screen.scene(4, "The tools that would not stop end at last: in the audit channel, in no history")
        self.agency.everyone_answers()
        records = [await anext(self.session.audit) for _ in range(3)]
        self.screen.late(records, self.ends)
        late = [(record.name, record.observed_status) for record in records]
        expect("late results", late, [(name, "success") for name in ("book_train", "book_table", "find_flights")])
        expect("how many tools still run", self.session.running, 0)

        self.screen.says(
            "app", "Tells the model of the first two in a new message; what was sent before stays as it is."
        )
        notes = [note for note in self.session.late_notes() if note.name != "find_flights"]
        self.history += self.lane.format.notes(notes)
        await self.answer(self.history)

    def says(self, history: list[Any], text: str) -> None:
        """Put what the user says into the history: the three APIs take the same shape for it."""
        self.screen.says("user", text)
        history.append({"role": "user", "content": text})

    def show(self, batch: ToolBatch) -> None:
        """Show what became of each call."""
        if batch.result is not None:
            rows = rows_of(batch, threads=("read_calendar",))
            self.screen.batch(rows)
            for call, row in zip(batch.result.calls, rows, strict=True):
                self.ends[call.id] = row.code or "success"

    def take_ends(self, count: int) -> list[str]:
        """Return what became of the latest calls."""
        return list(self.ends.values())[-count:]


def answers(request: RecordedRequest) -> list[int]:
    """Return the numbers of the calls whose id is in the request twice: where it is announced, and where it is answered."""
    sent = json.dumps(request.body)
    return [number for number in range(1, 10) if sent.count(f'"call_{number}"') == 2]


async def converse(
    open_lane: Callable[[FakeProvider], AbstractAsyncContextManager[Lane]], screen: Screen
) -> tuple[str, int, int]:
    """Run the conversation on one API; return its name, how many requests there were, and how many were refused."""
    agency = Agency()
    async with FakeProvider(SCRIPT) as provider, open_lane(provider) as lane:
        async with ToolSession(keep_content=True) as session:
            await Conversation(lane, session, agency, screen).play()
        expect(f"refused requests on {lane.name}", [request.error for request in provider.rejected], [])
        expect(f"accepted requests on {lane.name}", len(provider.requests), len(SCRIPT))
        # Accepted is not enough: a history without the calls would be as well.
        expect(f"answers on {lane.name}", answers(provider.requests[-1]), [*range(1, 8), 9])
        expect(f"answers in the older branch on {lane.name}", answers(provider.requests[-2]), list(range(1, 9)))
        return lane.name, len(provider.requests), len(provider.rejected)


async def run(screen: Stage) -> None:
    """Run the conversation on the three APIs, show the first, and then what the providers say of all."""
    screen.title(
        "toolbatch: every tool call gets exactly one answer",
        [
            "The real openai and anthropic clients talk to a local provider that is as strict as theirs:",
            "a history in which a tool call has no answer, or two, is refused with a 400.",
            "",
            "You see the conversation on Chat Completions. Then it runs on Responses and Messages too.",
        ],
    )
    accepted = [
        await converse(chat_lane, screen),
        await converse(responses_lane, Silent()),
        await converse(messages_lane, Silent()),
    ]
    by_hand = await refusals()  # of the same kind of loop without toolbatch
    screen.verdict([Verdict(*counts, by_hand[counts[0]]) for counts in accepted])
    expect("statuses of the loop by hand", {answer[:4] for answer in by_hand.values()}, {"400:"})
    total = sum(requests for _, requests, _ in accepted)
    screen.end(f"{total} requests, 0 refused: every call was answered once, in order, whatever happened.", good=True)


def main() -> int:
    """Return 0 only if all was as promised."""
    screen = make_screen()
    try:
        asyncio.run(run(screen))
    except BrokenPromiseError as broken:
        screen.end(str(broken), good=False)
        return 1
    return 0


if __name__ == "__main__":
    os.environ["no_proxy"] = "127.0.0.1"  # where a proxy is set, the clients must not look for the provider behind it
    sys.exit(main())
