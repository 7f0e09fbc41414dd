# SPDX-License-Identifier: GPL-2.0-or-later
"""Locks between kdelta processes: one works, the others wait and say so."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from kdelta.host.dirs import cache_dir
from kdelta.host.files import lab_errors


@contextlib.contextmanager
def locked(name: str, doing: str, talk: Callable[[str], None]) -> Iterator[None]:
    """Holds the lock `name` (any text) during the body; `doing` says what it is for, as in
    "downloading X". The lock goes with the process, however that ends.
    """
    safe = "".join(c if c.isalnum() or c in "+-._" else "_" for c in name)
    path = cache_dir("locks") / f"{safe[:200]}.lock"
    with lab_errors("locking", path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        with lab_errors("locking", path):
            _take(descriptor, path, doing, talk)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path, doing: str, talk: Callable[[str], None]) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = path.read_text(errors="replace").strip()
        talk(f"waiting for another kdelta (process {holder or 'unknown'}), which is {doing}")
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
