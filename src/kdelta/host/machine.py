# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine that all runs on."""

import os
from pathlib import Path

_LEAST_BYTES = 16
_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def machine_hash(path: Path = Path("/etc/machine-id")) -> str:
    """By which number two calibrations of one machine are known, as facts.c of the calibration
    finds it; empty where the machine has no id. FNV-1a, 64 bits.
    """
    try:
        content = path.read_bytes()[:64]
    except OSError:
        return ""
    if len(content) < _LEAST_BYTES:
        return ""
    found = _FNV_OFFSET
    for byte in b"kdelta" + content.partition(b"\n")[0]:
        found = (found ^ byte) * _FNV_PRIME % (1 << 64)
    return str(found)
