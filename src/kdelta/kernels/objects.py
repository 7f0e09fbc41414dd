# SPDX-License-Identifier: GPL-2.0-or-later
"""An object file, by symbol: hashes that are equal if and only if the code is, and who refers."""

import msgspec

LOCAL = ":"
"""Starts a reference to a symbol or a section of the same object; other references are names that
any object, or the linker, may define."""


class Code(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A function, a variable, or the nameless rest of a section.

    `hash` covers its bytes with each relocation replaced by what it refers to, so moving it or what
    it refers to changes nothing. `refs` are names, sorted; those that start with ":" are of the
    same object.
    """

    hash: int
    size: int
    section: str
    refs: tuple[str, ...]


class ObjectContent(msgspec.Struct, frozen=True):
    """An object file. `collected` has the sections whose records the linker puts side by side for
    somebody who walks from one boundary to the other: __ex_table, .initcall6.init, __param, ...
    """

    functions: dict[str, Code]
    data: dict[str, Code]
    collected: dict[str, Code]


def read_object(content: bytes) -> ObjectContent | None:
    """What an x86-64 relocatable object holds; None for any other file (LTO's bitcode, say)."""
    raise NotImplementedError
