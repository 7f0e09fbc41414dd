# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that are there whole or not at all, and what to tell a user whose disk is full."""

import contextlib
import errno
import functools
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from kdelta.spec.errors import LabError

T = TypeVar("T")

_HINTS = {
    errno.ENOSPC: "free some space, or set {setting} to a folder on another disk",
    errno.EDQUOT: "your quota is used up; free some space, or set {setting} to another folder",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.EACCES: "make it writable for you, or set {setting} to another folder",
    errno.EPERM: "make it writable for you, or set {setting} to another folder",
    errno.EROFS: "set {setting} to a folder that can be written",
}
_NO_SPACE_BYTES = 1 << 20
_SETTING = "KDELTA_CACHE_DIR or KDELTA_DATA_DIR"

PARTIAL = ".partial"
"""The ending of what is not whole yet. It is never taken for the thing itself."""


def os_failure(error: OSError, doing: str, path: Path) -> LabError:
    """An operating system's refusal as a LabError that says what to do about it."""
    hint = _HINTS.get(error.errno or 0, "").format(setting=_SETTING)
    if error.errno == errno.ENOSPC and (free := _free_bytes(path)) is not None:
        hint += f" ({free >> 20} MiB free)"
    return LabError(f"{doing} {path}: {error.strerror or error}", hint)


def is_full(path: Path) -> bool:
    """Whether the disk of `path` has no space left to speak of: why a program failed there that did
    not say why.
    """
    free = _free_bytes(path)
    return free is not None and free < _NO_SPACE_BYTES


def _free_bytes(path: Path) -> int | None:
    for folder in (path, *path.parents):
        with contextlib.suppress(OSError):
            return shutil.disk_usage(folder).free
    return None


@contextlib.contextmanager
def lab_errors(doing: str, path: Path) -> Iterator[None]:
    """Turns an OSError of its body into a LabError about `path`; `doing` is as in "writing"."""
    try:
        yield
    except OSError as error:
        raise os_failure(error, doing, path) from error


def make_folder(path: Path) -> Path:
    """Creates a folder and those above it; LabError when that cannot be."""
    with lab_errors("creating the folder", path):
        path.mkdir(parents=True, exist_ok=True)
    return path


class FileState(msgspec.Struct, frozen=True):
    """A file as it is now: what is kept in memory of it is of no use once it is written again."""

    path: Path
    inode: int
    modified_ns: int
    bytes: int

    @classmethod
    def of(cls, path: Path) -> "FileState":
        """Its state at this moment; LabError when it is not there."""
        with lab_errors("reading", path):
            found = path.stat()
        return cls(path, found.st_ino, found.st_mtime_ns, found.st_size)


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's content, as 64 hexadecimal digits."""
    with lab_errors("reading", path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.lru_cache(maxsize=1024)
def sha256_state(file: FileState) -> str:
    """`sha256_file`, read once in that state."""
    return sha256_file(file.path)


def write_atomic(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Writes a file so that readers see the old content or all of the new, also after a
    kill or a power cut; LabError when it cannot be written.
    """
    # A name of its own: two processes may write the same file, and each must rename its own.
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    with lab_errors("writing", path):
        try:
            with partial.open("xb") as file:
                file.write(content)
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def read_json(path: Path, kind: type[T]) -> T | None:
    """What a JSON file holds; None if it cannot be read or is of another kind."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=kind)
    return None


def write_json(path: Path, content: msgspec.Struct) -> None:
    """Writes it as `write_atomic` does, indented for people."""
    write_atomic(path, msgspec.json.format(msgspec.json.encode(content)))


def copy_sparse(source: Path, target: Path) -> None:
    """Copies a file, holes as holes; LabError when it cannot be read or written."""
    with lab_errors("writing", target), source.open("rb") as old, target.open("xb") as new:
        os.ftruncate(new.fileno(), os.fstat(old.fileno()).st_size)
        for start, end in data_extents(old.fileno()):
            os.lseek(old.fileno(), start, os.SEEK_SET)
            os.lseek(new.fileno(), start, os.SEEK_SET)
            left = end - start
            while left:
                left -= os.copy_file_range(old.fileno(), new.fileno(), left) or left


def data_extents(file: int) -> Iterator[tuple[int, int]]:
    """Where an open file has data, and no holes: from, to."""
    end, size = 0, os.fstat(file).st_size
    while end < size:
        try:
            start = os.lseek(file, end, os.SEEK_DATA)
        except OSError as error:  # nothing but a hole is left
            if error.errno == errno.ENXIO:
                return
            raise
        end = os.lseek(file, start, os.SEEK_HOLE)
        yield start, end


@contextlib.contextmanager
def new_folder(final: Path) -> Iterator[Path]:
    """Gives an empty folder to fill, which becomes `final` when the body ends, and goes when it
    fails. The caller must hold a lock for `final`; what a killed process left is removed.
    """
    partial = final.with_name(final.name + PARTIAL)
    remove(partial)
    make_folder(partial)
    try:
        yield partial
        with lab_errors("writing", final):
            remove(final)
            partial.rename(final)
    except BaseException:
        remove(partial)
        raise


def remove(path: Path) -> None:
    """Removes a file or a folder with all that is in it; nothing there is fine."""
    with lab_errors("removing", path):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
