# SPDX-License-Identifier: GPL-2.0-or-later
"""Built kernels in the cache: found by name, derived from damaged ones, led to by what was
asked.
"""

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from kdelta.host.in_use import release
from kdelta.kernels.kbuild.built import (
    Memo,
    built_folder,
    built_kernels,
    find_built,
    forget_built,
    load_built,
)
from kdelta.kernels.kbuild.workbench import module_build
from kdelta.spec.errors import LabError, UserError
from tests.caches import forget_checks
from tests.kernels.trees import fake_tree, kernel

pytestmark = [pytest.mark.build, pytest.mark.slow, pytest.mark.usefixtures("own_cache")]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return fake_tree(tmp_path)


def test_a_kernel_is_found_by_key_identity_and_spec(tree: Path) -> None:
    found, built = kernel(tree)
    _, other = kernel(tree, "+CONFIG_ZERO_PAGES=y")
    assert other.key != built.key
    for name in (built.key, built.key[:12], found.identity[:12], f"tree:{tree}"):
        assert find_built(name) == built


@pytest.mark.parametrize("name", ["", "a", "0123456789", "tree:/nowhere"])
def test_a_name_of_none(tree: Path, name: str) -> None:
    kernel(tree)
    with pytest.raises(UserError):
        find_built(name)


def test_the_one_used_last_comes_first(tree: Path) -> None:
    _, first = kernel(tree)
    _, second = kernel(tree, "+CONFIG_ZERO_PAGES=y")
    os.utime(first.path, (1, 1))
    assert [one.key for one in built_kernels()] == [second.key, first.key]
    os.utime(second.path, (0, 0))
    assert [one.key for one in built_kernels()] == [first.key, second.key]


def test_the_cache_can_be_moved(
    tree: Path, tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, built = kernel(tree)
    moved = shutil.move(own_cache, tmp_path / "moved")
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(moved))
    again = load_built(built.key)
    assert again == built
    assert Path(again.kernel(found.spec).image).is_relative_to(moved)
    assert Path(again.kernel(found.spec).image).is_file()


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["image", "record", "no image", "no folder"])
def test_what_is_damaged_is_not_there(tree: Path, damage: str) -> None:
    _, built = kernel(tree)
    image, record = built.path / built.image, built.path / "kernel.json"
    forget_checks()
    if damage == "image":
        image.write_bytes(image.read_bytes()[:-1])
    elif damage == "record":
        record.write_text(record.read_text()[:-9])
    elif damage == "no image":
        image.unlink()
    else:
        shutil.rmtree(built.path)
    assert load_built(built.key) is None
    assert kernel(tree)[1].key == built.key


def test_a_forgotten_kernel_is_built_again_and_the_same(tree: Path) -> None:
    found, built = kernel(tree)
    forget_built(built)
    assert load_built(built.key) is None
    again, _ = kernel(tree)
    assert again.identity == found.identity


def test_a_kernel_that_another_uses_is_not_forgotten(tree: Path) -> None:
    _, built = kernel(tree)
    # A lock of one's own open file is as good as another process's.
    other = os.open(built.path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_SH)
    with pytest.raises(LabError, match="in use"):
        forget_built(built)
    os.close(other)
    assert load_built(built.key) == built


def test_what_is_not_whole_is_not_there(tree: Path) -> None:
    _, built = kernel(tree)
    release(built.path)
    built.path.rename(built.path.with_name(f"{built.path.name}.partial"))
    assert built_kernels() == []
    assert load_built(built.key) is None


def test_a_memo_is_of_one_request() -> None:
    assert Memo("1" * 64).key() is None
    Memo("1" * 64).remember("a" * 64)
    assert Memo("1" * 64).key() == "a" * 64
    assert Memo("2" * 64).key() is None
    assert built_folder("a" * 64).name == f"built-{'a' * 32}"


def test_modules_are_built_by_the_kernels_own_tree_and_config(tree: Path) -> None:
    found, _ = kernel(tree, "+CONFIG_MODULES=y", "+CONFIG_ZERO_PAGES=y")
    kernel(tree, "+KCFLAGS=-O1")
    with module_build(found, lambda _line: None) as (argv, env):
        out = Path(argv[argv.index("-C") + 1])
        assert "CONFIG_ZERO_PAGES=y" in (out / ".config").read_text()
        assert "#define CONFIG_ZERO_PAGES 1" in (out / "include/generated/autoconf.h").read_text()
        assert "ARCH=x86" in argv
        assert env["KBUILD_BUILD_USER"] == "kdelta"


def test_modules_of_a_kernel_that_takes_none(tree: Path) -> None:
    found, _ = kernel(tree, "+# CONFIG_MODULES is not set")
    with pytest.raises(UserError, match="takes no modules"), module_build(found, print):
        pass
