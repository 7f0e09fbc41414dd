# SPDX-License-Identifier: GPL-2.0-or-later
"""What differs between architectures, read from one TOML file each."""

import functools
from importlib import resources

import msgspec

from kdelta.spec.errors import UserError


class ArchMachine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An architecture's exact machine: the emulator, its options, the kernel symbols watched."""

    emulator: str
    package: str
    machine: str
    arguments: tuple[str, ...]
    serial: str
    cpu: str
    append: str
    symbols: dict[str, tuple[str, ...]]

    def rules(self) -> str:
        """The plugin's rules file: one `KIND NAME` a line."""
        return "".join(f"{kind} {name}\n" for kind, names in self.symbols.items() for name in names)


@functools.cache
def arch_machine(arch: str) -> ArchMachine:
    """The machine of an architecture; raises UserError for one that has no data file."""
    file = resources.files("kdelta.machines").joinpath(f"{arch}.toml")
    if not file.is_file():
        raise UserError(
            f"kernels for {arch} cannot be run: there is no machine for it",
            "x86_64 is supported",
        )
    return msgspec.toml.decode(file.read_bytes(), type=ArchMachine)
