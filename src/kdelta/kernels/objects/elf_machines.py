# SPDX-License-Identifier: GPL-2.0-or-later
"""What differs between the ELF files of architectures: relocations, branches, padding."""

import enum
import re

import msgspec

_ANCHOR_BYTES = 4095  # TARGET_MAX_ANCHOR_OFFSET of gcc for ARM and AArch64; the least is nearer
_WORD, _LONG = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF


class Addend(enum.Enum):
    """How an addend stands in the bytes that a relocation without one of its own fills in."""

    WORD = "a signed word"
    BRANCH = "24 bits, in words"
    HALF = "16 bits, the upper four of them 12 bits apart from the lower ones"
    LOW_31 = "31 bits of a word"


class FilledBranch(msgspec.Struct, frozen=True):
    """Calls and jumps whose distance the assembler may fill in itself.

    One begins at any multiple of `step` bytes, and its first `step` bytes, masked, are one of
    `opcodes`. `bits` of distance, in units of 1 << `shift` bytes, stand `at` bytes on in `width`
    bytes, and count from `origin` bytes on.
    """

    step: int
    mask: int
    opcodes: tuple[int, ...]
    at: int
    width: int
    bits: int
    shift: int
    origin: int


class ElfMachine(msgspec.Struct, frozen=True):
    """One architecture.

    number, bits  e_machine, and of an address
    filled        type of relocation -> which bits of the bytes at its offset it fills in; `usual`:
                  those of others
    origins       likewise: in code, a relative operand counts from that many bytes on
    addends       likewise: how its addend stands in place, where it has none of its own
    void          types that refer to nothing
    branches      what the assembler resolves itself
    nops          the bytes of what assemblers fill the space between functions with
    marks         names of symbols that only mark code and data
    has_tails     whether an immediate may follow a relative operand
    anchors       names of symbols by whose address compilers reach what lies within `anchor_bytes`
                  of them, without a relocation of its own; 0 where they never do
    """

    number: int
    bits: int
    nops: tuple[int, ...]
    branches: tuple[FilledBranch, ...]
    usual: int = 0
    filled: dict[int, int] = {}
    origins: dict[int, int] = {}
    addends: dict[int, Addend] = {}
    void: tuple[int, ...] = (0,)
    marks: str = ""
    has_tails: bool = False
    anchors: str = ""
    anchor_bytes: int = 0

    def is_mark(self, name: str) -> bool:
        """Whether a symbol of that name says no more than what lies there."""
        return bool(self.marks) and re.fullmatch(self.marks, name) is not None


# System V ABI, AMD64 supplement, table 4.9: R_X86_64_64, PC32, PLT32, GOTPCREL, PC64, GOTPCRELX and
# REX_GOTPCRELX. A relative operand counts from its end.
_X86_64 = ElfMachine(
    number=62,
    bits=64,
    nops=(0x90, 0xCC, 0x66, 0x2E, 0x0F, 0x1F, 0x84, 0x80, 0x44, 0x40, 0x00),
    branches=(
        FilledBranch(1, 0xFF, (0xE8, 0xE9), at=1, width=4, bits=32, shift=0, origin=5),
        FilledBranch(1, 0xFF, (0xEB,), at=1, width=1, bits=8, shift=0, origin=2),
    ),
    usual=_WORD,
    filled={1: _LONG, 24: _LONG},
    origins=dict.fromkeys((2, 4, 9, 24, 41, 42), 4),
    void=(),
    has_tails=True,
)

# ELF for the Arm Architecture (AAELF32), section 5.6.1: R_ARM_PC24, ABS32, REL32, CALL, JUMP24,
# TARGET1, PREL31, MOVW_ABS_NC, MOVT_ABS, MOVW_PREL_NC, MOVT_PREL; V4BX (40) only marks a bx. Nops
# are mov r0, r0 and nop.
_ARM = ElfMachine(
    number=40,
    bits=32,
    nops=(0x00, 0xA0, 0xE1, 0xF0, 0x20, 0xE3),
    branches=(
        FilledBranch(4, 0x0E000000, (0x0A000000,), at=0, width=4, bits=24, shift=2, origin=8),
    ),
    filled={
        **dict.fromkeys((2, 3, 38), _WORD),
        **dict.fromkeys((1, 28, 29), 0x00FF_FFFF),
        **dict.fromkeys((43, 44, 45, 46), 0x000F_0FFF),
        42: 0x7FFF_FFFF,
    },
    origins=dict.fromkeys((1, 28, 29), 8),
    addends={
        **dict.fromkeys((2, 3, 38), Addend.WORD),
        **dict.fromkeys((1, 28, 29), Addend.BRANCH),
        **dict.fromkeys((43, 44, 45, 46), Addend.HALF),
        42: Addend.LOW_31,
    },
    void=(0, 40),
    marks=r"\$[adt](\..*)?",
    anchors=r"\.LANCHOR\d+",
    anchor_bytes=_ANCHOR_BYTES,
)

# ELF for the Arm 64-bit Architecture (AAELF64). What relocations fill in is zero in an object.
_AARCH64 = ElfMachine(
    number=183,
    bits=64,
    nops=(0x1F, 0x20, 0x03, 0xD5, 0x00),
    branches=(
        FilledBranch(4, 0x7C000000, (0x14000000,), at=0, width=4, bits=26, shift=2, origin=0),
    ),
    marks=r"\$[xd](\..*)?",
    # Assemblers put the section's symbol, which has no name, in place of an anchor.
    anchors=r"(\.LANCHOR\d+)?",
    anchor_bytes=_ANCHOR_BYTES,
)

# RISC-V ELF psABI, "Relocations": RELAX (51) and ALIGN (43) tell the linker what it may shorten.
# Assemblers resolve no branch themselves where the linker may, and name what they branch to.
_RISCV = ElfMachine(
    number=243,
    bits=64,
    nops=(0x13, 0x01, 0x00),
    branches=(),
    void=(0, 43, 51),
    marks=r"\$[xd].*|\.L.*",
)

ELF_MACHINES = {one.number: one for one in (_X86_64, _ARM, _AARCH64, _RISCV)}
"""By e_machine."""
