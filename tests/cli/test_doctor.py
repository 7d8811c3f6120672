"""`toolbatch doctor`: what it finds, what it says to do, and how it ends; against real servers where it asks servers."""

import asyncio
import json
import os
import pty
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests.observe.collector import collector
from tests.operations.pg import is_possible, running
from toolbatch.cli import _doctor_checks, _doctor_servers, main
from toolbatch.operations import may_share_wal

needs_postgres = pytest.mark.skipif(not is_possible(), reason="there is no PostgreSQL here")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No server is named by the environment, none is behind a proxy, and stores would be in an empty folder."""
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.chdir(tmp_path)


def found(capsys: pytest.CaptureFixture[str], *arguments: str, code: int | None = None) -> dict[str, dict[str, str]]:
    """What the command finds, by name."""
    assert main(["doctor", "--json", "--timeout", "10", *arguments]) in ([code] if code is not None else [0, 1])
    findings = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(set(finding) == {"name", "judgement", "found", "advice"} for finding in findings)
    for finding in findings:
        assert bool(finding["advice"]) == (finding["judgement"] in ("warn", "fail")), finding
    return {finding["name"]: finding for finding in findings}


def test_a_machine_that_can_run_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, and a finding for versions, loop, threads, SQLite and the disk; its trial leaves nothing behind."""
    findings = found(capsys, code=0)
    assert list(findings) == [
        "python", "toolbatch", "anyio", "pydantic", "extras", "event loop", "threads", "open files", "sqlite", "store",
    ]  # fmt: skip
    assert findings["toolbatch"]["found"] == metadata.version("toolbatch")
    assert f"rich {metadata.version('rich')}" in findings["extras"]["found"]
    assert "asyncio" in findings["event loop"]["found"]
    assert findings["sqlite"]["found"].startswith(sqlite3.sqlite_version)
    assert "journal wal" in findings["store"]["found"]
    assert list(Path.cwd().iterdir()) == []


def test_lines_for_people(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A line a finding, what to do below it, and a sum; no colours where there is no terminal."""
    monkeypatch.setattr(_doctor_checks, "may_share_wal", lambda: False)
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok    python      CPython 3.")
    place = next(index for index, line in enumerate(lines) if line.startswith("warn  sqlite      "))
    assert lines[place + 1].strip().startswith("-> it can damage a WAL file that is shared")
    assert lines[-1].startswith("0 to be mended, ")
    assert "\x1b" not in "".join(lines)


def test_colours_on_a_terminal(tmp_path: Path) -> None:
    """On a terminal the judgement has its colour, and the text is the same."""
    reader, writer = pty.openpty()
    command = [sys.executable, "-m", "toolbatch", "doctor"]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "40"}
    process = subprocess.Popen(command, stdout=writer, stderr=writer, cwd=tmp_path, env=environment)
    os.close(writer)
    shown = b""
    try:
        while data := os.read(reader, 65536):
            shown += data
    except OSError:  # which is how Linux says that the other end was closed
        pass
    assert process.wait(50) == 0
    assert b"\x1b[32mok   \x1b[0m python " in shown
    os.close(reader)


@pytest.mark.parametrize(
    ("version", "is_good"),
    [
        ((3, 40, 1), False),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 50, 7), True),
        ((3, 50, 6), False),
        ((3, 44, 6), True),
    ],
)
def test_sqlite_versions(
    version: tuple[int, int, int], is_good: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The versions with the WAL-reset bug are told, and those in which it is mended are fine (ENGINES B.4)."""
    monkeypatch.setattr(_doctor_checks, "may_share_wal", lambda: may_share_wal(version))
    assert found(capsys)["sqlite"]["judgement"] == ("ok" if is_good else "warn")


def test_a_sqlite_without_threads(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One that threads can't use stands in the way."""
    monkeypatch.setattr(sqlite3, "threadsafety", 0)
    assert found(capsys, code=1)["sqlite"]["judgement"] == "fail"


def test_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A package that toolbatch needs and that is not there is a failure with the command that mends it."""
    real = metadata.version

    def version(name: str) -> str:
        if name == "anyio":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    finding = found(capsys, code=1)["anyio"]
    assert (finding["judgement"], finding["advice"]) == ("fail", "pip install anyio")


def test_tight_limits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Too few threads or files are told, with what to raise and to how much."""
    limits = {"RLIMIT_NPROC": 100, "RLIMIT_NOFILE": 64}
    monkeypatch.setattr(_doctor_checks, "_limit", limits.__getitem__)
    findings = found(capsys, code=0)
    assert findings["threads"]["judgement"] == "warn"
    assert "raise ulimit -u to 320" in findings["threads"]["advice"]
    assert "ulimit -n 4096" in findings["open files"]["advice"]


def test_no_limits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a system has none, nothing is said of them."""
    monkeypatch.setattr(_doctor_checks, "_limit", lambda _name: None)
    findings = found(capsys, code=0)
    assert "open files" not in findings
    assert "ulimit" not in findings["threads"]["found"]


def test_a_busy_machine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Timers that come too late are told: deadlines would (B14)."""
    monkeypatch.setattr(_doctor_checks, "_BUSY", -1.0)
    assert "too busy to keep deadlines" in found(capsys, code=0)["event loop"]["advice"]


@pytest.mark.parametrize(
    ("kind", "judgement"),
    [("nfs4", "fail"), ("tmpfs", "warn"), ("ext4", "ok"), ("fuse.sshfs", "fail"), ("overlay", "ok")],
)
def test_kinds_of_disks(
    kind: str, judgement: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A network disk is not for SQLite, and one in memory keeps nothing (D1)."""
    monkeypatch.setattr(_doctor_checks, "_file_system", lambda _place: kind)
    monkeypatch.setattr(_doctor_checks, "_commits", lambda _scratch: ("wal", 1.0))
    finding = found(capsys)["store"]
    assert finding["judgement"] == judgement
    assert f" on {kind}, " in finding["found"]


@pytest.mark.parametrize(
    ("mode", "milliseconds", "words"), [("delete", 1.0, "no WAL mode"), ("wal", 0.001, "too fast to be true")]
)
def test_disks_that_are_odd(
    mode: str, milliseconds: float, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One without WAL mode, and one that says at once that all is written, are told."""
    monkeypatch.setattr(_doctor_checks, "_file_system", lambda _place: "ext4")
    monkeypatch.setattr(_doctor_checks, "_commits", lambda _scratch: (mode, milliseconds))
    finding = found(capsys, code=0)["store"]
    assert finding["judgement"] == "warn"
    assert words in finding["advice"]


def test_a_folder_that_cant_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that is not there, or is a file, stands in the way; the message names it, and says what to name instead."""
    (tmp_path / "file").touch()
    for name, advice in (("missing", "make it, or name another"), ("file", "name the folder that it is in")):
        finding = found(capsys, "--store", name, code=1)["store"]
        assert finding["found"] == f"{name} is no folder"
        assert advice in finding["advice"]


def test_a_folder_that_cant_be_written(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder without the right to write is told, with the system's own word."""

    def refuse(_scratch: Path) -> Any:
        raise sqlite3.OperationalError("attempt to write a readonly database")

    monkeypatch.setattr(_doctor_checks, "_commits", refuse)
    finding = found(capsys, code=1)["store"]
    assert "readonly database" in finding["found"]
    assert "right to write" in finding["advice"]


def test_the_disk_of_a_folder(tmp_path: Path) -> None:
    """The nearest mount above a folder is its disk."""
    assert _doctor_checks._file_system(Path("/proc")) == "proc"
    assert _doctor_checks._file_system(tmp_path) not in ("proc", "")


@needs_postgres
def test_a_postgres_server(capsys: pytest.CaptureFixture[str]) -> None:
    """A durable one is fine; one that may lose what it says is saved stands in the way, with the settings to change (D3)."""
    with running() as server:
        finding = found(capsys, "--postgres", server.dsn, code=0)["postgres"]
        assert finding["found"].endswith(", durable")
        server.stop()
        server.start(fsync="off", synchronous_commit="off")
        finding = found(capsys, "--postgres", server.dsn, code=1)["postgres"]
        assert finding["found"].endswith(", fsync=off, synchronous_commit=off")


def test_a_postgres_server_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """It says where nothing answers, and never the password."""
    with unused_port() as port:
        finding = found(capsys, "--postgres", f"postgresql://me:hunter2@127.0.0.1:{port}/shop", code=1)["postgres"]
    assert finding["found"].startswith(f"127.0.0.1:{port}/shop: ")
    assert "hunter2" not in str(finding)


@pytest.mark.parametrize(
    "dsn", ["nonsense", "postgresql://[", "postgresql://me:hunter2@host:port/x", "://", "postgresql://\udcff"]
)
def test_a_dsn_that_is_none(dsn: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is told as any other failure, without what may be a password."""
    finding = found(capsys, "--postgres", dsn, code=1)["postgres"]
    assert finding["judgement"] == "fail"
    assert "hunter2" not in str(finding)


def test_postgres_without_its_driver(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without asyncpg it says what to install."""
    monkeypatch.setattr(_doctor_servers, "installed", lambda _name: None)
    finding = found(capsys, "--postgres", "postgresql://h/d", code=1)["postgres"]
    assert finding["advice"] == "pip install 'toolbatch[postgres]'"


def test_a_password_in_an_error() -> None:
    """What a driver says is shown without the password and without the address."""
    error = ConnectionError("can't reach postgresql://me:hunter2@h/d with\n password hunter2")
    assert _doctor_servers._said(error, "postgresql://me:hunter2@h/d") == (
        "can't reach postgresql://me:...@h/d with password ..."
    )
    assert _doctor_servers._said(TimeoutError(), "x") == "TimeoutError"


def test_a_standby(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A server that only follows another one can't be written to."""

    async def settings(_dsn: str, _timeout: float) -> tuple[dict[str, str], bool]:
        return {"server_version": "17", "fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}, True

    monkeypatch.setattr(_doctor_servers, "_settings", settings)
    finding = found(capsys, "--postgres", "postgresql://h/d", code=1)["postgres"]
    assert finding["found"] == "h/d: PostgreSQL 17, a standby"


def test_a_server_that_writes_to_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a server says can't move the cursor of whoever reads it."""

    async def settings(_dsn: str, _timeout: float) -> tuple[dict[str, str], bool]:
        raise ConnectionError("\x1b[2Jgone\x07")

    monkeypatch.setattr(_doctor_servers, "_settings", settings)
    assert main(["doctor", "--postgres", "postgresql://h/d"]) == 1
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\x07" not in said


def test_a_collector(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A real collector takes an empty request; its address may come from the environment, with or without the path."""
    with collector() as there:
        for address in (there.url, f"{there.url}/", f"{there.url}/v1/traces"):
            finding = found(capsys, "--otlp", address, code=0)["otlp"]
            assert finding["found"].endswith("/v1/traces: takes spans (200)")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", there.url)
        assert found(capsys, code=0)["otlp"]["judgement"] == "ok"
        assert there.spans == []


@contextmanager
def answering(status: int) -> Iterator[str]:
    """A web server that is no collector."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@contextmanager
def unused_port() -> Iterator[int]:
    """A port on which nothing listens, and nothing will."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@contextmanager
def silent_port() -> Iterator[int]:
    """A port on which something listens that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_server_that_is_no_collector(capsys: pytest.CaptureFixture[str]) -> None:
    """It says what it answered, or that nothing did, and what may be wrong with the address."""
    with answering(404) as url:
        finding = found(capsys, "--otlp", url, code=1)["otlp"]
        assert finding["found"].endswith("answers 404")
        assert "4318" in finding["advice"]
    with unused_port() as port:
        assert "refused" in found(capsys, "--otlp", f"http://127.0.0.1:{port}", code=1)["otlp"]["found"]
    for address in ("localhost:4318", "ftp://x", "http://", "file:///etc/passwd"):
        assert "is no http URL" in found(capsys, "--otlp", address, code=1)["otlp"]["found"]


@pytest.mark.parametrize("option", ["--otlp", "--temporal", "--postgres"])
def test_a_server_that_never_answers(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is given up after the time that was given, and told."""
    shapes: dict[str, Callable[[int], str]] = {
        "--otlp": lambda port: f"http://127.0.0.1:{port}",
        "--temporal": lambda port: f"127.0.0.1:{port}",
        "--postgres": lambda port: f"postgresql://me@127.0.0.1:{port}/x?sslmode=disable",
    }
    with silent_port() as port:
        assert main(["doctor", "--json", "--timeout", "0.2", option, shapes[option](port)]) == 1
    finding = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert finding["judgement"] == "fail"


def test_a_temporal_server_that_is_not_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so, of an address that is none too; without the client it can only say that something listens."""
    with unused_port() as port:
        assert found(capsys, "--temporal", f"127.0.0.1:{port}", code=1)["temporal"]["judgement"] == "fail"
    for address in ("here", "here:", ":7233", "here:70000", "here:x", "here:²"):
        assert "is no HOST:PORT" in found(capsys, "--temporal", address, code=1)["temporal"]["found"]
    monkeypatch.setattr(_doctor_servers, "installed", lambda _name: None)
    with silent_port() as port:
        assert found(capsys, "--temporal", f"127.0.0.1:{port}", code=0)["temporal"]["judgement"] == "warn"


TEMPORAL = shutil.which("temporal", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.skipif(TEMPORAL is None, reason="there is no Temporal server here")
async def test_a_temporal_server(capsys: pytest.CaptureFixture[str]) -> None:
    """A real one is serving (ENGINES A.3)."""
    from temporalio.testing import WorkflowEnvironment

    async with await WorkflowEnvironment.start_local(dev_server_existing_path=TEMPORAL) as server:
        address = server.client.service_client.config.target_host
        finding = (await asyncio.to_thread(found, capsys, "--temporal", address, code=0))["temporal"]
    assert finding["found"] == f"{address}: serving"


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "x", "1e9"])
def test_a_time_that_cant_be_used(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An option that can't be used is exit code 2, and the message names it."""
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--timeout", seconds])
    assert ended.value.code == 2
    assert seconds in capsys.readouterr().err
