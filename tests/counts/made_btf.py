# SPDX-License-Identifier: GPL-2.0-or-later
"""Descriptions of types, as a kernel has them: BTF that is made up."""

import struct
from typing import Self

INT, POINTER, ARRAY, STRUCT, UNION, TYPEDEF, CONST, VARIABLE, SECTION = 1, 2, 3, 4, 5, 8, 10, 14, 15

MemberRow = tuple[str, int, int]
"""Name, type, offset in bytes."""


class MadeTypes:
    """Types in their order; each method that adds one returns its number."""

    def __init__(self) -> None:
        self._names = b"\0"
        self._types: list[bytes] = []

    def _name(self, name: str) -> int:
        if not name:
            return 0
        self._names += name.encode() + b"\0"
        return len(self._names) - len(name) - 1

    def _add(self, name: str, kind: int, size: int, count: int = 0, rest: bytes = b"") -> int:
        self._types.append(struct.pack("<III", self._name(name), kind << 24 | count, size) + rest)
        return len(self._types)

    def number(self, name: str, size: int) -> int:
        return self._add(name, INT, size, rest=struct.pack("<I", 8 * size))

    def pointer(self, to: int) -> int:
        return self._add("", POINTER, to)

    def named(self, name: str, of: int) -> int:
        return self._add(name, TYPEDEF, of)

    def array(self, of: int, count: int) -> int:
        return self._add("", ARRAY, 0, rest=struct.pack("<III", of, of, count))

    def struct(self, name: str, size: int, *members: MemberRow, kind: int = STRUCT) -> int:
        rows = [struct.pack("<III", self._name(one), of, 8 * at) for one, of, at in members]
        return self._add(name, kind, size, len(members), b"".join(rows))

    def variable(self, name: str, of: int) -> int:
        return self._add(name, VARIABLE, of, rest=struct.pack("<I", 1))

    def section(self) -> bytes:
        types = b"".join(self._types)
        head = struct.pack(
            "<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(self._names)
        )
        return head + types + self._names

    def kernel(self) -> Self:
        """Add a little of what a kernel has."""
        u32, u64 = self.number("unsigned int", 4), self.number("unsigned long", 8)
        atomic = self.struct("", 4, ("counter", u32, 0))
        count = self.named("atomic_t", atomic)
        lock = self.struct("spinlock", 4, ("val", count, 0))
        inner = self.struct("", 8, ("lock", lock, 0), ("count", u32, 4))
        union = self.struct("", 8, ("lock_count", u64, 0), ("", inner, 0), kind=UNION)
        lockref = self.struct("lockref", 8, ("", union, 0))
        pointer = self.pointer(lockref)
        self.struct("dentry", 24, ("d_flags", u32, 0), ("d_lockref", lockref, 8),
                    ("d_parent", pointer, 16))  # fmt: skip
        numbers = self.array(u32, 4)
        own = self.struct("rq", 24, ("nr_running", u32, 0), ("cpu_load", numbers, 8))
        self.variable("runqueues", own)
        self.struct("page", 64, ("flags", u64, 0), ("_refcount", count, 52))
        return self
