# SPDX-License-Identifier: GPL-2.0-or-later
"""What is to be known of a region before its figures are used: marks that a program left out, too
few iterations, a level that moves, and paths of a guest's kernel that are not the CPU's.
"""

import fnmatch
import functools
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kdelta.counts.model import (
    RegionCounts,
    RunCounts,
    is_kernel,
    merged_regions,
    plain_kind,
    total_cost,
)
from kdelta.counts.symbols import NO_SYMBOL
from kdelta.cpus.model import KernelPath
from kdelta.cpus.representative import Difference
from kdelta.infer.effects.functions import strip_suffixes
from kdelta.infer.effects.steady import BLOCKS, LEAST_ITERATIONS, levels

_EXIT = "do_group_exit"
"""The kernel's function by which a process exits, and kernel threads do not (kernel/exit.c)."""

_CLONE = frozenset({"kernel_clone", "_do_fork", "copy_process"})
"""Its functions that make a task: what exits in a region may have been made there."""


def region_warnings(regions: Iterable[RegionCounts], whole: str) -> tuple[str, ...]:
    """Return what is to be known of the regions of a run, in words.

    whole: the name of the region around a command, which holds its exit.
    """
    return tuple(text for one in regions for text in _warnings(one, whole))


def _warnings(region: RegionCounts, whole: str) -> Iterator[str]:
    if region.name == whole:
        yield from _around_command(region)
    else:
        yield from _of_program(region)
    if found := levels(region):
        yield (
            f"{region.name} is not steady: {found.before:.0f} instructions an iteration, from "
            f"iteration {found.at} on {found.after:.0f}"
        )
    count = region.iteration_count
    if 1 < count < BLOCKS:
        few = "too few to know whether it is steady"
        some = f"of fewer than {BLOCKS} only a clear change of level can be seen"
        why = few if count < LEAST_ITERATIONS else some
        yield f"{region.name} has {count} iterations: {why}"


def _around_command(region: RegionCounts) -> Iterator[str]:
    names = _kernel_functions(region)
    if len(region.iterations):
        yield (
            f"{region.name}: the program marks iterations and no region, so its start and its exit "
            "are counted in them; kdelta_begin() begins a region"
        )
    if names - {NO_SYMBOL} and _EXIT not in names:
        yield (
            f"{region.name}: the program has a kdelta_end() without a kdelta_begin(); what it did "
            "after that is not counted"
        )


def _of_program(region: RegionCounts) -> Iterator[str]:
    names = _kernel_functions(region)
    if _EXIT in names and names.isdisjoint(_CLONE):
        yield (
            f"{region.name}: the program exits in this region, so its exit is counted in it; "
            "kdelta_end() ends a region"
        )
    own = region.iterations.own()
    whole = region.cost("own").insns
    left = whole - sum(own)
    if own and not region.iterations_lost and left > max(own):
        yield (
            f"{region.name}: {left} of its {whole} instructions came after the last iteration; "
            "they are in the mean and not in the median"
        )


def _kernel_functions(region: RegionCounts) -> set[str]:
    """The kernel's functions that the measured tasks executed."""
    return {
        strip_suffixes(row.name)
        for row in region.functions
        if row.context == "own" and is_kernel(row.origin) and row.cost.insns
    }


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
    regions = merged_regions(counts).values()
    marks = (_mark(region, difference.path) for region in regions for difference in found)
    return tuple(
        one for one in marks if one.insns or one.specials or one.string_bytes or one.entered
    )


@functools.cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return what matches all names that one of these shell patterns matches, and no others."""
    return re.compile("|".join(map(fnmatch.translate, patterns)) or r"(?!)")


def _mark(region: RegionCounts, path: KernelPath) -> MarkedRegion:
    own = [row for row in region.functions if row.context == "own"]
    cost = total_cost(row.cost for row in own)
    is_inside = _any_of(tuple(path.functions)).fullmatch
    inside = sum(row.cost.insns for row in own if is_inside(row.name))
    count = region.iteration_count
    return MarkedRegion(
        region=region.name,
        path=path.name,
        insns=inside / count,
        specials=sum(
            times for kind, times in cost.specials.items() if plain_kind(kind) in path.specials
        )
        / count,
        string_bytes=cost.string_bytes / count if path.strings else 0.0,
        entered=path.entries and not ENTRIES.isdisjoint(cost.specials),
    )
