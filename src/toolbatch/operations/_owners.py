"""Who has claimed: a name that tells, on the machine where the claim was made, whether its process still runs."""

import os
import socket
from pathlib import Path
from typing import Literal

__all__ = ["OwnerState", "owner_state", "this_owner"]

OwnerState = Literal["this_process", "running", "gone", "unknown"]
"""Whether an owner's process still runs; `unknown` for one on another machine, in another container, or with a given name."""

_HEAD = "process"
_NONE = "-"
_HOST, _PID, _START, _BOOT, _SPACE, _MACHINE = range(1, 7)


def this_owner() -> str:
    """Return this process's name: host, process id and what tells it from all others."""
    return _current[0]


def owner_state(owner: str) -> OwnerState:
    """Return whether the process that claimed under this name still runs.

    `gone` is certain: what it claimed and did not complete will not be completed by it, and can be reconciled. A process
    that runs may have given the operation up all the same.
    """
    if owner == this_owner():
        return "this_process"
    parts, mine = owner.split(" "), this_owner().split(" ")
    if len(parts) != len(mine) or parts[0] != _HEAD or _NONE in (parts[_BOOT], mine[_BOOT]):
        return "unknown"
    if parts[_BOOT] != mine[_BOOT]:  # another machine, or this one before it was started anew
        same_machine = parts[_MACHINE] == mine[_MACHINE] != _NONE and parts[_HOST] == mine[_HOST]
        return "gone" if same_machine else "unknown"
    if parts[_SPACE] != mine[_SPACE] or not parts[_PID].isdecimal():
        return "unknown"
    return "running" if _start_of(parts[_PID]) == parts[_START] else "gone"


def _start_of(pid: str) -> str:
    """Return when a process started, in clock ticks since the boot; `_NONE` if there is no such process."""
    try:
        stat = Path("/proc", pid, "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _NONE
    fields = stat.rpartition(")")[2].split()  # the name before it, in brackets, may hold anything
    return _NONE if fields[0] in ("Z", "X") else fields[19]  # one that waits to be reaped runs nothing


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip() or _NONE
    except OSError:  # not Linux, or a container without it
        return _NONE


def _describe() -> str:
    host = "_".join(socket.gethostname().split()) or _NONE
    try:
        space = str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")
    except OSError:
        space = _NONE
    boot, machine = _read("/proc/sys/kernel/random/boot_id"), _read("/etc/machine-id")
    return " ".join((_HEAD, host, str(os.getpid()), _start_of("self"), boot, space, machine))


_current = [_describe()]


def _renew() -> None:
    _current[0] = _describe()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
