# SPDX-License-Identifier: GPL-2.0-or-later
"""An x86-64 kernel's alternatives: code that it replaces at boot by the features of its CPU."""

import io
import struct
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from elftools.elf.elffile import ELFFile

from kdelta.host.command import find_program, piped
from kdelta.host.lock import work_folder
from kdelta.spec.errors import LabError

ALWAYS, XENPV = 3 * 32 + 21, 8 * 32 + 16
"""Numbers of features in arch/x86/include/asm/cpufeatures.h, the same in Linux 6.1 and 6.12."""

# Documentation/arch/x86/boot.rst: where the packed kernel lies after the setup sectors.
_SETUP_SECTORS, _PAYLOAD = 0x1F1, 0x248
_UNPACKERS = {b"\x02\x21\x4c\x18": "lz4", b"\x28\xb5\x2f\xfd": "zstd"}
_SIZE_BYTES = 4  # the unpacked size, after the payload

# struct alt_instr of arch/x86/include/asm/alternative.h: until 6.2 the flag is a bit of the number.
_LAYOUTS = (struct.Struct("<iiHBB"), struct.Struct("<iiHHBB"))
_NOT_IN_NUMBER, _NOT, _DIRECT_CALL = 1 << 15, 1, 2
_EXECUTABLE = 4
_JUMP_BYTES = 5
_JUMPS = (b"\xe8", b"\xe9")

# As the kernel pads: one instruction for each length (arch/x86/include/asm/nops.h).
_NOPS = tuple(
    bytes.fromhex(one)
    for one in (
        "", "90", "6690", "0f1f00", "0f1f4000", "0f1f440000", "660f1f440000",
        "0f1f8000000000", "0f1f840000000000",
    )
)  # fmt: skip


class Alternative(NamedTuple):
    """An entry of .altinstructions: `replacement` takes the place of `length` bytes at `address`
    if the CPU has the feature, or if it has not and `inverted`. `source`: where it is linked.
    """

    address: int
    length: int
    feature: int
    replacement: bytes
    source: int
    inverted: bool = False
    is_call: bool = False

    def code(self) -> bytes:
        """The bytes at `address` once it is replaced."""
        found = self.replacement
        if found[:1] in _JUMPS and len(found) == _JUMP_BYTES:
            (distance,) = struct.unpack_from("<i", found, 1)
            found = found[:1] + struct.pack("<i", distance + self.source - self.address)
        left = self.length - len(found)
        while left > 0:
            found += _NOPS[min(left, len(_NOPS) - 1)]
            left = self.length - len(found)
        return found


class Code:
    """The executable bytes of a kernel, by address."""

    def __init__(self, sections: Sequence[tuple[int, bytes]]) -> None:
        self._sections = sorted((start, bytearray(held)) for start, held in sections)
        self._starts = [start for start, _ in self._sections]

    def copy(self) -> "Code":
        return Code([(start, bytes(held)) for start, held in self._sections])

    def read(self, address: int, n_bytes: int) -> bytes:
        """Up to so many bytes; none where there is no code."""
        start, held = self._at(address)
        return bytes(held[address - start : address - start + n_bytes])

    def write(self, address: int, content: bytes) -> None:
        """Replaces bytes; what is not in the kernel's image is left out."""
        start, held = self._at(address)
        if address - start + len(content) <= len(held):
            held[address - start : address - start + len(content)] = content

    def _at(self, address: int) -> tuple[int, bytearray]:
        index = bisect_right(self._starts, address) - 1
        return self._sections[index] if index >= 0 else (address, bytearray())


def unpacked(image: Path) -> bytes:
    """The vmlinux within a bzImage; LabError if it is packed in another way than LZ4 or zstd."""
    content = image.read_bytes()
    start, size = struct.unpack_from("<II", content, _PAYLOAD)
    start += (content[_SETUP_SECTORS] + 1) * 512
    packed = content[start : start + size - _SIZE_BYTES]
    program = _UNPACKERS.get(packed[:4])
    if program is None:
        raise LabError(f"{image} is packed in a way that is not known here")
    with work_folder() as folder:
        path = folder / "packed"
        path.write_bytes(packed)
        argv: list[str | Path] = [find_program(program), "-q", "-d", "-c", path]
        with piped(argv, lambda said: LabError(f"cannot unpack {image}: {said}")) as unpacker:
            return unpacker.read()


def parse_kernel(vmlinux: bytes) -> tuple[Code, tuple[Alternative, ...]]:
    """The code of a vmlinux and its alternatives, in the order in which they are applied."""
    elf = ELFFile(io.BytesIO(vmlinux))
    code = Code(
        [(int(s["sh_addr"]), s.data()) for s in elf.iter_sections() if s["sh_flags"] & _EXECUTABLE]
    )
    section = elf.get_section_by_name(".altinstructions")
    if section is None:
        raise LabError("the kernel has no section .altinstructions")
    return code, parse_alternatives(section.data(), int(section["sh_addr"]), code)


def parse_alternatives(table: bytes, address: int, code: Code) -> tuple[Alternative, ...]:
    """The entries of a table that is linked at `address`, in the layout that fits all of them;
    LabError if none does.
    """
    for layout in _LAYOUTS:
        if len(table) % layout.size == 0:
            rows = range(0, len(table), layout.size)
            found = [_entry(row, layout, address, table, code) for row in rows]
            if all(found):
                return tuple(one for one in found if one)
    raise LabError("the entries of .altinstructions have a layout that is not known here")


def _entry(
    row: int, layout: struct.Struct, address: int, table: bytes, code: Code
) -> Alternative | None:
    """None if it is no entry in that layout: code is not where it says."""
    place, source, feature, *flags, length, size = layout.unpack_from(table, row)
    flag = flags[0] if flags else int(bool(feature & _NOT_IN_NUMBER)) * _NOT
    place, source = address + row + place, address + row + 4 + source
    replacement = code.read(source, size)
    if size > length or len(replacement) != size or len(code.read(place, length)) != length:
        return None
    number = feature & ~_NOT_IN_NUMBER
    return Alternative(
        place, length, number, replacement, source, bool(flag & _NOT), bool(flag & _DIRECT_CALL)
    )


def apply(code: Code, alternatives: Collection[Alternative], known: Mapping[int, bool]) -> None:
    """Replaces the code of all places of whose features each is known."""
    open_places = {one.address for one in alternatives if one.feature not in known}
    for one in alternatives:
        takes = known.get(one.feature, False) != one.inverted
        if takes and one.address not in open_places and not one.is_call:
            code.write(one.address, one.code())
