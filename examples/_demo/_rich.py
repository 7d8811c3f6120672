"""The demo's screen in a terminal."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from toolbatch import StaleResult

from .screen import MARKS, Row, Tone, Verdict, Voice

COLOURS: Mapping[Tone, str] = {"good": "green", "bad": "red", "unsure": "yellow", "never": "blue"}
VOICES: Mapping[Voice, str] = {"user": "bold cyan", "model": "bold magenta", "app": "bold blue"}
FRAME = "bright_black"
MAX_WIDTH = 100


class Rich:
    """Tables and colours."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._console.width = min(self._console.width, MAX_WIDTH)

    def title(self, head: str, lines: Sequence[str]) -> None:
        self._console.print()
        self._console.print(Panel("\n".join(lines), title=f"[bold cyan]{head}", border_style="cyan", padding=(1, 2)))

    def scene(self, number: int, head: str) -> None:
        self._console.print()
        self._rule(f"[cyan]{number}[/cyan]  {head}")

    def says(self, who: Voice, text: str) -> None:
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(width=5, justify="right")
        line.add_column()
        line.add_row(Text(who, VOICES[who]), Text(text, "dim italic" if who == "app" else ""))
        self._console.print(line)

    def batch(self, rows: Sequence[Row]) -> None:
        table = self._table(("call", 24), ("what happened", 22), ("what the model reads", None), ("side effects", 12))
        for row in rows:
            colour = COLOURS[row.tone]
            table.add_row(
                Text.assemble((f"{MARKS[row.tone]} {row.tool} ", f"bold {colour}"), row.arguments),
                Text(row.happened, colour),
                Text.assemble((f"{row.code}\n" if row.code else "", f"bold {colour}"), row.reads),
                Text(row.effects, "dim" if row.effects == "as reported" else f"bold {colour}"),
            )
        self._console.print(table)

    def late(self, records: Sequence[StaleResult], answered: Mapping[str, str]) -> None:
        table = self._table(
            ("late result of", 24), ("answered before as", 22), ("returned after all", None), ("late by", 12)
        )
        for late in records:
            when = Text(f"{late.late_by:.1f} s", "bold yellow")
            table.add_row(Text(f"! {late.name}", "bold yellow"), answered[late.call_id], late.content, when)
        self._console.print(table)

    def verdict(self, rows: Sequence[Verdict]) -> None:
        self._console.print()
        self._rule("What the strict provider says")
        table = self._table(("API", 16), ("with toolbatch", 16), ("the same loop by hand, after Stop", None))
        table.show_lines = True
        for row in rows:
            accepted = Text(f"✔ {row.requests} requests\n✔ {row.refused} refused", "red" if row.refused else "green")
            table.add_row(Text(row.api, "bold"), accepted, Text(f"✘ {row.by_hand}", "red"))
        self._console.print(table)

    def end(self, text: str, *, good: bool) -> None:
        colour = "green" if good else "red"
        self._console.print(Panel(Text(text, f"bold {colour}", justify="center"), border_style=colour))

    def _rule(self, title: str) -> None:
        self._console.print(Rule(f"[bold]{title}", align="left", style="cyan"))

    def _table(self, *columns: tuple[str, int | None]) -> Table:
        table = Table(box=box.ROUNDED, border_style=FRAME, header_style="dim", expand=True)
        for name, width in columns:
            table.add_column(name, width=width, ratio=None if width else 1, overflow="fold")
        return table
