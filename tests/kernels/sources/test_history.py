# SPDX-License-Identifier: GPL-2.0-or-later
"""Ranges of commits: who made what of which, the files of each; histories that lack something."""

from pathlib import Path

import pytest

from kdelta.kernels.sources.history import CommitRange, parse_range, read_files, read_range
from kdelta.spec.errors import UserError
from tests.kernels.git_trees import commit, git, state, write_tree


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """v1, three commits on main, one of them a rename, and a branch that began before v1."""
    folder = write_tree(tmp_path / "linux")
    commit(folder, "start")
    git(folder, "tag", "v0")
    commit(folder, "one", **{"kernel/one.c": "1\n"})
    git(folder, "tag", "v1")
    commit(folder, "mm: two, \u00e9", **{"kernel/two.c": "2\n", "kernel/one.c": "11\n"})
    git(folder, "mv", "kernel/two.c", "kernel/a b.c")
    commit(folder, "three")
    git(folder, "checkout", "-q", "-b", "side", "v0")
    commit(folder, "side one", **{"kernel/side.c": "s\n"})
    git(folder, "checkout", "-q", "main")
    git(folder, "merge", "-q", "--no-ff", "-m", "Merge side", "side")
    git(folder, "tag", "v2")
    return folder


def subjects(found: CommitRange) -> list[str]:
    return [one.subject for one in found.commits]


def name(repository: Path, revision: str) -> str:
    return git(repository, "rev-parse", revision).strip()


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("v6.12..v6.13", ("v6.12", "v6.13")),
        ("v6.12..", ("v6.12", "HEAD")),
        ("..main", ("HEAD", "main")),
        ("HEAD~3..@{u}", ("HEAD~3", "@{u}")),
    ],
)
def test_a_range(text: str, ends: tuple[str, str]) -> None:
    assert parse_range(text) == ends


@pytest.mark.parametrize(
    "text", ["v6.12", "..", "a...b", "a b..c", "--all..b", "a..-x", "", "a..b\n"]
)
def test_no_range(text: str) -> None:
    with pytest.raises(UserError):
        parse_range(text)


def test_commits_with_their_files(repository: Path) -> None:
    before = state(repository)
    found = read_range(repository, "v1", "v2")
    assert state(repository) == before
    assert set(subjects(found)) == {"mm: two, \u00e9", "three", "side one", "Merge side"}
    by_subject = {one.subject: one for one in found.commits}
    two, three = by_subject["mm: two, \u00e9"], by_subject["three"]
    assert two.files == {"kernel/one.c", "kernel/two.c"}
    assert three.files == {"kernel/two.c", "kernel/a b.c"}, "a rename touches both names"
    assert by_subject["Merge side"].files == frozenset()
    assert by_subject["Merge side"].parents == (three.name, name(repository, "side"))
    assert two.parents == (found.good.name,)
    assert two.author == "A <a@example.org>"
    assert two.tree == name(repository, f"{two.name}^{{tree}}")
    assert (found.good.name, found.bad.name) == (name(repository, "v1"), name(repository, "v2"))
    order = list(found.parents)
    for one in found.commits:
        assert all(order.index(parent) < order.index(one.name) for parent in one.parents)


def test_where_branches_begin(repository: Path) -> None:
    found = read_range(repository, "v1", "v2")
    assert found.older == {
        name(repository, "v0"): (),
        name(repository, "v1"): (name(repository, "v0"),),
    }
    straight = read_range(repository, "v1", "v2~1")
    assert straight.older == {name(repository, "v1"): ()}


def test_a_merge_that_changes_something_itself(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "other", "v1")
    commit(repository, "theirs", **{"kernel/one.c": "theirs\n"})
    git(repository, "checkout", "-q", "main")
    git(repository, "merge", "-q", "--no-ff", "-s", "ours", "-m", "Merge other", "other")
    write_tree(repository, {"kernel/one.c": "both\n"})
    git(repository, "commit", "-q", "-a", "--amend", "--no-edit")
    found = read_range(repository, "v2", "main")
    assert {one.subject: one.files for one in found.commits} == {
        "theirs": {"kernel/one.c"},
        "Merge other": {"kernel/one.c"},
    }


def test_swapped_ends(repository: Path) -> None:
    found = read_range(repository, "v2", "v1")
    assert (found.good.name, found.bad.name) == (name(repository, "v1"), name(repository, "v2"))
    assert "v1 is older than v2" in found.notes[0]


def test_equal_ends(repository: Path) -> None:
    found = read_range(repository, "v2", "main")
    assert found.good == found.bad
    assert found.commits == ()


def test_an_end_on_another_branch(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "stable", "v1")
    commit(repository, "backport", **{"kernel/new.c": "n\n"})
    git(repository, "checkout", "-q", "main")
    found = read_range(repository, "stable", "v2")
    assert found.good.name == name(repository, "v1")
    assert "stable is not among" in found.notes[0]


def test_no_common_past(repository: Path) -> None:
    git(repository, "checkout", "-q", "--orphan", "apart")
    commit(repository, "apart")
    with pytest.raises(UserError, match="no common past"):
        read_range(repository, "v1", "apart")


def test_a_folder_of_a_repository(tmp_path: Path) -> None:
    write_tree(tmp_path / "sdk/linux")
    commit(tmp_path / "sdk", "one")
    commit(tmp_path / "sdk", "two", **{"linux/kernel/fork.c": "x\n", "other/file": "y\n"})
    commit(tmp_path / "sdk", "three", **{"other/file": "z\n"})
    found = read_range(tmp_path / "sdk/linux", "HEAD~2", "HEAD")
    assert [sorted(one.files) for one in found.commits] == [["kernel/fork.c"], []]


def test_shallow_clone(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{repository}", "shallow")
    with pytest.raises(UserError, match="has no commit v1") as caught:
        read_range(tmp_path / "shallow", "v1", "HEAD")
    assert "--unshallow" in caught.value.hint
    git(tmp_path / "shallow", "fetch", "-q", "--depth=1", "origin", "tag", "v1")
    with pytest.raises(UserError) as caught:
        read_range(tmp_path / "shallow", "v1", "HEAD")
    assert "--unshallow" in caught.value.hint
    git(tmp_path / "shallow", "fetch", "-q", "--unshallow")
    assert len(read_range(tmp_path / "shallow", "v1", "HEAD").commits) == 4


def test_a_dirty_tree_is_reported_and_not_touched(repository: Path) -> None:
    write_tree(repository, {"kernel/fork.c": "not committed\n"})
    before = state(repository)
    assert "not committed" in read_range(repository, "v1", "v2").notes[-1]
    assert state(repository) == before


def test_what_is_no_repository(tmp_path: Path, repository: Path) -> None:
    with pytest.raises(UserError, match="no git repository"):
        read_range(write_tree(tmp_path / "plain"), "a", "b")
    with pytest.raises(UserError, match="there is no folder"):
        read_range(tmp_path / "nothing", "a", "b")
    with pytest.raises(UserError, match="has no commit v9") as caught:
        read_range(repository, "v1", "v9")
    assert "v2" in caught.value.hint


def test_contents_of_files(repository: Path) -> None:
    wanted = [("v2", "kernel/one.c"), ("v2", "kernel/none.c"), ("v2", "kernel"), ("v1", "a\nb")]
    wanted += [("v1", "kernel/one.c"), ("v2", "kernel/a b.c"), ("v9", "kernel/one.c")]
    found = read_files(repository, wanted)
    assert found == [b"11\n", None, None, None, b"1\n", b"2\n", None]
    below = read_files(repository / "kernel", [("v2", "one.c"), ("v1", "one.c")])
    assert below == [b"11\n", b"1\n"]
    assert read_files(repository, []) == []


def test_a_bare_repository(repository: Path) -> None:
    bare = repository.with_name("bare.git")
    git(repository, "clone", "-q", "--bare", str(repository), str(bare))
    found, whole = read_range(bare, "v1", "v2"), read_range(repository, "v1", "v2")
    assert found.commits == whole.commits
    assert found.notes == ()
    assert read_files(bare, [("v2", "kernel/one.c"), ("v2", "none")]) == [b"11\n", None]
