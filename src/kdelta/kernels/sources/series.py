# SPDX-License-Identifier: GPL-2.0-or-later
"""The words that name a series of patches -> the patches, in order, each with a name of its own."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.host.command import Log
from kdelta.host.files import expanded
from kdelta.kernels.sources.diffs import Diff, read_diff
from kdelta.kernels.sources.given import read_patches
from kdelta.kernels.sources.measured_branch import is_branch, measured_patches
from kdelta.kernels.sources.patches import SUBJECT_PREFIX, Patch
from kdelta.kernels.sources.quilt import short_name
from kdelta.kernels.sources.ranges import range_patches
from kdelta.spec.errors import UserError

FORMS = (
    "a quilt series file, a folder of patches, patch files, an mbox, A..B or REPO:A..B (a range of "
    "git commits), REPO:BRANCH (what --write-branch wrote)"
)
_RANGE = re.compile(r"(?:git:)?(?:(?P<path>.+)[:@])?(?P<first>[^:@]+?)\.\.(?P<last>[^.:@][^:@]*)")
_SLUG = 48
_WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{3,}")
_NEAR_LINES = 20
_SUSPECTS = 5


def read_series(words: Sequence[str], tree: Path | None, log: Log) -> "PatchSeries":
    """The patches that words name, one word after the other; `tree` is the folder in which A..B is
    looked for. UserError for what names none, and for what cannot be read.
    """
    notes: list[str] = []
    found = [patch for word in words for patch in _of_word(word, tree, notes)]
    if not found:
        raise UserError("no patches", f"name {FORMS}")
    for note in notes:
        log(note)
    return PatchSeries(tuple(_with_own_names(found)), tuple(notes))


class PatchSeries(msgspec.Struct, frozen=True):
    """Patches in order, their names unique. `notes`: what was left out, and why."""

    patches: tuple[Patch, ...]
    notes: tuple[str, ...] = ()


def _of_word(word: str, tree: Path | None, notes: list[str]) -> list[Patch]:
    path = expanded(word)
    if path.exists() or path.is_symlink():
        found = read_patches(path)
        notes.append(f"{word}: {found.described}")
        return [_with_short_name(number, one) for number, one in enumerate(found.patches, start=1)]
    if match := _RANGE.fullmatch(word):
        return _of_range(match, word, tree, notes)
    if is_branch(word):
        return _by_subject(measured_patches(word))
    raise UserError(f"no patches: {word}", f"there is no such file; there is: {FORMS}")


def _with_short_name(number: int, patch: Patch) -> Patch:
    """The patch by its file's name alone, or, of several in a mailbox, by its subject."""
    file, of_several, _ = patch.name.partition(": ")
    short = short_name(Path(file))
    if of_several:
        short = _slug(patch.subject) or f"{short}-{number}"
    return msgspec.structs.replace(patch, name=short)


def _of_range(match: re.Match[str], word: str, tree: Path | None, notes: list[str]) -> list[Patch]:
    path = expanded(match["path"]) if match["path"] else tree
    if path is None:
        raise UserError(
            f"no repository for {word}", "the tree is no folder: write REPO:A..B with its path"
        )
    if match["first"].endswith(".") or match["last"].startswith("."):
        raise UserError(f"not a range: {word}", "write A..B, with two dots")
    if not path.is_dir():
        raise UserError(f"there is no repository {path}", f"it is named in {word}")
    found = range_patches(path, match["first"], match["last"])
    if found.merges:
        notes.append(
            f"{word}: {found.merges} merges left out; the commits of all sides stand in one line"
        )
    if found.empty:
        notes.append(f"{word}: {found.empty} commits left out that change nothing")
    return _by_subject(found.patches)


def _by_subject(patches: Sequence[Patch]) -> list[Patch]:
    """Commits, by what they are about rather than by their hashes."""
    return [
        msgspec.structs.replace(patch, name=_slug(patch.subject) or patch.name) for patch in patches
    ]


def _slug(subject: str) -> str:
    text = SUBJECT_PREFIX.sub("", subject)
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:_SLUG].rstrip("-.")


def _with_own_names(patches: Sequence[Patch]) -> Iterator[Patch]:
    taken: set[str] = set()
    for patch in patches:
        numbered = (f"{patch.name}-{number}" for number in itertools.count(2))
        name = next(one for one in itertools.chain([patch.name], numbered) if one not in taken)
        taken.add(name)
        yield msgspec.structs.replace(patch, name=name)


def likely_needs(patches: Sequence[Patch]) -> Mapping[str, tuple[str, ...]]:
    """For each patch the earlier ones that it may need, the likeliest first: those that bring words
    which it uses, and those that change lines near its own. A guess, by the text alone.
    """
    diffs = {patch.name: read_diff(patch.content) for patch in patches}
    used = {name: _words(diff, "added") for name, diff in diffs.items()}
    # Words that a patch adds, and neither removes nor has around what it adds.
    brought = {name: used[name] - _words(diff, "expected") for name, diff in diffs.items()}
    found = {}
    for place, patch in enumerate(patches):
        scores = [
            (
                3 * len(brought[one.name] & used[patch.name])
                + _nearness(diffs[one.name], diffs[patch.name]),
                number,
                one.name,
            )
            for number, one in enumerate(patches[:place])
        ]
        best = sorted((score for score in scores if score[0]), reverse=True)[:_SUSPECTS]
        found[patch.name] = tuple(name for _, _, name in best)
    return found


def _words(diff: Diff, part: str) -> set[bytes]:
    return {
        word for hunk in diff.hunks for line in getattr(hunk, part) for word in _WORD.findall(line)
    }


def _nearness(one: Diff, other: Diff) -> int:
    """5 for each pair of hunks that are near each other, and 1 for a common file."""
    near = sum(
        5
        for a in one.hunks
        for b in other.hunks
        if a.file == b.file and a.line <= b.last + _NEAR_LINES and b.line <= a.last + _NEAR_LINES
    )
    return near + (not set(one.files).isdisjoint(other.files))
