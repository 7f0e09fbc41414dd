# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of another architecture, from the fake tree: images, device trees, orders."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kdelta.kernels.kbuild.built import DIGEST, DTBS, VMLINUX, BuiltKernel
from kdelta.kernels.kbuild.relink import orders_in_the_middle
from kdelta.kernels.objects.digest_file import load_digest
from tests.kernels.trees import compiled, fake_tree, kernel

PREFIX = "arm-linux-gnueabihf-"
NAMES = [f"work_{number}" for number in range(12)]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.build,
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(not shutil.which(f"{PREFIX}gcc"), reason=f"needs {PREFIX}gcc"),
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The fake tree with more functions, of 8 bytes each."""
    tree = fake_tree(tmp_path)
    bodies = "\n".join(f"int {name}(void) {{ return {n}; }}" for n, name in enumerate(NAMES))
    (tree / "kernel/work.c").write_text(f"{bodies}\n")
    with (tree / "kernel/Makefile").open("a") as file:
        file.write("obj-y += work.o\n")
    return tree


def order(built: BuiltKernel) -> list[str]:
    """The functions of its vmlinux, by address."""
    words = [f"{PREFIX}nm", "-n", str(built.path / VMLINUX)]
    rows = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    return [row.split()[2] for row in rows if row.split()[1] in "tT"]


def test_a_kernel_for_arm(tree: Path) -> None:
    found, built = kernel(tree, "ARCH=arm")
    assert (found.arch, found.image_format, found.release) == ("arm", "zImage", "6.12.99")
    assert (built.base, built.flavour) == ("vexpress_defconfig", "arm")
    assert built.variables["CROSS_COMPILE"] == PREFIX
    assert Path(found.image).read_text().startswith("zImage of ")
    assert found.device_trees is not None
    trees = [path.name for path in Path(found.device_trees).iterdir()]
    assert (Path(found.device_trees).name, trees) == (DTBS, ["vexpress-v2p-ca9.dtb"])
    digest = load_digest(built.path / DIGEST)
    refs = digest.objects["kernel/core.o"].functions["start_kernel"].refs
    assert {"lock", "clear_pages", ":held"} <= set(refs)
    assert "CONFIG_SERIAL_AMBA_PL011_CONSOLE" in {one.option for one in built.missing}


def test_kernels_of_two_architectures_share_nothing(tree: Path) -> None:
    arm, _ = kernel(tree, "ARCH=arm")
    x86, built = kernel(tree)
    assert arm.identity != x86.identity
    assert (x86.arch, x86.device_trees) == ("x86_64", None)
    assert "kernel/core.o" in compiled(built)


def test_a_link_of_arm_has_an_order_in_the_middle(tree: Path) -> None:
    if not orders_in_the_middle((f"{PREFIX}gcc",), "ld.lld"):
        pytest.skip("this lld puts it first")
    file = tree.parent / "order.txt"
    file.write_text("work_9\nwork_2\nlock\n")
    _, base = kernel(tree, "ARCH=arm", "+sections")
    assert [name for name in order(base) if name in NAMES] == NAMES
    _, built = kernel(tree, "ARCH=arm", f"+order:{file}")
    assert compiled(built) == []
    found = order(built)
    at = found.index("work_9")
    assert found[at : at + 3] == ["work_9", "work_2", "lock"]
    assert 0 < at < len(found) - 4
    assert built.linked is not None
    assert (built.linked.ordered, built.linked.displaced) == (3, ())


def test_where_a_linker_puts_an_order() -> None:
    assert not orders_in_the_middle(("gcc",), "ld.lld")
    assert not orders_in_the_middle(("ccache", "gcc"), "ld.lld")
