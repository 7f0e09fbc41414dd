# SPDX-License-Identifier: GPL-2.0-or-later
"""git: sources: a commit's tree is copied out of a repository that is only read."""

import shutil
from pathlib import Path

import pytest

from kdelta.kernels.obtain import check_kernels
from kdelta.kernels.sources.git import GitStore
from kdelta.spec.errors import LabError, UserError
from tests.kernels.git_trees import (
    SOURCES,
    checkout,
    commit,
    files,
    git,
    outcome,
    quiet,
    source,
    state,
    write_tree,
)

pytestmark = pytest.mark.usefixtures("own_cache")
LISTED = sorted([*SOURCES, "scripts/link"])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three commits: v6.12, v6.13 (an annotated tag) and the branch main."""
    folder = write_tree(tmp_path / "linux")
    commit(folder, "one")
    git(folder, "tag", "v6.12")
    commit(folder, "two", **{"kernel/new.c": "new\n"})
    git(folder, "tag", "-a", "-m", "6.13", "v6.13")
    commit(folder, "three", **{"kernel/new.c": "newer\n"})
    git(folder, "repack", "-a", "-d", "-q")
    write_tree(folder, {"kernel/new.c": "not committed\n", "untracked.c": "x"})
    return folder


def packs(folder: Path) -> int:
    return len(list((GitStore(folder).git_dir / "objects/pack").glob("*.pack")))


def test_tag_branch_hash_and_expression(repository: Path) -> None:
    before = state(repository)
    head = git(repository, "rev-parse", "HEAD").strip()
    news = {
        revision: files(source(f"git:{repository}@{revision}")).get("kernel/new.c")
        for revision in ("v6.12", "v6.13", "main", "@", head, head[:12], "v6.13~1", "@{0}")
    }
    assert news == {
        "v6.12": None,
        "v6.13": "new\n",
        "main": "newer\n",
        "@": "newer\n",
        head: "newer\n",
        head[:12]: "newer\n",
        "v6.13~1": None,
        "@{0}": "newer\n",
    }
    assert state(repository) == before


def test_source_of_a_commit(repository: Path) -> None:
    found = source(f"git:{repository}@v6.12")
    assert found.tree == git(repository, "rev-parse", "v6.12^{tree}").strip()
    assert found.name == "linux@v6.12"
    assert sorted(files(found)) == LISTED
    src = checkout(found)
    assert (src / "scripts/run.sh").stat().st_mode & 0o100
    assert (src / "scripts/link").readlink() == Path("run.sh")


def test_commits_and_the_tree_share_a_store(repository: Path) -> None:
    """So they share the output folder, and kbuild builds what differs."""
    before = state(repository)
    old, stands = source(f"git:{repository}@v6.12"), source(f"tree:{repository}")
    assert old.folder == stands.folder
    assert files(stands)["kernel/new.c"] == "not committed\n"
    checkout(old)
    assert (checkout(stands) / "untracked.c").exists()
    assert state(repository) == before


def test_each_commit_is_copied_once_and_only_what_is_new(repository: Path) -> None:
    found = source(f"git:{repository}@v6.12")
    source(f"git:{repository}@v6.12")
    assert packs(found.folder) == 1
    source(f"git:{repository}@v6.13")
    sizes = sorted(
        path.stat().st_size for path in (found.folder / "git/objects/pack").glob("*.pack")
    )
    assert len(sizes) == 2
    assert sizes[0] * 3 < sizes[1] * 2


def test_the_copy_outlives_the_commit(repository: Path) -> None:
    found = source(f"git:{repository}@main")
    shutil.rmtree(repository)
    assert (checkout(found) / "kernel/new.c").read_text() == "newer\n"


def test_patch_on_a_commit_changes_nothing_there(repository: Path, tmp_path: Path) -> None:
    """Also where the result is what another commit has: git would renew its pack's time."""
    patch = tmp_path / "new.patch"
    patch.write_text(git(repository, "diff", "v6.12", "v6.13"))
    before = state(repository)
    found = source(f"git:{repository}@v6.12 +{patch}")
    assert found.tree == source(f"git:{repository}@v6.13").tree
    assert state(repository) == before


def test_bare_repository_and_worktree(repository: Path, tmp_path: Path) -> None:
    wanted = source(f"git:{repository}@v6.13").tree
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    git(repository, "worktree", "add", "-q", str(tmp_path / "work"), "v6.12")
    before = state(tmp_path)
    for name in ("bare.git", "work", "linux/.git"):
        assert source(f"git:{tmp_path}/{name}@v6.13").tree == wanted
    assert state(tmp_path / "bare.git") == {
        name.removeprefix("bare.git/") if name != "bare.git" else ".": entry
        for name, entry in before.items()
        if name == "bare.git" or name.startswith("bare.git/")
    }
    assert state(tmp_path) == before


def test_folder_of_a_repository(tmp_path: Path) -> None:
    write_tree(tmp_path / "sdk/linux")
    commit(tmp_path / "sdk", "one", other="x")
    assert sorted(files(source(f"git:{tmp_path}/sdk/linux@HEAD"))) == LISTED
    commit(tmp_path / "sdk", "two", more="x")
    git(tmp_path / "sdk", "rm", "-r", "-q", "linux/scripts")
    write_tree(tmp_path / "sdk/linux", {"scripts/other": ""})
    with pytest.raises(UserError, match="no kernel tree") as caught:
        source(f"git:{tmp_path}/sdk/linux/kernel@HEAD")
    assert "topmost folder" in caught.value.hint
    with pytest.raises(UserError, match="no kernel tree") as caught:
        source(f"git:{tmp_path}/sdk@HEAD")
    assert "in its folder linux" in caught.value.hint
    (tmp_path / "sdk/linux/new").mkdir()
    with pytest.raises(UserError, match="HEAD has no folder linux/new"):
        source(f"git:{tmp_path}/sdk/linux/new@HEAD")


def test_shallow_clone(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repository}", "shallow")
    assert files(source(f"git:{tmp_path}/shallow@HEAD"))["kernel/new.c"] == "newer\n"
    with pytest.raises(UserError, match=r"has no commit v6\.12"):
        source(f"git:{tmp_path}/shallow@v6.12")


def test_partial_clone_is_not_filled(repository: Path, tmp_path: Path) -> None:
    git(repository, "config", "uploadpack.allowFilter", "true")
    options = ("-q", "--filter=blob:none", "--no-checkout")
    git(tmp_path, "clone", *options, f"file://{repository}", "partial")
    before = state(tmp_path / "partial")
    with pytest.raises(LabError, match="could not be copied") as caught:
        source(f"git:{tmp_path}/partial@HEAD")
    assert "partial clone" in caught.value.hint
    assert state(tmp_path / "partial") == before


@pytest.mark.parametrize(
    ("revision", "hint"),
    [
        ("v6.1", "the nearest: v6.1"),
        ("V6.12", "the nearest: v6.1"),
        ("mian", "the nearest: main"),
        ("0123456789abcdef0123456789abcdef01234567", "there is: "),
        ("v6.12:kernel/nothing", "there is: main, v6.12, v6.13"),
    ],
)
def test_unknown_revision(repository: Path, revision: str, hint: str) -> None:
    with pytest.raises(UserError, match="has no commit") as caught:
        source(f"git:{repository}@{revision}")
    assert revision in caught.value.message
    assert hint in caught.value.hint
    with pytest.raises(UserError, match="has no commit") as before:
        check_kernels([f"git:{repository}@HEAD", f"git:{repository}@{revision}"], quiet)
    assert before.value.hint == caught.value.hint


def test_repository_without_any_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "empty")
    with pytest.raises(UserError, match="has no commit HEAD") as caught:
        source(f"git:{tmp_path}/empty@HEAD")
    assert "no tags or branches" in caught.value.hint


def test_what_is_no_repository(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "plain")
    with pytest.raises(UserError, match="no git repository") as caught:
        source(f"git:{tree}@v6.12")
    assert f"tree:{tree}" in caught.value.hint
    with pytest.raises(UserError, match="there is no"):
        source(f"git:{tmp_path}/nothing@v6.12")
    with pytest.raises(UserError, match="is no folder"):
        source(f"git:{tree}/Makefile@v6.12")


def test_commit_that_holds_no_kernel(tmp_path: Path) -> None:
    commit(write_tree(tmp_path / "x", {"README": "x"}), "one")
    with pytest.raises(UserError, match="no kernel tree"):
        outcome(f"git:{tmp_path}/x@HEAD")


def test_repository_of_sha256(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "linux")
    git(folder, "init", "-q", "--object-format=sha256")
    commit(folder, "one")
    with pytest.raises(UserError, match="SHA-256") as caught:
        source(f"git:{folder}@HEAD")
    assert f"tree:{folder}" in caught.value.hint
    assert sorted(files(source(f"tree:{folder}"))) == LISTED
