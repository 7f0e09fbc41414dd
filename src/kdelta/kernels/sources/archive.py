# SPDX-License-Identifier: GPL-2.0-or-later
"""A packed archive of a source tree -> a tree in kdelta's store, without unpacking it anywhere."""

import contextlib
import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from kdelta.host.command import echo_command, find_program, piped
from kdelta.host.files import lab_errors
from kdelta.kernels.sources.git import GitResult, GitStore, check_space
from kdelta.spec.errors import UserError
from kdelta.spec.limits import ARCHIVE_DEPTH, SOURCE_BYTES, SOURCE_FILES

_PACKERS = {
    b"\xfd7zXZ\0": "xz",
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_TAR_MAGIC_OFFSET = 257
_BLOCK_BYTES = 512
_BUFFER_BYTES = 1 << 20
_REF = "refs/archives/import"


def packer_of(file: Path) -> str | None:
    """What packed an archive, by its first bytes: a program, or "" for a plain tar; None when it is
    no archive that can be read.
    """
    with lab_errors("reading", file), file.open("rb") as opened:
        head = opened.read(512)
    for magic, program in _PACKERS.items():
        if head.startswith(magic):
            return program
    return "" if head[_TAR_MAGIC_OFFSET:].startswith(b"ustar") else None


def import_archive(store: GitStore, file: Path) -> str:
    """The tree in an archive: what lies in its one topmost folder, if there is only one.

    UserError when the archive is damaged, or names files that lie outside of it.
    """
    with _unpacked(file) as opened, _fast_import(store) as target:
        stream = _Tail(opened, file)
        try:
            with tarfile.open(fileobj=stream, mode="r|", bufsize=_BUFFER_BYTES) as archive:
                for count, member in enumerate(archive):
                    if count >= SOURCE_FILES:
                        raise _too_large(file, f"more than {SOURCE_FILES} files")
                    _add(target, archive, member, file)
            while stream.read(_BUFFER_BYTES):
                pass
        except (tarfile.TarError, EOFError) as error:
            raise UserError(f"the archive {file} is damaged: {error}", "fetch it again") from error
        if stream.last != bytes(_BLOCK_BYTES):
            raise UserError(f"the archive {file} is damaged: it is cut off", "fetch it again")
    tree = store.git("rev-parse", f"{_REF}^{{tree}}").text
    names = store.git("ls-tree", "--name-only", tree).text.splitlines()
    if len(names) == 1 and (inner := store.attempt("rev-parse", f"{tree}:{names[0]}")).ok:
        tree = inner.text
    return tree


class _Tail(io.RawIOBase):
    """A stream whose last block is remembered: a whole tar ends in zeros, and tarfile takes one
    that is cut off between two files for whole.
    """

    def __init__(self, stream: IO[bytes], file: Path) -> None:
        super().__init__()
        self._stream = stream
        self._file = file
        self._bytes = 0
        self.last = b""

    def read(self, size: int = -1, /) -> bytes:
        if piece := self._stream.read(size):
            self.last = (self.last + piece[-_BLOCK_BYTES:])[-_BLOCK_BYTES:]
            self._bytes += len(piece)
            if self._bytes > SOURCE_BYTES:
                raise _too_large(self._file, f"more than {SOURCE_BYTES >> 20} MiB")
        return piece


@contextlib.contextmanager
def _unpacked(file: Path) -> Iterator[IO[bytes]]:
    """The archive as a stream of tar. UserError if it proves to be damaged at its end."""
    if not (packer := packer_of(file)):
        with lab_errors("reading", file), file.open("rb") as opened:
            yield opened
        return

    def damaged(said: str) -> UserError:
        return UserError(f"the archive {file} is damaged: {said or packer}", "fetch it again")

    with piped([packer, "-dc", file], damaged) as stream:
        yield stream


@contextlib.contextmanager
def _fast_import(store: GitStore) -> Iterator[IO[bytes]]:
    """Where to write the entries of one new tree. git writes them as one pack, which is there whole
    or, when the body fails, not at all.
    """
    argv = [find_program("git"), "fast-import", "--quiet", "--force", "--done", "--depth=0"]
    echo_command(argv)
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            argv,
            env=store.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        ) as process,
    ):
        assert process.stdin is not None
        try:
            process.stdin.write(b"commit %b\ncommitter kdelta <> 0 +0000\n" % _REF.encode())
            process.stdin.write(b"data 0\ndeleteall\n")
            yield process.stdin
            process.stdin.write(b"\ndone\n")
            process.stdin.close()
        except BrokenPipeError:
            pass
        except BaseException:
            process.kill()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            raise
        if process.wait() != 0:
            errors.seek(0)
            result = GitResult(process.returncode, b"", errors.read().decode("utf-8", "replace"))
            check_space(result, store.folder)
            raise store.broken(result)


def _add(target: IO[bytes], archive: tarfile.TarFile, member: tarfile.TarInfo, file: Path) -> None:
    """Adds an archive's entry. Folders are made automatically, and devices are left out."""
    if (path := _checked(member.name, file)) is None:
        return
    if member.issym():
        link = os.fsencode(member.linkname)
        target.write(b"M 120000 inline %b\ndata %d\n%b\n" % (path, len(link), link))
    elif member.islnk():
        if (source := _checked(member.linkname, file)) is not None:
            target.write(b"C %b %b\n" % (source, path))
    elif member.isreg():
        mode = b"100755" if member.mode & 0o100 else b"100644"
        content = archive.extractfile(member)
        assert content is not None
        target.write(b"M %b inline %b\ndata %d\n" % (mode, path, member.size))
        while piece := content.read(_BUFFER_BYTES):
            target.write(piece)
        target.write(b"\n")


def _too_large(file: Path, what: str) -> UserError:
    return UserError(
        f"the archive {file} is refused: it unpacks to {what}",
        "that is no archive of a source tree",
    )


def _checked(name: str, file: Path) -> bytes | None:
    """An entry's path, quoted for fast-import; None for what is no part of a tree."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts:
        raise UserError(
            f"the archive {file} is refused: it holds the path {name!r}",
            "that is no archive of a source tree",
        )
    if len(parts) > ARCHIVE_DEPTH:
        raise _too_large(file, f"more than {ARCHIVE_DEPTH} folders in each other")
    # A repository that was packed with its tree.
    if not parts or any(part.lower() == ".git" for part in parts):
        return None
    path = os.fsencode("/".join(parts))
    path = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + path + b'"'
