# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles of a kernel's regions over random layouts, as further regions of a search."""

from kdelta.cpus.model import CPU
from kdelta.host.interrupt import interruptible
from kdelta.infer.cycles.ensembles import mean_cycles
from kdelta.infer.cycles.prices import prices_of
from kdelta.infer.effects.estimate import ZERO, Estimate
from kdelta.infer.effects.paths import RegionPath
from kdelta.store.store import Store
from kdelta.studies.lab.lab import TRACES
from kdelta.studies.lab.requests import Progress
from kdelta.studies.search.measure import Bench, MeasuredKernel, SearchedRegion, cycles_name
from kdelta.studies.tracing.cycles import SEED
from kdelta.studies.tracing.placement import costs, drawn, placed_run


def cycle_regions(
    measured: MeasuredKernel,
    bench: Bench,
    cpu: CPU,
    layouts: int,
    *,
    store: Store,
    progress: Progress,
) -> dict[str, SearchedRegion]:
    """The model cycles of each region whose run was traced, over so many layouts, placement left
    out: `cycles_name` -> region. Nothing for a kernel that failed.
    """
    if measured.kernel is None:
        return {}
    found: dict[str, SearchedRegion] = {}
    good = [one for one in measured.done if one.counts is not None]
    for recorded in (one for one in good if TRACES in one.run.attachments):
        step = f"replay {measured.kernel.release} on {cpu.name}"
        progress.begin(step)
        with interruptible():
            placed = placed_run(measured.kernel, recorded, store)
            every = [
                one.counts
                for one in good
                if one.counts and one.run.workload == recorded.run.workload
            ]
            held = costs(placed, cpu, drawn(placed, layouts, SEED), runs=every)
        progress.end(step, f"{layouts} layouts")
        for name, cost in held.items():
            if not cost.ensemble.misses:
                continue
            value = mean_cycles(cost, prices_of(cpu))
            nothing = Estimate(ZERO, ZERO, ZERO, value.n)
            shown = cycles_name(bench.named(name, recorded.run.workload), cpu)
            found[shown] = SearchedRegion(recorded.run.workload, RegionPath(value, value, nothing))
    return found
