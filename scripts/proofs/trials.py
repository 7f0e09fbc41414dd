# SPDX-License-Identifier: GPL-2.0-or-later
"""What campaigns of trials share: their records, a line each, and the processes of a trial."""

import contextlib
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def recorded(file: Path, kind: type[T]) -> list[T]:
    """Return the trials that have a record."""
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [msgspec.json.decode(line, type=kind) for line in lines]


def record(file: Path, trial: msgspec.Struct) -> None:
    """Add a trial's record."""
    with file.open("ab") as to:
        to.write(msgspec.json.encode(trial) + b"\n")


def marked_processes(name: str, folder: Path) -> list[int]:
    """Return the processes that inherited that variable with that folder."""
    mark = f"{name}={folder}\0".encode()
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (one / "environ").read_bytes():
                found.append(int(one.name))
    return found
