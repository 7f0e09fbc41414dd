# SPDX-License-Identifier: GPL-2.0-or-later
"""What builds a kernel: the architecture, the compiler, and the variables that kbuild is told."""

import functools
import os
import platform
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kdelta.host.command import run
from kdelta.host.dirs import cache_dir
from kdelta.spec.errors import LabError

# What kbuild calls the folder of an architecture, where the name of the machine is another one.
_FOLDERS = {"x86_64": "x86", "i386": "x86"}
# What kbuild calls the host's architecture, likewise.
_ARCHES = {"x86_64": "x86", "aarch64": "arm64", "riscv64": "riscv", "armv7l": "arm"}

CCACHE_SIZE = "10G"

FIXED = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER": "kdelta",
    "KBUILD_BUILD_HOST": "kdelta",
    "KBUILD_BUILD_VERSION": "1",
    "LOCALVERSION": "",
}
"""What a kernel says of its build; the same always, so that equal kernels are equal files."""


class Toolchain(msgspec.Struct, frozen=True):
    """`arch` is kbuild's ARCH, `variables` what the user set, `compiler` and `linker` the programs,
    `versions` what these say of themselves.
    """

    arch: str
    variables: dict[str, str]
    compiler: tuple[str, ...]
    linker: str
    versions: tuple[str, ...]

    @property
    def folder(self) -> str:
        """The folder below arch/ that is built."""
        return _FOLDERS.get(self.arch, self.arch)

    @property
    def flavour(self) -> str:
        """What output folders are told apart by: objects of one are no use to another."""
        words = [self.arch]
        if self.compiler[-1] != "gcc":
            words.append(Path(self.compiler[-1]).name)
        return "-".join("".join(c if c.isalnum() or c in "._" else "_" for c in w) for w in words)

    def words(self) -> list[str]:
        """KEY=VALUE words for make, with ccache before the compilers where it is there."""
        values = {**self.variables, "ARCH": self.arch}
        if shutil.which("ccache") and self.compiler[0] != "ccache":
            values["CC"] = f"ccache {shlex.join(self.compiler)}"
            values.setdefault("HOSTCC", "ccache clang" if self._llvm else "ccache gcc")
        return [f"{name}={value}" for name, value in sorted(values.items())]

    @property
    def _llvm(self) -> bool:
        return self.variables.get("LLVM", "") not in ("", "0")

    def facts(self) -> dict[str, object]:
        """What decides what comes out of a build beside tree and config."""
        return {"arch": self.arch, "variables": self.variables, "versions": self.versions}


def toolchain(variables: Mapping[str, str]) -> Toolchain:
    """The toolchain for these variables (ARCH, LLVM, CC, CROSS_COMPILE, LD, KCFLAGS, ...).

    LabError, with what to install, when a program is missing.
    """
    values = dict(variables)
    machine = platform.machine()
    arch = values.get("ARCH") or _ARCHES.get(machine, machine)
    prefix, suffix = "", ""
    llvm = values.get("LLVM", "")
    if llvm not in ("", "0"):
        prefix, suffix = (llvm, "") if llvm.endswith("/") else ("", llvm if llvm[0] == "-" else "")
        compiler, linker = f"{prefix}clang{suffix}", f"{prefix}ld.lld{suffix}"
    else:
        cross = values.get("CROSS_COMPILE", "")
        compiler, linker = f"{cross}gcc", f"{cross}ld"
    command = tuple(shlex.split(values.get("CC", compiler)))
    linker = values.get("LD", linker)
    for tool in ("make", "flex", "bison", "bc", "perl"):
        _version(tool)
    return Toolchain(arch, values, command, linker, (_version(*command), _version(linker)))


@functools.cache
def _version(*command: str) -> str:
    """The first line that a program says of its version."""
    said = run([*command, "--version"])
    if not said.ok:
        raise LabError(f"{shlex.join(command)} --version failed: {said.last_words(1)}")
    return (said.stdout.splitlines() or [""])[0]


def build_environment(folder: Path) -> dict[str, str]:
    """The environment of a build below `folder`: reproducible, and cached by ccache."""
    # What a user's shell has set for builds of his own would be a change that nobody asked for.
    cleared = {
        name: ""
        for name in ("KCFLAGS", "KAFLAGS", "KCPPFLAGS", "MAKEFLAGS", "LLVM", "CROSS_COMPILE", "O")
        if name in os.environ
    }
    return {
        **cleared,
        **FIXED,
        "CCACHE_DIR": str(cache_dir("ccache")),
        "CCACHE_BASEDIR": str(folder),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_MAXSIZE": CCACHE_SIZE,
    }
