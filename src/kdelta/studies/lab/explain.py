# SPDX-License-Identifier: GPL-2.0-or-later
"""What a user can do about a run that failed, derived from what the guest left."""

import re
from collections.abc import Mapping
from pathlib import Path

from kdelta.counts.binaries import load_binary
from kdelta.kernels.config.lab_config import missing_options
from kdelta.kernels.model import Kernel
from kdelta.machines.outcome import GuestOutcome
from kdelta.spec.run import RunStatus

_PAGE_BYTES = 4096
_TRAP = re.compile(
    r"traps: \S+ trap invalid opcode ip:([0-9a-f]+) sp:\S+ error:\S+ in ([^\[]+)\[([0-9a-f]+)\+"
)
_PREFIXES = b"\x66\xf2\xf3\x2e\x36\x3e\x26\x64\x65\x67"
_REX = range(0x40, 0x50)


def advice(outcome: GuestOutcome, kernel: Kernel, binaries: Mapping[str, bytes]) -> str:
    """What follows a failed run's reason: empty, or a clause that starts with a semicolon."""
    if outcome.status is RunStatus.BOOT_FAILED:
        return _about_config(kernel)
    if outcome.detail.startswith("signal 4"):
        return _about_instruction(outcome.console, binaries)
    return ""


def _about_config(kernel: Kernel) -> str:
    if not kernel.config:
        return ""
    text = Path(kernel.config).read_text(errors="replace")
    missing = missing_options(text, kernel.image_format, kernel.arch)
    named = [f"{option.option} ({option.needed_for})" for option in missing]
    return f"; its config lacks {', '.join(named)}" if named else ""


def _about_instruction(console: str, binaries: Mapping[str, bytes]) -> str:
    found = _TRAP.search(console)
    feature = ""
    if found:
        address, name, start = int(found[1], 16), found[2], int(found[3], 16)
        for path, content in binaries.items():
            if Path(path).name == name:
                feature = needed_feature(code_at(content, start, address))
    cpu = "; the machine's CPU does not have an instruction of this program"
    return f"{cpu}: {feature}" if feature else cpu


def code_at(content: bytes, start: int, address: int) -> bytes:
    """The instruction bytes at an address of a binary whose code is mapped from `start` on."""
    binary = load_binary("", content)
    for vaddr, data in binary.segments if binary else ():
        at = address - (start - vaddr // _PAGE_BYTES * _PAGE_BYTES) - vaddr
        if 0 <= at < len(data):
            return data[at : at + 15]
    return b""


def needed_feature(code: bytes) -> str:
    """The CPU feature that an instruction belongs to, as far as its encoding shows."""
    rest = code.lstrip(_PREFIXES)
    if rest[:1] == b"\x62":
        return "AVX-512"
    if rest[:1] in {b"\xc4", b"\xc5"}:
        return "AVX, AVX2, FMA or BMI (x86-64-v3)"
    if rest and rest[0] in _REX:
        rest = rest[1:]
    known = {
        b"\x0f\x38\xf0": "MOVBE (x86-64-v3)",
        b"\x0f\x38\xf1": "MOVBE (x86-64-v3)",
        b"\x0f\xc7": "RDRAND or RDSEED, which would bring the host's entropy into the guest",
        b"\x0f\xbd": "LZCNT (x86-64-v3)",
        b"\x0f\x38\xc8": "SHA",
        b"\x0f\x38\xdc": "AES",
        b"\x0f\x38\xde": "AES",
        b"\x0f\x3a\x44": "PCLMULQDQ",
    }
    return next((name for prefix, name in known.items() if rest.startswith(prefix)), "")
