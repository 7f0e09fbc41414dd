# SPDX-License-Identifier: GPL-2.0-or-later
"""What goes when the cache has more than it may hold."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from kdelta.host.cache import (
    BUILT,
    OUT,
    TREE,
    Cached,
    Pruning,
    disk_bytes,
    limit_bytes,
    prune_cache,
    usage,
)
from kdelta.host.command import Log, quiet
from kdelta.host.dirs import cache_dir
from kdelta.host.in_use import release
from kdelta.kernels.kbuild.build import held_source
from kdelta.kernels.kbuild.built import BuiltKernel, built_kernels
from kdelta.kernels.sources.source import Source
from kdelta.spec.errors import UserError
from tests.kernels.trees import fake_tree, kernel

pytestmark = [pytest.mark.build, pytest.mark.slow, pytest.mark.usefixtures("own_cache")]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return fake_tree(tmp_path)


def of_builds() -> list[Cached]:
    """What the cache has of kernels that were built."""
    return [one for one in usage() if one.kind in (BUILT, OUT, TREE)]


def keep(limit: int, log: Log = quiet, stay: Sequence[Path] = ()) -> list[Cached]:
    return [
        one
        for one in prune_cache(Pruning(limit=limit, keep=stay), log)
        if one.kind in (BUILT, OUT, TREE)
    ]


def old_kernel(tree: Path, seconds: int, *words: str) -> BuiltKernel:
    """One that no process uses any more, last used that many seconds after 1970."""
    _, built = kernel(tree, *words)
    release(built.path)
    os.utime(built.path, (seconds, seconds))
    return built


def test_what_was_used_longest_ago_goes_first(tree: Path) -> None:
    old = old_kernel(tree, 1)
    young = old_kernel(tree, 2, "+CONFIG_ZERO_PAGES=y")
    total = sum(one.bytes for one in usage(BUILT))
    removed = prune_cache(Pruning(limit=total - 1, kind=BUILT), quiet)
    assert [one.path for one in removed] == [old.path]
    assert [one.key for one in built_kernels()] == [young.key]


@pytest.mark.slow
def test_all_goes_where_nothing_is_used(tree: Path) -> None:
    built = old_kernel(tree, 1)
    removed = keep(0)
    assert [one.kind for one in removed] == ["folder of builds", "source tree", "kernel"]
    assert sum(one.bytes for one in removed) > 0
    assert of_builds() == []
    assert list(cache_dir("trees").iterdir()) == list(cache_dir("kernels").iterdir()) == []
    assert kernel(tree)[1].key == built.key, "and can be made again"


def test_folders_of_builds_go_before_their_tree(tree: Path) -> None:
    kernel(tree)
    trees = [one for one in of_builds() if one.kind != "kernel"]
    assert [one.kind for one in trees] == ["folder of builds", "source tree"]
    os.utime(trees[1].path, (1, 1))
    assert [one.kind for one in of_builds() if one.kind != "kernel"] == [
        "folder of builds",
        "source tree",
    ]
    whole = disk_bytes(cache_dir("trees"))
    assert whole * 0.9 < sum(one.bytes for one in trees) <= whole


def test_what_is_named_stays_with_all_that_is_in_it(tree: Path) -> None:
    built = old_kernel(tree, 1)
    assert keep(0, stay=[built.path, Path(built.folder)]) == []


def test_a_kernel_in_use_stays(tree: Path) -> None:
    _, built = kernel(tree)
    os.utime(built.path, (1, 1))
    said: list[str] = []
    assert built.path not in [one.path for one in keep(0, said.append)]
    assert f"kernel kernels/{built.path.name} is in use and stays in the cache" in said


def test_a_kernel_that_another_process_uses_stays(tree: Path) -> None:
    built = old_kernel(tree, 1)
    script = f"""
from kdelta.kernels.kbuild.built import load_built
assert load_built("{built.key}")
print("loaded", flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "loaded\n"
        assert built.path not in [one.path for one in keep(0)]
        other.communicate("\n")
    assert [one.path for one in keep(0)] == [built.path]


@pytest.mark.slow
def test_a_tree_that_is_built_in_stays(tree: Path) -> None:
    built = old_kernel(tree, 1)
    source = Source(Path(built.folder), built.tree, built.source)
    with held_source(source, quiet):
        assert [one.kind for one in keep(0)] == ["kernel"]
    assert len(keep(0)) == 2


@pytest.mark.slow
def test_what_was_half_removed_goes(tree: Path) -> None:
    built = old_kernel(tree, 1)
    left = built.path.with_name("built-123.gone.partial")
    built.path.rename(left)
    assert built_kernels() == []
    assert keep(1 << 40) == []
    assert not left.exists()


def test_a_kernel_that_is_asked_for_again_is_young(tree: Path) -> None:
    built = old_kernel(tree, 1)
    kernel(tree)
    assert built.path.stat().st_mtime > 1


@pytest.mark.slow
def test_building_keeps_to_the_limit(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old_kernel(tree, 1)
    _, used = kernel(tree, "+CONFIG_DEBUG_KERNEL=y")
    monkeypatch.setenv("KDELTA_CACHE_GIB", "0.0000001")
    _, made = kernel(tree, "+CONFIG_ZERO_PAGES=y")
    assert {one.key for one in built_kernels()} == {used.key, made.key}


@pytest.mark.parametrize("text", ["much", "-1", "1e3"])
def test_a_limit_that_is_no_number(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE_GIB", text)
    with pytest.raises(UserError, match="KDELTA_CACHE_GIB"):
        limit_bytes()


def test_space_is_what_the_disk_gives(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    (tmp_path / "b").symlink_to("a")
    assert 100_000 <= disk_bytes(tmp_path) < 120_000
