"""Run the benchmarks, print their tables, and say plainly which goals are met."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Final

from . import backends, core_alone, deadline, memory, operations, pipeline, scaling, session, transcript, whole
from ._measure import FULL, QUICK, Effort
from ._report import Table, page, write

__all__ = ["BENCHMARKS", "main"]

BENCHMARKS: Final[dict[str, Callable[[Effort], Table]]] = {
    "whole": whole.run,
    "core": core_alone.run,
    "scaling": scaling.run,
    "memory": memory.run,
    "deadline": deadline.run,
    "session": session.run,
    "pipeline": pipeline.run,
    "operations": operations.run,
    "backends": backends.run,
    "transcript": transcript.run,
    "transcript-growth": transcript.run_growth,
}

_PACKAGES: Final = ("toolbatch", "anyio", "uvloop")


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which to run: {', '.join(BENCHMARKS)}; all by default"
    )
    parser.add_argument("--quick", action="store_true", help="only try the code: the figures mean nothing")
    parser.add_argument("--write", action="store_true", help="write what was measured into benchmarks/RESULTS.md")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if options.write and options.quick:
        parser.error("--write is not for --quick, whose figures mean nothing")
    tables = []
    for name in options.names or BENCHMARKS:
        tables.append(BENCHMARKS[name](QUICK if options.quick else FULL))
        print(tables[-1].markdown(), flush=True)
        if options.write:
            write(name, page(tables[-1:], _PACKAGES, f"python -m benchmarks --write {name}"))
    missed = [table.title for table in tables if any(row.verdict == "NOT MET" for row in table.rows)]
    print("Every goal is met." if not missed else f"Goals that are not met in: {', '.join(missed)}.")


if __name__ == "__main__":
    main(sys.argv[1:])
