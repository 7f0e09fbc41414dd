# SPDX-License-Identifier: GPL-2.0-or-later
"""Which user binary a block of user code is from.

The plugin sees addresses and bytes, no mappings. A file is mapped by whole pages, so code keeps its
offset within a page; a binary's base is the one under which most blocks find their own bytes in it.
Binaries at equal addresses are told apart in the same way.
"""

import functools
import io
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from kdelta.counts.symbols import END, NO_SYMBOL

_PAGE_BYTES = 4096
_PROBES = 64
_PROBE_BYTES = 12
_LOADS = 64
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
def load_binary(name: str, content: bytes) -> Binary | None:
    """A binary from an ELF file's content; None for what is no ELF file."""
    try:
        elf = ELFFile(io.BytesIO(content))
        segments = tuple(
            (int(s["p_vaddr"]), bytes(s.data()))
            for s in elf.iter_segments("PT_LOAD")
            if s["p_flags"] & 1
        )
        symbols: list[tuple[int, str, str]] = []
        for section in elf.iter_sections():
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


def _votes(binary: Binary, blocks: Iterable[tuple[int, bytes]]) -> Counter[int]:
    votes: Counter[int] = Counter()
    for vaddr, code in blocks:
        for start, data in binary.segments:
            at = data.find(code)
            seen = 0
            while at >= 0 and seen < 32:
                if (start + at - vaddr) % _PAGE_BYTES == 0:
                    votes[vaddr - start - at] += 1
                    seen += 1
                at = data.find(code, at + 1)
    return votes


def _best_base(binary: Binary, blocks: Blocks) -> int | None:
    """The base under which most of the longest blocks find their bytes."""
    if binary.fixed:
        return 0
    long = sorted(
        (b for b in blocks.values() if len(b[1]) >= _PROBE_BYTES), key=lambda b: (-len(b[1]), b[0])
    )
    votes = _votes(binary, long[:: max(1, len(long) // _PROBES)])
    return min(votes, key=lambda base: (-votes[base], base)) if votes else None


def attribute(binaries: Iterable[Binary], blocks: Blocks) -> dict[int, tuple[Binary, int]]:
    """The binary of each block, and where it was loaded; blocks that no binary holds are left out.

    A binary can be loaded at several places: each process has its own vDSO address.
    """
    left = dict(blocks)
    found: dict[int, tuple[Binary, int]] = {}
    for binary in binaries:
        for _ in range(_LOADS):
            base = _best_base(binary, left)
            held = [] if base is None else [i for i in left if binary.holds(base, *left[i])]
            for block in held:
                found[block] = (binary, base or 0)
                del left[block]
            if not held or binary.fixed:
                break
    return found
