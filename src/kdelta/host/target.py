# SPDX-License-Identifier: GPL-2.0-or-later
"""The architectures of guests, as the host sees them: [host] of their data files."""

import functools
import os
from pathlib import Path

import msgspec

from kdelta.arch.files import tables
from kdelta.host.command import find_program, run
from kdelta.spec.errors import LabError, UserError

HOST_COMPILER = "gcc"


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An architecture that guests can have.

    dpkg           what Debian calls it
    hosts          what a host of that architecture says it is (uname -m)
    elf_machine    e_machine of its programs, which have so many `bits`
    loaders        the dynamic loaders of its C libraries
    triple         how the names of its cross tools begin
    libc_package   Debian's package of the C library for that cross compiler
    emulator       QEMU's program for it, in Debian's `emulator_package`
    """

    dpkg: str
    hosts: tuple[str, ...]
    elf_machine: str
    bits: int
    loaders: tuple[str, ...]
    triple: str
    libc_package: str
    emulator: str
    emulator_package: str
    name: str = ""

    @property
    def is_host(self) -> bool:
        """Whether this host has that architecture."""
        return os.uname().machine in self.hosts

    @property
    def compiler(self) -> str:
        """The program that compiles for it here."""
        return HOST_COMPILER if self.is_host else f"{self.triple}-gcc"

    def tool(self, name: str) -> str:
        """The program of binutils that works on its files here, such as objcopy."""
        return name if self.is_host else f"{self.triple}-{name}"

    @property
    def compiler_packages(self) -> tuple[str, str]:
        """Debian's packages of that compiler, and of the static C library for it."""
        if self.is_host:
            return (HOST_COMPILER, "libc6-dev")
        return (f"gcc-{self.triple}", self.libc_package)

    @property
    def install_hint(self) -> str:
        """What to type to get both."""
        return f"on Debian or Ubuntu: sudo apt-get install {' '.join(self.compiler_packages)}"

    def find_compiler(self) -> str:
        """The compiler's name; LabError, with what to install, when it is not there."""
        return self._found("compiler", self.compiler, self.install_hint)

    def static_libc(self) -> Path:
        """Where the static C library is; LabError, with what to install, when it is not there."""
        said = run([self.find_compiler(), "-print-file-name=libc.a"]).stdout.strip()
        if not Path(said).is_absolute():
            raise LabError(f"the static C library for {self.name} is missing", self.install_hint)
        return Path(said)

    def find_emulator(self) -> str:
        """QEMU's program; LabError, with what to install, when it is not there."""
        hint = f"on Debian or Ubuntu: sudo apt-get install {self.emulator_package}"
        return self._found("QEMU", self.emulator, hint)

    def _found(self, what: str, program: str, hint: str) -> str:
        try:
            find_program(program)
        except LabError as error:
            said = f"no {what} for {self.name}: the program {program} is missing"
            raise LabError(said, hint) from error
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
