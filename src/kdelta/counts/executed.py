# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions a run executed since power-on."""

import functools
import operator
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.model import KERNEL
from kdelta.counts.symbols import Symbol, kallsyms_file, parse_kallsyms
from kdelta.host.files import FileContent, FileState
from kdelta.machines.arch import ImageMap
from kdelta.machines.chunks import chunk_payloads, require_complete
from kdelta.spec.errors import LabError

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


def executed_since_boot(
    files: Sequence[Path], symbols: Path, modules: bytes, board: tuple[ImageMap, int]
) -> Executed:
    """From the plugin's files of a boot and of the runs that went on from it, with the names of the
    guest's /proc/kallsyms, and of the lines of its modules. What the first file says is kept in
    memory, and so are the names: a guest's runs share its boot.

    board: how the architecture's kernels have their image, and where the board has it: early boot
    runs at physical addresses. LabError for a file that is cut short.

    It errs towards more: a block counts as executed when it was translated, for all functions that
    it touches; a user program at low addresses can be taken for early code of the kernel.
    """
    image, physical = board
    key = (FileContent(symbols), modules)
    names = _names(*key)
    base = names.base(image)
    found = _touched_by_boot(FileState.of(files[0]), *key, image, physical)
    runs = [names.touched(_kernel_blocks(path, base, image, physical)) for path in files[1:]]
    return Executed(found.union(*runs))


class _NamesByAddress:
    """All (origin, name) by address: `starts` in order, and of each the names in `symbols` from
    `first` on.
    """

    def __init__(self, symbols: Iterable[Symbol]) -> None:
        rows = sorted(symbols, key=operator.itemgetter(0))
        addresses = np.fromiter((row[0] for row in rows), np.uint64, len(rows))
        self._starts, first = np.unique(addresses, return_index=True)
        self._first = np.append(first, len(rows))
        self._labels = [(origin, name) for _, _, name, origin in rows]
        kernel = [address for address, _, _, origin in rows if origin == KERNEL]
        text = (a for a, _, name, origin in rows if origin == KERNEL and name in _FIRST)
        self._lowest = next(text, kernel[0] if kernel else 0)

    def base(self, image: ImageMap) -> int:
        """Where the kernel's image is mapped."""
        return self._lowest // image.alignment * image.alignment

    def touched(self, blocks: npt.NDArray[np.void]) -> frozenset[tuple[str, str]]:
        """All names of each function of which a block has a byte."""
        starts = self._starts
        blocks = blocks[np.argsort(blocks["address"])]  # neighbours are found faster
        size = np.maximum(blocks["bytes"], 1).astype(np.uint64)
        last_bytes = blocks["address"] + size - np.uint64(1)
        first = np.searchsorted(starts, blocks["address"], side="right")
        last = np.searchsorted(starts, last_bytes, side="right")
        # One more at the first function of each block, one less after the last: the sum over what
        # is before says how many blocks touch a function. Index 0 is what is below all symbols.
        change = np.bincount(first, minlength=len(starts) + 2)
        change -= np.bincount(last + 1, minlength=len(starts) + 2)
        touched = np.flatnonzero(np.cumsum(change)[1:-1])
        runs = zip(self._first[touched].tolist(), self._first[touched + 1].tolist(), strict=True)
        return frozenset(label for begin, end in runs for label in self._labels[begin:end])


@functools.lru_cache(maxsize=8)
def _names(symbols: FileContent, modules: bytes) -> _NamesByAddress:
    return _NamesByAddress((*kallsyms_file(symbols.path), *parse_kallsyms(modules)))


@functools.lru_cache(maxsize=8)
def _touched_by_boot(
    boot: FileState, symbols: FileContent, modules: bytes, image: ImageMap, physical: int
) -> frozenset[tuple[str, str]]:
    names = _names(symbols, modules)
    return names.touched(_kernel_blocks(boot.path, names.base(image), image, physical))


def _kernel_blocks(path: Path, base: int, image: ImageMap, physical: int) -> npt.NDArray[np.void]:
    """What was translated of the kernel, at the addresses that its symbols have."""
    require_complete(path)
    blocks = np.frombuffer(b"".join(chunk_payloads(path, b"SEEN")), _SEEN)
    # Below `physical` the difference wraps around, and is too large.
    early = blocks[blocks["address"] - np.uint64(physical) < np.uint64(image.bytes)].copy()
    early["address"] += np.uint64((base - physical) & _ALL_BITS)
    lowest = np.uint64(max(base - image.below, 0))
    return np.concatenate([blocks[blocks["address"] >= lowest], early])


def encode_executed(executed: Executed) -> bytes:
    """Sorted lines of "origin name"."""
    # A space sorts before all that names have, so lines are in the order of their pairs.
    return "".join(sorted(f"{origin} {name}\n" for origin, name in executed.functions)).encode()


def decode_executed(text: bytes) -> Executed:
    """Reads those lines; LabError for anything else."""
    try:
        pairs = [line.split(" ") for line in text.decode().splitlines()]
        return Executed(frozenset((origin, name) for origin, name in pairs))
    except ValueError as error:
        raise LabError(
            f"a run's executed functions cannot be read: {error}", "make the run again with --rerun"
        ) from error
