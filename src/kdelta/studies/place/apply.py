# SPDX-License-Identifier: GPL-2.0-or-later
"""What becomes of an order that was found: what else it misses, and the kernel relinked in it.

A search judges thousands of orders, and the L2 with its data takes far longer to replay than lines
and pages do. So it is replayed at the end: for what each method found, and for the ensemble.

Without LRU hardly anything in the replay repeats: it takes ten times as long. So an order is looked
for, and shown, under LRU; what the CPU's own policy makes of it is shown next to that.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from kdelta.counts.arrays import U64
from kdelta.counts.model import RegionCounts, merged_regions
from kdelta.cpus.model import CPU, LINES
from kdelta.host.command import quiet
from kdelta.host.files import lab_errors, write_atomic
from kdelta.host.interrupt import interruptible
from kdelta.lab.lab import Lab
from kdelta.lab.reports import reported_side
from kdelta.lab.work import Work
from kdelta.measures.cycles.cut import cut_note
from kdelta.measures.cycles.placement import (
    REPLAYED,
    PlacedKernel,
    caches_of,
    has_data,
    l2_totals,
    own_misses,
    policies_of,
)
from kdelta.replay.layouts import ordered
from kdelta.replay.order import Further, PlaceResult
from kdelta.replay.search import Misses
from kdelta.spec.change import OrderChange
from kdelta.spec.kernel import parse_kernel_spec, with_changes
from kdelta.store.store import Store
from kdelta.studies.layout.traced_kernel import TracedKernel, traced_kernel
from kdelta.studies.place.model import Applied, AppliedRegion, PlacedRegion
from kdelta.studies.place.request import PlaceRequest
from kdelta.studies.place.together import placed_together

NOT_SEARCHED = (
    "L2: orders were looked for by the misses of the other kinds; those of the L2 count where one "
    "of the methods is taken"
)
FEW_SETS = (
    "L2: an order with functions that only fill gives few sets to what misses anyway, in the L2 as "
    "in the L1I; it may miss far more there, which --data counts"
)


def l2_of(placed: PlacedKernel, cpu: CPU, doing: Callable[[str], None] = quiet) -> Further | None:
    """How to tell what layouts of all functions miss in the L2; None unless each trace has what
    that takes. doing: is called with each region.
    """
    if not all(has_data(trace) for trace in placed.traces):
        return None

    def misses(layouts: U64) -> Misses:
        found = []
        for index, trace in enumerate(placed.traces):
            doing(f"{trace.region}: L2")
            found.append(l2_totals(placed, index, layouts[:, placed.executed], cpu))
        return {kind: np.stack([row[kind] for row in found]) for kind in found[0]}

    return misses


def notes_on_policy(placed: PlacedKernel, cpu: CPU, result: PlaceResult) -> list[str]:
    """Of each kind of misses, and each region: as linked and in the order, under the policy."""
    policies = policies_of(cpu)
    if not policies:
        return []
    words = ", ".join(f"{kind} {policy}" for kind, policy in policies.items())
    notes = [f"replacement on {cpu.name} is not LRU ({words}): the order is looked for under LRU"]
    caches = {kind: cache for kind, cache in caches_of(cpu).items() if kind in policies}
    layout = ordered(placed.placement, result.order)[0][placed.executed]
    both = dict.fromkeys(REPLAYED, np.stack([placed.shipped(), layout]))
    for index, trace in enumerate(placed.traces):
        found = own_misses(placed.prepared(index), both, caches, placed.iterations(index))
        for kind, (before, after) in found.items():
            if before or after:
                notes.append(
                    f"{trace.region}: {kind} misses replaced {policies[kind]}: {before:.2f} as "
                    f"linked, {after:.2f} in the order"
                )
    return notes


@contextlib.contextmanager
def put_back(file: Path) -> Iterator[None]:
    """Leaves the file as it was if the body is ended by Ctrl-C, or by an error."""
    with lab_errors("reading", file):
        before = file.read_bytes() if file.exists() else None
    try:
        yield
    except BaseException:
        if before is None:
            file.unlink(missing_ok=True)
        else:
            write_atomic(file, before)
        raise


async def relinked_kernel(
    request: PlaceRequest, workloads: Mapping[str, tuple[str, ...]], lab: Lab
) -> TracedKernel:
    """Return the kernel of the request relinked in the order of its file, traced under workloads
    with the operations that are wanted of each. That it cannot be built or run is in what is
    returned.
    """
    spec = with_changes(parse_kernel_spec(request.kernel), [OrderChange(str(request.file))])
    return await traced_kernel(
        str(spec),
        request.cpu,
        [Work(name, operations) for name, operations in workloads.items()],
        lab.with_request(msgspec.structs.replace(request.lab, data_lines=False)),
    )


def applied(
    found: TracedKernel,
    workloads: Sequence[str],
    as_linked: PlacedKernel,
    predicted: Sequence[PlacedRegion],
    *,
    cpu: CPU,
    store: Store,
) -> Applied:
    """Return what the relinked kernel does, measured: by its own trace, as it is linked.

    as_linked: the kernel as it was; predicted: what was predicted of its regions.
    """
    side = reported_side(found.spec, found.kernel, found.done, found.failure, store)
    if found.kernel is None or not found.ok:
        return Applied(side)
    with interruptible():
        relinked = placed_together(found.kernel, found.done, workloads, store)
        measured = _misses_as_linked(relinked, cpu)
    before, after = merged_regions(as_linked.counts), merged_regions(relinked.counts)
    return Applied(
        kernel=side,
        regions=tuple(
            _region(one, before[one.name], after[one.name], measured[one.name])
            for one in predicted
            if one.name in before and one.name in measured
        ),
        warnings=tuple(dict.fromkeys((*relinked.counts.warnings, *map(cut_note, relinked.cut)))),
    )


def _misses_as_linked(one: PlacedKernel, cpu: CPU) -> dict[str, float]:
    """By region, the L1I misses of its own work an iteration."""
    layouts, caches = {LINES: one.shipped()[np.newaxis]}, {LINES: cpu.l1i}
    return {
        trace.region: float(
            own_misses(one.prepared(index), layouts, caches, one.iterations(index))[LINES][0]
        )
        for index, trace in enumerate(one.traces)
    }


def _region(
    one: PlacedRegion, before: RegionCounts, after: RegionCounts, measured: float
) -> AppliedRegion:
    misses = one.misses["l1i"]
    path = after.cost("own").insns - before.cost("own").insns
    return AppliedRegion(
        name=one.name,
        iterations=before.iteration_count,
        as_linked=misses.as_linked,
        median=misses.median,
        best=misses.best,
        predicted=misses.predicted,
        measured=measured,
        path=path / before.iteration_count,
    )
