# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches on a tree in kdelta's store: all of a file apply, or it is said which one does not."""

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kdelta.host.files import remove
from kdelta.kernels.git import GitResult, GitStore, check_space, run_git
from kdelta.spec.errors import UserError

_APPLY = ("apply", "--cached", "-p1", "--whitespace=nowarn")
_SHOWN_CHARACTERS = 60

_DIFF = re.compile(rb"^(?:diff --git |--- \S)", re.MULTILINE)
_MAIL = re.compile(
    rb"From |(?:[\w-]+:.*\n(?:[ \t].*\n)*)*(?:Message-I[dD]|MIME-Version):", re.IGNORECASE
)
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")


class PatchFailure(msgspec.Struct, frozen=True):
    """A patch that does not apply. `patch` is its file, for one of several with the mail's subject;
    `detail` says which file and hunk, and why.
    """

    patch: str
    detail: str


class _Patch(msgspec.Struct, frozen=True):
    name: str
    content: bytes


class _Hunk(msgspec.Struct, frozen=True):
    """A hunk's number in its file, from 1, where it begins in the old file, and what it expects."""

    file: str
    number: int
    line: int
    expected: tuple[bytes, ...]


def apply_patches(store: GitStore, tree: str, files: Sequence[Path]) -> str | PatchFailure:
    """The tree with the patches of these files, one after the other; the caller holds the lock of
    the store. UserError for a file that is missing, or holds no patch.
    """
    patches = [patch for file in files for patch in _read(file)]
    if not patches:
        return tree
    try:
        store.git("read-tree", tree, index="patch")
        for patch in patches:
            if failure := _apply(store, patch):
                return failure
        return store.git("write-tree", index="patch").text
    finally:
        remove(store.index("patch"))


def _read(file: Path) -> list[_Patch]:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UserError(
            f"the patch {file} cannot be read: {error.strerror}", "check the path"
        ) from error
    if not _MAIL.match(content):
        patches = [_Patch(file.name, content)]
    else:
        patches = [patch for patch in _mails(file, content) if _DIFF.search(patch.content)]
    if not patches or not _DIFF.search(patches[0].content):
        raise UserError(f"{file} holds no patch", "a patch is what git diff or diff -u prints")
    return patches


def _mails(file: Path, content: bytes) -> list[_Patch]:
    """The patches of an mbox, or of one mail, decoded."""
    keep = [] if content.partition(b"\n")[0].endswith(b"\r") else ["--keep-cr"]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        _git(["mailsplit", "-b", *keep, f"-o{folder}", str(file.absolute())], work, file)
        patches = []
        for mail in sorted(work.glob("[0-9]*")):
            said = _git(["mailinfo", "message", "patch"], work, file, mail.read_bytes())
            match = re.search(r"^Subject: (.*)$", said.text, re.MULTILINE)
            subject = f'"{match[1]}"' if match else f"mail {int(mail.name)}"
            patches.append(_Patch(f"{file.name}: {subject}", (work / "patch").read_bytes()))
    return patches if len(patches) > 1 else [_Patch(file.name, p.content) for p in patches]


def _git(words: list[str], cwd: Path, file: Path, stdin: bytes = b"") -> GitResult:
    result = run_git(words, cwd=cwd, stdin=stdin)
    check_space(result, cwd)
    if not result.ok:
        raise UserError(f"{file} cannot be read as mail: {result.complaint()}")
    return result


def _apply(store: GitStore, patch: _Patch) -> PatchFailure | None:
    result = store.attempt(*_APPLY, "-", index="patch", stdin=patch.content)
    if result.ok:
        return None
    if store.attempt(*_APPLY, "--check", "-R", "-", index="patch", stdin=patch.content).ok:
        return PatchFailure(patch.name, "it is applied already: the tree has all of its changes")
    said = list(dict.fromkeys(_reasons(store, patch, result)))
    more = f"; and {len(said) - 1} more files" if len(said) > 2 else ""
    said = said[: 1 if more else 2]
    return PatchFailure(patch.name, ("; ".join(said) + more) or result.complaint())


def _reasons(store: GitStore, patch: _Patch, result: GitResult) -> Iterator[str]:
    """Why, a line for each file that does not fit."""
    for line in result.stderr.splitlines():
        text = line.removeprefix("error: ")
        if match := re.fullmatch(r"patch failed: (.*):(\d+)", text):
            yield _context_differs(store, patch, match[1], int(match[2]))
        elif match := re.fullmatch(r"(.*): does not exist in index", text):
            hint = "" if "/" in match[1] else " (paths lose their first part, as in patch -p1)"
            yield f"{match[1]}: the tree has no such file{hint}"
        elif match := re.fullmatch(r"(.*): already exists in index", text):
            yield f"{match[1]}: the patch makes this file, and the tree has it already"
        elif match := re.fullmatch(r"(?:corrupt patch at line|.* at line) (\d+).*", text):
            yield f"the patch is damaged at its line {match[1]}"
        elif match := re.search(r"cannot apply binary patch to '(.*)' without full index", text):
            yield f"{match[1]}: the patch says that it differs, but not how (git diff --binary)"
        elif match := re.search(r"the patch applies to '(.*)' \(", text):
            yield f"{match[1]}: the patch is for another content of this binary file"


def _context_differs(store: GitStore, patch: _Patch, file: str, line: int) -> str:
    hunk = next((h for h in _hunks(patch.content) if (h.file, h.line) == (file, line)), None)
    if hunk is None:
        return f"{file}, line {line}: the context differs"
    where = f"{file}, hunk {hunk.number} (line {hunk.line})"
    there = set(_indexed(store, file).splitlines())
    missing = next((text for text in hunk.expected if text not in there), None)
    if missing is None:
        return f"{where}: the context differs: its lines are not together in the tree's file"
    shown = missing.decode("utf-8", "replace").strip()
    if len(shown) > _SHOWN_CHARACTERS:
        shown = shown[: _SHOWN_CHARACTERS - 3] + "..."
    return f"{where}: the context differs: the tree's file has no line `{shown}`"


def _indexed(store: GitStore, file: str) -> bytes:
    result = store.attempt("cat-file", "blob", f":{file}", index="patch")
    return result.stdout if result.ok else b""


def _hunks(patch: bytes) -> Iterator[_Hunk]:
    """The hunks of a diff, with the old names of their files."""
    lines = iter(patch.splitlines())
    file, number = "", 0
    for line in lines:
        if line.startswith((b"--- ", b"diff --git ", b"rename from ")):
            file = _old_name(line) or file
            number = 0
        elif match := _HUNK.match(line):
            number += 1
            old, new = (int(match[i]) if match[i] is not None else 1 for i in (2, 3))
            expected = []
            while old > 0 or new > 0:
                body = next(lines, b"\\")
                old -= body[:1] in (b" ", b"-", b"")
                new -= body[:1] in (b" ", b"+", b"")
                if body[:1] in (b" ", b"-"):
                    expected.append(body[1:])
                if body == b"\\":
                    break
            yield _Hunk(file, number, int(match[1]), tuple(expected))


def _old_name(line: bytes) -> str | None:
    """The old file's name in a header line, without its first part."""
    if line.startswith(b"rename from "):
        return unquote(line.removeprefix(b"rename from "))
    if not line.startswith(b"--- "):
        return None
    name = unquote(line.removeprefix(b"--- ").partition(b"\t")[0])
    return name.partition("/")[2] or None


def unquote(name: bytes) -> str:
    """A file's name as diffs have it: as it is, or in double quotes with C's escapes."""
    if len(name) < 2 or not (name.startswith(b'"') and name.endswith(b'"')):
        return name.decode("utf-8", "replace")
    plain = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f"}

    def meant(match: re.Match[bytes]) -> bytes:
        escape = match[1]
        if len(escape) == 3:
            return bytes([int(escape, 8) & 0xFF])
        return plain.get(escape, escape)

    return re.sub(rb"\\([0-7]{3}|.)", meant, name[1:-1]).decode("utf-8", "replace")
