# SPDX-License-Identifier: GPL-2.0-or-later
"""What builds a kernel: the architecture, the compiler, and the variables that kbuild is given."""

import functools
import os
import platform
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kdelta.host.command import run_program
from kdelta.host.dirs import cache_dir
from kdelta.host.environment import environ_with
from kdelta.kernels.arches import kernel_arch

_ALIGN = re.compile(r"-f(?:align-functions|min-function-alignment)=(\d+)")
_MAP = "-fmacro-prefix-map="

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
    `versions` what these say of themselves; `host_compiler` compiles what the build itself runs.
    """

    arch: str
    variables: dict[str, str]
    compiler: tuple[str, ...]
    linker: str
    versions: tuple[str, ...]
    host_compiler: str

    @property
    def folder(self) -> str:
        """The folder below arch/ that is built."""
        return kernel_arch(self.arch).folder

    @property
    def flavour(self) -> str:
        """Return what output folders are distinguished by: objects of one are no use to another."""
        words = [self.arch]
        if self.compiler[-1] not in ("gcc", f"{kernel_arch(self.arch).cross_compile}gcc"):
            words.append(Path(self.compiler[-1]).name)
        built_in = self.variables.get("CFLAGS_KERNEL", "").split()
        if "-ffunction-sections" in built_in:
            words.append("sections")
            # The one of two that counts is the last.
            words += [f"align{found[1]}" for flag in built_in if (found := _ALIGN.fullmatch(flag))][
                -1:
            ]
        if "-fdata-sections" in built_in:
            words.append("data")
        return "-".join("".join(c if c.isalnum() or c in "._" else "_" for c in w) for w in words)

    @property
    def targeted(self) -> tuple[str, ...]:
        """The compiler, and for clang, which has all of them, what it compiles for."""
        if "clang" not in Path(self.compiler[-1]).name:
            return self.compiler
        return (*self.compiler, f"--target={kernel_arch(self.arch).cross_compile.rstrip('-')}")

    def words(self, tree: Path) -> list[str]:
        """KEY=VALUE words for make, with ccache before the compilers where it is there."""
        values = {**self.variables, "ARCH": self.arch}
        is_cached = self.compiler[0] == "ccache"
        if not is_cached and shutil.which("ccache"):
            values["CC"] = f"ccache {shlex.join(self.compiler)}"
            values.setdefault("HOSTCC", f"ccache {self.host_compiler}")
        elif not is_cached and takes(*self.compiler, f"{_MAP}{tree}/=../src/"):
            # As ccache names files, from the output folder: a kernel holds names of its sources,
            # and must not depend on whether there is a ccache. kbuild gives such a map too, before.
            flags = [f"{_MAP}{tree}/=../src/", values.get("KCPPFLAGS", "")]
            values["KCPPFLAGS"] = " ".join(flags).strip()
        return [f"{name}={value}" for name, value in sorted(values.items())]

    def facts(self) -> dict[str, object]:
        """What decides what comes out of a build besides tree and config."""
        return {"arch": self.arch, "variables": self.variables, "versions": self.versions}


def toolchain(variables: Mapping[str, str]) -> Toolchain:
    """The toolchain for these variables (ARCH, LLVM, CC, CROSS_COMPILE, LD, KCFLAGS, ...).

    CROSS_COMPILE is that of the architecture, if the host is of another one and nothing else is
    said. UserError for an architecture that the lab does not know; LabError, with what to install,
    when a program is missing.
    """
    values = dict(variables)
    host = platform.machine()
    arch = values.get("ARCH") or kernel_arch(host).folder
    built = kernel_arch(arch)
    if host not in (*built.names, *built.hosts) and not values.get("LLVM"):
        values.setdefault("CROSS_COMPILE", built.cross_compile)
    host_compiler = "gcc"
    # LLVM=0 is like LLVM=1, says the kernel's documentation: only what is not set is not.
    if llvm := values.get("LLVM", ""):
        prefix, suffix = (llvm, "") if llvm.endswith("/") else ("", llvm if llvm[0] == "-" else "")
        compiler, linker = f"{prefix}clang{suffix}", f"{prefix}ld.lld{suffix}"
        host_compiler = compiler
    else:
        cross = values.get("CROSS_COMPILE", "")
        compiler, linker = f"{cross}gcc", f"{cross}ld"
    command = tuple(shlex.split(values.get("CC", compiler)))
    linker = values.get("LD", linker)
    for tool in ("make", "flex", "bison", "bc", "perl"):
        _version(tool)
    versions = (_version(*command), _version(linker))
    return Toolchain(arch, values, command, linker, versions, host_compiler)


@functools.cache
def takes(*command: str) -> bool:
    """Whether a compiler knows its options."""
    return run_program([*command, "-Werror", "-E", "-x", "c", os.devnull]).ok


@functools.cache
def _version(*command: str) -> str:
    """The first line that a program says of its version."""
    words = [*command, "--version"]
    return (run_program(words).or_raise(f"{shlex.join(words)} failed").stdout.splitlines() or [""])[
        0
    ]


def build_environment(folder: Path) -> dict[str, str]:
    """Return the whole environment of a build below `folder`: it is reproducible, and cached by
    ccache.
    """
    own = {
        **FIXED,
        "CCACHE_DIR": str(cache_dir("ccache")),
        "CCACHE_BASEDIR": str(folder),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_MAXSIZE": "10G",
    }
    return environ_with(own)
