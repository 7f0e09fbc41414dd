# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions executed what in regions of one run: by context, and by whose code it is."""

import difflib
import enum
import functools
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.counts.model import (
    CONTEXTS,
    KERNEL,
    UNKNOWN,
    Context,
    Cost,
    RegionCounts,
    is_kernel,
    total_cost,
)
from kdelta.counts.symbols import NO_SYMBOL
from kdelta.cpus.model import DATA_MISS_KINDS
from kdelta.spec.errors import LabError, UserError

_Region = TypeVar("_Region")


class Part(enum.StrEnum):
    """Whose code it is: the kernel's image, its modules, or programs and their libraries."""

    KERNEL = "kernel"
    MODULES = "modules"
    USER = "user"


class Sort(enum.StrEnum):
    """What functions are ranked by. MISSES: of code; L1D, L2D, DTLB: of loads and stores."""

    INSNS = "insns"
    INCLUSIVE = "inclusive"
    CALLS = "calls"
    LOADS = "loads"
    STORES = "stores"
    STRING = "string"
    SPECIAL = "special"
    MISSES = "misses"
    L1D = "l1d"
    L2D = "l2d"
    DTLB = "dtlb"
    CYCLES = "cycles"


class Selection(msgspec.Struct, frozen=True):
    """What of regions is looked at: whose work, and whose code."""

    contexts: tuple[Context, ...] = ("own",)
    parts: tuple[Part, ...] = tuple(Part)

    def has(self, line: "FunctionLine") -> bool:
        """Whether that line is looked at."""
        return line.context in self.contexts and code_part(line.origin) in self.parts


class Modelled(msgspec.Struct, frozen=True):
    """What a function's code missed on a CPU, by kind, and the model cycles that it cost with that:
    from when misses are hidden as far as they can be to when they are not.
    """

    misses: dict[str, float]
    low: float
    high: float

    def __add__(self, other: "Modelled") -> "Modelled":
        """Both together."""
        kinds = {**self.misses, **other.misses}
        misses = {k: self.misses.get(k, 0.0) + other.misses.get(k, 0.0) for k in kinds}
        return Modelled(misses, self.low + other.low, self.high + other.high)


class FunctionLine(msgspec.Struct, frozen=True):
    """One function in one context of a region: what it executed itself, and, where calls were
    followed, how often it was called and what was executed from when it was called to its end, by
    itself and what it called. Recursion is not counted twice. modelled: on a CPU, if one was named.
    """

    context: Context
    origin: str
    name: str
    cost: Cost
    calls: int | None = None
    inclusive: int | None = None
    modelled: Modelled | None = None


class RegionProfile(msgspec.Struct, frozen=True):
    """The functions of a region, and of how many iterations it was."""

    name: str
    iterations: int
    lines: tuple[FunctionLine, ...]

    def chosen(self, selection: Selection) -> tuple[FunctionLine, ...]:
        """Those that are looked at."""
        return tuple(line for line in self.lines if selection.has(line))


def code_part(origin: str) -> Part:
    """Whose code has that origin."""
    if origin == KERNEL:
        return Part.KERNEL
    return Part.MODULES if is_kernel(origin) else Part.USER


def region_profile(region: RegionCounts) -> RegionProfile:
    """A region of which nothing but counts is known."""
    lines = (FunctionLine(row.context, row.origin, row.name, row.cost) for row in region.functions)
    return RegionProfile(region.name, region.iteration_count, tuple(lines))


def chosen_regions(regions: dict[str, _Region], asked: Sequence[str]) -> dict[str, _Region]:
    """The regions of these names, all if none is named; UserError, with the nearest, for others."""
    for name in asked:
        if name not in regions:
            raise UserError(
                f"the run has no region {name!r}", f"it has: {likely_names(name, regions)}"
            )
    return {name: regions[name] for name in dict.fromkeys(asked)} if asked else regions


_SHOWN = 8


def likely_names(name: str, known: Iterable[str]) -> str:
    """The names that are most like that one, or the first ones, as a list in words."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=_SHOWN, cutoff=0.5)
    if near or len(names) <= _SHOWN:
        return ", ".join(near or names) or "none"
    return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"


def summed(lines: Iterable[FunctionLine]) -> tuple[FunctionLine, ...]:
    """One line a function, whatever the region and context: in the context of the first. A figure
    that is not known of one of them is not known of the sum.
    """
    found = by_key(((line.origin, line.name), line) for line in lines)
    return tuple(_sum(group) for group in found.values())


def _sum(group: Sequence[FunctionLine]) -> FunctionLine:
    if len(group) == 1:
        return group[0]
    first = group[0]
    calls = [line.calls for line in group if line.calls is not None]
    inclusive = [line.inclusive for line in group if line.inclusive is not None]
    modelled = [line.modelled for line in group if line.modelled is not None]
    return FunctionLine(
        first.context,
        first.origin,
        first.name,
        total_cost(line.cost for line in group),
        sum(calls) if len(calls) == len(group) else None,
        sum(inclusive) if len(inclusive) == len(group) else None,
        functools.reduce(operator.add, modelled) if len(modelled) == len(group) else None,
    )


def _misses(line: FunctionLine, *kinds: str) -> float:
    """Those of these kinds, as far as they are known; of code, if none are named."""
    if line.modelled is None:
        return 0
    known = line.modelled.misses
    chosen = kinds or [kind for kind in known if kind not in DATA_MISS_KINDS]
    return sum(known.get(kind, 0.0) for kind in chosen)


FIGURES: dict[Sort, Callable[[FunctionLine], float]] = {
    Sort.INSNS: lambda line: line.cost.insns,
    Sort.INCLUSIVE: lambda line: line.inclusive or 0,
    Sort.CALLS: lambda line: line.calls or 0,
    Sort.LOADS: lambda line: line.cost.loads,
    Sort.STORES: lambda line: line.cost.stores,
    Sort.STRING: lambda line: line.cost.string_bytes,
    Sort.SPECIAL: lambda line: sum(line.cost.specials.values()),
    Sort.MISSES: _misses,
    Sort.L1D: lambda line: _misses(line, "l1d", "l1d-store"),
    Sort.L2D: lambda line: _misses(line, "l2-data", "l2-data-store"),
    Sort.DTLB: lambda line: _misses(line, "dtlb", "dtlb-store"),
    Sort.CYCLES: lambda line: line.modelled.high if line.modelled else 0,
}
"""What functions are ranked by, of one of them."""

OF_DATA = (Sort.L1D, Sort.L2D, Sort.DTLB)
"""What is known where accesses to data were recorded."""


def ranked(lines: Iterable[FunctionLine], by: Sort = Sort.INSNS) -> tuple[FunctionLine, ...]:
    """The lines with the most first; equal ones by instructions, then by name."""
    figure = FIGURES[by]
    return tuple(
        sorted(lines, key=lambda one: (-figure(one), -one.cost.insns, one.name, one.origin))
    )


def by_part(profiles: Iterable[RegionProfile]) -> dict[tuple[Part, Context], int]:
    """Instructions of all regions by whose code and whose work: of each pair a figure."""
    found = {(part, context): 0 for part in Part for context in CONTEXTS}
    for profile in profiles:
        for line in profile.lines:
            found[code_part(line.origin), line.context] += line.cost.insns
    return found


def nameless_text(lines: Iterable[FunctionLine], who: str = "") -> tuple[str, ...]:
    """What is to be said of the origins none of whose code has a symbol, if there are any: those
    with the most instructions first.
    """
    named: set[str] = set()
    insns: Counter[str] = Counter()
    for line in lines:
        insns[line.origin] += line.cost.insns
        if line.name not in (NO_SYMBOL, UNKNOWN):
            named.add(line.origin)
    found = sorted(insns.keys() - named, key=lambda origin: (-insns[origin], origin))
    if not found:
        return ()
    said = f"No symbols{who}, so functions are not distinguished, in: {', '.join(found)}."
    if KERNEL in found:
        said += " A kernel has them with CONFIG_KALLSYMS=y."
    return (said,)


def check_profile(profile: RegionProfile, region: RegionCounts) -> None:
    """Raises LabError unless the lines add up to what the region counted, in each context."""
    for context in CONTEXTS:
        found = total_cost(line.cost for line in profile.lines if line.context == context)
        wanted = region.cost(context)
        if found != wanted:
            raise LabError(
                f"{region.name}: the functions' {context} work adds up to {found.insns} "
                f"instructions, {found.loads} loads and {found.stores} stores, and the region has "
                f"{wanted.insns}, {wanted.loads} and {wanted.stores}",
                "this is an error of kdelta; please report it with the output of --json",
            )
