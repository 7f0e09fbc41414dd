# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects without the line numbers that WARN and BUG keep in their tables: those of all code below
change with every line above it, and nothing reads them until one of them strikes.
"""

import numpy as np

from kdelta.kernels.objects.elf import Array, parse_elf

READERS = frozenset({"find_bug", "report_bug", "__report_bug"})
"""The functions that look into the table: lib/bug.c. Where none was executed, nothing was read."""

_POINTER, _LINE, _FLAGS = 4, 2, 2  # bytes of struct bug_entry's fields: include/asm-generic/bug.h
_POINTERS = (2, 3)  # of the code and the file; since 6.19 of a format, too


def without_lines(content: bytes) -> bytes:
    """An x86-64 object with zero for all lines in its tables of WARN and BUG; anything else, and
    what was compiled without CONFIG_DEBUG_BUGVERBOSE, as it is.
    """
    if (elf := parse_elf(content)) is None:
        return content
    start = np.frombuffer(content, np.uint8).ctypes.data
    changed = bytearray(content)
    for number, section in enumerate(elf.sections):
        if section.name == "__bug_table" and number in elf.relocations and section.size:
            at = section.content.ctypes.data - start
            for line in _lines(section.size, elf.relocations[number].offset):
                changed[at + line : at + line + _LINE] = bytes(_LINE)
    return bytes(changed)


def _lines(size: int, places: Array) -> range:
    """Where the lines are in a table with relocations at these places."""
    for pointers in _POINTERS:
        length = pointers * _POINTER + _LINE + _FLAGS
        of_one = np.arange(pointers) * _POINTER
        starts = np.arange(0, size, length)
        if not size % length and np.array_equal(places, np.add.outer(starts, of_one).ravel()):
            return range(pointers * _POINTER, size, length)
    return range(0)
