# SPDX-License-Identifier: GPL-2.0-or-later
"""What each kind of miss is called, wherever one is printed."""

from collections.abc import Mapping

import msgspec

from kdelta.cpus.model import MissKind


class MissNames(msgspec.Struct, frozen=True):
    """The names of a kind of miss.

    kind    its key in CPU files and in records
    price   of the price of one, in `kdelta cpus`
    plural  of a number of them
    """

    kind: MissKind
    price: str
    plural: str


_ALL = (
    MissNames("l1i", "miss of a line", "L1I misses"),
    MissNames("itlb", "miss of a page", "ITLB misses"),
    MissNames("btb", "miss of a target", "BTB misses"),
    MissNames("l2", "miss in the L2", "L2 misses of code and data"),
    MissNames("l1d", "load: line", "L1D misses of loads"),
    MissNames("l1d-store", "store: line", "L1D misses of stores"),
    MissNames("l2-data", "load: line in the L2", "L2 misses of loads"),
    MissNames("l2-data-store", "store: line in the L2", "L2 misses of stores"),
    MissNames("dtlb", "load: page", "DTLB misses of loads"),
    MissNames("dtlb-store", "store: page", "DTLB misses of stores"),
    MissNames("stlb", "load: page, 2nd level", "STLB misses of loads"),
    MissNames("stlb-store", "store: page, 2nd level", "STLB misses of stores"),
)

MISSES: Mapping[str, MissNames] = {one.kind: one for one in _ALL}
"""All kinds: those that depend on where code lies, and those of data."""

PLURALS: Mapping[str, str] = {
    **{kind: names.plural for kind, names in MISSES.items()},
    "l2_code": "L2 misses of code",
    "l2_data": "L2 misses of data",
}
"""What a number of misses of a kind is called, and of L2 misses by what missed."""
