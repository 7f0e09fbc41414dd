# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run counted: regions, their iterations, and the cost of each function in them.

The types are arrays in JSON, so that a run of 60 regions with 1,500 rows each is read in about
60 ms. A string operation (rep movs) counts as one instruction; `string_iterations` holds its
further iterations, each of which the virtual clock counts too.
"""

import contextlib
import functools
import operator
import statistics
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Literal

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.spec.errors import LabError

SCHEMA = 1

Context = Literal["own", "interrupts", "other"]
"""Whose work: the measured tasks' own, that of interrupts on their time, that of other tasks."""

CONTEXTS: tuple[Context, ...] = ("own", "interrupts", "other")

KERNEL = "kernel"
VDSO = "[vdso]"
UNKNOWN = "[unknown]"
"""User code that belongs to no binary that was carried along."""


def is_kernel(origin: str) -> bool:
    """Whether code of that origin runs in the kernel: in its image or in a [module]."""
    return origin == KERNEL or (origin.startswith("[") and origin not in {VDSO, UNKNOWN})


class Cost(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Executed instructions, and of what kinds. `specials` counts those that cost nothing like one
    cycle, by kind, and holds no zeros.
    """

    insns: int = 0
    string_iterations: int = 0
    loads: int = 0
    stores: int = 0
    string_bytes: int = 0
    specials: dict[str, int] = {}

    def __add__(self, other: "Cost") -> "Cost":
        """The cost of both."""
        return total_cost((self, other))


def total_cost(costs: Iterable[Cost]) -> Cost:
    """The sum of costs; nothing costs nothing."""
    insns = string_iterations = loads = stores = string_bytes = 0
    specials: dict[str, int] = {}
    for cost in costs:
        insns += cost.insns
        string_iterations += cost.string_iterations
        loads += cost.loads
        stores += cost.stores
        string_bytes += cost.string_bytes
        for kind, count in cost.specials.items():
            specials[kind] = specials.get(kind, 0) + count
    specials = {kind: count for kind, count in sorted(specials.items()) if count}
    return Cost(insns, string_iterations, loads, stores, string_bytes, specials)


def plain_kind(kind: str) -> str:
    """Return which instruction a kind of special ones is, whatever register or device it is for."""
    return kind.partition(" ")[0]


class FunctionCost(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one function executed in a whole region in one context.

    `origin` is "kernel", "[module]", "[vdso]" or the name of the user's binary. `calls`: how often
    the measured tasks entered it at its start, in the kernel; `caller`: the function that each of
    these calls was by, as its instructions show; empty if they were several, or one is not known.
    """

    context: Context
    origin: str
    name: str
    cost: Cost
    calls: int = 0
    caller: str = ""


class Iterations(msgspec.Struct, frozen=True, array_like=True):
    """Instructions of each iteration, one entry an iteration in each of the four rows."""

    own_user: tuple[int, ...] = ()
    own_kernel: tuple[int, ...] = ()
    interrupts: tuple[int, ...] = ()
    other: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raises ValueError when the rows differ in length."""
        if len(set(map(len, (self.own_user, self.own_kernel, self.interrupts, self.other)))) > 1:
            raise ValueError("the rows of iterations differ in length")

    def __len__(self) -> int:
        """How many iterations."""
        return len(self.own_user)

    def own(self) -> tuple[int, ...]:
        """The task's own work, user and kernel, by iteration."""
        return tuple(map(operator.add, self.own_user, self.own_kernel))


class Packets(msgspec.Struct, frozen=True, array_like=True):
    """Packets of a region as the workload counted them, with the bytes of their Ethernet frames
    without checksums.
    """

    count: int
    frame_bytes: int


class LeftWork(msgspec.Struct, frozen=True, array_like=True):
    """What so many iterations of a region leave to interrupts and other tasks: instructions that a
    guest executes from the first iteration until long after the last one, the region's own and
    those that it executes anyway taken off.
    """

    insns: int
    iterations: int

    @property
    def mean_insns(self) -> Fraction:
        """Instructions an iteration, exactly."""
        return Fraction(self.insns, self.iterations)


class CpuCounts(msgspec.Struct, frozen=True, array_like=True):
    """Instructions that one of several CPUs executed in a region. idle: of `other`, what its idle
    task executed, interrupts apart; None in runs that did not count it.
    """

    own_user: int
    own_kernel: int
    interrupts: int
    other: int
    idle: int | None = None

    @property
    def own(self) -> int:
        return self.own_user + self.own_kernel

    def __add__(self, more: "CpuCounts") -> "CpuCounts":
        """Return what the CPU executed in both."""
        return CpuCounts(
            self.own_user + more.own_user,
            self.own_kernel + more.own_kernel,
            self.interrupts + more.interrupts,
            self.other + more.other,
            None if self.idle is None or more.idle is None else self.idle + more.idle,
        )


class RegionCounts(msgspec.Struct, frozen=True, array_like=True):
    """One region of a run.

    The functions hold all that was executed between its begin and its end; the iterations may miss
    a few instructions before the end, after the last iteration's mark. `iterations_lost` were
    executed and not recorded one by one. `clock_ticks` is how far the virtual clock went, in its
    ticks of 1 ns, idle time included; None if unknown. `packets`: None for a region that is
    not about packets. `left`: None where nothing is left, or it was not counted. `cpus`: of
    several, first that which began the region.
    """

    name: str
    iterations: Iterations
    functions: tuple[FunctionCost, ...]
    clock_ticks: int | None = None
    iterations_lost: int = 0
    packets: Packets | None = None
    left: LeftWork | None = None
    cpus: tuple[CpuCounts, ...] = ()

    @property
    def iteration_count(self) -> int:
        """How many passes; a region without marks for its iterations is one."""
        return max(1, len(self.iterations) + self.iterations_lost)

    def cost(self, context: Context, kernel: bool | None = None) -> Cost:
        """The whole region's cost in a context; in the kernel (True) or the user (False) only."""
        return total_cost(
            row.cost
            for row in self.functions
            if row.context == context and (kernel is None or is_kernel(row.origin) is kernel)
        )

    def mean_own_insns(self) -> Fraction:
        """The task's own instructions an iteration, exactly."""
        return Fraction(self.cost("own").insns, self.iteration_count)

    def median_own_insns(self) -> Fraction:
        """The median iteration's own instructions; the mean where iterations are not known."""
        if len(self.iterations) == 0:
            return self.mean_own_insns()
        own = self.iterations.own()
        return Fraction(statistics.median_low(own) + statistics.median_high(own), 2)

    def executed_insns(self) -> int:
        """What the virtual clock saw: all contexts, and every iteration of string operations."""
        return sum(row.cost.insns + row.cost.string_iterations for row in self.functions)

    def packet_insns(self) -> Fraction | None:
        """What everybody executed, interrupts and other tasks included, a packet; None without
        packets. Packets are forwarded on anybody's time.
        """
        if self.packets is None or not self.packets.count:
            return None
        return Fraction(sum(row.cost.insns for row in self.functions), self.packets.count)

    def idle_ticks(self) -> int | None:
        """Clock ticks of 1 ns in which nothing was executed; None if unknown."""
        return None if self.clock_ticks is None else self.clock_ticks - self.executed_insns()


class RunCounts(msgspec.Struct, frozen=True):
    """All that a run counted, and what is to be said about it. `failed`: operations that its kernel
    could not run, each with the program's own words. `perturbation`: its index, by which runs of
    two kernels are pairs; it is no part of what is stored.
    """

    regions: tuple[RegionCounts, ...]
    warnings: tuple[str, ...] = ()
    schema: int = SCHEMA
    failed: dict[str, str] = {}
    perturbation: int | msgspec.UnsetType = msgspec.UNSET


class _CountsHead(msgspec.Struct):
    schema: int


class _Named(msgspec.Struct, array_like=True):
    name: str


class _CountsNames(msgspec.Struct):
    regions: tuple[_Named, ...]


_NAMES = msgspec.json.Decoder(_CountsNames)
_HEAD = msgspec.json.Decoder(_CountsHead)
_DECODER = msgspec.json.Decoder(RunCounts)


def encode_counts(counts: RunCounts) -> bytes:
    """The JSON of a run's counts: the same bytes for equal counts."""
    return msgspec.json.encode(counts, order="deterministic")


def decode_counts(text: bytes) -> RunCounts:
    """Reads that JSON; raises LabError for counts of a newer schema and for damaged ones."""
    try:
        schema = _HEAD.decode(text).schema
        if schema <= SCHEMA:
            return _DECODER.decode(text)
    except msgspec.DecodeError as error:
        raise LabError(
            f"a run's counts cannot be read: {error}", "make the run again with --rerun"
        ) from error
    raise LabError(
        f"a run's counts have schema {schema}, and this kdelta knows {SCHEMA}",
        "use the newer kdelta that made them",
    )


def region_names(text: bytes) -> tuple[str, ...]:
    """The regions of that JSON, each once; none of what cannot be read. It takes a few ms."""
    with contextlib.suppress(msgspec.DecodeError):
        return tuple(dict.fromkeys(one.name for one in _NAMES.decode(text).regions))
    return ()


def only_region(counts: RunCounts, name: str) -> RunCounts:
    """Return what a run counted in regions of that name, with all its warnings."""
    regions = tuple(one for one in counts.regions if one.name == name)
    return msgspec.structs.replace(counts, regions=regions)


def merged_regions(counts: RunCounts) -> dict[str, RegionCounts]:
    """The regions by name, in the order of their first begin.

    A region that was begun more than once under its name is one region with all the iterations.
    """
    by_name = by_key((region.name, region) for region in counts.regions)
    return {name: _merge(regions) for name, regions in by_name.items()}


def _merge(regions: list[RegionCounts]) -> RegionCounts:
    if len(regions) == 1:
        return regions[0]
    iterations = Iterations(
        *(
            tuple(value for region in regions for value in getattr(region.iterations, row))
            for row in Iterations.__struct_fields__
        )
    )
    rows = by_key(
        ((one.context, one.origin, one.name), one) for region in regions for one in region.functions
    )
    ticks = [region.clock_ticks for region in regions]
    packets = [region.packets for region in regions if region.packets is not None]
    left = [region.left for region in regions if region.left is not None]
    return RegionCounts(
        name=regions[0].name,
        iterations=iterations,
        functions=tuple(FunctionCost(*key, *_summed(found)) for key, found in rows.items()),
        clock_ticks=None if None in ticks else sum(tick for tick in ticks if tick is not None),
        iterations_lost=sum(region.iteration_count for region in regions) - len(iterations),
        packets=Packets(sum(p.count for p in packets), sum(p.frame_bytes for p in packets))
        if len(packets) == len(regions)
        else None,
        left=LeftWork(sum(one.insns for one in left), sum(one.iterations for one in left))
        if len(left) == len(regions)
        else None,
        cpus=tuple(
            functools.reduce(operator.add, same)
            for same in zip(*(region.cpus for region in regions), strict=False)
        ),
    )


def _summed(rows: Sequence[FunctionCost]) -> tuple[Cost, int, str]:
    """The cost and the calls of one function, and who called it, of all times that a region ran."""
    callers = {one.caller for one in rows if one.calls}
    caller = callers.pop() if len(callers) == 1 else ""
    return total_cost(one.cost for one in rows), sum(one.calls for one in rows), caller


class FalseReportError(LabError):
    """A program reported of its regions what cannot be."""


def with_packets(regions: Iterable[RegionCounts], said: bytes) -> tuple[RegionCounts, ...]:
    """Return the regions, each with the packets that were reported of its name, in lines of "NAME
    PACKETS BYTES"; a region that comes again has those of its own line. FalseReportError for lines
    that are none, or of regions that were not counted.
    """
    reported = [_packets_of(line) for line in said.decode("utf-8", "replace").splitlines()]
    found = []
    for region in regions:
        at = next((index for index, (name, _) in enumerate(reported) if name == region.name), None)
        packets = None if at is None else reported.pop(at)[1]
        found.append(msgspec.structs.replace(region, packets=packets))
    if reported:
        raise FalseReportError(f"it reported packets of {reported[0][0]}, which is no region of it")
    return tuple(found)


def _packets_of(line: str) -> tuple[str, Packets]:
    words = line.rsplit(None, 2)
    if len(words) != 3 or not all(word.isascii() and word.isdigit() for word in words[1:]):
        raise FalseReportError(f"it reported packets so: {line!r}")
    return words[0], Packets(int(words[1]), int(words[2]))
