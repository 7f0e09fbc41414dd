# SPDX-License-Identifier: GPL-2.0-or-later
"""Modules: found, unpacked, each after what it needs."""

import gzip
import lzma
import subprocess
from pathlib import Path

import pytest

from kdelta.guests.modules import modules_for, modules_if_there, with_dependencies
from kdelta.host.command import log_to_stderr
from kdelta.kernels.model import Kernel
from kdelta.kernels.packages.deb import obtain_deb
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.kernel import DebSpec


class Tree:
    """A folder lib/modules/RELEASE with modules of our own making."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "lib/modules/6.1.0"
        (self.folder / "kernel").mkdir(parents=True)

    def add(self, name: str, *info: str, packed: str = "") -> None:
        lines = "".join(f'.asciz "{line}"\n' for line in info)
        source = self.root / "module.s"
        source.write_text(f'.section .modinfo,"a"\n{lines}')
        path = self.folder / "kernel" / f"{name}.ko"
        subprocess.run(["gcc", "-c", "-o", path, source], check=True)
        content = path.read_bytes()
        if packed == "gz":
            path.with_name(f"{name}.ko.gz").write_bytes(gzip.compress(content))
        elif packed == "xz":
            path.with_name(f"{name}.ko.xz").write_bytes(lzma.compress(content))
        elif packed == "zst":
            subprocess.run(["zstd", "-q", path], check=True)
        if packed:
            path.unlink()

    def load(self, *names: str) -> list[str]:
        kernel = Kernel("id", "deb:x", "/image", "x86_64", "6.1.0", modules=str(self.folder))
        files = modules_for(names, kernel)
        assert all(file.guest == f"/modules/{Path(file.guest).stem}.ko" for file in files)
        assert all(file.host.read_bytes().startswith(b"\x7fELF") for file in files)
        return [Path(file.guest).stem for file in files]


@pytest.fixture
def tree(tmp_path: Path, own_cache: Path) -> Tree:
    assert own_cache
    return Tree(tmp_path)


def test_dependencies_come_first_and_once(tree: Tree) -> None:
    tree.add("top", "depends=left,right")
    tree.add("left", "depends=bottom")
    tree.add("right", "depends=bottom")
    tree.add("bottom", "depends=")
    assert tree.load("top", "left") == ["bottom", "left", "right", "top"]


@pytest.mark.parametrize("packed", ["", "gz", "xz", "zst"])
def test_packed_modules(tree: Tree, packed: str) -> None:
    tree.add("plain", "depends=under-neath", packed=packed)
    tree.add("under_neath", packed=packed)
    assert tree.load("plain") == ["under_neath", "plain"]


def test_dash_and_underscore_are_the_same(tree: Tree) -> None:
    tree.add("nft-masq")
    assert tree.load("nft_masq") == ["nft_masq"]
    assert tree.load("nft-masq", "nft_masq") == ["nft_masq"]


def test_what_is_built_in_is_left_out(tree: Tree) -> None:
    tree.add("top", "depends=ext4")
    (tree.folder / "modules.builtin").write_text("kernel/fs/ext4/ext4.ko\n")
    assert tree.load("top", "ext4") == ["top"]


def test_soft_dependency_may_be_missing(tree: Tree) -> None:
    tree.add("top", "softdep=pre: crc32c nosuch post: after")
    tree.add("crc32c")
    tree.add("after")
    assert tree.load("top") == ["crc32c", "top"]


def test_unknown_module_names_the_nearest(tree: Tree) -> None:
    tree.add("nf_conntrack")
    with pytest.raises(UserError, match="no module nf_contrack in") as raised:
        tree.load("nf_contrack")
    assert raised.value.hint == "the nearest: nf_conntrack"


def test_missing_dependency_names_who_needs_it(tree: Tree) -> None:
    tree.add("top", "depends=gone")
    with pytest.raises(UserError, match="no module gone, which top needs"):
        tree.load("top")


def test_modules_that_need_each_other(tree: Tree) -> None:
    tree.add("a", "depends=b")
    tree.add("b", "depends=a")
    with pytest.raises(LabError, match="need each other: a, b"):
        tree.load("a")


@pytest.mark.parametrize("ending", ["ko", "ko.gz", "ko.xz", "ko.zst"])
def test_damaged_module(tree: Tree, ending: str) -> None:
    (tree.folder / "kernel" / f"bad.{ending}").write_bytes(b"\x28\xb5\x2f\xfdgarbage")
    with pytest.raises(LabError, match=r"damaged|no kernel module"):
        tree.load("bad")


def test_kernel_without_modules() -> None:
    kernel = Kernel("id", "image:/bzImage", "/bzImage", "x86_64", "6.1.0")
    assert modules_for((), kernel) == ()
    with pytest.raises(UserError, match="comes without modules") as raised:
        modules_for(("dummy",), kernel)
    assert ",modules=FOLDER" in raised.value.hint


def test_modules_that_a_kernel_may_lack(tree: Tree) -> None:
    tree.add("af-alg")
    tree.add("algif_skcipher", "depends=af_alg")
    (tree.folder / "modules.builtin").write_text("kernel/crypto/cbc.ko\n")
    kernel = Kernel("id", "deb:x", "/image", "x86_64", "6.1.0", modules=str(tree.folder))
    found = modules_if_there(("nosuch", "cbc", "algif-skcipher"), kernel)
    assert [file.guest for file in found] == ["/modules/af_alg.ko", "/modules/algif_skcipher.ko"]
    bare = Kernel("id", "image:/i", "/i", "x86_64", "6.1.0")
    assert modules_if_there(("af_alg",), bare) == ()


def test_a_module_that_is_not_the_kernels_own(tree: Tree, tmp_path: Path) -> None:
    tree.add("below")
    tree.add("mine", "depends=below")
    mine = (tree.folder / "kernel/mine.ko").rename(tmp_path / "mine.ko")
    kernel = Kernel("id", "deb:x", "/image", "x86_64", "6.1.0", modules=str(tree.folder))
    found = with_dependencies(mine, kernel)
    assert [file.guest for file in found] == ["/modules/below.ko", "/modules/mine.ko"]
    assert found[-1].host == mine

    tree.add("other", "depends=gone")
    with pytest.raises(UserError, match="no module gone"):
        with_dependencies(tree.folder / "kernel/other.ko", kernel)


@pytest.mark.network
def test_modules_of_a_real_kernel() -> None:
    kernel = obtain_deb(DebSpec("linux-image-6.12-cloud-amd64", suite="bookworm"), log_to_stderr)
    names = [Path(file.guest).stem for file in modules_for(("nft-masq",), kernel)]
    assert names[-1] == "nft_masq"
    order = [names.index(name) for name in ("nf_defrag_ipv4", "nf_conntrack", "nf_nat", "nft_masq")]
    assert order == sorted(order)
