# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel is built with, from the variables of make that the user gives."""

from pathlib import Path

import pytest

from kdelta.kernels.kbuild.toolchain import Toolchain, toolchain
from kdelta.spec.errors import LabError, UserError
from tests.conftest import FakeProgram

TREE = Path("/trees/linux/src")


def words(tools: Toolchain) -> dict[str, str]:
    return dict(word.split("=", 1) for word in tools.words(TREE))


@pytest.fixture
def compilers(fake_program: FakeProgram) -> None:
    for name in ("clang", "ld.lld", "clang-15", "ld.lld-15", "x86_64-linux-gnu-gcc-9", "ccache"):
        fake_program(name, f"#!/bin/sh\necho {name} 15.0.6\n")


pytestmark = pytest.mark.usefixtures("compilers")


def test_the_hosts_own() -> None:
    tools = toolchain({})
    assert (tools.compiler, tools.linker, tools.flavour) == (("gcc",), "ld", "x86")
    assert words(tools) == {"ARCH": "x86", "CC": "ccache gcc", "HOSTCC": "ccache gcc"}
    assert "gcc" in tools.versions[0]
    assert "ld" in tools.versions[1]


@pytest.mark.parametrize(
    ("llvm", "compiler", "linker"),
    [
        ("1", "clang", "ld.lld"),
        ("0", "clang", "ld.lld"),
        ("-15", "clang-15", "ld.lld-15"),
    ],
)
def test_llvm(llvm: str, compiler: str, linker: str) -> None:
    tools = toolchain({"LLVM": llvm})
    assert (tools.compiler, tools.linker) == ((compiler,), linker)
    assert words(tools) == {
        "ARCH": "x86",
        "CC": f"ccache {compiler}",
        "HOSTCC": f"ccache {compiler}",
        "LLVM": llvm,
    }
    assert tools.flavour == f"x86-{compiler.replace('-', '_')}"


def test_llvm_in_a_folder(tmp_path: Path) -> None:
    for name in ("clang", "ld.lld"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho mine {name}\n")
        (tmp_path / name).chmod(0o755)
    tools = toolchain({"LLVM": f"{tmp_path}/"})
    assert tools.versions == ("mine clang", "mine ld.lld")


def test_a_compiler_by_name() -> None:
    tools = toolchain({"CC": "x86_64-linux-gnu-gcc-9", "HOSTCC": "gcc"})
    assert words(tools)["CC"] == "ccache x86_64-linux-gnu-gcc-9"
    assert words(tools)["HOSTCC"] == "gcc"
    assert tools.flavour == "x86-x86_64_linux_gnu_gcc_9"


def test_ccache_is_put_before_the_compiler_once() -> None:
    tools = toolchain({"CC": "ccache gcc"})
    assert words(tools)["CC"] == "ccache gcc"


def test_flags_are_a_part_of_what_decides() -> None:
    assert toolchain({"KCFLAGS": "-O1"}).facts() != toolchain({}).facts()
    assert toolchain({"KCFLAGS": "-O1"}).flavour == toolchain({}).flavour


def test_a_missing_cross_compiler() -> None:
    with pytest.raises(LabError, match="no-such-gcc"):
        toolchain({"CROSS_COMPILE": "no-such-"})


@pytest.mark.parametrize(
    ("arch", "compiler", "folder"),
    [
        ("arm", "arm-linux-gnueabihf-gcc", "arm"),
        ("arm64", "aarch64-linux-gnu-gcc", "arm64"),
        ("aarch64", "aarch64-linux-gnu-gcc", "arm64"),
        ("riscv", "riscv64-linux-gnu-gcc", "riscv"),
    ],
)
def test_the_cross_compiler_of_an_architecture(
    arch: str,
    compiler: str,
    folder: str,
    fake_program: FakeProgram,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    for name in (compiler, f"{compiler.removesuffix('gcc')}ld"):
        fake_program(name, f"#!/bin/sh\necho {name} 12\n")
    tools = toolchain({"ARCH": arch})
    assert (tools.compiler, tools.folder, tools.flavour) == ((compiler,), folder, arch)
    assert words(tools)["CROSS_COMPILE"] == compiler.removesuffix("gcc")
    assert words(tools)["CC"] == f"ccache {compiler}"
    assert words(tools)["HOSTCC"] == "ccache gcc"
    # LLVM compiles for all, and the architecture's own host needs none.
    clang = toolchain({"ARCH": arch, "LLVM": "1"})
    assert "CROSS_COMPILE" not in words(clang)
    assert clang.targeted == ("clang", f"--target={compiler.removesuffix('-gcc')}")
    assert tools.targeted == (compiler,)
    own = {"arm": "armv7l", "riscv": "riscv64"}.get(folder, "aarch64")
    monkeypatch.setattr("platform.machine", lambda: own)
    assert "CROSS_COMPILE" not in words(toolchain({"ARCH": arch}))


def test_a_cross_compiler_of_ones_own(fake_program: FakeProgram) -> None:
    for name in ("my-arm-gcc", "my-arm-ld"):
        fake_program(name, f"#!/bin/sh\necho {name} 9\n")
    tools = toolchain({"ARCH": "arm", "CROSS_COMPILE": "my-arm-"})
    assert tools.compiler == ("my-arm-gcc",)
    assert tools.flavour == "arm-my_arm_gcc"


@pytest.mark.parametrize("arch", ["um", "s390"])
def test_an_architecture_that_cannot_be_booted(arch: str) -> None:
    with pytest.raises(UserError, match=f"kernels for {arch} cannot be booted") as caught:
        toolchain({"ARCH": arch})
    assert "x86_64" in caught.value.hint
    assert "arm64" in caught.value.hint
