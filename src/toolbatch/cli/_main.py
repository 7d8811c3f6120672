"""Arguments in, exit code out."""

import argparse
import errno
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypedDict

from toolbatch import transcript
from toolbatch.core import ToolbatchError
from toolbatch.transcript import LANES, LaneName, RepairedTranscript

from ._diff import diff
from ._doctor import add_doctor
from ._files import STDIN, Conversation, Document, FileError, read, write
from ._operations import add_operations
from ._report import add_report
from ._terminal import Row, progress, show

__all__ = ["main"]

_LAWFUL: Final = 0
_BROKEN: Final = 1
_UNUSABLE: Final = 2

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 lawful, 1 not lawful, 2 a file or an option can't be used."""
    options = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        code = command(options)
        sys.stdout.flush()
        return code
    except OSError as error:
        if not isinstance(error, BrokenPipeError) and error.errno not in _FULL:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left must not fail at exit again
        if isinstance(error, BrokenPipeError):  # the reader of our pipe has seen enough
            return _BROKEN
        sys.stderr.write(f"toolbatch: standard output can't be written: {error.strerror}\n")
        return _UNUSABLE
    except FileError as error:
        sys.stderr.write(f"toolbatch: {error}\n")
        return _UNUSABLE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="toolbatch", description="Look after tool calls: stored conversations, runs, and the machine they run on."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    check = commands.add_parser("check", help="say what breaks the law of tool turns", epilog=_EXIT)
    check.add_argument("files", nargs="+", metavar="FILE", help="JSON or JSON lines; - is standard input")
    check.add_argument("--json", action="store_true", help="write the violations as JSON lines instead of a table")
    check.set_defaults(command=_check)

    repair = commands.add_parser("repair", help="write a conversation that keeps the law", epilog=_EXIT)
    repair.add_argument(
        "files", nargs="+", metavar="FILE", help="JSON or JSON lines; - is standard input; several with -i"
    )
    target = repair.add_mutually_exclusive_group()
    target.add_argument("-o", "--output", metavar="FILE", help="write there; default is standard output")
    target.add_argument("-i", "--in-place", action="store_true", help="write the file itself, whole or not at all")
    repair.add_argument(
        "--diff", action="store_true", help="write a diff to standard output, and the list only with -o or -i"
    )
    repair.add_argument(
        "--sent", type=int, default=0, metavar="N", help="the first N messages were sent: change none of them"
    )
    repair.add_argument("--arguments", action="store_true", help="also replace arguments that are no JSON object")
    repair.set_defaults(command=_repair)

    for command in (check, repair):
        command.add_argument(
            "--lane", choices=LANES, metavar="LANE", help=f"one of {', '.join(LANES)}; found if not given"
        )
        command.add_argument(
            "--open-last", action="store_true", help="leave a last turn alone that can still be executed"
        )
        command.add_argument(
            "--server-context", action="store_true", help="earlier context is on the server: keep orphans"
        )
    add_operations(commands)
    add_report(commands)
    add_doctor(commands)
    return parser


_EXIT: Final = (
    "Exit codes: 0 all is lawful, or is now; 1 something breaks the law; 2 a file or an option can't be used."
)


def _check(options: argparse.Namespace) -> int:
    rows: list[Row] = []
    counts = [0, 0, 0]  # conversations, broken ones, messages
    for path in options.files:
        document = _read(path)
        for one in document.conversations:
            where = _where(document, one)
            with _naming(where):
                found = transcript.check(one.messages, _lane(one, options), **_context(one, options))
            counts = [counts[0] + 1, counts[1] + bool(found), counts[2] + len(one.messages)]
            rows += [(where, str(v.position), v.form, ", ".join(v.call_ids), v.text) for v in found]
    if options.json:
        names = ("where", "message", "form", "calls", "text")
        sys.stdout.writelines(f"{json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)}\n" for row in rows)
    else:
        show(rows, _summary(len(rows), "violation", counts), sys.stdout)
    return _BROKEN if rows else _LAWFUL


def _repair(options: argparse.Namespace) -> int:
    if len(options.files) > 1 and not options.in_place:
        raise FileError("several files can be repaired with --in-place only")
    done = _Done()
    for path in options.files:
        document = _read(path)
        views = [_repaired(document, one, options, done) for one in document.conversations]
        text = document.rendered(views)
        if options.diff:
            for one, view in zip(document.conversations, views, strict=True):
                sys.stdout.writelines(diff(one.messages, view, _where(document, one)))
        if options.output is not None or (path == STDIN and options.in_place):
            write(options.output or STDIN, text)
        elif options.in_place and text != document.text:
            write(path, text)
        elif not options.in_place and not options.diff:
            write(STDIN, text)
    summary = _summary(len(done.rows), "repair", done.counts)
    show(
        done.rows, f"{summary}; recorded content was left out: keep the original" if done.lossy else summary, sys.stderr
    )
    return _BROKEN if done.remains else _LAWFUL


class _Done:
    """What `repair` has done so far.

    Attributes:
        rows: Repairs, and what remains.
        counts: Conversations, those with rows, messages.
        lossy: Whether content was left out.
        remains: Whether something could not be repaired.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.counts = [0, 0, 0]
        self.lossy = False
        self.remains = False


def _repaired(document: Document, one: Conversation, options: argparse.Namespace, done: _Done) -> list[Any]:
    """Return a conversation's repaired messages."""
    where = _where(document, one)
    with _naming(where):
        lane = _lane(one, options)
        view = transcript.repair(one.messages, lane, sent=options.sent, **_context(one, options))
        messages, rows = view.messages, _rows(where, view)
        if options.arguments:  # what was sent stays as it is, its arguments too
            mended = transcript.repair_arguments(messages[options.sent :], lane)
            rows += [(where, str(r.position + options.sent), "arguments", r.call_id, r.text) for r in mended.repairs]
            messages = [*messages[: options.sent], *mended.messages] if mended.repairs else messages
    done.rows += rows
    done.counts = [done.counts[0] + 1, done.counts[1] + bool(rows), done.counts[2] + len(one.messages)]
    done.lossy |= view.lossy
    done.remains |= bool(view.remaining)
    return messages


def _rows(where: str, view: RepairedTranscript) -> list[Row]:
    done = [(where, str(r.position), r.form, ", ".join(r.call_ids), r.text) for r in view.repairs]
    left = [
        (where, str(v.position), v.form, ", ".join(v.call_ids), f"{v.text}: was sent, so it stays")
        for v in view.remaining
    ]
    return [*done, *left]


def _read(path: str) -> Document:
    file = Path(path)
    size = file.stat().st_size if path != STDIN and file.is_file() else 0
    with progress(size) as advance:
        return read(path, advance)


class _Context(TypedDict):
    """What the law has to know beside the messages."""

    repair_last: bool
    server_context: bool


def _context(one: Conversation, options: argparse.Namespace) -> _Context:
    return {
        "repair_last": not options.open_last,
        "server_context": options.server_context or one.server_context,
    }


def _lane(one: Conversation, options: argparse.Namespace) -> LaneName:
    if options.lane is not None:
        lane: LaneName = options.lane
        return lane
    return "openai_responses" if one.key == "input" else transcript.detect(one.messages)


@contextmanager
def _naming(where: str) -> Iterator[None]:
    """Put the place in front of what is wrong there."""
    try:
        yield
    except ToolbatchError as error:
        raise FileError(f"{where}: {error}") from error


def _where(document: Document, one: Conversation) -> str:
    return document.path if len(document.conversations) == 1 else f"{document.path}#{one.number}"


def _summary(found: int, what: str, counts: Sequence[int]) -> str:
    conversations, broken, messages = counts
    return (
        f"{found} {what}{'' if found == 1 else 's'} in {broken} of {conversations} "
        f"conversation{'' if conversations == 1 else 's'}, {messages} messages"
    )
