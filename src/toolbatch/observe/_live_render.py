"""Drawing a live view with rich."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ._live_model import CallRow, RowState, Turn

__all__ = ["render"]

_STYLES: Final[dict[RowState, tuple[str, str, str]]] = {
    "announced": ("·", "dim", "not started yet"),
    "waiting": ("…", "dim", "waits for its turn"),
    "approval": ("?", "magenta", "waits for a person"),
    "running": ("▶", "cyan", "running"),
    "succeeded": ("✔", "green", "succeeded"),
    "failed": ("✘", "red", "failed"),
    "cancelled": ("■", "yellow", "cancelled"),
    "timed_out": ("!", "red", "timed out"),
    "denied": ("⊘", "magenta", "denied"),
    "not_started": ("○", "dim", "never started"),
    "pending": ("▷", "blue", "answered for now"),
}
_ORDER: Final[tuple[RowState, ...]] = ("approval", "running", "waiting", "announced")
_BAR_WIDTH: Final = 20


def render(turns: Sequence[Turn], now: float, max_rows: int) -> RenderableType:
    """Draw turns as they are now, in at most about `max_rows` lines: what goes on comes first, the rest is counted."""
    parts: list[RenderableType] = []
    left = max_rows
    for turn in reversed(turns):  # the latest first, for as long as there is room
        if parts and left < 3:
            break
        table, lines = _turn(turn, now, max(1, left - 2))
        parts.insert(0, table)
        left -= lines + 1
    return Group(*parts) if parts else Text("no calls yet", style="dim")


def _turn(turn: Turn, now: float, room: int) -> tuple[Table, int]:
    rows = list(turn.rows.values())
    shown = rows
    if len(rows) > room:
        first = set(map(id, sorted(rows, key=_importance)[:room]))
        shown = [row for row in rows if id(row) in first]
    table = Table(
        box=None, pad_edge=False, show_header=False, title=_head(turn, rows), title_justify="left", expand=True
    )
    table.title_style = "bold"
    table.add_column(width=1, no_wrap=True)
    table.add_column(ratio=3, no_wrap=True, overflow="ellipsis")
    table.add_column(width=_BAR_WIDTH, no_wrap=True)
    table.add_column(width=12, justify="right", no_wrap=True)
    table.add_column(ratio=4, no_wrap=True, overflow="ellipsis")
    for row in shown:
        table.add_row(*_cells(row, now))
    if len(shown) < len(rows):
        table.add_row("", Text(f"and {len(rows) - len(shown)} more", style="dim"), "", "", "")
    return table, len(shown) + 1 + (len(shown) < len(rows))


def _importance(row: CallRow) -> int:
    if row.state in _ORDER:
        return _ORDER.index(row.state)
    return 1 if row.goes_on else len(_ORDER)


def _head(turn: Turn, rows: Iterable[CallRow]) -> Text:
    counts = Counter(row.state for row in rows)
    head = Text(f"Turn {turn.number}", style="bold")
    if turn.run_id:
        head.append(f" of {turn.run_id}", style="not bold")
    for state, number in counts.items():
        _, style, words = _STYLES[state]
        head.append(f"  {number} {words}", style=f"not bold {style}")
    if turn.closed is not None:
        head.append(f"  closed: {turn.closed}", style="not bold dim")
    return head


def _cells(row: CallRow, now: float) -> tuple[RenderableType, ...]:
    mark, style, words = _STYLES[row.state]
    name = Text.assemble((row.tool, style if row.is_open else "default"), (f"  {row.call_id}", "dim"))
    return Text(mark, style=style), name, _bar(row, now), _time(row, now), _note(row, words, style)


def _bar(row: CallRow, now: float) -> RenderableType:
    """Draw how much of its time a running call has left; or how much it says is done, where it has no bound."""
    if row.state != "running":
        return Text("")
    if row.bound is None:
        if row.share is None:
            return ProgressBar(total=None, pulse=True, width=_BAR_WIDTH, animation_time=now)
        return ProgressBar(
            total=1.0, completed=row.share, width=_BAR_WIDTH, complete_style="cyan", finished_style="cyan"
        )
    left = max(0.0, row.bound - (now - row.since))
    share = left / row.bound if row.bound else 0.0
    colour = "green" if share > 0.5 else "yellow" if share > 0.2 else "red"
    return ProgressBar(total=1.0, completed=share, width=_BAR_WIDTH, complete_style=colour, finished_style=colour)


def _time(row: CallRow, now: float) -> Text:
    if row.state == "running":
        gone = now - row.since
        return Text(f"{gone:.1f} s" if row.bound is None else f"{max(0.0, row.bound - gone):.1f} s left")
    if row.took is not None:
        return Text(f"{row.took:.1f} s", style="dim")
    return Text(f"{now - row.since:.1f} s", style="dim") if row.is_open else Text("")


def _note(row: CallRow, words: str, style: str) -> Text:
    if row.state != "running":
        note = Text(words, style=style)
        if row.came_late:
            note.append(f", then {row.came_late}", style="yellow")
        elif row.goes_on:
            note.append(", not ended yet", style="yellow")
        return note
    percent = "" if row.share is None else f"{row.share:.0%} "
    return Text.assemble((percent, "bold cyan"), row.said)
