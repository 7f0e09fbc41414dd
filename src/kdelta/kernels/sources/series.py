# SPDX-License-Identifier: GPL-2.0-or-later
"""The words that name a series of patches -> the patches, in order, each with a name of its own."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.host.command import Log
from kdelta.host.files import user_errors
from kdelta.kernels.sources.diffs import Diff, read_diff
from kdelta.kernels.sources.measured_branch import is_branch, measured_patches
from kdelta.kernels.sources.patches import SUBJECT_PREFIX, Patch, has_diff, read_patches
from kdelta.kernels.sources.ranges import range_patches
from kdelta.spec.errors import UserError

FORMS = (
    "a quilt series file, a folder of patches, patch files, an mbox, A..B or REPO:A..B (a range of "
    "git commits), REPO:BRANCH (what --keep wrote)"
)
_RANGE = re.compile(r"(?:git:)?(?:(?P<path>.+)[:@])?(?P<first>[^:@]+?)\.\.(?P<last>[^.:@][^:@]*)")
_SERIES = "series"
_ENDINGS = (".patch", ".diff")
# What quilt writes after a patch's name; all of them mean that paths lose their first part.
_STRIP_ONE = {"-p1", "-pab", "--strip=1"}
_SHOWN = 5
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
    path = Path(word).expanduser()
    if path.is_dir():
        return [patch for file in _folder_files(path) for patch in _of_file(file)]
    if path.is_file():
        is_list = path.name == _SERIES or not has_diff(path.read_bytes())
        files = _listed(path) if is_list else [path]
        return [patch for file in files for patch in _of_file(file)]
    if match := _RANGE.fullmatch(word):
        return _of_range(match, word, tree, notes)
    if is_branch(word):
        return _by_subject(measured_patches(word))
    raise UserError(f"no patches: {word}", f"there is no such file; there is: {FORMS}")


def _listed(path: Path) -> list[Path]:
    """The files of a series; one that names nothing that is there is a patch without a diff."""
    lines = path.read_text(errors="replace").split("\n")
    names = [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
    if path.name != _SERIES and not any((path.parent / name).is_file() for name in names):
        raise UserError(f"{path} holds no patch", "a patch is what git diff or diff -u prints")
    return _series_files(path)


def _series_files(series: Path) -> list[Path]:
    """The files that a series names, in order. UserError for one that is missing, for options
    that mean something else than -p1, and for a series without patches.
    """
    with user_errors(f"the series {series}"):
        text = series.read_bytes().decode("utf-8", "replace")
    if any(not (c.isprintable() or c.isspace()) for c in text):
        raise UserError(
            f"{series} is no list of patches: it holds bytes that are no text",
            "a quilt series file has a patch's path in each line",
        )
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        # A comment begins at a # that begins a word.
        if words := list(itertools.takewhile(lambda word: word[0] != "#", line.split())):
            _check_options(series, number, words)
            found.append(series.parent / words[0])
    if not found:
        raise UserError(f"the series {series} names no patches", "a line of it is a patch's path")
    missing = [str(path.relative_to(series.parent)) for path in found if not path.is_file()]
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        count, verb = ("a patch", "is") if len(missing) == 1 else (f"{len(missing)} patches", "are")
        raise UserError(
            f"{count} of {series} {verb} missing: {', '.join(missing[:_SHOWN])}{more}",
            f"they are looked for below {series.parent}",
        )
    return found


def _check_options(series: Path, number: int, words: list[str]) -> None:
    name, *options = words
    if name[0] in "+-":
        raise UserError(
            f"{series}, line {number}: {name} is a guard, and guards are not understood",
            "write the patches that are meant into a series file of their own",
        )
    joined = "-p1" if options == ["-p", "1"] else " ".join(options)
    if joined and joined not in _STRIP_ONE:
        raise UserError(
            f"{series}, line {number}: {name} is to be applied with {' '.join(options)}, "
            "and only -p1 is understood",
            f"quilt push {name} && quilt refresh -p1",
        )


def _folder_files(folder: Path) -> list[Path]:
    """The patches of a folder: as its series file says, or else all, by name."""
    if (folder / _SERIES).is_file():
        return _series_files(folder / _SERIES)
    with user_errors(folder):
        found = sorted(path for path in folder.iterdir() if path.suffix in _ENDINGS)
    if not found:
        raise UserError(
            f"{folder} has neither a series file nor patches",
            f"patches end in {' or '.join(_ENDINGS)}",
        )
    return found


def _of_file(file: Path) -> list[Patch]:
    """The patches of a file, by short names: the file's, or of several the mails' subjects."""
    patches = read_patches(file)
    if len(patches) == 1:
        return [msgspec.structs.replace(patches[0], name=file.stem)]
    return [
        msgspec.structs.replace(patch, name=_slug(patch.subject) or f"{file.stem}-{number}")
        for number, patch in enumerate(patches, start=1)
    ]


def _of_range(match: re.Match[str], word: str, tree: Path | None, notes: list[str]) -> list[Patch]:
    path = Path(match["path"]).expanduser() if match["path"] else tree
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
