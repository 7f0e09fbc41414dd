# SPDX-License-Identifier: GPL-2.0-or-later
"""ELF files of kernels as arrays: sections, symbols, relocations.

pyelftools takes minutes for what a kernel build leaves, 300,000 relocations; this takes a second.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.host.files import lab_errors
from kdelta.kernels.objects.elf_machines import ELF_MACHINES, Addend, ElfMachine

Array = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

RELOCATABLE = 1
ALLOC, EXECUTABLE, MERGE, STRINGS = 0x2, 0x4, 0x10, 0x20
NOBITS = 8
NO_TYPE, OBJECT, FUNCTION, SECTION, FILE, INDIRECT_FUNCTION = 0, 1, 2, 3, 4, 10
LOCAL_BINDING, WEAK_BINDING = 0, 2
UNDEFINED, RESERVED = 0, 0xFF00  # section numbers from 0xff00 mean something else

_SYMTAB, _RELA, _REL = 2, 4, 9
_MAGIC = {b"\x7fELF\x01\x01": 32, b"\x7fELF\x02\x01": 64}  # little-endian

# "ELF-64 Object File Format", version 1.5, figures 2, 3, 4 and 6; System V ABI, chapter 4.
_HEADER = {
    bits: np.dtype(
        [("ident", "V16"), ("type", "<u2"), ("machine", "<u2"), ("version", "<u4"),
         ("entry", word), ("phoff", word), ("shoff", word), ("flags", "<u4"), ("ehsize", "<u2"),
         ("phentsize", "<u2"), ("phnum", "<u2"), ("shentsize", "<u2"), ("shnum", "<u2"),
         ("shstrndx", "<u2")]
    )
    for bits, word in ((32, "<u4"), (64, "<u8"))
}  # fmt: skip
_SECTION = {
    bits: np.dtype(
        [("name", "<u4"), ("type", "<u4"), ("flags", word), ("address", word), ("offset", word),
         ("size", word), ("link", "<u4"), ("info", "<u4"), ("align", word), ("entsize", word)]
    )
    for bits, word in ((32, "<u4"), (64, "<u8"))
}  # fmt: skip
_SYMBOL = {
    32: np.dtype(
        [("name", "<u4"), ("value", "<u4"), ("size", "<u4"), ("info", "u1"), ("other", "u1"),
         ("section", "<u2")]
    ),
    64: np.dtype(
        [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"),
         ("size", "<u8")]
    ),
}  # fmt: skip
_RELOCATION = {
    (32, _REL): np.dtype([("offset", "<u4"), ("type", "u1"), ("symbol", "u1", 3)]),
    (32, _RELA): np.dtype(
        [("offset", "<u4"), ("type", "u1"), ("symbol", "u1", 3), ("addend", "<i4")]
    ),
    (64, _REL): np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4")]),
    (64, _RELA): np.dtype(
        [("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")]
    ),
}
_SYMBOL_BYTES = np.array([1, 1 << 8, 1 << 16])


class ElfSection(msgspec.Struct, frozen=True):
    """One section; `content` is empty for one that takes no space in the file (.bss). `alignment`
    is of its address.
    """

    name: str
    flags: int
    kind: int
    size: int
    entry_bytes: int
    content: Bytes
    alignment: int = 1


class Symbols(msgspec.Struct, frozen=True):
    """The symbol table, a column an array of shape (n,)."""

    names: list[str]
    kind: Array
    binding: Array
    section: Array
    value: Array
    size: Array


class Relocations(msgspec.Struct, frozen=True):
    """Those of one section by offset, a column an array of shape (n,)."""

    offset: Array
    type: Array
    symbol: Array
    addend: Array


NO_RELOCATIONS = Relocations(*(np.zeros(0, dtype=np.int64) for _ in range(4)))


class Elf(msgspec.Struct, frozen=True):
    """A file's sections by number, its symbols, and relocations by the number of their section."""

    machine: ElfMachine
    type: int
    sections: list[ElfSection]
    symbols: Symbols
    relocations: dict[int, Relocations]


def parse_elf(content: bytes) -> Elf | None:
    """An ELF file of an architecture that is known, parsed; None for anything else and for a
    damaged one. Symbols that only mark code and data have no names.
    """
    bits = _MAGIC.get(content[:6])
    if bits is None:
        return None
    try:
        header = np.frombuffer(content, _HEADER[bits], 1)[0]
        machine = ELF_MACHINES.get(int(header["machine"]))
        if machine is None or machine.bits != bits:
            return None
        return _parse(content, header, machine)
    except (ValueError, IndexError):
        return None


def read_elf(path: Path) -> Elf | None:
    """`parse_elf` of a file; LabError when it cannot be read."""
    with lab_errors("reading", path):
        return parse_elf(path.read_bytes())


def _parse(content: bytes, header: np.void, machine: ElfMachine) -> Elf:
    layout = _SECTION[machine.bits]
    rows = np.frombuffer(content, layout, int(header["shnum"]), int(header["shoff"])).tolist()
    whole = np.frombuffer(content, np.uint8)

    def text(row: tuple[int, ...]) -> bytes:
        return content[row[4] : row[4] + row[5]]

    names = text(rows[int(header["shstrndx"])])
    sections = []
    tables: list[tuple[int, int, bytes]] = []
    symbols = _symbols(np.zeros(0, _SYMBOL[machine.bits]), b"", machine)
    for row in rows:
        name, kind, flags, _, offset, size, link, info, alignment, entry_bytes = row
        held = whole[:0] if kind == NOBITS else whole[offset : offset + size]
        if len(held) != size and kind not in (NOBITS, 0):
            raise ValueError("a section ends after the file")
        named = _name(names, name)
        sections.append(ElfSection(named, flags, kind, size, entry_bytes, held, max(1, alignment)))
        if kind == _SYMTAB:
            table = np.frombuffer(text(row), _SYMBOL[machine.bits])
            symbols = _symbols(table, text(rows[link]), machine)
        elif kind in (_RELA, _REL):
            tables.append((info, kind, text(row)))
    relocations = {
        info: _relocations(
            np.frombuffer(held_text, _RELOCATION[machine.bits, kind]), sections[info], machine
        )
        for info, kind, held_text in tables
    }
    return Elf(machine, int(header["type"]), sections, symbols, relocations)


def _name(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode("utf-8", "replace")


def _symbols(table: npt.NDArray[np.void], names: bytes, machine: ElfMachine) -> Symbols:
    found = [_name(names, at) for at in table["name"].tolist()] if names else []
    return Symbols(
        names=["" if machine.is_mark(name) else name for name in found] if machine.marks else found,
        kind=(table["info"] & 15).astype(np.int64),
        binding=(table["info"] >> 4).astype(np.int64),
        section=table["section"].astype(np.int64),
        value=table["value"].astype(np.int64),
        size=table["size"].astype(np.int64),
    )


def _relocations(table: npt.NDArray[np.void], of: ElfSection, machine: ElfMachine) -> Relocations:
    if machine.void:
        table = table[~np.isin(table["type"], machine.void)]
    table = table[np.argsort(table["offset"], kind="stable")]
    offset, kind = table["offset"].astype(np.int64), table["type"].astype(np.int64)
    symbol = table["symbol"].astype(np.int64)
    if machine.bits == 32:
        symbol = symbol @ _SYMBOL_BYTES
    names = table.dtype.names or ()
    addend = (
        table["addend"].astype(np.int64)
        if "addend" in names
        else _in_place(of, offset, kind, machine)
    )
    return Relocations(offset, kind, symbol, addend)


def _in_place(section: ElfSection, offset: Array, kind: Array, machine: ElfMachine) -> Array:
    """The addends that stand in what the relocations fill in; 0 where nothing says how."""
    found = np.zeros(len(offset), dtype=np.int64)
    for number, form in machine.addends.items():
        chosen = np.flatnonzero(kind == number)
        if len(chosen):
            found[chosen] = _ADDENDS[form](little_endian(section.content, offset[chosen], 4))
    return found


def little_endian(content: Bytes, at: Array, width: int) -> Array:
    """The little-endian numbers of `width` bytes, without a sign up to 7, at those offsets."""
    value = np.zeros(len(at), dtype=np.int64)
    for byte in range(width):
        value |= content[at + byte].astype(np.int64) << (8 * byte)
    return value


def with_sign(values: Array, bits: int) -> Array:
    """Numbers of that many bits with their sign."""
    sign = np.int64(1) << (bits - 1)
    return ((values & ((sign << 1) - 1)) ^ sign) - sign


_ADDENDS: dict[Addend, Callable[[Array], Array]] = {
    Addend.WORD: lambda words: with_sign(words, 32),
    Addend.LOW_31: lambda words: with_sign(words, 31),
    Addend.BRANCH: lambda words: with_sign(words, 24) << 2,
    Addend.HALF: lambda words: with_sign((words >> 4 & 0xF000) | (words & 0xFFF), 16),
}
