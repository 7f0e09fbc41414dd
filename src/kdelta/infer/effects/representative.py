# SPDX-License-Identifier: GPL-2.0-or-later
"""Which regions' paths depend on what a guest's kernel did otherwise than on the CPU."""

import fnmatch
from collections.abc import Collection, Sequence

import msgspec

from kdelta.counts.model import FunctionCost, RegionCounts, RunCounts, merged_regions, total_cost
from kdelta.cpus.model import KernelPath
from kdelta.cpus.representative import Difference

ENTRIES = frozenset({"syscall", "sysret", "sysenter", "sysexit", "iret", "int", "swapgs"})
"""Special instructions that only a way into the kernel or out of it has."""


class MarkedRegion(msgspec.Struct, frozen=True):
    """A region whose path is not the CPU's: what of its own work depends on one path, an iteration.

    insns         instructions in functions that the path changes
    specials      special instructions whose number it changes
    string_bytes  bytes of string operations, if it changes how these are done
    entered       whether it changes each way into the kernel, and the region goes there
    """

    region: str
    path: str
    insns: float
    specials: float
    string_bytes: float
    entered: bool


def marked_regions(found: Sequence[Difference], counts: RunCounts) -> tuple[MarkedRegion, ...]:
    """The regions on whose own work a difference has a bearing, by region, then by difference."""
    marked = []
    for region in merged_regions(counts).values():
        own = [row for row in region.functions if row.context == "own"]
        for difference in found:
            mark = _mark(region, own, difference.path)
            if mark.insns or mark.specials or mark.string_bytes or mark.entered:
                marked.append(mark)
    return tuple(marked)


def _mark(region: RegionCounts, own: Sequence[FunctionCost], path: KernelPath) -> MarkedRegion:
    cost = total_cost(row.cost for row in own)
    inside = sum(row.cost.insns for row in own if _matches(row.name, path.functions))
    count = region.iteration_count
    return MarkedRegion(
        region=region.name,
        path=path.name,
        insns=inside / count,
        specials=sum(cost.specials.get(kind, 0) for kind in path.specials) / count,
        string_bytes=cost.string_bytes / count if path.strings else 0.0,
        entered=path.entries and not ENTRIES.isdisjoint(cost.specials),
    )


def _matches(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
