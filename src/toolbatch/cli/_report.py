"""`toolbatch report`: a run log, an audit file or a journal as one page, one drawing, or JSON."""

import argparse
import io
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from toolbatch.core import encode, preview, sound
from toolbatch.observe import RunRecord, read_run
from toolbatch.operations.kit import is_database

from ._files import STDIN, FileError, write
from ._report_journal import read_journal
from ._report_view import View, make_view

__all__ = ["add_report"]

_LIMIT: Final = 1000


def add_report(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    report = commands.add_parser("report", help="draw what happened in a run, call by call", epilog=_EXIT)
    report.add_argument(
        "run", metavar="RUN", help="a run log or audit file (JSON lines; - is standard input), or a SQLite journal"
    )
    report.add_argument("-o", "--output", metavar="FILE", help="write there; default, or with -, is standard output")
    form = report.add_mutually_exclusive_group()
    form.add_argument("--svg", action="store_true", help="write the chart alone, as a drawing")
    form.add_argument("--json", action="store_true", help="write what is known as JSON, all of it")
    report.add_argument(
        "--content",
        action="store_true",
        help="show a journal's arguments and results; of a run log they are shown where it has them",
    )
    report.add_argument("--run-id", metavar="ID", help="only batches of this run")
    report.add_argument(
        "--limit",
        type=_limit,
        default=_LIMIT,
        metavar="N",
        help=f"show at most N calls: what went wrong or came late, then the slowest; default is {_LIMIT}, 0 for all",
    )
    report.set_defaults(command=_report)


_EXIT: Final = (
    "Exit codes: 0 written; 2 the file or an option can't be used. What the file lacks is said on standard error."
)


def _report(options: argparse.Namespace) -> int:
    if options.output is None and not options.json and sys.stdout.isatty():
        raise FileError("a page is not for a terminal: name a file with -o, or pipe it")
    run = _chosen(_read(options.run, content=options.content), options)
    name = "standard input" if options.run == STDIN else Path(options.run).name
    view = make_view(run, options.limit or sys.maxsize)
    write(options.output or STDIN, _rendered(view, name, options))
    return 0


def _rendered(view: View, name: str, options: argparse.Namespace) -> str:
    if options.json:
        return f"{sound(encode(view.run))}\n"
    try:
        from ._report_chart import standalone_svg
        from ._report_page import chart_css, notes, page
    except ImportError as error:
        raise FileError(
            f"a report is drawn with what `pip install toolbatch[report]` brings; {error.name} is missing"
        ) from None
    for note in notes(view):
        sys.stderr.write(f"toolbatch: {note}\n")
    return standalone_svg(view, name, chart_css()) + "\n" if options.svg else page(view, name)


def _read(path: str, *, content: bool) -> RunRecord:
    try:
        if path == STDIN:
            data = sys.stdin.buffer.read()
            if is_database(data):
                raise FileError("-: a journal can't be read from standard input; name its file")
            run = read_run(io.BytesIO(data))
        elif is_database(_head(path)):
            return read_journal(path, content=content)
        else:
            run = read_run(path)
    except OSError as error:
        raise FileError(f"{path}: can't be read: {error.strerror or error}") from None
    if run.lines and run.unreadable == run.lines:
        raise FileError(
            f"{path}: is neither a run log nor an audit file nor a journal: none of its {run.lines} lines is one's"
        )
    return run


def _head(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(16)


def _chosen(run: RunRecord, options: argparse.Namespace) -> RunRecord:
    if options.run_id is None:
        return run
    batches = tuple(batch for batch in run.batches if batch.run_id == options.run_id)
    if not batches:
        known = ", ".join(sorted({batch.run_id for batch in run.batches if batch.run_id})[:10]) or "none"
        raise FileError(f"{options.run}: has no batch of run {preview(options.run_id)}; its runs are {known}")
    return replace(run, batches=batches)


def _limit(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"must be 0 or a whole number above it, not {text}")
    return int(text)
