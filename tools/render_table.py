"""Writes docs/state-machine.md from the table of a call's life; with `--check`, fails if the page is not what it would write.

python tools/render_table.py            # write the page
python tools/render_table.py --check    # exit 1 if it is out of date; CI runs this
"""

import argparse
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from toolbatch.core import LATE, TABLE, Input, State
from toolbatch.core._table import Cell, Table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "state-machine.md"

STATES = {
    State.ANNOUNCED: "The model asked for it. Nothing is known to have begun.",
    State.RUNNING: "The core was told that its execution began, so its side effects are unknown until it answers.",
    State.SUCCESS: "The tool answered.",
    State.ERROR: "The tool reported an error, or we closed the call as one.",
    State.CANCELLED: "The tool ended as cancelled, or we closed the call as cancelled.",
}

INPUTS = {
    Input.START: ("`start`", "Its execution began."),
    Input.SUCCEED: ("`succeed`, `settle`", "The tool's result."),
    Input.FAIL: ("`fail`, `settle`", "The tool's error."),
    Input.CANCEL: ("`cancel`, `settle`", "The tool itself ended as cancelled."),
    Input.CLOSE_ERROR: ("`close_call`, `close`", "We give it up, as an error."),
    Input.CLOSE_CANCELLED: (
        "`close_call`, `close`, `begin`",
        "We call it off: a deadline, an abort, a newer batch.",
    ),
}

PAGE_TEXT = """\
<!-- Written by tools/render_table.py from src/toolbatch/core/_table.py. Change the table, then run `make docs`. -->

# The life of a call

Each call that a model announces goes through this table once. A row is where the call stands, a column is what happens to
it, and a cell is where it goes.

{grid}

```mermaid
{diagram}
```

## States

{states}

`ANNOUNCED` and `RUNNING` are both `pending` in a snapshot. The other three are final.

## Inputs

{inputs}

The first four are reports of the tool, the last two are decisions of ours. The state that they lead to is the same, since the
model needs to read an error or a cancellation whoever decided it. Who did is in the outcome: `Failed` and `Cancelled` are
`reported`, `Closed` is `synthetic`.

## Why late is not wrong

`late` means that the call has its outcome, which stands. A tool that answers just after its deadline has done nothing wrong,
and neither has the host that set the deadline: they raced, and one of them was first. So a late input raises nothing. The
closure answers with a `Rejected` that says why, and keeps a diagnostic of it.

That is also why no cell is an error. What is wrong, such as a blank id or a result that is not JSON, is refused before it
becomes an input; and what depends on the batch, such as a handle of an older generation, is decided before the table is asked.

To be told twice that a call began is no news, so `RUNNING` stays where it is. A `start` that comes after the outcome is late
like anything else, and tells a worker not to begin.
"""


def cell_text(cell: Cell) -> str:
    """Return a cell as the grid shows it."""
    return "late" if cell is LATE else cell.name


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with aligned columns, so that a change of one cell is a change of one line."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    return "\n".join([line(head), line(["-" * width for width in widths]), *map(line, rows)])


def grid(table: Table) -> str:
    """Return the whole table: a row a state, a column an input."""
    rows = [[state.name, *(cell_text(table[state][event]) for event in Input)] for state in State]
    return markdown_table(["state \\ input", *(event.name for event in Input)], rows)


def diagram(table: Table) -> str:
    """Return the transitions as a Mermaid state diagram; inputs that go the same way share an arrow."""
    lines = ["stateDiagram-v2", f"    [*] --> {State.ANNOUNCED.name}"]
    for state in State:
        ways: dict[State, list[str]] = {}
        for event in Input:
            cell = table[state][event]
            if cell is not LATE:
                ways.setdefault(cell, []).append(event.name)
        lines += [f"    {state.name} --> {target.name}: {', '.join(events)}" for target, events in ways.items()]
        if not ways:
            lines.append(f"    {state.name} --> [*]")
    return "\n".join(lines)


def render(table: Table) -> str:
    """Return the page that shows `table`."""
    states = markdown_table(["state", "meaning"], [[f"`{state.name}`", STATES[state]] for state in State])
    inputs = markdown_table(
        ["input", "comes from", "meaning"], [[f"`{event.name}`", *INPUTS[event]] for event in Input]
    )
    return PAGE_TEXT.format(grid=grid(table), diagram=diagram(table), states=states, inputs=inputs)


def check(page: Path, expected: str) -> str | None:
    """Return why `page` is not what it should be, or `None` if it is."""
    if not page.is_file():
        return f"{page} does not exist; run `make docs`"
    actual = page.read_text(encoding="utf-8")
    if actual == expected:
        return None
    changes = difflib.unified_diff(
        actual.splitlines(), expected.splitlines(), "the page", "the table says", lineterm="", n=0
    )
    return "\n".join([f"{page} does not show the table; run `make docs` and read the change:", *changes])


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the page; return the exit status."""
    parser = argparse.ArgumentParser(description="Draw docs/state-machine.md from the table of a call's life.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is out of date")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page (default: %(default)s)")
    options = parser.parse_args(arguments)
    page: Path = options.page
    expected = render(TABLE)
    if options.check:
        problem = check(page, expected)
        if problem is not None:
            print(problem, file=sys.stderr)
        return 0 if problem is None else 1
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(expected, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
