# SPDX-License-Identifier: GPL-2.0-or-later
"""What a file that the user names holds, unpacked and as UTF-8, and what that looks like."""

import codecs
import re
import stat
from pathlib import Path
from typing import IO

from kdelta.host.command import piped
from kdelta.host.files import user_errors
from kdelta.kernels.sources.archive import packer_of
from kdelta.spec.errors import UserError
from kdelta.spec.limits import GIVEN_FILE_BYTES, GIVEN_LIST_BYTES

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_CONTAINERS = (
    (re.compile(rb"(?s).{257}ustar"), "an archive of files (tar)"),
    (re.compile(rb"\x1f\x8b|\xfd7zXZ\0|BZh|\x28\xb5\x2f\xfd"), "a file packed twice"),
    (re.compile(rb"PK\x03\x04"), "a zip archive"),
    (re.compile(rb"!<arch>\n"), "an archive or a package (ar)"),
    (re.compile(rb"\xed\xab\xee\xdb"), "an rpm package"),
    (re.compile(rb"\x7fELF"), "a program or an object (ELF)"),
    (re.compile(rb"# v\d git bundle\n"), "a git bundle"),
    (re.compile(rb"\s*(?:<!doctype html|<html|<\?xml)", re.IGNORECASE), "a web page (HTML)"),
)
"""How what has other files in it begins: a diff in there is not for kdelta to find."""
_LOOKS = tuple(
    (re.compile(pattern, re.MULTILINE), what)
    for pattern, what in (
        (rb"\A\s*\Z", "an empty file"),
        (rb"\0", "binary data"),
        (rb"^\*\*\* \S.*\n--- \S", "a context diff"),
        (rb"^\d+(?:,\d+)?[acd]\d+(?:,\d+)?\r?\n[<>] ", "a diff without context"),
        (rb"^[>| \t]+(?:diff --git |--- \S.*\n[>| \t]+\+\+\+ \S)",
         "a text with a diff that is quoted or indented"),
        (rb"\A#!", "a script"),
        (rb"\A(?=[^=]*=)(?:[a-z][\w.-]*(?:=\S*)?(?:\s+|\Z))+\Z",
         "boot parameters, of which a change is written +cmdline:\"NAME=VALUE NAME\""),
    )
)  # fmt: skip
"""What is in other contents, and what that is; the first that fits."""
_LOOKED_AT_BYTES = 1 << 20


def read_content(path: Path) -> bytes:
    """A file's content: unpacked (gzip, xz, zstd, bzip2), without a byte order mark, in UTF-8 where
    it was UTF-16. UserError for what is no file, cannot be read, is damaged or too large.
    """
    with user_errors(path, "check the path"):
        _must_be_file(path)
        with path.open("rb") as file:
            packer = packer_of(path)
            content = _unpacked(file, path, packer) if packer else _limited(file, path)
    if content.startswith(_UTF16):
        return content.decode("utf-16", "replace").encode()
    return content.removeprefix(codecs.BOM_UTF8)


def container(content: bytes) -> str | None:
    """What a content is that has files in it, for people; None for any other."""
    return next((what for pattern, what in _CONTAINERS if pattern.match(content)), None)


def looks_like(content: bytes) -> str:
    """What a content that cannot be used looks like, for people."""
    found = (what for pattern, what in _LOOKS if pattern.search(content, 0, _LOOKED_AT_BYTES))
    default = "a text of another kind"
    if len(content) > GIVEN_LIST_BYTES:
        default += f", of more than {GIVEN_LIST_BYTES >> 20} MiB"
    return container(content) or next(found, default)


def _must_be_file(path: Path) -> None:
    if not path.exists():
        link = f" (it is a link to {path.readlink()})" if path.is_symlink() else ""
        raise UserError(f"there is no file {path}{link}", "check the path")
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise UserError(f"{path} is a folder", "name a file in it")
    if not stat.S_ISREG(mode):
        raise UserError(
            f"{path} is no file but a pipe or a device, which is not read",
            "write what it gives into a file, and name that",
        )


def _unpacked(file: IO[bytes], path: Path, packer: str) -> bytes:
    def damaged(said: str) -> UserError:
        return UserError(f"{path} cannot be unpacked: {said or packer}", "fetch it again")

    with piped([packer, "-dc"], damaged, source=file) as stream:
        return _limited(stream, path)


def _limited(stream: IO[bytes], path: Path) -> bytes:
    content = stream.read(GIVEN_FILE_BYTES + 1)
    if len(content) > GIVEN_FILE_BYTES:
        raise UserError(
            f"{path} is too large: more than {GIVEN_FILE_BYTES >> 20} MiB",
            "patches and configs are smaller; of commits name the range: git:REPO@REV",
        )
    return content
