# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches on a tree in kdelta's store: all of a file apply, or it is reported which one does
not.
"""

import itertools
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from kdelta.host.files import remove
from kdelta.kernels.sources.diffs import Hunk, read_diff
from kdelta.kernels.sources.fuzz import USUAL, FuzzyHunk, apply_with_fuzz
from kdelta.kernels.sources.git import GitResult, GitStore

_APPLY = ("apply", "--cached", "-p1", "--whitespace=nowarn")
_SHOWN_CHARACTERS = 60
_MOST_REASONS = 20

_DIFF = re.compile(rb"^(?:diff --git \S|--- \S[^\n]*\n\+\+\+ \S)", re.MULTILINE)
_CRLF_HEADER = re.compile(rb"^(?:--- \S|\+\+\+ \S|@@ -\d)[^\n]*\r$", re.MULTILINE)
FIELD = re.compile(r"^([A-Za-z][\w-]*): *(\S.*)$", re.MULTILINE)
SUBJECT_PREFIX = re.compile(r"^(?:\[[^\]]*\]\s*)+")

# What git apply says of hunks that do not fit, and of nothing else. What it refuses for another
# reason, such as binary files, patch could pass over without a word.
_CONTEXT = re.compile(r"error: (?:patch failed: .*:\d+|.*: patch does not apply)")
# What git apply says, and what that means.
_REASONS = (
    (r"^(.*): already exists in index$",
     "{}: the patch makes this file, and the tree has it already"),
    (r"^(?:corrupt patch at line|.* at line) (\d+)", "the patch is damaged at its line {}"),
    (r"cannot apply binary patch to '(.*)' without full index",
     "{}: the patch says that it differs, but not how (git diff --binary)"),
    (r"the patch applies to '(.*)' \(", "{}: the patch is for another content of this binary file"),
)  # fmt: skip


class PatchFailure(msgspec.Struct, frozen=True):
    """A patch that does not apply. `patch` is its file, for one of several with the mail's subject;
    `detail` says which file and hunk, and why.
    """

    patch: str
    detail: str


class Patch(msgspec.Struct, frozen=True):
    """A patch: its name for people, and the diff, perhaps with text before it. `subject`, `author`
    ("NAME <ADDRESS>"), `date` and `message` (what follows the subject) are as a mail, a commit or
    the head of the file has them, or empty. `fuzz`: with up to how much of it the patch is applied.
    """

    name: str
    content: bytes
    subject: str = ""
    author: str = ""
    date: str = ""
    message: str = ""
    fuzz: int = 0


class Patched(msgspec.Struct, frozen=True):
    """A tree with patches. `notes`: what was applied with fuzz, and which of several patches change
    nothing, a line each.
    """

    tree: str
    notes: tuple[str, ...] = ()


def apply_patches(store: GitStore, tree: str, patches: Sequence[Patch]) -> Patched | PatchFailure:
    """The tree with these patches, one after the other; the caller holds the lock of the store."""
    if not patches:
        return Patched(tree)
    notes: list[str] = []
    try:
        store.git("read-tree", tree, index="patch")
        for patch in patches:
            applied = apply_patch(store, patch)
            if isinstance(applied, PatchFailure):
                return applied
            notes += fuzz_notes(patch, applied)
        patched = store.git("write-tree", index="patch").text
    finally:
        remove(store.index("patch"))
    if len(patches) > 1 and patched != tree:
        notes += _without_effect(store, tree, patched, patches)
    return Patched(patched, tuple(notes))


def _without_effect(
    store: GitStore, before: str, after: str, patches: Sequence[Patch]
) -> Iterator[str]:
    """Those of the patches of whose files none is changed in the end."""
    words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after)
    changed = set(store.git(*words).stdout.decode("utf-8", "replace").split("\0"))
    for patch in patches:
        if changed.isdisjoint(read_diff(patch.content).files):
            yield f"{patch.name} changes nothing: with all patches, its files are as without any"


def has_diff(content: bytes) -> bool:
    """Whether there is a diff anywhere in it."""
    return _DIFF.search(content) is not None


def plain_patch(name: str, content: bytes) -> Patch:
    """A patch from a diff, and what the text before it says. Line ends that some transport made
    CRLF, those of the diff's own lines among them, are as they were.
    """
    if _CRLF_HEADER.search(content):
        content = content.replace(b"\r\n", b"\n")
    start = found.start() if (found := _DIFF.search(content)) else 0
    head = content[:start].decode("utf-8", "replace")
    fields = {m[1].lower(): m[2].strip() for m in FIELD.finditer(head)}
    return Patch(
        name,
        content,
        subject=SUBJECT_PREFIX.sub("", fields.get("subject") or fields.get("description") or ""),
        author=fields.get("from") or fields.get("author") or "",
        date=fields.get("date", ""),
        message=_body(head),
    )


def _body(head: str) -> str:
    """What follows the fields at the head of a patch, up to quilt's and git's own lines."""
    lines = itertools.dropwhile(
        lambda line: FIELD.match(line) or line[:1] in (" ", "\t"), head.splitlines()
    )
    kept = itertools.takewhile(lambda line: line != "---" and line[:7] != "Index: ", lines)
    return "\n".join(kept).strip()


def apply_patch(store: GitStore, patch: Patch) -> tuple[FuzzyHunk, ...] | PatchFailure:
    """Applies a patch to the store's index "patch", which stays as it was where that fails; the
    hunks that needed fuzz.
    """
    result = store.attempt(*_APPLY, "-", index="patch", stdin=patch.content)
    if result.ok:
        return ()
    if store.attempt(*_APPLY, "--check", "-R", "-", index="patch", stdin=patch.content).ok:
        return PatchFailure(patch.name, "it is applied already: the tree has all of its changes")
    context = all(_CONTEXT.fullmatch(line) for line in result.stderr.splitlines())
    if context and patch.fuzz:
        hunks = apply_with_fuzz(store, patch.content, patch.fuzz)
        if hunks is not None:
            return hunks
    said = list(dict.fromkeys(_reasons(store, patch, result)))
    more = [f"and {len(said) - _MOST_REASONS} more"] if len(said) > _MOST_REASONS else []
    detail = "; ".join([*said[:_MOST_REASONS], *more]) or result.complaint()
    return PatchFailure(patch.name, detail + (_with_more_fuzz(store, patch) if context else ""))


def with_fuzz(patches: Iterable[Patch], fuzz: int) -> list[Patch]:
    """The patches, to be applied with up to so much fuzz."""
    return [msgspec.structs.replace(patch, fuzz=fuzz) for patch in patches]


def fuzz_notes(patch: Patch, hunks: Sequence[FuzzyHunk]) -> list[str]:
    """What is reported of a patch of which these hunks needed fuzz, in a line each."""
    return [f"{patch.name}: {hunk}" for hunk in hunks]


def _with_more_fuzz(store: GitStore, patch: Patch) -> str:
    """A clause on how much fuzz would take a patch; empty where none does that patch itself would
    take, and where that is not there to be asked.
    """
    if patch.fuzz >= USUAL or not shutil.which("patch"):
        return ""
    hunks = apply_with_fuzz(store, patch.content, USUAL, dry=True)
    if hunks is None:
        return ""
    most = max((one.fuzz for one in hunks), default=1)
    return f"; --fuzz {most} would take it, with less context"


def _reasons(store: GitStore, patch: Patch, result: GitResult) -> Iterator[str]:
    """Why, a line for each hunk that does not fit, and for each file that cannot be patched."""
    for line in result.stderr.splitlines():
        text = line.removeprefix("error: ")
        if match := re.fullmatch(r"patch failed: (.*):(\d+)", text):
            yield from _misfits(store, patch, match[1], int(match[2]))
        elif match := re.fullmatch(r"(.*): does not exist in index", text):
            hint = "" if "/" in match[1] else " (paths lose their first part, as in patch -p1)"
            yield f"{match[1]}: the tree has no such file{hint}"
        else:
            found = ((form, re.search(pattern, text)) for pattern, form in _REASONS)
            yield from (form.format(match[1]) for form, match in found if match)


def _misfits(store: GitStore, patch: Patch, file: str, line: int) -> Iterator[str]:
    """The hunks of a file that do not fit; git names the first of them, by its line."""
    # What git prints is empty where it has no such file.
    there = store.attempt("cat-file", "blob", f":{file}", index="patch").stdout.splitlines()
    hunks = [one for one in read_diff(patch.content).hunks if one.file == file]
    found = [one for one in hunks if one.line == line or not _is_within(one.expected, there)]
    if not any(one.line == line for one in found):
        yield f"{file}, line {line}: the context differs"
    for hunk in found:
        yield f"{file}, hunk {hunk.number} (line {hunk.line}): {_misfit(hunk, set(there))}"


def _misfit(hunk: Hunk, there: Collection[bytes]) -> str:
    missing = next((text for text in hunk.expected if text not in there), None)
    if missing is None:
        return "the context differs: its lines are not together in the tree's file"
    shown = missing.decode("utf-8", "replace").strip()
    if len(shown) > _SHOWN_CHARACTERS:
        shown = shown[: _SHOWN_CHARACTERS - 3] + "..."
    return f"the context differs: the tree's file has no line `{shown}`"


def _is_within(lines: Sequence[bytes], there: Sequence[bytes]) -> bool:
    """Whether these lines follow each other somewhere in a file."""
    count = len(lines)
    return any(
        tuple(there[at : at + count]) == tuple(lines)
        for at in range(len(there) - count + 1)
        if not count or there[at] == lines[0]
    )
