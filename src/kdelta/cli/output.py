# SPDX-License-Identifier: GPL-2.0-or-later
"""Data to stdout, what is going on to stderr."""

import errno
import io
import os
import stat
import sys
import tempfile
import threading
from pathlib import Path

from kdelta.host.command import forget_stream
from kdelta.host.dirs import data_dir
from kdelta.host.files import lab_errors, write_atomic
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.visible import visible

_NOT_LOST = "it is not lost: it is in the store, and kdelta report prints it again"


class ReaderGoneError(Exception):
    """The reader of stdout has closed it: no error, and nothing more to write."""


def emit(data: str | bytes, *, styled: bool = False) -> None:
    """Writes data: text with its control characters visible, unless it is `styled`, and so made so
    by the caller. Raises ReaderGoneError if the pipe or the terminal is closed, LabError if it is
    refused.
    """
    try:
        if isinstance(data, bytes):
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        else:
            sys.stdout.write(data if styled else visible(data))
        sys.stdout.flush()
    except BrokenPipeError as error:
        forget_stream(1)
        raise ReaderGoneError from error
    except OSError as error:
        forget_stream(1)
        if error.errno == errno.EIO and not _is_file(1):  # a terminal that has hung up
            raise ReaderGoneError from error
        why = "stdout is closed" if error.errno == errno.EBADF else error.strerror
        raise LabError(f"the report cannot be written: {why}", _NOT_LOST) from error


def save(path: Path, content: bytes) -> None:
    """Writes a report to the file that was asked for; LabError, and the old file as it was, if that
    cannot be. What is no file but a pipe or a device gets it as it comes.
    """
    try:
        if path.exists() and not path.is_file():
            with lab_errors("writing", path), path.open("wb") as file:
                file.write(content)
        else:
            write_atomic(path, content)
    except LabError as error:
        raise LabError(
            error.message,
            f"the folder {path.parent} is not there; make it, or name another"
            if not path.parent.is_dir()
            else "name a file that can be written; the report itself is not lost",
        ) from error


def must_be_outside(option: str, path: Path, another: str) -> None:
    """Raise UserError for an option's file that is one of the store's own; `another`: what to name
    instead.
    """
    from kdelta.store.database import is_own  # noqa: PLC0415  (which takes long to import)

    if is_own(store := data_dir(), path) and not path.is_dir():
        raise UserError(
            f"{option}: kdelta keeps its runs in {store}, and nothing else is written there",
            f"name {another}",
        )


def check_folder(option: str, folder: Path, another: str) -> None:
    """Raise UserError, before anything runs, if nothing can be written to the folder of an option's
    file; `another`: what to name instead.
    """
    must_be_outside(option, folder, another)
    if not folder.is_dir():
        raise UserError(f"{option}: there is no folder {folder}", "make it, or name another one")
    try:
        # A file is written next to it and then renamed, so it is the folder that has to be
        # writable.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(
            f"{option}: nothing can be written to {folder}: {error.strerror}",
            f"name {another}; nothing was run yet",
        ) from error


class Stderr(io.TextIOBase):
    """stderr for rich, which would fail where the terminal is gone."""

    def write(self, text: str) -> int:
        try:
            sys.stderr.write(text)
        except OSError:
            forget_stream(2)
        return len(text)

    def flush(self) -> None:
        try:
            sys.stderr.flush()
        except OSError:
            forget_stream(2)

    def isatty(self) -> bool:
        return sys.stderr.isatty()

    def fileno(self) -> int:
        return sys.stderr.fileno()


def open_closed_streams() -> None:
    """Opens stdin, stdout and stderr where the caller closed them, as the shell's >&- does: the
    next file that is opened would take its place, and get what is printed. Writing to such a stdout
    fails.
    """
    modes = {0: os.O_RDONLY, 1: os.O_RDONLY, 2: os.O_WRONLY}
    for descriptor, mode in modes.items():
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # the lowest that is free
    # Python has None in place of those that were closed when it started.
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


_silenced = threading.Event()


def silence_progress(*, wanted: bool) -> None:
    """From now on hides how far a study is, or shows it."""
    if wanted:
        _silenced.set()
    else:
        _silenced.clear()


def shows_progress() -> bool:
    """Whether the user wants to see how far a study is."""
    return not _silenced.is_set()


def _is_file(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)
