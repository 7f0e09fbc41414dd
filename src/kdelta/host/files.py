# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that are there whole or not at all, and what to tell a user whose disk is full."""

import contextlib
import errno
import fcntl
import functools
import glob
import hashlib
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from kdelta.spec.errors import LabError, UserError

T = TypeVar("T")

_HINTS = {
    errno.ENOSPC: "free some space, or set {setting} to a folder on another disk",
    errno.EDQUOT: "your quota is used up; free some space, or set {setting} to another folder",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.EACCES: "make it writable for you, or set {setting} to another folder",
    errno.EPERM: "make it writable for you, or set {setting} to another folder",
    errno.EROFS: "set {setting} to a folder that can be written",
    **dict.fromkeys(
        (errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.EBADF),
        "move it away: a file belongs there",
    ),
    **dict.fromkeys(
        (errno.EEXIST, errno.ENOTDIR), "move away what is no folder there: one belongs there"
    ),
}
_NO_SPACE_BYTES = 1 << 20

PARTIAL = ".partial"
"""The ending of what is not whole yet. It is never taken for the thing itself."""
GONE = f".gone{PARTIAL}"
"""The ending of what is being removed."""


def os_failure(error: OSError, doing: str, path: Path) -> LabError:
    """Return an operating system's refusal as a LabError that says what to do about it."""
    hint = _HINTS.get(error.errno or 0, "").format(setting="KDELTA_CACHE_DIR or KDELTA_DATA_DIR")
    if error.errno == errno.ENOSPC and (free := _free_bytes(path)) is not None:
        hint += f" ({free >> 20} MiB free)"
        if not has_inodes(path):
            hint = f"the disk has no inodes left, so remove files; {hint}"
    return LabError(f"{doing} {path}: {error.strerror or error}", hint)


def is_full(path: Path) -> bool:
    """Whether the disk of `path` has no space left to speak of: why a program failed there that did
    not say why.
    """
    free = _free_bytes(path)
    return free is not None and free < _NO_SPACE_BYTES


def has_inodes(path: Path) -> bool:
    """Return whether the disk of `path` has room for another file, whatever space it has."""
    for folder in (path, *path.parents):
        with contextlib.suppress(OSError):
            found = os.statvfs(folder)
            return bool(found.f_favail or not found.f_files)
    return True


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


@contextlib.contextmanager
def user_errors(what: object, hint: str = "") -> Iterator[None]:
    """Turns an OSError of its body, which reads what the user named, into a UserError."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{what} cannot be read: {error.strerror}", hint) from error


def expanded(path: Path | str) -> Path:
    """Return a path with `~` and `~USER` replaced; UserError where there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UserError(f"cannot use {path}: there is no such user, or no home") from error


def read_given(path: Path, most_bytes: int, hint: str = "") -> bytes:
    """Return the content of a file that the user named; UserError for what is no file or has more
    bytes. /dev/null is an empty file.
    """
    with user_errors(path, hint):
        if not path.is_dir() and not path.is_file() and not path.samefile(os.devnull):
            raise UserError(
                f"{path} is no file but a pipe or a device, which is not read",
                "write what it gives into a file, and name that",
            )
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise UserError(f"{path} is too large: more than {most_bytes >> 20} MiB", hint)
    return content


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a file, or make one if the flags say so, and return its descriptor. OSError for anything
    else: opening a pipe waits for its other end, and reading a device may never end.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EBADF, "it is no regular file", str(path))
    return descriptor


def read_regular(path: Path) -> bytes:
    """Return the content of a file; OSError for what is no regular file, or cannot be read."""
    with os.fdopen(open_regular(path), "rb") as file:
        return file.read()


def is_odd(path: Path) -> bool:
    """Return whether what is at a path is neither a file nor a link to where one may be."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False
    except OSError as error:
        return error.errno == errno.ELOOP


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


def matching(folder: Path, pattern: str) -> list[Path]:
    """Return the paths below a folder that match a pattern, sorted. Other processes may remove
    files and folders meanwhile, at which Path.glob fails.
    """
    # It leaves out what cannot be read.
    names = glob.glob(pattern, root_dir=folder, include_hidden=True)  # noqa: PTH207
    return sorted(folder / name for name in names)


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's content, as 64 hexadecimal digits. LabError for what is no
    regular file, or cannot be read.
    """
    with lab_errors("reading", path), os.fdopen(open_regular(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.lru_cache(maxsize=1024)
def sha256_state(file: FileState) -> str:
    """`sha256_file`, read once in that state."""
    return sha256_file(file.path)


class FileContent:
    """A file by what is in it: what is kept in memory of it serves any other that has the same."""

    def __init__(self, path: Path) -> None:
        """Raises LabError for a file that cannot be read."""
        self.path = path
        self._sha256 = sha256_state(FileState.of(path))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileContent) and self._sha256 == other._sha256

    def __hash__(self) -> int:
        return hash(self._sha256)


def write_atomic(path: Path, content: bytes) -> None:
    """Writes a file as `atomic_file` does."""
    with atomic_file(path) as file:
        file.write(content)


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Gives a file to write, such that readers see the old content or all of the new, also after a
    kill or a power cut; LabError when it cannot be written.
    """
    with lab_errors("writing", path):
        partial, file = _new_partial(path)
        try:
            with file:
                yield file
                file.flush()
                os.fchmod(file.fileno(), 0o644)
                os.fsync(file.fileno())
                partial.replace(path)
            _sync_one(path.parent)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def _new_partial(path: Path) -> tuple[Path, IO[bytes]]:
    """A file to write that is to become `path`, and that `remove_left` leaves as long as it is
    open.
    """
    while True:
        # A name of its own: two processes may write the same file, and each must rename its own.
        partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PARTIAL}")
        file = partial.open("xb")
        _hold(file.fileno())
        if partial.exists():
            return partial, file
        file.close()


def _hold(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_SH)


def remove_left(partial: Path) -> bool:
    """Removes what a killed process left of a file or a folder; returns whether it did: not while a
    process writes it.
    """
    with lab_errors("removing", partial):
        if partial.is_symlink() or (is_odd(partial) and not partial.is_dir()):
            remove(partial)  # which no process makes
            return True
        try:
            descriptor = os.open(partial, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            remove(partial)
        finally:
            os.close(descriptor)
    return True


def read_json(path: Path, kind: type[T]) -> T | None:
    """Return what a JSON file holds; None if it cannot be read or is of another kind."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        return msgspec.json.decode(read_regular(path), type=kind)
    return None


def write_json(path: Path, content: msgspec.Struct) -> None:
    """Writes it as `write_atomic` does, indented for people."""
    write_atomic(path, msgspec.json.format(msgspec.json.encode(content)))


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a file, holes as holes; LabError when it cannot be read or written."""
    with lab_errors("writing", target), source.open("rb") as old, target.open("xb") as new:
        os.ftruncate(new.fileno(), os.fstat(old.fileno()).st_size)
        for start, end in data_extents(old.fileno()):
            os.lseek(new.fileno(), start, os.SEEK_SET)
            at = start
            while at < end:
                copied = _copied_bytes(old.fileno(), new.fileno(), at, end - at)
                if not copied:
                    raise OSError(errno.EIO, f"{source} became shorter while it was copied")
                at += copied


def _copied_bytes(old: int, new: int, start: int, count: int) -> int:
    """Copy up to that many bytes to where `new` stands; return how many were copied."""
    try:
        return os.copy_file_range(old, new, count, offset_src=start)
    except OSError as error:
        # Between file systems, as between the layers of an overlay, some kernels refuse it.
        if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        return os.sendfile(new, old, start, count)


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
    with partial_folder(final.with_name(final.name + PARTIAL)) as partial:
        yield partial
        name_folder(partial, final, replaces=True)
        _made.set()


def name_folder(partial: Path, final: Path, *, replaces: bool = False) -> None:
    """Give a folder its name once all that is in it is on the disk. LabError where that cannot be,
    as when there are files of that name that it does not replace.
    """
    with lab_errors("writing", final):
        _sync(partial)
        if replaces:
            remove(final)
        partial.rename(final)
        _sync_one(final.parent)


_made = threading.Event()


def has_made_folders() -> bool:
    """Return whether folders were made since the last call; the cache may hold too much by them."""
    found = _made.is_set()
    _made.clear()
    return found


@contextlib.contextmanager
def partial_folder(partial: Path) -> Iterator[Path]:
    """Gives an empty folder of that path, which goes when the body ends, and which `remove_left`
    leaves until then. The caller must hold a lock for it; what a killed process left is removed.
    """
    remove(partial)
    descriptor = _new_held(partial)
    try:
        yield partial
    finally:
        os.close(descriptor)
        remove(partial)


def _new_held(folder: Path) -> int:
    while True:
        make_folder(folder)
        with lab_errors("creating the folder", folder), contextlib.suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            _hold(descriptor)
            if folder.exists():
                return descriptor
            os.close(descriptor)


_MOST_SYNCED = 64


def _sync(folder: Path) -> None:
    """Has all that is in a folder on the disk before the folder gets its name: after a power cut it
    would hold files that are empty or cut.
    """
    paths = [Path(root, name) for root, _, names in os.walk(folder) for name in ("", *names)]
    if len(paths) > _MOST_SYNCED:  # one at a time takes a disk longer than all that it has to write
        os.sync()
        return
    for path in paths:
        if not path.is_symlink():
            _sync_one(path)


def _sync_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def move(path: Path, to: Path) -> None:
    """Move a file or a folder. A folder of a lower layer of an overlay, as a container's image is
    one, is copied and removed. LabError where that fails.
    """
    with lab_errors("moving", path):
        try:
            path.rename(to)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            shutil.move(path, to, copy_function=_copied)


def _copied(source: str, target: str) -> None:
    copy_sparse(Path(source), Path(target))


def remove(path: Path) -> None:
    """Removes a file or a folder with all that is in it; nothing there is fine."""
    with lab_errors("removing", path):
        if path.is_dir() and not path.is_symlink():
            try:
                shutil.rmtree(path)
            except RecursionError:
                _remove_deep(path)
        else:
            path.unlink(missing_ok=True)


def _remove_deep(folder: Path) -> None:
    """Removes a folder that is nested too deeply for rmtree, which calls itself, and for paths: the
    folders in it are moved up one by one.
    """
    waiting = [folder]
    while waiting:
        here = waiting[-1]
        with os.scandir(here) as entries:
            inner = None
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    inner = entry.path
                    break
                Path(entry.path).unlink()
        if inner is None:
            here.rmdir()
            waiting.pop()
        else:
            waiting.append(Path(inner).rename(folder / secrets.token_hex(8)))
