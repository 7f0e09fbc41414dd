# SPDX-License-Identifier: GPL-2.0-or-later
"""One kernel's path in each region, as estimates over its perturbed runs.

Some functions search tables of addresses (stack unwinding, exception tables). How many steps they
take depends on where the linker put the code, not on what the code is: the same kernel linked in
another order differs there. ADDRESS_LOOKUPS names them, so that placement is not taken for path.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kdelta.counts.model import Context, RegionCounts, RunCounts, merged_regions
from kdelta.infer.effects.estimate import Estimate, Scale
from kdelta.infer.effects.functions import strip_suffixes

ADDRESS_LOOKUPS = frozenset(
    {
        "__orc_find",  # arch/x86/kernel/unwind_orc.c: which unwind entry covers an address
        "orc_find",
        "search_extable",  # lib/extable.c: is there a fixup for the instruction that faulted
        "cmp_ex_search",
        "bsearch",
        "kallsyms_lookup",  # kernel/kallsyms.c: which symbol covers an address
        "get_symbol_pos",
        "lookup_symbol_name",
        "find_stack",  # lib/stackdepot.c: a hash table whose keys are return addresses
        "depot_fetch_stack",
    }
)

NS_PER_SECOND = 10**9

NOT_OWN: tuple[Context, ...] = ("interrupts", "other")
"""Whose work is counted by time."""


class RegionPath(msgspec.Struct, frozen=True):
    """A region's own instructions an iteration: all, without lookups by address, these alone."""

    whole: Estimate
    code: Estimate
    lookups: Estimate


def region_paths(runs: Sequence[RunCounts]) -> dict[str, RegionPath]:
    """The regions that every run has, in the order of the first run."""
    common = common_regions(map(merged_regions, runs))
    return {name: _path(regions) for name, regions in common.items()}


def common_regions(runs: Iterable[Mapping[str, RegionCounts]]) -> dict[str, list[RegionCounts]]:
    """The regions that every run has, run by run, in the order of the first run."""
    found = list(runs)
    return {
        name: [regions[name] for regions in found]
        for name in (found[0] if found else ())
        if all(name in regions for regions in found)
    }


def iteration_scale(regions: Sequence[RegionCounts]) -> Scale:
    """Estimates an iteration of these runs of a region."""
    return Scale([region.iteration_count for region in regions])


def _path(regions: Sequence[RegionCounts]) -> RegionPath:
    scale = iteration_scale(regions)
    rows = [[row for row in region.functions if row.context == "own"] for region in regions]
    whole = [sum(row.cost.insns for row in own) for own in rows]
    lookups = [
        sum(row.cost.insns for row in own if strip_suffixes(row.name) in ADDRESS_LOOKUPS)
        for own in rows
    ]
    code = [all_of - looked for all_of, looked in zip(whole, lookups, strict=True)]
    return RegionPath(scale.estimate(whole), scale.estimate(code), scale.estimate(lookups))


def function_paths(runs: Sequence[RunCounts]) -> dict[str, dict[str, Estimate]]:
    """region -> function -> its own instructions an iteration, without lookups by address, of the
    regions that every run has. Functions of one name are one, and clones are a part of theirs.
    """
    common = common_regions(map(merged_regions, runs))
    return {name: _functions(regions) for name, regions in common.items()}


def _functions(regions: Sequence[RegionCounts]) -> dict[str, Estimate]:
    scale = iteration_scale(regions)
    counts: dict[str, list[int]] = {}
    for place, region in enumerate(regions):
        for row in region.functions:
            name = strip_suffixes(row.name)
            if row.context == "own" and name not in ADDRESS_LOOKUPS:
                counts.setdefault(name, [0] * len(regions))[place] += row.cost.insns
    return {name: scale.estimate(figures) for name, figures in counts.items()}


def background_rates(runs: Sequence[RunCounts]) -> dict[Context, Estimate]:
    """What interrupts and other tasks did meanwhile, in instructions a virtual second, over the
    regions whose virtual time every run knows; empty where none does.
    """
    timed = timed_regions(map(merged_regions, runs))
    if not timed:
        return {}
    scale = time_scale(timed)
    return {
        context: scale.estimate(
            sum(one.cost(context).insns for one in regions) for regions in timed
        )
        for context in NOT_OWN
    }


def timed_regions(runs: Iterable[Mapping[str, RegionCounts]]) -> list[tuple[RegionCounts, ...]]:
    """Of each run the regions that every run has, and whose virtual time is known of all; no run
    where there are none.
    """
    common = common_regions(runs).values()
    timed = [regions for regions in common if all(one.clock_ticks for one in regions)]
    return list(zip(*timed, strict=True))


def time_scale(runs: Iterable[Sequence[RegionCounts]]) -> Scale:
    """Estimates a virtual second of these runs."""
    return Scale([sum(one.clock_ticks or 0 for one in run) for run in runs], NS_PER_SECOND)
