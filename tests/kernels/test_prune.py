# SPDX-License-Identifier: GPL-2.0-or-later
"""What goes when the cache has more than it may hold."""

import os
from pathlib import Path

import pytest

from kdelta.host.command import quiet
from kdelta.kernels.built import built_kernels
from kdelta.kernels.prune import folder_bytes, limit_bytes, prune, usage
from kdelta.spec.errors import UserError
from tests.kernels.trees import fake_tree, kernel

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return fake_tree(tmp_path)


def test_what_was_used_longest_ago_goes_first(tree: Path) -> None:
    _, old = kernel(tree)
    _, young = kernel(tree, "+CONFIG_ZERO_PAGES=y")
    os.utime(old.path, (1, 1))
    os.utime(young.path, (2, 2))
    total = sum(one.bytes for one in usage())
    removed = prune(total - 1, quiet)
    assert [one.path for one in removed] == [old.path]
    assert [one.key for one in built_kernels()] == [young.key]


def test_what_is_in_use_stays(tree: Path) -> None:
    _, first = kernel(tree)
    os.utime(first.path, (1, 1))
    removed = prune(0, quiet, keep=[first.path])
    assert first.path not in [one.path for one in removed]
    assert [one.kind for one in removed] == ["source tree"]
    assert kernel(tree)[1].key == first.key


def test_a_kernel_that_is_asked_for_again_is_young(tree: Path) -> None:
    _, first = kernel(tree)
    os.utime(first.path, (1, 1))
    kernel(tree)
    assert first.path.stat().st_mtime > 1


def test_building_keeps_to_the_limit(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, first = kernel(tree)
    os.utime(first.path, (1, 1))
    monkeypatch.setenv("KDELTA_CACHE_GIB", "0.0000001")
    _, second = kernel(tree, "+CONFIG_ZERO_PAGES=y")
    assert [one.key for one in built_kernels()] == [second.key]


@pytest.mark.parametrize("text", ["much", "-1", "1e3"])
def test_a_limit_that_is_no_number(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE_GIB", text)
    with pytest.raises(UserError, match="KDELTA_CACHE_GIB"):
        limit_bytes()


def test_space_is_what_the_disk_gives(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    (tmp_path / "b").symlink_to("a")
    assert 100_000 <= folder_bytes(tmp_path) < 120_000
