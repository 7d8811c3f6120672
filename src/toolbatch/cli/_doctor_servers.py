"""What can be checked of servers: whether they answer, and whether they keep what they promise."""

import argparse
import asyncio
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from ._doctor_checks import Finding, installed

__all__ = ["server_findings"]

_DURABLE: Final = {"fsync": "on", "full_page_writes": "on"}
_SYNCHRONOUS: Final = (
    "on",
    "remote_write",
    "remote_apply",
)  # and not `local` or `off`, with which a commit can be lost


def server_findings(options: argparse.Namespace) -> Iterator[Finding]:
    """Look at each server that the options name."""
    if options.postgres:
        yield _postgres(options.postgres, options.timeout)
    if options.temporal:
        yield _temporal(options.temporal, options.timeout)
    if options.otlp:
        yield _otlp(options.otlp, options.timeout)


def _postgres(dsn: str, timeout: float) -> Finding:
    where = _shown(dsn)
    if installed("asyncpg") is None:
        return Finding("postgres", "fail", "asyncpg is not installed", "pip install 'toolbatch[postgres]'")
    try:
        settings, is_standby = asyncio.run(asyncio.wait_for(_settings(dsn, timeout), timeout * 2))
    except Exception as error:  # noqa: BLE001  whatever a server or its driver says is what is told
        return Finding(
            "postgres", "fail", f"{where}: {_said(error, dsn)}", "check address, name and password, and that it runs"
        )
    found = f"{where}: PostgreSQL {settings['server_version']}"
    if is_standby:
        return Finding("postgres", "fail", f"{found}, a standby", "operations are written: name the primary")
    bad = [f"{name}={settings[name]}" for name, value in _DURABLE.items() if settings[name] != value]
    if settings["synchronous_commit"] not in _SYNCHRONOUS:
        bad.append(f"synchronous_commit={settings['synchronous_commit']}")
    if bad:
        advice = "a crash of that server can lose claims and results; turn these on"
        return Finding("postgres", "fail", f"{found}, {', '.join(bad)}", advice)
    return Finding("postgres", "ok", f"{found}, durable")


async def _settings(dsn: str, timeout: float) -> tuple[dict[str, str], bool]:
    import asyncpg  # type: ignore[import-untyped]  # it ships no types

    connection = await asyncpg.connect(dsn, timeout=timeout, command_timeout=timeout)
    try:
        names = ["server_version", *_DURABLE, "synchronous_commit"]
        settings = {name: str(await connection.fetchval("SELECT current_setting($1)", name)) for name in names}
        return settings, bool(await connection.fetchval("SELECT pg_is_in_recovery()"))
    finally:
        await connection.close(timeout=timeout)


def _temporal(address: str, timeout: float) -> Finding:
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        return Finding("temporal", "fail", f"{address!r} is no HOST:PORT", "name it like localhost:7233")
    try:
        if installed("temporalio") is None:
            with socket.create_connection((host.strip("[]"), int(port)), timeout):
                pass
            return Finding("temporal", "warn", f"{address}: something listens", "pip install 'toolbatch[temporal]'")
        asyncio.run(asyncio.wait_for(_greet_temporal(address), timeout))
    except Exception as error:  # noqa: BLE001  as above
        advice = "check the address, and that the server runs, such as `temporal server start-dev`"
        return Finding("temporal", "fail", f"{address}: {_said(error, address)}", advice)
    return Finding("temporal", "ok", f"{address}: serving")


async def _greet_temporal(address: str) -> None:
    from temporalio.client import Client

    client = await Client.connect(address)
    if not await client.service_client.check_health():
        raise ConnectionError("the server says that it does not serve")


def _otlp(url: str, timeout: float) -> Finding:
    """Send a collector an empty request, which it takes and does nothing about."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return Finding("otlp", "fail", f"{url!r} is no http URL", "name it like http://localhost:4318")
    path = parts.path.rstrip("/")
    target = urlunsplit(parts._replace(path=path if path.endswith("/v1/traces") else f"{path}/v1/traces"))
    request = urllib.request.Request(target, b"", {"content-type": "application/x-protobuf"}, method="POST")  # noqa: S310  checked above
    where = _shown(target)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310
            return Finding("otlp", "ok", f"{where}: takes spans ({response.status})")
    except urllib.error.HTTPError as error:
        error.close()
        advice = "is this the collector's HTTP port (4318), and does it need a key?"
        return Finding("otlp", "fail", f"{where}: answers {error.code}", advice)
    except Exception as error:  # noqa: BLE001  as above
        advice = "check the address, and that a collector runs; the port for HTTP is 4318, not 4317"
        return Finding("otlp", "fail", f"{where}: {_said(error, url)}", advice)


def _shown(address: str) -> str:
    """Return an address without a password."""
    try:
        parts = urlsplit(address)
        if not parts.scheme or not parts.hostname:
            return "the server"
        port = "" if parts.port is None else f":{parts.port}"
        return f"{parts.hostname}{port}{parts.path}"
    except ValueError:
        return "the server"


def _said(error: Exception, secret: str) -> str:
    """Return in one line what went wrong, without the address, which may hold a password."""
    reason = getattr(error, "reason", None) or error
    text = " ".join(str(reason).split()) or type(error).__name__
    try:
        password = urlsplit(secret).password
    except ValueError:
        password = None
    return (text if password is None else text.replace(password, "...")).replace(secret, "...")[:200]
