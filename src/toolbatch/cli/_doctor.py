"""`toolbatch doctor`: looks at an environment, and says what to do about what it finds."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Final, TextIO

from ._doctor_checks import Finding, Judgement, local_findings
from ._doctor_servers import server_findings

__all__ = ["add_doctor"]

_OK: Final = 0
_FAILS: Final = 1

_EXIT: Final = (
    "Exit codes: 0 nothing stands in the way; 1 something does (FAIL); 2 an option can't be used. Warnings don't count."
)

_STYLES: Final[dict[Judgement, str]] = {"ok": "green", "info": "dim", "warn": "yellow", "fail": "bold red"}


def add_doctor(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    doctor = commands.add_parser("doctor", help="check this environment, and say what to do", epilog=_EXIT)
    doctor.add_argument("--json", action="store_true", help="write one JSON object a finding, one a line")
    doctor.add_argument(
        "--store", default=".", metavar="FOLDER", help="where a SQLite store would be; default is this folder"
    )
    doctor.add_argument(
        "--postgres", metavar="DSN", help="a PostgreSQL server that shall keep operations; its password is not shown"
    )
    doctor.add_argument("--temporal", metavar="HOST:PORT", help="a Temporal server that shall run tools")
    doctor.add_argument(
        "--otlp",
        metavar="URL",
        default=os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"),
        help="a collector of OpenTelemetry over HTTP; default is OTEL_EXPORTER_OTLP_ENDPOINT",
    )
    doctor.add_argument(
        "--timeout",
        type=_seconds,
        default=5.0,
        metavar="SECONDS",
        help="how long to wait for each server; default is 5",
    )
    doctor.set_defaults(command=_doctor)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError(f"must be more than 0 and at most 3600 seconds, not {text}")
    return seconds


def _doctor(options: argparse.Namespace) -> int:
    made = (*local_findings(options.store), *server_findings(options))
    findings = [finding.printable() for finding in made]
    if options.json:
        sys.stdout.writelines(f"{json.dumps(finding.to_dict(), ensure_ascii=False)}\n" for finding in findings)
    else:
        _show(findings, sys.stdout)
    return _FAILS if any(finding.judgement == "fail" for finding in findings) else _OK


def _show(findings: Sequence[Finding], stream: TextIO) -> None:
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        word = "FAIL" if finding.judgement == "fail" else finding.judgement
        _write(f"{word:<5}", _STYLES[finding.judgement], f"{finding.name:<{width}}  {finding.found}", stream)
        if finding.advice:
            stream.write(f"{'':{width + 7}}-> {finding.advice}\n")
    counts = {judgement: sum(finding.judgement == judgement for finding in findings) for judgement in ("fail", "warn")}
    stream.write(f"{counts['fail']} to be mended, {counts['warn']} to be thought about\n")


def _write(word: str, style: str, text: str, stream: TextIO) -> None:
    if stream.isatty():
        try:
            from rich.console import Console
            from rich.text import Text
        except ImportError:
            pass
        else:
            Console(file=stream, soft_wrap=True).print(Text.assemble((word, style), " ", text))
            return
    stream.write(f"{word} {text}\n")
