# SPDX-License-Identifier: GPL-2.0-or-later
"""A branch of measured patches in a repository of the user's choice: written, and read again.

Neither the user's work tree nor index is touched: commits are made with an index elsewhere, and
the branch is moved to the last of them in one step. A kill before that leaves objects to which
nothing refers, which git removes in time.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta.host.files import expanded
from kdelta.host.lock import work_folder
from kdelta.kernels.sources.git import (
    GitResult,
    GitStore,
    must_be_repository,
    object_named,
    read_repository,
    run_git,
)
from kdelta.kernels.sources.git_config import writing_environment
from kdelta.kernels.sources.patches import Patch
from kdelta.kernels.sources.ranges import PatchCommit, commit_patches, commits_of
from kdelta.kernels.sources.source import Source
from kdelta.spec.errors import LabError, UserError

EFFECT = "Kdelta-effect"
"""The trailer that says what a patch does in a region; a commit without any was not measured."""

_WORD = re.compile(r"(?P<path>.+):(?P<branch>[^:]+)")
_TRAILER = re.compile(r"^Kdelta-[a-z]+: .*\n?", re.MULTILINE)
_EFFECT = re.compile(rf"^{EFFECT}: (.*)$", re.MULTILINE)
_TRAILERS = re.compile(r"[A-Z][A-Za-z-]*: \S.*")
_MOST = 512
_IDENTITY = ("kdelta", "kdelta@localhost")


class TargetBranch(msgspec.Struct, frozen=True):
    """A branch of a repository, which need not be there yet."""

    repository: Path
    name: str

    def __str__(self) -> str:
        return f"{self.repository}:{self.name}"


class BranchPatch(msgspec.Struct, frozen=True):
    """A patch for a branch, with the trailers of its commit, in order: name and value."""

    patch: Patch
    trailers: tuple[tuple[str, str], ...]


def is_branch(word: str) -> bool:
    """Return whether a word looks like REPO:BRANCH."""
    match = _WORD.fullmatch(word)
    return match is not None and expanded(match["path"]).is_dir()


def parse_branch(word: str) -> TargetBranch:
    """Return the branch that REPO:BRANCH names; UserError for what is no repository, or no name."""
    if (match := _WORD.fullmatch(word)) is None:
        raise UserError(f"not a branch: {word}", "write REPO:BRANCH")
    repository = expanded(match["path"]).absolute()
    if not repository.is_dir():
        raise UserError(f"there is no folder {repository}", "git init makes a repository")
    must_be_repository(repository, "git init")
    if not read_repository(repository, "check-ref-format", "--branch", match["branch"]).ok:
        raise UserError(f"not a name for a branch: {match['branch']}")
    return TargetBranch(repository, match["branch"])


def measured_patches(word: str) -> list[Patch]:
    """The patches of a branch that `write_branch` wrote, those that were put on it since among
    them. UserError for one that has none.
    """
    branch = parse_branch(word)
    if not (commits := measured_commits(branch)):
        raise UserError(
            f"{word} has no commit with a trailer {EFFECT}", "for a range write REPO:A..B"
        )
    return list(commit_patches(branch.repository, commits))


def measured_commits(branch: TargetBranch) -> list[PatchCommit]:
    """The commits of a branch from the first that was measured on; empty where none was."""
    name = f"refs/heads/{branch.name}"
    if not _tip(branch):
        raise UserError(f"{branch.repository} has no branch {branch.name}")
    commits, merges = commits_of(branch.repository, [name, "--first-parent", "-n", str(_MOST)])
    first = next((n for n, one in enumerate(commits) if _EFFECT.search(one.body)), None)
    if first is None:
        return []
    inside = ["rev-list", "--merges", "-n", "1", f"{commits[first].hash}..{name}"]
    if merges and read_repository(branch.repository, *inside).text:
        raise UserError(f"{branch} has merges among its measured commits", "rebase it")
    return commits[first:]


def effects_of(message: str) -> tuple[str, ...]:
    """What the trailers of a commit's message say of its effect."""
    return tuple(_EFFECT.findall(message))


def without_trailers(message: str) -> str:
    """A message without what an earlier measurement said."""
    return _TRAILER.sub("", message)


def write_branch(
    branch: TargetBranch, source: Source, title: str, kept: Sequence[BranchPatch]
) -> str:
    """Makes the branch the source's tree with these patches, a commit each; returns its tip.

    The first parent is a commit of the repository with just that tree, where `title` names one,
    and else a commit that is made for it. UserError for a branch that is checked out, or that holds
    something else, and for a patch that does not apply.
    """
    old = must_be_free(branch)
    with work_folder() as folder:
        writer = _Writer(branch.repository, folder / "index")
        tip = _base_commit(branch.repository, source, title, writer)
        writer.git("read-tree", tip)
        for one in kept:
            tip = writer.commit(one, tip)
        name = f"refs/heads/{branch.name}"
        writer.git("update-ref", "-m", "kdelta series --write-branch", name, tip, old or "0" * 40)
    return tip


def _tip(branch: TargetBranch) -> str:
    return object_named(branch.repository, f"refs/heads/{branch.name}^{{commit}}")


def must_be_free(branch: TargetBranch) -> str:
    """The branch's tip; empty if it is not there. UserError for a branch that is checked out, or
    that holds something else than measured patches.
    """
    listed = read_repository(branch.repository, "worktree", "list", "--porcelain").text
    if f"branch refs/heads/{branch.name}" in listed.splitlines():
        raise UserError(
            f"{branch.name} is checked out in {branch.repository}, and its files are not touched",
            "name another branch, or check out another one there",
        )
    tip = _tip(branch)
    if tip and not measured_commits(branch):
        raise UserError(
            f"{branch} is there already, and kdelta did not write it", "name another branch"
        )
    return tip


def _base_commit(repository: Path, source: Source, title: str, writer: "_Writer") -> str:
    named = object_named(repository, f"{title}^{{commit}}") if title else ""
    if named and object_named(repository, f"{named}^{{tree}}") == source.tree:
        return named
    if not read_repository(repository, "cat-file", "-e", f"{source.tree}^{{tree}}").ok:
        writer.take(source)
    message = f"{source.name}\n\nThe tree that the patches were measured on.\n"
    dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "1970-01-01T00:00:00+00:00")
    words = ("commit-tree", source.tree, "-F", "-")
    return writer.git(*words, stdin=message.encode(), more={**_named("AUTHOR"), **dates}).text


def _named(who: str) -> dict[str, str]:
    return {f"GIT_{who}_NAME": _IDENTITY[0], f"GIT_{who}_EMAIL": _IDENTITY[1]}


class _Writer:
    """Git in the user's repository, with an index of its own."""

    def __init__(self, repository: Path, index: Path) -> None:
        self._repository = repository
        self._index = index
        # In a folder of its own git cannot take the user's for the work tree, nor a part of it.
        self._folder = index.parent
        git_dir = must_be_repository(repository).text
        writing = writing_environment(repository)
        self._env = {**writing, "GIT_DIR": git_dir, "GIT_INDEX_FILE": str(index)}
        if not run_git(["var", "GIT_COMMITTER_IDENT"], env=self._env, cwd=self._folder).ok:
            self._env |= _named("COMMITTER")

    def attempt(
        self, *words: str, stdin: bytes = b"", more: Mapping[str, str] | None = None
    ) -> GitResult:
        env = {**self._env, **(more or {})}
        return run_git(words, env=env, cwd=self._folder, stdin=stdin)

    def git(
        self, *words: str, stdin: bytes = b"", more: Mapping[str, str] | None = None
    ) -> GitResult:
        result = self.attempt(*words, stdin=stdin, more=more)
        return result.or_raise(LabError, f"git failed in {self._repository}")

    def take(self, source: Source) -> None:
        """Copies a source's tree into the repository, as one pack."""
        name = self._index.with_name("base")
        words = ("pack-objects", "-q", "--revs", name)
        made = GitStore(source.folder).git(*words, stdin=f"{source.tree}\n".encode())
        pack = name.with_name(f"{name.name}-{made.text.split()[-1]}.pack")
        self.git("index-pack", "--stdin", stdin=pack.read_bytes())

    def commit(self, one: BranchPatch, parent: str) -> str:
        """The commit of a patch on top of another."""
        patch = one.patch
        applied = self.attempt("apply", "--cached", "-p1", "-", stdin=patch.content)
        applied.or_raise(UserError, f"{patch.name} does not apply in {self._repository}")
        words = ("commit-tree", self.git("write-tree").text, "-p", parent, "-F", "-")
        return self.git(*words, stdin=message_of(one).encode(), more=_author(patch)).text


def message_of(kept: BranchPatch) -> str:
    """A commit's message: subject, text, and the trailers, in a block with those that it has."""
    patch = kept.patch
    text = without_trailers(patch.message).strip()
    lines = "\n".join(f"{name}: {' '.join(value.split())}" for name, value in kept.trailers)
    last = text.rpartition("\n\n")[2].splitlines()
    joint = "\n" if last and all(_TRAILERS.fullmatch(line) for line in last) else "\n\n"
    return f"{patch.subject or patch.name}\n\n{text}{joint if text else ''}{lines}\n"


def _author(patch: Patch) -> dict[str, str]:
    match = re.fullmatch(r"(.*?)\s*<(.*)>", patch.author)
    named = _named("AUTHOR")
    if match and match[1].strip('" ') and match[2]:
        named = {"GIT_AUTHOR_NAME": match[1].strip('" '), "GIT_AUTHOR_EMAIL": match[2]}
    return {**named, "GIT_AUTHOR_DATE": patch.date} if patch.date else named
