# SPDX-License-Identifier: GPL-2.0-or-later
"""The architectures of guests, as the host sees them: [host] of their data files."""

import functools
import os
import shutil
from pathlib import Path

import msgspec

from kdelta.arch.files import tables
from kdelta.host.command import package_hint, run_program
from kdelta.spec.errors import LabError, UserError

HOST_COMPILER = "gcc"


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An architecture that guests can have.

    dpkg           what Debian calls it
    hosts          what a host of that architecture says it is (uname -m)
    elf_machine    e_machine of its programs, which have so many `bits`
    loaders        the dynamic loaders of its C libraries, by their names
    loader         that of glibc, where programs look for it
    triple         how the names of its cross tools begin
    libc_package   Debian's package of the C library for that cross compiler
    emulator       QEMU's program for it, in Debian's `emulator_package`
    cc1_flags      what Debian's gcc for it passes to its compiler proper whatever it is told,
    as_flags       to the assembler,
    ld_flags       and to the linker
    """

    dpkg: str
    hosts: tuple[str, ...]
    elf_machine: str
    bits: int
    loaders: tuple[str, ...]
    loader: str
    triple: str
    libc_package: str
    emulator: str
    emulator_package: str
    cc1_flags: tuple[str, ...]
    as_flags: tuple[str, ...]
    ld_flags: tuple[str, ...]
    name: str = ""

    @property
    def is_host(self) -> bool:
        return os.uname().machine in self.hosts

    @property
    def compiler(self) -> str:
        """The program that compiles for it here."""
        return HOST_COMPILER if self.is_host else f"{self.triple}-gcc"

    def tool(self, name: str) -> str:
        """The program of binutils that works on its files here, such as objcopy."""
        return name if self.is_host else f"{self.triple}-{name}"

    @property
    def install_hint(self) -> str:
        """What to type to get that compiler, and the static C library for it."""
        cross = (f"gcc-{self.triple}", self.libc_package)
        return package_hint(*((HOST_COMPILER, "libc6-dev") if self.is_host else cross))

    def find_compiler(self) -> str:
        """The compiler's name; LabError, with what to install, when it is not there."""
        return self._found("compiler", self.compiler, self.install_hint)

    def static_libc(self) -> Path:
        """Where the static C library is; LabError, with what to install, when it is not there."""
        return static_libc_of(self.find_compiler(), self.name, self.install_hint)

    def find_emulator(self) -> str:
        """QEMU's program; LabError, with what to install, when it is not there."""
        return self._found("QEMU", self.emulator, package_hint(self.emulator_package))

    def _found(self, what: str, program: str, hint: str) -> str:
        if shutil.which(program) is None:
            raise LabError(f"no {what} for {self.name}: the program {program} is missing", hint)
        return program


@functools.cache
def targets() -> dict[str, Target]:
    """All architectures by name."""
    return {
        name: msgspec.structs.replace(one, name=name)
        for name, one in tables("host", Target).items()
    }


def target(name: str) -> Target:
    """The architecture of that name; UserError for one that guests cannot have."""
    if name not in targets():
        raise UserError(
            f"kernels for {name} cannot be run: there is no machine for it",
            f"there are machines for {', '.join(targets())}",
        )
    return targets()[name]


def host_target() -> Target | None:
    """The architecture of this host; None if it is none that guests can have."""
    return next((one for one in targets().values() if one.is_host), None)


def static_libc_of(compiler: str, name: str, hint: str) -> Path:
    """Where that compiler has its static C library; LabError, with that hint, when it has none."""
    said = run_program([compiler, "-print-file-name=libc.a"]).stdout.strip()
    if not Path(said).is_absolute():
        raise LabError(f"the static C library for {name} is missing", hint)
    return Path(said)


def host_libc() -> Path:
    """Where this host's static C library is; LabError, with what to install, when there is none."""
    return static_libc_of(HOST_COMPILER, "this host", package_hint("libc6-dev"))
