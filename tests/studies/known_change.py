# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel that differs from Debian's in one known place: k more instructions in getppid."""

import struct
import subprocess
from pathlib import Path

from elftools.elf.elffile import ELFFile

FUNCTION = "__x64_sys_getppid"
PADDING_BYTES = 16
# xor %edx,%edx; mov $1,%esi: two instructions of the function that do not care where they stand.
_MOVED = bytes.fromhex("31d2be01000000")
_NOP = b"\x90"
_JUMP_BYTES = 2
JUMPS = 2
MOST_NOPS = PADDING_BYTES - len(_MOVED) - _JUMP_BYTES


def extract_vmlinux(image: Path, vmlinux: Path) -> None:
    """The ELF kernel inside a zstd-compressed bzImage."""
    content = image.read_bytes()
    setup_bytes = (content[0x1F1] + 1) * 512
    offset, length = struct.unpack_from("<II", content, 0x248)
    payload = content[setup_bytes + offset : setup_bytes + offset + length]
    assert payload.startswith(b"\x28\xb5\x2f\xfd"), "this test reads kernels packed with zstd"
    packed = vmlinux.with_suffix(".zst")
    packed.write_bytes(payload[:-4])  # the last four bytes are the unpacked size
    subprocess.run(["zstd", "-q", "-d", "-f", packed, "-o", vmlinux], check=True)


def function_address(symbols: str) -> int:
    """Where the function starts, from /proc/kallsyms."""
    line = next(line for line in symbols.splitlines() if line.endswith(f" T {FUNCTION}"))
    return int(line.split()[0], 16)


def _jump(at: int, to: int) -> bytes:
    return b"\xeb" + struct.pack("<b", to - (at + _JUMP_BYTES))


def add_instructions(vmlinux: Path, changed: Path, address: int, nops: int) -> int:
    """Detour through the padding before the function; returns how many instructions that adds."""
    content = bytearray(vmlinux.read_bytes())
    with vmlinux.open("rb") as file:
        segment = next(
            s
            for s in ELFFile(file).iter_segments("PT_LOAD")
            if s["p_vaddr"] <= address < s["p_vaddr"] + s["p_filesz"]
        )
        start = address - segment["p_vaddr"] + segment["p_offset"]
    padding = start - PADDING_BYTES
    assert content[padding:start] == _NOP * PADDING_BYTES, "the function has no padding before it"
    place = content.index(_MOVED, start, start + 64)
    back = place + len(_MOVED)
    detour = _NOP * nops + _MOVED
    detour += _jump(padding + len(detour), back)
    content[padding : padding + len(detour)] = detour
    content[place:back] = _jump(place, padding) + _NOP * (len(_MOVED) - _JUMP_BYTES)
    changed.write_bytes(content)
    return nops + JUMPS
