# SPDX-License-Identifier: GPL-2.0-or-later
"""A part of a kernel made ready for guests: what is shipped, and what is reported when it cannot
be.
"""

import shutil
import zlib
from pathlib import Path

import msgspec
import pytest

from kdelta.guests.job import JobFile
from kdelta.guests.kernel_tree import KernelTree, kernel_tree
from kdelta.guests.userland import Userland
from kdelta.host.gcc import Compiler
from kdelta.spec.errors import LabError
from kdelta.workloads.catalog import KernelTreeWanted
from tests.kernels.trees import fake_tree

HOST = Compiler("x86_64")
OBJECTS = ("kernel/core.o", "kernel/lock.o")


@pytest.fixture
def wanted(tmp_path: Path, own_cache: Path) -> KernelTreeWanted:
    assert own_cache
    tree = fake_tree(tmp_path)
    (tmp_path / "kernel.config").write_text("CONFIG_DEBUG_KERNEL=y\n# CONFIG_WATCHDOG is not set\n")
    return KernelTreeWanted(
        source=f"tree:{tree}",
        config="kernel.config",
        place="/usr/src/linux",
        compiler="/usr/bin/gcc",
        make=("ARCH=x86_64", "HOSTCC=cc"),
        source_paths=tuple(sorted(path.name for path in tree.iterdir() if path.is_dir())),
        guest_paths=("Makefile", ".config", "include/*"),
        objects=OBJECTS,
    )


@pytest.fixture
def programs() -> Userland:
    """The host's own compiler stands for the guest's."""
    found = [
        JobFile(Path(shutil.which(name) or name), f"/usr/bin/{name}", 0o755) for name in ("ld",)
    ]
    compiler = Path(shutil.which("gcc") or "").resolve()
    return Userland((JobFile(compiler, "/usr/bin/gcc", 0o755), *found), ("gcc=1",))


def made(tmp_path: Path, wanted: KernelTreeWanted, programs: Userland) -> KernelTree:
    return kernel_tree(wanted, tmp_path, programs, lambda _: None, by=HOST, part="")


def test_what_is_shipped(tmp_path: Path, wanted: KernelTreeWanted, programs: Userland) -> None:
    found = made(tmp_path, wanted, programs)
    by_guest = {file.guest: file for file in found.files}
    place = "/usr/src/linux"
    assert {f"{place}/Makefile", f"{place}/.config", f"{place}/kernel/core.c"} <= by_guest.keys()
    # What the guest is to make, and how it was made here, is not there.
    assert not [path for path in by_guest if path.endswith((".o", "core.o.cmd"))]
    words = by_guest[f"{place}.make"].host.read_text().splitlines()
    assert words[:2] == ["ARCH=x86_64", "HOSTCC=cc"]
    assert "KBUILD_BUILD_USER=kdelta" in words
    lines = by_guest[f"{place}.objects"].host.read_text().splitlines()
    assert [line.split()[1] for line in lines] == list(OBJECTS)
    assert all(int(line.split()[0], 16) for line in lines)


def test_it_is_made_ready_once(
    tmp_path: Path, wanted: KernelTreeWanted, programs: Userland
) -> None:
    said: list[str] = []
    first = kernel_tree(wanted, tmp_path, programs, said.append, by=HOST, part="")
    assert any("to be compiled in guests" in line for line in said)
    said.clear()
    assert kernel_tree(wanted, tmp_path, programs, said.append, by=HOST, part="") == first
    assert not any("to be compiled in guests" in line for line in said)


@pytest.mark.slow
def test_another_compiler_makes_it_ready_again(
    tmp_path: Path, wanted: KernelTreeWanted, programs: Userland
) -> None:
    first = made(tmp_path, wanted, programs)
    newer = msgspec.structs.replace(programs, packages=("gcc=2",))
    again = made(tmp_path, wanted, newer)
    assert {file.guest for file in again.files} == {file.guest for file in first.files}
    assert again.files[0].host != first.files[0].host


def test_an_option_that_is_not_granted(
    tmp_path: Path, wanted: KernelTreeWanted, programs: Userland
) -> None:
    (tmp_path / "kernel.config").write_text("CONFIG_NO_SUCH_THING=y\n")
    with pytest.raises(LabError, match=r"does not grant CONFIG_NO_SUCH_THING of kernel\.config"):
        made(tmp_path, wanted, programs)


def test_an_object_that_does_not_compile(
    tmp_path: Path, wanted: KernelTreeWanted, programs: Userland
) -> None:
    (tmp_path / "linux/kernel/core.c").write_text("int broken(void) { return nothing; }\n")
    with pytest.raises(LabError, match=r"cannot be made ready for guests: .*nothing"):
        made(tmp_path, wanted, programs)


def test_a_source_that_is_none(
    tmp_path: Path, wanted: KernelTreeWanted, programs: Userland
) -> None:
    wrong = msgspec.structs.replace(wanted, source="image:/x")
    with pytest.raises(LabError, match="image:/x is no source"):
        made(tmp_path, wrong, programs)


def test_checksums_are_those_of_the_objects() -> None:
    assert zlib.crc32(b"123456789") == 0xCBF43926  # what tree.c of the workload computes, too
