# SPDX-License-Identifier: GPL-2.0-or-later
"""The commits of a range in a user's repository, as patches. The repository is only read."""

import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kdelta.kernels.sources.git import must_be_repository, object_named, read_repository
from kdelta.kernels.sources.patches import Patch
from kdelta.spec.errors import UserError

_FIELDS = ("%H", "%h", "%P", "%an <%ae>", "%aI", "%s", "%b")
_DIFF = (
    *("diff-tree", "-p", "--binary", "--full-index", "--no-renames", "--no-relative"),
    *("--root", "--no-commit-id", "--no-ext-diff", "--no-textconv"),
)


class PatchCommit(msgspec.Struct, frozen=True):
    """A commit that is not a merge; `short` is its abbreviated hash."""

    hash: str
    short: str
    author: str
    date: str
    subject: str
    body: str


class PatchRange(msgspec.Struct, frozen=True):
    """The patches of a range, oldest first; `merges` commits were left out, and `empty` ones."""

    patches: tuple[Patch, ...]
    merges: int
    empty: int


def range_patches(repository: Path, first: str, last: str) -> PatchRange:
    """The commits that are in `last` and not in `first`, as patches in an order that keeps to the
    history, as git format-patch has them. UserError for what is no repository or commit, and for a
    range without commits.
    """
    _must_be_commits(repository, first, last)
    commits, merges = commits_of(repository, [last, f"^{first}"])
    if not commits:
        back = commits_of(repository, [first, f"^{last}"])[0]
        hint = f"did you mean {last}..{first}?" if back else "both are the same commit"
        raise UserError(f"{first}..{last} has no commits in {repository}", hint)
    patches = tuple(commit_patches(repository, commits))
    return PatchRange(patches, merges, len(commits) - len(patches))


def commits_of(repository: Path, words: Sequence[str]) -> tuple[list[PatchCommit], int]:
    """Return the commits that these words of git log name, oldest first, less merges; and how many
    merges there are.
    """
    # Not known to who wrote the messages: what a commit begins with.
    mark = secrets.token_hex(16)
    form = f"--format={mark}{'%x00'.join(_FIELDS)}%x00"
    words = ["log", "--encoding=UTF-8", "--reverse", "--topo-order", form, *words, "--"]
    result = read_repository(repository, *words).or_raise(UserError, str(repository))
    printed = result.stdout.decode("utf-8", "replace").split(mark)[1:]
    rows = [row.split("\0", len(_FIELDS)) for row in printed]
    plain = [row for row in rows if len(row[2].split()) < 2]
    found = [PatchCommit(row[0], row[1], row[3], row[4], row[5], row[6].strip()) for row in plain]
    return found, len(rows) - len(plain)


def commit_patches(repository: Path, commits: Sequence[PatchCommit]) -> Iterator[Patch]:
    """The patches of commits; those that change nothing have none."""
    for commit in commits:
        # Plumbing: what the user has set for diffs does not change it.
        result = read_repository(repository, *_DIFF, commit.hash).or_raise(
            UserError,
            f"{commit.short} cannot be read in {repository}",
            "a shallow or partial clone may lack what it needs: git fetch --unshallow",
        )
        if result.stdout.strip():
            yield Patch(
                commit.short,
                result.stdout,
                subject=commit.subject,
                author=commit.author,
                date=commit.date,
                message=commit.body,
            )


def _must_be_commits(repository: Path, first: str, last: str) -> None:
    shallow = must_be_repository(repository, "", "--is-shallow-repository").text == "true"
    for name in (first, last):
        if name.startswith("-"):
            raise UserError(f"not a revision: {name}")
        if not object_named(repository, f"{name}^{{commit}}"):
            hint = "it is a shallow clone: git fetch --unshallow" if shallow else ""
            raise UserError(f"{repository} has no commit {name}", hint)
    words = ("merge-base", "--is-ancestor", first, last)
    if shallow and not read_repository(repository, *words).ok:
        raise UserError(
            f"{repository} is a shallow clone, in which {last} does not come from {first}",
            "git fetch --unshallow",
        )
