# SPDX-License-Identifier: GPL-2.0-or-later
"""A range of commits of a user's repository, which is only read: who made what of which, and which
files each commit touches.
"""

import re
import secrets
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kdelta.kernels.sources.git import (
    GitResult,
    batch_contents,
    must_be_repository,
    object_named,
    read_repository,
)
from kdelta.spec.errors import LabError, UserError

_FORMAT = "%x00%H%x00%T%x00%P%x00%an <%ae>%x00%as%x00%s%x00"
_FIELDS = 6
_LOG = (
    *("-c", "log.showRoot=true", "log", "--topo-order", "--reverse", "-z", "--name-only"),
    *("--no-renames", "--relative", "--diff-merges=combined", "--no-show-signature"),
    *("--no-ext-diff", "--encoding=UTF-8"),
)
_RANGE = re.compile(r"(?P<good>[^.].*?)?\.\.(?P<bad>[^.].*)?")


class Commit(msgspec.Struct, frozen=True):
    """A commit. `tree`: git's hash of its content. `author` with the address, `date` of the author
    as YYYY-MM-DD. `files`: the paths that it touches, relative to the kernel's folder, both names
    of a renamed one; of a merge those that are as in none of its parents.
    """

    name: str
    tree: str
    parents: tuple[str, ...]
    author: str
    date: str
    subject: str
    files: frozenset[str]

    @property
    def short(self) -> str:
        """The hash as kernel people write it."""
        return self.name[:12]


class CommitRange(msgspec.Struct, frozen=True):
    """What is between two commits.

    good, bad   the ends, older first; the first one is no part of `commits`
    commits     those of `bad` that `good` does not have, each after its parents
    older       the past of `good` as far as branches of the range begin there: commit -> parents
    notes       what is to be known of it
    """

    repository: Path
    good: Commit
    bad: Commit
    commits: tuple[Commit, ...]
    older: dict[str, tuple[str, ...]]
    notes: tuple[str, ...] = ()

    @property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """All commits that are known, each after its parents."""
        older = self.older or {self.good.name: ()}
        return {**older, **{one.name: one.parents for one in self.commits}}


def parse_range(text: str) -> tuple[str, str]:
    """Return the two ends of GOOD..BAD; either may be left out, and is HEAD then, as git has it.
    UserError for what is no range.
    """
    hint = "for example v6.12..v6.13; see gitrevisions(7)"
    match = _RANGE.fullmatch(text)
    if match is None or "..." in text or not (match["good"] or match["bad"]):
        is_one = re.fullmatch(r"[\w/.~^-]+", text) and ".." not in text
        instead = (text, f"{text}..HEAD") if is_one else None
        raise UserError(f"no range of commits: {text!r}", hint, instead)
    ends = match["good"] or "HEAD", match["bad"] or "HEAD"
    for end in ends:
        if end.startswith("-") or any(char.isspace() or not char.isprintable() for char in end):
            raise UserError(f"not a revision: {end!r} in {text!r}", hint)
    return ends


def read_range(repository: Path, good: str, bad: str) -> CommitRange:
    """The commits between two revisions of the repository in a folder.

    UserError when there is no such repository or revision, when they have no common past, or when a
    shallow clone lacks part of it; LabError when git fails otherwise.
    """
    return _RangeReader(repository).read(good, bad)


def read_files(repository: Path, named: Sequence[tuple[str, str]]) -> list[bytes | None]:
    """The contents of files, each named by commit and path below the folder; None for what is not
    there. LabError when git fails.
    """
    if not named:
        return []
    # "./" would say the same, but not in a bare repository.
    said = read_repository(repository, "rev-parse", "--show-prefix").stdout
    prefix = said.removesuffix(b"\n").decode("utf-8", "surrogateescape")
    lines = [f"{commit}:{prefix}{path}" for commit, path in named]
    text = "".join(f"{line}\n" for line in lines if "\n" not in line)
    result = read_repository(
        repository, "cat-file", "--batch", stdin=text.encode("utf-8", "surrogateescape")
    )
    contents = batch_contents(result.or_raise(LabError, f"git failed in {repository}").stdout)
    return [None if "\n" in line else next(contents) for line in lines]


class _RangeReader:
    """A repository that is read."""

    def __init__(self, repository: Path) -> None:
        self._folder = repository
        if not repository.is_dir():
            raise UserError(f"there is no folder {repository}", "name one with -C PATH")
        asked = ("--is-shallow-repository", "--git-path", "shallow")
        found = must_be_repository(repository, "name one with -C PATH", *asked)
        is_shallow, path = found.text.split("\n", 1)
        cut = is_shallow == "true"
        self._shallow = frozenset((repository / path).read_text().split() if cut else ())

    def read(self, good: str, bad: str) -> CommitRange:
        notes: list[str] = []
        start, end = self._commit(good), self._commit(bad)
        if start != end and self._is_below(end, start):
            notes.append(
                f"{bad} is older than {good}, so it is what the search starts at: effects are "
                f"those of going from {bad} to {good}"
            )
            start, end = end, start
        elif not self._is_below(start, end):
            base = self._common(good, bad, start, end)
            notes.append(
                f"{good} is not among what {bad} is made on: the search starts at {base[:12]}, "
                f"where the two part"
            )
            start = base
        commits = self._log(f"{start}..{end}")
        self._must_be_whole(commits, start)
        (first,), (last,) = self._log("-1", start), self._log("-1", end)
        changed = self._try(
            "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"
        )
        if changed.ok and changed.stdout.strip():
            notes.append("files that were changed and not committed are no part of it")
        return CommitRange(
            self._folder, first, last, tuple(commits), self._older(commits, start), tuple(notes)
        )

    def _try(self, *words: str) -> GitResult:
        return read_repository(self._folder, *words)

    def _git(self, *words: str) -> GitResult:
        hint = f"see what git says of it: git -C {self._folder} fsck"
        return self._try(*words).or_raise(LabError, f"git failed in {self._folder}", hint)

    def _commit(self, revision: str) -> str:
        if not (found := object_named(self._folder, f"{revision}^{{commit}}")):
            names = self._try("for-each-ref", "--count=5", "--format=%(refname:short)").text
            hint = f"there is: {', '.join(names.split())}" if names else "it has no commits"
            hint = self._deepen() if self._shallow else hint
            raise UserError(f"{self._folder} has no commit {revision}", hint)
        if len(found) != len("0" * 40):
            raise UserError(f"{self._folder} names its commits by SHA-256, which is not read yet")
        return found

    def _deepen(self) -> str:
        return (
            "the repository is a shallow clone: fetch more of its history with "
            f"git -C {self._folder} fetch --unshallow, or --deepen=N"
        )

    def _is_below(self, commit: str, other: str) -> bool:
        return self._try("merge-base", "--is-ancestor", commit, other).ok

    def _common(self, good: str, bad: str, start: str, end: str) -> str:
        found = self._try("merge-base", start, end).text
        if not found:
            hint = self._deepen() if self._shallow else "name two commits of one history"
            raise UserError(f"{good} and {bad} have no common past in {self._folder}", hint)
        return found

    def _log(self, *words: str) -> list[Commit]:
        # Not known to who wrote the messages and named the files: what a commit begins with.
        mark = secrets.token_hex(16)
        printed = self._git(*_LOG, f"--format={mark}{_FORMAT}", *words, "--").stdout
        return [_commit_of(record) for record in printed.split(mark.encode())[1:]]

    def _must_be_whole(self, commits: Sequence[Commit], start: str) -> None:
        cut = [one.short for one in commits if one.name in self._shallow]
        if cut:
            raise UserError(
                f"the history of {self._folder} ends at {cut[0]}, before {start[:12]}",
                self._deepen(),
            )

    def _older(self, commits: Sequence[Commit], start: str) -> dict[str, tuple[str, ...]]:
        """What branches of the range begin at, and what is between that and the start."""
        inside = {one.name for one in commits}
        begins = {parent for one in commits for parent in one.parents} - inside | {start}
        if begins == {start}:
            return {start: ()}
        # All of them are below the start; what all of them have says nothing.
        base = self._try("merge-base", "--octopus", *sorted(begins)).text
        ends = [*sorted(begins), *([f"^{base}"] if base else [])]
        listed = self._git("rev-list", "--topo-order", "--reverse", "--parents", *ends, "--").text
        rows = ([base] if base else []) + listed.splitlines()
        return {name: tuple(parents) for name, *parents in map(str.split, rows)}


def _commit_of(record: bytes) -> Commit:
    _, *fields, files = record.split(b"\0", _FIELDS + 1)
    name, tree, parents, author, date, subject = (one.decode("utf-8", "replace") for one in fields)
    names = [one.lstrip(b"\n") if at < 2 else one for at, one in enumerate(files.split(b"\0"))]
    return Commit(
        name=name,
        tree=tree,
        parents=tuple(parents.split()),
        author=author,
        date=date,
        subject=subject,
        files=frozenset(one.decode("utf-8", "surrogateescape") for one in names if one),
    )
