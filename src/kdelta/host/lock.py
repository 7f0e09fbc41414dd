# SPDX-License-Identifier: GPL-2.0-or-later
"""Locks between kdelta processes: one works, the others wait and say so. And folders for what is
needed during one run only; those that a killed process left are removed.
"""

import asyncio
import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from kdelta.host.command import Log, quiet
from kdelta.host.dirs import cache_dir
from kdelta.host.files import lab_errors, open_regular
from kdelta.host.in_use import use
from kdelta.host.manifest import has_manifest, is_whole, published_folder, write_manifest
from kdelta.spec.errors import LabError

WAITING = "waiting for another kdelta"
"""How a line begins that a process logs when it waits."""

_POLL_SECONDS = 0.1
_PREFIX = "run-"
_NAME = re.compile(r"run-[a-z0-9_]{8}")
_OLD_SECONDS = 2 * 24 * 3600


@contextlib.contextmanager
def locked(name: str, doing: str, log: Log) -> Iterator[None]:
    """Holds the lock `name` (any text) during the body; `doing` says what it is for, as in
    "downloading X". The lock goes with the process, however that ends.
    """
    with _opened(name) as (path, descriptor):
        with lab_errors("locking", path):
            if not _try(descriptor):
                _log_waiting(path, doing, log)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            _sign(descriptor)
        yield


def fill_once(
    folder: Path,
    doing: str,
    log: Log,
    fill: Callable[[Path], None],
    name: str = "",
    *,
    adopted: bool = False,
) -> Path:
    """The path `name` in a folder of the cache, or the folder itself. Unless it is there, `fill`
    gets an empty folder to fill: one process does it, the others wait.

    Each process compares its files with their hashes before it uses them first. What differs is set
    aside, and made again. adopted: a folder that an older version left without hashes gets them.
    """
    wanted = folder / name
    if _is_usable(folder, wanted, adopted=adopted):
        return wanted
    with locked(folder.name, doing, log):
        if not _is_usable(folder, wanted, adopted=adopted):
            with published_folder(folder, log) as partial:
                fill(partial)
            use(folder)
    return wanted


def _is_usable(folder: Path, wanted: Path, *, adopted: bool) -> bool:
    if not use(folder) or not wanted.exists():
        return False
    if adopted and not has_manifest(folder):
        with contextlib.suppress(LabError):  # a cache that is only read
            write_manifest(folder, folder)
        return True
    return is_whole(folder)


@contextlib.contextmanager
def locked_if_free(name: str) -> Iterator[bool]:
    """Holds the lock during the body if it is free, in this process too; gives whether."""
    with _opened(name) as (path, descriptor):
        with lab_errors("locking", path):
            if free := _try(descriptor):
                _sign(descriptor)
        yield free


@contextlib.asynccontextmanager
async def locked_async(name: str, doing: str, log: Log) -> AsyncIterator[None]:
    """Hold a lock as `locked` does, for a task: the others go on while it waits, and waiting can be
    cancelled.
    """
    with _opened(name) as (path, descriptor):
        with lab_errors("locking", path):
            if not _try(descriptor):
                _log_waiting(path, doing, log)
                while not _try(descriptor):
                    await asyncio.sleep(_POLL_SECONDS)
            _sign(descriptor)
        yield


@contextlib.contextmanager
def _opened(name: str) -> Iterator[tuple[Path, int]]:
    safe = "".join(c if c.isalnum() or c in "+-._" else "_" for c in name)
    path = cache_dir("locks") / f"{safe[:200]}.lock"
    with lab_errors("locking", path):
        descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
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


def _log_waiting(path: Path, doing: str, log: Log) -> None:
    holder = path.read_text(errors="replace").strip()
    log(f"{WAITING} (process {holder or 'unknown'}), which is {doing}")


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
    work_left(removed=True)
    with locked("work", "making a folder", quiet), lab_errors("creating a folder in", root):
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return folder, descriptor


def work_left(*, removed: bool) -> list[Path]:
    """Return the folders that killed processes left, and remove them if that is wanted."""
    found = []
    root = cache_dir("work")
    is_linked = root.is_symlink()
    with locked("work", "looking at folders", quiet):
        for folder in sorted(root.iterdir()):
            with contextlib.suppress(OSError):
                # No process holds folders of other names: only their age says that they are left.
                # Beyond a link they may be the user's.
                is_old = time.time() - folder.stat().st_mtime > _OLD_SECONDS
                is_run = folder.name.startswith(_PREFIX)
                if not (_NAME.fullmatch(folder.name) if is_linked else is_run or is_old):
                    continue
                descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    found.append(folder)
                    if removed:
                        shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(descriptor)
    return found
