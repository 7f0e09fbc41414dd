# SPDX-License-Identifier: GPL-2.0-or-later
"""What this process uses of the cache, which no other process removes before it has ended."""

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from kdelta.host.files import is_odd

_TOUCHED_AGAIN_SECONDS = 3600

_used: dict[Path, int] = {}
"""The files and folders in use, each open and locked with others who use it."""


def use(path: Path) -> bool:
    """Keeps a file or a folder while this process lives, or until `release`, and notes when it was
    used; False if it is not there or about to be removed.
    """
    before = _used.get(path)
    if before is not None and _is_at(before, path):
        return True
    descriptor = _lock(path, fcntl.LOCK_SH)
    # The one before, if it was made again since, is another one of the same name.
    release(path)
    if descriptor is None:
        return False
    if not stat.S_ISREG(mode := os.fstat(descriptor).st_mode) and not stat.S_ISDIR(mode):
        os.close(descriptor)
        return False
    _used[path] = descriptor
    with contextlib.suppress(OSError):  # a cache that is only read
        # Each change of the time has its files compared again: manifest.damage_found.
        if time.time() - os.fstat(descriptor).st_mtime > _TOUCHED_AGAIN_SECONDS:
            os.utime(path)
    return True


def release(path: Path) -> None:
    """This process uses it no more."""
    if (descriptor := _used.pop(path, None)) is not None:
        os.close(descriptor)


@contextlib.contextmanager
def unused(path: Path) -> Iterator[bool]:
    """Gives whether no process uses it; none begins to during the body."""
    descriptor = _lock(path, fcntl.LOCK_EX)
    try:
        yield descriptor is not None or (is_odd(path) and not path.is_dir())
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock(path: Path, kind: int) -> int | None:
    """It, open and locked; None if it is not there, or others have a lock against it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        is_there = _is_at(descriptor, path)
    except OSError:
        is_there = False
    if is_there:
        return descriptor
    os.close(descriptor)
    return None


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether what is open still has that path: it may have been removed while it was locked."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False
