# SPDX-License-Identifier: GPL-2.0-or-later
"""Folders for what is needed during one run only; those that a killed process left are removed."""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from kdelta.host.command import quiet
from kdelta.host.dirs import cache_dir
from kdelta.host.files import lab_errors
from kdelta.host.lock import locked

_PREFIX = "run-"
_OLD_SECONDS = 2 * 24 * 3600


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
