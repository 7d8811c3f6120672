"""Tables of figures, each beside its goal, for the terminal and for RESULTS.md."""

import os
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from ._measure import Comparison, Times

__all__ = ["COLUMNS", "PARTS", "RESULTS", "Row", "Table", "cells", "micro", "page", "write"]

RESULTS: Final = Path(__file__).with_name("RESULTS.md")

COLUMNS: Final = ("ours, us: min / median", "theirs, us: min / median", "CPU ratio", "of minima", "wall ratio")
"""Of every comparison of times; see `cells`."""

PARTS: Final = (
    "whole",
    "core",
    "scaling",
    "memory",
    "deadline",
    "session",
    "pipeline",
    "operations",
    "backends",
    "transcript",
    "transcript-growth",
    "peers",
)
"""The benchmarks, in the order in which RESULTS.md has them."""


class Row(NamedTuple):
    """One line of a table.

    Attributes:
        cells: What it says.
        figure: What the goal is about.
        goal: What the figure must not exceed; `None` where the row only informs.
    """

    cells: Sequence[str]
    figure: float
    goal: float | None

    @property
    def verdict(self) -> str:
        """Whether the goal is met, said plainly."""
        if self.goal is None:
            return "no goal"
        return "met" if self.figure <= self.goal else "NOT MET"


class Table(NamedTuple):
    """One benchmark's figures.

    Attributes:
        title: What was measured.
        explanation: How, and against what.
        goal: What DESIGN.md asks for.
        columns: The heads of `Row.cells`.
        rows: The figures.
    """

    title: str
    explanation: str
    goal: str
    columns: Sequence[str]
    rows: Sequence[Row]

    def markdown(self) -> str:
        """Return the table as Markdown whose source can be read as it is."""
        lines = [[*self.columns, "goal"], *[[*row.cells, row.verdict] for row in self.rows]]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
        text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        return "\n".join([f"## {self.title}", "", self.explanation, "", f"Goal: {self.goal}.", "", *text, ""])


def cells(comparison: Comparison, per: int = 1) -> tuple[str, ...]:
    """Return the cells under `COLUMNS`, with times in microseconds for a `per`th of a run."""
    return (
        micro(comparison.ours, per),
        micro(comparison.theirs, per),
        f"{comparison.ratio:.2f}",
        f"{comparison.ratio_of_best:.2f}",
        f"{comparison.wall_ratio:.2f}",
    )


def micro(times: Times, per: int = 1) -> str:
    """Return the least and the median CPU time in microseconds."""
    return f"{min(times.cpu) * 1e6 / per:,.1f} / {median(times.cpu) * 1e6 / per:,.1f}"


def page(tables: Iterable[Table], packages: Iterable[str], command: str) -> str:
    """Return one benchmark's part of RESULTS.md: when and where it was measured, and its tables."""
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    head = (
        f"Measured by `{command}` on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, with "
        f"{platform.python_implementation()} {platform.python_version()} on {platform.system()} {platform.release()} "
        f"({platform.machine()}, {os.cpu_count()} CPUs); {versions}."
    )
    return "\n".join([*[table.markdown() for table in tables], head])


def write(part: str, text: str) -> None:
    """Replace one benchmark's part of RESULTS.md, and leave the others as they are: each says when it was measured."""
    kept = {name: _part(name) for name in PARTS}
    kept[part] = f"\n{text.rstrip()}\n"
    head = (
        "# Results\n\n"
        'Goals are those of DESIGN.md, "Speed". Both sides of a ratio ran in turns in one process. Times are CPU time of\n'
        "that process; a ratio is of medians, ours to theirs: below 1 means that toolbatch is cheaper.\n\n"
    )
    sections = [f"<!-- {name} -->\n{text}<!-- /{name} -->\n" for name, text in kept.items() if text]
    RESULTS.write_text(head + "\n".join(sections), encoding="utf-8")


def _part(name: str) -> str:
    if not RESULTS.exists():
        return ""
    _, _, rest = RESULTS.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")
    return rest.partition(f"<!-- /{name} -->")[0]
