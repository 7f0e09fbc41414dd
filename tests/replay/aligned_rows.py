# SPDX-License-Identifier: GPL-2.0-or-later
"""Symbols of kernels whose functions are aligned to less than their sections."""

import msgspec

from kdelta.counts.symbols import parse_symbols
from kdelta.kernels.objects.digest import Digest
from kdelta.kernels.objects.objects import CodePiece
from kdelta.replay.functions import PlacedFunction, Placement, placement_of
from tests.replay.made_kernel import START, Row, digest_of, kallsyms

WORD = 4


def digest(
    functions: dict[str, tuple[str, int]], path: str = "a.c.o", alignment: int = WORD, lead: int = 0
) -> Digest:
    """One object; functions: section and size; all sections have that alignment. lead: bytes
    without a name at the start of .text.
    """
    found = digest_of({path: {name: (*held, 7) for name, held in functions.items()}})
    (thing,) = found.objects.values()
    alignments = {section: alignment for section, _ in functions.values()}
    data = {":.text": CodePiece(9, lead, ".text", ())} if lead else {}
    changed = msgspec.structs.replace(thing, alignments=alignments, data=data)
    return Digest({path: changed}, {})


def both(*digests: Digest) -> Digest:
    return Digest({path: one for held in digests for path, one in held.objects.items()}, {})


def of_own(**sizes: int) -> dict[str, tuple[str, int]]:
    return {name: (f".text.{name}", size) for name, size in sizes.items()}


def found_in(rows: list[Row], known: Digest, *, middle: bool = False) -> Placement:
    return placement_of([], parse_symbols(kallsyms(rows)), digest=known, middle=middle)


def at(found: Placement) -> dict[str, PlacedFunction]:
    return {function.name: function for function in found.functions}


def rows_of(*starts: tuple[int, str]) -> list[Row]:
    rows: list[Row] = [(START, "T", "_stext")]
    rows += [(START + offset, "t", name) for offset, name in starts]
    return [*rows, (START + 0x1000, "T", "_etext")]
