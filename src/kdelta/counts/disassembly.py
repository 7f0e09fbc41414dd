# SPDX-License-Identifier: GPL-2.0-or-later
"""Executed code as text: objdump reads it from an ELF file that is made of its bytes.

Each block is a section at its own address, so that what was executed at one address with different
bytes, or from different places within an instruction, does not hide each other; and with symbols in
the file, objdump alone names the targets of calls.
"""

import re
import struct
from collections.abc import Iterable, Sequence

import msgspec
from elftools.elf.enums import ENUM_E_MACHINE

from kdelta.host.command import run_program
from kdelta.host.emulator import binutils_command
from kdelta.host.files import lab_errors
from kdelta.host.lock import work_folder
from kdelta.host.target import target
from kdelta.spec.errors import LabError

_EXECUTABLE, _LITTLE_ENDIAN, _CURRENT = 2, 1, 1  # ET_EXEC, ELFDATA2LSB, EV_CURRENT
_PROGBITS, _SYMTAB, _STRTAB = 1, 2, 3
_ALLOC_EXECINSTR = 6
_FUNCTION, _ABSOLUTE = 0x12, 0xFFF1  # global STT_FUNC, SHN_ABS
_MARK = 0  # local STT_NOTYPE
_MOST_SECTIONS = 0xFF00 - 4  # SHN_LORESERVE, less those that are no blocks
_THUMB_BYTES = 2

_SECTION = re.compile(r"^Disassembly of section b(\d+):$")
_LINE = re.compile(r"^\s*([0-9a-f]+):\t(.*)$")

_SPACE = re.compile(r"\s+")


class Block(msgspec.Struct, frozen=True):
    """Bytes that were executed from an address on. `sizes`: of its instructions, in bytes."""

    address: int
    code: bytes
    sizes: tuple[int, ...] = ()


class _Form(msgspec.Struct, frozen=True):
    """The layout of an ELF class: struct formats of its header, a section's and a symbol."""

    header: str
    section: str
    number: int
    bits: int

    def symbol(self, name: int, value: int, info: int, section: int) -> bytes:
        if self.bits == 64:
            return struct.pack("<IBBHQQ", name, info, 0, section, value, 0)
        return struct.pack("<IIIBBH", name, value, 0, info, 0, section)


_FORMS = {
    32: _Form("<HHIIIIIHHHHHH", "<IIIIIIIIII", 1, 32),
    64: _Form("<HHIQQQIHHHHHH", "<IIQQQQIIQQ", 2, 64),
}


def disassembled(
    blocks: Sequence[Block], symbols: Iterable[tuple[int, str]], arch: str
) -> list[dict[int, str]]:
    """Of each block its instructions as text, by address. `symbols`: what targets are called.

    LabError when objdump is missing or does not read the file.
    """
    named = sorted({(address, name) for address, name in symbols if _is_plain(name)})
    found: list[dict[int, str]] = []
    for start in range(0, len(blocks), _MOST_SECTIONS):
        found += _disassembled(blocks[start : start + _MOST_SECTIONS], named, arch)
    return found


def _disassembled(
    blocks: Sequence[Block], symbols: Sequence[tuple[int, str]], arch: str
) -> list[dict[int, str]]:
    of = target(arch)
    with work_folder() as folder:
        path = folder / "executed.elf"
        with lab_errors("writing", path):
            path.write_bytes(
                elf_of(blocks, symbols, machine=ENUM_E_MACHINE[of.elf_machine], bits=of.bits)
            )
        objdump = binutils_command(of, "objdump")
        said = run_program([*objdump, "-d", "-z", "-w", "--no-show-raw-insn", path])
    if not said.ok:
        raise LabError(f"{objdump[-1]} cannot read what was executed: {said.last_words(1)}")
    found: list[dict[int, str]] = [{} for _ in blocks]
    current: dict[int, str] = {}
    for line in said.stdout.splitlines():
        if section := _SECTION.match(line):
            current = found[int(section[1])]
        elif row := _LINE.match(line):
            current[int(row[1], 16)] = _SPACE.sub(" ", row[2]).strip()
    return found


def _is_plain(name: str) -> bool:
    """What objdump prints in a line of its own form, whatever a program calls its functions."""
    return bool(name) and name.isascii() and name.isprintable() and not set(name) & set(" <>\\")


def elf_of(
    blocks: Sequence[Block], symbols: Sequence[tuple[int, str]], *, machine: int, bits: int
) -> bytes:
    """An executable whose sections b0, b1, ... are the blocks, with these symbols."""
    form = _FORMS[bits]
    names, strings = bytearray(b"\0"), bytearray(b"\0")
    mask = (1 << bits) - 1

    def name(text: str) -> int:
        at = len(names)
        names.extend(text.encode() + b"\0")
        return at

    table = bytearray(form.symbol(0, 0, 0, 0))
    symbol_bytes = len(table)
    marks = 1
    for index, block in enumerate(blocks):
        # The ARM's own mapping symbols (ELF for the Arm Architecture, 5.5.5): $t is Thumb code.
        if machine == ENUM_E_MACHINE["EM_ARM"]:
            mark = "$t" if _THUMB_BYTES in block.sizes else "$a"
            table += form.symbol(len(strings), block.address & mask, _MARK, index + 1)
            strings += mark.encode() + b"\0"
            marks += 1
    for address, symbol in symbols:
        table += form.symbol(len(strings), address & mask, _FUNCTION, _ABSOLUTE)
        strings += symbol.encode("ascii") + b"\0"
    rows = [(0, 0, 0, 0, b"", 0, 0, 0)]
    rows += [
        (name(f"b{i}"), _PROGBITS, _ALLOC_EXECINSTR, one.address & mask, one.code, 0, 0, 0)
        for i, one in enumerate(blocks)
    ]
    table_at = len(rows)
    rows.append((name("t"), _SYMTAB, 0, 0, bytes(table), table_at + 1, marks, symbol_bytes))
    rows.append((name("s"), _STRTAB, 0, 0, bytes(strings), 0, 0, 0))
    rows.append((name("n"), _STRTAB, 0, 0, bytes(names), 0, 0, 0))
    return _file(form, machine, rows)


_Row = tuple[int, int, int, int, bytes, int, int, int]


def _file(form: _Form, machine: int, rows: Sequence[_Row]) -> bytes:
    """Header, contents of sections, and the table of sections."""
    header_bytes = 16 + struct.calcsize(form.header)
    section_bytes = struct.calcsize(form.section)
    body, table = bytearray(), bytearray()
    for name, kind, flags, address, content, link, info, entry in rows:
        at = header_bytes + len(body) if content else 0
        table += struct.pack(
            form.section, name, kind, flags, address, at, len(content), link, info, 1, entry
        )
        body += content
    ident = b"\x7fELF" + bytes([form.number, _LITTLE_ENDIAN, _CURRENT]) + bytes(9)
    header = struct.pack(
        form.header, _EXECUTABLE, machine, _CURRENT, 0, 0, header_bytes + len(body), 0,
        header_bytes, 0, 0, section_bytes, len(rows), len(rows) - 1,
    )  # fmt: skip
    return ident + header + bytes(body) + bytes(table)
