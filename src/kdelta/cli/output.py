# SPDX-License-Identifier: GPL-2.0-or-later
"""Data to stdout, talk to stderr."""

import os
import sys
import tempfile
from pathlib import Path

from kdelta.host.command import set_echo
from kdelta.host.files import lab_errors, write_atomic
from kdelta.spec.errors import LabError, UserError


class ReaderGoneError(Exception):
    """The reader of stdout has closed it: no error, and nothing more to write."""


def emit(data: str | bytes) -> None:
    """Writes data; raises ReaderGoneError if the pipe is closed, LabError if it is refused."""
    try:
        if isinstance(data, bytes):
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        else:
            sys.stdout.write(data)
        sys.stdout.flush()
    except BrokenPipeError as error:
        _forget(1)
        raise ReaderGoneError from error
    except OSError as error:
        _forget(1)
        raise LabError(
            f"the report cannot be written: {error.strerror}",
            "it is not lost: it is in the store, and kdelta report prints it again",
        ) from error


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


def check_folder(option: str, folder: Path, another: str) -> None:
    """UserError, before anything runs, if nothing can be written to the folder of an option's file;
    `another`: what to name instead.
    """
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


def talk(line: str) -> None:
    """Says something to the user; a terminal that is gone is no error."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        _forget(2)


def echo_commands(*, wanted: bool) -> None:
    """From now on says each command that is executed, as one could type it; or none."""
    set_echo((lambda line: talk(f"+ {line}")) if wanted else None)


def _forget(descriptor: int) -> None:
    # What is still in Python's buffer would be written at exit, and fail again.
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)
