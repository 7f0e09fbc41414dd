# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles of a kernel's regions over random layouts, as further regions of a search."""

from kdelta.cpus.model import CPU
from kdelta.host.interrupt import interruptible
from kdelta.infer.estimate import ZERO, Estimate
from kdelta.infer.mean_cycles import mean_cycles
from kdelta.infer.paths import RegionPath
from kdelta.infer.prices import prices_of
from kdelta.store.store import Store
from kdelta.studies.ablate.measure import Bench, Measured, Region
from kdelta.studies.cycles import SEED
from kdelta.studies.lab import TRACES
from kdelta.studies.placement import costs, drawn, placed_run
from kdelta.studies.requests import Progress


def cycles_name(region: str, cpu: CPU) -> str:
    """What the model cycles of a region are called among regions."""
    return f"{region} on {cpu.name}"


def cycle_regions(
    measured: Measured,
    bench: Bench,
    cpu: CPU,
    layouts: int,
    *,
    store: Store,
    progress: Progress,
) -> dict[str, Region]:
    """The model cycles of each region whose run was traced, over so many layouts, placement left
    out: `cycles_name` -> region. Nothing for a kernel that failed.
    """
    if measured.kernel is None:
        return {}
    found: dict[str, Region] = {}
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
            found[shown] = Region(recorded.run.workload, RegionPath(value, value, nothing))
    return found
