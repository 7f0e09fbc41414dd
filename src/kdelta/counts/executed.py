# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions a run executed since power-on."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.model import KERNEL
from kdelta.counts.symbols import without_padding
from kdelta.kernels.elf import EXECUTABLE, FILE, RESERVED, SECTION, WEAK_BINDING, read_elf
from kdelta.machines.arch import ImageMap
from kdelta.machines.chunks import read_chunks, require_complete
from kdelta.spec.errors import LabError

Symbol = tuple[int, str, str, str]
"""Address, type letter as nm prints it, name, origin: "kernel" or "[module]"."""

_SEEN = np.dtype([("address", "<u8"), ("bytes", "<u4")])

_FIRST = ("_text", "_stext")
_ALL_BITS = (1 << 64) - 1


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


def read_executed(
    files: Sequence[Path], symbols: Iterable[Symbol], image: ImageMap, physical: int
) -> Executed:
    """From the plugin's files of a boot and of the runs that went on from it.

    symbols: as `kallsyms_file`, `parse_kallsyms` and `vmlinux_symbols` give them, of all that ran.
    image, physical: how the architecture's kernels have their image, and where the board has it:
    early boot runs at physical addresses. LabError for a file that is cut short.

    It errs towards more: a block counts as executed when it was translated, for all functions that
    it touches; a user program at low addresses can be taken for early code of the kernel.
    """
    labels: dict[int, set[tuple[str, str]]] = {}
    for address, _, name, origin in symbols:
        labels.setdefault(address, set()).add((origin, name))
    starts = np.array(sorted(labels), dtype=np.uint64)
    blocks = _kernel_blocks(files, _base(labels, image), image, physical)
    last_bytes = blocks["address"] + np.maximum(blocks["bytes"], 1).astype(np.uint64) - np.uint64(1)
    first = np.searchsorted(starts, blocks["address"], side="right")
    last = np.searchsorted(starts, last_bytes, side="right")
    # One more at the first function of each block, one less after the last: the sum over what is
    # before tells how many blocks touch a function. Index 0 is what is below all symbols.
    change = np.zeros(len(starts) + 2, dtype=np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, last + 1, -1)
    touched = np.flatnonzero(np.cumsum(change)[1:-1])
    return Executed(frozenset().union(*(labels[int(start)] for start in starts[touched])))


def _base(labels: Mapping[int, set[tuple[str, str]]], image: ImageMap) -> int:
    """Where the kernel's image is mapped."""
    kernel = {a: {n for o, n in names if o == KERNEL} for a, names in labels.items()}
    first = [a for a, names in kernel.items() if names.intersection(_FIRST)]
    lowest = min(first or [a for a, names in kernel.items() if names], default=0)
    return lowest // image.alignment * image.alignment


def _kernel_blocks(
    files: Sequence[Path], base: int, image: ImageMap, physical: int
) -> npt.NDArray[np.void]:
    """What was translated of the kernel, at the addresses that its symbols have."""
    found = [np.zeros(0, _SEEN)]
    for path in files:
        require_complete(path)
        for tag, payload in read_chunks(path):
            if tag == b"SEEN":
                found.append(np.frombuffer(payload, _SEEN))
    blocks = np.unique(np.concatenate(found))
    # Below `physical` the difference wraps around, and is too large.
    offset = blocks["address"] - np.uint64(physical)
    early = blocks[offset < np.uint64(image.bytes)].copy()
    early["address"] += np.uint64((base - physical) & _ALL_BITS)
    lowest = np.uint64(max(base - image.below, 0))
    return np.concatenate([blocks[blocks["address"] >= lowest], early])


def vmlinux_symbols(vmlinux: Path) -> list[Symbol]:
    """The text symbols of a vmlinux that still has them; LabError when it is no ELF file.

    It has those between the sections that /proc/kallsyms lists, too.
    """
    elf = read_elf(vmlinux)
    if elf is None:
        raise LabError(f"{vmlinux} is no ELF file of a kernel", "build it again")
    is_code = [bool(section.flags & EXECUTABLE) for section in elf.sections]
    columns = (elf.symbols.section, elf.symbols.value, elf.symbols.kind, elf.symbols.binding)
    rows = zip(elf.symbols.names, *(column.tolist() for column in columns), strict=True)
    found = []
    for name, section, value, kind, binding in rows:
        if not name or section >= RESERVED or not is_code[section] or kind in (SECTION, FILE):
            continue
        letter = "W" if binding == WEAK_BINDING else "T" if binding else "t"
        found.append((value & _ALL_BITS, letter, without_padding(name), KERNEL))
    return found


def encode_executed(executed: Executed) -> bytes:
    """Sorted lines of "origin name"."""
    return "".join(f"{origin} {name}\n" for origin, name in sorted(executed.functions)).encode()


def decode_executed(text: bytes) -> Executed:
    """Reads those lines; LabError for anything else."""
    try:
        pairs = [line.split(" ") for line in text.decode().splitlines()]
        return Executed(frozenset((origin, name) for origin, name in pairs))
    except ValueError as error:
        raise LabError(
            f"a run's executed functions cannot be read: {error}",
            "make the run again with --again",
        ) from error
