# SPDX-License-Identifier: GPL-2.0-or-later
"""Locks between kdelta processes: one works, the others wait and say so."""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from kdelta.host.dirs import cache_dir
from kdelta.host.files import lab_errors

_POLL_SECONDS = 0.1


@contextlib.contextmanager
def locked(name: str, doing: str, talk: Callable[[str], None]) -> Iterator[None]:
    """Holds the lock `name` (any text) during the body; `doing` says what it is for, as in
    "downloading X". The lock goes with the process, however that ends.
    """
    path, descriptor = _open(name)
    try:
        with lab_errors("locking", path):
            _take(descriptor, path, doing, talk)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked_if_free(name: str) -> Iterator[bool]:
    """Holds the lock during the body if it is free, in this process too; gives whether."""
    path, descriptor = _open(name)
    try:
        with lab_errors("locking", path):
            free = _try(descriptor)
            if free:
                _sign(descriptor)
        yield free
    finally:
        os.close(descriptor)


@contextlib.asynccontextmanager
async def locked_async(name: str, doing: str, talk: Callable[[str], None]) -> AsyncIterator[None]:
    """The same for a task: the others go on while it waits, and waiting can be cancelled."""
    path, descriptor = _open(name)
    said = False
    try:
        while not _try(descriptor):
            if not said:
                _say_waiting(path, doing, talk)
                said = True
            await asyncio.sleep(_POLL_SECONDS)
        _sign(descriptor)
        yield
    finally:
        os.close(descriptor)


def _open(name: str) -> tuple[Path, int]:
    safe = "".join(c if c.isalnum() or c in "+-._" else "_" for c in name)
    path = cache_dir("locks") / f"{safe[:200]}.lock"
    with lab_errors("locking", path):
        return path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _say_waiting(path: Path, doing: str, talk: Callable[[str], None]) -> None:
    holder = path.read_text(errors="replace").strip()
    talk(f"waiting for another kdelta (process {holder or 'unknown'}), which is {doing}")


def _sign(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def _take(descriptor: int, path: Path, doing: str, talk: Callable[[str], None]) -> None:
    if not _try(descriptor):
        _say_waiting(path, doing, talk)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    _sign(descriptor)
