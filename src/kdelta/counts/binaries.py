# SPDX-License-Identifier: GPL-2.0-or-later
"""Which user binary a block of user code is from.

The plugin sees addresses and bytes, no mappings. A file is mapped by whole pages, so code keeps its
offset within a page; a binary's base is the one under which most blocks find their own bytes in it.
Binaries at equal addresses are distinguished in the same way.
"""

import bisect
import functools
import io
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from kdelta.counts.arrays import I64, U64
from kdelta.counts.symbols import END, NO_SYMBOL

_PAGE_BYTES = 4096
_PROBE_BYTES = 12
_KEY = np.dtype("<u8")  # the last bytes of a block: they end with a jump's distance, unlike others'
_MOST_PLACES = 32
_PIE = 0x08000000  # DF_1_PIE

Blocks = Mapping[int, tuple[int, bytes]]
"""id -> address and bytes, of user code."""


class Binary(msgspec.Struct, frozen=True):
    """The executable segments and function symbols of an ELF file."""

    name: str
    fixed: bool  # linked to its address: the base is 0
    is_program: bool  # started by an exec, not mapped by another one
    segments: tuple[tuple[int, bytes], ...]
    symbols: tuple[tuple[int, str, str], ...]  # (address, type letter, name)

    def holds(self, base: int, vaddr: int, code: bytes) -> bool:
        """Whether the file has these bytes there when it is loaded at `base`."""
        for start, data in self.segments:
            at = vaddr - base - start
            if 0 <= at <= len(data) - len(code):
                return data[at : at + len(code)] == code
        return False


@functools.lru_cache(maxsize=64)  # a run's counts, its profile and the next run ask for the same
def load_binary(name: str, content: bytes, debug: bytes = b"") -> Binary | None:
    """A binary from an ELF file's content; None for what is no ELF file. debug: a file that has
    more of its symbols.
    """
    try:
        elf = ELFFile(io.BytesIO(content))
        segments = tuple(
            (int(s["p_vaddr"]), bytes(s.data()))
            for s in elf.iter_segments("PT_LOAD")
            if s["p_flags"] & 1
        )
        symbols: list[tuple[int, str, str]] = []
        files = [elf, ELFFile(io.BytesIO(debug))] if debug else [elf]
        for section in itertools.chain.from_iterable(one.iter_sections() for one in files):
            if isinstance(section, SymbolTableSection):
                symbols += _functions(section, thumb_bit=elf["e_machine"] == "EM_ARM")
        fixed = elf["e_type"] == "ET_EXEC"
        return Binary(name, fixed, fixed or _is_program(elf), segments, tuple(symbols))
    except (ELFError, KeyError, ValueError):
        return None


def _is_program(elf: ELFFile) -> bool:
    """Of a file that may lie anywhere. A C library has an interpreter, too, and a program that is
    linked statically none; but a library has a name for those that are linked to it.
    """
    for segment in elf.iter_segments("PT_DYNAMIC"):
        assert isinstance(segment, DynamicSegment)
        tags = {tag.entry.d_tag: int(tag.entry.d_val) for tag in segment.iter_tags()}
        is_pie = bool(tags.get("DT_FLAGS_1", 0) & _PIE)
        interpreted = any(True for _ in elf.iter_segments("PT_INTERP"))
        return (is_pie or interpreted) and "DT_SONAME" not in tags
    return False


def _functions(section: SymbolTableSection, *, thumb_bit: bool) -> Iterable[tuple[int, str, str]]:
    """Thumb functions have bit 0 of their value set, which is no part of the address."""
    for symbol in section.iter_symbols():
        info = symbol["st_info"]
        if info["type"] in ("STT_FUNC", "STT_GNU_IFUNC") and symbol["st_shndx"] != "SHN_UNDEF":
            start, size = int(symbol["st_value"]) & ~int(thumb_bit), int(symbol["st_size"])
            yield start, "T" if info["bind"] == "STB_GLOBAL" else "t", symbol.name
            if size:  # a stripped library names few of its functions: what follows is not this one
                yield start + size, END, NO_SYMBOL


class _BaseSearch:
    """Where a binary is loaded, by all blocks of user code that are long enough to tell."""

    def __init__(self, blocks: Blocks) -> None:
        long = sorted(block for block, (_, code) in blocks.items() if len(code) >= _PROBE_BYTES)
        self._blocks = np.array(long, np.int64)
        self._vaddr = np.array([blocks[block][0] for block in long], np.uint64)
        sizes = np.array([len(blocks[block][1]) for block in long], np.int64)
        self._end = self._vaddr + sizes.astype(np.uint64)
        tails = b"".join(blocks[block][1][-_KEY.itemsize :] for block in long)
        self._key = np.frombuffer(tails, _KEY)
        in_page = (self._end % np.uint64(_PAGE_BYTES)).astype(np.int64)
        self._order = np.argsort(in_page, kind="stable")
        self._starts = np.searchsorted(in_page[self._order], np.arange(_PAGE_BYTES + 1))

    def places(self, binary: Binary) -> list[tuple[int, int]]:
        """(block, base) for each block that ends as the binary does in some page, at that place."""
        found = []
        for start, data in binary.segments:
            # The end of a block, in pages of the binary's addresses; the first may be begun late.
            first = start % _PAGE_BYTES + _PAGE_BYTES
            pages = -(-(first + len(data) + _PAGE_BYTES) // _PAGE_BYTES)
            padded = bytes(first) + data + bytes(pages * _PAGE_BYTES - first - len(data))
            whole = np.frombuffer(padded, np.uint8)
            for place in np.flatnonzero(np.diff(self._starts)).tolist():
                mine = self._order[self._starts[place] : self._starts[place + 1]]
                at = np.arange(pages - 1) * _PAGE_BYTES + _PAGE_BYTES + place - _KEY.itemsize
                at = at[at + _KEY.itemsize <= len(whole)]
                keys = whole[at[:, None] + np.arange(_KEY.itemsize)].copy().view(_KEY)[:, 0]
                found += self._matches(mine, keys, at + _KEY.itemsize - first + start)
        return found

    def _matches(self, mine: I64, keys: U64, ends: I64) -> list[tuple[int, int]]:
        """Blocks whose key is one of these, with the base for each place of that key."""
        order = np.argsort(keys, kind="stable")
        low = np.searchsorted(keys[order], self._key[mine], "left")
        high = np.searchsorted(keys[order], self._key[mine], "right")
        return [
            (int(self._blocks[block]), int(self._end[block]) - int(ends[order[at]]))
            for block, from_, to in zip(mine, low, high, strict=True)
            for at in range(from_, min(to, from_ + _MOST_PLACES))
        ]


def attribute(binaries: Iterable[Binary], blocks: Blocks) -> dict[int, tuple[Binary, int]]:
    """The binary of each block, and where it was loaded; blocks that no binary holds are left out.

    A binary can be loaded at several places: each process has its own vDSO address. What two
    binaries hold belongs to the one of which more was executed there, since programs share code
    that was linked into each, and short blocks are alike; what is not movable comes first.
    """
    ordered = sorted(blocks, key=lambda block: blocks[block][0])
    addresses = [blocks[block][0] for block in ordered]
    found: dict[int, tuple[Binary, int]] = {}

    def take(binary: Binary, base: int) -> None:
        for start, data in binary.segments:
            low = bisect.bisect_left(addresses, base + start)
            high = bisect.bisect_left(addresses, base + start + len(data))
            for block in ordered[low:high]:
                if block not in found and binary.holds(base, *blocks[block]):
                    found[block] = (binary, base)

    movable = []
    for binary in binaries:
        if binary.fixed:
            take(binary, 0)
        else:
            movable.append(binary)
    search = _BaseSearch({block: place for block, place in blocks.items() if block not in found})
    left = [
        (block, index, base)
        for index, binary in enumerate(movable)
        for block, base in search.places(binary)
        if binary.holds(base, *blocks[block])
    ]
    while left:
        votes = Counter((index, base) for _, index, base in left)
        index, base = min(votes, key=lambda place: (-votes[place], place))
        take(movable[index], base)
        left = [place for place in left if place[0] not in found]
    return found
