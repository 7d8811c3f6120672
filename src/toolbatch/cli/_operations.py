"""`toolbatch operations`: what is open in a store, for the person who has to find out how it ended, and to say so."""

import argparse
import asyncio
import io
import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

from toolbatch.core import InvalidInputError, preview
from toolbatch.operations import PostgresOperationStore, SqliteOperationStore, owner_state
from toolbatch.ports import ClaimLostError, OperationRecord, OperationStore, OperationStoreError

from ._files import STDIN, FileError
from ._operations_view import age_of, details, printable, row_of, show_rows, to_dict, unescaped

__all__ = ["add_operations"]

T = TypeVar("T")

_DONE: Final = 0
_NOT_DONE: Final = 1
_ALL: Final = (1 << 31) - 1
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_BY: Final = "toolbatch operations"
_ALIVE: Final = ("running", "this_process")

_EXIT: Final = (
    "Exit codes: 0 done, or nothing is open; 1 something is open, or was not done; 2 the store or an option can't be used. An open "
    "operation was claimed and has no result: it runs now, or nobody knows whether it has happened. It is never run again by itself."
)


def add_operations(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    operations = commands.add_parser(
        "operations", help="list, show and settle durable operations whose outcome is unknown", epilog=_EXIT
    )
    verbs = operations.add_subparsers(required=True, metavar="VERB")

    listing = verbs.add_parser("list", help="list open operations, oldest first", epilog=_EXIT)
    listing.add_argument("--prefix", default="", help="only ids that begin with this, such as tenant/run/")
    listing.add_argument(
        "--older", type=_age, default=0.0, metavar="AGE", help="only claims at least so old: 90s, 10m, 2h, 1d"
    )
    listing.add_argument("--gone", action="store_true", help="only claims whose process has certainly ended")
    listing.add_argument("--limit", type=_positive, default=1000, metavar="N", help="at most so many; default is 1000")
    listing.set_defaults(command=_list)

    showing = verbs.add_parser("show", help="show all that is stored of one operation", epilog=_EXIT)
    showing.set_defaults(command=_show)

    reconcile = verbs.add_parser("reconcile", help="save the result of an operation that has happened", epilog=_EXIT)
    reconcile.set_defaults(command=_reconcile)

    release = verbs.add_parser(
        "release", help="free an operation that has certainly not happened: it may then be run", epilog=_EXIT
    )
    release.add_argument("--force", action="store_true", help="also while the process that claimed it still runs")
    release.set_defaults(command=_release)

    for verb in (showing, reconcile, release):
        verb.add_argument("id", metavar="ID", help="the operation, as `list` names it")
    reconcile.add_argument(
        "result", nargs="?", metavar="JSON", help="what it came to: what its tool would have returned"
    )
    reconcile.add_argument("--file", metavar="FILE", help="read the result from there; - is standard input")
    for verb in (reconcile, release):
        verb.add_argument("-y", "--yes", action="store_true", help="don't ask")
    for verb in (listing, showing, reconcile, release):
        verb.add_argument(
            "--store",
            metavar="STORE",
            default=os.environ.get("TOOLBATCH_STORE"),
            help="an SQLite file, or postgresql://...; default is TOOLBATCH_STORE",
        )
        verb.add_argument("--schema", default="toolbatch", help="the schema in PostgreSQL; default is toolbatch")
        verb.add_argument("--json", action="store_true", help="write JSON lines")


def _age(text: str) -> float:
    number, unit = (text[:-1], text[-1:]) if text[-1:] in _UNITS else (text, "s")
    try:
        seconds = float(number) * _UNITS[unit]
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e11:
        raise argparse.ArgumentTypeError(f"must be like 90s, 10m, 2h or 1d, not {text}")
    return seconds


def _positive(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 31:
        raise argparse.ArgumentTypeError(f"must be a positive number, not {text}")
    return int(text)


# -- verbs -----------------------------------------------------------------------------------------------------------------


def _list(options: argparse.Namespace) -> int:
    async def listed(store: OperationStore) -> list[OperationRecord]:
        most = _ALL if options.gone else options.limit + 1  # the limit counts what is listed
        found = await store.unresolved(prefix=options.prefix, limit=most)
        return [one for one in found if not options.gone or owner_state(one.owner) == "gone"]

    fitting = [record for record in _ask(options, listed) if age_of(record) >= options.older]
    records = fitting[: options.limit]
    if options.json:
        _write_json(*records)
    else:
        show_rows([row_of(record) for record in records], _out())
    if len(fitting) > len(records):
        _say(f"there are more than these {len(records)}: see --limit")
    return _NOT_DONE if records else _DONE


def _show(options: argparse.Namespace) -> int:
    record = _found(options)
    if record is None:
        return _NOT_DONE
    if options.json:
        _write_json(record)
    else:
        _out().writelines(details(record))
    return _DONE


def _reconcile(options: argparse.Namespace) -> int:
    result = _result(options)
    record = _found(options)
    if record is None or not _agreed(record, f"save as its result: {printable(result.decode())[:500]}", options):
        return _NOT_DONE
    return _settled(
        options,
        record.id,
        lambda store: store.reconcile(record.id, result, claim=_claim(record), by=_BY),
        "is reconciled",
    )


def _release(options: argparse.Namespace) -> int:
    record = _found(options)
    if record is None:
        return _NOT_DONE
    if record.is_open and owner_state(record.owner) in _ALIVE and not options.force:
        _say(f"{record.id} was claimed by a process that still runs and may do it yet: end that first, or use --force")
        return _NOT_DONE
    if not _agreed(record, "free it, so that it may be run: it has CERTAINLY NOT happened", options):
        return _NOT_DONE
    return _settled(options, record.id, lambda store: store.release_unknown(record.id, claim=_claim(record)), "is free")


def _settled(
    options: argparse.Namespace, name: str, settle: Callable[[OperationStore], Awaitable[object]], said: str
) -> int:
    try:
        _ask(options, settle)
    except ClaimLostError as error:
        _say(str(error))
        return _NOT_DONE
    _say(f"{name} {said}")
    if options.json:
        record = _ask(options, lambda store: store.get(name))
        _write_json(*(() if record is None else (record,)))
    return _DONE


def _claim(record: OperationRecord) -> str | None:
    return record.claim if record.is_open else None


def _agreed(record: OperationRecord, what: str, options: argparse.Namespace) -> bool:
    """Ask the person, who sees what it is about. What is completed needs no asking: the store refuses another end."""
    if options.yes or not record.is_open:
        return True
    if not sys.stdin.isatty():
        raise FileError("standard input is no terminal, so nobody can be asked; use --yes")
    sys.stderr.writelines(details(record))
    sys.stderr.write(f"\n{what}? [y/N] ")
    sys.stderr.flush()
    with suppress(KeyboardInterrupt):
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return True
    _say("nothing was changed")
    return False


def _result(options: argparse.Namespace) -> bytes:
    if (options.result is None) == (options.file is None):
        raise FileError("give the result as JSON, or with --file")
    text = options.result
    if text is None:
        try:
            text = sys.stdin.read() if options.file == STDIN else Path(options.file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(f"{options.file}: {error}") from error
    text = text.strip()
    try:
        json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        hint = " (text has to stand in quotes)" if text and text[0].isalpha() else ""
        raise FileError(f"the result {preview(text)} is no JSON: {error}{hint}") from error
    return str(text).encode("utf-8", "backslashreplace")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _found(options: argparse.Namespace) -> OperationRecord | None:
    async def found(store: OperationStore) -> OperationRecord | None:
        for name in dict.fromkeys((options.id, unescaped(options.id))):  # the second is what `list` has shown escaped
            record = await store.get(name)
            if record is not None:
                return record
        return None

    record = _ask(options, found)
    if record is None:
        _say(f"there is no operation {preview(options.id)} in the store")
    return record


# -- the store -------------------------------------------------------------------------------------------------------------


def _ask(options: argparse.Namespace, question: Callable[[OperationStore], Awaitable[T]]) -> T:
    async def asked() -> T:
        async with _store(options) as store:
            return await question(store)

    try:
        return asyncio.run(asked())
    except (OperationStoreError, InvalidInputError) as error:
        raise FileError(str(error)) from error


def _store(options: argparse.Namespace) -> "PostgresOperationStore | SqliteOperationStore":
    place = options.store
    if not place:
        raise FileError("name the store: --store FILE, --store postgresql://..., or TOOLBATCH_STORE")
    if place.startswith(("postgresql:", "postgres:")):
        with suppress(ImportError):
            return PostgresOperationStore(place, schema=options.schema, connections=1, timeout=10.0)
        raise FileError("PostgreSQL needs the extra: pip install toolbatch[postgres]")
    if not Path(place).is_file():  # else it would be made
        raise FileError(f"there is no file {place}")
    return SqliteOperationStore(place)


def _write_json(*records: OperationRecord) -> None:
    sys.stdout.writelines(f"{json.dumps(to_dict(record))}\n" for record in records)


def _out() -> TextIO:
    """Return standard output, where what its encoding lacks is escaped: an operation must be readable on any terminal."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return sys.stdout


def _say(text: str) -> None:
    sys.stderr.write(f"toolbatch: {printable(text)}\n")
