# SPDX-License-Identifier: GPL-2.0-or-later
"""A branch of measured patches: written next to the user's work, read again, and written again."""

from pathlib import Path

import msgspec
import pytest

from kdelta.host.dirs import cache_dir
from kdelta.kernels.sources.measured_branch import (
    EFFECT,
    BranchPatch,
    effects_of,
    measured_patches,
    message_of,
    parse_branch,
    without_trailers,
    write_branch,
)
from kdelta.kernels.sources.patches import Patch, plain_patch
from kdelta.kernels.sources.series import read_series
from kdelta.kernels.sources.source import Source
from kdelta.spec.errors import UserError
from tests.kernels.git_trees import FORK, commit, git, quiet, source, state, write_tree

pytestmark = pytest.mark.usefixtures("own_cache")

TWO = {
    "fork: one": FORK.replace("line_3;", "one;"),
    "fork: two": FORK.replace("line_3;", "one;").replace("line_30;", "two;"),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository of a small tree with two commits on a branch `work`; the first is its tag."""
    folder = write_tree(tmp_path / "linux")
    commit(folder, "base")
    git(folder, "tag", "base")
    for subject, text in TWO.items():
        commit(folder, f"{subject}\n\nWhy.\n\nSigned-off-by: A <a@b>", **{"kernel/fork.c": text})
    git(folder, "branch", "work")
    git(folder, "checkout", "-q", "base")
    return folder


def patches(tree: Path) -> tuple[Patch, ...]:
    return read_series(["base..work"], tree, quiet).patches


def kept(tree: Path, text: str = "s/open -1.00 % path (exact)") -> list[BranchPatch]:
    return [BranchPatch(patch, ((EFFECT, text),)) for patch in patches(tree)]


def base(tree: Path) -> Source:
    return source(f"git:{tree}@base")


def log(tree: Path, branch: str) -> list[str]:
    return git(tree, "log", "--reverse", "--format=%s", branch).splitlines()


def test_a_commit_a_patch_on_the_commit_of_the_tree(tree: Path) -> None:
    (tree / "kernel/fork.c").write_text("dirty\n")
    (tree / "new.c").write_text("new\n")
    git(tree, "add", "new.c")
    before = {name: found for name, found in state(tree).items() if not _of_git(name)}
    head, index = git(tree, "rev-parse", "HEAD"), (tree / ".git/index").read_bytes()
    tip = write_branch(parse_branch(f"{tree}:kept"), base(tree), "base", kept(tree))
    assert git(tree, "rev-parse", "kept").strip() == tip
    assert log(tree, "kept") == ["base", *TWO]
    assert git(tree, "rev-parse", "kept~2", "kept^{tree}").split() == [
        git(tree, "rev-parse", "base").strip(),
        git(tree, "rev-parse", "work^{tree}").strip(),
    ]
    message = git(tree, "log", "-1", "--format=%B", "kept").strip()
    end = f"Signed-off-by: A <a@b>\n{EFFECT}: s/open -1.00 % path (exact)"
    assert message == f"fork: two\n\nWhy.\n\n{end}"
    assert git(tree, "log", "-1", "--format=%an %ae", "kept") == "A a@example.org\n"
    after = {name: found for name, found in state(tree).items() if not _of_git(name)}
    assert after == before
    assert (git(tree, "rev-parse", "HEAD"), (tree / ".git/index").read_bytes()) == (head, index)
    assert not list(cache_dir("work").iterdir())


def _of_git(name: str) -> bool:
    return name == ".git" or name.startswith(".git/")


def test_a_repository_that_does_not_have_the_tree_gets_it(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    plain = tmp_path / "plain"
    write_tree(plain)
    for _ in range(2):
        tip = write_branch(
            parse_branch(f"{other}:kept"), source(f"tree:{plain}"), "HEAD", kept(tree)
        )
    assert log(other, "kept")[1:] == list(TWO)
    assert git(other, "show", f"{tip}:kernel/fork.c") == TWO["fork: two"]
    assert git(other, "rev-parse", "kept~2^{tree}").strip() == source(f"tree:{plain}").tree
    assert git(other, "fsck", "--full") == ""


def test_a_folder_inside_the_repository_names_it_as_well(tree: Path) -> None:
    write_branch(parse_branch(f"{tree / 'scripts'}:kept"), base(tree), "base", kept(tree))
    assert git(tree, "show", "kept:kernel/fork.c") == TWO["fork: two"]
    assert [patch.content for patch in measured_patches(f"{tree / 'scripts'}:kept")] == [
        patch.content for patch in patches(tree)
    ]


def test_a_branch_that_is_measured_again(tree: Path) -> None:
    branch = parse_branch(f"{tree}:kept")
    write_branch(branch, base(tree), "base", kept(tree))
    found = measured_patches(f"{tree}:kept")
    assert [patch.subject for patch in found] == list(TWO)
    assert [effects_of(patch.message) for patch in found] == [("s/open -1.00 % path (exact)",)] * 2
    again = [BranchPatch(patch, ((EFFECT, "none"),)) for patch in found]
    write_branch(branch, base(tree), "base", again)
    assert log(tree, "kept") == ["base", *TWO]
    message = git(tree, "log", "-1", "--format=%B", "kept")
    assert message.count(EFFECT) == 1
    assert message.strip().endswith(f"Signed-off-by: A <a@b>\n{EFFECT}: none")


def test_a_branch_that_was_rebased_and_has_one_more_commit(tree: Path) -> None:
    write_branch(parse_branch(f"{tree}:kept"), base(tree), "base", kept(tree))
    git(tree, "checkout", "-q", "-b", "next", "base")
    commit(tree, "news", **{"lib/new.c": "int a;\n"})
    git(tree, "checkout", "-q", "kept")
    git(tree, "rebase", "-q", "next")
    commit(tree, "mine", **{"lib/mine.c": "int a;\n"})
    found = read_series([f"{tree}:kept"], None, quiet).patches
    assert [patch.subject for patch in found] == [*TWO, "mine"]
    assert [bool(effects_of(patch.message)) for patch in found] == [True, True, False]


def test_a_merge_among_measured_commits(tree: Path) -> None:
    write_branch(parse_branch(f"{tree}:kept"), base(tree), "base", kept(tree))
    git(tree, "checkout", "-q", "-b", "side", "base")
    commit(tree, "side", **{"lib/new.c": "int a;\n"})
    git(tree, "checkout", "-q", "kept")
    git(tree, "merge", "-q", "--no-edit", "side")
    with pytest.raises(UserError, match="has merges among its measured commits"):
        measured_patches(f"{tree}:kept")


@pytest.mark.parametrize(
    ("branch", "message"),
    [
        ("work", "is there already, and kdelta did not write it"),
        ("out", "out is checked out in"),
        ("a..b", "not a name for a branch"),
    ],
)
def test_a_branch_that_must_not_be_written(tree: Path, branch: str, message: str) -> None:
    git(tree, "checkout", "-q", "-b", "out")
    before = git(tree, "for-each-ref")
    with pytest.raises(UserError, match=message):
        write_branch(parse_branch(f"{tree}:{branch}"), base(tree), "base", kept(tree))
    assert git(tree, "for-each-ref") == before


def test_a_branch_that_another_work_tree_has(tree: Path, tmp_path: Path) -> None:
    git(tree, "worktree", "add", "-q", "-b", "kept", str(tmp_path / "elsewhere"), "base")
    with pytest.raises(UserError, match="kept is checked out"):
        write_branch(parse_branch(f"{tree}:kept"), base(tree), "base", kept(tree))


def test_words_that_are_no_branch(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    for word, message in (
        ("kept", "not a branch"),
        ("/nowhere:kept", "there is no folder"),
        (f"{tmp_path / 'plain'}:kept", "is no git repository"),
    ):
        with pytest.raises(UserError, match=message):
            parse_branch(word)
    with pytest.raises(UserError, match="has no commit with a trailer"):
        measured_patches(f"{tree}:work")
    with pytest.raises(UserError, match="has no branch gone"):
        measured_patches(f"{tree}:gone")


def test_a_patch_that_does_not_apply_leaves_no_branch(tree: Path) -> None:
    rows = kept(tree)
    bad = rows[1].patch.content.replace(b"-int line_30;", b"-int other;")
    rows[1] = BranchPatch(msgspec.structs.replace(rows[1].patch, content=bad), ())
    with pytest.raises(UserError, match="fork-two does not apply"):
        write_branch(parse_branch(f"{tree}:kept"), base(tree), "base", rows)
    assert "kept" not in git(tree, "branch", "--format=%(refname:short)").split()
    assert not list(cache_dir("work").iterdir())


def test_a_patch_without_author_or_subject() -> None:
    patch = plain_patch("fix", b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
    one = BranchPatch(patch, ((EFFECT, "a\nb"),))
    assert message_of(one) == f"fix\n\n{EFFECT}: a b\n"
    text = f"Why.\n\n{EFFECT}: x\nKdelta-mark: slower\nLink: y\n"
    assert without_trailers(text) == "Why.\n\nLink: y\n"
