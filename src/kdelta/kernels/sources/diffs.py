# SPDX-License-Identifier: GPL-2.0-or-later
"""What a diff says: the files that it touches, and its hunks."""

import re
from collections.abc import Iterator

import msgspec

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_HEADER = re.compile(
    rb"diff --git |--- |\+\+\+ |index |(?:old|new|new file|deleted file) mode |(?:copy|rename) "
    rb"(?:from|to) |(?:dis)?similarity index |GIT binary patch|\\ "
)
_PREFIXED = ((b"rename from ", "old"), (b"copy from ", "old"), (b"rename to ", "new"))


class Hunk(msgspec.Struct, frozen=True):
    """A hunk's number in its file, from 1, where it begins in the old file, and its lines: those
    that it expects there, and those that it adds. `last` is the last line of the old file that it
    names.
    """

    file: str
    number: int
    line: int
    expected: tuple[bytes, ...]
    added: tuple[bytes, ...] = ()

    @property
    def last(self) -> int:
        return self.line + max(len(self.expected), 1) - 1


class Diff(msgspec.Struct, frozen=True):
    """The names that a diff has for files, old and new ones, in order; and its hunks."""

    files: tuple[str, ...]
    hunks: tuple[Hunk, ...]


def read_diff(patch: bytes) -> Diff:
    """The files and hunks of a patch, whose text before and between the diffs is no matter. Names
    are without their first part, as with patch -p1.
    """
    lines = iter(patch.splitlines())
    files: dict[str, None] = {}
    hunks: list[Hunk] = []
    file, number = "", 0
    for line in lines:
        if line.startswith(b"diff --git "):
            file, number = "", 0
            for file in _both_names(line):
                files[file] = None
        elif line.startswith((b"--- ", b"+++ ")):
            found = _stripped(line[4:].partition(b"\t")[0])
            if line.startswith(b"--- "):
                file, number = found or "", 0
            file = file or found or ""
            if found:
                files[found] = None
        elif kind := next((kind for start, kind in _PREFIXED if line.startswith(start)), None):
            name = unquote(line.split(b" ", 2)[2])
            files[name] = None
            file = name if kind == "old" else file
        elif match := _HUNK.match(line):
            number += 1
            hunks.append(_hunk(match, lines, file, number))
    return Diff(tuple(files), tuple(hunks))


def unified_lines(patch: bytes) -> bytes:
    """The lines of a patch that are its diffs', without any text before and between them."""
    kept = []
    old = new = 0
    for line in patch.split(b"\n"):
        if old > 0 or new > 0:
            old -= line[:1] in (b" ", b"-", b"")
            new -= line[:1] in (b" ", b"+", b"")
        elif match := _HUNK.match(line):
            old, new = _counts(match)
        elif not _HEADER.match(line):
            continue
        kept.append(line + b"\n")
    return b"".join(kept)


def _counts(match: re.Match[bytes]) -> tuple[int, int]:
    """How many lines a hunk has of the old file, and of the new one."""
    return int(match[2] or 1), int(match[4] or 1)


def _hunk(match: re.Match[bytes], lines: Iterator[bytes], file: str, number: int) -> Hunk:
    old, new = _counts(match)
    expected, added = [], []
    while old > 0 or new > 0:
        body = next(lines, b"\\")
        old -= body[:1] in (b" ", b"-", b"")
        new -= body[:1] in (b" ", b"+", b"")
        if body[:1] in (b" ", b"-", b""):  # editors cut the blank of an empty line
            expected.append(body[1:])
        if body[:1] == b"+":
            added.append(body[1:])
        if body == b"\\":
            break
    return Hunk(file, number, int(match[1]), tuple(expected), tuple(added))


def _stripped(name: bytes) -> str | None:
    """A file's name in a header, without its first part; None for no file."""
    text = unquote(name.rstrip(b"\r "))
    return None if text == "/dev/null" else text.partition("/")[2] or None


def _both_names(line: bytes) -> list[str]:
    """The names of a line `diff --git a/X b/X`, where they can be distinguished: a renamed file has
    lines of its own for them.
    """
    rest = line.removeprefix(b"diff --git ").rstrip(b"\r")
    if rest.startswith(b'"'):
        found = re.findall(rb'"(?:[^"\\]|\\.)*"', rest)
    else:
        middle = len(rest) // 2
        found = [rest[:middle], rest[middle + 1 :]]
    names = {_stripped(name) for name in found}
    return [name for name in names if name] if len(names) == 1 else []


def unquote(name: bytes) -> str:
    """A file's name as diffs have it: as it is, or in double quotes with C's escapes."""
    if len(name) < 2 or not (name.startswith(b'"') and name.endswith(b'"')):
        return name.decode("utf-8", "replace")
    plain = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f"}

    def meant(match: re.Match[bytes]) -> bytes:
        escape = match[1]
        return bytes([int(escape, 8) & 0xFF]) if len(escape) == 3 else plain.get(escape, escape)

    return re.sub(rb"\\([0-7]{3}|.)", meant, name[1:-1]).decode("utf-8", "replace")
