# SPDX-License-Identifier: GPL-2.0-or-later
"""What each kind of miss is called, wherever one is printed."""

from collections.abc import Mapping

import msgspec

from kdelta.cpus.model import MissKind


class MissNames(msgspec.Struct, frozen=True):
    """The names of a kind of miss.

    kind    its key in CPU files and in records
    price   of the price of one, in `kdelta cpus`
    label   of one
    plural  of a number of them
    column  the same in 14 columns
    """

    kind: MissKind
    price: str
    label: str
    plural: str
    column: str


_ALL = (
    MissNames("l1i", "miss of a line", "L1I miss, in full", "L1I misses", "l1i misses"),
    MissNames("itlb", "miss of a page", "ITLB miss", "ITLB misses", "itlb misses"),
    MissNames("btb", "miss of a target", "BTB miss", "BTB misses", "btb misses"),
    MissNames("l2", "miss in the L2", "L2 miss (code)", "L2 misses of code and data", "l2 misses"),
    MissNames("l1d", "load: line", "L1D miss (load)", "L1D misses of loads", "l1d misses"),
    MissNames("l1d-store", "store: line",
              "L1D miss (store)", "L1D misses of stores", "l1d, stores"),
    MissNames("l2-data", "load: line in the L2",
              "L2 miss (load)", "L2 misses of loads", "l2-data misses"),
    MissNames("l2-data-store", "store: line in the L2",
              "L2 miss (store)", "L2 misses of stores", "l2-data stores"),
    MissNames("dtlb", "load: page", "DTLB miss (load)", "DTLB misses of loads", "dtlb misses"),
    MissNames("dtlb-store", "store: page",
              "DTLB miss (store)", "DTLB misses of stores", "dtlb, stores"),
    MissNames("stlb", "load: page, 2nd level",
              "STLB miss (load)", "STLB misses of loads", "stlb misses"),
    MissNames("stlb-store", "store: page, 2nd level",
              "STLB miss (store)", "STLB misses of stores", "stlb, stores"),
)  # fmt: skip

MISSES: Mapping[str, MissNames] = {one.kind: one for one in _ALL}
"""All kinds: those that depend on where code lies, and those of data."""

PLURALS: Mapping[str, str] = {
    **{kind: names.plural for kind, names in MISSES.items()},
    "l2_code": "L2 misses of code",
    "l2_data": "L2 misses of data",
}
"""What a number of misses of a kind is called, and of L2 misses by what missed."""
