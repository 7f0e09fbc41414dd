# SPDX-License-Identifier: GPL-2.0-or-later
"""ELF files of x86-64 as arrays: sections, symbols, relocations.

pyelftools takes minutes for what a kernel build leaves, 300,000 relocations; this takes a second.
"""

from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.host.files import lab_errors

Array = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

RELOCATABLE = 1
X86_64 = 62
ALLOC, EXECUTABLE, MERGE, STRINGS = 0x2, 0x4, 0x10, 0x20
NOBITS = 8
NO_TYPE, OBJECT, FUNCTION, SECTION, FILE, INDIRECT_FUNCTION = 0, 1, 2, 3, 4, 10
LOCAL_BINDING, WEAK_BINDING = 0, 2
UNDEFINED, RESERVED = 0, 0xFF00  # section numbers from 0xff00 mean something else

_SYMTAB, _RELA = 2, 4
_MAGIC = b"\x7fELF\x02\x01"  # 64 bit, little-endian

# "ELF-64 Object File Format", version 1.5, figures 2, 3, 4 and 6.
_HEADER = np.dtype(
    [("ident", "V16"), ("type", "<u2"), ("machine", "<u2"), ("version", "<u4"), ("entry", "<u8"),
     ("phoff", "<u8"), ("shoff", "<u8"), ("flags", "<u4"), ("ehsize", "<u2"), ("phentsize", "<u2"),
     ("phnum", "<u2"), ("shentsize", "<u2"), ("shnum", "<u2"), ("shstrndx", "<u2")]
)  # fmt: skip
_SECTION = np.dtype(
    [("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("address", "<u8"), ("offset", "<u8"),
     ("size", "<u8"), ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("entsize", "<u8")]
)  # fmt: skip
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"),
     ("size", "<u8")]
)  # fmt: skip
_RELOCATION = np.dtype(
    [("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")]
)  # fmt: skip


class Section(msgspec.Struct, frozen=True):
    """One section; `content` is empty for one that takes no space in the file (.bss)."""

    name: str
    flags: int
    kind: int
    size: int
    entry_bytes: int
    content: Bytes


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

    type: int
    sections: list[Section]
    symbols: Symbols
    relocations: dict[int, Relocations]


def parse_elf(content: bytes) -> Elf | None:
    """An x86-64 ELF file taken apart; None for anything else and for a damaged one."""
    if not content.startswith(_MAGIC):
        return None
    try:
        header = np.frombuffer(content, _HEADER, 1)[0]
        if int(header["machine"]) != X86_64:
            return None
        return _parse(content, header)
    except (ValueError, IndexError):
        return None


def read_elf(path: Path) -> Elf | None:
    """`parse_elf` of a file; LabError when it cannot be read."""
    with lab_errors("reading", path):
        return parse_elf(path.read_bytes())


def _parse(content: bytes, header: np.void) -> Elf:
    rows = np.frombuffer(content, _SECTION, int(header["shnum"]), int(header["shoff"])).tolist()
    whole = np.frombuffer(content, np.uint8)

    def text(row: tuple[int, ...]) -> bytes:
        return content[row[4] : row[4] + row[5]]

    names = text(rows[int(header["shstrndx"])])
    sections, relocations = [], {}
    symbols = _symbols(np.zeros(0, _SYMBOL), b"")
    for row in rows:
        name, kind, flags, _, offset, size, link, info, _, entry_bytes = row
        held = whole[:0] if kind == NOBITS else whole[offset : offset + size]
        if len(held) != size and kind not in (NOBITS, 0):
            raise ValueError("a section ends after the file")
        sections.append(Section(_name(names, name), flags, kind, size, entry_bytes, held))
        if kind == _SYMTAB:
            symbols = _symbols(np.frombuffer(text(row), _SYMBOL), text(rows[link]))
        elif kind == _RELA:
            table = np.frombuffer(text(row), _RELOCATION)
            relocations[info] = _relocations(table)
    return Elf(int(header["type"]), sections, symbols, relocations)


def _name(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode("utf-8", "replace")


def _symbols(table: npt.NDArray[np.void], names: bytes) -> Symbols:
    return Symbols(
        names=[_name(names, at) for at in table["name"].tolist()] if names else [],
        kind=(table["info"] & 15).astype(np.int64),
        binding=(table["info"] >> 4).astype(np.int64),
        section=table["section"].astype(np.int64),
        value=table["value"].astype(np.int64),
        size=table["size"].astype(np.int64),
    )


def _relocations(table: npt.NDArray[np.void]) -> Relocations:
    order = np.argsort(table["offset"], kind="stable")
    return Relocations(
        offset=table["offset"][order].astype(np.int64),
        type=table["type"][order].astype(np.int64),
        symbol=table["symbol"][order].astype(np.int64),
        addend=table["addend"][order],
    )
