"""What a person sees: tables and a progress bar with rich where a terminal and rich are there, plain lines where not."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TextIO

__all__ = ["Row", "progress", "show"]

Row = tuple[str, str, str, str, str]
"""Where (file and conversation), the message's number, the form, the calls, and the sentence."""

BIG: Final = 1 << 20
"""Bytes from which a progress bar is worth its lines."""


def show(rows: Sequence[Row], summary: str, stream: TextIO) -> None:
    """Write a table and a summary."""
    if rows and stream.isatty() and _table(rows, stream):
        stream.write(f"{summary}\n")
        return
    stream.writelines(f"{where}: {form}: {text}\n" for where, _, form, _, text in rows)
    stream.write(f"{summary}\n")


def _table(rows: Sequence[Row], stream: TextIO) -> bool:
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(box=None, pad_edge=False, header_style="bold")
    several = len({where for where, *_ in rows}) > 1
    heads = ["message", "form", "calls", "what"]
    for head in ["where", *heads] if several else heads:
        table.add_column(head, justify="right" if head == "message" else "left", overflow="fold")
    for where, *cells in rows:
        table.add_row(*(Text(cell) for cell in ([where, *cells] if several else cells)))
    Console(file=stream).print(table)
    return True


@contextmanager
def progress(total: int) -> Iterator[Callable[[int], object]]:
    """Show how far the reading of `total` bytes is, if that is worth it; yields what is to be told of each step."""
    if total < BIG or not sys.stderr.isatty():
        yield _silent
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        yield _silent
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=total)
        yield lambda step: bar.advance(task, step)


def _silent(_: int) -> None:
    pass
