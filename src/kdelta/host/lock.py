# SPDX-License-Identifier: GPL-2.0-or-later
"""Locks between kdelta processes: one works, the others wait and say so. And folders for what is
needed during one run only; those that a killed process left are removed.
"""

import asyncio
import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from kdelta.host.command import quiet
from kdelta.host.dirs import cache_dir
from kdelta.host.files import lab_errors

_POLL_SECONDS = 0.1
_PREFIX = "run-"
_OLD_SECONDS = 2 * 24 * 3600


@contextlib.contextmanager
def locked(name: str, doing: str, talk: Callable[[str], None]) -> Iterator[None]:
    """Holds the lock `name` (any text) during the body; `doing` says what it is for, as in
    "downloading X". The lock goes with the process, however that ends.
    """
    with _opened(name) as (path, descriptor):
        with lab_errors("locking", path):
            if not _try(descriptor):
                _say_waiting(path, doing, talk)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            _sign(descriptor)
        yield


@contextlib.contextmanager
def locked_if_free(name: str) -> Iterator[bool]:
    """Holds the lock during the body if it is free, in this process too; gives whether."""
    with _opened(name) as (path, descriptor):
        with lab_errors("locking", path):
            free = _try(descriptor)
            if free:
                _sign(descriptor)
        yield free


@contextlib.asynccontextmanager
async def locked_async(name: str, doing: str, talk: Callable[[str], None]) -> AsyncIterator[None]:
    """The same for a task: the others go on while it waits, and waiting can be cancelled."""
    said = False
    with _opened(name) as (path, descriptor):
        while not _try(descriptor):
            if not said:
                _say_waiting(path, doing, talk)
                said = True
            await asyncio.sleep(_POLL_SECONDS)
        _sign(descriptor)
        yield


@contextlib.contextmanager
def _opened(name: str) -> Iterator[tuple[Path, int]]:
    safe = "".join(c if c.isalnum() or c in "+-._" else "_" for c in name)
    path = cache_dir("locks") / f"{safe[:200]}.lock"
    with lab_errors("locking", path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        yield path, descriptor
    finally:
        os.close(descriptor)


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


@contextlib.contextmanager
def work_folder() -> Iterator[Path]:
    """Gives a folder that goes when the body ends; LabError when it cannot be made."""
    folder, descriptor = _new()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _new() -> tuple[Path, int]:
    """A folder, and what holds it: a lock on it that goes with this process, however that ends."""
    root = cache_dir("work")
    # No process takes a new folder for one that was left before it is held.
    with locked("work", "making a folder", quiet), lab_errors("creating a folder in", root):
        _remove_left(root)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return folder, descriptor


def _remove_left(root: Path) -> None:
    for folder in root.iterdir():
        with contextlib.suppress(OSError):
            # No process holds folders of other names, so only their age says that they are left.
            if not folder.name.startswith(_PREFIX) and not _is_old(folder):
                continue
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def _is_old(folder: Path) -> bool:
    return time.time() - folder.stat().st_mtime > _OLD_SECONDS
