# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions a run executed since power-on."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec


class Executed(msgspec.Struct, frozen=True):
    """(origin, name) of each function of the kernel of which something was translated, and so may
    have been executed: origin "kernel" or "[module]". All names that one address has are in it.
    """

    functions: frozenset[tuple[str, str]]

    def names(self) -> frozenset[str]:
        """The names alone: a name may stand for several static functions."""
        return frozenset(name for _, name in self.functions)

    def __or__(self, other: "Executed") -> "Executed":
        """What either executed."""
        return Executed(self.functions | other.functions)


def read_executed(files: Sequence[Path], symbols: Iterable[tuple[int, str, str, str]]) -> Executed:
    """From the plugin's files of a boot and of the runs that went on from it.

    symbols: (address, type letter, name, origin) as `kallsyms_file`, `parse_kallsyms` and
    `vmlinux_symbols` give them. LabError for a file that is cut short.
    """
    raise NotImplementedError


def vmlinux_symbols(vmlinux: Path) -> list[tuple[int, str, str, str]]:
    """The text symbols of a vmlinux that still has them: (address, type, name, "kernel")."""
    raise NotImplementedError


def encode_executed(executed: Executed) -> bytes:
    """Sorted lines of "origin name"."""
    raise NotImplementedError


def decode_executed(text: bytes) -> Executed:
    """Reads those lines; LabError for anything else."""
    raise NotImplementedError
