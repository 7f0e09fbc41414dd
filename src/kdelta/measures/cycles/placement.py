# SPDX-License-Identifier: GPL-2.0-or-later
"""The stage that studies of placement share: from a kernel and a workload to what layouts cost.

A kernel is run once, traced, and from then on only replayed. Of one kernel:

    found = placed_run(kernel, done, store)
    costs_of = costs(found, cpu, drawn(found, layouts, seed))
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import msgspec
import numpy as np

from kdelta.counts.arrays import I64, U64
from kdelta.counts.model import CONTEXTS, KERNEL, RegionCounts, RunCounts, merged_regions
from kdelta.counts.symbols import Symbol
from kdelta.counts.trace import Trace
from kdelta.cpus.model import CPU, LRU, Cache, MissKind
from kdelta.host.command import quiet
from kdelta.host.files import lab_errors
from kdelta.host.interrupt import interruptible
from kdelta.infer.cycles.cycles import executed_estimates
from kdelta.infer.cycles.ensembles import Ensemble, Floats, RegionCost
from kdelta.infer.cycles.prices import FIXED, L2_CODE, L2_DATA
from kdelta.infer.effects.estimate import Estimate
from kdelta.kernels.config.kconfig import Config, option_number, parse_config
from kdelta.kernels.kbuild.built import VMLINUX, built_folder, load_built
from kdelta.kernels.kbuild.relink import Relink, orders_in_the_middle, relinking_variables
from kdelta.kernels.kbuild.toolchain import toolchain
from kdelta.kernels.model import Kernel
from kdelta.kernels.objects.digest import Digest
from kdelta.lab.attachments import symbols_of
from kdelta.lab.lab import RunResult, traces_of
from kdelta.measures.cycles.cut import CutRegion, rounded_up
from kdelta.measures.path.shared import kept_digest
from kdelta.replay.as_executed import data_misses
from kdelta.replay.functions import Placement, placement_of
from kdelta.replay.hierarchy import PreparedHierarchy
from kdelta.replay.kernel_text import vmlinux_symbols
from kdelta.replay.layouts import (
    aligned,
    as_linked,
    at_borders,
    draws_of,
    in_text,
    layout_in_order_of,
    shuffles,
)
from kdelta.replay.pairs import paired_shuffles, share_slots
from kdelta.replay.simulate import Kind, PlacedBlocks, PreparedTrace
from kdelta.spec.errors import LabError
from kdelta.spec.limits import ITEMS_A_GIB
from kdelta.store.model import Run
from kdelta.store.store import Store

OWN = CONTEXTS.index("own")

PAGES = (
    "ITLB: functions keep the order that somebody linked, and pages end at random places in it; a "
    "random order would spread them over more pages than a link does"
)
DATA_OF_ONE_RUN = (
    "misses of data (l1d, dtlb and below) are those of the traced run, and the same under all "
    "layouts of code; TLBs: the size of a page is taken from its address; prefetching is not in it"
)
WHERE_DATA_LIES = (
    "L2: where data lies in memory is as in the traced run, and is not drawn: two kernels may "
    "differ in misses by that alone"
)

REPLAYED: dict[MissKind, Kind] = {"l1i": "lines", "itlb": "pages", "btb": "branches"}
"""The kinds of misses that code alone has, and how they are replayed."""

L2: MissKind = "l2"

_ALIGNMENT = "CONFIG_FUNCTION_ALIGNMENT"
_MERGING = ("CONFIG_X86_KERNEL_IBT", "CONFIG_LTO_CLANG")
"""Options with which scripts/link-vmlinux.sh (6.12) links vmlinux.o and not the objects."""
_AT_ONCE = 256  # layouts that are made together: of 60,000 functions they are 120 MB


class PlacedKernel(msgspec.Struct, frozen=True, eq=False):
    """A kernel, its traced run, and where its code lies.

    traces: of the run's regions, in the order of `placement.placed`. counts: of that run. executed
    (n_executed,): indexes of the functions that any trace executes; a layout has to say no more
    than where these lie. places: for each trace, where its blocks lie in these. digest: of a kernel
    that was built; None where nothing is known of its objects. cut: the regions whose trace was cut
    off at its limit, of which there is none here.
    """

    kernel: Kernel
    run: Run
    counts: RunCounts
    traces: tuple[Trace, ...]
    placement: Placement
    executed: I64
    places: tuple[PlacedBlocks, ...]
    digest: Digest | None = None
    cut: tuple[CutRegion, ...] = ()

    def shipped(self) -> U64:
        """The layout that the kernel has, of its executed functions: (n_executed,)."""
        layout: U64 = as_linked(self.placement)[self.executed]
        return layout

    def prepared(self, index: int) -> PreparedTrace:
        """A trace, ready to be replayed under layouts (n, n_executed)."""
        return PreparedTrace(self.traces[index], self.places[index])

    def iterations(self, index: int) -> float:
        """Of how many iterations a trace is."""
        return float(max(1, self.traces[index].iterations))


class Drawn(msgspec.Struct, frozen=True, eq=False):
    """Random layouts of a kernel's executed functions, (n, n_executed), and what each was drawn
    from. orders: as somebody linked them, (n_executed,) each, in which borders of pages are drawn
    for the ITLB; without any, its pages are those of the layouts.
    """

    layouts: U64
    draws: tuple[int, ...]
    orders: tuple[U64, ...] = ()


def placed_run(kernel: Kernel, done: RunResult, store: Store) -> PlacedKernel:
    """A traced run that went well, placed; LabError for another, UserError for a kernel whose
    symbols do not say where its code is.
    """
    if done.counts is None:
        raise LabError(f"run {done.run.id} did not go well: there is no trace of it")
    traces = traces_of(store, done.run)
    return place_traces(kernel, done.run, done.counts, traces, run_symbols(kernel, store, done.run))


def run_symbols(kernel: Kernel, store: Store, run: Run) -> list[Symbol]:
    """The symbols of a traced run's kernel and modules."""
    symbols = symbols_of(store, run)
    linked = _linked_symbols(kernel)
    return [*linked, *(row for row in symbols if row[3] != KERNEL)] if linked else symbols


def place_traces(
    kernel: Kernel, run: Run, counts: RunCounts, traces: tuple[Trace, ...], symbols: list[Symbol]
) -> PlacedKernel:
    """The traces of a run, placed by the symbols of its kernel and modules."""
    regions = merged_regions(counts)
    cut = tuple(
        CutRegion(one.region, _needed_gib(one, regions.get(one.region)))
        for one in traces
        if one.truncated
    )
    traces = tuple(one for one in traces if not one.truncated)
    digest = kept_digest(kernel)
    placement = placement_of(
        traces,
        symbols,
        digest=digest,
        alignment=alignment_of(kernel),
        merged=was_merged(kernel),
        middle=_ordered_in_the_middle(kernel),
    )
    executed = np.flatnonzero(placement.executed)
    places = tuple(
        PlacedBlocks(np.searchsorted(executed, one.function).astype(np.uint32), one.offset)
        for one in placement.placed
    )
    return PlacedKernel(kernel, run, counts, traces, placement, executed, places, digest, cut)


def _needed_gib(trace: Trace, region: RegionCounts | None) -> float | None:
    """Return about how large all of a trace would be, by how many of the region's instructions the
    part has that was kept; None where nothing was.
    """
    kept, items = trace.executed_insns(OWN), max(len(trace.items), len(trace.sequence))
    if region is None or not kept:
        return None
    part = min(1.0, kept / max(1, region.cost("own").insns))
    return rounded_up(items / part / ITEMS_A_GIB)


def alignment_of(kernel: Kernel) -> int | None:
    """What the config says that functions are aligned to; None if it says nothing."""
    config = _config_of(kernel)
    return option_number(config[_ALIGNMENT]) if _ALIGNMENT in config else None


def vmlinux_of(kernel: Kernel) -> Path | None:
    """The vmlinux, with its symbols, of a kernel that was built; None where there is none."""
    if kernel.built is None:
        return None
    if kernel.image_format == "vmlinux":
        return Path(kernel.image)
    path = built_folder(kernel.built) / VMLINUX
    return path if path.is_file() else None


def _ordered_in_the_middle(kernel: Kernel) -> bool:
    """Where a relink of a built kernel would have functions in an order."""
    built = load_built(kernel.built) if kernel.built is not None else None
    if built is None:
        return False
    tools = toolchain(relinking_variables(built.variables, Relink()))
    return orders_in_the_middle(tools.targeted, tools.linker)


def was_merged(kernel: Kernel) -> bool:
    """Whether all objects of a kernel became one before that was linked."""
    config = _config_of(kernel)
    return any(config.get(option) == "y" for option in _MERGING)


def _config_of(kernel: Kernel) -> Config:
    if kernel.config is None:
        return {}
    path = Path(kernel.config)
    with lab_errors("reading", path):
        return parse_config(path.read_text("utf-8", "replace")) if path.is_file() else {}


def drawn(one: PlacedKernel, n: int, seed: int, alignment: int | None = None) -> Drawn:
    """n random layouts of one kernel; alignment: of functions, in bytes, if not as it has them."""
    parts = []
    for at in range(0, n, _AT_ONCE):
        count = min(n - at, _AT_ONCE)
        layouts = shuffles(one.placement, count, seed, first=at, alignment=alignment)
        parts.append(layouts[:, one.executed])
    linked = aligned(one.placement, alignment) if alignment else as_linked(one.placement)
    return Drawn(np.concatenate(parts), draws_of(n, seed), (linked[one.executed],))


def drawn_pairs(a: PlacedKernel, b: PlacedKernel, n: int, seed: int) -> tuple[Drawn, Drawn]:
    """n random layouts of each of two kernels, alike where their functions are. Pages are drawn in
    the orders of both, by turns, for either; for kernels too unlike for that, in its own.
    """
    parts = []
    for at in range(0, n, _AT_ONCE):
        both = paired_shuffles(a.placement, b.placement, min(n - at, _AT_ONCE), seed, first=at)
        parts.append((both[0][:, a.executed], both[1][:, b.executed]))
    draws = draws_of(n, seed)
    ours, theirs = (np.concatenate(side) for side in zip(*parts, strict=True))
    orders = [[as_linked(one.placement)] for one in (a, b)]
    if share_slots(a.placement, b.placement):
        # In one order of the two, whichever is the base.
        sides = [one.placement for one in sorted((a, b), key=lambda one: one.kernel.identity)]
        orders = [[layout_in_order_of(one.placement, other) for other in sides] for one in (a, b)]
    return (
        Drawn(ours, draws, tuple(order[a.executed] for order in orders[0])),
        Drawn(theirs, draws, tuple(order[b.executed] for order in orders[1])),
    )


def caches_of(cpu: CPU) -> dict[MissKind, Cache]:
    """What of a CPU can be replayed from code alone."""
    caches: dict[MissKind, Cache] = {"l1i": cpu.l1i, "itlb": cpu.itlb}
    return caches if cpu.btb is None else {**caches, "btb": cpu.btb}


def policies_of(cpu: CPU) -> dict[str, str]:
    """kind of misses -> how its cache replaces, where that is not LRU, which is to be asked too."""
    return {
        str(kind): one.replacement for kind, one in caches_of(cpu).items() if one.replacement != LRU
    }


def costs(
    one: PlacedKernel,
    cpu: CPU,
    layouts: Drawn,
    *,
    runs: Sequence[RunCounts] = (),
    data: bool = False,
    doing: Callable[[str], None] = quiet,
) -> dict[str, RegionCost]:
    """region -> what it costs an iteration: what its own work executes, and its own misses in the
    shipped layout and in each of these.

    runs: all runs of this kernel, over which what is executed is an estimate; without any, that is
    known of the traced one alone. data: replay the L2, too, where the trace has what that takes.
    doing: is called with each region. In the replay, interrupts and other tasks evict what they
    evict, but their misses are not counted.
    """
    executed = executed_estimates(runs or (one.counts,))
    caches = caches_of(cpu)
    # The layout as linked is one more of them.
    shipped = one.shipped()[np.newaxis]
    with_it = msgspec.structs.replace(layouts, layouts=np.concatenate([shipped, layouts.layouts]))
    every = by_kind(one, with_it, cpu)
    if layouts.orders:
        every["itlb"] = np.concatenate([shipped, every["itlb"]])
    found = {}
    for index, trace in enumerate(one.traces):
        doing(trace.region)
        with interruptible():
            per = one.iterations(index)
            code = own_misses(one.prepared(index), every, caches, per)
            misses = {str(kind): row for kind, row in code.items()}
            if data and has_data(trace):
                in_l2 = l2_totals(one, index, every["l1i"], cpu)
                misses |= {kind: row / per for kind, row in in_l2.items()}
            amounts = executed.get(trace.region, {})
            if data and trace.data_virtual is not None:
                amounts = amounts | own_data_misses(one, index, cpu, amounts)
        found[trace.region] = RegionCost(
            executed=amounts,
            ensemble=Ensemble(layouts.draws, {kind: row[1:] for kind, row in misses.items()}),
            shipped={kind: float(row[0]) for kind, row in misses.items()},
        )
    return found


def by_kind(one: PlacedKernel, layouts: Drawn, cpu: CPU) -> dict[MissKind, U64]:
    """The layouts in which misses of each kind are replayed: (n, n_executed) each."""
    found = dict.fromkeys(caches_of(cpu), layouts.layouts)
    if layouts.orders:
        moves = in_text(one.placement)[one.executed]
        found["itlb"] = at_borders(layouts.orders, moves, layouts.draws, cpu.itlb)
    return found


def own_misses(
    prepared: PreparedTrace,
    layouts: Mapping[MissKind, U64],
    caches: Mapping[MissKind, Cache],
    per: float,
) -> dict[MissKind, Floats]:
    """By kind, the misses of the region's own work under each of its layouts, divided by `per`."""
    found = {
        kind: prepared.replay(layouts[kind], cache, kind=REPLAYED[kind], by_function=False)
        for kind, cache in caches.items()
    }
    return {kind: one.total[:, OWN] / per for kind, one in found.items()}


def has_data(trace: Trace) -> bool:
    """Whether a trace has what L2 figures need: accesses to data, and physical addresses."""
    return trace.data_virtual is not None and trace.physical is not None


def own_data_misses(
    one: PlacedKernel, index: int, cpu: CPU, executed: Mapping[str, Estimate]
) -> dict[str, Estimate]:
    """By kind, what the region's own work misses of data an iteration, the same under all layouts
    of code. They are those of the traced run, so their interval is none; that they were seen in one
    run alone is reported in a note. executed: whose number of runs is theirs.
    """
    runs = min((estimate.n for estimate in executed.values()), default=1)
    per = Fraction(one.iterations(index))
    return {
        str(kind): Estimate(count / per, count / per, count / per, runs)
        for kind, count in data_misses(one.traces[index], cpu).total().items()
        if kind in FIXED
    }


def l2_totals(one: PlacedKernel, index: int, layouts: U64, cpu: CPU) -> dict[str, I64]:
    """The misses of the L2 by the region's own work under each layout, in all iterations together:
    (n,) each.

    What data misses in its own first level is the same under all layouts; what of it the L2 still
    holds is not, since code shares it. Raises what PreparedHierarchy does.
    """
    prepared = PreparedHierarchy(one.traces[index], one.places[index], cpu.l1d)
    found = prepared.replay(layouts, l1i=cpu.l1i, l2=cpu.l2, by_function=False)
    code = found.l2_code.total[:, OWN].astype(np.int64)
    data = found.l2_data[:, OWN].astype(np.int64)
    return {L2: code + data, L2_CODE: code, L2_DATA: data}


def notes_on_l2(cpu: CPU, unknown: Sequence[str]) -> list[str]:
    """What is to be known about misses of the L2; unknown: the regions without any."""
    notes = [DATA_OF_ONE_RUN, WHERE_DATA_LIES]
    if cpu.l2_shared:
        notes.append(f"L2: {cpu.name} shares it between cores; here one core has it to itself")
    if unknown:
        notes.append(f"L2: not known, for want of physical addresses, of {', '.join(unknown)}")
    return notes


def without_l2(cost: RegionCost) -> RegionCost:
    """The same without what it misses in the L2."""
    unwanted = {L2, L2_CODE, L2_DATA}
    misses = {kind: row for kind, row in cost.ensemble.misses.items() if kind not in unwanted}
    return msgspec.structs.replace(
        cost,
        ensemble=Ensemble(cost.ensemble.draws, misses),
        shipped={kind: count for kind, count in cost.shipped.items() if kind not in unwanted},
    )


def _linked_symbols(kernel: Kernel) -> list[Symbol]:
    """Those of a vmlinux that still has them; none where the image has none.

    They are in the order of linked objects, whatever the order of functions: so functions that
    share a name are distinguished alike in all links of the same objects.
    """
    vmlinux = vmlinux_of(kernel)
    return [] if vmlinux is None else vmlinux_symbols(vmlinux)
