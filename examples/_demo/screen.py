"""What the demo shows: with rich in a terminal, as plain lines anywhere else."""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from toolbatch import ExecutionOutcome, StaleResult, ToolBatch
from toolbatch.core import CallSnapshot, Cancelled, Closed, Failed

Tone = Literal["good", "bad", "unsure", "never"]
Voice = Literal["user", "model", "app"]

MARKS: Mapping[Tone, str] = {"good": "✔", "bad": "✘", "unsure": "?", "never": "○"}


@dataclass(frozen=True, slots=True)
class Row:
    """One call of a batch, in words. `code` is empty for a success."""

    tone: Tone
    tool: str
    arguments: str
    happened: str
    code: str
    reads: str
    effects: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one API took the conversation, and what it says to the loop without toolbatch."""

    api: str
    requests: int
    refused: int
    by_hand: str


def rows_of(batch: ToolBatch, threads: Collection[str]) -> list[Row]:
    """Say what became of each call; `threads` are the tools that run in a thread."""
    if batch.result is None:
        return []
    outcomes = batch.outcomes
    return [_row(call, outcomes[call.id], threads) for call in batch.result.calls]


def _row(call: CallSnapshot, outcome: ExecutionOutcome, threads: Collection[str]) -> Row:
    arguments = ", ".join(str(value) for value in call.call.arguments.values())
    match call.settlement:
        case Closed(code=code, message=text, side_effect_state="not_started"):
            return Row("never", call.name, arguments, "never started", code, text, "none")
        case Closed(code=code, message=text):
            why = "too slow" if outcome.status == "timed_out" else "cut off"
            then = "stopped" if outcome.completion == "settled" else "won't stop"
            return Row("unsure", call.name, arguments, f"{why}, {then}", code, text, "unknown")
        case Failed(code=code, message=text) | Cancelled(code=code, message=text):
            return Row(
                "bad", call.name, arguments, f"raised {type(outcome.exception).__name__}", code, text, "as reported"
            )
        case end:
            how = "returned, in a thread" if call.name in threads else "returned"
            return Row("good", call.name, arguments, how, "", end.content if end else "", "as reported")


class Screen(Protocol):
    """Where the demo tells its story."""

    def title(self, head: str, lines: Sequence[str]) -> None: ...
    def scene(self, number: int, head: str) -> None: ...
    def says(self, who: Voice, text: str) -> None: ...
    def batch(self, rows: Sequence[Row]) -> None: ...
    def late(self, records: Sequence[StaleResult], answered: Mapping[str, str]) -> None: ...


class Silent:
    """Tells nothing: for the same conversation on the other two APIs."""

    def title(self, head: str, lines: Sequence[str]) -> None: ...
    def scene(self, number: int, head: str) -> None: ...
    def says(self, who: Voice, text: str) -> None: ...
    def batch(self, rows: Sequence[Row]) -> None: ...
    def late(self, records: Sequence[StaleResult], answered: Mapping[str, str]) -> None: ...


class Stage(Screen, Protocol):
    """A screen with what comes after the story."""

    def verdict(self, rows: Sequence[Verdict]) -> None: ...
    def end(self, text: str, *, good: bool) -> None: ...


class Plain:
    """Plain lines."""

    def title(self, head: str, lines: Sequence[str]) -> None:
        print(head, *lines, sep="\n")

    def scene(self, number: int, head: str) -> None:
        print(f"\n{number}. {head}")

    def says(self, who: Voice, text: str) -> None:
        print(f"   {who}: {text}")

    def batch(self, rows: Sequence[Row]) -> None:
        for row in rows:
            print(f"      {MARKS[row.tone]} {row.tool}({row.arguments}): {row.happened}; side effects: {row.effects}")
            print(f"        the model reads: {f'{row.code}: ' if row.code else ''}{row.reads}")

    def late(self, records: Sequence[StaleResult], answered: Mapping[str, str]) -> None:
        for late in records:
            print(
                f"      {late.name}, answered as {answered[late.call_id]}, ended {late.late_by:.1f} s later: {late.content}"
            )

    def verdict(self, rows: Sequence[Verdict]) -> None:
        print("\nWhat the strict provider says")
        for row in rows:
            print(f"   {row.api}: {row.requests} requests, {row.refused} refused")
            print(f"      the same by hand, after Stop: {row.by_hand}")

    def end(self, text: str, *, good: bool) -> None:
        print(f"\n{'OK' if good else 'BROKEN'}: {text}")


def make_screen() -> Stage:
    """Return the screen that fits: rich's if this is a terminal and rich is installed."""
    if sys.stdout.isatty():
        try:
            from ._rich import Rich
        except ImportError:
            return Plain()
        return Rich()
    return Plain()
